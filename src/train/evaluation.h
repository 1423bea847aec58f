/* What an evaluation found, and what it means for the best model and for early stopping. */
#ifndef DT_TRAIN_EVALUATION_H
#define DT_TRAIN_EVALUATION_H

#include "train/job.h"

/* Confusion matrices of so many classes at most go into records and messages. */
enum { DT__RECORD_CLASSES = 20 };

/* An evaluation's result. Plain, so that it travels as bytes. */
struct dt_evaluation {
    uint64_t step;
    int set;     /* of the job; 0: the rows held out, which alone choose */
    bool extra;  /* of the last step, out of turn: no step towards an early stop */
    double secs; /* that it took */
    struct dt_metric_values values;
    uint64_t
        confusion[DT__RECORD_CLASSES * DT__RECORD_CLASSES]; /* (classes, classes), true major */
};

/* ---- measure.c ------------------------------------------------------------------------------ */

/* Makes the network read only the rows of weights that were pulled; `inputs`: as for
 * dt__network_set_inputs. */
void dt__measure_inputs(struct dt_measure *measure, const struct dt_touched *inputs);
/* Lists the inputs that a chunk reads, whose rows are to be pulled. */
dt_status dt__measure_list(struct dt_measure *measure, uint64_t chunk,
                           const struct dt_touched *inputs);

/* ---- judge.c -------------------------------------------------------------------------------- */

/* classes^2, or 0 if results have no confusion matrix. */
size_t dt__confusion_cells(const struct dt_job *job);
/* start: clock at the evaluation's start. */
void dt__evaluation_make(const struct dt_job *job, uint64_t step, struct dt_metrics *metrics,
                         double start, struct dt_evaluation *out);
/* Updates job->best: the best so far, the state of early stopping, and with train.schedule=plateau
 * how often the rate has fallen.
 * DT_EUSAGE: eval.metric does not exist for this model. */
dt_status dt__evaluation_judge(struct dt_job *job, const struct dt_evaluation *evaluation,
                               bool *out_better);
/* What eval.metric of a configuration comes to; "metric": the model has no such metric. */
const char *dt__metric_name(const struct dt_job *job, const struct dt_config *config);
/* Whether a is better than b, both by eval.metric; the unknown, and what was measured otherwise, is
 * worse than all. */
bool dt__best_beats(const struct dt_job *job, const struct dt_best *a, const struct dt_best *b);
/* Whether eval.patience is at its end. */
bool dt__stops_early(const struct dt_job *job, const struct dt_best *best);

/* ---- a dedicated evaluator ------------------------------------------------------------------ */

/* Evaluator to bank. */
struct dt_message {
    enum { DT__CLAIM, DT__RESULT, DT__LAST } kind;
    struct dt_evaluation evaluation; /* of claim: its step alone */
};

struct dt_evaluator;
/* Not collective. Close it in any case. */
dt_status dt__evaluator_open(struct dt_job *job, struct dt_evaluator **out);
void dt__evaluator_close(struct dt_evaluator *evaluator);
/* Works until the bank dismisses it. Returns the job's status. */
dt_status dt__evaluator_run(struct dt_evaluator *evaluator);

#endif
