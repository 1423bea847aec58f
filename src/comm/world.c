/* Ranks, hosts and roles. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "comm/world.h"

/* What Open MPI needs and does not choose itself; a user's own setting wins. */
static void set_mca_defaults(void)
{
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0); /* waiting ranks give their core away */
    setenv("OMPI_MCA_osc", "^ucx", 0); /* Debian leaves no one-sided component across hosts else */
}

const char *dt_world_mpi_settings(char buffer[DT_MPI_SETTINGS])
{
    const char *yield = getenv("OMPI_MCA_mpi_yield_when_idle"), *osc = getenv("OMPI_MCA_osc");
    snprintf(buffer, DT_MPI_SETTINGS, "mpi_yield_when_idle=%s, osc=%s", yield ? yield : "",
             osc ? osc : "");
    return buffer;
}

static long env_number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

/* srun without PMIx starts N processes of which none knows of the others: Open MPI makes each a world
 * of its own, or ends it in MPI_Init with a page about its build. */
static dt_status check_singletons(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK")) return DT_OK;
    const char *key = getenv("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    long tasks = env_number(key);
    if (tasks < 2) return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "Slurm started %ld tasks (%s), but each sees itself alone: start them with "
                   "`srun --mpi=pmix` or `mpirun`",
                   tasks, key);
}

/* So does a launcher whose PMI this MPI does not speak. */
static dt_status check_pmi(const struct dt_world *world)
{
    long tasks = env_number("PMI_SIZE");
    if (world->size > 1 || tasks < 2) return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "the launcher started %ld processes (PMI_SIZE), but each sees itself alone: "
                   "start them with `srun --mpi=pmix` or `mpirun`",
                   tasks);
}

static void gather_names(struct dt_world *world)
{
    char mine[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    DT_MPI(MPI_Get_processor_name(mine, &length));
    mine[DT__HOST_NAME - 1] = '\0';
    DT_MPI(MPI_Allgather(mine, DT__HOST_NAME, MPI_CHAR, world->host_name, DT__HOST_NAME, MPI_CHAR,
                         world->all));
}

/* A host is what shares memory: two machines may bear one name. */
static void number_hosts(struct dt_world *world)
{
    DT_MPI(MPI_Comm_split_type(world->all, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL,
                               &world->host));
    DT_MPI(MPI_Comm_rank(world->host, &world->host_rank));
    DT_MPI(MPI_Comm_size(world->host, &world->host_size));
    int first = world->rank; /* of the host */
    DT_MPI(MPI_Bcast(&first, 1, MPI_INT, 0, world->host));
    DT_MPI(MPI_Allgather(&first, 1, MPI_INT, world->host_of, 1, MPI_INT, world->all));
    world->hosts = 0;
    for (int r = 0; r < world->size; r++) {
        first = world->host_of[r];
        world->host_of[r] = first < r ? world->host_of[first] : world->hosts++;
    }
}

static dt_status gather_hosts(struct dt_world *world)
{
    size_t size = (size_t)world->size;
    DT_TRY(dt_alloc(size, sizeof *world->host_name, "host names", &world->host_name));
    DT_TRY(dt_alloc(size, sizeof *world->host_of, "host table", &world->host_of));
    gather_names(world);
    number_hosts(world);
    return DT_OK;
}

/* Spinning pays while every rank of the host can have a core of its own, the sleeping bank aside. */
static void tune_waiting(struct dt_world *world)
{
    world->spin = world->host_size - 1 <= world->cores;
    prctl(PR_SET_TIMERSLACK, 1000UL); /* 1 us: short sleeps are what a patient wait is made of */
}

dt_status dt_world_create(struct dt_world **out)
{
    set_mca_defaults();
    DT_TRY(check_singletons());
    struct dt_world *world;
    DT_TRY(dt_alloc(1, sizeof *world, "world", &world));
    world->board_win = MPI_WIN_NULL;
    world->crew = MPI_COMM_NULL;
    int provided;
    DT_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided));
    DT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world->all));
    DT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    DT_MPI(MPI_Comm_set_errhandler(world->all, MPI_ERRORS_RETURN));
    DT_MPI(MPI_Comm_rank(world->all, &world->rank));
    DT_MPI(MPI_Comm_size(world->all, &world->size));
    dt_status status = DT_OK;
    DT_GUARD(check_pmi(world));
    DT_GUARD(gather_hosts(world));
    DT_GUARD(dt__watch_create(world));
    dt__cores_count(world);
    tune_waiting(world);
    DT_GUARD(dt_world_set_roles(world, false));
    *out = world;
done:
    if (status) dt_world_destroy(world);
    return status;
}

void dt_world_destroy(struct dt_world *world)
{
    if (!world) return;
    dt__watch_destroy(world);
    if (world->crew != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&world->crew));
    dt_free(world->host_name);
    dt_free(world->host_of);
    dt_free(world);
    DT_MPI(MPI_Finalize());
}

dt_status dt_world_set_roles(struct dt_world *world, bool dedicated)
{
    world->dedicated = dedicated;
    world->workers = world->size - 1 - (dedicated ? 1 : 0);
    if (world->workers < 1) world->workers = 1;
    if (world->crew != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&world->crew));
    int color = dt_world_role(world) == DT_EVALUATOR ? MPI_UNDEFINED : 0;
    DT_MPI(MPI_Comm_split(world->all, color, world->rank, &world->crew));
    return DT_OK;
}

int dt_world_rank(const struct dt_world *world)
{
    return world->rank;
}
int dt_world_size(const struct dt_world *world)
{
    return world->size;
}
int dt_world_hosts(const struct dt_world *world)
{
    return world->hosts;
}
int dt_world_workers(const struct dt_world *world)
{
    return world->workers;
}

const char *dt_world_host(const struct dt_world *world, int rank)
{
    return world->host_name[rank];
}

enum dt_role dt_world_role(const struct dt_world *world)
{
    if (world->rank == 0) return DT_BANK;
    return world->rank == dt_world_evaluator_rank(world) ? DT_EVALUATOR : DT_WORKER;
}

bool dt_world_is_bank(const struct dt_world *world)
{
    return world->rank == 0;
}

bool dt_world_is_worker(const struct dt_world *world)
{
    return dt_world_worker_index(world) >= 0;
}

int dt_world_evaluator_rank(const struct dt_world *world)
{
    return world->dedicated ? world->size - 1 : -1;
}

/* The bank of a job without workers is its own worker. */
int dt_world_worker_rank(const struct dt_world *world, int worker)
{
    return world->size == 1 ? 0 : worker + 1;
}

int dt_world_worker_index(const struct dt_world *world)
{
    if (world->size == 1) return 0;
    return dt_world_role(world) == DT_WORKER ? world->rank - 1 : -1;
}

void dt_world_replicas(const struct dt_world *world, int worker, int replicas, int *first,
                       int *count)
{
    int64_t w = world->workers;
    int64_t begin = (int64_t)worker * replicas / w, end = ((int64_t)worker + 1) * replicas / w;
    if (replicas <= w) { /* one each for the first R workers; the rest idle */
        begin = worker < replicas ? worker : replicas;
        end = worker < replicas ? worker + 1 : replicas;
    }
    *first = (int)begin;
    *count = (int)(end - begin);
}

const char *dt_world_mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
    char *comma = strchr(text, ',');
    if (comma) *comma = '\0';
    return text;
}
