/* Fits the temperature, the cut and the residuals of a model to held-out rows. */
#include "model/certainty.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ----------------------------------------------------------------------------------- */

static size_t targets_of(const struct dt_model *model)
{
    return (size_t)(model->outputs.count / model->outputs.each);
}

dt_status dt__judged_alloc(const struct dt_model *model, size_t rows, bool weighs,
                           struct dt_judged *out)
{
    struct dt_judged judged = {.truth.rows = (int)rows};
    const size_t nout = (size_t)model->outputs.count, targets = targets_of(model);
    void *truth = NULL, *weight = NULL;
    dt_status status = rows > INT32_MAX
                           ? dt_fail(DT_EUSAGE, "%zu held-out rows, at most 2^31 - 1", rows)
                           : dt__alloc(rows, nout * sizeof(float), "outputs", &judged.logits);
    if (!status)
        status = model->classes ? dt__alloc(rows, sizeof(int32_t), "labels", &truth)
                                : dt__alloc(rows, targets * sizeof(float), "targets", &truth);
    if (!status && weighs) status = dt__alloc(rows, sizeof(float), "weights", &weight);
    *(model->classes ? (const void **)&judged.truth.label : (const void **)&judged.truth.target) =
        truth;
    judged.truth.weight = weight;
    if (status) dt__judged_free(&judged);
    *out = judged;
    return status;
}

void dt__judged_set(const struct dt_model *model, struct dt_judged *judged, size_t at,
                    const struct dt_batch *batch, const float *logits)
{
    const size_t rows = (size_t)batch->rows, nout = (size_t)model->outputs.count;
    const size_t targets = targets_of(model);
    const struct dt_batch *to = &judged->truth;
    memcpy(judged->logits + at * nout, logits, rows * nout * sizeof *logits);
    if (to->label)
        memcpy((int32_t *)(uintptr_t)to->label + at, batch->label, rows * sizeof *to->label);
    if (to->target)
        memcpy((float *)(uintptr_t)to->target + at * targets, batch->target,
               rows * targets * sizeof *to->target);
    if (to->weight)
        memcpy((float *)(uintptr_t)to->weight + at, batch->weight, rows * sizeof *to->weight);
}

void dt__judged_free(struct dt_judged *judged)
{
    dt_free((void *)(uintptr_t)judged->truth.label);
    dt_free((void *)(uintptr_t)judged->truth.target);
    dt_free((void *)(uintptr_t)judged->truth.weight);
    dt_free(judged->logits);
    *judged = (struct dt_judged){0};
}

static double judged_weight(const struct dt_judged *rows, size_t row)
{
    return rows->truth.weight ? (double)rows->truth.weight[row] : 1;
}

/* ---- the temperature ------------------------------------------------------------------------ */

/* Returns -log p(label) for logits multiplied by `cool`, 1 / temperature; sets *slope to the
 * derivative by `cool`. A single logit is that of class 1; that of class 0 is then 0. */
static double row_loss(const float *logits, int nout, int label, double cool, double *slope)
{
    const float pair[2] = {0, logits[0]}, *z = nout == 1 ? pair : logits;
    const int classes = nout == 1 ? 2 : nout;
    double most = -INFINITY, total = 0, mean = 0;
    for (int i = 0; i < classes; i++)
        most = fmax(most, cool * (double)z[i]);
    for (int i = 0; i < classes; i++) {
        const double part = exp(cool * (double)z[i] - most);
        total += part;
        mean += part * (double)z[i];
    }
    *slope = mean / total - (double)z[label];
    return log(fmax(total, 1)) + most - cool * (double)z[label];
}

/* Returns the derivative of the rows' loss by `cool`. It rises with `cool`, because the loss is
 * convex. */
static double loss_slope(const struct dt_judged *rows, int nout, double cool)
{
    double sum = 0, slope;
    for (size_t r = 0; r < (size_t)rows->truth.rows; r++) {
        if (rows->truth.label[r] < 0) continue;
        (void)row_loss(rows->logits + r * (size_t)nout, nout, rows->truth.label[r], cool, &slope);
        sum += judged_weight(rows, r) * slope;
    }
    return sum;
}

/* Finds the temperature of least loss, from 1/100 to 100, by bisection of its logarithm. Returns 1
 * if the loss still falls at 1/100. This is the case where every row is predicted right: a
 * temperature near 0 would make all probabilities 0 or 1. */
static double temperature_find(const struct dt_judged *rows, int nout)
{
    enum { HALVINGS = 40 };
    double low = -log(100), high = log(100);
    if (loss_slope(rows, nout, exp(high)) <= 0) return 1;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        *(loss_slope(rows, nout, exp(middle)) > 0 ? &high : &low) = middle;
    }
    return exp(-(low + high) / 2);
}

/* Returns true if the temperature reduces the rows' loss by more than the standard error of that
 * reduction. */
static bool temperature_helps(const struct dt_judged *rows, int nout, double temperature)
{
    double weight = 0, sum = 0, squares = 0, slope;
    for (size_t r = 0; r < (size_t)rows->truth.rows; r++) {
        const float *z = rows->logits + r * (size_t)nout;
        const int label = rows->truth.label[r];
        if (label < 0) continue;
        const double fall =
            row_loss(z, nout, label, 1, &slope) - row_loss(z, nout, label, 1 / temperature, &slope);
        const double w = judged_weight(rows, r);
        weight += w;
        sum += w * fall;
        squares += w * w * fall * fall;
    }
    return sum > 0 && sum * sum > squares - sum * sum / (weight > 1 ? weight : 1);
}

/* ---- the cut -------------------------------------------------------------------------------- */

/* Weights of rows at a cut: predicted positive and rightly so; predicted positive but wrongly; all
 * rows of the positive class; all rows of the other. */
struct outcome {
    double right, wrong, positives, negatives;
};

/* Returns the quality of a cut; more is better. number: the numbers of eval.threshold. */
typedef double outcome_fn(const struct outcome *c, const double number[2]);
static double outcome_f1(const struct outcome *c, const double number[2])
{
    (void)number;
    return 2 * c->right / (c->right + c->wrong + c->positives);
}
static double outcome_balanced(const struct outcome *c, const double number[2])
{
    (void)number;
    return c->right / c->positives - c->wrong / c->negatives;
}
static double outcome_cost(const struct outcome *c, const double number[2])
{
    return -(number[0] * c->wrong + number[1] * (c->positives - c->right));
}
/* Prefers, among the cuts that reach the recall number[0], the one with the fewest positive
 * predictions. */
static double outcome_recall(const struct outcome *c, const double number[2])
{
    return c->right >= number[0] * c->positives ? -(c->right + c->wrong) : -INFINITY;
}
static outcome_fn *const QUALITY[] = {[DT__CUT_F1] = outcome_f1,
                                      [DT__CUT_BALANCED] = outcome_balanced,
                                      [DT__CUT_COST] = outcome_cost,
                                      [DT__CUT_RECALL] = outcome_recall};

struct scored {
    float score; /* of the positive class */
    bool positive;
    double weight;
};

static int by_falling_score(const void *a, const void *b)
{
    const struct scored *left = a, *right = b;
    return (left->score < right->score) - (left->score > right->score);
}

/* Returns the best cut: rows with a score above it are predicted positive. It is between the scores
 * of two rows, or above or below all scores. scored: (n) by falling score. */
static float cut_best(const struct scored *scored, size_t n, const struct dt__threshold *rule)
{
    struct outcome outcome = {0};
    float cut = scored[0].score + 1;
    for (size_t i = 0; i < n; i++)
        *(scored[i].positive ? &outcome.positives : &outcome.negatives) += scored[i].weight;
    double best = QUALITY[rule->kind](&outcome, rule->number);
    for (size_t i = 0; i < n;) {
        const float score = scored[i].score;
        for (; i < n && scored[i].score == score; i++)
            *(scored[i].positive ? &outcome.right : &outcome.wrong) += scored[i].weight;
        const double quality = QUALITY[rule->kind](&outcome, rule->number);
        if (!(quality > best)) continue;
        best = quality;
        cut = i < n ? scored[i].score + (score - scored[i].score) / 2 : score - 1;
    }
    return cut;
}

dt_status dt__certainty_classes(size_t negative, size_t positive)
{
    if (negative && positive) return DT_OK;
    return dt_fail(DT_EMISMATCH,
                   "eval.threshold: %zu held-out rows are of the positive class and %zu "
                   "are not; expected rows of both",
                   positive, negative);
}

/* Chooses the cut for logits multiplied by `cool`. DT_EMISMATCH: all rows are of one class. */
static dt_status cut_find(const struct dt__threshold *rule, const struct dt_judged *rows,
                          int positive, float cool, double *out)
{
    const size_t n = (size_t)rows->truth.rows;
    const float sign = positive ? 1 : -1;
    size_t count[2] = {0};
    struct scored *scored;
    DT_TRY(dt__alloc(n + 1, sizeof *scored, "scores", &scored));
    for (size_t r = 0; r < n; r++) {
        const bool is = rows->truth.label[r] == positive;
        scored[r] = (struct scored){sign * cool * rows->logits[r], is, judged_weight(rows, r)};
        count[is] += judged_weight(rows, r) > 0;
    }
    qsort(scored, n, sizeof *scored, by_falling_score);
    if (count[0] && count[1]) *out = (double)(sign * cut_best(scored, n, rule));
    dt_free(scored);
    return dt__certainty_classes(count[0], count[1]);
}

dt_status dt__certainty_fit(const struct dt_config *config, const struct dt_model *model,
                            const struct dt_judged *rows, struct dt_certainty *out)
{
    const int nout = model->desc.nout;
    struct dt__threshold rule;
    DT_TRY(dt__threshold_parse(config->eval.threshold, &rule));
    if (config->eval.calibrate) {
        const double temperature = temperature_find(rows, nout);
        if (config->eval.calibrate == DT_CALIBRATE_YES ||
            temperature_helps(rows, nout, temperature))
            out->temperature = temperature;
    }
    if (rule.kind == DT__CUT_AT) return DT_OK;
    return cut_find(&rule, rows, out->positive, (float)(1 / out->temperature), &out->cut);
}

/* ---- intervals ------------------------------------------------------------------------------ */

static int by_float(const void *a, const void *b)
{
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

/* The margin of an interval is one of the n ascending residuals. Returns its number, counted from
 * 1: ceil((n + 1) coverage). */
static double residual_number(int n, double coverage)
{
    return ceil((n + 1.0) * coverage - 1e-9);
}

/* Returns how far a target is outside the range from its lowest to its highest predicted value;
 * negative: inside. For a single predicted value, returns the absolute difference. */
static float residual_of(const float *value, int each, float target)
{
    return each == 1 ? fabsf(target - *value) : fmaxf(*value - target, target - value[each - 1]);
}

/* Returns s, where every s-th row has a residual: 1, or more if there are too many rows to store
 * one for each. */
static size_t residual_step(size_t rows)
{
    enum { MOST = 65536 };
    return (rows + MOST - 1) / MOST;
}

dt_status dt__certainty_suffices(size_t rows, double coverage)
{
    const size_t step = residual_step(rows), n = step ? (rows + step - 1) / step : 0;
    if (residual_number((int)n, coverage) <= (double)n) return DT_OK;
    return dt_fail(DT_EMISMATCH,
                   "predict.interval=%g: %zu rows are left for its residuals; expected at least "
                   "%.0f, or less coverage",
                   coverage, n, ceil(coverage / (1 - coverage) - 1e-9));
}

dt_status dt__certainty_keep(const struct dt_model *model, const struct dt_judged *rows,
                             struct dt_certainty *out)
{
    const size_t targets = targets_of(model), all = (size_t)rows->truth.rows;
    const size_t step = residual_step(all), n = step ? (all + step - 1) / step : 0;
    const int each = model->outputs.each;
    float *value;
    DT_TRY(dt__certainty_suffices(all, out->coverage));
    DT_TRY(dt__alloc((size_t)model->outputs.count, sizeof *value, "values", &value));
    const dt_status status = dt__alloc(n * targets, sizeof(float), "residuals", &out->residual);
    for (size_t r = 0; r < n && !status; r++) {
        const size_t row = r * step;
        dt__model_predict(model, rows->logits + row * (size_t)model->outputs.count, 1, value);
        for (size_t t = 0; t < targets; t++)
            out->residual[t * n + r] =
                residual_of(value + t * (size_t)each, each, rows->truth.target[row * targets + t]);
    }
    dt_free(value);
    if (status) return status;
    out->residuals = (int)(n * targets);
    for (size_t t = 0; t < targets; t++)
        qsort(out->residual + t * n, n, sizeof(float), by_float);
    return DT_OK;
}

dt_status dt__certainty_margin(const struct dt_certainty *certainty, int targets, double coverage,
                               float *out)
{
    const int n = targets > 0 ? certainty->residuals / targets : 0;
    const double number = residual_number(n, coverage);
    if (!n)
        return dt_fail(DT_EUSAGE,
                       "predict.interval: the model keeps no residuals; expected one that "
                       "was trained with predict.interval");
    if (number > n)
        return dt_fail(DT_EUSAGE,
                       "predict.interval=%g: the model keeps %d residuals, which allow at "
                       "most %.4g",
                       coverage, n, n / (n + 1.0));
    for (int t = 0; t < targets; t++)
        out[t] = certainty->residual[(size_t)t * (size_t)n + (size_t)number - 1];
    return DT_OK;
}
