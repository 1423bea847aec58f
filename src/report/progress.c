#include <math.h>

#include "report/report.h"

static const double TERMINAL_SECS = 0.2, PLAIN_SECS = 10; /* least time between two lines */

/* "1:02:03 left" */
static void format_left(double secs, char *buffer, size_t size)
{
    unsigned long long s = (unsigned long long)secs;
    if (!(secs >= 0 && secs < 1e9))
        snprintf(buffer, size, "time left unknown");
    else if (s < 3600)
        snprintf(buffer, size, "%llu:%02llu left", s / 60, s % 60);
    else
        snprintf(buffer, size, "%llu:%02llu:%02llu left", s / 3600, s / 60 % 60, s % 60);
}

static void format_progress(const struct dt_report *report, const struct dt_progress *progress,
                            char *buffer, size_t size)
{
    char total[32] = "", left[32];
    if (report->total_steps > 0)
        snprintf(total, sizeof total, "/%llu", (unsigned long long)report->total_steps);
    format_left(progress->secs_left, left, sizeof left);
    snprintf(buffer, size, "step %llu%s  epoch %.2f  loss %.6g  %.0f samples/s  %s",
             (unsigned long long)progress->step, total, progress->epoch, progress->loss,
             progress->samples_per_sec, left);
}

void dt_progress_show(struct dt_report *report, const struct dt_progress *progress, bool force)
{
    char line[160];
    double now = dt_clock_secs();
    double wait = report->terminal ? TERMINAL_SECS : PLAIN_SECS;
    bool due = report->shown_at < 0 || now - report->shown_at >= wait;
    if ((!due && !force) || dt_log_get_level() < DT_LOG_INFO) return;
    report->shown_at = now;
    format_progress(report, progress, line, sizeof line);
    if (report->terminal)
        dt_log_progress(line);
    else
        dt_info("%s", line);
}

void dt_report_say(struct dt_report *report, const char *format, ...)
{
    char line[DT_ERROR_MAX];
    va_list args;
    (void)report;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    dt_info("%s", line);
}
