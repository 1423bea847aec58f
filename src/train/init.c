/* A new run's weights: random or, with run.init, those of a trained model as far as they fit. Bank
 * only.
 *
 * Tensors match by name and shape. A tensor that reads the inputs is copied row by row, by the
 * names of the inputs: two tables may have the same columns in another order, and may number the
 * same categories differently, since the most frequent one comes first. A dense first layer is
 * converted to the units of the new inputs, and the output layer to those of the new targets.
 * Outputs match by the labels of their classes if the old model has all of the new classes; an old
 * model that counted labels 1..K from class 0 has one output more. What does not fit starts fresh.
 * Each of these steps is printed. */
#include <string.h>

#include "model/layer.h"
#include "table/labels.h"
#include "text/text.h"
#include "train/bank.h"

/* ---- inputs by their names ------------------------------------------------------------------ */

/* Finds for each input of `to` the input of `from` with the same name; UINT32_MAX: there is none.
 * *out NULL: all have the same places, or one schema has no names. */
static dt_status match_inputs(const struct dt_schema *to, const struct dt_schema *from,
                              uint32_t **out)
{
    struct dt__dict names = {0};
    uint32_t *input = NULL, *match = NULL, name; /* (names) index of each name's input in `from`;
                                                  * (inputs of `to`) */
    bool same = to->features == from->features;
    dt_status status = DT_OK;
    *out = NULL;
    if (!to->feature_names || !from->feature_names) return DT_OK;
    DT_GUARD(dt__alloc((size_t)from->features, sizeof *input, "names", &input));
    DT_GUARD(dt__alloc((size_t)to->features, sizeof *match, "inputs", &match));
    for (int i = 0; i < from->features; i++) {
        const char *text = from->feature_names[i];
        DT_GUARD(dt__dict_add(&names, text, strlen(text), &name));
        input[name] = (uint32_t)i;
    }
    for (int i = 0; i < to->features; i++) {
        const char *text = to->feature_names[i];
        const bool stays = i < from->features && strcmp(from->feature_names[i], text) == 0;
        const bool found = dt__dict_find_blank(&names, text, strlen(text), &name);
        match[i] = stays ? (uint32_t)i : found ? input[name] : UINT32_MAX;
        same &= stays;
    }
    if (!same) *out = match;
done:
    if (!*out) dt_free(match);
    dt_free(input);
    dt__dict_free(&names);
    return status;
}

/* Returns whether the columns agree in place and name, as far as an embedding's vectors depend on
 * them. */
static bool columns_match(const struct dt_schema *to, const struct dt_schema *from)
{
    if (!to->columns || !from->columns) return to->columns == from->columns;
    bool same = to->ncolumns == from->ncolumns && to->hash_bits == from->hash_bits;
    for (int c = 0; c < to->ncolumns && same; c++) {
        const char *name = to->columns[c].name, *other = from->columns[c].name;
        same = to->columns[c].kind == from->columns[c].kind &&
               (!name || !other || strcmp(name, other) == 0);
    }
    return same;
}

/* Returns false if both schemas name the same number of classes, but with other names or in another
 * order. */
static bool classes_match(const struct dt_schema *to, const struct dt_schema *from)
{
    bool same = true;
    if (!to->label_names || !from->label_names || to->classes != from->classes) return true;
    for (int c = 0; c < to->classes; c++)
        same &= strcmp(to->label_names[c], from->label_names[c]) == 0;
    return same;
}

/* Returns whether the outputs predict the same column of targets, as far as the schemas name it. */
static bool targets_match(const struct dt_schema *to, const struct dt_schema *from)
{
    const char *name = to->label_column, *other = from->label_column;
    return to->classes || !name || !other || !strcmp(name, other);
}

/* ---- tensors -------------------------------------------------------------------------------- */

/* Returns the tensor with the name and shape of `like`; NULL: there is none. *out_named: some
 * tensor has the name. by_name: the number of rows may differ in a tensor that reads the inputs. */
static const struct dt_tensor *find_tensor(const struct dt_model *model,
                                           const struct dt_tensor *like, bool by_name,
                                           bool *out_named)
{
    const size_t free_dims = by_name && like->row_sparse;
    *out_named = false;
    for (size_t i = 0; i < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        if (strcmp(tensor->name, like->name) != 0) continue;
        *out_named = true;
        if (tensor->rank == like->rank && (!free_dims || tensor->row_sparse) &&
            memcmp(tensor->shape + free_dims, like->shape + free_dims,
                   ((size_t)like->rank - free_dims) * sizeof *like->shape) == 0)
            return tensor;
    }
    return NULL;
}

/* Copies n floats of a tensor, from `at` on. Converts weight and bias of the output layer to the
 * units of the new targets, so that predictions stay the same: (W x + b) s0 + m0 = (W' x + b') s1 +
 * m1. */
static void copy_floats(const struct dt_model *to, const struct dt_schema *schema, float *params,
                        const struct dt_schema *before, const float *source,
                        const struct dt_tensor *tensor, size_t at, size_t n)
{
    const float *m0 = before->target_mean, *m1 = schema->target_mean;
    const float *s0 = before->target_std, *s1 = schema->target_std;
    const size_t channels = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    const size_t outputs = (size_t)to->desc.nout;
    /* the linear path, which follows the output layer, adds to the same outputs */
    const size_t ends = to->layer[to->layers - 1].last ? 1 : 2;
    const struct dt__layer *output = &to->layer[to->layers - ends];
    float *params_at = params + tensor->offset + at;
    memcpy(params_at, source, n * sizeof *params);
    if ((!m0 && !m1) || tensor->layer < output->index || channels > outputs) return;
    /* with several outputs for one target, an output is not one target's value */
    if ((size_t)before->targets != outputs || (size_t)schema->targets != outputs) return;
    for (size_t i = 0; i < n && tensor->role != DT_TENSOR_STATE; i++) {
        const size_t c = i % channels;
        const double factor = (s0 ? (double)s0[c] : 1) / (s1 ? (double)s1[c] : 1);
        double offset = ((m0 ? (double)m0[c] : 0) - (m1 ? (double)m1[c] : 0));
        offset = tensor->role == DT_TENSOR_BIAS ? offset / (s1 ? (double)s1[c] : 1) : 0;
        params_at[i] = (float)((double)source[i] * factor + offset);
    }
}

/* Copies the rows of a tensor that reads the inputs: each from the row of the same input in
 * `source`. Rows of other inputs keep their new weights. */
static void copy_by_name(const struct dt_job *job, const struct dt_tensor *tensor,
                         const uint32_t *match, const struct dt_checkpoint *file,
                         const struct dt_tensor *source, float *params)
{
    const struct dt_schema *schema = dt__source_schema(job->train);
    const size_t first = (size_t)schema->features - tensor->shape[0];
    const size_t first_before = (size_t)file->schema.features - source->shape[0];
    const size_t width = tensor->count / tensor->shape[0];
    const float *from = file->params + source->offset;
    size_t copied = 0;
    for (size_t r = 0; r < tensor->shape[0]; r++) {
        const uint32_t input = match[first + r];
        if (input == UINT32_MAX || input < first_before) continue;
        copy_floats(job->model, schema, params, &file->schema,
                    from + (input - first_before) * width, tensor, r * width, width);
        copied++;
    }
    dt__info("run.init: %s: %zu of %zu inputs by their names%s", tensor->name, copied,
             tensor->shape[0], copied < tensor->shape[0] ? ", the others start fresh" : "");
}

/* ---- outputs by their classes ---------------------------------------------------------------- */

/* Finds class c of `to` among the classes `others`, by its name or by its number in files. */
static bool class_find(const struct dt_schema *to, int c, const struct dt__classes *others,
                       int32_t *out)
{
    const char *name = to->label_names ? to->label_names[c] : NULL;
    if (name && !dt__class_of_text(others, name, strlen(name), out)) return true;
    if (others->named && !others->numbers.count) return false; /* `others` have no numbers */
    if (name && !to->label_numbers) return false;
    return !dt__class_of_number(others, to->label_numbers ? to->label_numbers[c] : c, out);
}

/* Finds for each class of `to` the class of `from` with the same label. *out NULL: all have the
 * same places, or `from` lacks some of them. */
static dt_status match_classes(const struct dt_schema *to, const struct dt_schema *from,
                               int32_t **out)
{
    struct dt__classes others = {0};
    int32_t *match;
    bool found = true, same = to->classes == from->classes;
    *out = NULL;
    if (!to->classes || !from->classes) return DT_OK;
    DT_TRY(dt__alloc((size_t)to->classes, sizeof *match, "classes", &match));
    dt_status status = dt__classes_init(&others, from, false);
    for (int c = 0; c < to->classes && found && !status; c++) {
        found = class_find(to, c, &others, &match[c]);
        same &= found && match[c] == c;
    }
    dt__classes_free(&others);
    if (!status && found && !same)
        *out = match;
    else
        dt_free(match);
    return status;
}

/* Converts a row of outputs from one list of classes to another. A model of two classes has one
 * output: the logit of class 1 minus that of class 0. */
static void outputs_convert(const float *from, size_t nfrom, const int32_t *match, float *to,
                            size_t nto)
{
    for (size_t o = 0; o < nto; o++) {
        const int32_t over = match[0], class = match[nto == 1 ? 1 : o];
        to[o] = nfrom > 1 ? from[class] : class ? from[0] : 0;
        if (nto == 1) to[o] -= nfrom > 1 ? from[over] : over ? from[0] : 0;
    }
}

/* Replaces *model by a model of the same layers for the classes of `schema`, and the weights in
 * `file` by those of these classes' outputs. */
static dt_status convert_classes(const struct dt_schema *schema, struct dt_checkpoint *file,
                                 struct dt_model **model)
{
    const struct dt_model *from = *model;
    const size_t ends = from->layer[from->layers - 1].last ? 1 : 2;
    const int output = from->layer[from->layers - ends].index;
    const size_t nfrom = (size_t)file->desc.nout, nto = (size_t)dt__schema_nout(schema);
    struct dt_model *to = NULL;
    int32_t *match = NULL;
    float *params = NULL;
    dt_status status = match_classes(schema, &file->schema, &match);
    if (status || !match) return status;
    file->desc.nout = (int)nto;
    DT_GUARD(dt__model_create(&file->desc, &to));
    DT_GUARD(dt__alloc_backed(NULL, to->params, sizeof *params, "params", &params));
    for (size_t i = 0; i < to->tensors; i++) {
        const struct dt_tensor *tensor = &to->tensor[i], *source = &from->tensor[i];
        const bool outputs =
            source->layer >= output && source->rank && source->shape[source->rank - 1] == nfrom;
        const float *values = file->params + source->offset;
        if (!outputs) memcpy(params + tensor->offset, values, tensor->count * sizeof *values);
        for (size_t r = 0; outputs && r < tensor->count / nto; r++)
            outputs_convert(values + r * nfrom, nfrom, match, params + tensor->offset + r * nto,
                            nto);
    }
    dt__info("run.init: outputs by their classes: %d of %d", schema->classes, file->schema.classes);
    dt__free_backed(file->params);
    file->params = params;
    file->params_count = to->params;
    dt__names_free(file->schema.label_names, (size_t)file->schema.classes);
    file->schema.label_names = NULL; /* from here on classes match by position */
    file->schema.classes = schema->classes;
    dt__model_destroy(*model);
    *model = to;
    to = NULL;
done:
    dt__model_destroy(to);
    dt_free(match);
    return status;
}

/* ---- units of the inputs --------------------------------------------------------------------- */

/* Finds how the units of input `i` changed (input `was` of the old model; UINT32_MAX: it had none):
 * old x = factor * new x + offset. Returns false if they did not change. */
static bool input_shift(const struct dt_schema *before, uint32_t was, const struct dt_schema *now,
                        size_t i, double *factor, double *offset)
{
    const double scale = before->scale / now->scale;
    if (was == UINT32_MAX) return false;
    const double mean0 = before->mean ? (double)before->mean[was] : 0;
    const double mean1 = now->mean ? (double)now->mean[i] : 0;
    const double inverse0 = before->inv_std ? (double)before->inv_std[was] : 1;
    const double inverse1 = now->inv_std ? (double)now->inv_std[i] : 1;
    *factor = scale * inverse0 / inverse1;
    *offset = (mean1 * scale - mean0) * inverse0;
    return *factor != 1 || *offset != 0;
}

/* Returns the weight of the dense layer that reads all inputs, whose bias follows it; NULL: other
 * layers read inputs. */
static const struct dt_tensor *input_layer(const struct dt_model *model)
{
    const struct dt_tensor *weight = model->tensor, *bias = weight + 1;
    const bool dense = model->tensors > 1 && model->row_sparse == 1 && weight->row_sparse &&
                       bias->role == DT_TENSOR_BIAS && bias->layer == weight->layer;
    return dense ? weight : NULL;
}

/* Converts the first layer, as copied, to the units of the new inputs: W x0 + b = W (factor x1 +
 * offset) + b. */
static void convert_inputs(const struct dt_job *job, const struct dt_model *from,
                           const struct dt_checkpoint *file, const uint32_t *match,
                           const char *path, float *params)
{
    const struct dt_schema *now = dt__source_schema(job->train), *before = &file->schema;
    const struct dt_tensor *weight = input_layer(job->model);
    const size_t features = (size_t)now->features;
    const size_t width = weight ? weight[1].count : 0;
    size_t shifted = 0;
    bool named;
    if (!match && now->features != before->features) return; /* shapes differ: nothing was copied */
    if (weight && !find_tensor(from, weight, match != NULL, &named)) return;
    for (size_t i = 0; i < features; i++) {
        double factor, offset;
        if (!input_shift(before, match ? match[i] : (uint32_t)i, now, i, &factor, &offset))
            continue;
        shifted++;
        const size_t added = job->model->inputs - features;
        const size_t row = i < (size_t)now->dense ? i : i + added;
        for (size_t j = 0; j < width; j++) {
            float *w = params + weight->offset + row * width + j;
            params[weight[1].offset + j] += (float)((double)*w * offset);
            *w = (float)((double)*w * factor);
        }
    }
    if (shifted && weight)
        dt__info(
            "run.init: %s: %zu of %zu inputs are in other units: the first layer is converted%s",
            path, shifted, features,
            now->clip > 0 || before->clip > 0 ? " (data.clip cuts other values off)" : "");
    else if (shifted)
        dt__warn("run.init: %s scaled or normalised its inputs differently (data.scale, "
                 "data.normalize): the weights that read them are copied unchanged",
                 path);
}

/* ---- encodings of numbers -------------------------------------------------------------------- */

/* Returns whether the inputs that encode numbers encode the same numbers with the same meaning.
 * Bins may differ, since they depend on the rows; frequencies are drawn, and must be equal. */
static bool encodings_match(const struct dt_model *to, const struct dt_schema *schema,
                            const struct dt_model *from, const struct dt_schema *before)
{
    const struct dt_model_desc *a = &to->desc, *b = &from->desc;
    if (a->encode != b->encode || a->encode_columns != b->encode_columns ||
        a->encode_width != b->encode_width || a->dense != b->dense)
        return false;
    return memcmp(schema->encoded_feature, before->encoded_feature,
                  (size_t)a->encode_columns * sizeof *schema->encoded_feature) == 0 &&
           (a->encode != DT_ENCODE_COSINE ||
            memcmp(a->encode_table, b->encode_table,
                   (size_t)a->encode_count * sizeof *a->encode_table) == 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Returns whether a tensor stays at the baseline: it is the output's bias, and the weight of its
 * layer is new or its outputs have another meaning. */
static bool stays_at_baseline(const struct dt_job *job, const struct dt_tensor *tensor,
                              const struct dt_model *from, bool by_name)
{
    bool named;
    if (tensor != job->rules->undecayed) return false;
    return job->model->outputs.link != from->outputs.link ||
           !find_tensor(from, tensor - 1, by_name, &named);
}

/* Copies the tensors that fit. Prints which tensors keep their new weights. */
static dt_status copy_tensors(const struct dt_job *job, float *params, const struct dt_model *from,
                              const struct dt_checkpoint *file, const char *path, size_t *out_taken)
{
    const struct dt_model *to = job->model;
    const struct dt_schema *schema = dt__source_schema(job->train);
    size_t taken = 0, tensors = to->tensors;
    const bool embeds = to->desc.categories && to->layer->row_sparse >= 0;
    uint32_t *match;
    DT_TRY(match_inputs(schema, &file->schema, &match));
    if ((embeds && !columns_match(schema, &file->schema)) || (match && to->layer->row_sparse < 0))
        dt__warn("run.init: %s was trained on other columns, or in another order; weights after "
                 "the first layer are matched by position",
                 path);
    /* Hashed inputs, and those of files without a header, have no names. */
    const bool unnamed = !schema->feature_names || !file->schema.feature_names;
    const bool known = schema->feature_names || file->schema.feature_names;
    if (unnamed && !embeds && (known || !columns_match(schema, &file->schema)))
        dt__warn("run.init: %s: inputs are matched by position: they have no names, and may differ",
                 path);
    if (!classes_match(schema, &file->schema))
        dt__warn("run.init: %s was trained on other classes, or in another order; weights of the "
                 "outputs are matched by position",
                 path);
    if (!targets_match(schema, &file->schema))
        dt__warn(
            "run.init: %s was trained on other targets, %s: weights of the outputs are matched "
            "by position",
            path, file->schema.label_column);
    if (to->outputs.link != from->outputs.link)
        dt__warn("run.init: %s has another train.loss, whose outputs mean something else: their "
                 "weights are copied unchanged",
                 path);
    const bool encoded = to->desc.encode || from->desc.encode;
    const bool other = encoded && (match || !encodings_match(to, schema, from, &file->schema));
    for (size_t i = 0; i < tensors; i++) {
        const struct dt_tensor *tensor = &to->tensor[i];
        bool named;
        const struct dt_tensor *source = find_tensor(from, tensor, match != NULL, &named);
        if (other && tensor->row_sparse) source = NULL;
        if (source && stays_at_baseline(job, tensor, from, match != NULL)) {
            dt__info("run.init: %s starts at the baseline: its layer does not fit", tensor->name);
            continue;
        }
        if (source && match && tensor->row_sparse)
            copy_by_name(job, tensor, match, file, source, params);
        else if (source)
            copy_floats(to, schema, params, &file->schema, file->params + source->offset, tensor, 0,
                        tensor->count);
        else
            dt__info("run.init: %s starts fresh: %s", tensor->name,
                     other && tensor->row_sparse ? "its inputs are encoded otherwise there"
                     : named                     ? "it has another shape there"
                                                 : "it is not there");
        taken += source != NULL;
    }
    if (!other) convert_inputs(job, from, file, match, path, params);
    dt_free(match);
    if (taken == 0)
        return dt_fail(DT_EMISMATCH,
                       "run.init=%s: no tensor has the name and shape of one of this model", path);
    dt__info("run.init: %zu of %zu tensors from %s", taken, tensors, path);
    *out_taken = taken;
    return DT_OK;
}

/* Records the copied tensors as the first change of the run's history. */
dt_status dt__init_weights(struct dt_bank *bank, float *params)
{
    const struct dt_job *job = bank->job;
    const char *from = job->config->run.init;
    struct dt_checkpoint file = {0};
    struct dt_model *model = NULL;
    char *path = NULL, *text = NULL;
    size_t taken = 0;
    uint32_t crc = 0;
    dt__model_init(job->model, (uint64_t)job->config->run.seed, params);
    /* A linear model starts at 0, as in the paper on ftrl: features that never occur then have no
     * weight. */
    if (job->rules->optimizer.own_rates && job->model->buckets == 1)
        memset(params, 0, job->model->params * sizeof *params);
    dt__baseline_start(bank, params);
    if (!*from) return DT_OK;
    dt_status status = dt__export_load(from, false, &file, &path);
    if (!status) status = dt__model_create(&file.desc, &model);
    if (!status && model->members)
        status = dt_fail(DT_EMISMATCH, "the mean of several networks: expected one, as of a trial");
    if (!status && model->params != file.params_count)
        status = dt_fail(DT_EFORMAT, "%s: its layers do not have %llu parameters", path,
                         (unsigned long long)file.params_count);
    if (!status) crc = dt__crc32c(0, file.params, file.params_count * sizeof(float));
    if (!status) status = convert_classes(dt__source_schema(job->train), &file, &model);
    if (!status) status = copy_tensors(job, params, model, &file, path, &taken);
    if (!status)
        status = dt__format(&text, "%zu tensors of %s, params_crc32c %08x", taken, path, crc);
    if (!status) dt__record_change(bank, 0, "run.init", text);
    dt_free(text);
    dt__model_destroy(model);
    dt__checkpoint_free(&file);
    dt_free(path);
    return status;
}
