/* CSV: RFC 4180, headers, label columns, and what each kind of damage is called. */
#include "data_files.h"

static const float PLAIN[] = {1, 2.5f, -3, 4e3f};
static const int32_t PLAIN_LABELS[] = {0, 2};

/* The same two rows in every guise that RFC 4180 and its habits allow. */
static const struct {
    const char *text, *option;
} GUISES[] = {
    {"1,2.5,0\n-3,4e3,2\n", NULL},
    {"1,2.5,0\n-3,4e3,2", NULL},
    {"1,2.5,0\r\n-3,4e3,2\r\n", NULL},
    {"\xEF\xBB\xBF"
     "1,2.5,0\n-3,4e3,2\n",
     NULL},
    {"\n1,2.5,0\n\n\r\n-3,4e3,2\n\n", NULL},
    {"\"1\",\" 2.5 \",\"0\"\n\"-3\",+4E+3,2\n", NULL},
    {"a,b,c\n1,2.5,0\n-3,4000.0,2\n", NULL},
    {"\xEF\xBB\xBF"
     "\"a,\"\"1\"\"\r\nx\",b,c\r\n1,2.5,0\r\n-3,4e3,2\r\n",
     NULL},
    {"0,1,2.5\n2,-3,4e3\n", "data.label=0"},
    {"1,0,2.5\n-3,2,4e3\n", "data.label=-2"},
    {"a,c,b\n1,0,2.5\n-3,2,4e3\n", "data.label=c"},
    {"1,x,2.5,7,0\n-3,y,4e3,7,2\n", "data.ignore=1, -2"},
    {"a,skip this,b,c\n1,x,2.5,0\n-3,y,4e3,2\n", "data.ignore=skip this"},
    {"7,8,9\n1,2.5,0\n-3,4e3,2\n", "data.header=yes"},
};

START_TEST(guises_are_read)
{
    put_text("a.csv", GUISES[_i].text);
    set("data.train=a.csv");
    if (GUISES[_i].option) set(GUISES[_i].option);
    expect_rows(PLAIN, PLAIN_LABELS, 2, 2);
}
END_TEST

static const struct {
    const char *text, *message, *option;
} DAMAGE[] = {
    {"1,2,0\n1,abc,0\n", "a.csv:2: column 1: 'abc' is not a number", NULL},
    {"a,b,c\r\n1,2,0\r\n1,0x10,0\r\n", "a.csv:3: column 1 (b): '0x10' is not a number", NULL},
    {"1,2,0\n1,nan,0\n", "a.csv:2: column 1: 'nan' is not a finite number", NULL},
    {"1,2,0\n1,-INF,0\n", "a.csv:2: column 1: '-INF' is not a finite number", NULL},
    {"1,2,0\n1,1e99,0\n", "a.csv:2: column 1: '1e99' is not a finite number", NULL},
    {"1,2,0\n1,,0\n", "a.csv:2: column 1: empty", NULL},
    {"1,2,0\n1,2\n", "a.csv:2: 2 columns, expected 3", NULL},
    {"1,2,0\n1,2,3,4\n", "a.csv:2: more than 3 columns", NULL},
    {"1,2,0\n1,\"2\"x,0\n", "a.csv:2: column 1: text behind a closing quote", NULL},
    {"1,2,0\n1,\"2,0\n3,4,0\n", "a.csv:2: a quote that does not close", NULL},
    {"1,\"2\n\",0\n1,2,0\n1,y,0\n", "a.csv:1: column 1", NULL},
    {"1,2,0\n1,a\n", "a.csv:2: 2 columns, expected 3", NULL},
    {"1,2,\"a\nb\"\n1,y,c\n", "a.csv:3: column 1: 'y' is not a number", NULL},
    {"1,2,0\n1,2,\n", "a.csv:2: the label is empty", NULL},
    {"1,2,0\n1,2,x\n", "a.csv:2: label 'x' is not a number, unlike the labels before it", NULL},
    {"1,2,0\n1,2,1.5\n", "a.csv:2: label '1.5' is not a class number", NULL},
    {"1,2,0\n1,2,nan\n", "a.csv:2: label 'nan' is not a class number", NULL},
    {"1,2,0\n1,2,-2\n1,2,1\n", "a.csv:2: label -2 is out of range", NULL},
    {"1,2,0\n1,2,9999999\n", "a.csv:2: label 9999999 is out of range", NULL},
    {"1,2,a\n1,2,a\n", "every label is 'a'", NULL},
    {"", "a.csv: the file is empty", NULL},
    {"\n\n", "the file has no rows", NULL},
    {"a,b,c\n", "a.csv: the file has no rows", NULL},
    {"1,2,0\n", "a.csv:1: data.label=7: there are 3 columns", "data.label=7"},
    {"a,b,c\n1,2,0\n", "a.csv:1: data.label: no column is named 'd'", "data.label=d"},
    {"1,2,0\n", "data.label=c is a name, but the file has no header",
     "data.header=no data.label=c"},
    {"0\n1\n", "no column is left for the features", NULL},
    {"1,2,0\n1,2,x\n", "a.csv:2: label: 'x' is not a number", "model.task=regress"},
};

START_TEST(damage_is_named)
{
    char option[64], *word, *rest = option;
    snprintf(option, sizeof option, "%s", DAMAGE[_i].option ? DAMAGE[_i].option : "");
    while ((word = strsep(&rest, " ")))
        if (*word) set(word);
    put_text("a.csv", DAMAGE[_i].text);
    set("data.train=a.csv");
    dt_status status = try_survey();
    ck_assert_int_ne((int)status, DT_OK);
    ck_assert_int_eq(dt_status_exit_code(status), 1);
    ck_assert_msg(strstr(dt_error_text(), DAMAGE[_i].message), "message is '%s'", dt_error_text());
}
END_TEST

/* Distinct texts become classes in bytewise order, whatever order they come in. */
START_TEST(text_labels_are_sorted)
{
    const float x[] = {1, 2, 3, 4};
    const int32_t labels[] = {2, 0, 1, 2};
    put_text("a.csv", "1,zebra\n2,\"A, b\"\n3,a\n4,zebra\n");
    set("data.train=a.csv");
    expect_rows(x, labels, 4, 1);
    struct dt_source *source = survey();
    const struct dt_schema *schema = dt_source_schema(source);
    ck_assert_int_eq(schema->classes, 3);
    ck_assert_str_eq(schema->label_names[0], "A, b");
    ck_assert_str_eq(schema->label_names[2], "zebra");
    dt_source_destroy(source);
}
END_TEST

/* Numbers are classes 0..max; -1 and 1 are two classes with names. */
START_TEST(number_labels_are_classes)
{
    const float x[] = {1, 2, 3};
    const int32_t signs[] = {1, 0, 1};
    put_text("a.csv", "1,5\n2,0\n");
    set("data.train=a.csv");
    struct dt_source *source = survey();
    ck_assert_int_eq(dt_source_schema(source)->classes, 6);
    ck_assert_ptr_null(dt_source_schema(source)->label_names);
    dt_source_destroy(source);
    put_text("a.csv", "1,+1\n2,-1\n3,1.0\n");
    expect_rows(x, signs, 3, 1);
}
END_TEST

/* Evaluation data is read by the schema of the training data. */
START_TEST(evaluation_fits_the_schema)
{
    put_text("a.csv", "p,q,y\n1,2,no\n3,4,yes\n");
    set("data.train=a.csv"), set("data.eval=b.csv");
    struct dt_source *source = survey(), *eval;
    const struct dt_schema *schema = dt_source_schema(source);
    static const char *const bad[][2] = {
        {"p,q,y\n1,2,maybe\n", "b.csv:2: label 'maybe' was never seen in training"},
        {"p,q,y\n1,no\n", "b.csv:2: 2 columns, expected 3"},
        {"p,y\n1,no\n", "b.csv:1: 1 features, the model has 2"},
        {"q,p,y\n1,2,no\n", "b.csv:1: feature 0 is named 'q', in the data before 'p'"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        put_text("b.csv", bad[i][0]);
        dt_status status = dt_source_survey(&config, DT_PART_EVAL, schema, &eval);
        ck_assert_int_eq(dt_status_exit_code(status), 1);
        ck_assert_msg(strstr(dt_error_text(), bad[i][1]), "message is '%s'", dt_error_text());
    }
    put_text("b.csv", "1,2,yes\n");
    EXPECT_OK(dt_source_survey(&config, DT_PART_EVAL, schema, &eval));
    struct dt_table *table = open_table(eval);
    ck_assert_int_eq(read_row(table, 0).label[0], 1);
    dt_table_destroy(table);
    dt_source_destroy(eval);
    dt_source_destroy(source);
}
END_TEST

/* All files of a source must have the same columns; the message names the file that has not. */
START_TEST(files_must_agree)
{
    put_text("a.csv", "p,q,y\n1,2,0\n");
    put_text("b.csv", "p,y\n1,0\n");
    set("data.train=a.csv,b.csv");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "b.csv:1: 1 features, the files before have 2");
    put_text("b.csv", "p,r,y\n1,2,0\n");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "b.csv:1: feature 1 is named 'r'");
    put_text("b.csv", "y,p,q\n1,2,0\n");
    set("data.label=y");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "b.csv:1: label or ignored columns stand elsewhere");
}
END_TEST

enum { WIDE_ROWS = 40, WIDE = 30000 };

/* Rows longer than the read block, and rows entered in the middle of the file by their marks,
 * backwards too: a wrong offset, line or record end shows as a wrong value. */
START_TEST(rows_are_found_anywhere)
{
    FILE *out = fopen("wide.csv", "w");
    ck_assert_ptr_nonnull(out);
    for (int r = 0; r < WIDE_ROWS; r++) {
        for (int f = 0; f < WIDE; f++)
            fprintf(out, "%d.5,", (r * 7919 + f) % 10007);
        fprintf(out, "\"class\n%d\"\n", r % 3);
    }
    fclose(out);
    set("data.train=wide.csv"), set("data.memory_mb=1");
    struct dt_source *source = survey();
    struct dt_table *table = open_table(source);
    for (int i = 0; i < 3 * WIDE_ROWS; i++) {
        int r = i * 17 % WIDE_ROWS;
        struct dt_batch batch = read_row(table, (uint64_t)r);
        ck_assert_int_eq(batch.label[0], r % 3);
        for (int f = 0; f < WIDE; f++)
            ck_assert_float_eq(batch.x[f], (float)((r * 7919 + f) % 10007) + 0.5f);
    }
    dt_table_destroy(table);
    dt_source_destroy(source);
}
END_TEST

/* Integers in 0..255 are kept as bytes; one value that is none makes floats. Both read the same. */
START_TEST(bytes_are_told_from_floats)
{
    const float bytes[] = {0, 255}, floats[] = {0, 255.5f};
    set("data.train=a.csv");
    put_text("a.csv", "0,0\n255,1\n");
    expect_rows(bytes, NULL, 2, 1);
    put_text("a.csv", "0,0\n255.5,1\n");
    expect_rows(floats, NULL, 2, 1);
}
END_TEST

DATA_SUITE("csv", {guises_are_read, COUNT(GUISES)}, {damage_is_named, COUNT(DAMAGE)},
           {text_labels_are_sorted, 1}, {number_labels_are_classes, 1},
           {evaluation_fits_the_schema, 1}, {files_must_agree, 1}, {rows_are_found_anywhere, 1},
           {bytes_are_told_from_floats, 1})
