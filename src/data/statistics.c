/* Statistics of the training data: mean and deviation of each feature and target, what stands for
 * missing values, the scale of weights and the weights of classes. One pass over the rows in order,
 * in double, so that they never depend on anything else; for robust ones a look at a sample before
 * it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/reader.h"

enum { BLOCK_ROWS = 256 };

/* Of each feature: values there, their mean and sum of squared deviations so far, least and
 * greatest; NULL: nobody asks. */
struct moments {
    const struct dt_source *source;
    uint64_t rows;
    double *count, *mean, *squares, *least, *greatest;
    double *low, *high;                   /* values beyond count as these */
    double weight;                        /* sum over the rows */
    uint64_t *class_count;                /* (classes), or NULL */
    double *target_mean, *target_squares; /* (targets), weighted, or NULL */
    double target_least, target_most;     /* of all of them */
};

static double row_value(const struct dt__layout *layout, const unsigned char *x, size_t feature)
{
    float value;
    if (layout->bytes) return x[feature];
    memcpy(&value, x + feature * sizeof value, sizeof value);
    return (double)value;
}

static double moments_fence(const struct moments *moments, size_t feature, double value)
{
    if (value < moments->low[feature]) return moments->low[feature];
    return value > moments->high[feature] ? moments->high[feature] : value;
}

/* Merges the dense part of a block of rows into the moments of one feature. Missing values are
 * NaN. */
static void moments_merge(const struct dt__layout *layout, double scale, const unsigned char *x,
                          size_t rows, size_t feature, struct moments *moments)
{
    size_t stride = dt__layout_x(layout);
    double sum = 0, squares = 0, before = moments->count[feature], here = 0;
    for (size_t r = 0; r < rows; r++) {
        double value = row_value(layout, x + r * stride, feature) * scale;
        if (isnan(value)) continue;
        value = moments_fence(moments, feature, value);
        sum += value;
        if (before + here++ == 0) moments->least[feature] = moments->greatest[feature] = value;
        moments->least[feature] = fmin(moments->least[feature], value);
        moments->greatest[feature] = fmax(moments->greatest[feature], value);
    }
    if (here == 0) return;
    double mean = sum / here, apart = mean - moments->mean[feature];
    for (size_t r = 0; r < rows; r++) {
        const double value = row_value(layout, x + r * stride, feature) * scale;
        const double off = moments_fence(moments, feature, value) - mean;
        if (!isnan(off)) squares += off * off;
    }
    moments->squares[feature] += squares + apart * apart * before * here / (before + here);
    moments->mean[feature] += apart * here / (before + here);
    moments->count[feature] += here;
}

static void moments_merge_y(const struct dt__layout *layout, const struct dt__block *block,
                            struct moments *moments)
{
    for (size_t r = 0; r < block->rows; r++) {
        const double weight = block->weight ? (double)block->weight[r] : 1;
        int32_t label;
        moments->weight += weight;
        /* Source: West 1979, updating mean and variance estimates, of weighted values. */
        const size_t targets = moments->target_mean && weight > 0 ? (size_t)layout->targets : 0;
        for (size_t i = 0; i < targets; i++) {
            float value;
            memcpy(&value, dt__block_y(layout, block, r) + i * sizeof value, sizeof value);
            const double off = (double)value - moments->target_mean[i];
            moments->target_least = fmin(moments->target_least, (double)value);
            moments->target_most = fmax(moments->target_most, (double)value);
            moments->target_mean[i] += off * (weight / moments->weight);
            moments->target_squares[i] += weight * off * ((double)value - moments->target_mean[i]);
        }
        if (!moments->class_count) continue;
        memcpy(&label, block->y + r * sizeof label, sizeof label);
        moments->class_count[label]++;
    }
}

static dt_status moments_add_block(void *arg, const struct dt__block *block)
{
    struct moments *moments = arg;
    const struct dt__layout *layout = &moments->source->layout;
    const double scale = moments->source->schema.scale;
    moments->rows += block->rows;
    moments_merge_y(layout, block, moments);
    if (!moments->count) return DT_OK;
    for (size_t f = 0; f < (size_t)layout->dense; f++)
        moments_merge(layout, scale, block->x, block->rows, f, moments);
    /* The sparse part: sums of the values and of their squares, what is not there being 0. */
    for (size_t e = 0; block->offsets && e < block->offsets[block->rows]; e++) {
        const size_t f = block->index[e];
        const double value =
            moments_fence(moments, f, (block->value ? (double)block->value[e] : 1) * scale);
        moments->mean[f] += value;
        moments->squares[f] += value * value;
    }
    return DT_OK;
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* Robust statistics are those of values that stay within fences: the 1st and the 99th percentile of
 * a sample, and once more the span between them to either side. Values of a normal distribution
 * never reach that far (7 deviations), so that without outliers these are the plain statistics; one
 * beyond counts as one at the fence.
 * Source: Winsor's way, Tukey 1962, The Future of Data Analysis, section 14. */

/* Rows in the sample, from blocks all over the data, and values at most: 1 in 100 of them is
 * counted well. */
enum { SAMPLE_ROWS = 1 << 14, SAMPLE_BLOCK = 64, SAMPLE_VALUES = 1 << 24 };

struct sample_value {
    uint32_t feature;
    float value;
};

struct sample {
    const struct dt_source *source;
    struct sample_value *values;
    size_t count, room;
};

static int sample_value_compare(const void *left, const void *right)
{
    const struct sample_value *a = left, *b = right;
    if (a->feature != b->feature) return a->feature < b->feature ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

/* Features that are numbers; flags and categories stand behind them. */
static int schema_numbers(const struct dt_schema *schema)
{
    int numbers = schema->columns ? 0 : schema->features;
    for (int c = 0; schema->columns && c < schema->ncolumns; c++)
        numbers += schema->columns[c].kind == DT_COLUMN_NUMBER;
    return numbers;
}

/* A missing value, NaN, is none. */
static dt_status sample_add(struct sample *sample, size_t feature, double value)
{
    if (isnan(value)) return DT_OK;
    DT_TRY(dt_grow(&sample->values, &sample->room, sample->count + 1, sizeof *sample->values,
                   "normalisation"));
    sample->values[sample->count++] = (struct sample_value){(uint32_t)feature, (float)value};
    return DT_OK;
}

static dt_status sample_add_block(void *arg, const struct dt__block *block)
{
    struct sample *sample = arg;
    const struct dt_source *source = sample->source;
    const struct dt__layout *layout = &source->layout;
    const double scale = source->schema.scale;
    const size_t numbers = (size_t)schema_numbers(&source->schema), stride = dt__layout_x(layout);
    for (size_t r = 0; r < block->rows; r++)
        for (size_t f = 0; f < numbers && f < (size_t)layout->dense; f++)
            DT_TRY(sample_add(sample, f, row_value(layout, block->x + r * stride, f) * scale));
    for (size_t e = 0; block->offsets && e < block->offsets[block->rows]; e++)
        if (block->index[e] < numbers)
            DT_TRY(sample_add(sample, block->index[e],
                              (block->value ? (double)block->value[e] : 1) * scale));
    return DT_OK;
}

static dt_status sample_read(struct sample *sample)
{
    const struct dt_source *source = sample->source;
    const uint64_t width = dt__source_entries(source, 1) + (uint64_t)source->layout.dense + 1;
    uint64_t most = SAMPLE_VALUES / width;
    most = most < SAMPLE_BLOCK ? SAMPLE_BLOCK : most < SAMPLE_ROWS ? most : SAMPLE_ROWS;
    const uint64_t stride = SAMPLE_BLOCK * (1 + (source->rows - 1) / most);
    return dt__source_walk(source, SAMPLE_BLOCK, stride, sample_add_block, sample);
}

/* Of sorted values of one feature. Where the percentiles are one value, as in a column that is
 * nearly always 0, those of the rarer values. The zeros that sparse rows leave out belong to
 * them. */
static void fence_set(const struct sample_value *values, size_t count, bool sparse, double *low,
                      double *high)
{
    for (size_t rare = count / 100 + 1; rare > 0; rare /= 4) {
        if (count < 2 * rare + 1) continue;
        double least = (double)values[rare].value, most = (double)values[count - 1 - rare].value;
        if (sparse) least = fmin(least, 0), most = fmax(most, 0);
        if (!(most > least)) continue;
        *low = least - (most - least), *high = most + (most - least);
        return;
    }
}

static dt_status fences_learn(const struct dt_source *source, struct moments *moments)
{
    struct sample sample = {.source = source};
    dt_status status = sample_read(&sample);
    if (!status && sample.count)
        qsort(sample.values, sample.count, sizeof *sample.values, sample_value_compare);
    for (size_t at = 0, end; !status && at < sample.count; at = end) {
        const size_t feature = sample.values[at].feature;
        for (end = at; end < sample.count && sample.values[end].feature == feature; end++) {
        }
        fence_set(sample.values + at, end - at, feature >= (size_t)source->layout.dense,
                  &moments->low[feature], &moments->high[feature]);
    }
    dt_free(sample.values);
    return status;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Numbers get mean 0 and deviation 1. Sparse numbers keep their zeros and are scaled alone; flags
 * and categories stay as they are. */
static dt_status moments_to_schema(const struct moments *moments, struct dt_schema *schema)
{
    double farthest = 0;
    int far = 0, constants = 0, first = 0;
    const size_t features = (size_t)schema->features;
    const int numbers = schema_numbers(schema);
    DT_TRY(dt_alloc(features, sizeof(float), "normalisation", &schema->mean));
    DT_TRY(dt_alloc(features, sizeof(float), "normalisation", &schema->inv_std));
    for (int f = 0; f < schema->features; f++) {
        bool sparse = f >= schema->dense, number = f < numbers;
        double rows = (double)moments->rows, mean = moments->mean[f] / (sparse ? rows : 1);
        double variance = sparse ? moments->squares[f] / rows - mean * mean
                                 : moments->squares[f] / moments->count[f];
        bool constant = !sparse && moments->least[f] == moments->greatest[f];
        if (constant && number && !constants++) first = f;
        schema->mean[f] = sparse || !number ? 0 : (float)mean;
        schema->inv_std[f] =
            constant || !number || !(variance > 0) ? 1 : (float)(1 / sqrt(variance));
        const double apart = fmax(moments->greatest[f] - mean, mean - moments->least[f]) *
                             (double)schema->inv_std[f];
        if (!sparse && number && apart > farthest) farthest = apart, far = f;
    }
    /* Weights of such a column stay as they began. */
    if (constants && schema->feature_names && moments->rows > 1)
        dt_warn("'%s' (of %d such columns) has one value in all training rows: another one, later, "
                "changes what the network says at random; data.ignore leaves it out",
                schema->feature_names[first], constants);
    if (farthest > DT__FAR_DEVIATIONS && !(schema->clip > 0) && schema->feature_names)
        dt_info(
            "'%s' has a value %.0f deviations from its mean: if that is a misprint, or rare, "
            "data.normalize=robust, or data.clip=5, keeps it from deciding what the network says",
            schema->feature_names[far], farthest);
    return DT_OK;
}

static dt_status weights_settle(const struct moments *moments, struct dt_source *source)
{
    const double rows = (double)moments->rows;
    const size_t classes = (size_t)source->schema.classes;
    if (source->layout.weights) {
        if (!(moments->weight > 0)) return dt_fail(DT_EMISMATCH, "data.weight: all weights are 0");
        source->weight_scale = (float)(rows / moments->weight);
    }
    if (!moments->class_count) return DT_OK;
    DT_TRY(dt_alloc(classes, sizeof *source->class_weight, "weights", &source->class_weight));
    for (size_t c = 0; c < classes; c++)
        if (moments->class_count[c])
            source->class_weight[c] =
                (float)(rows / ((double)classes * (double)moments->class_count[c]));
    return DT_OK;
}

/* The targets' units, if they are asked for, or far from what a new network gives:
 * data.normalize_target. An output layer that the configuration names is one for fields, whose
 * points are alike: all have one mean and deviation. */
static dt_status units_settle(struct moments *moments, const struct dt_config *config,
                              struct dt_schema *schema)
{
    const size_t targets = (size_t)schema->targets;
    const double n = (double)targets;
    double *means = moments->target_mean, *squares = moments->target_squares;
    bool wanted = config->data.normalize_target == DT_NORMALIZE_TARGET_YES;
    if (!(moments->weight > 0)) return DT_OK;
    if (strstr(config->model.layers, "output ")) {
        double mean = 0, sum = 0;
        for (size_t i = 0; i < targets; i++)
            mean += means[i] / n;
        for (size_t i = 0; i < targets; i++) {
            const double apart = means[i] - mean;
            sum += (squares[i] + moments->weight * apart * apart) / n;
        }
        for (size_t i = 0; i < targets; i++)
            means[i] = mean, squares[i] = sum;
    }
    for (size_t i = 0; i < targets && !wanted; i++) {
        const double deviation = sqrt(squares[i] / moments->weight);
        wanted = fabs(means[i]) > 10 || deviation > 10 || (deviation > 0 && deviation < 0.1);
    }
    if (!wanted) return DT_OK;
    DT_TRY(dt_alloc(targets, sizeof(float), "normalisation", &schema->target_mean));
    DT_TRY(dt_alloc(targets, sizeof(float), "normalisation", &schema->target_std));
    for (size_t i = 0; i < targets; i++) {
        const float deviation = (float)sqrt(squares[i] / moments->weight);
        schema->target_mean[i] = (float)means[i];
        schema->target_std[i] = isnormal(deviation) ? deviation : 1;
    }
    return DT_OK;
}

/* Units alone are learned from some million rows, here and there in the data: enough for 3
 * digits. */
enum { UNITS_BLOCKS = 1 << 12 };

dt_status dt__statistics_learn(struct dt_source *source, const struct dt_config *config,
                               const struct dt_schema *known)
{
    struct dt_schema *schema = &source->schema;
    const size_t features = (size_t)schema->features, targets = (size_t)schema->targets;
    bool gaps = !known && schema->columns && source->columns.missing != DT_MISSING_ERROR;
    bool normalize = !known && config->data.normalize != DT_NORMALIZE_NONE;
    bool balanced = config->train.class_weight == DT_CLASS_WEIGHT_BALANCED && schema->classes;
    const struct dt_targets *of = dt_targets_of(schema->task, config->train.loss);
    bool counts = !known && of->expected;
    bool units = !known && of->units && config->data.normalize_target != DT_NORMALIZE_TARGET_NO;
    bool all = gaps || normalize || balanced || counts || source->layout.weights;
    struct moments moments = {.source = source};
    uint64_t stride = BLOCK_ROWS;
    double *sums;
    dt_status status;
    if (!all && !units) return DT_OK;
    if (!all) stride += source->rows / BLOCK_ROWS / UNITS_BLOCKS * BLOCK_ROWS;
    if (gaps || normalize) {
        DT_GUARD(dt_alloc(features, 7 * sizeof *sums, "normalisation", &sums));
        moments.count = sums, moments.mean = sums + features;
        moments.squares = sums + 2 * features;
        moments.least = sums + 3 * features, moments.greatest = sums + 4 * features;
        moments.low = sums + 5 * features, moments.high = sums + 6 * features;
        for (size_t f = 0; f < features; f++)
            moments.low[f] = -INFINITY, moments.high[f] = INFINITY;
    }
    if (balanced)
        DT_GUARD(dt_alloc((size_t)schema->classes, sizeof *moments.class_count, "classes",
                          &moments.class_count));
    if (units || counts) {
        DT_GUARD(dt_alloc(targets, 2 * sizeof *sums, "normalisation", &moments.target_mean));
        moments.target_squares = moments.target_mean + targets;
    }
    source->gaps = gaps;
    status = normalize && config->data.normalize == DT_NORMALIZE_ROBUST
                 ? fences_learn(source, &moments)
                 : DT_OK;
    if (!status) status = dt__source_walk(source, BLOCK_ROWS, stride, moments_add_block, &moments);
    source->gaps = false;
    if (status) goto done;
    for (int c = 0; gaps && c < schema->ncolumns; c++) {
        struct dt_column *column = &schema->columns[c];
        if (column->kind != DT_COLUMN_NUMBER) continue;
        column->fill =
            (float)(moments.mean[column->first] / (schema->scale != 0 ? schema->scale : 1));
        source->columns.items[c].fill = column->fill;
    }
    DT_GUARD(weights_settle(&moments, source));
    if (counts) DT_GUARD(dt__target_check(of, moments.target_least));
    if (counts) DT_GUARD(dt__target_check(of, moments.target_most));
    if (units) DT_GUARD(units_settle(&moments, config, schema));
    if (normalize) DT_GUARD(moments_to_schema(&moments, schema));
done:
    dt_free(moments.target_mean);
    dt_free(moments.class_count);
    dt_free(moments.count);
    return status;
}
