/* Reads the labels or targets of a source's rows, in file order and without the inputs: those of
 * all rows or, in a large source, of evenly spread blocks. The result depends only on the data and
 * the configuration. */
#include <string.h>

#include "data/batch.h"
#include "data/cursor.h"

enum { BLOCK_ROWS = 256 };
/* Upper bounds of the rows, targets and dense inputs to read; the mean over a million rows is
 * accurate to three digits. The bounds, and so the result, do not depend on the file format. */
static const uint64_t MOST_ROWS = 1 << 20, MOST_TARGETS = 1 << 22, MOST_INPUTS = 1 << 26;

struct sample {
    const struct dt_source *source;
    size_t rows, width; /* width: bytes of a row's y */
    unsigned char *y;
    float *weight;
};

static dt_status sample_add_block(void *arg, const struct dt__block *block)
{
    struct sample *sample = arg;
    for (size_t r = 0; r < block->rows; r++, sample->rows++) {
        memcpy(sample->y + sample->rows * sample->width,
               dt__block_y(&sample->source->layout, block, r), sample->width);
        if (sample->weight) sample->weight[sample->rows] = dt__row_weight(sample->source, block, r);
    }
    return DT_OK;
}

/* Returns the number of rows from the start of one block to the start of the next, large enough to
 * keep the reading within the bounds. */
static uint64_t sample_stride(const struct dt_source *source)
{
    const uint64_t targets = source->layout.targets ? (uint64_t)source->layout.targets : 1;
    uint64_t most = MOST_INPUTS / ((uint64_t)source->layout.dense + 1);
    if (most > MOST_TARGETS / targets) most = MOST_TARGETS / targets;
    if (most > MOST_ROWS) most = MOST_ROWS;
    const uint64_t blocks = most / BLOCK_ROWS + 1;
    return BLOCK_ROWS * (1 + (source->rows - 1) / BLOCK_ROWS / blocks);
}

dt_status dt__source_targets(const struct dt_source *source, struct dt_batch *out)
{
    const uint64_t stride = sample_stride(source);
    const size_t rows = (size_t)((source->rows - 1) / stride + 1) * BLOCK_ROWS;
    const bool weighs = source->layout.weights || source->class_weight;
    struct sample sample = {.source = source, .width = dt__row_layout_y(&source->layout)};
    dt_status status;
    DT_GUARD(dt__alloc(rows, sample.width, "targets", &sample.y));
    if (weighs) DT_GUARD(dt__alloc(rows, sizeof *sample.weight, "weights", &sample.weight));
    DT_GUARD(dt__source_walk(source, BLOCK_ROWS, stride, sample_add_block, &sample));
    *out = (struct dt_batch){.rows = (int)sample.rows, .weight = sample.weight};
    if (source->layout.targets)
        out->target = (const float *)(const void *)sample.y;
    else
        out->label = (const int32_t *)(const void *)sample.y;
    return DT_OK;
done:
    dt_free(sample.weight);
    dt_free(sample.y);
    return status;
}

void dt__source_targets_free(struct dt_batch *batch)
{
    const void *const owned[] = {batch->label, batch->target, batch->weight};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free((void *)(uintptr_t)owned[i]);
    *batch = (struct dt_batch){0};
}
