/* Rows to predict: CSV, JSON lines and LIBSVM. An error names its row, and later rows are still
 * read. */
#include "data_files.h"

static char *names[] = {"p", "q, r", "s"};
static float mean[] = {1, 2, 3}, inv_std[] = {1, 0.5f, 2};
static struct dt_schema schema;
static struct dt_rows *rows;
static FILE *in;

static void open_rows(const char *text)
{
    put_text("rows", text);
    in = fopen("rows", "r");
    ck_assert_ptr_nonnull(in);
    schema.task = DT_TASK_CLASSIFY, schema.features = 3, schema.classes = 2;
    if (schema.scale == 0) schema.scale = 1;
    EXPECT_OK(dt__rows_open(in, "rows", &schema, &config, &rows));
}

static void close_rows(void)
{
    dt__rows_close(rows);
    fclose(in);
}

static void expect_row(uint64_t line, float a, float b, float c)
{
    float x[3];
    uint64_t at = 0;
    bool end;
    EXPECT_OK(dt__rows_next(rows, x, &at, &end));
    ck_assert(!end);
    ck_assert_uint_eq(at, line);
    ck_assert_float_eq(x[0], a);
    ck_assert_float_eq(x[1], b);
    ck_assert_float_eq(x[2], c);
}

static void expect_bad(uint64_t line, const char *message)
{
    float x[3];
    uint64_t at = 0;
    bool end;
    dt_status status = dt__rows_next(rows, x, &at, &end);
    ck_assert(status == DT_EFORMAT || status == DT_EMISMATCH);
    ck_assert_msg(strstr(dt_error_text(), message), "message is '%s'", dt_error_text());
    ck_assert_uint_eq(at, line);
}

static void expect_end(void)
{
    float x[3];
    uint64_t at;
    bool end;
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(dt__rows_next(rows, x, &at, &end));
        ck_assert(end);
    }
    close_rows();
}

START_TEST(csv_has_many_forms)
{
    static const char *const forms[] = {
        "1,2,3\n4,5,6\n",
        "1,2,3,yes\r\n4,5,6,no\r\n",
        "\xEF\xBB\xBF\"1\",2,3\n4,5,6",
        "  1   2  \"3\"\t\n 4\t5 6\n \t \n",
    };
    for (size_t i = 0; i < COUNT(forms); i++) {
        open_rows(forms[i]);
        expect_row(1, 1, 2, 3);
        expect_row(2, 4, 5, 6);
        expect_end();
    }
    open_rows("a,b,c\n1,2,3\n\n4,5,6\n");
    expect_row(2, 1, 2, 3);
    expect_row(4, 4, 5, 6);
    expect_end();
    /* the first row is tested for decimal commas before blanks are known to be separators */
    set("data.decimal=,");
    open_rows(" 1,5 2,0  3,5\n4,5 5 6\n");
    expect_row(1, 1.5f, 2, 3.5f);
    expect_row(2, 4.5f, 5, 6);
    expect_end();
}
END_TEST

/* If the header names every feature, columns may be in any order, and there may be more of them. */
START_TEST(csv_columns_are_matched_by_name)
{
    schema.feature_names = names;
    open_rows("s,label,p,\"q, r\",x\n3,yes,1,2,what\n6,\"no\nway\",4,5,\n9,?,7,8,9\n");
    expect_row(2, 1, 2, 3);
    expect_row(3, 4, 5, 6);
    expect_row(5, 7, 8, 9);
    expect_end();
    schema.feature_names = NULL;
}
END_TEST

/* data.header takes precedence over detection. */
START_TEST(data_header_is_obeyed)
{
    set("data.header=yes"); /* the names are numbers, such as years */
    open_rows("2020,2021,2022\n1,2,3\n");
    expect_row(2, 1, 2, 3);
    expect_end();
    schema.feature_names = names;
    /* none is a name of the model, and columns are never matched by position */
    open_rows("2020,2021,2022\n1,2,3\n");
    float x[3];
    uint64_t line;
    bool end;
    EXPECT_FAIL(dt__rows_next(rows, x, &line, &end), DT_EMISMATCH, "the header lacks 'p', 'q, r'");
    expect_end();
    set("data.header=no"); /* rows by position; these texts are not names */
    open_rows("NA,,?\n1,2,3\n");
    expect_bad(1, "column 'p': 'NA' is a missing value");
    expect_row(2, 1, 2, 3);
    expect_end();
    schema.feature_names = NULL;
}
END_TEST

/* Two features from an HDF5 file may have the same name: such rows must be lists, without names. */
START_TEST(features_may_share_a_name)
{
    char *shared[] = {"p", "p", "s"};
    schema.feature_names = shared;
    open_rows("{\"p\":1,\"s\":2}\n[1,2,3]\n{\"input\":[4,5,6]}\n");
    expect_bad(1, "the model's features have no names, or two have the same name; expected lists");
    expect_row(2, 1, 2, 3);
    expect_row(3, 4, 5, 6);
    expect_end();
    open_rows("p,p,s\n1,2,3\n");
    expect_bad(1, "two features of the model are named 'p': expected rows without a header");
    expect_end();
    open_rows("1,2,3\n");
    expect_row(1, 1, 2, 3);
    expect_end();
    schema.feature_names = NULL;
}
END_TEST

/* Columns that are not needed may have any names, such as the empty ones at the end of a sheet. */
START_TEST(csv_may_repeat_other_names)
{
    schema.feature_names = names;
    open_rows("s,x,p,\"q, r\",x,,\n3,7,1,2,8,,\n6,7,4,5,8,,\n");
    EXPECT_OK(dt__rows_keep(rows, "s"));
    expect_row(2, 1, 2, 3);
    expect_row(3, 4, 5, 6);
    expect_end();
    float x[3];
    uint64_t line;
    bool end;
    open_rows("s,x,p,\"q, r\",x\n3,7,1,2,8\n");
    EXPECT_OK(dt__rows_keep(rows, "x"));
    EXPECT_FAIL(dt__rows_next(rows, x, &line, &end), DT_EMISMATCH,
                "predict.keep: several columns are named 'x'");
    expect_end();
    schema.feature_names = NULL;
}
END_TEST

/* If the header lacks a feature, columns are never matched by position, even if their number
 * fits. */
START_TEST(csv_must_name_every_feature)
{
    static const struct {
        const char *text, *message;
    } lacking[] = {
        {"s,\"q, r\",P\n3,2,1\n", "the header lacks 'p'; columns go by the names"},
        {"u,v,w\n3,2,1\n", "the header lacks 'p', 'q, r', 's'; columns go by the names"},
        {"p,s,y\n1,3,no\n", "the header lacks 'q, r'; columns go by the names"},
        {"p,7,s\n1,2,3\n", "the header lacks 'q, r'; columns go by the names"},
        {"s,\"q, r\" ,p\n3,2,1\n", "text after a closing quote"},
        {"s,\"q, r\",p,p\n3,2,1\n", "columns 2 and 3 are both named 'p'"},
    };
    schema.feature_names = names;
    for (size_t i = 0; i < COUNT(lacking); i++) {
        open_rows(lacking[i].text);
        float x[3];
        uint64_t line;
        bool end;
        EXPECT_FAIL(dt__rows_next(rows, x, &line, &end), DT_EMISMATCH, lacking[i].message);
        ck_assert_uint_eq(line, 1);
        expect_end();
    }
    open_rows("3,2,1\n");
    expect_row(1, 3, 2, 1);
    expect_end();
    schema.feature_names = NULL;
}
END_TEST

START_TEST(csv_uses_the_training_columns)
{
    set("data.label=0"), set("data.ignore=2");
    open_rows("yes,1,x,2,3\nno,4,y,5,6\n");
    expect_row(1, 1, 2, 3);
    expect_row(2, 4, 5, 6);
    expect_end();
}
END_TEST

START_TEST(csv_continues_after_bad_rows)
{
    open_rows("1\n1,2,3\n1,x,3\n1,2\n1,2,3,4\n\"1\"x,2,3\n4,5,6\n7,\"8\n,9\n");
    expect_bad(1, "1 columns, the model has 3 features");
    expect_row(2, 1, 2, 3);
    expect_bad(3, "column 1: 'x' is not a number");
    expect_bad(4, "2 columns, expected 3");
    expect_bad(5, "4 columns, expected 3");
    expect_bad(6, "column 0: text after a closing quote");
    expect_row(7, 4, 5, 6);
    expect_bad(8, "a quote that does not close");
    expect_end();
}
END_TEST

START_TEST(json_lines_are_read)
{
    open_rows(
        "[1, 2.5, -3e0]\n\n  [1,2,3]  \r\n{\"instances\": [[4,5,6],[7,8],[7,8,\"9\"],[1,2,3]]}\n"
        "[0.1,1e-3,12345678901234567890]\n");
    expect_row(1, 1, 2.5f, -3);
    expect_row(3, 1, 2, 3);
    expect_row(4, 4, 5, 6);
    expect_bad(4, "instance 1: 2 numbers, the model has 3 features");
    expect_bad(4, "instance 2: item 2: '9' is a text: expected a number without quotes");
    expect_row(4, 1, 2, 3);
    expect_row(5, 0.1f, 1e-3f, 12345678901234567890.0f);
    expect_end();
}
END_TEST

static int calls;

static void count_call(void)
{
    calls++;
}

START_TEST(reading_shows_progress_to_the_watchdog)
{
    calls = 0;
    dt__work_watch(count_call);
    open_rows("[1,2,3]\n");
    expect_row(1, 1, 2, 3);
    dt__work_watch(NULL);
    ck_assert_int_gt(calls, 0);
    expect_end();
}
END_TEST

START_TEST(json_continues_after_bad_rows)
{
    static const char *const bad[] = {
        "[1,2]",      "[1,2,3,4]", "[1,2,null]", "[1,2,3",   "[1,2,3]]",    "{\"a\":1}",
        "7",          "[01,2,3]",  "[1.,2,3]",   "[.5,2,3]", "[1,2,NaN]",   "[1,2,1e39]",
        "[1,2,true]", "[]",        "{",          "[-,1,2]",  "[1,2,1e999]", "[+1,2,3]"};
    struct dt_text text = {0};
    EXPECT_OK(dt__text_add(&text, "[1,2,3]\n"));
    for (size_t i = 0; i < COUNT(bad); i++)
        EXPECT_OK(dt__text_add(&text, "%s\n[1,2,%zu]\n", bad[i], i));
    open_rows(text.data);
    expect_row(1, 1, 2, 3);
    for (size_t i = 0; i < COUNT(bad); i++) {
        expect_bad(2 * i + 2, "");
        expect_row(2 * i + 3, 1, 2, (float)i);
    }
    expect_end();
    dt__text_free(&text);
}
END_TEST

/* Columns of a table are matched by name in objects and headers, by position in lists. Missing
 * values are filled, texts are looked up, and each error names its column. */
START_TEST(tables_are_read)
{
    char *texts[] = {"red", "blue"};
    struct dt_column columns[] = {{.name = "color",
                                   .kind = DT_COLUMN_CATEGORY,
                                   .first = 1,
                                   .categories = texts,
                                   .ncategories = 1},
                                  {.name = "carat", .kind = DT_COLUMN_NUMBER, .fill = 9}};
    schema.columns = columns, schema.ncolumns = 2;
    open_rows("{\"carat\": 2, \"color\": \"red\", \"x\": 1}\n[\"blue\", null]\n{\"carat\": 2}\n"
              "[\"red\", \"2\"]\n[\"red\"]\n{\"carat\": [1, 2], \"color\": \"red\"}\n");
    expect_row(1, 2, 1, 0);
    expect_row(2, 9, 0, 1);
    expect_bad(3, "column 'color' is missing");
    expect_bad(4, "item 1 (carat): '2' is a text: expected a number without quotes");
    expect_bad(5, "1 values, the model has 2");
    expect_bad(6, "column 'carat': 2 values, expected 1");
    expect_end();
    open_rows("carat;note;color\n2;x;red\n;y;blue\nz;y;red\n");
    expect_row(2, 2, 1, 0);
    expect_row(3, 9, 0, 1);
    expect_bad(4, "column 'carat': 'z' is not a number");
    expect_end();
    columns[0].name = " color "; /* older models have blanks in names */
    /* a row of missing values is not a blank line */
    open_rows("\ncarat\tcolor\n2\tred\n\t\n\n \n5\tred\n");
    expect_row(3, 2, 1, 0);
    expect_row(4, 9, 0, 1);
    expect_row(7, 5, 1, 0);
    expect_end();
    schema.columns = NULL;
}
END_TEST

/* A JSON number is looked up as it is written, as in CSV, then as its shortest text, and then with
 * the ".0" that JavaScript omits. */
START_TEST(numbers_may_be_categories)
{
    char *texts[] = {"0.1"}, *many[] = {"1000000"}, *whole[] = {"1.0"};
    struct dt_column columns[] = {{.name = "size",
                                   .kind = DT_COLUMN_CATEGORY,
                                   .first = 1,
                                   .categories = texts,
                                   .ncategories = 1},
                                  {.name = "carat", .kind = DT_COLUMN_NUMBER, .fill = 9}};
    schema.columns = columns, schema.ncolumns = 2;
    open_rows("{\"carat\": 2, \"size\": 0.1}\n{\"carat\": 2, \"size\": 0.2}\n");
    expect_row(1, 2, 1, 0);
    expect_row(2, 2, 0, 1);
    expect_end();
    columns[0].categories = many;
    open_rows("{\"carat\": 2, \"size\": 1000000}\n{\"carat\": 2, \"size\": 1e6}\n");
    expect_row(1, 2, 1, 0);
    expect_row(2, 2, 1, 0);
    expect_end();
    columns[0].categories = whole;
    open_rows("{\"carat\": 2, \"size\": 1.0}\n{\"carat\": 2, \"size\": 1}\n{\"carat\": 2, "
              "\"size\": 10}\n");
    expect_row(1, 2, 1, 0);
    expect_row(2, 2, 1, 0);
    expect_row(3, 2, 0, 1);
    expect_end();
    columns[0].ncategories = 0, schema.hash_bits = 1; /* "2.0" and "2" have different hashes */
    open_rows("{\"carat\": 2, \"size\": \"2.0\"}\n{\"carat\": 2, \"size\": 2.0}\n"
              "{\"carat\": 2, \"size\": 2}\n");
    expect_row(1, 2, 1, 0);
    expect_row(2, 2, 1, 0);
    expect_row(3, 2, 0, 1);
    expect_end();
    schema.columns = NULL, schema.hash_bits = 0;
}
END_TEST

/* Lines that were logged, each followed by '|'. */
static char logged[200];

static void catch_log(void *arg, enum dt_log_level level, const char *line)
{
    const size_t length = strlen(logged);
    (void)arg, (void)level;
    snprintf(logged + length, sizeof logged - length, "%s|", line);
}

START_TEST(libsvm_rows_are_read)
{
    dt_log_set_sink(catch_log, NULL);
    open_rows("1 1:1 3:3\n2:5\n0 4:1\n0 1:x\n-1 2:7 5:1\n");
    expect_row(1, 1, 0, 3);
    expect_row(2, 0, 5, 0);
    expect_row(3, 0, 0, 0); /* a feature that the model does not have */
    expect_bad(4, "index 1: 'x' is not a number");
    expect_row(5, 0, 7, 0);
    expect_end();
    dt_log_set_sink(NULL, NULL);
    ck_assert_str_eq(logged, "rows:3: features beyond 3, here 4, are ignored|");
}
END_TEST

/* Comments are not rows in a stream either; a header may start like a comment. */
START_TEST(comments_are_not_rows)
{
    open_rows("# one\n\n1 1:1\n  # two\n2:5\n#");
    expect_row(3, 1, 0, 0);
    expect_row(5, 0, 5, 0);
    expect_end();
    open_rows("#a,b,c\n1,2,3\n");
    expect_row(2, 1, 2, 3);
    expect_end();
    open_rows("#a,b,c\n");
    expect_end();
    open_rows("# rows\n[1,2,3]\n");
    expect_bad(1, "not JSON");
    expect_row(2, 1, 2, 3);
    expect_end();
}
END_TEST

/* A first row without features could be CSV, until a later row decides. */
START_TEST(libsvm_may_start_with_labels_alone)
{
    open_rows("1\n\n0\n1 2:1 # one\n");
    expect_row(1, 0, 0, 0);
    expect_row(3, 0, 0, 0);
    expect_row(4, 0, 1, 0);
    expect_end();
    open_rows("1\n2\n3,4,5\n");
    expect_bad(1, "1 columns, the model has 3 features");
    expect_bad(2, "1 columns, the model has 3 features");
    expect_row(3, 3, 4, 5);
    expect_end();
    open_rows("1\n[1,2,3]\n");
    expect_bad(1, "1 numbers, the model has 3 features");
    expect_row(2, 1, 2, 3);
    expect_end();
}
END_TEST

/* For a model of one column, a single number is a CSV row, and each row is returned before the next
 * one arrives. */
START_TEST(single_numbers_may_be_rows)
{
    int ends[2];
    uint64_t line;
    bool end;
    float x;
    schema.task = DT_TASK_CLASSIFY, schema.features = 1, schema.classes = 2, schema.scale = 1;
    ck_assert_int_eq(pipe(ends), 0);
    in = fdopen(ends[0], "r");
    dprintf(ends[1], "5\n");
    EXPECT_OK(dt__rows_open(in, "rows", &schema, &config, &rows));
    EXPECT_OK(dt__rows_next(rows, &x, &line, &end));
    ck_assert_float_eq(x, 5);
    dprintf(ends[1], "6\n1 1:2\n");
    EXPECT_OK(dt__rows_next(rows, &x, &line, &end));
    ck_assert_float_eq(x, 6);
    EXPECT_FAIL(dt__rows_next(rows, &x, &line, &end), DT_EFORMAT,
                "(rows of LIBSVM: data.format=libsvm)");
    close(ends[1]);
    close_rows();
    put_text("rows", "5\n1 1:2\n");
    in = fopen("rows", "r");
    EXPECT_OK(dt__rows_open(in, "rows", &schema, &config, &rows));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(dt__rows_next(rows, &x, &line, &end));
        ck_assert_float_eq(x, (float)(2 * i));
    }
    close_rows();
}
END_TEST

START_TEST(data_format_is_obeyed)
{
    set("data.format=libsvm");
    open_rows("0\n1 2:1\n");
    expect_row(1, 0, 0, 0);
    expect_row(2, 0, 1, 0);
    expect_end();
    in = fopen("rows", "r");
    set("data.format=hdf5");
    EXPECT_FAIL(dt__rows_open(in, "rows", &schema, &config, &rows), DT_EUSAGE,
                "CSV, JSON or LIBSVM, not of HDF5");
    fclose(in);
}
END_TEST

/* A model of a table with categories cannot read LIBSVM rows, whatever the line has. */
START_TEST(libsvm_rows_are_not_tables)
{
    struct dt_column columns[] = {{.kind = DT_COLUMN_CATEGORY, .ncategories = 2}};
    schema.columns = columns, schema.ncolumns = 1;
    put_text("rows", "1 1:1 2:1 3:1\n");
    in = fopen("rows", "r");
    schema.features = 3, schema.scale = 1;
    EXPECT_FAIL(dt__rows_open(in, "rows", &schema, &config, &rows), DT_EMISMATCH,
                "expected CSV or JSON");
    fclose(in);
    schema.columns = NULL;
}
END_TEST

START_TEST(rows_are_scaled_and_normalised)
{
    schema.scale = 2, schema.mean = mean, schema.inv_std = inv_std, schema.dense = 3;
    open_rows("[1,2,3]\n");
    expect_row(1, 1, 1, 6);
    expect_end();
    schema = (struct dt_schema){0};
}
END_TEST

static void expect_kept(const char *first, const char *second)
{
    char **kept_text = dt__rows_take_passthrough(rows);
    ck_assert_ptr_nonnull(kept_text);
    ck_assert_str_eq(kept_text[0], first);
    ck_assert_str_eq(kept_text[1], second);
    dt_free(kept_text[0]), dt_free(kept_text[1]), dt_free(kept_text);
}

/* predict.keep keeps all texts of the last row, or none: texts of an earlier row that were not
 * taken are dropped, and a row that lacks a kept column has none. */
START_TEST(kept_texts_belong_to_one_row)
{
    schema.feature_names = names;
    open_rows("id,s,\"q, r\",p,note\n1,3,2,1,x\n2,3,2,1,y\n3,3,2\n4,3,2,1,z\n");
    EXPECT_OK(dt__rows_keep(rows, "note,id"));
    expect_row(2, 1, 2, 3);
    expect_row(3, 1, 2, 3);
    expect_kept("y", "2");
    ck_assert_ptr_null(dt__rows_take_passthrough(rows));
    expect_bad(4, "3 columns, expected 5");
    expect_row(5, 1, 2, 3);
    expect_kept("z", "4");
    expect_end();
    set("data.decimal=,"); /* texts with a comma and with a point */
    open_rows("id;s;q, r;p;note\n1,5;3;2,0;1;1.5\n");
    EXPECT_OK(dt__rows_keep(rows, "note,id"));
    expect_row(2, 1, 2, 3);
    expect_kept("1.5", "1,5");
    expect_end();
    open_rows("s,p,\"q, r\"\n\"3,0\",1,\"2,0\"\n6,4,5\n");
    expect_row(2, 1, 2, 3);
    expect_row(3, 4, 5, 6);
    expect_end();
    open_rows("{\"p\":1,\"q, r\":2,\"s\":3,\"id\":7,\"note\":\"x\"}\n{\"p\":1,\"q, "
              "r\":2,\"s\":3,\"note\":\"y\"}\n"
              "{\"p\":4,\"q, r\":2,\"s\":3,\"note\":\"z\",\"id\":8}\n");
    EXPECT_OK(dt__rows_keep(rows, "note,id"));
    expect_row(1, 1, 2, 3);
    expect_bad(2, "column 'id' of predict.keep is missing");
    ck_assert_ptr_null(dt__rows_take_passthrough(rows));
    expect_row(3, 4, 2, 3);
    expect_kept("z", "8");
    expect_end();
    schema.feature_names = NULL;
}
END_TEST

/* A stream may have no rows, and need not be a file. */
START_TEST(streams_may_be_empty_or_in_memory)
{
    open_rows("");
    expect_end();
    open_rows("\n \n");
    expect_end();
    char text[] = "[1,2,3]\n[4,5,6]\n";
    in = fmemopen(text, strlen(text), "r");
    EXPECT_OK(dt__rows_open(in, "memory", &schema, NULL, &rows));
    expect_row(1, 1, 2, 3);
    expect_row(2, 4, 5, 6);
    expect_end();
}
END_TEST

/* If a stream is packed, or data of another kind, the message says that, and not that a row is
 * malformed. */
START_TEST(packed_streams_are_named)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *message;
    } streams[] = {
        {"\x1f\x8b\x08\0\0\0\0\0", 8, "memory: this is packed by gzip: unpack it first, with zcat"},
        {"\x28\xB5\x2F\xFD\0\0", 6, "memory: this is packed by zstd"},
        {"PAR1\x15\0", 6, "memory: this is a Parquet file"},
        {"\x89HDF\r\n\x1a\n", 8,
         "memory: this is HDF5, which can only be read from regular files (data.train, data.eval)"},
        {"\0\0\x08\x01\0\0", 6, "memory: this is IDX, which"},
    };
    for (size_t i = 0; i < COUNT(streams); i++) {
        in = fmemopen((void *)(uintptr_t)streams[i].bytes, streams[i].length, "r");
        EXPECT_FAIL(dt__rows_open(in, "memory", &schema, NULL, &rows), DT_EFORMAT,
                    streams[i].message);
        fclose(in);
    }
}
END_TEST

DATA_SUITE("rows", {csv_has_many_forms, 1}, {csv_columns_are_matched_by_name, 1},
           {data_header_is_obeyed, 1}, {csv_must_name_every_feature, 1},
           {csv_may_repeat_other_names, 1}, {features_may_share_a_name, 1},
           {csv_uses_the_training_columns, 1}, {csv_continues_after_bad_rows, 1},
           {json_lines_are_read, 1}, {reading_shows_progress_to_the_watchdog, 1},
           {json_continues_after_bad_rows, 1}, {libsvm_rows_are_read, 1},
           {comments_are_not_rows, 1}, {libsvm_rows_are_not_tables, 1},
           {libsvm_may_start_with_labels_alone, 1}, {single_numbers_may_be_rows, 1},
           {data_format_is_obeyed, 1}, {tables_are_read, 1}, {numbers_may_be_categories, 1},
           {kept_texts_belong_to_one_row, 1}, {rows_are_scaled_and_normalised, 1},
           {streams_may_be_empty_or_in_memory, 1}, {packed_streams_are_named, 1})
