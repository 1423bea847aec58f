/* Collective agreement on errors, and patient collectives.
 *
 * Every wait for MPI is a loop of MPI_Test and sleeps, so that a waiting rank takes no core from
 * one that computes, and the watchdog sees what is waited for. */
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"

/* ---- waits ---------------------------------------------------------------------------------- */

/* Back-off of a wait on MPI: pauses without sleep, about 100 us in all, then sleeps in microseconds
 * that are short compared with a message between hosts (500 us at 1 Gbit/s) and leave an idle core
 * free. */
enum { SPIN_PAUSES = 200, FIRST_SLEEP_US = 20, LAST_SLEEP_US = 200, EXCHANGE_PAUSES = 64 };

void dt__wait_pause(struct dt__wait *wait)
{
    unsigned pauses = wait->pauses++;
    if (pauses == 0 || !dt__watchdog_waits(wait->world)) dt__watchdog_wait(wait->world, wait->what);
    if (wait->nap_secs <= 0 && wait->world->inside->spin && pauses < SPIN_PAUSES) return;
    double us = FIRST_SLEEP_US + (double)(pauses > SPIN_PAUSES ? pauses - SPIN_PAUSES : 0) / 4;
    us = us < LAST_SLEEP_US ? us : LAST_SLEEP_US;
    dt__sleep_secs(wait->nap_secs > 0 ? wait->nap_secs : us * 1e-6);
    if (pauses % EXCHANGE_PAUSES == 0) dt__heartbeat_exchange(wait->world);
}

void dt__wait_progress(struct dt__wait *wait)
{
    if (!wait->pauses) return;
    wait->pauses = SPIN_PAUSES; /* more will arrive, but not within a spin */
    dt__watchdog_wait(wait->world, wait->what);
}

void dt__wait_done(struct dt__wait *wait)
{
    if (wait->pauses) dt__watchdog_progress(wait->world);
}

/* Waits patiently for a request. world NULL: there is none yet; blocks. */
static void request_finish(struct dt_world *world, MPI_Request *request, const char *what)
{
    struct dt__wait wait = {.world = world, .what = what};
    if (!world) {
        DT_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
        return;
    }
    for (int done = 0;;) {
        DT_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (done) break;
        dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
}

/* ---- agreement ------------------------------------------------------------------------------ */

/* Status and message of the lowest failing rank. */
struct agreement {
    int status;
    char text[DT_ERROR_MAX];
};

dt_status dt__ranks_agree(const struct dt_ranks *ranks, dt_status mine)
{
    const struct dt_world *world = ranks->world;
    int rank, size, length;
    MPI_Request request;
    DT_MPI(MPI_Comm_rank(ranks->comm, &rank));
    DT_MPI(MPI_Comm_size(ranks->comm, &size));
    int lowest = mine ? rank : size;
    DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, ranks->comm, &request));
    request_finish(ranks->world, &request, "agreement");
    if (lowest == size) return DT_OK;
    struct agreement agreement = {.status = (int)mine};
    char host[MPI_MAX_PROCESSOR_NAME] = "", place[DT__PLACE] = "";
    const bool has_place = !strncmp(dt_error_text(), "[rank ", 6); /* of an earlier agreement */
    if (mine != DT_EUSAGE && !has_place && (world ? world->size : size) > 1) {
        DT_MPI(MPI_Get_processor_name(host, &length));
        snprintf(place, sizeof place, "[rank %d on %.*s] ", world ? world->rank : rank,
                 DT_HOST_NAME - 1, host);
    }
    snprintf(agreement.text, sizeof agreement.text, "%s%s", place, dt_error_text());
    DT_MPI(MPI_Ibcast(&agreement, (int)sizeof agreement, MPI_BYTE, lowest, ranks->comm, &request));
    request_finish(ranks->world, &request, "agreement");
    return dt_fail((dt_status)agreement.status, "%s", agreement.text);
}

/* ---- patient collectives -------------------------------------------------------------------- */

void dt__ranks_barrier(const struct dt_ranks *ranks)
{
    MPI_Request request;
    DT_MPI(MPI_Ibarrier(ranks->comm, &request));
    request_finish(ranks->world, &request, "barrier");
}

static int chunk_at(size_t length, size_t at)
{
    return length - at < DT__MPI_CHUNK ? (int)(length - at) : DT__MPI_CHUNK;
}

void dt__ranks_bcast(const struct dt_ranks *ranks, void *bytes, size_t length, int root)
{
    MPI_Request request;
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        DT_MPI(MPI_Ibcast((char *)bytes + at, chunk_at(length, at), MPI_BYTE, root, ranks->comm,
                          &request));
        request_finish(ranks->world, &request, ranks->what ? ranks->what : "broadcast");
    }
}

dt_status dt__ranks_bcast_blob(const struct dt_ranks *ranks, void *inout_bytes,
                               size_t *inout_length, int root)
{
    uint64_t length = *inout_length;
    int rank;
    DT_MPI(MPI_Comm_rank(ranks->comm, &rank));
    dt__ranks_bcast(ranks, &length, sizeof length, root);
    char *bytes = NULL;
    dt_status status = DT_OK;
    if (rank == root)
        memcpy(&bytes, inout_bytes, sizeof bytes);
    else
        status = dt__alloc(length + 1, 1, "broadcast", &bytes);
    status = dt__ranks_agree(ranks, status);
    if (status && rank != root) dt_free(bytes);
    DT_TRY(status);
    dt__ranks_bcast(ranks, bytes, length, root);
    memcpy(inout_bytes, &bytes, sizeof bytes);
    *inout_length = length;
    return DT_OK;
}

void dt__ranks_sum(const struct dt_ranks *ranks, const double *values, int count, double *out)
{
    MPI_Request request;
    if (!values) memset(out, 0, (size_t)count * sizeof *out);
    DT_MPI(MPI_Ireduce(values ? values : MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_SUM, 0,
                       ranks->comm, &request));
    request_finish(ranks->world, &request, "sum");
}

/* Sends bytes to a rank, or receives them from it. */
static void move_bytes(const struct dt_ranks *ranks, int rank, bool to, void *bytes, size_t length)
{
    MPI_Request request;
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        char *chunk = (char *)bytes + at;
        const int n = chunk_at(length, at);
        if (to)
            DT_MPI(MPI_Isend(chunk, n, MPI_BYTE, rank, 0, ranks->comm, &request));
        else
            DT_MPI(MPI_Irecv(chunk, n, MPI_BYTE, rank, 0, ranks->comm, &request));
        request_finish(ranks->world, &request, ranks->what ? ranks->what : "state");
    }
}

void dt__ranks_gather(const struct dt_ranks *ranks, const void *bytes, size_t length, void *all)
{
    int me, size;
    DT_MPI(MPI_Comm_rank(ranks->comm, &me));
    DT_MPI(MPI_Comm_size(ranks->comm, &size));
    if (me > 0) move_bytes(ranks, 0, true, (void *)(uintptr_t)bytes, length);
    if (me == 0) memcpy(all, bytes, length);
    for (int r = 1; r < size && me == 0; r++)
        move_bytes(ranks, r, false, (char *)all + (size_t)r * length, length);
}

void dt__ranks_move(const struct dt_ranks *ranks, int rank, bool to_first, float *own, float *first,
                    size_t n)
{
    int me;
    DT_MPI(MPI_Comm_rank(ranks->comm, &me));
    if (!n || (me != 0 && me != rank)) return;
    if (rank == 0) {
        if (own != first) memcpy(to_first ? first : own, to_first ? own : first, n * sizeof *own);
        return;
    }
    const bool sends = (me == rank) == to_first;
    const int other = me == rank ? 0 : rank;
    float *at = me == rank ? own : first;
    bool same = sends && memcmp(at, at + 1, (n - 1) * sizeof *at) == 0;
    move_bytes(ranks, other, sends, &same, sizeof same);
    move_bytes(ranks, other, sends, at, (same ? 1 : n) * sizeof *at);
    for (size_t i = 1; same && !sends && i < n; i++)
        at[i] = at[0];
}

/* ---- small messages ------------------------------------------------------------------------- */

void dt__world_send(struct dt_world *world, int rank, int tag, const void *bytes, size_t length)
{
    MPI_Request request;
    DT_MPI(MPI_Isend(bytes, (int)length, MPI_BYTE, rank, tag, world->all->comm, &request));
    request_finish(world, &request, "message");
}

bool dt__world_try_recv(struct dt_world *world, int rank, int tag, void *bytes, size_t length)
{
    int there = 0;
    DT_MPI(MPI_Iprobe(rank, tag, world->all->comm, &there, MPI_STATUS_IGNORE));
    if (!there) return false;
    DT_MPI(MPI_Recv(bytes, (int)length, MPI_BYTE, rank, tag, world->all->comm, MPI_STATUS_IGNORE));
    return true;
}
