/* Fits on held-out rows: the temperature against the one that made the labels, cuts against brute
 * force, margins against sorted residuals, and invalid rules. */
#include "model/certainty.h"
#include "model_text.h"
#include "suite.h"

#include <math.h>

enum { ROWS = 600 };

static struct dt_model *model;
static struct dt_judged rows;
static struct dt_config config;

static void set_up(int task, int nout)
{
    const struct dt_model_desc desc = desc_of("linear", 1, nout, task);
    EXPECT_OK(dt__config_init(&config));
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__judged_alloc(model, ROWS, false, &rows));
}

static void tear_down(void)
{
    dt__judged_free(&rows);
    dt__model_destroy(model);
    dt__config_free(&config);
    model = NULL;
}

/* Fills rows of two classes; the logits are `factor` times those from which labels are drawn. */
static void fill_two(double factor)
{
    const struct dt_rng rng = dt__rng_make(3, DT_STREAM_TEST, 1, 0);
    set_up(DT_TASK_CLASSIFY, 1);
    for (int r = 0; r < ROWS; r++) {
        const double z = 2 * dt__rng_normal(&rng, (uint64_t)r) - 1;
        const int32_t label = dt__rng_uniform(&rng, 5000 + (uint64_t)r) < 1 / (1 + exp(-z));
        const float logit = (float)(factor * z);
        const struct dt_batch batch = {.rows = 1, .label = &label};
        dt__judged_set(model, &rows, (size_t)r, &batch, &logit);
    }
}

START_TEST(temperatures_undo_a_factor)
{
    struct dt_certainty once = {.known = 1, .positive = 1, .temperature = 1}, twice = once;
    fill_two(1);
    EXPECT_OK(dt_config_set(&config, "eval.calibrate=yes"));
    EXPECT_OK(dt__certainty_fit(&config, model, &rows, &once));
    ck_assert_double_eq_tol(once.temperature, 1, 0.2);
    ck_assert_double_eq(once.cut, 0);
    tear_down();
    fill_two(3);
    EXPECT_OK(dt_config_set(&config, "eval.calibrate=auto"));
    EXPECT_OK(dt__certainty_fit(&config, model, &rows, &twice));
    ck_assert_double_eq_tol(twice.temperature, 3 * once.temperature, 1e-5);
    tear_down();
    fill_two(once.temperature); /* no other temperature improves the loss */
    EXPECT_OK(dt_config_set(&config, "eval.calibrate=auto"));
    twice.temperature = 1;
    EXPECT_OK(dt__certainty_fit(&config, model, &rows, &twice));
    ck_assert_double_eq(twice.temperature, 1);
    tear_down();
    fill_two(1); /* every row is right: the loss has no minimum */
    for (int r = 0; r < ROWS; r++) {
        const int32_t label = r % 2;
        const float logit = label ? 1.5F : -1.5F;
        const struct dt_batch batch = {.rows = 1, .label = &label};
        dt__judged_set(model, &rows, (size_t)r, &batch, &logit);
    }
    EXPECT_OK(dt_config_set(&config, "eval.calibrate=yes"));
    EXPECT_OK(dt__certainty_fit(&config, model, &rows, &twice));
    ck_assert_double_eq(twice.temperature, 1);
    tear_down();
}
END_TEST

/* Counts rows at a cut: `out` is indexed by whether the label is positive, then by whether the row
 * is called positive. */
static void count(double cut, int positive, double out[2][2])
{
    out[0][0] = out[0][1] = out[1][0] = out[1][1] = 0;
    for (int r = 0; r < ROWS; r++) {
        const bool is_one = (double)rows.logits[r] > cut;
        out[rows.truth.label[r] == positive][is_one == (positive == 1)]++;
    }
}

static double goodness(const char *rule, double n[2][2])
{
    if (rule[0] == 'f') return 2 * n[1][1] / (2 * n[1][1] + n[0][1] + n[1][0]);
    if (rule[0] == 'b') return n[1][1] / (n[1][0] + n[1][1]) + n[0][0] / (n[0][0] + n[0][1]);
    if (rule[0] == 'c') return -(2 * n[0][1] + 7 * n[1][0]);
    return n[1][1] >= 0.75 * (n[1][0] + n[1][1]) ? -(n[1][1] + n[0][1]) : -INFINITY;
}

static void check_cut(const char *rule, int positive)
{
    struct dt_certainty found = {.known = 1, .positive = positive, .temperature = 1};
    double n[2][2];
    char key[64];
    fill_two(1);
    (void)snprintf(key, sizeof key, "eval.threshold=%s", rule);
    EXPECT_OK(dt_config_set(&config, key));
    EXPECT_OK(dt__certainty_fit(&config, model, &rows, &found));
    count(found.cut, positive, n);
    const double best = goodness(rule, n);
    for (int r = 0; r < ROWS; r++) {
        count((double)rows.logits[r], positive, n);
        EXPECT(goodness(rule, n) <= best + 1e-12);
    }
    /* the metrics and choices of the model use the same cut */
    count(found.cut, positive, n);
    dt__model_set_certainty(model, &found);
    double right = 0;
    for (int r = 0; r < ROWS; r++)
        right += dt__model_choose(model, rows.logits + r) == rows.truth.label[r];
    ck_assert_double_eq(right, n[0][0] + n[1][1]);
    tear_down();
}

START_TEST(no_cut_is_better)
{
    static const char *const rules[] = {"f1", "balanced_accuracy", "cost:2,7", "recall:0.75"};
    for (int i = 0; i < 8; i++)
        check_cut(rules[i % 4], i / 4);
}
END_TEST

START_TEST(rows_without_weight_choose_no_cut)
{
    static float weight[ROWS];
    struct dt_certainty found = {.known = 1, .positive = 1, .temperature = 1};
    fill_two(1);
    for (int r = 0; r < ROWS; r++)
        weight[r] = rows.truth.label[r] ? 0 : 1;
    rows.truth.weight = weight;
    EXPECT_OK(dt_config_set(&config, "eval.threshold=f1"));
    EXPECT_FAIL(dt__certainty_fit(&config, model, &rows, &found), DT_EMISMATCH,
                "0 held-out rows are of the positive class");
    rows.truth.weight = NULL;
    tear_down();
}
END_TEST

/* The residuals of target 0 are 1 to 600, those of target 1 twice as large. */
START_TEST(margins_are_quantiles_of_residuals)
{
    struct dt_certainty certainty = {.known = 1, .temperature = 1, .coverage = 0.9};
    float margin[2];
    set_up(DT_TASK_REGRESS, 2);
    for (int r = 0; r < ROWS; r++) {
        const float value[2] = {0, 0}, target[2] = {(float)(ROWS - r), (float)(-2 * (r + 1))};
        const struct dt_batch batch = {.rows = 1, .target = target};
        dt__judged_set(model, &rows, (size_t)r, &batch, value);
    }
    EXPECT_OK(dt__certainty_keep(model, &rows, &certainty));
    EXPECT_OK(dt__certainty_margin(&certainty, 2, 0.9, margin));
    ck_assert_float_eq(margin[0], 541); /* ceil(601 * 0.9) */
    ck_assert_float_eq(margin[1], 1082);
    EXPECT_OK(dt__certainty_margin(&certainty, 2, 0.5, margin));
    ck_assert_float_eq(margin[0], 301);
    EXPECT_FAIL(dt__certainty_margin(&certainty, 2, 0.999, margin), DT_EUSAGE, "at most 0.9983");
    dt_free(certainty.residual);
    certainty = (struct dt_certainty){.coverage = 0.999};
    EXPECT_FAIL(dt__certainty_keep(model, &rows, &certainty), DT_EMISMATCH, "at least 999");
    EXPECT_FAIL(dt__certainty_margin(&certainty, 2, 0.9, margin), DT_EUSAGE, "no residuals");
    tear_down();
}
END_TEST

START_TEST(rules_are_checked)
{
    static const char *const wrong[] = {"",         "0",      "1",           "f2",    "cost:1",
                                        "cost:1,0", "recall", "recall:1",    "0.5,1", "cost:1,2,3",
                                        "f1:1",     "nan",    "cost:1e200,1"};
    struct dt__threshold rule;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        EXPECT_FAIL(dt__threshold_parse(wrong[i], &rule), DT_EUSAGE, "eval.threshold");
    EXPECT_OK(dt__threshold_parse("cost:1,2.5", &rule));
    ck_assert_int_eq(rule.kind, DT__CUT_COST);
    ck_assert_double_eq(rule.number[1], 2.5);
    EXPECT_OK(dt__threshold_parse("0.25", &rule));
    ck_assert_double_eq(rule.number[0], 0.25);
}
END_TEST

SUITE("certainty", temperatures_undo_a_factor, no_cut_is_better, rows_without_weight_choose_no_cut,
      margins_are_quantiles_of_residuals, rules_are_checked)
