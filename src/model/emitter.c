/* Nodes that several layers use, and the nodes that compute a task's answers. */
#include "model/emitter.h"

#include <string.h>

#include "model/task.h"

const char *dt__emit_nothing(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    (void)e, (void)layer;
    return x;
}

/* ---- constants ------------------------------------------------------------------------------ */

const struct dt_tensor *dt__emit_find(const struct dt__emitter *e, const struct dt__layer *layer,
                                      const char *name)
{
    for (size_t t = 0; t < e->model->tensors; t++) {
        const struct dt_tensor *tensor = &e->model->tensor[t];
        const char *last = strrchr(tensor->name, '/');
        if (tensor->layer == layer->index && last && !strcmp(last + 1, name)) return tensor;
    }
    return NULL;
}

const struct dt_tensor *dt__emit_need(struct dt__emitter *e, const struct dt__layer *layer,
                                      const char *name)
{
    const struct dt_tensor *tensor = dt__emit_find(e, layer, name);
    if (!tensor) dt__emit_keep(e, dt_fail(DT_EBUG, "%s has no %s", layer->text, name));
    return tensor;
}

const char *dt__emit_tensor(struct dt__emitter *e, const struct dt__layer *layer, const char *name)
{
    const struct dt_tensor *tensor = dt__emit_need(e, layer, name);
    int64_t dims[4];
    if (!tensor) return "";
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = (int64_t)tensor->shape[i];
    return e->floats(e, tensor->name, (size_t)tensor->rank, dims, e->params + tensor->offset);
}

const char *dt__emit_vector(struct dt__emitter *e, const char *name, size_t n, const float *data)
{
    return e->floats(e, name, 1, (const int64_t[]){(int64_t)n}, data);
}

const char *dt__emit_scalar(struct dt__emitter *e, double value)
{
    return e->floats(e, NULL, 0, NULL, &(const float){(float)value});
}

/* ---- shapes --------------------------------------------------------------------------------- */

const char *dt__emit_reshape(struct dt__emitter *e, const char *x, size_t n, const int64_t *shape)
{
    return DT__NODE(e, "Reshape", x, e->list(e, n, shape));
}

const char *dt__emit_slice(struct dt__emitter *e, const char *x, int64_t first, int64_t end)
{
    const int64_t axis = 1;
    return DT__NODE(e, "Slice", x, e->list(e, 1, &first), e->list(e, 1, &end),
                    e->list(e, 1, &axis));
}

static const char *emit_transpose(struct dt__emitter *e, const char *x, const int perm[4])
{
    x = DT__NODE(e, "Transpose", x);
    e->ints(e, "perm", 4, perm);
    return x;
}

const char *dt__emit_pictures(struct dt__emitter *e, const char *x, struct dt__shape shape)
{
    const int64_t dims[] = {-1, shape.h, shape.w, shape.c};
    return emit_transpose(e, dt__emit_reshape(e, x, 4, dims), (const int[]){0, 3, 1, 2});
}

const char *dt__emit_rows(struct dt__emitter *e, const char *x, struct dt__shape shape)
{
    const int64_t dims[] = {-1, (int64_t)dt__shape_size(shape)};
    return dt__emit_reshape(e, emit_transpose(e, x, (const int[]){0, 2, 3, 1}), 2, dims);
}

/* ---- answers -------------------------------------------------------------------------------- */

void dt__emit_softmax(struct dt__emitter *e, const char *x)
{
    DT__NAMED(e, "class", "ArgMax", x);
    e->integer(e, "axis", 1);
    e->integer(e, "keepdims", 0);
    DT__NAMED(e, "probabilities", "Softmax", x);
    e->integer(e, "axis", 1);
}

void dt__emit_two(struct dt__emitter *e, const char *x)
{
    enum { INT64 = 7 }; /* TensorProto.DataType */
    const char *yes = DT__NODE(e, "Sigmoid", x);
    const char *no = DT__NODE(e, "Sigmoid", DT__NODE(e, "Neg", x));
    const char *logits = dt__emit_reshape(e, x, 1, (const int64_t[]){-1});
    const char *cut = dt__emit_scalar(e, e->model->outputs.cut);
    const char *positive = DT__NODE(e, "Greater", logits, cut);
    DT__NAMED(e, "class", "Cast", positive);
    e->integer(e, "to", INT64);
    DT__NAMED(e, "probabilities", "Concat", no, yes);
    e->integer(e, "axis", 1);
}

/* Emits rising values (rows, targets, each) from outputs: each target's first output, and the
 * softplus of the others as increments. A product with a triangular matrix adds them up. */
static const char *emit_rising(struct dt__emitter *e, const char *x, int64_t targets, int64_t each)
{
    float first[DT_MAX_QUANTILES] = {1}, others[DT_MAX_QUANTILES] = {0};
    float sums[DT_MAX_QUANTILES * DT_MAX_QUANTILES] = {0};
    const int64_t shape[] = {-1, targets, each}, square[] = {each, each};
    for (int64_t q = 0; q < each; q++) {
        others[q] = 1 - first[q];
        for (int64_t to = q; to < each; to++)
            sums[q * each + to] = 1;
    }
    x = dt__emit_reshape(e, x, 3, shape);
    const char *steps = DT__NODE(e, "Mul", DT__NODE(e, "Softplus", x),
                                 dt__emit_vector(e, NULL, (size_t)each, others));
    x = DT__NODE(e, "Mul", x, dt__emit_vector(e, NULL, (size_t)each, first));
    return DT__NODE(e, "MatMul", DT__NODE(e, "Add", x, steps), e->floats(e, NULL, 2, square, sums));
}

/* Emits value = link(output * std + mean), limited to the range of the targets. */
void dt__emit_numbers(struct dt__emitter *e, const char *x)
{
    static const char *const links[] = {[DT_LINK_IDENTITY] = "Identity",
                                        [DT_LINK_EXP] = "Exp",
                                        [DT_LINK_SIGMOID] = "Sigmoid",
                                        [DT_LINK_RISING] = "Identity"};
    const struct dt_outputs *outputs = &e->model->outputs;
    const int64_t n[] = {outputs->count / outputs->each, 1}, flat[] = {-1, outputs->count};
    const bool rises = outputs->link == DT_LINK_RISING;
    const size_t dims = rises ? 2 : 1;
    if (rises) x = emit_rising(e, x, n[0], outputs->each);
    if (outputs->mean) {
        x = DT__NODE(e, "Mul", x, e->floats(e, "target_std", dims, n, outputs->std));
        x = DT__NODE(e, "Add", x, e->floats(e, "target_mean", dims, n, outputs->mean));
    }
    const char *link = links[outputs->link];
    if (outputs->least) {
        if (outputs->link == DT_LINK_EXP) x = DT__NODE(e, link, x);
        x = DT__NODE(e, "Max", x, e->floats(e, "target_least", dims, n, outputs->least));
        x = DT__NODE(e, "Min", x, e->floats(e, "target_greatest", dims, n, outputs->greatest));
        link = "Identity";
    }
    if (rises) x = dt__emit_reshape(e, x, 2, flat);
    DT__NAMED(e, e->model->loss->task->answer, link, x);
}

/* ---- means of several networks --------------------------------------------------------------- */

const char *dt__emit_two_to_mean(struct dt__emitter *e, const char *x)
{
    return DT__NODE(e, "Sigmoid", x);
}

/* Emits log p - log(1 - p). */
const char *dt__emit_two_from_mean(struct dt__emitter *e, const char *x)
{
    x = DT__NODE(e, "Clip", x, dt__emit_scalar(e, 1e-37), dt__emit_scalar(e, 1 - 6e-8));
    const char *rest = DT__NODE(e, "Sub", dt__emit_scalar(e, 1), x);
    return DT__NODE(e, "Sub", DT__NODE(e, "Log", x), DT__NODE(e, "Log", rest));
}

const char *dt__emit_softmax_to_mean(struct dt__emitter *e, const char *x)
{
    x = DT__NODE(e, "Softmax", x);
    e->integer(e, "axis", 1);
    return x;
}

const char *dt__emit_log(struct dt__emitter *e, const char *x)
{
    return DT__NODE(e, "Log", DT__NODE(e, "Max", x, dt__emit_scalar(e, 1e-37)));
}

const char *dt__emit_numbers_to_mean(struct dt__emitter *e, const char *x)
{
    const struct dt_outputs *outputs = &e->model->outputs;
    const int64_t flat[] = {-1, outputs->count};
    if (outputs->link == DT_LINK_SIGMOID) return dt__emit_two_to_mean(e, x);
    if (outputs->link == DT_LINK_EXP) return DT__NODE(e, "Exp", x);
    if (outputs->link == DT_LINK_IDENTITY) return x;
    return dt__emit_reshape(e, emit_rising(e, x, outputs->count / outputs->each, outputs->each), 2,
                            flat);
}

/* Emits the inverse of emit_rising: of each target's values, the first is kept, and the increments
 * become the outputs whose softplus they are. */
static const char *emit_rising_inverse(struct dt__emitter *e, const char *x)
{
    const struct dt_outputs *outputs = &e->model->outputs;
    const int64_t each = outputs->each, n = outputs->count / each, flat[] = {-1, outputs->count};
    float differences[DT_MAX_QUANTILES * DT_MAX_QUANTILES] = {0};
    float first[DT_MAX_QUANTILES] = {1}, others[DT_MAX_QUANTILES] = {0};
    for (int64_t q = 0; q < each; q++) {
        others[q] = 1 - first[q];
        differences[q * each + q] = 1;
        if (q + 1 < each) differences[q * each + q + 1] = -1;
    }
    x = dt__emit_reshape(e, x, 3, (const int64_t[]){-1, n, each});
    x = DT__NODE(e, "MatMul", x, e->floats(e, NULL, 2, (const int64_t[]){each, each}, differences));
    /* log(e^d - 1) = d + log(1 - e^-d) */
    const char *d = DT__NODE(e, "Max", x, dt__emit_scalar(e, 1e-37));
    const char *rest = DT__NODE(e, "Exp", DT__NODE(e, "Neg", d));
    rest = DT__NODE(e, "Sub", dt__emit_scalar(e, 1), rest);
    rest = DT__NODE(e, "Max", rest, dt__emit_scalar(e, 1e-37));
    d = DT__NODE(e, "Add", d, DT__NODE(e, "Log", rest));
    d = DT__NODE(e, "Mul", d, dt__emit_vector(e, NULL, (size_t)each, others));
    x = DT__NODE(e, "Mul", x, dt__emit_vector(e, NULL, (size_t)each, first));
    return dt__emit_reshape(e, DT__NODE(e, "Add", x, d), 2, flat);
}

const char *dt__emit_numbers_from_mean(struct dt__emitter *e, const char *x)
{
    const int link = e->model->outputs.link;
    if (link == DT_LINK_SIGMOID) return dt__emit_two_from_mean(e, x);
    if (link == DT_LINK_EXP) return dt__emit_log(e, x);
    return link == DT_LINK_IDENTITY ? x : emit_rising_inverse(e, x);
}
