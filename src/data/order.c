/* The order of a replica's samples. */
#include "data/order.h"

enum { CHUNKS = 0, ROTATION = 1, WINDOWS = 2, REPLICA_BITS = 16 };

/* A key of its own for each permutation of a replica and epoch. */
static struct dt_rng make_key(const struct dt__order *order, uint64_t epoch, uint64_t what)
{
    return dt_rng_make(order->seed, DT_STREAM_SHUFFLE, order->replica | what << REPLICA_BITS,
                       epoch);
}

static uint64_t whole_chunks(const struct dt__order *order)
{
    return order->rows / order->chunk;
}

static void set_epoch(struct dt__order *order, uint64_t epoch)
{
    struct dt_rng rotation = make_key(order, epoch, ROTATION);
    order->epoch = epoch;
    order->at = UINT64_MAX;
    if (whole_chunks(order) < 2) return;
    dt_perm_init(&order->chunks, whole_chunks(order), make_key(order, epoch, CHUNKS));
    order->rotation = dt_rng_u64(&rotation, 0) % order->rows;
}

static void set_window(struct dt__order *order, uint64_t epoch, uint64_t at)
{
    if (epoch != order->epoch) set_epoch(order, epoch);
    if (at == order->at) return;
    order->at = at;
    dt_perm_init(&order->within, dt__order_window_rows(order, at),
                 make_key(order, epoch, WINDOWS + at));
}

void dt__order_init(struct dt__order *order, uint64_t seed, int replica, uint64_t rows,
                    uint64_t window, uint64_t chunk)
{
    *order = (struct dt__order){.seed = seed, .replica = (uint64_t)replica, .rows = rows};
    order->window = window < rows ? window : rows;
    order->chunk = window < rows ? chunk : rows;
    if (rows) set_epoch(order, 0);
}

uint64_t dt__order_windows(const struct dt__order *order)
{
    return (order->rows - 1) / order->window + 1;
}

uint64_t dt__order_window_rows(const struct dt__order *order, uint64_t at)
{
    uint64_t begin = at * order->window;
    return order->rows - begin < order->window ? order->rows - begin : order->window;
}

uint64_t dt__order_slot(struct dt__order *order, uint64_t epoch, uint64_t index)
{
    set_window(order, epoch, index / order->window);
    return dt_perm_at(&order->within, index % order->window);
}

uint64_t dt__order_row(struct dt__order *order, uint64_t epoch, uint64_t at, uint64_t slot,
                       uint64_t *run)
{
    uint64_t position = at * order->window + slot, chunks = whole_chunks(order);
    uint64_t chunk = position / order->chunk, inside = position % order->chunk;
    if (epoch != order->epoch) set_epoch(order, epoch);
    uint64_t size = chunk < chunks ? order->chunk : order->rows % order->chunk;
    if (chunks > 1 && chunk < chunks) chunk = dt_perm_at(&order->chunks, chunk);
    uint64_t row = (chunk * order->chunk + inside + order->rotation) % order->rows;
    *run = size - inside < order->rows - row ? size - inside : order->rows - row;
    return row;
}
