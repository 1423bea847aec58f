/* The journal: search.jsonl, with one line per decision, in the order of trials, each synced to
 * disk. A resumed search reads it, and decides only the remaining trials. */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "search/search.h"
#include "state/directory.h"

enum { MOST_BYTES = 1 << 30 };

double dt__score_round(double score)
{
    char text[DT_REAL_TEXT], *end;
    if (!isfinite(score)) return INFINITY;
    (void)snprintf(text, sizeof text, "%.6g", score);
    return dt__real_read(text, &end);
}

static dt_status line_read(struct dt__journal *journal, const char *line, size_t length, int number)
{
    json_t *record = json_loadb(line, length, 0, NULL);
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const char *status = json_string_value(json_object_get(record, "status"));
    const json_t *trial = json_object_get(record, "trial");
    const json_t *score = json_object_get(record, "score");
    const json_int_t at = json_integer_value(trial);
    const bool first = json_object_get(record, "epochs") != NULL;
    bool good = kind != NULL;
    if (good && !strcmp(kind, "final")) journal->reported = true;
    if (good && !strcmp(kind, "ensemble")) {
        journal->reported = false;
        dt_free(journal->ensemble);
        good = !dt__format(&journal->ensemble, "%.*s", (int)length, line);
    }
    if (good && !strcmp(kind, "finish")) journal->finished = true;
    if (good && !strcmp(kind, "data")) {
        const char *sums = json_string_value(json_object_get(record, "sums"));
        good = sums != NULL;
        (void)snprintf(journal->data, sizeof journal->data, "%s", good ? sums : "");
    }
    if (good && !strcmp(kind, "trial")) {
        good = json_is_integer(trial) && at >= 0 && status;
        journal->secs += json_number_value(json_object_get(record, "secs"));
        if (good && at < journal->trials) {
            struct dt__verdict *verdict = &(first ? journal->first : journal->whole)[at];
            verdict->known = true;
            verdict->score = json_is_number(score) ? json_number_value(score) : INFINITY;
            (void)snprintf(verdict->status, sizeof verdict->status, "%s", status);
        }
    }
    json_decref(record);
    if (good) return DT_OK;
    return dt_fail(DT_EFORMAT, "%s:%d: expected a record of a search", journal->path, number);
}

/* Reads the whole lines of the journal. *out_end: size of these lines in bytes. */
static dt_status lines_read(struct dt__journal *journal, size_t *out_end)
{
    char *text;
    size_t length, at = 0;
    int number = 0;
    DT_TRY(dt__file_read(journal->path, MOST_BYTES, &text, &length));
    dt_status status = DT_OK;
    for (const char *end; !status && (end = memchr(text + at, '\n', length - at));) {
        status = line_read(journal, text + at, (size_t)(end - text) - at, ++number);
        at = (size_t)(end - text) + 1;
    }
    dt_free(text);
    *out_end = at;
    return status;
}

dt_status dt__journal_open(const char *dir, int trials, struct dt__journal *out)
{
    const size_t count = (size_t)trials;
    size_t end = 0;
    dt_status status = DT_OK;
    *out = (struct dt__journal){.fd = -1, .trials = trials};
    (void)snprintf(out->path, sizeof out->path, "%s", dt__path("%s/search.jsonl", dir).text);
    DT_GUARD(dt__alloc(count, sizeof *out->first, "trials", &out->first));
    DT_GUARD(dt__alloc(count, sizeof *out->whole, "trials", &out->whole));
    for (size_t t = 0; t < count; t++)
        out->first[t].score = out->whole[t].score = INFINITY;
    if (dt__path_exists(out->path)) DT_GUARD(lines_read(out, &end));
    out->fd = open(out->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (out->fd < 0) DT_GUARD(dt__fail_errno(out->path, "cannot open"));
    if (ftruncate(out->fd, (off_t)end) || lseek(out->fd, 0, SEEK_END) < 0)
        DT_GUARD(dt__fail_errno(out->path, "cannot cut"));
    status = dt__path_sync(dir);
done:
    if (status) dt__journal_close(out);
    return status;
}

void dt__journal_close(struct dt__journal *journal)
{
    if (journal->fd >= 0) close(journal->fd);
    dt_free(journal->ensemble);
    dt_free(journal->first);
    dt_free(journal->whole);
    *journal = (struct dt__journal){.fd = -1};
}

dt_status dt__journal_add(struct dt__journal *journal, struct dt_json *line)
{
    const off_t before = lseek(journal->fd, 0, SEEK_END);
    dt__json_int(line, "time_unix", dt__clock_unix());
    dt_status status = dt__json_end(line);
    if (!status) status = dt__text_append(&line->text, "\n", 1);
    if (!status)
        status = dt__fd_write(journal->fd, journal->path, line->text.data, line->text.length);
    if (!status && fsync(journal->fd)) status = dt__fail_errno(journal->path, "cannot sync");
    if (status && before >= 0 && ftruncate(journal->fd, before))
        dt__debug("%s: a torn line stays", journal->path);
    return status;
}
