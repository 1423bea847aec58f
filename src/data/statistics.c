/* Statistics of the training data: mean and deviation of each feature and target, the replacements
 * of missing values, the scale of weights, and the weights of classes. They take one pass over the
 * rows in order, in double, so the results depend on the rows alone; fences and quantiles first
 * read a sample of the rows. */
#include "data/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/cursor.h"
#include "data/formats.h"

enum { BLOCK_ROWS = 256 };

/* Moments of a feature or a target: the number of values so far, their mean, sum of squared
 * deviations, least and greatest value. A value below `low` counts as `low`, one above `high` as
 * `high`: these two are the fences. */
struct moments {
    double count, mean, squares, least, greatest, low, high;
};

/* A sampled value, from which fences and quantiles are learned. */
struct sample {
    uint32_t feature;
    float value;
};

struct statistics {
    const struct dt_source *source;
    uint64_t rows;
    size_t numbers;        /* number of features that are numbers; they come before flags and
                            * categories */
    struct moments *x, *y; /* x: (numbers); y: (targets), weighted; NULL: not needed */
    double weight;         /* sum of the rows' weights */
    uint64_t *class_count; /* (classes) rows of each class; NULL: not needed */
    double scale;          /* sampled values are multiplied by this */
    struct sample *samples;
    size_t nsamples, samples_capacity;
};

static double row_value(const struct dt__row_layout *layout, const unsigned char *x, size_t feature)
{
    float value;
    if (layout->bytes) return x[feature];
    memcpy(&value, x + feature * sizeof value, sizeof value);
    return (double)value;
}

static double moments_fence(const struct moments *moments, double value)
{
    if (value < moments->low) return moments->low;
    return value > moments->high ? moments->high : value;
}

/* Adds a block's values of a dense feature to the moments of the feature. A missing value (NaN)
 * does not count. */
static void moments_merge(struct moments *moments, const struct dt__row_layout *layout,
                          double scale, const struct dt__block *block, size_t feature)
{
    const size_t stride = dt__row_layout_x(layout);
    double sum = 0, squares = 0, present = 0;
    for (size_t r = 0; r < block->rows; r++) {
        double value = row_value(layout, block->x + r * stride, feature) * scale;
        if (isnan(value)) continue;
        value = moments_fence(moments, value);
        sum += value;
        present++;
        moments->least = fmin(moments->least, value);
        moments->greatest = fmax(moments->greatest, value);
    }
    if (present == 0) return;
    const double mean = sum / present, apart = mean - moments->mean, before = moments->count;
    for (size_t r = 0; r < block->rows; r++) {
        const double value = row_value(layout, block->x + r * stride, feature) * scale;
        const double off = moments_fence(moments, value) - mean;
        if (!isnan(off)) squares += off * off;
    }
    moments->squares += squares + apart * apart * before * present / (before + present);
    moments->mean += apart * present / (before + present);
    moments->count += present;
}

/* Adds a weighted value; `weights` is the sum of all weights, this one included. Source: West 1979,
 * updating mean and variance estimates. */
static void moments_add(struct moments *moments, double value, double weight, double weights)
{
    const double off = value - moments->mean;
    moments->least = fmin(moments->least, value);
    moments->greatest = fmax(moments->greatest, value);
    moments->mean += off * (weight / weights);
    moments->squares += weight * off * (value - moments->mean);
}

static void statistics_add_y(struct statistics *statistics, const struct dt__block *block)
{
    const struct dt__row_layout *layout = &statistics->source->layout;
    for (size_t r = 0; r < block->rows; r++) {
        const double weight = block->weight ? (double)block->weight[r] : 1;
        const unsigned char *y = dt__block_y(layout, block, r);
        int32_t label;
        statistics->weight += weight;
        for (size_t i = 0; statistics->y && weight > 0 && i < (size_t)layout->targets; i++) {
            float value;
            memcpy(&value, y + i * sizeof value, sizeof value);
            moments_add(&statistics->y[i], (double)value, weight, statistics->weight);
        }
        if (!statistics->class_count) continue;
        memcpy(&label, y, sizeof label);
        statistics->class_count[label]++;
    }
}

static dt_status statistics_add_block(void *arg, const struct dt__block *block)
{
    struct statistics *statistics = arg;
    const struct dt__row_layout *layout = &statistics->source->layout;
    const double scale = statistics->source->schema.scale;
    statistics->rows += block->rows;
    statistics_add_y(statistics, block);
    if (!statistics->x) return DT_OK;
    for (size_t f = 0; f < statistics->numbers && f < (size_t)layout->dense; f++)
        moments_merge(&statistics->x[f], layout, scale, block, f);
    /* Sparse features: sums of the values and of their squares; absent entries are 0. */
    for (size_t e = 0; block->offsets && e < block->offsets[block->rows]; e++) {
        if (block->index[e] >= statistics->numbers) continue;
        struct moments *moments = &statistics->x[block->index[e]];
        const double value =
            moments_fence(moments, (block->value ? (double)block->value[e] : 1) * scale);
        moments->mean += value;
        moments->squares += value * value;
    }
    return DT_OK;
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* Robust statistics clamp values to two fences: the 1st and the 99th percentile of a sample, each
 * moved outward by the distance between the two percentiles. Values of a normal distribution never
 * reach that far (7 deviations), so without outliers robust statistics equal plain ones. Source:
 * Winsor's method, Tukey 1962, The Future of Data Analysis, section 14. */

/* Upper bounds of the sample: SAMPLE_ROWS rows, in blocks of SAMPLE_BLOCK rows spread over all
 * data, and SAMPLE_VALUES values. A 1st percentile needs about this many. */
enum { SAMPLE_ROWS = 1 << 14, SAMPLE_BLOCK = 64, SAMPLE_VALUES = 1 << 24 };

static int sample_compare(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    if (a->feature != b->feature) return a->feature < b->feature ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

/* Adds a value to the sample, unless it is missing (NaN). */
static dt_status sample_add(struct statistics *statistics, size_t feature, double value)
{
    if (isnan(value) || feature >= statistics->numbers) return DT_OK;
    DT_TRY(dt__grow(&statistics->samples, &statistics->samples_capacity, statistics->nsamples + 1,
                    sizeof *statistics->samples, "normalisation"));
    statistics->samples[statistics->nsamples++] =
        (struct sample){(uint32_t)feature, (float)(value * statistics->scale)};
    return DT_OK;
}

static dt_status sample_add_block(void *arg, const struct dt__block *block)
{
    struct statistics *statistics = arg;
    const struct dt__row_layout *layout = &statistics->source->layout;
    for (size_t r = 0; r < block->rows; r++)
        for (size_t f = 0; f < statistics->numbers && f < (size_t)layout->dense; f++)
            DT_TRY(sample_add(statistics, f, row_value(layout, dt__block_x(layout, block, r), f)));
    for (size_t e = 0; block->offsets && e < block->offsets[block->rows]; e++)
        DT_TRY(sample_add(statistics, block->index[e], block->value ? (double)block->value[e] : 1));
    return DT_OK;
}

/* Sets the fences of a feature from its sorted values. If both percentiles are equal, as in a
 * column that is nearly always 0, uses more extreme percentiles. In sparse rows, zeros that have no
 * entry also count as values. */
static void fence_set(const struct sample *values, size_t count, bool sparse,
                      struct moments *moments)
{
    for (size_t rare = count / 100 + 1; rare > 0; rare /= 4) {
        if (count < 2 * rare + 1) continue;
        double least = (double)values[rare].value, most = (double)values[count - 1 - rare].value;
        if (sparse) least = fmin(least, 0), most = fmax(most, 0);
        if (!(most > least)) continue;
        moments->low = least - (most - least);
        moments->high = most + (most - least);
        return;
    }
}

/* Samples the values, multiplies them by `scale`, and sorts them by feature and value. */
static dt_status sample_take(struct statistics *statistics, double scale)
{
    const struct dt_source *source = statistics->source;
    const uint64_t width = dt__source_entries(source, 1) + (uint64_t)source->layout.dense + 1;
    uint64_t most = SAMPLE_VALUES / width;
    most = most < SAMPLE_BLOCK ? SAMPLE_BLOCK : most < SAMPLE_ROWS ? most : SAMPLE_ROWS;
    const uint64_t stride = SAMPLE_BLOCK * (1 + (source->rows - 1) / most);
    statistics->nsamples = 0;
    statistics->scale = scale;
    DT_TRY(dt__source_walk(source, SAMPLE_BLOCK, stride, sample_add_block, statistics));
    struct sample *const samples = statistics->samples;
    if (statistics->nsamples) qsort(samples, statistics->nsamples, sizeof *samples, sample_compare);
    return DT_OK;
}

/* Returns the end of the range of samples that have the feature of samples[at]. */
static size_t sample_end(const struct statistics *statistics, size_t at)
{
    const struct sample *samples = statistics->samples;
    size_t end = at;
    while (end < statistics->nsamples && samples[end].feature == samples[at].feature)
        end++;
    return end;
}

static dt_status fences_learn(struct statistics *statistics)
{
    DT_TRY(sample_take(statistics, statistics->source->schema.scale));
    const struct sample *samples = statistics->samples;
    for (size_t at = 0, end; at < statistics->nsamples; at = end) {
        const size_t feature = samples[at].feature;
        end = sample_end(statistics, at);
        fence_set(samples + at, end - at, feature >= (size_t)statistics->source->layout.dense,
                  &statistics->x[feature]);
    }
    return DT_OK;
}

/* ---- quantiles ------------------------------------------------------------------------------- */

/* Rows per quantile, and the bounds of the number of quantiles. */
enum { QUANTILE_ROWS = 30, LEAST_QUANTILES = 10, MOST_QUANTILES = 1000 };

/* Returns true if sorted values contain more than two different ones. */
static bool has_many_values(const struct sample *values, size_t count)
{
    const float least = count ? values[0].value : 0, most = count ? values[count - 1].value : 0;
    for (size_t i = 0; i < count; i++)
        if (values[i].value != least && values[i].value != most) return true;
    return false;
}

/* Computes n quantiles of sorted values, at evenly spaced ranks, with linear interpolation between
 * values. */
static void quantiles_put(const struct sample *values, size_t count, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        const double rank = (double)i * (double)(count - 1) / (double)(n - 1);
        const size_t below = (size_t)rank, above = below + (below + 1 < count);
        const double low = (double)values[below].value, high = (double)values[above].value;
        out[i] = (float)(low + (rank - (double)below) * (high - low));
    }
}

/* Learns the quantiles, before scaling, of dense numbers that have more than two values. */
static dt_status quantiles_learn(struct statistics *statistics, struct dt_schema *schema)
{
    const size_t wanted = (size_t)(statistics->source->rows / QUANTILE_ROWS);
    const size_t n = wanted < LEAST_QUANTILES  ? LEAST_QUANTILES
                     : wanted > MOST_QUANTILES ? MOST_QUANTILES
                                               : wanted;
    size_t columns = 0;
    if (!statistics->nsamples || statistics->scale != 1) DT_TRY(sample_take(statistics, 1));
    const struct sample *samples = statistics->samples;
    DT_TRY(dt__alloc(statistics->numbers, sizeof(int64_t), "quantiles", &schema->encoded_feature));
    DT_TRY(dt__alloc(statistics->numbers, n * sizeof(float), "quantiles", &schema->quantile));
    for (size_t at = 0, end; at < statistics->nsamples; at = end) {
        end = sample_end(statistics, at);
        if (samples[at].feature >= (uint32_t)schema->dense) break;
        if (!has_many_values(samples + at, end - at)) continue;
        schema->encoded_feature[columns] = samples[at].feature;
        quantiles_put(samples + at, end - at, n, schema->quantile + columns++ * n);
    }
    schema->encoded = (int)columns;
    schema->quantiles = (int)(columns * n);
    if (!columns) dt__schema_forget_quantiles(schema);
    return DT_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Returns the column that a feature comes from (a date has several features). */
static const struct dt_column *feature_column(const struct dt_schema *schema, size_t feature)
{
    const struct dt_column *found = NULL;
    for (int c = 0; schema->columns && c < schema->ncolumns; c++)
        if (schema->columns[c].kind != DT_COLUMN_CATEGORY &&
            (size_t)schema->columns[c].first <= feature)
            found = &schema->columns[c];
    return found;
}

/* Returns true if 32-bit floats, which have 24 significant bits, can distinguish only a few of the
 * values, because the values are close together compared to their size: for example, the Unix times
 * of one day. */
static bool is_coarse(const struct moments *values, double mean, double deviation)
{
    static const double WHOLE = 1 << 24, FEW = 1000; /* FEW: in units of the distance between
                                                      * adjacent floats */
    return values->least < values->greatest && fabs(mean) > WHOLE &&
           deviation < FEW * 2 * fabs(mean) / WHOLE;
}

/* Sets mean and inv_std, which normalise numbers to mean 0 and deviation 1. Sparse numbers keep
 * their zeros and are only scaled; flags and categories are unchanged. Warns about features that
 * are constant, cannot be scaled, or lie far out. */
static dt_status normalisation_set(const struct statistics *statistics, struct dt_schema *schema)
{
    const double rows = (double)statistics->rows;
    const size_t features = (size_t)schema->features;
    double farthest = 0;
    size_t far = 0, constants = 0, first = 0, unscaled = 0, coarse = 0;
    DT_TRY(dt__alloc(features, sizeof(float), "normalisation", &schema->mean));
    DT_TRY(dt__alloc(features, sizeof(float), "normalisation", &schema->inv_std));
    for (size_t f = 0; f < features; f++)
        schema->inv_std[f] = 1;
    for (size_t f = 0; f < statistics->numbers; f++) {
        const struct moments *x = &statistics->x[f];
        const char *name = schema->feature_names ? schema->feature_names[f] : NULL;
        const bool sparse = f >= (size_t)schema->dense;
        const bool constant = !sparse && !(x->least < x->greatest);
        const double mean = x->mean / (sparse ? rows : 1);
        const double variance = sparse ? x->squares / rows - mean * mean : x->squares / x->count;
        if (!sparse && is_coarse(x, mean, sqrt(variance))) {
            if (!coarse++)
                dt__warn("feature %zu%s%s%s: its values, about %.9g, lie closer together than "
                         "32-bit floats resolve well: subtract a constant from them in the file",
                         f, name ? " (" : "", name ? name : "", name ? ")" : "", mean);
        } else if (constant && !constants++) {
            first = f;
        }
        const float inv_std = variance > 0 ? (float)(1 / sqrt(variance)) : 1;
        if (!constant && isnormal(inv_std)) schema->inv_std[f] = inv_std;
        if (!constant && !isnormal(inv_std) && !unscaled++)
            dt__warn(
                "feature %zu%s%s%s: the standard deviation, %g, is too large or too small to scale "
                "by: the feature is not scaled; data.ignore leaves it out",
                f, name ? " (" : "", name ? name : "", name ? ")" : "", sqrt(variance));
        if (sparse) continue;
        schema->mean[f] = (float)mean;
        const double apart = fmax(x->greatest - mean, mean - x->least) * (double)schema->inv_std[f];
        if (apart > farthest) farthest = apart, far = f;
    }
    /* A constant column has no effect on training, so its random initial weights stay. */
    if (constants && schema->feature_names && statistics->rows > 1) {
        const struct dt_column *column = feature_column(schema, first);
        dt__warn("'%s'%s has one value in all training rows%s: any other value later would change "
                 "predictions in an unknown way; data.ignore=%s leaves the %s out",
                 schema->feature_names[first], constants > 1 ? ", like others," : "",
                 fabs((double)schema->mean[first]) > 1 << 24 ? ", as 32-bit floats hold it" : "",
                 column && column->name ? column->name : schema->feature_names[first],
                 column && column->kind == DT_COLUMN_DATE ? "whole date" : "column");
    }
    if (farthest > DT__FAR_DEVIATIONS && !(schema->clip > 0) && schema->feature_names)
        dt__info("'%s' has a value %.0f deviations from its mean. If that is an error or rare, "
                 "data.normalize=robust or data.clip=5 limits its effect",
                 schema->feature_names[far], farthest);
    return DT_OK;
}

/* Sets the replacement of missing values in each column of numbers: the column's mean. */
static void fills_set(const struct statistics *statistics, struct dt_source *source)
{
    const double scale = source->schema.scale != 0 ? source->schema.scale : 1;
    for (int c = 0; c < source->schema.ncolumns; c++) {
        struct dt_column *column = &source->schema.columns[c];
        if (column->kind == DT_COLUMN_CATEGORY) continue;
        column->fill = (float)(statistics->x[column->first].mean / scale);
        source->columns.items[c].fill = column->fill;
    }
}

/* Sets the scale of the rows' weights, and the weights of the classes (train.class_weight). */
static dt_status weights_set(const struct statistics *statistics, struct dt_source *source)
{
    const double rows = (double)statistics->rows;
    const size_t classes = (size_t)source->schema.classes;
    if (source->layout.weights) {
        if (!(statistics->weight > 0))
            return dt_fail(DT_EMISMATCH, "data.weight: all weights are 0");
        source->weight_scale = (float)(rows / statistics->weight);
    }
    if (!statistics->class_count) return DT_OK;
    DT_TRY(dt__alloc(classes, sizeof *source->class_weight, "weights", &source->class_weight));
    for (size_t c = 0; c < classes; c++)
        if (statistics->class_count[c])
            source->class_weight[c] =
                (float)(rows / ((double)classes * (double)statistics->class_count[c]));
    return DT_OK;
}

/* Sets the targets' mean and deviation (data.normalize_target), if the configuration asks for them
 * or the targets are far from the outputs of an untrained network. If model.layers has an explicit
 * output layer, the targets are the points of a field, and share one mean and deviation. */
static dt_status units_set(const struct statistics *statistics, const struct dt_config *config,
                           struct dt_schema *schema)
{
    const size_t targets = (size_t)schema->targets;
    const double n = (double)targets, weight = statistics->weight;
    const bool alike = strstr(config->model.layers, "output ");
    struct moments *y = statistics->y;
    bool wanted = config->data.normalize_target == DT_NORMALIZE_TARGET_YES;
    double mean = 0, squares = 0;
    if (!(weight > 0)) return DT_OK;
    for (size_t i = 0; i < targets; i++)
        mean += y[i].mean / n;
    for (size_t i = 0; i < targets; i++)
        squares += (y[i].squares + weight * (y[i].mean - mean) * (y[i].mean - mean)) / n;
    for (size_t i = 0; i < targets; i++) {
        if (alike) y[i].mean = mean, y[i].squares = squares;
        const double deviation = sqrt(y[i].squares / weight);
        if (is_coarse(&y[i], y[i].mean, deviation))
            dt__warn("target %zu: its values, about %.9g, lie closer together than 32-bit floats "
                     "resolve well: subtract a constant from them in the file",
                     i, y[i].mean);
        wanted |= fabs(y[i].mean) > 10 || deviation > 10 || (deviation > 0 && deviation < 0.1);
    }
    if (!wanted) return DT_OK;
    DT_TRY(dt__alloc(targets, sizeof(float), "normalisation", &schema->target_mean));
    DT_TRY(dt__alloc(targets, sizeof(float), "normalisation", &schema->target_std));
    for (size_t i = 0; i < targets; i++) {
        const float deviation = (float)sqrt(y[i].squares / weight);
        schema->target_mean[i] = (float)y[i].mean;
        schema->target_std[i] = isnormal(deviation) ? deviation : 1;
    }
    return DT_OK;
}

/* Sets the range of the training targets (data.clamp_target). The points of a field share one
 * range, as in units_set. */
static dt_status range_set(const struct statistics *statistics, const struct dt_config *config,
                           struct dt_schema *schema)
{
    const size_t targets = (size_t)schema->targets;
    const bool alike = strstr(config->model.layers, "output ");
    const struct moments *y = statistics->y;
    double least = INFINITY, greatest = -INFINITY;
    for (size_t i = 0; i < targets; i++) {
        least = fmin(least, y[i].least);
        greatest = fmax(greatest, y[i].greatest);
    }
    if (!(least <= greatest)) return DT_OK; /* no rows */
    DT_TRY(dt__alloc(targets, sizeof(float), "range of targets", &schema->target_least));
    DT_TRY(dt__alloc(targets, sizeof(float), "range of targets", &schema->target_greatest));
    for (size_t i = 0; i < targets; i++) {
        schema->target_least[i] = (float)(alike ? least : y[i].least);
        schema->target_greatest[i] = (float)(alike ? greatest : y[i].greatest);
    }
    return DT_OK;
}

/* Returns true if the loss bounds the targets, and some file's targets are unchecked. (The survey
 * has checked the targets of text files.) */
static bool targets_are_unchecked(const struct dt__survey *survey)
{
    const struct dt_source *source = survey->source;
    bool any = false;
    for (size_t i = 0; i < source->nfiles; i++)
        any |= !dt__formats[source->files[i].format]->grammar;
    return any && survey->targets->expected;
}

static dt_status targets_check(const struct dt__survey *survey, const struct moments *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dt_status status = dt__target_check(survey->targets, y[i].least);
        if (!status) status = dt__target_check(survey->targets, y[i].greatest);
        if (status)
            return dt_fail_prefix(status,
                                  "%s data: ", survey->training ? "training" : "evaluation");
    }
    return DT_OK;
}

/* If only the targets' mean and deviation are learned, a million rows or so, spread over the data,
 * give three digits. */
enum { UNITS_BLOCKS = 1 << 12 };

dt_status dt__statistics_learn(const struct dt__survey *survey)
{
    struct dt_source *source = survey->source;
    const struct dt_config *config = survey->config;
    const bool known = survey->known;
    const struct dt_targets *kind = survey->targets;
    struct dt_schema *schema = &source->schema;
    const size_t targets = (size_t)schema->targets;
    const bool gaps = !known && schema->columns && source->columns.missing != DT_MISSING_ERROR;
    const bool normalize = !known && config->data.normalize != DT_NORMALIZE_NONE;
    const int encoding = config->data.encode; /* auto: as run.preset says */
    const bool encodes = encoding == DT_ENCODE_AUTO ? config->run.preset == DT_PRESET_TABLE
                                                    : encoding != DT_ENCODE_NONE;
    const bool encode = !known && encodes && !schema->shape[0];
    const bool balanced = config->train.class_weight == DT_CLASS_WEIGHT_BALANCED &&
                          schema->classes && survey->training;
    const bool units =
        !known && kind->units && config->data.normalize_target != DT_NORMALIZE_TARGET_NO;
    const bool bounds = targets_are_unchecked(survey);
    const bool clamps = !known && targets && config->data.clamp_target;
    struct statistics statistics = {.source = source};
    struct moments *moments;
    uint64_t stride = BLOCK_ROWS;
    dt_status status;
    const bool all =
        gaps || normalize || encode || balanced || bounds || clamps || source->layout.weights;
    if (!all && !units) return DT_OK;
    if (!all) stride += source->rows / BLOCK_ROWS / UNITS_BLOCKS * BLOCK_ROWS;
    const bool values = gaps || normalize || encode;
    statistics.numbers = schema->columns || !values ? 0 : (size_t)schema->features;
    for (int c = 0; schema->columns && values && c < schema->ncolumns; c++)
        statistics.numbers += (size_t)dt__column_numbers(&schema->columns[c], NULL);
    DT_TRY(dt__alloc(statistics.numbers + targets, sizeof *moments, "normalisation", &moments));
    for (size_t i = 0; i < statistics.numbers + targets; i++)
        moments[i] = (struct moments){
            .least = INFINITY, .greatest = -INFINITY, .low = -INFINITY, .high = INFINITY};
    if (values) statistics.x = moments;
    if (units || bounds || clamps) statistics.y = moments + statistics.numbers;
    source->gaps = gaps;
    if (balanced)
        DT_GUARD(dt__alloc((size_t)schema->classes, sizeof *statistics.class_count, "classes",
                           &statistics.class_count));
    if (normalize && config->data.normalize == DT_NORMALIZE_ROBUST)
        DT_GUARD(fences_learn(&statistics));
    if (encode) DT_GUARD(quantiles_learn(&statistics, schema));
    DT_GUARD(dt__source_walk(source, BLOCK_ROWS, stride, statistics_add_block, &statistics));
    if (gaps) fills_set(&statistics, source);
    DT_GUARD(weights_set(&statistics, source));
    if (bounds) DT_GUARD(targets_check(survey, statistics.y, targets));
    if (clamps) DT_GUARD(range_set(&statistics, config, schema));
    if (units) DT_GUARD(units_set(&statistics, config, schema));
    if (normalize) DT_GUARD(normalisation_set(&statistics, schema));
done:
    source->gaps = false;
    dt_free(statistics.class_count);
    dt_free(statistics.samples);
    dt_free(moments);
    return status;
}
