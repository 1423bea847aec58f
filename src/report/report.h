/* report: metrics records, progress line. Not collective; only the bank has a report. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/base.h"
#include "comm/comm.h"
#include "model/model.h"

/* ---- records -------------------------------------------------------------------------------- */

struct dt_report; /* RUN_DIR/metrics.jsonl and the progress line on stderr */

/* Opens the records for appending; cuts off a torn last line. */
dt_status dt__report_open(const char *run_dir, struct dt_report **out);
dt_status
dt__report_close(struct dt_report *report); /* DT_EIO: the records did not reach the disk */

/* Appends a line to the records of a run that no process writes; no effect without records.
 * DT_EIO. */
dt_status dt__report_append(const char *run_dir, const char *line);

/* Calls `record` with each record's line, without newline, once it is written or queued; NULL:
 * stops. */
typedef void dt_record_fn(void *arg, const char *json);
void dt__report_listen(struct dt_report *report, dt_record_fn *record, void *arg);

/* Also writes records to TensorBoard event files below RUN_DIR/tensorboard, or to a file for
 * Prometheus' node_exporter, whose name must end in .prom. A later failure gives one warning and
 * ends that format. DT_EIO; DT_EUSAGE: the name. */
dt_status dt__report_tensorboard(struct dt_report *report, const char *run_dir);
dt_status dt__report_prometheus(struct dt_report *report, const char *path, const char *run_dir);

/* Writes a JSON record: begin with its kind, add fields to the result (dt__json_int etc.); end
 * writes the line in one write(). Lines that a full disk does not accept wait for the next record
 * or the close, with one warning; earlier lines stay whole. DT_EIO: too many lines wait, or the
 * file is gone and cannot be made. */
struct dt_json *dt__record_begin(struct dt_report *report, const char *kind);
dt_status dt__record_end(struct dt_report *report);
/* Adds the fields that an evaluation has. */
void dt__json_metrics(struct dt_json *json, const struct dt_metric_values *values);
/* Writes a record made elsewhere: a JSON object in one line, without newline. */
dt_status dt__record_line(struct dt_report *report, const char *json);

/* ---- progress ------------------------------------------------------------------------------- */

/* State of training, shown as one self-updating line on a terminal (at most 5 a second), or as a
 * plain line at most every 10 seconds elsewhere. */
struct dt_progress {
    uint64_t step, last_step;
    double epoch, loss, lr, samples_per_sec, wall_secs;
    double secs_left; /* NaN: unknown */
    char best[48];    /* "  best accuracy 0.97" so far; "": no evaluation yet */
};
void dt__progress_show(struct dt_report *report, const struct dt_progress *progress, bool force);

/* ---- status --------------------------------------------------------------------------------- */

/* Returns true every two seconds; dt__run_status_write then rewrites RUN_DIR/status.json with the
 * state of each of (nranks) ranks. A failure gives one warning; dt__report_close removes the
 * file. */
bool dt__run_status_due(struct dt_report *report);
void dt__run_status_write(struct dt_report *report, const struct dt_progress *progress, int nranks,
                          const struct dt_rank_status *ranks);

/* ---- trace ---------------------------------------------------------------------------------- */

/* Phases of a rank over time; each rank has one trace. With NULL nothing is recorded. Not
 * thread-safe. */
struct dt_trace;
enum dt_phase {
    DT_PHASE_IDLE, /* not shown */
    DT_PHASE_DATA,
    DT_PHASE_COMPUTE,
    DT_PHASE_WAIT,
    DT_PHASE_REDUCE,
    DT_PHASE_EXCHANGE,
    DT_PHASE_SERVE,
    DT_PHASE_SYNC,
    DT_PHASE_EVALUATE,
    DT_PHASE_SAVE,
    DT_PHASE_LOAD
};
/* All ranks create theirs at the same time, from which times count, with the name that is shown
 * ("rank 3 worker node7"; a longer one is cut). DT_EMEMORY. */
enum { DT_TRACE_NAME = 128 };
dt_status dt__trace_create(const char *name, struct dt_trace **out);
void dt__trace_destroy(struct dt_trace *trace);
/* Records that the rank enters this phase of a step. Costs one read of the clock. */
void dt__trace_phase(struct dt_trace *trace, enum dt_phase phase, uint64_t step);
/* Returns the trace as bytes for the bank; the length is the same on each rank. */
const void *dt__trace_bytes(struct dt_trace *trace, size_t *out_length);
/* Writes the traces of all ranks, contiguous in memory, as a Chrome trace. */
dt_status dt__trace_write(const char *path, const void *traces, int ranks);

#endif
