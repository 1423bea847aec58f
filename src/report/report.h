/* report: metrics records, progress line. Not collective; a report is the bank's. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/base.h"
#include "comm/comm.h"
#include "model/model.h"

/* ---- records -------------------------------------------------------------------------------- */

struct dt_report; /* RUN_DIR/metrics.jsonl and the progress line on stderr */

/* Opens for appending; a torn last line is cut off. */
dt_status dt__report_open(const char *run_dir, struct dt_report **out);
dt_status
dt__report_close(struct dt_report *report); /* DT_EIO: the records did not reach the disk */

/* One line behind the records of a run that nobody writes to; nothing where there are none.
 * DT_EIO. */
dt_status dt__report_append(const char *run_dir, const char *line);

/* Calls `record` with each record's line, without newline, once it is written, or waits; NULL: no
 * more. */
typedef void dt_record_fn(void *arg, const char *json);
void dt__report_listen(struct dt_report *report, dt_record_fn *record, void *arg);

/* Records go into TensorBoard event files below RUN_DIR/tensorboard as well, or into a file for
 * Prometheus' node_exporter, whose name must end in .prom. What fails later is warned of once, and
 * ends that format. DT_EIO; DT_EUSAGE: the name. */
dt_status dt__report_tensorboard(struct dt_report *report, const char *run_dir);
dt_status dt__report_prometheus(struct dt_report *report, const char *path, const char *run_dir);

/* One JSON record: begin with its kind, add fields to what that gives (dt__json_int and so on); end
 * writes the line in one write(). Lines that a full disk does not take wait for the next record, or
 * the close; the first one is warned of, and what was written before is whole. DT_EIO: they are too
 * many, or the file is gone and cannot be made. */
struct dt_json *dt__record_begin(struct dt_report *report, const char *kind);
dt_status dt__record_end(struct dt_report *report);
/* Adds the fields of an evaluation that apply. */
void dt__json_metrics(struct dt_json *json, const struct dt_metric_values *values);
/* A record that has been made elsewhere: a JSON object in one line, without newline. */
dt_status dt__record_line(struct dt_report *report, const char *json);

/* ---- progress ------------------------------------------------------------------------------- */

/* Training's state, shown as one self-updating line on a terminal (at most 5 a second), or as a
 * plain line at most every 10 seconds elsewhere. */
struct dt_progress {
    uint64_t step, last_step;
    double epoch, loss, lr, samples_per_sec, wall_secs;
    double secs_left; /* NaN: not known */
    char best[48];    /* "  best accuracy 0.97" so far; "": nothing was measured */
};
void dt__progress_show(struct dt_report *report, const struct dt_progress *progress, bool force);

/* ---- status --------------------------------------------------------------------------------- */

/* True every two seconds: then dt__run_status_write rewrites RUN_DIR/status.json, with what each of
 * (nranks) ranks does. A failure is warned of once; dt__report_close removes the file. */
bool dt__run_status_due(struct dt_report *report);
void dt__run_status_write(struct dt_report *report, const struct dt_progress *progress, int nranks,
                          const struct dt_rank_status *ranks);

/* ---- trace ---------------------------------------------------------------------------------- */

/* What a rank does, moment by moment; each rank has a trace of its own. Without a trace (NULL)
 * nothing is noted. Not thread-safe. */
struct dt_trace;
enum dt_phase {
    DT_PHASE_IDLE, /* nothing to be shown */
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
/* Ranks make theirs at one time, from which times count, each with the name under which it is shown
 * ("rank 3 worker node7"; what is longer is cut off). DT_EMEMORY. */
enum { DT_TRACE_NAME = 128 };
dt_status dt__trace_create(const char *name, struct dt_trace **out);
void dt__trace_destroy(struct dt_trace *trace);
/* The rank goes over to this phase, of a step. No more than a look at the clock. */
void dt__trace_phase(struct dt_trace *trace, enum dt_phase phase, uint64_t step);
/* All that was noted, to be brought to the bank as bytes; of as many bytes at each rank. */
const void *dt__trace_bytes(struct dt_trace *trace, size_t *out_length);
/* Writes the traces of all ranks, one behind the other, as a Chrome trace. */
dt_status dt__trace_write(const char *path, const void *traces, int ranks);

#endif
