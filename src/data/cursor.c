/* Cursors: read rows of a source from files of any format, and keep only the rows of its side. */
#include "data/cursor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "data/formats.h"

struct open_file {
    const struct dt__file *file; /* NULL: the slot is free */
    void *reader;
    uint64_t used; /* value of cursor->now at the last use */
};

struct dt__cursor {
    const struct dt_source *source;
    bool stops;   /* a requested stop ends reads */
    uint64_t now; /* counts uses of readers */
    struct open_file open[DT__OPEN_FILES];
    struct dt__block scratch; /* raw rows of both the source's side and other sides */
};

dt_status dt__cursor_open(const struct dt_source *source, bool stops, struct dt__cursor **out)
{
    struct dt__cursor *cursor;
    DT_TRY(dt__alloc(1, sizeof *cursor, "cursor", &cursor));
    cursor->source = source;
    cursor->stops = stops;
    dt_status status = DT_OK;
    if (source->split.before)
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

/* Closes the least recently used readers, except `last`, until the decompressed data that the open
 * readers keep fits in the source's memory. */
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

/* Finds the reader of a file. If the file is not open, closes the least recently used file and
 * opens this one. */
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

/* Checks that n floats are finite. `noun` is what the message calls one of them. */
static dt_status floats_check(const struct dt__file *file, uint64_t row, const char *noun,
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
                   row, noun, column - 1);
}

/* Checks rows [row, row + count) of a file, which a reader has just appended to a block. The file
 * may have changed since the survey. (Typed rows of text cannot change, and need no check.) */
static dt_status rows_check(const struct dt_source *source, const struct dt__file *file,
                            uint64_t row, size_t count, struct dt__block *block)
{
    const struct dt__row_layout *layout = &source->layout;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *x = dt__block_x(layout, block, block->rows - count + i);
        unsigned char *y = dt__block_y(layout, block, block->rows - count + i);
        int32_t label;
        if (!layout->bytes && !source->gaps)
            DT_TRY(floats_check(file, row + i, "column", x, layout->dense));
        DT_TRY(floats_check(file, row + i, "target", y, layout->targets));
        const float weight = layout->weights ? block->weight[block->rows - count + i] : 1;
        if (!isfinite(weight) || weight < 0)
            return dt_fail(DT_EFORMAT, "%s: row %" PRIu64 ": the weight is %g; expected 0 or more",
                           file->path, row + i, (double)weight);
        if (layout->targets) continue;
        memcpy(&label, y, sizeof label);
        dt_status status = dt__class_check(source->schema.classes, label);
        if (status && source->takes_unknown) {
            label = -1;
            memcpy(y, &label, sizeof label);
            continue;
        }
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
    const bool sifting = source->split.before;
    const uint64_t most =
        sifting ? DT__SIFTED_ROWS : DT__LOAD_BYTES / dt__source_row_bytes(source) + 1;
    struct dt__block *to = sifting ? &cursor->scratch : out;
    if (!count) return DT_OK;
    if (out->rows + count > out->capacity) return dt_fail(DT_EBUG, "no room for rows of data");
    uint64_t raw = dt__source_raw(source, row);
    const uint64_t end = dt__source_raw(source, row + count - 1) + 1;
    for (size_t step; raw < end; raw += step) { /* each step: raw rows of one file */
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
            if (dt__split_side(&source->split, raw + i) == source->side)
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
