/* The watchdog.
 *
 * Every rank shows on its host's board what it does, and when it last got on. A thread of every rank
 * looks around there, and ends the job when somebody has not got on for run.stall_secs. The thread
 * looks while its rank is blocked, in MPI too, and sleeps with it: a rank whose thread does not look
 * around is stopped. Hosts hear of each other by heartbeats between the bank and the first rank of
 * every other host, sent whenever these wait or get on; a stop request travels with them.
 *
 * All ages are counted from when the looking thread itself last woke up late: a job that was
 * suspended as a whole, and goes on, is not stalled. */
#ifndef DT_COMM_WATCH_H
#define DT_COMM_WATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/mpi.h"

enum { DT__PHASE_WORDS = 4 };

/* A short text that others may read while it changes. */
struct dt__phase {
    _Atomic uint64_t word[DT__PHASE_WORDS];
};

/* One rank's pulse, in memory that its host shares. Times are of the host's monotonic clock. */
struct dt__pulse {
    _Alignas(64) _Atomic int64_t beat_us; /* it got on, or began to wait */
    _Atomic int64_t awake_us;             /* its thread looked around; 0: not seen here */
    _Atomic int64_t asking_us; /* it entered a call that only the bank can end; 0: it is in none */
    _Atomic uint64_t step;
    struct dt__phase phase; /* what it does */
    struct dt__phase wait;  /* what it waits for; "": it does not wait */
    int rank;
};

struct dt__board {
    _Alignas(64) _Atomic int error_claimed; /* the first to claim prints the host's error line */
    _Atomic int stop;                       /* a rank of this host was asked to stop */
    struct dt__pulse pulse[];               /* one a rank of the host */
};

/* What a host's first rank says of itself, and of its host. */
struct dt__heartbeat {
    int64_t idle_us; /* since somebody of the host got on */
    int64_t stop;    /* a stop was requested */
    uint64_t step, phase[DT__PHASE_WORDS];
};

/* A rank of another host that is heard from. */
struct dt__peer {
    struct dt__pulse pulse;    /* what it did as it was heard last */
    _Atomic int64_t heard_us;  /* its last heartbeat came */
    _Atomic int64_t got_on_us; /* somebody of its host got on */
    MPI_Request request;       /* of the last heartbeat to it */
    struct dt__heartbeat out;
};

struct dt__watch {
    _Atomic int64_t stall_us; /* 0: nobody is judged */
    int64_t looked_us;        /* the thread's last look, */
    int64_t woke_us;          /* and the last that came late */
    pthread_t thread, main;
    bool started, quit;
    pthread_mutex_t lock; /* of quit */
    pthread_cond_t changed;

    /* Heartbeats. */
    MPI_Comm comm; /* of all ranks */
    struct dt__peer *peer;
    int peers;
    int64_t talk_us;             /* when the next heartbeats are due */
    _Atomic int64_t listened_us; /* when this rank last took in others' */
};

/* Collective over all ranks. */
dt_status dt__watch_create(struct dt_world *world);
void dt__watch_destroy(struct dt_world *world);

/* This rank begins to wait for something. */
void dt__watch_wait(struct dt_world *world, const char *what);
/* This rank got on; it waits no longer. */
void dt__watch_touch(struct dt_world *world);
/* Now and then in a wait: heartbeats. */
void dt__watch_talk(struct dt_world *world);
/* This rank begins and ends a call that only the bank can end. */
void dt__watch_ask(struct dt_world *world);
void dt__watch_answered(struct dt_world *world);
/* True for the one rank of this host that may print the error line. */
bool dt__error_claim(struct dt_world *world);

/* talk.c. Collective over all ranks. */
dt_status dt__talk_create(struct dt_world *world);
void dt__talk_destroy(struct dt_world *world);
/* As if every peer had just been heard, and did what this rank does. */
void dt__talk_begin(struct dt_world *world);
/* Heartbeats between hosts go this often. */
int64_t dt__talk_period_us(const struct dt_world *world);

/* board.c: the host's board. Collective over its ranks. */
dt_status dt__board_create(struct dt_world *world);
void dt__board_destroy(struct dt_world *world);
int64_t dt__now_us(void);
/* When somebody of this host last got on. */
int64_t dt__board_got_on_us(const struct dt_world *world);
/* What this rank says; and its taking over. */
struct dt__heartbeat dt__pulse_tell(const struct dt_world *world);
void dt__pulse_hear(struct dt__pulse *pulse, const struct dt__heartbeat *heartbeat);

#endif
