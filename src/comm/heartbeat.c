/* Heartbeats: the rows in which the ranks of a host show what they do, and the choice of the rank
 * that prints the error line. This file sends no messages. */
#include <string.h>

#include "comm/world.h"

/* The world of this process that was watched last, for errors and progress in code that has no
 * pointer to a world. */
static struct dt_world *_Atomic watched_world;

struct dt_world *dt__watched_world(void)
{
    return atomic_load(&watched_world);
}

void dt__watched_world_store(struct dt_world *world)
{
    atomic_store(&watched_world, world);
}

int64_t dt__now_us(void)
{
    return (int64_t)(dt__clock_secs() * 1e6);
}

/* ---- this rank ------------------------------------------------------------------------------ */

void dt__store_relaxed(_Atomic int64_t *place, int64_t value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

void dt__phase_store(struct dt__phase *phase, const char *text)
{
    uint64_t words[DT__PHASE_WORDS] = {0};
    strncpy((char *)words, text, sizeof words - 1);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store_explicit(&phase->word[i], words[i], memory_order_relaxed);
}

void dt__phase_load(const struct dt__phase *phase, char text[DT_PHASE_TEXT])
{
    for (int i = 0; i < DT__PHASE_WORDS; i++) {
        uint64_t word = atomic_load(&phase->word[i]);
        memcpy(text + 8 * i, &word, 8);
    }
    text[DT_PHASE_TEXT - 1] = '\0';
}

struct dt__heartbeat *dt__heartbeat_own(const struct dt_world *world)
{
    return atomic_load_explicit(&world->inside->watchdog.mine, memory_order_relaxed);
}

void dt__watchdog_progress(struct dt_world *world)
{
    dt__store_relaxed(&dt__heartbeat_own(world)->progress_us, dt__now_us());
    /* Release: a reader that sees the end of the wait also sees the progress. */
    atomic_store_explicit(&dt__heartbeat_own(world)->wait.word[0], 0, memory_order_release);
    if (world->inside->whole) dt__watchdog_progress(world->inside->whole);
}

void dt__watchdog_wait(struct dt_world *world, const char *what)
{
    dt__phase_store(&dt__heartbeat_own(world)->wait, what);
    dt__store_relaxed(&dt__heartbeat_own(world)->progress_us, dt__now_us());
    if (world->inside->whole) dt__watchdog_wait(world->inside->whole, what);
}

bool dt__watchdog_waits(const struct dt_world *world)
{
    return atomic_load_explicit(&dt__heartbeat_own(world)->wait.word[0], memory_order_relaxed) != 0;
}

void dt__world_show(struct dt_world *world, uint64_t samples, double wait_fraction)
{
    struct dt__heartbeat *heartbeat = dt__heartbeat_own(world);
    const int permille =
        wait_fraction >= 0 && wait_fraction <= 1 ? 1 + (int)(1000 * wait_fraction) : 0;
    atomic_store_explicit(&heartbeat->samples, samples, memory_order_relaxed);
    atomic_store_explicit(&heartbeat->wait_permille, permille, memory_order_relaxed);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Returns whether this row's process has died without deregistering: then the mutex that it held
 * cannot be locked normally. */
bool dt__heartbeat_is_dead(struct dt__heartbeat *heartbeat)
{
    if (!atomic_load(&heartbeat->present)) return false;
    const int code = pthread_mutex_trylock(&heartbeat->life);
    if (code == 0 || code == EOWNERDEAD) pthread_mutex_unlock(&heartbeat->life);
    return (code == EOWNERDEAD || code == ENOTRECOVERABLE) && atomic_load(&heartbeat->present);
}

/* Called by the watchdog thread: deregisters it from its current row, and registers it in another
 * one; NULL: in none. */
void dt__heartbeat_hold(struct dt__watchdog *watchdog, struct dt__heartbeat *heartbeat)
{
    struct dt__heartbeat *before = watchdog->held;
    if (before == heartbeat) return;
    if (before) {
        atomic_store(&before->awake_us, 0); /* an ended rank is not stuck */
        atomic_store(&before->present, 0);
        pthread_mutex_unlock(&before->life);
    }
    watchdog->held = heartbeat;
    if (!heartbeat) return;
    pthread_mutex_lock(&heartbeat->life);
    atomic_store(&heartbeat->present, 1);
}

/* Makes this rank use a row of the table. `awake_us` is set after the progress, because other ranks
 * may read the row before this function returns. */
void dt__heartbeat_table_use(struct dt_world *world, struct dt__heartbeat_table *table, int row)
{
    struct dt__heartbeat *heartbeat = &table->row[row];
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&heartbeat->life, &robust);
    pthread_mutexattr_destroy(&robust);
    heartbeat->rank = world->rank;
    dt__phase_store(&heartbeat->phase, "start-up");
    atomic_store(&heartbeat->progress_us, dt__now_us());
    atomic_store(&world->inside->watchdog.mine, heartbeat);
    atomic_store(&heartbeat->awake_us, dt__now_us()); /* the thread may never look */
    atomic_store(&world->inside->watchdog.table, table);
}

/* Returns the time of the last progress of any rank in the table. */
int64_t dt__newest_progress_us(const struct dt__heartbeat_table *table)
{
    int64_t newest = 0;
    for (int i = 0; i < table->rows; i++) {
        int64_t progress = atomic_load(&table->row[i].progress_us);
        if (progress > newest) newest = progress;
    }
    return newest;
}

/* ---- the error line ------------------------------------------------------------------------- */

/* Returns the world whose hosts print one line each: for a part of a world, the whole world. */
static struct dt_world *error_world(void)
{
    struct dt_world *world = atomic_load(&watched_world);
    return world && world->inside->whole ? world->inside->whole : world;
}

bool dt__error_was_printed(const struct dt__watchdog *watchdog)
{
    return atomic_load(&atomic_load(&watchdog->table)->error) == DT__ERROR_PRINTED;
}

bool dt__error_claim(char place[DT__PLACE])
{
    struct dt_world *world = error_world();
    place[0] = '\0';
    if (!world) return true;
    snprintf(place, DT__PLACE, "[rank %d on %s] ", world->rank, world->host_name[world->rank]);
    int nobody = DT__ERROR_NONE;
    return atomic_compare_exchange_strong(&atomic_load(&world->inside->watchdog.table)->error,
                                          &nobody, DT__ERROR_CLAIMED);
}

void dt__error_mark_printed(void)
{
    struct dt_world *world = error_world();
    if (!world) return;
    atomic_store(&atomic_load(&world->inside->watchdog.table)->error, DT__ERROR_PRINTED);
    /* Only main threads send messages: this rank's, or that of the first rank of its host. */
    if (world->hosts > 1 && !pthread_equal(pthread_self(), world->inside->watchdog.main))
        dt__sleep_secs((double)DT__LOOK_US * 1e-6);
}

void dt__error_await(double secs)
{
    struct dt_world *world = error_world();
    const double end = dt__clock_secs() + secs;
    while (world && dt__clock_secs() < end &&
           atomic_load(&atomic_load(&world->inside->watchdog.table)->error) != DT__ERROR_PRINTED)
        dt__sleep_secs(0.01);
}
