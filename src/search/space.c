/* The space of a search: parses its text, and draws the values of a trial.
 *
 *     space   KEY=SPEC; KEY=SPEC ...
 *     SPEC    [turn] CHOICE | CHOICE ...
 *     CHOICE  [log] LOW..HIGH, for keys with numbers, or a value
 *
 * A trial draws one of the equally likely choices; with `turn`, trials take the choices in turn.
 * From a range the trial then draws a number. Without `log` all integers of a range are equally
 * likely; numbers that are not integers are rounded to four digits. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/internal.h"
#include "search/search.h"

/* ---- the text ------------------------------------------------------------------------------- */

/* Splits the text at the first character `stop`. *out is what precedes it, or the whole text,
 * without blanks at the ends. Returns what follows it; NULL: there is no `stop`. */
static char *cut(char *text, char stop, char **out)
{
    char *next = strchr(text, stop);
    if (next) *next++ = '\0';
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    *out = text;
    return next;
}

/* If the text begins with the word and a blank, skips both and returns true. */
static bool take_word(char **text, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0 || !isspace((unsigned char)(*text)[length])) return false;
    *text += length;
    while (isspace((unsigned char)**text))
        ++*text;
    return true;
}

/* Checks that the option accepts the value, by setting it in `config`. */
static dt_status value_check(struct dt_config *config, const struct dt__option *option,
                             const char *value)
{
    if (!*value) return dt_fail(DT_EUSAGE, "a value is missing");
    return dt__option_set(config, option, value);
}

static dt_status range_parse(struct dt_config *config, const struct dt__option *option, char *text,
                             struct dt__choice *out)
{
    char *high = strstr(text, ".."), *end;
    *high = '\0';
    high += 2;
    DT_TRY(value_check(config, option, text));
    DT_TRY(value_check(config, option, high));
    out->low = dt__real_read(text, &end);
    out->high = dt__real_read(high, &end);
    if (!(out->low < out->high) || (out->log && !(out->low > 0)))
        return dt_fail(DT_EUSAGE, "%s..%s: expected %sLOW below HIGH", text, high,
                       out->log ? "0 below LOW, " : "");
    return DT_OK;
}

static dt_status choice_parse(struct dt_config *config, struct dt__axis *axis, char *text)
{
    const struct dt__option *option = axis->option;
    const bool number = option->type == DT__INT || option->type == DT__REAL;
    struct dt__choice choice = {.log = number && take_word(&text, "log")};
    choice.range = number && strstr(text, "..");
    if (choice.log && !choice.range)
        return dt_fail(DT_EUSAGE, "log %s: expected log LOW..HIGH", text);
    DT_TRY(choice.range ? range_parse(config, option, text, &choice)
                        : value_check(config, option, text));
    DT_TRY(
        dt__grow(&axis->choice, &axis->choice_capacity, axis->choices + 1, sizeof choice, "space"));
    DT_TRY(dt__strdup(text, &choice.value));
    axis->choice[axis->choices++] = choice;
    return DT_OK;
}

/* Returns true if trials may differ in the key. Such keys belong to the network or its training. */
static bool key_varies(const struct dt__option *option)
{
    static const char common[] = "model.task|train.loss|train.quantiles|train.huber_delta|"
                                 "train.mode|train.max_steps|model.split";
    static const char data[] = "data.augment|data.encode|data.encode_bins|data.encode_scale|"
                               "data.encode_width";
    static const char evaluation[] = "eval.patience|eval.metric|eval.steps";
    if (dt__config_choice_index(common, option->name) >= 0) return false;
    return !strcmp(option->section, "model") || !strcmp(option->section, "train") ||
           dt__config_choice_index(data, option->name) >= 0 ||
           dt__config_choice_index(evaluation, option->name) >= 0;
}

static dt_status axis_parse(struct dt_config *config, struct dt__space *space, char *text)
{
    struct dt__axis axis = {0};
    char *key, *spec = strchr(text, '=');
    if (!spec) return dt_fail(DT_EUSAGE, "'%.100s': expected KEY=VALUES", text);
    cut(text, '=', &key);
    DT_TRY(dt__option_find(key, &axis.option));
    if (!key_varies(axis.option))
        return dt_fail(DT_EUSAGE, "%s: all trials have the same; expected a key of model or train",
                       key);
    for (size_t i = 0; i < space->axes; i++)
        if (space->axis[i].option == axis.option)
            return dt_fail(DT_EUSAGE, "%s: appears twice", key);
    DT_TRY(dt__grow(&space->axis, &space->axis_capacity, space->axes + 1, sizeof axis, "space"));
    struct dt__axis *added = &space->axis[space->axes++];
    *added = axis;
    spec++;
    while (isspace((unsigned char)*spec))
        spec++;
    added->turn = take_word(&spec, "turn");
    for (char *next = spec, *choice; next;) {
        next = cut(next, '|', &choice);
        const dt_status status = choice_parse(config, added, choice);
        if (status) return dt_fail_prefix(status, "%s: ", key);
    }
    return DT_OK;
}

dt_status dt__space_parse(const char *text, struct dt__space *out)
{
    struct dt_config config;
    char *copy;
    *out = (struct dt__space){0};
    DT_TRY(dt__strdup(text, &copy));
    dt_status status = dt__config_init(&config);
    for (char *next = copy, *axis; next && !status;) {
        next = cut(next, ';', &axis);
        if (*axis) status = axis_parse(&config, out, axis);
    }
    if (status) {
        dt__space_free(out);
        status = dt_fail_prefix(status, "search.space: ");
    }
    dt__config_free(&config);
    dt_free(copy);
    return status;
}

void dt__space_free(struct dt__space *space)
{
    for (size_t a = 0; a < space->axes; a++) {
        for (size_t c = 0; c < space->axis[a].choices; c++)
            dt_free(space->axis[a].choice[c].value);
        dt_free(space->axis[a].choice);
    }
    dt_free(space->axis);
    *space = (struct dt__space){0};
}

/* ---- a draw --------------------------------------------------------------------------------- */

/* Returns the number in a range that belongs to u in [0, 1). `whole`: an integer. */
static double number_draw(const struct dt__choice *choice, bool whole, double u)
{
    const double high = whole ? choice->high + 1 : choice->high;
    char text[DT_REAL_TEXT], *end;
    double value = choice->log ? choice->low * exp(u * log(high / choice->low))
                               : choice->low + u * (high - choice->low);
    if (whole)
        value = floor(value);
    else
        (void)snprintf(text, sizeof text, "%.4g", value), value = dt__real_read(text, &end);
    return fmin(fmax(value, choice->low), choice->high);
}

dt_status dt__space_draw(const struct dt__space *space, uint64_t seed, int trial, size_t axis,
                         char **out)
{
    const struct dt__axis *from = &space->axis[axis];
    const struct dt_rng rng = dt__rng_make(seed, DT_STREAM_SEARCH, (uint64_t)trial, axis);
    const size_t at = from->turn ? (size_t)trial % from->choices
                                 : (size_t)(dt__rng_uniform(&rng, 0) * (double)from->choices);
    const struct dt__choice *choice = &from->choice[at];
    char text[DT_REAL_TEXT];
    if (!choice->range) return dt__strdup(choice->value, out);
    const bool whole = from->option->type == DT__INT;
    return dt__strdup(dt__real_text(number_draw(choice, whole, dt__rng_uniform(&rng, 1)), text),
                      out);
}

/* ---- the default space ----------------------------------------------------------------------- */

/* Adds an axis: the range from value / down to value * up, uniform in the logarithm. */
static void axis_around(struct dt_text *text, const char *key, double value, double down, double up)
{
    const double at = fmin(fmax(value, 1e-6), 1e8);
    dt__text_add(text, "%s%s=log %.4g..%.4g", text->length ? "; " : "", key, at / down, at * up);
}

/* Adds an axis of networks with one to three layers of the same width: half, once and, unless there
 * are many rows, twice the width of the first layer. Twice the width is too slow for many rows. */
static void axis_hidden(struct dt_text *text, const char *hidden, bool many)
{
    enum { DEEPEST = 3, WIDEST = 1 << 20 };
    char *end;
    const int width = (int)fmin(fmax(dt__real_read(hidden, &end), 2), WIDEST);
    const int most = many ? width : 2 * width;
    const char *between = "; model.hidden=";
    for (int depth = 1; depth <= DEEPEST; depth++)
        for (int w = width / 2; w <= most; w *= 2, between = "|") {
            dt__text_add(text, "%s%d", between, w);
            for (int i = 1; i < depth; i++)
                dt__text_add(text, ",%d", w);
        }
}

/* Adds axes of encodings: normal, cosines and piecewise linear, in turn, and their sizes. The more
 * columns there are, the fewer inputs each of them gets. */
static void axis_encode(struct dt_text *text, int columns, int bins)
{
    const int most = 800 / columns < 4 ? 4 : 800 / columns > 24 ? 24 : 800 / columns;
    const int limit = 1200 / columns < 5 ? 5 : 1200 / columns > 256 ? 256 : 1200 / columns;
    const int high = 2 * bins > limit ? limit : 2 * bins;
    const int low = bins < 4 ? 2 : bins < high ? bins / 2 : high / 2;
    dt__text_add(text,
                 "; data.encode=turn ple|cosine|ple|normal; data.encode_scale=log 0.05..0.6; "
                 "data.encode_width=%d..%d; data.encode_bins=log %d..%d",
                 most / 3, most, low, high);
}

/* Writes the configuration with the values that the preset would set for these rows. */
static dt_status preset_resolve(const struct dt_config *config, const struct dt_source *rows,
                                struct dt_config *out)
{
    const struct dt_table_size size =
        dt__schema_size(dt__source_schema(rows), dt__source_rows(rows), true);
    DT_TRY(dt__config_copy(config, out));
    dt_status status = dt__config_resolve(out, false); /* run.preset is not auto any more */
    if (!status) status = dt__config_resolve_by_data(out, &size);
    if (status) dt__config_free(out);
    return status;
}

dt_status dt__space_usual(const struct dt_config *config, const struct dt_source *rows, char **out)
{
    const int columns = dt__source_schema(rows)->encoded;
    const bool many = dt__source_rows(rows) >= 10000;
    struct dt_text text = {0};
    struct dt_config preset;
    if (config->run.preset != DT_PRESET_TABLE) {
        axis_around(&text, "train.lr", config->train.lr, 10, 3);
        return dt__text_end(&text, out);
    }
    DT_TRY(preset_resolve(config, rows, &preset));
    axis_around(&text, "train.lr", preset.train.lr, 3, 2);
    if (preset.train.weight_decay > 0)
        axis_around(&text, "train.weight_decay", preset.train.weight_decay, 6, 2);
    if (!dt__config_is_given(config, "model.layers") && config->model.kind != DT_KIND_LINEAR) {
        axis_hidden(&text, preset.model.hidden, many);
        if (preset.model.dropout > 0)
            dt__text_add(&text, "; model.dropout=%.4g..%.4g", preset.model.dropout / 2,
                         fmin(preset.model.dropout * 1.5, 0.95));
    }
    if (columns && config->data.encode == DT_ENCODE_AUTO)
        axis_encode(&text, columns, (int)preset.data.encode_bins);
    dt__config_free(&preset);
    return dt__text_end(&text, out);
}
