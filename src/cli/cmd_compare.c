/* `dtrain compare`: one row per run, with its best metric, speed, time, status, and the settings in
 * which the runs differ. The best run comes first. If runs have different metrics, those with the
 * metric of the first named run come first. Runs without an evaluation come last. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "report/history.h"
#include "report/report.h"

enum column { RUN, METRIC, BEST, AT_STEP, STEPS, SPEED, WALL, STATUS, COLUMNS };
static const char *const TITLES[COLUMNS] = {"run",   "metric",    "best",      "at step",
                                            "steps", "samples/s", "wall secs", "status"};
static const char *const KEYS[COLUMNS] = {"run",  "metric",          "best",      "best_step",
                                          "step", "samples_per_sec", "wall_secs", "status"};
enum { MOST_COLUMNS = 256 };

struct run {
    struct dt_history *history;
    const char *text[COLUMNS]; /* NULL: the column is a number */
    double number[COLUMNS];    /* NaN: unknown */
    size_t group;              /* number of the first run with the same metric, in the order of
                                * naming */
};

struct comparison {
    /* better runs first, those without a metric last; equal ones in the order of naming */
    struct run *runs;
    size_t count, capacity;
    const char *key[MOST_COLUMNS]; /* (columns) keys of the columns; those from COLUMNS on are
                                    * options in which runs differ */
    size_t columns;
};

/* ---- runs ----------------------------------------------------------------------------------- */

/* Returns true if the path exists but is not a run: a file that runs/NAME also matches, which is
 * skipped. A path that does not exist is probably mistyped, so it is an error, as is a directory
 * that cannot be read. */
static bool path_is_stray(const char *path)
{
    char *records;
    if (dt__format(&records, "%s/metrics.jsonl", path)) return false;
    const bool stray =
        dt__path_exists(path) && !dt__path_exists(records) && (errno == ENOENT || errno == ENOTDIR);
    dt_free(records);
    return stray;
}

/* Returns true if the run comes before the other one. Values of different metrics cannot be
 * compared, so the run whose metric was named first is better. */
static bool run_is_better(const struct run *run, const struct run *other)
{
    const double value = run->number[BEST], before = other->number[BEST];
    if (isnan(value) || isnan(before)) return !isnan(value);
    if (run->group != other->group) return run->group < other->group;
    return run->history->more_is_better ? value > before : value < before;
}

static void run_place(struct comparison *comparison, struct run *run)
{
    size_t at = comparison->count++;
    run->group = at;
    for (size_t i = 0; i < at; i++)
        if (!strcmp(comparison->runs[i].history->metric, run->history->metric))
            run->group = comparison->runs[i].group;
    for (; at > 0 && run_is_better(run, &comparison->runs[at - 1]); at--)
        comparison->runs[at] = comparison->runs[at - 1];
    comparison->runs[at] = *run;
}

/* Reads a run, and inserts it at its place in the order. */
static dt_status run_add(struct comparison *comparison, const char *dir)
{
    struct run run = {0};
    DT_TRY(dt_history_read(dir, &run.history));
    const struct dt_history *history = run.history;
    const enum dt_record_kind last = history->ended ? DT_RECORD_FINAL : DT_RECORD_TRAIN;
    size_t best;
    double *number = run.number;
    run.text[RUN] = history->dir;
    run.text[METRIC] = history->metric;
    run.text[STATUS] = history->status;
    number[BEST] = number[AT_STEP] = (double)NAN;
    if (dt_history_best(history, &best, &number[BEST]))
        number[AT_STEP] = dt_history_real(history, DT_RECORD_EVAL, best, "step");
    /* the last step of an early stop has no train record, and the final record may be from an
     * earlier session */
    number[STEPS] = fmax(dt_history_last(history, DT_RECORD_TRAIN, "step"),
                         dt_history_last(history, DT_RECORD_FINAL, "step"));
    number[SPEED] = dt_history_last(history, last, "samples_per_sec");
    number[WALL] = dt_history_last(history, last, "wall_secs");
    run_place(comparison, &run);
    return DT_OK;
}

static const char *run_option(const struct run *run, const char *key)
{
    const char *value = dt_history_option(run->history, key);
    return value ? value : "";
}

/* Returns true if the runs' values of a key differ, and run `r` is the first run that has the key.
 * Runs without a configuration do not count. */
static bool key_differs(const struct comparison *comparison, size_t r, const char *key)
{
    bool differs = false;
    if (!strcmp(key, "run.dir") || !strcmp(key, "run.resume")) return false;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct run *run = &comparison->runs[i];
        if (i < r && dt_history_option(run->history, key)) return false;
        if (json_object_size(run->history->options))
            differs |= strcmp(run_option(run, key), run_option(&comparison->runs[r], key)) != 0;
    }
    return differs;
}

static void columns_find(struct comparison *comparison)
{
    size_t columns = COLUMNS;
    const char *key;
    json_t *value;
    memcpy(comparison->key, KEYS, sizeof KEYS);
    for (size_t r = 0; r < comparison->count; r++) {
        json_object_foreach(comparison->runs[r].history->options, key, value)
        {
            if (columns < MOST_COLUMNS && key_differs(comparison, r, key))
                comparison->key[columns++] = key;
        }
    }
    comparison->columns = columns;
}

/* ---- the three forms ------------------------------------------------------------------------ */

/* Returns a cell as text; row 0 holds the titles. `exact`: with all digits, else with enough digits
 * to compare. */
static const char *cell_text(const struct comparison *comparison, size_t row, size_t column,
                             bool exact, char buffer[DT_REAL_TEXT])
{
    const char *key = comparison->key[column];
    if (row == 0) return exact || column >= COLUMNS ? key : TITLES[column];
    const struct run *run = &comparison->runs[row - 1];
    const char *text = column < COLUMNS ? run->text[column] : run_option(run, key);
    if (text) return text;
    double value = run->number[column];
    if (isnan(value)) return exact ? "" : "-";
    if (exact) return dt__real_text(value, buffer);
    if (column == BEST)
        snprintf(buffer, DT_REAL_TEXT, "%.5g", value);
    else
        snprintf(buffer, DT_REAL_TEXT, "%.*f", column == WALL && value < 100 ? 1 : 0, value);
    return buffer;
}

/* Returns true if all runs have the same value in the column, and there is more than one run. */
static bool column_is_common(const struct comparison *comparison, size_t column)
{
    char first[DT_REAL_TEXT], buffer[DT_REAL_TEXT];
    const char *text = cell_text(comparison, 1, column, true, first);
    bool common = comparison->count > 1 && column != RUN && column != BEST && column < COLUMNS;
    for (size_t r = 2; r <= comparison->count; r++)
        common = common && !strcmp(cell_text(comparison, r, column, true, buffer), text);
    return common;
}

/* Prints values that all runs share above the table. Numbers are right-aligned. Of a text that is
 * too long the end is kept, since paths differ there. */
static void table_print(const struct comparison *comparison)
{
    enum { MOST_WIDTH = 20 };
    char buffer[DT_REAL_TEXT];
    size_t shown[MOST_COLUMNS], columns = 0;
    int width[MOST_COLUMNS] = {0};
    const char *before = "All runs:";
    for (size_t c = 0; c < comparison->columns; c++) {
        if (!column_is_common(comparison, c)) {
            shown[columns++] = c;
            continue;
        }
        printf("%s %s ", before, TITLES[c]);
        cli_print_text(cell_text(comparison, 1, c, false, buffer), 0);
        before = ",";
    }
    if (*before == ',') printf("\n\n");
    for (size_t r = 0; r <= comparison->count; r++)
        for (size_t i = 0; i < columns; i++) {
            int wide = cli_text_width(cell_text(comparison, r, shown[i], false, buffer));
            if (wide > MOST_WIDTH && shown[i] != RUN && r > 0) wide = MOST_WIDTH;
            if (wide > width[i]) width[i] = wide;
        }
    for (size_t r = 0; r <= comparison->count; r++)
        for (size_t i = 0; i < columns; i++) {
            const char *cell = cell_text(comparison, r, shown[i], false, buffer);
            const bool number = shown[i] >= BEST && shown[i] <= WALL;
            const int over = cli_text_width(cell) - width[i];
            const bool last = i + 1 == columns, cut = !last && over > 0;
            const int pad = last || cut ? 0 : -over;
            printf("%*s%s", number ? pad : 0, "", cut ? "..." : "");
            for (int left = over + 3; cut && (left > 0 || !dt__begins_character(*cell)); cell++)
                left -= dt__begins_character(*cell);
            cli_print_text(cell, 0);
            printf("%*s", last ? 0 : 2 + (number ? 0 : pad), "");
            if (last) putchar('\n');
        }
}

static dt_status csv_print(const struct comparison *comparison)
{
    struct dt_text line = {0};
    char buffer[DT_REAL_TEXT];
    for (size_t r = 0; r <= comparison->count && !line.status; r++) {
        dt__text_clear(&line);
        for (size_t c = 0; c < comparison->columns; c++) {
            const char *cell = cell_text(comparison, r, c, true, buffer);
            if (c) dt__text_append(&line, ",", 1);
            cli_csv_add(&line, cell, strlen(cell));
        }
        if (!line.status) puts(line.data);
    }
    const dt_status status = line.status;
    dt__text_free(&line);
    return status;
}

static dt_status json_print(const struct comparison *comparison)
{
    struct dt_json json = {0};
    dt_status status = DT_OK;
    for (size_t r = 0; r < comparison->count && !status; r++) {
        const struct run *run = &comparison->runs[r];
        dt__json_start(&json);
        for (size_t c = 0; c < comparison->columns; c++) {
            const char *key = comparison->key[c];
            if (c < COLUMNS && !run->text[c])
                dt__json_real(&json, key, run->number[c]);
            else
                dt__json_text(&json, key, c < COLUMNS ? run->text[c] : run_option(run, key));
        }
        status = dt__json_end(&json);
        if (!status) puts(json.text.data);
    }
    dt__json_free(&json);
    return status;
}

/* Adds a run or, if the path is that of a search, the runs of its trials. */
static dt_status runs_add(struct comparison *comparison, const char *path)
{
    struct dt__names runs = {0};
    dt_status status = cli_runs_of(path, &runs);
    for (size_t i = 0; i < runs.count && !status; i++) {
        status = dt__grow(&comparison->runs, &comparison->capacity, comparison->count + 1,
                          sizeof *comparison->runs, "runs");
        if (!status) status = run_add(comparison, runs.items[i]);
    }
    dt__names_free(runs.items, runs.count);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

dt_status cmd_compare(int argc, char **argv)
{
    struct comparison comparison = {0};
    char error[DT_ERROR_MAX] = "";
    enum { TABLE, CSV, JSON } form = TABLE;
    bool strays = false;
    dt_status status = DT_OK, failed = DT_OK;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--csv")) {
            form = CSV;
        } else if (!strcmp(argv[i], "--json")) {
            form = JSON;
        } else if (*argv[i] == '-') {
            DT_GUARD(dt_fail(DT_EUSAGE, "%s: compare takes --csv and --json", argv[i]));
        } else if (path_is_stray(argv[i]) && !cli_is_search(argv[i])) {
            dt__warn("%s is not a run (it has no metrics.jsonl) and is left out", argv[i]);
            strays = true;
        } else if ((status = runs_add(&comparison, argv[i])) && !failed) {
            /* the other runs are still shown */
            failed = status;
            snprintf(error, sizeof error, "%s", dt_error_text());
        }
    }
    status = failed;
    if (!comparison.count && !failed)
        status = dt_fail(strays ? DT_EMISMATCH : DT_EUSAGE, "compare: expected run directories");
    if (!comparison.count) goto done;
    columns_find(&comparison);
    if (form == TABLE) table_print(&comparison);
    status = form == JSON ? json_print(&comparison) : form == CSV ? csv_print(&comparison) : DT_OK;
    if (failed) status = dt_fail(failed, "%s", error);
done:
    for (size_t i = 0; i < comparison.count; i++)
        dt_history_free(comparison.runs[i].history);
    dt_free(comparison.runs);
    return status;
}
