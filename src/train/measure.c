/* A network measured on held-out rows, chunk by chunk. */
#include "dtrain/train.h"

struct dt_measure {
    const struct dt_model *model;
    uint64_t rows; /* of the source */
    struct dt_table *table;
    struct dt_net *net;
    float *logits;             /* (DT_EVAL_CHUNK, nout) */
    struct dt_chunk_sums sums; /* of dt_measure_add */
};

uint64_t dt_measure_chunks(const struct dt_config *config, const struct dt_source *source)
{
    uint64_t all = (dt_source_rows(source) + DT_EVAL_CHUNK - 1) / DT_EVAL_CHUNK;
    uint64_t most = (uint64_t)config->eval.batches;
    return most && most < all ? most : all;
}

dt_status dt_measure_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_model *model, uint64_t first, uint64_t end,
                            struct dt_measure **out)
{
    struct dt_measure *measure = NULL;
    size_t nout = (size_t)dt_model_get_spec(model)->nout;
    dt_status status;
    DT_GUARD(dt_alloc(1, sizeof *measure, "evaluation", &measure));
    measure->model = model;
    measure->rows = dt_source_rows(source);
    uint64_t end_row = end * DT_EVAL_CHUNK < measure->rows ? end * DT_EVAL_CHUNK : measure->rows;
    DT_GUARD(dt_table_create(config, source, first * DT_EVAL_CHUNK, end_row, &measure->table));
    DT_GUARD(dt_net_create(model, DT_EVAL_CHUNK, &measure->net));
    DT_GUARD(dt_alloc(nout, DT_EVAL_CHUNK * sizeof *measure->logits, "logits", &measure->logits));
    *out = measure;
    return DT_OK;
done:
    dt_measure_destroy(measure);
    return status;
}

void dt_measure_destroy(struct dt_measure *measure)
{
    if (!measure) return;
    dt_table_destroy(measure->table);
    dt_net_destroy(measure->net);
    dt_free(measure->logits);
    dt_free(measure);
}

dt_status dt_measure_chunk(struct dt_measure *measure, const float *params, uint64_t chunk,
                           struct dt_chunk_sums *out, uint64_t *confusion)
{
    uint64_t begin = chunk * DT_EVAL_CHUNK, left = measure->rows - begin;
    struct dt_batch batch;
    DT_TRY(dt_table_read(measure->table, begin, left < DT_EVAL_CHUNK ? (int)left : DT_EVAL_CHUNK,
                         &batch));
    dt_net_forward(measure->net, params, batch.x, batch.rows, measure->logits);
    dt_metrics_chunk(dt_model_get_spec(measure->model), measure->logits, &batch, out, confusion);
    return DT_OK;
}

dt_status dt_measure_add(struct dt_measure *measure, const float *params, uint64_t chunk,
                         struct dt_metrics *metrics)
{
    DT_TRY(dt_measure_chunk(measure, params, chunk, &measure->sums, dt_metrics_confusion(metrics)));
    return dt_metrics_add(metrics, &measure->sums);
}
