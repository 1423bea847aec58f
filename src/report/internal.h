#ifndef REPORT_INTERNAL_H
#define REPORT_INTERNAL_H

#include <jansson.h>

#include "base/json.h"
#include "report/report.h"

/* A written record, parsed for the other formats. */
struct dt__shown {
    const char *kind;
    uint64_t step; /* 0 if the record has none */
    json_t *record;
};

struct dt__tensorboard;
void dt__tensorboard_close(struct dt__tensorboard *board);
dt_status dt__tensorboard_record(struct dt__tensorboard *board, const struct dt__shown *shown);

struct dt__prometheus;
void dt__prometheus_end(struct dt__prometheus *prometheus); /* after the run's end */
void dt__prometheus_free(struct dt__prometheus *prometheus);
dt_status dt__prometheus_record(struct dt__prometheus *prometheus, const struct dt__shown *shown);

struct dt_report {
    char *path; /* of metrics.jsonl */
    int fd;
    struct dt_json record;  /* being built */
    struct dt_text waiting; /* lines that a full disk did not accept */
    dt_record_fn *listener; /* called with each record; NULL: none */
    void *listener_arg;
    struct dt__tensorboard *tensorboard; /* NULL: none */
    struct dt__prometheus *prometheus;
    bool terminal;
    double shown_at; /* clock of the last progress shown; -1: none yet */

    char *status_path, *status_made; /* status.json, and its name while it is written */
    double status_at;                /* clock of the last status, or of the opening */
    struct dt_json status_json;      /* memory that is reused, */
    struct dt_text status_text;      /* so that a status needs no allocation */
    bool status_fails;
};

void dt__run_status_remove(struct dt_report *report);

/* Writes a file under the name `made` and renames it to `path`, so that readers see it whole. Not
 * synced. DT_EIO. */
dt_status dt__report_place(const struct dt_text *text, const char *made, const char *path);

/* A message of protocol buffers being built; zeros: empty. */
struct dt__message {
    struct dt_text text;
};
/* Adds a field: an integer, a float or double, bytes, a text. */
void dt__message_int(struct dt__message *message, int field, int64_t value);
void dt__message_fixed(struct dt__message *message, int field, const void *value, size_t size);
void dt__message_bytes(struct dt__message *message, int field, const void *bytes, size_t length);
void dt__message_text(struct dt__message *message, int field, const char *text);
/* Adds another message as a field, with its failure, and empties that message. */
void dt__message_add(struct dt__message *message, int field, struct dt__message *inner);

#endif
