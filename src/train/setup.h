/* The start of a run, up to its first step: what every rank creates for its role. */
#ifndef DT_TRAIN_SETUP_H
#define DT_TRAIN_SETUP_H

#include "train/step.h"

/* The run on one rank. */
struct dt_run {
    struct dt_job job;
    struct dt_dirs dirs;
    struct dt__train_options options;
    /* The structs of the roles that this rank may have: */
    struct dt_bank bank;            /* if job.bank is set */
    struct dt_worker worker;        /* if job.worker is set */
    struct dt_evaluator *evaluator; /* NULL: not an evaluator */
};

/* Opens the run up to its first step. Sets *out_done if the run was already complete. Close the run
 * after success or failure. Collective over the world; fails on all ranks or on none. */
dt_status dt__run_open(struct dt_run *run, struct dt_world *world, struct dt_config *config,
                       const struct dt__train_options *options, bool *out_done);
void dt__run_close(struct dt_run *run);

#endif
