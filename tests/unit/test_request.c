/* Requests of `dtrain serve`: the JSON reader, all forms of rows, and the answers. */
#include "predict/serve.h"
#include "suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static char *names[] = {"a", "b"};
static struct dt_predictor predictor = {
    .file = {.schema = {.features = 2, .dense = 2, .scale = 1, .feature_names = names}},
    .answer = "values",
    .features = 2,
    .numbers = 2,
    .width = 1,
    .chunk = 4};

/* Reads a request for at most three rows of two numbers; returns "" or the error message. */
static const char *read_request(const char *body, bool v2, struct dt_inputs *inputs,
                                struct dt_text *answer)
{
    const float values[] = {0.5f, 1.5f, 2.5f};
    const int32_t classes[3] = {0};
    struct dt__version version = {.predictor = &predictor, .number = 7};
    struct dt__request request;
    ck_assert(!dt__columns_of_json(&version.columns, &predictor.file.schema));
    const dt_status status = dt__request_read(body, strlen(body), v2, &version, 3, &request);
    if (!status) {
        ck_assert(!dt__inputs_reserve(inputs, &predictor, request.rows));
        ck_assert(!dt__request_inputs(&request, 0, request.rows, &predictor, inputs, 0));
        ck_assert(!dt__answer_format(&request, &version, "\"m\"", values, classes, answer));
    }
    dt__request_free(&request);
    dt__columns_free(&version.columns);
    return status ? dt_error_text() : "";
}

/* Fails if a token is read as another one, or if a copy of the reader continues where the original
 * is. */
START_TEST(json_is_read_as_tokens)
{
    const char body[] = " {\"a\\u0062\" : [1,-2.5e1,{}, []],\"c\":[{\"d\":true}, null ]} ";
    struct dt_text scratch = {0};
    struct dt__json json, copy;
    char tokens[64] = "";
    size_t n = 0;
    dt__json_begin(&json, body, sizeof body - 1, &scratch);
    for (char token; (token = dt__json_next(&json));) {
        if (token == ':' && n == 1) ck_assert(dt__cell_is(json.token, "ab"));
        if (token == 't') copy = json;
        tokens[n++] = token;
    }
    ck_assert_str_eq(tokens, "{:[00{}[]]:[{:t}n]}");
    ck_assert(!dt__json_finish(&json));
    ck_assert_int_eq(dt__json_next(&copy), '}');
    ck_assert_int_eq(dt__json_next(&copy), 'n');
    dt__json_begin(&json, "[[1,2],{\"a\":[3,4]},5]", 21, &scratch);
    /* an object counts as one value */
    ck_assert_uint_eq(dt__json_pass(&json, dt__json_next(&json)), 4);
    dt__text_free(&scratch);
}
END_TEST

/* Values get to their columns, in any form and order of the request. */
START_TEST(rows_may_have_many_forms)
{
    static const struct {
        bool v2;
        const char *body, *answer;
    } requests[] = {
        {false, "{\"instances\":[[1,2],[3,4]]}", "{\"predictions\":[0.5,1.5]}\n"},
        {false, "{\"x\":[{}],\"instances\":[{\"b\":2,\"c\":[0],\"a\":1},{\"input\":[3,[4]]}]}",
         "{\"predictions\":[0.5,1.5]}\n"},
        {false, "{\"inputs\":{\"input\":[[1,2],[3,4]]}}", "{\"outputs\":[0.5,1.5]}\n"},
        {false, "{\"inputs\":{\"b\":[2,[4]],\"c\":[1],\"a\":[1,3]}}", "{\"outputs\":[0.5,1.5]}\n"},
        {true,
         "{\"id\":\"q\\n\",\"inputs\":[{\"data\":[[1,2],[3,4]],\"shape\":[2,2],\"datatype\":"
         "\"FP32\",\"name\":\"input\"}]}",
         "{\"model_name\":\"m\",\"model_version\":\"7\",\"id\":\"q\\n\",\"outputs\":[{\"name\":"
         "\"values\",\"datatype\":\"FP32\","
         "\"shape\":[2,1],\"data\":[0.5,1.5]}]}\n"},
        {true,
         "{\"inputs\":[{\"data\":[2,4],\"name\":\"b\",\"shape\":[2,1],\"datatype\":\"INT8\"},{"
         "\"name\":\"a\",\"shape\":[2],"
         "\"datatype\":\"FP32\",\"data\":[1,3]}],\"outputs\":[{\"name\":\"values\"}]}",
         "{\"model_name\":\"m\",\"model_version\":\"7\",\"outputs\":[{\"name\":\"values\","
         "\"datatype\":\"FP32\","
         "\"shape\":[2,1],\"data\":[0.5,1.5]}]}\n"},
    };
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct dt_inputs inputs = {0};
        struct dt_text answer = {0};
        ck_assert_str_eq(read_request(requests[i].body, requests[i].v2, &inputs, &answer), "");
        for (int x = 0; x < 4; x++)
            ck_assert_float_eq(inputs.x[x], (float)x + 1);
        ck_assert_str_eq(answer.data, requests[i].answer);
        dt__inputs_free(&inputs);
        dt__text_free(&answer);
    }
}
END_TEST

/* The one-line message says what is wrong, where, and what was expected. JSON errors come before
 * all others: half a body is not a wrong row. */
START_TEST(wrong_requests_give_their_message)
{
    static const struct {
        bool v2;
        const char *body, *message;
    } requests[] = {
        {false, "{\"instances\":[[1,2],[3]]}",
         "instances: row 1: 1 values, the model has 2 columns"},
        {false, "{\"instances\":[[1,2],[3]]", "not JSON: line 1, column 25: expected ',' or '}'"},
        {false, "{\"instances\":[[1,\"x\"],\n[3,01]]}",
         "not JSON: line 2, column 6: expected a value"},
        {false, "{\"instances\":[[1,2]]} []",
         "not JSON: line 1, column 23: something after the value"},
        {false, "{\"instances\":[[1,2]],\"inputs\":[[1,2]]}",
         "expected \"instances\" or \"inputs\""},
        {false, "{\"instances\":[[1,2],[1,2],[1,2],[1,2],[1,2]]}",
         "instances: 5 rows, at most 3 in a request"},
        {false, "{\"instances\":[{\"a\":1,\"b\":2},{\"a\":{\"b\":2},\"b\":2}]}",
         "instances: row 1: 'a': not a number"},
        {false, "{\"inputs\":{\"a\":[1,2],\"b\":[1,\"x\"]}}",
         "inputs: row 1: 'b': 'x' is not a number"},
        {false, "{\"inputs\":{\"a\":[1,2,3,4],\"b\":[1,2,3,4]}}",
         "inputs: 4 rows, at most 3 in a request"},
        {true,
         "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[1,2,3,{}"
         "]}]}",
         "inputs: row 1: item 1: not a number"},
        {true,
         "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[2e1,2],\"data\":[1]}]}",
         "inputs: the shape's item 0 is not a size"},
        {true,
         "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}",
         "inputs: item 0: the model has no input 'x': expected 'input'"},
        {true, "{\"inputs\":[{\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}",
         "inputs: item 0: expected a name"},
        {true,
         "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1,2]}]}",
         "inputs: 1 numbers in a row, the model has 2 features"},
        {true,
         "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1,2,1],\"data\":[1,2]}]"
         "}",
         "inputs: a shape of 3 dimensions, expected [1,2]"},
        {true, "{\"inputs\":{}}", "expected \"inputs\", a list"},
    };
    struct dt_inputs inputs = {0};
    struct dt_text answer = {0};
    for (size_t i = 0; i < COUNT(requests); i++)
        ck_assert_str_eq(read_request(requests[i].body, requests[i].v2, &inputs, &answer),
                         requests[i].message);
}
END_TEST

SUITE("request", json_is_read_as_tokens, rows_may_have_many_forms,
      wrong_requests_give_their_message)
