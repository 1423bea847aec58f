/* Ranks, hosts and roles: how a job starts and ends.
 *
 * A start has two halves. First each rank does its local steps, which can fail (memory, the
 * watchdog's thread), and all ranks agree on the outcome, so that no rank continues or exits alone.
 * Then come the collective calls. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "comm/world.h"

/* ---- MPI ------------------------------------------------------------------------------------ */

const char *dt__world_mpi_settings(char buffer[DT_MPI_SETTINGS])
{
    static const char *const names[] = {"OMPI_MCA_mpi_yield_when_idle", "OMPI_MCA_osc",
                                        "OMPI_MCA_btl_tcp_sndbuf"};
    const size_t prefix = strlen("OMPI_MCA_");
    size_t length = 0;
    buffer[0] = '\0';
    if (!dt__world_is_open_mpi()) return buffer;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value)
            length += (size_t)snprintf(buffer + length, DT_MPI_SETTINGS - length, "%s%s=%.20s",
                                       length ? ", " : " (", names[i] + prefix, value);
    }
    if (length) snprintf(buffer + length, DT_MPI_SETTINGS - length, ")");
    return buffer;
}

int dt_world_rank(const struct dt_world *world)
{
    return world->rank;
}

int dt_world_size(const struct dt_world *world)
{
    return world->size;
}

const char *dt__world_mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
    size_t n = 0; /* MPICH's text has blanks, then pages about its build */
    for (const char *c = text; *c && !strchr(",\n", *c); c++)
        if (!strchr(" \t", *c))
            text[n++] = *c;
        else if (n > 0 && text[n - 1] != ' ')
            text[n++] = ' ';
    text[n] = '\0';
    return text;
}

bool dt__world_is_open_mpi(void)
{
    return strstr(dt__world_mpi_version(), "Open MPI") != NULL;
}

static long env_number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

/* TCP's BBR estimates a connection's rate from what its socket held. In an exchange with many hosts
 * each connection carries short bursts, and is then paced too slowly. With small send buffers data
 * is always waiting: 8 hosts at 200 Mbit/s take 157 ms a step instead of 190, 16 take 170 instead
 * of 215, and at 1 Gbit/s no more than without (measured by scripts/bench/scale.sh). Below four
 * hosts, and with other congestion controls, small buffers only cost time. */
static void limit_send_buffers(void)
{
    enum { TOGETHER = 196608, LEAST = 16384, FEWEST_HOSTS = 4 };
    const char *path = "/proc/sys/net/ipv4/tcp_congestion_control";
    char control[16] = "", bytes[16];
    long hosts = env_number("OMPI_MCA_orte_num_nodes");
    if (hosts < 1) hosts = env_number("SLURM_STEP_NUM_NODES");
    FILE *file = hosts < FEWEST_HOSTS ? NULL : fopen(path, "r");
    if (!file) return;
    bool bbr = fgets(control, sizeof control, file) && !strncmp(control, "bbr", 3);
    fclose(file);
    if (!bbr) return;
    long each = TOGETHER / (hosts - 1);
    snprintf(bytes, sizeof bytes, "%ld", each > LEAST ? each : LEAST);
    setenv("OMPI_MCA_btl_tcp_sndbuf", bytes, 0);
}

/* Starts MPI. one_host: MPI chooses no network device by its location, so hwloc, which MPI asks for
 * the topology, need not look at devices. Reading the PCI bus, disks and a display takes hwloc a
 * third of a rank's MPI_Init (Open MPI 4.1.4, hwloc 2.9). The program's own use of hwloc finds
 * devices again. */
static void begin_within(bool one_host, int *out_provided)
{
    static const struct {
        const char *name, *value;
    } settings[] = {{"HWLOC_COMPONENTS", "-linux:0x78"}, {"HWLOC_PLUGINS_PATH", ""}};
    enum { COUNT = sizeof settings / sizeof *settings };
    bool own[COUNT];
    for (int i = 0; i < COUNT; i++) {
        own[i] = one_host && !getenv(settings[i].name);
        if (own[i]) setenv(settings[i].name, settings[i].value, 1);
    }
    DT_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, out_provided));
    for (int i = 0; i < COUNT; i++)
        if (own[i]) unsetenv(settings[i].name);
}

/* Returns DT_EUSAGE if the launcher has started several ranks, but this one is alone in MPI. */
static dt_status check_alone(void)
{
    static const char *const keys[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
                                       "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!getenv(keys[i])) continue;
        if (env_number(keys[i]) <= 1) break;
        return dt_fail(DT_EUSAGE,
                       "%ld ranks were started (%s), but each sees itself alone: start them with "
                       "the `mpirun` of %s, or with `srun --mpi=%s` (one process alone: unset %s)",
                       env_number(keys[i]), keys[i], dt__world_mpi_version(),
                       dt__world_is_open_mpi() ? "pmix" : "pmi2", keys[i]);
    }
    return DT_OK;
}

/* ---- create --------------------------------------------------------------------------------- */

/* Creates this rank's part of the world. If that fails, the rank still takes part in the agreement
 * that follows. */
static dt_status prepare(MPI_Comm comm, double stall_secs, struct dt_world **out)
{
    struct {
        struct dt_world world;
        struct dt__world_inside inside;
    } * both;
    int length;
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    DT_TRY(dt__alloc(1, sizeof *both, "world", &both));
    struct dt_world *world = *out = &both->world;
    struct dt__world_inside *inside = world->inside = &both->inside;
    inside->all = inside->trainers = (struct dt_ranks){.world = world, .comm = MPI_COMM_NULL};
    inside->host = MPI_COMM_NULL;
    world->all = &inside->all;
    world->trainers = &inside->trainers;
    DT_MPI(MPI_Comm_rank(comm, &world->rank));
    DT_MPI(MPI_Comm_size(comm, &world->size));
    size_t size = (size_t)world->size;
    DT_TRY(DT__ARENA_ALLOC(&inside->arena, "host table", DT__TABLE(world->host_name, size),
                           DT__TABLE(world->host_of, size), DT__TABLE(world->workers_of, size),
                           DT__TABLE(world->rank_of, size)));
    DT_MPI(MPI_Get_processor_name(host, &length));
    snprintf(world->host_name[world->rank], DT_HOST_NAME, "%.*s", DT_HOST_NAME - 1, host);
    DT_TRY(dt__watchdog_start(world, stall_secs));
    /* The cores that the launcher, a batch system or a container allows this process to use; all if
     * unknown. */
    cpu_set_t *cores = &inside->own_cores;
    CPU_ZERO(cores);
    if (sched_getaffinity(0, sizeof *cores, cores) == 0) return DT_OK;
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN) && i < CPU_SETSIZE; i++)
        CPU_SET((size_t)i, cores);
    return DT_OK;
}

int dt__number_parts(MPI_Comm all, MPI_Comm part, int *of)
{
    int lowest, ranks, parts = 0;
    DT_MPI(MPI_Comm_rank(all, &lowest));
    DT_MPI(MPI_Comm_size(all, &ranks));
    DT_MPI(MPI_Bcast(&lowest, 1, MPI_INT, 0, part));
    DT_MPI(MPI_Allgather(&lowest, 1, MPI_INT, of, 1, MPI_INT, all));
    for (int r = 0; r < ranks; r++) {
        lowest = of[r];
        of[r] = lowest < r ? of[lowest] : parts++;
    }
    return parts;
}

/* Collective over comm. Connects the ranks; a failure ends the job. */
static void connect_ranks(struct dt_world *world, MPI_Comm comm)
{
    struct dt__world_inside *inside = world->inside;
    const MPI_Comm *all = &world->all->comm, *host = &inside->host;
    inside->connected = true;
    DT_MPI(MPI_Comm_dup(comm, &world->all->comm));
    DT_MPI(MPI_Comm_set_errhandler(*all, MPI_ERRORS_RETURN));
    /* A host is a set of ranks that share memory. Names do not suffice: two machines may have the
     * same. */
    char mine[DT_HOST_NAME];
    memcpy(mine, world->host_name[world->rank], sizeof mine);
    DT_MPI(MPI_Allgather(mine, DT_HOST_NAME, MPI_CHAR, world->host_name, DT_HOST_NAME, MPI_CHAR,
                         *all));
    DT_MPI(
        MPI_Comm_split_type(*all, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &inside->host));
    DT_MPI(MPI_Comm_rank(*host, &inside->host_rank));
    DT_MPI(MPI_Comm_size(*host, &inside->host_size));
    world->hosts = dt__number_parts(*all, *host, world->host_of);
    cpu_set_t cores;
    DT_MPI(MPI_Allreduce(&inside->own_cores, &cores, (int)sizeof cores, MPI_BYTE, MPI_BOR, *host));
    world->cores = CPU_COUNT(&cores);
    /* Spinning pays if every rank of the host can have a core, without the sleeping bank. */
    inside->spin = inside->host_size - 1 <= world->cores;
    inside->slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1000UL); /* 1 us, because waits consist of short sleeps */
    dt__watchdog_connect(world);
    dt__world_set_roles(world, false);
}

/* Checks that MPI is initialized and not finalized; otherwise every other MPI call would end the
 * program. */
static dt_status check_begun(void)
{
    int begun, ended;
    DT_MPI(MPI_Initialized(&begun));
    DT_MPI(MPI_Finalized(&ended));
    if (ended) return dt_fail(DT_EUSAGE, "dt_world_attach: MPI has ended (MPI_Finalize)");
    return begun
               ? DT_OK
               : dt_fail(DT_EUSAGE, "dt_world_attach: MPI has not begun: expected MPI_Init_thread "
                                    "before it (dt_world_create does both)");
}

dt_status dt_world_attach(const void *mpi_comm, double stall_secs, struct dt_world **out)
{
    const struct dt_ranks ranks = {.comm = *(const MPI_Comm *)mpi_comm};
    struct dt_world *world = NULL;
    DT_TRY(check_begun());
    dt_status status = prepare(ranks.comm, stall_secs, &world);
    if (!status) dt__watchdog_wait(world, "the other ranks");
    status = dt__ranks_agree(&ranks, status);
    if (status) {
        dt_world_destroy(world);
        return status;
    }
    connect_ranks(world, ranks.comm);
    dt__world_rest(world, false); /* time that the program spends elsewhere is no stall */
    *out = world;
    return DT_OK;
}

dt_status dt__world_split(struct dt_world *world, int color, struct dt_world **out)
{
    MPI_Comm part;
    *out = NULL;
    DT_MPI(MPI_Comm_split(world->all->comm, color < 0 ? MPI_UNDEFINED : color, world->rank, &part));
    if (color < 0) return dt__ranks_agree(world->all, DT_OK);
    const dt_status status = dt_world_attach(&part, 0, out);
    if (!status) (*out)->inside->whole = world;
    DT_MPI(MPI_Comm_free(&part));
    return dt__ranks_agree(world->all, status);
}

dt_status dt_world_attach_fortran(int comm, double stall_secs, struct dt_world **out)
{
    DT_TRY(check_begun());
    MPI_Comm here = MPI_Comm_f2c(comm);
    return dt_world_attach(&here, stall_secs, out);
}

dt_status dt_world_create(struct dt_world **out)
{
    const double START_SECS = 600; /* the default of run.stall_secs */
    const MPI_Comm comm = MPI_COMM_WORLD;
    int begun, provided, size;
    DT_MPI(MPI_Initialized(&begun));
    if (begun)
        return dt_fail(DT_EUSAGE, "dt_world_create: MPI has begun already, which it does once: "
                                  "expected dt_world_attach");
    /* Settings that Open MPI needs and does not choose itself. A user's own setting has
     * priority. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0); /* waiting ranks yield their core */
    setenv("OMPI_MCA_osc", "^ucx", 0); /* else Debian's has no one-sided component across hosts */
    limit_send_buffers();
    const bool launched =
        getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK");
    /* A single process would start a daemon, which only MPI_Comm_spawn needs. If a message from the
     * daemon arrives within MPI_Finalize, it is passed to code that is already unloaded (Open MPI
     * 4.1.4, 1 of 1,000 ends on busy cores: SIGSEGV), and starting the daemon takes a third of a
     * short run. Without it, all such processes of a host would make and remove the same
     * directories. */
    if (!launched) {
        setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
        setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
    }
    /* srun without PMIx starts N processes that do not know of each other. Open MPI gives each its
     * own world, or ends it in MPI_Init with a page about its build. */
    if (!launched) DT_TRY(check_alone());
    const long ranks = env_number("OMPI_COMM_WORLD_SIZE");
    begin_within(!launched || (ranks > 0 && ranks == env_number("OMPI_COMM_WORLD_LOCAL_SIZE")),
                 &provided);
    DT_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    DT_MPI(MPI_Comm_size(comm, &size));
    if (provided < MPI_THREAD_FUNNELED)
        return dt_fail(
            DT_ECOMM,
            "%s lets a rank have no threads (MPI_Init_thread gave level %d, expected at least %d, "
            "MPI_THREAD_FUNNELED)",
            dt__world_mpi_version(), provided, MPI_THREAD_FUNNELED);
    if (size == 1) DT_TRY(check_alone()); /* this MPI does not support the launcher's PMI */
    DT_TRY(dt_world_attach(&comm, START_SECS, out));
    (*out)->inside->owns_mpi = true;
    return DT_OK;
}

static void world_free(struct dt_world *world)
{
    struct dt__world_inside *inside = world->inside;
    dt__watchdog_stop(world);
    dt__watchdog_free(world);
    if (inside->slack > 0) prctl(PR_SET_TIMERSLACK, (unsigned long)inside->slack);
    MPI_Comm *const comm[] = {&inside->trainers.comm, &inside->host, &inside->all.comm};
    for (size_t i = 0; i < sizeof comm / sizeof *comm; i++)
        if (*comm[i] != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(comm[i]));
    dt__arena_free(&inside->arena);
    dt_free(world); /* `inside` is in the same allocation */
}

/* MPI_Finalize of many MPIs waits for all ranks, and the watchdog does not cover that. So all ranks
 * first meet under the watchdog, since the bank may be saving until then; nothing takes long after
 * that. A job that has failed has its exit code, and has printed the reason, so it may be ended
 * soon. Ending a healthy job costs it its exit code, so it gets at least LEAST_SECS, however short
 * run.stall_secs is. */
void dt__world_end(struct dt_world *world, dt_status status)
{
    const double LEAST_SECS = 60, FAILED_SECS = 10, LEAVE_SECS = 0.1;
    const bool leaves = world && world->size > 1 && !dt__world_is_open_mpi();
    double secs = FAILED_SECS;
    int begun;
    const double stall = world ? world->inside->watchdog.patience_secs : 0;
    if (world) {
        dt__world_watch(world, stall);
        dt__ranks_barrier(world->all);
    }
    if (world && (!status || status == DT_STOPPED))
        secs = stall > 0 && stall < LEAST_SECS ? LEAST_SECS : stall;
    fflush(NULL);
    dt__exit_within(secs, status,
                    world && world->is_bank && !status
                        ? "dtrain: error: the run is complete, but a rank hangs as MPI ends\n"
                        : NULL);
    if (world) world_free(world);
    /* MPICH's MPI_Finalize over TCP (UCX) has each rank ask every other rank for a last message. A
     * rank that sent its own message from inside an earlier call may get none itself: the first
     * rank has finished by then, and no longer listens (MPICH 4.0.2: 3 of 10 ends hung). So all
     * ranks leave that earlier call first. */
    if (leaves) {
        DT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        dt__sleep_secs(LEAVE_SECS);
    }
    DT_MPI(MPI_Initialized(&begun));
    if (begun) DT_MPI(MPI_Finalize());
}

void dt_world_destroy(struct dt_world *world)
{
    if (world && world->inside->owns_mpi)
        dt__world_end(world, DT_OK);
    else if (world)
        world_free(world);
}

/* ---- roles ---------------------------------------------------------------------------------- */

/* A host sums its replicas locally as far as they form a complete part of the tree over replicas,
 * which splits at powers of two. So the workers of a host are numbered consecutively, and hosts
 * with most workers come first. The bank's host, where the bank takes the place of a worker, thus
 * comes last. */
static void number_workers(struct dt_world *world)
{
    const int end = world->worker_rank + world->workers;
    int numbered = 0;
    memset(world->workers_of, 0, (size_t)world->hosts * sizeof *world->workers_of);
    for (int r = world->worker_rank; r < end; r++)
        world->workers_of[world->host_of[r]]++;
    for (int most = world->workers; most > 0; most--)
        for (int host = 0; host < world->hosts; host++)
            for (int r = world->worker_rank; r < end && world->workers_of[host] == most; r++)
                if (world->host_of[r] == host) world->rank_of[numbered++] = r;
    world->worker = -1;
    for (int w = 0; w < world->workers && world->is_worker; w++)
        if (world->rank_of[w] == world->rank) world->worker = w;
}

/* Sets the roles of this rank. The bank of a job without workers is its own worker. */
void dt__world_set_roles(struct dt_world *world, bool dedicated)
{
    const int rank = world->rank, size = world->size;
    MPI_Comm *trainers = &world->trainers->comm;
    world->evaluator = dedicated ? size - 1 : -1;
    world->is_bank = rank == 0;
    world->role = world->is_bank             ? DT_ROLE_BANK
                  : rank == world->evaluator ? DT_ROLE_EVALUATOR
                                             : DT_ROLE_WORKER;
    world->is_worker = size == 1 || world->role == DT_ROLE_WORKER;
    world->worker_rank = size == 1 ? 0 : 1;
    world->workers = size - 1 - dedicated > 1 ? size - 1 - dedicated : 1;
    number_workers(world);
    if (*trainers != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(trainers));
    const int color = world->role == DT_ROLE_EVALUATOR ? MPI_UNDEFINED : 0;
    const int place = world->is_worker ? world->worker_rank + world->worker : 0;
    DT_MPI(MPI_Comm_split(world->all->comm, color, place, trainers));
}

void dt__replicas_assign(int workers, int worker, int replicas, int *first, int *count)
{
    int64_t w = workers;
    int64_t begin = (int64_t)worker * replicas / w, end = ((int64_t)worker + 1) * replicas / w;
    if (replicas <= w) { /* each of the first R workers has one; the others idle */
        begin = worker < replicas ? worker : replicas;
        end = worker < replicas ? worker + 1 : replicas;
    }
    *first = (int)begin;
    *count = (int)(end - begin);
}
