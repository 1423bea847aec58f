/* A program that contains the library: it computes for longer than a step may take, with its own
 * traps and denormals, asks for a stop, and trains again.   host RUN_DIR */
#define _GNU_SOURCE /* feenableexcept */
#include <dtrain/dtrain.h>
#include <fenv.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROWS = 400 };
static float x[ROWS][2], weight[ROWS];
static int32_t label[ROWS];
static struct dt_arrays rows = {
    .size = sizeof rows, .rows = ROWS, .features = 2, .x = &x[0][0], .label = label, .weight = weight};
static struct dt_world *world;
static int rank;

static void expect(bool is_so, const char *what)
{
    if (is_so) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, dt_error_text());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static dt_status train(const char *run_dir, int number)
{
    char settings[1000];
    snprintf(settings, sizeof settings, "run.dir=%s%d\nrun.stall_secs=1\ntrain.epochs=3\n", run_dir,
             number);
    return dt_train_arrays(world, settings, &rows, NULL);
}

int main(int argc, char **argv)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    volatile double least = 1e-310;
    char evaluator[1000];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < ROWS; i++) {
        x[i][0] = (float)(i % 20) / 10 - 1;
        x[i][1] = (float)(i / 20) / 10 - 1;
        label[i] = x[i][0] * x[i][1] > 0;
        weight[i] = 1;
    }
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    dt_log_set_level(DT_LOG_ERROR);
    expect(!dt_world_attach(&comm, 1, &world), "attach");
    sleep(2); /* the program's own work, as long as it takes */
    expect(!train(argv[1], 1), "the first training");
    expect(fegetexcept() == (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), "the program's traps");
    expect(least * 0.5 > 0, "the program's denormals");
    sleep(rank ? 3 : 2);
    if (rank == 1) dt_stop_request();
    expect(train(argv[1], 2) == DT_STOPPED && !strcmp(dt_error_text(), "stopped on request"),
           "a training that is stopped");
    sleep(1); /* the watchdogs look */
    expect(!train(argv[1], 2), "the training, gone on with");
    snprintf(evaluator, sizeof evaluator, "eval.dedicated=yes\ndata.eval_fraction=0.2\nrun.dir=%s4",
             argv[1]);
    const int niceness = getpriority(PRIO_PROCESS, 0);
    expect(!dt_train_arrays(world, evaluator, &rows, NULL), "a training with an evaluator");
    expect(getpriority(PRIO_PROCESS, 0) == niceness || geteuid(), "the program's niceness");
    weight[7] = -1;
    expect(train(argv[1], 3) == DT_EFORMAT && strstr(dt_error_text(), "row 7: weight -1"),
           "a weight below 0");
    struct dt_server *server;
    expect(dt_server_start("/nowhere", NULL, &server) == DT_EIO && !server, "default options");
    dt_world_destroy(world);
    MPI_Finalize();
    return 0;
}
