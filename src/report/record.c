/* Writes metrics.jsonl, one line per record. Opening it removes an incomplete last line. Before
 * each write the file is checked to be still at its path. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/limits.h"
#include "report/internal.h"

/* ---- opening -------------------------------------------------------------------------------- */

/* Returns the length of the complete lines in the first `end` bytes; -1 on failure, with errno. */
static off_t whole_lines(int fd, off_t end)
{
    char block[DT__RECORDS_TAIL_BYTES];
    while (end > 0) {
        off_t begin = end > (off_t)sizeof block ? end - (off_t)sizeof block : 0;
        ssize_t got = pread(fd, block, (size_t)(end - begin), begin);
        if (got <= 0) return -1;
        const char *newline = memrchr(block, '\n', (size_t)got);
        if (newline) return begin + (newline - block) + 1;
        end = begin;
    }
    return end;
}

static dt_status open_records(struct dt_report *report)
{
    report->fd = open(report->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (report->fd < 0) return dt__fail_errno(report->path, "cannot open");
    const off_t size = lseek(report->fd, 0, SEEK_END), end = whole_lines(report->fd, size);
    if (size < 0 || end < 0) return dt__fail_errno(report->path, "cannot read");
    /* Complete lines stay: a bank whose mpirun is gone may still be appending one. */
    if (end < size && ftruncate(report->fd, end))
        return dt__fail_errno(report->path, "cannot remove an incomplete last line");
    return DT_OK;
}

dt_status dt__report_append(const char *run_dir, const char *line)
{
    struct dt_report report = {.fd = -1};
    DT_TRY(dt__format(&report.path, "%s/metrics.jsonl", run_dir));
    dt_status status = DT_OK;
    if (dt__path_exists(report.path)) {
        status = open_records(&report);
        if (!status) status = dt__fd_write(report.fd, report.path, line, strlen(line));
        if (report.fd >= 0) close(report.fd);
    }
    dt_free(report.path);
    return status;
}

dt_status dt__report_open(const char *run_dir, struct dt_report **out)
{
    struct dt_report *report;
    DT_TRY(dt__alloc(1, sizeof *report, "report", &report));
    *report = (struct dt_report){.fd = -1, .shown_at = -1};
    report->terminal = dt__log_is_terminal();
    dt_status status = dt__format(&report->path, "%s/metrics.jsonl", run_dir);
    if (!status) status = dt__format(&report->status_path, "%s/status.json", run_dir);
    if (!status) status = dt__format(&report->status_temporary, "%s/.status.json.tmp", run_dir);
    if (!status) status = open_records(report);
    report->status_at = dt__clock_secs();
    if (status)
        dt__report_close(report);
    else
        *out = report;
    return status;
}

/* ---- a file that was moved away ------------------------------------------------------------- */

static dt_status copy_records(const struct dt_report *report, int from, int to)
{
    char block[DT__RECORDS_COPY_BYTES];
    for (off_t at = 0;;) {
        ssize_t got = pread(from, block, sizeof block, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return dt__fail_errno(report->path, "cannot read");
        if (got == 0) return DT_OK;
        DT_TRY(dt__fd_write(to, report->path, block, (size_t)got));
        at += got;
    }
}

/* If the file of records was deleted, makes it again from the open file. If another file has its
 * name, the records continue there. */
static dt_status report_stay_in_place(struct dt_report *report)
{
    struct stat named, opened;
    const bool deleted = stat(report->path, &named) != 0;
    if (!deleted && fstat(report->fd, &opened) == 0 && named.st_dev == opened.st_dev &&
        named.st_ino == opened.st_ino)
        return DT_OK;
    int before = report->fd;
    dt_status status = open_records(report);
    if (!status && deleted) status = copy_records(report, before, report->fd);
    close(before);
    if (!status)
        dt__warn("%s: %s", report->path,
                 deleted ? "was deleted during the run: put back"
                         : "is another file now: the records go on there");
    return status;
}

/* Writes all waiting lines at once. If they do not reach the disk completely, removes what was
 * written: otherwise the next line would be joined to it. */
static dt_status write_waiting(struct dt_report *report)
{
    struct dt_text *lines = &report->waiting;
    off_t before = lseek(report->fd, 0, SEEK_END);
    if (before < 0) return dt__fail_errno(report->path, "cannot seek");
    ssize_t written;
    do
        written = write(report->fd, lines->data, lines->length);
    while (written < 0 && errno == EINTR);
    if (written == (ssize_t)lines->length) {
        dt__text_clear(lines);
        return DT_OK;
    }
    if (written >= 0) errno = ENOSPC;
    dt_status status = dt__fail_errno(report->path, "cannot write");
    if (ftruncate(report->fd, before))
        dt__warn("%s: cannot remove an incomplete last line", report->path);
    return status;
}

dt_status dt__report_close(struct dt_report *report)
{
    if (!report) return DT_OK;
    dt_status status = DT_OK;
    dt__log_progress(NULL);
    dt__prometheus_end(report->prometheus);
    if (report->fd >= 0) status = report_stay_in_place(report);
    if (!status && report->waiting.length > 0) status = write_waiting(report);
    if (report->fd >= 0 && fsync(report->fd) && !status)
        status = dt__fail_errno(report->path, "cannot sync");
    if (report->fd >= 0 && close(report->fd) && !status)
        status = dt__fail_errno(report->path, "cannot close");
    dt__json_free(&report->record);
    dt__text_free(&report->waiting);
    dt__run_status_remove(report);
    dt__tensorboard_close(report->tensorboard);
    dt__prometheus_free(report->prometheus);
    dt_free(report->status_path);
    dt_free(report->status_temporary);
    dt_free(report->path);
    dt_free(report);
    return status;
}

/* ---- records -------------------------------------------------------------------------------- */

void dt__json_metrics(struct dt_json *json, const struct dt_metric_values *values)
{
    const char *name;
    double value;
    dt__json_int(json, "rows", (int64_t)values->rows);
    if (values->unknown > 0) dt__json_int(json, "unknown", (int64_t)values->unknown);
    for (int i = 0; dt__metric_at(i, values, &name, &value); i++) {
        if (!isnan(value) || i == 0)
            dt__json_real(json, name, value); /* the loss is written even if it is NaN */
    }
}

struct dt_json *dt__record_begin(struct dt_report *report, const char *kind)
{
    dt__json_start(&report->record);
    dt__json_text(&report->record, "kind", kind);
    return &report->record;
}

void dt__report_listen(struct dt_report *report, dt_record_fn *record, void *arg)
{
    report->listener = record;
    report->listener_arg = arg;
}

/* Passes a record to TensorBoard and Prometheus. A format that fails gets no more records, and the
 * run continues. */
static void record_show(struct dt_report *report, const char *line)
{
    json_t *record = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(record, "kind"));
    struct dt__shown shown = {kind, (uint64_t)json_integer_value(json_object_get(record, "step")),
                              record};
    if (kind && report->tensorboard && dt__tensorboard_record(report->tensorboard, &shown)) {
        dt__warn("%s; no more is written there", dt_error_text());
        dt__tensorboard_close(report->tensorboard);
        report->tensorboard = NULL;
    }
    if (kind && report->prometheus && dt__prometheus_record(report->prometheus, &shown)) {
        dt__warn("%s; no more is written there", dt_error_text());
        dt__prometheus_free(report->prometheus);
        report->prometheus = NULL;
    }
    json_decref(record);
}

/* Upper bound for waiting lines, in bytes. */
static const size_t MOST_WAITING = (size_t)16 << 20;

/* Writes a line, given without newline, to the file, the listener and the other formats. A disk
 * that is full for a while does not end the run: lines wait for the next record, at last for the
 * close. */
static dt_status put_line(struct dt_report *report, struct dt_text *line)
{
    const bool waited = report->waiting.length > 0;
    DT_TRY(dt__text_append(line, "\n", 1));
    DT_TRY(report_stay_in_place(report));
    DT_TRY(dt__text_append(&report->waiting, line->data, line->length));
    const dt_status status = write_waiting(report);
    if (status && report->waiting.length > MOST_WAITING) return status;
    if (status && !waited) dt__warn("%s; tried again with the next record", dt_error_text());
    line->data[line->length - 1] = 0;
    if (report->tensorboard || report->prometheus) record_show(report, line->data);
    if (report->listener) report->listener(report->listener_arg, line->data);
    return DT_OK;
}

dt_status dt__record_end(struct dt_report *report)
{
    DT_TRY(dt__json_end(&report->record));
    return put_line(report, &report->record.text);
}

dt_status dt__record_line(struct dt_report *report, const char *json)
{
    struct dt_text *line = &report->record.text;
    dt__text_clear(line);
    dt__text_append(line, json, strlen(json));
    return put_line(report, line);
}
