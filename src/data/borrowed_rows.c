/* Borrowed rows: x, y, weights and z of all raw rows of a source, in contiguous arrays that several
 * processes read. One process fills the memory, and all of them attach it to their sources. Not
 * collective. */
#include <string.h>

#include "base/limits.h"
#include "data/cursor.h"
#include "data/source.h"
#include "table/normalize.h"

enum { ROWS_AT_ONCE = 4096, LINE = 64 };

/* Places the arrays in `memory`: sets their addresses in *out. Returns the size of all arrays, in
 * bytes. If `memory` is NULL, the addresses are NULL. */
static size_t block_place(const struct dt_source *source, unsigned char *memory,
                          struct dt__block *out)
{
    const struct dt__row_layout *layout = &source->layout;
    const size_t rows = (size_t)source->raw_rows;
    const size_t bytes[] = {rows * dt__row_layout_x(layout), rows * dt__row_layout_y(layout),
                            layout->weights ? rows * sizeof(float) : 0,
                            rows * (size_t)source->schema.encoded * sizeof(float)};
    unsigned char *place[4];
    size_t at = 0;
    for (int i = 0; i < 4; i++) {
        place[i] = memory && bytes[i] ? memory + at : NULL;
        at += (bytes[i] + LINE - 1) / LINE * LINE;
    }
    *out = (struct dt__block){.rows = rows,
                              .capacity = rows,
                              .x = place[0],
                              .y = place[1],
                              .weight = (float *)(void *)place[2],
                              .z = (float *)(void *)place[3]};
    return at;
}

size_t dt__borrowed_rows_bytes(const struct dt_source *source)
{
    struct dt__block block;
    const uint64_t fit = source->memory / dt__source_row_bytes(source);
    if (source->raw_rows > fit || dt__row_layout_is_sparse(&source->layout)) return 0;
    return block_place(source, NULL, &block);
}

static void block_copy(const struct dt_source *source, const struct dt__block *from, size_t at,
                       struct dt__block *to)
{
    const struct dt__row_layout *layout = &source->layout;
    const size_t rows = from->rows, n = (size_t)source->schema.encoded;
    memcpy(dt__block_x(layout, to, at), from->x, rows * dt__row_layout_x(layout));
    memcpy(dt__block_y(layout, to, at), from->y, rows * dt__row_layout_y(layout));
    if (to->weight) memcpy(to->weight + at, from->weight, rows * sizeof *to->weight);
    if (to->z) memcpy(to->z + at * n, from->z, rows * n * sizeof *to->z);
}

dt_status dt__borrowed_rows_fill(const struct dt_source *source, void *memory)
{
    struct dt_source all = *source; /* a shallow copy: its arrays are only read */
    struct dt__block to, from = {0};
    struct dt__cursor *cursor = NULL;
    dt_status status;
    all.split = (struct dt__split){.rows = source->raw_rows};
    all.side = DT__TRAIN;
    all.rows = source->raw_rows;
    block_place(source, memory, &to);
    DT_GUARD(dt__cursor_open(&all, true, &cursor));
    DT_GUARD(dt__block_alloc(&source->layout, ROWS_AT_ONCE, 0, &from));
    for (size_t at = 0, rows; at < to.rows; at += rows) {
        rows = to.rows - at < ROWS_AT_ONCE ? to.rows - at : ROWS_AT_ONCE;
        from.rows = 0;
        DT_GUARD(dt__cursor_read(cursor, at, rows, &from));
        DT_GUARD(dt__block_encode(&source->schema, &source->layout, &from));
        block_copy(source, &from, at, &to);
    }
done:
    dt__block_free(&from);
    dt__cursor_close(cursor);
    return status;
}

void dt__borrowed_rows_attach(struct dt_source *source, void *memory)
{
    if (memory) block_place(source, memory, &source->borrowed);
}
