/* LIBSVM: rows, features counted by the greatest index, and what is malformed. */
#include "data_files.h"

START_TEST(rows_are_dense)
{
    const float x[] = {0, 0.5f, 0, 2, 0, 0, 0, 0, 1, 0, 0, -3};
    const int32_t labels[] = {1, 0, 1};
    put_text("a.svm", "+1 2:0.5 4:2 # a comment 9:9\n-1\n\n1  1:1\t4:-3 \r\n");
    set("data.train=a.svm");
    expect_rows(x, labels, 3, 4);
}
END_TEST

/* The format is told by the first line, whatever the file's name; two files share the widest
 * row. */
START_TEST(format_is_told_by_content)
{
    const float x[] = {1, 0, 0, 0, 0, 7};
    const int32_t labels[] = {3, 0};
    put_text("a", "3 1:1\n");
    put_text("b.txt", "0 3:7\n");
    set("data.train=a,b.txt");
    expect_rows(x, labels, 2, 3);
}
END_TEST

static const struct {
    const char *text, *message;
} DAMAGE[] = {
    {"1 1:2\n1 2:x\n", "a.svm:2: index 2: 'x' is not a number"},
    {"1 1:2\n1 2:nan\n", "a.svm:2: index 2: 'nan' is not a finite number"},
    {"1 1:2\n1 2\n", "a.svm:2: '2' is not index:value"},
    {"1 1:2\n1 0:1\n", "a.svm:2: '0:1' is not index:value with an index from 1"},
    {"1 1:2\n1 -1:1\n", "a.svm:2: '-1:1' is not index:value"},
    {"1 1:2\n1 99999999999999999999999:1\n", "a.svm:2: '99999999999999999999999:1' is not"},
    {"1 1:2\n1 16777217:1\n", "a.svm:2: '16777217:1' is not"},
    {"1 1:2\n1 2:1 2:1\n", "a.svm:2: index 2 does not rise"},
    {"1 1:2\n1:2\n", "a.svm:2: the label is empty"},
    {"1 1:2\n1.5 1:2\n", "a.svm:2: label '1.5' is not a class number"},
    {"1 1:2\n0 16777216:1\n", "a.svm:2: index 16777216: data of 19 bytes does not have so many"},
    {"1\n2\n", "a.svm: no row has a feature"},
    {"\n", "a.svm: the file has no rows"},
};

START_TEST(damage_is_named)
{
    put_text("a.svm", DAMAGE[_i].text);
    set("data.train=a.svm");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, DAMAGE[_i].message);
}
END_TEST

/* Evaluation data may be narrower than the model; features that the model does not have are left out. */
START_TEST(evaluation_fits_the_schema)
{
    put_text("a.svm", "1 3:1\n0 1:2\n");
    put_text("b.svm", "1 1:5\n");
    set("data.train=a.svm"), set("data.eval=b.svm");
    struct dt_source *source = survey(), *eval;
    EXPECT_OK(dt_source_survey(&config, DT_PART_EVAL, dt_source_schema(source), &eval));
    struct dt_table *table = open_table(eval);
    struct dt_batch batch = read_row(table, 0);
    ck_assert_float_eq(batch.x[0], 5);
    ck_assert_float_eq(batch.x[2], 0);
    dt_table_destroy(table);
    dt_source_destroy(eval);
    put_text("b.svm", "1 1:5\n0 4:1\n");
    EXPECT_OK(dt_source_survey(&config, DT_PART_EVAL, dt_source_schema(source), &eval));
    table = open_table(eval);
    for (int f = 0; f < 3; f++)
        ck_assert_float_eq(read_row(table, 1).x[f], 0);
    dt_table_destroy(table), dt_source_destroy(eval);
    dt_source_destroy(source);
}
END_TEST

/* data.features widens or narrows what the training data has. */
START_TEST(features_are_declared)
{
    const float narrow[] = {0, 0, 2, 0}, wide[] = {0, 0, 1, 0, 0, 2, 0, 0, 0, 0};
    put_text("a.svm", "1 3:1\n0 1:2\n");
    set("data.train=a.svm"), set("data.features=2");
    expect_rows(narrow, NULL, 2, 2);
    set("data.features=5");
    expect_rows(wide, NULL, 2, 5);
}
END_TEST

DATA_SUITE("libsvm", {rows_are_dense, 1}, {format_is_told_by_content, 1},
           {damage_is_named, COUNT(DAMAGE)}, {evaluation_fits_the_schema, 1},
           {features_are_declared, 1})
