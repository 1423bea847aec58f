/* Checks between keys: contradictory settings, and changes that a resume must not make. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/internal.h"
#include "config/option.h"
#include "config/named_sets.h"
#include "config/threshold.h"

#define FTRL_AVERAGED(rule)                                                                        \
    "train.local_steps: " rule " computes weights from its own sums, so that those of several "    \
    "groups cannot be averaged; expected another optimizer, or train.local_steps=1"
#define FTRL_ROUNDED(rule)                                                                         \
    "train.wire: " rule " computes weights from its own sums, and has no updates to round; "       \
    "expected another optimizer, or train.wire=f32"

#define SPLIT(key, expected)                                                                       \
    key " and a split layer (model.layers, model.split): its workers meet in each step, with "     \
        "exact values; expected " expected ", or no split layer"

/* X(broken, message): `message` is the error if `broken` is true. It names all keys that take
 * part. */
#define RULES(X)                                                                                   \
    X(!*c->run.dir, "run.dir: expected a directory's name")                                        \
    X(!*c->data.train, "data.train: missing; expected files or globs to train on")                 \
    X(*c->data.eval && c->data.eval_fraction > 0,                                                  \
      "data.eval and data.eval_fraction: expected one of them, not both")                          \
    X(c->data.folds > 0 && (*c->data.eval || c->data.eval_fraction > 0),                           \
      "data.folds and data.eval or data.eval_fraction: expected one of them")                      \
    X(c->data.folds == 1 || (c->data.fold > 0 && c->data.fold >= c->data.folds),                   \
      "data.folds and data.fold: expected at least 2 folds, and a fold below their number")        \
    X(*c->data.eval_labels && !*c->data.eval, "data.eval_labels: expected data.eval as well")      \
    X(!dt__config_gap(c, &gap, &is_time),                                                          \
      "data.gap: expected a number of rows (100), seconds (3600s) or days (2d)")                   \
    X(*c->data.shape && c->model.embedding > 0,                                                    \
      "data.shape and model.embedding: expected one of them: pictures have no categories")         \
    X(encodes && * c->data.shape,                                                                  \
      "data.encode and data.shape: pictures have no columns of numbers to encode; expected one "   \
      "of them")                                                                                   \
    X(encodes && * c->data.augment,                                                                \
      "data.encode and data.augment: a changed picture has other values than its encodings; "      \
      "expected one of them")                                                                      \
    X(c->data.decimal == DT_DECIMAL_COMMA && !strcmp(c->data.separator, ","),                      \
      "data.decimal=, and data.separator=,: expected another separator")                           \
    X(c->data.clip > 0 && c->data.clip < 1, "data.clip: expected 0, or at least 1: a smaller "     \
                                            "limit would cut the 0/1 features of categories")      \
    X(c->train.schedule != DT_SCHED_CONSTANT && c->train.min_lr > c->train.lr,                     \
      "train.min_lr: expected at most train.lr, unless train.schedule=constant")                   \
    X(c->train.epsilon > -1 && c->train.epsilon < 0,                                               \
      "train.epsilon: expected 0 and more, or -1 for the value that the optimizer usually has")    \
    X(c->train.l1 > 0 && !ftrl && !wide_ftrl,                                                      \
      "train.l1: expected train.optimizer=ftrl or train.wide_optimizer=ftrl")                      \
    X(wide_ftrl && !(c->train.lr > 0 || c->train.wide_lr > 0),                                     \
      "train.wide_optimizer=ftrl: expected train.wide_lr or train.lr above 0")                     \
    X(ftrl && !(c->train.lr > 0 && c->train.schedule == DT_SCHED_CONSTANT),                        \
      "train.optimizer=ftrl: expected train.lr above 0, and train.schedule=constant: its rates "   \
      "fall by themselves")                                                                        \
    X(ftrl && (c->train.warmup_steps > 0 || (async && c->train.staleness_lr)),                     \
      "train.optimizer=ftrl: another rate rescales all that was learned before; expected "         \
      "train.warmup_steps=0 and train.staleness_lr=no")                                            \
    X(async && (lamb || wide_lamb),                                                                \
      "train.optimizer=lamb, train.wide_optimizer=lamb: train.mode=async updates parts of a "      \
      "tensor one by one; expected sync, or another optimizer")                                    \
    X(c->train.clip_norm > 0 && (lamb || wide_lamb),                                               \
      "train.clip_norm: with train.optimizer=lamb or train.wide_optimizer=lamb a step is as long " \
      "as each tensor's weights, whatever the gradient's norm; expected 0")                        \
    X(c->train.lazy && (lamb || wide_lamb),                                                        \
      "train.lazy=yes: with train.optimizer=lamb or train.wide_optimizer=lamb a step is of whole " \
      "tensors; expected train.lazy=no")                                                           \
    X(c->train.lazy && !async && c->train.exchange == DT_EXCHANGE_REDUCE,                          \
      "train.lazy=yes: expected train.exchange=auto, node or ordered")                             \
    X(c->run.reproducible && c->train.exchange == DT_EXCHANGE_REDUCE,                              \
      "run.reproducible=yes: train.exchange=reduce cannot keep this promise; expected auto, node " \
      "or ordered")                                                                                \
    X(c->train.overlap &&async,                                                                    \
      "train.overlap=yes: train.mode=async has no rounds of local steps; expected sync, or "       \
      "train.overlap=no")                                                                          \
    X(c->train.overlap && c->train.local_steps == 1,                                               \
      "train.overlap=yes: with train.local_steps=1 there is no computing during which groups "     \
      "could exchange; expected more steps, or train.overlap=no")                                  \
    X(async && c->train.local_steps > 1,                                                           \
      "train.local_steps: train.mode=async exchanges every gradient; expected sync, or "           \
      "train.local_steps=1")                                                                       \
    X(c->train.local_steps > 1 && ftrl, FTRL_AVERAGED("train.optimizer=ftrl"))                     \
    X(c->train.local_steps > 1 && wide_ftrl, FTRL_AVERAGED("train.wide_optimizer=ftrl"))           \
    X(c->train.local_steps > 1 && c->train.lazy,                                                   \
      "train.lazy=yes: gradients are whole with train.local_steps; expected train.local_steps=1")  \
    X(c->train.delay_compensation > 0,                                                             \
      "train.delay_compensation: this key is retired, async no longer compensates delays; "        \
      "expected 0, or no such key")                                                                \
    X(wire &&async,                                                                                \
      "train.wire: train.mode=async sends f32; expected train.wire=f32, or train.mode=sync")       \
    X(wire && c->train.exchange == DT_EXCHANGE_REDUCE,                                             \
      "train.wire: with train.exchange=reduce MPI makes the sums, and it adds f32 alone; "         \
      "expected "                                                                                  \
      "auto, node or ordered, or train.wire=f32")                                                  \
    X(wire &&ftrl, FTRL_ROUNDED("train.optimizer=ftrl"))                                           \
    X(wire &&wide_ftrl, FTRL_ROUNDED("train.wide_optimizer=ftrl"))                                 \
    X((wire || c->train.local_steps > 1) && c->run.replicas > 0 &&                                 \
          c->train.groups > c->run.replicas,                                                       \
      "train.groups: expected at most run.replicas")                                               \
    X(split &&async, SPLIT("train.mode=async", "sync"))                                            \
    X(split && c->train.local_steps > 1, SPLIT("train.local_steps", "train.local_steps=1"))        \
    X(split &&wire, SPLIT("train.wire", "train.wire=f32"))                                         \
    X(split && c->train.exchange == DT_EXCHANGE_REDUCE,                                            \
      SPLIT("train.exchange=reduce", "auto, node or ordered"))                                     \
    X(c->run.precision == DT_PRECISION_BF16 && !strncasecmp(c->run.kernel, "portable", 8),         \
      "run.precision=bf16 and run.kernel=portable: that kernel multiplies in f32 alone; expected " \
      "run.precision=f32, or another kernel")                                                      \
    X(async && c->run.reproducible,                                                                \
      "run.reproducible=yes: train.mode=async cannot keep this promise; expected sync")            \
    X(size > 0 && c->run.reproducible && !c->run.replicas,                                         \
      "run.reproducible=yes: run.replicas=0 stands for the number of workers; expected a number")  \
    X(size > 0 && c->run.reproducible && !c->train.groups && (wire || c->train.local_steps > 1),   \
      "run.reproducible=yes: with train.local_steps or train.wire, train.groups=0 stands for "     \
      "the number of hosts; expected a number")                                                    \
    X(c->eval.metric > DT_METRIC_PINBALL &&                                                        \
          (regresses != (c->eval.metric >= DT_METRIC_RMSE) ||                                      \
           (!classifies && !regresses && c->eval.metric != DT_METRIC_ACCURACY &&                   \
            c->eval.metric != DT_METRIC_F1)),                                                      \
      "eval.metric: expected loss, accuracy, top5, auc, f1, balanced_accuracy, "                   \
      "average_precision, brier or ece for model.task=classify, loss, accuracy or f1 for "         \
      "multilabel, and loss, rmse, mae, r2 or mape for regress")                                   \
    X(c->eval.metric == DT_METRIC_LOG_LOSS && !classifies,                                         \
      "eval.metric=log_loss: expected model.task=classify, whose loss it is; or loss")             \
    X(c->eval.metric == DT_METRIC_PINBALL && c->train.loss != DT_LOSS_QUANTILE,                    \
      "eval.metric=pinball: expected train.loss=quantile, whose loss it is; or loss")              \
    X(!classifies && c->train.class_weight,                                                        \
      "train.class_weight=balanced: only model.task=classify has classes; expected classify, or "  \
      "train.class_weight=none")                                                                   \
    X(!classifies && *c->data.class_names,                                                         \
      "data.class_names: only model.task=classify has classes; expected classify, or no names")    \
    X(c->train.loss == DT_LOSS_POISSON && c->data.normalize_target == DT_NORMALIZE_TARGET_YES,     \
      "data.normalize_target=yes: train.loss=poisson learns counts unchanged; expected no, "       \
      "or auto")                                                                                   \
    X(!regresses && c->data.normalize_target == DT_NORMALIZE_TARGET_YES,                           \
      "data.normalize_target=yes: only targets of model.task=regress have units; expected "        \
      "regress, or data.normalize_target=auto")                                                    \
    X(!regresses && c->data.clamp_target,                                                          \
      "data.clamp_target=yes: only targets of model.task=regress have a range; expected regress, " \
      "or data.clamp_target=no")                                                                   \
    X(c->eval.patience > 0 && (!evaluates || c->eval.steps < 0),                                   \
      "eval.patience: expected data.eval or data.eval_fraction to measure on, and eval.steps of "  \
      "0 and more")                                                                                \
    X(c->run.reproducible && c->eval.dedicated && c->eval.patience > 0,                            \
      "run.reproducible=yes: with eval.dedicated timing decides the step at which eval.patience "  \
      "stops; expected eval.patience=0, or eval.dedicated=no")                                     \
    X(c->train.schedule == DT_SCHED_PLATEAU &&                                                     \
          (!evaluates || c->eval.dedicated || c->eval.steps < 0),                                  \
      "train.schedule=plateau: expected an evaluation in place (data.eval or data.eval_fraction, " \
      "eval.dedicated=no, eval.steps of 0 and more): the step at which an evaluator's result "     \
      "comes depends on timing")                                                                   \
    X(c->export.best == DT_EXPORT_BETTER && (!*c->run.init || !evaluates),                         \
      "export.best=better: expected run.init, the model to beat, and data.eval or "                \
      "data.eval_fraction, to measure it on")                                                      \
    X(*c->eval.also && !evaluates,                                                                 \
      "eval.also: expected data.eval or data.eval_fraction as well: these rows choose the best "   \
      "model")                                                                                     \
    X(*c->eval.also_labels && !*c->eval.also, "eval.also_labels: expected eval.also as well")      \
    X(dt__config_fits(c) && !evaluates && !c->search.folds,                                        \
      "eval.threshold and eval.calibrate: expected data.eval or data.eval_fraction: held-out "     \
      "rows "                                                                                      \
      "choose them")                                                                               \
    X(!classifies && (c->eval.calibrate || *c->eval.positive || strcmp(c->eval.threshold, "0.5")), \
      "eval.positive, eval.threshold, eval.calibrate: expected model.task=classify: other tasks "  \
      "choose no class")                                                                           \
    X(c->predict.interval > 0 && !regresses,                                                       \
      "predict.interval: expected model.task=regress: classes have probabilities")                 \
    X(c->eval.dedicated && !evaluates,                                                             \
      "eval.dedicated=yes: expected data.eval or data.eval_fraction to measure on")                \
    X(size > 0 && size < 2 && async,                                                               \
      "train.mode=async: expected at least 2 processes (mpirun -np 2)")                            \
    X(size > 0 && size < 3 && c->eval.dedicated,                                                   \
      "eval.dedicated=yes: expected at least 3 processes (mpirun -np 3)")

bool dt__config_holds_out(const struct dt_config *config)
{
    return config->data.eval_fraction > 0 || config->data.folds;
}

bool dt__config_gap(const struct dt_config *config, double *size, bool *is_time)
{
    const char *text = config->data.gap;
    char *end;
    const bool number = *text && strspn(text, ".0123456789eE") == strcspn(text, "sd");
    const double value = dt__real_read(text, &end);
    *is_time = *end;
    *size = *end == 'd' ? value * 24 * 3600 : value;
    return number && end > text && (!*end || !end[1]) && (*end || value == floor(value));
}

#define MESSAGE(broken, message) message,
const char *const dt__rule_messages[] = {RULES(MESSAGE) NULL};

dt_status dt__config_check(const struct dt_config *config, int size)
{
    const struct dt_config *c = config;
    struct dt__named_sets sets;
    struct dt__threshold threshold;
    bool evaluates = *c->data.eval || dt__config_holds_out(c);
    bool regresses = c->model.task == DT_TASK_REGRESS, is_time;
    double gap;
    bool classifies = c->model.task == DT_TASK_CLASSIFY;
    bool ftrl = c->train.optimizer == DT_OPT_FTRL;
    bool wide_ftrl = c->train.wide_optimizer == DT_WIDE(FTRL);
    bool lamb = c->train.optimizer == DT_OPT_LAMB;
    bool wide_lamb = c->train.wide_optimizer == DT_WIDE(LAMB);
    bool wire = c->train.wire != DT_WIRE_F32;
    bool encodes = c->data.encode != DT_ENCODE_NONE && c->data.encode != DT_ENCODE_AUTO;
    bool async = c->train.mode == DT_MODE_ASYNC && c->train.staleness != 0; /* 0: as sync */
    const bool split =
        c->model.split > 0 || dt__choice_index(c->model.layers, " \t\n\v\f\r,()", "split") >= 0;
#define BROKEN(broken, message) broken,
    const bool is_broken[] = {RULES(BROKEN)};
    for (int i = 0; dt__rule_messages[i]; i++)
        if (is_broken[i]) return dt_fail(DT_EUSAGE, "%s", dt__rule_messages[i]);
    DT_TRY(dt__threshold_parse(c->eval.threshold, &threshold));
    DT_TRY(dt__sets_parse(config, &sets));
    bool fresh = c->search.folds > 0; /* rows that intervals may use */
    for (size_t i = 0; i < sets.count; i++)
        fresh |= !strcmp(sets.items[i].name, DT__TEST_SET);
    dt__sets_free(&sets);
    if (fresh || !(c->predict.interval > 0)) return DT_OK;
    return dt_fail(DT_EUSAGE, "predict.interval: expected data.test_fraction, a set `test` in "
                              "eval.also, or a search with search.folds: intervals need rows that "
                              "neither trained nor chose");
}

/* ---- a resume -------------------------------------------------------------------------------- */

/* Evaluations set the learning rate if train.schedule=plateau, so the keys of an evaluation change
 * the bits. */
static bool steers_plateau(const struct dt_config *before, const struct dt_config *now,
                           const char *key)
{
    static const char keys[] = "data.eval|data.eval_labels|eval.steps|eval.batches|eval.metric";
    return dt__config_choice_index(keys, key) >= 0 &&
           (before->train.schedule == DT_SCHED_PLATEAU || now->train.schedule == DT_SCHED_PLATEAU);
}

/* Calls `report` for each key with this resume class whose values differ. */
static dt_status changes_report(enum dt__resume resume, const struct dt_config *before,
                                const struct dt_config *now, dt_change_fn *report, void *arg)
{
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        char buffers[2][DT_REAL_TEXT];
        const bool steers = resume == DT__RECORDED && steers_plateau(before, now, option->name);
        if (option->resume != resume && !steers) continue;
        const char *was = dt__option_text(before, option, buffers[0]);
        const char *is = dt__option_text(now, option, buffers[1]);
        /* 0 means whatever value the run has */
        const bool takes_any =
            !strcmp(is, "0") &&
            dt__config_choice_index("run.replicas|run.parts|train.groups", option->name) >= 0;
        if (!takes_any && strcmp(was, is)) DT_TRY(report(arg, option->name, was, is));
    }
    return DT_OK;
}

/* Lists the short forms that model.layers was made from: those that are given, else
 * model.hidden. */
static dt_status short_forms_list(const struct dt_config *config, struct dt_text *out)
{
    static const char *const forms[] = {"model.kind",      "model.activation", "model.dropout",
                                        "model.embedding", "model.wide",       "model.hidden"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct dt__option *option = NULL;
        char value[DT_REAL_TEXT];
        if (!dt__config_is_given(config, forms[i]) &&
            (out->length || strcmp(forms[i], "model.hidden")))
            continue;
        DT_TRY(dt__option_find(forms[i], &option));
        DT_TRY(dt__text_add(out, "%s%s=%.200s", out->length ? ", " : "", forms[i],
                            dt__option_text(config, option, value)));
    }
    return DT_OK;
}

/* Refuses any change: a dt_change_fn whose arg is the current configuration. */
static dt_status refuse_change(void *arg, const char *key, const char *before, const char *now)
{
    const struct dt_config *config = arg;
    struct dt_text forms = {0};
    dt_status status = DT_OK;
    if (!strcmp(key, "model.layers") && !dt__config_is_given(config, key))
        status = short_forms_list(config, &forms);
    if (!status)
        status = dt_fail(DT_EMISMATCH,
                         "%s%s%.200s: the run to resume has %.200s, and must keep it "
                         "(another run needs another run.dir)",
                         forms.length ? forms.data : key, forms.length ? ", which makes " : "=",
                         now, *before ? before : "none");
    dt__text_free(&forms);
    return status;
}

/* Refuses two kinds of change of RECORDED keys; a dt_change_fn whose arg is the current
 * configuration.
 * - Rates of ftrl: it computes the weights from its sums with the current rate.
 * - Switching momentum on or off while the linear path has a separate rule: the two rules then
 *   share the state vectors differently, so the checkpoint's state would be lost. */
static dt_status recorded_check(void *arg, const char *key, const char *before, const char *now)
{
    const struct dt_config *config = arg;
    const bool main_ftrl = config->train.optimizer == DT_OPT_FTRL;
    const bool own_rate = config->train.wide_lr > 0;
    const bool wide_ftrl = config->train.wide_optimizer == DT_WIDE(FTRL);
    const bool is_rate = (!strcmp(key, "train.lr") && (main_ftrl || (wide_ftrl && !own_rate))) ||
                         (!strcmp(key, "train.wide_lr") && wide_ftrl) ||
                         (!strcmp(key, "train.epsilon") && main_ftrl);
    const bool shares = !strcmp(key, "train.momentum") && config->train.wide_optimizer &&
                        (!strcmp(before, "0") || !strcmp(now, "0"));
    return is_rate || shares ? refuse_change(arg, key, before, now) : DT_OK;
}

dt_status dt__config_match(const struct dt_config *before, const struct dt_config *now)
{
    void *arg = (void *)(uintptr_t)now;
    DT_TRY(changes_report(DT__FIXED, before, now, refuse_change, arg));
    return changes_report(DT__RECORDED, before, now, recorded_check, arg);
}

/* Refuses changes of the FREE keys that trials depend on; a dt_change_fn whose arg is the current
 * configuration. */
static dt_status refuse_other_trials(void *arg, const char *key, const char *before,
                                     const char *now)
{
    static const char keys[] =
        "run.preset|run.init|data.eval|data.eval_labels|model.kind|model.hidden|model.activation|"
        "model.dropout|model.embedding|model.wide|train.epochs|train.max_steps|eval.steps|"
        "eval.batches|eval.metric|eval.weighted|eval.patience|eval.positive|eval.threshold|"
        "eval.calibrate|predict.interval";
    return dt__config_choice_index(keys, key) >= 0 ? refuse_change(arg, key, before, now) : DT_OK;
}

dt_status dt__config_match_search(const struct dt_config *before, const struct dt_config *now)
{
    void *arg = (void *)(uintptr_t)now;
    DT_TRY(changes_report(DT__FIXED, before, now, refuse_change, arg));
    DT_TRY(changes_report(DT__RECORDED, before, now, refuse_change, arg));
    return changes_report(DT__FREE, before, now, refuse_other_trials, arg);
}

dt_status dt__config_changes(const struct dt_config *before, const struct dt_config *now,
                             dt_change_fn *report, void *arg)
{
    return changes_report(DT__RECORDED, before, now, report, arg);
}
