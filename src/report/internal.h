#ifndef REPORT_INTERNAL_H
#define REPORT_INTERNAL_H

#include <jansson.h>

#include "base/json.h"
#include "report/report.h"

/* A record that was just written, parsed for TensorBoard and Prometheus. */
struct dt__shown {
    const char *kind;
    uint64_t step; /* 0 if the record has none */
    json_t *record;
};

struct dt__tensorboard;
void dt__tensorboard_close(struct dt__tensorboard *board);
dt_status dt__tensorboard_record(struct dt__tensorboard *board, const struct dt__shown *shown);

struct dt__prometheus;
void dt__prometheus_end(struct dt__prometheus *prometheus); /* shows that the run has ended */
void dt__prometheus_free(struct dt__prometheus *prometheus);
dt_status dt__prometheus_record(struct dt__prometheus *prometheus, const struct dt__shown *shown);

struct dt_report {
    char *path; /* metrics.jsonl */
    int fd;
    struct dt_json record;  /* being built */
    struct dt_text waiting; /* lines that a full disk did not accept */
    dt_record_fn *listener; /* receives each record; NULL: none */
    void *listener_arg;
    struct dt__tensorboard *tensorboard; /* NULL: none */
    struct dt__prometheus *prometheus;
    bool terminal;
    double shown_at; /* clock of the last progress shown; -1: none yet */

    char *status_path,
        *status_temporary;      /* status.json, and its temporary name while it is written */
    double status_at;           /* clock of the last status, at first of the opening */
    struct dt_json status_json; /* reused, so that */
    struct dt_text status_text; /* writing a status allocates nothing */
    bool status_fails;
};

void dt__run_status_remove(struct dt_report *report);

/* Writes a file under the name `temporary` and renames it to `path`, so that readers see it whole.
 * It is not synced. DT_EIO. */
dt_status dt__report_place(const struct dt_text *text, const char *temporary, const char *path);

/* A protocol buffer message that is being built; all zeros: an empty message. */
struct dt__message {
    struct dt_text text;
};
/* Add a field to a message: an integer, a number of fixed size (float or double), bytes, or a
 * text. */
void dt__message_int(struct dt__message *message, int field, int64_t value);
void dt__message_fixed(struct dt__message *message, int field, const void *value, size_t size);
void dt__message_bytes(struct dt__message *message, int field, const void *bytes, size_t length);
void dt__message_text(struct dt__message *message, int field, const char *text);
/* Adds the message `inner` as a field, passes on its failure, and frees its memory. */
void dt__message_add(struct dt__message *message, int field, struct dt__message *inner);

#endif
