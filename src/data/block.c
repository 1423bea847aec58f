/* Blocks of raw rows in memory, how files of all formats are read into them, and batches. */
#include "base/clones.h"
#include "data/block.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "data/input.h"
#include "data/labels.h"
#include "data/source.h"

/* ---- blocks --------------------------------------------------------------------------------- */

bool dt__floats_are_bytes(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= 0 && x[i] <= 255) || signbit(x[i]) || x[i] != (float)(int)x[i]) return false;
    return true;
}

/* Room for `count` entries in all. */
static dt_status block_reserve(struct dt__block *block, size_t count, bool values)
{
    size_t room = block->room;
    DT_TRY(dt__grow(&block->index, &room, count, sizeof *block->index, "entries of data"));
    if (values)
        DT_TRY(
            dt__grow(&block->value, &block->room, count, sizeof *block->value, "entries of data"));
    block->room = room;
    return DT_OK;
}

dt_status dt__block_alloc(const struct dt__layout *layout, size_t rows, uint64_t entries,
                          struct dt__block *out)
{
    struct dt__block block = {.capacity = rows};
    dt_status status;
    DT_GUARD(dt__alloc(rows, dt__layout_x(layout), "rows of data", &block.x));
    DT_GUARD(dt__alloc(rows, dt__layout_y(layout), "labels of data", &block.y));
    if (layout->weights)
        DT_GUARD(dt__alloc(rows, sizeof *block.weight, "weights of data", &block.weight));
    if (dt__layout_is_sparse(layout)) {
        DT_GUARD(dt__alloc(rows + 1, sizeof *block.offsets, "rows of data", &block.offsets));
        DT_GUARD(block_reserve(&block, (size_t)entries + 1, layout->values));
    }
    *out = block;
    return DT_OK;
done:
    dt__block_free(&block);
    return status;
}

void dt__block_free(struct dt__block *block)
{
    dt_free(block->x);
    dt_free(block->y);
    dt_free(block->weight);
    dt_free(block->offsets);
    dt_free(block->index);
    dt_free(block->value);
    *block = (struct dt__block){0};
}

void dt__block_add(const struct dt__layout *layout, struct dt__block *block, size_t count)
{
    for (size_t r = block->rows; r < block->rows + count; r++) {
        if (layout->weights) block->weight[r] = 1;
        if (block->offsets) block->offsets[r + 1] = block->offsets[r];
    }
    block->rows += count;
}

unsigned char *dt__block_add_zeros(const struct dt__layout *layout, struct dt__block *block)
{
    dt__block_add(layout, block, 1);
    return memset(dt__block_x(layout, block, block->rows - 1), 0, dt__layout_x(layout));
}

dt_status dt__block_add_entry(struct dt__block *block, uint32_t index, float value)
{
    if (!block->offsets) return dt_fail(DT_EBUG, "a row has no such feature as %u", index);
    const size_t at = (size_t)block->offsets[block->rows]++;
    if (at >= block->room) DT_TRY(block_reserve(block, at + 1, block->value != NULL));
    block->index[at] = index;
    if (block->value) block->value[at] = value;
    return DT_OK;
}

/* Into the row behind the last. */
static dt_status block_copy_entries(struct dt__block *block, const struct dt__block *from,
                                    uint64_t row)
{
    const size_t first = (size_t)from->offsets[row], count = (size_t)from->offsets[row + 1] - first;
    const size_t at = (size_t)block->offsets[block->rows];
    block->offsets[block->rows + 1] = at + count;
    if (!count) return DT_OK;
    DT_TRY(block_reserve(block, at + count, block->value != NULL));
    memcpy(block->index + at, from->index + first, count * sizeof *block->index);
    if (block->value) memcpy(block->value + at, from->value + first, count * sizeof *block->value);
    return DT_OK;
}

dt_status dt__block_add_copy(const struct dt__layout *layout, struct dt__block *block,
                             const struct dt__block *from, size_t row)
{
    memcpy(dt__block_x(layout, block, block->rows), dt__block_x(layout, from, row),
           dt__layout_x(layout));
    memcpy(dt__block_y(layout, block, block->rows), dt__block_y(layout, from, row),
           dt__layout_y(layout));
    if (layout->weights) block->weight[block->rows] = from->weight[row];
    if (block->offsets) DT_TRY(block_copy_entries(block, from, row));
    block->rows++;
    return DT_OK;
}

/* ---- formats -------------------------------------------------------------------------------- */

const struct dt__format *const dt__formats[] = {
    [DT_FORMAT_IDX] = &dt__format_idx,        [DT_FORMAT_CSV] = &dt__format_csv,
    [DT_FORMAT_LIBSVM] = &dt__format_libsvm,  [DT_FORMAT_HDF5] = &dt__format_hdf5,
    [DT__FORMAT_MEMORY] = &dt__format_memory, [DT__FORMAT_SHARD] = &dt__format_shard,
};

enum { HEAD_BYTES = 4096 };

/* What nothing tells is CSV, and so is what cannot be read twice. */
dt_status dt__format_detect(const char *path, int *out)
{
    static const int order[] = {DT_FORMAT_HDF5, DT_FORMAT_IDX, DT_FORMAT_LIBSVM};
    unsigned char head[HEAD_BYTES];
    size_t length;
    const char *suffix = strrchr(path, '.') ? strrchr(path, '.') : "";
    *out = DT_FORMAT_CSV;
    if (dt__path_is_pipe(path)) return DT_OK;
    DT_TRY(dt__packed_head(path, head, sizeof head, &length));
    if (!length) return dt_fail(DT_EFORMAT, "%s: the file is empty", path);
    for (size_t i = sizeof order / sizeof *order; i-- > 0;)
        if (dt__formats[order[i]]->is(suffix, head, length)) *out = order[i];
    return DT_OK;
}

dt_status dt__stream_refuse(const char *name, const unsigned char *head, size_t length)
{
    for (size_t i = 0; i < sizeof dt__formats / sizeof *dt__formats; i++) {
        const struct dt__format *format = dt__formats[i];
        if (format && format->is && !format->grammar && format->is("", head, length))
            return dt_fail(DT_EFORMAT,
                           "%s: this is %s, which is read from plain files alone (data.train, "
                           "data.eval)",
                           name, format->name);
    }
    return dt__packed_refuse(name, head, length);
}

/* ---- the cursor ----------------------------------------------------------------------------- */

struct open_file {
    const struct dt__file *file; /* NULL: the place is free */
    void *reader;
    uint64_t used; /* when it was last used */
};

struct dt__cursor {
    const struct dt_source *source;
    bool stops; /* on request */
    uint64_t now;
    struct open_file open[DT__OPEN_FILES];
    struct dt__block scratch; /* raw rows, where some rows are not of the part */
};

dt_status dt__cursor_open(const struct dt_source *source, bool stops, struct dt__cursor **out)
{
    struct dt__cursor *cursor;
    DT_TRY(dt__alloc(1, sizeof *cursor, "cursor", &cursor));
    cursor->source = source;
    cursor->stops = stops;
    dt_status status = DT_OK;
    if (source->holdout.count)
        status = dt__block_alloc(&source->layout, DT__SIFTED_ROWS, 0, &cursor->scratch);
    if (status)
        dt__cursor_close(cursor);
    else
        *out = cursor;
    return status;
}

static void place_close(struct open_file *place)
{
    if (place->file) dt__formats[place->file->format]->close(place->reader);
    *place = (struct open_file){0};
}

void dt__cursor_close(struct dt__cursor *cursor)
{
    if (!cursor) return;
    for (int i = 0; i < DT__OPEN_FILES; i++)
        place_close(&cursor->open[i]);
    dt__block_free(&cursor->scratch);
    dt_free(cursor);
}

/* Closes readers that were used longest ago until what all keep of unpacked chunks fits in the
 * memory, or `last` is alone. */
static void cursor_spare(struct dt__cursor *cursor, const struct open_file *last)
{
    uint64_t held = UINT64_MAX;
    while (held > cursor->source->memory) {
        struct open_file *oldest = NULL;
        held = 0;
        for (int i = 0; i < DT__OPEN_FILES; i++) {
            struct open_file *place = &cursor->open[i];
            const struct dt__format *format = place->file ? dt__formats[place->file->format] : NULL;
            if (!format || !format->held) continue;
            held += format->held(place->reader);
            if (place != last && (!oldest || place->used < oldest->used)) oldest = place;
        }
        if (!oldest) return;
        if (held > cursor->source->memory) place_close(oldest);
    }
}

/* The open reader of a file; the one used longest ago makes place. */
static dt_status cursor_find_reader(struct dt__cursor *cursor, const struct dt__file *file,
                                    void **out)
{
    struct open_file *place = &cursor->open[0];
    for (int i = 0; i < DT__OPEN_FILES && place->file != file; i++)
        if (cursor->open[i].file == file || cursor->open[i].used < place->used)
            place = &cursor->open[i];
    if (place->file != file) {
        uint64_t bytes = file->bytes;
        place_close(place);
        if (!dt__formats[file->format]->grammar) DT_TRY(dt__file_measure(file, &bytes));
        if (bytes != file->bytes)
            return dt_fail(DT_EMISMATCH, "%s: the file has changed since the survey", file->path);
        DT_TRY(dt__formats[file->format]->open(cursor->source, file, &place->reader));
        place->file = file;
        cursor_spare(cursor, place);
    }
    place->used = ++cursor->now;
    *out = place->reader;
    return DT_OK;
}

static dt_status floats_check(const struct dt__file *file, uint64_t row, const char *what,
                              const unsigned char *bytes, int n)
{
    float sum = 0, value;
    for (int i = 0; i < n; i++) {
        memcpy(&value, bytes + (size_t)i * sizeof value, sizeof value);
        sum += value * 0;
    }
    if (sum == 0) return DT_OK;
    size_t column = 0;
    do
        memcpy(&value, bytes + column++ * sizeof value, sizeof value);
    while (isfinite(value));
    return dt_fail(DT_EFORMAT, "%s: row %" PRIu64 ": %s %zu is not a finite number", file->path,
                   row, what, column - 1);
}

/* What a reader has just added: rows [row, row + count) of a file at the end of a block. Files may
 * have changed since the survey; typed rows of text have not. */
static dt_status rows_check(const struct dt_source *source, const struct dt__file *file,
                            uint64_t row, size_t count, const struct dt__block *block)
{
    const struct dt__layout *layout = &source->layout;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *x = dt__block_x(layout, block, block->rows - count + i);
        const unsigned char *y = dt__block_y(layout, block, block->rows - count + i);
        int32_t label;
        if (!layout->bytes && !source->gaps)
            DT_TRY(floats_check(file, row + i, "column", x, layout->dense));
        DT_TRY(floats_check(file, row + i, "target", y, layout->targets));
        const float weight = layout->weights ? block->weight[block->rows - count + i] : 1;
        if (!isfinite(weight) || weight < 0)
            return dt_fail(DT_EFORMAT, "%s: row %" PRIu64 ": the weight %g: expected 0 or more",
                           file->path, row + i, (double)weight);
        if (layout->targets) continue;
        memcpy(&label, y, sizeof label);
        dt_status status = dt__class_check(source->schema.classes, label);
        if (status) return dt_fail_prefix(status, "%s: row %" PRIu64 ": ", file->path, row + i);
    }
    return DT_OK;
}

static size_t smaller(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

dt_status dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                          struct dt__block *out)
{
    const struct dt_source *source = cursor->source;
    const bool sifting = source->holdout.count != 0;
    const uint64_t most =
        sifting ? DT__SIFTED_ROWS : DT__LOAD_BYTES / dt__source_row_bytes(source) + 1;
    struct dt__block *to = sifting ? &cursor->scratch : out;
    if (!count) return DT_OK;
    if (out->rows + count > out->capacity) return dt_fail(DT_EBUG, "no room for rows of data");
    uint64_t raw = dt__source_raw(source, row);
    const uint64_t end = dt__source_raw(source, row + count - 1) + 1;
    for (size_t step; raw < end; raw += step) { /* raw rows that lie in one file */
        const struct dt__file *file =
            source->files +
            dt__find_last(&source->files->raw, source->nfiles, sizeof *source->files, raw);
        void *reader;
        step = smaller(smaller(end - raw, file->raw + file->rows - raw), most);
        if (cursor->stops) DT_TRY(dt__stop_check());
        if (sifting) to->rows = 0;
        DT_TRY(cursor_find_reader(cursor, file, &reader));
        DT_TRY(dt__formats[file->format]->read(reader, raw - file->raw, step, to));
        if (!dt__formats[file->format]->grammar)
            DT_TRY(rows_check(source, file, raw - file->raw, step, to));
        for (size_t i = 0; sifting && i < step; i++)
            if (dt__holdout_has(&source->holdout, raw + i) == source->held_out)
                DT_TRY(dt__block_add_copy(&source->layout, out, to, i));
        dt__work_progress();
    }
    return DT_OK;
}

dt_status dt__source_walk(const struct dt_source *source, size_t rows, uint64_t stride,
                          dt__rows_fn *visit, void *arg)
{
    struct dt__block block = {0};
    struct dt__cursor *cursor;
    DT_TRY(dt__cursor_open(source, true, &cursor));
    dt_status status = dt__block_alloc(&source->layout, rows, 0, &block);
    for (uint64_t at = 0; !status && at < source->rows; at += stride) {
        block.rows = 0;
        status = dt__cursor_read(cursor, at, smaller(source->rows - at, rows), &block);
        if (!status) status = visit(arg, &block);
    }
    dt__block_free(&block);
    dt__cursor_close(cursor);
    return status;
}

/* ---- kernels ------------------------------------------------------------------------------- */

DT__CLONES
static void clip_floats(size_t n, float most, float *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        const float low = x[i] < -most ? -most : x[i];
        x[i] = low > most ? most : low;
    }
}

/* Of raw values that are bytes, and of floats. */
#define KERNELS(type, values)                                                                      \
    DT__CLONES static void scale_##values(size_t n, const type *restrict raw, float scale,         \
                                          float *restrict x)                                       \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            x[i] = (float)raw[i] * scale;                                                          \
    }                                                                                              \
    DT__CLONES static void normalise_##values(size_t n, const type *restrict raw, float scale,     \
                                              const float *restrict mean,                          \
                                              const float *restrict inv_std, float *restrict x)    \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            x[i] = ((float)raw[i] * scale - mean[i]) * inv_std[i];                                 \
    }                                                                                              \
    static void row_of_##values(const struct dt_schema *schema, size_t n, const type *raw,         \
                                float *x)                                                          \
    {                                                                                              \
        const float scale = (float)schema->scale;                                                  \
        if (schema->mean)                                                                          \
            normalise_##values(n, raw, scale, schema->mean, schema->inv_std, x);                   \
        else                                                                                       \
            scale_##values(n, raw, scale, x);                                                      \
        if (schema->clip > 0) clip_floats(n, (float)schema->clip, x);                              \
    }
KERNELS(unsigned char, bytes)
KERNELS(float, floats)

void dt__schema_normalize(const struct dt_schema *schema, const float *raw, size_t rows, float *x)
{
    size_t n = (size_t)schema->features;
    for (size_t r = 0; r < rows; r++)
        row_of_floats(schema, n, raw + r * n, x + r * n);
}

/* Entries are scaled, and never moved: what is 0 stays 0. */
static void entries_normalize(const struct dt_schema *schema, size_t n, const uint32_t *index,
                              float *value)
{
    const float scale = (float)schema->scale;
    for (size_t i = 0; i < n; i++)
        value[i] *= scale;
    for (size_t i = 0; schema->inv_std && i < n; i++)
        value[i] *= schema->inv_std[index[i]];
    if (schema->clip > 0) clip_floats(n, (float)schema->clip, value);
}

void dt__row_normalize(const struct dt_schema *schema, struct dt__block *row, float *x,
                       uint32_t *index, float *value)
{
    const size_t dense = (size_t)schema->dense, rest = (size_t)schema->features - dense;
    const size_t entries = row->offsets ? (size_t)row->offsets[1] : 0;
    row_of_floats(schema, dense, (const float *)(const void *)row->x, x);
    entries_normalize(schema, entries, row->index, row->value);
    if (!index) memset(x + dense, 0, rest * sizeof *x);
    for (size_t i = 0; i < entries; i++) {
        if (!index) x[row->index[i]] = row->value[i];
        if (index) index[i] = row->index[i], value[i] = row->value[i];
    }
}

/* ---- batches -------------------------------------------------------------------------------- */

dt_status dt__assembly_init(struct dt__assembly *assembly, const struct dt_source *source,
                            size_t rows, uint64_t memory)
{
    static const uint64_t modest = UINT64_C(1) << 30;
    const struct dt__layout *layout = &source->layout;
    const size_t width = (size_t)layout->dense * sizeof(float);
    size_t bytes;
    *assembly = (struct dt__assembly){.source = source, .layout = source->layout};
    if (!dt__size_mul(rows, width, &bytes) || (bytes > memory && bytes > modest))
        return dt_fail(DT_EMEMORY,
                       "%zu rows of %d features take %.0f MiB in memory, more than data.memory_mb",
                       rows, layout->dense, (double)rows * (double)width / 1048576);
    assembly->layout.bytes = false;
    assembly->layout.weights |= source->class_weight != NULL;
    return dt__block_alloc(&assembly->layout, rows, dt__source_most_entries(source, rows),
                           &assembly->rows);
}

void dt__assembly_free(struct dt__assembly *assembly)
{
    dt__block_free(&assembly->rows);
}

float dt__row_weight(const struct dt_source *source, const struct dt__block *from, uint64_t slot)
{
    float weight = from->weight ? from->weight[slot] * source->weight_scale : 1;
    int32_t label;
    if (!source->class_weight) return weight;
    memcpy(&label, dt__block_y(&source->layout, from, slot), sizeof label);
    return weight * source->class_weight[label];
}

/* Rows lie scattered over memory: their lines are asked for so many rows ahead (measured with 784
 * bytes a row; 2 to 8 do equally well). */
enum { AHEAD = 4, LINE = 64 };

dt_status dt__assembly_rows(struct dt__assembly *assembly, const struct dt__block *from,
                            const uint64_t *slots, size_t at, size_t count)
{
    const struct dt_source *source = assembly->source;
    const struct dt_schema *schema = &source->schema;
    const struct dt__layout *layout = &source->layout;
    const size_t width = dt__layout_x(layout), n = (size_t)layout->dense;
    struct dt__block *to = &assembly->rows;
    to->rows = at;
    for (size_t i = 0; i < count; i++, to->rows++) {
        const uint64_t slot = slots[i];
        const unsigned char *next = from->x + slots[i + AHEAD < count ? i + AHEAD : i] * width;
        const unsigned char *raw = from->x + slot * width, *y = dt__block_y(layout, from, slot);
        float *x = (float *)(void *)dt__block_x(&assembly->layout, to, to->rows);
        for (size_t b = 0; b < width; b += LINE)
            __builtin_prefetch(next + b);
        if (layout->bytes)
            row_of_bytes(schema, n, raw, x);
        else
            row_of_floats(schema, n, (const float *)(const void *)raw, x);
        memcpy(dt__block_y(layout, to, to->rows), y, dt__layout_y(layout));
        if (to->weight) to->weight[to->rows] = dt__row_weight(source, from, slot);
        if (!to->offsets) continue;
        DT_TRY(block_copy_entries(to, from, slot));
        const size_t first = (size_t)to->offsets[to->rows];
        if (to->value) /* those without are 1, or 0 */
            entries_normalize(schema, (size_t)to->offsets[to->rows + 1] - first, to->index + first,
                              to->value + first);
    }
    return DT_OK;
}

void dt__assembly_batch(const struct dt__assembly *assembly, int count, struct dt_batch *out)
{
    const struct dt__block *rows = &assembly->rows;
    const bool targets = assembly->layout.targets;
    *out = (struct dt_batch){.rows = count,
                             .ndense = assembly->layout.dense,
                             .x = (const float *)(const void *)rows->x,
                             .offsets = rows->offsets,
                             .index = rows->index,
                             .value = rows->value,
                             .weight = rows->weight,
                             .target = targets ? (const float *)(const void *)rows->y : NULL,
                             .label = targets ? NULL : (const int32_t *)(const void *)rows->y};
}
