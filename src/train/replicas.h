/* The assignment of replicas to workers and groups. Not collective. */
#ifndef DT_TRAIN_REPLICAS_H
#define DT_TRAIN_REPLICAS_H

#include "train/bank.h"

/* The groups of this rank, with local steps. */
struct dt_local {
    struct dt_group *group; /* (count) in which this worker takes part */
    int count;
    double stop_at; /* clock at which a stop was first seen; 0: none */
};

/* Chooses the numbers of replicas and groups: those of the checkpoint, those asked for, or the
 * numbers of workers and hosts. Bank only. DT_EUSAGE: more groups than replicas. */
dt_status dt__choose_groups(struct dt_job *job);
/* Returns the first replica of a group; for `groups`, the number of replicas. */
int dt__group_begin(const struct dt_job *job, int group);
/* Returns the first of n things that part `index` of `parts` has. */
int dt__part_begin(int n, int parts, int index);
/* Assigns replicas to workers, in job->worker_of. If groups matter, even if only from
 * train.local_after on, each group goes to as few workers as possible. DT_EMEMORY. */
dt_status dt__assign_replicas(struct dt_job *job);
void dt__worker_replicas(const struct dt_job *job, int worker, int *first, int *count);
int dt__idle_workers(const struct dt_job *job); /* workers without a replica */
/* Returns the fraction of the samples of steps [begin, end) that the group draws. */
double dt__group_part(const struct dt_group *group, uint64_t begin, uint64_t end);
/* Returns vector `index` of a group on its first worker: its optimizer's states, then its
 * difference. A process alone shares them with its bank. */
float *dt__local_vector(const struct dt_job *job, int group, int index);
/* Returns the place of the same vector in bank->state. */
float **dt__group_vector(struct dt_bank *bank, int group, int index);
/* Prints what groups do with local steps and a rounded wire, and what they cost. */
void dt__groups_print(const struct dt_bank *bank);
/* Adds groups, local steps and wire to the record of a start. */
void dt__groups_record(const struct dt_job *job, struct dt_json *record);

#endif
