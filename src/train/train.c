/* A run from its start to its end: it is opened, every rank takes the part of its role, it is closed. */
#include "dtrain/dtrain.h"

#include "train/setup.h"

/* Bank and workers train; the evaluator works beside them, and ends when they do, with their status. */
static dt_status take_part(struct dt_run *run)
{
    const struct dt_trainer trainer = {&run->job, run->worker, run->bank};
    if (run->evaluator) return dt__evaluator_run(run->evaluator);
    bool sync = run->job.mode == DT_MODE_SYNC;
    dt_status status = sync ? dt__sync_train(&trainer) : dt__async_train(&trainer);
    if (run->bank) dt__link_dismiss(run->bank, status);
    return status;
}

/* Ranks are named like "rank 0 bank node7". */
static dt_status trace_write(const struct dt_job *job, const void *all)
{
    int ranks = job->world->size, evaluator = job->world->evaluator;
    char *path = NULL, **names = NULL;
    dt_status status = dt_format(&path, "%s/trace.json", job->config->run.dir);
    if (!status) status = dt_alloc((size_t)ranks, sizeof(char *), "a trace", &names);
    for (int r = 0; r < ranks && !status; r++)
        status = dt_format(&names[r], "rank %d %s %s", r,
                           r == evaluator        ? "evaluator"
                           : r == 0 && ranks > 1 ? "bank"
                                                 : "worker",
                           job->world->host_name[r]);
    if (!status) status = dt_trace_write(path, all, (const char *const *)names, ranks);
    for (int r = 0; names && r < ranks; r++)
        dt_free(names[r]);
    dt_free(names);
    dt_free(path);
    return status;
}

/* The traces of all ranks into one file; one that cannot be written costs the picture alone. Collective
 * over all ranks. */
static dt_status trace_share(const struct dt_job *job)
{
    bool bank = job->world->is_bank;
    void *all = NULL;
    size_t length;
    const void *mine = dt_trace_bytes(job->trace, &length);
    dt_status status = DT_OK;
    if (bank)
        status = dt_alloc((size_t)job->world->size, length, "the ranks' traces", &all);
    DT_TRY(dt_ranks_agree(job->world->all, status));
    dt_ranks_gather(job->world->all, mine, length, all);
    if (bank && trace_write(job, all)) dt_warn("%s", dt_error_text());
    dt_free(all);
    return DT_OK;
}

/* take_part, and where the time went if the run came to a good end, on which all ranks agree. */
static dt_status take_part_traced(struct dt_run *run)
{
    struct dt_job *job = &run->job;
    if (!job->config->report.trace) return take_part(run);
    /* Ranks come from an agreement: their times begin together. */
    DT_TRY(dt_ranks_agree(job->world->all, dt_trace_create(&job->trace)));
    dt_status status = take_part(run);
    if (status && status != DT_STOPPED) return status;
    dt_status shared = trace_share(job);
    return shared ? shared : status;
}

const char *dt_version(void)
{
    return DT_VERSION;
}

dt_status dt_train(struct dt_world *world, struct dt_config *config,
                   const struct dt_train_options *options)
{
    struct dt_run run;
    bool done;
    dt_status status = dt__run_open(&run, world, config, options, &done);
    if (status == DT_STOPPED && world->is_bank)
        dt_info("stopped on request before the first step");
    if (!status && !done) {
        /* The bank says what the run is, and saves what its directory does not hold yet: step 0 of a
         * new run, or a checkpoint that was made elsewhere. */
        if (run.bank) {
            status = dt__record_start(run.bank);
            if (!status) status = dt__save(run.bank, true);
        }
        status = dt_ranks_agree(world->all, status);
        if (!status) status = take_part_traced(&run);
    }
    dt__run_close(&run);
    return status;
}

dt_status dt_train_arrays(struct dt_world *world, const char *settings,
                          const struct dt_arrays *train, const struct dt_arrays *eval)
{
    const struct dt_train_options options = {.train = train, .eval = eval};
    struct dt_config config;
    dt_status status = dt_config_init(&config);
    if (!status) status = dt_config_read_text(&config, "settings", settings);
    status = dt_ranks_agree(world->all, status);
    if (!status) status = dt_train(world, &config, &options);
    dt_config_free(&config);
    return status;
}
