/* history: reads the records in a run directory, during the run or afterwards. Not collective;
 * needs no MPI. */
#ifndef DTRAIN_HISTORY_H
#define DTRAIN_HISTORY_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of records. A record has the fields of its line in metrics.jsonl: "step", "loss",
 * "accuracy", ... */
enum dt_record_kind {
    DT_RECORD_START,
    DT_RECORD_CHANGE, /* what a resume changed */
    DT_RECORD_TRAIN,  /* keeps step, epoch, samples, loss, lr, samples_per_sec, wall_secs */
    DT_RECORD_EVAL,
    DT_RECORD_CHECKPOINT,
    DT_RECORD_FINAL,
    DT_RECORD_STATUS, /* contents of status.json, rewritten every few seconds: at most one */
    DT_RECORD_RANK,   /* a rank in status.json */
    DT_RECORD_SET,    /* an evaluation of a set of eval.also; "set" is its name */
    DT_RECORD_KINDS
};

struct dt_history;

/* Reads a run directory. Of several records with the same kind and step the last one counts. When a
 * run was resumed from an earlier step, its records after that step are dropped, as is an
 * incomplete last line.
 * DT_EIO: there is no metrics.jsonl, or it cannot be read. DT_EFORMAT: it is not a plain file, or a
 * line is too long. DT_EMEMORY. */
dt_status dt_history_read(const char *run_dir, struct dt_history **out);
/* Reads what the run has recorded since the last read. Indices of records may change. After an
 * error the history can only be freed. Errors are those of dt_history_read. */
dt_status dt_history_update(struct dt_history *history);
void dt_history_free(struct dt_history *history); /* NULL is fine */

/* Returns the run's status: "completed", "stopped", "early_stopped", "running", or "interrupted" if
 * it ended without a final record. */
const char *dt_history_status(const struct dt_history *history);
/* Returns the number of records of a kind. Starts and changes are in the order of the file, other
 * records in ascending order of steps. */
size_t dt_history_count(const struct dt_history *history, enum dt_record_kind kind);
/* Return the field `key` of record `index` (from 0): a number, NaN if there is none; a text, NULL
 * if there is none. The text is valid until the next update. */
double dt_history_real(const struct dt_history *history, enum dt_record_kind kind, size_t index,
                       const char *key);
const char *dt_history_text(const struct dt_history *history, enum dt_record_kind kind,
                            size_t index, const char *key);
/* Returns the number `key` of the last record of a kind; NaN if there is none. */
double dt_history_last(const struct dt_history *history, enum dt_record_kind kind, const char *key);
/* Finds the best evaluation by eval.metric, as export/best does: its index among the records of
 * DT_RECORD_EVAL and its value. Returns false if there is none. */
bool dt_history_best(const struct dt_history *history, size_t *out_index, double *out_value);
/* Returns the value of a key, such as "train.lr", in the run's config.ini; NULL if it is not
 * there. */
const char *dt_history_option(const struct dt_history *history, const char *name);

#ifdef __cplusplus
}
#endif

#endif
