/* Any bytes as rows to predict, from a stream and as the body of a request: each row is finite numbers or a
 * message, lines never fall, the stream ends; and what is JSON is what jansson takes for it, numbers alike. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "predict/serve.h"

enum { FEATURES = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void insist(bool holds)
{
    if (!holds) abort();
}

/* ---- a predictor that has a schema, and no network ------------------------------------------ */

const char *dt_predictor_class_name(const struct dt_predictor *predictor, int number)
{
    (void)predictor, (void)number;
    return NULL;
}

float dt__predictor_bound(const struct dt_predictor *predictor, const float *answer, size_t target,
                          bool high)
{
    (void)predictor, (void)high;
    return answer[target];
}

dt_status dt__inputs_reserve(struct dt_inputs *inputs, const struct dt_predictor *predictor,
                             size_t rows)
{
    const size_t entries = predictor->entries;
    insist(!dt__alloc(rows * predictor->numbers, sizeof(float), "rows", &inputs->x));
    insist(!dt__alloc(rows * entries, sizeof(uint32_t), "rows", &inputs->index));
    insist(!dt__alloc(rows * entries, sizeof(float), "rows", &inputs->value));
    return DT_OK;
}

void dt__inputs_free(struct dt_inputs *inputs)
{
    dt_free(inputs->x);
    dt_free(inputs->index);
    dt_free(inputs->value);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* jansson refuses numbers that are too large, and ends a text at a zero byte; otherwise the two may
 * differ only in limits of depth and length. */
static bool jansson_agrees(const char *text, size_t length, bool good, json_t **out)
{
    json_error_t error;
    *out = json_loadb(text, length, JSON_DECODE_ANY, &error);
    if (good == (*out != NULL) || memchr(text, 0, length)) return true;
    return good ? strstr(error.text, "too big") || strstr(error.text, "overflow")
                : strstr(dt_error_text(), "too deep") != NULL;
}

/* Rows that are lists of plain numbers. */
static void compare_rows(const struct dt__request *request, const struct dt_inputs *inputs, const json_t *json)
{
    const json_t *list = json_object_get(json, "instances");
    for (size_t r = 0; r < request->rows; r++) {
        const json_t *row = json_array_get(list, r);
        for (size_t f = 0; json_is_array(row) && f < FEATURES; f++)
            if (json_is_number(json_array_get(row, f)))
                insist(inputs->x[r * FEATURES + f] == (float)json_number_value(json_array_get(row, f)));
    }
}

static bool is_json(const char *text, size_t length)
{
    struct dt_text scratch = {0};
    struct dt__json json;
    dt__json_begin(&json, text, length, &scratch);
    const dt_status status = dt__json_finish(&json);
    dt__text_free(&scratch);
    return !status;
}

static void read_request(const char *body, size_t length, const struct dt__version *version, bool v2)
{
    const struct dt_predictor *predictor = version->predictor;
    const struct dt_schema *schema = &predictor->file.schema;
    struct dt_inputs inputs = {0};
    struct dt__request request;
    json_t *json;
    const bool good = is_json(body, length);
    insist(jansson_agrees(body, length, good, &json));
    dt_status status = dt__request_read(body, length, v2, version, 10, &request);
    insist(!status || (status == DT_EFORMAT && *dt_error_text()));
    insist(good || (status && strstr(dt_error_text(), "not JSON: ")));
    if (!status) {
        insist(request.rows > 0 && request.rows <= 10);
        insist(!dt__inputs_reserve(&inputs, predictor, request.rows));
        insist(!dt__request_inputs(&request, 0, request.rows, predictor, &inputs, 0));
        for (size_t i = 0; i < request.rows * predictor->entries; i++)
            insist(inputs.index[i] < (uint32_t)schema->features);
        if (!schema->columns && request.protocol == DT__INSTANCES) compare_rows(&request, &inputs, json);
    }
    dt__inputs_free(&inputs);
    dt__request_free(&request);
    json_decref(json);
}

static void read_requests(const char *body, size_t length, const struct dt_schema *schema)
{
    const size_t features = (size_t)schema->features, classes = (size_t)schema->classes;
    const size_t entries =
        schema->dense < schema->features ? (size_t)dt__schema_categories(schema) : 0;
    struct dt_predictor predictor = {.file = {.schema = *schema}, .classes = schema->classes, .width = classes,
                                     .features = features, .entries = entries, .chunk = 4,
                                     .numbers = entries ? (size_t)schema->dense : features};
    struct dt__version version = {.predictor = &predictor};
    insist(!dt__columns_of_schema(&version.columns, schema));
    read_request(body, length, &version, false);
    read_request(body, length, &version, true);
    dt__columns_free(&version.columns);
    if (schema->columns || schema->feature_names) return;
    version = (struct dt__version){.predictor = &predictor, .columns = {.count = FEATURES}};
    version.columns.numbers = FEATURES;
    read_request(body, length, &version, false);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void read_all(struct dt_rows *rows, size_t most, size_t features)
{
    uint64_t line = 0, last = 0;
    bool end = false;
    for (size_t i = 0; !end; i++) {
        float x[2 * FEATURES] = {0};
        insist(i <= most + 2);
        if (dt__rows_next(rows, x, &line, &end)) insist(*dt_error_text());
        for (size_t f = 0; f < features; f++)
            insist(x[f] - x[f] == 0);
        insist(end || line >= last);
        last = line;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *names[FEATURES] = {"a", "b", "c"}, *texts[] = {"red", "1", "0.1"};
    struct dt_column columns[] = {
        {.name = "a", .kind = DT_COLUMN_NUMBER, .fill = 9, .flag = 1},
        {.name = "b", .kind = DT_COLUMN_CATEGORY, .first = 2, .categories = texts, .ncategories = 3}};
    struct dt_schema schema = {
        .features = FEATURES, .dense = FEATURES, .classes = 2, .scale = 1};
    struct dt_config config;
    struct dt_rows *rows;
    if (length < 2) return 0;
    uint8_t choice = *bytes++;
    length--;
    insist(!dt__config_init(&config));
    if (choice & 1) schema.feature_names = names;
    if (choice & 4) schema.columns = columns, schema.ncolumns = 2, schema.features = schema.dense = 6;
    if (choice & 8) schema.dense = choice & 4 ? 2 : FEATURES;
    FILE *in = fmemopen((void *)(uintptr_t)bytes, length, "r");
    insist(in != NULL);
    if (!dt__rows_open(in, "fuzz", &schema, choice & 2 ? &config : NULL, &rows)) {
        read_all(rows, length, (size_t)schema.features);
        dt__rows_close(rows);
    }
    fclose(in);
    if (choice & 16) read_requests((const char *)bytes, length, &schema);
    dt__config_free(&config);
    return 0;
}
