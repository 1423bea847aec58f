/* history: what a run directory records of its run, while the run goes on or afterwards. Not
 * collective; needs no MPI. */
#ifndef DTRAIN_HISTORY_H
#define DTRAIN_HISTORY_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A record has the fields of its line in metrics.jsonl: "step", "loss", "accuracy", ... */
enum dt_record_kind {
    DT_RECORD_START,
    DT_RECORD_CHANGE, /* what a resume changed */
    DT_RECORD_TRAIN,  /* of its fields: epoch, samples, loss, lr, samples_per_sec, wall_secs */
    DT_RECORD_EVAL,
    DT_RECORD_CHECKPOINT,
    DT_RECORD_FINAL,
    DT_RECORD_STATUS, /* status.json, which a run rewrites every few seconds: at most one */
    DT_RECORD_RANK,   /* the ranks that status.json lists */
    DT_RECORD_SET,    /* an evaluation of a set of eval.also, which "set" names */
    DT_RECORD_KINDS
};

struct dt_history;

/* Reads a run directory. Keeps the last of the records with the same kind and step. Drops records
 * past the step from which a later start went on, and an incomplete last line.
 * DT_EIO: there is no metrics.jsonl, or it cannot be read. DT_EFORMAT: not a plain file, or a line
 * is too long. DT_EMEMORY. */
dt_status dt_history_read(const char *run_dir, struct dt_history **out);
/* Reads what the run has recorded since the last read. Indices of records may change. After an
 * error the history can only be freed. Errors as dt_history_read. */
dt_status dt_history_update(struct dt_history *history);
void dt_history_free(struct dt_history *history); /* NULL is fine */

/* Returns "completed", "stopped", "early_stopped", "running", or "interrupted" (it ended without a
 * final record). */
const char *dt_history_status(const struct dt_history *history);
/* Returns the number of records of a kind: starts and changes in the order of the file, others by
 * rising step. */
size_t dt_history_count(const struct dt_history *history, enum dt_record_kind kind);
/* Return a field of record `index`, from 0: a number or NaN, a text or NULL. The text is valid
 * until the next update. */
double dt_history_real(const struct dt_history *history, enum dt_record_kind kind, size_t index,
                       const char *key);
const char *dt_history_text(const struct dt_history *history, enum dt_record_kind kind,
                            size_t index, const char *key);
/* Returns a number of the last record of a kind; NaN: there is none. */
double dt_history_last(const struct dt_history *history, enum dt_record_kind kind, const char *key);
/* Finds the best evaluation by eval.metric, as export/best does: its index among DT_RECORD_EVAL and
 * its value. false: there is none. */
bool dt_history_best(const struct dt_history *history, size_t *out_index, double *out_value);
/* Returns the value of a key in the run's config.ini ("train.lr"); NULL: not there. */
const char *dt_history_option(const struct dt_history *history, const char *name);

#ifdef __cplusplus
}
#endif

#endif
