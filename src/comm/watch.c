/* The watchdog: a board of pulses in memory that a host's ranks share, read by those who wait. */
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"

static int64_t now_us(void) {
    return (int64_t)(dt_clock_secs() * 1e6);
}

void dt_world_watch(struct dt_world *world, double stall_secs) {
    world->stall_secs = stall_secs;
}

/* Relaxed: a look that comes a little late changes nothing. */
static void store(_Atomic int64_t *place, int64_t value) {
    atomic_store_explicit(place, value, memory_order_relaxed);
}

void dt_world_beat(struct dt_world *world, const char *phase, uint64_t step) {
    struct dt__pulse *pulse = world->pulse;
    uint64_t words[DT__PHASE_WORDS] = {0};
    strncpy((char *)words, phase, sizeof words - 1);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store_explicit(&pulse->phase[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&pulse->step, step, memory_order_relaxed);
    int64_t now = now_us();
    store(&pulse->beat_us, now);
    store(&pulse->alive_us, now);
}

void dt__watch_touch(struct dt_world *world) {
    int64_t now = now_us();
    store(&world->pulse->beat_us, now);
    store(&world->pulse->alive_us, now);
}

void dt_world_rest(struct dt_world *world) {
    store(&world->pulse->alive_us, now_us());
}

/* Adds "rank 2 on node7 (gradient, step 17)" for each rank of this host that has not been alive since
 * `limit`; returns how many. */
static int name_stalled(struct dt_world *world, int64_t limit, struct dt_text *names) {
    int found = 0;
    for (int i = 0; i < world->host_size; i++) {
        struct dt__pulse *pulse = &world->board->pulse[i];
        int64_t alive = atomic_load(&pulse->alive_us);
        if (alive == 0 || alive > limit) continue;
        char phase[DT__PHASE_WORDS * 8];
        for (int w = 0; w < DT__PHASE_WORDS; w++) {
            uint64_t word = atomic_load(&pulse->phase[w]);
            memcpy(phase + 8 * w, &word, 8);
        }
        dt_text_add(names, "%srank %d on %s (%s, step %llu)", found++ ? ", " : "", pulse->rank,
                    world->host_name[pulse->rank], phase,
                    (unsigned long long)atomic_load(&pulse->step));
    }
    return found;
}

/* Whether another rank of this host has got on since `limit`. */
static bool somebody_got_on(struct dt_world *world, int64_t limit) {
    for (int i = 0; i < world->host_size; i++) {
        struct dt__pulse *pulse = &world->board->pulse[i];
        if (pulse != world->pulse && atomic_load(&pulse->beat_us) > limit) return true;
    }
    return false;
}

static void name_rank(struct dt_world *world, int rank, struct dt_text *names) {
    if (rank >= 0)
        dt_text_add(names, "rank %d on %s", rank, world->host_name[rank]);
    else
        dt_text_add(names, "the ranks of other hosts");
}

void dt__watch_check(struct dt_world *world, double since, const char *phase, int rank) {
    int64_t now = now_us();
    store(&world->pulse->alive_us, now);
    if (world->stall_secs <= 0) return;
    /* The bank speaks first, so that one line names the culprit. */
    double stall = world->stall_secs + (world->rank ? 1.0 : 0.0);
    int64_t limit = now - (int64_t)(stall * 1e6);
    if (since * 1e6 > (double)limit) return;
    struct dt_text names = {0};
    if (!name_stalled(world, limit, &names)) {
        if (somebody_got_on(world, limit)) return;
        name_rank(world, rank, &names);
    }
    char message[DT_ERROR_MAX];
    snprintf(message, sizeof message,
             "no progress for %g s (run.stall_secs) while waiting for %s from %s", world->stall_secs,
             phase, names.data ? names.data : "another rank");
    dt__world_die(world, 1, message);
}

bool dt__error_claim(struct dt_world *world) {
    return world->board == NULL || atomic_exchange(&world->board->error_claimed, 1) == 0;
}
