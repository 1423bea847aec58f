/* A run from start to end: open, take part by role, close.
 *
 * The files of the module, in the order in which a run reaches them:
 *
 *   job.h, job.c      what every rank knows of the run, and what follows from it: how many steps,
 *                     when what is due; rounds.c: rounds of local steps
 *   setup.c           all that precedes the first step: configuration, machines, data, model
 *   rundir.c          the bank's files: lock, saves, exports
 *   init.c, resume.c  the initial weights
 *   step.c            the loop over spans and the table of steppers: sync_step.c (plain),
 *                     local.c (rounds of local steps), async_train.c
 *   split_layers.c    steps of a model with split layers, and this worker's parts of them
 *   worker.c          a replica's gradient; update.c: its effect on the weights
 *   sync_point.c      between spans: losses, evaluation (evaluate.c), a save, whether the run
 *                     continues
 *   evaluator.c       the dedicated evaluator, and the bank's link to it
 *   sets.c            other sets of rows to measure; incumbent.c: the old model, which run.init
 *                     names, measured on the held-out rows
 *   records.c         records and what is printed; advice.c: warnings, with a suggested fix
 *   lr_test.c         the learning-rate range test, a separate short run */
#include "train/train.h"

#include "base/internal.h"
#include "train/setup.h"

/* Creates the trace of this rank, named like "rank 0 bank node7". All ranks have just agreed to
 * start the run, so their traces start together. Collective over all ranks. */
static dt_status create_trace(struct dt_run *run)
{
    const struct dt_world *world = run->job.world;
    const char *role = run->evaluator ? "evaluator" : run->job.worker ? "worker" : "bank";
    char name[DT_TRACE_NAME];
    snprintf(name, sizeof name, "rank %d %s %s", world->rank, role, world->host_name[world->rank]);
    return dt__ranks_agree(world->all, dt__trace_create(name, &run->job.trace));
}

/* Writes the traces of all ranks into one file; a failed write is a warning. Collective over all
 * ranks. */
static dt_status write_traces(struct dt_job *job)
{
    const struct dt_world *world = job->world;
    const struct dt__path path = dt__path("%s/trace.json", job->config->run.dir);
    size_t length;
    const void *mine = dt__trace_bytes(job->trace, &length);
    void *all = NULL;
    dt_status status = DT_OK;
    if (world->is_bank)
        status =
            dt__arena_alloc(&job->arena, (size_t)world->size, length, "the ranks' traces", &all);
    DT_TRY(dt__ranks_agree(world->all, status));
    dt__ranks_gather(world->all, mine, length, all);
    if (all && dt__trace_write(path.text, all, world->size)) dt__warn("%s", dt_error_text());
    return DT_OK;
}

/* Runs the role of this rank. Bank and workers train; the evaluator works at the same time, ends
 * when they do, and returns their status. If the run ended well, which all ranks know, writes the
 * traces. */
static dt_status take_part(struct dt_run *run)
{
    struct dt_job *job = &run->job;
    if (job->config->report.trace) DT_TRY(create_trace(run));
    const dt_status status =
        run->evaluator ? dt__evaluator_run(run->evaluator) : dt__steps_run(job);
    if (job->bank) dt__link_dismiss(job->bank, status);
    const bool good = !status || status == DT_STOPPED;
    const dt_status traced = good && job->trace ? write_traces(job) : DT_OK;
    return traced ? traced : status;
}

const char *dt_version(void)
{
    return DT_VERSION;
}

dt_status dt__train(struct dt_world *world, struct dt_config *config,
                    const struct dt__train_options *options)
{
    struct dt_run run;
    bool done;
    fenv_t before;
    dt__floats_begin(&before);
    dt_status status = dt__run_open(&run, world, config, options, &done);
    if (status == DT_STOPPED && world->is_bank)
        dt__info("stopped on request before the first step");
    if (!status && !done) {
        /* The bank prints the facts of the run, and saves what its directory does not hold yet:
         * step 0 of a new run, or the checkpoint of another directory. */
        if (run.job.bank) {
            const bool saves = run.job.step > 0 || !run.options.no_first_save;
            status = dt__record_start(run.job.bank);
            if (!status && saves) status = dt__save(run.job.bank, true);
        }
        status = dt__ranks_agree(world->all, status);
        if (!status) status = take_part(&run);
    }
    dt__run_close(&run);
    dt__floats_end(&before);
    return status;
}

/* The options of a program, copied with the structs that they point to. */
struct given {
    struct dt__train_options options;
    struct dt_arrays train, eval;
    struct dt_own_loss loss;
};

static dt_status arrays_read(struct dt_arrays *to, const struct dt_arrays *from,
                             const struct dt_arrays **out)
{
    if (!from) return DT_OK;
    *out = to;
    return dt__options_read(to, sizeof *to, from, "dt_arrays");
}

static dt_status options_read(struct given *to, const struct dt_train_options *options)
{
    struct dt_train_options from = {0};
    *to = (struct given){0};
    if (options) DT_TRY(dt__options_read(&from, sizeof from, options, "dt_train_options"));
    DT_TRY(arrays_read(&to->train, from.train, &to->options.train));
    DT_TRY(arrays_read(&to->eval, from.eval, &to->options.eval));
    to->loss = (struct dt_own_loss){from.loss, from.loss_arg};
    if (from.loss) to->options.loss = &to->loss;
    to->options.record = from.record;
    to->options.stop = from.stop;
    to->options.arg = from.arg;
    return DT_OK;
}

dt_status dt_train(struct dt_world *world, struct dt_config *config,
                   const struct dt_train_options *options)
{
    struct given given;
    dt_status status = dt__ranks_agree(world->all, options_read(&given, options));
    if (!status) status = dt__train(world, config, &given.options);
    dt__world_rest(world, status == DT_STOPPED);
    /* the error text may be that of an earlier error, from which the run recovered */
    return status == DT_STOPPED ? dt_fail(status, "stopped on request") : status;
}

dt_status dt_train_arrays(struct dt_world *world, const char *settings,
                          const struct dt_arrays *train, const struct dt_arrays *eval)
{
    const struct dt_train_options options = {.size = sizeof options, .train = train, .eval = eval};
    struct dt_config config;
    dt_status status = dt__config_init(&config);
    if (!status) status = dt_config_read_text(&config, "settings", settings ? settings : "");
    status = dt__ranks_agree(world->all, status);
    if (!status) status = dt_train(world, &config, &options);
    dt__config_free(&config);
    return status;
}
