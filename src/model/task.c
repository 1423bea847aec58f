/* Tasks and losses, one row of a table each. A task is the kind of targets: its row defines how
 * outputs become predictions, and the sums and metrics of an evaluation. A loss is the quantity
 * that training minimises: its row defines the value, the gradient by the outputs, and the default
 * metric. */
#include "base/clones.h"
#include "base/elementary.h"
#include "model/task.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/vmath.h"

/* Returns a row's weight in losses, gradients and metrics. */
static inline float weight_of(const struct dt_batch *batch, int row)
{
    return batch->weight ? batch->weight[row] : 1.0f;
}

/* ---- constants with the least loss ----------------------------------------------------------- */

/* Returns the derivative of the batch's loss by output i, where that output is z for all rows. It
 * increases with z. */
typedef double slope_fn(const struct dt_outputs *outputs, const struct dt_batch *batch, int i,
                        float z);

/* Bounds on outputs, by link; beyond its bound, an output counts as infinite. For exp, e^-64 counts
 * as 0; for the sigmoid, the bound is about where f32 rounds it to 1. */
static const float OUTPUT_BOUND[] = {[DT_LINK_IDENTITY] = 1e38f,
                                     [DT_LINK_EXP] = 64.0f,
                                     [DT_LINK_SIGMOID] = 16.0f,
                                     [DT_LINK_RISING] = 1e38f};

/* Finds the z at which the slope changes its sign, by bisection to adjacent floats. If the slope
 * has the same sign everywhere, as for counts that are all 0, z is log(2 rows) or -log(2 rows), as
 * if half a row had a target of the opposite kind. */
static float slope_root(slope_fn *slope, const struct dt_outputs *outputs,
                        const struct dt_batch *batch, int i)
{
    const float most = OUTPUT_BOUND[outputs->link],
                beyond = dt__elementary->logf(2.0f * (float)batch->rows);
    float low = -1.0f, high = 1.0f;
    for (; slope(outputs, batch, i, high) < 0.0; high *= 2.0f)
        if (high >= most) return beyond;
    for (; slope(outputs, batch, i, low) > 0.0; low *= 2.0f)
        if (low <= -most) return -beyond;
    for (float middle; middle = low + (high - low) / 2.0f, middle > low && middle < high;)
        *(slope(outputs, batch, i, middle) > 0.0 ? &high : &low) = middle;
    return high;
}

/* Sums the rows' weights by class; a class without rows counts as half a row. Returns the total. */
static double class_weights(const struct dt_batch *batch, int classes, float *weight)
{
    double sum = 0.0;
    for (int c = 0; c < classes; c++)
        weight[c] = 0.0f;
    for (int r = 0; r < batch->rows; r++) /* exact for fewer than 2^24 rows of weight 1 */
        weight[batch->label[r]] += weight_of(batch, r);
    for (int c = 0; c < classes; c++) {
        weight[c] = weight[c] > 0.0f ? weight[c] : 0.5f;
        sum += (double)weight[c];
    }
    return sum;
}

/* ---- many classes: softmax and cross-entropy ------------------------------------------------ */

/* Partial sums of a row, so that the compiler can use vectors: column i belongs to partial sum i %
 * LANES. */
enum { LANES = 16 };

static float row_max(int n, const float *row)
{
    float most = row[0];
    for (int i = 1; i < n; i++)
        most = row[i] > most ? row[i] : most;
    return most;
}

static float row_sum(int n, const float *row)
{
    float lane[LANES] = {0}, sum = 0.0f;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += row[i + l];
    if (i)
        for (int l = 0; l < LANES; l++)
            sum += lane[l];
    for (; i < n; i++)
        sum += row[i];
    return sum;
}

/* Subtracts the maximum of a row and returns it. */
DT__CLONES
static float softmax_shift(int n, float *row)
{
    float most = row_max(n, row);
    for (int i = 0; i < n; i++)
        row[i] -= most;
    return most;
}

DT__CLONES
static void softmax_exp(size_t count, float *z)
{
    for (size_t i = 0; i < count; i++)
        z[i] = dt__expf(z[i]);
}

/* Values per block of rows: a block stays in the first-level cache through the passes over it. */
enum { BLOCK = 4096 };

/* Overwrites z with the gradient softmax(z) - onehot(label), and returns the sum of the losses -log
 * softmax(z)[label] = log(sum e^(z - max)) - (z[label] - max), for `rows` rows from row `first`
 * on. */
static double softmax_block(const struct dt_batch *batch, int first, int rows, int n,
                            float *restrict z)
{
    const int32_t *restrict label = batch->label + first;
    double sum = 0.0;
    float *row = z;
    for (int r = 0; r < rows; r++, row += n) {
        softmax_shift(n, row);
        sum -= (double)weight_of(batch, first + r) * (double)row[label[r]];
    }
    softmax_exp((size_t)(row - z), z);
    for (int r = 0; r < rows; r++, z += n) {
        const float weight = weight_of(batch, first + r);
        float total = row_sum(n, z), factor = 1.0f / total * weight;
        for (int i = 0; i < n; i++)
            z[i] *= factor;
        z[label[r]] -= weight;
        sum += (double)weight * log((double)total);
    }
    return sum;
}

static double softmax_sum(const struct dt_outputs *outputs, const struct dt_batch *batch,
                          const float *z, float *gradient)
{
    const int n = outputs->count;
    const int rows = batch->rows;
    const int block = n < BLOCK ? BLOCK / n : 1;
    double sum = 0.0;
    for (int r = 0; gradient && r < rows; r += block) {
        int count = rows - r < block ? rows - r : block;
        sum += softmax_block(batch, r, count, n, gradient + (size_t)r * (size_t)n);
    }
    for (int r = 0; !gradient && r < rows; r++, z += n) {
        const float most = row_max(n, z);
        double total = (double)dt__expf(z[0] - most);
        for (int i = 1; i < n; i++)
            total += (double)dt__expf(z[i] - most);
        sum += (double)weight_of(batch, r) *
               (log(total) - ((double)z[batch->label[r]] - (double)most));
    }
    return sum;
}

/* Computes the logarithms of the classes' frequencies. */
static void softmax_constant(const struct dt_outputs *outputs, const struct dt_batch *batch,
                             float *z)
{
    const double sum = class_weights(batch, outputs->count, z);
    for (int c = 0; c < outputs->count; c++)
        z[c] = (float)dt__elementary->log((double)z[c] / sum);
}

bool dt__loss_splits(const struct dt__loss *loss)
{
    return loss->sum == softmax_sum;
}

void dt__softmax_part(int rows, int n, int begin, const int32_t *label, float *z,
                      struct dt_softmax_part *out)
{
    for (int r = 0; r < rows; r++, z += n) {
        const int local = label[r] - begin;
        out[r].label = local >= 0 && local < n ? z[local] : 0.0f;
        out[r].most = softmax_shift(n, z);
        softmax_exp((size_t)n, z);
        out[r].sum = row_sum(n, z);
    }
}

double dt__softmax_join(const struct dt_batch *batch, int parts, size_t stride,
                        struct dt_softmax_part *part)
{
    double sum = 0.0;
    for (int r = 0; r < batch->rows; r++, part++) {
        const struct dt_softmax_part *end = part + (size_t)parts * stride;
        const float weight = weight_of(batch, r);
        float most = part->most;
        double total = 0.0, label = 0.0;
        for (struct dt_softmax_part *p = part; p < end; p += stride)
            most = p->most > most ? p->most : most;
        for (struct dt_softmax_part *p = part; p < end; p += stride) {
            total += (double)p->sum * (double)dt__expf(p->most - most);
            label += (double)p->label;
        }
        sum += (double)weight * (log(total) - (label - (double)most));
        for (struct dt_softmax_part *p = part; p < end; p += stride) {
            p->sum = dt__expf(p->most - most) / (float)total * weight;
            p->label = weight;
        }
    }
    return sum;
}

void dt__softmax_part_gradient(int rows, int n, int begin, const int32_t *label, float *z,
                               const struct dt_softmax_part *part)
{
    for (int r = 0; r < rows; r++, z += n) {
        const int local = label[r] - begin;
        for (int i = 0; i < n; i++)
            z[i] *= part[r].sum;
        if (local >= 0 && local < n) z[local] -= part[r].label;
    }
}

static void softmax_predict(int rows, const struct dt_outputs *outputs, const float *logits,
                            float *out)
{
    const int n = outputs->count;
    const size_t width = (size_t)n, count = (size_t)rows * width;
    if (out != logits) memcpy(out, logits, count * sizeof *out);
    for (size_t at = 0; at < count; at += width)
        softmax_shift(n, out + at);
    softmax_exp(count, out);
    for (size_t at = 0; at < count; at += width) {
        float sum = row_sum(n, out + at);
        for (int i = 0; i < n; i++)
            out[at + (size_t)i] /= sum;
    }
}

/* Returns the first of the largest logits. */
static int softmax_choose(const struct dt_outputs *outputs, const float *logits)
{
    const int n = outputs->count;
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* ---- probabilities and classes ---------------------------------------------------------------
 * Sums of probabilities: the Brier score, then, for each bin, the sum of its probabilities minus
 * the number of them whose event happened. */
enum { BRIER, BINS_FROM, BINS = 15, PROBABILITY_SUMS = BINS_FROM + BINS };

/* Adds a probability to its bin, (0, 1/15], (1/15, 2/15], ...; 0 goes to the first. Source: Guo et
 * al., "On calibration of modern neural networks", ICML 2017, section 2. */
static void calibration_add(double *sums, double probability, bool happened, double weight)
{
    const double bin = ceil(probability * BINS) - 1;
    sums[BINS_FROM + (bin > 0 ? (int)bin : 0)] += weight * (probability - happened);
}

static void probability_values(const struct dt__summed *summed, const double *sums,
                               struct dt_metric_values *out)
{
    double gaps = 0;
    for (int b = 0; b < BINS; b++)
        gaps += fabs(sums[BINS_FROM + b]);
    out->brier = sums[BRIER] / summed->weight;
    out->ece = gaps / summed->weight;
}

/* Sums per class, and after the last class one more for all classes that training never saw: the
 * weights of the rows of the class, of the rows predicted as the class, and of the rows that are
 * both. */
enum { OF_CLASS, AS_CLASS, BOTH, CLASS_SUMS };

static void classes_sum(const struct dt__summed *summed, int classes)
{
    memset(summed->class_sums, 0, ((size_t)classes + 1) * CLASS_SUMS * sizeof *summed->class_sums);
    for (size_t i = 0; i < summed->n; i++) {
        const struct dt__scored *row = &summed->scored[i];
        const int chosen = summed->nout == 1 ? row->score > summed->outputs->cut : (int)row->score;
        const int label = row->label < 0 ? classes : row->label;
        summed->class_sums[label * CLASS_SUMS + OF_CLASS] += (double)row->weight;
        summed->class_sums[chosen * CLASS_SUMS + AS_CLASS] += (double)row->weight;
        if (label == chosen) summed->class_sums[label * CLASS_SUMS + BOTH] += (double)row->weight;
    }
}

/* Returns F1 = 2 both / (is + predicted), or 0 without such rows, as in scikit-learn. */
static double f1_of(double is, double predicted, double both)
{
    return is + predicted > 0 ? 2 * both / (is + predicted) : 0;
}

/* Computes balanced_accuracy, the mean recall over the classes that have rows, and f1, the mean
 * over the classes that have rows or are predicted. */
static void class_values(const struct dt__summed *summed, int classes, struct dt_metric_values *out)
{
    double recall = 0, with_rows = 0, f1 = 0, used = 0;
    classes_sum(summed, classes);
    for (int c = 0; c <= classes; c++) {
        const double *sums = summed->class_sums + c * CLASS_SUMS;
        if (sums[OF_CLASS] > 0) recall += sums[BOTH] / sums[OF_CLASS], with_rows++;
        if (!(sums[OF_CLASS] + sums[AS_CLASS] > 0)) continue;
        f1 += f1_of(sums[OF_CLASS], sums[AS_CLASS], sums[BOTH]);
        used++;
    }
    out->balanced_accuracy = recall / with_rows;
    out->f1 = f1 / used;
}

static void row_score(double *scores, const struct dt_batch *batch, int row, double score)
{
    scores[row] = score;
    scores[DT_EVAL_CHUNK + row] = batch->label[row];
    scores[2 * DT_EVAL_CHUNK + row] = (double)weight_of(batch, row);
}

/* Adds a row to the sums of probabilities. The Brier score is the sum over the classes of (p -
 * y)^2, where y is 1 for the row's class and 0 for others. The bins use the probability of the
 * chosen class. */
static void softmax_add_probabilities(int n, const float *logits, const struct dt__scored *row,
                                      double *sums)
{
    const int chosen = (int)row->score, label = row->label;
    const double weight = (double)row->weight;
    double total = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        const double part = (double)dt__expf(logits[i] - logits[chosen]);
        total += part;
        squares += part * part;
    }
    const double own = label < 0 ? 0 : (double)dt__expf(logits[label] - logits[chosen]) / total;
    sums[BRIER] += weight * (squares / (total * total) - 2 * own + 1);
    calibration_add(sums, 1 / total, label == chosen, weight);
}

/* Adds to sums: weight of rows predicted right; weight of rows whose class is among the DT__TOP
 * most likely; sums of probabilities. A class's rank is the number of classes before it in the
 * order of falling logits, ties in the order of classes. A NaN comes before all. */
static void softmax_measure(const struct dt_outputs *outputs, const float *logits,
                            const struct dt_batch *batch, double *sums, uint64_t *confusion)
{
    const int n = outputs->count;
    for (int r = 0; r < batch->rows; r++, logits += n) {
        const int label = batch->label[r], chosen = softmax_choose(outputs, logits);
        const float own = label < 0 ? NAN : logits[label];
        int rank = 0;
        for (int i = 0; i < n; i++)
            rank += !(logits[i] < own || (logits[i] == own && i >= label));
        const double weight = (double)weight_of(batch, r);
        sums[0] += weight * (rank == 0);
        sums[1] += weight * (rank < DT__TOP);
        softmax_add_probabilities(
            n, logits, &(struct dt__scored){(float)chosen, (float)weight, label}, sums + 2);
        row_score(sums + 2 + PROBABILITY_SUMS, batch, r, chosen);
        if (confusion && label >= 0) confusion[(size_t)label * (size_t)n + (size_t)chosen]++;
    }
}

static void softmax_values(const struct dt__summed *summed, struct dt_metric_values *out)
{
    out->accuracy = summed->sums[0] / summed->weight;
    if (summed->nout > DT__TOP) out->top5 = summed->sums[1] / summed->weight;
    probability_values(summed, summed->sums + 2, out);
    class_values(summed, summed->nout, out);
}

/* ---- two classes: one logit ----------------------------------------------------------------- */

/* Returns the loss -log p(label) for one logit z: log(1 + e^-z) for label 1, log(1 + e^z) for label
 * 0. No exponential overflows in this form. */
static inline float two_loss_of(float z, int32_t label)
{
    float size = fabsf(z);
    float wrong = label ? -z : z;
    return (wrong < 0.0f ? 0.0f : wrong) + dt__log1pf(dt__expf(-size));
}

DT__CLONES
static double two_sum(const struct dt_outputs *outputs, const struct dt_batch *batch,
                      const float *z, float *gradient)
{
    const int32_t *restrict label = batch->label;
    (void)outputs;
    double sum = 0.0;
    for (int r = 0; r < batch->rows; r++)
        sum += (double)weight_of(batch, r) * (double)two_loss_of(z[r], label[r]);
    for (int r = 0; gradient && r < batch->rows; r++)
        gradient[r] = (dt__sigmoidf(gradient[r]) - (float)label[r]) * weight_of(batch, r);
    return sum;
}

/* Computes the log-odds. */
static void two_constant(const struct dt_outputs *outputs, const struct dt_batch *batch, float *z)
{
    float weight[2];
    (void)outputs;
    class_weights(batch, 2, weight);
    z[0] = (float)dt__elementary->log((double)weight[1] / (double)weight[0]);
}

static void two_predict(int rows, const struct dt_outputs *outputs, const float *logits, float *out)
{
    (void)outputs;
    for (size_t r = (size_t)rows; r-- > 0;) { /* from the end: out may be logits */
        float logit = logits[r];
        out[2 * r] = dt__sigmoidf(-logit);
        out[2 * r + 1] = dt__sigmoidf(logit);
    }
}

static int two_choose(const struct dt_outputs *outputs, const float *logits)
{
    return logits[0] > outputs->cut;
}

/* Adds to sums: weight of rows predicted right, sums of probabilities; then writes scores, labels
 * and weights (DT_EVAL_CHUNK each). The Brier score is that of class 1, half the sum over both
 * classes. The bins use the probability of class 1. */
static void two_measure(const struct dt_outputs *outputs, const float *logits,
                        const struct dt_batch *batch, double *sums, uint64_t *confusion)
{
    for (int r = 0; r < batch->rows; r++) {
        const int label = batch->label[r], predicted = logits[r] > outputs->cut;
        const double weight = (double)weight_of(batch, r), p = (double)dt__sigmoidf(logits[r]);
        const double off = p - label, either = (p * p + (1 - p) * (1 - p) + 1) / 2;
        sums[0] += weight * (predicted == label && !isnan(logits[r]));
        sums[1 + BRIER] += weight * (label < 0 ? either : off * off);
        calibration_add(sums + 1, p, label == 1, weight);
        row_score(sums + 1 + PROBABILITY_SUMS, batch, r, (double)logits[r]);
        if (confusion && label >= 0) confusion[2 * label + predicted]++;
    }
}

static int by_score(const void *a, const void *b)
{
    const struct dt__scored *left = a, *right = b;
    return (left->score > right->score) - (left->score < right->score);
}

/* Computes auc and average_precision; a row whose class training never saw counts as negative.
 * positive: the total weight of the rows of the positive class, which should have high scores.
 * - auc: the fraction of the pairs (positive row, negative row) in which the positive has the
 *   higher score; a tie counts one half. Source: Hanley and McNeil 1982 (the Mann-Whitney
 *   statistic).
 * - average_precision: the mean, over the positive rows, of the precision among the rows with at
 *   least the same score. The loop goes from the lowest score to the highest, so the rows with at
 *   least the current score are those that it has not passed. */
static void order_values(const struct dt__summed *summed, double positive,
                         struct dt_metric_values *out)
{
    const int yes = summed->outputs->positive;
    struct dt__scored *scored = summed->scored;
    const size_t n = summed->n;
    double positives = 0.0, negatives = 0.0, ordered = 0.0, all = 0.0, precision = 0.0;
    if (summed->unsorted) return;
    for (size_t i = 0; i < n; i++) {
        if (isnan(scored[i].score)) return;
        all += (double)scored[i].weight;
    }
    if (n) qsort(scored, n, sizeof *scored, by_score);
    for (size_t i = 0; i < n;) {
        double tied[2] = {0.0, 0.0};
        const float score = scored[i].score;
        const double above = positive - positives, down_to = all - positives - negatives;
        for (; i < n && scored[i].score == score; i++)
            tied[scored[i].label == yes] += (double)scored[i].weight;
        if (tied[1] > 0) precision += tied[1] * (above / down_to);
        ordered += tied[1] * (negatives + 0.5 * tied[0]);
        negatives += tied[0];
        positives += tied[1];
    }
    out->auc = ordered / (positives * negatives);
    out->average_precision = precision / positives;
}

static void scores_negate(const struct dt__summed *summed)
{
    for (size_t i = 0; i < summed->n; i++)
        summed->scored[i].score = -summed->scored[i].score;
}

/* Computes the metrics of two classes. precision, recall and f1 are those of the positive class;
 * class 1 is predicted above the cut. */
static void two_values(const struct dt__summed *summed, struct dt_metric_values *out)
{
    const double *sums = summed->class_sums + summed->outputs->positive * CLASS_SUMS;
    probability_values(summed, summed->sums + 1, out);
    class_values(summed, 2, out);
    out->accuracy = summed->sums[0] / summed->weight;
    out->precision = sums[BOTH] / sums[AS_CLASS];
    out->recall = sums[BOTH] / sums[OF_CLASS];
    out->f1 = f1_of(sums[OF_CLASS], sums[AS_CLASS], sums[BOTH]);
    if (!summed->outputs->positive) scores_negate(summed);
    order_values(summed, sums[OF_CLASS], out);
    if (!summed->outputs->positive) scores_negate(summed);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static inline float softplus(float z)
{
    return (z > 0.0f ? z : 0.0f) + dt__log1pf(dt__expf(-fabsf(z)));
}

/* Returns the value of output i of a row, before it is limited to the range of values. */
static inline float output_unlimited(const struct dt_outputs *outputs, int i, const float *row)
{
    int target = i;
    float z = row[i];
    if (outputs->link == DT_LINK_EXP) return dt__expf(z);
    if (outputs->link == DT_LINK_SIGMOID) return dt__sigmoidf(z);
    if (outputs->link == DT_LINK_RISING) {
        target = i / outputs->each;
        int at = target * outputs->each;
        for (z = row[at]; at++ < i;)
            z += softplus(row[at]);
    }
    return outputs->mean ? z * outputs->std[target] + outputs->mean[target] : z;
}

/* Returns the predicted value of output i of a row. NaN stays NaN. */
static inline float output_value(const struct dt_outputs *outputs, int i, const float *row)
{
    const float value = output_unlimited(outputs, i, row);
    const int target = i / outputs->each;
    if (!outputs->least) return value;
    return value < outputs->least[target]      ? outputs->least[target]
           : value > outputs->greatest[target] ? outputs->greatest[target]
                                               : value;
}

/* A loss of numbers is two functions of one output z, its target, and the error z - target: `cost`,
 * the loss, and `slope`, its derivative by z. If the targets have units, `cost` gets the error in
 * these units, and `slope` gets it standardised. delta, in the units of the error, is the error at
 * which huber changes from a square to a line. */
#define UNUSED __attribute__((unused))
#define COST(name)                                                                                 \
    static inline double name##_cost(UNUSED double error, UNUSED float z, UNUSED float target,     \
                                     UNUSED double delta)
#define SLOPE(name)                                                                                \
    static inline float name##_slope(UNUSED float error, UNUSED float z, UNUSED float target,      \
                                     UNUSED float delta)

COST(mse)
{
    return error * error;
}
SLOPE(mse)
{
    return error; /* half of the derivative: NUMBERS(mse, 2.0) multiplies by 2 */
}

COST(mae)
{
    return fabs(error);
}
SLOPE(mae)
{
    return (float)(error > 0.0f) - (float)(error < 0.0f);
}

/* Source: Huber 1964; as in torch.nn.HuberLoss. */
COST(huber)
{
    const double size = fabs(error);
    return size <= delta ? 0.5 * error * error : delta * (size - 0.5 * delta);
}
SLOPE(huber)
{
    return error > delta ? delta : error < -delta ? -delta : error;
}

/* The negative log-likelihood of a count whose mean is e^z, without the term that depends only on
 * the target, as in torch.nn.PoissonNLLLoss. */
COST(poisson)
{
    return (double)dt__expf(z) - (double)target * (double)z;
}
SLOPE(poisson)
{
    return dt__expf(z) - target;
}

/* -log p of a yes (target 1) or no (0), as in torch.nn.BCEWithLogitsLoss. No exponential
 * overflows. */
COST(binary)
{
    return (double)((z > 0.0f ? z : 0.0f) - z * target + dt__log1pf(dt__expf(-fabsf(z))));
}
SLOPE(binary)
{
    return dt__sigmoidf(z) - target;
}

/* Defines the functions of a loss from cost and slope. A row's loss is the mean over its
 * elements. */
#define NUMBERS(name, factor)                                                                      \
    DT__CLONES                                                                                     \
    static double name##_gradient(const struct dt_outputs *outputs, const struct dt_batch *batch,  \
                                  float *logits)                                                   \
    {                                                                                              \
        const int n = outputs->count;                                                              \
        const float *restrict mean = outputs->mean, *restrict std = outputs->std;                  \
        const float *restrict target = batch->target, delta = outputs->delta;                      \
        float *restrict z = logits;                                                                \
        double sum = 0.0;                                                                          \
        for (int r = 0; r < batch->rows; r++, z += n, target += n) {                               \
            const float weight = weight_of(batch, r), scale = (float)((factor) / n) * weight;      \
            for (int i = 0; i < n; i++) {                                                          \
                const float goal = mean ? (target[i] - mean[i]) / std[i] : target[i];              \
                const double unit = mean ? (double)std[i] : 1.0;                                   \
                const float error = z[i] - goal;                                                   \
                sum += (double)weight *                                                            \
                       name##_cost((double)error * unit, z[i], target[i], (double)delta * unit);   \
                z[i] = scale * name##_slope(error, z[i], goal, delta);                             \
            }                                                                                      \
        }                                                                                          \
        return sum / n;                                                                            \
    }                                                                                              \
    static double name##_sum(const struct dt_outputs *outputs, const struct dt_batch *batch,       \
                             const float *z, float *gradient)                                      \
    {                                                                                              \
        if (gradient) return name##_gradient(outputs, batch, gradient);                            \
        const int n = outputs->count;                                                              \
        const float *target = batch->target;                                                       \
        double sum = 0.0;                                                                          \
        for (int r = 0; r < batch->rows; r++, z += n, target += n) {                               \
            const double weight = (double)weight_of(batch, r);                                     \
            for (int i = 0; i < n; i++) {                                                          \
                const float error = output_value(outputs, i, z) - target[i];                       \
                const double unit = outputs->mean ? (double)outputs->std[i] : 1.0;                 \
                sum += weight *                                                                    \
                       name##_cost((double)error, z[i], target[i], (double)outputs->delta * unit); \
            }                                                                                      \
        }                                                                                          \
        return sum / n;                                                                            \
    }                                                                                              \
    static double name##_slopes(const struct dt_outputs *outputs, const struct dt_batch *batch,    \
                                int i, float z)                                                    \
    {                                                                                              \
        const int n = outputs->count;                                                              \
        const float *mean = outputs->mean, *std = outputs->std, *target = batch->target + i;       \
        double sum = 0.0;                                                                          \
        for (int r = 0; r < batch->rows; r++, target += n) {                                       \
            const float goal = mean ? (*target - mean[i]) / std[i] : *target;                      \
            sum += (double)weight_of(batch, r) *                                                   \
                   (double)name##_slope(z - goal, z, goal, outputs->delta);                        \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
    static void name##_constant(const struct dt_outputs *outputs, const struct dt_batch *batch,    \
                                float *z)                                                          \
    {                                                                                              \
        for (int i = 0; i < outputs->count; i++)                                                   \
            z[i] = slope_root(name##_slopes, outputs, batch, i);                                   \
    }
NUMBERS(mse, 2.0)
NUMBERS(mae, 1.0)
NUMBERS(huber, 1.0)
NUMBERS(poisson, 1.0)
NUMBERS(binary, 1.0)

/* Returns the sum of the costs of one target for all its quantiles. Unless slope is NULL, writes
 * the derivatives by the outputs, times scale; slope may be z. Source: Koenker and Bassett 1978,
 * eq. 2.5. */
static double quantiles_cost(const struct dt_outputs *outputs, const float *z, float goal,
                             float scale, float *slope)
{
    const int each = outputs->each;
    float by_value[DT_MAX_QUANTILES], value = 0.0f, all = 0.0f;
    double cost = 0.0;
    for (int q = 0; q < each; q++) {
        const float level = outputs->quantile[q];
        value = q ? value + softplus(z[q]) : z[0];
        const float error = goal - value;
        by_value[q] = error > 0.0f ? -level : error < 0.0f ? 1.0f - level : 0.0f;
        cost -= (double)by_value[q] * (double)error;
    }
    for (int q = each; slope && q-- > 0;) { /* an output shifts its own value and all later ones */
        all += by_value[q];
        slope[q] = scale * all * (q ? dt__sigmoidf(z[q]) : 1.0f);
    }
    return isnan(value) ? NAN : cost;
}

static double quantile_sum(const struct dt_outputs *outputs, const struct dt_batch *batch,
                           const float *z, float *slope)
{
    const int n = outputs->count, targets = n / outputs->each;
    const float *target = batch->target, *mean = outputs->mean, *std = outputs->std;
    double sum = 0.0;
    for (int r = 0; r < batch->rows; r++) {
        const float weight = weight_of(batch, r);
        for (int t = 0; t < targets; t++, z += outputs->each, target++) {
            const float goal = mean ? (*target - mean[t]) / std[t] : *target;
            const double unit = mean ? (double)std[t] : 1.0;
            sum +=
                (double)weight * unit * quantiles_cost(outputs, z, goal, weight / (float)n, slope);
            if (slope) slope += outputs->each;
        }
    }
    return sum / n;
}

/* Returns the derivative of the batch's cost of quantile i by its predicted value, where this is
 * `value` for all rows. */
static double quantile_slopes(const struct dt_outputs *outputs, const struct dt_batch *batch, int i,
                              float value)
{
    const int targets = outputs->count / outputs->each, t = i / outputs->each;
    const double level = (double)outputs->quantile[i % outputs->each];
    const float *mean = outputs->mean, *std = outputs->std, *target = batch->target + t;
    double sum = 0.0;
    for (int r = 0; r < batch->rows; r++, target += targets) {
        const float goal = mean ? (*target - mean[t]) / std[t] : *target;
        sum += (double)weight_of(batch, r) * (goal < value ? 1.0 - level : -level);
    }
    return sum;
}

/* Computes outputs whose values are the quantiles of the targets. An output after the first is the
 * inverse softplus of the distance from the previous quantile, which must be above 0: quantiles
 * closer than 0.01 are set that far apart. */
static void quantile_constant(const struct dt_outputs *outputs, const struct dt_batch *batch,
                              float *z)
{
    const int each = outputs->each;
    for (int i = 0; i < outputs->count; i++)
        z[i] = slope_root(quantile_slopes, outputs, batch, i);
    for (int i = outputs->count; i-- > 0;)
        if (i % each) {
            const float distance = z[i] - z[i - 1] > 0.01f ? z[i] - z[i - 1] : 0.01f;
            z[i] = distance > 20.0f ? distance
                                    : dt__elementary->logf(dt__elementary->expm1f(distance));
        }
}

dt_status dt__quantiles_parse(const char *text, float out[DT_MAX_QUANTILES], int *out_count)
{
    int count = 0;
    bool good = text && *text;
    for (const char *at = text; good && *at;) {
        char *end;
        const double level = dt__real_read(at, &end);
        good = end > at && level > 0.0 && level < 1.0 && count < DT_MAX_QUANTILES &&
               (!count || (float)level > out[count - 1]) && (!*end || (*end == ',' && end[1]));
        if (good) out[count++] = (float)level;
        at = end + (*end == ',');
    }
    *out_count = count;
    if (good) return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "train.quantiles=%s: expected 1 to %d numbers between 0 and 1 that rise",
                   text ? text : "", DT_MAX_QUANTILES);
}

static void numbers_predict(int rows, const struct dt_outputs *outputs, const float *logits,
                            float *out)
{
    const int n = outputs->count;
    for (int r = 0; r < rows; r++, out += n, logits += n)
        for (int i = n; i-- > 0;) /* from the end: out may be logits */
            out[i] = output_value(outputs, i, logits);
}

/* Adds to sums: absolute errors; per target the squared errors, the targets, the squared targets;
 * relative errors (absolute error / absolute target, as in scikit-learn's
 * mean_absolute_percentage_error). */
static void numbers_measure(const struct dt_outputs *outputs, const float *logits,
                            const struct dt_batch *batch, double *sums, uint64_t *confusion)
{
    const int each = outputs->each, n = outputs->count / each;
    double *error2 = sums + 1, *sum = error2 + n, *sum2 = sum + n;
    const float *target = batch->target;
    (void)confusion;
    for (int r = 0; r < batch->rows; r++, logits += outputs->count, target += n) {
        const double weight = (double)weight_of(batch, r);
        for (int i = 0; i < n; i++) {
            double wanted = (double)target[i];
            double error =
                (double)output_value(outputs, i * each + outputs->middle, logits) - wanted;
            sums[0] += weight * fabs(error);
            sums[1 + 3 * n] += weight * fabs(error) / fmax(fabs(wanted), DBL_EPSILON);
            error2[i] += weight * error * error;
            sum[i] += weight * wanted;
            sum2[i] += weight * wanted * wanted;
        }
    }
}

/* Computes the scores of one target from the sums of numbers_measure. r2 is scikit-learn's
 * r2_score: for a constant target it is 1 if every prediction is exact, else 0; NaN if no row has a
 * weight. The sums have a rounding error of about 1e-16 of sum2, more with many rows; so targets
 * that vary only in the last one or two bits of an f32 count as constant, too. */
static struct dt_target_score numbers_score(int nout, double weight, const double *sums, int i)
{
    const double *error2 = sums + 1 + i, sum = error2[nout], sum2 = error2[2 * nout];
    const double variation = sum2 - sum * sum / weight;
    const bool constant = variation <= 1e-14 * sum2 && !isnan(*error2);
    return (struct dt_target_score){
        .rmse = sqrt(*error2 / weight),
        .guess_rmse = constant ? 0.0 : sqrt(variation / weight),
        .r2 = constant ? (*error2 > 0.0 ? 0.0 : 1.0) : 1.0 - *error2 / variation,
    };
}

static void numbers_values(const struct dt__summed *summed, struct dt_metric_values *out)
{
    const int nout = summed->nout;
    const double weight = summed->weight, *sums = summed->sums, count = weight * nout;
    double all = 0.0, guess = 0.0, r2 = 0.0;
    for (int i = 0; i < nout; i++) {
        const struct dt_target_score score = numbers_score(nout, weight, sums, i);
        all += sums[1 + i];
        guess += score.guess_rmse * score.guess_rmse;
        r2 += score.r2;
    }
    out->rmse = sqrt(all / count);
    out->mae = sums[0] / count;
    out->mape = sums[1 + 3 * nout] / count;
    out->r2 = r2 / nout;
    out->guess_rmse = sqrt(guess / nout);
}

/* ---- means of several networks --------------------------------------------------------------- */

/* Returns the logit of p. It is finite even if p was rounded to 0 or 1. */
static float logit_of(float p)
{
    static const double least = 1e-37, most = 1.0 - 6e-8;
    const double kept = (double)p < least ? least : (double)p > most ? most : (double)p;
    return (float)(isnan(p) ? NAN : log(kept) - log1p(-kept));
}

static void two_to_mean(int rows, const struct dt_outputs *outputs, const float *logits, float *out)
{
    for (int i = 0; i < rows * outputs->count; i++)
        out[i] = dt__sigmoidf(logits[i]);
}

static void two_from_mean(int rows, const struct dt_outputs *outputs, const float *mean, float *out)
{
    for (int i = 0; i < rows * outputs->count; i++)
        out[i] = logit_of(mean[i]);
}

static void log_from_mean(int rows, const struct dt_outputs *outputs, const float *mean, float *out)
{
    for (int i = 0; i < rows * outputs->count; i++)
        out[i] = (float)log(mean[i] < 1e-37f ? 1e-37 : (double)mean[i]);
}

/* Computes the predicted values without the targets' units and limits, which are applied later, to
 * the mean of these values. */
static void numbers_to_mean(int rows, const struct dt_outputs *outputs, const float *logits,
                            float *out)
{
    struct dt_outputs plain = *outputs;
    plain.mean = plain.std = plain.least = plain.greatest = NULL;
    numbers_predict(rows, &plain, logits, out);
}

/* Returns the x whose softplus is `distance`; distance > 0. */
static float softplus_inverse(float distance)
{
    const double d = distance < 1e-37f ? 1e-37 : (double)distance;
    return (float)(isnan(distance) ? NAN : d > 30.0 ? d : log(expm1(d)));
}

static void numbers_from_mean(int rows, const struct dt_outputs *outputs, const float *mean,
                              float *out)
{
    const int each = outputs->each, count = rows * outputs->count;
    if (outputs->link == DT_LINK_SIGMOID) two_from_mean(rows, outputs, mean, out);
    if (outputs->link == DT_LINK_EXP) log_from_mean(rows, outputs, mean, out);
    if (outputs->link == DT_LINK_IDENTITY) memmove(out, mean, (size_t)count * sizeof *out);
    for (int i = count; outputs->link == DT_LINK_RISING && i-- > 0;) /* out may be mean */
        out[i] = i % each ? softplus_inverse(mean[i] - mean[i - 1]) : mean[i];
}

/* ---- losses defined by the program ----------------------------------------------------------- */

static double own_sum(const struct dt_outputs *outputs, const struct dt_batch *batch,
                      const float *z, float *slope)
{
    const struct dt_own_loss *own = outputs->own;
    const size_t n = (size_t)outputs->count;
    double sum = 0.0;
    for (size_t r = 0; r < (size_t)batch->rows; r++) {
        const float weight = weight_of(batch, (int)r);
        float *gradient = slope ? slope + r * n : NULL;
        sum +=
            (double)weight * own->row(own->arg, (int)n, z + r * n, batch->target + r * n, gradient);
        for (size_t i = 0; gradient && i < n; i++)
            gradient[i] *= weight;
    }
    return sum;
}

static void own_constant(const struct dt_outputs *outputs, const struct dt_batch *batch, float *z)
{
    mse_constant(outputs, batch, z); /* the mean: the constant of least loss is not known */
}

/* ---- multilabel: several yes or no ----------------------------------------------------------- */

/* Adds to sums the weights of labels that are: predicted right; predicted; positive; predicted and
 * positive. */
static void labels_measure(const struct dt_outputs *outputs, const float *logits,
                           const struct dt_batch *batch, double *sums, uint64_t *confusion)
{
    const int n = outputs->count;
    const float *target = batch->target;
    (void)confusion;
    for (int r = 0; r < batch->rows; r++, logits += n, target += n) {
        const double weight = (double)weight_of(batch, r);
        for (int i = 0; i < n; i++) {
            const bool predicted = logits[i] > 0.0f, positive = target[i] > 0.5f;
            sums[0] += weight * (predicted == positive && !isnan(logits[i]));
            sums[1] += weight * predicted;
            sums[2] += weight * positive;
            sums[3] += weight * (predicted && positive);
        }
    }
}

static void labels_values(const struct dt__summed *summed, struct dt_metric_values *out)
{
    const double *sums = summed->sums;
    out->accuracy = sums[0] / (summed->weight * summed->nout);
    out->precision = sums[3] / sums[1];
    out->recall = sums[3] / sums[2];
    out->f1 = f1_of(sums[2], sums[1], sums[3]);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define BIT(metric) (1u << DT_METRIC_##metric)
#define OF_CLASSES (BIT(F1) | BIT(BALANCED_ACCURACY) | BIT(BRIER) | BIT(ECE))
enum { TWO, MANY, NUMBERED, LABELS };
/* Tasks. The first row that matches is used. */
static const struct dt__task TASKS[] = {
    [TWO] = {.task = DT_TASK_CLASSIFY,
             .one_logit = true,
             .name = "classification",
             .answer = "probabilities",
             .classes = 2,
             .predict = two_predict,
             .choose = two_choose,
             .emit = dt__emit_two,
             .to_mean = two_to_mean,
             .from_mean = two_from_mean,
             .emit_to_mean = dt__emit_two_to_mean,
             .emit_from_mean = dt__emit_two_from_mean,
             .added = {1 + PROBABILITY_SUMS, 0},
             .scores = true,
             .measure = two_measure,
             .values = two_values,
             .metrics = BIT(ACCURACY) | BIT(AUC) | BIT(AVERAGE_PRECISION) | OF_CLASSES},
    [MANY] = {.task = DT_TASK_CLASSIFY,
              .name = "classification",
              .answer = "probabilities",
              .classes = DT__OUTPUTS,
              .predict = softmax_predict,
              .choose = softmax_choose,
              .emit = dt__emit_softmax,
              .to_mean = softmax_predict,
              .from_mean = log_from_mean,
              .emit_to_mean = dt__emit_softmax_to_mean,
              .emit_from_mean = dt__emit_log,
              .added = {2 + PROBABILITY_SUMS, 0},
              .scores = true,
              .measure = softmax_measure,
              .values = softmax_values,
              .metrics = BIT(ACCURACY) | BIT(TOP5) | OF_CLASSES},
    [NUMBERED] = {.task = DT_TASK_REGRESS,
                  .name = "regression",
                  .answer = "values",
                  .predict = numbers_predict,
                  .emit = dt__emit_numbers,
                  .to_mean = numbers_to_mean,
                  .from_mean = numbers_from_mean,
                  .emit_to_mean = dt__emit_numbers_to_mean,
                  .emit_from_mean = dt__emit_numbers_from_mean,
                  .added = {2, 3},
                  .measure = numbers_measure,
                  .values = numbers_values,
                  .score = numbers_score,
                  .metrics = BIT(RMSE) | BIT(MAE) | BIT(R2) | BIT(MAPE)},
    [LABELS] = {.task = DT_TASK_MULTILABEL,
                .name = "multi-label classification",
                .answer = "probabilities",
                .predict = numbers_predict,
                .emit = dt__emit_numbers,
                .to_mean = numbers_to_mean,
                .from_mean = numbers_from_mean,
                .emit_to_mean = dt__emit_numbers_to_mean,
                .emit_from_mean = dt__emit_numbers_from_mean,
                .added = {4, 0},
                .measure = labels_measure,
                .values = labels_values,
                .metrics = BIT(ACCURACY) | BIT(F1)},
};

#define CLASSES                                                                                    \
    {                                                                                              \
        .classes = true                                                                            \
    }
#define UNITS                                                                                      \
    {                                                                                              \
        .units = true                                                                              \
    }
#define BETWEEN(low, high, words)                                                                  \
    {                                                                                              \
        .least = (low), .greatest = (high), .expected = (words)                                    \
    }
#define LOSS(index, key, name, metric, from, ...)                                                  \
    {                                                                                              \
        &TASKS[index], DT_LOSS_##key, name##_sum, name##_constant, DT_METRIC_##metric,             \
            DT_LINK_##from, __VA_ARGS__                                                            \
    }
/* Losses. The first row of a task is its default loss, train.loss=auto. */
static const struct dt__loss LOSSES[] = {
    LOSS(TWO, AUTO, two, ACCURACY, IDENTITY, CLASSES),
    LOSS(MANY, AUTO, softmax, ACCURACY, IDENTITY, CLASSES),
    LOSS(NUMBERED, MSE, mse, RMSE, IDENTITY, UNITS),
    LOSS(NUMBERED, MAE, mae, MAE, IDENTITY, UNITS),
    LOSS(NUMBERED, HUBER, huber, MAE, IDENTITY, UNITS),
    LOSS(NUMBERED, POISSON, poisson, LOSS, EXP,
         BETWEEN(0, INFINITY, "counts from 0 on (train.loss=poisson)")),
    LOSS(NUMBERED, QUANTILE, quantile, LOSS, RISING, UNITS),
    LOSS(LABELS, BINARY, binary, ACCURACY, SIGMOID,
         BETWEEN(0, 1, "0 or 1 (model.task=multilabel)")),
};

static const struct dt__loss OWN = LOSS(NUMBERED, AUTO, own, LOSS, IDENTITY, {0});

dt_status dt__model_set_loss(struct dt_model *model, const struct dt_own_loss *loss)
{
    if (!loss->row) return dt_fail(DT_EUSAGE, "a loss of one's own: expected its function, row");
    if (model->desc.task != OWN.task->task || model->outputs.each > 1)
        return dt_fail(DT_EUSAGE, "a loss of one's own: expected model.task=regress, and a "
                                  "train.loss with one output a target");
    model->loss = &OWN;
    model->outputs.link = OWN.link;
    model->outputs.own = loss;
    return DT_OK;
}

const struct dt_targets *dt__targets_of(int task, int loss)
{
    const struct dt__loss *row = dt__loss_find(task, loss, 0);
    return row ? &row->targets : &LOSSES[0].targets;
}

const struct dt__loss *dt__loss_find(int task, int loss, int nout)
{
    for (size_t i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        const struct dt__loss *row = &LOSSES[i];
        if (row->task->task == task && (!row->task->one_logit || nout == 1) &&
            (loss == DT_LOSS_AUTO || loss == row->loss))
            return row;
    }
    return NULL;
}

void dt__model_predict(const struct dt_model *model, const float *logits, int rows, float *out)
{
    model->loss->task->predict(rows, &model->outputs, logits, out);
}

void dt__model_set_certainty(struct dt_model *model, const struct dt_certainty *certainty)
{
    if (!model->classes || !certainty->known) return;
    model->outputs.cool = (float)(1 / certainty->temperature);
    model->outputs.cut = (float)certainty->cut;
    model->outputs.positive = certainty->positive;
}

dt_status dt__model_constant(const struct dt_model *model, const struct dt_batch *batch, float *out)
{
    const struct dt_tensor *bias = dt__model_output_bias(model);
    const size_t count = (size_t)model->outputs.count, width = bias ? bias->count : count;
    struct dt_outputs outputs = model->outputs; /* for one position of a field */
    struct dt_batch places = *batch;
    const int each = (int)(count / width);
    float *weight = NULL;
    outputs.count = (int)width;
    places.rows *= each;
    if (batch->weight) {
        DT_TRY(dt__alloc((size_t)places.rows, sizeof *weight, "weights", &weight));
        for (int i = 0; i < places.rows; i++)
            weight[i] = batch->weight[i / each];
    }
    places.weight = weight;
    model->loss->constant(&outputs, &places, out);
    for (size_t i = width; i < count; i++)
        out[i] = out[i - width];
    dt_free(weight);
    return DT_OK;
}

void dt__model_to_mean(const struct dt_model *model, const float *logits, int rows, float *out)
{
    model->loss->task->to_mean(rows, &model->outputs, logits, out);
}

void dt__model_from_mean(const struct dt_model *model, const float *mean, int rows, float *out)
{
    model->loss->task->from_mean(rows, &model->outputs, mean, out);
}

double dt__model_loss(const struct dt_model *model, const struct dt_batch *batch,
                      const float *logits)
{
    return model->loss->sum(&model->outputs, batch, logits, NULL);
}

const char *dt__model_answer(const struct dt_model *model)
{
    return model->loss->task->answer;
}

int dt__model_choose(const struct dt_model *model, const float *logits)
{
    return model->loss->task->choose(&model->outputs, logits);
}
