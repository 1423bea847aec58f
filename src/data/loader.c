/* The training rows of one rank's replicas. */
#include <string.h>

#include "data/gather.h"
#include "data/order.h"
#include "data/plan.h"
#include "data/reader.h"

enum { CHUNK_BYTES = 1 << 20, CHUNKS_IN_WINDOW = 8, READ_ROWS = 1 << 16 };

struct replica {
    struct dt__order order;
    uint64_t base; /* in memory: row of the block at which its shard begins */
};

struct dt_loader {
    const struct dt_plan *plan;
    struct dt__gather gather;
    int first, count, max_rows;
    struct replica *replicas; /* (count) */
    struct dt__block rows;    /* all shards, one behind the other */
    uint64_t *slots;          /* (max_rows) */
    float *x;                 /* (max_rows, features) */
    unsigned char *y;         /* (max_rows, targets or 1), four bytes each */
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

static dt_status make_replicas(struct dt_loader *loader, const struct dt_config *config,
                               const struct dt_source *source)
{
    uint64_t base = 0, window, chunk;
    choose_window(config, source, dt__plan_replicas(loader->plan), &window, &chunk);
    DT_TRY(
        dt_alloc((size_t)loader->count, sizeof *loader->replicas, "replicas", &loader->replicas));
    for (int i = 0; i < loader->count; i++) {
        uint64_t rows = dt_plan_replica_rows(loader->plan, loader->first + i);
        dt__order_init(&loader->replicas[i].order, dt__plan_seed(loader->plan), loader->first + i,
                       rows, window, chunk);
        loader->replicas[i].base = base;
        base += rows;
    }
    return DT_OK;
}

/* ---- in memory ------------------------------------------------------------------------------ */

static dt_status read_shard(struct dt_loader *loader, struct dt__cursor *cursor, int index)
{
    const struct dt__shard *shard = dt__plan_shard(loader->plan, loader->first + index);
    uint64_t at = loader->replicas[index].base;
    for (size_t s = 0; s < shard->nsegments; s++) {
        struct dt__segment left = shard->segments[s];
        for (uint64_t rows; left.count; left.row += rows, left.count -= rows, at += rows) {
            rows = left.count < READ_ROWS ? left.count : READ_ROWS;
            struct dt__block to = dt__block_at(&loader->gather.layout, loader->rows, at);
            DT_TRY(dt__cursor_read(cursor, left.row, (size_t)rows, to));
        }
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

static dt_status fill_loader(struct dt_loader *loader, const struct dt_config *config,
                             const struct dt_source *source)
{
    size_t max_rows = (size_t)loader->max_rows, width;
    uint64_t rows = 0;
    dt__gather_init(&loader->gather, &source->layout, &source->schema);
    DT_TRY(make_replicas(loader, config, source));
    for (int i = 0; i < loader->count; i++)
        rows += loader->replicas[i].order.rows;
    if (!dt_size_mul((size_t)source->layout.features, sizeof(float), &width))
        return dt_fail(DT_EMEMORY, "a row is too wide");
    DT_TRY(dt_alloc(max_rows, sizeof *loader->slots, "batch", &loader->slots));
    DT_TRY(dt_alloc(max_rows, width, "batch", &loader->x));
    DT_TRY(dt_alloc(max_rows, dt__layout_y(&source->layout), "batch", &loader->y));
    return read_all(loader, source, rows);
}

dt_status dt_loader_create(const struct dt_config *config, const struct dt_source *source,
                           const struct dt_plan *plan, int first, int count, int max_rows,
                           uint64_t step, struct dt_loader **out)
{
    struct dt_loader *loader;
    (void)step;
    DT_TRY(dt_alloc(1, sizeof *loader, "loader", &loader));
    *loader =
        (struct dt_loader){.plan = plan, .first = first, .count = count, .max_rows = max_rows};
    dt_status status = fill_loader(loader, config, source);
    if (status)
        dt_loader_destroy(loader);
    else
        *out = loader;
    return status;
}

void dt_loader_destroy(struct dt_loader *loader)
{
    if (!loader) return;
    dt__block_free(&loader->rows);
    dt_free(loader->replicas);
    dt_free(loader->slots);
    dt_free(loader->x);
    dt_free(loader->y);
    dt_free(loader);
}

static void read_memory(struct dt_loader *loader, struct replica *replica, uint64_t epoch,
                        uint64_t begin, size_t count)
{
    struct dt__order *order = &replica->order;
    uint64_t run;
    for (size_t i = 0; i < count; i++) {
        uint64_t slot = dt__order_slot(order, epoch, begin + i);
        if (order->window < order->rows)
            slot = dt__order_row(order, epoch, (begin + i) / order->window, slot, &run);
        loader->slots[i] = replica->base + slot;
    }
    dt__gather_rows(&loader->gather, loader->rows, loader->slots, count, loader->x, loader->y);
}

dt_status dt_loader_read(struct dt_loader *loader, int replica, uint64_t epoch, uint64_t begin,
                         int count, struct dt_batch *out)
{
    struct replica *mine = &loader->replicas[replica - loader->first];
    if (replica < loader->first || replica >= loader->first + loader->count || count < 0 ||
        count > loader->max_rows || begin + (uint64_t)count > mine->order.rows)
        return dt_fail(DT_EBUG, "replica %d has no such %d samples", replica, count);
    read_memory(loader, mine, epoch, begin, (size_t)count);
    *out = (struct dt_batch){.rows = count, .x = loader->x};
    if (loader->gather.layout.targets)
        out->target = (const float *)(const void *)loader->y;
    else
        out->label = (const int32_t *)(const void *)loader->y;
    return DT_OK;
}

bool dt_loader_streams(const struct dt_loader *loader)
{
    (void)loader;
    return false;
}

uint64_t dt_loader_row(const struct dt_loader *loader, int replica, uint64_t epoch, uint64_t index)
{
    struct dt__order order = loader->replicas[replica - loader->first].order;
    uint64_t run, slot = dt__order_slot(&order, epoch, index);
    uint64_t local = dt__order_row(&order, epoch, index / order.window, slot, &run);
    return dt__shard_run(dt__plan_shard(loader->plan, replica), local).row;
}
