/* report: records, the progress line, the status file and traces. Not collective; except for
 * traces, only the bank uses it. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/base.h"
#include "comm/comm.h"
#include "model/model.h"

/* ---- records -------------------------------------------------------------------------------- */

struct dt_report; /* writes RUN_DIR/metrics.jsonl, and the progress line to stderr */

/* Opens the records for appending, after removing an incomplete last line. */
dt_status dt__report_open(const char *run_dir, struct dt_report **out);
dt_status
dt__report_close(struct dt_report *report); /* DT_EIO: the records did not reach the disk */

/* Appends a line to the records of a run that is not being written. Does nothing if there are no
 * records. DT_EIO. */
dt_status dt__report_append(const char *run_dir, const char *line);

/* Calls `record` with each record, a line without newline, after it has been written or queued.
 * NULL ends the calls. */
typedef void dt_record_fn(void *arg, const char *json);
void dt__report_listen(struct dt_report *report, dt_record_fn *record, void *arg);

/* Also write the records to TensorBoard event files below RUN_DIR/tensorboard, or as gauges to a
 * file for Prometheus' node_exporter, whose name must end in .prom. If writing fails later, one
 * warning is printed and that format gets no more records. DT_EIO. DT_EUSAGE: the name. */
dt_status dt__report_tensorboard(struct dt_report *report, const char *run_dir);
dt_status dt__report_prometheus(struct dt_report *report, const char *path, const char *run_dir);

/* Write a JSON record: dt__record_begin starts a record of a kind, the caller adds fields to the
 * result (dt__json_int etc.), and dt__record_end writes the line with one write(). Lines that a
 * full disk does not accept wait, with one warning, until the next record or the close; the file
 * never keeps an incomplete line. DT_EIO: too many lines wait, or the file is gone and cannot be
 * made again. */
struct dt_json *dt__record_begin(struct dt_report *report, const char *kind);
dt_status dt__record_end(struct dt_report *report);
/* Adds the fields of an evaluation. */
void dt__json_metrics(struct dt_json *json, const struct dt_metric_values *values);
/* Writes a complete record: a JSON object in one line, without newline. */
dt_status dt__record_line(struct dt_report *report, const char *json);

/* ---- progress ------------------------------------------------------------------------------- */

/* The state of training, shown on a terminal as one line that is updated at most 5 times a second,
 * elsewhere as a new line at most every 10 seconds. */
struct dt_progress {
    uint64_t step, last_step;
    double epoch, loss, lr, samples_per_sec, wall_secs;
    double secs_left; /* NaN: unknown */
    char best[48];    /* such as "  best accuracy 0.97"; "": no evaluation yet */
};
void dt__progress_show(struct dt_report *report, const struct dt_progress *progress, bool force);

/* ---- status --------------------------------------------------------------------------------- */

/* dt__run_status_due returns true every two seconds. dt__run_status_write then rewrites
 * RUN_DIR/status.json with the progress and the state of each of the `nranks` ranks. If that fails,
 * it warns once and writes no more. dt__report_close removes the file. */
bool dt__run_status_due(struct dt_report *report);
void dt__run_status_write(struct dt_report *report, const struct dt_progress *progress, int nranks,
                          const struct dt_rank_status *ranks);

/* ---- trace ---------------------------------------------------------------------------------- */

/* The phases of one rank over time. dt__trace_phase accepts NULL and then records nothing. Not
 * thread-safe. */
struct dt_trace;
enum dt_phase {
    DT_PHASE_IDLE, /* not shown in the trace */
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
/* Makes the trace of a rank, whose times count from now: all ranks must call it at the same time.
 * `name` is what the viewer shows, such as "rank 3 worker node7"; a longer name is cut.
 * DT_EMEMORY. */
enum { DT_TRACE_NAME = 128 };
dt_status dt__trace_create(const char *name, struct dt_trace **out);
void dt__trace_destroy(struct dt_trace *trace);
/* Records that the rank enters a phase of a step. Costs one reading of the clock. */
void dt__trace_phase(struct dt_trace *trace, enum dt_phase phase, uint64_t step);
/* Ends the open phase and returns the trace as bytes to send to the bank. The length is the same on
 * every rank. */
const void *dt__trace_bytes(struct dt_trace *trace, size_t *out_length);
/* Writes the traces of all ranks, which are contiguous in memory, as a Chrome trace. */
dt_status dt__trace_write(const char *path, const void *traces, int ranks);

#endif
