/* The options: the table as an array, finding a key, and converting a value from and to text; also
 * a configuration, which has a value for each option.
 *
 * DT_OPTIONS_* in config.h is the only source: the struct, this table, parsing, printing, help, the
 * manual, the schema and the completions all derive from it. */
#include "config/option.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/internal.h"

/* clang-format off */
#define OPTION(section, key, type, initial, min, max, choices, resume, commands, help)             \
    {#section "." #key, #section, #key, DT__##type, DT__##resume, initial, min, max, choices,      \
     commands, help,                                                                               \
     offsetof(struct dt_config, section.key)},
/* clang-format on */
#define OPTIONS_OF_SECTION(section) DT_OPTIONS_##section(OPTION)

const struct dt__option dt__options[DT__OPTION_COUNT] = {DT_SECTIONS(OPTIONS_OF_SECTION)};

/* ---- finding a key --------------------------------------------------------------------------- */

/* Names that users of other programs may write, and the key that they mean. */
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
    /* Suggest the most similar name. `name` may lack the section, or begin with the key. */
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
        if (!strcmp(key, option->name)) distance = 0; /* "data.train" was written below [data] */
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
    /* a search trains, and importance evaluates */
    return dt__choice_index(option->commands, " ", command) >= 0 ||
           (!strcmp(command, "search") && dt__choice_index(option->commands, " ", "train") >= 0) ||
           (!strcmp(command, "importance") && dt__choice_index(option->commands, " ", "eval") >= 0);
}

bool dt__option_is_hidden(const struct dt__option *option)
{
    return !strcmp(option->section, "test") || !strcmp(option->commands, DT_RETIRED);
}

/* ---- text to value -------------------------------------------------------------------------- */

static int choice_index(const char *choices, const char *ends, const char *text,
                        int compare(const char *, const char *, size_t))
{
    size_t length = strlen(text);
    for (int index = 0; *choices; index++) {
        size_t size = strcspn(choices, ends);
        if (size == length && !compare(choices, text, length)) return index;
        choices += size + (choices[size] != '\0');
    }
    return -1;
}

int dt__choice_index(const char *choices, const char *ends, const char *choice)
{
    return choice_index(choices, ends, choice, strncmp);
}

int dt__config_choice_index(const char *choices, const char *choice)
{
    return dt__choice_index(choices, "|", choice);
}

/* An option whose choices begin like this also accepts true, false, on, off, 1 and 0. */
static const char SWITCH[] = "no|yes|";

/* Returns 0 for no and 1 for yes; -1: the word is neither. */
static int switch_index(const char *value)
{
    const int index = choice_index("no|yes|false|true|off|on|0|1", "|", value, strncasecmp);
    return index < 0 ? -1 : index % 2;
}

static dt_status value_refuse(const struct dt__option *option, const char *value)
{
    char expected[512] = "yes or no";
    if (option->type == DT__INT)
        snprintf(expected, sizeof expected, "an integer from %.0f to %.0f", option->min,
                 option->max);
    if (option->type == DT__REAL)
        snprintf(expected, sizeof expected, "a number from %.10g to %.10g", option->min,
                 option->max);
    if (option->type == DT__CHOICE) snprintf(expected, sizeof expected, "one of ");
    const char *at = option->type == DT__CHOICE ? option->choices : "";
    for (; *at && strlen(expected) + 3 < sizeof expected; at++)
        snprintf(expected + strlen(expected), 3, *at == '|' ? ", " : "%c", *at);
    return dt_fail(DT_EUSAGE, "%s=%.200s: expected %s", option->name, value, expected);
}

/* The member keeps its value if the text is not valid. Numbers are decimal: no hexadecimal, no nan,
 * no blanks around them; a number that is too large becomes infinite, and is therefore out of
 * range. Integers may also be written like 1e6: a double represents every integer in the table's
 * ranges exactly. */
dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value)
{
    void *field = (char *)config + option->offset;
    double number;
    char *end, *copy;
    int index;
    switch (option->type) {
    case DT__INT:
    case DT__REAL:
        if (!*value || strspn(value, "+-.0123456789eE") != strlen(value))
            return value_refuse(option, value);
        number = dt__real_read(value, &end);
        if (*end || number < option->min || number > option->max)
            return value_refuse(option, value);
        if (option->type == DT__REAL)
            *(double *)field = number == 0 ? 0 : number; /* turns -0 into 0 */
        else if (number == floor(number))
            *(int64_t *)field = (int64_t)number;
        else
            return value_refuse(option, value);
        break;
    case DT__BOOL:
        index = switch_index(value);
        if (index < 0) return value_refuse(option, value);
        *(bool *)field = index;
        break;
    case DT__CHOICE:
        index = dt__config_choice_index(option->choices, value);
        if (index < 0 && !strncmp(option->choices, SWITCH, strlen(SWITCH)))
            index = switch_index(value);
        if (index < 0) return value_refuse(option, value);
        *(int *)field = index;
        break;
    case DT__TEXT:
        DT_TRY(dt__strdup(value, &copy));
        dt_free(*(char **)field);
        *(char **)field = copy;
        break;
    }
    config->given[option - dt__options] = DT_GIVEN;
    return DT_OK;
}

/* ---- value to text -------------------------------------------------------------------------- */

/* Copies the choice with index `value`. The buffer's size is a parameter, since some choices do not
 * fit in 16 bytes. */
static const char *choice_copy(const char *choices, int value, char *buffer, size_t size)
{
    for (; value > 0 && *choices; value--) {
        choices += strcspn(choices, "|");
        choices += *choices == '|';
    }
    snprintf(buffer, size, "%.*s", (int)strcspn(choices, "|"), choices);
    return buffer;
}

const char *dt__option_text(const struct dt_config *config, const struct dt__option *option,
                            char buffer[DT_REAL_TEXT])
{
    const void *field = (const char *)config + option->offset;
    switch (option->type) {
    case DT__INT:
        snprintf(buffer, DT_REAL_TEXT, "%lld", (long long)*(const int64_t *)field);
        return buffer;
    case DT__REAL:
        return dt__real_text(*(const double *)field, buffer);
    case DT__BOOL:
        return *(const bool *)field ? "yes" : "no";
    case DT__CHOICE:
        return choice_copy(option->choices, *(const int *)field, buffer, DT_REAL_TEXT);
    case DT__TEXT:
        break;
    }
    return *(char *const *)field;
}

const char *dt__config_choice(const char *choices, int value, char buffer[16])
{
    return choice_copy(choices, value, buffer, 16);
}

/* ---- a configuration ------------------------------------------------------------------------- */

dt_status dt__config_init(struct dt_config *config)
{
    *config = (struct dt_config){0};
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        dt_status status = dt__option_set(config, &dt__options[i], dt__options[i].initial);
        if (status) {
            dt__config_free(config);
            return status;
        }
    }
    memset(config->given, 0, sizeof config->given);
    return DT_OK;
}

dt_status dt_config_create(struct dt_config **out)
{
    struct dt_config *config;
    *out = NULL;
    DT_TRY(dt__alloc(1, sizeof *config, "configuration", &config));
    const dt_status status = dt__config_init(config);
    if (status)
        dt_free(config);
    else
        *out = config;
    return status;
}

void dt_config_destroy(struct dt_config *config)
{
    if (config) dt__config_free(config);
    dt_free(config);
}

static char **text_field(const struct dt_config *config, const struct dt__option *option)
{
    return option->type == DT__TEXT ? (char **)((uintptr_t)config + option->offset) : NULL;
}

bool dt__config_is_given(const struct dt_config *config, const char *name)
{
    const struct dt__option *option = NULL;
    return !dt__option_find(name, &option) && config->given[option - dt__options];
}

bool dt__config_is_changed(const struct dt_config *config, const char *name)
{
    const struct dt__option *option = NULL;
    char buffer[DT_REAL_TEXT];
    if (dt__option_find(name, &option)) return false;
    const char *value = dt__option_text(config, option, buffer);
    return *value && strcmp(value, option->initial) != 0;
}

void dt__config_free(struct dt_config *config)
{
    if (!config) return;
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        char **text = text_field(config, &dt__options[i]);
        if (text) dt_free(*text);
    }
    *config = (struct dt_config){0};
}

/* Packs the struct, and then the texts that it points to, in the order of the table. */
dt_status dt__config_pack(const struct dt_config *config, void *out_bytes, size_t *out_length)
{
    struct dt_text bytes = {0};
    dt_status status = dt__text_append(&bytes, config, sizeof *config);
    for (int i = 0; i < DT__OPTION_COUNT && !status; i++) {
        char **text = text_field(config, &dt__options[i]);
        if (text) status = dt__text_append(&bytes, *text, strlen(*text) + 1);
    }
    if (status) {
        dt__text_free(&bytes);
        return status;
    }
    memcpy(out_bytes, &bytes.data, sizeof bytes.data);
    *out_length = bytes.length;
    return DT_OK;
}

dt_status dt__config_unpack(struct dt_config *config, const void *bytes, size_t length)
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
        if (!status) status = dt__strdup(at, text);
        if (!status) at += size;
    }
    if (status) {
        dt__config_free(&new);
        return status;
    }
    dt__config_free(config);
    *config = new;
    return DT_OK;
}

dt_status dt__config_set_for(struct dt_config *config, const char *command, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    const struct dt__option *option = NULL;
    struct dt_text taken = {0}; /* the keys that the command takes, for the error message */
    char *name;
    dt_status status;
    if (!equals || equals == assignment)
        return dt_fail(DT_EUSAGE, "%s: expected section.key=value", assignment);
    DT_TRY(dt__format(&name, "%.*s", (int)(equals - assignment), assignment));
    DT_GUARD(dt__option_find(name, &option));
    if (!command || dt__option_is_for(option, command) || !strcmp(option->commands, DT_RETIRED)) {
        status = dt__option_set(config, option, equals + 1);
        goto done;
    }
    for (int i = 0; i < DT__OPTION_COUNT; i++)
        if (dt__option_is_for(&dt__options[i], command) && !dt__option_is_hidden(&dt__options[i]))
            DT_GUARD(dt__text_add(&taken, "%s%s", taken.length ? ", " : "", dt__options[i].name));
    status = dt_fail(DT_EUSAGE, "%s: not a key of dtrain %s, which takes %s", option->name, command,
                     taken.length ? taken.data : "none");
done:
    dt__text_free(&taken);
    dt_free(name);
    return status;
}

dt_status dt_config_set(struct dt_config *config, const char *assignment)
{
    return dt__config_set_for(config, NULL, assignment);
}
