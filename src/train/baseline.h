/* The baseline: the model whose outputs are constants, chosen to minimise the loss on the training
 * rows. Bank only. */
#ifndef DT_TRAIN_BASELINE_H
#define DT_TRAIN_BASELINE_H

#include "train/job.h"

struct dt_bank;

struct dt_baseline {
    float *outputs; /* (nout) the same for all rows */
    bool measured;  /* `values` is set: there are held-out rows */
    bool sampled;   /* `values` covers only a sample of the held-out rows */
    struct dt_metric_values values;
};

/* Computes the constants from the training rows, as a pure function of data and configuration, and
 * their metrics on the held-out rows. DT_EIO, DT_EFORMAT, DT_EMEMORY, DT_STOPPED. */
dt_status dt__baseline_make(struct dt_bank *bank);
void dt__baseline_free(struct dt_baseline *baseline);
/* If model.output_bias=baseline, sets the output bias in a new run's params (P) to the
 * constants. */
void dt__baseline_start(const struct dt_bank *bank, float *params);

enum { DT__BASELINE_TEXT = 256 };
/* Writes text like "; the baseline, always 4500.3, has loss 9.2, rmse 3.1"; empty without held-out
 * rows. */
void dt__baseline_text(const struct dt_bank *bank, char text[DT__BASELINE_TEXT]);
/* Returns the metric to print next to the loss: eval.metric, or one that suits the loss. Its name
 * is "loss" if there is no other. */
struct dt_metric_score dt__metric_shown(const struct dt_job *job,
                                        const struct dt_metric_values *values);

/* The metrics in which the chosen model is worse than the baseline by more than noise. eval.metric
 * is already included if the model is not better by more than noise. */
struct dt_comparison {
    const char *first;  /* name of the first of these metrics; NULL: there are none */
    bool chosen, worse; /* eval.metric is among them; the model is worse in at least one */
    char text[256];     /* "loss 0.907 (baseline 0.682), ..." */
};
void dt__baseline_compare(const struct dt_bank *bank, struct dt_comparison *out);

#endif
