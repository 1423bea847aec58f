/* rows: gradients of touched rows.
 *
 * Of a row-sparse range of the vector a replica's slot has the rows that its batch touched, one
 * behind the other, and a list of their numbers, both in shared memory. The workers merge the
 * lists, each its share of the rows, and sum a row over the replicas that have it, in the order
 * of the fixed tree. The bits are those of whole gradients, where the others would have zeros.
 *
 * Of several nodes each keeps the ranges whole, weights and optimizer's state: its agents sum each
 * subtree's rows likewise, every node gets the rows of all subtrees, and its agents sum these and
 * update their copy. All nodes do the same arithmetic, so that the copies stay equal, and no
 * weights of ranges travel. A link carries the rows of the H - 1 other nodes; owners' slices would
 * take 2 (H - 1) / H of all touched rows: as much on two hosts, H / 2 times less on many where
 * batches touch other rows, but two latencies instead of one, and state that has to be brought to
 * the bank.
 *
 * With a rounded wire each group's sum of a row is rounded to bf16, whatever the wire, and these
 * are added; a subtree that is all of a group travels so. No error is kept: the row's next gradient
 * may be far off. All who sum a row round by themselves, also what has come rounded, which does not
 * change. */
#ifndef DT_COMM_ROWS_H
#define DT_COMM_ROWS_H

#include "dtrain/comm.h"

struct dt_exchange;
struct dt__floats;
struct dt__norm;
struct dt__room;

/* What this rank needs by itself. DT_EMEMORY. DT_EUSAGE: ranges that do not rise or reach over a
 * bucket. */
dt_status dt__rows_create(struct dt_exchange *x);
void dt__rows_destroy(struct dt_exchange *x);
bool dt__rows_are_touched(const struct dt_exchange *x); /* gradients are of touched rows */
/* If so: a replica's lists, (ranges); of another node's not for use. */
const struct dt_touched *dt__rows_touched(const struct dt_exchange *x, int replica);
/* And takes a replica's lists from the node's memory. */
void dt__rows_map(struct dt_exchange *x, int replica, struct dt__room *room);
/* And, of several nodes, behind all replicas, room for a subtree's rows; only a lone replica of
 * this node does without. */
void dt__rows_map_subtree(struct dt_exchange *x, int subtree, struct dt__room *room);

/* Sum and update of this agent's share of a range's rows. */
void dt__rows_update(struct dt_exchange *x, int range);
/* Adds the squares of those rows of a range that lie in floats `at`, of which the first and the
 * last may in part. */
void dt__rows_norm(struct dt_exchange *x, int range, struct dt__floats at, struct dt__norm *norm);

/* Several nodes. Agent: sums its share of the range's rows, of each of the node's subtrees. */
void dt__rows_sum_subtrees(struct dt_exchange *x, int range);
/* First agent, when all have: brings their shares together. */
void dt__rows_close_subtrees(struct dt_exchange *x);
/* A subtree's rows of a range; of another node's, where they are to come. */
struct dt__subtree_rows {
    struct dt_touched list;
    float *values;
    uint16_t *rounded; /* in bf16, as they travel; NULL: the values do */
};
struct dt__subtree_rows dt__rows_of_subtree(const struct dt_exchange *x, int subtree, int range);

/* ---- between nodes: the messages of a first agent ------------------------------------------- */

/* Tables alone: not collective. DT_EMEMORY; x->rows_exchange is to be destroyed nevertheless. */
dt_status dt__rows_exchange_create(struct dt_exchange *x);
void dt__rows_exchange_destroy(struct dt_exchange *x);
/* Does what can be done now in this step; true if there was something. */
bool dt__rows_exchange_advance(struct dt_exchange *x);
/* The step's rows have gone and come. */
bool dt__rows_exchange_done(const struct dt_exchange *x);

#endif
