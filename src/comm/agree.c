/* Collective agreement on errors, the end of the job, and patient collectives. */
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"

/* ---- the end of the job --------------------------------------------------------------------- */

void dt__world_die(struct dt_world *world, int exit_code, const char *message)
{
    if (dt__error_claim(world))
        fprintf(stderr, "dtrain: error: [rank %d on %s] %s\n", world->rank,
                world->host_name[world->rank], message);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    abort();
}

void dt_world_abort(struct dt_world *world, dt_status status)
{
    dt__world_die(world, dt_status_exit_code(status), dt_error_text());
}

/* ---- agreement ------------------------------------------------------------------------------ */

struct verdict {
    int status;
    char text[DT_ERROR_MAX];
};

static dt_status agree(struct dt_world *world, MPI_Comm comm, dt_status mine)
{
    int lowest = mine ? world->rank : world->size;
    MPI_Request request;
    DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, comm, &request));
    dt__request_finish(world, &request, "agreement");
    if (lowest == world->size) return DT_OK;
    struct verdict verdict = {.status = (int)mine};
    bool placed = mine != DT_EUSAGE && world->size > 1;
    if (placed)
        snprintf(verdict.text, sizeof verdict.text, "[rank %d on %s] %s", world->rank,
                 world->host_name[world->rank], dt_error_text());
    else
        snprintf(verdict.text, sizeof verdict.text, "%s", dt_error_text());
    /* Crew ranks are the world's first: the rank is the same in both. */
    DT_MPI(MPI_Ibcast(&verdict, (int)sizeof verdict, MPI_BYTE, lowest, comm, &request));
    dt__request_finish(world, &request, "agreement");
    return dt_fail((dt_status)verdict.status, "%s", verdict.text);
}

dt_status dt_world_agree(struct dt_world *world, dt_status mine)
{
    return agree(world, world->all, mine);
}

dt_status dt_world_agree_crew(struct dt_world *world, dt_status mine)
{
    return agree(world, world->crew, mine);
}

/* ---- patient collectives -------------------------------------------------------------------- */

static void bcast(struct dt_world *world, MPI_Comm comm, void *bytes, size_t length, int root)
{
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        size_t n = length - at < DT__MPI_CHUNK ? length - at : DT__MPI_CHUNK;
        MPI_Request request;
        DT_MPI(MPI_Ibcast((char *)bytes + at, (int)n, MPI_BYTE, root, comm, &request));
        dt__request_finish(world, &request, "broadcast");
    }
}

dt_status dt_world_bcast(struct dt_world *world, void *bytes, size_t length, int root)
{
    bcast(world, world->all, bytes, length, root);
    return DT_OK;
}

dt_status dt_world_crew_bcast(struct dt_world *world, void *bytes, size_t length)
{
    bcast(world, world->crew, bytes, length, 0);
    return DT_OK;
}

dt_status dt_world_bcast_blob(struct dt_world *world, void *inout_bytes, size_t *inout_length,
                              int root)
{
    uint64_t length = *inout_length;
    bcast(world, world->all, &length, sizeof length, root);
    char *bytes = NULL;
    dt_status status = DT_OK;
    if (world->rank == root)
        memcpy(&bytes, inout_bytes, sizeof bytes);
    else
        status = dt_alloc(length + 1, 1, "broadcast", &bytes);
    DT_TRY(dt_world_agree(world, status));
    bcast(world, world->all, bytes, length, root);
    memcpy(inout_bytes, &bytes, sizeof bytes);
    *inout_length = length;
    return DT_OK;
}

dt_status dt_world_crew_barrier(struct dt_world *world)
{
    MPI_Request request;
    DT_MPI(MPI_Ibarrier(world->crew, &request));
    dt__request_finish(world, &request, "barrier");
    return DT_OK;
}

dt_status dt_world_crew_gather(struct dt_world *world, const void *bytes, size_t length, void *all)
{
    MPI_Request request;
    DT_MPI(MPI_Igather(bytes, (int)length, MPI_BYTE, all, (int)length, MPI_BYTE, 0, world->crew,
                       &request));
    dt__request_finish(world, &request, "gather");
    return DT_OK;
}

dt_status dt_world_crew_max(struct dt_world *world, uint64_t *inout_values, int count)
{
    MPI_Request request;
    DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, inout_values, count, MPI_UINT64_T, MPI_MAX, world->crew,
                          &request));
    dt__request_finish(world, &request, "maximum");
    return DT_OK;
}

dt_status dt_world_crew_sum(struct dt_world *world, const double *values, int count, double *out)
{
    MPI_Request request;
    DT_MPI(MPI_Ireduce(values, out, count, MPI_DOUBLE, MPI_SUM, 0, world->crew, &request));
    dt__request_finish(world, &request, "sum");
    return DT_OK;
}

/* ---- small messages ------------------------------------------------------------------------- */

dt_status dt_world_send(struct dt_world *world, int rank, int tag, const void *bytes, size_t length)
{
    MPI_Request request;
    DT_MPI(MPI_Isend(bytes, (int)length, MPI_BYTE, rank, tag, world->all, &request));
    dt__request_finish(world, &request, "message");
    return DT_OK;
}

bool dt_world_try_recv(struct dt_world *world, int rank, int tag, void *bytes, size_t length)
{
    int there = 0;
    DT_MPI(MPI_Iprobe(rank, tag, world->all, &there, MPI_STATUS_IGNORE));
    if (!there) return false;
    DT_MPI(MPI_Recv(bytes, (int)length, MPI_BYTE, rank, tag, world->all, MPI_STATUS_IGNORE));
    return true;
}
