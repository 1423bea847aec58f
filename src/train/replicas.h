/* Replicas: which worker has which, and which groups they form. Not collective. */
#ifndef DT_TRAIN_REPLICAS_H
#define DT_TRAIN_REPLICAS_H

#include "train/bank.h"

/* Local steps: the groups of this rank. */
struct dt_local {
    struct dt_group *group; /* (count) in which this worker takes part */
    int count;
    double stop_at; /* clock at which a stop was first known; 0: none is */
};

/* Replicas and groups: those of the checkpoint, those that are asked for, or as many as workers and
 * hosts. Bank only.
 * DT_EUSAGE: more groups than replicas. */
dt_status dt__settle_groups(struct dt_job *job);
/* The first replica of a group; of `groups`: behind the last one. */
int dt__group_begin(const struct dt_job *job, int group);
/* The first of n things that part `index` of `parts` has. */
int dt__part_begin(int n, int parts, int index);
/* Whose each replica is, to job->worker_of; where groups matter, if only from train.local_after on,
 * none is dealt to more workers than it must. DT_EMEMORY. */
dt_status dt__deal_replicas(struct dt_job *job);
void dt__worker_replicas(const struct dt_job *job, int worker, int *first, int *count);
int dt__idle_workers(const struct dt_job *job); /* that have no replica */
/* A group's part of all samples of steps [begin, end). */
double dt__group_part(const struct dt_group *group, uint64_t begin, uint64_t end);
/* A group's state `index`, or, behind the optimizer's states, its difference: at its first worker.
 * A process alone shares them with its bank. */
float *dt__local_vector(const struct dt_job *job, int group, int index);
/* Where a group's vector is in bank->state: of its optimizer's state, or, behind that, its
 * difference. */
float **dt__group_vector(struct dt_bank *bank, int group, int index);
/* Prints what groups do with local steps and a rounded wire, and what they cost. */
void dt__groups_print(const struct dt_bank *bank);
/* Adds groups, local steps and wire to the record of a start. */
void dt__groups_record(const struct dt_job *job, struct dt_json *record);

#endif
