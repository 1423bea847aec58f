/* The inside of struct dt_world. */
#ifndef DT_COMM_WORLD_H
#define DT_COMM_WORLD_H

#include "comm/watch.h"

enum { DT__HOST_NAME = 64 };

struct dt_world {
    int rank, size;
    MPI_Comm all;  /* a copy of MPI_COMM_WORLD */
    MPI_Comm crew; /* bank and workers; MPI_COMM_NULL at the evaluator */
    MPI_Comm host; /* the ranks of this host */
    int host_rank, host_size;
    int cores; /* that the ranks of this host may use together */
    int hosts;
    char (*host_name)[DT__HOST_NAME]; /* (size) */
    int *host_of;                     /* (size) host index */
    bool dedicated;
    int workers;
    MPI_Win board_win;
    struct dt__board *board;
    struct dt__pulse *pulse; /* this rank's */
    struct dt__watch watch;
    bool spin; /* no more ranks than cores: a short spin pays */
};

/* cores.c: fills in world->cores. Collective over the host. */
void dt__cores_count(struct dt_world *world);
/* Adds "rank 2 on node7 (gradient, step 17)", behind a comma if others stand there. */
dt_status dt__pulse_name(const struct dt_world *world, const struct dt__pulse *pulse,
                         struct dt_text *names);
/* Prints the line, with this rank's place before it, and ends the job. */
void dt__world_die(struct dt_world *world, int exit_code, const char *message)
    __attribute__((noreturn));

#endif
