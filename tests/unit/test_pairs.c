/* All pairs of settings: src/config/check.c must allow a pair, or refuse it in one line that names
 * a key of each setting. Fails if a rule names only one key. (The random configurations of
 * tests/random check that an allowed pair runs, with the same bits everywhere.) */
#include "unit/suite.h"

#include "config/config.h"

enum { MAX_VALUES = 10 };

/* Values of each axis; a value is settings with '|' between them. The first value is used where a
 * pair does not choose another one. */
static const char *const AXES[][MAX_VALUES] = {
    {"model.hidden=7,5", "model.kind=linear", "model.task=regress|data.normalize_target=yes",
     "model.wide=yes|model.embedding=2",
     "train.wide_optimizer=ftrl|train.wide_lr=0.1|train.l1=0.01|model.wide=yes",
     "train.wide_optimizer=adagrad|model.wide=yes", "train.wide_optimizer=lamb|model.wide=yes"},
    {"model.split=0", "model.split=100", "model.layers=dense 7 relu split"},
    {"train.mode=sync", "train.mode=async",
     "train.mode=async|train.staleness=2|train.staleness_lr=yes",
     "train.mode=async|train.staleness=0", "train.mode=async|train.warm_start_steps=3"},
    {"train.exchange=auto", "train.exchange=reduce", "train.exchange=node",
     "train.exchange=ordered"},
    {"train.local_steps=1", "train.local_steps=2", "train.overlap=yes|train.local_steps=2"},
    {"train.wire=f32", "train.wire=bf16", "train.wire=q8"},
    {"train.clip_norm=0", "train.clip_norm=0.1"},
    {"train.optimizer=sgd", "train.optimizer=sgd|train.momentum=0", "train.optimizer=nesterov",
     "train.optimizer=adagrad", "train.optimizer=rmsprop", "train.optimizer=adam",
     "train.optimizer=adamw", "train.optimizer=ftrl", "train.l1=0.01|train.optimizer=ftrl",
     "train.optimizer=lamb"},
    {"train.lazy=no", "train.lazy=yes"},
    {"train.weight_decay=0", "train.weight_decay=0.01"},
    {"run.precision=f32", "run.precision=bf16"},
    {"run.replicas=4|train.groups=2", "run.replicas=1|train.groups=1",
     "run.replicas=5|train.groups=3"},
    {"run.reproducible=no", "run.reproducible=yes"},
    {"train.schedule=constant", "train.schedule=cosine|train.warmup_steps=2",
     "train.schedule=linear", "train.schedule=plateau|data.eval_fraction=0.25"},
    {"eval.batches=0", "data.eval_fraction=0.25|eval.steps=2",
     "eval.patience=2|data.eval_fraction=0.25", "eval.dedicated=yes|data.eval_fraction=0.25",
     "eval.patience=2|eval.dedicated=yes|data.eval_fraction=0.25", "data.eval=other.csv"},
    {"data.normalize=none", "data.normalize=standard|data.clip=1.5", "data.normalize=robust"},
    {"train.class_weight=none", "train.class_weight=balanced"},
};
enum { COUNT = sizeof AXES / sizeof *AXES };

static void set_all(struct dt_config *config, const char *settings)
{
    char assignment[100];
    for (size_t length; *settings; settings += length + (settings[length] == '|')) {
        length = strcspn(settings, "|");
        snprintf(assignment, sizeof assignment, "%.*s", (int)length, settings);
        EXPECT_OK(dt_config_set(config, assignment));
    }
}

static bool has_key_of(const char *text, const char *settings)
{
    char key[64];
    for (; *settings; settings += strcspn(settings, "|"), settings += *settings == '|') {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(settings, "="), settings);
        if (strstr(text, key)) return true;
    }
    return false;
}

/* Returns true if value v of axis a and value w of axis b may be combined, false if they are
 * refused; the message must then name both. */
static bool are_allowed(int a, int v, int b, int w)
{
    struct dt_config config;
    EXPECT_OK(dt__config_init(&config));
    set_all(&config, "data.train=rows.csv");
    for (int i = 0; i < COUNT; i++)
        set_all(&config, AXES[i][i == a ? v : i == b ? w : 0]);
    const dt_status status = dt__config_check(&config, 3);
    dt__config_free(&config);
    if (!status) return true;
    ck_assert_int_eq(status, DT_EUSAGE);
    ck_assert_msg(has_key_of(dt_error_text(), AXES[a][v]) &&
                      has_key_of(dt_error_text(), AXES[b][w]) && !strchr(dt_error_text(), '\n'),
                  "%s and %s: '%s' does not name both", AXES[a][v], AXES[b][w], dt_error_text());
    return false;
}

START_TEST(pairs_are_allowed_or_refused_with_both_keys)
{
    int refused = 0;
    for (int a = 0; a < COUNT; a++)
        for (int b = a + 1; b < COUNT; b++)
            for (int v = 0; v < MAX_VALUES && AXES[a][v]; v++)
                for (int w = 0; w < MAX_VALUES && AXES[b][w]; w++)
                    refused += !are_allowed(a, v, b, w);
    ck_assert_int_gt(refused, 0);
}
END_TEST

SUITE("pairs", pairs_are_allowed_or_refused_with_both_keys)
