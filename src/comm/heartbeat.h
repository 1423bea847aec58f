/* What the watchdog's thread reads: the host's heartbeat table, and what other hosts said. */
#ifndef DT_COMM_HEARTBEAT_H
#define DT_COMM_HEARTBEAT_H

#include "comm/watchdog.h"

int64_t dt__now_us(void);

/* This rank shows in that row of the table from here on. */
void dt__heartbeat_table_use(struct dt_world *world, struct dt__heartbeat_table *table, int row);
/* Goes over to a table of the host, if there is memory for it. Collective over all ranks. */
void dt__heartbeat_table_share(struct dt_world *world);
/* When somebody in the table last made progress. */
int64_t dt__heartbeat_newest_us(const struct dt__heartbeat_table *table);
/* Adds "rank 2 on node7 (gradient, step 17)", behind a comma if others stand there. */
dt_status dt__heartbeat_name(const struct dt_world *world, const struct dt__heartbeat *heartbeat,
                             struct dt_text *names);

/* Messages between hosts. Both collective over all ranks. */
void dt__peers_connect(struct dt_world *world);
void dt__peers_free(struct dt_world *world);
/* As if every peer had just been heard, and did what this rank does. */
void dt__peers_reset(struct dt_world *world);
int64_t dt__exchange_period_us(const struct dt_world *world); /* messages go this often */

#endif
