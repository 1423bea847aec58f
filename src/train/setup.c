/* The start of a run, up to its first step. Every phase ends in an agreement, so that no rank
 * continues alone. */
#include "train/setup.h"
#include "train/certify.h"

#include <string.h>
#include <strings.h>

#include "report/history.h"
#include "train/advice.h"
#include "train/replicas.h"
#include "train/sets.h"
#include "train/split_layers.h"

static const char ARRAYS[] = "(arrays)"; /* value of data.train and data.eval for rows in memory */

/* ---- configuration -------------------------------------------------------------------------- */

/* Sends the configuration of rank 0 to all ranks, so other hosts need no file. status: rank 0's
 * status so far. Collective over all ranks. */
static dt_status send_config(const struct dt_world *world, struct dt_config *config,
                             dt_status status)
{
    void *values = NULL;
    size_t length = 0;
    if (world->is_bank && !status) status = dt__config_pack(config, &values, &length);
    DT_GUARD(dt__ranks_agree(world->all, status));
    DT_GUARD(dt__ranks_bcast_blob(world->all, &values, &length, 0));
    if (!world->is_bank) status = dt__config_unpack(config, values, length);
    status = dt__ranks_agree(world->all, status);
done:
    dt_free(values);
    return status;
}

/* Checks that every rank has passed the same options; otherwise collective calls and losses would
 * differ. Collective over all ranks. */
static dt_status options_agree(const struct dt_world *world,
                               const struct dt__train_options *options)
{
    static const char *const names[] = {"train", "eval", "loss"};
    const bool mine[] = {options->train, options->eval, options->loss};
    bool bank[sizeof mine];
    dt_status status = DT_OK;
    memcpy(bank, mine, sizeof bank);
    dt__ranks_bcast(world->all, bank, sizeof bank, 0);
    for (size_t i = 0; i < sizeof mine && !status; i++)
        if (mine[i] != bank[i])
            status = dt_fail(DT_EUSAGE,
                             "%s: given on rank %d but not on rank %d: expected the same on "
                             "every rank",
                             names[i], mine[i] ? world->rank : 0, mine[i] ? 0 : world->rank);
    return dt__ranks_agree(world->all, status);
}

/* Completes and checks the configuration on rank 0. For rows in memory the files are named
 * "(arrays)", so that every rank knows of them; a name left by an earlier training is removed. */
static dt_status resolve_config(const struct dt_world *world, struct dt_config *config,
                                const struct dt__train_options *options)
{
    if (options->train) DT_TRY(dt_config_set(config, "data.train=(arrays)"));
    if (options->eval)
        DT_TRY(dt_config_set(config, "data.eval=(arrays)"));
    else if (options->train && !strcmp(config->data.eval, ARRAYS))
        DT_TRY(dt_config_set(config, "data.eval="));
    if (options->loss) DT_TRY(dt_config_set(config, "data.normalize_target=no"));
    if (options->loss) DT_TRY(dt_config_set(config, "data.clamp_target=no"));
    if (options->loss && config->model.output_bias == DT_OUTPUT_BIAS_BASELINE)
        return dt_fail(DT_EUSAGE, "model.output_bias=baseline: the constant of least loss is not "
                                  "known of a program's own loss; expected zero or auto");
    if (options->loss) DT_TRY(dt_config_set(config, "model.output_bias=zero"));
    DT_TRY(dt__config_resolve(config, dt__data_trains_on_table(config)));
    DT_TRY(dt__config_check(config, world->size));
    return dt__model_resolve(config);
}

/* ---- machines ------------------------------------------------------------------------------- */

/* Prints the warning of the lowest rank that has one in `mine`; it is not an error. Collective over
 * all ranks. */
static void warn_together(const struct dt_job *job, dt_status mine)
{
    if (dt__ranks_agree(job->world->all, mine) && job->world->is_bank)
        dt__warn("%s", dt_error_text());
}

/* Chooses one BLAS kernel for all ranks, since each kernel computes different bits, and warns if a
 * host has fewer cores than computing threads. A bank without replicas and an evaluator are not
 * counted: the bank sleeps while workers compute, and the evaluator has low priority. Collective
 * over all ranks. */
static dt_status choose_machines(const struct dt_job *job)
{
    struct dt_world *world = job->world;
    const struct dt_config *config = job->config;
    const bool strict = config->run.reproducible;
    const char *here = world->host_name[world->rank];
    const int workers = world->workers_of[world->host_of[world->rank]], cores = world->cores;
    const long long threads = config->run.threads;
    bool native = true;
    char kernel[64] = ""; /* the bank's kernel */
    dt_status status = DT_OK;
    const bool bf16 = config->run.precision == DT_PRECISION_BF16;
    status = dt__bf16_select(bf16 ? config->run.kernel : NULL, &native);
    if (!status) status = dt__blas_select(config->run.kernel);
    DT_TRY(dt__ranks_agree(world->all, status));
    if (!native)
        status = dt_fail(DT_EMISMATCH,
                         "run.precision=bf16: no fast products in bf16: the CPU has none, or this "
                         "process has computed in f32 before; operands are rounded and multiplied "
                         "in f32 (%s), slower than run.precision=f32",
                         dt__blas_kernel());
    warn_together(job, status);
    if (world->is_bank) strncpy(kernel, dt__blas_kernel(), sizeof kernel - 1);
    dt__ranks_bcast(world->all, kernel, sizeof kernel, 0);
    status = DT_OK;
    if (strcasecmp(kernel, dt__blas_kernel()) != 0)
        status = dt_fail(DT_EMISMATCH,
                         "kernel %s here, %s on %s: %s (run.kernel=%s asks for one everywhere)",
                         dt__blas_kernel(), kernel, world->host_name[0],
                         strict ? "run.reproducible=yes cannot be kept"
                                : "bits depend on which ranks compute what",
                         kernel);
    if (strict) DT_TRY(dt__ranks_agree(world->all, status));
    if (!strict) warn_together(job, status);
    status = DT_OK;
    if (workers * threads > cores)
        status = dt_fail(DT_EUSAGE, "%s: %d worker%s of %lld thread%s on %d core%s will be slow",
                         here, workers, workers > 1 ? "s" : "", threads, threads > 1 ? "s" : "",
                         cores, cores > 1 ? "s" : "");
    warn_together(job, status);
    return DT_OK;
}

/* ---- what the bank knows -------------------------------------------------------------------- */

/* Opens the run directory on the bank, and sends the run's state to all ranks. The evaluator reads
 * and writes the directory as well, and must see the bank's lock there. Collective over all
 * ranks. */
static dt_status share_start(struct dt_job *job)
{
    struct dt_bank *bank = job->bank;
    const char *dir = job->config->run.dir;
    const struct dt_world *world = job->world;
    char holder[DT_LOCK_HOLDER] = ""; /* text of the lock, as the bank reads it */
    dt_status status = bank ? dt__bank_prepare(bank, job) : DT_OK;
    if (bank && !status) status = dt__choose_groups(job);
    if (!job->config->run.parts) job->config->run.parts = DT_SPLIT_PARTS;
    DT_TRY(dt__ranks_agree(world->all, status));
    if (bank) dt__lock_holder(dir, holder);
    dt__ranks_bcast(world->all, holder, sizeof holder, 0);
    dt__ranks_bcast(world->all, &job->step, sizeof job->step, 0);
    dt__ranks_bcast(world->all, &job->replicas, sizeof job->replicas, 0);
    dt__ranks_bcast(world->all, &job->groups, sizeof job->groups, 0);
    status = dt__assign_replicas(job);
    if (!status && world->role == DT_ROLE_EVALUATOR)
        status = dt__lock_seen(dir, holder, world->host_name[world->rank], world->host_name[0]);
    return dt__ranks_agree(world->all, status);
}

/* ---- data ----------------------------------------------------------------------------------- */

/* Makes a source from the rows in memory on each rank, and checks that they are the bank's rows.
 * Collective over all ranks. */
static dt_status share_arrays(const struct dt_job *job, const struct dt_arrays *arrays,
                              const struct dt_schema *known, struct dt_source **out)
{
    dt_status status;
    if (arrays)
        status = dt__source_from_arrays(job->config, arrays, known, out);
    else
        status = dt_fail(DT_EUSAGE,
                         "data.train or data.eval is %s, the rows in memory of a program: expected "
                         "that program, or files",
                         ARRAYS);
    DT_TRY(dt__ranks_agree(job->world->all, status));
    uint32_t mine[2] = {dt__source_crc(*out)}, bank[2];
    status = dt__source_content(*out, &mine[1]);
    memcpy(bank, mine, sizeof bank);
    dt__ranks_bcast(job->world->all, bank, sizeof bank, 0);
    if (!status && memcmp(mine, bank, sizeof bank))
        status = dt_fail(DT_EMISMATCH, "rows in memory differ from rank 0's");
    return dt__ranks_agree(job->world->all, status);
}

/* Returns whether a rank writes a copy of the file: the first rank on its host that lacks the file
 * does. With `each` every rank that lacks it does: other ranks could not open the first one's
 * copy. */
static bool rank_copies(const struct dt_world *world, const bool *lacks, bool each, int rank)
{
    bool first = true;
    for (int r = 0; r < rank; r++)
        first &= !lacks[r] || world->host_of[r] != world->host_of[rank];
    return lacks[rank] && (each || first);
}

/* Copies the file of typed rows, made from text on the bank's host, to ranks that lack it: once for
 * each other host. Collective over all ranks. */
static dt_status share_rows(const struct dt_world *world, struct dt_source *source)
{
    static const size_t most = 16 << 20;
    const size_t ranks = (size_t)world->size;
    bool *lacks;
    unsigned char *bytes = NULL;
    size_t chunk = 0; /* bytes in one message */
    dt_status status = dt__alloc(ranks, sizeof *lacks, "ranks", &lacks);
    DT_GUARD(dt__ranks_agree(world->all, status));
    for (bool each = false;; each = true) {
        const bool mine = !dt__source_is_here(source);
        struct dt_place place = dt__source_place(source);
        dt__ranks_gather(world->all, &mine, sizeof mine, lacks);
        dt__ranks_bcast(world->all, lacks, ranks * sizeof *lacks, 0);
        if (!memchr(lacks, 1, ranks)) break;
        const bool copies = rank_copies(world, lacks, each, world->rank);
        dt__ranks_bcast(world->all, &place, sizeof place, 0);
        const uint64_t all = place.bytes;
        if (!bytes) {
            chunk = all < most ? (size_t)all : most;
            status = dt__alloc(chunk, 1, "typed rows", &bytes);
            DT_GUARD(dt__ranks_agree(world->all, status));
        }
        for (uint64_t at = 0, length; at < all; at += length) {
            length = all - at < chunk ? all - at : chunk;
            if (world->is_bank && !status)
                status = dt__source_copy_out(source, at, bytes, (size_t)length);
            dt__ranks_bcast(world->all, bytes, (size_t)length, 0);
            if (copies && !status) status = dt__source_copy_in(source, bytes, (size_t)length);
        }
        DT_GUARD(dt__ranks_agree(world->all, status));
        for (int r = 0; r < world->size; r++) {
            if (!rank_copies(world, lacks, each, r)) continue;
            place = dt__source_place(source);
            dt__ranks_bcast(world->all, &place, sizeof place, r);
            if (mine && !copies && world->host_of[r] == world->host_of[world->rank])
                dt__source_attach(source, &place);
        }
    }
done:
    dt_free(bytes);
    dt_free(lacks);
    return status;
}

/* Surveys the rows of files on the bank, and sends the survey to the other ranks. known: as
 * for dt__source_survey; only the bank's is used. Collective over all ranks. */
static dt_status share_files(const struct dt_world *world, const struct dt_config *config,
                             enum dt_part part, const struct dt_schema *known,
                             struct dt_source **out)
{
    const bool bank = world->is_bank;
    void *bytes = NULL;
    size_t length = 0;
    dt_status status = DT_OK;
    if (bank) status = dt__source_survey(config, part, known, out);
    if (!status && bank && *out) status = dt__source_pack(*out, &bytes, &length);
    DT_GUARD(dt__ranks_agree(world->all, status));
    DT_GUARD(dt__ranks_bcast_blob(world->all, &bytes, &length, 0));
    if (!bank && length) status = dt__source_unpack(bytes, length, out);
    DT_GUARD(dt__ranks_agree(world->all, status));
    if (*out) status = share_rows(world, *out);
done:
    dt_free(bytes);
    return status;
}

/* Shares the held-out rows. A held-out fraction was surveyed with the training rows; files are
 * surveyed here. Collective over all ranks. */
static dt_status share_held_out(const struct dt_world *world, const struct dt_config *config,
                                const struct dt_source *rows, struct dt_source **out)
{
    if (dt__config_holds_out(config))
        return dt__ranks_agree(world->all, dt__source_side(rows, DT__HELD_OUT, out));
    return share_files(world, config, DT_PART_EVAL, dt__source_schema(rows), out);
}

dt_status dt__data_share(struct dt_world *world, const struct dt_config *config,
                         const struct dt_schema *known, struct dt_source **out_rows,
                         struct dt_source **out_held_out)
{
    DT_TRY(share_files(world, config, DT_PART_TRAIN, known, out_rows));
    return share_held_out(world, config, *out_rows, out_held_out);
}

static dt_status share_data(struct dt_job *job, const struct dt__train_options *options)
{
    const struct dt_bank *bank = job->bank;
    const struct dt_config *config = job->config;
    const struct dt_schema *known = bank && bank->start.resumed ? &bank->start.loaded.schema : NULL;
    const bool arrays = !strcmp(config->data.train, ARRAYS);
    dt__world_heartbeat(job->world, "survey", job->step);
    if (options->rows) {
        job->train = options->rows;
        job->eval = options->held_out;
        return DT_OK;
    }
    DT_TRY(arrays ? share_arrays(job, options->train, NULL, &job->train)
                  : share_files(job->world, config, DT_PART_TRAIN, known, &job->train));
    if (!*config->data.eval && options->test) return DT_OK; /* unused rows */
    if (strcmp(config->data.eval, ARRAYS) != 0)
        return share_held_out(job->world, config, job->train, &job->eval);
    return share_arrays(job, options->eval, dt__source_schema(job->train), &job->eval);
}

/* Shares the sources of the named sets. A set has the test rows, which were split off from the
 * training rows, or the rows of files, or a sample of the training rows. A trial of a search, which
 * passes `rows`, leaves the test rows to the search. Collective over all ranks. */
static dt_status share_sets(struct dt_job *job, const struct dt_source *rows)
{
    struct dt__named_sets named;
    struct dt_config borrowed = *job->config;
    if (rows) borrowed.data.test_fraction = 0;
    DT_TRY(dt__sets_parse(&borrowed, &named));
    dt_status status = dt__ranks_agree(job->world->all, dt__sets_create(job, &named));
    for (size_t i = 0; i < named.count && !status; i++) {
        const struct dt__named_set *set = &named.items[i];
        const struct dt_config config = dt__set_config(job->config, set);
        struct dt_source **source = &job->sets.at[i + 1].source;
        if (set->split)
            status =
                dt__ranks_agree(job->world->all, dt__source_side(job->train, DT__TEST, source));
        else if (set->sample)
            status = dt__ranks_agree(job->world->all,
                                     dt__source_sample(job->train, (uint64_t)job->config->run.seed,
                                                       set->sample, source));
        else
            status = share_files(job->world, &config, DT_PART_ALSO, dt__source_schema(job->train),
                                 source);
        if (status) status = dt_fail_prefix(status, "eval.also, set '%s': ", set->name);
    }
    dt__sets_free(&named);
    return status;
}

/* Sets the keys of the preset that depend on the size of the data; a resume has most of them from
 * its run. Each rank computes the same result. */
static dt_status resolve_by_data(struct dt_job *job)
{
    const struct dt_bank *bank = job->bank;
    struct dt_config *config = job->config;
    const struct dt_schema *schema = dt__source_schema(job->train);
    const bool network = dt__config_is_given(config, "model.layers");
    char *text = NULL;
    if (config->run.preset != DT_PRESET_TABLE) return DT_OK;
    const struct dt_table_size size =
        dt__schema_size(schema, dt__source_rows(job->train), job->eval != NULL);
    DT_TRY(dt__config_resolve_by_data(config, &size));
    if (config->data.encode == DT_ENCODE_NONE) {
        dt__source_forget_quantiles(job->train);
        dt__source_forget_quantiles(job->eval);
        for (int i = 1; i < job->sets.count; i++)
            dt__source_forget_quantiles(job->sets.at[i].source);
    }
    if (!network) {
        *config->model.layers = '\0'; /* so that the next line sets the usual widths */
        DT_TRY(dt__model_resolve(config));
    }
    if (bank && bank->start.resumed) DT_TRY(dt__config_match(&bank->start.before, config));
    DT_TRY(dt__config_preset_text(config, &text));
    if (*text && job->world->is_bank) dt__info("run.preset=table sets %s", text);
    dt_free(text);
    return DT_OK;
}

/* ---- what every rank makes for itself ------------------------------------------------------- */

/* Adds the encoding of numbers to a model's description, if there are numbers to encode. */
static dt_status describe_encoding(const struct dt_job *job, struct dt_model_desc *inout)
{
    const struct dt_schema *schema = dt__source_schema(job->train);
    const struct dt_quantiles quantiles = dt__schema_quantiles(schema);
    const struct dt_bank *bank = job->bank;
    if (job->config->data.encode == DT_ENCODE_NONE) return DT_OK;
    if (schema->encoded)
        inout->dense = schema->dense;
    else if (bank && !bank->start.resumed)
        dt__warn(
            "data.encode: the data has no columns of numbers with more than two values: nothing is "
            "encoded");
    return dt__encoding_make(job->config, &quantiles, schema->encoded_feature, inout);
}

/* Creates the model for the data's shape, the order of samples, and the rules of updates. */
static dt_status create_model(struct dt_job *job, const struct dt_own_loss *loss)
{
    const struct dt_config *config = job->config;
    const struct dt_schema *schema = dt__source_schema(job->train);
    struct dt_model_desc desc = {
        .layers = config->model.layers,
        .shape = {1, 1, schema->features},
        .nout = dt__schema_nout(schema),
        .task = schema->task,
        .loss = config->train.loss,
        .huber_delta = config->train.huber_delta,
        .split = config->model.split,
        .parts = (int)config->run.parts,
        .quantiles = config->train.loss == DT_LOSS_QUANTILE ? config->train.quantiles : NULL};
    struct dt_metric_score metric;
    struct dt_certainty certainty;
    int each;
    DT_TRY(dt__model_desc_each(&desc, &each));
    desc.nout *= each;
    if (schema->shape[0]) memcpy(desc.shape, schema->shape, sizeof desc.shape);
    if (config->model.embedding && schema->dense < schema->features) {
        desc.dense = schema->dense;
        desc.categories = dt__schema_categories(schema);
    }
    if (job->world->is_bank) dt__advise_labels(job);
    dt__blas_set_threads((int)config->run.threads);
    DT_TRY(describe_encoding(job, &desc));
    const dt_status status = dt__model_create(&desc, &job->model);
    dt_free(desc.encode_table);
    DT_TRY(status);
    if (loss) DT_TRY(dt__model_set_loss(job->model, loss));
    DT_TRY(dt__model_set_units(job->model, schema->target_mean, schema->target_std));
    DT_TRY(dt__model_set_range(job->model, schema->target_least, schema->target_greatest));
    DT_TRY(dt__certainty_begin(config, schema, &certainty));
    dt__model_set_certainty(job->model, &certainty);
    /* Check that the model has the metric before anything is written. */
    DT_TRY(dt__metric_pick(job->model, config->eval.metric, NULL, &metric));
    DT_TRY(dt__plan_create(job->train, (uint64_t)config->run.seed, job->replicas,
                           config->train.batch, &job->plan));
    job->evaluating = (struct dt_workers){0, job->world->workers};
    DT_TRY(dt__split_check(job));
    job->last_step = dt__last_step(job);
    DT_TRY(dt__rules_init(job));
    return dt__check_memory(job);
}

/* ---- together ------------------------------------------------------------------------------- */

/* Finds whether the run was recorded as complete or stopped early. */
static dt_status find_done(struct dt_bank *bank, bool *out_done)
{
    const struct dt_job *job = bank->job;
    /* A run that stopped early may have left its last round's exchange pending. */
    const bool at_last = job->step == job->last_step && !bank->start.loaded.group_difference;
    const bool at_end = at_last || dt__stops_early(job, &bank->start.loaded.best);
    uint32_t content;
    *out_done =
        bank->start.resumed && (job->step > job->last_step ||
                                (at_end && dt__history_has_ended(job->config->run.dir, job->step)));
    if (!*out_done) return DT_OK;
    DT_TRY(dt__source_content(job->train, &content));
    DT_TRY(dt__resume_check_data(bank, content));
    dt__info("%s: the run %s at step %llu%s", job->config->run.dir,
             job->step < job->last_step ? "has stopped early" : "is complete",
             (unsigned long long)job->step,
             job->step < job->last_step ? "; eval.patience=0 continues it" : "");
    return dt__exports_catch_up(bank);
}

/* Opens the stepper on bank and workers, with the weights in it. The evaluator only receives the
 * status and the best models. Collective over all ranks. */
static dt_status open_training(struct dt_run *run)
{
    struct dt_job *job = &run->job;
    dt_status status = DT_OK;
    if (job->world->role != DT_ROLE_EVALUATOR) status = dt__steps_open(job, dt__bank_open);
    DT_TRY(dt__ranks_agree(job->world->all, status));
    dt__ranks_bcast(job->world->all, &job->best, sizeof job->best, 0);
    dt__ranks_bcast(job->world->all, &job->incumbent, sizeof job->incumbent, 0);
    dt__rate_drop(job, job->best.drops);
    return DT_OK;
}

dt_status dt__run_open(struct dt_run *run, struct dt_world *world, struct dt_config *config,
                       const struct dt__train_options *options, bool *out_done)
{
    struct dt_job *job = &run->job;
    *run = (struct dt_run){.job = {.config = config, .world = world}};
    if (options) run->options = *options;
    *out_done = false;
    dt_status status = world->is_bank ? resolve_config(world, config, &run->options) : DT_OK;
    dt__world_heartbeat(world, "start-up", 0); /* time before the run does not count as a stall */
    DT_TRY(send_config(world, config, status));
    DT_TRY(options_agree(world, &run->options));
    const char *dir = config->run.dir;
    run->dirs = (struct dt_dirs){.ckpt_dir = dt__path("%s/ckpt", dir),
                                 .latest_dir = dt__path("%s/export/latest", dir),
                                 .best_dir = dt__path("%s/export/best", dir),
                                 .records = dt__path("%s/metrics.jsonl", dir)};
    job->dirs = &run->dirs;
    dt__world_set_roles(world, config->eval.dedicated);
    dt__world_watch(world, config->run.stall_secs);
    job->bank = world->is_bank ? &run->bank : NULL;
    job->worker = world->is_worker ? &run->worker : NULL;
    run->bank.options = &run->options;
    const bool sync = config->train.mode == DT_MODE_SYNC || config->train.staleness == 0;
    job->mode = sync ? DT_MODE_SYNC : DT_MODE_ASYNC;
    DT_TRY(choose_machines(job));
    DT_TRY(share_start(job));
    DT_TRY(send_config(world, config, DT_OK)); /* now with keys from the resumed run */
    config->run.replicas = job->replicas;
    if (dt__is_grouped(job)) config->train.groups = job->groups;
    DT_TRY(share_data(job, &run->options));
    if (!run->options.test) DT_TRY(share_sets(job, run->options.rows));
    DT_TRY(dt__ranks_agree(world->all, resolve_by_data(job)));
    /* Every rank creates model and plan; then workers and evaluator open what only they use. */
    DT_TRY(dt__ranks_agree(world->all, create_model(job, run->options.loss)));
    dt__world_heartbeat(world, "load", job->step);
    if (job->worker) status = dt__worker_open(job, job->worker);
    if (world->role == DT_ROLE_EVALUATOR) status = dt__evaluator_open(job, &run->evaluator);
    DT_TRY(dt__ranks_agree(world->all, status));
    if (job->bank) dt__advise_start(job);
    if (job->bank) dt__best_forget_if_other(job->bank);
    if (job->bank) status = dt__incumbent_find(job->bank, &run->options);
    DT_TRY(dt__ranks_agree(world->all, status));
    if (job->bank) status = find_done(job->bank, out_done);
    DT_TRY(dt__ranks_agree(world->all, status));
    dt__ranks_bcast(world->all, out_done, sizeof *out_done, 0);
    return *out_done ? DT_OK : open_training(run);
}

void dt__run_close(struct dt_run *run)
{
    struct dt_job *job = &run->job;
    if (job->bank) dt__bank_close(job->bank);
    dt__evaluator_close(run->evaluator);
    if (job->worker) dt__worker_close(job->worker);
    if (job->steps) job->steps->stepper->close(job);
    dt__model_destroy(job->model);
    dt__plan_destroy(job->plan);
    dt__sets_destroy(job);
    if (!run->options.rows) dt__source_destroy(job->eval);
    if (!run->options.rows) dt__source_destroy(job->train);
    dt__trace_destroy(job->trace);
    dt__arena_free(&job->arena);
    if (job->bank) dt__link_close(job->bank);
}
