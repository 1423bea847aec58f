/* Splits: which rows are for training, held out, for the test, or left out, by class, group and
 * time. Fails if a row, a group or an instant is on two sides, if a side lacks a class, if a gap is
 * too small, or if folds miss rows. */
#include "unit/suite.h"

#include "data/row_split.h"

enum { ROWS = 9000 }; /* more than two blocks of counts */

static uint32_t number[ROWS];
static double at[ROWS];

/* Makes classes of 50, 30, 15 and 5 %, groups of uneven sizes, and times of 7 rows each, all
 * mixed. */
static struct dt__split_keys keys_fill(bool stratum, bool group, bool time)
{
    static const uint32_t class_of[20] = {0, 0, 1, 0, 1, 0, 2, 0, 1, 0,
                                          3, 0, 1, 0, 2, 0, 1, 0, 2, 1};
    for (uint32_t row = 0; row < ROWS; row++) {
        number[row] = stratum ? class_of[row % 20] : row * 7919 % 9001 % 97 * (row % 3 + 1) / 3;
        at[row] = (double)(row * 7919u % ROWS / 7) * 60;
    }
    return (struct dt__split_keys){.rows = ROWS,
                                   .stratum = stratum ? number : NULL,
                                   .group = group ? number : NULL,
                                   .time = time ? at : NULL};
}

/* Checks that the counts are those of the rows, and that rank and select are inverse, across block
 * borders too. */
static void check_counts(const struct dt__split *split)
{
    uint64_t seen[DT__SIDES] = {0};
    for (uint64_t row = 0; row < split->rows; row++) {
        const enum dt__side side = dt__split_side(split, row);
        for (int s = 0; s < DT__SIDES; s++)
            EXPECT(dt__split_before(split, (enum dt__side)s, row) == seen[s]);
        EXPECT(dt__split_select(split, side, seen[side]) == row);
        seen[side]++;
    }
    for (int s = 0; s < DT__SIDES; s++) {
        EXPECT(split->count[s] == seen[s]);
        EXPECT(dt__split_before(split, (enum dt__side)s, split->rows) == seen[s]);
    }
}

/* The held-out rows are exactly as many as requested, and the same as in versions before stratified
 * splits. */
START_TEST(random_rows_are_those_of_earlier_versions)
{
    static const uint64_t cases[][2] = {{2, 1}, {64, 57}, {4096, 1}, {4097, 3500}, {20000, 1999}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t rows = cases[i][0], count = cases[i][1];
        const struct dt__split_rule rule = {.seed = 5, .held_out = (double)count / (double)rows};
        struct dt__split split;
        struct dt_perm perm;
        EXPECT_OK(dt__split_make(&rule, &(struct dt__split_keys){.rows = rows}, &split));
        check_counts(&split);
        ck_assert_uint_eq(split.count[DT__HELD_OUT], count);
        dt__perm_init(&perm, rows, dt__rng_make(5, DT_STREAM_HOLDOUT, 0, 0));
        for (uint64_t j = 0; j < rows; j++)
            EXPECT(dt__split_side(&split, dt__perm_at(&perm, j)) ==
                   (j < count ? DT__HELD_OUT : DT__TRAIN));
        dt__split_free(&split);
    }
}
END_TEST

/* The test is a fraction of all rows; the held-out rows are a fraction of the others. */
START_TEST(each_side_has_its_fraction_of_each_class)
{
    const struct dt__split_rule rule = {.seed = 3, .test = 0.1, .held_out = 0.2};
    const struct dt__split_keys keys = keys_fill(true, false, false);
    struct dt__split split;
    uint64_t rows[4] = {0}, side_count[4][DT__SIDES] = {{0}};
    EXPECT_OK(dt__split_make(&rule, &keys, &split));
    check_counts(&split);
    ck_assert_uint_eq(split.count[DT__TEST], 900);
    ck_assert_uint_eq(split.count[DT__HELD_OUT], 1620);
    for (uint64_t row = 0; row < ROWS; row++) {
        rows[number[row]]++;
        side_count[number[row]][dt__split_side(&split, row)]++;
    }
    for (int c = 0; c < 4; c++) {
        const double test = (double)rows[c] * 0.1, expected_held_out = (double)rows[c] * 0.18;
        EXPECT((double)side_count[c][DT__TEST] >= test - 1 &&
               (double)side_count[c][DT__TEST] <= test + 1);
        EXPECT((double)side_count[c][DT__HELD_OUT] >= expected_held_out - 2 &&
               (double)side_count[c][DT__HELD_OUT] <= expected_held_out + 2);
    }
    dt__split_free(&split);
}
END_TEST

START_TEST(groups_stay_together)
{
    const struct dt__split_rule rule = {.seed = 3, .test = 0.1, .held_out = 0.2};
    const struct dt__split_keys keys = keys_fill(false, true, false);
    struct dt__split split;
    int side[97];
    memset(side, -1, sizeof side);
    EXPECT_OK(dt__split_make(&rule, &keys, &split));
    check_counts(&split);
    for (uint64_t row = 0; row < ROWS; row++) {
        const int row_side = (int)dt__split_side(&split, row);
        EXPECT(side[number[row]] == -1 || side[number[row]] == row_side);
        side[number[row]] = row_side;
    }
    EXPECT(split.count[DT__TEST] > 600 && split.count[DT__TEST] < 1200);
    EXPECT(split.count[DT__HELD_OUT] > 1300 && split.count[DT__HELD_OUT] < 2000);
    EXPECT(!split.count[DT__LEFT_OUT]);
    dt__split_free(&split);
}
END_TEST

/* Sets the earliest and the latest time of each side. */
static void sides_span(const struct dt__split *split, double first[DT__SIDES],
                       double last[DT__SIDES])
{
    for (int s = 0; s < DT__SIDES; s++)
        first[s] = 1e9, last[s] = -1;
    for (uint64_t row = 0; row < split->rows; row++) {
        const enum dt__side side = dt__split_side(split, row);
        if (at[row] < first[side]) first[side] = at[row];
        if (at[row] > last[side]) last[side] = at[row];
    }
}

/* Times are 60 seconds apart; each has 7 rows. */
START_TEST(the_latest_rows_are_held_out_after_a_gap)
{
    static const struct dt__gap gaps[] = {{0, false}, {20, false}, {120, true}, {121, true}};
    static const double apart[] = {60, 60 + 180, 120, 180};
    const struct dt__split_keys keys = keys_fill(false, false, true);
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        const struct dt__split_rule rule = {.test = 0.1, .held_out = 0.2, .gap = gaps[i]};
        struct dt__split split;
        double first[DT__SIDES], last[DT__SIDES];
        EXPECT_OK(dt__split_make(&rule, &keys, &split));
        check_counts(&split);
        sides_span(&split, first, last);
        ck_assert_double_eq(first[DT__TEST] - last[DT__HELD_OUT], apart[i]);
        ck_assert_double_eq(first[DT__HELD_OUT] - last[DT__TRAIN], apart[i]);
        EXPECT(split.count[DT__TEST] > 893 && split.count[DT__TEST] < 907);
        dt__split_free(&split);
    }
}
END_TEST

/* A group is placed by its latest row. */
START_TEST(groups_in_time_stay_together)
{
    const struct dt__split_rule rule = {.held_out = 0.2};
    struct dt__split_keys keys = keys_fill(false, true, true);
    struct dt__split split;
    int side[100];
    for (uint32_t row = 0; row < ROWS; row++)
        number[row] = (uint32_t)(at[row] / 60) % 100 * 2 / 3; /* mixed in time too */
    memset(side, -1, sizeof side);
    EXPECT_OK(dt__split_make(&rule, &keys, &split));
    check_counts(&split);
    double latest[DT__SIDES] = {0}, group_latest[100] = {0};
    for (uint64_t row = 0; row < ROWS; row++) {
        const int row_side = (int)dt__split_side(&split, row);
        EXPECT(side[number[row]] == -1 || side[number[row]] == row_side);
        side[number[row]] = row_side;
        if (at[row] > group_latest[number[row]]) group_latest[number[row]] = at[row];
    }
    double least = 1e9;
    for (int g = 0; g < 67; g++) {
        if (side[g] == DT__TRAIN && group_latest[g] > latest[DT__TRAIN])
            latest[DT__TRAIN] = group_latest[g];
        if (side[g] == DT__HELD_OUT && group_latest[g] < least) least = group_latest[g];
    }
    EXPECT(latest[DT__TRAIN] < least);
    dt__split_free(&split);
}
END_TEST

/* Sets the fold that holds each row out, or -1. */
static void folds_read(struct dt__split_rule rule, const struct dt__split_keys *keys,
                       int32_t fold[ROWS])
{
    for (uint64_t row = 0; row < ROWS; row++)
        fold[row] = -1;
    for (rule.fold = 0; rule.fold < rule.folds; rule.fold++) {
        struct dt__split split;
        EXPECT_OK(dt__split_make(&rule, keys, &split));
        check_counts(&split);
        for (uint64_t row = 0; row < ROWS; row++) {
            if (dt__split_side(&split, row) != DT__HELD_OUT) continue;
            EXPECT(fold[row] == -1);
            fold[row] = (int32_t)rule.fold;
        }
        dt__split_free(&split);
    }
}

/* Each row outside of the test is held out by one fold; in splits by time, the earliest rows by
 * none. */
START_TEST(folds_cover_the_rows)
{
    for (int kind = 0; kind < 4; kind++) {
        struct dt__split_rule rule = {.seed = 1, .test = 0.1, .folds = 5};
        const struct dt__split_keys keys = keys_fill(kind == 1, kind == 2, kind == 3);
        struct dt__split split;
        static int32_t fold[ROWS];
        uint64_t count[6] = {0}, class_3[6] = {0};
        double earliest[6] = {1e9, 1e9, 1e9, 1e9, 1e9, 1e9};
        folds_read(rule, &keys, fold);
        for (int f = -1; f < 5; f++) {
            rule.fold = f < 0 ? 0 : (uint64_t)f;
            EXPECT_OK(dt__split_make(&rule, &keys, &split));
            for (uint64_t row = 0; row < ROWS; row++) {
                const enum dt__side side = dt__split_side(&split, row);
                if (f >= 0) EXPECT((side == DT__HELD_OUT) == (fold[row] == f));
                if (f >= 0 && kind == 3 && side == DT__TRAIN)
                    EXPECT(fold[row] == -1 || fold[row] > f);
                if (side == DT__TEST) EXPECT(fold[row] == -1);
                if (fold[row] != f) continue;
                count[f + 1]++;
                class_3[f + 1] += kind == 1 && number[row] == 3;
                if (at[row] < earliest[f + 1]) earliest[f + 1] = at[row];
            }
            dt__split_free(&split);
        }
        const uint64_t per_fold = kind == 3 ? 1350 : 1620, slack = kind == 2   ? 300
                                                                   : kind == 3 ? 7
                                                                               : 1;
        for (int f = 1; f < 6; f++) {
            EXPECT(count[f] + slack >= per_fold && count[f] <= per_fold + slack);
            /* of 450 rows, less a tenth for the test */
            if (kind == 1) EXPECT(class_3[f] >= 80 && class_3[f] <= 82);
            if (kind == 3 && f > 1) EXPECT(earliest[f] < earliest[f - 1]);
        }
    }
}
END_TEST

START_TEST(empty_sides_are_errors)
{
    const struct dt__split_keys two = {.rows = 2}, one_group = {.rows = ROWS, .group = number};
    struct dt__split_rule rule = {.held_out = 0.1, .key = "data.eval_fraction"};
    struct dt__split split;
    EXPECT_FAIL(dt__split_make(&rule, &two, &split), DT_EMISMATCH,
                "data.eval_fraction holds out 0 of 2 rows; expected some but not all");
    rule.held_out = 0.9;
    EXPECT_FAIL(dt__split_make(&rule, &two, &split), DT_EMISMATCH, "holds out 2 of 2 rows");
    rule = (struct dt__split_rule){.test = 0.9};
    EXPECT_FAIL(dt__split_make(&rule, &two, &split), DT_EMISMATCH,
                "data.test_fraction takes 2 of 2 rows; expected some but not all");
    memset(number, 0, sizeof number);
    rule = (struct dt__split_rule){.held_out = 0.1, .key = "data.eval_fraction"};
    EXPECT_FAIL(dt__split_make(&rule, &one_group, &split), DT_EMISMATCH,
                "holds out 9000 of 9000 rows; expected some but not all (rows of one group stay "
                "together: data.group)");
    const struct dt__split_keys dated = keys_fill(false, false, true);
    rule.gap = (struct dt__gap){8500, false};
    EXPECT_FAIL(dt__split_make(&rule, &dated, &split), DT_EMISMATCH,
                "data.gap leaves none of 9000 rows to train on; expected a smaller gap");
    rule = (struct dt__split_rule){.folds = 3, .fold = 2, .key = "search.folds"};
    EXPECT_FAIL(dt__split_make(&rule, &two, &split), DT_EMISMATCH,
                "search.folds holds out 0 of 2 rows; expected no more folds than rows");
    const struct dt__split_keys two_times = {.rows = 2, .time = (double[]){1, 2}};
    rule = (struct dt__split_rule){.folds = 2, .fold = 1, .key = "data.folds"};
    EXPECT_FAIL(dt__split_make(&rule, &two_times, &split), DT_EMISMATCH,
                "data.folds: fold 1 has no earlier rows to train on (2 rows, 2 distinct times); "
                "expected fewer folds or more times");
    rule = (struct dt__split_rule){.seed = 1};
    EXPECT_OK(dt__split_make(&rule, &two, &split));
    ck_assert_uint_eq(dt__split_before(&split, DT__TRAIN, 2), 2);
    ck_assert_uint_eq(dt__split_before(&split, DT__HELD_OUT, 2), 0);
    ck_assert_uint_eq(dt__split_select(&split, DT__TRAIN, 1), 1);
}
END_TEST

SUITE("split", random_rows_are_those_of_earlier_versions, each_side_has_its_fraction_of_each_class,
      groups_stay_together, the_latest_rows_are_held_out_after_a_gap, groups_in_time_stay_together,
      folds_cover_the_rows, empty_sides_are_errors)
