/* The assignment of samples to replicas and steps: the shards of a plan, and the order of a
 * replica's samples in an epoch, which is computed and not stored.
 *
 * The shard is rotated by a number that differs in each epoch, and cut into chunks. The chunks come
 * in permuted order (the short one at the end of the rotated shard comes last), and each window of
 * rows is permuted within. Where all data fits in memory, one window holds the whole shard. */
#ifndef DATA_ORDER_H
#define DATA_ORDER_H

#include "base/base.h"
#include "data/data.h"

struct dt__order {
    uint64_t seed, replica;
    uint64_t rows, window, chunk; /* window is a multiple of chunk, or >= rows */
    uint64_t epoch, rotation;     /* of `chunks` */
    struct dt_perm chunks;
    uint64_t at; /* the window of `within` */
    struct dt_perm within;
};

void dt__order_init(struct dt__order *order, uint64_t seed, int replica, uint64_t rows,
                    uint64_t window, uint64_t chunk);

/* Returns the rows of window `at` (the last may be short), and the number of windows in an
 * epoch. */
uint64_t dt__order_window_rows(const struct dt__order *order, uint64_t at);
uint64_t dt__order_windows(const struct dt__order *order);

/* Returns the slot of a sample in its window: index is in the epoch, the result in
 * 0..window_rows-1. */
uint64_t dt__order_slot(struct dt__order *order, uint64_t epoch, uint64_t index);
/* Returns the shard's row in slot `slot` of window `at`; *run: how many consecutive slots hold
 * consecutive rows of the shard from there on. */
uint64_t dt__order_row(struct dt__order *order, uint64_t epoch, uint64_t at, uint64_t slot,
                       uint64_t *run);

/* Consecutive rows of the source. A replica's shard is a list of these, in sequence. */
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
    /* Replicas with the same number of rows, [begin, end) of by_rows: two kinds, unless whole files
     * are assigned. */
    struct dt__kind {
        uint64_t rows;
        int begin, end;
    } * kind;
    int kinds;
    struct dt__by_rows {
        uint64_t rows;
        int replica;
    } * by_rows; /* (replicas) rising */
};

/* Returns the run of source rows that begins at row `local` of the shard: its first row, and its
 * length. */
struct dt__row_run dt__shard_run(const struct dt__shard *shard, uint64_t local);

#endif
