/* split: the exchange of activations of split layers (model parallelism).
 *
 * The columns of a split layer are cut into S parts, and parts are dealt to workers as replicas
 * are: a worker alone has the weights, gradient and optimizer state of its parts, and multiplies
 * the rows of all replicas with them. So no gradient travels, and the bits are a function of S and
 * of the batch, not of ranks and hosts. Here four parts and two workers; rows of worker 0 are above
 * the line, of worker 1 below:
 *
 *             inputs            outputs, by parts            gradient by inputs
 *          +-----------+       +---+---+---+---+                +-----------+
 *   rows   |   from 0  |       | 0 : 0 | 1 : 1 |   to 0         |   to 0    |   sums of parts
 *   of all +-----------+       +---+---+---+---+                +-----------+   0 and 1, and
 *          |   from 1  |       | 0 : 0 | 1 : 1 |   to 1         |   to 1    |   of 2 and 3
 *          +-----------+       +---+---+---+---+                +-----------+
 *
 *   1. Each worker's rows of the inputs go to every node: dt__split_give_inputs.
 *   2. Owners multiply; the rows go home: dt__split_return_outputs.
 *   3. Backward, the gradient by the outputs goes the same way back: dt__split_give_deltas.
 *   4. Owners make the gradient by the weights, which stays, and by the inputs, which is a sum over
 *      all parts in the order of the fixed tree (exchange.h): each node adds up what its own parts
 *      come to, and sends each worker its rows of it: dt__split_return_sums.
 *
 * In a step, a link of H equal nodes carries B (1 - 1 / H) (2 nin + 2 nout / H) floats each way for
 * a layer, of data parallelism 2 (1 - 1 / H) nin nout.
 *
 * Of an output layer with a softmax the outputs stay where they are: each part says the maximum of
 * a row's outputs, the sum of their exponentials, and the label's output if it has that. The
 * worker that has the row makes its loss of these, and tells each part the factor that turns
 * exponentials into the gradient. So labels go with the inputs, and three floats a part go home and
 * come back in place of outputs and their gradient.
 *
 * Inputs, and the gradient by them, stand in blocks of up to DT_SPLIT_DEPTH inputs, so that a tile
 * of the weights is next to its rows of the inputs, and the gradient of a tile never leaves the
 * cache.
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
    int max_rows; /* of a step, over all replicas */
};
/* Beside an exchange of gradients, whose nodes it takes; collective over the trainers.
 * DT_EMEMORY. */
dt_status dt__split_create(struct dt_exchange *exchange, const struct dt_split_spec *spec,
                           struct dt_split **out);
void dt__split_destroy(
    struct dt_split *split); /* collective over the trainers; before the exchange */

/* The worker that owns a part; parts of a worker are contiguous. */
int dt__split_owner(const struct dt_split *split, int part);
/* Ranges of this worker's parts that are subtrees of the fixed tree: [*first, *end) is number
 * `index`; false: there are no more. */
bool dt__split_subtree(const struct dt_split *split, int index, int *first, int *end);

/* Workers: a step begins, in which each replica has so many rows. */
void dt__split_begin(struct dt_split *split, const int *rows);
int dt__split_rows(const struct dt_split *split);             /* of all replicas */
int dt__split_row(const struct dt_split *split, int replica); /* where a replica's begin */

/* Places in the node's memory: all rows of a block of the inputs (rows, its inputs); all rows of a
 * part (rows, its columns), of the outputs and then of the gradient by them, of a softmax (rows) of
 * struct dt_softmax_part; all rows of a block of the sum over subtree number `index`; the labels
 * (rows) that go with the inputs of a softmax. */
int32_t *dt__split_labels(const struct dt_split *split);
float *dt__split_inputs(const struct dt_split *split, int layer, size_t block);
float *dt__split_outputs(const struct dt_split *split, int layer, int part);
float *dt__split_sum(const struct dt_split *split, int layer, int index, size_t block);

/* Collective over the workers, all in the same order. Behind it: all rows of the inputs are there;
 * ... */
void dt__split_give_inputs(struct dt_split *split, int layer);
/* ... this worker's rows of all parts; ... */
void dt__split_return_outputs(struct dt_split *split, int layer);
/* ... all rows of this worker's parts; ... */
void dt__split_give_deltas(struct dt_split *split, int layer);
/* ... this worker's rows of all subtrees' sums, for dt__split_read_sums: (rows, nin) from a row
 * on. */
void dt__split_return_sums(struct dt_split *split, int layer);
void dt__split_read_sums(const struct dt_split *split, int layer, int row, int rows, float *out);

/* Floats that a node sends in a step, at most: with the layer split, or with its gradient exchanged
 * (exchange.h), where so many nodes have equal shares. */
double dt__split_sent(const struct dt_split_layer *layer, int parts, int rows, int nodes);
double dt__split_sent_whole(const struct dt_split_layer *layer, int nodes);

#endif
