/* The arithmetic of an update: the rules, and the effect of a summed gradient on the weights, in
 * sync and in async.
 *
 * Both kinds update any range of the flat vector, on any rank, element by element. For rules over
 * whole tensors the tensors are measured first. */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "base/internal.h"
#include "train/replicas.h"

/* ---- rules ---------------------------------------------------------------------------------- */

/* The constants of one update, and the arguments from which they were computed. */
struct constants {
    uint64_t step, staleness, rows; /* rows 0: nothing was computed yet */
    int64_t drops;
    double norm2;
    const double *measures;        /* from which `trust` was computed; NULL: it was not */
    struct dt_factors usual, wide; /* factors of rules.optimizer and rules.wide */
    struct dt_factors free;        /* factors of rules.optimizer without decay and L1 */
    float row_weight;              /* weight of one row in the mean over all rows */
};

struct dt_updates {
    struct dt_rules rules;
    struct constants constants; /* of the last update */
    float *trust; /* (tensors) trust ratios, for rules over whole tensors, in this update; NULL:
                   * there are none */
};

dt_status dt__rules_init(struct dt_job *job)
{
    const struct dt_config *config = job->config;
    const bool own = config->train.wide_optimizer || config->train.wide_lr > 0;
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "rules of updates", DT__TABLE(job->updates, 1)));
    struct dt_rules *rules = &job->updates->rules;
    job->rules = rules;
    dt__schedule_init(&rules->schedule, config, job->last_step);
    dt__optimizer_init(&rules->optimizer, config, false);
    rules->outer = (struct dt_optimizer){.kind = DT_OPT_NESTEROV,
                                         .momentum = config->train.outer_momentum,
                                         .nstate = config->train.outer_momentum > 0,
                                         .states = config->train.outer_momentum > 0,
                                         .state_name = {"outer_momentum"}};
    rules->wide_begin = rules->wide_end = SIZE_MAX;
    if (config->model.output_bias == DT_OUTPUT_BIAS_BASELINE)
        rules->undecayed = dt__model_output_bias(job->model);
    for (size_t i = 0; own && i < job->model->tensors; i++) {
        const struct dt_tensor *tensor = &job->model->tensor[i];
        if (!tensor->wide) continue;
        rules->wide_begin = tensor->offset;
        rules->wide_end = tensor->offset + tensor->count;
        dt__optimizer_init(&rules->wide, config, true);
        if (config->train.decay_matrices) rules->wide.weight_decay = 0;
        dt__optimizer_share(&rules->optimizer, &rules->wide);
    }
    rules->whole =
        dt__optimizer_is_whole(&rules->optimizer) || (own && dt__optimizer_is_whole(&rules->wide));
    if (rules->whole)
        DT_TRY(DT__ARENA_ALLOC(&job->arena, "trust ratios",
                               DT__TABLE(job->updates->trust, job->model->tensors)));
    if (!own || rules->wide_end < SIZE_MAX) return DT_OK;
    return dt_fail(DT_EUSAGE, "train.wide_optimizer, train.wide_lr: expected model.wide=yes");
}

void dt__rate_drop(const struct dt_job *job, int64_t drops)
{
    job->updates->rules.schedule.drops = drops;
}

/* ---- the norm of a gradient ----------------------------------------------------------------- */

double dt__norm2(const float *values, size_t n)
{
    double partial[8] = {0};
    dt__squares_add(partial, values, 0, n);
    return dt__partials_sum(partial);
}

double dt__gradient_norm2(void *arg, const struct dt_touched *touched, const float *grad)
{
    const struct dt_job *job = arg;
    double partial[8] = {0};
    size_t at = 0;
    for (int i = 0; touched && i < job->steps->row_ranges; i++) {
        const struct dt_row_range *range = &job->steps->row_range[i];
        dt__squares_add(partial, grad + at, at, range->offset - at);
        for (size_t k = 0; k < *touched[i].count; k++)
            dt__squares_add(partial, grad + range->offset + k * range->width,
                            range->offset + touched[i].row[k] * range->width, range->width);
        at = range->offset + range->rows * range->width;
    }
    dt__squares_add(partial, grad + at, at, job->model->trained - at);
    return dt__partials_sum(partial);
}

/* ---- ranges and tensors --------------------------------------------------------------------- */

/* The first n floats of a range, all in one tensor, with the tensor's rule and the rule's state. */
struct tensor_range {
    size_t tensor, n;
    const struct dt_optimizer *rule;
    struct dt_factors factors;
    float *state[DT_MAX_STATE];
};

/* Returns the factors of rules->optimizer for a tensor. */
static const struct dt_factors *factors_of(const struct dt_job *job,
                                           const struct constants *constants, size_t tensor)
{
    const struct dt_tensor *of = &job->model->tensor[tensor];
    const bool matrix = of->role == DT_TENSOR_WEIGHT && of->rank > 1 && !of->wide;
    const bool decays =
        of != job->rules->undecayed && (matrix || !job->config->train.decay_matrices);
    return decays ? &constants->usual : &constants->free;
}

/* Returns the first floats of [offset, offset + n), as many as lie in one tensor. states: whole
 * vectors. */
static struct tensor_range tensor_range_at(const struct dt_job *job,
                                           const struct constants *constants, size_t offset,
                                           size_t n, float *const *states)
{
    const struct dt_tensor *tensor = job->model->tensor;
    size_t index = 0, end = job->model->tensors;
    while (end - index > 1) {
        const size_t middle = index + (end - index) / 2;
        *(tensor[middle].offset <= offset ? &index : &end) = middle;
    }
    const size_t left = tensor[index].offset + tensor[index].count - offset;
    const bool wide = offset >= job->rules->wide_begin && offset < job->rules->wide_end;
    struct tensor_range range = {.tensor = index,
                                 .n = left < n ? left : n,
                                 .rule = wide ? &job->rules->wide : &job->rules->optimizer,
                                 .factors =
                                     wide ? constants->wide : *factors_of(job, constants, index)};
    for (int i = 0; i < job->rules->optimizer.nstate; i++)
        range.state[i] = states[i] + offset;
    return range;
}

/* Returns how many of the floats [offset, offset + n) are trained. In the flat vector trained
 * tensors precede state tensors. */
static size_t trained_count(const struct dt_job *job, size_t offset, size_t n)
{
    const size_t all = job->model->trained, left = offset < all ? all - offset : 0;
    return left < n ? left : n;
}

/* Measures are the squared norms of weights and directions, for each range of a tensor that lies in
 * one block of DT_MEASURE_BLOCK floats. The number of a range is its block's plus its tensor's.
 * From one range to the next at least one of the two rises, so numbers are unique.
 *
 *     block     0         | 1
 *     tensor    0     1   | 1     2
 *     number    0     1   | 2     3 */
enum { WEIGHTS, DIRECTIONS, NORMS };

static size_t norms_at(size_t offset, size_t tensor)
{
    return NORMS * (offset / DT_MEASURE_BLOCK + tensor);
}

/* The norms of split layers' tensors follow all others, ordered by tensor and part. */
static size_t part_norms_at(const struct dt_job *job, size_t tensor, int part)
{
    const size_t parts = (size_t)job->config->run.parts;
    return norms_at(job->model->trained, job->model->tensors) +
           NORMS * (1 + tensor * parts + (size_t)part);
}

size_t dt__measures(const struct dt_job *job)
{
    return job->rules->whole ? part_norms_at(job, job->model->tensors, 0) : 0;
}

static void trust_make(struct dt_job *job, const double *measures)
{
    for (size_t i = 0; i < job->model->tensors; i++) {
        const struct dt_tensor *tensor = &job->model->tensor[i];
        const size_t last = tensor->offset + tensor->count - 1;
        double norms[NORMS] = {0};
        const bool split = tensor->offset >= job->model->shared;
        const size_t begin = split ? part_norms_at(job, i, 0) : norms_at(tensor->offset, i);
        const size_t end = split ? part_norms_at(job, i + 1, 0) : norms_at(last, i) + NORMS;
        for (size_t at = begin; at < end && tensor->role != DT_TENSOR_STATE; at++)
            norms[(at - begin) % NORMS] += measures[at];
        job->updates->trust[i] = tensor == job->rules->undecayed
                                     ? 1
                                     : dt__optimizer_trust(norms[WEIGHTS], norms[DIRECTIONS]);
    }
}

/* ---- sync, and functions that async uses too ------------------------------------------------- */

/* Returns the factor that turns the sum over `rows` into their mean, clipped like
 * torch.nn.utils.clip_grad_norm_. norm2: squared norm of the sum. */
static double mean_scale(const struct dt_job *job, uint64_t rows, double norm2)
{
    double scale = 1 / (double)rows, clip_norm = job->config->train.clip_norm;
    double factor = clip_norm / (sqrt(norm2) * scale + 1e-6);
    return clip_norm > 0 && factor < 1 ? scale * factor : scale;
}

/* Returns the learning rate of the linear path when the schedule's rate is lr. The schedule does
 * not apply to a rule that has separate rates. */
static double wide_lr(const struct dt_job *job, double lr)
{
    const double base = job->config->train.lr, own = job->config->train.wide_lr;
    if (job->rules->wide.own_rates) return own > 0 ? own : base;
    return own <= 0 ? lr : base > 0 ? lr * (own / base) : own;
}

/* Returns the constants of an update at `step` by a gradient with this staleness, summed over
 * `rows`. They are computed once for each update, and used for all its ranges. Source of the
 * staleness rule: Zhang et al., "Staleness-aware async-SGD for distributed deep learning", IJCAI
 * 2016. */
static const struct constants *constants_of(struct dt_job *job, uint64_t step, uint64_t staleness,
                                            uint64_t rows, double norm2, const double *measures)
{
    struct constants *c = &job->updates->constants;
    const int64_t drops = job->rules->schedule.drops;
    if (c->step == step && c->staleness == staleness && c->rows == rows && c->norm2 == norm2 &&
        c->drops == drops && c->measures == measures)
        return c;
    const double schedule = dt__schedule_lr(&job->rules->schedule, step);
    const double lr =
        job->config->train.staleness_lr ? schedule / (1 + (double)staleness) : schedule;
    const double scale = mean_scale(job, rows, norm2);
    *c = (struct constants){.step = step,
                            .staleness = staleness,
                            .rows = rows,
                            .drops = drops,
                            .norm2 = norm2,
                            .measures = measures,
                            .usual = dt__optimizer_factors(&job->rules->optimizer, step, lr, scale),
                            .row_weight = (float)(1 / (double)rows)};
    if (job->rules->undecayed || job->config->train.decay_matrices) {
        struct dt_optimizer free = job->rules->optimizer;
        free.weight_decay = free.l1 = 0;
        c->free = dt__optimizer_factors(&free, step, lr, scale);
    }
    if (job->rules->wide_end < SIZE_MAX)
        c->wide = dt__optimizer_factors(&job->rules->wide, step, wide_lr(job, lr), scale);
    if (measures) trust_make(job, measures);
    return c;
}

/* Does the first pass of a rule over whole tensors, over at most DT_MEASURE_BLOCK floats: replaces
 * the sum of gradients by the direction, and computes the squared norms. */
static void tensor_range_measure(const struct tensor_range *range, float *sum, const float *weights,
                                 double norms[NORMS])
{
    float direction[DT_MEASURE_BLOCK];
    dt__optimizer_direct(range->rule, &range->factors, range->n, sum, weights, direction,
                         range->state);
    memcpy(sum, direction, range->n * sizeof *sum);
    norms[WEIGHTS] = dt__norm2(weights, range->n);
    norms[DIRECTIONS] = dt__norm2(direction, range->n);
}

static void tensor_range_update(const struct dt_job *job, struct tensor_range *range,
                                const float *grad, const float *weights, float *out)
{
    if (dt__optimizer_is_whole(range->rule))
        range->factors.rate *= job->updates->trust[range->tensor];
    dt__optimizer_apply(range->rule, &range->factors, range->n, grad, weights, out, range->state);
}

/* Updates floats [offset, offset + n): applies the optimizer to trained ones, and moves state
 * tensors by the mean over the rows. grad, weights, out: (n); states: whole vectors. constants
 * NULL: nothing changes. */
static void update_range(const struct dt_job *job, const struct constants *constants, size_t offset,
                         size_t n, const float *grad, const float *weights, float *out,
                         float *const *states)
{
    const size_t trained = trained_count(job, offset, n);
    struct tensor_range range;
    if (!constants) {
        memmove(out, weights, n * sizeof *out);
        return;
    }
    for (size_t at = 0; at < trained; at += range.n) {
        range = tensor_range_at(job, constants, offset + at, trained - at, states);
        tensor_range_update(job, &range, grad + at, weights + at, out + at);
    }
    for (size_t i = trained; i < n; i++)
        out[i] = weights[i] + constants->row_weight * grad[i];
}

/* Returns the constants of a step of a group; NULL: its replicas have no samples in the step. */
static const struct constants *group_constants(const struct dt_group *group,
                                               const struct dt_update_info *info)
{
    const bool all = group->count == group->job->replicas;
    const uint64_t rows = all ? dt__plan_step_rows(group->job->plan, info->step) : group->rows;
    if (rows == 0) return NULL;
    return constants_of(group->job, info->step, 0, rows, info->norm2, info->measures);
}

void dt__measure_sync(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                      float *sum, float *const *vectors, double *measures)
{
    const struct dt_group *group = arg;
    const struct dt_job *job = group->job;
    const float *weights = (group->start ? group->start : vectors[0]) + offset;
    const struct constants *constants = group_constants(group, info);
    const size_t trained = constants ? trained_count(job, offset, n) : 0;
    struct tensor_range range;
    for (size_t at = 0; at < trained; at += range.n) {
        range = tensor_range_at(job, constants, offset + at, trained - at, vectors + 1);
        if (dt__optimizer_is_whole(range.rule))
            tensor_range_measure(&range, sum + at, weights + at,
                                 measures + norms_at(offset + at, range.tensor));
    }
}

void dt__update_sync(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                     const float *grad, float *const *vectors, float *out)
{
    const struct dt_group *group = arg;
    const float *weights = (group->start ? group->start : vectors[0]) + offset;
    update_range(group->job, group_constants(group, info), offset, n, grad, weights, out,
                 vectors + 1);
}

/* Returns the range of floats [at, at + n) of a part, all of its weight or all of its bias. The
 * linear path is never split. */
static struct tensor_range part_range(const struct dt_job *job, const struct dt_update_info *info,
                                      const struct dt_layer_part *part, size_t at, size_t n)
{
    const size_t tensor = part->tensor + (at >= part->weights);
    struct tensor_range range = {
        .tensor = tensor,
        .n = n,
        .rule = &job->rules->optimizer,
        .factors = *factors_of(job, group_constants(job->steps->all, info), tensor)};
    for (int i = 0; i < job->rules->optimizer.nstate; i++)
        range.state[i] = part->vector[1 + i] + at;
    return range;
}

void dt__measure_part(const struct dt_job *job, const struct dt_update_info *info,
                      const struct dt_layer_part *part, float *sum, double *measures)
{
    const size_t all = part->weights + part->columns;
    for (size_t at = 0, n; at < all && job->rules->whole; at += n) {
        const size_t left = (at < part->weights ? part->weights : all) - at;
        n = left < DT_MEASURE_BLOCK ? left : DT_MEASURE_BLOCK;
        const struct tensor_range range = part_range(job, info, part, at, n);
        double norms[NORMS], *sums = measures + part_norms_at(job, range.tensor, part->number);
        tensor_range_measure(&range, sum + at, part->vector[0] + at, norms);
        for (int i = 0; i < NORMS; i++)
            sums[i] = at == 0 || at == part->weights ? norms[i] : sums[i] + norms[i];
    }
}

void dt__update_part(const struct dt_job *job, const struct dt_update_info *info,
                     const struct dt_layer_part *part, size_t at, size_t n, const float *grad)
{
    struct tensor_range range = part_range(job, info, part, at, n);
    float *weights = part->vector[0] + at;
    tensor_range_update(job, &range, grad, weights, weights);
}

/* Updates the tile row by row, or all at once if its rows have no gaps between them. */
void dt__update_tile_sync(void *arg, const struct dt_update_info *info, int index,
                          struct dt_tile tile, const float *grad, float *const *vectors)
{
    const struct dt_job *job = ((const struct dt_group *)arg)->job;
    const struct dt_factored *matrix = &job->steps->factored[index];
    const size_t runs = tile.columns < matrix->columns ? tile.rows : 1;
    const size_t run = tile.rows / runs * tile.columns;
    for (size_t r = 0; r < runs; r++) {
        const size_t offset = matrix->offset + (tile.row + r) * matrix->columns + tile.column;
        dt__update_sync(arg, info, offset, run, grad + r * run, vectors, vectors[0] + offset);
    }
    if (job->steps->copies) dt__bf16_pack(matrix, tile, vectors[0], job->steps->copies);
}

/* Updates rows of a range in place. weights, states: whole vectors. constants NULL: nothing
 * changes. */
static void update_rows(const struct dt_job *job, const struct constants *constants,
                        const struct dt_row_range *range, const uint32_t *row, size_t count,
                        const float *grad, float *weights, float *const *states)
{
    if (!constants) return;
    const struct tensor_range tensor =
        tensor_range_at(job, constants, range->offset, range->rows * range->width, states);
    dt__optimizer_apply_rows(tensor.rule, &tensor.factors, range->width, count, row, grad,
                             weights + range->offset, tensor.state);
}

void dt__update_rows_sync(void *arg, const struct dt_update_info *info,
                          const struct dt_row_range *range, const uint32_t *row, size_t count,
                          const float *grad, float *const *vectors)
{
    const struct dt_group *group = arg;
    update_rows(group->job, group_constants(group, info), range, row, count, grad, vectors[0],
                vectors + 1);
}

/* ---- async ---------------------------------------------------------------------------------- */

/* Returns the constants of a gradient's update; NULL: the gradient failed. */
static const struct constants *gradient_constants(struct dt_job *job, uint64_t before,
                                                  const struct dt_gradient *part)
{
    const struct dt_gradient_info *info = part->info;
    if (info->ask & DT_ASK_ERROR) return NULL;
    return constants_of(job, before, part->staleness, info->rows, part->norm2, NULL);
}

void dt__update_async(void *job, const struct dt_gradient *part, uint64_t before, size_t offset,
                      size_t n, const float *weights, float *out, float *const *states)
{
    update_range(job, gradient_constants(job, before, part), offset, n, part->grad, weights, out,
                 states);
}

void dt__update_rows_async(void *job, const struct dt_gradient *part, uint64_t before,
                           const struct dt_row_range *range, const uint32_t *row, size_t count,
                           float *weights, float *const *states)
{
    update_rows(job, gradient_constants(job, before, part), range, row, count, part->grad, weights,
                states);
}
