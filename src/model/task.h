/* task: what the outputs of a network mean; loss: the quantity that training minimises. Each is a
 * row of a table in task.c. */
#ifndef MODEL_TASK_H
#define MODEL_TASK_H

#include "model/emitter.h"

/* One row of a classification, for metrics that sums over chunks cannot yield. The struct is small,
 * because the bank keeps one for every row. score: the logit (two classes), or the chosen class. */
struct dt__scored {
    float score, weight;
    int32_t label; /* -1: a class that training never saw */
};

/* Argument of `values`: the totals over all chunks. */
struct dt__summed {
    int nout; /* number of targets, or of outputs for classes */
    const struct dt_outputs *outputs;
    double weight; /* total weight of the rows */
    const double *sums;
    struct dt__scored *scored; /* (n); may be sorted in place */
    size_t n;
    bool unsorted;      /* auc and average_precision, which need sorted rows, were not requested */
    double *class_sums; /* (1 + classes, 3) scratch memory */
};

enum { DT__OUTPUTS = -1, DT__TOP = 5 /* top5 needs more classes than this */ };

struct dt__task {
    int task;       /* enum dt_task; the row is for networks of this task ... */
    bool one_logit; /* ... and with a single output */
    const char *name;
    const char *answer; /* the name of the predictions: "values" */
    int classes;        /* 0: the task predicts values; DT__OUTPUTS: one class per output */
    void (*predict)(int rows, const struct dt_outputs *outputs, const float *logits, float *out);
    int (*choose)(const struct dt_outputs *outputs, const float *logits); /* returns the predicted
                                                                           * class */
    void (*emit)(struct dt__emitter *e, const char *x); /* emits the predictions from outputs x */
    /* Implement dt__model_to_mean and dt__model_from_mean; the emit_ functions emit the same as
     * nodes. */
    void (*to_mean)(int rows, const struct dt_outputs *outputs, const float *logits, float *out);
    void (*from_mean)(int rows, const struct dt_outputs *outputs, const float *mean, float *out);
    const char *(*emit_to_mean)(struct dt__emitter *e, const char *x);
    const char *(*emit_from_mean)(struct dt__emitter *e, const char *x);

    /* Layout of a chunk's sums, after those that all tasks have (metrics.c): `fixed` doubles, then
     * `each` doubles per target; these are added over chunks. Then, if `scores`, come arrays of
     * score, label and weight, DT_EVAL_CHUNK doubles each. A negative label is a class that
     * training never saw: the row counts as wrong whatever is predicted, and has no loss. */
    struct {
        size_t fixed, each;
    } added;
    bool scores;
    /* Adds a chunk to its sums, which are 0 before. confusion may be NULL. */
    void (*measure)(const struct dt_outputs *outputs, const float *logits,
                    const struct dt_batch *batch, double *sums, uint64_t *confusion);
    void (*values)(const struct dt__summed *summed, struct dt_metric_values *out);
    /* Computes the scores of target number `target` from the total weight and sums. NULL: targets
     * have no separate scores. */
    struct dt_target_score (*score)(int nout, double weight, const double *sums, int target);
    unsigned metrics; /* bit set of enum dt_metric: metrics of the task besides the loss */
};

struct dt__loss {
    const struct dt__task *task;
    int loss; /* enum dt_loss */
    /* Returns the sum of the rows' losses from logits (rows, nout). gradient: the memory of logits,
     * overwritten with the gradient of the sum; NULL: only the sum is computed. */
    double (*sum)(const struct dt_outputs *outputs, const struct dt_batch *batch,
                  const float *logits, float *gradient);
    /* Writes the baseline: the outputs (count), equal for all rows, that have the least loss. */
    void (*constant)(const struct dt_outputs *outputs, const struct dt_batch *batch, float *z);
    int usual; /* the metric that eval.metric=auto means */
    int link;  /* enum dt_link */
    struct dt_targets targets;
};

/* Parses the numbers of train.quantiles. DT_EUSAGE: the text is malformed. */
dt_status dt__quantiles_parse(const char *text, float out[DT_MAX_QUANTILES], int *out_count);

/* Returns true if the output layer may be split, so that workers have only parts of the outputs
 * (dt__softmax_part). */
bool dt__loss_splits(const struct dt__loss *loss);
/* Finds the loss of networks with `nout` outputs. NULL: there is none. */
const struct dt__loss *dt__loss_find(int task, int loss, int nout);

#endif
