/* The page of `dtrain report`. page.html, which is compiled into the program, draws everything from
 * a JSON text in its middle; this file makes that text.
 *
 * Every < in the text is escaped, so that no name in a run can end the script around it or change
 * how it is parsed (<!--<script>). The page inserts names as text, never as markup. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "base/embed.h"
#include "report/history.h"
#include "report/internal.h"

DT__EMBED(dt__page_template, "src/report/page.html");

#define MARK "@DATA@"

/* A curve is drawn on a few hundred pixels; more points would only make the page larger. */
enum { MOST_POINTS = 4000 };

/* ---- a run ---------------------------------------------------------------------------------- */

/* Returns the columns of the training records; if there are many records, of every N-th one and the
 * last. */
static json_t *train_columns(const struct dt_history *history)
{
    static const char *const keys[] = {"step", "epoch",           "loss",
                                       "lr",   "samples_per_sec", "wall_secs"};
    enum { COLUMNS = sizeof keys / sizeof *keys };
    json_t *columns[COLUMNS], *train = json_object();
    const size_t n = dt_history_count(history, DT_RECORD_TRAIN);
    size_t stride = n / MOST_POINTS + 1;
    for (int c = 0; c < COLUMNS; c++)
        json_object_set_new(train, keys[c], columns[c] = json_array());
    for (size_t i = 0; i < n; i = i + stride < n || i == n - 1 ? i + stride : n - 1)
        for (int c = 0; c < COLUMNS; c++) {
            const double value = dt_history_real(history, DT_RECORD_TRAIN, i, keys[c]);
            json_array_append_new(columns[c], isfinite(value) ? json_real(value) : json_null());
        }
    return train;
}

static json_t *records_of(const struct dt_history *history, enum dt_record_kind kind)
{
    json_t *list = json_array();
    for (size_t i = 0; i < dt_history_count(history, kind); i++) {
        json_t *copy = json_copy(dt__history_record(history, kind, i));
        json_object_del(copy, "confusion");
        json_array_append_new(list, copy);
    }
    return list;
}

/* Returns the confusion matrix of the best evaluation, or of the last one if there is no best. */
static json_t *confusion_of(const struct dt_history *history)
{
    size_t evals = dt_history_count(history, DT_RECORD_EVAL), at;
    double value;
    if (!dt_history_best(history, &at, &value)) at = evals ? evals - 1 : 0;
    const json_t *record = dt__history_record(history, DT_RECORD_EVAL, at);
    json_t *matrix = json_object_get(record, "confusion");
    const size_t n = json_array_size(matrix);
    for (size_t i = 0; i < n; i++)
        if (json_array_size(json_array_get(matrix, i)) != n) return json_null();
    if (n == 0) return json_null();
    return json_pack("{sOsO?}", "matrix", matrix, "step", json_object_get(record, "step"));
}

json_t *dt__page_importance(const char *dir)
{
    struct dt_text path = {0};
    FILE *file = dt__text_add(&path, "%s/" DT__IMPORTANCE_FILE, dir) ? NULL : fopen(path.data, "r");
    json_t *lines = file ? json_array() : json_null(), *line;
    while (file && (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)))
        json_array_append_new(lines, line);
    if (file) fclose(file);
    dt__text_free(&path);
    return lines;
}

static json_t *run_of(const struct dt_page_run *run)
{
    const struct dt_history *history = run->history;
    json_t *labels = run->labels ? json_array() : json_null(), *options = json_object(), *text;
    const char *key;
    size_t best;
    double value;
    bool has_best = dt_history_best(history, &best, &value);
    for (size_t i = 0; run->labels && i < run->nlabels; i++)
        json_array_append_new(labels, dt__json_string(run->labels[i]));
    json_object_foreach(history->options, key, text)
    {
        json_object_set_new(options, key, dt__json_string(json_string_value(text)));
    }
    return json_pack(
        "{so so ss sb so so so so so so so so so so so so}", "name", dt__json_string(history->name),
        "dir", dt__json_string(history->dir), "status", history->status, "ended", history->ended,
        "metric", dt__json_string(history->metric), "best",
        has_best ? json_integer((json_int_t)best) : json_null(), "options", options, "train",
        train_columns(history), "evals", records_of(history, DT_RECORD_EVAL), "sets",
        records_of(history, DT_RECORD_SET), "starts", records_of(history, DT_RECORD_START),
        "changes", records_of(history, DT_RECORD_CHANGE), "finals",
        records_of(history, DT_RECORD_FINAL), "confusion", confusion_of(history), "labels", labels,
        "importance", dt__page_importance(history->dir));
}

/* ---- the page ------------------------------------------------------------------------------- */

static int page_add(const char *bytes, size_t length, void *page)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '<' ? dt__text_add(page, "\\u003c") : dt__text_append(page, &bytes[i], 1))
            return -1;
    return 0;
}

dt_status dt__page_write(const char *path, const struct dt_page_run *runs, size_t count,
                         json_t *searches)
{
    const char *middle = strstr(dt__page_template, MARK), *rest = middle + strlen(MARK);
    struct dt_text page = {0};
    json_t *list = json_array();
    bool whole = true;
    dt_status status;
    for (size_t i = 0; i < count; i++)
        whole &= json_array_append_new(list, run_of(&runs[i])) == 0;
    json_t *data = json_pack("{so sO ss sI}", "runs", list, "searches", searches, "version",
                             DT_VERSION, "time_unix", (json_int_t)dt__clock_unix());
    DT_GUARD(dt__text_append(&page, dt__page_template, (size_t)(middle - dt__page_template)));
    if (!whole || !data || json_dump_callback(data, page_add, &page, JSON_COMPACT))
        DT_GUARD(dt_fail(DT_EMEMORY, "out of memory for the page"));
    DT_GUARD(dt__text_append(&page, rest, strlen(rest)));
    status = dt__file_write(path, page.data, page.length, NULL, NULL);
done:
    json_decref(data);
    dt__text_free(&page);
    return status;
}
