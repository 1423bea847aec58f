/* task: what the outputs of a network mean; loss: what training makes small. Adding one is a row in
 * task.c. */
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
    struct dt__scored *scored; /* (n) which may be sorted */
    size_t n;
    double *of_class; /* (1 + classes, 3) scratch memory */
};

enum { DT__OUTPUTS = -1, DT__TOP = 5 /* top5 is of networks with more classes */ };

struct dt__task {
    int task;       /* enum dt_task ... */
    bool one_logit; /* ... of networks with one output alone */
    const char *name;
    const char *answer; /* what is predicted: "values" */
    int classes;        /* 0: predicts values; DT__OUTPUTS: as many as outputs */
    void (*predict)(int rows, const struct dt_outputs *outputs, const float *logits, float *out);
    int (*choose)(const struct dt_outputs *outputs, const float *logits); /* the class */
    void (*emit)(struct dt__emitter *e, const char *x); /* emits the answers of outputs x */
    /* dt__model_to_mean, dt__model_from_mean; and as nodes. */
    void (*to_mean)(int rows, const struct dt_outputs *outputs, const float *logits, float *out);
    void (*from_mean)(int rows, const struct dt_outputs *outputs, const float *mean, float *out);
    const char *(*emit_to_mean)(struct dt__emitter *e, const char *x);
    const char *(*emit_from_mean)(struct dt__emitter *e, const char *x);

    /* A chunk's sums behind rows, weight and loss: so many doubles, and so many an output, that are
     * added up over chunks; for `scores` then score, label and weight of each of DT_EVAL_CHUNK
     * rows. A negative label is a class that training never saw: the row is wrong whatever
     * is predicted, and has no loss. */
    struct {
        size_t fixed, each;
    } added;
    bool scores;
    /* Zeroed before. confusion may be NULL. */
    void (*measure)(const struct dt_outputs *outputs, const float *logits,
                    const struct dt_batch *batch, double *sums, uint64_t *confusion);
    void (*values)(const struct dt__summed *of, struct dt_metric_values *out);
    /* Of one target, from weight and sums. NULL: targets have no scores of their own. */
    struct dt_target_score (*score)(int nout, double weight, const double *sums, int target);
    unsigned metrics; /* bits of enum dt_metric: those that exist beside the loss */
};

struct dt__loss {
    const struct dt__task *task;
    int loss; /* enum dt_loss */
    /* Of the rows' losses, from logits (rows, nout). gradient: those again, which become the
     * gradient of the sum by them; NULL: the sum alone. */
    double (*sum)(const struct dt_outputs *outputs, const struct dt_batch *batch,
                  const float *logits, float *gradient);
    /* Writes the baseline: the outputs (count) that, the same for all rows, have the least loss. */
    void (*constant)(const struct dt_outputs *outputs, const struct dt_batch *batch, float *z);
    int usual; /* the metric that eval.metric=auto is */
    int link;  /* enum dt_link */
    struct dt_targets targets;
};

/* The numbers of train.quantiles. DT_EUSAGE. */
dt_status dt__quantiles_parse(const char *text, float out[DT_MAX_QUANTILES], int *out_count);

/* Whether workers may have parts of the outputs (dt__softmax_part). */
bool dt__loss_splits(const struct dt__loss *loss);
/* Of a network with so many outputs. NULL: there is none. */
const struct dt__loss *dt__loss_find(int task, int loss, int nout);

#endif
