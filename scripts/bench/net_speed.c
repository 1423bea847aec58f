/* Measures forward and backward of one network on one core, repeated on the same batch: samples/s,
 * and the fraction of this core's sgemm rate, measured alternately. Counts true flops: 4 per weight
 * and sample in the first layer (no input gradient), 6 in the others.
 *
 *   net_speed [WIDTHS ROWS [ACTIVATION [DROPOUT]]]      e.g. net_speed 784-512-256-10 64 relu 0.2
 *
 * PRECISION=bf16 computes in bf16, from weights that are kept rounded; the rate of the core is then
 * that of the products alone, in the network's shapes.
 *
 * Without arguments: the networks of `make bench`. OPENBLAS_CORETYPE chooses the kernel; "oneDNN",
 * too.
 * `make build/scripts/bench/net_speed` builds it. */
#include "model/bf16_products.h"
#include "model/blas.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, PEAK = 768 };

static void die(void)
{
    fprintf(stderr, "net_speed: %s\n", dt_error_text());
    exit(1);
}

/* Parses "784-512-256-10" to the description of a network; layers: memory for its text. */
static struct dt_model_desc parse_widths(const char *text, const char *activation,
                                         const char *dropout, char layers[256])
{
    char *end;
    struct dt_model_desc desc = {.layers = layers, .shape = {1, 1, 0}, .task = DT_TASK_CLASSIFY};
    size_t length = (size_t)snprintf(layers, 256, "linear");
    desc.shape[2] = (int)strtol(text, &end, 10);
    for (bool first = true; *end == '-'; first = false) {
        int width = (int)strtol(end + 1, &end, 10);
        if (*end != '-') {
            desc.nout = width;
            break;
        }
        if (first) length = 0;
        length += (size_t)snprintf(layers + length, 256 - length, "%sdense %d %s%s%s",
                                   first ? "" : ", ", width, activation,
                                   dropout ? ", dropout " : "", dropout ? dropout : "");
    }
    return desc;
}

static float *floats(size_t count, float low, float high)
{
    float *values;
    if (dt__alloc(count, sizeof *values, "values", &values)) die();
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, count, 0);
    for (size_t i = 0; i < count; i++)
        values[i] = low + (high - low) * (float)dt__rng_uniform(&rng, i);
    return values;
}

static double peak_seconds(const float *a, float *c)
{
    double start = dt__clock_secs();
    dt__gemm((struct dt__product){.m = PEAK, .n = PEAK, .k = PEAK}, a, a, c);
    return dt__clock_secs() - start;
}

static double flops_of(const struct dt_model *model)
{
    double flops = 0.0;
    for (size_t i = 0; i < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        if (tensor->role == DT_TENSOR_WEIGHT) flops += (i ? 6.0 : 4.0) * (double)tensor->count;
    }
    return flops;
}

/* Returns copies of the weights of the matrices, as the updater of the weights keeps them; NULL:
 * none. */
static void *copies_of(const struct dt_factored *matrix, int matrices, const float *weights)
{
    size_t bytes = 0;
    void *copies = NULL;
    for (int i = 0; i < matrices; i++)
        bytes += matrix[i].copy_bytes;
    if (bytes && dt__alloc(bytes, 1, "copies of weights", &copies)) die();
    if (copies) dt__bf16_pack_all(matrix, matrices, weights, copies);
    return copies;
}

/* Returns the seconds of one layer's products in bf16: those of a step, without dx for the first
 * layer. */
static double layer_seconds(const struct dt_tensor *weight, int rows)
{
    struct dt__bf16 *bf16;
    const int nin = (int)weight->shape[0], nout = (int)weight->shape[1];
    float *x = floats((size_t)rows * weight->shape[0], 0.0f, 1.0f), *dx = x;
    float *y = floats((size_t)rows * weight->shape[1], 0.0f, 1.0f);
    float *grad = floats(weight->count, 0.0f, 0.0f);
    const bool first = weight->offset == 0;
    const struct dt_factored shape = dt__bf16_factored(nin, nout, rows, first);
    float *weights = floats(weight->count, 0.0f, 0.0f);
    void *copy = copies_of(&shape, 1, weights);
    double best = 1e30;
    if (dt__bf16_create(nin, nout, rows, first, &bf16)) die();
    for (int round = 0; round < ROUNDS; round++) {
        double start = dt__clock_secs();
        if (dt__bf16_forward(bf16, rows, x, weights, copy, y) ||
            dt__bf16_backward(bf16, rows, y, false, grad, NULL, first ? NULL : dx))
            die();
        double secs = dt__clock_secs() - start;
        if (secs < best) best = secs;
    }
    dt__bf16_destroy(bf16);
    dt_free(x), dt_free(y), dt_free(grad), dt_free(copy), dt_free(weights);
    return best;
}

/* Returns the core's rate in bf16 for the network's shapes, without the output layer. */
static double bf16_rate(const struct dt_model *model, int rows)
{
    double secs = 0.0, flops = 0.0;
    for (size_t i = 0; i + 2 < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        if (tensor->role != DT_TENSOR_WEIGHT) continue;
        secs += layer_seconds(tensor, rows);
        flops += (i ? 6.0 : 4.0) * (double)tensor->count * rows;
    }
    return flops / secs;
}

static void run(const struct dt_model_desc *desc, int rows, bool bf16)
{
    struct dt_model *model;
    struct dt_network *network;
    struct dt_factored *matrix;
    const int precision = bf16 ? DT_PRECISION_BF16 : DT_PRECISION_F32;
    if (dt__model_create(desc, &model) || dt__network_create(model, rows, precision, &network))
        die();
    const size_t params_count = model->params;
    float *params = floats(params_count, 0.0f, 0.0f), *grad = floats(params_count, 0.0f, 0.0f);
    float *x = floats((size_t)rows * model->features, 0.0f, 1.0f);
    float *a = floats(PEAK * PEAK, -1.0f, 1.0f), *c = floats(PEAK * PEAK, 0.0f, 0.0f);
    int32_t *label;
    if (dt__alloc((size_t)rows, sizeof *label, "labels", &label)) die();
    for (int r = 0; r < rows; r++)
        label[r] = r % (desc->nout > 1 ? desc->nout : 2);
    dt__model_init(model, 1, params);
    if (dt__alloc(model->layers, sizeof *matrix, "matrices", &matrix)) die();
    void *copies = copies_of(matrix, dt__model_factored(model, precision, rows, matrix), params);
    dt__network_set_copies(network, copies);
    const struct dt_batch batch = {.rows = rows, .x = x, .label = label};
    const struct dt_rng key = dt__rng_make(1, DT_STREAM_DROPOUT, 0, 0);
    const double flops = flops_of(model) * rows;
    const int calls = 1 + (int)(1e9 / (flops + 1e5));
    double best = 1e30, peak = 1e30, loss;
    for (int round = 0; round < ROUNDS; round++) {
        double start = dt__clock_secs();
        for (int i = 0; i < calls; i++)
            if (dt__network_gradient(network, params, &batch, &key, false,
                                     (struct dt_slot){.grad = grad}, &loss, NULL))
                die();
        double secs = (dt__clock_secs() - start) / calls, gemm = peak_seconds(a, c);
        if (secs < best) best = secs;
        if (gemm < peak) peak = gemm;
    }
    const double rate = flops / best;
    const double peak_rate = bf16 ? bf16_rate(model, rows) : 2.0 * PEAK * PEAK * PEAK / peak;
    printf("%-32s rows %4d  %9.0f samples/s  %8.1f us  %6.1f GFLOP/s  %5.1f %% of %.0f\n",
           desc->layers, rows, rows / best, best * 1e6, rate * 1e-9, 100.0 * rate / peak_rate,
           peak_rate * 1e-9);
    dt_free(label), dt_free(c), dt_free(a), dt_free(x), dt_free(grad), dt_free(params);
    dt_free(copies), dt_free(matrix);
    dt__network_destroy(network);
    dt__model_destroy(model);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *widths;
        int rows;
    } usual[] = {{"784-10", 64},
                 {"784-128-10", 64},
                 {"784-512-256-10", 64},
                 {"784-1024-1024-10", 128},
                 {"784-1024-1024-10", 256}};
    char layers[256];
    struct dt_model_desc desc;
    const char *kernel = getenv("OPENBLAS_CORETYPE"), *precision = getenv("PRECISION");
    const bool bf16 = precision && !strcmp(precision, "bf16");
    bool native;
    if (bf16 && dt__bf16_select(kernel ? kernel : "auto", &native)) die();
    if (dt__blas_select(kernel ? kernel : "auto")) fprintf(stderr, "%s\n", dt_error_text());
    dt__blas_set_threads(1);
    printf("kernel %s\n", dt__blas_kernel());
    if (argc > 2) {
        desc =
            parse_widths(argv[1], argc > 3 ? argv[3] : "relu", argc > 4 ? argv[4] : NULL, layers);
        run(&desc, (int)strtol(argv[2], NULL, 10), bf16);
        return 0;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        desc = parse_widths(usual[i].widths, "relu", NULL, layers);
        run(&desc, usual[i].rows, bf16);
    }
    return 0;
}
