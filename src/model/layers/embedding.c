/* Embedding: the first layer of a network for tables with categories. It copies a row's dense
 * inputs, and appends the vectors of the row's categories, `width` numbers each, in the order of
 * the columns: y = (x, E[i1], E[i2], ...), weight E (inputs that are not dense, width). A batch
 * reads only the rows of E whose categories occur in it, and its gradient has only these rows.
 *
 * Vectors start normal with variance 1 / width, so their length is about 1.
 *
 * Source: Cheng et al., "Wide & deep learning for recommender systems", DLRS 2016, section 3.2. */
#include <string.h>

#include "model/emitter.h"
#include "model/entries.h"

enum { WIDTH, DENSE, CATEGORIES }; /* indices in layer->size; the last two from the data */

static dt_status embedding_infer(struct dt_model *model, struct dt__layer *layer)
{
    const struct dt_model_desc *desc = &model->desc;
    const size_t inputs = model->inputs, width = (size_t)layer->size[WIDTH];
    const int encoded = (int)(inputs - model->features);
    if (layer != model->layer)
        return dt_fail(DT_EUSAGE, "an embedding is the first layer: it takes a table's categories");
    if (desc->categories < 1 || desc->dense < 0 || (size_t)desc->dense >= model->features)
        return dt_fail(DT_EUSAGE,
                       "the data has no categories to embed (model.embedding goes with CSV of "
                       "columns of texts, see data.categories)");
    const size_t dense = (size_t)(desc->dense + encoded);
    const size_t out = dense + (size_t)desc->categories * width;
    if (out > DT_MAX_WIDTH)
        return dt_fail(DT_EUSAGE,
                       "%zu numbers and %d categories of width %zu make %zu, expected at most %d",
                       dense, desc->categories, width, out, DT_MAX_WIDTH);
    layer->out = (struct dt__shape){1, 1, (int)out};
    const struct dt_tensor weight = {.rank = 2,
                                     .shape = {inputs - dense, width},
                                     .role = DT_TENSOR_WEIGHT,
                                     .init = DT_INIT_UNIT,
                                     .fan_in = (double)inputs,
                                     .fan_out = (double)width,
                                     .row_sparse = true};
    layer->size[DENSE] = (int)dense;
    layer->size[CATEGORIES] = desc->categories;
    return dt__layer_tensor(model, layer, "weight", &weight);
}

/* Expects one entry per category column in each row, in the order of the columns. */
static dt_status embedding_forward(const struct dt__layer_call *call)
{
    enum { AHEAD = 16 }; /* entries to prefetch, because rows of E are scattered in memory */
    const struct dt_batch *batch = call->batch;
    const int *size = call->layer->size;
    const size_t width = (size_t)size[WIDTH], dense = (size_t)size[DENSE];
    const float *x = call->x;
    float *y = call->y;
    if (!batch->offsets || batch->ndense != size[DENSE])
        return dt_fail(DT_EMISMATCH, "%s: rows without categories", call->layer->text);
    const uint64_t end = batch->offsets[batch->rows];
    for (int r = 0; r < batch->rows; r++, x += dense) {
        const uint64_t count = batch->offsets[r + 1] - batch->offsets[r];
        if (count != (uint64_t)size[CATEGORIES])
            return dt_fail(DT_EMISMATCH, "%s: a row of %llu categories, expected %d",
                           call->layer->text, (unsigned long long)count, size[CATEGORIES]);
        if (dense) memcpy(y, x, dense * sizeof *y);
        y += dense;
        for (uint64_t e = batch->offsets[r]; e < batch->offsets[r + 1]; e++, y += width) {
            const uint64_t next = e + AHEAD < end ? e + AHEAD : e;
            __builtin_prefetch(call->params + (batch->index[next] - dense) * width);
            const float *from = call->params + (batch->index[e] - dense) * width;
            const float value = batch->value ? batch->value[e] : 1;
            for (size_t i = 0; i < width; i++)
                y[i] = value * from[i];
        }
    }
    return DT_OK;
}

/* A row of dy has dense + columns * width numbers. Entry p of the batch, in row r, is in column p -
 * r * columns, so its delta is at dy + dense + r * dense + p * width. */
static dt_status embedding_backward(const struct dt__layer_call *call)
{
    const int *size = call->layer->size;
    const struct dt__input_rows rows = {.delta = call->dy + size[DENSE],
                                        .by_row = (size_t)size[DENSE],
                                        .by_place = (size_t)size[WIDTH],
                                        .width = (size_t)size[WIDTH],
                                        .rows =
                                            dt__shape_size(call->layer->in) - (size_t)size[DENSE],
                                        .first = (size_t)size[DENSE]};
    dt__entries_gradient(call->entries, &rows, call->accumulate, call->touched, call->grad);
    return DT_OK;
}

/* Emits each column's vector as the product of the column's inputs, which are 0 except for one 1,
 * with the column's rows of E. */
static const char *embedding_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                  const char *x)
{
    const int *size = layer->size;
    const struct dt_tensor *table = dt__emit_need(e, layer, "weight");
    const char *all = size[DENSE] ? dt__emit_slice(e, x, 0, size[DENSE]) : NULL;
    for (int c = 0; c < size[CATEGORIES] && !e->status; c++) {
        char name[80];
        int first, count;
        e->category(e, c, &first, &count);
        const int64_t dims[] = {count, size[WIDTH]};
        const float *part =
            e->params + table->offset + (size_t)(first - size[DENSE]) * table->shape[1];
        snprintf(name, sizeof name, "%s/%d", table->name, first);
        const char *constant = e->floats(e, name, 2, dims, part);
        const char *vector =
            DT__NODE(e, "MatMul", dt__emit_slice(e, x, first, first + count), constant);
        if (!all) {
            all = vector;
            continue;
        }
        all = DT__NODE(e, "Concat", all, vector);
        e->integer(e, "axis", 1);
    }
    return all ? all : x;
}

const struct dt__layer_kind dt__embedding_layer = {.name = "embedding",
                                                   .usage = "embedding WIDTH",
                                                   .sparse = true,
                                                   .parse = dt__parse_width,
                                                   .infer = embedding_infer,
                                                   .forward = embedding_forward,
                                                   .backward = embedding_backward,
                                                   .emit = embedding_emit};
