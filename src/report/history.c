/* Reads a run directory.
 *
 * Training records become plain numbers, since there may be millions; the others stay JSON objects.
 * The records of each kind are sorted by step. A record whose step is not above the last one's
 * replaces the record of the same step (and set), or is inserted: evaluations of an async run may
 * come late. */
#include "report/history.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/limits.h"
#include "config/config.h"
#include "model/model.h"

/* A run on another host is taken as ended if its files are older than this. */
static const double SILENT_SECS = 60;

/* Kinds of the lines of metrics.jsonl. */
enum { LINE_KINDS = DT_RECORD_STATUS };
static const char *const KINDS[LINE_KINDS] = {"start", "change",     "train",
                                              "eval",  "checkpoint", "final"};

/* The numbers of a training record. */
enum { NUMBERS = 6 };
static const char *const NUMBER_KEYS[NUMBERS] = {"epoch", "samples",         "loss",
                                                 "lr",    "samples_per_sec", "wall_secs"};

struct dt_history_item {
    uint64_t step;
    json_t *record; /* NULL: a training record */
    double number[NUMBERS];
};

/* ---- fields --------------------------------------------------------------------------------- */

static double real_of(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static uint64_t step_of(const json_t *record)
{
    double step = real_of(record, "step");
    return step >= 0 && step < 9e15 ? (uint64_t)step : 0;
}

/* Returns the name of the set that an evaluation measured; "" for the held-out rows and for other
 * records. */
static const char *set_of(const json_t *record)
{
    const char *name = json_string_value(json_object_get(record, "set"));
    return name ? name : "";
}

/* Orders by step, then by set. */
static int item_order(const struct dt_history_item *a, const struct dt_history_item *b)
{
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    return strcmp(set_of(a->record), set_of(b->record));
}

static const struct dt_history_item *item_at(const struct dt_history *history,
                                             enum dt_record_kind kind, size_t index)
{
    static const struct dt_history_item none;
    const struct dt_history_records *records = &history->records[kind];
    return index < records->count ? &records->items[index] : &none;
}

json_t *dt__history_record(const struct dt_history *history, enum dt_record_kind kind, size_t index)
{
    return item_at(history, kind, index)->record;
}

double dt_history_real(const struct dt_history *history, enum dt_record_kind kind, size_t index,
                       const char *key)
{
    const struct dt_history_item *item = item_at(history, kind, index);
    const bool numbers = kind == DT_RECORD_TRAIN && index < dt_history_count(history, kind);
    if (numbers && !strcmp(key, "step")) return (double)item->step;
    for (int i = 0; i < NUMBERS && numbers; i++)
        if (!strcmp(key, NUMBER_KEYS[i])) return item->number[i];
    return real_of(item->record, key);
}

double dt_history_last(const struct dt_history *history, enum dt_record_kind kind, const char *key)
{
    return dt_history_real(history, kind, dt_history_count(history, kind) - 1, key);
}

const char *dt_history_text(const struct dt_history *history, enum dt_record_kind kind,
                            size_t index, const char *key)
{
    return json_string_value(json_object_get(dt__history_record(history, kind, index), key));
}

const char *dt_history_status(const struct dt_history *history)
{
    return history->status;
}

size_t dt_history_count(const struct dt_history *history, enum dt_record_kind kind)
{
    return history->records[kind].count;
}

/* ---- the metric ----------------------------------------------------------------------------- */

bool dt_history_best(const struct dt_history *history, size_t *out_index, double *out_value)
{
    if (!history->has_best) return false;
    *out_index = history->best;
    *out_value = dt_history_real(history, DT_RECORD_EVAL, history->best, history->metric);
    return true;
}

/* Member that marks evaluations made before the held-out rows or the metric changed. */
static const char PASSED[] = "passed";

/* Marks all evaluations if the last start began a new era of evaluations. Called after each start;
 * before the first one there is nothing to mark. */
static void pass_evaluations(struct dt_history *history)
{
    const size_t starts = history->records[DT_RECORD_START].count;
    const double era = dt_history_real(history, DT_RECORD_START, starts - 1, "best_era");
    const double before = dt_history_real(history, DT_RECORD_START, starts - 2, "best_era");
    if (isnan(era) || era == before) return;
    for (size_t i = 0; i < history->records[DT_RECORD_EVAL].count; i++)
        json_object_set_new(dt__history_record(history, DT_RECORD_EVAL, i), PASSED, json_true());
}

/* Makes evaluation `index` the best if it is better than the best so far, or equally good with a
 * lower loss. Returns true if it did. */
static bool take_if_best(struct dt_history *history, size_t index)
{
    double best, value = dt_history_real(history, DT_RECORD_EVAL, index, history->metric);
    size_t at;
    if (isnan(value) || json_object_get(dt__history_record(history, DT_RECORD_EVAL, index), PASSED))
        return false;
    if (dt_history_best(history, &at, &best)) {
        bool better = history->more_is_better ? value > best : value < best;
        bool tie = value == best && dt_history_real(history, DT_RECORD_EVAL, index, "loss") <
                                        dt_history_real(history, DT_RECORD_EVAL, at, "loss");
        if (!better && !tie) return false;
    }
    history->best = index;
    history->has_best = true;
    return true;
}

/* Decides the metric and finds the best of all evaluations. Needed when the metric may have
 * changed, or an evaluation was inserted or removed. */
static void find_best(struct dt_history *history)
{
    const size_t starts = history->records[DT_RECORD_START].count;
    const char *metric =
        starts ? dt_history_text(history, DT_RECORD_START, starts - 1, "metric") : NULL;
    const char *option = dt_history_option(history, "eval.metric");
    const json_t *first = dt__history_record(history, DT_RECORD_EVAL, 0);
    /* Start records before version 0.3 have no metric. */
    if (!metric && option && strcmp(option, "auto") != 0) metric = option;
    if (!metric && json_object_get(first, "accuracy")) metric = "accuracy";
    history->metric = metric ? metric : json_object_get(first, "rmse") ? "rmse" : "loss";
    history->more_is_better = dt__metric_rises(history->metric);
    history->has_best = false;
    for (size_t i = 0; i < history->records[DT_RECORD_EVAL].count; i++)
        take_if_best(history, i);
}

/* Removes the confusion matrix of an evaluation unless it is the last or the best one: matrices may
 * be large. */
static void drop_confusion(struct dt_history *history, size_t index)
{
    const struct dt_history_records *evals = &history->records[DT_RECORD_EVAL];
    if (index + 1 < evals->count && !(history->has_best && index == history->best))
        json_object_del(evals->items[index].record, "confusion");
}

/* ---- records -------------------------------------------------------------------------------- */

/* Adds a record to its kind, at the end or by its step. Takes ownership of it. */
static dt_status add_record(struct dt_history *history, enum dt_record_kind kind, json_t *record)
{
    struct dt_history_records *records = &history->records[kind];
    struct dt_history_item item = {.step = step_of(record), .record = record};
    const bool by_step =
        (kind >= DT_RECORD_TRAIN && kind <= DT_RECORD_FINAL) || kind == DT_RECORD_SET;
    size_t at = records->count;
    dt_status status =
        dt__grow(&records->items, &records->capacity, records->count + 1, sizeof item, "records");
    for (int i = 0; i < NUMBERS && kind == DT_RECORD_TRAIN; i++)
        item.number[i] = real_of(record, NUMBER_KEYS[i]);
    if (status || kind == DT_RECORD_TRAIN) json_decref(record);
    if (kind == DT_RECORD_TRAIN) item.record = NULL;
    DT_TRY(status);
    while (by_step && at > 0 && item_order(&records->items[at - 1], &item) > 0)
        at--;
    const bool replaced = by_step && at > 0 && !item_order(&records->items[at - 1], &item);
    if (replaced)
        json_decref(records->items[--at].record);
    else
        memmove(records->items + at + 1, records->items + at,
                (records->count++ - at) * sizeof *records->items);
    records->items[at] = item;
    if (kind == DT_RECORD_START) {
        pass_evaluations(history);
        find_best(history); /* the start record names the metric */
    }
    if (kind != DT_RECORD_EVAL) return DT_OK;
    /* Usually an evaluation is the last one, and only it has to be compared with the best. */
    const size_t best = history->best;
    if (at == 0 || replaced || at + 1 < records->count) {
        find_best(history);
        for (size_t i = 0; i < records->count; i++)
            drop_confusion(history, i);
    } else {
        if (take_if_best(history, at)) drop_confusion(history, best);
        drop_confusion(history, at - 1);
    }
    return DT_OK;
}

static dt_status add_line(struct dt_history *history, const char *line, size_t length)
{
    json_t *record = json_loadb(line, length, 0, NULL);
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const bool start = kind && !strcmp(kind, "start");
    const uint64_t step = step_of(record);
    /* A run that starts at a step repeats the later records. */
    for (int i = DT_RECORD_CHANGE; start && i < DT_RECORD_KINDS; i++) {
        struct dt_history_records *records = &history->records[i];
        while (records->count && records->items[records->count - 1].step > step)
            json_decref(records->items[--records->count].record);
    }
    if (kind) history->ended = !strcmp(kind, "final") || (history->ended && !start);
    if (kind && !strcmp(kind, "eval") && *set_of(record))
        return add_record(history, DT_RECORD_SET, record);
    for (int i = 0; i < LINE_KINDS && kind; i++)
        if (!strcmp(kind, KINDS[i])) return add_record(history, (enum dt_record_kind)i, record);
    json_decref(record);
    return DT_OK;
}

static void forget_kind(struct dt_history *history, int kind)
{
    while (history->records[kind].count)
        json_decref(history->records[kind].items[--history->records[kind].count].record);
}

static void forget_records(struct dt_history *history)
{
    for (int kind = 0; kind < DT_RECORD_KINDS; kind++)
        forget_kind(history, kind);
    history->ended = false;
    history->read = 0;
    find_best(history);
}

/* Returns a checksum of the first bytes that have been read. It detects the file of another run,
 * even one with the path and inode of a deleted file: its start time differs at least. */
static uint32_t head_checksum(const struct dt_history *history, int fd, const char *path)
{
    char head[4096];
    const size_t length = history->read < sizeof head ? (size_t)history->read : sizeof head;
    return dt__fd_read(fd, path, head, length, 0) ? 0 : dt__crc32c(0, head, length);
}

/* Adds the complete lines of a text and advances history->read past them. */
static dt_status add_lines(struct dt_history *history, const char *text, size_t length)
{
    const char *newline, *end = text + length;
    for (const char *line = text; (newline = memchr(line, '\n', (size_t)(end - line)));
         line = newline + 1) {
        DT_TRY(add_line(history, line, (size_t)(newline - line)));
        history->read += (uint64_t)(newline + 1 - line);
    }
    return DT_OK;
}

/* Adds the lines from history->read up to `size`, in ranges that grow until they hold at least one
 * line. An incomplete last line is left for the next update. */
static dt_status read_lines(struct dt_history *history, int fd, const char *path, uint64_t size)
{
    enum { MOST_LINE = 64 << 20 };
    char *text = NULL;
    size_t capacity = 0, wanted = DT__RECORDS_READ_BYTES;
    dt_status status = DT_OK;
    while (history->read < size) {
        const uint64_t before = history->read, rest = size - before;
        const size_t length = rest < wanted ? (size_t)rest : wanted;
        DT_GUARD(dt__grow(&text, &capacity, length, 1, "records"));
        DT_GUARD(dt__fd_read(fd, path, text, length, before));
        DT_GUARD(add_lines(history, text, length));
        if (history->read > before) continue;
        if (length == rest) break;
        if (wanted > MOST_LINE)
            DT_GUARD(dt_fail(DT_EFORMAT, "%s: a line is longer than any record", path));
        wanted *= 2;
    }
done:
    dt_free(text);
    return status;
}

/* Reads the records written since the last update. */
static dt_status read_records(struct dt_history *history)
{
    char *path;
    int fd;
    uint64_t size;
    struct stat info;
    DT_TRY(dt__format(&path, "%s/metrics.jsonl", history->dir));
    dt_status status = dt__file_open(path, &fd, &size);
    if (!status) {
        const bool same = fstat(fd, &info) == 0 && info.st_ino == history->file &&
                          size >= history->read &&
                          head_checksum(history, fd, path) == history->head;
        if (!same) forget_records(history); /* another run's file, or one that was cut */
        history->file = info.st_ino;
        status = read_lines(history, fd, path, size);
        history->head = head_checksum(history, fd, path);
        close(fd);
    }
    dt_free(path);
    return status;
}

/* Reads one of the small files of a run as text. Returns NULL if it is missing, is not a plain file
 * (a pipe would block), is larger than MOST_BYTES, or memory is short: the rest of the run can
 * still be shown. */
static char *small_file_read(const struct dt_history *history, const char *name)
{
    enum { MOST_BYTES = 64 << 20 };
    char *path, *text = NULL;
    int fd;
    uint64_t size;
    if (dt__format(&path, "%s/%s", history->dir, name)) return NULL;
    if (!dt__file_open(path, &fd, &size)) {
        const size_t length = size <= MOST_BYTES ? (size_t)size : 0;
        if (length) (void)dt__alloc(length + 1, 1, name, &text);
        if (text && dt__fd_read(fd, path, text, length, 0)) *text = '\0';
        close(fd);
    }
    dt_free(path);
    return text;
}

/* Reads status.json again at each update. A killed run leaves its status; it counts until the run
 * is resumed and ends. */
static dt_status read_status(struct dt_history *history)
{
    forget_kind(history, DT_RECORD_STATUS);
    forget_kind(history, DT_RECORD_RANK);
    if (history->ended) return DT_OK;
    char *text = small_file_read(history, "status.json");
    json_t *status = text ? json_loads(text, 0, NULL) : NULL, *rank;
    size_t i;
    dt_free(text);
    if (!status) return DT_OK;
    DT_TRY(add_record(history, DT_RECORD_STATUS, status));
    json_array_foreach(json_object_get(status, "ranks"), i, rank)
        DT_TRY(add_record(history, DT_RECORD_RANK, json_incref(rank)));
    return DT_OK;
}

/* ---- configuration -------------------------------------------------------------------------- */

const char *dt_history_option(const struct dt_history *history, const char *name)
{
    return json_string_value(json_object_get(history->options, name));
}

/* Reads a config.ini that dt_config_print wrote. Keeps keys that this version does not know. */
static dt_status read_config(struct dt_history *history)
{
    char *text = small_file_read(history, "config.ini"), *rest = NULL, section[64] = "", key[128];
    json_decref(history->options);
    history->options = json_object();
    bool whole = history->options;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (*line == '[')
            snprintf(section, sizeof section, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
        if (*line == '[' || *line == ';' || *line == '#' || !equals) continue;
        char *value = equals + 1 + strspn(equals + 1, " ");
        (void)dt__value_unquote(value);
        while (equals > line && equals[-1] == ' ')
            equals--;
        snprintf(key, sizeof key, "%s.%.*s", section, (int)(equals - line), line);
        whole &= !json_object_set_new_nocheck(history->options, key, json_string_nocheck(value));
    }
    dt_free(text);
    return whole ? DT_OK : dt_fail(DT_EMEMORY, "out of memory for options");
}

/* ---- whether it runs ------------------------------------------------------------------------ */

static bool was_written(const char *dir, const char *name, double secs)
{
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &info) == 0 && difftime(time(NULL), info.st_mtime) < secs;
}

/* Returns true if a process of this host is running (a zombie is not) and, unless `start` is 0,
 * started at that time. */
static bool process_lives(long pid, unsigned long long start)
{
    char state;
    const uint64_t began = dt__process_start(pid, &state);
    if (!began) return kill((pid_t)pid, 0) == 0 || errno == EPERM;
    return state != 'Z' && state != 'X' && (!start || began == start);
}

/* Returns true if the run's process exists. Decides by the lock file if it names this host, else by
 * the age of the run's files. Taking the lock could make a run that is just starting believe that
 * another run holds it. */
static bool is_held(const struct dt_history *history)
{
    char host[65] = "", holder[65] = "", *text = small_file_read(history, "lock");
    long pid = 0;
    unsigned long long start = 0; /* older lock files do not have it */
    const int found = text ? sscanf(text, "pid %ld on %64s start %llu", &pid, holder, &start) : 0;
    dt_free(text);
    if (found < 2 || pid <= 0) return false;
    gethostname(host, sizeof host - 1);
    if (!strcmp(host, holder)) return process_lives(pid, start);
    return was_written(history->dir, "status.json", SILENT_SECS) ||
           was_written(history->dir, "metrics.jsonl", SILENT_SECS);
}

/* ---- the whole ------------------------------------------------------------------------------ */

dt_status dt_history_update(struct dt_history *history)
{
    dt_status status = read_config(history);
    find_best(history); /* the metric is an option, and the options were just read */
    if (!status) status = read_records(history);
    DT_TRY(status);
    DT_TRY(read_status(history));
    const size_t finals = history->records[DT_RECORD_FINAL].count;
    history->status = NULL;
    if (history->ended && finals)
        history->status = dt_history_text(history, DT_RECORD_FINAL, finals - 1, "status");
    else if (!history->ended && is_held(history))
        history->status = "running";
    if (!history->status) history->status = "interrupted";
    return DT_OK;
}

dt_status dt_history_read(const char *run_dir, struct dt_history **out)
{
    struct dt_history *history;
    dt_status status;
    size_t length = strlen(run_dir);
    while (length > 1 && run_dir[length - 1] == '/')
        length--;
    DT_TRY(dt__alloc(1, sizeof *history, "history", &history));
    *history = (struct dt_history){.metric = "loss"};
    DT_GUARD(dt__format(&history->dir, "%.*s", (int)length, run_dir));
    const char *slash = strrchr(history->dir, '/');
    history->name = slash && slash[1] ? slash + 1 : history->dir;
    DT_GUARD(dt_history_update(history));
    *out = history;
done:
    if (status) dt_history_free(history);
    return status;
}

void dt_history_free(struct dt_history *history)
{
    if (!history) return;
    forget_records(history);
    json_decref(history->options);
    for (int kind = 0; kind < DT_RECORD_KINDS; kind++)
        dt_free(history->records[kind].items);
    dt_free(history->dir);
    dt_free(history);
}

bool dt__history_has_ended(const char *run_dir, uint64_t step)
{
    struct dt_history *history;
    if (dt_history_read(run_dir, &history)) return false;
    const bool ended = history->ended && strcmp(history->status, "stopped") != 0 &&
                       dt_history_last(history, DT_RECORD_FINAL, "step") == (double)step;
    dt_history_free(history);
    return ended;
}
