/* The training rows of one rank's replicas, in memory or streamed; and the rows of a source in file
 * order, for evaluation. */
#include <string.h>

#include "data/augment.h"
#include "data/batch.h"
#include "data/order.h"
#include "data/readahead.h"
#include "data/reader.h"

enum { CHUNK_BYTES = 1 << 20, CHUNKS_IN_WINDOW = 8 };

struct dt_loader {
    const struct dt_plan *plan;
    struct dt__assembly assembly;
    int first, count, max_rows;
    struct dt__order *orders;    /* (count) */
    uint64_t *bases;             /* (count) row of the block at which each shard begins */
    struct dt__block rows;       /* in memory: all shards, one behind the other */
    struct dt__readahead *ahead; /* NULL: in memory */
    uint64_t *slots;             /* (max_rows) */
    struct dt__augment augment;
    int shape[3];   /* of a row, for the above */
    float *picture; /* (features) scratch of the above */
};

/* ---- order ---------------------------------------------------------------------------------- */

static uint64_t memory_budget(const struct dt_config *config)
{
    return (uint64_t)config->data.memory_mb << 20;
}

static uint64_t at_least_1(uint64_t n)
{
    return n ? n : 1;
}

/* *rows: of all the rank's replicas. */
static dt_status loader_make_orders(struct dt_loader *loader, const struct dt_config *config,
                                    const struct dt_source *source, uint64_t *rows)
{
    uint64_t window, chunk, seed = loader->plan->seed;
    /* Rows of a window: all if the whole source fits in memory; else so many that two windows of
     * each of the R replicas fit, wherever the replicas are. */
    uint64_t row = dt__source_row_bytes(source), asked = (uint64_t)config->data.shuffle_window;
    window = chunk = source->rows;
    if (source->rows > memory_budget(config) / row) {
        window = at_least_1(memory_budget(config) / (2 * (uint64_t)loader->plan->replicas) / row);
        if (asked && asked < window) window = asked;
        chunk = at_least_1(window / CHUNKS_IN_WINDOW);
        if (chunk > CHUNK_BYTES / row) chunk = at_least_1(CHUNK_BYTES / row);
        window -= window % chunk;
    }
    DT_TRY(dt_alloc((size_t)loader->count, sizeof *loader->orders, "replicas", &loader->orders));
    DT_TRY(dt_alloc((size_t)loader->count, sizeof *loader->bases, "replicas", &loader->bases));
    *rows = 0;
    for (int i = 0; i < loader->count; i++) {
        int replica = loader->first + i;
        uint64_t mine = dt_plan_replica_rows(loader->plan, replica);
        dt__order_init(&loader->orders[i], seed, replica, mine, window, chunk);
        loader->bases[i] = *rows;
        *rows += mine;
    }
    return DT_OK;
}

/* ---- in memory ------------------------------------------------------------------------------ */

/* All shards, one behind the other. */
static dt_status loader_read_all(struct dt_loader *loader, const struct dt_source *source,
                                 uint64_t rows)
{
    struct dt__cursor *cursor;
    DT_TRY(dt__block_alloc(&source->layout, rows, dt__source_entries(source, rows), &loader->rows));
    DT_TRY(dt__cursor_open(source, &cursor));
    dt_status status = DT_OK;
    for (int i = 0; i < loader->count; i++) {
        const struct dt__shard *shard = &loader->plan->shards[loader->first + i];
        for (size_t s = 0; s < shard->nsegments && !status; s++)
            status = dt__cursor_load(cursor, shard->segments[s].row, shard->segments[s].count,
                                     &loader->rows);
    }
    dt__cursor_close(cursor);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------ */

dt_status dt_loader_create(const struct dt_config *config, const struct dt_source *source,
                           const struct dt_plan *plan, int first, int count, int max_rows,
                           uint64_t step, struct dt_loader **out)
{
    struct dt_loader *loader;
    const struct dt_schema *schema = &source->schema;
    const uint64_t most = (uint64_t)max_rows;
    uint64_t rows;
    dt_status status;
    DT_TRY(dt_alloc(1, sizeof *loader, "loader", &loader));
    *loader =
        (struct dt_loader){.plan = plan, .first = first, .count = count, .max_rows = max_rows};
    memcpy(loader->shape, schema->shape, sizeof loader->shape);
    DT_GUARD(loader_make_orders(loader, config, source, &rows));
    DT_GUARD(dt_alloc(most, sizeof *loader->slots, "batch", &loader->slots));
    DT_GUARD(dt__assembly_init(&loader->assembly, source, most, memory_budget(config)));
    DT_GUARD(dt__augment_parse(config->data.augment, &loader->augment));
    if (dt__augment_any(&loader->augment) &&
        (!schema->shape[0] || schema->dense < schema->features))
        DT_GUARD(dt_fail(DT_EMISMATCH, "data.augment = %s: the rows are %s", config->data.augment,
                         schema->shape[0]
                             ? "sparse in the checkpoint, pictures are not"
                             : "no pictures (data.shape says what they are, e.g. 28x28x1)"));
    if (dt__augment_any(&loader->augment))
        DT_GUARD(dt_alloc((size_t)schema->features, sizeof *loader->picture, "pictures",
                          &loader->picture));
    if (rows <= memory_budget(config) / dt__source_row_bytes(source))
        DT_GUARD(loader_read_all(loader, source, rows));
    else
        DT_GUARD(
            dt__readahead_create(source, plan, first, loader->orders, count, step, &loader->ahead));
    *out = loader;
    return DT_OK;
done:
    dt_loader_destroy(loader);
    return status;
}

void dt_loader_destroy(struct dt_loader *loader)
{
    if (!loader) return;
    dt__readahead_destroy(loader->ahead);
    dt__block_free(&loader->rows);
    dt_free(loader->orders);
    dt_free(loader->bases);
    dt_free(loader->slots);
    dt__assembly_free(&loader->assembly);
    dt_free(loader->picture);
    dt_free(loader);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A share may reach over several windows. */
static dt_status loader_read_stream(struct dt_loader *loader, int index, uint64_t epoch,
                                    uint64_t begin, size_t count)
{
    struct dt__order *order = &loader->orders[index];
    for (size_t done = 0, take; done < count; done += take) {
        const struct dt__block *block;
        uint64_t at = (begin + done) / order->window;
        uint64_t left = (at + 1) * order->window - (begin + done);
        take = left < count - done ? (size_t)left : count - done;
        for (size_t i = 0; i < take; i++)
            loader->slots[i] = dt__order_slot(order, epoch, begin + done + i);
        DT_TRY(dt__readahead_window(loader->ahead, index, epoch, at, &block));
        DT_TRY(dt__assembly_rows(&loader->assembly, block, loader->slots, done, take));
    }
    return DT_OK;
}

dt_status dt_loader_read(struct dt_loader *loader, int replica, uint64_t epoch, uint64_t begin,
                         int count, struct dt_batch *out)
{
    const int index = replica - loader->first;
    if (index < 0 || index >= loader->count || count < 0 || count > loader->max_rows ||
        begin + (uint64_t)count > loader->orders[index].rows)
        return dt_fail(DT_EBUG, "replica %d has no such %d samples", replica, count);
    struct dt__order *order = &loader->orders[index];
    if (loader->ahead) DT_TRY(loader_read_stream(loader, index, epoch, begin, (size_t)count));
    for (uint64_t i = begin, run; !loader->ahead && i < begin + (uint64_t)count; i++) {
        uint64_t slot = dt__order_slot(order, epoch, i);
        if (order->window < order->rows)
            slot = dt__order_row(order, epoch, i / order->window, slot, &run);
        loader->slots[i - begin] = loader->bases[index] + slot;
    }
    if (!loader->ahead)
        DT_TRY(
            dt__assembly_rows(&loader->assembly, &loader->rows, loader->slots, 0, (size_t)count));
    if (dt__augment_any(&loader->augment))
        dt__augment_rows(&loader->augment, loader->shape, loader->plan->seed, replica, epoch, begin,
                         count, (float *)(void *)loader->assembly.rows.x, loader->picture);
    dt__assembly_batch(&loader->assembly, count, out);
    return DT_OK;
}

/* ==== rows in file order ====================================================================== */

enum { MEMORY_SHARE = 4 }; /* of data.memory_mb: the loader may hold all of it beside this */

struct dt_table {
    struct dt__assembly assembly;
    uint64_t begin, end;
    struct dt__cursor *cursor; /* NULL: all rows are in memory */
    struct dt__block rows;     /* all of them, or those of one call */
    uint64_t slots[DT_EVAL_CHUNK];
};

dt_status dt_table_create(const struct dt_config *config, const struct dt_source *source,
                          uint64_t begin, uint64_t end, struct dt_table **out)
{
    const uint64_t budget = memory_budget(config) / MEMORY_SHARE;
    struct dt_table *table;
    dt_status status;
    if (begin > end || end > source->rows) return dt_fail(DT_EBUG, "no such rows in the source");
    DT_TRY(dt_alloc(1, sizeof *table, "table", &table));
    table->begin = begin;
    table->end = end;
    const bool held = end - begin <= budget / dt__source_row_bytes(source);
    const uint64_t rows = held ? end - begin : DT_EVAL_CHUNK;
    DT_GUARD(dt__assembly_init(&table->assembly, source, DT_EVAL_CHUNK, budget * MEMORY_SHARE));
    DT_GUARD(
        dt__block_alloc(&source->layout, rows, dt__source_entries(source, rows), &table->rows));
    DT_GUARD(dt__cursor_open(source, &table->cursor));
    if (held) {
        DT_GUARD(dt__cursor_load(table->cursor, begin, rows, &table->rows));
        dt__cursor_close(table->cursor);
        table->cursor = NULL;
    }
    *out = table;
    return DT_OK;
done:
    dt_table_destroy(table);
    return status;
}

void dt_table_destroy(struct dt_table *table)
{
    if (!table) return;
    dt__cursor_close(table->cursor);
    dt__block_free(&table->rows);
    dt__assembly_free(&table->assembly);
    dt_free(table);
}

dt_status dt_table_read(struct dt_table *table, uint64_t begin, int count, struct dt_batch *out)
{
    if (count < 0 || count > DT_EVAL_CHUNK || begin < table->begin ||
        begin + (uint64_t)count > table->end)
        return dt_fail(DT_EBUG, "no such rows in the table");
    if (table->cursor) {
        table->rows.rows = 0;
        DT_TRY(dt__cursor_read(table->cursor, begin, (size_t)count, &table->rows));
    }
    uint64_t first = table->cursor ? 0 : begin - table->begin;
    for (int i = 0; i < count; i++)
        table->slots[i] = first + (uint64_t)i;
    DT_TRY(dt__assembly_rows(&table->assembly, &table->rows, table->slots, 0, (size_t)count));
    dt__assembly_batch(&table->assembly, count, out);
    out->weight = NULL; /* evaluation counts every row once */
    return DT_OK;
}
