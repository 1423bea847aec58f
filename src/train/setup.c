/* Everything up to the first step. Every phase ends in an agreement, so that no rank goes on alone. */
#include <math.h>
#include <string.h>

#include "train/run.h"

uint64_t dt__epoch_steps(const struct dt__run *run)
{
    uint64_t steps = dt_plan_steps_per_epoch(run->plan);
    return run->mode == DT_SYNC ? steps : steps * (uint64_t)run->replicas;
}

uint64_t dt__samples_at(const struct dt__run *run, uint64_t step)
{
    uint64_t steps = dt_plan_steps_per_epoch(run->plan), samples = dt_plan_samples(run->plan);
    if (run->mode == DT_ASYNC) step /= (uint64_t)run->replicas;
    uint64_t in_epoch = step % steps * dt_plan_batch(run->plan);
    return step / steps * samples + (in_epoch < samples ? in_epoch : samples);
}

/* ---- config --------------------------------------------------------------------------------- */

static dt_status read_shared_config(struct dt_config *config, const char *text)
{
    dt_config_free(config);
    DT_TRY(dt_config_init(config));
    return dt_config_read_text(config, "config", text);
}

/* Rank 0's config to all: other hosts need no file. */
static dt_status share_config(struct dt_world *world, struct dt_config *config)
{
    bool bank = dt_world_is_bank(world);
    char *text = NULL;
    size_t length = 0;
    dt_status status = bank ? dt_config_check(config, dt_world_size(world)) : DT_OK;
    if (bank && !status) status = dt_config_print(config, &text);
    DT_GUARD(dt_world_agree(world, status));
    if (bank) length = strlen(text) + 1;
    DT_GUARD(dt_world_bcast_blob(world, &text, &length, 0));
    status = dt_world_agree(world, bank ? DT_OK : read_shared_config(config, text));
done:
    dt_free(text);
    return status;
}

/* ---- what the bank knows -------------------------------------------------------------------- */

struct start {
    uint64_t step;
    int replicas;
    char holder[DT_LOCK_HOLDER]; /* of the lock on the run directory, as the bank reads it */
};

/* The evaluator reads and writes in the run directory. */
static dt_status check_sight(const struct dt__run *run, const struct start *start)
{
    char holder[DT_LOCK_HOLDER];
    const char *dir = run->config->run.dir;
    if (dt_world_role(run->world) != DT_EVALUATOR) return DT_OK;
    if (*start->holder && strcmp(dt_lock_holder(dir, holder), start->holder) == 0) return DT_OK;
    return dt_fail(DT_EIO,
                   "run.dir=%s: the evaluator does not see the bank's directory here; put it "
                   "on a file system that %s shares with %s",
                   dir, dt_world_host(run->world, dt_world_rank(run->world)),
                   dt_world_host(run->world, 0));
}

static dt_status share_start(struct dt__run *run)
{
    dt_status status = DT_OK;
    if (dt_world_is_bank(run->world)) status = dt__keeper_prepare(run);
    DT_TRY(dt_world_agree(run->world, status));
    if (!run->replicas) run->replicas = (int)run->config->run.replicas;
    if (!run->replicas) run->replicas = dt_world_workers(run->world);
    struct start start = {.step = run->step, .replicas = run->replicas};
    if (dt_world_is_bank(run->world)) dt_lock_holder(run->config->run.dir, start.holder);
    DT_TRY(dt_world_bcast(run->world, &start, sizeof start, 0));
    run->step = start.step;
    run->replicas = start.replicas;
    return dt_world_agree(run->world, check_sight(run, &start));
}

/* A held-out fraction was surveyed with the rest of the training data. */
static dt_status survey(const struct dt__run *run, enum dt_part part, const struct dt_schema *known,
                        struct dt_source **out)
{
    if (part == DT_PART_EVAL && run->config->data.eval_fraction > 0)
        return dt_source_held_out(run->train, out);
    return dt_source_survey(run->config, part, known, out);
}

/* The bank surveys, the others get the survey. `known` is the bank's. */
static dt_status share_source(struct dt__run *run, enum dt_part part, const struct dt_schema *known,
                              struct dt_source **out)
{
    bool bank = dt_world_is_bank(run->world);
    void *bytes = NULL;
    size_t length = 0;
    dt_status status = DT_OK;
    if (bank) status = survey(run, part, known, out);
    if (!status && bank && *out) status = dt_source_pack(*out, &bytes, &length);
    DT_GUARD(dt_world_agree(run->world, status));
    DT_GUARD(dt_world_bcast_blob(run->world, &bytes, &length, 0));
    status =
        dt_world_agree(run->world, bank || !length ? DT_OK : dt_source_unpack(bytes, length, out));
done:
    dt_free(bytes);
    return status;
}

static dt_status share_data(struct dt__run *run)
{
    dt_world_beat(run->world, "survey", run->step);
    const struct dt_schema *known = run->keeper.resumed ? &run->keeper.loaded.schema : NULL;
    DT_TRY(share_source(run, DT_PART_TRAIN, known, &run->train));
    return share_source(run, DT_PART_EVAL, dt_source_schema(run->train), &run->eval);
}

/* ---- what every rank makes for itself ------------------------------------------------------- */

static dt_status create_model(struct dt__run *run)
{
    const struct dt_schema *schema = dt_source_schema(run->train);
    struct dt_model_spec spec;
    DT_TRY(dt_model_spec_init(&spec, run->config));
    spec.nin = schema->features;
    spec.nout = dt_schema_nout(schema);
    dt_blas_set_threads((int)run->config->run.threads);
    return dt_model_create(&spec, &run->model);
}

static uint64_t last_step(const struct dt__run *run)
{
    double steps = (double)dt__epoch_steps(run);
    uint64_t last = (uint64_t)ceil(run->config->train.epochs * steps - 1e-6);
    int64_t most = run->config->train.max_steps;
    return most >= 0 && (uint64_t)most < last ? (uint64_t)most : last;
}

static dt_status create_plan(struct dt__run *run)
{
    DT_TRY(dt_plan_create(run->train, (uint64_t)run->config->run.seed, run->replicas,
                          run->config->train.batch, &run->plan));
    run->last_step = last_step(run);
    dt_optimizer_init(&run->optimizer, run->config);
    dt_schedule_init(&run->schedule, run->config, run->last_step);
    return dt_alloc((size_t)run->replicas, sizeof *run->loss, "loss sums", &run->loss);
}

static dt_status create_worker(struct dt__run *run)
{
    if (!dt_world_is_worker(run->world)) return DT_OK;
    dt_world_replicas(run->world, dt_world_worker_index(run->world), run->replicas, &run->first,
                      &run->count);
    uint64_t most = dt_plan_max_share(run->plan);
    int rows = (int)(most < DT__SLICE_ROWS ? most : DT__SLICE_ROWS);
    DT_TRY(dt_net_create(run->model, rows ? rows : 1, &run->net));
    if (!run->count) return DT_OK;
    return dt_loader_create(run->config, run->train, run->plan, run->first, run->count, rows,
                            run->mode == DT_SYNC ? run->step : run->step / (uint64_t)run->replicas,
                            &run->loader);
}

static dt_status create_exchange(struct dt__run *run)
{
    int layers = dt_model_layers(run->model);
    size_t ends[DT_MAX_LAYERS];
    for (int i = 0; i < layers; i++)
        ends[i] = dt_model_layer(run->model, i)->end;
    struct dt_exchange_spec spec = {.kind = run->config->train.exchange,
                                    .reproducible = run->config->run.reproducible,
                                    .params = dt_model_params(run->model),
                                    .buckets = layers,
                                    .bucket_end = ends,
                                    .replicas = run->replicas,
                                    .vectors = 1 + run->optimizer.nstate,
                                    .norm = run->config->train.clip_norm > 0,
                                    .update = dt__update,
                                    .arg = run};
    return dt_exchange_create(run->world, &spec, &run->exchange);
}

const char *dt__exchange_name(const struct dt__run *run, char word[16])
{
    if (run->mode == DT_ASYNC) return dt_async_memory_name(run->async.exchange);
    return dt_config_word(DT_EXCHANGE_WORDS, dt_exchange_kind(run->exchange), word);
}

const float *dt__weights_at_rest(struct dt__run *run)
{
    if (run->mode == DT_ASYNC) return dt_async_read(run->async.exchange);
    return dt_exchange_weights(run->exchange);
}

/* ---- all together --------------------------------------------------------------------------- */

/* What each rank does for itself, agreed upon at the end. */
static dt_status create_parts(struct dt__run *run)
{
    dt_status status = create_model(run);
    if (!status) status = create_plan(run);
    DT_TRY(dt_world_agree(run->world, status));
    dt_world_beat(run->world, "load", run->step);
    status = create_worker(run);
    if (!status) status = dt__eval_open(run);
    return dt_world_agree(run->world, status);
}

/* Weights and optimizer state, where the exchange has them. */
static dt_status open_bank(struct dt__run *run)
{
    if (run->mode == DT_SYNC) return dt__keeper_open(run, dt_exchange_vectors(run->exchange));
    float *vectors[1 + DT_MAX_STATE] = {dt_async_weights(run->async.exchange)};
    for (int i = 0; i < run->optimizer.nstate; i++)
        vectors[1 + i] = dt_async_states(run->async.exchange)[i];
    return dt__keeper_open(run, vectors);
}

/* The bank's weights and the run's first records; then the weights to all. */
static dt_status open_keeper(struct dt__run *run)
{
    bool bank = dt_world_is_bank(run->world);
    bool sync = run->mode == DT_SYNC;
    dt_status status = bank ? open_bank(run) : DT_OK;
    DT_TRY(dt_world_agree_crew(run->world, status));
    if (!sync) return DT_OK;
    if (bank)
        memcpy(run->loss, run->keeper.state.loss_sums, (size_t)run->replicas * sizeof *run->loss);
    DT_TRY(dt_world_crew_bcast(run->world, run->loss, (size_t)run->replicas * sizeof *run->loss));
    for (int r = 0; r < run->replicas; r++)
        if (r < run->first || r >= run->first + run->count) run->loss[r] = 0;
    return dt_exchange_start(run->exchange);
}

/* Bank and workers; agreed among them. */
static dt_status open_crew(struct dt__run *run)
{
    DT_TRY(run->mode == DT_SYNC ? create_exchange(run) : dt__async_open(run));
    return open_keeper(run);
}

/* What the evaluator has no part in, and what it has to know of it. */
static dt_status open_rest(struct dt__run *run)
{
    dt_status status = dt_world_role(run->world) == DT_EVALUATOR ? DT_OK : open_crew(run);
    int told = (int)status;
    DT_TRY(dt_world_bcast(run->world, &told, sizeof told, 0));
    struct dt_best *best = &run->keeper.state.best;
    return told ? (dt_status)told : dt_world_bcast(run->world, best, sizeof *best, 0);
}

/* A run that has reached its end already, or was stopped early, and has told so. */
static dt_status find_done(struct dt__run *run, bool *out_done)
{
    const struct dt__keeper *keeper = &run->keeper;
    bool stopped = dt__stops_early(run, &keeper->loaded.best);
    bool at_end = run->step == run->last_step || stopped;
    if (keeper->resumed)
        *out_done = run->step > run->last_step ||
                    (at_end && dt_report_has_ended(run->config->run.dir, run->step));
    if (*out_done)
        dt_info("%s: the run is complete at step %llu", run->config->run.dir,
                (unsigned long long)run->step);
    return dt_world_bcast(run->world, out_done, sizeof *out_done, 0);
}

dt_status dt__run_open(struct dt__run *run, struct dt_world *world, struct dt_config *config,
                       bool *out_done)
{
    *run = (struct dt__run){.config = config, .world = world, .keeper.lock = -1};
    *out_done = false;
    DT_TRY(share_config(world, config));
    DT_TRY(dt_world_set_roles(world, config->eval.dedicated));
    dt_world_watch(world, config->run.stall_secs);
    bool sync = config->train.mode == DT_SYNC || config->train.staleness == 0;
    run->mode = sync ? DT_SYNC : DT_ASYNC;
    DT_TRY(dt__machine_check(run));
    DT_TRY(share_start(run));
    config->run.replicas = run->replicas;
    DT_TRY(share_data(run));
    DT_TRY(create_parts(run));
    DT_TRY(find_done(run, out_done));
    if (*out_done) return DT_OK;
    return open_rest(run);
}

void dt__run_close(struct dt__run *run)
{
    if (dt_world_is_bank(run->world)) dt__keeper_close(run);
    dt__eval_close(run);
    dt_exchange_destroy(run->exchange);
    dt__async_close(run);
    dt_loader_destroy(run->loader);
    dt_net_destroy(run->net);
    dt_model_destroy(run->model);
    dt_plan_destroy(run->plan);
    dt_source_destroy(run->eval);
    dt_source_destroy(run->train);
    dt_free(run->loss);
}
