/* The watchdog: who makes progress, who waits, who is gone.
 *
 * Every rank shows in its host's heartbeat table what it does, and when it last made progress. A
 * thread of every rank looks there, and ends the job when somebody has made none for
 * run.stall_secs, or when a process is gone. The thread looks while its rank is blocked, in MPI
 * too, and sleeps with it: a rank whose thread does not look is stopped. Hosts hear of each other
 * by messages between the bank and the first rank of every other host, sent whenever these wait or
 * make progress; a stop request travels with them.
 *
 * Whose thread ends the job, and how long behind the last sign of progress, where S is
 * run.stall_secs. Who is nearer to the culprit speaks first, and the others give its abort the time
 * to reach them, so that one line names it:
 *
 *   a process of the host is gone       any of the host      at once; 3 s if it is asked to stop
 *   a rank of the host is stopped       any of the host      S
 *   a rank of the host is stuck         any of the host      S; on several hosts S + 4 s
 *       alone on its host, not bank     the rank itself      S + 8 s: the bank is first
 *   a host is not heard from, or the    bank                 S + 1.5 s
 *       bank does not answer            host number h        S + 1.5 s + 8 s * h
 *       whose rank is not alone there   the same             8 s more: its neighbours are first
 *   everybody waits                     bank                 S + 12 s
 *
 * All ages are counted from when the looking thread itself last woke up late: a job that was
 * suspended as a whole, and goes on, is not stalled.
 *
 * The thread starts before the first collective call of a job, with a table of its own, and goes
 * over to the host's when that is there. */
#ifndef DT_COMM_WATCHDOG_H
#define DT_COMM_WATCHDOG_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/shared.h"

enum { DT__PHASE_WORDS = DT_PHASE_TEXT / 8 };

/* A short text that others may read while it changes. */
struct dt__phase {
    _Atomic uint64_t word[DT__PHASE_WORDS];
};

/* One rank's row. Times are of the host's monotonic clock. */
struct dt__heartbeat {
    _Alignas(64) _Atomic int64_t progress_us; /* it made progress, or began to wait */
    _Atomic int64_t awake_us;                 /* its thread looked; 0: not seen here */
    _Atomic uint64_t step;
    _Atomic uint64_t samples;  /* that went through its network in training */
    _Atomic int wait_permille; /* 1 + the share of its time that it waited lately; 0: not known */
    struct dt__phase phase;    /* what it does */
    struct dt__phase wait;     /* what it waits for; "": it does not wait */
    _Atomic int present;       /* 0: not there yet, or about to end */
    /* held by its thread while it is present; the kernel says when the owner has died, also to
     * processes that do not see its pid */
    pthread_mutex_t life;
    int rank;
};

struct dt__heartbeat_table {
    _Alignas(64) _Atomic int error; /* the first to claim prints the host's error line */
    _Atomic int stop; /* the mark of a stop request to a rank of this host; 0: none came */
    int rows;
    struct dt__heartbeat row[];
};

/* What a host's first rank says of itself, and of its host. */
struct dt__heartbeat_message {
    int64_t idle_us; /* since somebody of the host made progress */
    int64_t stop;    /* the mark of a stop that was requested; 0: none was */
    int64_t last;    /* no other message follows */
    int64_t told;    /* the job ends: an error line has told why */
    uint64_t step, phase[DT__PHASE_WORDS];
};

/* A rank of another host that is heard from. */
struct dt__peer {
    /* what it did as it was heard last; the progress is its host's */
    struct dt__heartbeat heartbeat;
    _Atomic int64_t heard_us; /* its last message came */
    _Atomic bool parted;      /* its host has ended, as it should; nothing more comes */
    MPI_Request request;      /* of the last message to it */
    struct dt__heartbeat_message out;
};

struct dt__watchdog {
    _Atomic int64_t stall_us; /* 0: nobody is watched */
    double patience_secs;     /* as it was set last, also while nobody is watched */
    int stops;                /* trainings that were stopped; the same on every rank */
    int64_t looked_us;        /* the thread's last look, */
    int64_t woke_us;          /* and the last that came late */
    pthread_t thread, main;
    bool started, quit;
    pthread_mutex_t lock; /* of quit, and of stops with the process's stop request */
    pthread_cond_t changed;

    struct dt__heartbeat_table *alone; /* this rank's own table, until there is the host's */
    struct dt__shared shared;          /* the host's */
    struct dt__heartbeat_table *_Atomic table;
    struct dt__heartbeat *_Atomic mine; /* this rank's row */
    struct dt__heartbeat *held;         /* the thread's: the row whose life it holds */

    /* Messages between hosts. */
    MPI_Comm comm;         /* of all ranks */
    struct dt__peer *peer; /* room for one a rank */
    int peers;
    int64_t exchange_at_us;      /* when the next messages are due */
    bool told;                   /* they have said that an error line was told */
    _Atomic int64_t listened_us; /* when this rank last took in others' */
};

/* ---- heartbeat.c: rows, and the error line. Not collective ----------------------------------- */

enum { DT__LOOK_US = 200000 }; /* from one look of the thread to the next */

/* The error line of a table's host, or of the job once another host says that it has printed it. */
enum { DT__ERROR_NONE, DT__ERROR_CLAIMED, DT__ERROR_TOLD };

/* The job of this process; of several the last that was to be watched. NULL: none. */
struct dt_world *dt__watched_world(void);
void dt__watched_world_store(struct dt_world *world);
int64_t dt__now_us(void); /* of the host's monotonic clock */
/* Relaxed: a look that sees the value a little late changes nothing. */
void dt__store_relaxed(_Atomic int64_t *place, int64_t value);
void dt__phase_store(struct dt__phase *phase, const char *text);
void dt__phase_load(const struct dt__phase *phase, char text[DT_PHASE_TEXT]);
struct dt__heartbeat *dt__heartbeat_own(const struct dt_world *world);
bool dt__heartbeat_is_dead(struct dt__heartbeat *heartbeat);
void dt__heartbeat_hold(struct dt__watchdog *watchdog, struct dt__heartbeat *heartbeat);
void dt__heartbeat_table_use(struct dt_world *world, struct dt__heartbeat_table *table, int row);
int64_t dt__newest_progress_us(const struct dt__heartbeat_table *table);
bool dt__error_is_told(const struct dt__watchdog *watchdog);
/* This rank begins to wait for something. */
void dt__watchdog_wait(struct dt_world *world, const char *what);
/* Whether it shows that it waits: who does something for others meanwhile, has to say so anew. */
bool dt__watchdog_waits(const struct dt_world *world);
/* This rank made progress; it waits no longer. */
void dt__watchdog_progress(struct dt_world *world);
/* True for the one rank of this host that may print the error line; its place in the job, as
 * "[rank 2 on node7] ", into place. */
enum { DT__PLACE = 128 };
bool dt__error_claim(char place[DT__PLACE]);
/* It has printed. Other hosts hear of it, so that they do not tell what the end of the job does to
 * them; the others of its host wait for it, up to `secs`. */
void dt__error_told(void);
void dt__error_await(double secs);

/* ---- peers.c: messages between hosts --------------------------------------------------------- */

/* Now and then in a wait: messages between hosts. */
void dt__heartbeat_exchange(struct dt_world *world);
/* Microseconds from one message to the next. */
int64_t dt__exchange_period_us(const struct dt_world *world);
/* The number that a stop request carries: it grows with each training that was stopped, so that a
 * request of an earlier one is ignored. */
int dt__stop_mark(const struct dt__watchdog *watchdog);
/* Makes this world the process's, or, if it is, none. */
void dt__watched_world_set(struct dt_world *world, bool is_it);
/* Exchanges the last messages with a peer: MPI ends when all messages are received. */
void dt__peer_part(struct dt__peer *peer, MPI_Comm comm);

/* ---- watchdog.c: the thread -------------------------------------------------------------------
 * */

/* Starts the thread. Not collective. world->rank, size and host_name[rank] are known. */
dt_status dt__watchdog_start(struct dt_world *world, double stall_secs);
/* Goes over to the host's table, and begins to hear of other hosts. Collective over all ranks. */
void dt__watchdog_connect(struct dt_world *world);
/* From here on this rank may end, and no other one is missed. Not collective. */
void dt__watchdog_stop(struct dt_world *world);
/* Collective over those that connected; behind stop. */
void dt__watchdog_free(struct dt_world *world);

#endif
