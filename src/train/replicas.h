/* The assignment of replicas to workers and groups. Not collective. */
#ifndef DT_TRAIN_REPLICAS_H
#define DT_TRAIN_REPLICAS_H

#include "train/bank.h"

/* The groups in which this worker takes part, with local steps. */
struct dt_local {
    struct dt_group *group; /* (count) */
    int count;
    double stop_at; /* clock at which this worker first saw a stop; 0: none */
};

/* Chooses job->replicas and job->groups: from the checkpoint, from the configuration, or by the
 * numbers of workers and hosts. Bank only. DT_EUSAGE: more groups than replicas. */
dt_status dt__choose_groups(struct dt_job *job);
/* Returns the first replica of a group; for group job->groups, the number of replicas. */
int dt__group_begin(const struct dt_job *job, int group);
/* Cuts n items into `parts` nearly equal ranges, and returns the first item of range `index`. */
int dt__part_begin(int n, int parts, int index);
/* Fills job->worker_of. If replicas form groups, even if only from train.local_after on, each group
 * goes to as few workers as possible. DT_EMEMORY. */
dt_status dt__assign_replicas(struct dt_job *job);
void dt__worker_replicas(const struct dt_job *job, int worker, int *first, int *count);
int dt__idle_workers(const struct dt_job *job); /* workers without a replica */
/* Returns the fraction of the samples in steps [begin, end) that the group draws. */
double dt__group_part(const struct dt_group *group, uint64_t begin, uint64_t end);
/* Returns vector `index` of a group on its first worker: first come the optimizer's states, then
 * the difference. In a run with one process the bank uses the same memory. */
float *dt__local_vector(const struct dt_job *job, int group, int index);
/* Returns the address of the pointer to this vector that bank->state holds. */
float **dt__group_vector(struct dt_bank *bank, int group, int index);
/* Prints what groups do with local steps and with a rounded wire, and the memory that this
 * takes. */
void dt__groups_print(const struct dt_bank *bank);
/* Adds groups, local steps and wire to the record of a start. */
void dt__groups_record(const struct dt_job *job, struct dt_json *record);

#endif
