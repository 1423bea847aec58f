/* Classes: numbers that are positions, numbers that are names, data.class_names, and the labels of
 * other files. Fails if there is a class that no row has, or if a label gets another class. */
#include "data_files.h"

/* Writes IDX labels of one byte each, and an IDX file of equally many rows, of one byte each. */
static void put_idx(const char *x, const char *y, const unsigned char *labels, unsigned char rows)
{
    unsigned char head[12] = {0, 0, 8, 2, 0, 0, 0, rows, 0, 0, 0, 1}, bytes[64];
    memcpy(bytes, head, 12);
    memset(bytes + 12, 7, rows);
    put_bytes(x, bytes, 12u + rows);
    head[3] = 1;
    memcpy(bytes, head, 8);
    memcpy(bytes + 8, labels, rows);
    put_bytes(y, bytes, 8u + rows);
}

/* Returns the classes of a source's rows and their names as a text, such as "0 1 0 : 1 2", or "0 1
 * : #2" for two classes without names. */
static const char *classes_of(struct dt_source *source)
{
    static char text[256];
    const struct dt_schema *schema = dt__source_schema(source);
    struct dt_table *table = open_table(source);
    size_t n = 0;
    for (uint64_t r = 0; r < dt__source_rows(source); r++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d ", read_row(table, r).label[0]);
    n += (size_t)snprintf(text + n, sizeof text - n, ":");
    for (int c = 0; schema->label_names && c < schema->classes; c++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s", schema->label_names[c]);
    if (!schema->label_names) snprintf(text + n, sizeof text - n, " #%d", schema->classes);
    dt__table_destroy(table);
    return text;
}

static struct dt_source *evaluate(const struct dt_source *train, const char *eval)
{
    struct dt_source *source;
    set(eval);
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(train), &source));
    return source;
}

static const struct {
    const char *labels, *names, *expected; /* one character per label; data.class_names; result of
                                            * classes_of */
} RULES[] = {
    {"01", "", "0 1 : #2"},
    {"2010", "", "2 0 1 0 : #3"},
    {"12", "", "0 1 : 1 2"},
    {"4224", "", "1 0 0 1 : 2 4"},
    {"7123567", "", "5 0 1 2 3 4 5 : 1 2 3 5 6 7"},
    {"013", "", "0 1 2 : 0 1 3"},
    {"02", "a,b,c", "0 2 : a b c"},
    {"12", "a,b", "0 1 : a b"},
    {"ba10", "a,b", "1 0 1 0 : a b"},
    {"4224", "two,four", "1 0 0 1 : two four"},
    {"12", "2,1", "1 0 : 2 1"},
    {"01", "1,0", "1 0 : 1 0"},
    {"013", "0,1,2,3", "0 1 3 : 0 1 2 3"},
    {"24", "a,b,c,d,e,f", "2 4 : a b c d e f"},
    {"10", "01, +0", "0 1 : 1 0"},
};

static void put_rule(int _i, const char *format)
{
    FILE *out = fopen("a", "w");
    ck_assert_ptr_nonnull(out);
    for (const char *label = RULES[_i].labels; *label; label++)
        fprintf(out, format, *label);
    ck_assert_int_eq(fclose(out), 0);
    char names[64];
    snprintf(names, sizeof names, "data.class_names=%s", RULES[_i].names);
    set("data.train=a");
    set(names);
}

START_TEST(numbers_in_csv)
{
    put_rule(_i, "5,%c\n");
    struct dt_source *source = survey();
    ck_assert_str_eq(classes_of(source), RULES[_i].expected);
    dt__source_destroy(source);
}
END_TEST

START_TEST(numbers_in_libsvm)
{
    put_rule(_i, "%c 1:5\n");
    set("data.format=libsvm");
    struct dt_source *source = survey(), *eval;
    ck_assert_str_eq(classes_of(source), RULES[_i].expected);
    eval = evaluate(source, "data.eval=a");
    ck_assert_str_eq(classes_of(eval), RULES[_i].expected);
    dt__source_destroy(eval), dt__source_destroy(source);
}
END_TEST

/* The same labels are given as bytes in a file, for evaluation too, and as 32-bit numbers in
 * memory. */
START_TEST(numbers_that_are_binary)
{
    unsigned char labels[16];
    int32_t numbers[16];
    float x[16] = {0};
    char names[64];
    const size_t rows = strlen(RULES[_i].labels);
    for (size_t i = 0; i < rows; i++)
        numbers[i] = labels[i] = (unsigned char)(RULES[_i].labels[i] - '0');
    if (labels[0] > 9) return; /* the label is a text */
    put_idx("x", "y", labels, (unsigned char)rows);
    snprintf(names, sizeof names, "data.class_names=%s", RULES[_i].names);
    set("data.train=x"), set("data.train_labels=y"), set("data.eval_labels=y"), set(names);
    struct dt_source *source = survey(), *eval = evaluate(source, "data.eval=x");
    ck_assert_str_eq(classes_of(source), RULES[_i].expected);
    ck_assert_str_eq(classes_of(eval), RULES[_i].expected);
    dt__source_destroy(eval), dt__source_destroy(source);
    const struct dt_arrays arrays = {.rows = rows, .features = 1, .label = numbers, .x = x};
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
    ck_assert_str_eq(classes_of(source), RULES[_i].expected);
    dt__source_destroy(source);
}
END_TEST

/* Shards store a class by its position, and keep the name it has in the files. */
START_TEST(numbers_in_shards)
{
    put_rule(_i, "5,%c\n");
    EXPECT_OK(dt__shard_write(&config, "out", 1));
    set("data.class_names="), set("data.train=out/*.h5");
    struct dt_source *source = survey(), *eval;
    set("data.format=csv");
    eval = evaluate(source, "data.eval=a");
    ck_assert_str_eq(classes_of(eval), RULES[_i].expected);
    dt__source_destroy(eval), dt__source_destroy(source);
}
END_TEST

static const struct {
    const char *text, *option, *message;
} DAMAGE[] = {
    {"1,1\n1,2\n", "data.class_names=dummy,a,b",
     "data.class_names has 3 names, but no label is 0: the labels are 2 different numbers, 1 to 2: "
     "expected one name for each number, in numeric order, and no name ('dummy') for class 0"},
    {"1,2\n1,4\n", "data.class_names=d,a,d2,b,c", "has 5 names, but no label is 0"},
    {"1,2\n1,4\n", "data.class_names=a,b,c",
     "data.class_names has 3 names, but the labels are 2 different numbers, 2 to 4: expected "
     "one name for each number"},
    {"1,0\n1,3\n", "data.class_names=1,0", "label '3' is none of the 2 classes"},
    {"1,0\n1,1\n", "data.class_names=0,1.5", "'1.5' cannot name class 1"},
    {"1,0\n1,1\n", "data.class_names=1,01", "two classes are named '1'"},
    {"1,-3\n1,1\n", "", "a.csv:1: label -3: set model.task=regress"},
    {"1,2\n1,1000\n", "", "labels are numbers up to 1000: set model.task=regress"},
    {"1,2\n1,5e12\n", "", "labels are numbers up to 5000000000000: set model.task=regress"},
    {"1,2\n1,2\n", "", "every label is 2: a classifier needs two classes"},
};

START_TEST(damage_gives_its_message)
{
    put_text("a.csv", DAMAGE[_i].text);
    set("data.train=a.csv");
    if (*DAMAGE[_i].option) set(DAMAGE[_i].option);
    const dt_status status = try_survey();
    ck_assert_int_eq(dt_status_exit_code(status), 1);
    ck_assert_msg(strstr(dt_error_text(), DAMAGE[_i].message), "message is '%s'", dt_error_text());
}
END_TEST

/* Numbers of any size and sign are names of classes with model.task=classify. */
START_TEST(large_numbers_may_be_declared)
{
    put_text("a.csv", "1,5000000000\n1,-7\n1,12\n1,-7\n");
    set("data.train=a.csv"), set("model.task=classify");
    struct dt_source *source = survey();
    ck_assert_str_eq(classes_of(source), "2 0 1 0 : -7 12 5000000000");
    dt__source_destroy(source);
}
END_TEST

/* A class in the middle that training lacks is unknown, unless data.class_names declares it. */
START_TEST(a_class_without_rows_may_be_declared)
{
    put_idx("x", "y", (const unsigned char[]){0, 2, 3, 0}, 4);
    put_idx("v", "w", (const unsigned char[]){3, 1, 2, 0}, 4);
    set("data.train=x"), set("data.train_labels=y"), set("data.eval=v"), set("data.eval_labels=w");
    struct dt_source *source = survey(), *eval;
    EXPECT_FAIL(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval),
                DT_EFORMAT,
                "w: row 1: label 1 was never seen in training; train with data.class_names "
                "to declare classes that no row has");
    dt__source_destroy(source);
    set("data.class_names=a,b,c,d");
    source = survey(), eval = evaluate(source, "data.eval=v");
    ck_assert_str_eq(classes_of(eval), "3 1 2 0 : a b c d");
    dt__source_destroy(eval), dt__source_destroy(source);
}
END_TEST

/* Classes without names in a schema of an earlier version are the positions 0..K; only -1 and 1
 * have names. */
START_TEST(earlier_schemas_keep_their_classes)
{
    char *names[] = {"-1", "1"};
    struct dt_schema schema = {.features = 1, .dense = 1, .classes = 3, .scale = 1};
    struct dt_source *eval;
    put_text("a.csv", "5,1\n5,2\n");
    set("data.eval=a.csv");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, &schema, &eval));
    ck_assert_str_eq(classes_of(eval), "1 2 : #3");
    dt__source_destroy(eval);
    const int32_t signs[] = {1, -1};
    const float x[] = {0, 0};
    const struct dt_arrays arrays = {.rows = 2, .features = 1, .label = signs, .x = x};
    schema.classes = 2, schema.label_names = names;
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, &schema, &eval));
    ck_assert_str_eq(classes_of(eval), "1 0 : -1 1");
    dt__source_destroy(eval);
}
END_TEST

/* Names and texts of an earlier model may have blanks; a name or text that matches exactly takes
 * precedence. */
START_TEST(texts_of_earlier_models_keep_their_blanks)
{
    char *names[] = {" no", "no"}, *texts[] = {" Rome", "Rome", " Paris"};
    struct dt_column column = {.kind = DT_COLUMN_CATEGORY, .categories = texts, .ncategories = 3};
    struct dt_schema schema = {.features = 4,
                               .dense = 4,
                               .classes = 2,
                               .scale = 1,
                               .ncolumns = 1,
                               .label_names = names,
                               .columns = &column};
    struct dt_source *eval;
    column.fill = NAN;
    put_text("a.csv", " Rome, no\nRome,no\nParis,no \n Paris, no\n");
    set("data.eval=a.csv"), set("data.header=no");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, &schema, &eval));
    ck_assert_str_eq(classes_of(eval), "0 1 1 0 :  no no");
    struct dt_table *table = open_table(eval);
    const int feature[] = {0, 1, 2, 2};
    for (uint64_t r = 0; r < 4; r++)
        ck_assert_float_eq(read_row(table, r).x[feature[r]], 1);
    dt__table_destroy(table), dt__source_destroy(eval);
}
END_TEST

/* Blanks at the ends do not make a text different, in dictionaries or in hashes. */
START_TEST(blanks_of_new_texts_are_removed)
{
    char bits[32];
    snprintf(bits, sizeof bits, "data.hash_bits=%d", 4 * _i);
    put_text("a.csv", "Rome , yes\n Rome,no\n\tRome,yes \n\"Rome \",no\n");
    set("data.train=a.csv"), set("data.header=no"), set(bits);
    struct dt_source *source = survey();
    ck_assert_str_eq(classes_of(source), "1 0 1 0 : no yes");
    ck_assert_int_eq(dt__source_schema(source)->features, _i ? 16 : 2);
    struct dt_table *table = open_table(source);
    float x[16];
    memcpy(x, read_row(table, 0).x, (_i ? 16 : 2) * sizeof *x);
    for (uint64_t r = 1; r < 4; r++)
        ck_assert_mem_eq(read_row(table, r).x, x, (_i ? 16 : 2) * sizeof *x);
    dt__table_destroy(table), dt__source_destroy(source);
}
END_TEST

DATA_SUITE("labels", {numbers_in_csv, COUNT(RULES)}, {numbers_in_libsvm, COUNT(RULES)},
           {numbers_that_are_binary, COUNT(RULES)}, {numbers_in_shards, COUNT(RULES)},
           {damage_gives_its_message, COUNT(DAMAGE)}, {large_numbers_may_be_declared, 1},
           {a_class_without_rows_may_be_declared, 1}, {earlier_schemas_keep_their_classes, 1},
           {texts_of_earlier_models_keep_their_blanks, 1}, {blanks_of_new_texts_are_removed, 2})
