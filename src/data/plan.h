/* The plan's shards, for the loader. */
#ifndef DATA_PLAN_H
#define DATA_PLAN_H

#include "dtrain/data.h"

/* Consecutive rows of the source. A replica's shard is a list of them, one behind the other. */
struct dt__segment {
    uint64_t row, count;
};

struct dt__shard {
    struct dt__segment *segments;
    size_t nsegments, capacity;
    uint64_t rows;
};

const struct dt__shard *dt__plan_shard(const struct dt_plan *plan, int replica);
uint64_t dt__plan_seed(const struct dt_plan *plan);
int dt__plan_replicas(const struct dt_plan *plan);

/* The run of source rows that begins at row `local` of the shard: its first row, and its length. */
struct dt__segment dt__shard_run(const struct dt__shard *shard, uint64_t local);

#endif
