/* rows: gradients of touched rows.
 *
 * A row-sparse range of the vector is a matrix (an embedding, the first layer of sparse rows). A
 * batch touches few of its rows. A replica's slot has the gradients of the rows that its batch
 * touched, contiguous, and a rising list of their numbers; both are in shared memory. The workers
 * merge the lists, each for some of the rows, and sum a row over the replicas that have it, in the
 * order of the fixed tree. The sums have the same bits as sums of whole gradients, in which the
 * other replicas would have zeros.
 *
 * On several nodes a node has only some of the rows. Row r of a range belongs to input first + r of
 * the network, and inputs are distributed in blocks to owners, which are the agents of all nodes.
 * Here are two nodes of two agents each:
 *
 *   inputs   0 |-------|-------|-------|-------|
 *   owner        0.0     0.1     1.0     1.1        the rows of every range are cut there
 *
 * Only the owner of a row has its weights and optimizer state. In a step:
 *
 *   node                                         owner of a block
 *     sums the touched rows of each     --->       adds these partial sums in the tree's order,
 *     of its partial sums; lists the              and updates its rows
 *     inputs that its workers will
 *     read in the next step
 *     stores these weights, row by      <---       sends the weights of the listed inputs
 *     row, from the range's start on
 *
 * Each pair of an owner and another node exchanges messages through one agent of that node, on
 * behalf of the whole node. A node's memory and the bytes on a link do not grow with the number of
 * nodes, since only the owner's node has rows that its own batch does not read.
 *
 * With a rounded wire, bf16 or q8, each group's sum of a row is rounded to bf16 before it is added
 * to the other groups' sums. A partial sum that covers a whole group is sent in bf16. Every rank
 * that sums a row rounds it again, which does not change a sum that is already rounded. No rounding
 * error is kept, since the next gradient of a row may be many steps away. */
#ifndef DT_COMM_ROWS_H
#define DT_COMM_ROWS_H

#include "comm/comm.h"

struct dt_exchange;
struct dt__layout;
struct dt__node_memory;
struct dt__norm;
struct dt__shm;
struct dt__range;

/* Floats [begin, end) of the flat vector. */
struct dt__floats {
    size_t begin, end;
};
/* The use of a vector in the node's memory. */
enum dt__use { DT__WEIGHTS, DT__GRADIENT, DT__STATE };

/* Returns the number of entries below `row` in a rising list. */
static inline uint32_t dt__touched_below(const struct dt_touched *list, uint32_t row)
{
    uint32_t from = 0, to = *list->count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (list->row[middle] < row)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Checks that the ranges rise without overlap and end before `params`. Tables with an entry per row
 * are then smaller than the vectors, and their sizes cannot overflow. DT_EUSAGE. */
dt_status dt__rows_check(const struct dt_row_range *range, int count, size_t params);
/* Returns the lists (ranges) of touched rows of a replica of this node; NULL: gradients of rows are
 * whole. */
const struct dt_touched *dt__rows_touched(const struct dt_exchange *x, int replica);

/* Functions that the kinds of touched and distributed rows share (struct dt__kind).
 * dt__rows_create: DT_EMEMORY; DT_EUSAGE: a range crosses the end of a bucket. */
dt_status dt__rows_create(struct dt_exchange *x, struct dt__layout *layout);
bool dt__rows_range(const struct dt_exchange *x, int index, struct dt__floats *out);
void dt__rows_map(const struct dt_exchange *x, struct dt__node_memory *memory, int replica,
                  struct dt__shm *shm);

/* ---- owners of distributed rows -------------------------------------------------------------- */

/* Functions of the kind of distributed rows (struct dt__kind). */
dt_status dt__rows_distribute(struct dt_exchange *x, struct dt__layout *layout);
size_t dt__rows_bytes(const struct dt_exchange *x, const struct dt__range *range, enum dt__use use);
void dt__rows_map_needs(const struct dt_exchange *x, struct dt__node_memory *memory,
                        struct dt__shm *shm);
/* Returns the first input of an owner's block. Owners are agents, numbered node by node. */
uint32_t dt__rows_first_input(const struct dt_exchange *x, int owner);
/* Entries [begin, end) of a range's rows or of a list. */
struct dt__indices {
    uint32_t begin, end;
};
/* Returns the rows of a range that an owner has. */
struct dt__indices dt__rows_of_owner(const struct dt_exchange *x, int owner, int range);
/* Returns the floats of the rows of a range that this agent owns. */
struct dt__floats dt__rows_own(const struct dt_exchange *x, int range);
/* Returns an upper bound on the inputs whose rows a node has at the same time. */
size_t dt__rows_most_pulled(const struct dt_exchange *x, int node);

/* ---- sums and updates ------------------------------------------------------------------------ */

/* Sums and updates the rows `of` of a range. */
void dt__rows_update(struct dt_exchange *x, int range, struct dt__indices of,
                     float *const *vectors);
/* Adds the squares of the summed rows of a range that are in `floats` and count in the norm. */
void dt__rows_squares(struct dt_exchange *x, const struct dt__range *range,
                      struct dt__floats floats, struct dt__norm *norm);

/* ---- distributed rows ------------------------------------------------------------------------ */

/* Returns the number of vectors in which rows have floats. */
int dt__rows_vectors(const struct dt_exchange *x);
/* Allocates the vectors of the rows that this agent owns. DT_EMEMORY. */
dt_status dt__rows_own_tables(struct dt_exchange *x);
/* Returns the rows of a range that this agent owns, in one vector. */
float *dt__rows_table(const struct dt_exchange *x, int range, int vector);
/* Sums the rows `of` of a range for a partial sum of this node, and writes to `out`, for their
 * owner, how many were touched, their numbers and their sums. Returns the end of what was
 * written. */
unsigned char *dt__rows_pack(struct dt_exchange *x, int partial, int range, struct dt__indices of,
                             unsigned char *out);
/* Records that the packed rows of another node's partial sum start at `bytes`. Returns their
 * end. */
unsigned char *dt__rows_map_packed(struct dt_exchange *x, int partial, int range,
                                   unsigned char *bytes);
/* Merges the workers' lists of inputs that they will read into the list that dt__exchange_inputs
 * returns. */
void dt__rows_merge_needs(struct dt_exchange *x);
/* Returns the entries of dt__exchange_inputs whose rows an owner has. */
struct dt__indices dt__rows_pulled_of(const struct dt_exchange *x, int owner);
/* Returns the address of a range's weights for these entries of dt__exchange_inputs, and sets
 * *out_floats to their number of floats. */
float *dt__rows_pulled_at(const struct dt_exchange *x, int range, struct dt__indices inputs,
                          size_t *out_floats);
/* Copies the weights of `count` inputs, which this agent owns, from a range to `out`, contiguous.
 * Returns the number of floats. */
size_t dt__rows_read_weights(const struct dt_exchange *x, int range, const uint32_t *input,
                             uint32_t count, float *out);

#endif
