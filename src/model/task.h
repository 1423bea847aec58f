/* task: the meaning of the outputs of a network; loss: the quantity that training minimises. A new
 * one is a row in task.c. */
#ifndef MODEL_TASK_H
#define MODEL_TASK_H

#include "model/emitter.h"

/* One row of a classification, for metrics that do not follow from sums over chunks. Small, because
 * the bank keeps all rows. score: the logit (two classes), or the chosen class. */
struct dt__scored {
    float score, weight;
    int32_t label; /* -1: a class that training never saw */
};

/* Input of `values`: the totals over all chunks. */
struct dt__summed {
    int nout; /* targets, or outputs */
    const struct dt_outputs *outputs;
    double weight; /* of the rows */
    const double *sums;
    struct dt__scored *scored; /* (n), may be sorted */
    size_t n;
    bool unsorted;    /* auc and average_precision, which sort the rows, are not asked for */
    double *of_class; /* (1 + classes, 3) scratch memory */
};

enum { DT__OUTPUTS = -1, DT__TOP = 5 /* top5 applies to networks with more classes */ };

struct dt__task {
    int task;       /* enum dt_task ... */
    bool one_logit; /* ... of networks with a single output */
    const char *name;
    const char *answer; /* the name of the predictions: "values" */
    int classes;        /* 0: predicts values; DT__OUTPUTS: one per output */
    void (*predict)(int rows, const struct dt_outputs *outputs, const float *logits, float *out);
    int (*choose)(const struct dt_outputs *outputs, const float *logits); /* returns the class */
    void (*emit)(struct dt__emitter *e, const char *x); /* emits the answers of outputs x */
    /* dt__model_to_mean, dt__model_from_mean; and the same as nodes. */
    void (*to_mean)(int rows, const struct dt_outputs *outputs, const float *logits, float *out);
    void (*from_mean)(int rows, const struct dt_outputs *outputs, const float *mean, float *out);
    const char *(*emit_to_mean)(struct dt__emitter *e, const char *x);
    const char *(*emit_from_mean)(struct dt__emitter *e, const char *x);

    /* Sums of a chunk that follow rows, weight and loss: this many doubles, and this many per
     * output, added up over chunks; for `scores` then score, label and weight of each of
     * DT_EVAL_CHUNK rows. A negative label is a class that training never saw: the row is wrong
     * whatever is predicted, and has no loss. */
    struct {
        size_t fixed, each;
    } added;
    bool scores;
    /* Adds a chunk to its sums, zeroed before. confusion may be NULL. */
    void (*measure)(const struct dt_outputs *outputs, const float *logits,
                    const struct dt_batch *batch, double *sums, uint64_t *confusion);
    void (*values)(const struct dt__summed *of, struct dt_metric_values *out);
    /* Computes the scores of one target, from weight and sums. NULL: targets have no separate
     * scores. */
    struct dt_target_score (*score)(int nout, double weight, const double *sums, int target);
    unsigned metrics; /* bits of enum dt_metric: the metrics that exist besides the loss */
};

struct dt__loss {
    const struct dt__task *task;
    int loss; /* enum dt_loss */
    /* Returns the sum of the rows' losses from logits (rows, nout). gradient: the same memory,
     * overwritten with the gradient of the sum; NULL: the sum alone. */
    double (*sum)(const struct dt_outputs *outputs, const struct dt_batch *batch,
                  const float *logits, float *gradient);
    /* Writes the baseline: the outputs (count), equal for all rows, with the least loss. */
    void (*constant)(const struct dt_outputs *outputs, const struct dt_batch *batch, float *z);
    int usual; /* the metric for eval.metric=auto */
    int link;  /* enum dt_link */
    struct dt_targets targets;
};

/* Parses the numbers of train.quantiles. DT_EUSAGE. */
dt_status dt__quantiles_parse(const char *text, float out[DT_MAX_QUANTILES], int *out_count);

/* Returns true if workers may have parts of the outputs (dt__softmax_part). */
bool dt__loss_splits(const struct dt__loss *loss);
/* Finds the loss of a network with `nout` outputs. NULL: there is none. */
const struct dt__loss *dt__loss_find(int task, int loss, int nout);

#endif
