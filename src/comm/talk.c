/* Heartbeats between hosts: the bank and the first rank of every other host tell each other that they
 * are there, how long ago somebody of their host got on, and whether a stop was requested. */
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
            watch->peer[watch->peers++] = (struct dt__peer){.rank = r, .request = MPI_REQUEST_NULL};
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

static void take_in(struct dt_world *world, int from, const int64_t message[2])
{
    int64_t now = dt__now_us();
    for (int i = 0; i < world->watch.peers; i++) {
        struct dt__peer *peer = &world->watch.peer[i];
        if (peer->rank != from) continue;
        atomic_store(&peer->heard_us, now);
        atomic_store(&peer->got_on_us, now - message[0]);
    }
    if (message[1]) dt_stop_request();
}

static void listen(struct dt_world *world)
{
    int there = 1;
    int64_t message[2];
    MPI_Status status;
    while (there) {
        DT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, TAG, world->watch.comm, &there, &status));
        if (!there) continue;
        DT_MPI(MPI_Recv(message, 2, MPI_INT64_T, status.MPI_SOURCE, TAG, world->watch.comm,
                        MPI_STATUS_IGNORE));
        take_in(world, status.MPI_SOURCE, message);
    }
    atomic_store(&world->watch.listened_us, dt__now_us());
}

/* One message at a time: to a peer that does not listen they must not pile up. */
static void tell(struct dt_world *world, struct dt__peer *peer)
{
    int done;
    DT_MPI(MPI_Test(&peer->request, &done, MPI_STATUS_IGNORE));
    if (!done) return;
    peer->out[0] = dt__now_us() - dt__board_got_on_us(world);
    peer->out[1] = dt_stop_requested();
    DT_MPI(
        MPI_Isend(peer->out, 2, MPI_INT64_T, peer->rank, TAG, world->watch.comm, &peer->request));
}

void dt__watch_talk(struct dt_world *world)
{
    struct dt__watch *watch = &world->watch;
    if (!watch->peers) return;
    int64_t now = dt__now_us();
    if (now < watch->talk_us) return;
    watch->talk_us = now + dt__talk_period_us(world);
    listen(world);
    for (int i = 0; i < watch->peers; i++)
        tell(world, &watch->peer[i]);
}
