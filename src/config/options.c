/* The options: the table as data, the struct's fields by it, and how a key is found.
 *
 * DT_OPTIONS_* in the public header is the one source: the struct, this table, parsing, printing,
 * help, the manual, the schema and the completions follow from it. */
#include "config/option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/internal.h"

/* clang-format off */
#define OPTION(section, key, type, initial, min, max, words, resume, commands, help)               \
    {#section "." #key, #section, #key, DT__##type, DT__##resume, initial, min, max, words,        \
     commands, help,                                                                               \
     offsetof(struct dt_config, section.key)},
/* clang-format on */
#define OPTIONS_OF_SECTION(section) DT_OPTIONS_##section(OPTION)

const struct dt__option dt__options[DT__OPTION_COUNT] = {DT_SECTIONS(OPTIONS_OF_SECTION)};

/* ---- finding a key --------------------------------------------------------------------------- */

/* What other programs call it. */
static const char *const SYNONYMS[][2] = {
    {"learning_rate", "train.lr"},
    {"eta", "train.lr"},
    {"scheduler", "train.schedule"},
    {"solver", "train.optimizer"},
    {"l2", "train.weight_decay"},
    {"alpha", "train.weight_decay"},
    {"penalty", "train.weight_decay"},
    {"max_iter", "train.epochs"},
    {"objective", "train.loss"},
    {"criterion", "train.loss"},
    {"loss", "train.loss"},
    {"sample_weight", "data.weight"},
    {"target", "data.label"},
    {"delimiter", "data.separator"},
    {"sep", "data.separator"},
    {"na_values", "data.missing"},
    {"test_size", "data.eval_fraction"},
    {"validation_fraction", "data.eval_fraction"},
    {"validation", "data.eval"},
    {"early_stopping", "eval.patience"},
    {"n_iter_no_change", "eval.patience"},
    {"device", "run.threads"},
    {"n_jobs", "run.threads"},
    {"random_state", "run.seed"},
    {"dtype", "run.precision"},
    {"output_dir", "run.dir"},
    {"warm_start", "run.init"},
    {"hidden_layer_sizes", "model.hidden"},
};

dt_status dt__option_find(const char *name, const struct dt__option **out)
{
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        if (strcmp(dt__options[i].name, name) != 0) continue;
        *out = &dt__options[i];
        return DT_OK;
    }
    /* The one that looks most like `name`, which may lack the section or be a longer word for
     * it. */
    const struct dt__option *nearest = NULL;
    const char *dot = strchr(name, '.'), *key = dot ? dot + 1 : name;
    size_t least = strlen(name) / 4 + 2;
    for (size_t i = 0; i < sizeof SYNONYMS / sizeof *SYNONYMS; i++)
        if (!strcmp(key, SYNONYMS[i][0]))
            return dt_fail(DT_EUSAGE, "%.100s: unknown key; did you mean %s?", name,
                           SYNONYMS[i][1]);
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        size_t length = strlen(option->key), distance = dt__edit_distance(name, option->name);
        size_t alone = dt__edit_distance(key, option->key);
        if (alone <= strlen(key) / 3 && alone + 1 < distance) distance = alone + 1;
        if (length > 2 && !strncmp(key, option->key, length) && distance > 2) distance = 2;
        if (!strcmp(key, option->name)) distance = 0; /* data.train below [data] */
        if (distance >= least || dt__option_is_hidden(option)) continue;
        least = distance;
        nearest = option;
    }
    if (!nearest)
        return dt_fail(DT_EUSAGE, "%.100s: unknown key; `dtrain options` lists them", name);
    return dt_fail(DT_EUSAGE, "%.100s: unknown key; did you mean %s?", name, nearest->name);
}

bool dt__option_is_for(const struct dt__option *option, const char *command)
{
    size_t length = strlen(command);
    for (const char *word = option->commands; *word; word += *word == ' ') {
        size_t size = strcspn(word, " ");
        if (size == length && !memcmp(word, command, length)) return true;
        word += size;
    }
    return false;
}

bool dt__option_is_hidden(const struct dt__option *option)
{
    return !strcmp(option->section, "test");
}

/* ---- a configuration ------------------------------------------------------------------------- */

dt_status dt_config_init(struct dt_config *config)
{
    *config = (struct dt_config){0};
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        dt_status status = dt__option_set(config, &dt__options[i], dt__options[i].initial);
        if (status) {
            dt_config_free(config);
            return status;
        }
    }
    memset(config->given, 0, sizeof config->given);
    return DT_OK;
}

static char **text_field(const struct dt_config *config, const struct dt__option *option)
{
    return option->type == DT__TEXT ? (char **)((uintptr_t)config + option->offset) : NULL;
}

bool dt_config_is_given(const struct dt_config *config, const char *name)
{
    const struct dt__option *option = NULL;
    return !dt__option_find(name, &option) && config->given[option - dt__options];
}

bool dt_config_is_changed(const struct dt_config *config, const char *name)
{
    const struct dt__option *option = NULL;
    char *value = NULL;
    if (dt__option_find(name, &option) || dt__option_text(config, option, &value)) return false;
    const bool changed = *value && strcmp(value, option->initial) != 0;
    dt_free(value);
    return changed;
}

void dt_config_free(struct dt_config *config)
{
    if (!config) return;
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        char **text = text_field(config, &dt__options[i]);
        if (text) dt_free(*text);
    }
    *config = (struct dt_config){0};
}

/* The struct, and behind it the texts that it points at, in the order of the table. */
dt_status dt_config_pack(const struct dt_config *config, void *out_bytes, size_t *out_length)
{
    struct dt_text bytes = {0};
    dt_status status = dt_text_append(&bytes, config, sizeof *config);
    for (int i = 0; i < DT__OPTION_COUNT && !status; i++) {
        char **text = text_field(config, &dt__options[i]);
        if (text) status = dt_text_append(&bytes, *text, strlen(*text) + 1);
    }
    if (status) {
        dt_text_free(&bytes);
        return status;
    }
    memcpy(out_bytes, &bytes.data, sizeof bytes.data);
    *out_length = bytes.length;
    return DT_OK;
}

dt_status dt_config_unpack(struct dt_config *config, const void *bytes, size_t length)
{
    const char *at = (const char *)bytes + sizeof *config, *end = (const char *)bytes + length;
    struct dt_config new;
    dt_status status = DT_OK;
    if (length < sizeof new) return dt_fail(DT_EMISMATCH, "the ranks run different programs");
    memcpy(&new, bytes, sizeof new);
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        char **text = text_field(&new, &dt__options[i]);
        if (!text) continue;
        *text = NULL;
        const size_t size = strnlen(at, (size_t)(end - at)) + 1;
        if (!status && at + size > end)
            status = dt_fail(DT_EMISMATCH, "the ranks run different programs");
        if (!status) status = dt_strdup(at, text);
        if (!status) at += size;
    }
    if (status) {
        dt_config_free(&new);
        return status;
    }
    dt_config_free(config);
    *config = new;
    return DT_OK;
}

dt_status dt_config_set_for(struct dt_config *config, const char *command, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    const struct dt__option *option = NULL;
    struct dt_text taken = {0}; /* what the command takes, for who gave it something else */
    char *name;
    dt_status status;
    if (!equals || equals == assignment)
        return dt_fail(DT_EUSAGE, "%s: expected section.key=value", assignment);
    DT_TRY(dt_format(&name, "%.*s", (int)(equals - assignment), assignment));
    DT_GUARD(dt__option_find(name, &option));
    if (!command || dt__option_is_for(option, command)) {
        status = dt__option_set(config, option, equals + 1);
        goto done;
    }
    for (int i = 0; i < DT__OPTION_COUNT; i++)
        if (dt__option_is_for(&dt__options[i], command) && !dt__option_is_hidden(&dt__options[i]))
            DT_GUARD(dt_text_add(&taken, "%s%s", taken.length ? ", " : "", dt__options[i].name));
    status = dt_fail(DT_EUSAGE, "%s: not a key of dtrain %s, which takes %s", option->name, command,
                     taken.length ? taken.data : "none");
done:
    dt_text_free(&taken);
    dt_free(name);
    return status;
}

dt_status dt_config_set(struct dt_config *config, const char *assignment)
{
    return dt_config_set_for(config, NULL, assignment);
}

/* ---- presets --------------------------------------------------------------------------------- */

/* A run settles what nobody has given in three steps: dt_config_settle, by the configuration alone;
 * dt_config_settle_resume, if it goes on, by the run before, whose values take the place of the
 * preset's; dt_config_settle_by_data, once the data are known. What one step has set, later ones
 * leave: the preset sets a key only as long as nothing else has (preset_set). */

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
    return dt_config_is_given(config, "model.layers") || config->model.kind == DT_KIND_LINEAR ||
           dt_config_is_given(config, "model.hidden");
}

bool dt_config_widths_wait(const struct dt_config *config)
{
    return config->run.preset == DT_PRESET_TABLE && !widths_are_given(config);
}

dt_status dt_config_settle(struct dt_config *config, bool table)
{
    const bool given =
        dt_config_is_given(config, "train.optimizer") || dt_config_is_given(config, "train.lr");
    const bool linear =
        config->model.kind == DT_KIND_LINEAR || !strcmp(config->model.layers, "linear");
    if (config->run.preset == DT_PRESET_AUTO)
        config->run.preset = table && !given ? DT_PRESET_TABLE : DT_PRESET_NONE;
    if (config->run.preset != DT_PRESET_TABLE) return DT_OK;
    /* Weights decay towards 0, and so do predictions: to the mean, if targets are standardised. */
    if (config->model.task == DT_TASK_REGRESS && config->train.loss != DT_LOSS_POISSON)
        DT_TRY(preset_set(config, "data.normalize_target", "yes"));
    for (size_t i = 0; i < PRESET_COUNT; i++) { /* the rule comes before its rates */
        const char *key = PRESET[i][0];
        const bool own = linear && (!strcmp(key, "train.lr") || !strcmp(key, "train.weight_decay"));
        DT_TRY(preset_set(config, key, own ? "0.01" : PRESET[i][1]));
    }
    return DT_OK;
}

dt_status dt_config_settle_by_data(struct dt_config *config, uint64_t rows, int features,
                                   bool sparse, bool evaluates)
{
    char text[32];
    int tier = 0;
    if (config->run.preset != DT_PRESET_TABLE) return DT_OK;
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

dt_status dt_config_settle_resume(struct dt_config *config, const struct dt_config *before)
{
    static const char *const by_data[] = {
        "train.epochs",  "train.batch",           "eval.steps",  "run.checkpoint_steps",
        "eval.patience", "data.normalize_target", "model.layers"};
    const size_t count = PRESET_COUNT + sizeof by_data / sizeof *by_data;
    const bool was = before->run.preset == DT_PRESET_TABLE;
    const bool widths = widths_are_given(config);
    const bool network = dt_config_is_given(config, "model.kind") ||
                         dt_config_is_given(config, "model.activation") ||
                         dt_config_is_given(config, "model.dropout");
    if (!was && config->run.preset != DT_PRESET_TABLE) return DT_OK;
    if (!dt_config_is_given(config, "run.preset"))
        config->run.preset = was ? DT_PRESET_TABLE : DT_PRESET_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct dt__option *option = NULL;
        char *text = NULL;
        DT_TRY(
            dt__option_find(i < PRESET_COUNT ? PRESET[i][0] : by_data[i - PRESET_COUNT], &option));
        if (config->given[option - dt__options] == DT_GIVEN) continue;
        if (widths && !strcmp(option->name, "model.layers")) continue;
        /* which the preset sets for an evaluator alone */
        if (!before->eval.dedicated && !strcmp(option->name, "run.checkpoint_steps")) continue;
        dt_status status = dt__option_text(before, option, &text);
        if (!status) status = dt__option_set(config, option, text);
        dt_free(text);
        DT_TRY(status);
        /* With these the layers are made again when the widths are known, and compared. */
        if (network && !strcmp(option->name, "model.layers"))
            config->given[option - dt__options] = DT_GIVEN_NOT;
    }
    return DT_OK;
}

dt_status dt_config_preset_text(const struct dt_config *config, char **out)
{
    struct dt_text list = {0};
    dt_status status = dt_text_add(&list, "%s", "");
    for (int i = 0; i < DT__OPTION_COUNT && !status; i++) {
        char *value = NULL;
        if (config->given[i] != DT_GIVEN_BY_PRESET) continue;
        status = dt__option_text(config, &dt__options[i], &value);
        if (!status)
            status =
                dt_text_add(&list, "%s%s=%s", list.length ? ", " : "", dt__options[i].name, value);
        dt_free(value);
    }
    *out = list.data;
    return status;
}
