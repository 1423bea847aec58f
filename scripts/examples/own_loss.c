/* Trains with a loss that the program defines itself:
 *     mpicc own_loss.c $(pkg-config --cflags --libs dtrain) -lm -o own_loss
 *     mpirun -np 3 ./own_loss RUN_DIR
 * A prediction that is too low costs nine times as much as one that is too high, as for orders of
 * goods that may run out: the network learns a value that nine of ten targets stay below. */
#include <dtrain/dtrain.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4000 };

/* Returns the loss of a row, and writes its gradient by the outputs. */
static double cost(void *arg, int n, const float *outputs, const float *targets, float *gradient)
{
    const double too_low = *(const double *)arg;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double error = (double)outputs[i] - (double)targets[i];
        sum += error > 0 ? error : -too_low * error;
        if (gradient) gradient[i] = (float)(error > 0 ? 1 : -too_low);
    }
    return sum;
}

static dt_status train(struct dt_world *world, const char *run_dir, const struct dt_arrays *rows)
{
    static double too_low = 9;
    struct dt_train_options options = DT_TRAIN_OPTIONS_INIT;
    static const char *const settings[] = {"model.task=regress", "data.eval_fraction=0.1",
                                           "model.kind=linear",  "train.epochs=30",
                                           "train.lr=0.003",     "train.batch=100"};
    struct dt_config *config;
    char dir[4096];
    options.train = rows;
    options.loss = cost;
    options.loss_arg = &too_low;
    snprintf(dir, sizeof dir, "run.dir=%s", run_dir);
    dt_status status = dt_config_create(&config);
    for (size_t i = 0; !status && i < sizeof settings / sizeof *settings; i++)
        status = dt_config_set(config, settings[i]);
    if (!status) status = dt_config_set(config, dir);
    if (!status) status = dt_train(world, config, &options); /* collective */
    dt_config_destroy(config);
    return status;
}

/* Prints the best model's prediction for 0.5, where targets are between 0 and 1. */
static dt_status predict_half(const char *run_dir)
{
    struct dt_predictor *predictor;
    const float half = 0.5f;
    float answer;
    dt_status status = dt_predictor_open(run_dir, &predictor);
    if (status) return status;
    status = dt_predictor_rows(predictor, &half, 1, &answer, NULL);
    if (!status) printf("prediction at 0.5: %.2f\n", answer);
    dt_predictor_close(predictor);
    return status;
}

int main(int argc, char **argv)
{
    static float x[ROWS], target[ROWS];
    struct dt_world *world;
    int rank, provided;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(comm, &rank);
    srand(1); /* every rank has the same rows: the target is between x - 0.5 and x + 0.5 */
    for (int i = 0; i < ROWS; i++) {
        x[i] = (float)rand() / (float)RAND_MAX;
        target[i] = x[i] + (float)rand() / (float)RAND_MAX - 0.5f;
    }
    struct dt_arrays rows = DT_ARRAYS_INIT;
    rows.rows = ROWS;
    rows.features = rows.targets = 1;
    rows.x = x;
    rows.target = target;
    dt_log_set_level(DT_LOG_WARN);
    const char *run_dir = argc > 1 ? argv[1] : "run";
    dt_status status = dt_world_attach(&comm, 600, &world);
    if (!status) {
        status = train(world, run_dir, &rows);
        dt_world_destroy(world);
    }
    if (!status && rank == 0) status = predict_half(run_dir);
    if (status && rank == 0) fprintf(stderr, "%s\n", dt_error_text());
    MPI_Finalize();
    return status != DT_OK;
}
