/* Normalisation. */
#include "data/stats.h"

#include <math.h>
#include <string.h>

#include "data/reader.h"

enum { BLOCK_ROWS = 256 };

/* Of each feature: mean and sum of squared deviations so far, least and greatest value. */
struct moments {
    uint64_t rows;
    double *mean, *squares, *least, *greatest;
};

static double value_at(const struct dt__layout *layout, const unsigned char *x, size_t feature)
{
    float value;
    if (layout->bytes) return x[feature];
    memcpy(&value, x + feature * sizeof value, sizeof value);
    return (double)value;
}

/* Merges a block of rows into the moments of one feature. */
static void merge(const struct dt__layout *layout, double scale, const unsigned char *x,
                  size_t rows, size_t feature, struct moments *moments)
{
    size_t stride = dt__layout_x(layout);
    double sum = 0, squares = 0, before = (double)moments->rows, here = (double)rows;
    for (size_t r = 0; r < rows; r++) {
        double value = value_at(layout, x + r * stride, feature) * scale;
        sum += value;
        if (!moments->rows && !r) moments->least[feature] = moments->greatest[feature] = value;
        moments->least[feature] = fmin(moments->least[feature], value);
        moments->greatest[feature] = fmax(moments->greatest[feature], value);
    }
    double mean = sum / here, apart = mean - moments->mean[feature];
    for (size_t r = 0; r < rows; r++) {
        double off = value_at(layout, x + r * stride, feature) * scale - mean;
        squares += off * off;
    }
    moments->squares[feature] += squares + apart * apart * before * here / (before + here);
    moments->mean[feature] += apart * here / (before + here);
}

static dt_status read_moments(struct dt_source *source, struct moments *moments)
{
    struct dt__block block = {0};
    struct dt__cursor *cursor;
    DT_TRY(dt__cursor_open(source, false, &cursor));
    dt_status status = dt__block_alloc(&source->layout, BLOCK_ROWS, &block);
    for (size_t rows; !status && moments->rows < source->rows; moments->rows += rows) {
        uint64_t left = source->rows - moments->rows;
        rows = left < BLOCK_ROWS ? (size_t)left : BLOCK_ROWS;
        status = dt__cursor_load(cursor, moments->rows, rows, block);
        for (size_t f = 0; !status && f < (size_t)source->layout.features; f++)
            merge(&source->layout, source->schema.scale, block.x, rows, f, moments);
    }
    dt__block_free(&block);
    dt__cursor_close(cursor);
    return status;
}

static void set_schema(const struct moments *moments, struct dt_schema *schema)
{
    for (int f = 0; f < schema->features; f++) {
        double deviation = sqrt(moments->squares[f] / (double)moments->rows);
        bool constant = moments->least[f] == moments->greatest[f];
        schema->mean[f] = (float)moments->mean[f];
        schema->inv_std[f] = constant || !(deviation > 0) ? 1 : (float)(1 / deviation);
    }
}

dt_status dt__stats_learn(struct dt_source *source)
{
    struct dt_schema *schema = &source->schema;
    size_t n = (size_t)schema->features;
    double *all;
    DT_TRY(dt_alloc(n, 4 * sizeof *all, "normalisation", &all));
    struct moments moments = {0, all, all + n, all + 2 * n, all + 3 * n};
    dt_status status = dt_alloc(n, sizeof(float), "normalisation", &schema->mean);
    if (!status) status = dt_alloc(n, sizeof(float), "normalisation", &schema->inv_std);
    if (!status) status = read_moments(source, &moments);
    if (!status) set_schema(&moments, schema);
    dt_free(all);
    return status;
}
