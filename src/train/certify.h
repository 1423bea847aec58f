/* certify: measures how certain a trained model's answers are, on rows that it was not trained on.
 * At the end of a run its temperature and threshold are fitted to the held-out rows, and its
 * intervals to the test rows; the exports contain the result. No recorded score depends on what was
 * fitted to the rows that the score measures: held-out rows are measured before the fit; test rows
 * after it, but only intervals are fitted to them. */
#ifndef DT_TRAIN_CERTIFY_H
#define DT_TRAIN_CERTIFY_H

#include "comm/comm.h"
#include "data/data.h"
#include "model/certainty.h"
#include "state/state.h"

/* Reads the rows that an evaluation measures, and computes their outputs. DT_EIO, DT_EFORMAT,
 * DT_EMEMORY, DT_STOPPED. */
dt_status dt__judged_read(const struct dt_config *config, struct dt_world *world,
                          const struct dt_source *source, const struct dt_model *model,
                          const float *params, struct dt_judged *out);

/* Sets what is known before any row is read: the positive class, and the cut if eval.threshold is a
 * number.
 *
 * DT_EUSAGE: the positive class does not exist, or the data does not have two classes. */
dt_status dt__certainty_begin(const struct dt_config *config, const struct dt_schema *schema,
                              struct dt_certainty *out);
/* Checks before training that the rows suffice: that predict.interval has enough `residuals`, and
 * that the held-out rows from which eval.threshold is chosen have both classes. held_out NULL:
 * skips the second check. DT_EMISMATCH: they do not suffice. DT_EIO, DT_EFORMAT, DT_EMEMORY,
 * DT_STOPPED. */
dt_status dt__certainty_check(const struct dt_config *config, const struct dt_source *held_out,
                              uint64_t residuals);
/* Prints what was fitted. of: describes the rows that gave the residuals. */
void dt__certainty_print(const struct dt_config *config, const struct dt_schema *schema,
                         const struct dt_certainty *certainty, const char *of);

/* Bank only. Runs dt__certainty_check on the rows of a run, with its errors. */
struct dt_job;
dt_status dt__certify_check(const struct dt_job *job);
/* Bank only. Fits what the configuration asks for to the model in *file, writes the run's exports
 * of that model again with the result, and sets it in job->model. */
struct dt_bank;
dt_status dt__certify(struct dt_bank *bank, const struct dt_checkpoint *file);

#endif
