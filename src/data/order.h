/* The assignment of samples to replicas and steps: the shards of a plan, and the order of a
 * replica's samples in an epoch, which is computed and not stored.
 *
 * In each epoch, a shard is rotated by a random number of rows, and then cut into chunks. The
 * chunks are put in permuted order, but a short chunk at the end of the rotated shard stays last.
 * The rows in this order are cut into windows, and permuted within each window. If all data fits in
 * memory, one window holds the whole shard. */
#ifndef DATA_ORDER_H
#define DATA_ORDER_H

#include "base/base.h"
#include "data/data.h"

struct dt__order {
    uint64_t seed, replica;
    uint64_t rows, window, chunk; /* rows of the shard, of a window and of a chunk. A window is a
                                   * multiple of a chunk, or has all rows */
    uint64_t epoch, rotation;     /* the epoch for which `rotation` and `chunks` were computed */
    struct dt_perm chunks;
    uint64_t at; /* the window for which `within` was computed */
    struct dt_perm within;
};

/* Makes the order of a replica whose shard has `rows` rows. */
void dt__order_init(struct dt__order *order, uint64_t seed, int replica, uint64_t rows,
                    uint64_t window, uint64_t chunk);

/* Returns the number of rows of window `at` (the last window of an epoch may be short). */
uint64_t dt__order_window_rows(const struct dt__order *order, uint64_t at);
/* Returns the number of windows of an epoch. */
uint64_t dt__order_windows(const struct dt__order *order);

/* Returns the slot of a sample in its window, from 0. `index` is the sample's position in the
 * replica's order of the epoch. */
uint64_t dt__order_slot(struct dt__order *order, uint64_t epoch, uint64_t index);
/* Returns the row of the shard in slot `slot` of window `at`. *run: the number of slots, from
 * `slot` on, that hold consecutive rows of the shard. */
uint64_t dt__order_row(struct dt__order *order, uint64_t epoch, uint64_t at, uint64_t slot,
                       uint64_t *run);

/* A range of consecutive rows of the source. The shard of a replica is a sequence of such
 * ranges. */
struct dt__row_run {
    uint64_t row, count;
};

struct dt__shard {
    struct dt__row_run *runs;
    size_t nruns, capacity;
    uint64_t rows;
};

struct dt_plan {
    uint64_t samples, batch, steps, seed;
    int replicas;
    struct dt__shard *shards; /* (replicas) */
    /* A kind: all replicas with the same number of rows, by_rows[begin..end). There are at most two
     * kinds, unless replicas get whole files. */
    struct dt__kind {
        uint64_t rows;
        int begin, end;
    } * kind;
    int kinds;
    struct dt__by_rows {
        uint64_t rows;
        int replica;
    } * by_rows; /* (replicas) in ascending order of rows */
};

/* Returns the longest run of source rows that starts at row `local` of the shard. */
struct dt__row_run dt__shard_run(const struct dt__shard *shard, uint64_t local);

#endif
