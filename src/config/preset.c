/* The preset: what a run settles that nobody has given.
 *
 * It does so in three steps: dt__config_settle, by the configuration alone;
 * dt__config_settle_resume, if it goes on, by the run before, whose values take the place of the
 * preset's; dt__config_settle_by_data, once the data are known. What one step has set, later ones
 * leave: the preset sets a key only as long as nothing else has (preset_set). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/option.h"

/* Measured on eighteen tables of Debian's packages (scikit-learn's, and those of R's MASS,
 * carData, modeldata, rpart and ggplot2; 81 to 10,000 rows), and on diamonds. The rate: beside
 * 0.003, the rmse of 0.006 is 6 to 32 % less on five of fourteen tables, more on two (diamonds 3
 * %, mpg 6 %); letters and digits gain as well. 0.02 costs txhousing 24 %. A linear model needs
 * 0.01 and 2,500 steps to come near to least squares, and a decay of 0.01: 0.1 costs 26 letters
 * 1.2 % of accuracy, and 50,000 texts 3.7 %. More than 30 epochs of a large table gain nothing. */
enum { LEAST_STEPS = 2500, USUAL_EPOCHS = 30, LEAST_EPOCHS = 3, MOST_SAMPLES = 2000000 };
enum { EVALUATIONS = 30, MANY_TEXTS = 4096, MANY_COLUMNS = 100 };

/* Networks by rows: small tables learn more from small ones, with units dropped. */
static const struct {
    uint64_t rows; /* below so many */
    int width;
    const char *dropout;
} WIDTHS[] = {{5000, 64, "0.2"}, {50000, 128, "0"}, {500000, 256, "0"}, {UINT64_MAX, 512, "0"}};

#define PRESET_ROW(key, value) {key, value},
static const char *const PRESET[][2] = {DT_PRESET_TABLE(PRESET_ROW)};
enum { PRESET_COUNT = sizeof PRESET / sizeof *PRESET };

/* Sets a key that nobody has set. A rule that is given has rates of its own. */
static dt_status preset_set(struct dt_config *config, const char *name, const char *value)
{
    const struct dt__option *option = NULL;
    DT_TRY(dt__option_find(name, &option));
    const bool rate = strstr("train.lr train.weight_decay train.schedule", name);
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

/* Whether the configuration says how wide the network is. */
static bool widths_are_given(const struct dt_config *config)
{
    return dt__config_is_given(config, "model.layers") || config->model.kind == DT_KIND_LINEAR ||
           dt__config_is_given(config, "model.hidden");
}

bool dt__config_widths_wait(const struct dt_config *config)
{
    return config->run.preset == DT_PRESET_TABLE && !widths_are_given(config);
}

/* Whether a run wrote the configuration, which lists every key that the program knew then: a key
 * that it lacks is younger. */
static bool config_is_written(const struct dt_config *config)
{
    int given = 0;
    for (int i = 0; i < DT__OPTION_COUNT; i++)
        given += config->given[i] == DT_GIVEN;
    return given > DT__OPTION_COUNT / 2;
}

/* Runs older than data.stratify held out rows at random. */
static dt_status stratify_settle(struct dt_config *config)
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

/* Decides model.output_bias=auto. Runs older than the key started at 0. */
static dt_status output_bias_settle(struct dt_config *config)
{
    const struct dt__option *option = NULL;
    DT_TRY(dt__option_find("model.output_bias", &option));
    unsigned char *given = &config->given[option - dt__options];
    if (config->model.output_bias != DT_OUTPUT_BIAS_AUTO) return DT_OK;
    const bool older = !*given && config_is_written(config);
    *given = DT_GIVEN_NOT;
    if (config->run.preset == DT_PRESET_TABLE && !older)
        return preset_set(config, option->name, "baseline");
    config->model.output_bias = config->train.loss == DT_LOSS_POISSON && !older
                                    ? DT_OUTPUT_BIAS_BASELINE
                                    : DT_OUTPUT_BIAS_ZERO;
    return DT_OK;
}

/* Decides data.encode=auto, but for tables that the preset is for. Runs older than the key encode
 * nothing. */
static dt_status encode_settle(struct dt_config *config)
{
    const struct dt__option *option = NULL;
    DT_TRY(dt__option_find("data.encode", &option));
    unsigned char *given = &config->given[option - dt__options];
    if (config->data.encode != DT_ENCODE_AUTO) return DT_OK;
    const bool older = !*given && config_is_written(config);
    *given = DT_GIVEN_NOT;
    if (config->run.preset != DT_PRESET_TABLE || older) config->data.encode = DT_ENCODE_NONE;
    return DT_OK;
}

/* data.encode=auto of a table with `numbers` columns to encode. */
static dt_status encode_settle_by_data(struct dt_config *config, uint64_t rows, int numbers)
{
    const char *encoding = "none";
    (void)rows, (void)numbers;
    if (config->data.encode != DT_ENCODE_AUTO) return DT_OK;
    config->data.encode = DT_ENCODE_NONE;
    return strcmp(encoding, "none") ? preset_set(config, "data.encode", encoding) : DT_OK;
}

dt_status dt__config_settle(struct dt_config *config, bool table)
{
    const bool given =
        dt__config_is_given(config, "train.optimizer") || dt__config_is_given(config, "train.lr");
    const bool linear =
        config->model.kind == DT_KIND_LINEAR || !strcmp(config->model.layers, "linear");
    if (config->run.preset == DT_PRESET_AUTO)
        config->run.preset = table && !given ? DT_PRESET_TABLE : DT_PRESET_NONE;
    DT_TRY(stratify_settle(config));
    DT_TRY(output_bias_settle(config));
    DT_TRY(encode_settle(config));
    if (config->run.preset != DT_PRESET_TABLE) return DT_OK;
    /* Weights decay towards 0, and so do predictions: to the mean, if targets are standardised. */
    if (config->model.task == DT_TASK_REGRESS && config->train.loss != DT_LOSS_POISSON)
        DT_TRY(preset_set(config, "data.normalize_target", "yes"));
    /* A written configuration without the key is of a run that was older than it. */
    if (config->model.task == DT_TASK_REGRESS && !config_is_written(config))
        DT_TRY(preset_set(config, "data.clamp_target", "yes"));
    /* The loss is least where probabilities are right; balanced classes shift them on purpose. */
    if (config->model.task != DT_TASK_REGRESS && !config->train.class_weight)
        DT_TRY(preset_set(config, "eval.metric", "loss"));
    for (size_t i = 0; i < PRESET_COUNT; i++) { /* the rule comes before its rates */
        const char *key = PRESET[i][0];
        const bool own = linear && (!strcmp(key, "train.lr") || !strcmp(key, "train.weight_decay"));
        DT_TRY(preset_set(config, key, own ? "0.01" : PRESET[i][1]));
    }
    return DT_OK;
}

dt_status dt__config_settle_by_data(struct dt_config *config, uint64_t rows, int features,
                                    int numbers, bool sparse, bool evaluates)
{
    char text[32];
    int tier = 0;
    if (config->run.preset != DT_PRESET_TABLE) return DT_OK;
    DT_TRY(encode_settle_by_data(config, rows, numbers));
    while (rows >= WIDTHS[tier].rows)
        tier++;
    const int wide = WIDTHS[tier].width << (features >= MANY_COLUMNS && tier < 2);
    (void)snprintf(text, sizeof text, "%d,%d", wide, wide / 2);
    if (!widths_are_given(config)) {
        DT_TRY(preset_set(config, "model.hidden", text));
        DT_TRY(preset_set(config, "model.dropout", WIDTHS[tier].dropout));
        if (sparse && features >= MANY_TEXTS) {
            DT_TRY(preset_set_number(config, "model.embedding", 8));
            DT_TRY(preset_set_number(config, "train.batch", 512));
        }
    }
    const uint64_t batch = config->train.batch ? (uint64_t)config->train.batch : rows;
    const uint64_t steps = (rows + batch - 1) / batch;
    uint64_t epochs = MOST_SAMPLES / rows < USUAL_EPOCHS ? MOST_SAMPLES / rows : USUAL_EPOCHS;
    if (epochs < LEAST_EPOCHS) epochs = LEAST_EPOCHS;
    if (epochs * steps < LEAST_STEPS) epochs = (LEAST_STEPS + steps - 1) / steps;
    DT_TRY(preset_set_number(config, "train.epochs", (double)epochs));
    if (!evaluates || config->eval.steps < 0) return DT_OK;
    /* An update of async is one replica's gradient; an evaluator measures checkpoints. */
    const bool async = config->train.mode == DT_MODE_ASYNC && config->train.staleness != 0;
    const double updates = (double)steps * (async ? fmax(1, (double)config->run.replicas) : 1);
    if (config->train.epochs > EVALUATIONS || config->eval.dedicated)
        DT_TRY(preset_set_number(config,
                                 config->eval.dedicated ? "run.checkpoint_steps" : "eval.steps",
                                 ceil(config->train.epochs * updates / EVALUATIONS)));
    if (config->eval.dedicated && config->run.reproducible) return DT_OK; /* timing */
    return preset_set_number(config, "eval.patience", 10);
}

dt_status dt__config_settle_resume(struct dt_config *config, const struct dt_config *before)
{
    static const char *const by_data[] = {
        "train.epochs",  "train.batch",           "eval.steps",        "run.checkpoint_steps",
        "eval.patience", "data.normalize_target", "data.clamp_target", "eval.metric",
        "model.layers",
        "data.encode",   "data.encode_bins",      "data.encode_scale", "data.encode_width"};
    const size_t count = PRESET_COUNT + sizeof by_data / sizeof *by_data;
    const bool was = before->run.preset == DT_PRESET_TABLE;
    const bool widths = widths_are_given(config);
    const bool network = dt__config_is_given(config, "model.kind") ||
                         dt__config_is_given(config, "model.activation") ||
                         dt__config_is_given(config, "model.dropout");
    const struct dt__option *bias = NULL;
    DT_TRY(dt__option_find("model.output_bias", &bias));
    if (config->given[bias - dt__options] != DT_GIVEN)
        config->model.output_bias = before->model.output_bias;
    if (!dt__config_is_given(config, "data.stratify"))
        config->data.stratify = before->data.stratify;
    if (!was && config->run.preset != DT_PRESET_TABLE) return DT_OK;
    if (!dt__config_is_given(config, "run.preset"))
        config->run.preset = was ? DT_PRESET_TABLE : DT_PRESET_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct dt__option *option = NULL;
        char text[DT_REAL_TEXT];
        DT_TRY(
            dt__option_find(i < PRESET_COUNT ? PRESET[i][0] : by_data[i - PRESET_COUNT], &option));
        if (config->given[option - dt__options] == DT_GIVEN) continue;
        if (widths && !strcmp(option->name, "model.layers")) continue;
        /* which the preset sets for an evaluator alone */
        if (!before->eval.dedicated && !strcmp(option->name, "run.checkpoint_steps")) continue;
        DT_TRY(dt__option_set(config, option, dt__option_text(before, option, text)));
        /* With these the layers are made again when the widths are known, and compared. */
        if (network && !strcmp(option->name, "model.layers"))
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
