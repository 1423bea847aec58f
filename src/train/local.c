/* Local steps: the groups of replicas that a worker takes part in, and their stepper.
 *
 * Replicas are divided into G groups. Within a round each group steps on its own weights and
 * optimizer state, in an exchange among its workers. At the end of the round the groups'
 * differences from the bank's weights are summed in the job's exchange, in which each group is one
 * replica. So the bits depend on groups, replicas and the length of rounds, and not on which rank
 * computes what.
 *
 * A round: the first step of each group reads the bank's weights and writes the group's, and the
 * other steps continue from these. Then the first worker of each group puts the difference, times
 * the group's fraction of the round's samples, into the group's slot of the job's exchange.
 *
 * With train.overlap the exchange of a round's differences goes on during the next round, between
 * whose steps the workers advance it, and ends with that round. A group starts a round with the
 * bank's weights minus its own difference or a fraction of it (dt__own_rate), since these weights
 * do not include the difference yet:
 *
 *     round                  1        2                 3                 last     then
 *     a group starts with    w0       w0 - own d1       w1 - own d2       ...
 *     its difference         d1       d2                d3                dn
 *     in flight meanwhile    none     all groups' d1    all groups' d2    ...      all groups' dn
 *     the bank's weights     w0       w1                w2                         wn
 *     at its end
 *
 * So nothing is in flight at a synchronization point, which follows a round: the state is the
 * weights and the differences. The differences of the run's last round are exchanged at once
 * (catch_up).
 *
 * Source: Douillard et al. 2023 (DiLoCo); Lin et al., "Don't use large mini-batches, use local
 * SGD", ICLR 2020 (train.local_after). */
#include "train/replicas.h"
#include "train/sync_step.h"

#include <string.h>

#include "base/clones.h"

/* ---- open ----------------------------------------------------------------------------------- */

static dt_status group_create(struct dt_job *job, int index, struct dt_group *group)
{
    const int first = dt__group_begin(job, index), end = dt__group_begin(job, index + 1);
    *group = (struct dt_group){.job = job, .index = index, .first = first, .count = end - first};
    group->leads = job->world->worker == job->worker_of[first];
    struct dt_exchange_spec spec = dt__step_spec(group);
    spec.first_worker = job->worker_of[first];
    spec.workers = job->worker_of[end - 1] + 1 - spec.first_worker;
    DT_TRY(dt__exchange_create(job->world, &spec, &group->exchange));
    if (!dt__overlaps(job) || !dt__exchange_is_first(group->exchange)) return DT_OK;
    return DT__ARENA_ALLOC(&job->arena, "a group's difference",
                           DT__TABLE(group->began, spec.params),
                           DT__TABLE(group->difference, spec.params));
}

static dt_status groups_open(struct dt_job *job, struct dt_steps *steps)
{
    const int worker = job->world->worker;
    dt_status status = DT__ARENA_ALLOC(&job->arena, "groups", DT__TABLE(steps->local, 1));
    if (!status)
        status = DT__ARENA_ALLOC(&job->arena, "groups",
                                 DT__TABLE(steps->local->group, (size_t)job->groups));
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    for (int g = 0; g < job->groups && !status; g++) {
        const int first = dt__group_begin(job, g), last = dt__group_begin(job, g + 1) - 1;
        if (worker < job->worker_of[first] || worker > job->worker_of[last]) continue;
        status = group_create(job, g, &steps->local->group[steps->local->count++]);
    }
    return dt__ranks_agree(job->world->trainers, status);
}

/* Fills the specification of the job's exchange, in which each group is one replica, and the
 * difference over a round is its gradient. */
static dt_status local_spec(struct dt_job *job, struct dt_exchange_spec *out)
{
    int *leaders = NULL; /* (groups) */
    *out = dt__step_spec(job->steps->all);
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "groups", DT__TABLE(leaders, (size_t)job->groups)));
    for (int g = 0; g < job->groups; g++)
        leaders[g] = job->worker_of[dt__group_begin(job, g)];
    out->worker_of = leaders;
    out->replicas = job->groups;
    out->vectors = 1 + job->rules->outer.nstate;
    out->norm.needed = false;
    out->norm.measure = NULL;
    out->update = dt__update_outer;
    out->arg = job;
    return DT_OK;
}

/* ---- the groups' state ---------------------------------------------------------------------- */

/* Moves the groups' state from the bank to the groups' first workers, or back. In a run with one
 * process both have the same memory, and nothing moves. */
static void move_state(const struct dt_job *job, bool to_bank)
{
    const int states = job->rules->optimizer.nstate;
    for (int g = 0; g < job->groups; g++) {
        const int first = job->worker_of[dt__group_begin(job, g)];
        const int rank = job->world->worker_rank + first;
        for (int i = 0; i < states + job->pending; i++) {
            float *at = job->bank                     ? *dt__group_vector(job->bank, g, i)
                        : job->world->worker == first ? dt__local_vector(job, g, i)
                                                      : NULL;
            dt__ranks_move(job->world->trainers, rank, to_bank, at, at, job->model->params);
        }
    }
}

/* Fills the weights with which a group starts its next round: outer, the bank's weights, minus the
 * group's own difference, which replaces the mean difference in flight. */
DT__CLONES
static void foresee(size_t n, float rate, const float *restrict outer,
                    const float *restrict difference, float *restrict weights)
{
    for (size_t i = 0; i < n; i++)
        weights[i] = outer[i] - rate * difference[i];
}

static void group_begin(struct dt_group *group)
{
    const struct dt_job *job = group->job;
    const size_t params = job->model->params, trained = job->model->trained;
    const float *outer = dt__exchange_weights(job->steps->exchange),
                *difference = group->difference;
    float *weights = dt__exchange_vectors(group->exchange)[0];
    foresee(trained, (float)dt__own_rate(job), outer, difference, weights);
    foresee(params - trained, 1, outer + trained, difference + trained, weights + trained);
}

static void groups_start(struct dt_job *job)
{
    const size_t params = job->model->params;
    uint64_t began = dt__round_begin(job, job->config, job->step);
    if (job->bank && job->pending) /* these differences were computed in rounds of the
                                    * previous configuration */
        began = dt__round_begin(job, &job->bank->start.before, job->step);
    dt__ranks_bcast(job->world->trainers, &job->pending, sizeof job->pending, 0);
    dt__ranks_bcast(job->world->trainers, &began, sizeof began, 0);
    move_state(job, false);
    for (int i = 0; i < job->steps->local->count; i++) {
        struct dt_group *group = &job->steps->local->group[i];
        float *weights = dt__exchange_vectors(group->exchange)[0];
        if (group->difference && group->leads) {
            group->part = dt__group_part(group, began, job->step);
            group_begin(group);
        }
        dt__exchange_start(group->exchange);
        if (group->began) memcpy(group->began, weights, params * sizeof *weights);
    }
}

/* ---- a round -------------------------------------------------------------------------------- */

/* Writes weight * (from - to). */
DT__CLONES
static void write_difference(size_t n, float weight, const float *restrict from,
                             const float *restrict to, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = weight * (from[i] - to[i]);
}

/* Puts the differences of the groups that this worker leads into the job's exchange: those of the
 * round that ends at `end` or, with train.overlap, of the round before it. */
static void give_differences(const struct dt_job *job, uint64_t end)
{
    const size_t params = job->model->params;
    for (int i = 0; i < job->steps->local->count; i++) {
        const struct dt_group *group = &job->steps->local->group[i];
        if (!group->leads) continue;
        float *slot = dt__exchange_slot(job->steps->exchange, group->index).grad;
        for (size_t p = 0; group->difference && p < params; p++)
            slot[p] = (float)group->part * group->difference[p];
        if (!group->difference)
            write_difference(params, (float)dt__group_part(group, job->step, end),
                             dt__exchange_weights(job->steps->exchange),
                             dt__exchange_weights(group->exchange), slot);
    }
    for (int b = job->model->buckets - 1; b >= 0; b--)
        dt__exchange_ready(job->steps->exchange, b);
}

static void await_weights(const struct dt_job *job)
{
    for (int b = 0; b < job->model->buckets; b++)
        dt__exchange_need(job->steps->exchange, b);
}

/* Starts the next round of each group. The exchange of the previous round has ended on all ranks,
 * so no rank reads a group's weights now. */
static void turn_groups(const struct dt_job *job, uint64_t end)
{
    const size_t params = job->model->params;
    await_weights(job);
    for (int i = 0; i < job->steps->local->count; i++) {
        struct dt_group *group = &job->steps->local->group[i];
        if (group->began) {
            float *weights = dt__exchange_vectors(group->exchange)[0];
            /* The group's fraction is that of a round of full length, since a resume knows only
             * where such a round starts. If this round started later, because the run continues
             * after its former end, some steps too many are counted. */
            group->part = dt__group_part(group, dt__round_begin(job, job->config, end), end);
            write_difference(params, 1, group->began, weights, group->difference);
            group_begin(group);
            memcpy(group->began, weights, params * sizeof *weights);
        }
        dt__exchange_barrier(group->exchange);
    }
}

/* Does one step of a round for each group. After a stop request the round may go on for
 * test.round_secs; then it is given up, and a resume repeats it: batch systems kill a job some time
 * after they ask it to stop. Returns what ranks ask for. */
static int groups_step(struct dt_job *job, uint64_t step)
{
    struct dt_local *local = job->steps->local;
    struct dt_worker *worker = job->worker;
    int asked = DT_ASK_NONE;
    const bool stop =
        dt__exchange_consult(job->steps->exchange, dt__asks(job) & DT_ASK_STOP) & DT_ASK_STOP;
    if (stop && local->stop_at <= 0) local->stop_at = dt__clock_secs();
    const bool late = stop && dt__clock_secs() - local->stop_at > job->config->test.round_secs;
    const int ask = late ? DT_ASK_GIVE_UP : DT_ASK_NONE;
    for (int i = 0; i < local->count && !(asked & DT_ASK_VOID); i++) {
        struct dt_group *group = &local->group[i];
        dt__step_gradients(group, worker, step);
        asked |= dt__exchange_end(group->exchange, worker->failed ? DT_ASK_ERROR : ask);
        group->start = NULL;
    }
    return asked;
}

/* Does one round and exchanges its differences or, with train.overlap, those of the round
 * before. */
static int local_step(struct dt_job *job, struct dt_span *span)
{
    struct dt_local *local = job->steps->local;
    const uint64_t end = dt__round_end(job, job->step);
    const bool overlaps = dt__overlaps(job);
    int asked = DT_ASK_NONE;
    (void)span;
    dt__exchange_begin(job->steps->exchange, job->step);
    await_weights(job);
    for (int i = 0; i < local->count; i++)
        local->group[i].start = overlaps ? NULL : dt__exchange_weights(job->steps->exchange);
    if (overlaps) give_differences(job, end);
    for (uint64_t step = job->step; step < end && !(asked & DT_ASK_VOID); step++) {
        asked |= groups_step(job, step);
        if (overlaps) dt__exchange_advance(job->steps->exchange);
        dt__slow_down(job);
    }
    for (int i = 0; i < local->count; i++)
        dt__exchange_settle(local->group[i].exchange);
    if (!overlaps) give_differences(job, end);
    dt__trace_phase(job->trace, DT_PHASE_EXCHANGE, end);
    asked = dt__exchange_end(job->steps->exchange, asked | dt__asks(job));
    if (asked & DT_ASK_VOID) return asked;
    if (overlaps) turn_groups(job, end);
    job->step = end;
    return asked;
}

/* Exchanges the pending differences after the last round of the run. */
static int catch_up(struct dt_job *job)
{
    uint64_t done;
    int asked;
    if (job->worker) {
        const double start = dt__clock_secs();
        dt__exchange_begin(job->steps->exchange, job->step);
        give_differences(job, job->step);
        asked = dt__exchange_end(job->steps->exchange, DT_ASK_NONE);
        dt__exchange_settle(job->steps->exchange);
        dt__budget_add(job, dt__clock_secs() - start);
    } else {
        asked = dt__exchange_serve_span(job->steps->exchange, job->step, job->step + 1, dt__asks,
                                        job, &done);
    }
    job->pending = false;
    return asked;
}

/* ---- the stepper ---------------------------------------------------------------------------- */

static dt_status local_open(struct dt_job *job, struct dt_steps *steps, dt_fill_fn *fill)
{
    struct dt_exchange_spec spec;
    const dt_status status = local_spec(job, &spec);
    steps->saved =
        (struct dt_saved_vectors){.optimizer = &job->rules->outer,
                                  .groups = job->groups,
                                  .states = job->rules->optimizer.nstate,
                                  .differences = dt__overlaps(job),
                                  .error = dt__is_rounded(job) ? DT__DIFFERENCE_ERROR : NULL};
    DT_TRY(dt__exchange_open(job, steps, &spec, status));
    DT_TRY(groups_open(job, steps));
    DT_TRY(dt__exchange_fill(job, fill));
    groups_start(job);
    return DT_OK;
}

static int local_settle(struct dt_job *job, const struct dt_span *span, int asked)
{
    if (job->worker) {
        dt__exchange_settle(job->steps->exchange);
        dt__budget_add(job, dt__clock_secs() - span->start);
    }
    if (!(asked & DT_ASK_VOID)) {
        job->pending |= dt__overlaps(job) && job->step > span->begin;
        if (job->pending && job->step == job->last_step) asked |= catch_up(job);
    }
    return asked;
}

static void local_gather(struct dt_job *job)
{
    dt__exchange_gather(job->steps->exchange, true);
    for (int i = 0; i < job->steps->local->count; i++)
        dt__exchange_gather(job->steps->local->group[i].exchange, true);
    move_state(job, true);
}

static void local_close(struct dt_job *job)
{
    for (int i = 0; job->steps->local && i < job->steps->local->count; i++)
        dt__exchange_destroy(job->steps->local->group[i].exchange);
    dt__exchange_destroy(job->steps->exchange);
}

const struct dt_stepper dt__local_stepper = {
    .applies = dt__is_local,
    .open = local_open,
    .step = local_step,
    .serve = dt__exchange_serve,
    .settle = local_settle,
    .weights = dt__exchange_at_rest,
    .gather = local_gather,
    .close = local_close,
};
