/* A file for the textfile collector of Prometheus' node_exporter. It has the newest value of each
 * number in the records, as gauges such as dtrain_train_loss{run="..."}. Each record rewrites the
 * file; a rename makes it appear whole. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/internal.h"

struct gauge {
    char name[96];
    double value;
};

struct dt__prometheus {
    char *path, *temporary,
        *run; /* the file, its temporary name while it is written, the label `run` */
    struct gauge *gauges;
    size_t count, capacity;
    double running;
};

dt_status dt__report_prometheus(struct dt_report *report, const char *path, const char *run_dir)
{
    struct dt__prometheus *prometheus;
    size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 5, ".prom"))
        return dt_fail(DT_EUSAGE,
                       "report.prometheus=%s: the collector takes names that end in "
                       ".prom",
                       path);
    DT_TRY(dt__alloc(1, sizeof *prometheus, "a file of gauges", &prometheus));
    prometheus->running = 1;
    dt_status status = dt__strdup(path, &prometheus->path);
    if (!status) status = dt__format(&prometheus->temporary, "%s.tmp-%d", path, (int)getpid());
    /* The value of the label `run` is the run directory in UTF-8, with \, " and newline escaped. */
    struct dt_text label = {0};
    json_t *text = dt__json_string(run_dir);
    if (!text && !status) status = dt_fail(DT_EMEMORY, "out of memory for a file of gauges");
    dt__text_append(&label, "", 0);
    for (const char *at = json_string_value(text); at && *at; at++) {
        if (*at == '\n')
            dt__text_add(&label, "\\n");
        else
            dt__text_add(&label, *at == '\\' || *at == '"' ? "\\%c" : "%c", *at);
    }
    json_decref(text);
    const dt_status labelled = dt__text_end(&label, &prometheus->run);
    if (!status) status = labelled;
    if (status)
        dt__prometheus_free(prometheus);
    else
        report->prometheus = prometheus;
    return status;
}

void dt__prometheus_free(struct dt__prometheus *prometheus)
{
    if (!prometheus) return;
    dt_free(prometheus->gauges);
    dt_free(prometheus->run);
    dt_free(prometheus->temporary);
    dt_free(prometheus->path);
    dt_free(prometheus);
}

/* ---- gauges --------------------------------------------------------------------------------- */

/* Sets the gauge dtrain_KIND_KEY. Units are written in full, as is usual in Prometheus:
 * samples_per_sec becomes samples_per_second. */
static dt_status set_gauge(struct dt__prometheus *prometheus, const char *kind, const char *key,
                           double value)
{
    char name[sizeof prometheus->gauges->name];
    size_t length = (size_t)snprintf(name, sizeof name, "dtrain_%s", kind), i = 0;
    while (*key && length < sizeof name - 16) {
        size_t word = strcspn(key, "_");
        const char *unit = word == 3 && !strncmp(key, "sec", 3)    ? "second"
                           : word == 4 && !strncmp(key, "secs", 4) ? "seconds"
                                                                   : NULL;
        length += (size_t)snprintf(name + length, sizeof name - length, "_%.*s",
                                   (int)(unit || word > 32 ? 32 : word), unit ? unit : key);
        if (length >= sizeof name) length = sizeof name - 1;
        key += word + (key[word] == '_');
    }
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at)) *at = '_';
    while (i < prometheus->count && strcmp(prometheus->gauges[i].name, name))
        i++;
    if (i == prometheus->count) {
        DT_TRY(dt__grow(&prometheus->gauges, &prometheus->capacity, i + 1,
                        sizeof *prometheus->gauges, "a file of gauges"));
        memcpy(prometheus->gauges[i].name, name, sizeof name);
        prometheus->count++;
    }
    prometheus->gauges[i].value = value;
    return DT_OK;
}

static void add_gauge(struct dt_text *text, const struct dt__prometheus *prometheus,
                      const char *name, const char *help, double value)
{
    char number[DT_REAL_TEXT];
    const char *written = isnan(value)   ? "NaN"
                          : isinf(value) ? value > 0 ? "+Inf" : "-Inf"
                                         : dt__real_text(value, number);
    dt__text_add(text, "# HELP %s %s\n# TYPE %s gauge\n%s{run=\"%s\"} %s\n", name, help, name, name,
                 prometheus->run, written);
}

static dt_status write_gauges(const struct dt__prometheus *prometheus)
{
    struct dt_text text = {0};
    add_gauge(&text, prometheus, "dtrain_running", "Whether the run goes on (1) or has ended (0).",
              prometheus->running);
    add_gauge(&text, prometheus, "dtrain_last_record_timestamp_seconds",
              "When the run wrote its last record.", (double)dt__clock_unix());
    for (size_t i = 0; i < prometheus->count; i++)
        add_gauge(&text, prometheus, prometheus->gauges[i].name,
                  "The newest value in the run's records.", prometheus->gauges[i].value);
    const dt_status status = dt__report_place(&text, prometheus->temporary, prometheus->path);
    dt__text_free(&text);
    return status;
}

dt_status dt__prometheus_record(struct dt__prometheus *prometheus, const struct dt__shown *shown)
{
    const char *key;
    json_t *value;
    const char *set = json_string_value(json_object_get(shown->record, "set"));
    char kind[64];
    if (!strcmp(shown->kind, "start") || !strcmp(shown->kind, "change")) return DT_OK;
    snprintf(kind, sizeof kind, "%s%s%s", shown->kind, set ? "_" : "", set ? set : "");
    json_object_foreach(shown->record, key, value)
    {
        /* null is a number that is not finite */
        if (json_is_number(value) || json_is_null(value))
            DT_TRY(set_gauge(prometheus, kind, key,
                             json_is_null(value) ? (double)NAN : json_number_value(value)));
    }
    if (!strcmp(shown->kind, "final")) prometheus->running = 0;
    return write_gauges(prometheus);
}

/* Shows that the run has ended. A run that fails writes no final record. */
void dt__prometheus_end(struct dt__prometheus *prometheus)
{
    if (!prometheus || prometheus->running == 0) return;
    prometheus->running = 0;
    if (write_gauges(prometheus)) dt__warn("%s", dt_error_text());
}
