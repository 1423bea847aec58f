/* Rows of a source in file order. */
#include "data/gather.h"
#include "data/reader.h"

enum { MEMORY_SHARE = 4 }; /* of data.memory_mb: the loader may hold all of it beside this */

struct dt_table {
    struct dt__gather gather;
    uint64_t begin, end;
    struct dt__cursor *cursor; /* NULL: all rows are in memory */
    struct dt__block rows;     /* all of them, or those of one call */
    uint64_t slots[DT_EVAL_CHUNK];
    float *x;
    unsigned char *y;
};

static dt_status fill_table(struct dt_table *table, const struct dt_config *config,
                            const struct dt_source *source)
{
    uint64_t rows = table->end - table->begin;
    uint64_t budget = ((uint64_t)config->data.memory_mb << 20) / MEMORY_SHARE;
    bool held = rows <= budget / dt__layout_row(&source->layout);
    dt__gather_init(&table->gather, &source->layout, &source->schema);
    DT_TRY(dt_alloc(DT_EVAL_CHUNK, (size_t)source->layout.features * sizeof(float), "rows",
                    &table->x));
    DT_TRY(dt_alloc(DT_EVAL_CHUNK, dt__layout_y(&source->layout), "labels", &table->y));
    DT_TRY(dt__block_alloc(&source->layout, held ? (size_t)rows : DT_EVAL_CHUNK, &table->rows));
    DT_TRY(dt__cursor_open(source, false, &table->cursor));
    if (!held) return DT_OK;
    DT_TRY(dt__cursor_load(table->cursor, table->begin, rows, table->rows));
    dt__cursor_close(table->cursor);
    table->cursor = NULL;
    return DT_OK;
}

dt_status dt_table_create(const struct dt_config *config, const struct dt_source *source,
                          uint64_t begin, uint64_t end, struct dt_table **out)
{
    struct dt_table *table;
    if (begin > end || end > source->rows) return dt_fail(DT_EBUG, "no such rows in the source");
    DT_TRY(dt_alloc(1, sizeof *table, "table", &table));
    table->begin = begin;
    table->end = end;
    dt_status status = fill_table(table, config, source);
    if (status)
        dt_table_destroy(table);
    else
        *out = table;
    return status;
}

void dt_table_destroy(struct dt_table *table)
{
    if (!table) return;
    dt__cursor_close(table->cursor);
    dt__block_free(&table->rows);
    dt_free(table->x);
    dt_free(table->y);
    dt_free(table);
}

dt_status dt_table_read(struct dt_table *table, uint64_t begin, int count, struct dt_batch *out)
{
    if (count < 0 || count > DT_EVAL_CHUNK || begin < table->begin ||
        begin + (uint64_t)count > table->end)
        return dt_fail(DT_EBUG, "no such rows in the table");
    if (table->cursor) DT_TRY(dt__cursor_read(table->cursor, begin, (size_t)count, table->rows));
    uint64_t first = table->cursor ? 0 : begin - table->begin;
    for (int i = 0; i < count; i++)
        table->slots[i] = first + (uint64_t)i;
    dt__gather_rows(&table->gather, table->rows, table->slots, (size_t)count, table->x, table->y);
    *out = (struct dt_batch){.rows = count, .x = table->x};
    if (table->gather.layout.targets)
        out->target = (const float *)(const void *)table->y;
    else
        out->label = (const int32_t *)(const void *)table->y;
    return DT_OK;
}
