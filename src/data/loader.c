/* The training rows of one rank's replicas, and the rows of a source in file order, for evaluation.
 *
 *     sample of an epoch --order--> window, slot --> row of a block --assembly--> row of a batch
 *
 * A replica has two windows: while one is in use, a thread fills the other with the next rows in
 * the replica's order. If all rows of the rank fit in memory, one window holds the whole shard in
 * file order for all epochs, and there is no thread. The order of samples is the same in both
 * cases. */
#include <pthread.h>
#include <string.h>

#include "data/augment.h"
#include "data/batch.h"
#include "data/cursor.h"
#include "data/order.h"
#include "data/source.h"
#include "table/normalize.h"

enum { CHUNK_BYTES = 1 << 20, CHUNKS_IN_WINDOW = 8 };

struct window {
    enum { FREE, FILLING, READY } state;
    uint64_t number; /* number of the window, counted over all epochs; 0: a whole shard */
    struct dt__block rows;
};

struct replica {
    const struct dt__shard *shard;
    struct dt__order order;      /* of the samples; used by dt__loader_read */
    struct dt__order fill_order; /* of the rows in windows; used by the thread */
    struct window windows[2];
    struct window *current; /* the READY window that dt__loader_read uses */
    uint64_t next;          /* number of the window that the thread fills next */
    bool cancelled;         /* tells the thread to give up the window that it is filling */
    uint64_t *raw;          /* (rows) raw row of each row of the shard, if rows are borrowed; else
                             * NULL */
};

struct dt_loader {
    const struct dt_source *source;
    const struct dt_plan *plan;
    struct dt__assembly assembly;
    struct replica *replicas; /* (count) replicas first, first + 1, ... */
    int first, count, max_rows;
    uint64_t *slots; /* (max_rows) rows of a block, for one batch */
    struct dt__augment augment;

    bool streams; /* false: each replica holds its whole shard */
    struct dt__cursor *cursor;
    pthread_t thread;
    bool started, quit;
    pthread_mutex_t lock; /* guards the members that both threads use */
    pthread_cond_t changed;
    dt_status status; /* the thread's first error; it stays */
    char error[DT_ERROR_MAX];
};

/* ---- the thread ----------------------------------------------------------------------------- */

/* Returns the window to fill next: one of the replica that has the fewest ready windows. NULL: all
 * windows are ready. */
static struct window *window_choose(struct dt_loader *loader, struct replica **out_replica)
{
    struct window *chosen = NULL;
    int least = 2;
    for (int i = 0; i < loader->count; i++) {
        struct replica *replica = &loader->replicas[i];
        int ready = (replica->windows[0].state == READY) + (replica->windows[1].state == READY);
        if (!replica->order.rows || ready >= least) continue;
        least = ready;
        chosen = &replica->windows[replica->windows[0].state == READY];
        *out_replica = replica;
    }
    return chosen;
}

/* Reads the rows of a window, run by run of consecutive rows, until it is complete or cancelled. */
static dt_status window_fill(struct dt_loader *loader, struct replica *replica,
                             struct window *window)
{
    const uint64_t windows = dt__order_windows(&replica->fill_order);
    const uint64_t epoch = window->number / windows, at = window->number % windows;
    const uint64_t rows = dt__order_window_rows(&replica->fill_order, at);
    window->rows.rows = 0;
    for (uint64_t slot = 0, run; slot < rows; slot += run) {
        pthread_mutex_lock(&loader->lock);
        const bool wanted = !loader->quit && !replica->cancelled;
        pthread_mutex_unlock(&loader->lock);
        if (!wanted) break;
        uint64_t local = dt__order_row(&replica->fill_order, epoch, at, slot, &run);
        struct dt__row_run rest = dt__shard_run(replica->shard, local);
        if (rest.count < run) run = rest.count;
        DT_TRY(dt__cursor_read(loader->cursor, rest.row, (size_t)run, &window->rows));
    }
    return dt__block_encode(&loader->source->schema, &loader->source->layout, &window->rows);
}

/* The read-ahead thread: fills windows. Holds the lock except while it reads or waits. */
static void *loader_thread(void *arg)
{
    struct dt_loader *loader = arg;
    pthread_mutex_lock(&loader->lock);
    while (!loader->quit && !loader->status) {
        struct replica *replica;
        struct window *window = window_choose(loader, &replica);
        if (!window) {
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        window->state = FILLING;
        window->number = replica->next++;
        replica->cancelled = false;
        pthread_mutex_unlock(&loader->lock);
        dt_status status = window_fill(loader, replica, window);
        pthread_mutex_lock(&loader->lock);
        window->state = status || replica->cancelled ? FREE : READY;
        if (status && !replica->cancelled) {
            loader->status = status;
            snprintf(loader->error, sizeof loader->error, "%s", dt_error_text());
        }
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* ---- the caller ----------------------------------------------------------------------------- */

static struct window *window_find(struct replica *replica, uint64_t number, int state)
{
    for (int i = 0; i < 2; i++)
        if ((int)replica->windows[i].state == state && replica->windows[i].number == number)
            return &replica->windows[i];
    return NULL;
}

/* Waits until the replica's window `number` is ready. If the thread has failed, returns its
 * error. */
static dt_status window_await(struct dt_loader *loader, struct replica *replica, uint64_t number)
{
    if (replica->current && replica->current->number == number) return DT_OK;
    pthread_mutex_lock(&loader->lock);
    replica->current = NULL;
    /* Frees windows that are neither this one nor the next, and redirects the thread if it reads
     * elsewhere. */
    bool coming = window_find(replica, number, READY) || window_find(replica, number, FILLING);
    for (int i = 0; i < 2; i++) {
        struct window *window = &replica->windows[i];
        bool wanted = window->number == number || (coming && window->number == number + 1);
        if (window->state == READY && !wanted) window->state = FREE;
        if (window->state == FILLING && !wanted) replica->cancelled = true;
    }
    if (!coming) replica->next = number;
    pthread_cond_broadcast(&loader->changed);
    while (!(replica->current = window_find(replica, number, READY)) && !loader->status)
        pthread_cond_wait(&loader->changed, &loader->lock);
    dt_status status = replica->current ? DT_OK : loader->status;
    if (status) dt_fail(status, "%s", loader->error);
    pthread_mutex_unlock(&loader->lock);
    return status;
}

dt_status dt__loader_read(struct dt_loader *loader, int replica, uint64_t epoch, uint64_t begin,
                          int count, struct dt_batch *out)
{
    const int index = replica - loader->first;
    const size_t rows = count < 0 ? 0 : (size_t)count;
    if (index < 0 || index >= loader->count || count < 0 || count > loader->max_rows ||
        begin + rows > loader->replicas[index].order.rows)
        return dt_fail(DT_EBUG, "replica %d has no such %d samples", replica, count);
    struct replica *from = &loader->replicas[index];
    struct dt__order *order = &from->order;
    for (size_t done = 0, take; done < rows; done += take) { /* the samples of one window */
        const uint64_t first = begin + done, at = first / order->window;
        const uint64_t left = (at + 1) * order->window - first;
        take = left < rows - done ? (size_t)left : rows - done;
        for (size_t i = 0; i < take; i++) {
            uint64_t slot = dt__order_slot(order, epoch, first + i), run;
            if (!loader->streams && order->window < order->rows)
                slot = dt__order_row(order, epoch, at, slot, &run);
            loader->slots[i] = from->raw ? from->raw[slot] : slot;
        }
        const uint64_t number = loader->streams ? epoch * dt__order_windows(order) + at : 0;
        DT_TRY(window_await(loader, from, number));
        DT_TRY(
            dt__assembly_rows(&loader->assembly, &from->current->rows, loader->slots, done, take));
    }
    if (dt__augment_any(&loader->augment)) {
        const struct dt_rng key =
            dt__rng_make(loader->plan->seed, DT_STREAM_AUGMENT, (uint64_t)replica, epoch);
        dt__augment_rows(&loader->augment, &key, begin, count,
                         (float *)(void *)loader->assembly.rows.x);
    }
    dt__assembly_batch(&loader->assembly, count, out);
    return DT_OK;
}

/* ---- life ----------------------------------------------------------------------------------- */

static uint64_t memory_budget(const struct dt_config *config)
{
    return (uint64_t)config->data.memory_mb << 20;
}

static uint64_t at_least_1(uint64_t n)
{
    return n ? n : 1;
}

/* Sets the order of each replica. A window has all rows if the whole source fits in memory; else as
 * many as let two windows of each of the R replicas (of all ranks) fit, or data.shuffle_window if
 * that is less. Returns true if the loader's rows fit in its part of the memory, 1 / `loaders` of
 * data.memory_mb. */
static bool loader_make_orders(struct dt_loader *loader, const struct dt_config *config,
                               int loaders)
{
    const uint64_t row = dt__source_row_bytes(loader->source), fit = memory_budget(config) / row;
    const uint64_t asked = (uint64_t)config->data.shuffle_window;
    uint64_t window = loader->source->rows, chunk = window, rows = 0;
    if (window > fit) {
        window = at_least_1(memory_budget(config) / (2 * (uint64_t)loader->plan->replicas) / row);
        if (asked && asked < window) window = asked;
        chunk = at_least_1(window / CHUNKS_IN_WINDOW);
        if (chunk > CHUNK_BYTES / row) chunk = at_least_1(CHUNK_BYTES / row);
        window -= window % chunk;
    }
    for (int i = 0; i < loader->count; i++) {
        struct replica *replica = &loader->replicas[i];
        replica->shard = &loader->plan->shards[loader->first + i];
        dt__order_init(&replica->order, loader->plan->seed, loader->first + i, replica->shard->rows,
                       window, chunk);
        rows += replica->shard->rows;
    }
    return rows <= fit / (uint64_t)loaders;
}

/* Makes a replica read its shard from borrowed rows. */
static dt_status replica_borrow(struct dt_loader *loader, struct replica *replica)
{
    const uint64_t rows = replica->order.rows;
    DT_TRY(dt__alloc(rows, sizeof *replica->raw, "rows of a shard", &replica->raw));
    for (uint64_t local = 0, run; local < rows; local += run) {
        const struct dt__row_run rest = dt__shard_run(replica->shard, local);
        run = rest.count;
        for (uint64_t i = 0; i < run; i++)
            replica->raw[local + i] = dt__source_raw(loader->source, rest.row + i);
    }
    replica->windows[0].rows = loader->source->borrowed;
    replica->current = &replica->windows[0];
    return DT_OK;
}

/* Makes a replica hold its whole shard or, if rows are streamed, sets the first window to read for
 * `step`. */
static dt_status replica_begin(struct dt_loader *loader, int index, uint64_t step)
{
    struct replica *replica = &loader->replicas[index];
    const struct dt_source *source = loader->source;
    const struct dt__order *order = &replica->order;
    const uint64_t rows = loader->streams ? order->window : order->rows;
    const struct dt_local_batch local =
        dt__plan_local_batch(loader->plan, step, loader->first + index);
    if (!order->rows) return DT_OK;
    if (source->borrowed.x && !loader->streams) return replica_borrow(loader, replica);
    replica->fill_order = *order;
    for (int w = 0; w < (loader->streams ? 2 : 1); w++)
        DT_TRY(dt__block_alloc(&source->layout, rows, dt__source_entries(source, rows),
                               &replica->windows[w].rows));
    if (loader->streams) {
        const uint64_t windows = dt__order_windows(order), at = local.begin / order->window;
        replica->next = local.epoch * windows + (local.begin < order->rows ? at : windows);
        return DT_OK;
    }
    dt__order_init(&replica->fill_order, 0, 0, rows, rows, rows);
    replica->current = &replica->windows[0];
    return window_fill(loader, replica, replica->current);
}

dt_status dt__loader_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_plan *plan, int first, int count, int loaders,
                            int max_rows, uint64_t step, struct dt_loader **out)
{
    struct dt_loader *loader;
    const struct dt_schema *schema = &source->schema;
    const uint64_t most = (uint64_t)max_rows;
    dt_status status;
    DT_TRY(dt__alloc(1, sizeof *loader, "loader", &loader));
    *loader = (struct dt_loader){
        .source = source, .plan = plan, .first = first, .count = count, .max_rows = max_rows};
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    DT_GUARD(dt__alloc((size_t)count, sizeof *loader->replicas, "replicas", &loader->replicas));
    DT_GUARD(dt__alloc(most, sizeof *loader->slots, "batch", &loader->slots));
    DT_GUARD(dt__assembly_init(&loader->assembly, source, most, memory_budget(config)));
    DT_GUARD(dt__augment_parse(config->data.augment, &loader->augment));
    if (dt__augment_any(&loader->augment) &&
        (!schema->shape[0] || schema->dense < schema->features))
        DT_GUARD(dt_fail(DT_EMISMATCH, "data.augment = %s: the rows are %s", config->data.augment,
                         schema->shape[0]
                             ? "sparse in the checkpoint, so they cannot be pictures"
                             : "not pictures; if they are, set data.shape, e.g. 28x28x1"));
    if (dt__augment_any(&loader->augment))
        DT_GUARD(dt__alloc((size_t)schema->features, sizeof(float), "pictures",
                           &loader->augment.picture));
    memcpy(loader->augment.shape, schema->shape, sizeof schema->shape);
    loader->streams = !loader_make_orders(loader, config, loaders);
    DT_GUARD(dt__cursor_open(source, !loader->streams, &loader->cursor));
    for (int i = 0; i < count; i++)
        DT_GUARD(replica_begin(loader, i, step));
    if (loader->streams) {
        DT_GUARD(dt__thread_start(&loader->thread, "read-ahead", loader_thread, loader));
        loader->started = true;
    } else {
        dt__cursor_close(loader->cursor); /* all rows are read: close the files */
        loader->cursor = NULL;
    }
    *out = loader;
    return DT_OK;
done:
    dt__loader_destroy(loader);
    return status;
}

void dt__loader_destroy(struct dt_loader *loader)
{
    if (!loader) return;
    if (loader->started) {
        pthread_mutex_lock(&loader->lock);
        loader->quit = true;
        pthread_cond_broadcast(&loader->changed);
        pthread_mutex_unlock(&loader->lock);
        pthread_join(loader->thread, NULL);
    }
    for (int i = 0; loader->replicas && i < loader->count; i++) {
        dt_free(loader->replicas[i].raw);
        for (int w = 0; w < 2 && !loader->replicas[i].raw; w++)
            dt__block_free(&loader->replicas[i].windows[w].rows);
    }
    dt__cursor_close(loader->cursor);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    dt_free(loader->replicas);
    dt_free(loader->slots);
    dt__assembly_free(&loader->assembly);
    dt_free(loader->augment.picture);
    dt_free(loader);
}

/* ==== rows in file order ====================================================================== */

/* A table holds its rows if they fit in 1 / MEMORY_PARTS of data.memory_mb. This memory is in
 * addition to that of the loader. */
enum { MEMORY_PARTS = 4 };

struct dt_table {
    struct dt__assembly assembly;
    uint64_t begin, end;
    struct dt__cursor *cursor; /* NULL: all rows are in memory */
    struct dt__block rows;     /* rows [begin, end), or the rows of one call; if borrowed, all raw
                                * rows */
    bool borrowed;
    uint64_t slots[DT_EVAL_CHUNK];
    float *weight; /* (DT_EVAL_CHUNK) with eval.weighted; NULL: each row counts once */
};

dt_status dt__table_create(const struct dt_config *config, const struct dt_source *source,
                           uint64_t begin, uint64_t end, struct dt_table **out)
{
    const uint64_t budget = memory_budget(config) / MEMORY_PARTS;
    struct dt_table *table;
    dt_status status;
    if (begin > end || end > source->rows) return dt_fail(DT_EBUG, "no such rows in the source");
    DT_TRY(dt__alloc(1, sizeof *table, "table", &table));
    table->begin = begin;
    table->end = end;
    const bool held = end - begin <= budget / dt__source_row_bytes(source);
    const uint64_t rows = held ? end - begin : DT_EVAL_CHUNK;
    table->borrowed = source->borrowed.x != NULL;
    DT_GUARD(dt__assembly_init(&table->assembly, source, DT_EVAL_CHUNK, budget * MEMORY_PARTS));
    table->rows = source->borrowed;
    if (!table->borrowed)
        DT_GUARD(
            dt__block_alloc(&source->layout, rows, dt__source_entries(source, rows), &table->rows));
    if (config->eval.weighted && source->layout.weights)
        DT_GUARD(dt__alloc(DT_EVAL_CHUNK, sizeof *table->weight, "weights", &table->weight));
    if (!table->borrowed) DT_GUARD(dt__cursor_open(source, held, &table->cursor));
    if (held && !table->borrowed) {
        DT_GUARD(dt__cursor_read(table->cursor, begin, rows, &table->rows));
        DT_GUARD(dt__block_encode(&source->schema, &source->layout, &table->rows));
        dt__cursor_close(table->cursor);
        table->cursor = NULL;
    }
    *out = table;
    return DT_OK;
done:
    dt__table_destroy(table);
    return status;
}

void dt__table_destroy(struct dt_table *table)
{
    if (!table) return;
    dt__cursor_close(table->cursor);
    if (!table->borrowed) dt__block_free(&table->rows);
    dt__assembly_free(&table->assembly);
    dt_free(table->weight);
    dt_free(table);
}

dt_status dt__table_read(struct dt_table *table, uint64_t begin, int count, struct dt_batch *out)
{
    if (count < 0 || count > DT_EVAL_CHUNK || begin < table->begin ||
        begin + (uint64_t)count > table->end)
        return dt_fail(DT_EBUG, "no such rows in the table");
    if (table->cursor) {
        table->rows.rows = 0;
        const struct dt_source *source = table->assembly.source;
        DT_TRY(dt__cursor_read(table->cursor, begin, (size_t)count, &table->rows));
        DT_TRY(dt__block_encode(&source->schema, &source->layout, &table->rows));
    }
    uint64_t first = table->cursor ? 0 : begin - table->begin;
    for (int i = 0; i < count; i++)
        table->slots[i] = table->borrowed
                              ? dt__source_raw(table->assembly.source, begin + (uint64_t)i)
                              : first + (uint64_t)i;
    DT_TRY(dt__assembly_rows(&table->assembly, &table->rows, table->slots, 0, (size_t)count));
    dt__assembly_batch(&table->assembly, count, out);
    for (int i = 0; table->weight && i < count; i++)
        table->weight[i] = table->rows.weight[table->slots[i]];
    out->weight = table->weight; /* the rows' own weights, without class weights */
    return DT_OK;
}
