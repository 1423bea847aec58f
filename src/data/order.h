/* The assignment of samples to replicas and steps: the shards of a plan, and the order of a
 * replica's samples in an epoch, which is computed and not stored.
 *
 * A shard is rotated by a number of rows that differs in each epoch, and then cut into chunks. The
 * chunks come in permuted order; the short one at the end of the rotated shard comes last. Then the
 * rows are permuted within each window. If all data fits in memory, one window holds the whole
 * shard. */
#ifndef DATA_ORDER_H
#define DATA_ORDER_H

#include "base/base.h"
#include "data/data.h"

struct dt__order {
    uint64_t seed, replica;
    uint64_t rows, window, chunk; /* window: a multiple of chunk, or at least rows */
    uint64_t epoch, rotation;     /* the epoch for which `rotation` and `chunks` were computed */
    struct dt_perm chunks;
    uint64_t at; /* the window for which `within` was computed */
    struct dt_perm within;
};

void dt__order_init(struct dt__order *order, uint64_t seed, int replica, uint64_t rows,
                    uint64_t window, uint64_t chunk);

/* Returns the number of rows of window `at` (the last window of an epoch may be short). */
uint64_t dt__order_window_rows(const struct dt__order *order, uint64_t at);
/* Returns the number of windows of an epoch. */
uint64_t dt__order_windows(const struct dt__order *order);

/* Returns the slot of a sample in its window: 0 up to the window's rows - 1. `index` is the
 * sample's position in the epoch. */
uint64_t dt__order_slot(struct dt__order *order, uint64_t epoch, uint64_t index);
/* Returns the row of the shard in slot `slot` of window `at`. *run: this many slots, from this one
 * on, hold consecutive rows of the shard. */
uint64_t dt__order_row(struct dt__order *order, uint64_t epoch, uint64_t at, uint64_t slot,
                       uint64_t *run);

/* A range of consecutive rows of the source. A replica's shard is a sequence of these. */
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
    /* A kind: replicas that have the same number of rows, by_rows[begin..end). There are at most
     * two kinds, unless replicas get whole files. */
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

/* Returns the run of source rows from row `local` of the shard on. */
struct dt__row_run dt__shard_run(const struct dt__shard *shard, uint64_t local);

#endif
