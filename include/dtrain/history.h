/* history: what a run directory tells of its run, for the eyes of others: `dtrain compare`, `top`
 * and `report`. Reads config.ini, metrics.jsonl, status.json and the lock; needs neither MPI nor
 * the run's data, and works while the run is going on. Not collective. */
#ifndef DTRAIN_HISTORY_H
#define DTRAIN_HISTORY_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dt_record_kind {
    DT_RECORD_START,
    DT_RECORD_CHANGE, /* what a resume changed */
    DT_RECORD_TRAIN,  /* epoch, samples, loss, lr, samples_per_sec, wall_secs: no more is kept */
    DT_RECORD_EVAL,
    DT_RECORD_CHECKPOINT,
    DT_RECORD_FINAL,
    /* status.json, which a run rewrites every few seconds until it ends: itself (one, or none), and
     * its ranks. */
    DT_RECORD_STATUS,
    DT_RECORD_RANK,
    DT_RECORD_KINDS
};

/* To read; all but `dir` and `name` may change with an update. */
struct dt_history {
    char *dir;
    const char *name; /* last part of dir */
    /* "completed", "stopped", "early_stopped" (the final record), "running", or "interrupted": it
     * ended without a final record. Whether a run of another host still goes on is told by how old
     * its files are. */
    const char *status;
    bool ended; /* the last start has its final record */

    /* What makes a model the best (eval.metric; "accuracy" or "rmse" for auto); "loss" if nothing
     * was evaluated. best: the number of the first of the best evaluations. */
    const char *metric;
    bool more_is_better;
    bool has_best;
    size_t best;

    /* The library's own. */
    struct dt_history_records {
        struct dt_history_item *items;
        size_t count, capacity;
    } records[DT_RECORD_KINDS];
    struct json_t *options; /* of config.ini, in its order: texts by keys */
    /* what of metrics.jsonl has been read: whole lines, of this file (inode), which begin with
     * bytes of this checksum */
    uint64_t read, file;
    uint32_t head;
};

/* Reads a run directory. Of records with the same kind and step the last counts; what was recorded
 * beyond the step of a later start is of a branch that was given up; a torn line is passed over, as
 * is a last one without its end.
 * DT_EIO: there is no metrics.jsonl, or it cannot be read. DT_EFORMAT: it is no plain file, or a
 * line is longer than any record. DT_EMEMORY. */
dt_status dt_history_read(const char *run_dir, struct dt_history **out);
/* Reads what has been recorded since; a file that was replaced or cut is read anew. Record numbers
 * may then be other ones. After an error: to be freed. As dt_history_read. */
dt_status dt_history_update(struct dt_history *history);
void dt_history_free(struct dt_history *history); /* NULL is fine */
/* Whether the records of a run directory tell of a run that has ended at this step, and was not
 * stopped. */
bool dt_history_has_ended(const char *run_dir, uint64_t step);

/* How many records there are of a kind: starts and changes in their order, those of training,
 * evaluations, checkpoints and finals by rising step. */
size_t dt_history_count(const struct dt_history *history, enum dt_record_kind kind);
/* A field of record `index`; NaN or NULL: it has none of that type. */
double dt_history_real(const struct dt_history *history, enum dt_record_kind kind, size_t index,
                       const char *key);
const char *dt_history_text(const struct dt_history *history, enum dt_record_kind kind,
                            size_t index, const char *key);
/* A number of the newest record of a kind; NaN: there is none. */
double dt_history_last(const struct dt_history *history, enum dt_record_kind kind, const char *key);
/* The first of the best evaluations; false: there is none. */
bool dt_history_best(const struct dt_history *history, size_t *out_index, double *out_value);
/* The value of a key of config.ini ("train.lr"); NULL: not there. */
const char *dt_history_option(const struct dt_history *history, const char *name);

#ifdef __cplusplus
}
#endif

#endif
