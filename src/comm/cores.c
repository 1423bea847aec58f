/* The cores that the ranks of a host may use. */
#include <sched.h>
#include <unistd.h>

#include "comm/world.h"

/* What the launcher, a batch system or a container left to this process; all if that cannot be told. */
static void mine(cpu_set_t *out)
{
    CPU_ZERO(out);
    if (sched_getaffinity(0, sizeof *out, out) == 0) return;
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN) && i < CPU_SETSIZE; i++)
        CPU_SET((size_t)i, out);
}

void dt__cores_count(struct dt_world *world)
{
    cpu_set_t cores;
    mine(&cores);
    DT_MPI(MPI_Allreduce(MPI_IN_PLACE, &cores, (int)sizeof cores, MPI_BYTE, MPI_BOR, world->host));
    world->cores = CPU_COUNT(&cores);
}

int dt_world_cores(const struct dt_world *world)
{
    return world->cores;
}

int dt_world_host_workers(const struct dt_world *world)
{
    int workers = 0, host = world->host_of[world->rank];
    for (int w = 0; w < world->workers; w++)
        workers += world->host_of[dt_world_worker_rank(world, w)] == host;
    return workers;
}
