/* Shows the current state of a run in two ways. A progress line goes to the terminal, or lines to a
 * log. The bank rewrites RUN_DIR/status.json, which `dtrain top` reads, every few seconds and
 * removes it at the end. Each version of that file appears whole, by a rename; it is not synced,
 * since it has no value after a crash. A failure to show the state does not end the run. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "report/internal.h"

/* ---- the line ------------------------------------------------------------------------------- */

static const double TERMINAL_SECS = 0.2, PLAIN_SECS = 10; /* between two lines */

void dt__progress_show(struct dt_report *report, const struct dt_progress *progress, bool force)
{
    char line[1024]; /* longer than the format's longest result */
    double now = dt__clock_secs();
    double wait = report->terminal ? TERMINAL_SECS : PLAIN_SECS;
    bool due = report->shown_at < 0 || now - report->shown_at >= wait;
    if ((!due && !force) || dt__log_get_level() < DT_LOG_INFO) return;
    report->shown_at = now;
    /* "step 200/1000  epoch 0.43  loss 0.31  best accuracy 0.9  52011 samples/s  1:02:03 left" */
    char total[32] = "", left[32] = "time left unknown", speed[80] = ""; /* until it is known */
    const double secs = progress->secs_left;
    const unsigned long long s = secs >= 0 && secs < 1e9 ? (unsigned long long)secs : 0;
    if (progress->last_step > 0)
        snprintf(total, sizeof total, "/%llu", (unsigned long long)progress->last_step);
    if (s >= 3600)
        snprintf(left, sizeof left, "%llu:%02llu:%02llu left", s / 3600, s / 60 % 60, s % 60);
    else if (secs >= 0 && secs < 1e9)
        snprintf(left, sizeof left, "%llu:%02llu left", s / 60, s % 60);
    if (progress->samples_per_sec > 0)
        snprintf(speed, sizeof speed, "  %.0f samples/s  %s", progress->samples_per_sec, left);
    snprintf(line, sizeof line, "step %llu%s  epoch %.2f  loss %.6g%s%s",
             (unsigned long long)progress->step, total, progress->epoch, progress->loss,
             progress->best, speed);
    if (report->terminal)
        dt__log_progress(line);
    else
        dt__info("%s", line);
}

/* ---- status.json ---------------------------------------------------------------------------- */

static const double STATUS_SECS = 2;

bool dt__run_status_due(struct dt_report *report)
{
    double now = dt__clock_secs();
    if (now - report->status_at < STATUS_SECS) return false;
    report->status_at = now;
    return true;
}

static dt_status format_status(struct dt_report *report, const struct dt_progress *progress,
                               int nranks, const struct dt_rank_status *ranks)
{
    struct dt_json *json = &report->status_json;
    struct dt_text *text = &report->status_text;
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    dt__text_clear(text);
    dt__json_start(json);
    dt__json_int(json, "time_unix", dt__clock_unix());
    dt__json_text(json, "host", host);
    dt__json_int(json, "pid", getpid());
    dt__json_int(json, "step", (int64_t)progress->step);
    dt__json_int(json, "last_step", (int64_t)progress->last_step);
    dt__json_real(json, "epoch", progress->epoch);
    dt__json_real(json, "loss", progress->loss);
    dt__json_real(json, "lr", progress->lr);
    dt__json_real(json, "samples_per_sec", progress->samples_per_sec);
    dt__json_real(json, "wall_secs", progress->wall_secs);
    dt__json_real(json, "secs_left", progress->secs_left);
    DT_TRY(dt__json_end(json));
    json->text.data[json->text.length - 1] = '\0'; /* the list of ranks goes before the closing
                                                    * brace */
    dt__text_add(text, "%s,\"ranks\":[\n", json->text.data);
    for (const struct dt_rank_status *rank = ranks; rank < ranks + nranks; rank++) {
        dt__json_start(json);
        dt__json_int(json, "rank", rank->rank);
        dt__json_text(json, "host", rank->host);
        dt__json_text(json, "role", rank->role);
        if (rank->known) {
            dt__json_text(json, "phase", rank->phase);
            if (*rank->wait) dt__json_text(json, "waits_for", rank->wait);
            dt__json_int(json, "step", (int64_t)rank->step);
            dt__json_real(json, "idle_secs", rank->idle_secs);
            dt__json_real(json, "wait_share", rank->wait_fraction);
            dt__json_real(json, "samples_per_sec", rank->samples_per_sec);
        }
        DT_TRY(dt__json_end(json));
        dt__text_add(text, "%s%s", rank->rank ? ",\n" : "", json->text.data);
    }
    return dt__text_add(text, "]}\n");
}

dt_status dt__report_place(const struct dt_text *text, const char *temporary, const char *path)
{
    DT_TRY(text->status);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0) errno = ENOSPC; /* reported for a short write */
    bool whole = fd >= 0 && write(fd, text->data, text->length) == (ssize_t)text->length;
    if (fd >= 0 && close(fd)) whole = false;
    if (whole && !rename(temporary, path)) return DT_OK;
    const dt_status status = dt__fail_errno(path, "cannot write");
    if (fd >= 0) unlink(temporary);
    return status;
}

void dt__run_status_write(struct dt_report *report, const struct dt_progress *progress, int nranks,
                          const struct dt_rank_status *ranks)
{
    if (report->status_fails) return;
    if (format_status(report, progress, nranks, ranks) ||
        dt__report_place(&report->status_text, report->status_temporary, report->status_path)) {
        report->status_fails = true;
        dt__warn("%s; dtrain top sees the records alone", dt_error_text());
    }
}

void dt__run_status_remove(struct dt_report *report)
{
    dt__json_free(&report->status_json);
    dt__text_free(&report->status_text);
    if (report->status_path) unlink(report->status_path);
    if (report->status_temporary) unlink(report->status_temporary);
}
