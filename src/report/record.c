#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

static dt_status fail_errno(const struct dt_report *report, const char *doing)
{
    return dt_fail(DT_EIO, "%s: %s: %s", report->path, doing, strerror(errno));
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Length of the file up to the end of its last whole line; -1: errno. */
static off_t whole_lines(int fd)
{
    char block[4096];
    off_t end = lseek(fd, 0, SEEK_END);
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
    if (report->fd < 0) return fail_errno(report, "cannot open");
    off_t end = whole_lines(report->fd);
    if (end < 0) return fail_errno(report, "cannot read");
    if (ftruncate(report->fd, end)) return fail_errno(report, "cannot cut a torn line");
    return DT_OK;
}

dt_status dt_report_open(const char *run_dir, uint64_t total_steps, struct dt_report **out)
{
    struct dt_report *report;
    DT_TRY(dt_alloc(1, sizeof *report, "report", &report));
    *report = (struct dt_report){.fd = -1, .total_steps = total_steps, .shown_at = -1};
    report->terminal = dt_log_is_terminal();
    dt_status status = dt_format(&report->path, "%s/metrics.jsonl", run_dir);
    if (!status) status = open_records(report);
    if (status)
        dt_report_close(report);
    else
        *out = report;
    return status;
}

dt_status dt_report_close(struct dt_report *report)
{
    if (!report) return DT_OK;
    dt_status status = DT_OK;
    dt_log_progress(NULL);
    if (report->fd >= 0 && fsync(report->fd)) status = fail_errno(report, "cannot sync");
    if (report->fd >= 0 && close(report->fd) && !status)
        status = fail_errno(report, "cannot close");
    dt_json_free(&report->record);
    dt_free(report->path);
    dt_free(report);
    return status;
}

/* ---- the end -------------------------------------------------------------------------------- */

static bool is_final(const char *line, size_t length, uint64_t step)
{
    json_t *record = json_loadb(line, length, 0, NULL);
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const char *word = json_string_value(json_object_get(record, "status"));
    json_t *at = json_object_get(record, "step");
    bool final = kind && !strcmp(kind, "final") && word && strcmp(word, "stopped") &&
                 json_is_integer(at) && (uint64_t)json_integer_value(at) == step;
    json_decref(record);
    return final;
}

/* The last whole line of at most so many bytes, which is what a final record needs. */
enum { LAST_LINE = 1 << 20 };

static bool ends_final(int fd, char *bytes, uint64_t step)
{
    off_t end = whole_lines(fd), begin = end > LAST_LINE ? end - LAST_LINE : 0;
    if (end <= 0 || pread(fd, bytes, (size_t)(end - begin), begin) != end - begin) return false;
    size_t length = (size_t)(end - begin) - 1;
    const char *newline = memrchr(bytes, '\n', length);
    const char *line = newline ? newline + 1 : bytes;
    return is_final(line, length - (size_t)(line - bytes), step);
}

bool dt_report_has_ended(const char *run_dir, uint64_t step)
{
    char *path = NULL, *bytes = NULL;
    bool ended = false;
    int fd = -1;
    if (dt_format(&path, "%s/metrics.jsonl", run_dir)) return false;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !dt_alloc(LAST_LINE, 1, "a record", &bytes)) ended = ends_final(fd, bytes, step);
    dt_free(bytes);
    dt_free(path);
    if (fd >= 0) close(fd);
    return ended;
}

/* ---- records -------------------------------------------------------------------------------- */

void dt_record_begin(struct dt_report *report, const char *kind)
{
    dt_json_begin(&report->record);
    dt_json_text(&report->record, "kind", kind);
}

void dt_record_int(struct dt_report *report, const char *key, int64_t value)
{
    dt_json_int(&report->record, key, value);
}

void dt_record_real(struct dt_report *report, const char *key, double value)
{
    dt_json_real(&report->record, key, value);
}

void dt_record_text(struct dt_report *report, const char *key, const char *value)
{
    dt_json_text(&report->record, key, value);
}

void dt_record_counts(struct dt_report *report, const char *key, const uint64_t *values, size_t n)
{
    dt_json_counts(&report->record, key, values, n);
}

void dt_record_metrics(struct dt_report *report, const struct dt_metric_values *values)
{
    dt_json_metrics(&report->record, values);
}

void dt_record_confusion(struct dt_report *report, const uint64_t *confusion, int classes)
{
    dt_json_confusion(&report->record, confusion, classes);
}

/* A line that did not get onto the disk whole is taken back, or the next one would join it. */
static dt_status write_line(struct dt_report *report, const struct dt_text *line)
{
    off_t before = lseek(report->fd, 0, SEEK_END);
    if (before < 0) return fail_errno(report, "cannot seek");
    ssize_t written = write(report->fd, line->data, line->length);
    if (written == (ssize_t)line->length) return DT_OK;
    if (written >= 0) errno = ENOSPC;
    dt_status status = fail_errno(report, "cannot write");
    if (ftruncate(report->fd, before)) dt_warn("%s: cannot cut a torn line", report->path);
    return status;
}

dt_status dt_record_end(struct dt_report *report)
{
    DT_TRY(dt_json_end(&report->record));
    DT_TRY(dt_text_append(&report->record.text, "\n", 1));
    return write_line(report, &report->record.text);
}
