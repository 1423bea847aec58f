/* Heartbeats between hosts: the bank and the first rank of every other host tell each other that they
 * are there and what they do, how long ago somebody of their host got on, and whether a stop was
 * requested. */
#include "comm/world.h"

enum { TAG = 1, MAX_PERIOD_US = 500000, MIN_PERIOD_US = 100000 };

int64_t dt__talk_period_us(const struct dt_world *world)
{
    int64_t period = atomic_load(&world->watch.stall_us) / 8;
    if (period <= 0 || period > MAX_PERIOD_US) return MAX_PERIOD_US;
    return period < MIN_PERIOD_US ? MIN_PERIOD_US : period;
}

/* The lowest rank of its host. */
static bool is_first(const struct dt_world *world, int rank)
{
    int r = 0;
    while (world->host_of[r] != world->host_of[rank])
        r++;
    return r == rank;
}

/* The bank's peers are the first ranks of the other hosts; theirs is the bank. */
static bool is_peer(const struct dt_world *world, int rank)
{
    bool pair = world->rank == 0 || rank == 0;
    return pair && world->host_of[rank] != world->host_of[world->rank] && is_first(world, rank) &&
           is_first(world, world->rank);
}

dt_status dt__talk_create(struct dt_world *world)
{
    struct dt__watch *watch = &world->watch;
    if (world->hosts == 1) return DT_OK;
    DT_MPI(MPI_Comm_dup(world->all, &watch->comm));
    DT_TRY(dt_alloc((size_t)world->hosts, sizeof *watch->peer, "heartbeats", &watch->peer));
    for (int r = 0; r < world->size; r++)
        if (is_peer(world, r))
            watch->peer[watch->peers++] =
                (struct dt__peer){.pulse.rank = r, .request = MPI_REQUEST_NULL};
    return DT_OK;
}

void dt__talk_destroy(struct dt_world *world)
{
    struct dt__watch *watch = &world->watch;
    if (!watch->peer) return;
    for (int i = 0; i < watch->peers; i++)
        DT_MPI(MPI_Wait(&watch->peer[i].request, MPI_STATUS_IGNORE));
    DT_MPI(MPI_Comm_free(&watch->comm));
    dt_free(watch->peer);
}

static void take_in(struct dt__peer *peer, const struct dt__heartbeat *heartbeat)
{
    int64_t now = dt__now_us();
    atomic_store(&peer->heard_us, now);
    atomic_store(&peer->got_on_us, now - heartbeat->idle_us);
    dt__pulse_hear(&peer->pulse, heartbeat);
    if (heartbeat->stop) dt_stop_request();
}

void dt__talk_begin(struct dt_world *world)
{
    struct dt__heartbeat mine = dt__pulse_tell(world);
    for (int i = 0; i < world->watch.peers; i++)
        take_in(&world->watch.peer[i], &mine);
}

static bool hear(struct dt__watch *watch, struct dt__peer *peer)
{
    int there, rank = peer->pulse.rank;
    struct dt__heartbeat heartbeat;
    DT_MPI(MPI_Iprobe(rank, TAG, watch->comm, &there, MPI_STATUS_IGNORE));
    if (!there) return false;
    DT_MPI(MPI_Recv(&heartbeat, (int)sizeof heartbeat, MPI_BYTE, rank, TAG, watch->comm,
                    MPI_STATUS_IGNORE));
    take_in(peer, &heartbeat);
    return true;
}

/* One message at a time: to a peer that does not listen they must not pile up. */
static void tell(struct dt_world *world, struct dt__peer *peer)
{
    int done;
    DT_MPI(MPI_Test(&peer->request, &done, MPI_STATUS_IGNORE));
    if (!done) return;
    peer->out = dt__pulse_tell(world);
    DT_MPI(MPI_Isend(&peer->out, (int)sizeof peer->out, MPI_BYTE, peer->pulse.rank, TAG,
                     world->watch.comm, &peer->request));
}

void dt__watch_talk(struct dt_world *world)
{
    struct dt__watch *watch = &world->watch;
    if (!watch->peers) return;
    int64_t now = dt__now_us();
    if (now < watch->talk_us) return;
    watch->talk_us = now + dt__talk_period_us(world);
    for (int i = 0; i < watch->peers; i++)
        while (hear(watch, &watch->peer[i]))
            continue;
    atomic_store(&watch->listened_us, dt__now_us());
    for (int i = 0; i < watch->peers; i++)
        tell(world, &watch->peer[i]);
}
