/* Results of evaluations, and their effect on the best model and on early stopping. */
#ifndef DT_TRAIN_EVALUATION_H
#define DT_TRAIN_EVALUATION_H

#include "train/job.h"

/* The largest number of classes whose confusion matrix goes into records and messages. */
enum { DT__RECORD_CLASSES = 20 };

/* The result of an evaluation. Ranks send it as bytes, so it holds no pointers. */
struct dt_evaluation {
    uint64_t step;
    int set;     /* index in job->sets; only set 0, the held-out rows, chooses the best model */
    bool extra;  /* measured at the last step though eval.steps does not name it: does not count
                  * towards an early stop */
    double secs; /* duration */
    struct dt_metric_values values;
    uint64_t
        confusion[DT__RECORD_CLASSES * DT__RECORD_CLASSES]; /* (classes, classes): rows are true
                                                             * classes */
};

/* ---- measure.c ------------------------------------------------------------------------------ */

/* Limits the network to the rows of weights that were pulled. inputs: as in
 * dt__network_set_inputs. */
void dt__measure_inputs(struct dt_measure *measure, const struct dt_touched *inputs);
/* Lists the inputs that a chunk reads, so that their rows of weights can be pulled. */
dt_status dt__measure_list(struct dt_measure *measure, uint64_t chunk,
                           const struct dt_touched *inputs);

/* ---- judge.c -------------------------------------------------------------------------------- */

/* Returns classes^2, or 0 if results have no confusion matrix. */
size_t dt__confusion_cells(const struct dt_job *job);
/* Fills *out from metrics. start: clock at the start of the evaluation. */
void dt__evaluation_make(const struct dt_job *job, uint64_t step, struct dt_metrics *metrics,
                         double start, struct dt_evaluation *out);
/* Updates job->best: the best evaluation so far, the state of early stopping and, with
 * train.schedule=plateau, the number of times the rate has fallen. DT_EUSAGE: the model has no
 * metric eval.metric. */
dt_status dt__evaluation_judge(struct dt_job *job, const struct dt_evaluation *evaluation,
                               bool *out_better);
/* Returns the name of config's eval.metric; "metric" if the model has no such metric. */
const char *dt__metric_name(const struct dt_job *job, const struct dt_config *config);
/* Returns whether a is better than b by eval.metric. A value that is unknown, or of another metric,
 * loses to every finite one. */
bool dt__best_beats(const struct dt_job *job, const struct dt_best *a, const struct dt_best *b);
/* Returns whether eval.patience has run out. */
bool dt__stops_early(const struct dt_job *job, const struct dt_best *best);

/* ---- a dedicated evaluator ------------------------------------------------------------------ */

/* A message from the evaluator to the bank. */
struct dt_message {
    enum { DT__CLAIM, DT__RESULT, DT__LAST } kind;
    struct dt_evaluation evaluation; /* a claim has only its step */
};

struct dt_evaluator;
/* Creates the evaluator. Not collective. Close *out even after an error. */
dt_status dt__evaluator_open(struct dt_job *job, struct dt_evaluator **out);
void dt__evaluator_close(struct dt_evaluator *evaluator);
/* Evaluates checkpoints until the bank dismisses the evaluator. Returns the job's status. */
dt_status dt__evaluator_run(struct dt_evaluator *evaluator);

#endif
