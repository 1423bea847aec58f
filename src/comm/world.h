/* Internals of struct dt_world; checked MPI calls, and waits that sleep. */
#ifndef DT_COMM_WORLD_H
#define DT_COMM_WORLD_H

#include <mpi.h>

/* MPICH declares statuses as an array, and marks unwanted ones by an invalid address, which gcc
 * reports as an overflow. */
#if defined(MPICH_NAME) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
#include <sched.h>

#include "base/internal.h"
#include "base/arena.h"
#include "base/limits.h"
#include "comm/comm.h"
#include "comm/watchdog.h"

struct dt_ranks {
    struct dt_world *world; /* NULL: not created yet, and waits block */
    MPI_Comm comm;          /* MPI_COMM_NULL: this rank is not in the set */
    /* what the ranks move and broadcast, to show in the watchdog; NULL: unspecified */
    const char *what;
};

struct dt__world_inside {
    bool owns_mpi;       /* dt_world_create has called MPI_Init */
    bool connected;      /* the communicators below exist */
    struct dt_ranks all; /* a copy of the program's communicator */
    struct dt_ranks trainers;
    MPI_Comm host; /* the ranks of this host */
    int host_rank, host_size;
    cpu_set_t own_cores; /* cores that this rank may use */
    bool spin;           /* the host has at least as many cores as ranks, so a short spin pays */
    int slack;           /* the program's timer slack in ns; 0: unchanged */
    struct dt__watchdog watchdog;
    struct dt_world *whole; /* the world that this one was split from, which sees its progress;
                             * NULL: none */
    struct dt__arena *arena;
};

/* Collective over `all`. Numbers the disjoint communicators of the ranks of `all` in the order of
 * their lowest ranks. part: the one that has this rank. of: receives for each rank the number of
 * its communicator. Returns how many there are. */
int dt__number_parts(MPI_Comm all, MPI_Comm part, int *of);

/* Wraps every MPI call. On failure prints the call, its place and MPI's text, and ends the job. */
#define DT_MPI(call) dt__mpi_check((call), #call, __FILE__, __LINE__)
void dt__mpi_check(int code, const char *call, const char *file, int line);
/* Writes MPI's text for an error to `text`, and returns it. */
const char *dt__mpi_text(int code, char text[MPI_MAX_ERROR_STRING]);

/* State of a pending wait: a short spin, then sleeps that grow; the watchdog shows it. Starts as
 * zeros except for world and what. */
struct dt__wait {
    struct dt_world *world;
    const char *what; /* shown as waited for */
    unsigned pauses;
    double nap_secs; /* length of each pause; 0: a short spin, then sleeps that grow */
};
/* Not collective.
 * Pauses a little. */
void dt__wait_pause(struct dt__wait *wait);
/* Restarts the growth of the sleeps. Call it when something has arrived. */
void dt__wait_progress(struct dt__wait *wait);
/* Ends the wait. */
void dt__wait_done(struct dt__wait *wait);

/* Prints the error line, with this rank's place and the cause before the message, and ends the
 * job. */
void dt__world_die(int exit_code, enum dt__cause cause, const char *message)
    __attribute__((noreturn));

#endif
