/* Parses the text of a network, model.layers. Commas separate items and blanks separate words. Each
 * item is parsed by its kind; its last word may be an activation. An activation or dropout becomes
 * the epilogue of the layer before it, if that accepts one. The output layer follows from the task;
 * the text contains it only in the form "output KIND ...". "wide" at the end adds the linear path
 * after the output layer.
 *
 * The keys model.kind, hidden, activation and dropout are expanded to such a text. model.embedding
 * adds the first item, and model.wide the last. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/activation.h"
#include "model/task.h"

static const struct dt__layer_kind *const KINDS[] = {
    &dt__dense_layer,     &dt__conv_layer,       &dt__conv1d_layer,   &dt__maxpool_layer,
    &dt__avgpool_layer,   &dt__globalpool_layer, &dt__flatten_layer,  &dt__batchnorm_layer,
    &dt__layernorm_layer, &dt__residual_layer,   &dt__upsample_layer, &dt__dropout_layer,
    &dt__scale_layer,     &dt__embedding_layer,  &dt__wide_layer,
};
enum {
    KIND_COUNT = sizeof KINDS / sizeof *KINDS,
    MAX_FIELDS = 16,
    MAX_ITEMS = 4096,
    MAX_DEPTH = 16
};
#define LINEAR "linear" /* the text of a model with only its output layer */
#define OUTPUT "output"
#define SPLIT "split"

/* ---- words ---------------------------------------------------------------------------------- */

bool dt__arg_int(const char *text, int least, int *out)
{
    char *end;
    if (!isdigit((unsigned char)*text)) return false;
    long value = strtol(text, &end, 10);
    if (*end || value < least || value > DT_MAX_WIDTH) return false;
    *out = (int)value;
    return true;
}

bool dt__arg_pair(const char *text, int least, int *out_first, int *out_second)
{
    char first[16];
    const char *times = strchr(text, 'x');
    if (!times) {
        if (!dt__arg_int(text, least, out_first)) return false;
        *out_second = *out_first;
        return true;
    }
    if (times - text >= (ptrdiff_t)sizeof first) return false;
    (void)snprintf(first, sizeof first, "%.*s", (int)(times - text), text);
    return dt__arg_int(first, least, out_first) && dt__arg_int(times + 1, least, out_second);
}

bool dt__arg_real(const char *text, double *out)
{
    char *end;
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) return false;
    *out = dt__real_read(text, &end);
    return !*end && isfinite(*out);
}

bool dt__parse_width(struct dt__layer *layer, struct dt__layer_args args)
{
    return args.count == 1 && dt__arg_int(args.text[0], 1, &layer->size[0]);
}

/* Splits `item` into words, in place. Returns their number; -1: there are too many. */
static int cut_fields(char *item, char *field[MAX_FIELDS])
{
    static const char blanks[] = " \t\n\v\f\r";
    char *rest = NULL;
    int count = 0;
    for (char *at = strtok_r(item, blanks, &rest); at; at = strtok_r(NULL, blanks, &rest)) {
        if (count == MAX_FIELDS) return -1;
        field[count++] = at;
    }
    return count;
}

/* ---- layers --------------------------------------------------------------------------------- */

static dt_status fail_unknown(const char *item)
{
    struct dt_text list = {0};
    char *names;
    for (size_t i = 0; i < KIND_COUNT; i++)
        dt__text_add(&list, "%s, ", KINDS[i]->name);
    for (int i = 0; dt__activation_name(i); i++)
        dt__text_add(&list, "%s%s", i ? ", " : "", dt__activation_name(i));
    DT_TRY(dt__text_end(&list, &names));
    const dt_status status =
        dt_fail(DT_EUSAGE, "'%.100s' is no layer: expected one of %s", item, names);
    dt_free(names);
    return status;
}

/* Inserts `split` after the layer's own words, before the text of its epilogue. */
dt_status dt__layer_split(struct dt__layer *layer)
{
    char *text;
    const int length = (int)strcspn(layer->text, ",");
    if (layer->split) return DT_OK;
    if (!strcmp(layer->text, OUTPUT))
        DT_TRY(dt__format(&text, OUTPUT " %s %d " SPLIT, layer->kind->name, layer->size[0]));
    else
        DT_TRY(dt__format(&text, "%.*s " SPLIT "%s", length, layer->text, layer->text + length));
    dt_free(layer->text);
    layer->text = text;
    layer->split = true;
    return DT_OK;
}

/* Appends a layer; takes ownership of layer.text. */
static dt_status append_layer(struct dt_model *model, struct dt__layer layer)
{
    dt_status status = dt__grow(&model->layer, &model->layer_capacity, model->layers + 1,
                                sizeof *model->layer, "layers");
    layer.index = -1;
    if (layer.kind != &dt__residual_end_layer) layer.link = -1;
    if (status)
        dt_free(layer.text);
    else
        model->layer[model->layers++] = layer;
    return status;
}

/* Makes an activation or dropout the epilogue of the last layer, or appends it as a layer. Takes
 * ownership of layer.text, which is NULL if the activation is a word of the last layer's item. */
static dt_status append_epilogue(struct dt_model *model, struct dt__layer layer)
{
    struct dt__layer *last = model->layers ? &model->layer[model->layers - 1] : NULL;
    if (!last || !last->kind->epilogue || last->dropout > 0.0 ||
        (layer.activation && last->activation))
        return append_layer(model, layer);
    if (layer.activation)
        last->activation = layer.activation;
    else
        last->dropout = layer.dropout;
    if (!layer.text) return DT_OK;
    char *text;
    dt_status status = dt__format(&text, "%s, %s", last->text, layer.text);
    dt_free(layer.text);
    if (status) return status;
    dt_free(last->text);
    last->text = text;
    return DT_OK;
}

static bool has_output(const struct dt_model *model)
{
    return model->layers && model->layer[model->layers - 1].last;
}

static bool has_wide(const struct dt_model *model)
{
    return model->layers && model->layer[model->layers - 1].kind == &dt__wide_layer;
}

/* Fails if an item may not follow the last layer. Only the linear path may follow the output layer,
 * and nothing may follow the linear path. */
static dt_status expect_item(const struct dt_model *model, bool is_wide)
{
    if (!has_wide(model) && (!has_output(model) || is_wide)) return DT_OK;
    return dt_fail(DT_EUSAGE, "there is an item after %s",
                   has_wide(model) ? "'wide'" : "the output layer");
}

/* Parses "dense 64 relu": a kind, its words, and optionally an activation. "output conv 1 3x3 pad
 * same" replaces the task's default output layer. */
static dt_status parse_item(struct dt_model *model, char *item)
{
    char *fields[MAX_FIELDS], **field = fields;
    struct dt_text text = {0};
    int count = cut_fields(item, field);
    if (count < 1)
        return dt_fail(DT_EUSAGE, count ? "an item with too many words" : "an empty item");
    DT_TRY(expect_item(model, !strcmp(field[0], dt__wide_layer.name)));
    struct dt__layer layer = {.last = !strcmp(field[0], OUTPUT)};
    if (layer.last && count == 1) return dt_fail(DT_EUSAGE, "'output': expected a layer after it");
    for (size_t i = 0; i < KIND_COUNT && !layer.kind; i++)
        if (!strcmp(KINDS[i]->name, field[layer.last])) layer.kind = KINDS[i];
    if (!layer.kind && dt__activation_find(field[layer.last])) layer.kind = &dt__activation_layer;
    if (!layer.kind) return fail_unknown(field[layer.last]);
    for (int i = 0; i < count; i++)
        dt__text_add(&text, "%s%s", i ? " " : "", field[i]);
    DT_TRY(dt__text_end(&text, &layer.text));
    if (layer.last) field++, count--;
    layer.split = layer.kind->splits && count > 2 && !strcmp(field[count - 1], SPLIT);
    count -= layer.split;
    const bool plain = layer.kind == &dt__activation_layer;
    const struct dt__activation *activation =
        count > 1 || plain ? dt__activation_find(field[count - 1]) : NULL;
    if (plain) layer.activation = activation;
    const struct dt__layer_args rest = {field + 1, count - 1 - (activation && !plain)};
    bool good = layer.kind->parse ? layer.kind->parse(&layer, rest) : rest.count == 0;
    const bool separate =
        plain || layer.kind == &dt__dropout_layer || layer.kind == &dt__wide_layer;
    /* in these items an activation is no word: it must be the next item */
    if (activation && !plain && (separate || layer.kind == &dt__embedding_layer)) good = false;
    if (!good || (layer.last && (activation || separate))) {
        const dt_status status =
            dt_fail(DT_EUSAGE, "'%.100s': expected %s%s", layer.text, layer.kind->usage,
                    layer.last ? ", without activation in the output layer" : "");
        dt_free(layer.text);
        return status;
    }
    if (plain || layer.kind == &dt__dropout_layer) return append_epilogue(model, layer);
    DT_TRY(append_layer(model, layer));
    if (!activation) return DT_OK;
    return append_epilogue(
        model, (struct dt__layer){.kind = &dt__activation_layer, .activation = activation});
}

static dt_status parse_items(struct dt_model *model, char *text, int depth);

/* Parses "residual(ITEM, ...)", whose bracket opens at `open`. Sets *out_end to what follows the
 * closing bracket. */
static dt_status parse_residual(struct dt_model *model, char *item, char *open, int depth,
                                char **out_end)
{
    char *field[MAX_FIELDS], *close = open, *begin_text, *end_text;
    for (int inside = 1; inside; inside += (*close == '(') - (*close == ')'))
        if (!*++close) return dt_fail(DT_EUSAGE, "a bracket that is not closed");
    if (depth == MAX_DEPTH)
        return dt_fail(DT_EUSAGE, "residuals nested more than %d deep", MAX_DEPTH);
    *open = *close = '\0';
    if (cut_fields(item, field) != 1 || strcmp(field[0], dt__residual_layer.name) != 0)
        return dt_fail(DT_EUSAGE, "'%.100s(': expected residual(ITEM, ...)", item);
    DT_TRY(expect_item(model, false));
    const int begin = (int)model->layers;
    DT_TRY(dt__strdup("residual(", &begin_text));
    DT_TRY(
        append_layer(model, (struct dt__layer){.kind = &dt__residual_layer, .text = begin_text}));
    DT_TRY(parse_items(model, open + 1, depth + 1));
    if (has_output(model) || has_wide(model))
        return dt_fail(DT_EUSAGE, "an output layer inside a residual");
    DT_TRY(dt__strdup(")", &end_text));
    DT_TRY(append_layer(
        model,
        (struct dt__layer){.kind = &dt__residual_end_layer, .text = end_text, .link = begin}));
    model->layer[begin].link = (int)model->layers - 1;
    *out_end = close + 1;
    return DT_OK;
}

/* Parses all items of `text`, which it overwrites. */
static dt_status parse_items(struct dt_model *model, char *text, int depth)
{
    int items = 0;
    for (char *item = text, *next; item; item = next) {
        dt_status status = DT_OK;
        char *stop = item + strcspn(item, ",(");
        const bool brackets = *stop == '(';
        if (++items > MAX_ITEMS) return dt_fail(DT_EUSAGE, "more than %d items", MAX_ITEMS);
        if (brackets) status = parse_residual(model, item, stop, depth, &item);
        if (brackets && !status) stop = item + strcspn(item, ",");
        next = *stop ? stop + 1 : NULL;
        *stop = '\0';
        /* An activation may follow the brackets. */
        const char *rest = item + strspn(item, " \t\n");
        char field[16];
        (void)snprintf(field, sizeof field, "%.*s", (int)strcspn(rest, " \t\n"), rest);
        if (!status && brackets && *rest && !dt__activation_find(field))
            status =
                dt_fail(DT_EUSAGE, "'%.100s': expected a comma or an activation after ')'", rest);
        if (!status && (!brackets || *rest)) status = parse_item(model, item);
        if (status) return dt_fail_prefix(status, "item %d: ", items);
    }
    return DT_OK;
}

/* Parses the items of `layers`; does not add the implied output layer. */
static dt_status parse_layers(struct dt_model *model, const char *layers)
{
    char *text;
    if (!strcmp(layers, LINEAR)) return DT_OK;
    DT_TRY(dt__strdup(layers, &text));
    dt_status status = parse_items(model, text, 0);
    dt_free(text);
    return status;
}

dt_status dt__layers_parse(struct dt_model *model)
{
    struct dt__layer layer = {.kind = &dt__dense_layer, .last = true, .size = {model->desc.nout}};
    struct dt__layer wide = {.kind = NULL};
    DT_TRY(parse_layers(model, model->desc.layers));
    if (has_wide(model)) wide = model->layer[--model->layers];
    dt_status status = DT_OK;
    if (wide.kind && !model->layers)
        status = dt_fail(DT_EUSAGE, "'wide': expected layers besides the linear path");
    if (!status && !has_output(model)) {
        status = dt__strdup(OUTPUT, &layer.text);
        if (!status) status = append_layer(model, layer);
    }
    if (!status && wide.kind) return append_layer(model, wide);
    dt_free(wide.text);
    return status;
}

/* ---- canonical text and short forms ---------------------------------------------------------- */

/* The first and the last item, which have their own keys, model.embedding and model.wide. */
struct ends {
    int embedding; /* width; 0: none */
    bool wide;
};

/* Writes the text of all layers. With `ends`, an embedding and the linear path are recorded there
 * instead. */
static dt_status layers_text(const struct dt_model *model, struct ends *ends, char **out)
{
    struct dt_text text = {0};
    for (size_t i = 0; i < model->layers; i++) {
        const struct dt__layer *layer = &model->layer[i];
        const bool joined = !text.length || text.data[text.length - 1] == '(' ||
                            layer->kind == &dt__residual_end_layer;
        if (ends && i == 0 && layer->kind == &dt__embedding_layer)
            ends->embedding = layer->size[0];
        else if (ends && layer->kind == &dt__wide_layer)
            ends->wide = true;
        else if (layer->text && strcmp(layer->text, OUTPUT) != 0) /* alone: implied */
            dt__text_add(&text, "%s%s", joined ? "" : ", ", layer->text);
    }
    if (!text.length) dt__text_add(&text, LINEAR);
    return dt__text_end(&text, out);
}

dt_status dt__layers_text(const struct dt_model *model, char **out)
{
    return layers_text(model, NULL, out);
}

/* Writes the canonical form of `layers`, except the embedding and the linear path, which are
 * recorded in `ends`. */
static dt_status canonical_text(const char *layers, struct ends *ends, char **out)
{
    struct dt_model model = {0};
    dt_status status = parse_layers(&model, layers);
    if (!status) status = layers_text(&model, ends, out);
    dt__layers_free(&model);
    return status ? dt_fail_prefix(status, "model.layers = %.200s: ", layers) : DT_OK;
}

/* Writes the text that the short forms stand for: each width of model.hidden becomes an item. */
static dt_status expand_short_forms(const struct dt_config *config, char **out)
{
    char activation[16], rate[DT_REAL_TEXT], width[16], *field[MAX_FIELDS];
    struct dt_text text = {0};
    if (config->model.kind == DT_KIND_LINEAR) return dt__strdup(LINEAR, out);
    dt__config_choice(DT_ACTIVATION_CHOICES, config->model.activation, activation);
    dt__real_text(config->model.dropout, rate);
    for (const char *at = config->model.hidden; at;) {
        const int length = (int)strcspn(at, ",");
        int value;
        (void)snprintf(width, sizeof width, "%.*s", length, at);
        if (length >= (int)sizeof width || cut_fields(width, field) != 1 ||
            !dt__arg_int(field[0], 1, &value)) {
            dt__text_free(&text);
            return dt_fail(DT_EUSAGE,
                           "model.hidden = %s: expected widths from 1 to %d, separated by commas",
                           config->model.hidden, DT_MAX_WIDTH);
        }
        dt__text_add(&text, "%sdense %d %s", text.length ? ", " : "", value, activation);
        if (config->model.dropout > 0.0) dt__text_add(&text, ", dropout %s", rate);
        at = at[length] ? at + length + 1 : NULL;
    }
    return dt__text_end(&text, out);
}

/* Sets model.embedding and model.wide to what the text contains. DT_EUSAGE: a key was given with
 * another value. */
static dt_status resolve_ends(struct dt_config *config, const struct ends *ends)
{
    const bool embeds = ends->embedding && config->model.embedding != ends->embedding;
    if (embeds && dt__config_is_given(config, "model.embedding"))
        return dt_fail(DT_EUSAGE,
                       "model.embedding=%lld and model.layers, which begins with embedding %d: "
                       "expected one of them",
                       (long long)config->model.embedding, ends->embedding);
    if (ends->wide && !config->model.wide && dt__config_is_given(config, "model.wide"))
        return dt_fail(
            DT_EUSAGE,
            "model.wide=no and model.layers, which ends with wide: expected one of them");
    if (embeds) config->model.embedding = ends->embedding;
    config->model.wide |= ends->wide;
    return DT_OK;
}

/* Writes the text of the embedding, `middle` and the linear path. Frees middle. */
static dt_status join_ends(const struct dt_config *config, char *middle, char **out)
{
    const bool linear = !strcmp(middle, LINEAR);
    char embedding[32] = "";
    dt_status status = DT_OK;
    *out = middle;
    if (config->model.embedding)
        (void)snprintf(embedding, sizeof embedding, "embedding %d", (int)config->model.embedding);
    else if (config->model.wide && linear)
        status = dt_fail(DT_EUSAGE,
                         "model.wide=yes: expected layers besides the linear path (model.hidden)");
    if (!status && (*embedding || config->model.wide))
        status = dt__format(out, "%s%s%s%s", embedding, *embedding && !linear ? ", " : "",
                            linear ? "" : middle, config->model.wide ? ", wide" : "");
    if (status || *out != middle) dt_free(middle);
    return status;
}

/* Checks that the task has train.loss. DT_EUSAGE: it has not; the message lists the task's
 * losses. */
static dt_status resolve_loss(const struct dt_config *config)
{
    const int task = config->model.task;
    struct dt_text list = {0};
    char name[16], wanted[16], *names;
    const struct dt__loss *loss = dt__loss_find(task, config->train.loss, 0);
    float quantile[DT_MAX_QUANTILES];
    int count;
    if (loss && loss->link == DT_LINK_RISING)
        return dt__quantiles_parse(config->train.quantiles, quantile, &count);
    if (loss) return DT_OK;
    for (int i = DT_LOSS_AUTO; *dt__config_choice(DT_LOSS_CHOICES, i, name); i++)
        if (dt__loss_find(task, i, 0)) dt__text_add(&list, "%s%s", list.length ? ", " : "", name);
    DT_TRY(dt__text_end(&list, &names));
    const dt_status status =
        dt_fail(DT_EUSAGE, "train.loss=%s: model.task=%s has no such loss; expected %s",
                dt__config_choice(DT_LOSS_CHOICES, config->train.loss, wanted),
                dt__config_choice(DT_TASK_CHOICES, task, name), names);
    dt_free(names);
    return status;
}

dt_status dt__model_resolve(struct dt_config *config)
{
    struct ends ends = {0};
    static const char *const forms[] = {"model.kind", "model.hidden", "model.activation",
                                        "model.dropout"};
    char *text = NULL, *expanded = NULL;
    const char *form = NULL; /* the first short form that was given; NULL: none */
    dt_status status = DT_OK;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !form; i++)
        if (dt__config_is_given(config, forms[i])) form = forms[i];
    DT_TRY(resolve_loss(config));
    if (*config->model.layers) DT_TRY(canonical_text(config->model.layers, &ends, &text));
    status = resolve_ends(config, &ends);
    if (!status && (!text || form)) status = expand_short_forms(config, &expanded);
    if (!status && text && form && strcmp(text, expanded))
        status = dt_fail(DT_EUSAGE,
                         "%s and model.layers: expected one of them (model.layers is '%.200s')",
                         form, text);
    if (status) {
        dt_free(text);
        dt_free(expanded);
        return status;
    }
    if (text) dt_free(expanded);
    DT_TRY(join_ends(config, text ? text : expanded, &text));
    dt_free(config->model.layers);
    config->model.layers = text;
    return DT_OK;
}
