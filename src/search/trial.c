/* The configuration and settings of a trial. */
#include <math.h>
#include <string.h>

#include "search/search.h"
#include "state/directory.h"

struct dt__path dt__trial_dir(const struct dt__search *search, int trial, int fold)
{
    const char *dir = search->config->run.dir;
    return search->config->search.folds ? dt__path("%s/trials/%04d-%d", dir, trial, fold)
                                        : dt__path("%s/trials/%04d", dir, trial);
}

/* Returns true if the trial is the linear one. The first trial is the unchanged configuration, the
 * second one is linear, and the others draw. */
static bool is_linear(const struct dt__search *search, int trial)
{
    return search->linear && trial == 1;
}

static bool draws(const struct dt__search *search, int trial)
{
    return trial > 0 && !is_linear(search, trial);
}

/* Returns the seed of a trial's run in a fold. Trials that do not draw have the configuration's
 * seed in the first fold; all other runs have seeds of their own. */
static int64_t trial_seed(const struct dt__search *search, int trial, int fold)
{
    const int64_t seed = search->config->run.seed;
    const struct dt_rng rng = dt__rng_make((uint64_t)seed, DT_STREAM_SEARCH, (uint64_t)trial,
                                           ((uint64_t)1 << 32) + (uint64_t)fold);
    if (!draws(search, trial) && fold == 0) return seed;
    return (int64_t)(dt__rng_u64(&rng, 0) >> 16);
}

dt_status dt__config_copy(const struct dt_config *from, struct dt_config *out)
{
    void *bytes;
    size_t length;
    *out = (struct dt_config){0};
    DT_TRY(dt__config_pack(from, &bytes, &length));
    const dt_status status = dt__config_unpack(out, bytes, length);
    dt_free(bytes);
    return status;
}

static dt_status config_set(struct dt_config *config, const char *key, const char *value)
{
    const struct dt__option *option = NULL;
    DT_TRY(dt__option_find(key, &option));
    return dt__option_set(config, option, value);
}

/* Resets a key to its default, as if it were not given. */
static dt_status config_unset(struct dt_config *config, const char *key)
{
    const struct dt__option *option = NULL;
    DT_TRY(dt__option_find(key, &option));
    DT_TRY(dt__option_set(config, option, option->initial));
    config->given[option - dt__options] = DT_GIVEN_NOT;
    return DT_OK;
}

static dt_status make_linear(struct dt_config *config)
{
    static const char *const forms[] = {"model.kind",    "model.hidden", "model.activation",
                                        "model.dropout", "model.wide",   "model.embedding"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        DT_TRY(config_unset(config, forms[i]));
    return config_set(config, "model.layers", "linear");
}

/* Sets where the run ends, after `epochs` epochs, but keeps the learning rates of a run to the
 * regular end. */
static dt_status end_early(const struct dt__search *search, int fold, int epochs,
                           struct dt_config *config)
{
    const struct dt_source *rows = search->fold[fold].rows;
    const struct dt_schema *schema = dt__source_schema(rows);
    const uint64_t count = dt__source_rows(rows);
    struct dt_config whole;
    char steps[32];
    DT_TRY(dt__config_copy(config, &whole));
    dt_status status = dt__config_resolve(&whole, false); /* run.preset is not auto any more */
    const struct dt_table_size size = dt__schema_size(schema, count, true);
    if (!status) status = dt__config_resolve_by_data(&whole, &size);
    const uint64_t asked = (uint64_t)whole.train.batch;
    const uint64_t batch = asked && asked < count ? asked : count;
    const uint64_t each = (count - 1) / batch + 1; /* steps per epoch */
    double end = ceil(whole.train.epochs * (double)each);
    if (whole.train.max_steps >= 0 && (double)whole.train.max_steps < end)
        end = (double)whole.train.max_steps;
    const double decay = whole.train.decay_steps ? (double)whole.train.decay_steps
                                                 : end - (double)whole.train.warmup_steps;
    (void)snprintf(steps, sizeof steps, "%.0f", decay > 0 ? decay : 0);
    if (!status) status = config_set(config, "train.decay_steps", steps);
    (void)snprintf(steps, sizeof steps, "%.0f", fmin(end, epochs * (double)each));
    if (!status && epochs) status = config_set(config, "train.max_steps", steps);
    if (!status && epochs) status = config_set(config, "eval.patience", "0");
    dt__config_free(&whole);
    return status;
}

/* Settings of all trials: what a search does not need is off. */
static const char *const SETTINGS[][2] = {
    {"run.resume", "auto"},       {"export.latest", "no"},  {"export.best", "yes"},
    {"export.keep", "1"},         {"run.keep", "1"},        {"report.prometheus", ""},
    {"report.tensorboard", "no"}, {"eval.also", ""},        {"eval.also_labels", ""},
    {"eval.threshold", "0.5"},    {"eval.calibrate", "no"}, {"predict.interval", "0"}};

dt_status dt__trial_config(const struct dt__search *search, int trial, int fold, int epochs,
                           struct dt_config *out)
{
    const struct dt_config *base = search->config;
    char number[32];
    DT_TRY(dt__config_copy(base, out));
    dt_status status = is_linear(search, trial) ? make_linear(out) : DT_OK;
    for (size_t a = 0; draws(search, trial) && a < search->space.axes && !status; a++) {
        char *value = NULL;
        status = dt__space_draw(&search->space, (uint64_t)base->run.seed, trial, a, &value);
        if (!status) status = dt__option_set(out, search->space.axis[a].option, value);
        dt_free(value);
    }
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS && !status; i++)
        status = config_set(out, SETTINGS[i][0], SETTINGS[i][1]);
    (void)snprintf(number, sizeof number, "%lld", (long long)trial_seed(search, trial, fold));
    if (!status) status = config_set(out, "run.seed", number);
    if (!status && base->data.split_seed < 0) {
        (void)snprintf(number, sizeof number, "%lld", (long long)base->run.seed);
        status = config_set(out, "data.split_seed", number);
    }
    (void)snprintf(number, sizeof number, "%lld", (long long)base->search.folds);
    if (!status) status = config_set(out, "search.folds", "0");
    if (!status && base->search.folds) status = config_set(out, "data.folds", number);
    (void)snprintf(number, sizeof number, "%d", fold);
    if (!status && base->search.folds) status = config_set(out, "data.fold", number);
    if (!status) status = config_set(out, "run.dir", dt__trial_dir(search, trial, fold).text);
    if (!status && base->search.first_epochs) status = end_early(search, fold, epochs, out);
    if (status) dt__config_free(out);
    return status;
}

/* Returns true if all trials have the same value of the axis. */
static bool is_common(const struct dt__axis *axis)
{
    return axis->choices == 1 && !axis->choice->range;
}

dt_status dt__trial_settings(const struct dt__search *search, int trial, json_t **out)
{
    const uint64_t seed = (uint64_t)search->config->run.seed;
    json_t *settings = json_object();
    bool good = !is_linear(search, trial) ||
                !json_object_set_new(settings, "model.layers", json_string("linear"));
    for (size_t a = 0; draws(search, trial) && a < search->space.axes && good; a++) {
        const struct dt__axis *axis = &search->space.axis[a];
        char *value = NULL;
        if (is_common(axis)) continue;
        good = !dt__space_draw(&search->space, seed, trial, a, &value) &&
               !json_object_set_new(settings, axis->option->name, dt__json_string(value));
        dt_free(value);
    }
    *out = settings;
    if (good) return DT_OK;
    json_decref(settings);
    return dt_fail(DT_EMEMORY, "out of memory for settings");
}
