/* split: the exchange of activations of split layers (model parallelism).
 *
 * The columns of a split layer are cut into S parts, which are assigned to workers like replicas.
 * Only the worker that owns a part has the part's weights, gradient and optimizer state; it
 * multiplies the rows of all replicas by these weights. So no gradient of weights is sent, and the
 * bits are a function of S and of the batch, not of ranks and hosts. Here are four parts and two
 * workers; the rows of worker 0 are above the line, those of worker 1 below:
 *
 *               inputs            outputs, by parts            gradient by inputs
 *            +-----------+       +---+---+---+---+                +-----------+
 *     rows   |   from 0  |       | 0 : 0 | 1 : 1 |   to 0         |   to 0    |   sums of parts
 *     of all +-----------+       +---+---+---+---+                +-----------+   0 and 1, and
 *            |   from 1  |       | 0 : 0 | 1 : 1 |   to 1         |   to 1    |   of 2 and 3
 *            +-----------+       +---+---+---+---+                +-----------+
 *
 *     1. Each worker sends its rows of the inputs to every node: dt__split_give_inputs.
 *     2. Owners multiply, and send the rows of the outputs back to their workers:
 *        dt__split_move_outputs.
 *     3. Backward, the gradient by the outputs takes the reverse path: dt__split_move_outputs.
 *     4. Owners compute the gradient by the weights, which they keep, and the gradient by the
 *        inputs. The latter is a sum over all parts in the order of the fixed tree (exchange.h):
 *        each node adds the sums of its parts, and sends each worker its rows of the result:
 *        dt__split_return_sums.
 *
 * In a step a link between H equal nodes carries, for a layer and each way, B (1 - 1 / H) (2 nin +
 * 2 nout / H) floats, where B is the batch; with data parallelism it carries 2 (1 - 1 / H) nin
 * nout.
 *
 * The outputs of an output layer with a softmax are not sent. For each row a part sends the maximum
 * of its outputs, the sum of their exponentials and, if it has the label's column, the label's
 * output. The row's worker computes the loss from these, and sends each part the factor that turns
 * exponentials into the gradient. So labels are sent with the inputs, and each part sends three
 * floats a row each way in place of outputs and their gradient.
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
    int max_rows; /* upper bound on the rows of all replicas in a step */
};
/* Collective over the trainers. Creates the exchange of activations, on the nodes of an exchange of
 * gradients. DT_EMEMORY. */
dt_status dt__split_create(struct dt_exchange *exchange, const struct dt_split_spec *spec,
                           struct dt_split **out);
void dt__split_destroy(
    struct dt_split *split); /* collective over the trainers; destroy it before the exchange of
                              * gradients */

/* Returns the worker that owns a part. The parts of a worker are contiguous. */
int dt__split_owner(const struct dt_split *split, int part);
/* Sets [*first, *end) to range `index` of this worker's parts: the parts whose sum is the worker's
 * partial sum number `index` in the fixed tree. Returns false if there are no more. */
bool dt__split_partial(const struct dt_split *split, int index, int *first, int *end);

/* Starts a step on a worker. rows: number of rows of each replica. */
void dt__split_begin(struct dt_split *split, const int *rows);
int dt__split_rows(const struct dt_split *split);             /* rows of all replicas */
int dt__split_row(const struct dt_split *split, int replica); /* index of a replica's first row */

/* Return addresses in the node's memory. dt__split_labels: the labels (rows) that go with the
 * inputs of a softmax. dt__split_inputs: all rows of a block of the inputs, (rows, inputs of the
 * block). dt__split_outputs: all rows of a part, (rows, columns of the part): first outputs, then
 * the gradient by them; of a softmax, (rows) of struct dt_softmax_part. dt__split_sum: all rows of
 * a block of this worker's partial sum number `index`. */
int32_t *dt__split_labels(const struct dt_split *split);
float *dt__split_inputs(const struct dt_split *split, int layer, size_t block);
float *dt__split_outputs(const struct dt_split *split, int layer, int part);
float *dt__split_sum(const struct dt_split *split, int layer, int index, size_t block);

/* Collective over the workers. All workers call the next three collective functions in the same
 * order. This one sends the inputs; afterwards each node has all rows of them. */
void dt__split_give_inputs(struct dt_split *split, int layer);
/* Collective over the workers. Moves rows between their workers and the owners of parts. home:
 * moves outputs; afterwards this worker's rows of all parts are in its node's memory. Otherwise
 * moves the gradient by the outputs; afterwards all rows of this worker's parts are there. */
void dt__split_move_outputs(struct dt_split *split, int layer, bool home);
/* Collective over the workers. Sends the partial sums of the gradient by the inputs. Afterwards
 * this worker's rows of all partial sums are in its node's memory, and dt__split_read_sums adds up
 * `rows` of them, from `row` on, into out (rows, nin). */
void dt__split_return_sums(struct dt_split *split, int layer);
void dt__split_read_sums(const struct dt_split *split, int layer, int row, int rows, float *out);

/* Return an upper bound on the floats that a node sends in a step: _sent with the layer split,
 * _sent_whole with the layer's gradient exchanged (exchange.h), over `nodes` nodes of equal
 * slices. */
double dt__split_sent(const struct dt_split_layer *layer, int parts, int rows, int nodes);
double dt__split_sent_whole(const struct dt_split_layer *layer, int nodes);

#endif
