/* JSON lines give the same rows as a CSV; each kind of damage has its message. */
#include "data_files.h"

static const float PLAIN[] = {1, 2.5f, -3, 4e3f};
static const int32_t PLAIN_LABELS[] = {0, 1};

/* Files from which the same two rows are read. */
static const struct {
    const char *name, *text, *option;
} FORMS[] = {
    {"a.jsonl", "{\"a\":1,\"b\":2.5,\"y\":0}\n{\"a\":-3,\"b\":4e3,\"y\":2}\n", NULL},
    {"a.ndjson", " { \"a\" : 1, \"b\" : 2.5, \"y\" : 0 } \r\n\n  \n{\"y\":2,\"a\":-3,\"b\":4000.0}",
     NULL},
    {"a.json", "{\"a\":1,\"b\":2.5,\"y\":0}\n{\"b\":\"4e3\",\"a\":\"\\u002d3\",\"y\":\"2\"}\n",
     NULL},
    {"a.data", "{\"y\":0,\"a\":1,\"b\":2.5}\n{\"a\":-3,\"b\":4e3,\"y\":2}\n", "data.label=y"},
    {"a.jsonl", "{\"7\":1,\"y\":0,\"8\":2.5}\n{\"7\":-3,\"8\":4e3,\"y\":2}\n", "data.label=y"},
    {"a.jsonl", "{\"a\":1,\"id\":\"u\",\"b\":2.5,\"y\":0}\n{\"a\":-3,\"b\":4e3,\"y\":2}\n",
     "data.ignore=id"},
    {"a.jsonl",
     "{\"a\":1,\"b\":2.5,\"y\":0}\n{\"a\":9,\"b\":9}\n{\"a\":9,\"b\":9,\"y\":null}\n{\"a\":-3,"
     "\"b\":4e3,\"y\":2}\n",
     "data.unlabelled=skip data.label=y"},
};

static void set_all(const char *options)
{
    char option[64], *word, *rest = option;
    snprintf(option, sizeof option, "%s", options ? options : "");
    while ((word = strsep(&rest, " ")))
        if (*word) set(word);
}

static void train_on(const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "data.train=%s", name);
    set(key);
}

START_TEST(forms_are_read)
{
    put_text(FORMS[_i].name, FORMS[_i].text);
    train_on(FORMS[_i].name);
    set_all(FORMS[_i].option);
    expect_rows(PLAIN, PLAIN_LABELS, 2, 2);
}
END_TEST

static const struct {
    const char *text, *message, *option;
} DAMAGE[] = {
    {"[1,2]\n", "a.jsonl:3: expected an object a line", NULL},
    {"7\n", "a.jsonl:3: expected an object a line", NULL},
    {"{\"a\":[1],\"y\":0}\n",
     "a.jsonl:3: column 'a': a list or an object; expected a number or a text", NULL},
    {"{\"a\":1,\"y\":0}{\n", "a.jsonl:3: not JSON: line 1, column 14: something after the value",
     NULL},
    {"{\"a\":1,\"z\":3,\"y\":0}\n", "a.jsonl:3: 'z' is not a column of the first row", NULL},
    {"{\"a\":1,\"a\":2,\"y\":1}\n", "a.jsonl:3: 'a' appears twice", NULL},
    {"{\"a\":\"q\",\"y\":1}\n", "a.jsonl:3: column 'a': 'q' is not a number", NULL},
    {"{\"a\":true,\"y\":1}\n", "a.jsonl:3: column 'a': 'true' is not a number", NULL},
    {"{\"a\":1e99,\"y\":1}\n", "a.jsonl:3: column 'a': '1e99' is not a finite number", NULL},
    {"{\"a\":null,\"y\":1}\n", "a.jsonl:3: column 'a': a value is missing; data.missing=mean",
     NULL},
    {"{\"y\":1}\n", "a.jsonl:3: column 'a': a value is missing; data.missing=mean", NULL},
    {"{\"a\":1}\n", "a.jsonl:3: the label is empty", NULL},
    {"", "data.separator: applies only to CSV, and the data is JSON lines", "data.separator=tab"},
    {"", "a.jsonl:1: data.label: no column is named 'z'", "data.label=z"},
};

START_TEST(damage_gives_its_message)
{
    char text[256];
    snprintf(text, sizeof text, "{\"a\":1,\"y\":0}\n{\"a\":2,\"y\":1}\n%s", DAMAGE[_i].text);
    put_text("a.jsonl", text);
    set("data.train=a.jsonl");
    set_all(DAMAGE[_i].option);
    ck_assert_int_ne((int)try_survey(), DT_OK);
    ck_assert_msg(strstr(dt_error_text(), DAMAGE[_i].message), "message is '%s'", dt_error_text());
}
END_TEST

/* Texts with escapes, missing values, and evaluation data in the other format. */
START_TEST(tables_equal_those_of_csv)
{
    struct dt_source *csv, *json, *eval;
    set("data.missing=mean");
    put_text("a.csv", "cut,carat,y\nIdeal,1,a\n\"b \"\"x\"\"\",,b\nIdeal,3,a\n");
    put_text(
        "a.jsonl",
        "{\"cut\":\"Id\\u0065al\",\"carat\":1,\"y\":\"a\"}\n{\"cut\":\"b \\\"x\\\"\",\"y\":\"b\"}\n"
        "{\"y\":\"a\",\"carat\":3,\"cut\":\"Ideal\"}\n");
    set("data.train=a.csv");
    csv = survey();
    set("data.train=a.jsonl");
    json = survey();
    const struct dt_schema *csv_schema = dt__source_schema(csv),
                           *json_schema = dt__source_schema(json);
    ck_assert_int_eq(csv_schema->features, json_schema->features);
    ck_assert_int_eq(csv_schema->columns[0].ncategories, 2);
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(csv_schema->columns[0].categories[i],
                         json_schema->columns[0].categories[i]);
    ck_assert_float_eq(csv_schema->columns[1].fill, json_schema->columns[1].fill);
    ck_assert_str_eq(json_schema->label_column, "y");
    set("data.eval=a.csv");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, json_schema, &eval));
    ck_assert_uint_eq(dt__source_rows(eval), 3);
    dt__source_destroy(eval), dt__source_destroy(json), dt__source_destroy(csv);
}
END_TEST

DATA_SUITE("json_lines", {forms_are_read, COUNT(FORMS)}, {damage_gives_its_message, COUNT(DAMAGE)},
           {tables_equal_those_of_csv, 1})
