/* Functions of the job's facts: how many steps and samples a run has, how long it still takes, and
 * at which steps bank and workers synchronize. */
#include "train/job.h"

#include <math.h>

bool dt__trains_on_table(const struct dt_job *job)
{
    return dt__data_trains_on_table(job->config) || dt__source_schema(job->train)->feature_names;
}

uint64_t dt__epoch_steps(const struct dt_job *job)
{
    uint64_t steps = dt__plan_steps_per_epoch(job->plan);
    return job->mode == DT_MODE_SYNC ? steps : steps * (uint64_t)job->replicas;
}

uint64_t dt__last_step(const struct dt_job *job)
{
    double steps = (double)dt__epoch_steps(job);
    uint64_t last = (uint64_t)ceil(job->config->train.epochs * steps - 1e-6);
    int64_t most = job->config->train.max_steps;
    return most >= 0 && (uint64_t)most < last ? (uint64_t)most : last;
}

uint64_t dt__samples_at(const struct dt_job *job, uint64_t step)
{
    uint64_t steps = dt__plan_steps_per_epoch(job->plan), samples = dt__plan_samples(job->plan);
    if (job->mode == DT_MODE_ASYNC) step /= (uint64_t)job->replicas;
    uint64_t in_epoch = step % steps * dt__plan_batch(job->plan);
    return step / steps * samples + (in_epoch < samples ? in_epoch : samples);
}

double dt__secs_left(const struct dt_job *job, uint64_t samples, double samples_per_sec)
{
    uint64_t all = dt__samples_at(job, job->last_step);
    return samples_per_sec > 0 && all > samples ? (double)(all - samples) / samples_per_sec : 0;
}

/* ---- when ----------------------------------------------------------------------------------- */

static uint64_t next_multiple(uint64_t step, int64_t every)
{
    return every > 0 ? (step / (uint64_t)every + 1) * (uint64_t)every : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool dt__log_due(const struct dt_job *job)
{
    return job->step == job->last_step || dt__round_passed(job, job->config->run.log_steps);
}

bool dt__evaluates_in_place(const struct dt_job *job)
{
    return job->eval && !job->config->eval.dedicated;
}

/* Returns the steps between evaluations in place; 0: only the last step is evaluated, or none. */
static int64_t eval_interval(const struct dt_job *job)
{
    int64_t every = job->config->eval.steps;
    if (!dt__evaluates_in_place(job) || every < 0) return 0;
    return every ? every : (int64_t)dt__epoch_steps(job);
}

bool dt__eval_regular(const struct dt_job *job)
{
    return dt__round_passed(job, eval_interval(job));
}

bool dt__eval_due(const struct dt_job *job)
{
    bool seen = job->best.seen == 1 + job->step;
    return dt__evaluates_in_place(job) && !seen &&
           (job->step == job->last_step || dt__eval_regular(job));
}

uint64_t dt__span_end(const struct dt_job *job)
{
    const uint64_t warm = (uint64_t)job->config->train.warm_start_steps;
    /* Something may be due at a start: the end of the run, or an evaluation that a stop
     * prevented. */
    if (job->best.stop || dt__eval_due(job) || job->step == job->last_step) return job->step;
    const uint64_t evaluation = next_multiple(job->step, eval_interval(job));
    const uint64_t save = next_multiple(job->step, job->config->run.checkpoint_steps);
    uint64_t due = least(job->last_step, least(evaluation, save));
    if (job->mode == DT_MODE_ASYNC) /* records are written within the span */
        return job->step < warm ? least(due, warm) : due;
    due = least(due, next_multiple(job->step, job->config->run.log_steps));
    return dt__round_reach(job, due);
}

/* ---- this rank ------------------------------------------------------------------------------ */

const char *dt__exchange_name(const struct dt_job *job, char word[16])
{
    if (job->mode == DT_MODE_ASYNC) return dt__async_memory_name(job->steps->async);
    return dt__config_choice(DT_EXCHANGE_CHOICES, dt__exchange_which(job->steps->exchange), word);
}

double dt__weights_mb(const struct dt_job *job)
{
    return (double)job->model->params * sizeof(float) / 1e6;
}

void dt__slow_down(const struct dt_job *job)
{
    if (job->config->test.slow_rank == job->world->rank)
        dt__sleep_secs(job->config->test.slow_secs);
}

uint64_t dt__most_inputs(const struct dt_job *job, const struct dt_source *source, uint64_t rows)
{
    const uint64_t encoded = job->model->inputs - job->model->features;
    const uint64_t dense = (uint64_t)dt__source_schema(job->train)->dense + encoded;
    return dense + dt__source_most_entries(source, rows);
}

dt_status dt__list_row_ranges(struct dt_job *job, struct dt_steps *steps)
{
    const struct dt_schema *schema = dt__source_schema(job->train);
    const size_t count = job->model->row_sparse, inputs = job->model->inputs;
    const uint64_t most = dt__most_inputs(job, job->train, dt__plan_max_local_batch(job->plan));
    if (schema->dense == schema->features || !count || job->rules->whole) return DT_OK;
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "row-sparse tensors", DT__TABLE(steps->row_range, count)));
    for (size_t i = 0; i < count; i++) {
        const struct dt_tensor *tensor = dt__model_row_sparse_tensor(job->model, i);
        const bool wide = tensor->offset == job->rules->wide_begin;
        steps->row_range[i] = (struct dt_row_range){
            .offset = tensor->offset,
            .rows = tensor->shape[0],
            .width = tensor->count / tensor->shape[0],
            .touched_alone =
                job->config->train.lazy ||
                dt__optimizer_is_sparse(wide ? &job->rules->wide : &job->rules->optimizer),
            .first = inputs - tensor->shape[0],
            .most = (size_t)most};
    }
    steps->row_ranges = (int)count;
    return DT_OK;
}

dt_status dt__check_touched(const struct dt_job *job, const struct dt_touched *touched)
{
    const bool sync = job->mode == DT_MODE_SYNC;
    const bool wide =
        job->rules->wide_end < SIZE_MAX && !dt__optimizer_is_sparse(&job->rules->wide);
    const bool whole = wide || !dt__optimizer_is_sparse(&job->rules->optimizer);
    dt_status status = DT_OK;
    if (!touched && !sync && job->config->train.lazy && whole)
        status = dt_fail(DT_EUSAGE,
                         "train.lazy=yes: expected train.mode=sync, or all ranks on one host with "
                         "room in /dev/shm: elsewhere gradients are whole");
    else if (!touched && sync && job->world->is_bank)
        dt__info("sparse rows: with train.exchange=reduce each step sends the whole gradient and "
                 "updates all weights; other exchanges send only the rows that a batch touches");
    else if (!touched && job->world->is_bank)
        dt__info(
            "sparse rows: without shared memory train.mode=async sends whole gradients (%.3g MB), "
            "which update all weights; on one host it sends only the rows that a batch touches",
            dt__weights_mb(job));
    return dt__ranks_agree(job->world->trainers, status);
}
