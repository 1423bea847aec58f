/* The records of a run and its line of progress. Bank only. */
#include "train/run.h"

static double epoch_at(const struct dt__run *run, uint64_t samples)
{
    return (double)samples / (double)dt_plan_samples(run->plan);
}

static double wall_secs(const struct dt__run *run)
{
    return run->keeper.wall_before + dt_clock_secs() - run->keeper.run_start;
}

dt_status dt__record_start(struct dt__run *run)
{
    struct dt_report *report = run->keeper.report;
    uint32_t crc;
    char word[16];
    DT_TRY(dt_config_crc(run->config, &crc));
    char hex[9];
    snprintf(hex, sizeof hex, "%08x", crc);
    dt_record_begin(report, "start");
    dt_record_int(report, "step", (int64_t)run->step);
    dt_record_text(report, "mode", dt_config_word(DT_MODE_WORDS, run->mode, word));
    dt_record_text(report, "exchange", dt__exchange_name(run, word));
    dt_record_int(report, "size", dt_world_size(run->world));
    dt_record_int(report, "workers", dt_world_workers(run->world));
    dt_record_int(report, "replicas", run->replicas);
    dt_record_int(report, "params", (int64_t)dt_model_params(run->model));
    dt_record_int(report, "batch", (int64_t)dt_plan_batch(run->plan));
    dt_record_int(report, "hosts", dt_world_hosts(run->world));
    dt_record_text(report, "config_crc32c", hex);
    dt_record_int(report, "time_unix", dt_clock_unix());
    dt_record_text(report, "kernel", dt_blas_kernel());
    dt_record_int(report, "threads", run->config->run.threads);
    dt_record_int(report, "samples_per_epoch", (int64_t)dt_plan_samples(run->plan));
    return dt_record_end(report);
}

void dt__print_start(struct dt__run *run)
{
    struct dt_report *report = run->keeper.report;
    char text[256], word[16], settings[DT_MPI_SETTINGS];
    uint64_t batch = dt_plan_batch(run->plan);
    int workers = dt_world_workers(run->world);
    dt_report_say(report, "%s: %d rank%s on %d host%s (bank%s, %d worker%s%s), %d replica%s",
                  run->config->run.dir, dt_world_size(run->world),
                  dt_world_size(run->world) > 1 ? "s" : "", dt_world_hosts(run->world),
                  dt_world_hosts(run->world) > 1 ? "s" : "",
                  dt_world_size(run->world) > 1 ? "" : " and worker in one", workers,
                  workers > 1 ? "s" : "", run->config->eval.dedicated ? ", evaluator" : "",
                  run->replicas, run->replicas > 1 ? "s" : "");
    dt_report_say(report, "%s (%s), kernel %s, %lld thread%s a rank, exchange %s",
                  dt_world_mpi_version(), dt_world_mpi_settings(settings), dt_blas_kernel(),
                  (long long)run->config->run.threads, run->config->run.threads > 1 ? "s" : "",
                  dt__exchange_name(run, word));
    dt_report_say(report, "model %s: %zu parameters",
                  dt_model_describe(run->model, text, sizeof text), dt_model_params(run->model));
    dt_report_say(report, "%llu samples, batch %llu (%.4g a worker), %llu steps an epoch",
                  (unsigned long long)dt_plan_samples(run->plan), (unsigned long long)batch,
                  (double)batch / workers, (unsigned long long)dt_plan_steps_per_epoch(run->plan));
    dt_report_say(report, "%s at step %llu of %llu", run->keeper.resumed ? "resuming" : "starting",
                  (unsigned long long)run->step, (unsigned long long)run->last_step);
    if (run->replicas < workers)
        dt_warn("%d of %d workers have no replica and idle: run.replicas=%d",
                workers - run->replicas, workers, run->replicas);
}

/* ---- training ------------------------------------------------------------------------------- */

static double window_rate(struct dt__run *run)
{
    const struct dt__keeper *keeper = &run->keeper;
    double secs = keeper->state.train_secs - keeper->log_train_secs;
    return secs > 0 ? keeper->state.loss_rows / secs : 0;
}

static double window_loss(const struct dt__run *run)
{
    const struct dt_checkpoint *state = &run->keeper.state;
    double sum = 0;
    for (int r = 0; r < run->replicas; r++)
        sum += state->loss_sums[r];
    return state->loss_rows > 0 ? sum / state->loss_rows : 0;
}

static void show(struct dt__run *run, double loss, double rate)
{
    uint64_t left = dt__samples_at(run, run->last_step) - run->keeper.state.samples;
    struct dt_progress progress = {.step = run->step,
                                   .epoch = epoch_at(run, run->keeper.state.samples),
                                   .loss = loss,
                                   .samples_per_sec = rate,
                                   .secs_left = rate > 0 ? (double)left / rate : 0};
    dt_progress_show(run->keeper.report, &progress, run->step == run->last_step);
}

void dt__show_progress(struct dt__run *run)
{
    show(run, window_loss(run), window_rate(run));
}

/* Since the last train record. */
static void record_staleness(struct dt__run *run)
{
    struct dt__async *async = &run->async;
    double count = (double)async->staleness_count;
    if (run->mode != DT_ASYNC) return;
    dt_record_real(run->keeper.report, "staleness_mean", async->staleness_sum / count);
    dt_record_int(run->keeper.report, "staleness_max", (int64_t)async->staleness_max);
    async->staleness_sum = 0;
    async->staleness_max = async->staleness_count = 0;
}

dt_status dt__record_train(struct dt__run *run)
{
    struct dt__keeper *keeper = &run->keeper;
    struct dt_checkpoint *state = &keeper->state;
    if (state->loss_rows == 0) return DT_OK; /* nothing was trained since the last record */
    double loss = window_loss(run), rate = window_rate(run);
    dt_record_begin(keeper->report, "train");
    dt_record_int(keeper->report, "step", (int64_t)run->step);
    dt_record_real(keeper->report, "epoch", epoch_at(run, state->samples));
    dt_record_int(keeper->report, "samples", (int64_t)state->samples);
    dt_record_real(keeper->report, "loss", loss);
    dt_record_real(keeper->report, "lr", dt_schedule_lr(&run->schedule, run->step - 1));
    dt_record_real(keeper->report, "samples_per_sec", rate);
    dt_record_real(keeper->report, "wall_secs", wall_secs(run));
    record_staleness(run);
    show(run, loss, rate);
    keeper->last_loss = loss;
    keeper->log_train_secs = state->train_secs;
    state->loss_rows = 0;
    for (int r = 0; r < run->replicas; r++)
        state->loss_sums[r] = 0;
    return dt_record_end(keeper->report);
}

/* ---- evaluation, checkpoints, end ----------------------------------------------------------- */

dt_status dt__record_eval(struct dt__run *run, const struct dt__verdict *verdict)
{
    const struct dt_metric_values *values = &verdict->values;
    struct dt_report *report = run->keeper.report;
    dt_record_begin(report, "eval");
    dt_record_int(report, "step", (int64_t)verdict->step);
    dt_record_metrics(report, values);
    if (dt__confusion_cells(run))
        dt_record_confusion(report, verdict->confusion,
                            dt_metrics_classes(dt_model_get_spec(run->model)));
    dt_record_real(report, "secs", verdict->secs);
    dt_record_real(report, "wall_secs", wall_secs(run));
    DT_TRY(dt_record_end(report));
    bool classify = run->config->model.task == DT_CLASSIFY;
    dt_report_say(report, "eval at step %llu: loss %.5g, %s %.5g",
                  (unsigned long long)verdict->step, values->loss, classify ? "accuracy" : "rmse",
                  classify ? values->accuracy : values->rmse);
    return DT_OK;
}

dt_status dt__record_saved(struct dt__run *run, const struct dt_saved *saved)
{
    struct dt_report *report = run->keeper.report;
    dt_record_begin(report, "checkpoint");
    dt_record_int(report, "step", (int64_t)saved->step);
    dt_record_text(report, "file", saved->file);
    dt_record_real(report, "secs", saved->secs);
    return dt_record_end(report);
}

/* Totals over resumes; the workers' parts, staleness and times of this start. */
static void record_async(struct dt__run *run)
{
    const struct dt_async_counts *counts = run->async.counts;
    struct dt_report *report = run->keeper.report;
    if (run->mode != DT_ASYNC || !counts) return;
    int64_t before = run->keeper.resumed ? (int64_t)run->keeper.loaded.step : 0;
    size_t bins = DT_STALENESS_BINS, workers = (size_t)dt_world_workers(run->world);
    while (bins > 1 && counts->staleness_histogram[bins - 1] == 0)
        bins--;
    dt_record_int(report, "gradients_sent", before + (int64_t)counts->sent);
    dt_record_int(report, "gradients_applied", before + (int64_t)counts->applied);
    dt_record_int(report, "clock_gap_max", (int64_t)counts->gap_max);
    dt_record_counts(report, "staleness_histogram", counts->staleness_histogram, bins);
    dt_record_real(report, "bank_busy_secs", counts->busy_secs);
    dt_record_counts(report, "worker_sent", counts->worker_sent, workers);
    dt_record_counts(report, "worker_applied", counts->worker_applied, workers);
    dt_record_counts(report, "worker_wait_ms", counts->worker_wait_ms, workers);
}

dt_status dt__record_final(struct dt__run *run, const char *status)
{
    const struct dt__keeper *keeper = &run->keeper;
    const struct dt_checkpoint *state = &keeper->state;
    char crc[9];
    snprintf(crc, sizeof crc, "%08x",
             dt_crc32c(0, state->params, (size_t)state->params_count * sizeof(float)));
    double rate = state->train_secs > 0 ? (double)state->samples / state->train_secs : 0;
    dt_record_begin(keeper->report, "final");
    dt_record_text(keeper->report, "status", status);
    dt_record_int(keeper->report, "step", (int64_t)run->step);
    dt_record_real(keeper->report, "epoch", epoch_at(run, state->samples));
    dt_record_int(keeper->report, "samples", (int64_t)state->samples);
    dt_record_real(keeper->report, "loss", keeper->last_loss);
    dt_record_real(keeper->report, "samples_per_sec", rate);
    dt_record_real(keeper->report, "wall_secs", wall_secs(run));
    dt_record_real(keeper->report, "bank_cpu_secs", keeper->bank_cpu_secs);
    dt_record_text(keeper->report, "params_crc32c", crc);
    record_async(run);
    if (run->mode == DT_SYNC) dt__budget_record(run);
    DT_TRY(dt_record_end(keeper->report));
    dt_report_say(keeper->report, "%s at step %llu: %.0f samples/s, params_crc32c %s", status,
                  (unsigned long long)run->step, rate, crc);
    return DT_OK;
}
