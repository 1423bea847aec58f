/* The predictor: a model file, the network that it describes, and memory for a chunk of rows.
 *
 * Rows are computed in chunks of at most DT_EVAL_CHUNK, as in evaluation. Chunks of rows that are
 * not normalised yet are smaller if the rows are wide (rows_that_fit). A row's prediction does not
 * depend on the chunk. Evaluation may compute logits with other last digits. */
#include "predict/predict.h"

#include <math.h>
#include <string.h>

#include "base/internal.h"
#include "model/certainty.h"
#include "table/normalize.h"

/* Returns how many rows of this many numbers fit in 64 MiB, but at least 1 and at most
 * DT_EVAL_CHUNK. */
static size_t rows_that_fit(size_t numbers)
{
    const size_t fit = ((size_t)64 << 20) / sizeof(float) / numbers;
    return fit < 1 ? 1 : fit < DT_EVAL_CHUNK ? fit : DT_EVAL_CHUNK;
}

static dt_status network_need(struct dt_predictor *p)
{
    if (p->network) return DT_OK;
    DT_TRY(dt__network_create(p->model, DT_EVAL_CHUNK, DT_PRECISION_F32, &p->network));
    dt__network_set_rowwise(p->network);
    return DT_OK;
}

static dt_status predictor_create(const char *path, bool opens, struct dt_predictor **out)
{
    struct dt_predictor *p;
    dt_status status;
    fenv_t before;
    *out = NULL;
    DT_TRY(dt__alloc(1, sizeof *p, "predictor", &p));
    dt__floats_begin(&before);
    DT_GUARD(dt__export_load(path, true, &p->file, &p->path));
    DT_GUARD(dt__model_create(&p->file.desc, &p->model));
    const struct dt_schema *schema = &p->file.schema;
    DT_GUARD(dt__model_set_units(p->model, schema->target_mean, schema->target_std));
    DT_GUARD(dt__model_set_range(p->model, schema->target_least, schema->target_greatest));
    dt__model_set_certainty(p->model, &p->file.certainty);
    if (opens) DT_GUARD(network_need(p));
    const size_t nout = (size_t)p->file.desc.nout;
    p->classes = p->model->classes;
    p->answer = dt__model_answer(p->model);
    p->features = (size_t)schema->features;
    p->width = p->classes ? (size_t)p->classes : nout;
    p->entries = schema->dense < schema->features ? (size_t)dt__schema_categories(schema) : 0;
    p->numbers = (p->entries ? (size_t)schema->dense : p->features) + (size_t)schema->encoded;
    p->chunk = rows_that_fit(p->numbers + 2 * p->entries);
    DT_GUARD(dt__alloc(nout, DT_EVAL_CHUNK * sizeof(float), "logits", &p->logits));
    p->targets = p->classes ? 0 : nout / (size_t)p->model->outputs.each;
    DT_GUARD(dt__predictor_interval(p, p->file.certainty.coverage));
    *out = p;
done:
    dt__floats_end(&before);
    if (status) dt_predictor_close(p);
    return status;
}

dt_status dt_predictor_open(const char *path, struct dt_predictor **out)
{
    return predictor_create(path, true, out);
}

dt_status dt__predictor_load(const char *path, struct dt_predictor **out)
{
    return predictor_create(path, false, out);
}

void dt_predictor_close(struct dt_predictor *predictor)
{
    if (!predictor) return;
    dt__network_destroy(predictor->network);
    dt__model_destroy(predictor->model);
    dt__checkpoint_free(&predictor->file);
    dt_free(predictor->path);
    dt_free(predictor->margin);
    dt_free(predictor->x);
    dt_free(predictor->dense);
    dt_free(predictor->value);
    dt_free(predictor->offsets);
    dt_free(predictor->index);
    dt_free(predictor->logits);
    dt_free(predictor);
}

/* ---- what it holds -------------------------------------------------------------------------- */

int dt_predictor_features(const struct dt_predictor *predictor)
{
    return (int)predictor->features;
}

int dt_predictor_width(const struct dt_predictor *predictor)
{
    return (int)predictor->width;
}

int dt_predictor_classes(const struct dt_predictor *predictor)
{
    return predictor->classes;
}

const char *dt_predictor_feature_name(const struct dt_predictor *predictor, int feature)
{
    char *const *names = predictor->file.schema.feature_names;
    const bool exists = feature >= 0 && feature < (int)predictor->features;
    return names && exists ? names[feature] : NULL;
}

const char *dt_predictor_class_name(const struct dt_predictor *predictor, int class_number)
{
    char *const *names = predictor->file.schema.label_names;
    const bool exists = class_number >= 0 && class_number < predictor->classes;
    return names && exists ? names[class_number] : NULL;
}

/* ---- intervals ------------------------------------------------------------------------------ */

dt_status dt__predictor_interval(struct dt_predictor *predictor, double coverage)
{
    float *margin = NULL;
    if (coverage > 0 && predictor->file.schema.task != DT_TASK_REGRESS)
        return dt_fail(DT_EUSAGE, "predict.interval: the model predicts classes, which have "
                                  "probabilities; expected 0");
    if (coverage > 0) {
        DT_TRY(dt__alloc(predictor->targets, sizeof *margin, "intervals", &margin));
        const dt_status status = dt__certainty_margin(&predictor->file.certainty,
                                                      (int)predictor->targets, coverage, margin);
        if (status) dt_free(margin);
        if (status) return status;
    }
    dt_free(predictor->margin);
    predictor->margin = margin;
    return DT_OK;
}

float dt__predictor_bound(const struct dt_predictor *predictor, const float *answer, size_t target,
                          bool upper)
{
    const size_t each = (size_t)predictor->model->outputs.each;
    const float *values = answer + target * each, margin = predictor->margin[target];
    return upper ? values[each - 1] + margin : *values - margin;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Converts a batch of dense rows to sparse rows, as training and evaluation read them, so that the
 * sums have the same terms. */
static dt_status batch_make_sparse(struct dt_predictor *p, struct dt_batch *batch)
{
    const size_t nin = p->features, rows = (size_t)batch->rows;
    const size_t dense = (size_t)p->file.schema.dense, encoded = (size_t)p->file.schema.encoded;
    const size_t stride = nin + encoded, numbers = dense + encoded;
    size_t entries = 0;
    if (p->file.desc.categories && p->file.schema.hash_bits)
        return dt_fail(DT_EMISMATCH,
                       "a model that embeds hashed categories takes rows of texts, which "
                       "`dtrain predict` and `dtrain eval` read");
    for (size_t i = 0; i < rows * stride; i++)
        entries += i % stride >= dense && i % stride < nin && batch->x[i] != 0;
    DT_TRY(dt__grow(&p->dense, &p->dense_capacity, rows * numbers + 1, sizeof(float), "rows"));
    DT_TRY(dt__grow(&p->value, &p->value_capacity, entries + 1, sizeof(float), "rows"));
    DT_TRY(dt__grow(&p->index, &p->index_capacity, entries + 1, sizeof(uint32_t), "rows"));
    DT_TRY(dt__grow(&p->offsets, &p->offsets_capacity, rows + 1, sizeof(uint64_t), "rows"));
    entries = 0;
    for (size_t r = 0; r < rows; r++) {
        const float *x = batch->x + r * stride;
        memcpy(p->dense + r * numbers, x, dense * sizeof *x);
        memcpy(p->dense + r * numbers + dense, x + nin, encoded * sizeof *x);
        p->offsets[r] = entries;
        for (size_t i = dense; i < nin; i++) {
            if (x[i] == 0) continue;
            p->index[entries] = (uint32_t)i;
            p->value[entries++] = x[i];
        }
    }
    p->offsets[rows] = entries;
    batch->ndense = (int)numbers;
    batch->x = p->dense;
    batch->offsets = p->offsets;
    batch->index = p->index;
    batch->value = p->value;
    return DT_OK;
}

dt_status dt__predictor_logits(struct dt_predictor *predictor, const struct dt_batch *batch,
                               float *out)
{
    struct dt_batch rows = *batch;
    const struct dt_schema *schema = &predictor->file.schema;
    if (!rows.offsets && schema->dense < schema->features)
        DT_TRY(batch_make_sparse(predictor, &rows));
    DT_TRY(network_need(predictor));
    return dt__network_forward(predictor->network, predictor->file.params, &rows, out);
}

dt_status dt__predictor_batch(struct dt_predictor *predictor, const struct dt_batch *batch,
                              float *out, int32_t *out_class)
{
    struct dt_predictor *p = predictor;
    const struct dt_batch rows = *batch;
    float *logits = p->classes ? p->logits : out;
    dt_status status;
    fenv_t before;
    dt__floats_begin(&before);
    DT_GUARD(dt__predictor_logits(p, &rows, logits));
    dt__model_predict(p->model, logits, rows.rows, out);
    for (int i = 0; p->classes && out_class && i < rows.rows; i++)
        out_class[i] = dt__model_choose(p->model, logits + (size_t)i * (size_t)p->file.desc.nout);
done:
    dt__floats_end(&before);
    return status;
}

dt_status dt_predictor_rows(struct dt_predictor *predictor, const float *raw, size_t rows,
                            float *out, int32_t *out_class)
{
    const size_t nin = predictor->features, inputs = nin + (size_t)predictor->file.schema.encoded;
    const size_t chunk = rows_that_fit(inputs);
    dt_status status = DT_OK;
    fenv_t before;
    DT_TRY(dt__grow(&predictor->x, &predictor->x_capacity, chunk * inputs, sizeof(float), "rows"));
    dt__floats_begin(&before);
    for (size_t at = 0; at < rows && !status; at += chunk) {
        const size_t count = rows - at < chunk ? rows - at : chunk;
        const struct dt_batch batch = {
            .rows = (int)count, .ndense = (int)inputs, .x = predictor->x};
        dt__schema_normalize(&predictor->file.schema, raw + at * nin, count, predictor->x);
        status = dt__predictor_batch(predictor, &batch, out + at * predictor->width,
                                     out_class ? out_class + at : NULL);
    }
    dt__floats_end(&before);
    return status;
}

dt_status dt__inputs_reserve(struct dt_inputs *inputs, const struct dt_predictor *predictor,
                             size_t rows)
{
    const size_t numbers = rows * predictor->numbers + 1, entries = rows * predictor->entries;
    DT_TRY(dt__grow(&inputs->x, &inputs->x_capacity, numbers, sizeof *inputs->x, "rows"));
    DT_TRY(
        dt__grow(&inputs->index, &inputs->index_capacity, entries, sizeof *inputs->index, "rows"));
    return dt__grow(&inputs->value, &inputs->value_capacity, entries, sizeof *inputs->value,
                    "rows");
}

void dt__inputs_free(struct dt_inputs *inputs)
{
    dt_free(inputs->x);
    dt_free(inputs->index);
    dt_free(inputs->value);
    *inputs = (struct dt_inputs){0};
}

dt_status dt__inputs_read(struct dt_inputs *inputs, size_t at, const struct dt_predictor *predictor,
                          struct dt_rows *rows, uint64_t *out_line, bool *out_end)
{
    const size_t entries = predictor->entries;
    float *x = inputs->x + at * predictor->numbers;
    if (!entries) return dt__rows_next(rows, x, out_line, out_end);
    return dt__rows_next_sparse(rows, x, inputs->index + at * entries, inputs->value + at * entries,
                                out_line, out_end);
}

dt_status dt__predictor_inputs(struct dt_predictor *predictor, const struct dt_inputs *inputs,
                               size_t rows, float *out, int32_t *out_class)
{
    struct dt_predictor *p = predictor;
    const size_t numbers = p->numbers, entries = p->entries;
    DT_TRY(
        dt__grow(&p->offsets, &p->offsets_capacity, DT_EVAL_CHUNK + 1, sizeof *p->offsets, "rows"));
    for (size_t at = 0; at < rows; at += DT_EVAL_CHUNK) {
        const size_t count = rows - at < DT_EVAL_CHUNK ? rows - at : DT_EVAL_CHUNK;
        struct dt_batch batch = {
            .rows = (int)count, .ndense = (int)numbers, .x = inputs->x + at * numbers};
        if (entries) {
            for (size_t r = 0; r <= count; r++)
                p->offsets[r] = r * entries;
            batch.offsets = p->offsets;
            batch.index = inputs->index + at * entries;
            batch.value = inputs->value + at * entries;
        }
        DT_TRY(
            dt__predictor_batch(p, &batch, out + at * p->width, out_class ? out_class + at : NULL));
    }
    return DT_OK;
}

dt_status dt__predictor_check(const struct dt_predictor *predictor, const float *answer)
{
    for (size_t i = 0; i < predictor->width; i++)
        if (!isfinite(answer[i]))
            return dt_fail(DT_EFORMAT, "its prediction is beyond the range of 32-bit floats");
    return DT_OK;
}
