/* The training rows of one rank's replicas. */
#include <string.h>

#include "data/gather.h"
#include "data/order.h"
#include "data/plan.h"
#include "data/reader.h"
#include "data/readahead.h"

enum { CHUNK_BYTES = 1 << 20, CHUNKS_IN_WINDOW = 8 };

struct dt_loader {
    const struct dt_plan *plan;
    struct dt__gather gather;
    int first, count, max_rows;
    struct dt__order *orders;    /* (count) */
    uint64_t *bases;             /* (count) row of the block at which each shard begins */
    struct dt__block rows;       /* in memory: all shards, one behind the other */
    struct dt__readahead *ahead; /* NULL: in memory */
    uint64_t *slots;             /* (max_rows) */
    float *x;                    /* (max_rows, features) */
    unsigned char *y;            /* (max_rows, targets or 1), four bytes each */
};

/* ---- order ---------------------------------------------------------------------------------- */

static uint64_t budget(const struct dt_config *config)
{
    return (uint64_t)config->data.memory_mb << 20;
}

static uint64_t at_least_1(uint64_t n)
{
    return n ? n : 1;
}

/* Rows of a window: all if the whole source fits in memory; else so many that two windows of each
 * of the R replicas fit, wherever the replicas are. */
static void choose_window(const struct dt_config *config, const struct dt_source *source,
                          int replicas, uint64_t *window, uint64_t *chunk)
{
    uint64_t row = dt__layout_row(&source->layout), asked = (uint64_t)config->data.shuffle_window;
    *window = *chunk = source->rows;
    if (source->rows <= budget(config) / row) return;
    *window = at_least_1(budget(config) / (2 * (uint64_t)replicas) / row);
    if (asked && asked < *window) *window = asked;
    *chunk = at_least_1(*window / CHUNKS_IN_WINDOW);
    if (*chunk > CHUNK_BYTES / row) *chunk = at_least_1(CHUNK_BYTES / row);
    *window -= *window % *chunk;
}

/* *rows: of all the rank's replicas. */
static dt_status make_orders(struct dt_loader *loader, const struct dt_config *config,
                             const struct dt_source *source, uint64_t *rows)
{
    uint64_t window, chunk, seed = dt__plan_seed(loader->plan);
    choose_window(config, source, dt__plan_replicas(loader->plan), &window, &chunk);
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

static dt_status read_shard(struct dt_loader *loader, struct dt__cursor *cursor, int index)
{
    const struct dt__shard *shard = dt__plan_shard(loader->plan, loader->first + index);
    uint64_t at = loader->bases[index];
    for (size_t s = 0; s < shard->nsegments; s++) {
        struct dt__segment segment = shard->segments[s];
        struct dt__block to = dt__block_at(&loader->gather.layout, loader->rows, at);
        DT_TRY(dt__cursor_load(cursor, segment.row, segment.count, to));
        at += segment.count;
    }
    return DT_OK;
}

static dt_status read_all(struct dt_loader *loader, const struct dt_source *source, uint64_t rows)
{
    struct dt__cursor *cursor;
    DT_TRY(dt__block_alloc(&source->layout, rows, &loader->rows));
    DT_TRY(dt__cursor_open(source, false, &cursor));
    dt_status status = DT_OK;
    for (int i = 0; i < loader->count && !status; i++)
        status = read_shard(loader, cursor, i);
    dt__cursor_close(cursor);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static dt_status make_batch(struct dt_loader *loader, const struct dt__layout *layout)
{
    size_t rows = (size_t)loader->max_rows;
    DT_TRY(dt_alloc(rows, sizeof *loader->slots, "batch", &loader->slots));
    DT_TRY(dt_alloc(rows, (size_t)layout->features * sizeof(float), "batch", &loader->x));
    return dt_alloc(rows, dt__layout_y(layout), "batch", &loader->y);
}

static dt_status fill_loader(struct dt_loader *loader, const struct dt_config *config,
                             const struct dt_source *source, uint64_t step)
{
    uint64_t rows;
    dt__gather_init(&loader->gather, &source->layout, &source->schema);
    DT_TRY(make_orders(loader, config, source, &rows));
    DT_TRY(make_batch(loader, &source->layout));
    if (rows <= budget(config) / dt__layout_row(&source->layout))
        return read_all(loader, source, rows);
    return dt__readahead_create(source, loader->plan, loader->first, loader->orders, loader->count,
                                step, &loader->ahead);
}

dt_status dt_loader_create(const struct dt_config *config, const struct dt_source *source,
                           const struct dt_plan *plan, int first, int count, int max_rows,
                           uint64_t step, struct dt_loader **out)
{
    struct dt_loader *loader;
    DT_TRY(dt_alloc(1, sizeof *loader, "loader", &loader));
    *loader =
        (struct dt_loader){.plan = plan, .first = first, .count = count, .max_rows = max_rows};
    dt_status status = fill_loader(loader, config, source, step);
    if (status)
        dt_loader_destroy(loader);
    else
        *out = loader;
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
    dt_free(loader->x);
    dt_free(loader->y);
    dt_free(loader);
}

bool dt_loader_streams(const struct dt_loader *loader)
{
    return loader->ahead != NULL;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Rows of the block in memory that hold samples [begin, begin + count). */
static void find_rows(struct dt_loader *loader, int index, uint64_t epoch, uint64_t begin,
                      size_t count)
{
    struct dt__order *order = &loader->orders[index];
    uint64_t run;
    for (size_t i = 0; i < count; i++) {
        uint64_t slot = dt__order_slot(order, epoch, begin + i);
        if (order->window < order->rows)
            slot = dt__order_row(order, epoch, (begin + i) / order->window, slot, &run);
        loader->slots[i] = loader->bases[index] + slot;
    }
}

static void gather(struct dt_loader *loader, struct dt__block from, size_t at, size_t count)
{
    float *x = loader->x + at * (size_t)loader->gather.layout.features;
    unsigned char *y = loader->y + at * dt__layout_y(&loader->gather.layout);
    dt__gather_rows(&loader->gather, from, loader->slots, count, x, y);
}

/* A share may reach over several windows. */
static dt_status read_stream(struct dt_loader *loader, int index, uint64_t epoch, uint64_t begin,
                             size_t count)
{
    struct dt__order *order = &loader->orders[index];
    for (size_t done = 0, take; done < count; done += take) {
        struct dt__block block;
        uint64_t at = (begin + done) / order->window;
        uint64_t left = (at + 1) * order->window - (begin + done);
        take = left < count - done ? (size_t)left : count - done;
        for (size_t i = 0; i < take; i++)
            loader->slots[i] = dt__order_slot(order, epoch, begin + done + i);
        DT_TRY(dt__readahead_window(loader->ahead, index, epoch, at, &block));
        gather(loader, block, done, take);
    }
    return DT_OK;
}

dt_status dt_loader_read(struct dt_loader *loader, int replica, uint64_t epoch, uint64_t begin,
                         int count, struct dt_batch *out)
{
    int index = replica - loader->first;
    if (index < 0 || index >= loader->count || count < 0 || count > loader->max_rows ||
        begin + (uint64_t)count > loader->orders[index].rows)
        return dt_fail(DT_EBUG, "replica %d has no such %d samples", replica, count);
    if (loader->ahead) {
        DT_TRY(read_stream(loader, index, epoch, begin, (size_t)count));
    } else {
        find_rows(loader, index, epoch, begin, (size_t)count);
        gather(loader, loader->rows, 0, (size_t)count);
    }
    *out = (struct dt_batch){.rows = count, .x = loader->x};
    if (loader->gather.layout.targets)
        out->target = (const float *)(const void *)loader->y;
    else
        out->label = (const int32_t *)(const void *)loader->y;
    return DT_OK;
}

uint64_t dt_loader_row(const struct dt_loader *loader, int replica, uint64_t epoch, uint64_t index)
{
    struct dt__order order = loader->orders[replica - loader->first];
    uint64_t run, slot = dt__order_slot(&order, epoch, index);
    uint64_t local = dt__order_row(&order, epoch, index / order.window, slot, &run);
    return dt__shard_run(dt__plan_shard(loader->plan, replica), local).row;
}
