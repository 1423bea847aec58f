/* The accounts of a run, its records and its progress line. Bank only. */
#include <math.h>
#include <string.h>

#include "report/history.h"
#include "train/advice.h"
#include "train/replicas.h"
#include "train/sets.h"

static double epoch_at(const struct dt_bank *bank, uint64_t samples)
{
    return (double)samples / (double)dt__plan_samples(bank->job->plan);
}

double dt__wall_secs(const struct dt_bank *bank)
{
    return dt__clock_secs() - bank->log.run_start;
}

void dt__log_begin(struct dt_bank *bank)
{
    bank->log.run_start = dt__clock_secs();
}

dt_status dt__log_open(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    struct dt_log *log = &bank->log;
    const char *dir = job->config->run.dir, *prometheus = job->config->report.prometheus;
    log->run_start -= bank->state.wall_secs;
    log->train_secs = bank->state.train_secs;
    log->rows_before = bank->state.loss_rows;
    log->last_loss = NAN;
    DT_TRY(dt__report_open(dir, &log->report));
    if (job->config->report.tensorboard) DT_TRY(dt__report_tensorboard(log->report, dir));
    if (*prometheus) DT_TRY(dt__report_prometheus(log->report, prometheus, dir));
    dt__report_listen(log->report, bank->options->record, bank->options->arg);
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "status", DT__TABLE(log->ranks, (size_t)job->world->size)));
    return dt__arena_alloc(&job->arena, (size_t)job->world->workers + 1,
                           DT__BUDGET_PARTS * sizeof(double), "times of the workers",
                           &log->budgets);
}

void dt__log_close(struct dt_bank *bank)
{
    if (bank->log.report) dt__report_close(bank->log.report);
    dt__json_free(&bank->log.change);
}

void dt__log_span(struct dt_bank *bank, uint64_t steps, double secs, double cpu_secs)
{
    bank->log.cpu_secs += cpu_secs;
    if (bank->job->mode == DT_MODE_ASYNC) return; /* gradients are counted one by one */
    bank->state.train_secs += secs;
    if (steps > 0) bank->log.step_secs = secs / (double)steps;
}

void dt__log_applied(struct dt_bank *bank, const struct dt_applied *applied)
{
    struct dt_checkpoint *state = &bank->state;
    struct dt_staleness *staleness = &bank->log.staleness;
    const struct dt_gradient_info *info = &applied->info;
    state->step++;
    if (info->ask & DT_ASK_ERROR) return;
    state->samples += info->rows;
    state->loss_rows += (double)info->rows;
    state->loss_sums[info->replica] += info->loss;
    state->draws[info->replica] = info->draw + 1;
    staleness->sum += (double)applied->staleness;
    staleness->count++;
    if (applied->staleness > staleness->max) staleness->max = applied->staleness;
}

void dt__log_counts(struct dt_bank *bank, const struct dt_async_counts *counts)
{
    bank->log.counts = counts;
}

/* ---- what a run is -------------------------------------------------------------------------- */

static const char *plural(int64_t n)
{
    return n > 1 ? "s" : "";
}

/* Warns about eval.* keys that have no effect, or a different one, with a dedicated evaluator. */
static void print_evaluator(const struct dt_config *config)
{
    if (!config->eval.dedicated) return;
    if (config->eval.steps > 0)
        dt__warn("eval.steps has no effect with eval.dedicated: checkpoints are measured "
                 "(run.checkpoint_steps, run.checkpoint_secs)");
    if (config->eval.patience > 0)
        dt__warn("eval.patience: the evaluator measures checkpoints (run.checkpoint_steps=%lld, "
                 "run.checkpoint_secs=%g), so timing decides the step of an early stop",
                 (long long)config->run.checkpoint_steps, config->run.checkpoint_secs);
}

/* Warns about changed keys that have no effect because another key has its default. */
static void print_unused(const struct dt_config *config)
{
    static const struct {
        const char *setting, *without; /* the key, and its default, with which ... */
        const char *keys[4];           /* ... changes of these keys have no effect */
    } UNUSED[] = {
        {"train.mode",
         "train.mode=sync",
         {"train.staleness", "train.staleness_lr", "train.owners", "train.warm_start_steps"}},
        {"train.local_steps",
         "train.local_steps=1",
         {"train.outer_lr", "train.outer_momentum", "train.local_after"}},
    };
    for (size_t i = 0; i < sizeof UNUSED / sizeof *UNUSED; i++)
        for (int k = 0; k < 4 && UNUSED[i].keys[k]; k++)
            if (!dt__config_is_changed(config, UNUSED[i].setting) &&
                dt__config_is_changed(config, UNUSED[i].keys[k]))
                dt__warn("%s has no effect with %s", UNUSED[i].keys[k], UNUSED[i].without);
}

void dt__record_change(struct dt_bank *bank, uint64_t step, const char *key, const char *text)
{
    if (bank->log.change.text.length == 0) {
        dt__json_start(&bank->log.change);
        dt__json_text(&bank->log.change, "kind", "change");
        dt__json_int(&bank->log.change, "step", (int64_t)step);
    }
    dt__json_text(&bank->log.change, key, text);
}

/* Prints the memory that the model takes, if it is large. */
static void print_memory(const struct dt_bank *bank)
{
    static const double LARGE = 256; /* MB */
    const struct dt_job *job = bank->job;
    const double mb = dt__weights_mb(job);
    const int states = job->rules->optimizer.nstate;
    if (mb * (1 + states) < LARGE) return;
    const bool several = job->mode == DT_MODE_SYNC && job->world->hosts > 1 &&
                         dt__exchange_slot(job->steps->exchange, 0).touched;
    dt__info(
        "the weights take %.4g MB, with the optimizer state %.4g MB at the bank%s; a checkpoint is "
        "as large; a replica's gradient takes up to %.4g MB, less for sparse rows%s",
        mb, mb * (1 + states), several ? " and a part of it at each other host" : "", mb,
        job->mode == DT_MODE_ASYNC ? "; async keeps one copy of the weights per worker" : "");
}

/* A worker with fewer rows does not fill a core (scripts/doc/tuning.md). */
enum { FEW_ROWS = 16 };

enum { MANY_CLASSES = 20 }; /* numeric labels with more values are more often amounts */

/* Prints the numbers of rows and classes, the baseline that a model must beat, and the named
 * sets. */
static void print_data(const struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    char classes[32] = "", baseline[DT__BASELINE_TEXT];
    dt__baseline_text(bank, baseline);
    if (job->model->classes) snprintf(classes, sizeof classes, ", %d classes", job->model->classes);
    dt__info("%llu rows to learn from, %llu held out%s%s",
             (unsigned long long)dt__source_rows(job->train),
             (unsigned long long)(job->eval ? dt__source_rows(job->eval) : 0), classes, baseline);
    dt__sets_print(job);
    if (!bank->start.resumed && job->model->classes > MANY_CLASSES &&
        dt__data_trains_on_table(job->config) && !dt__source_schema(job->train)->label_names &&
        !dt__config_is_given(job->config, "model.task"))
        dt__warn("the labels are numbers, and each of them is a class: if they are amounts, set "
                 "model.task=regress");
}

/* Suggests the preset for tables. Setting train.lr or train.optimizer turns the preset off, and
 * only CSV selects it by default. */
static void print_preset(const struct dt_bank *bank)
{
    const struct dt_config *config = bank->job->config;
    const bool rate = dt__config_is_given(config, "train.lr");
    const bool optimizer = dt__config_is_given(config, "train.optimizer");
    if (bank->start.resumed || config->run.preset != DT_PRESET_NONE ||
        !dt__trains_on_table(bank->job) || dt__config_is_given(config, "run.preset"))
        return;
    if (rate != optimizer && dt__data_trains_on_table(config))
        dt__info("%s is given, which turns off the preset for tables (normalisation, adamw, "
                 "epochs, ...): run.preset=table keeps the rest of it",
                 rate ? "train.lr" : "train.optimizer");
    else if (!rate && !optimizer)
        dt__info("the features have names, so the data may be a table: run.preset=table has "
                 "settings that suit most tables (normalisation, adamw, epochs, ...); only CSV "
                 "uses it by default");
}

/* Prints the rows of a step. If workers have different numbers of replicas, prints the fewest and
 * the most rows of a worker. */
static void print_batch(const struct dt_job *job)
{
    const int busy = job->world->workers - dt__idle_workers(job);
    const uint64_t batch = dt__plan_batch(job->plan);
    const int fewest = job->replicas / busy, most = (job->replicas - 1) / busy + 1;
    const double rows = (double)batch / job->replicas;
    char rows_each[32];
    snprintf(rows_each, sizeof rows_each, most > fewest ? "%.3g to %.3g" : "%.3g", rows * fewest,
             rows * most);
    dt__info("batch %llu (%s rows a worker), %llu steps%s an epoch", (unsigned long long)batch,
             rows_each, (unsigned long long)dt__epoch_steps(job),
             job->mode == DT_MODE_ASYNC ? " (gradients)" : "");
    if (busy > 1 && rows * fewest < FEW_ROWS)
        dt__warn("a worker has %s rows per step, too few for fast matrix products: a larger "
                 "train.batch, or fewer ranks, may be faster",
                 rows_each);
}

static void print_start(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    char word[16], mode[16], settings[DT_MPI_SETTINGS];
    uint64_t batch = dt__plan_batch(job->plan);
    const int ranks = job->world->size, hosts = job->world->hosts;
    const int workers = job->world->workers;
    dt__info("%s: %d rank%s on %d host%s (bank%s, %d worker%s%s), %d replica%s",
             job->config->run.dir, ranks, plural(ranks), hosts, plural(hosts),
             ranks > 1 ? "" : " and worker in one", workers, plural(workers),
             job->config->eval.dedicated ? ", evaluator" : "", job->replicas,
             plural(job->replicas));
    dt__info("%s%s, kernel=%s, %lld thread%s a rank, mode=%s, exchange=%s", dt__world_mpi_version(),
             dt__world_mpi_settings(settings), dt__blas_kernel(),
             (long long)job->config->run.threads, plural(job->config->run.threads),
             dt__config_choice(DT_MODE_CHOICES, job->mode, mode), dt__exchange_name(job, word));
    char *table = NULL;
    if (dt__model_table(bank->job->model, &table)) table = NULL;
    for (char *line = table, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = '\0';
        dt__info("%s", line);
    }
    dt_free(table);
    print_memory(bank);
    print_preset(bank);
    print_data(bank);
    print_batch(job);
    if (job->mode == DT_MODE_ASYNC && batch < (uint64_t)job->replicas)
        dt__warn("train.mode=async: a gradient has at least one row: with %llu rows a batch and "
                 "run.replicas=%d an epoch is up to %.3g epochs; expected train.batch=%d or more",
                 (unsigned long long)batch, job->replicas, (double)job->replicas / (double)batch,
                 job->replicas);
    dt__info("%s at step %llu of %llu", bank->start.resumed ? "resuming" : "starting",
             (unsigned long long)job->step, (unsigned long long)job->last_step);
    print_evaluator(job->config);
    print_unused(job->config);
    dt__groups_print(bank);
    int idle = dt__idle_workers(job);
    if (idle)
        dt__warn("%d of %d workers have no replica and idle: run.replicas=%d", idle, workers,
                 job->replicas);
}

dt_status dt__record_start(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_config *config = job->config;
    struct dt_report *report = bank->log.report;
    uint32_t crc;
    char word[16];
    const struct dt_text *change = &bank->log.change.text;
    print_start(bank);
    DT_TRY(dt__config_crc(job->config, &crc));
    char hex[9];
    snprintf(hex, sizeof hex, "%08x", crc);
    struct dt_json *record = dt__record_begin(report, "start");
    dt__json_int(record, "step", (int64_t)job->step);
    dt__json_text(record, "mode", dt__config_choice(DT_MODE_CHOICES, job->mode, word));
    dt__json_text(record, "exchange", dt__exchange_name(job, word));
    dt__json_int(record, "size", job->world->size);
    dt__json_int(record, "workers", job->world->workers);
    dt__json_int(record, "replicas", job->replicas);
    dt__groups_record(job, record);
    dt__json_int(record, "params", (int64_t)job->model->params);
    dt__json_int(record, "batch", (int64_t)dt__plan_batch(job->plan));
    dt__json_int(record, "hosts", job->world->hosts);
    if (job->eval) dt__json_text(record, "metric", dt__metric_name(job, config));
    if (job->best.era) dt__json_int(record, "best_era", job->best.era);
    dt__json_text(record, "config_crc32c", hex);
    dt__json_int(record, "time_unix", dt__clock_unix());
    dt__json_text(record, "kernel", dt__blas_kernel());
    dt__json_int(record, "threads", job->config->run.threads);
    dt__json_int(record, "samples_per_epoch", (int64_t)dt__plan_samples(job->plan));
    DT_TRY(dt__record_end(report));
    DT_TRY(dt__incumbent_record(bank));
    return change->length > 0 ? dt__record_line(report, change->data) : DT_OK;
}

/* ---- training ------------------------------------------------------------------------------- */

/* Returns what records, the progress line and the status file show. The loss is the mean over the
 * rows since the last train record; NaN: there were none. */
static struct dt_progress progress_of(const struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_checkpoint *state = &bank->state;
    const bool trained = state->loss_rows > 0;
    const double secs = state->train_secs - (trained ? bank->log.train_secs : 0);
    const double rows = trained ? state->loss_rows - bank->log.rows_before : (double)state->samples;
    struct dt_progress progress = {
        .step = job->step,
        .last_step = job->last_step,
        .epoch = epoch_at(bank, state->samples),
        .lr = dt__schedule_lr(&job->rules->schedule, job->step ? job->step - 1 : 0),
        .samples_per_sec = secs > 0 ? rows / secs : 0,
        .wall_secs = dt__wall_secs(bank)};
    for (int r = 0; r < job->replicas; r++)
        progress.loss += state->loss_sums[r];
    progress.loss = trained ? progress.loss / state->loss_rows : (double)NAN;
    progress.secs_left = dt__secs_left(job, state->samples, progress.samples_per_sec);
    if (job->best.known)
        snprintf(progress.best, sizeof progress.best, "  best %s %.5g", job->best.metric,
                 job->best.value);
    return progress;
}

/* Adds the members that train records and the final record share. */
static void record_progress(struct dt_json *record, const struct dt_bank *bank, double loss,
                            double samples_per_sec)
{
    const uint64_t samples = bank->state.samples;
    dt__json_int(record, "step", (int64_t)bank->job->step);
    dt__json_real(record, "epoch", epoch_at(bank, samples));
    dt__json_int(record, "samples", (int64_t)samples);
    dt__json_real(record, "loss", loss);
    dt__json_real(record, "samples_per_sec", samples_per_sec);
    dt__json_real(record, "wall_secs", dt__wall_secs(bank));
}

void dt__show_progress(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_progress progress = progress_of(bank);
    const int size = job->world->size;
    /* The last record has printed the same if no rows were trained on since. */
    if (bank->state.loss_rows > 0)
        dt__progress_show(bank->log.report, &progress, job->step == job->last_step);
    if (!dt__run_status_due(bank->log.report)) return;
    /* The status file, which `dtrain top` reads, is written every two seconds. */
    double now = dt__clock_secs(), secs = bank->log.viewed_at > 0 ? now - bank->log.viewed_at : 0;
    bank->log.viewed_at = now;
    for (int r = 0; r < size; r++) {
        struct dt_rank_status *rank = &bank->log.ranks[r];
        uint64_t before = rank->samples;
        dt__world_rank_status(job->world, r, rank);
        if (secs > 0 && rank->samples)
            rank->samples_per_sec = (double)(rank->samples - before) / secs;
    }
    dt__run_status_write(bank->log.report, &progress, size, bank->log.ranks);
}

dt_status dt__record_train(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    struct dt_checkpoint *state = &bank->state;
    if (state->loss_rows == 0) return DT_OK; /* no training since the last record */
    struct dt_staleness *staleness = &bank->log.staleness;
    const struct dt_progress progress = progress_of(bank);
    bank->log.last_loss = progress.loss;
    if (!bank->log.loss_reported) bank->log.loss_reported = dt__advise_loss(bank);
    struct dt_json *record = dt__record_begin(bank->log.report, "train");
    record_progress(record, bank, progress.loss, progress.samples_per_sec);
    dt__json_real(record, "lr", progress.lr);
    if (job->mode == DT_MODE_ASYNC) {
        dt__json_real(record, "staleness_mean", staleness->sum / (double)staleness->count);
        dt__json_int(record, "staleness_max", (int64_t)staleness->max);
    }
    dt__show_progress(bank);
    *staleness = (struct dt_staleness){0};
    bank->log.train_secs = state->train_secs;
    state->loss_rows = bank->log.rows_before = 0;
    for (int r = 0; r < job->replicas; r++)
        state->loss_sums[r] = 0;
    return dt__record_end(bank->log.report);
}

/* ---- evaluation, checkpoints, end ----------------------------------------------------------- */

dt_status dt__record_evaluation(struct dt_bank *bank, const struct dt_evaluation *evaluation,
                                bool *out_better)
{
    struct dt_job *job = bank->job;
    const struct dt_metric_values *values = &evaluation->values;
    struct dt_report *report = bank->log.report;
    struct dt_metric_score metric;
    char extra[64] = "";
    const struct dt_set *set = &job->sets.at[evaluation->set];
    *out_better = false;
    if (!evaluation->set) DT_TRY(dt__evaluation_judge(job, evaluation, out_better));
    DT_TRY(dt__metric_pick(job->model, job->config->eval.metric, values, &metric));
    bank->log.metric_missing |= !evaluation->set && isnan(metric.value) && isfinite(values->loss);
    struct dt_json *record = dt__record_begin(report, "eval");
    if (*set->name) dt__json_text(record, "set", set->name);
    dt__json_int(record, "step", (int64_t)evaluation->step);
    dt__json_metrics(record, values);
    if (job->model->classes == 2) {
        char *const *names = dt__source_schema(job->train)->label_names;
        const int positive = job->model->outputs.positive;
        dt__json_text(record, "positive", names ? names[positive] : positive ? "1" : "0");
    }
    if (dt__confusion_cells(job))
        dt__json_confusion(record, evaluation->confusion, job->model->classes);
    if (set->last && job->config->predict.interval > 0) dt__json_text(record, "fitted", "interval");
    dt__json_real(record, "secs", evaluation->secs);
    dt__json_real(record, "wall_secs", dt__wall_secs(bank));
    DT_TRY(dt__record_end(report));
    metric = dt__metric_shown(job, values);
    if (strcmp(metric.name, "loss"))
        snprintf(extra, sizeof extra, ", %s %.5g", metric.name, metric.value);
    if (!dt__log_is_terminal()) /* on a terminal the progress line shows the best */
        dt__info("eval%s%s at step %llu: loss %.5g%s", *set->name ? " of " : "", set->name,
                 (unsigned long long)evaluation->step, values->loss, extra);
    return DT_OK;
}

dt_status dt__record_saved(struct dt_bank *bank, const struct dt_saved *saved)
{
    struct dt_report *report = bank->log.report;
    struct dt_json *record = dt__record_begin(report, "checkpoint");
    dt__json_int(record, "step", (int64_t)saved->step);
    dt__json_text(record, "file", saved->file);
    dt__json_real(record, "secs", saved->secs);
    return dt__record_end(report);
}

/* Writes text like "compute 62 %, wait 3 %" from the seconds of the named parts, without parts that
 * round to 0 %. */
static void budget_print(const char *const *names, const double *secs, int parts, char text[128])
{
    double all = 0;
    size_t length = 0;
    for (int i = 0; i < parts; i++)
        all += secs[i];
    for (int i = 0; i < parts && length < 128; i++)
        if (secs[i] > 0 && secs[i] >= 0.005 * all)
            length += (size_t)snprintf(text + length, 128 - length, "%s%s %.0f %%",
                                       length ? ", " : "", names[i], 100 * secs[i] / all);
}

/* Records the totals over all starts of the run and, for this start only, the workers' counts,
 * staleness and times. Fills text with the workers' time, split into waiting and everything
 * else. */
static void record_async(const struct dt_bank *bank, struct dt_json *record, char text[128])
{
    static const char *const PARTS[] = {"compute and update", "wait"};
    const struct dt_async_counts *counts = bank->log.counts;
    if (!counts) return;
    const int64_t before = bank->start.resumed ? (int64_t)bank->start.loaded.step : 0;
    const double train =
        bank->state.train_secs - (bank->start.resumed ? bank->start.loaded.train_secs : 0);
    size_t bins = DT_STALENESS_BINS, workers = (size_t)bank->job->world->workers;
    double secs[2] = {0};
    while (bins > 1 && counts->staleness_histogram[bins - 1] == 0)
        bins--;
    dt__json_int(record, "gradients_sent", before + (int64_t)counts->sent);
    dt__json_int(record, "gradients_applied", before + (int64_t)counts->applied);
    dt__json_int(record, "clock_gap_max", (int64_t)counts->gap_max);
    dt__json_counts(record, "staleness_histogram", counts->staleness_histogram, bins);
    dt__json_real(record, "bank_busy_secs", counts->busy_secs);
    dt__json_counts(record, "worker_sent", counts->worker_sent, workers);
    dt__json_counts(record, "worker_applied", counts->worker_applied, workers);
    dt__json_counts(record, "worker_wait_ms", counts->worker_wait_ms, workers);
    dt__json_counts(record, "slice_applied", counts->slice_applied, counts->slices);
    for (size_t w = 0; w < workers; w++) {
        const double wait = (double)counts->worker_wait_ms[w] / 1000;
        secs[0] += fmax(0, train - wait);
        secs[1] += wait;
    }
    budget_print(PARTS, secs, 2, text);
}

/* Records the seconds of each part of the budget: the workers' mean, and each worker's. Fills text
 * with the means. */
static dt_status record_sync(const struct dt_bank *bank, struct dt_json *record, char text[128])
{
    static const char *const PARTS[] = {"compute", "data", "wait", "reduce", "update", "network"};
    const int workers = bank->job->world->workers, first = bank->job->world->worker_rank;
    double *own, secs[DT__BUDGET_PARTS] = {0};
    char field[32];
    DT_TRY(dt__alloc((size_t)workers, sizeof *own, "times of the workers", &own));
    for (int i = 0; i < DT__BUDGET_PARTS; i++) {
        for (int w = 0; w < workers; w++) {
            own[w] = bank->log.budgets[(first + w) * DT__BUDGET_PARTS + i];
            secs[i] += own[w];
        }
        snprintf(field, sizeof field, "%s_secs", PARTS[i]);
        dt__json_real(record, field, secs[i] / workers);
        snprintf(field, sizeof field, "worker_%s_secs", PARTS[i]);
        dt__json_reals(record, field, own, (size_t)workers);
    }
    dt_free(own);
    budget_print(PARTS, secs, DT__BUDGET_PARTS, text);
    return DT_OK;
}

/* Returns whether the best model is exported and its file still exists. */
static bool has_best(const struct dt_job *job)
{
    const struct dt__path path =
        dt__path("%s/%llu", job->dirs->best_dir.text, (unsigned long long)job->best.step);
    return job->best.known && dt__exports(job, &job->best) && dt__path_exists(path.text);
}

/* Fills text with a suggestion for a model that is no better than the baseline. */
static void advice_print(const struct dt_bank *bank, const struct dt_comparison *found,
                         char text[160])
{
    const struct dt_job *job = bank->job;
    const struct dt_config *config = job->config;
    const struct dt_schema *schema = dt__source_schema(job->train);
    const bool units =
        !schema->target_mean && dt__targets_of(config->model.task, config->train.loss)->units;
    if (!found->chosen)
        snprintf(text, 160, "; eval.metric=%s run.dir=NEW chooses the model by it", found->first);
    else if (!job->model->classes)
        snprintf(text, 160, "; another train.lr, more train.epochs%s%s may help",
                 config->data.normalize ? "" : ", data.normalize=standard",
                 units ? ", data.normalize_target=yes" : "");
    else
        snprintf(text, 160, "%s",
                 job->model->classes > MANY_CLASSES && !schema->label_names
                     ? ", or set model.task=regress if the labels are amounts"
                 : job->model->classes == 2 && bank->baseline.values.accuracy > 0.9
                     ? ", or, as one class is rare, set eval.metric=auc "
                       "train.class_weight=balanced run.dir=NEW"
                 : config->run.preset == DT_PRESET_TABLE ? ""
                 : dt__trains_on_table(job)              ? ", or try run.preset=table"
                                            : ", or let dtrain tune-lr find another train.lr");
}

/* Warns of metrics in which the chosen model is not better than the baseline. */
static void print_comparison(const struct dt_bank *bank)
{
    struct dt_comparison found;
    char advice[160];
    dt__baseline_compare(bank, &found);
    if (!found.first) return;
    advice_print(bank, &found, advice);
    dt__warn("the chosen model is %s than the baseline, a constant: %s: look at the data (dtrain "
             "inspect)%s",
             found.worse ? "worse" : "not clearly better", found.text, advice);
}

/* Prints how good the model is, where it is, and what to do next. */
static void print_result(const struct dt_bank *bank, const char *status)
{
    const struct dt_job *job = bank->job;
    const struct dt_best *best = &job->best;
    const char *dir = job->config->run.dir;
    const char *metric = dt__metric_name(job, job->config);
    struct dt_metric_score base = {.name = metric};
    char extra[80] = "";
    if (bank->baseline.measured)
        (void)dt__metric_pick(job->model, job->config->eval.metric, &bank->baseline.values, &base);
    if (bank->baseline.measured && !strcmp(best->metric, base.name))
        snprintf(extra, sizeof extra, "; the baseline has %s%.5g",
                 bank->baseline.sampled ? "about " : "", base.value);
    if (!strcmp(status, "early_stopped"))
        dt__info("stopped early: %lld evaluation%s in a row brought no better %s%s",
                 (long long)job->config->eval.patience, plural(job->config->eval.patience), metric,
                 !best->since ? "; the one after the stop did"
                 : !strcmp(metric, "accuracy")
                     ? "; of equally good ones, the one of least loss is chosen"
                     : "");
    if (best->known)
        dt__info("best %s on the rows held out: %.5g, at step %llu%s", best->metric, best->value,
                 (unsigned long long)best->step, extra);
    else if (bank->log.metric_missing)
        dt__warn("%s is not a number on the held-out rows, which may all have one class: there is "
                 "no best model (eval.metric=loss suits any rows)",
                 metric);
    else if (job->eval && strcmp(status, "stopped"))
        dt__warn("no evaluation gave a number: the model has diverged; try a smaller train.lr, "
                 "which dtrain tune-lr finds");
    else if (!job->eval && job->sets.count < 2)
        dt__info("no rows were held out, so nothing says how good the model is on other rows; "
                 "data.eval_fraction=0.2 holds out a fifth");
    dt__sets_print_best(bank);
    if (best->known && job->incumbent.known)
        dt__info("the old model has %s %.5g there%s", job->incumbent.metric, job->incumbent.value,
                 job->config->export.best != DT_EXPORT_BETTER ? ""
                 : dt__exports(job, best)                     ? ": export/best has the new one"
                                          : ": it is not beaten, and export/best stays as it was");
    if (job->step > 0 && strcmp(status, "stopped")) print_comparison(bank);
    const bool is_best = has_best(job);
    if (!strcmp(status, "stopped"))
        dt__info("step %llu is saved: the same command continues from there",
                 (unsigned long long)job->step);
    else if (is_best || job->config->export.latest)
        dt__info("the model is in %s/export/%s; next: dtrain predict %s %s, or dtrain report %s "
                 "PAGE.html",
                 dir, is_best ? "best" : "latest", dir,
                 dt__data_trains_on_table(job->config) ? "< ROWS" : "data.eval=FILES", dir);
}

/* Returns the loss of the newest train record, which an earlier start may have written: a run may
 * be killed between its last checkpoint and its end. NaN: there is no train record. */
static double newest_loss(const struct dt_bank *bank)
{
    struct dt_history *history;
    if (!isnan(bank->log.last_loss) || dt_history_read(bank->job->config->run.dir, &history))
        return bank->log.last_loss;
    const double loss = dt_history_last(history, DT_RECORD_TRAIN, "loss");
    dt_history_free(history);
    return loss;
}

dt_status dt__record_final(struct dt_bank *bank, const char *status)
{
    const struct dt_job *job = bank->job;
    const struct dt_checkpoint *state = &bank->state;
    char crc[9], budget[128] = "";
    snprintf(crc, sizeof crc, "%08x",
             dt__crc32c(0, state->params, (size_t)state->params_count * sizeof(float)));
    double rate = state->train_secs > 0 ? (double)state->samples / state->train_secs : 0;
    struct dt_json *record = dt__record_begin(bank->log.report, "final");
    dt__json_text(record, "status", status);
    record_progress(record, bank, newest_loss(bank), rate);
    dt__json_real(record, "bank_cpu_secs", bank->log.cpu_secs);
    dt__json_text(record, "params_crc32c", crc);
    if (job->mode == DT_MODE_SYNC) DT_TRY(record_sync(bank, record, budget));
    if (job->mode == DT_MODE_ASYNC) record_async(bank, record, budget);
    DT_TRY(dt__record_end(bank->log.report));
    dt__info("%s at step %llu: %.0f samples/s, params_crc32c %s", status,
             (unsigned long long)job->step, rate, crc);
    if (*budget) dt__info("a worker's time: %s", budget);
    if (!bank->options->test) print_result(bank, status);
    struct dt_report *report = bank->log.report;
    bank->log.report = NULL;
    return dt__report_close(report);
}
