/* Measuring: the metrics' sums of held-out rows, by chunks of DT_EVAL_CHUNK rows of file order. The
 * sums of the chunks are added in order, so that every way of evaluating gives the same digits. */
#include "train/evaluation.h"

struct dt_measure {
    const struct dt_model *model;
    uint64_t rows; /* of the source */
    struct dt_table *table;
    struct dt_network *network;
    float *logits; /* (DT_EVAL_CHUNK, nout) */
    double *sums;  /* of dt__measure_add */
};

uint64_t dt__measure_chunks(const struct dt_config *config, const struct dt_source *source)
{
    uint64_t all = (dt__source_rows(source) + DT_EVAL_CHUNK - 1) / DT_EVAL_CHUNK;
    uint64_t most = (uint64_t)config->eval.batches;
    return most && most < all ? most : all;
}

dt_status dt__measure_create(const struct dt_config *config, const struct dt_source *source,
                             const struct dt_model *model, uint64_t first, uint64_t end,
                             struct dt_measure **out)
{
    struct dt_measure *measure = NULL;
    size_t nout = (size_t)model->desc.nout;
    dt_status status;
    if (config->eval.weighted && !dt__source_weighs(source))
        DT_GUARD(dt_fail(DT_EMISMATCH, "eval.weighted=yes: the rows to measure have no weights; "
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

dt_status dt__measure_chunk(struct dt_measure *measure, const float *params, uint64_t chunk,
                            double *sums, uint64_t *confusion)
{
    struct dt_batch batch;
    DT_TRY(measure_read(measure, chunk, &batch));
    DT_TRY(dt__network_forward(measure->network, params, &batch, measure->logits));
    dt__metrics_chunk(measure->model, measure->logits, &batch, sums, confusion);
    return DT_OK;
}

dt_status dt__measure_add(struct dt_measure *measure, const float *params, uint64_t chunk,
                          struct dt_metrics *metrics)
{
    DT_TRY(
        dt__measure_chunk(measure, params, chunk, measure->sums, dt__metrics_confusion(metrics)));
    return dt__metrics_add(metrics, measure->sums);
}
