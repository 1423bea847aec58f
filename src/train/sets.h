/* The sets of rows that a run measures: the held-out rows, which alone choose the best model and
 * end the run early, and the sets that eval.also names. */
#ifndef DT_TRAIN_SETS_H
#define DT_TRAIN_SETS_H

#include "config/named_sets.h"
#include "train/job.h"

/* A set of rows. Set 0 of a job has the rows of job->eval. */
struct dt_set {
    char name[DT__SET_NAME]; /* "": the held-out rows */
    struct dt_source *source;
    bool last; /* measured only once, at the end, with the best model */
};

/* Create fills job->sets with the held-out rows and the named sets, whose sources the caller adds;
 * destroy frees it, and all sources except set 0's. Not collective. DT_EMEMORY. */
dt_status dt__sets_create(struct dt_job *job, const struct dt__named_sets *named);
void dt__sets_destroy(struct dt_job *job);

/* Returns the largest number of inputs, sparse and dense, that a chunk of any set may read. */
uint64_t dt__sets_most_inputs(const struct dt_job *job);

/* Bank only. dt__sets_print prints the number of rows in each named set. dt__sets_finish measures
 * the sets that are measured at the end, with the best model, and records the result.
 * dt__sets_print_best prints each set's metric for the best model. */
void dt__sets_print(const struct dt_job *job);
dt_status dt__sets_finish(struct dt_bank *bank);
void dt__sets_print_best(const struct dt_bank *bank);

#endif
