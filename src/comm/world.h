/* The inside of struct dt_world. */
#ifndef DT_COMM_WORLD_H
#define DT_COMM_WORLD_H

#include <stdatomic.h>

#include "comm/mpi.h"

enum { DT__HOST_NAME = 64, DT__PHASE_WORDS = 3 };

/* One rank's pulse, in memory that its host shares: when it last got on, and with what. Times are of
 * the host's monotonic clock. */
struct dt__pulse {
    _Alignas(64) _Atomic int64_t beat_us; /* it got on */
    _Atomic int64_t alive_us;             /* it got on, or looked around in a wait; 0: not seen here */
    _Atomic uint64_t step;
    _Atomic uint64_t phase[DT__PHASE_WORDS]; /* the name's bytes */
    int rank;
};

struct dt__board {
    _Alignas(64) _Atomic int error_claimed; /* the first to claim prints the host's error line */
    struct dt__pulse pulse[];               /* one a rank of the host */
};

struct dt_world {
    int rank, size;
    MPI_Comm all;  /* a copy of MPI_COMM_WORLD */
    MPI_Comm crew; /* bank and workers; MPI_COMM_NULL at the evaluator */
    MPI_Comm host; /* the ranks of this host */
    int host_rank, host_size;
    int hosts;
    char (*host_name)[DT__HOST_NAME]; /* (size) */
    int *host_of;                     /* (size) host index */
    bool dedicated;
    int workers;
    MPI_Win board_win;
    struct dt__board *board;
    struct dt__pulse *pulse; /* this rank's */
    double stall_secs;       /* 0: no watchdog */
    bool spin;               /* no more ranks than cores: a short spin pays */
    char agreed[DT_ERROR_MAX];
};

/* Watchdog: ends the job if some rank, or `rank` (-1: any), has made no progress since `since`. */
void dt__watch_check(struct dt_world *world, double since, const char *phase, int rank);
/* This rank begins or ends a wait: it got on. */
void dt__watch_touch(struct dt_world *world);
/* True for the one rank of this host that may print the error line. */
bool dt__error_claim(struct dt_world *world);
/* Prints the line, with this rank's place before it, and ends the job. */
void dt__world_die(struct dt_world *world, int exit_code, const char *message)
    __attribute__((noreturn));

#endif
