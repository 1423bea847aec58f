/* Shows a search in `dtrain top` and `dtrain report`: its decisions, the best trial so far, and
 * what each team trains. */
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"
#include "base/json.h"
#include "cli/cli.h"
#include "report/page.h"
#include "report/history.h"

enum { MOST_BYTES = 1 << 30 };

/* Summary of a search's decisions. */
struct decisions {
    int trials, failed;  /* number of decided trials, and of failed ones among them */
    double secs;         /* seconds of training in these trials */
    json_t *best, *last; /* record of the trial with the least score, and of the search's end; NULL:
                          * none */
};

/* Adds a record of the journal to the summary. */
static void decisions_add(struct decisions *all, json_t *record)
{
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const json_t *score = json_object_get(record, "score");
    json_t **place = NULL;
    if (kind && !strcmp(kind, "trial")) {
        all->trials++;
        all->failed += !score;
        all->secs += json_number_value(json_object_get(record, "secs"));
        const json_t *best = all->best ? json_object_get(all->best, "score") : NULL;
        if (score && (!best || json_number_value(score) < json_number_value(best)))
            place = &all->best;
    } else if (kind && !strcmp(kind, "final")) {
        place = &all->last;
    }
    if (!place) return;
    json_decref(*place);
    *place = json_incref(record);
}

/* Reads the lines of search.jsonl; skips a last line without a line end, and lines that are not
 * JSON. The caller calls json_decref. */
static dt_status records_read(const char *dir, json_t **out)
{
    char path[4096], *text, *next;
    size_t length;
    (void)snprintf(path, sizeof path, "%.4000s/search.jsonl", dir);
    DT_TRY(dt__file_read(path, MOST_BYTES, &text, &length));
    *out = json_array();
    for (char *line = text; (next = strchr(line, '\n')); line = next + 1) {
        json_t *record = json_loadb(line, (size_t)(next - line), 0, NULL);
        if (record) json_array_append_new(*out, record);
    }
    dt_free(text);
    return *out ? DT_OK : dt_fail(DT_EMEMORY, "out of memory for the records of a search");
}

/* Prints a line for each trial that is being trained. Such a run has a status file. */
static void teams_print(const char *dir)
{
    char pattern[4096];
    glob_t found;
    (void)snprintf(pattern, sizeof pattern, "%.4000s/trials/*/status.json", dir);
    if (glob(pattern, 0, NULL, &found)) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct dt_history *run;
        *strrchr(found.gl_pathv[i], '/') = '\0';
        if (dt_history_read(found.gl_pathv[i], &run)) continue;
        if (!strcmp(dt_history_status(run), "running"))
            dt__text_print(stdout, "trial %s: step %.0f of %.0f  loss %.6g  %.0f samples/s\n",
                           run->name, dt_history_last(run, DT_RECORD_STATUS, "step"),
                           dt_history_last(run, DT_RECORD_STATUS, "last_step"),
                           dt_history_last(run, DT_RECORD_STATUS, "loss"),
                           dt_history_last(run, DT_RECORD_STATUS, "samples_per_sec"));
        dt_history_free(run);
    }
    globfree(&found);
}

static void best_print(const json_t *best)
{
    const char *key;
    json_t *value;
    printf("best %.6g: trial %lld", json_number_value(json_object_get(best, "score")),
           (long long)json_integer_value(json_object_get(best, "trial")));
    json_object_foreach(json_object_get(best, "settings"), key, value)
    {
        dt__text_print(stdout, " %s=%s", key, json_string_value(value));
    }
    putchar('\n');
}

bool cli_is_search(const char *dir)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%.4000s/search.jsonl", dir);
    return dt__path_exists(path);
}

dt_status cli_runs_of(const char *path, struct dt__names *out)
{
    char pattern[4096];
    glob_t found;
    dt_status status = DT_OK;
    if (!cli_is_search(path)) return dt__names_add(out, path, strlen(path));
    (void)snprintf(pattern, sizeof pattern, "%.4000s/trials/*/metrics.jsonl", path);
    if (glob(pattern, 0, NULL, &found)) return dt_fail(DT_EIO, "%s: no trial has begun yet", path);
    for (size_t i = 0; i < found.gl_pathc && !status; i++) {
        const char *run = found.gl_pathv[i];
        status = dt__names_add(out, run, (size_t)(strrchr(run, '/') - run));
    }
    globfree(&found);
    return status;
}

/* ---- the page ------------------------------------------------------------------------------- */

struct trial_run {
    const char *path;
    double score; /* infinite: the trial failed or is not decided */
};

/* Returns the last recorded score of the trial whose run is at `path`, "DIR/trials/0003-1". */
static double run_score(const json_t *records, const char *path)
{
    const long trial = strtol(strrchr(path, '/') + 1, NULL, 10);
    for (size_t i = json_array_size(records); i-- > 0;) {
        const json_t *record = json_array_get(records, i),
                     *score = json_object_get(record, "score");
        const json_t *number = json_object_get(record, "trial");
        if (json_is_integer(number) && json_integer_value(number) == trial)
            return json_is_number(score) ? json_number_value(score) : INFINITY;
    }
    return INFINITY;
}

/* Compares runs for qsort: by score, then by path. */
static int run_compare(const void *a, const void *b)
{
    const struct trial_run *left = a, *right = b;
    if (left->score != right->score) return left->score < right->score ? -1 : 1;
    return strcmp(left->path, right->path);
}

dt_status cli_search_page(const char *dir, json_t *searches, struct dt__names *out)
{
    enum { MOST_RUNS = 48 };
    struct dt__names all = {0};
    struct trial_run *runs = NULL;
    json_t *records = NULL, *search;
    dt_status status;
    DT_GUARD(records_read(dir, &records));
    DT_GUARD(cli_runs_of(dir, &all));
    DT_GUARD(dt__alloc(all.count, sizeof *runs, "runs", &runs));
    for (size_t i = 0; i < all.count; i++)
        runs[i] = (struct trial_run){all.items[i], run_score(records, all.items[i])};
    qsort(runs, all.count, sizeof *runs, run_compare);
    for (size_t i = 0; i < all.count && i < MOST_RUNS; i++)
        DT_GUARD(dt__names_add(out, runs[i].path, strlen(runs[i].path)));
    search = json_pack("{so sI sO so}", "dir", dt__json_string(dir), "runs", (json_int_t)all.count,
                       "records", records, "importance", dt__page_importance(dir));
    status = json_array_append_new(searches, search)
                 ? dt_fail(DT_EMEMORY, "out of memory for the page")
                 : DT_OK;
done:
    json_decref(records);
    dt_free(runs);
    dt__names_free(all.items, all.count);
    return status;
}

/* ---- top ------------------------------------------------------------------------------------ */

dt_status cli_search_show(const char *dir)
{
    struct decisions all = {0};
    json_t *records, *record;
    size_t i;
    DT_TRY(records_read(dir, &records));
    json_array_foreach(records, i, record)
    {
        decisions_add(&all, record);
    }
    dt__text_print(stdout, "%s: a search%s\n", dir, all.last ? ", complete" : "");
    printf("%d trials decided, %d of them failed, %.1f s of training\n", all.trials, all.failed,
           all.secs);
    if (all.best) best_print(all.best);
    if (all.last)
        printf("the model: %.6g on held-out rows\n",
               json_number_value(json_object_get(all.last, "ensemble")));
    teams_print(dir);
    json_decref(all.best);
    json_decref(all.last);
    json_decref(records);
    return fflush(stdout) ? dt_fail(DT_EIO, "standard output: cannot write") : DT_OK;
}
