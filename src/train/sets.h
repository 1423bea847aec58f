/* The sets of rows that a run measures: the rows held out, which alone choose the best model and
 * patience, and those that eval.also names. */
#ifndef DT_TRAIN_SETS_H
#define DT_TRAIN_SETS_H

#include "config/named_sets.h"
#include "train/job.h"

/* A set of rows. The first of a job is job->eval. */
struct dt_set {
    char name[DT__SET_NAME]; /* "": the rows held out */
    struct dt_source *source;
    bool last; /* measured once, at the end, by the best model */
};

/* Makes the list of job->sets, the rows held out among them, without sources; frees it, with
 * the sources of all sets but the first. Not collective. DT_EMEMORY. */
dt_status dt__sets_create(struct dt_job *job, const struct dt__named_sets *named);
void dt__sets_destroy(struct dt_job *job);

/* Returns the sparse and dense inputs that a chunk of any set reads, at most. */
uint64_t dt__sets_most_inputs(const struct dt_job *job);

/* Bank only: prints the rows of each set; measures the sets that wait for the end, by the best
 * model, and records that; prints each set's metric under the best model. */
void dt__sets_print(const struct dt_job *job);
dt_status dt__sets_finish(struct dt_bank *bank);
void dt__sets_print_best(const struct dt_bank *bank);

#endif
