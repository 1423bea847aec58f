/* The watchdog detects ranks that are stuck and processes that have died.
 *
 * Every rank shows in its host's heartbeat table what it does, and when it last made progress. A
 * thread of every rank reads the table, and ends the job when a rank has made no progress for
 * run.stall_secs, or when a process has died. The thread runs even while its rank is blocked, for
 * example in MPI, but not while its process is stopped; so a rank whose thread no longer looks at
 * the table is stopped. The bank and the first rank of every other host exchange messages, sent
 * whenever these ranks wait or make progress; a stop request travels with them.
 *
 * The table below shows which rank's thread ends the job, and how long after the last sign of
 * progress; S is run.stall_secs. The rank nearest to the culprit reports first, and the other ranks
 * give its abort time to reach them, so that only one line is printed and names the culprit:
 *
 *   a process of the host has died      any of the host      at once; 3 s if it is asked to stop
 *   a rank of the host is stopped       any of the host      S
 *   a rank of the host is stuck         any of the host      S; on several hosts S + 4 s
 *       alone on its host, not bank     the rank itself      S + 8 s: the bank is first
 *   a host is not heard from, or the    bank                 S + 1.5 s
 *       bank does not answer            host number h        S + 1.5 s + 8 s * h
 *       host with several ranks         the same             8 s more: its other ranks are first
 *   all ranks wait                      bank                 S + 12 s
 *
 * A thread that wakes up late may have been suspended with the whole job, which is not stalled when
 * it continues. So the thread reports no stall until it has been awake for S after that.
 *
 * The thread starts before the first collective call of a job, with a private table, and switches
 * to the host's table once that exists. */
#ifndef DT_COMM_WATCHDOG_H
#define DT_COMM_WATCHDOG_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/shared.h"

enum { DT__PHASE_WORDS = DT_PHASE_TEXT / 8 };

/* A short text that may be read while another thread changes it. */
struct dt__phase {
    _Atomic uint64_t word[DT__PHASE_WORDS];
};

/* One rank's row. Times are of the host's monotonic clock. */
struct dt__heartbeat {
    _Alignas(64) _Atomic int64_t progress_us; /* last progress, or start of a wait */
    _Atomic int64_t awake_us;                 /* its thread's last look; 0: not seen on this host */
    _Atomic uint64_t step;
    _Atomic uint64_t samples;  /* samples trained on */
    _Atomic int wait_permille; /* 1 + recent fraction of time spent waiting; 0: unknown */
    struct dt__phase phase;    /* what the rank does */
    struct dt__phase wait;     /* what the rank waits for; "": it does not wait */
    _Atomic int present;       /* 0: not started yet, or about to end */
    /* The rank's thread holds this mutex while `present`. The kernel reports the death of a holder,
     * even to processes that do not see its pid. */
    pthread_mutex_t life;
    int rank;
};

struct dt__heartbeat_table {
    _Alignas(64) _Atomic int error; /* the first rank that claims it prints the host's error line */
    _Atomic int stop;               /* mark of a stop request to a rank of this host; 0: none */
    int rows;
    struct dt__heartbeat row[];
};

/* Message of a host's first rank about itself and its host. */
struct dt__heartbeat_message {
    int64_t idle_us;       /* since any rank of the host made progress */
    int64_t stop;          /* mark of a requested stop; 0: none */
    int64_t last;          /* this is the last message */
    int64_t error_printed; /* the job ends, and an error line was printed */
    uint64_t step, phase[DT__PHASE_WORDS];
};

/* A rank of another host that exchanges messages with this rank. */
struct dt__peer {
    /* from its last message; the progress is that of its whole host */
    struct dt__heartbeat heartbeat;
    _Atomic int64_t heard_us; /* arrival of its last message */
    _Atomic bool parted;      /* its host has ended normally, and sends no more messages */
    MPI_Request request;      /* the send of the last message to it */
    struct dt__heartbeat_message out;
};

struct dt__watchdog {
    _Atomic int64_t stall_us; /* 0: stalls are not watched */
    double patience_secs;     /* the value last set, kept while stalls are not watched */
    int stops;                /* trainings stopped so far; the same on every rank */
    int64_t looked_us;        /* last look of the thread */
    int64_t woke_us;          /* the last look that came late */
    pthread_t thread, main;
    bool started, quit;
    pthread_mutex_t lock; /* protects `quit`, and `stops` together with the process's stop
                           * request */
    pthread_cond_t changed;

    struct dt__heartbeat_table *alone; /* this rank's private table, until the host's exists */
    struct dt__shared shared;          /* the host's table */
    struct dt__heartbeat_table *_Atomic table;
    struct dt__heartbeat *_Atomic mine; /* this rank's row */
    struct dt__heartbeat *held;         /* the row whose `life` the thread holds */

    /* Messages between hosts. */
    MPI_Comm comm;         /* of all ranks */
    struct dt__peer *peer; /* capacity: one per rank */
    int peers;
    int64_t exchange_at_us;      /* when the next messages are due */
    bool error_printed;          /* a message has said that an error line was printed */
    _Atomic int64_t listened_us; /* when this rank last received messages */
};

/* ---- heartbeat.c: rows, and the error line. Not collective ----------------------------------- */

enum { DT__LOOK_US = 200000 }; /* interval between looks of the thread */

/* State of the host's error line: not printed; claimed by a rank; printed, on this host or another
 * one. */
enum { DT__ERROR_NONE, DT__ERROR_CLAIMED, DT__ERROR_PRINTED };

/* Returns the world of this process that was watched last; NULL: none. */
struct dt_world *dt__watched_world(void);
void dt__watched_world_store(struct dt_world *world);
int64_t dt__now_us(void); /* host's monotonic clock */
/* Stores without ordering: it does no harm if a look sees the value a little late. */
void dt__store_relaxed(_Atomic int64_t *place, int64_t value);
void dt__phase_store(struct dt__phase *phase, const char *text);
void dt__phase_load(const struct dt__phase *phase, char text[DT_PHASE_TEXT]);
struct dt__heartbeat *dt__heartbeat_own(const struct dt_world *world);
bool dt__heartbeat_is_dead(struct dt__heartbeat *heartbeat);
void dt__heartbeat_hold(struct dt__watchdog *watchdog, struct dt__heartbeat *heartbeat);
void dt__heartbeat_table_use(struct dt_world *world, struct dt__heartbeat_table *table, int row);
int64_t dt__newest_progress_us(const struct dt__heartbeat_table *table);
bool dt__error_was_printed(const struct dt__watchdog *watchdog);
/* Shows this rank as waiting for `what`. */
void dt__watchdog_wait(struct dt_world *world, const char *what);
/* Returns whether this rank is shown as waiting. A waiting rank that works for other ranks is no
 * longer shown as waiting, and must call dt__watchdog_wait again. */
bool dt__watchdog_waits(const struct dt_world *world);
/* Records progress; this rank is no longer shown as waiting. */
void dt__watchdog_progress(struct dt_world *world);
/* Returns true on one rank of this host: the one that may print the error line. Writes the rank's
 * place in the job, such as "[rank 2 on node7] ", to place. */
enum { DT__PLACE = 128 };
bool dt__error_claim(char place[DT__PLACE]);
/* Marks the error line as printed, and informs other hosts, so that they do not report the
 * consequences of the job's end. dt__error_await: on other ranks of the host, waits up to `secs`
 * until it is printed. */
void dt__error_mark_printed(void);
void dt__error_await(double secs);

/* ---- peers.c: messages between hosts --------------------------------------------------------- */

/* Not collective.
 * Exchanges messages between hosts when they are due. Call it now and then in a wait. */
void dt__heartbeat_exchange(struct dt_world *world);
/* Returns the interval between messages in microseconds. */
int64_t dt__exchange_period_us(const struct dt_world *world);
/* Returns the number that a stop request carries. It rises with each training that was stopped, so
 * that a request for an earlier training is ignored. */
int dt__stop_mark(const struct dt__watchdog *watchdog);
/* Makes `world` the process's watched world if is_it; otherwise, if `world` is the watched one,
 * sets none. */
void dt__watched_world_set(struct dt_world *world, bool is_it);
/* Exchanges the last messages with a peer, since MPI may end only when all messages are
 * received. */
void dt__peer_part(struct dt__peer *peer, MPI_Comm comm);

/* ---- watchdog.c: the thread ----------------------------------------------------------------- */

/* Not collective. Starts the thread. world->rank, size and host_name[rank] must be set. */
dt_status dt__watchdog_start(struct dt_world *world, double stall_secs);
/* Collective over all ranks. Switches to the host's table, and starts messages with other hosts. */
void dt__watchdog_connect(struct dt_world *world);
/* Not collective.
 * Ends the watch over this rank and its peers: this rank may exit now. */
void dt__watchdog_stop(struct dt_world *world);
/* Collective over the ranks that connected.
 * Frees the watchdog, after dt__watchdog_stop. */
void dt__watchdog_free(struct dt_world *world);

#endif
