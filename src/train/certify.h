/* certify: what a trained model's answers are worth, by rows that it was not trained on. At the end
 * of a run held-out rows fit its temperature and threshold, and test rows its intervals; its
 * exports keep that. No score that a run records uses a row that fitted what the score depends on:
 * held-out rows are measured before the fit, test rows after it. */
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

/* Sets what is known before any row is seen: the positive class, and the cut if eval.threshold is a
 * number.
 *
 * DT_EUSAGE: there is no such class, or there are not two classes. */
dt_status dt__certainty_begin(const struct dt_config *config, const struct dt_schema *schema,
                              struct dt_certainty *out);
/* Checks before a training that the rows allow what is asked for: that there are enough `residuals`
 * for predict.interval, and that rows of both classes choose eval.threshold. held_out: NULL: this is
 * known. DT_EMISMATCH: they do not. DT_EIO, DT_EFORMAT, DT_EMEMORY, DT_STOPPED. */
dt_status dt__certainty_check(const struct dt_config *config, const struct dt_source *held_out,
                              uint64_t residuals);
/* Prints what was fitted. of: the rows that gave the residuals. */
void dt__certainty_print(const struct dt_config *config, const struct dt_schema *schema,
                         const struct dt_certainty *certainty, const char *of);

/* Bank only. Checks the rows of a run. Errors as dt__certainty_check. */
struct dt_job;
dt_status dt__certify_check(const struct dt_job *job);
/* Bank only. Fits what the configuration asks for, by the model of this file, writes the run's
 * exports of it again, and has job->model answer so from now on. */
struct dt_bank;
dt_status dt__certify(struct dt_bank *bank, const struct dt_checkpoint *file);

#endif
