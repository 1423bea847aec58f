/* Measuring: the metrics' sums over held-out rows, in chunks of DT_EVAL_CHUNK rows in file order.
 * The chunks' sums are added in order, so every kind of evaluation gives the same digits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/evaluation.h"

struct dt_measure {
    const struct dt_model *model;
    uint64_t rows; /* rows of the source */
    struct dt_table *table;
    struct dt_network *network;
    float *logits; /* (DT_EVAL_CHUNK, nout) */
    double *sums;  /* buffer of dt__measure_add */
};

uint64_t dt__measure_chunks(const struct dt_config *config, const struct dt_source *source)
{
    uint64_t all = (dt__source_rows(source) + DT_EVAL_CHUNK - 1) / DT_EVAL_CHUNK;
    uint64_t most = (uint64_t)config->eval.batches;
    return most && most < all ? most : all;
}

uint64_t dt__measure_rows(const struct dt_config *config, const struct dt_source *source)
{
    const uint64_t most = dt__measure_chunks(config, source) * DT_EVAL_CHUNK;
    const uint64_t all = dt__source_rows(source);
    return most < all ? most : all;
}

dt_status dt__measure_create(const struct dt_config *config, const struct dt_source *source,
                             const struct dt_model *model, uint64_t first, uint64_t end,
                             struct dt_measure **out)
{
    struct dt_measure *measure = NULL;
    size_t nout = (size_t)model->desc.nout;
    dt_status status;
    if (config->eval.weighted && !dt__source_weighs(source))
        DT_GUARD(dt_fail(DT_EUSAGE, "eval.weighted=yes: the rows to measure have no weights; "
                                    "expected data.weight, or eval.weighted=no"));
    DT_GUARD(dt__alloc(1, sizeof *measure, "evaluation", &measure));
    measure->model = model;
    measure->rows = dt__source_rows(source);
    uint64_t end_row = end * DT_EVAL_CHUNK < measure->rows ? end * DT_EVAL_CHUNK : measure->rows;
    DT_GUARD(dt__table_create(config, source, first * DT_EVAL_CHUNK, end_row, &measure->table));
    DT_GUARD(dt__network_create(model, DT_EVAL_CHUNK, DT_PRECISION_F32, &measure->network));
    DT_GUARD(dt__alloc(nout, DT_EVAL_CHUNK * sizeof *measure->logits, "logits", &measure->logits));
    DT_GUARD(
        dt__alloc(dt__metrics_sums(model), sizeof *measure->sums, "chunk sums", &measure->sums));
    *out = measure;
    return DT_OK;
done:
    dt__measure_destroy(measure);
    return status;
}

void dt__measure_destroy(struct dt_measure *measure)
{
    if (!measure) return;
    dt__table_destroy(measure->table);
    dt__network_destroy(measure->network);
    dt_free(measure->sums);
    dt_free(measure->logits);
    dt_free(measure);
}

static dt_status measure_read(struct dt_measure *measure, uint64_t chunk, struct dt_batch *out)
{
    uint64_t begin = chunk * DT_EVAL_CHUNK, left = measure->rows - begin;
    return dt__table_read(measure->table, begin, left < DT_EVAL_CHUNK ? (int)left : DT_EVAL_CHUNK,
                          out);
}

dt_status dt__measure_list(struct dt_measure *measure, uint64_t chunk,
                           const struct dt_touched *inputs)
{
    struct dt_batch batch;
    DT_TRY(measure_read(measure, chunk, &batch));
    return dt__network_list_inputs(measure->network, &batch, inputs);
}

void dt__measure_inputs(struct dt_measure *measure, const struct dt_touched *inputs)
{
    dt__network_set_inputs(measure->network, inputs);
}

dt_status dt__measure_outputs(struct dt_measure *measure, const float *params, uint64_t chunk,
                              struct dt_batch *out, const float **out_logits)
{
    DT_TRY(measure_read(measure, chunk, out));
    *out_logits = measure->logits;
    return dt__network_forward(measure->network, params, out, measure->logits);
}

dt_status dt__measure_chunk(struct dt_measure *measure, const float *params, uint64_t chunk,
                            double *sums, uint64_t *confusion)
{
    struct dt_batch batch;
    const float *logits;
    DT_TRY(dt__measure_outputs(measure, params, chunk, &batch, &logits));
    dt__metrics_chunk(measure->model, logits, &batch, sums, confusion);
    return DT_OK;
}

dt_status dt__measure_add(struct dt_measure *measure, const float *params, uint64_t chunk,
                          struct dt_metrics *metrics)
{
    DT_TRY(
        dt__measure_chunk(measure, params, chunk, measure->sums, dt__metrics_confusion(metrics)));
    return dt__metrics_add(metrics, measure->sums);
}

/* ---- intervals ------------------------------------------------------------------------------ */

enum { SAMPLES = 200, OUTSIDE = 5 /* on either side: 2.5 % */ };

/* The parts of a chunk that the metrics need. */
struct saved_chunk {
    struct dt_batch batch; /* only rows, label, target and weight are set; the arrays are owned */
    float *logits;
};

static dt_status floats_copy(const void *from, size_t count, size_t size, void *out)
{
    void *copy;
    if (!from) return DT_OK;
    DT_TRY(dt__alloc(count, size, "rows to sample", &copy));
    memcpy(copy, from, count * size);
    memcpy(out, &copy, sizeof copy);
    return DT_OK;
}

static dt_status chunk_keep(struct dt_measure *measure, const float *params, uint64_t chunk,
                            struct saved_chunk *out)
{
    const struct dt_outputs *outputs = &measure->model->outputs;
    const size_t targets = (size_t)(outputs->count / outputs->each);
    struct dt_batch batch;
    const float *logits;
    DT_TRY(dt__measure_outputs(measure, params, chunk, &batch, &logits));
    const size_t rows = (size_t)batch.rows;
    out->batch.rows = batch.rows;
    DT_TRY(floats_copy(batch.label, rows, sizeof *batch.label, &out->batch.label));
    DT_TRY(floats_copy(batch.target, rows * targets, sizeof *batch.target, &out->batch.target));
    DT_TRY(floats_copy(batch.weight, rows, sizeof *batch.weight, &out->batch.weight));
    return floats_copy(logits, rows * (size_t)outputs->count, sizeof *out->logits, &out->logits);
}

static void chunks_free(struct saved_chunk *saved, uint64_t chunks)
{
    for (uint64_t c = 0; saved && c < chunks; c++) {
        const void *const owned[] = {saved[c].batch.label, saved[c].batch.target,
                                     saved[c].batch.weight, saved[c].logits};
        for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
            dt_free((void *)(uintptr_t)owned[i]);
    }
    dt_free(saved);
}

/* Returns k with probability e^-1 / k!, from a number that is uniform in [0, 1). */
static int poisson_draw(double uniform)
{
    double part = exp(-1), below = part;
    int k = 0;
    while (uniform >= below && part > 0)
        below += part /= ++k;
    return k;
}

/* Sums the metrics of one bootstrap sample, whose random numbers are rng's. */
static dt_status sample_measure(const struct dt_measure *measure, const struct saved_chunk *saved,
                                uint64_t chunks, const struct dt_rng *rng,
                                struct dt_metrics *metrics)
{
    float weight[DT_EVAL_CHUNK];
    dt__metrics_reset(metrics);
    for (uint64_t c = 0; c < chunks; c++) {
        struct dt_batch batch = saved[c].batch;
        for (int r = 0; r < batch.rows; r++) {
            const double uniform = dt__rng_uniform(rng, c * DT_EVAL_CHUNK + (uint64_t)r);
            weight[r] = (float)poisson_draw(uniform) * (batch.weight ? batch.weight[r] : 1);
        }
        batch.weight = weight;
        dt__metrics_chunk(measure->model, saved[c].logits, &batch, measure->sums, NULL);
        DT_TRY(dt__metrics_add(metrics, measure->sums));
    }
    return DT_OK;
}

static int by_value(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Finds the ends of each metric's interval, among the samples in which the metric is a number. */
static void ends_find(const struct dt_metric_values *samples, struct dt_metric_values *low,
                      struct dt_metric_values *high)
{
    const char *name;
    double value;
    *low = *high = samples[0];
    for (int m = 0; dt__metric_at(m, samples, &name, &value); m++) {
        double values[SAMPLES] = {0};
        size_t n = 0;
        for (int s = 0; s < SAMPLES; s++) {
            (void)dt__metric_at(m, &samples[s], &name, &value);
            if (!isnan(value)) values[n++] = value;
        }
        qsort(values, n, sizeof *values, by_value);
        dt__metric_set(m, low, n > 2 * OUTSIDE ? values[OUTSIDE] : (double)NAN);
        dt__metric_set(m, high, n > 2 * OUTSIDE ? values[n - 1 - OUTSIDE] : (double)NAN);
    }
}

dt_status dt__measure_intervals(const struct dt_config *config, struct dt_measure *measure,
                                const float *params, uint64_t chunks, struct dt_metric_values *low,
                                struct dt_metric_values *high)
{
    struct dt_metric_values *samples = NULL;
    struct saved_chunk *saved = NULL;
    struct dt_metrics *metrics = NULL;
    dt_status status;
    DT_GUARD(dt__alloc(SAMPLES, sizeof *samples, "samples", &samples));
    DT_GUARD(dt__alloc((size_t)chunks, sizeof *saved, "rows to sample", &saved));
    DT_GUARD(dt__metrics_create(measure->model, config, &metrics));
    for (uint64_t c = 0; c < chunks; c++)
        DT_GUARD(chunk_keep(measure, params, c, &saved[c]));
    for (uint64_t s = 0; s < SAMPLES; s++) {
        const struct dt_rng rng =
            dt__rng_make((uint64_t)config->run.seed, DT_STREAM_BOOTSTRAP, s, 0);
        DT_GUARD(sample_measure(measure, saved, chunks, &rng, metrics));
        dt__metrics_values(metrics, &samples[s]);
    }
    ends_find(samples, low, high);
done:
    dt__metrics_destroy(metrics);
    chunks_free(saved, chunks);
    dt_free(samples);
    return status;
}
