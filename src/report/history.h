/* history: what a run directory says about its run, for `dtrain compare`, `top` and `report`. Reads
 * config.ini, metrics.jsonl, status.json and the lock; needs neither MPI nor the run's data, and
 * works while the run continues. Not collective. */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include <jansson.h>

#include "base/base.h"
#include "dtrain/history.h"

/* For reading; all members but `dir` and `name` may change with an update. */
struct dt_history {
    char *dir;
    const char *name; /* last component of dir */
    /* "completed", "stopped", "early_stopped" (the final record), "running", or "interrupted": it
     * ended without a final record. Whether a run of another host continues is guessed from the age
     * of its files. */
    const char *status;
    bool ended; /* the last start has its final record */

    /* The metric that decides the best model (eval.metric; "accuracy" or "rmse" for auto); "loss"
     * if nothing was evaluated. best: number of the first of the best evaluations. */
    const char *metric;
    bool more_is_better;
    bool has_best;
    size_t best;

    /* Internal. */
    struct dt_history_records {
        struct dt_history_item *items;
        size_t count, capacity;
    } records[DT_RECORD_KINDS];
    struct json_t *options; /* of config.ini, in its order: texts by keys */
    /* the part of metrics.jsonl that has been read: whole lines, of this file (inode), whose first
     * bytes have this checksum */
    uint64_t read, file;
    uint32_t head;
};

/* Returns true if the records of a run directory say that the run ended at this step, and was not
 * stopped. */
bool dt__history_has_ended(const char *run_dir, uint64_t step);

/* Returns record `index` of a kind, owned by the history; NULL: none, or one of training. Confusion
 * matrices are kept for the last and the best evaluation only. */
json_t *dt__history_record(const struct dt_history *history, enum dt_record_kind kind,
                           size_t index);

#endif
