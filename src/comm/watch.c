/* The watchdog's thread: looks around, and ends the job of those who got stuck. */
#include "comm/watch.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "comm/world.h"

static const int64_t LOOK_US = 200000;   /* from look to look */
static const int64_t LATE_US = 1000000;  /* a look so late says that this process was stopped */
static const int64_t QUIET_US = 1000000; /* beyond the deadline: another host is silent */
static const int64_t ABORT_US = 8000000; /* an abort has reached all hosts (measured: up to 3 s) */
static const int64_t ALL_WAIT_US = 12000000; /* beyond it: who is stuck alone has been named */

void dt_world_watch(struct dt_world *world, double stall_secs)
{
    dt__watch_touch(world);
    dt__talk_begin(world);
    atomic_store(&world->watch.stall_us, (int64_t)(stall_secs * 1e6));
}

/* ---- ranks of this host --------------------------------------------------------------------- */

typedef bool find_fn(const struct dt__pulse *pulse, int64_t limit);

static bool is_stopped(const struct dt__pulse *pulse, int64_t limit)
{
    int64_t awake = atomic_load(&pulse->awake_us);
    return awake && awake <= limit;
}

static bool is_stuck(const struct dt__pulse *pulse, int64_t limit)
{
    bool waits = atomic_load(&pulse->wait.word[0]) || atomic_load(&pulse->asking_us);
    return atomic_load(&pulse->awake_us) && !waits && atomic_load(&pulse->beat_us) <= limit;
}

static bool is_any(const struct dt__pulse *pulse, int64_t limit)
{
    (void)limit;
    return atomic_load(&pulse->awake_us);
}

static void name_all(const struct dt_world *world, find_fn *find, int64_t limit,
                     struct dt_text *names)
{
    for (int i = 0; i < world->host_size; i++) {
        const struct dt__pulse *pulse = &world->board->pulse[i];
        if (find(pulse, limit) && dt__pulse_name(world, pulse, names)) return;
    }
}

static bool is_alone(const struct dt_world *world, int rank)
{
    int ranks = 0;
    for (int r = 0; r < world->size; r++)
        ranks += world->host_of[r] == world->host_of[rank];
    return ranks == 1;
}

/* A rank alone on its host cannot tell of its being stopped: the bank speaks of it, and it leaves the
 * word to the bank when it is stuck as well. */
static int64_t stuck_limit(const struct dt_world *world, int64_t limit)
{
    bool bank_speaks = world->host_of[world->rank] != 0 && is_alone(world, world->rank);
    return bank_speaks ? limit - ABORT_US : limit;
}

/* ---- other hosts ---------------------------------------------------------------------------- */

/* Who sees a rank's board speaks first, then the bank, then host by host: each gives the abort of those
 * before it time to come, so that one line names the culprit. */
static int64_t patience_us(const struct dt_world *world, int silent)
{
    int64_t turn = world->host_of[world->rank] + (is_alone(world, silent) ? 0 : 1);
    return QUIET_US + dt__talk_period_us(world) + turn * ABORT_US;
}

/* A silent host counts only for a rank that listens. */
static void name_silent(struct dt_world *world, int64_t now, int64_t stall, struct dt_text *names)
{
    struct dt__watch *watch = &world->watch;
    if (atomic_load(&watch->listened_us) < now - QUIET_US - dt__talk_period_us(world)) return;
    for (int i = 0; i < watch->peers; i++) {
        const struct dt__pulse *pulse = &watch->peer[i].pulse;
        int64_t silence = now - atomic_load(&watch->peer[i].heard_us) - stall;
        if (silence < 0 || silence < patience_us(world, pulse->rank)) continue;
        if (dt__pulse_name(world, pulse, names)) return;
        dt_text_add(names, ", which is not heard from");
    }
}

/* A rank that waits inside MPI for the bank of another host's memory cannot listen. */
static void name_bank(struct dt_world *world, int64_t now, int64_t stall, struct dt_text *names)
{
    int64_t asking = atomic_load(&world->pulse->asking_us), silence = now - asking - stall;
    if (!asking || silence < 0 || silence < patience_us(world, 0)) return;
    if (world->watch.peers)
        dt__pulse_name(world, &world->watch.peer[0].pulse, names);
    else
        dt_text_add(names, "rank 0 on %s (in a phase not known here)", world->host_name[0]);
    dt_text_add(names, ", which does not answer");
}

/* Everybody waits: for each other, or for a file system. The bank tells. */
static bool all_wait(struct dt_world *world, int64_t limit)
{
    int64_t newest = dt__board_got_on_us(world);
    for (int i = 0; i < world->watch.peers; i++) {
        int64_t got_on = atomic_load(&world->watch.peer[i].got_on_us);
        if (got_on > newest) newest = got_on;
    }
    return world->rank == 0 && newest <= limit - ALL_WAIT_US;
}

/* ---- the verdict ---------------------------------------------------------------------------- */

static void judge(struct dt_world *world, int64_t now)
{
    int64_t stall = atomic_load(&world->watch.stall_us), limit = now - stall;
    struct dt_text names = {0};
    if (stall <= 0 || world->watch.woke_us > limit) return;
    name_all(world, is_stopped, limit, &names);
    if (!names.length) name_all(world, is_stuck, stuck_limit(world, limit), &names);
    if (!names.length) name_silent(world, now, stall, &names);
    if (!names.length) name_bank(world, now, stall, &names);
    if (!names.length && all_wait(world, limit)) name_all(world, is_any, limit, &names);
    if (!names.length) return;
    char message[DT_ERROR_MAX];
    snprintf(message, sizeof message, "no progress for %g s (run.stall_secs) at %s",
             (double)stall * 1e-6, names.data);
    dt__world_die(world, 1, message);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* A stop request to one process is one to the job. */
static void spread_stop(struct dt_world *world)
{
    if (dt_stop_requested())
        atomic_store(&world->board->stop, 1);
    else if (atomic_load(&world->board->stop))
        dt_stop_request();
}

static void look(struct dt_world *world)
{
    struct dt__watch *watch = &world->watch;
    int64_t now = dt__now_us();
    if (now - watch->looked_us > LATE_US) watch->woke_us = now;
    watch->looked_us = now;
    atomic_store(&world->pulse->awake_us, now);
    spread_stop(world);
    judge(world, now);
}

/* Sleeps till the next look; false: no more of them. */
static bool sleep_on(struct dt__watch *watch)
{
    struct timespec until;
    int64_t at = dt__now_us() + LOOK_US;
    until.tv_sec = (time_t)(at / 1000000);
    until.tv_nsec = (long)(at % 1000000) * 1000;
    pthread_mutex_lock(&watch->lock);
    while (!watch->quit && !pthread_cond_timedwait(&watch->changed, &watch->lock, &until))
        continue;
    bool quit = watch->quit;
    pthread_mutex_unlock(&watch->lock);
    return !quit;
}

static void *run(void *arg)
{
    struct dt_world *world = arg;
    do
        look(world);
    while (sleep_on(&world->watch));
    return NULL;
}

/* Signals are the main thread's. */
static dt_status start(struct dt_world *world)
{
    struct dt__watch *watch = &world->watch;
    pthread_condattr_t monotonic;
    sigset_t all, before;
    watch->looked_us = dt__now_us();
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&watch->thread, NULL, run, world);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return dt_fail(DT_EMEMORY, "cannot start the watchdog's thread: %s", strerror(error));
    watch->started = true;
    return DT_OK;
}

/* Work that takes long shows that it gets on, from whatever thread. */
static void work_got_on(void *arg)
{
    struct dt_world *world = arg;
    atomic_store_explicit(&world->pulse->beat_us, dt__now_us(), memory_order_relaxed);
    if (pthread_equal(pthread_self(), world->watch.main)) dt__watch_talk(world);
}

dt_status dt__watch_create(struct dt_world *world)
{
    world->watch.main = pthread_self();
    DT_TRY(dt__talk_create(world));
    DT_TRY(dt__board_create(world));
    dt_work_watch(work_got_on, world);
    return start(world);
}

void dt__watch_destroy(struct dt_world *world)
{
    struct dt__watch *watch = &world->watch;
    dt_work_watch(NULL, NULL);
    if (watch->started) {
        pthread_mutex_lock(&watch->lock);
        watch->quit = true;
        pthread_cond_signal(&watch->changed);
        pthread_mutex_unlock(&watch->lock);
        pthread_join(watch->thread, NULL);
    }
    dt__talk_destroy(world);
    dt__board_destroy(world);
}
