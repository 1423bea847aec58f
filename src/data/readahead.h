/* Windows of rows read ahead by a thread, two for each replica: one in use, one being filled. */
#ifndef DATA_READAHEAD_H
#define DATA_READAHEAD_H

#include "data/batch.h"
#include "data/order.h"

struct dt__readahead;

/* Streams the shards of replicas [first, first + count), whose orders are given; begins where they
 * stand at `step`. Source and plan outlive it. */
dt_status dt__readahead_create(const struct dt_source *source, const struct dt_plan *plan,
                               int first, const struct dt__order *orders, int count, uint64_t step,
                               struct dt__readahead **out);
void dt__readahead_destroy(struct dt__readahead *ahead);

/* Rows of window `at` of `epoch` of replica first + index, slot after slot; waits until they are
 * read. Valid until the next call for the replica. What the thread could not read fails here. */
dt_status dt__readahead_window(struct dt__readahead *ahead, int index, uint64_t epoch, uint64_t at,
                               const struct dt__block **out);

#endif
