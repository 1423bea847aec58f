/* A replica computes its gradient in passes of DT__SLICE_ROWS rows; together these must give the
 * gradient of the whole local batch. */
#include <math.h>

#include "data_files.h"
#include "model_text.h"
#include "train/step.h"

enum { ROWS = 3 * DT__SLICE_ROWS, FEATURES = 3 };

static struct dt_job job;
static struct dt_worker worker;
static struct dt_reader reader;

static void put_rows(void)
{
    FILE *out = fopen("train.csv", "w");
    ck_assert_ptr_nonnull(out);
    for (int r = 0; r < ROWS; r++)
        fprintf(out, "%d.5,%d,%d,%d\n", r % 7 - 3, r % 5 - 2, r % 3 - 1, r % 2);
    ck_assert_int_eq(fclose(out), 0);
}

static void open_worker(void)
{
    const struct dt_model_desc desc =
        desc_of("dense 33 tanh, dropout 0.5", FEATURES, 1, DT_TASK_CLASSIFY);
    put_rows();
    set("data.train=train.csv");
    job = (struct dt_job){.config = &config, .replicas = 1, .train = survey()};
    reader = (struct dt_reader){0};
    worker = (struct dt_worker){.count = 1, .reader = &reader, .readers = 1};
    EXPECT_OK(dt__plan_create(job.train, 1, 1, 0, &job.plan));
    EXPECT_OK(dt__model_create(&desc, &job.model));
    EXPECT_OK(dt__network_create(job.model, DT__SLICE_ROWS, DT_PRECISION_F32, &worker.network));
    EXPECT_OK(dt__loader_create(&config, job.train, job.plan, 0, 1, 1, ROWS, 0, &reader.loader));
    EXPECT_OK(dt__alloc(1, sizeof *worker.loss, "loss sums", &worker.loss));
}

static void close_worker(void)
{
    dt__loader_destroy(reader.loader);
    dt__network_destroy(worker.network);
    dt__model_destroy(job.model);
    dt__plan_destroy(job.plan);
    dt__source_destroy(job.train);
    dt_free(worker.loss);
}

/* Computes the gradient of the local batch at once, with the dropout masks of its rows' numbers in
 * the draw. */
static void whole_gradient(const float *weights, float *grad, double *loss)
{
    struct dt_network *network;
    struct dt_batch batch;
    const struct dt_rng dropout = dt__rng_make(1, DT_STREAM_DROPOUT, 0, 0);
    EXPECT_OK(dt__network_create(job.model, ROWS, DT_PRECISION_F32, &network));
    EXPECT_OK(dt__loader_read(reader.loader, 0, 0, 0, ROWS, &batch));
    batch.first_row = 0;
    EXPECT_OK(dt__network_gradient(network, weights, &batch, &dropout, false,
                                   (struct dt_slot){.grad = grad}, loss, NULL));
    dt__network_destroy(network);
}

/* Fails if dropout masks restart in each pass or if the gradients of passes are not added. */
START_TEST(passes_have_the_masks_of_the_local_batch)
{
    open_worker();
    const size_t count = job.model->params;
    float *weights, *grad, *whole;
    double loss, error = 0, norm = 0;
    EXPECT_OK(dt__alloc(count, sizeof *weights, "weights", &weights));
    EXPECT_OK(dt__alloc(count, sizeof *grad, "gradient", &grad));
    EXPECT_OK(dt__alloc(count, sizeof *whole, "gradient", &whole));
    dt__model_init(job.model, 5, weights);
    ck_assert(
        dt__replica_gradient(&job, &worker, 0, 0, weights, (struct dt_slot){.grad = grad}, NULL));
    whole_gradient(weights, whole, &loss);
    ck_assert_double_eq_tol(worker.loss[0], loss, 1e-6 * loss);
    for (size_t i = 0; i < count; i++) {
        error += pow((double)grad[i] - (double)whole[i], 2);
        norm += pow((double)whole[i], 2);
    }
    ck_assert_double_lt(sqrt(error / norm), 1e-4);
    dt_free(weights), dt_free(grad), dt_free(whole);
    close_worker();
}
END_TEST

DATA_SUITE("gradient", {passes_have_the_masks_of_the_local_batch, 1})
