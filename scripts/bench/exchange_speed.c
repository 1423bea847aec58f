/* Measures the exchange of a sync step alone, without gradients to compute: milliseconds per step,
 * for the cost model.
 *
 *   mpirun -np N ... exchange_speed WIDTHS STEPS SPANS [HOW]     e.g. exchange_speed 784-512-256-10 10 5 q8
 *
 * HOW: auto, reduce, or the wire of auto: f32, bf16 or q8.
 *
 * One bucket per layer, as in training; one replica per worker; the update is plain SGD. The bank
 * prints one line: hosts, workers, parameters, buckets; the median and the minimum over the spans
 * of milliseconds per step; and the final sum of weights, a function of widths, steps and the
 * workers' hosts (a host sums in place, and gradients are made once).
 * `make build/scripts/bench/exchange_speed` builds it; scale.sh runs it. */
#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 64, MOST_SPANS = 1000 };

struct bench {
    struct dt_world *world;
    struct dt_exchange *exchange;
    struct dt_exchange_times times;
    size_t bucket_end[MOST_LAYERS];
    int buckets, steps, spans;
};

static void die(struct dt_world *world)
{
    if (world) dt__world_abort(world, DT_EUSAGE);
    fprintf(stderr, "exchange_speed: %s\n", dt_error_text());
    exit(1);
}

static void parse_widths(struct bench *bench, const char *text)
{
    char *end;
    size_t nin = strtoul(text, &end, 10), params = 0;
    while (*end == '-' && bench->buckets < MOST_LAYERS) {
        size_t nout = strtoul(end + 1, &end, 10);
        params += (nin + 1) * nout;
        bench->bucket_end[bench->buckets++] = params;
        nin = nout;
    }
}

static void update_sgd(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                       const float *grad, float *const *vectors, float *out)
{
    (void)arg, (void)info;
    const float *weights = vectors[0] + offset;
    for (size_t i = 0; i < n; i++)
        out[i] = weights[i] - 1e-3f * grad[i];
}

static int ask_nothing(void *arg)
{
    (void)arg;
    return DT_ASK_NONE;
}

static void work(const struct bench *bench, uint64_t from, uint64_t until)
{
    for (uint64_t step = from; step < until; step++) {
        dt__exchange_begin(bench->exchange, step);
        for (int b = 0; b < bench->buckets; b++)
            dt__exchange_need(bench->exchange, b);
        for (int b = bench->buckets - 1; b >= 0; b--)
            dt__exchange_ready(bench->exchange, b);
        dt__exchange_end(bench->exchange, DT_ASK_NONE);
    }
    dt__exchange_settle(bench->exchange);
}

/* Returns the milliseconds per step of one span. */
static double span(const struct bench *bench, int nth)
{
    uint64_t steps = (uint64_t)bench->steps, from = steps * (uint64_t)nth, done;
    dt__ranks_barrier(bench->world->trainers);
    double start = dt__clock_secs();
    if (bench->world->is_worker)
        work(bench, from, from + steps);
    else
        dt__exchange_serve_span(bench->exchange, from, from + steps, ask_nothing, NULL, &done);
    return 1e3 * (dt__clock_secs() - start) / bench->steps;
}

static void create(struct bench *bench, const char *how)
{
    const int wire = !strcmp(how, "q8")     ? DT_WIRE_Q8
                     : !strcmp(how, "bf16") ? DT_WIRE_BF16
                                            : DT_WIRE_F32;
    const size_t params = bench->bucket_end[bench->buckets - 1];
    int first, count, replicas = bench->world->workers;
    struct dt_exchange_spec spec = {.kind = strcmp(how, "reduce") ? DT_EXCHANGE_AUTO
                                                                  : DT_EXCHANGE_REDUCE,
                                    .params = params,
                                    .times = &bench->times,
                                    .buckets = bench->buckets,
                                    .bucket_end = bench->bucket_end,
                                    .replicas = replicas,
                                    .wire.kind = wire,
                                    .wire.groups = replicas,
                                    .vectors = wire ? 2 : 1,
                                    .update = update_sgd};
    if (dt__exchange_create(bench->world, &spec, &bench->exchange)) die(bench->world);
    for (int v = 0; v < spec.vectors && bench->world->is_bank; v++)
        memset(dt__exchange_vectors(bench->exchange)[v], 0, params * sizeof(float));
    for (int r = 0; r < replicas && wire && bench->world->is_bank; r++)
        memset(dt__exchange_error(bench->exchange, r), 0, params * sizeof(float));
    if (bench->world->is_worker) {
        dt__replicas_assign(replicas, bench->world->worker, replicas, &first, &count);
        float *grad = dt__exchange_slot(bench->exchange, first).grad;
        for (size_t i = 0; i < params; i++)
            grad[i] = (float)(i % 1000) * 1e-3f - 0.5f * (float)first;
    }
    dt__exchange_start(bench->exchange);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    double ms[MOST_SPANS], total = 0;
    if (dt_world_create(&bench.world)) die(NULL);
    if (argc > 3) {
        parse_widths(&bench, argv[1]);
        bench.steps = (int)strtol(argv[2], NULL, 10);
        bench.spans = (int)strtol(argv[3], NULL, 10);
    }
    if (bench.buckets < 1 || bench.steps < 1 || bench.spans < 1 || bench.spans > MOST_SPANS) {
        (void)dt_fail(DT_EUSAGE, "expected WIDTHS STEPS SPANS");
        die(bench.world);
    }
    dt__world_set_roles(bench.world, false);
    create(&bench, argc > 4 ? argv[4] : "auto");
    (void)span(&bench, 0); /* warm-up: connections are made, buffers touched */
    for (int i = 0; i < bench.spans; i++)
        ms[i] = span(&bench, i + 1);
    if (bench.world->is_bank) {
        const size_t params = bench.bucket_end[bench.buckets - 1];
        qsort(ms, (size_t)bench.spans, sizeof *ms, compare_doubles);
        for (size_t i = 0; i < params; i++)
            total += (double)dt__exchange_vectors(bench.exchange)[0][i];
        printf("hosts %d workers %d params %zu buckets %d median_ms %.3f least_ms %.3f sum %.9g\n",
               bench.world->hosts, bench.world->workers, params, bench.buckets, ms[bench.spans / 2],
               ms[0], total);
    }
    dt__exchange_destroy(bench.exchange);
    dt__world_end(bench.world, DT_OK);
    return 0;
}
