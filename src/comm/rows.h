/* rows: gradients of touched rows.
 *
 * Of a row-sparse range of the vector a replica's slot has the rows that its batch touched, one
 * behind the other, and a list of their numbers, both in shared memory. The workers merge the
 * lists, each its share of the rows, and sum a row over the replicas that have it, in the order
 * of the fixed tree. The bits are those of whole gradients, where the others would have zeros.
 *
 * Of several nodes each holds but a part of a range. What the rows belong to, inputs of the
 * network, are dealt to owners, all agents of all nodes, in blocks; here two nodes of two agents:
 *
 *   inputs   0 |-------|-------|-------|-------| rows_cut(4)
 *   owner        0.0     0.1     1.0     1.1        each range is cut there
 *
 * An owner alone has the weights of its rows, and the optimizer's state of them. In a step:
 *
 *   node                                         owner of a block
 *     sums its subtrees' touched rows   --->       sums all subtrees' rows, in the tree's order,
 *     and says which rows its workers              and updates
 *     will read in the next step
 *     has these weights, one row behind <---       sends them
 *     the other from a range's begin on
 *
 * For each owner one agent of a node speaks, so that each agent has one message, cut into pieces,
 * to or from each other node of an owner. Rows of inputs that a batch lacks are nowhere but at
 * their owner: memory of a node, and what a link carries, do not grow with the number of nodes.
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
bool dt__rows_are_touched(const struct dt_exchange *x); /* gradients are of touched rows */
bool dt__rows_are_dealt(const struct dt_exchange *x);   /* and of several nodes */
/* If so: a replica's lists, (ranges); of another node's not for use. */
const struct dt_touched *dt__rows_touched(const struct dt_exchange *x, int replica);

/* ---- owners: dealt rows; nodes are known ----------------------------------------------------- */

/* Counts what the norm needs, and allocates. Where rows are not dealt too. DT_EMEMORY. */
dt_status dt__rows_deal(struct dt_exchange *x);
/* The first input of an owner's block; owners are agents, node by node. */
uint32_t dt__rows_cut(const struct dt_exchange *x, int owner);
/* Its rows of a range. */
void dt__rows_block(const struct dt_exchange *x, int owner, int range, uint32_t *from,
                    uint32_t *to);
/* The floats of a range of which this agent has the sums; not dealt: those of `at`. */
struct dt__floats dt__rows_own(const struct dt_exchange *x, int range, struct dt__floats at);
/* Blocks of the norm that several agents have part of. */
const size_t *dt__rows_edges(const struct dt_exchange *x, size_t *out_count);
/* Inputs whose rows a node has at once, at most. */
size_t dt__rows_most_pulled(const struct dt_exchange *x, int node);

/* ---- memory of the node ---------------------------------------------------------------------- */

/* A vector of all parameters, of whose rows so many have pages: touched ones of a replica, pulled
 * ones, or none; all, if they are not dealt. */
enum dt__rows_kept { DT__KEEP_TOUCHED, DT__KEEP_PULLED, DT__KEEP_NONE };
float *dt__rows_vector(const struct dt_exchange *x, struct dt__room *room, enum dt__rows_kept kept);
/* A replica's lists. */
void dt__rows_map(struct dt_exchange *x, int replica, struct dt__room *room);
/* And, dealt, the workers' lists of what they will read. */
void dt__rows_map_needs(struct dt_exchange *x, struct dt__room *room);

/* ---- sums and updates ------------------------------------------------------------------------ */

/* Sum and update of this agent's rows of a range. */
void dt__rows_update(struct dt_exchange *x, int range);
/* Adds the squares of those rows of a range that lie in floats `at`, of which the first and the
 * last may in part. */
void dt__rows_norm(struct dt_exchange *x, int range, struct dt__floats at, struct dt__norm *norm);

/* ---- dealt rows ------------------------------------------------------------------------------ */

/* Agent: its tables. DT_EMEMORY. */
dt_status dt__rows_own_tables(struct dt_exchange *x);
/* Of an own range, the rows that it has. */
float *dt__rows_table(const struct dt_exchange *x, int range, int vector);
/* Rows [from, to) of a range of one of this node's subtrees, for their owner: numbers, and behind
 * them the sums, to out. Returns where they end. */
unsigned char *dt__rows_give(struct dt_exchange *x, int subtree, int range, uint32_t from,
                             uint32_t to, uint32_t *out_count, unsigned char *out);
/* *count rows of a subtree stand, or will, at bytes. Returns where they end. */
unsigned char *dt__rows_take(struct dt_exchange *x, int subtree, int range, uint32_t *count,
                             unsigned char *bytes);
/* Merges what the node's workers will read: then this is what dt_exchange_inputs says. */
void dt__rows_list(struct dt_exchange *x);
uint32_t dt__rows_pulled_below(const struct dt_exchange *x, uint32_t input);
/* Own weights of these inputs in a range, one row behind the other. Returns the floats. */
size_t dt__rows_read(const struct dt_exchange *x, int range, const uint32_t *input, uint32_t count,
                     float *out);
/* Where the weights of these pulled inputs belong. */
float *dt__rows_place(const struct dt_exchange *x, int range, const uint32_t *input, uint32_t count,
                      size_t *out_floats);

/* ---- rows_exchange.c: the messages of an agent ----------------------------------------------- */

/* Tables alone: not collective. DT_EMEMORY. */
dt_status dt__rows_exchange_create(struct dt_exchange *x);
/* A round begins: of a step, or only to pull. */
void dt__rows_begin(struct dt_exchange *x, bool step);
/* Does what can be done now; true if there was something. */
bool dt__rows_advance(struct dt_exchange *x);
/* This agent has the sums of its rows. */
bool dt__rows_summed(const struct dt_exchange *x);
/* The round's rows have gone and come, and are updated. */
bool dt__rows_done(const struct dt_exchange *x);
/* The round has ended here; dt__rows_await then waits for the node's other agents. */
void dt__rows_end(struct dt_exchange *x);
void dt__rows_await(struct dt_exchange *x);
/* Between the bank's books and the owners, of so many vectors. Bank and agents. */
void dt__rows_move(struct dt_exchange *x, bool to_bank, int vectors);

#endif
