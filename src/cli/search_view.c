/* A search for `dtrain top`: what is decided, the best so far, and what each team trains. */
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "report/history.h"

enum { MOST_BYTES = 1 << 30 };

/* The decisions of a search. */
struct decisions {
    int trials, failed;  /* decided */
    json_t *best, *last; /* the trial of the least score; the record of the end; NULL: none */
};

/* Takes a record. */
static void decisions_add(struct decisions *all, json_t *record)
{
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const json_t *score = json_object_get(record, "score");
    json_t **place = NULL;
    if (kind && !strcmp(kind, "trial")) {
        all->trials++;
        all->failed += !score;
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

static dt_status decisions_read(const char *path, struct decisions *out)
{
    char *text, *next;
    size_t length;
    DT_TRY(dt__file_read(path, MOST_BYTES, &text, &length));
    for (char *line = text; (next = strchr(line, '\n')); line = next + 1) {
        json_t *record = json_loadb(line, (size_t)(next - line), 0, NULL);
        decisions_add(out, record);
        json_decref(record);
    }
    dt_free(text);
    return DT_OK;
}

/* Prints a line for each trial that is being trained: a run that lasts has a status. */
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
        dt__text_print(stdout, " %s=%s", key, json_string_value(value));
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

dt_status cli_search_show(const char *dir)
{
    struct decisions all = {0};
    char path[4096];
    (void)snprintf(path, sizeof path, "%.4000s/search.jsonl", dir);
    DT_TRY(decisions_read(path, &all));
    dt__text_print(stdout, "%s: a search%s\n", dir, all.last ? ", complete" : "");
    printf("%d trials decided, %d of them failed\n", all.trials, all.failed);
    if (all.best) best_print(all.best);
    if (all.last)
        printf("the model: %.6g on held-out rows\n",
               json_number_value(json_object_get(all.last, "ensemble")));
    teams_print(dir);
    json_decref(all.best);
    json_decref(all.last);
    return fflush(stdout) ? dt_fail(DT_EIO, "standard output: cannot write") : DT_OK;
}
