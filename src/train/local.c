/* Local steps (see local.h). A round: each group's first step reads the bank's weights and writes its own,
 * the others go on from there; then each group's leader puts the difference, times its part of the round's
 * samples, into the group's slot of the job's exchange.
 * Source: Douillard et al. 2023 (DiLoCo); Lin et al., "Don't use large mini-batches, use local SGD", ICLR
 * 2020 (train.local_after). */
#include "train/local.h"

#include "base/clones.h"

/* ---- who has what --------------------------------------------------------------------------- */

/* Where part `index` of `parts` of n things in a row begins. */
static int part_begin(int n, int parts, int index)
{
    return (int)((int64_t)n * index / parts);
}

void dt__group_replicas(const struct dt_job *job, int group, int *first, int *count)
{
    *first = part_begin(job->replicas, job->groups, group);
    *count = part_begin(job->replicas, job->groups, group + 1) - *first;
}

void dt__group_workers(const struct dt_job *job, int group, int *first, int *count)
{
    int workers = dt_world_workers(job->world);
    if (workers >= job->groups) {
        *first = part_begin(workers, job->groups, group);
        *count = part_begin(workers, job->groups, group + 1) - *first;
        return;
    }
    *first = 0;
    *count = 1;
    while (part_begin(job->groups, workers, *first + 1) <= group)
        ++*first;
}

static void worker_groups(const struct dt_job *job, int worker, int *first, int *count)
{
    int workers = dt_world_workers(job->world);
    *first = 0;
    *count = 1;
    if (workers < job->groups) {
        *first = part_begin(job->groups, workers, worker);
        *count = part_begin(job->groups, workers, worker + 1) - *first;
        return;
    }
    while (part_begin(workers, job->groups, *first + 1) <= worker)
        ++*first;
}

void dt__worker_replicas(const struct dt_job *job, int worker, int *first, int *count)
{
    if (!dt__is_local(job) && !dt__is_rounded(job)) {
        dt_world_replicas(job->world, worker, job->replicas, first, count);
        return;
    }
    int group, groups, begin, members, last, of_last;
    worker_groups(job, worker, &group, &groups);
    dt__group_workers(job, group, &begin, &members);
    dt__group_replicas(job, group, first, count);
    if (members > 1) { /* a part of one group */
        int base = *first;
        dt_deal_replicas(members, worker - begin, *count, first, count);
        *first += base;
        return;
    }
    dt__group_replicas(job, group + groups - 1, &last, &of_last);
    *count = last + of_last - *first;
}

int dt__idle_workers(const struct dt_job *job)
{
    int idle = 0, first, count;
    for (int w = 0; w < dt_world_workers(job->world); w++) {
        dt__worker_replicas(job, w, &first, &count);
        idle += count == 0;
    }
    return idle;
}

/* ---- open ----------------------------------------------------------------------------------- */

static dt_status group_create(const struct dt_job *job, int worker, int index,
                              struct dt_group *group)
{
    const bool clips = job->config->train.clip_norm > 0;
    int first_worker, workers;
    dt__group_workers(job, index, &first_worker, &workers);
    *group = (struct dt_group){.job = job, .index = index, .leads = worker == first_worker};
    dt__group_replicas(job, index, &group->first, &group->count);
    struct dt_reducer_spec spec = {.first_worker = first_worker,
                                   .team = workers,
                                   .kind = job->config->train.exchange,
                                   .reproducible = job->config->run.reproducible,
                                   .params = dt_model_params(job->model),
                                   .buckets = dt_model_buckets(job->model),
                                   .bucket_end = dt_model_bucket_ends(job->model),
                                   .replicas = group->count,
                                   .vectors = 1 + job->optimizer.nstate,
                                   .norm = clips,
                                   .norm_params = dt_model_trained(job->model),
                                   .update = dt__update_group,
                                   .arg = group};
    return dt_reducer_create(job->world, &spec, &group->reducer);
}

dt_status dt__local_open(const struct dt_trainer *trainer)
{
    struct dt_job *job = trainer->job;
    int first = 0, count = 0, worker = dt_world_worker_index(job->world);
    if (trainer->worker) worker_groups(job, worker, &first, &count);
    dt_status status = dt_alloc(1, sizeof *job->local, "groups", &job->local);
    if (!status)
        status = dt_alloc((size_t)count, sizeof *job->local->group, "groups", &job->local->group);
    DT_TRY(dt_world_agree_trainers(job->world, status));
    for (int i = 0; i < count && !status; i++) { /* the teams of a worker are it alone, or one */
        job->local->count = i + 1;
        status = group_create(job, worker, first + i, &job->local->group[i]);
    }
    return dt_world_agree_trainers(job->world, status);
}

void dt__local_close(struct dt_job *job)
{
    if (!job->local) return;
    for (int i = 0; i < job->local->count; i++)
        dt_reducer_destroy(job->local->group[i].reducer);
    dt_free(job->local->group);
    dt_free(job->local);
    job->local = NULL;
}

/* ---- the groups' state ---------------------------------------------------------------------- */

static struct dt_group *find_group(const struct dt_job *job, int index)
{
    for (int i = 0; i < job->local->count; i++)
        if (job->local->group[i].index == index) return &job->local->group[i];
    return NULL;
}

float *dt__local_state(const struct dt_job *job, int group, int index)
{
    return dt_reducer_vectors(find_group(job, group)->reducer)[1 + index];
}

/* Between the bank and the groups' leaders; a process alone has it in one place. */
static void move_state(const struct dt_trainer *trainer, bool to_bank)
{
    const struct dt_job *job = trainer->job;
    const size_t bytes = dt_model_params(job->model) * sizeof(float);
    const int states = job->optimizer.nstate;
    for (int g = 0; g < job->groups; g++) {
        int first, count;
        dt__group_workers(job, g, &first, &count);
        int leader = dt_world_worker_rank(job->world, first);
        for (int i = 0; i < states; i++) {
            float *at = NULL;
            if (trainer->bank)
                at = trainer->bank->state.group_state[g * trainer->bank->state.group_nstate + i];
            else if (dt_world_rank(job->world) == leader)
                at = dt__local_state(job, g, i);
            dt_world_move(job->world, to_bank ? leader : 0, to_bank ? 0 : leader, at, bytes);
        }
    }
}

void dt__local_start(const struct dt_trainer *trainer)
{
    struct dt_local *local = trainer->job->local;
    move_state(trainer, false);
    for (int i = 0; i < local->count; i++)
        dt_reducer_start(local->group[i].reducer);
}

void dt__local_gather(const struct dt_trainer *trainer)
{
    struct dt_local *local = trainer->job->local;
    for (int i = 0; i < local->count; i++)
        dt_reducer_gather(local->group[i].reducer);
    move_state(trainer, true);
}

/* ---- a round -------------------------------------------------------------------------------- */

/* A stop waits only so long for the end of a round, which is done again after the resume: batch systems kill
 * a job some time after they ask it to stop. */
static bool gives_up(const struct dt_job *job)
{
    struct dt_local *local = job->local;
    int ask = dt_stop_requested() ? DT_ASK_STOP : DT_ASK_NONE;
    if (!(dt_reducer_consult(job->reducer, ask) & DT_ASK_STOP)) return false;
    if (local->stop_at <= 0) local->stop_at = dt_clock_secs();
    return dt_clock_secs() - local->stop_at > job->config->test.round_secs;
}

/* One step of a group; what its workers ask for. */
static int group_step(struct dt_group *group, struct dt_worker *worker, uint64_t step, int ask)
{
    const struct dt_job *job = group->job;
    const int end = group->first + group->count, own_end = worker->first + worker->count;
    struct dt_step at = {.job = job, .reducer = group->reducer, .step = step};
    at.first = worker->first > group->first ? worker->first : group->first;
    at.end = own_end < end ? own_end : end;
    at.slot = group->first;
    at.weights = group->start ? group->start : dt_reducer_weights(group->reducer);
    group->rows = 0;
    for (int r = group->first; r < end; r++)
        group->rows += dt_plan_share(job->plan, step, r).count;
    group->round_rows += group->rows;
    dt_reducer_begin(group->reducer, step);
    dt__step_gradients(&at, worker);
    int asked = dt_reducer_end(group->reducer, worker->failed ? DT_ASK_ERROR : ask);
    group->start = NULL;
    return asked;
}

/* weight * (from - to) */
DT__CLONES
static void write_difference(size_t n, float weight, const float *restrict from,
                             const float *restrict to, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = weight * (from[i] - to[i]);
}

/* What the groups that this worker leads give to the exchange. */
static void write_differences(const struct dt_job *job, uint64_t end)
{
    double rows = (double)(dt__samples_at(job, end) - dt__samples_at(job, job->step));
    for (int i = 0; i < job->local->count; i++) {
        struct dt_group *group = &job->local->group[i];
        dt_reducer_settle(group->reducer);
        if (!group->leads) continue;
        write_difference(dt_model_params(job->model), (float)((double)group->round_rows / rows),
                         dt_reducer_weights(job->reducer), dt_reducer_weights(group->reducer),
                         dt_reducer_grad(job->reducer, group->index));
    }
}

static void begin_round(const struct dt_job *job)
{
    dt_reducer_begin(job->reducer, job->step);
    for (int b = 0; b < dt_model_buckets(job->model); b++)
        dt_reducer_need(job->reducer, b);
    for (int i = 0; i < job->local->count; i++) {
        job->local->group[i].start = dt_reducer_weights(job->reducer);
        job->local->group[i].round_rows = 0;
    }
}

int dt__local_round(struct dt_job *job, struct dt_worker *worker, struct dt_bank *bank,
                    uint64_t end)
{
    int asked = DT_ASK_NONE;
    begin_round(job);
    for (uint64_t step = job->step; step < end && !(asked & DT_ASK_VOID); step++) {
        int ask = gives_up(job) ? DT_ASK_GIVE_UP : DT_ASK_NONE;
        for (int i = 0; i < job->local->count && !(asked & DT_ASK_VOID); i++)
            asked |= group_step(&job->local->group[i], worker, step, ask);
        dt__slow_down(job);
    }
    write_differences(job, end);
    for (int b = dt_model_buckets(job->model) - 1; b >= 0; b--)
        dt_reducer_ready(job->reducer, b);
    dt_trace_phase(job->trace, DT_PHASE_EXCHANGE, end);
    if (dt_stop_requested()) asked |= DT_ASK_STOP;
    if (bank) asked |= dt__bank_asks(bank);
    asked = dt_reducer_end(job->reducer, asked);
    if (!(asked & DT_ASK_VOID)) job->step = end;
    return asked;
}
