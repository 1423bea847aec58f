/* The format of rows in the caller's memory: arrays that are surveyed and read like a file. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/format.h"
#include "data/learned.h"

static dt_status weights_check(const struct dt__file *file)
{
    const float *weight = file->arrays.weight;
    for (uint64_t row = 0; weight && row < file->arrays.rows; row++)
        if (!isfinite(weight[row]) || weight[row] < 0)
            return dt_fail(DT_EFORMAT,
                           "%s: row %" PRIu64 ": weight %g: expected a finite number, 0 or more",
                           file->path, row, (double)weight[row]);
    return DT_OK;
}

/* Adds all values to a CRC-32C, which for text files covers the records. */
static uint32_t values_crc(uint32_t crc, const struct dt_arrays *arrays)
{
    const size_t rows = (size_t)arrays->rows, targets = (size_t)arrays->targets;
    crc = dt__crc32c(crc, arrays->x, rows * (size_t)arrays->features * sizeof *arrays->x);
    if (arrays->label) crc = dt__crc32c(crc, arrays->label, rows * sizeof *arrays->label);
    if (arrays->target)
        crc = dt__crc32c(crc, arrays->target, rows * targets * sizeof *arrays->target);
    if (arrays->weight) crc = dt__crc32c(crc, arrays->weight, rows * sizeof *arrays->weight);
    if (arrays->group) crc = dt__crc32c(crc, arrays->group, rows * sizeof *arrays->group);
    if (arrays->time) crc = dt__crc32c(crc, arrays->time, rows * sizeof *arrays->time);
    return crc;
}

static dt_status keys_learn(struct dt__survey *survey, const struct dt__file *file)
{
    const struct dt_arrays *arrays = &file->arrays;
    struct dt__row_keys *keys = &survey->keys;
    keys->grouped = survey->keyed && arrays->group;
    keys->timed = survey->keyed && arrays->time;
    for (uint64_t row = 0; row < arrays->rows; row++) {
        dt_status status = DT_OK;
        if (keys->grouped)
            status = dt__row_keys_add_number(keys, false, (double)arrays->group[row]);
        if (keys->timed && !status) status = dt__row_keys_add_number(keys, true, arrays->time[row]);
        if (status) return dt_fail_prefix(status, "%s: row %" PRIu64 ": ", file->path, row);
    }
    return DT_OK;
}

static dt_status memory_survey(struct dt__survey *survey, struct dt__file *file)
{
    const struct dt_arrays *arrays = &file->arrays;
    size_t features = (size_t)arrays->features;
    file->rows = arrays->rows;
    dt__labels_enter(&survey->labels, file->path);
    survey->source->text_crc = values_crc(survey->source->text_crc, arrays);
    DT_TRY(dt__survey_features(survey, features));
    DT_TRY(weights_check(file));
    DT_TRY(keys_learn(survey, file));
    for (uint64_t row = 0; row < arrays->rows && !survey->has_floats; row++)
        survey->has_floats = !dt__floats_are_bytes(arrays->x + row * features, features);
    if (!survey->targets->classes) {
        if (!arrays->target) return dt_fail(DT_EMISMATCH, "rows in memory: expected targets");
        return dt__survey_targets(survey, (uint64_t)arrays->targets);
    }
    if (!arrays->label) return dt_fail(DT_EMISMATCH, "rows in memory: expected labels");
    for (uint64_t row = 0; row < arrays->rows; row++) {
        dt_status status = dt__labels_add_number(&survey->labels, arrays->label[row]);
        if (status) return dt_fail_prefix(status, "%s: row %" PRIu64 ": ", file->path, row);
    }
    return DT_OK;
}

struct memory_reader {
    const struct dt__file *file;
    const struct dt_source *source;
};

static dt_status memory_open(const struct dt_source *source, const struct dt__file *file,
                             void **out)
{
    struct memory_reader *reader;
    DT_TRY(dt__alloc(1, sizeof *reader, "reader", &reader));
    *reader = (struct memory_reader){file, source};
    *out = reader;
    return DT_OK;
}

static dt_status memory_read(void *arg, uint64_t row, size_t count, struct dt__block *out)
{
    const struct memory_reader *reader = arg;
    const struct dt__row_layout *layout = &reader->source->layout;
    const struct dt_arrays *arrays = &reader->file->arrays;
    size_t features = (size_t)layout->features, targets = (size_t)layout->targets;
    for (uint64_t r = row; r < row + count; r++) {
        const float *x = arrays->x + r * features;
        unsigned char *to = dt__block_x(layout, out, out->rows);
        if (layout->bytes && !dt__floats_are_bytes(x, features))
            return dt_fail(DT_EMISMATCH, "%s: row %" PRIu64 " has changed since the survey",
                           reader->file->path, r);
        for (size_t f = 0; f < features && layout->bytes; f++)
            to[f] = (unsigned char)x[f];
        if (!layout->bytes) memcpy(to, x, features * sizeof *x);
        to = dt__block_y(layout, out, out->rows);
        if (targets)
            memcpy(to, arrays->target + r * targets, targets * sizeof *arrays->target);
        else
            memcpy(to, arrays->label + r, sizeof *arrays->label);
        if (!targets) dt__classes_of_labels(&reader->source->classes, to, 1);
        dt__block_add(layout, out, 1);
        if (layout->weights) out->weight[out->rows - 1] = arrays->weight[r];
    }
    return DT_OK;
}

const struct dt__format dt__format_memory = {.name = "rows in memory",
                                             .survey = memory_survey,
                                             .open = memory_open,
                                             .read = memory_read,
                                             .close = dt_free};
