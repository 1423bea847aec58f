/* The board: what each rank of a host does, in memory that they share. */
#include <string.h>

#include "comm/world.h"

int64_t dt__now_us(void)
{
    return (int64_t)(dt_clock_secs() * 1e6);
}

/* ---- create --------------------------------------------------------------------------------- */

/* Memory of `bytes` that the host shares, cache-line aligned; NULL where MPI has none to give. */
static void *share_with_host(struct dt_world *world, size_t bytes)
{
    MPI_Aint size = world->host_rank ? 0 : (MPI_Aint)bytes + 64;
    int unit;
    void *base;
    if (MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, world->host, &base, &world->board_win)) {
        world->board_win = MPI_WIN_NULL;
        return NULL;
    }
    DT_MPI(MPI_Win_shared_query(world->board_win, 0, &size, &unit, &base));
    base = (void *)(((uintptr_t)base + 63) & ~(uintptr_t)63);
    if (world->host_rank == 0) memset(base, 0, bytes);
    DT_MPI(MPI_Barrier(world->host));
    return base;
}

/* The host's board, or one of this rank's own, on which the others never show. */
dt_status dt__board_create(struct dt_world *world)
{
    size_t bytes = sizeof *world->board + (size_t)world->host_size * sizeof world->board->pulse[0];
    if (world->host_size > 1) world->board = share_with_host(world, bytes);
    if (!world->board) DT_TRY(dt_alloc(1, bytes, "watchdog board", &world->board));
    world->pulse = &world->board->pulse[world->host_rank];
    world->pulse->rank = world->rank;
    dt_world_beat(world, "start-up", 0);
    return DT_OK;
}

void dt__board_destroy(struct dt_world *world)
{
    if (world->board_win != MPI_WIN_NULL)
        DT_MPI(MPI_Win_free(&world->board_win));
    else
        dt_free(world->board);
}

/* ---- this rank ------------------------------------------------------------------------------ */

/* All relaxed: a look that comes a little late changes nothing. */
static void store(_Atomic int64_t *place, int64_t value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

static void store_phase(struct dt__phase *phase, const char *text)
{
    uint64_t words[DT__PHASE_WORDS] = {0};
    strncpy((char *)words, text, sizeof words - 1);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store_explicit(&phase->word[i], words[i], memory_order_relaxed);
}

static void end_wait(struct dt__pulse *pulse)
{
    atomic_store_explicit(&pulse->wait.word[0], 0, memory_order_relaxed);
}

void dt_world_beat(struct dt_world *world, const char *phase, uint64_t step)
{
    struct dt__pulse *pulse = world->pulse;
    store_phase(&pulse->phase, phase);
    atomic_store_explicit(&pulse->step, step, memory_order_relaxed);
    dt__watch_touch(world);
    dt__watch_talk(world);
}

void dt__watch_touch(struct dt_world *world)
{
    store(&world->pulse->beat_us, dt__now_us());
    end_wait(world->pulse);
}

void dt__watch_wait(struct dt_world *world, const char *what)
{
    store_phase(&world->pulse->wait, what);
    store(&world->pulse->beat_us, dt__now_us());
}

void dt_world_rest(struct dt_world *world, const char *what)
{
    store_phase(&world->pulse->wait, what);
    dt__watch_talk(world);
}

void dt__watch_ask(struct dt_world *world)
{
    store(&world->pulse->asking_us, dt__now_us());
}

void dt__watch_answered(struct dt_world *world)
{
    store(&world->pulse->asking_us, 0);
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

struct dt__heartbeat dt__pulse_tell(const struct dt_world *world)
{
    const struct dt__pulse *pulse = world->pulse;
    struct dt__heartbeat out = {.idle_us = dt__now_us() - dt__board_got_on_us(world),
                                .stop = dt_stop_requested(),
                                .step = atomic_load(&pulse->step)};
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        out.phase[i] = atomic_load(&pulse->phase.word[i]);
    return out;
}

void dt__pulse_hear(struct dt__pulse *pulse, const struct dt__heartbeat *heartbeat)
{
    atomic_store(&pulse->step, heartbeat->step);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store(&pulse->phase.word[i], heartbeat->phase[i]);
}

/* ---- all of the host ------------------------------------------------------------------------ */

int64_t dt__board_got_on_us(const struct dt_world *world)
{
    int64_t newest = 0;
    for (int i = 0; i < world->host_size; i++) {
        int64_t beat = atomic_load(&world->board->pulse[i].beat_us);
        if (beat > newest) newest = beat;
    }
    return newest;
}

static void load_phase(const struct dt__phase *phase, char text[8 * DT__PHASE_WORDS])
{
    for (int i = 0; i < DT__PHASE_WORDS; i++) {
        uint64_t word = atomic_load(&phase->word[i]);
        memcpy(text + 8 * i, &word, 8);
    }
    text[8 * DT__PHASE_WORDS - 1] = '\0';
}

dt_status dt__pulse_name(const struct dt_world *world, const struct dt__pulse *pulse,
                         struct dt_text *names)
{
    char phase[8 * DT__PHASE_WORDS], wait[8 * DT__PHASE_WORDS];
    load_phase(&pulse->phase, phase);
    load_phase(&pulse->wait, wait);
    return dt_text_add(names, "%srank %d on %s (%s, step %llu%s%s)", names->length ? ", " : "",
                       pulse->rank, world->host_name[pulse->rank], phase,
                       (unsigned long long)atomic_load(&pulse->step), *wait ? ", waiting for " : "",
                       wait);
}

bool dt__error_claim(struct dt_world *world)
{
    return world->board == NULL || atomic_exchange(&world->board->error_claimed, 1) == 0;
}
