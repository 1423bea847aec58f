/* Trains a network on rows in memory, inside a program that uses MPI itself:
 *     mpicc train_arrays.c $(pkg-config --cflags --libs dtrain) -lm -o train_arrays
 *     mpirun -np 3 ./train_arrays RUN_DIR
 * Here the rows are points of the plane, and the network learns whether x * y is positive. */
#include <dtrain/dtrain.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4000, FEATURES = 2 };

static void make_rows(float *x, int32_t *label)
{
    srand(1); /* every rank has the same rows */
    for (int i = 0; i < ROWS; i++) {
        float a = (float)rand() / (float)RAND_MAX * 2 - 1,
              b = (float)rand() / (float)RAND_MAX * 2 - 1;
        x[FEATURES * i] = a;
        x[FEATURES * i + 1] = b;
        label[i] = a * b > 0;
    }
}

/* Receives each record of the run, on rank 0. */
static void print_record(void *arg, const char *json)
{
    (void)arg;
    printf("%s\n", json);
}

/* Returns true to stop the run: here after `arg` calls. */
static bool wants_stop(void *arg)
{
    int *left = arg;
    return *left > 0 && --*left == 0;
}

static dt_status train(struct dt_world *world, const char *run_dir, const struct dt_arrays *rows,
                       int *questions)
{
    static const char *const settings[] = {"data.eval_fraction=0.1", "model.hidden=32",
                                           "train.epochs=30",        "train.optimizer=adam",
                                           "train.lr=0.01",          "train.batch=100"};
    struct dt_train_options options = DT_TRAIN_OPTIONS_INIT;
    struct dt_config *config;
    char dir[4096];
    options.train = rows;
    options.record = print_record;
    options.stop = wants_stop;
    options.arg = questions;
    snprintf(dir, sizeof dir, "run.dir=%s", run_dir);
    dt_status status = dt_config_create(&config);
    for (size_t i = 0; !status && i < sizeof settings / sizeof *settings; i++)
        status = dt_config_set(config, settings[i]);
    if (!status) status = dt_config_set(config, dir);
    if (!status) status = dt_train(world, config, &options); /* collective */
    dt_config_destroy(config);
    return status;
}

int main(int argc, char **argv)
{
    static float x[ROWS * FEATURES];
    static int32_t label[ROWS];
    struct dt_world *world;
    int rank, provided, questions = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(comm, &rank);
    make_rows(x, label);
    struct dt_arrays rows = DT_ARRAYS_INIT;
    rows.rows = ROWS;
    rows.features = FEATURES;
    rows.x = x;
    rows.label = label;
    dt_log_set_level(DT_LOG_WARN);
    dt_status status = dt_world_attach(&comm, 600, &world);
    if (!status) {
        status = train(world, argc > 1 ? argv[1] : "run", &rows, &questions);
        dt_world_destroy(world);
    }
    if (status && rank == 0)
        fprintf(stderr, "%s\n", status == DT_STOPPED ? "stopped: run me again" : dt_error_text());
    MPI_Finalize();
    return status == DT_STOPPED ? 75 : status != DT_OK;
}
