/* history: what a run directory tells of its run, for the eyes of others: `dtrain compare`, `top`
 * and `report`. Reads config.ini, metrics.jsonl, status.json and the lock; needs neither MPI nor
 * the run's data, and works while the run is going on. Not collective. */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include <jansson.h>

#include "base/base.h"
#include "dtrain/history.h"

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

/* Whether the records of a run directory tell of a run that has ended at this step, and was not
 * stopped. */
bool dt__history_has_ended(const char *run_dir, uint64_t step);

/* Record `index` of a kind, which stays the history's; NULL: none, or one of training. Confusion
 * matrices are kept for the last and the best evaluation only. */
json_t *dt__history_record(const struct dt_history *history, enum dt_record_kind kind,
                           size_t index);

#endif
