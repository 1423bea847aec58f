/* Reading rows of a source wherever they lie. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/reader.h"

enum { OPEN_FILES = 8, SCRATCH_ROWS = 256, PIECE_BYTES = 16 << 20 };

struct open_file {
    const struct dt__file *file; /* NULL: the place is free */
    void *reader;
    uint64_t used; /* when it was last used */
};

struct dt__cursor {
    const struct dt_source *source;
    bool random;
    uint64_t now;
    struct open_file open[OPEN_FILES];
    struct dt__block scratch; /* raw rows, where some rows are not of the part */
};

dt_status dt__cursor_open(const struct dt_source *source, bool random, struct dt__cursor **out)
{
    struct dt__cursor *cursor;
    DT_TRY(dt_alloc(1, sizeof *cursor, "cursor", &cursor));
    cursor->source = source;
    cursor->random = random;
    dt_status status = DT_OK;
    if (source->holdout.count)
        status = dt__block_alloc(&source->layout, SCRATCH_ROWS, &cursor->scratch);
    if (status)
        dt__cursor_close(cursor);
    else
        *out = cursor;
    return status;
}

static void close_place(struct open_file *place)
{
    if (place->file) dt__format_of(place->file->format)->close(place->reader);
    *place = (struct open_file){0};
}

void dt__cursor_close(struct dt__cursor *cursor)
{
    if (!cursor) return;
    for (int i = 0; i < OPEN_FILES; i++)
        close_place(&cursor->open[i]);
    dt__block_free(&cursor->scratch);
    dt_free(cursor);
}

/* ---- files ---------------------------------------------------------------------------------- */

static dt_status open_reader(struct dt__cursor *cursor, const struct dt__file *file,
                             struct open_file *place)
{
    uint64_t bytes;
    DT_TRY(dt__file_measure(file, &bytes));
    if (bytes != file->bytes)
        return dt_fail(DT_EMISMATCH, "%s: the file has changed since the survey", file->path);
    DT_TRY(dt__format_of(file->format)->open(cursor->source, file, cursor->random, &place->reader));
    place->file = file;
    return DT_OK;
}

/* The open reader of a file; the one used longest ago makes place. */
static dt_status find_reader(struct dt__cursor *cursor, const struct dt__file *file, void **out)
{
    struct open_file *place = &cursor->open[0];
    for (int i = 0; i < OPEN_FILES && place->file != file; i++)
        if (cursor->open[i].file == file || cursor->open[i].used < place->used)
            place = &cursor->open[i];
    if (place->file != file) {
        close_place(place);
        DT_TRY(open_reader(cursor, file, place));
    }
    place->used = ++cursor->now;
    *out = place->reader;
    return DT_OK;
}

static const struct dt__file *find_file(const struct dt_source *source, uint64_t raw)
{
    size_t low = 0, high = source->nfiles;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (source->files[middle].raw <= raw)
            low = middle;
        else
            high = middle;
    }
    return &source->files[low];
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool all_finite(const unsigned char *bytes, size_t n)
{
    float sum = 0, value;
    for (size_t i = 0; i < n; i++) {
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        sum += value * 0;
    }
    return sum == 0;
}

static dt_status fail_not_finite(const struct dt__file *file, uint64_t row,
                                 const unsigned char *bytes, const char *what)
{
    float value;
    size_t column = 0;
    do
        memcpy(&value, bytes + column++ * sizeof value, sizeof value);
    while (isfinite(value));
    return dt_fail(DT_EFORMAT, "%s: row %" PRIu64 ": %s %zu is not a finite number", file->path,
                   row, what, column - 1);
}

static dt_status check_finite(const struct dt_source *source, const struct dt__file *file,
                              uint64_t row, size_t count, struct dt__block block)
{
    const struct dt__layout *layout = &source->layout;
    for (size_t i = 0; i < count; i++) {
        struct dt__block at = dt__block_at(layout, block, i);
        if (!layout->bytes && !all_finite(at.x, (size_t)layout->features))
            return fail_not_finite(file, row + i, at.x, "column");
        if (layout->targets && !all_finite(at.y, (size_t)layout->targets))
            return fail_not_finite(file, row + i, at.y, "target");
    }
    return DT_OK;
}

/* Class labels of binary files may have changed, or lie; text was looked up. */
static dt_status check_labels(const struct dt_source *source, const struct dt__file *file,
                              uint64_t row, size_t count, struct dt__block block)
{
    if (source->layout.targets) return DT_OK;
    for (size_t i = 0; i < count; i++) {
        int32_t label, class;
        memcpy(&label, block.y + i * sizeof label, sizeof label);
        dt_status status = dt__label_of_number(&source->schema, label, &class);
        if (status) return dt_fail_prefix(status, "%s: row %" PRIu64 ": ", file->path, row + i);
    }
    return DT_OK;
}

/* Raw rows [raw, raw + count), which lie in one file. */
static dt_status read_raw(struct dt__cursor *cursor, const struct dt__file *file, uint64_t raw,
                          size_t count, struct dt__block out)
{
    void *reader;
    uint64_t row = raw - file->raw;
    DT_TRY(find_reader(cursor, file, &reader));
    DT_TRY(dt__format_of(file->format)->read(reader, row, count, out));
    DT_TRY(check_finite(cursor->source, file, row, count, out));
    return check_labels(cursor->source, file, row, count, out);
}

/* Copies the rows of the part among raw rows [raw, raw + count) to out; returns how many. */
static size_t sift(const struct dt__cursor *cursor, uint64_t raw, size_t count,
                   struct dt__block out)
{
    const struct dt_source *source = cursor->source;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (dt__holdout_has(&source->holdout, raw + i) != source->held_out) continue;
        struct dt__block from = dt__block_at(&source->layout, cursor->scratch, i);
        struct dt__block to = dt__block_at(&source->layout, out, kept++);
        memcpy(to.x, from.x, dt__layout_x(&source->layout));
        memcpy(to.y, from.y, dt__layout_y(&source->layout));
    }
    return kept;
}

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

static dt_status read_rows(struct dt__cursor *cursor, uint64_t row, size_t count,
                           struct dt__block out)
{
    const struct dt_source *source = cursor->source;
    if (!count) return DT_OK;
    uint64_t raw = dt__source_raw(source, row);
    uint64_t end = dt__source_raw(source, row + count - 1) + 1;
    for (size_t step; raw < end; raw += step) {
        const struct dt__file *file = find_file(source, raw);
        bool sifting = source->holdout.count != 0;
        step = least(end - raw, file->raw + file->rows - raw);
        if (sifting) step = least(step, SCRATCH_ROWS);
        DT_TRY(read_raw(cursor, file, raw, step, sifting ? cursor->scratch : out));
        out = dt__block_at(&source->layout, out, sifting ? sift(cursor, raw, step, out) : step);
    }
    return DT_OK;
}

dt_status dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                          struct dt__block out)
{
    dt_status status = read_rows(cursor, row, count, out);
    dt_work_gets_on();
    return status;
}

dt_status dt__cursor_load(struct dt__cursor *cursor, uint64_t row, uint64_t count,
                          struct dt__block out)
{
    const struct dt__layout *layout = &cursor->source->layout;
    uint64_t piece = PIECE_BYTES / dt__layout_row(layout) + 1;
    for (uint64_t done = 0, rows; done < count; done += rows) {
        rows = least(count - done, piece);
        DT_TRY(dt_stop_check());
        DT_TRY(dt__cursor_read(cursor, row + done, (size_t)rows,
                               dt__block_at(layout, out, (size_t)done)));
    }
    return DT_OK;
}
