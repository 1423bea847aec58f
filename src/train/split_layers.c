/* Split layers in training: see split_layers.h, and comm/split.h for the messages.
 *
 * A step goes from one split layer to the next: the network of each replica runs up to the layer,
 * the owners multiply the rows of all replicas, and the networks continue. An owner keeps each of
 * its parts in its memory: weights and optimizer state, (nin, columns) followed by the bias. The
 * bank's vectors have the whole layer; they are filled for checkpoints and evaluations. */
#include "comm/split.h"
#include "train/split_layers.h"

#include <math.h>
#include <string.h>

/* A replica of this worker, and its pass through the network. */
struct replica {
    struct dt_network *network;
    struct dt_batch batch;
    struct dt_rng dropout;
    struct dt_network_stop stop;
    double loss; /* of the rows, if the output layer is split */
};

struct dt_split_run {
    struct dt_split *split;
    int parts, first, end; /* number of parts of each layer; this worker's are [first, end) */
    int layers;
    struct dt_split_layer *layer; /* (layers) */
    struct dt_layer_part *part;   /* (layers, end - first) this worker's parts */
    float *tile;                  /* gradient of one block's weights */
    float *sums[12];              /* sums for a block, one for each level of the tree over parts */
    int *rows;                    /* (R) rows of each replica in the current step */
    struct replica *replica;      /* (replicas) the replicas of this worker */
    int replicas;
    struct dt_network_hooks forward_only; /* hooks of all replicas but the last that has rows */
    uint64_t weights_at, states_at;       /* steps at which the bank last gathered weights and
                                           * states */
    float *staging;                       /* bank: rows of a part in transit */
};

/* ---- before the first step ------------------------------------------------------------------ */

static bool with_bank(const struct dt_world *world, int worker)
{
    return world->host_of[world->rank_of[worker]] == world->host_of[0];
}

dt_status dt__split_check(struct dt_job *job)
{
    const struct dt_schema *schema = dt__source_schema(job->train);
    const struct dt_world *world = job->world;
    struct dt_workers *some = &job->evaluating;
    struct dt_split_layer layer;
    if (!dt__model_split(job->model, 0, &layer)) return DT_OK;
    if (schema->dense < schema->features && !layer.inputs)
        return dt_fail(DT_EUSAGE, "model.layers, model.split: the first layer takes sparse rows, "
                                  "and is not split; expected a whole one, or an embedding first");
    for (int l = 0; dt__model_split(job->model, l, &layer); l++)
        if (layer.nout < (size_t)job->config->run.parts)
            return dt_fail(
                DT_EUSAGE,
                "run.parts=%lld: a split layer has %zu outputs; expected at most that many parts",
                (long long)job->config->run.parts, layer.nout);
    /* Only the bank's host has all weights of split layers, so its workers evaluate. */
    while (some->first < some->end && !with_bank(world, some->first))
        some->first++;
    while (some->end > some->first && !with_bank(world, some->end - 1))
        some->end--;
    if (some->first == some->end && dt__evaluates_in_place(job))
        return dt_fail(DT_EUSAGE, "split layers: the workers of the bank's host evaluate, and it "
                                  "has none: expected a worker there, or eval.dedicated=yes");
    return DT_OK;
}

/* Rows [begin, end) of a whole matrix. Row nin is the bias. */
struct rows {
    size_t begin, end;
};

/* Returns how many rows one message between bank and owners has: about 16 MB of the whole
 * matrix. */
static size_t rows_at_once(const struct dt_split_layer *layer)
{
    enum { FLOATS = 1 << 22 };
    return 1 + FLOATS / layer->nout;
}

/* ---- the parts ------------------------------------------------------------------------------ */

static struct dt_layer_part *part_of(const struct dt_split_run *run, int layer, int part)
{
    return &run->part[layer * (run->end - run->first) + part - run->first];
}

static size_t part_columns(const struct dt_split_run *run, int layer, int part)
{
    const size_t nout = run->layer[layer].nout, parts = (size_t)run->parts;
    return dt__split_cut(nout, (size_t)part + 1, parts) - dt__split_cut(nout, (size_t)part, parts);
}

static dt_status open_part(struct dt_job *job, int layer, int number, bool norm)
{
    struct dt_split_run *run = job->steps->split;
    struct dt_layer_part *part = part_of(run, layer, number);
    part->number = number;
    part->tensor = run->layer[layer].tensor;
    part->columns = part_columns(run, layer, number);
    part->weights = part->columns * run->layer[layer].nin;
    const size_t floats = part->weights + part->columns, rows = (size_t)dt__plan_batch(job->plan);
    const bool softmax = run->layer[layer].softmax; /* a softmax's products stay f32 */
    const int precision = softmax ? DT_PRECISION_F32 : (int)job->config->run.precision;
    const struct dt_split_part *before =
        number > run->first ? part_of(run, layer, run->first)->products : NULL;
    DT_TRY(dt__split_part_create(&run->layer[layer], part->columns, (int)rows, precision, before,
                                 &part->products));
    if (softmax)
        DT_TRY(DT__ARENA_ALLOC(&job->arena, "a split layer's outputs",
                               DT__TABLE(part->logits, rows * part->columns)));
    for (int v = 0; v <= job->rules->optimizer.nstate; v++)
        DT_TRY(DT__ARENA_ALLOC(&job->arena, "a split layer's weights",
                               DT__TABLE(part->vector[v], floats)));
    return norm ? DT__ARENA_ALLOC(&job->arena, "a split layer's gradient",
                                  DT__TABLE(part->grad, floats))
                : DT_OK;
}

/* Opens a replica. Each has its own network, since the replicas wait for each other halfway
 * through. */
static dt_status open_replica(const struct dt_job *job, struct dt_worker *worker, int index)
{
    struct replica *replica = &job->steps->split->replica[index];
    const int rows = (int)dt__plan_max_local_batch(job->plan);
    const uint64_t most = dt__source_most_entries(job->train, (uint64_t)rows);
    if (index == 0) {
        replica->network = worker->network;
        return DT_OK;
    }
    DT_TRY(dt__network_create(job->model, rows ? rows : 1, (int)job->config->run.precision,
                              &replica->network));
    DT_TRY(dt__network_reserve(replica->network, (size_t)most));
    dt__network_set_copies(replica->network, job->steps->copies);
    dt__network_set_inputs(replica->network, dt__exchange_inputs(job->steps->exchange));
    return DT_OK;
}

static dt_status open_worker(struct dt_job *job, struct dt_worker *worker)
{
    struct dt_split_run *run = job->steps->split;
    const size_t rows = (size_t)dt__plan_batch(job->plan);
    size_t widest = 0;
    dt__replicas_assign(job->world->workers, job->world->worker, run->parts, &run->first,
                        &run->end);
    run->end += run->first;
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "split layers",
                           DT__TABLE(run->part, (size_t)(run->layers * (run->end - run->first)))));
    for (int l = 0; l < run->layers; l++)
        for (int p = run->first; p < run->end; p++) {
            DT_TRY(open_part(job, l, p, dt__exchange_measured(job->steps->exchange) != NULL));
            if (part_of(run, l, p)->columns > widest) widest = part_of(run, l, p)->columns;
        }
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "split layers",
                           DT__TABLE(run->tile, DT_SPLIT_DEPTH * widest),
                           DT__TABLE(run->rows, (size_t)job->replicas),
                           DT__TABLE(run->replica, (size_t)worker->count)));
    for (int i = 0, parts = 1; parts <= run->end - run->first; i++, parts *= 2)
        DT_TRY(DT__ARENA_ALLOC(&job->arena, "split layers",
                               DT__TABLE(run->sums[i], rows * DT_SPLIT_DEPTH)));
    run->replicas = worker->count;
    for (int i = 0; i < run->replicas; i++)
        DT_TRY(open_replica(job, worker, i));
    return DT_OK;
}

/* ---- the bank's whole layers ---------------------------------------------------------------- */

/* Copies rows of a part from or to a whole vector. The bias is row nin. */
static void part_copy(const struct dt_job *job, int layer, int part, struct rows rows, float *whole,
                      float *floats, bool to_whole)
{
    const struct dt_split_run *run = job->steps->split;
    const struct dt_split_layer *l = &run->layer[layer];
    const size_t columns = part_columns(run, layer, part);
    float *at = whole + job->model->tensor[l->tensor].offset +
                dt__split_cut(l->nout, (size_t)part, (size_t)run->parts);
    for (size_t r = rows.begin; r < rows.end; r++, floats += columns) {
        float *wide = at + r * l->nout;
        memcpy(to_whole ? wide : floats, to_whole ? floats : wide, columns * sizeof *wide);
    }
}

/* Moves rows of a part between its owner and the bank. */
static void part_move(const struct dt_job *job, bool to_bank, int layer, int part, struct rows rows,
                      int vector)
{
    struct dt_split_run *run = job->steps->split;
    const int owner = dt__split_owner(run->split, part);
    const int rank = job->world->worker_rank + owner;
    const size_t columns = part_columns(run, layer, part);
    const bool mine = job->worker && owner == job->world->worker;
    float *floats = run->staging, *whole = NULL;
    if (!mine && !job->bank) return;
    if (mine) floats = part_of(run, layer, part)->vector[vector] + rows.begin * columns;
    if (job->bank) whole = dt__exchange_vectors(job->steps->exchange)[vector];
    if (whole && !to_bank) part_copy(job, layer, part, rows, whole, floats, false);
    dt__ranks_move(job->world->trainers, rank, to_bank, floats, floats,
                   (rows.end - rows.begin) * columns);
    if (whole && to_bank) part_copy(job, layer, part, rows, whole, floats, true);
}

/* Moves the vectors [first, end) of all parts, a few rows of all parts at a time. So the
 * bank's vectors, which may be on disk, are read or written once, in order. */
static void move_parts(struct dt_job *job, bool to_bank, int first, int end)
{
    const struct dt_split_run *run = job->steps->split;
    for (int l = 0; l < run->layers; l++)
        for (int v = first; v < end; v++)
            for (struct rows rows = {0}; rows.begin <= run->layer[l].nin; rows.begin = rows.end) {
                rows.end = rows.begin + rows_at_once(&run->layer[l]);
                if (rows.end > run->layer[l].nin + 1) rows.end = run->layer[l].nin + 1;
                for (int p = 0; p < run->parts; p++)
                    part_move(job, to_bank, l, p, rows, v);
            }
}

void dt__split_scatter(struct dt_job *job)
{
    if (job->steps->split) move_parts(job, false, 0, 1 + job->rules->optimizer.nstate);
}

void dt__split_gather(struct dt_job *job, bool all)
{
    struct dt_split_run *run = job->steps->split;
    if (!run) return;
    const int vectors = 1 + job->rules->optimizer.nstate;
    if (!all) dt__exchange_gather(job->steps->exchange, false);
    move_parts(job, true, run->weights_at == job->step,
               all && run->states_at != job->step ? vectors : 1);
    run->weights_at = job->step;
    if (all) run->states_at = job->step;
    dt__ranks_barrier(job->world->trainers); /* evaluating workers read the bank's vectors after
                                              * this */
}

/* ---- a step --------------------------------------------------------------------------------- */

/* Applies the optimizer to the gradient of n floats of a part. If updates wait for the norm, does
 * nothing: dt__split_update will take the gradient from part->grad. */
static void part_gradient(const struct dt_job *job, const struct dt_layer_part *part, size_t at,
                          size_t n, const float *grad)
{
    const struct dt_update_info info = {.step = job->step};
    if (!part->grad) dt__update_part(job, &info, part, at, n, grad);
}

/* Returns the outputs of one of this worker's parts for all rows; in the backward pass their
 * gradient is there instead. */
static float *part_outputs(const struct dt_split_run *run, int layer, int number)
{
    float *logits = part_of(run, layer, number)->logits;
    return logits ? logits : dt__split_outputs(run->split, layer, number);
}

/* Does the backward pass of one block of inputs for parts [first, end), which are one node of the
 * tree over parts: updates the parts' weights, and writes the sum of their gradients by the inputs
 * to out (unless NULL). level: buffers for the nodes below. */
static dt_status block_backward(struct dt_job *job, int layer, size_t block, int first, int end,
                                float *out, float **level)
{
    struct dt_split_run *run = job->steps->split;
    const struct dt_split_layer *l = &run->layer[layer];
    const size_t rows = (size_t)dt__split_rows(run->split), blocks = dt__split_blocks(l->nin);
    const size_t row = dt__split_cut(l->nin, block, blocks);
    const size_t depth = dt__split_cut(l->nin, block + 1, blocks) - row;
    if (end - first == 1) {
        struct dt_layer_part *part = part_of(run, layer, first);
        const size_t at = row * part->columns;
        float *grad = part->grad ? part->grad + at : run->tile;
        DT_TRY(dt__split_part_backward(
            part->products, block, (int)rows, dt__split_inputs(run->split, layer, block),
            part->vector[0] + at, part_outputs(run, layer, first), grad, out));
        part_gradient(job, part, at, depth * part->columns, grad);
        return DT_OK;
    }
    const int middle = dt__tree_split(first, end);
    DT_TRY(block_backward(job, layer, block, first, middle, out, level));
    DT_TRY(block_backward(job, layer, block, middle, end, out ? *level : NULL, level + 1));
    for (size_t i = 0; out && i < rows * depth; i++)
        out[i] += (*level)[i];
    return DT_OK;
}

/* Updates the bias of a part; if updates wait for the norm, measures the gradient of the part for
 * the norm and for rules over whole tensors. */
static void part_finish(struct dt_job *job, int layer, int number)
{
    struct dt_split_run *run = job->steps->split;
    struct dt_layer_part *part = part_of(run, layer, number);
    const struct dt_update_info info = {.step = job->step};
    float *bias = part->grad ? part->grad + part->weights : run->tile;
    dt__split_part_bias(part->products, dt__split_rows(run->split),
                        part_outputs(run, layer, number), bias);
    part_gradient(job, part, part->weights, part->columns, bias);
    if (!part->grad) return;
    double *measured = dt__exchange_measured(job->steps->exchange);
    measured[dt__measures(job) + (size_t)(layer * run->parts + number)] =
        dt__norm2(part->grad, part->weights + part->columns);
    dt__measure_part(job, &info, part, part->grad, measured);
}

static dt_status layer_backward(struct dt_job *job, int layer)
{
    struct dt_split_run *run = job->steps->split;
    const size_t blocks = dt__split_blocks(run->layer[layer].nin);
    int first, end;
    for (int i = 0; dt__split_partial(run->split, i, &first, &end); i++)
        for (size_t b = 0; b < blocks; b++)
            DT_TRY(block_backward(job, layer, b, first, end,
                                  run->layer[layer].inputs ? dt__split_sum(run->split, layer, i, b)
                                                           : NULL,
                                  run->sums));
    for (int p = run->first; p < run->end; p++)
        part_finish(job, layer, p);
    return DT_OK;
}

static void networks_continue(struct dt_job *job, struct dt_worker *worker)
{
    struct dt_split_run *run = job->steps->split;
    for (int i = 0; i < run->replicas; i++) {
        struct replica *replica = &run->replica[i];
        double *loss = &worker->loss[worker->first + i], sum = NAN;
        if (!replica->batch.rows || worker->failed) continue;
        const bool forward = !replica->stop.backward;
        dt__step_fail(worker, job->step,
                      dt__network_continue(replica->network, &sum, &replica->stop));
        if (worker->failed || !forward || !replica->stop.backward) continue;
        sum += replica->loss;
        *loss += sum;
        dt__step_fail(worker, job->step, dt__loss_check(job, worker->first + i, sum));
    }
}

/* Copies the replicas' rows between the matrices of their networks, (rows, width), and the matrices
 * of a layer: blocks of its inputs, or parts of its outputs or of their gradient. */
static void rows_move(const struct dt_split_run *run, const struct dt_worker *worker, int layer,
                      bool inputs, bool to_network)
{
    const struct dt_split_layer *l = &run->layer[layer];
    const size_t width = inputs ? l->nin : l->nout;
    const size_t count = inputs ? dt__split_blocks(l->nin) : (size_t)run->parts;
    for (int i = 0; i < run->replicas && !worker->failed; i++) {
        const struct dt_network_stop *stop = &run->replica[i].stop;
        float *own = inputs ? (float *)(uintptr_t)stop->x : stop->backward ? stop->delta : stop->y;
        const size_t row = (size_t)dt__split_row(run->split, worker->first + i);
        const size_t rows = (size_t)run->replica[i].batch.rows;
        for (size_t p = 0; p < count && rows; p++) {
            const size_t begin = dt__split_cut(width, p, count);
            const size_t n = dt__split_cut(width, p + 1, count) - begin;
            float *part = inputs ? dt__split_inputs(run->split, layer, p)
                                 : dt__split_outputs(run->split, layer, (int)p);
            for (size_t r = 0; r < rows; r++) {
                float *mine = own + r * width + begin, *theirs = part + (row + r) * n;
                memcpy(to_network ? mine : theirs, to_network ? theirs : mine, n * sizeof *mine);
            }
        }
    }
}

/* Copies the replicas' labels to where the owners of a softmax read them. */
static void give_labels(const struct dt_job *job, const struct dt_worker *worker)
{
    const struct dt_split_run *run = job->steps->split;
    for (int i = 0; i < run->replicas && !worker->failed; i++) {
        const struct dt_batch *batch = &run->replica[i].batch;
        int32_t *label =
            dt__split_labels(run->split) + dt__split_row(run->split, worker->first + i);
        if (batch->rows) memcpy(label, batch->label, (size_t)batch->rows * sizeof *label);
    }
}

/* Returns the summaries of a part for a softmax, one for each row; the next part's summaries
 * follow. */
static struct dt_softmax_part *softmax_of(const struct dt_split_run *run, int layer, int part)
{
    return (struct dt_softmax_part *)(void *)dt__split_outputs(run->split, layer, part);
}

/* Computes the losses of the replicas, and the factors from which the owners compute gradients. */
static void join_softmax(struct dt_job *job, struct dt_worker *worker, int layer)
{
    struct dt_split_run *run = job->steps->split;
    for (int i = 0; i < run->replicas && !worker->failed; i++) {
        struct dt_softmax_part *part =
            softmax_of(run, layer, 0) + dt__split_row(run->split, worker->first + i);
        run->replica[i].loss = dt__softmax_join(&run->replica[i].batch, run->parts,
                                                (size_t)dt__plan_batch(job->plan), part);
    }
}

/* Computes a part's summary for a softmax or, with `backward`, the gradient of its logits. */
static void part_softmax(const struct dt_split_run *run, int layer, int number, bool backward)
{
    const struct dt_layer_part *part = part_of(run, layer, number);
    const int rows = dt__split_rows(run->split), columns = (int)part->columns;
    const int32_t *label = dt__split_labels(run->split);
    struct dt_softmax_part *summary = softmax_of(run, layer, number);
    const int begin =
        (int)dt__split_cut(run->layer[layer].nout, (size_t)number, (size_t)run->parts);
    if (backward)
        dt__softmax_part_gradient(rows, columns, begin, label, part->logits, summary);
    else
        dt__softmax_part(rows, columns, begin, label, part->logits, summary);
}

static void layer_forward(struct dt_job *job, struct dt_worker *worker, int layer)
{
    struct dt_split_run *run = job->steps->split;
    const bool softmax = run->layer[layer].softmax;
    rows_move(run, worker, layer, true, false);
    if (softmax) give_labels(job, worker);
    dt__split_give_inputs(run->split, layer);
    for (int p = run->first; p < run->end; p++) {
        struct dt_layer_part *part = part_of(run, layer, p);
        dt__step_fail(worker, job->step,
                      dt__split_part_forward(part->products, dt__split_rows(run->split),
                                             dt__split_inputs(run->split, layer, 0),
                                             part->vector[0], part->vector[0] + part->weights,
                                             part_outputs(run, layer, p)));
        if (softmax) part_softmax(run, layer, p, false);
    }
    dt__split_move_outputs(run->split, layer, true);
    if (softmax)
        join_softmax(job, worker, layer);
    else
        rows_move(run, worker, layer, false, true);
}

/* Reads the batches of the replicas and starts their passes. The hooks that mark buckets as ready
 * belong to the last replica that has rows. */
static void begin_replicas(struct dt_job *job, struct dt_worker *worker,
                           const struct dt_network_hooks *hooks)
{
    struct dt_split_run *run = job->steps->split;
    int last = -1;
    for (int r = 0; r < job->replicas; r++)
        run->rows[r] = (int)dt__plan_local_batch(job->plan, job->step, r).count;
    dt__split_begin(run->split, run->rows);
    for (int i = 0; i < run->replicas && !worker->failed; i++) {
        const struct dt_local_batch local =
            dt__plan_local_batch(job->plan, job->step, worker->first + i);
        dt__step_fail(worker, job->step,
                      dt__read_rows(worker, worker->first + i, local, &run->replica[i].batch));
        if (!worker->failed && run->replica[i].batch.rows) last = i;
        worker->samples += local.count;
    }
    run->forward_only = (struct dt_network_hooks){hooks->before_forward, NULL, hooks->arg};
    for (int i = 0; i < run->replicas && !worker->failed; i++) {
        struct replica *replica = &run->replica[i];
        const int number = worker->first + i;
        replica->dropout = dt__rng_make((uint64_t)job->config->run.seed, DT_STREAM_DROPOUT,
                                        (uint64_t)number, job->step);
        replica->stop = (struct dt_network_stop){.split = 0};
        replica->batch.first_row = 0;
        dt__step_fail(worker, job->step,
                      dt__network_begin(replica->network,
                                        dt__exchange_weights(job->steps->exchange), &replica->batch,
                                        &replica->dropout,
                                        dt__exchange_slot(job->steps->exchange, number),
                                        i == last ? hooks : &run->forward_only));
    }
}

/* Computes the gradients of all replicas, and meanwhile updates the parts. If updates wait for the
 * norm, the squares of a part are written before the networks continue, and so before the last
 * bucket is ready. */
static void split_gradients(struct dt_group *group, struct dt_worker *worker, uint64_t step,
                            const struct dt_network_hooks *hooks)
{
    struct dt_job *job = group->job;
    struct dt_split_run *run = job->steps->split;
    (void)step;
    begin_replicas(job, worker, hooks);
    for (int l = 0; l < run->layers; l++) {
        networks_continue(job, worker);
        layer_forward(job, worker, l);
    }
    networks_continue(job, worker);
    for (int l = run->layers - 1; l >= 0; l--) {
        const bool softmax = run->layer[l].softmax;
        if (!softmax) rows_move(run, worker, l, false, false);
        dt__split_move_outputs(run->split, l, false);
        for (int p = run->first; p < run->end && softmax; p++)
            part_softmax(run, l, p, true);
        dt__step_fail(worker, job->step, layer_backward(job, l));
        if (run->layer[l].inputs) dt__split_return_sums(run->split, l);
        for (int i = 0; i < run->replicas && run->layer[l].inputs && !worker->failed; i++)
            if (run->replica[i].batch.rows)
                dt__split_read_sums(run->split, l, dt__split_row(run->split, worker->first + i),
                                    run->replica[i].batch.rows, run->replica[i].stop.dx);
        networks_continue(job, worker);
    }
}

void dt__split_update(struct dt_job *job)
{
    struct dt_split_run *run = job->steps->split;
    if (!run || !dt__exchange_measured(job->steps->exchange)) return;
    const struct dt_update_info info = dt__exchange_info(job->steps->exchange);
    for (int i = 0; i < run->layers * (run->end - run->first); i++) {
        const struct dt_layer_part *part = &run->part[i];
        const size_t bias = part->weights;
        dt__update_part(job, &info, part, 0, bias, part->grad);
        dt__update_part(job, &info, part, bias, part->columns, part->grad + bias);
    }
}

/* ---- the stage ------------------------------------------------------------------------------ */

/* Creates this rank's state for the split layers. */
static dt_status open_run(struct dt_job *job, struct dt_steps *steps)
{
    const int layers = job->model->splits, parts = (int)job->config->run.parts;
    struct dt_split_run *run;
    struct dt_split_layer *layer;
    size_t most = 0;
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "split layers", DT__TABLE(run, 1),
                           DT__TABLE(layer, (size_t)layers)));
    *run = (struct dt_split_run){.parts = parts,
                                 .layers = layers,
                                 .layer = layer,
                                 .weights_at = job->step,
                                 .states_at = job->step};
    steps->split = run;
    for (int l = 0; l < layers; l++) {
        dt__model_split(job->model, l, &layer[l]);
        const size_t rows = rows_at_once(&layer[l]), columns = layer[l].nout / (size_t)parts + 1;
        if (rows * columns > most) most = rows * columns;
    }
    if (job->bank)
        DT_TRY(DT__ARENA_ALLOC(&job->arena, "split layers", DT__TABLE(run->staging, most)));
    return job->worker ? open_worker(job, job->worker) : DT_OK;
}

dt_status dt__split_open(struct dt_job *job, struct dt_steps *steps)
{
    if (!job->model->splits) return DT_OK;
    /* the workers of the bank's host evaluate with the bank's vectors */
    if (job->world->size > 1 && dt__evaluates_in_place(job) &&
        !dt__exchange_is_shared(job->steps->exchange))
        return dt_fail(DT_EMEMORY, "split layers: evaluation in place needs memory that the ranks "
                                   "of a host share: expected more of /dev/shm, or "
                                   "eval.dedicated=yes");
    steps->gradients = split_gradients;
    steps->pulls = NULL; /* the bank's vectors have all weights */
    DT_TRY(dt__ranks_agree(job->world->trainers, open_run(job, steps)));
    const struct dt_split_spec spec = {.parts = steps->split->parts,
                                       .replicas = job->replicas,
                                       .layer = steps->split->layer,
                                       .layers = steps->split->layers,
                                       .max_rows = (int)dt__plan_batch(job->plan)};
    return dt__split_create(job->steps->exchange, &spec, &steps->split->split);
}

void dt__split_close(struct dt_job *job)
{
    struct dt_split_run *run = job->steps->split;
    if (!run) return;
    dt__split_destroy(run->split);
    for (int i = 0; run->part && i < run->layers * (run->end - run->first); i++)
        dt__split_part_destroy(run->part[i].products);
    for (int i = 1; i < run->replicas; i++) /* the first network is the worker's */
        dt__network_destroy(run->replica[i].network);
}
