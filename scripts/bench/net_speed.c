/* Forward and backward of one network on one core, over and over on the same batch: samples/s, and the
 * share of this core's sgemm rate, measured in turn with it. Counts true flops: 4 a weight and sample in
 * the first layer (no input gradient), 6 in the others.
 *
 *   net_speed [WIDTHS ROWS [ACTIVATION [DROPOUT]]]      e.g. net_speed 784-512-256-10 64 relu 0.2
 *
 * Without arguments: the networks of `make bench`. OPENBLAS_CORETYPE chooses the kernel; "oneDNN", too.
 * `make build/scripts/bench/net_speed` builds it. */
#include "dtrain/model.h"
#include "model/blas.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, PEAK = 768 };

static void die(void)
{
    fprintf(stderr, "net_speed: %s\n", dt_error_text());
    exit(1);
}

static void parse_widths(const char *text, struct dt_model_spec *spec)
{
    char *end;
    spec->nin = (int)strtol(text, &end, 10);
    spec->nhidden = 0;
    while (*end == '-') {
        int width = (int)strtol(end + 1, &end, 10);
        if (*end != '-')
            spec->nout = width;
        else if (spec->nhidden < DT_MAX_LAYERS - 1)
            spec->hidden[spec->nhidden++] = width;
    }
    spec->kind = spec->nhidden ? DT_KIND_MLP : DT_KIND_LINEAR;
}

static float *floats(size_t count, float low, float high)
{
    float *values;
    if (dt_alloc(count, sizeof *values, "values", &values)) die();
    struct dt_rng rng = dt_rng_make(1, DT_STREAM_TEST, count, 0);
    for (size_t i = 0; i < count; i++)
        values[i] = low + (high - low) * (float)dt_rng_uniform(&rng, i);
    return values;
}

static double peak_seconds(const float *a, float *c)
{
    double start = dt_clock_secs();
    dt__gemm(false, false, PEAK, PEAK, PEAK, a, a, false, c);
    return dt_clock_secs() - start;
}

static double flops_of(const struct dt_model *model)
{
    double flops = 0.0;
    for (int i = 0; i < dt_model_layers(model); i++) {
        const struct dt_layer *layer = dt_model_layer(model, i);
        flops += (i ? 6.0 : 4.0) * layer->nin * layer->nout;
    }
    return flops;
}

static void run(const struct dt_model_spec *spec, int rows)
{
    struct dt_model *model;
    struct dt_net *net;
    if (dt_model_create(spec, &model) || dt_net_create(model, rows, &net)) die();
    const size_t params_count = dt_model_params(model);
    float *params = floats(params_count, 0.0f, 0.0f), *grad = floats(params_count, 0.0f, 0.0f);
    float *x = floats((size_t)rows * (size_t)spec->nin, 0.0f, 1.0f);
    float *a = floats(PEAK * PEAK, -1.0f, 1.0f), *c = floats(PEAK * PEAK, 0.0f, 0.0f);
    int32_t *label;
    if (dt_alloc((size_t)rows, sizeof *label, "labels", &label)) die();
    for (int r = 0; r < rows; r++)
        label[r] = r % (spec->nout > 1 ? spec->nout : 2);
    dt_model_init(model, 1, params);
    const struct dt_batch batch = {.rows = rows, .x = x, .label = label};
    const struct dt_rng key = dt_rng_make(1, DT_STREAM_DROPOUT, 0, 0);
    const double flops = flops_of(model) * rows;
    const int calls = 1 + (int)(1e9 / (flops + 1e5));
    double best = 1e30, peak = 1e30, loss;
    for (int round = 0; round < ROUNDS; round++) {
        double start = dt_clock_secs();
        for (int i = 0; i < calls; i++)
            dt_net_gradient(net, params, &batch, &key, false, grad, &loss, NULL);
        double secs = (dt_clock_secs() - start) / calls, gemm = peak_seconds(a, c);
        if (secs < best) best = secs;
        if (gemm < peak) peak = gemm;
    }
    char name[256];
    const double rate = flops / best, peak_rate = 2.0 * PEAK * PEAK * PEAK / peak;
    printf("%-32s rows %4d  %9.0f samples/s  %8.1f us  %6.1f GFLOP/s  %5.1f %% of %.0f\n",
           dt_model_describe(model, name, sizeof name), rows, rows / best, best * 1e6, rate * 1e-9,
           100.0 * rate / peak_rate, peak_rate * 1e-9);
    dt_free(label), dt_free(c), dt_free(a), dt_free(x), dt_free(grad), dt_free(params);
    dt_net_destroy(net);
    dt_model_destroy(model);
}

static int activation_of(const char *word)
{
    char buffer[16];
    for (int i = DT_RELU; i <= DT_GELU; i++)
        if (strcmp(dt_config_word(DT_ACTIVATION_WORDS, i, buffer), word) == 0) return i;
    return DT_RELU;
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
    struct dt_model_spec spec = {.task = DT_CLASSIFY};
    const char *kernel = getenv("OPENBLAS_CORETYPE");
    if (kernel) dt_blas_choose(kernel);
    dt_blas_set_threads(1);
    printf("kernel %s\n", dt_blas_kernel());
    if (argc > 2) {
        if (argc > 3) spec.activation = activation_of(argv[3]);
        if (argc > 4) spec.dropout = strtod(argv[4], NULL);
        parse_widths(argv[1], &spec);
        run(&spec, (int)strtol(argv[2], NULL, 10));
        return 0;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        parse_widths(usual[i].widths, &spec);
        run(&spec, usual[i].rows);
    }
    return 0;
}
