/* The old model, from whose weights the run starts (run.init), measured on the rows held out. Bank
 * only, but for dt__exports. */
#ifndef DT_TRAIN_INCUMBENT_H
#define DT_TRAIN_INCUMBENT_H

#include "train/job.h"

struct dt_incumbent {
    bool fresh; /* measured at this start: it is to be recorded */
    struct dt_metric_values values;
    char *path;
};

/* Finds job->incumbent: in the run's records, or else by measuring the old model, as it is, on the
 * rows held out. A model that cannot be measured there, as one of other columns, is an error with
 * export.best=better only: DT_EMISMATCH. DT_EIO, DT_EMEMORY, DT_STOPPED. */
dt_status dt__incumbent_find(struct dt_bank *bank, const struct dt__train_options *options);
/* Prints and records what was measured at this start. */
dt_status dt__incumbent_record(struct dt_bank *bank);
void dt__incumbent_free(struct dt_incumbent *incumbent);

/* Whether such a best model goes to export/best: any, or with export.best=better one that beats the
 * old model. Any rank. */
bool dt__exports(const struct dt_job *job, const struct dt_best *best);

#endif
