/* The watchdog's thread: looks at the heartbeats, and ends the job of those who got stuck, or whose rank
 * is gone. */
#include "comm/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "comm/heartbeat.h"
#include "comm/world.h"

static const int64_t LOOK_US = 200000;   /* from look to look */
static const int64_t LATE_US = 1000000;  /* a look so late says that this process was stopped */
static const int64_t QUIET_US = 1000000; /* beyond the deadline: another host is silent */
static const int64_t ABORT_US = 8000000; /* an abort has reached all hosts (measured: up to 3 s) */
static const int64_t ALL_WAIT_US = 12000000; /* beyond it: who is stuck alone has been named */

void dt_world_watch(struct dt_world *world, double stall_secs)
{
    dt__watchdog_progress(world);
    dt__peers_reset(world);
    atomic_store(&world->watchdog.stall_us, (int64_t)(stall_secs * 1e6));
}

/* ---- who reports ----------------------------------------------------------------------------- */

/* The job of this process, for errors that are found far from it. */
static struct dt_world *_Atomic watched_world;

bool dt__error_claim(char place[DT__PLACE])
{
    struct dt_world *world = atomic_load(&watched_world);
    place[0] = '\0';
    if (!world) return true;
    snprintf(place, DT__PLACE, "[rank %d on %s] ", world->rank, world->host_name[world->rank]);
    return atomic_exchange(&atomic_load(&world->watchdog.table)->error_claimed, 1) == 0;
}

/* ---- ranks of this host --------------------------------------------------------------------- */

typedef bool heartbeat_test_fn(const struct dt__heartbeat *heartbeat, int64_t limit);

/* The process has ended, and not as one that is done. */
static bool rank_is_gone(const struct dt__heartbeat *heartbeat, int64_t limit)
{
    (void)limit;
    int pid = atomic_load(&heartbeat->pid);
    return pid && kill(pid, 0) != 0 && errno == ESRCH && atomic_load(&heartbeat->pid);
}

static bool rank_is_stopped(const struct dt__heartbeat *heartbeat, int64_t limit)
{
    int64_t awake = atomic_load(&heartbeat->awake_us);
    return awake && awake <= limit;
}

static bool rank_is_stuck(const struct dt__heartbeat *heartbeat, int64_t limit)
{
    bool waits = atomic_load(&heartbeat->wait.word[0]) || atomic_load(&heartbeat->asking_us);
    return atomic_load(&heartbeat->awake_us) && !waits &&
           atomic_load(&heartbeat->progress_us) <= limit;
}

static bool rank_is_seen(const struct dt__heartbeat *heartbeat, int64_t limit)
{
    (void)limit;
    return atomic_load(&heartbeat->awake_us);
}

static void name_ranks(const struct dt_world *world, heartbeat_test_fn *test, int64_t limit,
                       struct dt_text *names)
{
    const struct dt__heartbeat_table *table = atomic_load(&world->watchdog.table);
    for (int i = 0; i < table->rows; i++)
        if (test(&table->row[i], limit) && dt__heartbeat_name(world, &table->row[i], names)) return;
}

static bool rank_is_alone_on_host(const struct dt_world *world, int rank)
{
    int ranks = 0;
    for (int r = 0; r < world->size; r++)
        ranks += world->host_of[r] == world->host_of[rank];
    return ranks == 1;
}

/* ---- other hosts ---------------------------------------------------------------------------- */

/* Who sees a rank's heartbeat reports first, then the bank, then host by host: each gives the abort of
 * those before it time to come, so that one line names the culprit. */
static int64_t silence_patience_us(const struct dt_world *world, int silent)
{
    int64_t turn = world->host_of[world->rank] + (rank_is_alone_on_host(world, silent) ? 0 : 1);
    return QUIET_US + dt__exchange_period_us(world) + turn * ABORT_US;
}

/* A silent host counts only for a rank that listens. */
static void name_silent_hosts(struct dt_world *world, int64_t now, int64_t stall,
                              struct dt_text *names)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    if (atomic_load(&watchdog->listened_us) < now - QUIET_US - dt__exchange_period_us(world))
        return;
    for (int i = 0; i < watchdog->peers; i++) {
        const struct dt__heartbeat *heartbeat = &watchdog->peer[i].heartbeat;
        int64_t silence = now - atomic_load(&watchdog->peer[i].heard_us) - stall;
        if (silence < 0 || silence < silence_patience_us(world, heartbeat->rank)) continue;
        if (dt__heartbeat_name(world, heartbeat, names)) return;
        dt_text_add(names, ", which is not heard from");
    }
}

/* A rank that waits inside MPI for the bank of another host's memory cannot listen. */
static void name_silent_bank(struct dt_world *world, int64_t now, int64_t stall,
                             struct dt_text *names)
{
    int64_t asking = atomic_load(&atomic_load(&world->watchdog.mine)->asking_us);
    int64_t silence = now - asking - stall;
    if (!asking || silence < 0 || silence < silence_patience_us(world, 0)) return;
    if (world->watchdog.peers)
        dt__heartbeat_name(world, &world->watchdog.peer[0].heartbeat, names);
    else
        dt_text_add(names, "rank 0 on %s (in a phase not known here)", world->host_name[0]);
    dt_text_add(names, ", which does not answer");
}

/* Everybody waits: for each other, or for a file system. The bank reports. */
static bool all_ranks_wait(struct dt_world *world, int64_t limit)
{
    int64_t newest = dt__heartbeat_newest_us(atomic_load(&world->watchdog.table));
    for (int i = 0; i < world->watchdog.peers; i++) {
        int64_t progress = atomic_load(&world->watchdog.peer[i].progress_us);
        if (progress > newest) newest = progress;
    }
    return world->rank == 0 && newest <= limit - ALL_WAIT_US;
}

/* ---- what comes of it ----------------------------------------------------------------------- */

static void check_stalled(struct dt_world *world, int64_t now)
{
    int64_t stall = atomic_load(&world->watchdog.stall_us), limit = now - stall;
    struct dt_text names = {0};
    /* A rank alone on its host cannot report that it is stopped: the bank does, and it leaves the report
     * to the bank when it is stuck as well. */
    bool bank_reports =
        world->host_of[world->rank] != 0 && rank_is_alone_on_host(world, world->rank);
    int64_t stuck_limit = bank_reports ? limit - ABORT_US : limit;
    if (stall <= 0 || world->watchdog.woke_us > limit) return;
    name_ranks(world, rank_is_stopped, limit, &names);
    if (!names.length) name_ranks(world, rank_is_stuck, stuck_limit, &names);
    if (!names.length) name_silent_hosts(world, now, stall, &names);
    if (!names.length) name_silent_bank(world, now, stall, &names);
    if (!names.length && all_ranks_wait(world, limit))
        name_ranks(world, rank_is_seen, limit, &names);
    if (!names.length) return;
    char message[DT_ERROR_MAX];
    snprintf(message, sizeof message, "no progress for %g s (run.stall_secs) at %s",
             (double)stall * 1e-6, names.data);
    dt__world_die(1, message);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void watchdog_look(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    int64_t now = dt__now_us();
    if (now - watchdog->looked_us > LATE_US) watchdog->woke_us = now;
    watchdog->looked_us = now;
    atomic_store(&atomic_load(&watchdog->mine)->awake_us, now);
    struct dt__heartbeat_table *table = atomic_load(&watchdog->table);
    if (dt_stop_requested()) /* a stop request to one process is one to the job */
        atomic_store(&table->stop, 1);
    else if (atomic_load(&table->stop))
        dt_stop_request();
    struct dt_text names = {0};
    name_ranks(world, rank_is_gone, 0, &names);
    if (names.length) {
        char message[DT_ERROR_MAX];
        snprintf(message, sizeof message, "%s is gone: killed, or it crashed", names.data);
        dt__world_die(1, message);
    }
    check_stalled(world, now);
}

static void *watchdog_run(void *arg)
{
    struct dt_world *world = arg;
    struct dt__watchdog *watchdog = &world->watchdog;
    for (bool quit = false; !quit;) {
        watchdog_look(world);
        int64_t at = dt__now_us() + LOOK_US;
        struct timespec until = {.tv_sec = (time_t)(at / 1000000),
                                 .tv_nsec = (long)(at % 1000000) * 1000};
        pthread_mutex_lock(&watchdog->lock);
        while (!watchdog->quit &&
               !pthread_cond_timedwait(&watchdog->changed, &watchdog->lock, &until))
            continue;
        quit = watchdog->quit;
        pthread_mutex_unlock(&watchdog->lock);
    }
    return NULL;
}

/* Work that takes long shows that it makes progress, from whatever thread. */
static void watchdog_work_progress(void *arg)
{
    struct dt_world *world = arg;
    atomic_store_explicit(&atomic_load(&world->watchdog.mine)->progress_us, dt__now_us(),
                          memory_order_relaxed);
    if (pthread_equal(pthread_self(), world->watchdog.main)) dt__heartbeat_exchange(world);
}

dt_status dt__watchdog_start(struct dt_world *world, double stall_secs)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    watchdog->comm = MPI_COMM_NULL;
    watchdog->shared.win = MPI_WIN_NULL;
    watchdog->main = pthread_self();
    watchdog->looked_us = dt__now_us();
    watchdog->stall_us = (int64_t)(stall_secs * 1e6);
    DT_TRY(dt_alloc((size_t)world->size, sizeof *watchdog->peer, "heartbeats", &watchdog->peer));
    DT_TRY(dt_alloc(1, sizeof *watchdog->alone + sizeof watchdog->alone->row[0], "heartbeat table",
                    &watchdog->alone));
    watchdog->alone->rows = 1;
    dt__heartbeat_table_use(world, watchdog->alone, 0);
    atomic_store(&watched_world, world);
    dt_work_watch(watchdog_work_progress, world);
    pthread_condattr_t monotonic;
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    DT_TRY(dt_thread_start(&watchdog->thread, "watchdog", watchdog_run, world));
    watchdog->started = true;
    return DT_OK;
}

void dt__watchdog_connect(struct dt_world *world)
{
    dt__heartbeat_table_share(world);
    dt__peers_connect(world);
}

void dt__watchdog_stop(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    if (!watchdog->mine) return;
    dt_work_watch(NULL, NULL);
    atomic_store(&watchdog->mine->pid, 0);
    if (!watchdog->started) return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->quit = true;
    pthread_cond_signal(&watchdog->changed);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
}

void dt__watchdog_free(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    atomic_store(&watched_world, NULL);
    if (world->connected) {
        dt__peers_free(world);
        dt__shared_free(&watchdog->shared);
    }
    dt_free(watchdog->alone);
    dt_free(watchdog->peer);
}
