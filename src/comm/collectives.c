/* Collective agreement on errors, the end of the job, and patient collectives.
 *
 * Every wait for MPI is a loop of MPI_Test and sleeps, so that a rank that waits takes no core from one
 * that computes, and the watchdog sees what is waited for. */
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"

/* ---- the end of the job --------------------------------------------------------------------- */

void dt__world_die(int exit_code, const char *message)
{
    char place[DT__PLACE];
    if (dt__error_claim(place)) fprintf(stderr, "dtrain: error: %s%s\n", place, message);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    abort();
}

void dt_world_abort(struct dt_world *world, dt_status status)
{
    (void)world;
    dt__world_die(dt_status_exit_code(status), dt_error_text());
}

const char *dt__mpi_text(int code, char text[MPI_MAX_ERROR_STRING])
{
    int length;
    text[0] = '\0';
    MPI_Error_string(code, text, &length);
    return text;
}

void dt__mpi_check(int code, const char *call, const char *file, int line)
{
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING], message[DT_ERROR_MAX];
    snprintf(message, sizeof message, "%s:%d: %s: %s", file, line, call, dt__mpi_text(code, text));
    dt__world_die(1, message);
}

/* ---- waits ---------------------------------------------------------------------------------- */

/* The back-off of a wait on MPI: rounds without sleep, about 100 us in all, then sleeps in microseconds
 * that stay short beside a message between hosts (500 us at 1 Gbit/s) and let an idle core rest. */
enum { SPIN_ROUNDS = 200, FIRST_SLEEP_US = 20, LAST_SLEEP_US = 200, EXCHANGE_ROUNDS = 64 };

void dt__wait_init(struct dt__wait *wait, struct dt_world *world, const char *what)
{
    *wait = (struct dt__wait){.world = world, .what = what};
}

void dt__wait_pause(struct dt__wait *wait)
{
    unsigned round = wait->round++;
    if (round == 0) dt__watchdog_wait(wait->world, wait->what);
    if (wait->nap_secs <= 0 && wait->world->spin && round < SPIN_ROUNDS) return;
    double us = FIRST_SLEEP_US + (double)(round > SPIN_ROUNDS ? round - SPIN_ROUNDS : 0) / 4;
    us = us < LAST_SLEEP_US ? us : LAST_SLEEP_US;
    dt_sleep_secs(wait->nap_secs > 0 ? wait->nap_secs : us * 1e-6);
    if (round % EXCHANGE_ROUNDS == 0) dt__heartbeat_exchange(wait->world);
}

void dt__wait_progress(struct dt__wait *wait)
{
    if (!wait->round) return;
    wait->round = SPIN_ROUNDS; /* more is to come, but not within a spin */
    dt__watchdog_wait(wait->world, wait->what);
}

void dt__wait_done(struct dt__wait *wait)
{
    if (wait->round) dt__watchdog_progress(wait->world);
    wait->round = 0;
}

void dt__request_finish(struct dt_world *world, MPI_Request *request, const char *what)
{
    struct dt__wait wait;
    if (!world) {
        DT_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
        return;
    }
    dt__wait_init(&wait, world, what);
    for (int done = 0;;) {
        DT_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (done) break;
        dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
}

/* ---- agreement ------------------------------------------------------------------------------ */

/* The lowest failing rank's status and message. */
struct agreement {
    int status;
    char text[DT_ERROR_MAX];
};

dt_status dt__agree_among(struct dt_world *world, MPI_Comm comm, dt_status mine)
{
    int rank, size, length;
    MPI_Request request;
    DT_MPI(MPI_Comm_rank(comm, &rank));
    DT_MPI(MPI_Comm_size(comm, &size));
    int lowest = mine ? rank : size;
    DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, comm, &request));
    dt__request_finish(world, &request, "agreement");
    if (lowest == size) return DT_OK;
    struct agreement agreement = {.status = (int)mine};
    char host[MPI_MAX_PROCESSOR_NAME] = "", place[DT__PLACE] = "";
    if (mine != DT_EUSAGE && (world ? world->size : size) > 1) {
        DT_MPI(MPI_Get_processor_name(host, &length));
        snprintf(place, sizeof place, "[rank %d on %.*s] ", world ? world->rank : rank,
                 DT__HOST_NAME - 1, host);
    }
    snprintf(agreement.text, sizeof agreement.text, "%s%s", place, dt_error_text());
    DT_MPI(MPI_Ibcast(&agreement, (int)sizeof agreement, MPI_BYTE, lowest, comm, &request));
    dt__request_finish(world, &request, "agreement");
    return dt_fail((dt_status)agreement.status, "%s", agreement.text);
}

dt_status dt_world_agree(struct dt_world *world, dt_status mine)
{
    return dt__agree_among(world, world->all, mine);
}

dt_status dt_world_agree_trainers(struct dt_world *world, dt_status mine)
{
    return dt__agree_among(world, world->trainers, mine);
}

/* ---- patient collectives -------------------------------------------------------------------- */

static int chunk_at(size_t length, size_t at)
{
    return length - at < DT__MPI_CHUNK ? (int)(length - at) : DT__MPI_CHUNK;
}

void dt__bcast_among(struct dt_world *world, MPI_Comm comm, void *bytes, size_t length, int root,
                     const char *what)
{
    MPI_Request request;
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        DT_MPI(
            MPI_Ibcast((char *)bytes + at, chunk_at(length, at), MPI_BYTE, root, comm, &request));
        dt__request_finish(world, &request, what);
    }
}

void dt_world_bcast(struct dt_world *world, void *bytes, size_t length, int root)
{
    dt__bcast_among(world, world->all, bytes, length, root, "broadcast");
}

void dt_world_trainers_bcast(struct dt_world *world, void *bytes, size_t length)
{
    dt__bcast_among(world, world->trainers, bytes, length, 0, "broadcast");
}

dt_status dt_world_bcast_blob(struct dt_world *world, void *inout_bytes, size_t *inout_length,
                              int root)
{
    uint64_t length = *inout_length;
    dt_world_bcast(world, &length, sizeof length, root);
    char *bytes = NULL;
    dt_status status = DT_OK;
    if (world->rank == root)
        memcpy(&bytes, inout_bytes, sizeof bytes);
    else
        status = dt_alloc(length + 1, 1, "broadcast", &bytes);
    DT_TRY(dt_world_agree(world, status));
    dt_world_bcast(world, bytes, length, root);
    memcpy(inout_bytes, &bytes, sizeof bytes);
    *inout_length = length;
    return DT_OK;
}

void dt__barrier_among(struct dt_world *world, MPI_Comm comm)
{
    MPI_Request request;
    DT_MPI(MPI_Ibarrier(comm, &request));
    dt__request_finish(world, &request, "barrier");
}

void dt_world_trainers_barrier(struct dt_world *world)
{
    dt__barrier_among(world, world->trainers);
}

void dt__move_among(struct dt_world *world, MPI_Comm comm, int from, int to, void *bytes,
                    size_t length, const char *what)
{
    int rank;
    MPI_Request request;
    DT_MPI(MPI_Comm_rank(comm, &rank));
    if (from == to || (rank != from && rank != to)) return;
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        char *piece = (char *)bytes + at;
        if (rank == from)
            DT_MPI(MPI_Isend(piece, chunk_at(length, at), MPI_BYTE, to, 0, comm, &request));
        else
            DT_MPI(MPI_Irecv(piece, chunk_at(length, at), MPI_BYTE, from, 0, comm, &request));
        dt__request_finish(world, &request, what);
    }
}

void dt_world_move(struct dt_world *world, int from, int to, void *bytes, size_t length)
{
    dt__move_among(world, world->trainers, from, to, bytes, length, "state");
}

/* Piece by piece: one of each rank, `length` apart at the bank. */
static void gather_over(struct dt_world *world, MPI_Comm comm, const void *bytes, size_t length,
                        void *all)
{
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        MPI_Datatype piece, spaced;
        MPI_Request request;
        int n = chunk_at(length, at);
        DT_MPI(MPI_Type_contiguous(n, MPI_BYTE, &piece));
        DT_MPI(MPI_Type_create_resized(piece, 0, (MPI_Aint)length, &spaced));
        DT_MPI(MPI_Type_commit(&spaced));
        DT_MPI(MPI_Igather((const char *)bytes + at, n, MPI_BYTE, all ? (char *)all + at : NULL, 1,
                           spaced, 0, comm, &request));
        dt__request_finish(world, &request, "gather");
        DT_MPI(MPI_Type_free(&spaced));
        DT_MPI(MPI_Type_free(&piece));
    }
}

void dt_world_gather(struct dt_world *world, const void *bytes, size_t length, void *all)
{
    gather_over(world, world->all, bytes, length, all);
}

void dt_world_trainers_gather(struct dt_world *world, const void *bytes, size_t length, void *all)
{
    gather_over(world, world->trainers, bytes, length, all);
}

void dt_world_trainers_sum(struct dt_world *world, const double *values, int count, double *out)
{
    MPI_Request request;
    DT_MPI(MPI_Ireduce(values, out, count, MPI_DOUBLE, MPI_SUM, 0, world->trainers, &request));
    dt__request_finish(world, &request, "sum");
}

/* ---- small messages ------------------------------------------------------------------------- */

void dt_world_send(struct dt_world *world, int rank, int tag, const void *bytes, size_t length)
{
    MPI_Request request;
    DT_MPI(MPI_Isend(bytes, (int)length, MPI_BYTE, rank, tag, world->all, &request));
    dt__request_finish(world, &request, "message");
}

bool dt_world_try_recv(struct dt_world *world, int rank, int tag, void *bytes, size_t length)
{
    int there = 0;
    DT_MPI(MPI_Iprobe(rank, tag, world->all, &there, MPI_STATUS_IGNORE));
    if (!there) return false;
    DT_MPI(MPI_Recv(bytes, (int)length, MPI_BYTE, rank, tag, world->all, MPI_STATUS_IGNORE));
    return true;
}
