/* A run from its start to its first step: what every rank makes for its role. */
#ifndef DT_TRAIN_SETUP_H
#define DT_TRAIN_SETUP_H

#include "train/step.h"

/* A run as one rank has it. */
struct dt_run {
    struct dt_job job;
    struct dt_dirs dirs;
    struct dt__train_options options;
    /* Of its roles: */
    struct dt_bank bank;            /* as job.bank, if it is one */
    struct dt_worker worker;        /* likewise */
    struct dt_evaluator *evaluator; /* NULL: it is none */
};

/* Everything up to the first step. *out_done: the run was complete already.
 * Collective; fails on all ranks or on none. Close the run in either case. */
dt_status dt__run_open(struct dt_run *run, struct dt_world *world, struct dt_config *config,
                       const struct dt__train_options *options, bool *out_done);
void dt__run_close(struct dt_run *run);

#endif
