/* Local steps (see local.h). A round: each group's first step reads the bank's weights and writes
 * its own, the others go on from there; then each group's first worker puts the difference, times
 * its part of the round's samples, into the group's slot of the job's exchange. With train.overlap
 * it stays there through the next round, in which workers carry on with that exchange between their
 * steps.
 * Source: Douillard et al. 2023 (DiLoCo); Lin et al., "Don't use large mini-batches, use local
 * SGD", ICLR 2020 (train.local_after). */
#include "train/local.h"

#include <string.h>

#include "base/clones.h"

/* ---- who has what --------------------------------------------------------------------------- */

/* Where part `index` of `parts` of n things in a row begins. */
int dt__part_begin(int n, int parts, int index)
{
    return (int)((int64_t)n * index / parts);
}

dt_status dt__settle_groups(struct dt_job *job)
{
    const struct dt_bank *bank = job->bank;
    const int asked = (int)job->config->train.groups, hosts = job->world->hosts;
    const bool grouped = dt__is_grouped(job);
    const struct dt_config *before = &bank->before; /* zeros of a new run */
    const bool were = before->train.local_steps > 1 || before->train.wire != DT_WIRE_F32;
    job->groups = asked ? asked : were ? (int)before->train.groups : 0;
    if (!job->replicas) job->replicas = job->world->workers;
    if (!bank->resumed && !job->config->run.replicas && grouped && job->replicas < job->groups)
        job->replicas = job->groups;
    if (!job->groups) job->groups = hosts < job->replicas ? hosts : job->replicas;
    if (!grouped || job->groups <= job->replicas) return DT_OK;
    return dt_fail(DT_EUSAGE, "train.groups=%d: expected at most run.replicas=%d", job->groups,
                   job->replicas);
}

int dt__group_begin(const struct dt_job *job, int group)
{
    return dt__part_begin(job->replicas, job->groups, group);
}

dt_status dt__deal_replicas(struct dt_job *job)
{
    const int workers = job->world->workers, replicas = job->replicas;
    const int groups = dt__is_grouped(job) ? job->groups : 1;
    job->all = (struct dt_group){.job = job, .count = replicas};
    DT_TRY(dt__keep(&job->kept, (size_t)replicas, sizeof(int), "replica table", &job->worker_of));
    for (int g = 0, worker = 0; g < groups; g++) {
        const int begin = dt__part_begin(replicas, groups, g);
        const int count = dt__part_begin(replicas, groups, g + 1) - begin;
        int members = 1;
        if (workers >= groups) {
            worker = dt__part_begin(workers, groups, g);
            members = dt__part_begin(workers, groups, g + 1) - worker;
        } else { /* each has whole groups */
            worker += dt__part_begin(groups, workers, worker + 1) <= g;
        }
        for (int m = 0, first, some; m < members; m++) {
            dt_deal_replicas(members, m, count, &first, &some);
            for (int r = first; r < first + some; r++)
                job->worker_of[begin + r] = worker + m;
        }
    }
    return DT_OK;
}

void dt__worker_replicas(const struct dt_job *job, int worker, int *first, int *count)
{
    *first = *count = 0;
    for (int r = job->replicas - 1; r >= 0; r--) {
        if (job->worker_of[r] != worker) continue;
        *first = r;
        ++*count;
    }
}

int dt__idle_workers(const struct dt_job *job)
{
    int busy = 1;
    for (int r = 1; r < job->replicas; r++)
        busy += job->worker_of[r] != job->worker_of[r - 1];
    return job->world->workers - busy;
}

double dt__group_part(const struct dt_group *group, uint64_t begin, uint64_t end)
{
    const struct dt_job *job = group->job;
    const uint64_t all = dt__samples_at(job, end) - dt__samples_at(job, begin);
    uint64_t rows = 0;
    for (uint64_t step = begin; step < end; step++)
        for (int r = group->first; r < group->first + group->count; r++)
            rows += dt_plan_share(job->plan, step, r).count;
    return all ? (double)rows / (double)all : 0;
}

/* ---- open ----------------------------------------------------------------------------------- */

static dt_status group_create(struct dt_job *job, int index, struct dt_group *group)
{
    const int first = dt__group_begin(job, index), end = dt__group_begin(job, index + 1);
    *group = (struct dt_group){.job = job, .index = index, .first = first, .count = end - first};
    group->leads = job->world->worker == job->worker_of[first];
    struct dt_exchange_spec spec = dt__step_spec(group);
    spec.first_worker = job->worker_of[first];
    spec.team = job->worker_of[end - 1] + 1 - spec.first_worker;
    DT_TRY(dt_exchange_create(job->world, &spec, &group->exchange));
    if (!dt__overlaps(job) || !dt_exchange_is_first(group->exchange)) return DT_OK;
    DT_TRY(dt__keep(&job->kept, spec.params, sizeof(float), "weights of a round's begin",
                    &group->began));
    return dt__keep(&job->kept, spec.params, sizeof(float), "a group's difference",
                    &group->difference);
}

dt_status dt__local_open(struct dt_job *job)
{
    const int worker = job->world->worker;
    dt_status status = dt__keep(&job->kept, 1, sizeof *job->local, "groups", &job->local);
    if (!status)
        status = dt__keep(&job->kept, (size_t)job->groups, sizeof *job->local->group, "groups",
                          &job->local->group);
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    for (int g = 0; g < job->groups && !status; g++) {
        const int first = dt__group_begin(job, g), last = dt__group_begin(job, g + 1) - 1;
        if (worker < job->worker_of[first] || worker > job->worker_of[last]) continue;
        status = group_create(job, g, &job->local->group[job->local->count++]);
    }
    return dt_ranks_agree(job->world->trainers, status);
}

void dt__local_close(struct dt_job *job)
{
    for (int i = 0; job->local && i < job->local->count; i++)
        dt_exchange_destroy(job->local->group[i].exchange);
}

/* ---- the groups' state ---------------------------------------------------------------------- */

float *dt__local_vector(const struct dt_job *job, int group, int index)
{
    const struct dt_group *at = job->local->group;
    while (at->index != group)
        at++;
    const bool state = index < job->optimizer.nstate;
    return state ? dt_exchange_vectors(at->exchange)[1 + index] : at->difference;
}

/* Between the bank and the groups' first workers; a process alone has it in one place. */
static void move_state(const struct dt_job *job, bool to_bank)
{
    const int states = job->optimizer.nstate;
    for (int g = 0; g < job->groups; g++) {
        const int first = job->worker_of[dt__group_begin(job, g)];
        const int rank = job->world->worker_rank + first;
        for (int i = 0; i < states + job->pending; i++) {
            float *at = job->bank                     ? *dt__group_vector(job->bank, g, i)
                        : job->world->worker == first ? dt__local_vector(job, g, i)
                                                      : NULL;
            dt_ranks_move(job->world->trainers, rank, to_bank, at, at, job->model->params);
        }
    }
}

/* Where a group begins its next round: the bank's weights, with its own difference in place of the
 * mean of all, which is on its way. */
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
    const float *outer = dt_exchange_weights(job->exchange), *difference = group->difference;
    float *weights = dt_exchange_vectors(group->exchange)[0];
    foresee(trained, (float)dt__own_rate(job), outer, difference, weights);
    foresee(params - trained, 1, outer + trained, difference + trained, weights + trained);
}

void dt__local_start(struct dt_job *job)
{
    const size_t params = job->model->params;
    uint64_t began = dt__round_begin(job, job->config, job->step);
    if (job->bank && job->pending) /* the round that they are of */
        began = dt__round_begin(job, &job->bank->before, job->step);
    dt_ranks_bcast(job->world->trainers, &job->pending, sizeof job->pending, 0);
    dt_ranks_bcast(job->world->trainers, &began, sizeof began, 0);
    move_state(job, false);
    for (int i = 0; i < job->local->count; i++) {
        struct dt_group *group = &job->local->group[i];
        float *weights = dt_exchange_vectors(group->exchange)[0];
        if (group->difference && group->leads) {
            group->part = dt__group_part(group, began, job->step);
            group_begin(group);
        }
        dt_exchange_start(group->exchange);
        if (group->began) memcpy(group->began, weights, params * sizeof *weights);
    }
}

void dt__local_gather(struct dt_job *job)
{
    struct dt_local *local = job->local;
    for (int i = 0; i < local->count; i++)
        dt_exchange_gather(local->group[i].exchange);
    move_state(job, true);
}

/* ---- a round -------------------------------------------------------------------------------- */

/* weight * (from - to) */
DT__CLONES
static void write_difference(size_t n, float weight, const float *restrict from,
                             const float *restrict to, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = weight * (from[i] - to[i]);
}

/* What the groups that this worker leads give to the exchange: what the round that ends at `end`
 * did, or, with train.overlap, the one before. */
static void give_differences(const struct dt_job *job, uint64_t end)
{
    const size_t params = job->model->params;
    for (int i = 0; i < job->local->count; i++) {
        const struct dt_group *group = &job->local->group[i];
        if (!group->leads) continue;
        float *slot = dt_exchange_slot(job->exchange, group->index).grad;
        for (size_t p = 0; group->difference && p < params; p++)
            slot[p] = (float)group->part * group->difference[p];
        if (!group->difference)
            write_difference(params, (float)dt__group_part(group, job->step, end),
                             dt_exchange_weights(job->exchange),
                             dt_exchange_weights(group->exchange), slot);
    }
    for (int b = job->model->buckets - 1; b >= 0; b--)
        dt_exchange_ready(job->exchange, b);
}

static void await_weights(const struct dt_job *job)
{
    for (int b = 0; b < job->model->buckets; b++)
        dt_exchange_need(job->exchange, b);
}

/* The exchange of the round before is done, and all ranks know of it: nobody reads a group's
 * weights now. */
static void turn_groups(const struct dt_job *job, uint64_t end)
{
    const size_t params = job->model->params;
    await_weights(job);
    for (int i = 0; i < job->local->count; i++) {
        struct dt_group *group = &job->local->group[i];
        if (group->began) {
            float *weights = dt_exchange_vectors(group->exchange)[0];
            /* From where rounds begin by their length, which is all that a resume knows: of one
             * that began later, behind a run that had ended, with some steps too many. */
            group->part = dt__group_part(group, dt__round_begin(job, job->config, end), end);
            write_difference(params, 1, group->began, weights, group->difference);
            group_begin(group);
            memcpy(group->began, weights, params * sizeof *weights);
        }
        dt_exchange_barrier(group->exchange);
    }
}

int dt__local_round(struct dt_job *job, uint64_t end)
{
    struct dt_worker *worker = job->worker;
    struct dt_local *local = job->local;
    const bool overlaps = dt__overlaps(job);
    int asked = DT_ASK_NONE;
    dt_exchange_begin(job->exchange, job->step);
    await_weights(job);
    for (int i = 0; i < local->count; i++)
        local->group[i].start = overlaps ? NULL : dt_exchange_weights(job->exchange);
    if (overlaps) give_differences(job, end);
    for (uint64_t step = job->step; step < end && !(asked & DT_ASK_VOID); step++) {
        /* A stop waits only so long for the end of a round (test.round_secs), which is done again
         * after the resume: batch systems kill a job some time after they ask it to stop. */
        const int asks = dt__asks(job) & DT_ASK_STOP;
        const bool stop = dt_exchange_consult(job->exchange, asks) & DT_ASK_STOP;
        if (stop && local->stop_at <= 0) local->stop_at = dt_clock_secs();
        const bool late = stop && dt_clock_secs() - local->stop_at > job->config->test.round_secs;
        for (int i = 0; i < local->count && !(asked & DT_ASK_VOID); i++) {
            struct dt_group *group = &local->group[i];
            const int ask = late ? DT_ASK_GIVE_UP : DT_ASK_NONE;
            dt__step_gradients(group, worker, step);
            asked |= dt_exchange_end(group->exchange, worker->failed ? DT_ASK_ERROR : ask);
            group->start = NULL;
        }
        if (overlaps) dt_exchange_advance(job->exchange);
        dt__slow_down(job);
    }
    for (int i = 0; i < local->count; i++)
        dt_exchange_settle(local->group[i].exchange);
    if (!overlaps) give_differences(job, end);
    dt_trace_phase(job->trace, DT_PHASE_EXCHANGE, end);
    asked = dt_exchange_end(job->exchange, asked | dt__asks(job));
    if (asked & DT_ASK_VOID) return asked;
    if (overlaps) turn_groups(job, end);
    job->step = end;
    return asked;
}

int dt__local_catch_up(struct dt_job *job)
{
    uint64_t done;
    int asked;
    if (job->worker) {
        const double start = dt_clock_secs();
        dt_exchange_begin(job->exchange, job->step);
        give_differences(job, job->step);
        asked = dt_exchange_end(job->exchange, DT_ASK_NONE);
        dt_exchange_settle(job->exchange);
        dt__budget_add(job, job->worker, dt_clock_secs() - start);
    } else {
        asked = dt_exchange_serve(job->exchange, job->step, job->step + 1, dt__asks, job, &done);
    }
    job->pending = false;
    if (job->bank) job->bank->saved_step = DT__NOT_SAVED; /* the weights of this step are others */
    return asked;
}
