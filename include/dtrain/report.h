/* report: JSON lines, metrics records, progress line. Not collective; a report is the bank's. */
#ifndef DTRAIN_REPORT_H
#define DTRAIN_REPORT_H

#include "dtrain/base.h"
#include "dtrain/model.h"

/* ---- JSON ----------------------------------------------------------------------------------- */

/* One JSON object in one line, built field by field; start from zeros. The first failure is kept, and
 * is what dt_json_end returns. Numbers are the shortest that read back; NaN and infinity are null.
 * Strings are escaped; in one that is not UTF-8, bytes beyond ASCII become '?'. */
struct dt_json {
    struct dt_text text;
    dt_status status;
};
void dt_json_begin(struct dt_json *json); /* a new object in the memory of the one before */
void dt_json_int(struct dt_json *json, const char *key, int64_t value);
void dt_json_real(struct dt_json *json, const char *key, double value);
void dt_json_float(struct dt_json *json, const char *key, float value); /* as dt_json_floats */
void dt_json_text(struct dt_json *json, const char *key, const char *value);
void dt_json_counts(struct dt_json *json, const char *key, const uint64_t *values, size_t n);
void dt_json_floats(struct dt_json *json, const char *key, const float *values, size_t n);
/* The fields of an evaluation that apply. */
void dt_json_metrics(struct dt_json *json, const struct dt_metric_values *values);
/* (classes, classes) counts, row by row. */
void dt_json_confusion(struct dt_json *json, const uint64_t *confusion, int classes);
/* Ends the object: the line is json->text.data, without newline. */
dt_status dt_json_end(struct dt_json *json);
void dt_json_free(struct dt_json *json);

/* ---- records -------------------------------------------------------------------------------- */

struct dt_report; /* RUN_DIR/metrics.jsonl and the progress line on stderr */

/* Opens for appending; a torn last line is cut off. total_steps: for the time left. */
dt_status dt_report_open(const char *run_dir, uint64_t total_steps, struct dt_report **out);
/* Whether the last record of a run directory is the final one, at this step, of a run that was not
 * stopped. */
bool dt_report_has_ended(const char *run_dir, uint64_t step);
dt_status
dt_report_close(struct dt_report *report); /* DT_EIO: the records did not reach the disk */

/* One JSON record: begin with its kind, add fields, end writes the line in one write().
 * DT_EIO: the disk is full or the like; what was written before is whole. */
void dt_record_begin(struct dt_report *report, const char *kind);
void dt_record_int(struct dt_report *report, const char *key, int64_t value);
void dt_record_real(struct dt_report *report, const char *key,
                    double value); /* shortest round trip */
void dt_record_text(struct dt_report *report, const char *key, const char *value);
void dt_record_counts(struct dt_report *report, const char *key, const uint64_t *values, size_t n);
dt_status dt_record_end(struct dt_report *report);
void dt_record_metrics(struct dt_report *report, const struct dt_metric_values *values);
void dt_record_confusion(struct dt_report *report, const uint64_t *confusion, int classes);

/* ---- progress ------------------------------------------------------------------------------- */

/* Training's state, shown as one self-updating line on a terminal (at most 5 a second), or as a
 * plain line at most every 10 seconds elsewhere. */
struct dt_progress {
    uint64_t step;
    double epoch, loss, samples_per_sec;
    double secs_left; /* NaN: not known */
};
void dt_progress_show(struct dt_report *report, const struct dt_progress *progress, bool force);
/* A line of its own on stderr, above the progress line. */
void dt_report_say(struct dt_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Metrics as one JSON object without newline, for `dtrain eval`; caller frees. */
dt_status dt_metrics_json(const struct dt_metric_values *values, const uint64_t *confusion,
                          int classes, uint64_t step, char **out);

#endif
