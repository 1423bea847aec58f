/* A program that embeds the library may use a locale with a decimal comma; numbers in
 * configurations, data, descriptions and output still have points. Fails if the library calls plain
 * strtod or printf. */
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>

#include "data/augment.h"
#include "data_files.h"
#include "model_text.h"
#include "report/report.h"

/* LC_NUMERIC of a locale in the format of localedef: a header with the number of items, six, and
 * their positions, then the items. */
static const unsigned char NUMERIC[] =
    "\x14\x11\x03\x20\6\0\0\0\x20\0\0\0\x22\0\0\0\x23\0\0\0\x24\0\0\0\x28\0\0\0\x2c\0\0\0"
    ",\0\0\0,\0\0\0\0\0\0\0ANSI_X3.4-1968";

/* Returns false if the C library does not accept this locale. */
static bool use_comma_locale(void)
{
    ck_assert_int_eq(mkdir("comma", 0700), 0);
    put_bytes("comma/LC_NUMERIC", NUMERIC, sizeof NUMERIC);
    setenv("LOCPATH", home, 1);
    return setlocale(LC_NUMERIC, "comma") && !strcmp(localeconv()->decimal_point, ",");
}

static void expect_data(const char *path, const char *text, const char *task)
{
    put_text(path, text);
    set(task);
    char train[64];
    snprintf(train, sizeof train, "data.train=%s", path);
    set(train);
    struct dt_source *source = survey();
    struct dt_table *table = open_table(source);
    ck_assert_float_eq(read_row(table, 0).x[0], 0.0125f);
    ck_assert_float_eq(read_row(table, 1).x[0], 0.5f);
    dt__table_destroy(table), dt__source_destroy(source);
}

static void expect_json(void)
{
    struct dt_schema schema = {.features = 1, .classes = 2, .scale = 1};
    struct dt_rows *rows;
    uint64_t line;
    bool end;
    float x;
    char text[] = "[1.25e-2]\n[0.5]\n";
    FILE *in = fmemopen(text, strlen(text), "r");
    EXPECT_OK(dt__rows_open(in, "rows", &schema, NULL, &rows));
    EXPECT_OK(dt__rows_next(rows, &x, &line, &end));
    ck_assert_float_eq(x, 0.0125f);
    dt__rows_close(rows);
    fclose(in);
}

START_TEST(numbers_have_points)
{
    char *text, real[DT_REAL_TEXT];
    struct dt__augment augment;
    struct dt_text json = {0};
    if (!use_comma_locale()) return;
    set("train.lr=0.25");
    ck_assert_double_eq(config.train.lr, 0.25);
    EXPECT_OK(dt_config_print(&config, &text));
    ck_assert_ptr_nonnull(strstr(text, "lr = 0.25\n"));
    dt_free(text);
    ck_assert_str_eq(dt__real_text(0.1, real), "0.1");
    expect_data("a.csv", "a,y\n1.25e-2,0\n0.5,1\n", "model.task=classify");
    expect_data("b.csv", "a,y\n1.25e-2,0.5\n0.5,1.5\n", "model.task=regress");
    expect_data("a.svm", "0 1:1.25e-2\n1 1:0.5\n", "model.task=classify");
    expect_json();
    EXPECT_OK(dt__augment_parse("noise 0.5, shift 2", &augment));
    ck_assert_double_eq(augment.noise, 0.5);
    EXPECT_FAIL(dt__augment_parse("noise 0,5", &augment), DT_EUSAGE, "expected shift N");
    struct dt_model_desc desc = desc_of("dense 3 relu, dropout 0.5", 2, 2, DT_TASK_CLASSIFY);
    struct dt_model *model;
    EXPECT_OK(dt__model_create(&desc, &model));
    dt__model_destroy(model);
    EXPECT_OK(dt__json_add_float(&json, 0.1f));
    EXPECT_OK(dt__text_add(&json, " %g", 1.5));
    ck_assert_str_eq(json.data, "0.1 1.5");
    dt__text_free(&json);
    ck_assert_int_eq(dt_fail(DT_EIO, "%g", 2.5), DT_EIO);
    ck_assert_str_eq(dt_error_text(), "2.5");
    ck_assert_str_eq(localeconv()->decimal_point, ","); /* the program's locale is unchanged */
}
END_TEST

DATA_SUITE("locale", {numbers_have_points, 1})
