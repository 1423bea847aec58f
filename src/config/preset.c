/* The preset: chooses values for keys that are not given.
 *
 * It does so in three steps: dt__config_resolve uses only the configuration;
 * dt__config_resolve_resume, for a resume, takes the values of the earlier run instead of the
 * preset's; dt__config_resolve_by_data chooses the others once the data are known. No step changes
 * what an earlier one has set, because preset_set skips keys that have been set. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/option.h"

/* Settings by task and number of rows. They were chosen on the half `chosen` of
 * scripts/bench/tables.py and on twelve more tables of the same packages; `make bench
 * SECTIONS=tables` measures them again. The outcome of two classes is mostly chance, so these
 * networks need strong decay and dropout; a row with a number or one of several classes carries
 * more information. Small batches reach the same loss with fewer samples. On most tables of each
 * kind, piecewise linear encodings were better than cosines or no encoding. */
struct setting {
    uint64_t rows; /* applies to fewer training rows */
    const char *hidden, *dropout, *decay;
    int bins, batch, epochs;
    int steps; /* least number of steps */
};
enum { MOST_SAMPLES = 2000000, LEAST_EPOCHS = 3 };
static const struct setting TWO_CLASSES[] = {
    {2000, "64,64", "0.4", "3", 8, 32, 40, 1500},
    {10000, "128,128", "0.4", "1", 8, 32, 60, 0},
    {50000, "256,256", "0.2", "0.3", 16, 128, 30, 0},
    {500000, "256,256", "0.1", "0.1", 32, 256, 30, 0},
    {UINT64_MAX, "512,256", "0", "0.1", 32, 512, 30, 0},
};
static const struct setting CLASSES[] = {
    {5000, "128,128", "0.2", "0.3", 8, 32, 100, 1500},
    {50000, "256,256", "0.2", "0.3", 16, 128, 30, 0},
    {500000, "256,256", "0.1", "0.1", 32, 256, 30, 0},
    {UINT64_MAX, "512,256", "0", "0.1", 32, 512, 30, 0},
};
static const struct setting NUMBERS[] = {
    {5000, "128,128", "0.1", "0.3", 16, 32, 60, 7500},
    {50000, "256,256,256", "0", "0.3", 48, 64, 30, 0},
    {500000, "256,256", "0", "0.1", 32, 256, 30, 0},
    {UINT64_MAX, "512,256", "0", "0.1", 32, 512, 30, 0},
};
/* For many texts. Measured on 94,000 glosses with 80,000 texts, and on 300,000 clicks on 50,000
 * pages: the linear path learns the effect of each text, and decay limits the vectors to what the
 * texts have in common. */
static const struct setting TEXTS = {UINT64_MAX, "256,128", "0.1", "3", 16, 256, 4, 1000};
/* For linear models. A decay of 0.01 and 2,500 steps come close to least squares; a decay of 0.1
 * costs 1.2 % of the accuracy on 26 letters, and 3.7 % with 50,000 texts. */
static const struct setting LINEAR = {UINT64_MAX, NULL, NULL, "0.01", 0, 128, 30, 2500};
enum { EVALUATIONS = 30, EACH_EPOCH = 4, MANY_TEXTS = 4096, MOST_BINS = 1200, LEAST_BINS = 4 };
enum { REPLICA_ROWS = 8 }; /* least number of rows per replica in a batch */

#define PRESET_ROW(key, value) {key, value},
static const char *const PRESET[][2] = {DT_PRESET_TABLE(PRESET_ROW)};
enum { PRESET_COUNT = sizeof PRESET / sizeof *PRESET };

/* Sets a key that has not been set. Keys of the learning rate and decay are left alone if the
 * optimizer is not adamw, since each optimizer needs other values. */
static dt_status preset_set(struct dt_config *config, const char *name, const char *value)
{
    const struct dt__option *option = NULL;
    DT_TRY(dt__option_find(name, &option));
    const bool rate = strstr("train.lr train.weight_decay train.schedule train.wide_lr "
                             "train.decay_matrices",
                             name);
    unsigned char *given = &config->given[option - dt__options];
    if (*given || (rate && config->train.optimizer != DT_OPT_ADAMW)) return DT_OK;
    DT_TRY(dt__option_set(config, option, value));
    *given = DT_GIVEN_BY_PRESET;
    return DT_OK;
}

static dt_status preset_set_number(struct dt_config *config, const char *name, double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.0f", value);
    return preset_set(config, name, text);
}

/* Returns true if the configuration determines the widths of the network. */
static bool widths_are_given(const struct dt_config *config)
{
    return dt__config_is_given(config, "model.layers") || config->model.kind == DT_KIND_LINEAR ||
           dt__config_is_given(config, "model.hidden");
}

bool dt__config_widths_wait(const struct dt_config *config)
{
    return config->run.preset == DT_PRESET_TABLE && !widths_are_given(config);
}

/* Returns true if a program wrote the configuration for a run. It then lists all keys of that
 * program, so a missing key was added later. */
static bool config_is_written(const struct dt_config *config)
{
    int given = 0;
    for (int i = 0; i < DT__OPTION_COUNT; i++)
        given += config->given[i] == DT_GIVEN;
    return given > DT__OPTION_COUNT / 2;
}

/* Marks a key whose value is `auto` as not set, so that it can be decided. *out_older: a run wrote
 * the configuration before the key existed. */
static dt_status auto_unset(struct dt_config *config, const char *name, bool *out_older)
{
    const struct dt__option *option = NULL;
    DT_TRY(dt__option_find(name, &option));
    unsigned char *given = &config->given[option - dt__options];
    *out_older = !*given && config_is_written(config);
    *given = DT_GIVEN_NOT;
    return DT_OK;
}

/* Sets data.stratify=no for a run that is older than the key: it held out rows at random. */
static dt_status stratify_resolve(struct dt_config *config)
{
    if (dt__config_is_given(config, "data.stratify") || !config_is_written(config)) return DT_OK;
    return dt_config_set(config, "data.stratify=no");
}

dt_status dt__config_read_saved(struct dt_config *config, const char *name, const char *text)
{
    DT_TRY(dt_config_read_text(config, name, text));
    if (config->model.output_bias == DT_OUTPUT_BIAS_AUTO)
        config->model.output_bias = DT_OUTPUT_BIAS_ZERO;
    if (config->data.encode == DT_ENCODE_AUTO) config->data.encode = DT_ENCODE_NONE;
    if (!dt__config_is_given(config, "data.stratify")) config->data.stratify = false;
    return DT_OK;
}

/* Decides model.output_bias=auto. A run that is older than the key started its output bias at 0. */
static dt_status output_bias_resolve(struct dt_config *config)
{
    bool older;
    if (config->model.output_bias != DT_OUTPUT_BIAS_AUTO) return DT_OK;
    DT_TRY(auto_unset(config, "model.output_bias", &older));
    if (config->run.preset == DT_PRESET_TABLE && !older)
        return preset_set(config, "model.output_bias", "baseline");
    config->model.output_bias = config->train.loss == DT_LOSS_POISSON && !older
                                    ? DT_OUTPUT_BIAS_BASELINE
                                    : DT_OUTPUT_BIAS_ZERO;
    return DT_OK;
}

/* Decides data.encode=auto, except with the preset, which needs the data. A run that is older than
 * the key encodes nothing. */
static dt_status encode_resolve(struct dt_config *config)
{
    bool older;
    if (config->data.encode != DT_ENCODE_AUTO) return DT_OK;
    DT_TRY(auto_unset(config, "data.encode", &older));
    if (config->run.preset != DT_PRESET_TABLE || older) config->data.encode = DT_ENCODE_NONE;
    return DT_OK;
}

static bool network_is_linear(const struct dt_config *config)
{
    return config->model.kind == DT_KIND_LINEAR || !strcmp(config->model.layers, "linear");
}

/* Decides data.encode=auto by `numbers`, the number of columns that can be encoded. Given layers
 * take the inputs without encodings. */
static dt_status encode_resolve_by_data(struct dt_config *config, int bins, int numbers)
{
    if (config->data.encode != DT_ENCODE_AUTO) return DT_OK;
    config->data.encode = DT_ENCODE_NONE;
    if (!numbers || !bins || dt__config_is_given(config, "model.layers")) return DT_OK;
    const int most = MOST_BINS / numbers;
    if (most < LEAST_BINS) return preset_set(config, "data.encode", "normal");
    DT_TRY(preset_set(config, "data.encode", "ple"));
    return preset_set_number(config, "data.encode_bins", bins < most ? bins : most);
}

dt_status dt__config_resolve(struct dt_config *config, bool table)
{
    const bool given =
        dt__config_is_given(config, "train.optimizer") || dt__config_is_given(config, "train.lr");
    if (config->run.preset == DT_PRESET_AUTO)
        config->run.preset = table && !given ? DT_PRESET_TABLE : DT_PRESET_NONE;
    DT_TRY(stratify_resolve(config));
    DT_TRY(output_bias_resolve(config));
    DT_TRY(encode_resolve(config));
    if (config->run.preset != DT_PRESET_TABLE) return DT_OK;
    /* Decay pulls weights, and so predictions, towards 0: the mean, if targets are standardised. */
    if (config->model.task == DT_TASK_REGRESS && config->train.loss != DT_LOSS_POISSON)
        DT_TRY(preset_set(config, "data.normalize_target", "yes"));
    /* A run whose configuration lacks the key is older than the key, and did not clamp. */
    if (config->model.task == DT_TASK_REGRESS && !config_is_written(config))
        DT_TRY(preset_set(config, "data.clamp_target", "yes"));
    /* The loss is least where probabilities are right; balanced classes shift them on purpose. */
    if (config->model.task != DT_TASK_REGRESS && !config->train.class_weight)
        DT_TRY(preset_set(config, "eval.metric", "loss"));
    for (size_t i = 0; i < PRESET_COUNT; i++) { /* train.optimizer comes before its rates */
        const bool linear_rate = network_is_linear(config) && !strcmp(PRESET[i][0], "train.lr");
        DT_TRY(preset_set(config, PRESET[i][0], linear_rate ? "0.01" : PRESET[i][1]));
    }
    return DT_OK;
}

static bool has_many_texts(const struct dt_table_size *size)
{
    return size->sparse && size->features >= MANY_TEXTS;
}

/* Returns the preset's settings for this kind of network, task and number of rows. */
static const struct setting *setting_of(const struct dt_config *config,
                                        const struct dt_table_size *size)
{
    const struct setting *at = config->model.task == DT_TASK_REGRESS ? NUMBERS
                               : size->classes > 2                   ? CLASSES
                                                                     : TWO_CLASSES;
    if (network_is_linear(config)) return &LINEAR;
    if (has_many_texts(size)) return &TEXTS;
    while (size->rows >= at->rows)
        at++;
    return at;
}

/* Sets the width and dropout and, with many texts, the embedding and the linear path. */
static dt_status network_resolve(struct dt_config *config, const struct setting *setting,
                                 bool many_texts)
{
    if (widths_are_given(config)) return DT_OK;
    DT_TRY(preset_set(config, "model.hidden", setting->hidden));
    DT_TRY(preset_set(config, "model.dropout", setting->dropout));
    if (!many_texts) return DT_OK;
    DT_TRY(preset_set(config, "model.embedding", "32"));
    DT_TRY(preset_set(config, "model.wide", "yes"));
    if (!config->model.wide) return DT_OK;
    DT_TRY(preset_set(config, "train.wide_lr", "0.01"));
    return preset_set(config, "train.decay_matrices", "yes");
}

/* Sets the number of epochs, and the interval of evaluations: about EVALUATIONS in a run, but at
 * most EACH_EPOCH per epoch. */
static dt_status length_decide(struct dt_config *config, const struct setting *setting,
                               const struct dt_table_size *size)
{
    const uint64_t rows = size->rows;
    const uint64_t batch = config->train.batch ? (uint64_t)config->train.batch : rows;
    const uint64_t steps = (rows + batch - 1) / batch;
    uint64_t epochs = (uint64_t)setting->epochs;
    if (epochs > MOST_SAMPLES / rows) epochs = MOST_SAMPLES / rows;
    if (epochs < LEAST_EPOCHS) epochs = LEAST_EPOCHS;
    if (epochs * steps < (uint64_t)setting->steps)
        epochs = ((uint64_t)setting->steps + steps - 1) / steps;
    DT_TRY(preset_set_number(config, "train.epochs", (double)epochs));
    if (!size->evaluates || config->eval.steps < 0) return DT_OK;
    /* An update in async mode is one replica's gradient. A dedicated evaluator measures
     * checkpoints. */
    const bool async = config->train.mode == DT_MODE_ASYNC && config->train.staleness != 0;
    const double updates = (double)steps * (async ? fmax(1, (double)config->run.replicas) : 1);
    const double apart = fmax(config->train.epochs / EVALUATIONS, 1.0 / EACH_EPOCH);
    return preset_set_number(config, config->eval.dedicated ? "run.checkpoint_steps" : "eval.steps",
                             ceil(apart * updates));
}

dt_status dt__config_resolve_by_data(struct dt_config *config, const struct dt_table_size *size)
{
    if (config->run.preset != DT_PRESET_TABLE) return DT_OK;
    const struct setting *setting = setting_of(config, size);
    const double least = REPLICA_ROWS * (double)config->run.replicas;
    DT_TRY(encode_resolve_by_data(config, setting->bins, size->numbers));
    DT_TRY(preset_set(config, "train.weight_decay", setting->decay));
    DT_TRY(preset_set_number(config, "train.batch", fmax(setting->batch, least)));
    DT_TRY(network_resolve(config, setting, setting == &TEXTS));
    DT_TRY(length_decide(config, setting, size));
    if (!size->evaluates || config->eval.steps < 0) return DT_OK;
    if (config->eval.dedicated && config->run.reproducible)
        return DT_OK; /* the stop would depend
                                                                           * on timing */
    return preset_set_number(config, "eval.patience", 10);
}

dt_status dt__config_resolve_resume(struct dt_config *config, const struct dt_config *before)
{
    static const char *const by_data[] = {
        "train.epochs",         "train.batch",          "eval.steps",
        "run.checkpoint_steps", "eval.patience",        "data.normalize_target",
        "data.clamp_target",    "eval.metric",          "train.weight_decay",
        "train.wide_lr",        "train.decay_matrices", "model.layers",
        "data.encode",          "data.encode_bins",     "data.encode_scale",
        "data.encode_width"};
    const size_t count = PRESET_COUNT + sizeof by_data / sizeof *by_data;
    const bool had_preset = before->run.preset == DT_PRESET_TABLE;
    const bool gives_widths = widths_are_given(config);
    const bool gives_network = dt__config_is_given(config, "model.kind") ||
                               dt__config_is_given(config, "model.activation") ||
                               dt__config_is_given(config, "model.dropout");
    const struct dt__option *bias = NULL;
    DT_TRY(dt__option_find("model.output_bias", &bias));
    if (config->given[bias - dt__options] != DT_GIVEN)
        config->model.output_bias = before->model.output_bias;
    if (!dt__config_is_given(config, "data.stratify"))
        config->data.stratify = before->data.stratify;
    if (!had_preset && config->run.preset != DT_PRESET_TABLE) return DT_OK;
    if (!dt__config_is_given(config, "run.preset"))
        config->run.preset = had_preset ? DT_PRESET_TABLE : DT_PRESET_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct dt__option *option = NULL;
        char text[DT_REAL_TEXT];
        DT_TRY(
            dt__option_find(i < PRESET_COUNT ? PRESET[i][0] : by_data[i - PRESET_COUNT], &option));
        if (config->given[option - dt__options] == DT_GIVEN) continue;
        if (gives_widths && !strcmp(option->name, "model.layers")) continue;
        /* the preset sets this key only with a dedicated evaluator */
        if (!before->eval.dedicated && !strcmp(option->name, "run.checkpoint_steps")) continue;
        DT_TRY(dt__option_set(config, option, dt__option_text(before, option, text)));
        /* Layers made from given short forms are derived again once the widths are known, and then
         * compared with those of the earlier run. */
        if (gives_network && !strcmp(option->name, "model.layers"))
            config->given[option - dt__options] = DT_GIVEN_NOT;
    }
    return DT_OK;
}

dt_status dt__config_preset_text(const struct dt_config *config, char **out)
{
    struct dt_text list = {0};
    dt_status status = dt__text_add(&list, "%s", "");
    for (int i = 0; i < DT__OPTION_COUNT && !status; i++) {
        char value[DT_REAL_TEXT];
        if (config->given[i] == DT_GIVEN_BY_PRESET)
            status = dt__text_add(&list, "%s%s=%s", list.length ? ", " : "", dt__options[i].name,
                                  dt__option_text(config, &dt__options[i], value));
    }
    *out = list.data;
    return status;
}
