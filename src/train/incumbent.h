/* The incumbent: the old model that run.init names, measured on the held-out rows. Bank only,
 * except dt__exports. */
#ifndef DT_TRAIN_INCUMBENT_H
#define DT_TRAIN_INCUMBENT_H

#include "train/job.h"

struct dt_incumbent {
    bool fresh; /* measured at this start and not yet recorded */
    struct dt_metric_values values;
    char *path;
};

/* Fills job->incumbent from the run's records or, if they have no value, by measuring the old model
 * with its own schema on the held-out rows. If the old model cannot be measured, for example
 * because it needs other columns, that is an error only with export.best=better. DT_EMISMATCH,
 * DT_EIO, DT_EMEMORY, DT_STOPPED. */
dt_status dt__incumbent_find(struct dt_bank *bank, const struct dt__train_options *options);
/* Prints and records the incumbent's metrics if they were measured at this start. */
dt_status dt__incumbent_record(struct dt_bank *bank);
void dt__incumbent_free(struct dt_incumbent *incumbent);

/* Returns whether `best` is exported: always with export.best=yes, never with no, and with better
 * if it beats the incumbent. Any rank. */
bool dt__exports(const struct dt_job *job, const struct dt_best *best);

#endif
