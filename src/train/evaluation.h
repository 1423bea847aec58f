/* Results of evaluations, and their effect on the best model and on early stopping. */
#ifndef DT_TRAIN_EVALUATION_H
#define DT_TRAIN_EVALUATION_H

#include "train/job.h"

/* Most classes whose confusion matrix goes into records and messages. */
enum { DT__RECORD_CLASSES = 20 };

/* The result of an evaluation. Plain data: it travels as bytes. */
struct dt_evaluation {
    uint64_t step;
    int set;     /* of the job; 0: the rows held out, which alone choose */
    bool extra;  /* of the last step, not due by eval.steps: does not count towards an early stop */
    double secs; /* duration */
    struct dt_metric_values values;
    uint64_t
        confusion[DT__RECORD_CLASSES * DT__RECORD_CLASSES]; /* (classes, classes), true major */
};

/* ---- measure.c ------------------------------------------------------------------------------ */

/* Makes the network read only the rows of weights that were pulled. inputs: as in
 * dt__network_set_inputs. */
void dt__measure_inputs(struct dt_measure *measure, const struct dt_touched *inputs);
/* Lists the inputs that a chunk reads, whose rows must be pulled. */
dt_status dt__measure_list(struct dt_measure *measure, uint64_t chunk,
                           const struct dt_touched *inputs);

/* ---- judge.c -------------------------------------------------------------------------------- */

/* classes^2, or 0 if results have no confusion matrix. */
size_t dt__confusion_cells(const struct dt_job *job);
/* Fills *out with the metrics. start: clock at the start of the evaluation. */
void dt__evaluation_make(const struct dt_job *job, uint64_t step, struct dt_metrics *metrics,
                         double start, struct dt_evaluation *out);
/* Updates job->best: the best so far, the state of early stopping and, with
 * train.schedule=plateau, the number of times the rate has fallen. DT_EUSAGE: eval.metric does
 * not exist for this model. */
dt_status dt__evaluation_judge(struct dt_job *job, const struct dt_evaluation *evaluation,
                               bool *out_better);
/* Returns the name of eval.metric; "metric": the model has no such metric. */
const char *dt__metric_name(const struct dt_job *job, const struct dt_config *config);
/* Returns whether a is better than b by eval.metric. An unknown value, or one of another metric,
 * is the worst. */
bool dt__best_beats(const struct dt_job *job, const struct dt_best *a, const struct dt_best *b);
/* Returns whether eval.patience has run out. */
bool dt__stops_early(const struct dt_job *job, const struct dt_best *best);

/* ---- a dedicated evaluator ------------------------------------------------------------------ */

/* Evaluator to bank. */
struct dt_message {
    enum { DT__CLAIM, DT__RESULT, DT__LAST } kind;
    struct dt_evaluation evaluation; /* a claim has only its step */
};

struct dt_evaluator;
/* Not collective. Close it in any case. */
dt_status dt__evaluator_open(struct dt_job *job, struct dt_evaluator **out);
void dt__evaluator_close(struct dt_evaluator *evaluator);
/* Evaluates checkpoints until the bank dismisses the evaluator. Returns the job's status. */
dt_status dt__evaluator_run(struct dt_evaluator *evaluator);

#endif
