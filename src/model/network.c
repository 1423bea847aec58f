#include "dtrain/model.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct dt_model {
    struct dt_model_spec spec;
    int layers;
    size_t params;
    struct dt_layer layer[DT_MAX_LAYERS];
};

static dt_status check_number(const char *name, int value, int least, int most)
{
    if (value < least || value > most)
        return dt_fail(DT_EUSAGE, "model: %s is %d, expected %d to %d", name, value, least, most);
    return DT_OK;
}

static dt_status check_spec(const struct dt_model_spec *spec)
{
    DT_TRY(check_number("kind", spec->kind, DT_KIND_LINEAR, DT_KIND_MLP));
    DT_TRY(check_number("activation", spec->activation, DT_RELU, DT_GELU));
    DT_TRY(check_number("task", spec->task, DT_CLASSIFY, DT_REGRESS));
    DT_TRY(check_number("features", spec->nin, 1, INT_MAX));
    DT_TRY(check_number("outputs", spec->nout, 1, DT_MAX_WIDTH));
    DT_TRY(check_number("hidden layers", spec->nhidden, 0, DT_MAX_LAYERS - 1));
    for (int i = 0; i < spec->nhidden; i++)
        DT_TRY(check_number("width of a hidden layer", spec->hidden[i], 1, DT_MAX_WIDTH));
    if (!(spec->dropout >= 0.0 && spec->dropout < 1.0))
        return dt_fail(DT_EUSAGE, "model: dropout is %g, expected 0 to below 1", spec->dropout);
    return DT_OK;
}

/* Appends a layer. At most 64 layers of at most 2^51 + 2^31 floats: no overflow. */
static void add_layer(struct dt_model *model, int nin, int nout)
{
    struct dt_layer *layer = &model->layer[model->layers++];
    size_t begin = model->params, bias = begin + (size_t)nin * (size_t)nout;
    *layer = (struct dt_layer){.nin = nin,
                               .nout = nout,
                               .weight = begin,
                               .bias = bias,
                               .begin = begin,
                               .end = bias + (size_t)nout};
    model->params = layer->end;
}

dt_status dt_model_create(const struct dt_model_spec *spec, struct dt_model **out)
{
    DT_TRY(check_spec(spec));
    struct dt_model *model;
    DT_TRY(dt_alloc(1, sizeof *model, "model", &model));
    model->spec = *spec;
    int nin = spec->nin;
    for (int i = 0; i < spec->nhidden; i++) {
        add_layer(model, nin, spec->hidden[i]);
        nin = spec->hidden[i];
    }
    add_layer(model, nin, spec->nout);
    *out = model;
    return DT_OK;
}

void dt_model_destroy(struct dt_model *model)
{
    dt_free(model);
}

const struct dt_model_spec *dt_model_get_spec(const struct dt_model *model)
{
    return &model->spec;
}

size_t dt_model_params(const struct dt_model *model)
{
    return model->params;
}

int dt_model_layers(const struct dt_model *model)
{
    return model->layers;
}

const struct dt_layer *dt_model_layer(const struct dt_model *model, int index)
{
    return &model->layer[index];
}

/* Cut where the buffer ends. */
static void append(char *buffer, size_t size, const char *text)
{
    size_t length = strlen(buffer);
    (void)snprintf(buffer + length, size - length, "%s", text);
}

static void append_widths(const struct dt_model *model, char *buffer, size_t size)
{
    char part[16];
    for (int i = 0; i < model->layers; i++) {
        (void)snprintf(part, sizeof part, "%d-", model->layer[i].nin);
        append(buffer, size, part);
    }
    (void)snprintf(part, sizeof part, "%d ", model->spec.nout);
    append(buffer, size, part);
}

const char *dt_model_describe(const struct dt_model *model, char *buffer, size_t size)
{
    const struct dt_model_spec *spec = &model->spec;
    char word[16], part[32];
    if (!size) return buffer;
    buffer[0] = '\0';
    append_widths(model, buffer, size);
    append(buffer, size,
           spec->nhidden ? dt_config_word(DT_ACTIVATION_WORDS, spec->activation, word) : "linear");
    if (spec->dropout > 0.0) {
        (void)snprintf(part, sizeof part, " dropout %g", spec->dropout);
        append(buffer, size, part);
    }
    return buffer;
}

/* He et al. 2015, eq. 10: variance 2 / nin. */
static void init_he(const struct dt_layer *layer, const struct dt_rng *rng, float *params)
{
    const double deviation = sqrt(2.0 / layer->nin);
    for (size_t i = layer->weight; i < layer->bias; i++)
        params[i] = (float)(deviation * dt_rng_normal(rng, i - layer->weight));
}

/* Glorot and Bengio 2010, eq. 16: uniform on +-sqrt(6 / (nin + nout)). */
static void init_glorot(const struct dt_layer *layer, const struct dt_rng *rng, float *params)
{
    const double bound = sqrt(6.0 / ((double)layer->nin + layer->nout));
    for (size_t i = layer->weight; i < layer->bias; i++)
        params[i] = (float)(bound * (2.0 * dt_rng_uniform(rng, i - layer->weight) - 1.0));
}

void dt_model_init(const struct dt_model *model, uint64_t seed, float *params)
{
    const int activation = model->spec.activation;
    for (int i = 0; i < model->layers; i++) {
        const struct dt_layer *layer = &model->layer[i];
        struct dt_rng rng = dt_rng_make(seed, DT_STREAM_INIT, (uint64_t)i, 0);
        bool he = i < model->layers - 1 && (activation == DT_RELU || activation == DT_GELU);
        if (he)
            init_he(layer, &rng, params);
        else
            init_glorot(layer, &rng, params);
        memset(params + layer->bias, 0, (size_t)layer->nout * sizeof *params);
    }
}
