/* Dates in a table: which texts are dates, which numbers they become, and columns that do not show
 * whether day or month comes first. */
#include "text/date.h"
#include "data_files.h"

static dt_status learn(struct dt__dates *dates, const char *text)
{
    uint32_t word;
    return dt__dates_read(dates, true, text, strlen(text), &word);
}

/* Forms of 2021-03-04 13:25 (a Thursday, 18690 days after 1970-01-01) and of 2021-03-04 00:00. */
static const struct {
    const char *before, *text, *form; /* a date that shows the order of day and month, or NULL */
    float hour;
} FORMS[] = {
    {NULL, "2021-03-04", "Y-m-d", 0},
    {NULL, " 2021/3/4 ", "Y-m-d", 0},
    {NULL, "2021-03-04 00:00:00", "Y-m-d", 0},
    {NULL, "2021-03-04T13:25", "Y-m-d H:M", 13.4166667f},
    {NULL, "2021-03-04 13:27:59.123456+01:00", "Y-m-d H:M", 13.4166667f},
    {NULL, "2021-03-04T13:25:00Z", "Y-m-d H:M", 13.4166667f},
    {NULL, "4.3.2021", "d.m.Y", 0},
    {"31.12.1999", "04.03.2021 13:25", "d.m.Y H:M", 13.4166667f},
    {"31/12/1999", "4/3/2021", "d/m/Y", 0},
    {"12/31/1999", "3/4/2021", "m/d/Y", 0},
    {"12-31-1999", "3-4-2021 1:25 PM", "m-d-Y H:M", 13.4166667f},
    {"12/31/1999", "3/4/2021 12:00 AM", "m/d/Y", 0},
    {"12/31/1999", "3/4/2021 1:25 pm", "m/d/Y H:M", 13.4166667f},
};

START_TEST(dates_become_numbers)
{
    struct dt__dates dates = {0}, again;
    uint32_t word, other;
    float x[DT__DATE_NUMBERS] = {0}, known[DT__DATE_NUMBERS] = {0};
    char form[DT__DATE_FORM];
    const char *text = FORMS[_i].text;
    const float hour = FORMS[_i].hour;
    if (FORMS[_i].before) EXPECT_OK(learn(&dates, FORMS[_i].before));
    EXPECT_OK(dt__dates_read(&dates, true, text, strlen(text), &word));
    ck_assert(dt__dates_decide(&dates));
    dt__dates_form(&dates, form);
    ck_assert_str_eq(form, FORMS[_i].form);
    ck_assert(dt__dates_parse_form(form, &again));
    ck_assert_int_eq(dt__dates_numbers(&again), hour > 0 ? 5 : 4);
    dt__dates_put(&again, word, x);
    const float expected[] = {18690 + hour / 24, 2021, 3, 4, hour};
    for (int i = 0; i < dt__dates_numbers(&again); i++)
        ck_assert_float_eq(x[i], expected[i]);
    /* Dates in rows to predict may have the year first, whatever their form in training; the mean
     * of the days is a date too. */
    const char *plain = "2021-03-04 13:25";
    EXPECT_OK(dt__dates_read(&again, false, plain, hour > 0 ? 16 : 10, &other));
    dt__dates_put(&again, other, known);
    ck_assert(!memcmp(x, known, sizeof x));
    dt__dates_put_mean(&again, 18690 + (double)hour / 24, known);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(x[i], known[i]);
}
END_TEST

/* A column that has only times becomes the hour. */
START_TEST(times_become_hours)
{
    static const char *const texts[] = {"13:25", " 13:25:00 ", "1:25 PM", "13:25:00+01:00"};
    struct dt__dates dates = {0}, known;
    uint32_t word;
    char form[DT__DATE_FORM];
    float x;
    for (size_t i = 0; i < COUNT(texts); i++) {
        EXPECT_OK(dt__dates_read(&dates, i == 0, texts[i], strlen(texts[i]), &word));
        dt__dates_put(&dates, word, &x);
        ck_assert_float_eq(x, 13.4166667f);
    }
    ck_assert(dt__dates_decide(&dates));
    dt__dates_form(&dates, form);
    ck_assert_str_eq(form, "H:M");
    ck_assert(dt__dates_parse_form(form, &known));
    ck_assert_int_eq(dt__dates_numbers(&known), 1);
    ck_assert_str_eq(dt__date_name(&known, 0), "hour");
    EXPECT_OK(dt__dates_read(&known, false, "00:00", 5, &word));
    dt__dates_put(&known, word, &x);
    ck_assert_float_eq(x, 0);
    EXPECT_OK(dt__dates_read(&known, false, "00:03:36", 8, &word)); /* seconds count */
    dt__dates_put(&known, word, &x);
    ck_assert_float_eq(x, 0.06f);
    dt__dates_put_mean(&known, 12.5, &x);
    ck_assert_float_eq(x, 12.5f);
    EXPECT_FAIL(dt__dates_read(&known, false, "2021-03-04 13:25", 16, &word), DT_EFORMAT,
                "another format than the others of its column: expected H:M");
    EXPECT_FAIL(learn(&dates, "2021-03-04"), DT_EFORMAT, "another format than the others");
    EXPECT_FAIL(learn(&dates, "25:00"), DT_EFORMAT, "or a time alone");
    EXPECT_FAIL(learn(&dates, "16:9"), DT_EFORMAT, "or a time alone");
}
END_TEST

static const char *const INVALID[] = {"2021-02-30",
                                      "31/04/2021",
                                      "4/3/21",
                                      "13.13.2021",
                                      "0000-00-00",
                                      "2021-03/04",
                                      "2021-03-04x",
                                      "2021-03-04 24:00",
                                      "2021-03-04 1:99",
                                      "3/4/2021 13:00 PM",
                                      "1.2.3",
                                      "2021-3",
                                      "",
                                      "-1/2/2021",
                                      "2021-03-04 12:30 noon",
                                      "2021-03-04 12:3045",
                                      "2021-03-04 12:30:99",
                                      "2021-03-04 12:30....",
                                      "2021-03-04 12:30 17",
                                      "2021-03-04 12:30+x"};

START_TEST(invalid_dates_are_refused)
{
    struct dt__dates dates = {0};
    EXPECT_FAIL(learn(&dates, INVALID[_i]), DT_EFORMAT, "is not a date");
}
END_TEST

START_TEST(one_column_has_one_order)
{
    struct dt__dates dates = {0}, known;
    uint32_t word;
    EXPECT_OK(learn(&dates, "3/4/2021"));
    ck_assert(!dt__dates_decide(&dates));
    EXPECT_OK(learn(&dates, "13/4/2021"));
    ck_assert(dt__dates_decide(&dates));
    EXPECT_FAIL(learn(&dates, "4/13/2021"), DT_EFORMAT,
                "'4/13/2021' has another format than the others");
    dates = (struct dt__dates){0};
    EXPECT_OK(learn(&dates, "2021-03-04"));
    EXPECT_FAIL(learn(&dates, "4.3.2021"), DT_EFORMAT, "another format than the others");
    ck_assert(dt__dates_parse_form("d/m/Y", &known));
    EXPECT_FAIL(dt__dates_read(&known, false, "3.4.2021", 8, &word), DT_EFORMAT,
                "another format than the others of its column: expected ");
    EXPECT_FAIL(dt__dates_read(&known, false, "4/13/2021", 9, &word), DT_EFORMAT, "another format");
    static const char *const forms[] = {"",      "m",     "d",     "Y",       "Y-m",
                                        "Y/m/d", "x-m-Y", "d m Y", "Y-m-d H", "d.m.Y H:M:S"};
    for (size_t i = 0; i < COUNT(forms); i++)
        ck_assert_msg(!dt__dates_parse_form(forms[i], &known), "%s", forms[i]);
}
END_TEST

/* A table's dates: features and their names, gaps, an order that only a later row shows, and the
 * message if no row shows it. */
START_TEST(tables_have_dates)
{
    static const char *const names[] = {"when (days)",    "when (year)", "when (month)",
                                        "when (weekday)", "a",           "when (missing)"};
    put_text("a.csv", "when,a,y\n3/4/2021,1,0\n,2,1\n5/4/2021,3,0\n29/4/2021,4,1\n");
    set("data.train=a.csv"), set("data.missing=flag");
    struct dt_source *source = survey();
    const struct dt_schema *schema = dt__source_schema(source);
    ck_assert_int_eq(schema->features, 6);
    ck_assert_str_eq(schema->columns[0].categories[0], "d/m/Y");
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(schema->feature_names[i], names[i]);
    struct dt_table *table = open_table(source);
    const float rows[][6] = {
        {18720, 2021, 4, 6, 1, 0}, {18729 + 1.f / 3, 2021, 4, 1, 2, 1}, {18722, 2021, 4, 1, 3, 0}};
    for (size_t r = 0; r < COUNT(rows); r++)
        for (size_t f = 0; f < 6; f++)
            ck_assert_float_eq(read_row(table, r).x[f], rows[r][f]);
    dt__table_destroy(table);
    dt__source_destroy(source);
    put_text("a.csv", "when,a,y\n3/4/2021,1,0\n5/4/2021,2,1\n");
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "column 0 (when): no date shows whether day or month is first");
    put_text("a.csv", "when,a,y\n2021-04-03,1,0\nsoon,2,1\n");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "a.csv:3: column 'when': 'soon' is not a date");
    put_text("a.csv", "at,a,y\n6:00,1,0\n,2,1\n12:00,3,0\n");
    source = survey();
    ck_assert_str_eq(dt__source_schema(source)->feature_names[0], "at (hour)");
    table = open_table(source);
    /* the gap becomes the mean */
    for (size_t r = 0; r < 3; r++)
        ck_assert_float_eq(read_row(table, r).x[0], 6.0f + 3.0f * (float)r);
    dt__table_destroy(table);
    dt__source_destroy(source);
    put_text("a.csv", "at,a,y\n9:5,1,0\n25:00,2,1\n1:60,3,1\n"); /* invalid times make a category */
    source = survey();
    ck_assert_int_eq(dt__source_schema(source)->columns[0].kind, DT_COLUMN_CATEGORY);
    dt__source_destroy(source);
    put_text("a.csv", "when,a,y\n2021-04-03,1,0\n2021-04-04,2,1\n");
    set("data.dates=error");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "'2021-04-03' is a date: leave the column out");
}
END_TEST

DATA_SUITE("date", {dates_become_numbers, COUNT(FORMS)}, {times_become_hours, 1},
           {invalid_dates_are_refused, COUNT(INVALID)}, {one_column_has_one_order, 1},
           {tables_have_dates, 1})
