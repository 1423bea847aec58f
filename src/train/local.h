/* Local steps: the groups of replicas that a worker takes part in.
 *
 * Replicas fall into G groups in a row. Through a round each group steps on weights and optimizer
 * of its own, by an exchange of its workers; at its end the groups' differences from the bank's
 * weights meet in the exchange of the job, where each group is one replica. So bits depend on
 * groups, replicas and the length of rounds, and not on who computes what.
 *
 * With train.overlap the exchange of a round's differences goes on through the next round, and is
 * done at its end. A group goes on from where it is: it begins a round with the bank's weights less
 * (a part of) its own difference, of which these do not know yet:
 *
 *     round                  1        2                 3                 last     then
 *     a group begins with    w0       w0 - own d1       w1 - own d2       ...
 *     its difference         d1       d2                d3                dn
 *     under way meanwhile    none     all groups' d1    all groups' d2    ...      all groups' dn
 *     the bank's weights     w0       w1                w2                         wn
 *     at its end
 *
 * So at a synchronization point, which is behind a round, nothing is on its way: weights and
 * differences are the state. The run's last round is exchanged at once (dt__local_catch_up).
 *
 * Workers are dealt to groups in a row; with fewer workers than groups, each has whole groups. */
#ifndef DT_TRAIN_LOCAL_H
#define DT_TRAIN_LOCAL_H

#include "train/trainer.h"

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

/* Makes the groups' exchanges, empty; then, with the bank's copy of their state filled, starts
 * them. Collective over bank and workers. */
dt_status dt__local_open(struct dt_job *job);
void dt__local_start(struct dt_job *job);
void dt__local_close(struct dt_job *job); /* collective likewise */
/* Brings the groups' state to the bank. Collective likewise. */
void dt__local_gather(struct dt_job *job);
/* A group's state `index`, or, behind the optimizer's states, its difference: at its first worker.
 * A process alone shares them with its bank. */
float *dt__local_vector(const struct dt_job *job, int group, int index);

/* One round up to `end`, and its exchange, or that of the round before. Returns what all ranks ask
 * for. */
int dt__local_round(struct dt_job *job, uint64_t end);
/* Between spans: exchanges what is pending. Returns what ranks ask for. Collective over bank and
 * workers. */
int dt__local_catch_up(struct dt_job *job);

#endif
