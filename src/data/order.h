/* Who draws which sample when: the shards of a plan, and the order of a replica's samples in an
 * epoch, which is computed and not stored.
 *
 * The shard, rotated by a number of the epoch's own, is cut into chunks; the chunks come in
 * permuted order (the short one at the end of the rotated shard comes last); each window of rows
 * is permuted within. Where all data fits in memory, one window holds the whole shard. */
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

/* Rows of window `at` (the last may be short), and how many windows an epoch has. */
uint64_t dt__order_window_rows(const struct dt__order *order, uint64_t at);
uint64_t dt__order_windows(const struct dt__order *order);

/* Where in its window a sample stands: index is in the epoch, the result in 0..window_rows-1. */
uint64_t dt__order_slot(struct dt__order *order, uint64_t epoch, uint64_t index);
/* The shard's row that slot `slot` of window `at` holds; *run: how many consecutive slots hold
 * consecutive rows of the shard from there on. */
uint64_t dt__order_row(struct dt__order *order, uint64_t epoch, uint64_t at, uint64_t slot,
                       uint64_t *run);

/* Consecutive rows of the source. A replica's shard is a list of them, one behind the other. */
struct dt__row_segment {
    uint64_t row, count;
};

struct dt__shard {
    struct dt__row_segment *segments;
    size_t nsegments, capacity;
    uint64_t rows;
};

struct dt_plan {
    uint64_t samples, batch, steps, seed;
    int replicas;
    struct dt__shard *shards; /* (replicas) */
    /* Replicas with as many rows as each other, [begin, end) of by_rows: two kinds, but where whole
     * files are dealt. */
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

/* The run of source rows that begins at row `local` of the shard: its first row, and its length. */
struct dt__row_segment dt__shard_run(const struct dt__shard *shard, uint64_t local);

#endif
