/* CSV: RFC 4180, headers, label columns, unusual tables, and the message for each kind of
 * damage. */
#include "data_files.h"

static const float PLAIN[] = {1, 2.5f, -3, 4e3f};
static const int32_t PLAIN_LABELS[] = {0, 1};

/* The same two rows in every form that RFC 4180 and common practice allow. */
static const struct {
    const char *text, *option;
} FORMS[] = {
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
    {"a,x,b,z,c\n1,x,2.5,7,0\n-3,y,4e3,7,2\n", "data.ignore=1,3"},
    {"a,skip this,b,c\n1,x,2.5,0\n-3,y,4e3,2\n", "data.ignore=skip this"},
    {"7,8,9\n1,2.5,0\n-3,4e3,2\n", "data.header=yes"},
    {"PAR1,PAR2,y\n1,2.5,0\n-3,4e3,2\n", NULL},
    {"ARROW1,b,y\n1,2.5,0\n-3,4e3,2\n", NULL},
    {"a,\t\"b, b\", \"c\"\n1, \"2.5\",  \"0\"\n-3,4e3,2\n", "data.label=c"},
    {"a,b,c\r\r\n1,2.5,0\r\r\n-3,4e3,2\r\r\n", "data.label=c"},
    {"  1  2.5   0\n -3  4e3  2\t\n \t \n", NULL},
    {" 1 2.5\t \"0\" \r\n\"-3\"   4e3 2", "data.separator=space"},
    {"a  \"b, b\"\tc\n1 2.5 0\n\n-3 4e3\t2\n", "data.separator=space"},
    {"a \"b, b\"  c \n1 2.5 0\n-3 4e3\t2\n", "data.label=c"},
    {"1\t2.5  \t0\n-3\t4e3\t2\n", NULL},
};

START_TEST(forms_are_read)
{
    put_text("a.csv", FORMS[_i].text);
    set("data.train=a.csv");
    if (FORMS[_i].option) set(FORMS[_i].option);
    expect_rows(PLAIN, PLAIN_LABELS, 2, 2);
}
END_TEST

static const struct {
    const char *text, *message, *option;
} DAMAGE[] = {
    {"1,2,0\n1,abc,0\n", "a.csv:2: column 1: 'abc' is not a number", NULL},
    {"a,b,c\r\n1,2,0\r\n1,0x10,0\r\n", "a.csv:3: column 'b': '0x10' is not a number", NULL},
    {"1,2,0\n1,nan,0\n", "a.csv:2: column 1: 'nan' is a missing value; data.missing=mean", NULL},
    {"1,2,0\n1,-INF,0\n", "a.csv:2: column 1: '-INF' is not a finite number", NULL},
    {"1,2,0\n1,1e99,0\n", "a.csv:2: column 1: '1e99' is not a finite number", NULL},
    {"1,2,0\n1,,0\n", "a.csv:2: column 1: a value is missing; data.missing=mean", NULL},
    {"1,2,0\n1,2\n", "a.csv:2: 2 columns, expected 3", NULL},
    {"1,2,0\n1,2,3,4\n", "a.csv:2: 4 columns, expected 3", NULL},
    {"1,2,0\n1,\"2\"x,0\n", "a.csv:2: column 1: text after a closing quote", NULL},
    {"1,2,0\n1,\"2,0\n3,4,0\n", "a.csv:2: a quote that does not close", NULL},
    {"1,\"2\n\",0\n1,2,0\n1,y,0\n", "a.csv:1: column 1", "data.categories=none"},
    {"1,2,0\n1,a\n", "a.csv:2: 2 columns, expected 3", NULL},
    {"1,2,\"a\nb\"\n1,y,c\n", "a.csv:3: column 1: 'y' is not a number", NULL},
    {"1,2,0\n1,2,\n", "a.csv:2: the label is empty", NULL},
    {"1,2,0\n1,2,x\n", "a.csv:2: label 'x' is not a number, unlike the labels before it", NULL},
    {"1,2,0\n1,2,1.5\n", "a.csv:2: label '1.5' is not a class number", NULL},
    {"1,2,0\n1,2,-2\n1,2,1\n", "a.csv:2: label -2: set model.task=regress", NULL},
    {"1,2,0\n1,2,9999999\n", "a.csv: labels are numbers up to 9999999: set model.task=regress",
     NULL},
    {"1,2,a\n1,2,a\n", "every label is 'a'", NULL},
    {"1,2,3\n1,2,3\n", "every label is 3: a classifier needs two classes", NULL},
    {"1,2,0\n1,2,1.5\n", "a.csv:2: label '1.5' is not a class number; model.task=regress", NULL},
    {"1,2,0\n1,2,1000\n", "a.csv: labels are numbers up to 1000: set model.task=regress", NULL},
    {"1,2,a\n1,2,NA\n", "a.csv:2: label 'NA' is a missing value, not a class", NULL},
    {"1,2,0\n1,2,nan\n", "a.csv:2: label 'nan' is a missing value, not a class", NULL},
    {"1,2,0\n1,2,?\n", "a.csv:2: label '?' is a missing value", "model.task=classify"},
    {"1,2,0\n1,2,\n", "a.csv:2: the label is empty", NULL},
    {"1, 2, no\n1, 2, \n", "a.csv:2: the label is empty", NULL},
    {"1, 2, no\n1, 2, NA\n", "a.csv:2: label 'NA' is a missing value, not a class", NULL},
    {"1, 2, 0\n1, , 0\n", "a.csv:2: column 1: ' ' is a missing value; data.missing=mean", NULL},
    {"y,a,y\n1,2,0\n1,2,1\n", "a.csv:1: columns 0 and 2 are both named 'y'", "data.label=y"},
    {"a,b,b,y\n1,2,3,0\n1,2,3,1\n", "a.csv:1: columns 1 and 2 are both named 'b': rename one",
     NULL},
    {"", "a.csv: the file is empty", NULL},
    {"\n\n", "the file has no rows", NULL},
    {"a,b,c\n", "the files have no rows", NULL},
    {"1,2,0\n", "a.csv:1: data.label=7: there are 3 columns", "data.label=7"},
    {"a,b,c\n1,2,0\n", "a.csv:1: data.label: no column is named 'd'", "data.label=d"},
    {"a,2020,c\n1,2,0\n",
     "a.csv:1: data.ignore=2020: there are 3 columns; column 1 has this name: expected 1",
     "data.header=yes data.ignore=2020"},
    {"a,b,c\n1,2,0\n1,2,1\n", "data.label=b,c: expected one column", "data.label=b,c"},
    {"a,b,c\n1,2,0\n1,2,1\n", "data.label=c: the column is in data.ignore too",
     "data.label=c data.ignore=a,c"},
    {"a,b,c\n1,2,0\n1,2,1\n", "data.label=c: the column is in data.weight too",
     "data.label=c data.weight=c"},
    {"1,2,0\n", "data.label=c is a name, but the file has no header",
     "data.header=no data.label=c"},
    {"0\n1\n", "no column is left for the features", NULL},
    {"1,2,0\n1,2,x\n", "a.csv:2: label: 'x' is not a number", "model.task=regress"},
    {"a,b,c\n1,2,0\n1,x,1\n", "a.csv:3: column 1: label: 'x' is not a number",
     "model.task=regress data.label=c,b"},
    {"a,b,c\n1,2,0\n1,?,1\n", "a.csv:3: column 1: label: '?' is a missing value",
     "model.task=regress data.label=c,b"},
    {"1,2,0\n", "data.label=1,1: the column is in data.label too",
     "model.task=regress data.label=1,1"},
    {"1,0,1\n1,1,0\n1,2,0\n", "a.csv:3: label: a target is 2, expected 0 or 1",
     "model.task=multilabel data.label=1,2"},
    {"1,0,1\n1,1,0\n1,0,-1\n", "a.csv:3: column 2: label: a target is -1, expected 0 or 1",
     "model.task=multilabel data.label=1,2"},
};

START_TEST(damage_gives_its_message)
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

/* Distinct texts become classes in bytewise order, whatever their order in the file. */
START_TEST(text_labels_are_sorted)
{
    const float x[] = {1, 2, 3, 4};
    const int32_t labels[] = {2, 0, 1, 2};
    put_text("a.csv", "1,zebra\n2,\"A, b\"\n3,a\n4,zebra\n");
    set("data.train=a.csv");
    expect_rows(x, labels, 4, 1);
    struct dt_source *source = survey();
    const struct dt_schema *schema = dt__source_schema(source);
    ck_assert_int_eq(schema->classes, 3);
    ck_assert_str_eq(schema->label_names[0], "A, b");
    ck_assert_str_eq(schema->label_names[2], "zebra");
    dt__source_destroy(source);
}
END_TEST

/* The numbers 0 to K-1 need no names; any other numbers, such as -1 and 1, are the names of
 * classes. */
START_TEST(number_labels_are_classes)
{
    const float x[] = {1, 2, 3};
    const int32_t signs[] = {1, 0, 1};
    put_text("a.csv", "1,2\n2,0\n3,1\n");
    set("data.train=a.csv");
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->classes, 3);
    ck_assert_ptr_null(dt__source_schema(source)->label_names);
    dt__source_destroy(source);
    put_text("a.csv", "1,+1\n2,-1\n3,1.0\n");
    expect_rows(x, signs, 3, 1);
}
END_TEST

/* Labels may be above 1,000 with model.task=classify, and there may be more than 65,536 texts. */
START_TEST(many_classes_are_declared)
{
    enum { TEXTS = 70000 };
    FILE *texts = fopen("b.csv", "w");
    ck_assert_ptr_nonnull(texts);
    for (int i = 0; i < TEXTS; i++)
        fprintf(texts, "%d,word%05d\n", i % 7, i);
    ck_assert_int_eq(fclose(texts), 0);
    put_text("a.csv", "1,1000\n2,0\n");
    set("data.train=b.csv");
    ck_assert_int_eq(try_survey(), DT_EFORMAT);
    ck_assert_ptr_nonnull(
        strstr(dt_error_text(), "65536 distinct labels: set model.task=classify"));
    set("model.task=classify");
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->classes, TEXTS);
    dt__source_destroy(source);
    set("data.train=a.csv");
    source = survey();
    ck_assert_int_eq(dt__source_schema(source)->classes, 2);
    ck_assert_str_eq(dt__source_schema(source)->label_names[1], "1000");
    dt__source_destroy(source);
}
END_TEST

/* Targets are in the order of data.label: in the training file, in batches, and in evaluation data
 * whose columns have another order. Fails if targets are swapped or if a file with fewer targets is
 * accepted. */
START_TEST(targets_may_be_several)
{
    static const char *const keys[] = {"data.label=z,x,y", "data.label=-1,0,2",
                                       "data.label=4,x,-3"};
    static const char *const files[] = {"x,p,y,q,z\n9,1,8,2,7\n6,3,5,4,0.25\n",
                                        "q,z,y,x,more,p\n2,7,8,9,?,1\n4,0.25,5,6,0,3\n"};
    put_text("a.csv", files[0]);
    set("data.train=a.csv"), set("data.eval=b.csv"), set("model.task=regress");
    set("data.normalize_target=no");
    for (size_t k = 0; k < COUNT(keys); k++) {
        set(keys[k]), set("data.eval=b.csv");
        struct dt_source *source = survey(), *eval;
        const struct dt_schema *schema = dt__source_schema(source);
        ck_assert_int_eq(schema->targets, 3);
        ck_assert_str_eq(schema->label_column, "z,x,y");
        for (size_t f = 0; f < COUNT(files); f++) {
            const float want[2][5] = {{7, 9, 8, 1, 2}, {0.25f, 6, 5, 3, 4}};
            put_text("b.csv", files[f]);
            EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, schema, &eval));
            struct dt_table *table = open_table(eval);
            for (uint64_t r = 0; r < 2; r++) {
                struct dt_batch row = read_row(table, r);
                ck_assert_mem_eq(row.target, want[r], 3 * sizeof(float));
                ck_assert_mem_eq(row.x, want[r] + 3, 2 * sizeof(float));
            }
            dt__table_destroy(table);
            dt__source_destroy(eval);
        }
        put_text("c.svm", "1 1:1 2:2\n2 1:1\n");
        set("data.eval=c.svm");
        ck_assert_int_ne(dt__source_survey(&config, DT_PART_EVAL, schema, &eval), DT_OK);
        ck_assert_msg(strstr(dt_error_text(), "c.svm: 1 targets a row, the model has 3"),
                      "message is '%s'", dt_error_text());
        dt__source_destroy(source);
    }
}
END_TEST

/* Fails if evaluation data cannot find a target whose name is empty or contains a comma. */
START_TEST(targets_may_have_names_with_commas)
{
    static const struct {
        const char *files[2], *label, *column;
    } cases[] = {
        {{"x,p,\"y, kg\"\n9,1,8\n6,3,5\n", "\"y, kg\",x,p\n8,9,1\n5,6,3\n"},
         "data.label=y\\, kg,x",
         "y\\, kg,x"},
        {{"x,p,\"y, kg\"\n9,1,8\n6,3,5\n", "\"y, kg\",p,x\n8,1,9\n5,3,6\n"},
         "data.label=2,0",
         "y\\, kg,x"},
        {{"x,p,\n9,1,8\n6,3,5\n", "x,p,\n9,1,8\n6,3,5\n"}, "data.label=2,0", NULL},
    };
    set("data.train=a.csv"), set("model.task=regress"), set("data.normalize_target=no");
    for (size_t k = 0; k < COUNT(cases); k++) {
        const float want[2][3] = {{8, 9, 1}, {5, 6, 3}};
        struct dt_source *eval;
        put_text("a.csv", cases[k].files[0]), put_text("b.csv", cases[k].files[1]);
        set(cases[k].label), set("data.eval=b.csv");
        struct dt_source *source = survey();
        const char *column = dt__source_schema(source)->label_column;
        ck_assert_msg(!column == !cases[k].column && (!column || !strcmp(column, cases[k].column)),
                      "case %zu: '%s'", k, column ? column : "none");
        EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
        struct dt_table *table = open_table(eval);
        for (uint64_t r = 0; r < 2; r++) {
            struct dt_batch row = read_row(table, r);
            ck_assert_mem_eq(row.target, want[r], 2 * sizeof(float));
            ck_assert_mem_eq(row.x, want[r] + 2, sizeof(float));
        }
        dt__table_destroy(table);
        dt__source_destroy(eval);
        dt__source_destroy(source);
    }
}
END_TEST

/* A file of class names may begin with a byte order mark and must be text; blanks around a name are
 * not part of it. */
START_TEST(names_of_classes_are_text)
{
    put_text("a.csv", "1,2,dog\n3,4,cat\n");
    put_text("names", "\xEF\xBB\xBF"
                      "cat\r\ndog\r\n");
    set("data.train=a.csv"), set("data.class_names=names");
    struct dt_source *source = survey();
    ck_assert_str_eq(dt__source_schema(source)->label_names[0], "cat");
    ck_assert_str_eq(dt__source_schema(source)->label_names[1], "dog");
    dt__source_destroy(source);
    put_text("names", "cat \n\tdog\n");
    EXPECT_OK(try_survey());
    set("data.class_names= cat, dog ");
    source = survey();
    ck_assert_str_eq(dt__source_schema(source)->label_names[0], "cat");
    ck_assert_str_eq(dt__source_schema(source)->label_names[1], "dog");
    dt__source_destroy(source);
    put_text("a.csv", "1,2,dog\n3,4,\"cat, big\"\n");
    set("data.class_names=dog,cat\\, big");
    source = survey();
    ck_assert_str_eq(dt__source_schema(source)->label_names[1], "cat, big");
    dt__source_destroy(source);
    put_text("a.csv", "1,2,dog\n3,4,cat\n");
    set("data.class_names=names");
    put_bytes("names", "cat\ndog\n\0bird\n", 14);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "data.class_names=names: a zero byte in the file");
}
END_TEST

/* Evaluation data is read by the schema of the training data. */
START_TEST(evaluation_fits_the_schema)
{
    put_text("a.csv", "p,q,y\n1,2,no\n3,4,yes\n");
    set("data.train=a.csv"), set("data.eval=b.csv");
    struct dt_source *source = survey(), *eval;
    const struct dt_schema *schema = dt__source_schema(source);
    static const char *const bad[][2] = {
        {"p,q,y\n1,2,maybe\n", "b.csv:2: label 'maybe' was never seen in training"},
        {"p,q,y\n1,no\n", "b.csv:2: 2 columns, expected 3"},
        {"p,y\n1,no\n", "b.csv:1: the header lacks 'q'; columns go by the names"},
        {"q,P,y\n1,2,no\n", "b.csv:1: the header lacks 'p'; columns go by the names"},
        {"p,q,Y\n1,2,no\n", "b.csv:1: the header lacks 'y'; columns go by the names in the "
                            "training data; rows without a label are for"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        put_text("b.csv", bad[i][0]);
        dt_status status = dt__source_survey(&config, DT_PART_EVAL, schema, &eval);
        ck_assert_int_eq(dt_status_exit_code(status), 1);
        ck_assert_msg(strstr(dt_error_text(), bad[i][1]), "message is '%s'", dt_error_text());
    }
    static const char *const good[] = {"1,2,yes\n", "p,q,y\n1,2,yes\n", "y,more,q,p\nyes,x,2,1\n"};
    for (size_t i = 0; i < COUNT(good); i++) {
        put_text("b.csv", good[i]);
        EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, schema, &eval));
        struct dt_table *table = open_table(eval);
        struct dt_batch row = read_row(table, 0);
        ck_assert_int_eq(row.label[0], 1);
        ck_assert_float_eq(row.x[0], 1);
        ck_assert_float_eq(row.x[1], 2);
        dt__table_destroy(table);
        dt__source_destroy(eval);
    }
    dt__source_destroy(source);
}
END_TEST

/* Lines that catch_log collected, each followed by '|'. */
static char logged[600];

static void catch_log(void *arg, enum dt_log_level level, const char *line)
{
    const size_t length = strlen(logged);
    (void)arg, (void)level;
    if (strstr(line, "are ignored") || strstr(line, "decimal points") ||
        strstr(line, "has no name") || strstr(line, "are taken for values") ||
        strstr(line, "are not counted") || strstr(line, "are two classes") ||
        strstr(line, "that rise") || strstr(line, "never saw"))
        snprintf(logged + length, sizeof logged - length, "%s|", line);
}

/* Columns that training did not have are listed once per file, without those in data.ignore or
 * data.weight. */
START_TEST(unknown_columns_are_named)
{
    put_text("a.csv", "id,p,y,w\n7,1,no,1\n8,3,yes,1\n");
    put_text("b.csv", "q,id,p,y,w,\n5,7,1,no,1,\n");
    put_text("c.csv", "r,p,y\n5,1,no\n");
    set("data.train=a.csv"), set("data.ignore=0"), set("data.weight=w"), set("data.label=y");
    struct dt_source *source = survey(), *eval;
    dt_log_set_sink(catch_log, NULL);
    set("data.ignore=id"), set("data.eval=b.csv,c.csv");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
    ck_assert_str_eq(logged, "b.csv: columns that training did not have are ignored: 'q', ''|");
    dt__source_destroy(eval);
    *logged = '\0';
    set("data.eval=c.csv,b.csv"), set("data.ignore=-1,id,r");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
    ck_assert_str_eq(logged, "b.csv: columns that training did not have are ignored: 'q'|");
    dt__source_destroy(eval), dt__source_destroy(source);
    *logged = '\0';
    put_text("b.csv", "q,id,p,y,w\n5,7,1,no,1\n");
    set("data.train=a.csv,b.csv"), set("data.ignore=id");
    dt__source_destroy(survey());
    ck_assert_str_eq(logged, "b.csv: columns that the earlier files do not have are ignored: 'q'|");
    dt_log_set_sink(NULL, NULL);
}
END_TEST

/* Fails if no warning appears although more than half of the texts in a column are new since
 * training. */
START_TEST(texts_unknown_in_training_give_a_warning)
{
    put_text("a.csv", "a,b,y\nred,1,no\nblue,3,yes\n");
    put_text("b.csv", "a,b,y\nred,1,no\nblau,1,no\n");
    put_text("c.csv", "a,b,y\nrot,1,no\n");
    set("data.train=a.csv"), set("data.label=y");
    struct dt_source *source = survey(), *eval;
    static const struct {
        const char *files, *logged;
    } cases[] = {{"data.eval=b.csv", ""},
                 {"data.eval=c.csv",
                  "c.csv: column 0 (a): 1 of 1 rows have a text that training never saw, or too "
                  "seldom (data.min_count)|"},
                 {"data.eval=b.csv,c.csv",
                  "evaluation data: column 0 (a): 2 of 3 rows have a text that training "
                  "never saw, or too seldom (data.min_count)|"}};
    dt_log_set_sink(catch_log, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        *logged = '\0';
        set(cases[i].files);
        EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
        ck_assert_str_eq(logged, cases[i].logged);
        dt__source_destroy(eval);
    }
    dt_log_set_sink(NULL, NULL);
    dt__source_destroy(source);
}
END_TEST

/* All files of a source must have the same columns; the message names the first file that
 * differs. */
START_TEST(files_must_agree)
{
    put_text("a.csv", "p,q,y\n1,2,0\n");
    put_text("b.csv", "p,y\n1,0\n");
    set("data.train=a.csv,b.csv");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH,
                "b.csv:1: the header lacks 'q'; columns go by the names in a.csv");
    put_text("b.csv", "p,r,y\n1,2,0\n");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "b.csv:1: the header lacks 'q'");
    /* headers match by names, never by position */
    put_text("b.csv", "7,8,9\n1,2,0\n"), set("data.header=yes");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "b.csv:1: the header lacks 'y', 'p', 'q'");
    set("data.header=auto");
    put_text("a.csv", "1,2,0\n");
    put_text("b.csv", "1,0\n");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "b.csv:1: 1 features, the earlier files have 2");
    put_text("b.svm", "1 1:2 3:7\n0 2:1\n");
    set("data.train=a.csv,b.svm");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "b.svm: 3 features, but the earlier files have 2");
}
END_TEST

/* A file may have its columns in another order, and additional columns; a file with only a header
 * has no rows. */
START_TEST(files_are_read_by_their_own_headers)
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    const int32_t labels[] = {0, 1, 2};
    put_text("a.csv", "p,q,y\n1,2,0\n");
    put_text("b.csv", "y,q,what,p\n1,4,x,3\n");
    put_text("c.csv", "q,p,y\n");
    put_text("d.csv", "y;p;q\n2;5;6\n");
    set("data.train=a.csv,b.csv,c.csv,d.csv");
    expect_rows(x, labels, 3, 2);
}
END_TEST

/* ---- tables that are not plain --------------------------------------------------------------- */

/* Every separator is detected, with and without quotes in the file. */
START_TEST(separators_are_detected)
{
    static const char separators[] = ",;\t|";
    const float x[] = {1.5f, 2, 3, 4};
    const int32_t labels[] = {0, 1};
    char text[64], option[32];
    char s = separators[_i];
    snprintf(text, sizeof text, "\xEF\xBB\xBF\"p,;\"%cq%cy\r\n1.5%c2%cno\r\n3%c4%cyes\r\n", s, s, s,
             s, s, s);
    put_text("a.csv", text);
    set("data.train=a.csv");
    expect_rows(x, labels, 2, 2);
    snprintf(option, sizeof option, s == '\t' ? "data.separator=tab" : "data.separator=%c", s);
    set(option);
    expect_rows(x, labels, 2, 2);
    set("data.separator=;;");
    EXPECT_FAIL(
        try_survey(), DT_EUSAGE,
        "data.separator=;;: expected auto, tab, space or one character, not a quote or a point");
}
END_TEST

/* Runs of blanks separate cells, even if a tab is among them, and with decimal commas too. Tabs
 * separate cells if a cell between two tabs is empty or has blanks; commas separate cells if texts
 * have blanks. */
static const struct {
    const char *text, *option;
    float x[2][6];
    size_t features;
} RUNS[] = {
    {"0   8   3504.   ?\t\"buick skylark 320\"\n1   8   3693.      11.5\t\"amc  gremlin\"\n",
     "data.label=0",
     {{8, 3504, 11.5f, 0, 1, 0}, {8, 3693, 11.5f, 1, 0, 0}},
     6},
    {"  1,5 2,5  0\n 3 -4,5 1\n", "data.decimal=,", {{1.5f, 2.5f}, {3, -4.5f}}, 2},
    {"p q\tr  s\ty\n1.5\t\t0\n2.5\t4\t1\n", "data.label=y", {{1.5f, 4}, {2.5f, 4}}, 2},
    {"1.5\t 4\t\t0\n2.5\t4\t6\t1\n", "data.label=3", {{1.5f, 4, 6}, {2.5f, 4, 6}}, 3},
    {"1.5\t2  5\t0\n2.5\tx\t1\n", "data.categories=1", {{1.5f, 1, 0, 0}, {2.5f, 0, 1, 0}}, 4},
    {"1,2 6,0\n2,3 x,1\n", "data.header=no", {{1, 1, 0, 0}, {2, 0, 1, 0}}, 4},
    {"1,x  6,0\n2,x  7,1\n", "data.categories=1", {{1, 1, 0, 0}, {2, 0, 1, 0}}, 4},
    {"1, 2,  0\n3,  4, 1\n", "data.label=2", {{1, 2}, {3, 4}}, 2},
    {"1 ,2  ,0\n3  ,4 ,1\n", "data.label=2", {{1, 2}, {3, 4}}, 2},
};

START_TEST(runs_of_blanks_are_separators)
{
    float x[12];
    for (size_t i = 0; i < 2 * RUNS[_i].features; i++)
        x[i] = RUNS[_i].x[i / RUNS[_i].features][i % RUNS[_i].features];
    put_text("a.csv", RUNS[_i].text);
    set("data.train=a.csv"), set("data.missing=mean"), set(RUNS[_i].option);
    expect_rows(x, (const int32_t[]){0, 1}, 2, RUNS[_i].features);
}
END_TEST

/* Commas are still the separator if texts contain other separators. */
START_TEST(texts_may_have_separators)
{
    const float x[] = {1, 1, 0, 0, 2, 0, 1, 0};
    put_text("a.csv", "1,Comedy|Drama,0\n2,War;Drama|Crime|2,1\n");
    set("data.train=a.csv");
    expect_rows(x, NULL, 2, 4);
    put_text("a.csv", "1,2,0;1|2,0\n2,2,3;4|5,1\n");
    expect_rows((const float[]){1, 2, 1, 0, 0, 2, 2, 0, 1, 0}, NULL, 2, 5);
}
END_TEST

/* Decimal commas work with any separator between the cells. */
START_TEST(decimals_may_have_commas)
{
    static const char separators[] = ";:\t ";
    char text[64], option[32];
    const char s = separators[_i];
    snprintf(text, sizeof text, "1%c2,5%c0\n\"-3\"%c4000,0%c2\n", s, s, s, s);
    put_text("a.csv", text);
    snprintf(option, sizeof option, s == ' ' ? "data.separator=space" : "data.separator=%c", s);
    set(option), set("data.decimal=,"), set("data.train=a.csv");
    expect_rows(PLAIN, PLAIN_LABELS, 2, 2);
    /* the commas in a name do not separate */
    put_text("a.csv", "p, in m, wide;q;y\n1;2,5;0\n-3;4000,0;2\n");
    set("data.separator=auto");
    expect_rows(PLAIN, PLAIN_LABELS, 2, 2);
}
END_TEST

/* If commas separate the cells, as in Google Sheets, only a quoted comma is a decimal comma. */
START_TEST(decimals_may_be_quoted)
{
    static const char *const forms[] = {"a,b,c\n1,\"2,5\",0\n-3,4000,2\n",
                                        "\"1\",\"2,5\",0\n-3,\"4000,0\",2\n",
                                        "1,\"2,5\",\"0,0\"\n\"-3,0\",4000,2\n"};
    set("data.decimal=,"), set("data.train=a.csv"), set("data.header=auto");
    for (size_t i = 0; i < COUNT(forms); i++) {
        put_text("a.csv", forms[i]);
        expect_rows(PLAIN, PLAIN_LABELS, 2, 2);
    }
    put_text("a.csv", "a,y\n\"1,5\",0\n2,1\n3,0\n");
    expect_rows((const float[]){1.5f, 2, 3}, NULL, 3, 1);
    put_text("a.csv", "a;y\n\",5\";0\n,25;1\n-,5;0\n");
    expect_rows((const float[]){0.5f, 0.25f, -0.5f}, NULL, 3, 1);
}
END_TEST

/* A point may separate thousands in files with decimal commas: reading it as a decimal point
 * without a warning could give a wrong number. */
START_TEST(points_with_decimal_commas_give_a_warning)
{
    put_text("a.csv", "p;q;y\n1,125;4.3.2021;0\n0.125;4.3.2021; 1.25e3 \n12.5;4.3.2021; -1.250 \n"
                      "12.000;4.3.2021;0\n");
    set("data.train=a.csv"), set("data.decimal=,"), set("model.task=regress");
    dt_log_set_sink(catch_log, NULL);
    dt__source_destroy(survey());
    dt_log_set_sink(NULL, NULL);
    ck_assert_str_eq(
        logged,
        "a.csv:4: ' -1.250 ': with data.decimal=, points are decimal points, too; if it separates "
        "thousands, leave it out|");
}
END_TEST

/* The message names the line of the header, which need not be line 1. */
START_TEST(a_header_is_named_by_its_line)
{
    put_text("a.csv", "\n\r\n0,1,2,kind\n1,2,4,cat\n5,7,4,dog\n");
    set("data.train=a.csv");
    dt_log_set_sink(catch_log, NULL);
    dt__source_destroy(survey());
    dt_log_set_sink(NULL, NULL);
    ck_assert_str_eq(
        logged,
        "a.csv:3: 0, 1, 2 ... are taken for values; if they name the columns: data.header=yes|");
}
END_TEST

/* Hashed texts are not counted, so none is rare, and data.min_count has no effect. */
START_TEST(hashed_texts_are_not_counted)
{
    put_text("a.csv", "c,y\nred,0\nblue,1\n");
    set("data.train=a.csv"), set("data.hash_bits=4"), set("data.min_count=2");
    dt_log_set_sink(catch_log, NULL);
    dt__source_destroy(survey());
    dt_log_set_sink(NULL, NULL);
    ck_assert_str_eq(logged, "data.min_count=2: with data.hash_bits texts are not counted, and "
                             "rare ones share no entry|");
}
END_TEST

/* Blanks before or after a label do not make it another class. */
START_TEST(blanks_do_not_split_classes)
{
    put_text("a.csv", "1, yes\n2, no\n3,yes \n4,no\n");
    set("data.train=a.csv");
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->classes, 2);
    ck_assert_str_eq(dt__source_schema(source)->label_names[0], "no");
    dt__source_destroy(source);
}
END_TEST

/* Row numbers of sorted files predict the label, but mean nothing in other files. */
START_TEST(columns_without_a_name_give_a_warning)
{
    put_text("a.csv", ",p,,Unnamed: 2,y\n0,1,red,0,0\n1,2,blue,1,1\n");
    set("data.train=a.csv"), set("data.label=y");
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "a.csv:1: columns 0 and 2 are both named '': rename one of them, or leave out both "
                "by their numbers in data.ignore");
    set("data.ignore=2");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "columns 0 and 2 are both named ''");
    set("data.ignore=0,2");
    expect_rows((const float[]){1, 0, 2, 1}, NULL, 2, 2);
    put_text("a.csv", ",p,Unnamed: 2,y\n0,1,0,0\n1,2,1,1\n");
    set("data.ignore=");
    dt_log_set_sink(catch_log, NULL);
    struct dt_source *source = survey();
    ck_assert_str_eq(logged, "column 0 has no name, and is a feature: if it numbers the rows, "
                             "data.ignore=0 leaves it out|"
                             "column 2 has no name, and is a feature: if it numbers the rows, "
                             "data.ignore=2 leaves it out|");
    *logged = 0;
    dt__source_destroy(source), dt__source_destroy((set("data.ignore=0,2"), survey()));
    dt_log_set_sink(NULL, NULL);
    ck_assert_str_eq(logged, "");
}
END_TEST

/* Integers that rise from row to row are row numbers, whatever the column's name. There is no
 * warning for 100 rows, if one number falls, or if one is a fraction. */
START_TEST(row_numbers_give_a_warning)
{
    static const char *const last[] = {"200,1,0\n", "3,1,0\n", "200.5,1,0\n", ""};
    FILE *out = fopen("a.csv", "w");
    fprintf(out, "id,p,y\n");
    for (int r = 0; r < (_i == 3 ? 100 : 150); r++)
        fprintf(out, "%d,%d,%d\n", r + 7, r % 9, r / 75);
    fprintf(out, "%s", last[_i]);
    fclose(out);
    *logged = 0;
    dt_log_set_sink(catch_log, NULL);
    set("data.train=a.csv");
    dt__source_destroy(survey());
    dt_log_set_sink(NULL, NULL);
    ck_assert_str_eq(logged, _i ? ""
                                : "column id is a feature, and has whole numbers that rise from "
                                  "row to row: if it numbers the rows, "
                                  "data.ignore=id leaves it out|");
}
END_TEST

/* Features are the numbers first, then for each category its texts by falling count (equal counts
 * bytewise), then one for all other texts. */
START_TEST(texts_are_categories)
{
    const float x[] = {1, 1, 0, 0, 0, 0, 1, 0,  /* Ideal, red */
                       2, 0, 1, 0, 0, 1, 0, 0,  /* Fair, blue */
                       3, 1, 0, 0, 0, 1, 0, 0,  /* Ideal, blue */
                       4, 0, 0, 1, 0, 0, 1, 0}; /* Good, red */
    const int32_t labels[] = {0, 1, 0, 1};
    put_text("a.csv",
             "cut,carat,y,color\nIdeal,1,a,red\nFair,2,b,blue\nIdeal,3,a,blue\nGood,4,b,red\n");
    set("data.train=a.csv"), set("data.label=y");
    expect_rows(x, labels, 4, 8);
    struct dt_source *source = survey(), *eval;
    const struct dt_schema *schema = dt__source_schema(source);
    static const char *const names[] = {"carat",       "cut=Ideal",  "cut=Fair",  "cut=Good",
                                        "cut (other)", "color=blue", "color=red", "color (other)"};
    for (int f = 0; f < 8; f++)
        ck_assert_str_eq(schema->feature_names[f], names[f]);
    put_text("b.csv", "color,y,carat,cut\nred,b,7,Awful\n");
    set("data.eval=b.csv");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, schema, &eval));
    struct dt_table *table = open_table(eval);
    const float unseen[] = {7, 0, 0, 0, 1, 0, 1, 0};
    ck_assert_mem_eq(read_row(table, 0).x, unseen, sizeof unseen);
    dt__table_destroy(table), dt__source_destroy(eval), dt__source_destroy(source);
    set("data.eval="), set("data.categories=carat, -4");
    const float insisted[] = {9, 0, 1, 0, 0,
                              1, 0, 0, 0}; /* listed columns become categories, by
                                                           * name and by number */
    put_text("b.csv", "cut,carat,y,color\nIdeal,1,a,9\nFair,2,b,9\nIdeal,2,a,9\nGood,4,b,9\n");
    set("data.train=b.csv");
    source = survey(), table = open_table(source);
    ck_assert_str_eq(dt__source_schema(source)->feature_names[5], "carat=2");
    ck_assert_mem_eq(read_row(table, 1).x, insisted, sizeof insisted);
    dt__table_destroy(table), dt__source_destroy(source);
    set("data.train=a.csv"), set("data.categories=carat"); /* in addition to the text columns */
    source = survey();
    ck_assert_int_eq(dt__source_schema(source)->features, 4 + 5 + 3);
    dt__source_destroy(source);
    set("data.categories=auto"), set("data.min_count=2");
    const float rare[] = {1, 1, 0, 0, 1, 0, 2, 0, 1, 1, 0, 0, 3, 1, 0, 1, 0, 0, 4, 0, 1, 0, 1, 0};
    expect_rows(rare, labels, 4, 6);
}
END_TEST

/* A missing number becomes the mean of the training rows, and a flag may mark it; statistics ignore
 * missing values. A missing text is a separate category. */
START_TEST(gaps_are_filled)
{
    const float mean[] = {1, 5, 2, 5, 3, 5}, flag[] = {1, 5, 0, 2, 5, 1, 3, 5, 0};
    const float texts[] = {0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0};
    put_text("a.csv", "p,q,y\n1,5,a\nNA,5,b\n3,5,a\n");
    set("data.train=a.csv"), set("data.missing=mean");
    expect_rows(mean, NULL, 3, 2);
    set("data.missing=flag");
    expect_rows(flag, NULL, 3, 3);
    set("data.normalize=standard");
    const float standard[] = {-1, 0, 0, 0, 0, 1, 1, 0, 0};
    expect_rows(standard, NULL, 3, 3);
    /* the mean of the raw values, scaled like them */
    set("data.missing=mean"), set("data.scale=0.5");
    expect_rows((const float[]){-1, 0, 0, 0, 1, 0}, NULL, 3, 2);
    set("data.normalize=none");
    expect_rows((const float[]){0.5f, 2.5f, 1, 2.5f, 1.5f, 2.5f}, NULL, 3, 2);
    set("data.missing=flag"), set("data.scale=1");
    put_text("a.csv", "p, q, y\n1, 5, a\n NA, 5, b\n3, 5, a\n"); /* blanks before NA too */
    expect_rows(flag, NULL, 3, 3);
    put_text("a.csv", "p,y\nred,a\n ,b\nblue,a\n");
    expect_rows(texts, NULL, 3, 4);
    put_text("a.csv", "p,y\nred,a\n,b\nblue,a\n");
    expect_rows(texts, NULL, 3, 4);
    struct dt_source *source = survey(), *copy;
    void *bytes;
    size_t length;
    EXPECT_OK(dt__source_pack(source, &bytes, &length));
    EXPECT_OK(dt__source_unpack(bytes, length, &copy)); /* what other ranks receive */
    struct dt_table *table = open_table(copy);
    ck_assert_float_eq(read_row(table, 1).x[0], 1);
    dt__table_destroy(table), dt__source_destroy(copy), dt__source_destroy(source), dt_free(bytes);
}
END_TEST

static const struct {
    const char *text, *message, *option;
} UNUSUAL[] = {
    {"d,y\n2021-03-04,0\n", "a.csv:2: column 'd': '2021-03-04' is a date: leave the column out",
     "data.dates=error"},
    {"d,y\n4/3/2021 12:00,0\n", "a.csv:2: column 'd': '4/3/2021 12:00' is a date",
     "data.dates=error"},
    {"d;y\n0,5;0\n", "a.csv:2: column 'd': '0,5' is a number with a decimal comma", NULL},
    {"d,y\n\"1,250\",0\n", "'1,250' is a number with a comma: remove it if it separates", NULL},
    {"d,y\n5%,0\n5%,1\n", "a.csv:2: column 'd': '5%' is no plain number: remove the %", NULL},
    {"d;y\n1.234,5;0\n",
     "a.csv:2: column 'd': '1.234,5' is no plain number: remove the points between thousands. Or, "
     "if the column holds names and no amounts: data.categories=d",
     "data.decimal=,"},
    {"1,5;2,5;0,5\n2,5;3,5;1,5\n",
     "a.csv:2: column '1,5': '2,5' is a number with a decimal comma: write a point, or "
     "set data.decimal=,. Or, if the column holds names and no amounts: data.categories=0",
     NULL},
    {"1,5;2,5;3\n2,5;3,5;4\n", "a.csv:1: column 2: '3' is above the number '4'", NULL},
    {"1,5|no\n2,5|yes\n", "a.csv:2: column '1,5': '2,5' is a number with a decimal comma", NULL},
    {"d,y\n1,\"2,000\"\n", "a.csv:2: label: '2,000' is a number with a comma",
     "model.task=regress"},
    {"a,y,\n1,0,\n",
     "a.csv:2: column 2, which has no name: a value is missing; data.missing=mean takes "
     "the column's mean (for texts, a category for gaps); data.ignore=2 leaves it out",
     "data.label=y"},
    {"a,y\n1,0,\n", "a.csv:2: 3 columns, expected 2: the row ends in a separator", NULL},
    {"a,y\n5\" pipe,0\n6\" pipe,1\n",
     "a.csv:2: 3 columns, expected 2: a quote joins it to the lines after", NULL},
    {"a,y\nb,0,1\n", "a.csv:2: 3 columns, expected 2: is line 1 a title, or does it lack", NULL},
    {"a,y\r1,0\r2,1\r", "a.csv:1: line ends are single carriage returns", NULL},
    {"Report,\n,\na,y\n1,0\n", "no column is named 'y'; the first row begins 'Report', ''",
     "data.label=y"},
    {"Age,age,y\n1,2,0\n", "data.label: no column is named 'ages'; did you mean 'age'?",
     "data.label=ages"},
    {"a,\"age, years\",y\n1,2,0\n",
     "no column is named 'age'; did you mean 'age, years'? \\, stands for a comma of a name",
     "data.label=age"},
    {"Age,age,y\n1,2,0\n", "no column is named 'x'; the first row begins 'Age', 'age'",
     "data.label=x"},
    {"p,y\n1,0\nx,1\n",
     "a.csv:3: column 'p': 'x' is not a number. Or, if the column holds names and no amounts: "
     "data.categories=p",
     NULL},
    {"p,y\nx,0\nz,1\n", "a.csv:2: column 'p': 'x' is not a number",
     "data.categories=none data.header=yes"},
    {"p,y\n1,0\n", "data.categories: no column is named 'q'", "data.categories=q"},
    {"{\"a\":1,\"y\":0}\n{\"a\":2,\"y\":1}\n", "a.csv:1: this is JSON; expected one object a line",
     NULL},
    {"[1,2,0]\n[3,4,1]\n", "a.csv:1: this is JSON", NULL},
    {"0 qid:1 1:2 2:1\n1 qid:1 1:1\n", "a.csv:1: LIBSVM rows with qid", NULL},
    {"A title of things\na,y\n1,0\n", "a.csv:2: 1 columns, expected 4: is line 1 a title", NULL},
    {"1\t2\t0\n1\t2\t\t0\n",
     "a.csv:2: 4 columns, expected 3: data.separator=space takes a run of tabs", NULL},
    {"p\tq\ty\n1  2  0\n", "a.csv:2: 1 columns, expected 3: data.separator=space", NULL},
    {"[ {\"a\":1},\n{\"a\":2}]\n", "a.csv:1: this is JSON", NULL},
    {"{\n\"a\": [1, 2]\n", "a.csv:1: this is JSON", NULL},
    {"# about\n# x,y,label\n1,2,0\n",
     "a.csv:3: 1 columns, expected 2; the first row begins with '#'", NULL},
    {"# x y label\n1 2 0\n",
     "a.csv:2: 3 columns, expected 4: is line 1 a title, or does it lack a name for R's row "
     "names?; the first row begins with '#': comments are not supported",
     NULL},
    {"x,y\n% note\n1,0\n", "; the line begins with '%'", NULL},
    {"#note\n1,0\n",
     "a.csv:1: no column is left for the features: there is only one (is data.separator another? "
     "is line "
     "1 a title?); the line begins with '#': comments are not supported: grep -v '^#' <FILE >NEW",
     NULL},
    {"#a,b\n#text,text\n1,0\n", "a.csv:3: label '0' is a number, unlike the labels before it",
     NULL},
    {"p,w,y\n1,-2,0\n", "a.csv:2: data.weight: a weight below 0: '-2'", "data.weight=w"},
    {"p,w,y\n1,x,0\n", "a.csv:2: data.weight: 'x' is not a number", "data.weight=w"},
};

START_TEST(unusual_tables_give_their_message)
{
    char option[64], *word, *rest = option;
    snprintf(option, sizeof option, "%s", UNUSUAL[_i].option ? UNUSUAL[_i].option : "");
    while ((word = strsep(&rest, " ")))
        if (*word) set(word);
    put_text("a.csv", UNUSUAL[_i].text);
    set("data.train=a.csv");
    ck_assert_int_ne((int)try_survey(), DT_OK);
    ck_assert_msg(strstr(dt_error_text(), UNUSUAL[_i].message), "message is '%s'", dt_error_text());
}
END_TEST

static void expect_weights(const struct dt_source *source, bool balanced)
{
    struct dt_plan *plan;
    struct dt_loader *loader;
    struct dt_batch batch;
    EXPECT_OK(dt__plan_create(source, 1, 1, 0, &plan));
    EXPECT_OK(dt__loader_create(&config, source, plan, 0, 1, 1, 4, 0, &loader));
    EXPECT_OK(dt__loader_read(loader, 0, 0, 0, 4, &batch));
    ck_assert_int_eq(dt__source_schema(source)->features, 1);
    for (int r = 0; r < 4; r++) {
        static const float weights[] = {0.5f, 1.5f, 1, 1};
        float balance = batch.label[r] ? 2 : 4.0f / 6;
        float weight = weights[(int)batch.x[r] - 1] * (balanced ? balance : 1);
        ck_assert_float_eq_tol(batch.weight[r], weight, 1e-6f);
    }
    dt__loader_destroy(loader), dt__plan_destroy(plan);
}

/* Weights are divided by their mean, and multiplied by the class weights if these are balanced, on
 * a resume too; evaluation has no weights. The weight column is given by name or by its number in
 * the first file; other files are searched for the name. */
START_TEST(rows_have_weights)
{
    static const char *const columns[] = {"data.weight=w", "data.weight=1", "data.weight=-2"};
    bool balanced = _i % 2;
    put_text("a.csv", "p,w,y\n1,1,a\n2,3,b\n");
    put_text("b.csv", "y,p,w\na,3,2\na,4,2\n");
    set("data.train=a.csv,b.csv"), set(columns[_i / 2]);
    if (balanced) set("train.class_weight=balanced");
    struct dt_source *source = survey(), *eval, *resumed;
    const struct dt_schema *schema = dt__source_schema(source);
    expect_weights(source, balanced);
    EXPECT_OK(dt__source_survey(&config, DT_PART_TRAIN, schema, &resumed));
    expect_weights(resumed, balanced);
    put_text("c.csv", "y,p\na,1\n");
    set("data.eval=c.csv");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, schema, &eval));
    struct dt_table *table = open_table(eval);
    ck_assert_ptr_null(read_row(table, 0).weight);
    dt__table_destroy(table), dt__source_destroy(eval);
    dt__source_destroy(resumed), dt__source_destroy(source);
}
END_TEST

/* A resume refuses a weight column that is the label or a feature. */
START_TEST(weights_are_not_another_column)
{
    static const char *const wrong[][2] = {
        {"data.weight=y", "data.label=y: the column is in data.weight too"},
        {"data.weight=p", "data.weight=p: the column is a feature too"},
        {"data.weight=0", "data.weight=p: the column is a feature too"},
        {"data.weight=-1", "data.label=y: the column is in data.weight too"},
    };
    put_text("a.csv", "p,w,y\n1,1,a\n2,3,b\n");
    set("data.train=a.csv"), set("data.ignore=w");
    struct dt_source *source = survey(), *resumed;
    set(wrong[_i][0]);
    EXPECT_FAIL(dt__source_survey(&config, DT_PART_TRAIN, dt__source_schema(source), &resumed),
                DT_EMISMATCH, wrong[_i][1]);
    dt__source_destroy(source);
}
END_TEST

/* Reads files packed by gzip (two members) or zstd; a truncated file fails. */
START_TEST(packed_files_are_read)
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    const int32_t labels[] = {0, 1, 0};
    put_text("a.csv", "p,q,y\n1,2,a\n3,4,b\n5,6,a\n");
    ck_assert_int_eq(
        system(_i ? "zstd -q a.csv -o a.csv.zst 2>/dev/null || cp a.csv a.csv.zst"
                  : "head -c 9 a.csv | gzip >a.csv.gz; tail -c +10 a.csv | gzip >>a.csv.gz"),
        0);
    set(_i ? "data.train=a.csv.zst" : "data.train=a.csv.gz");
    expect_rows(x, labels, 3, 2);
    ck_assert_int_eq(truncate(_i ? "a.csv.zst" : "a.csv.gz", 25), 0);
    ck_assert_int_ne((int)try_survey(), DT_OK);
}
END_TEST

/* After a gzip member only another member or zeros may follow; plain rows there would be lost
 * silently. */
START_TEST(data_after_a_gzip_member_is_checked)
{
    static const struct {
        const char *more, *message;
    } additions[] = {
        {"printf '7,8,b\\n' | gzip >>a.csv.gz", NULL},
        {"head -c 1000 /dev/zero >>a.csv.gz; printf '7,8,b\\n' | gzip >>a.csv.gz; head -c 9 "
         "/dev/zero >>a.csv.gz",
         NULL},
        {"printf '7,8,b\\n' >>a.csv.gz", "a.csv.gz: damaged gzip data, or other data after it"},
        {"printf '\\037' >>a.csv.gz", "a.csv.gz: truncated gzip data"},
    };
    put_text("a.csv", "p,q,y\n1,2,a\n3,4,b\n5,6,a\n");
    ck_assert_int_eq(system("gzip <a.csv >a.csv.gz"), 0);
    ck_assert_int_eq(system(additions[_i].more), 0);
    set("data.train=a.csv.gz");
    if (additions[_i].message)
        EXPECT_FAIL(try_survey(), DT_EFORMAT, additions[_i].message);
    else
        expect_rows((const float[]){1, 2, 3, 4, 5, 6, 7, 8}, (const int32_t[]){0, 1, 0, 1}, 4, 2);
}
END_TEST

/* A packed megabyte of one repeated line is unpacked in many parts, the last of them without new
 * input. */
START_TEST(packed_files_may_be_large)
{
    enum { MANY = 200000 };
    ck_assert_int_eq(system(_i ? "yes 1,2,0 | head -n 199999 >a.csv; echo 3,4,1 >>a.csv; zstd -q "
                                 "a.csv -o b.csv.zst 2>/dev/null"
                                 " || cp a.csv b.csv.zst"
                               : "{ yes 1,2,0 | head -n 199999; echo 3,4,1; } | gzip >b.csv.gz"),
                     0);
    set(_i ? "data.train=b.csv.zst" : "data.train=b.csv.gz");
    struct dt_source *source = survey();
    ck_assert_uint_eq(dt__source_rows(source), MANY);
    struct dt_table *table = open_table(source);
    ck_assert_float_eq(read_row(table, MANY - 1).x[1], 4);
    dt__table_destroy(table), dt__source_destroy(source);
}
END_TEST

static const struct {
    const char *name, *bytes, *message;
} FOREIGN[] = {
    {"a.npy", "\x93NUMPY\1", "a.npy: this is a NumPy array: write it with h5py"},
    {"a.npz", "PK\3\4x", "a.npz: this is NumPy arrays (.npz)"},
    {"a.csv", "version https://git-lfs.github.com/spec/v1\noid x\n",
     "a.csv: this is a pointer of Git LFS, not the file"},
    {"a.csv", "\n <!DOCTYPE html>\n<html>\n", "a.csv: this is an HTML page, not data"},
    {"a.csv", "<html><p>x\n", "a.csv: this is an HTML page, not data"},
    {"a.csv", "\xEF\xBB\xBF<html>\n", "a.csv: this is an HTML page, not data"},
    {"a.csv", "<?xml version=\"1.0\"?>\n", "a.csv: this is XML: write it as CSV"},
    {"a.arff", "@relation iris\n", "a.arff: this is Weka's ARFF: keep the rows after @data"},
    {"a.csv", "PK\3\4x", "a.csv: this is a zip archive: unpack it first"},
    {"a.parquet", "PAR1\x15x", "a.parquet: this is a Parquet file"},
    {"a.csv", "\xFF\xFEx", "a.csv: this is UTF-16 text: convert it with iconv"},
    {"a.csv.bz2", "BZh91AY", "a.csv.bz2: this is packed by bzip2"},
    {"a.xlsx", "PK\3\4x", "a.xlsx: this is an Excel sheet: save it as CSV"},
};

START_TEST(foreign_files_are_named)
{
    char option[64];
    put_text(FOREIGN[_i].name, FOREIGN[_i].bytes);
    snprintf(option, sizeof option, "data.train=%s", FOREIGN[_i].name);
    set(option);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, FOREIGN[_i].message);
}
END_TEST

/* `inspect` is a new user's first command: it lists types, gaps and ranges, and suggests lines of a
 * configuration. */
START_TEST(a_table_is_summarised)
{
    char output[4096] = "";
    FILE *out = fopen("a.csv", "w");
    fprintf(out, "id;day;cut;carat;price\n");
    for (int r = 0; r < 200; r++)
        fprintf(out, "%d;2021-01-%02d;%s;%s;%d.5\n", r + 7, r % 28 + 1, r % 3 ? "Ideal" : "Fair",
                r % 10 ? "20" : "", r);
    fclose(out);
    out = fmemopen(output, sizeof output, "w");
    ck_assert(dt__data_is_table("a.csv") && !dt__data_is_table("b.csv"));
    EXPECT_OK(dt__data_inspect(&config, "a.csv", out, out));
    fclose(out);
    static const char *const lines[] = {
        "200 rows, 5 columns",
        "id                       feature identifier        0      200",
        "day                      feature date              0       28",
        "cut                      feature category          0        2",
        "carat                    feature integer          20        1          20          20     "
        "     20  20 | 20",
        "price                    label   number            0      200         0.5         100     "
        "  199.5",
        "ignore = id ",
        "; dates and times become numbers (data.dates): day\n",
        "missing = mean",
        "task = regress",
        "label = price   ; the column to predict: is it this one?",
        "; all features are normalised, as some are large (up to 20"};
    for (size_t i = 0; i < COUNT(lines); i++)
        ck_assert_msg(strstr(output, lines[i]), "no '%s' in\n%s", lines[i], output);
}
END_TEST

/* Integers that rise, even with gaps, are row numbers. A numeric label is an amount if it has many
 * values or its least value is above 1; few values from 0 or 1 on are classes. Keys of [data] that
 * inspect does not use cause no error. */
START_TEST(row_numbers_and_amounts_are_recognised)
{
    char output[4096];
    FILE *file = fopen("a.csv", "w");
    fprintf(file, "id,few,2020,y,pulse\n");
    for (int r = 0; r < 300; r++)
        fprintf(file, "%d,%d,,%d,%d\n", 3 * r + r % 2, r % 4, r * 7 % 50, 46 + r % 9);
    fclose(file);
    const char *const labels[] = {"data.label=y", "data.label=pulse", "data.label=few"};
    for (int i = 0; i < 3; i++) {
        const bool few_values = i == 2;
        FILE *out = fmemopen(output, sizeof output, "w");
        EXPECT_OK(dt_config_set(&config, labels[i]));
        EXPECT_OK(dt__data_inspect(&config, "a.csv", out, out));
        fclose(out);
        ck_assert_msg(strstr(output, "ignore = id,-3 "), "%s",
                      output); /* 2020 is a name here, so the
                                                                     * column is given by
                                                                     * position */
        ck_assert_msg(
            strstr(output,
                   few_values
                       ? "task = classify   ; if each number is a class; if numbers are counted"
                       : "task = regress   ; or classify, if each number is a class"),
            "%s", output);
    }
}
END_TEST

/* A column of nearly distinct texts is not a category, unless data.categories lists it. */
START_TEST(identifiers_are_not_categories)
{
    FILE *plain = fopen("b.csv", "w"); /* without a header the message gives the column's number */
    for (int r = 0; r < 300; r++)
        fprintf(plain, "%d,n%d\n", r % 2, r);
    fclose(plain);
    set("data.train=b.csv"), set("data.label=0"), set("data.header=no");
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "column 1: 300 different texts in 300 rows are too many for categories: leave it "
                "out with data.ignore=1");
    set("data.label=-1"), set("data.header=auto");
    FILE *out = fopen("a.csv", "w");
    fprintf(out, "name,y\n");
    for (int r = 0; r < 300; r++)
        fprintf(out, "n%d,%d\n", r, r % 2);
    fclose(out);
    set("data.train=a.csv");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "column name: 300 different texts in 300 rows");
    set("data.categories=name");
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->features, 301);
    dt__source_destroy(source);
    /* the message lists all such columns at once, after those that data.ignore lists already */
    out = fopen("a.csv", "w");
    fprintf(out, "id,a,b,n,c,y\n");
    for (int r = 0; r < 300; r++)
        fprintf(out, "i%d,a%d,b%d,%s%d,c%d,%d\n", r, r, r % 200, r ? "" : "x", r, r % 90, r % 2);
    fclose(out);
    set("data.categories=auto"), set("data.ignore=id");
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "2 columns have up to 300 different texts in 300 rows, too many for categories: "
                "leave them out with "
                "data.ignore=id,a,b, or keep those that data.categories lists; column n: 299 of "
                "300 different values "
                "are numbers, others are not, such as 'x0'");
    set("data.ignore=id,a,b,n");
    dt__source_destroy(survey());
}
END_TEST

enum { WIDE_ROWS = 40, WIDE = 30000 };

/* Rows longer than the read block are read from the middle of the file, also backwards: a wrong
 * offset, line or end of a record shows as a wrong value. */
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
            EXPECT(batch.x[f] == (float)((r * 7919 + f) % 10007) + 0.5f);
    }
    dt__table_destroy(table);
    dt__source_destroy(source);
}
END_TEST

/* Integers in 0..255 are stored as bytes; any other value makes the column floats. Both give the
 * same rows. */
START_TEST(bytes_and_floats_are_distinguished)
{
    const float bytes[] = {0, 255}, floats[] = {0, 255.5f};
    set("data.train=a.csv");
    put_text("a.csv", "0,0\n255,1\n");
    expect_rows(bytes, NULL, 2, 1);
    put_text("a.csv", "0,0\n255.5,1\n");
    expect_rows(floats, NULL, 2, 1);
}
END_TEST

DATA_SUITE("csv", {forms_are_read, COUNT(FORMS)}, {damage_gives_its_message, COUNT(DAMAGE)},
           {text_labels_are_sorted, 1}, {many_classes_are_declared, 1},
           {names_of_classes_are_text, 1}, {number_labels_are_classes, 1},
           {targets_may_be_several, 1}, {targets_may_have_names_with_commas, 1},
           {evaluation_fits_the_schema, 1}, {files_must_agree, 1}, {unknown_columns_are_named, 1},
           {texts_unknown_in_training_give_a_warning, 1}, {files_are_read_by_their_own_headers, 1},
           {separators_are_detected, 4}, {runs_of_blanks_are_separators, COUNT(RUNS)},
           {texts_may_have_separators, 1}, {decimals_may_have_commas, 4},
           {decimals_may_be_quoted, 1}, {points_with_decimal_commas_give_a_warning, 1},
           {columns_without_a_name_give_a_warning, 1}, {row_numbers_give_a_warning, 4},
           {a_header_is_named_by_its_line, 1}, {hashed_texts_are_not_counted, 1},
           {blanks_do_not_split_classes, 1}, {texts_are_categories, 1}, {gaps_are_filled, 1},
           {unusual_tables_give_their_message, COUNT(UNUSUAL)},
           {row_numbers_and_amounts_are_recognised, 1}, {identifiers_are_not_categories, 1},
           {a_table_is_summarised, 1}, {packed_files_are_read, 2},
           {data_after_a_gzip_member_is_checked, 4}, {packed_files_may_be_large, 2},
           {foreign_files_are_named, COUNT(FOREIGN)}, {rows_have_weights, 6},
           {weights_are_not_another_column, 4}, {rows_are_found_anywhere, 1},
           {bytes_and_floats_are_distinguished, 1})
