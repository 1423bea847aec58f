/* The old model, whose weights the run starts from (run.init), measured on the held-out rows. Bank
 * only, except dt__exports. */
#ifndef DT_TRAIN_INCUMBENT_H
#define DT_TRAIN_INCUMBENT_H

#include "train/job.h"

struct dt_incumbent {
    bool fresh; /* measured at this start and not yet recorded */
    struct dt_metric_values values;
    char *path;
};

/* Fills job->incumbent from the run's records or, if these do not have it, by measuring the old
 * model with its own schema on the held-out rows. A model that cannot be measured, for example
 * because it needs other columns, is an error only with export.best=better. DT_EMISMATCH, DT_EIO,
 * DT_EMEMORY, DT_STOPPED. */
dt_status dt__incumbent_find(struct dt_bank *bank, const struct dt__train_options *options);
/* Prints and records what was measured at this start. */
dt_status dt__incumbent_record(struct dt_bank *bank);
void dt__incumbent_free(struct dt_incumbent *incumbent);

/* Returns whether a best model is exported: always with export.best=yes; with better if it beats
 * the old model. Any rank. */
bool dt__exports(const struct dt_job *job, const struct dt_best *best);

#endif
