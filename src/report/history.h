/* history: the records of a run directory, for `dtrain compare`, `top` and `report`. Reads
 * config.ini, metrics.jsonl, status.json and the lock. Needs neither MPI nor the run's data, and
 * works while the run continues. Not collective. */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include <jansson.h>

#include "base/base.h"
#include "dtrain/history.h"

/* Read-only for callers. An update may change all members except `dir` and `name`. */
struct dt_history {
    char *dir;
    const char *name; /* last component of dir */
    /* Status of the final record ("completed", "stopped", "early_stopped"), or "running", or
     * "interrupted" if the run ended without a final record. Whether a run on another host
     * continues is guessed from the age of its files. */
    const char *status;
    bool ended; /* the last start has its final record */

    /* The metric that decides which model is best: eval.metric, for `auto` "accuracy" or "rmse",
     * and "loss" if nothing was evaluated. best: index of the best evaluation, the first one among
     * equals. */
    const char *metric;
    bool more_is_better;
    bool has_best;
    size_t best;

    /* Internal. */
    struct dt_history_records {
        struct dt_history_item *items;
        size_t count, capacity;
    } records[DT_RECORD_KINDS];
    struct json_t *options; /* config.ini, in its order: each key with its value as a text */
    /* The part of metrics.jsonl that has been read: its length (whole lines only), the file's
     * inode, and the checksum of its first bytes. */
    uint64_t read, file;
    uint32_t head;
};

/* Returns true if the records say that the run ended at this step and was not stopped on
 * request. */
bool dt__history_has_ended(const char *run_dir, uint64_t step);

/* Returns record `index` of a kind, owned by the history; NULL if there is none, and for training
 * records. Only the best and the last evaluation have their confusion matrix. */
json_t *dt__history_record(const struct dt_history *history, enum dt_record_kind kind,
                           size_t index);

#endif
