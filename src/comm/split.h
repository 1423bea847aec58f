/* split: the exchange of activations of split layers (model parallelism).
 *
 * The columns of a split layer are cut into S parts, which are assigned to workers as replicas are.
 * Only the worker that owns a part has its weights, gradient and optimizer state, and it multiplies
 * the rows of all replicas with them. So no gradient of weights is sent, and the bits are a
 * function of S and of the batch, not of ranks and hosts. Here are four parts and two workers; rows
 * of worker 0 are above the line, of worker 1 below:
 *
 *               inputs            outputs, by parts            gradient by inputs
 *            +-----------+       +---+---+---+---+                +-----------+
 *     rows   |   from 0  |       | 0 : 0 | 1 : 1 |   to 0         |   to 0    |   sums of parts
 *     of all +-----------+       +---+---+---+---+                +-----------+   0 and 1, and
 *            |   from 1  |       | 0 : 0 | 1 : 1 |   to 1         |   to 1    |   of 2 and 3
 *            +-----------+       +---+---+---+---+                +-----------+
 *
 *     1. Each worker's rows of the inputs are sent to every node: dt__split_give_inputs.
 *     2. Owners multiply; the rows go home to their workers: dt__split_move_outputs.
 *     3. Backward, the gradient by the outputs takes the reverse path: dt__split_move_outputs.
 *     4. Owners compute the gradient by the weights, which they keep, and by the inputs, which is a
 *        sum over all parts in the order of the fixed tree (exchange.h): each node adds the sums of
 *        its parts, and sends each worker its rows of the result: dt__split_return_sums.
 *
 * In a step, a link of H equal nodes carries B (1 - 1 / H) (2 nin + 2 nout / H) floats each way for
 * a layer; with data parallelism 2 (1 - 1 / H) nin nout.
 *
 * The outputs of an output layer with a softmax are not sent: each part sends the maximum of a
 * row's outputs, the sum of their exponentials, and the label's output if it has that. The worker
 * that has the row computes its loss from these, and sends each part the factor that turns
 * exponentials into the gradient. So labels are sent with the inputs, and three floats a part are
 * sent each way in place of outputs and their gradient.
 *
 * Inputs, and the gradient by them, are stored in blocks of up to DT_SPLIT_DEPTH inputs, so that a
 * tile of the weights is next to its rows of the inputs, and the gradient of a tile never leaves
 * the cache.
 *
 * Source: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014;
 * Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model
 * parallelism", 2019, section 3. */
#ifndef COMM_SPLIT_H
#define COMM_SPLIT_H

#include "base/base.h"
#include "base/batch.h"

struct dt_exchange; /* comm.h */
struct dt_split;

struct dt_split_spec {
    int parts, replicas;
    const struct dt_split_layer *layer; /* (layers) */
    int layers;
    int max_rows; /* upper bound per step, over all replicas */
};
/* Collective over the trainers.
 * Creates the exchange of split layers on the nodes of an exchange of gradients. DT_EMEMORY. */
dt_status dt__split_create(struct dt_exchange *exchange, const struct dt_split_spec *spec,
                           struct dt_split **out);
void dt__split_destroy(
    struct dt_split *split); /* collective over the trainers; before the exchange's */

/* Returns the worker that owns a part; parts of a worker are contiguous. */
int dt__split_owner(const struct dt_split *split, int part);
/* Finds range number `index`, [*first, *end), of this worker's parts whose sum is a node of the
 * fixed tree. Returns false if there are no more. */
bool dt__split_partial(const struct dt_split *split, int index, int *first, int *end);

/* Begins a step at a worker; rows: number of rows of each replica. */
void dt__split_begin(struct dt_split *split, const int *rows);
int dt__split_rows(const struct dt_split *split);             /* of all replicas */
int dt__split_row(const struct dt_split *split, int replica); /* index of a replica's first row */

/* Return addresses in the node's memory: of the labels (rows) that go with the inputs of a softmax;
 * of all rows of a block of the inputs (rows, its inputs); of all rows of a part (rows, its
 * columns), first of the outputs and then of the gradient by them, of a softmax (rows) of struct
 * dt_softmax_part; and of all rows of a block of this worker's partial sum number `index`. */
int32_t *dt__split_labels(const struct dt_split *split);
float *dt__split_inputs(const struct dt_split *split, int layer, size_t block);
float *dt__split_outputs(const struct dt_split *split, int layer, int part);
float *dt__split_sum(const struct dt_split *split, int layer, int index, size_t block);

/* Collective over the workers.
 * These three are called in the same order by all workers. This one sends the inputs: afterwards
 * each node has all rows of them. */
void dt__split_give_inputs(struct dt_split *split, int layer);
/* Collective over the workers.
 * Moves rows between their workers and the owners of parts. home: the outputs; afterwards this
 * worker's rows of all parts are here. Else the gradient by the outputs; afterwards all rows of
 * this worker's parts are here. */
void dt__split_move_outputs(struct dt_split *split, int layer, bool home);
/* Collective over the workers.
 * Returns the sums: afterwards this worker's rows of all partial sums are here, and
 * dt__split_read_sums adds them into out (rows, nin), from a row on. */
void dt__split_return_sums(struct dt_split *split, int layer);
void dt__split_read_sums(const struct dt_split *split, int layer, int row, int rows, float *out);

/* Return an upper bound on the floats that a node sends in a step: with the layer split, or with
 * its gradient exchanged (exchange.h) over `nodes` nodes of equal slices. */
double dt__split_sent(const struct dt_split_layer *layer, int parts, int rows, int nodes);
double dt__split_sent_whole(const struct dt_split_layer *layer, int nodes);

#endif
