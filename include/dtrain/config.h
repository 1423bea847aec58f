/* config: one table of options. The struct, parsing, printing, `dtrain options`, `--help` and the
 * README's table all derive from DT_OPTIONS. */
#ifndef DTRAIN_CONFIG_H
#define DTRAIN_CONFIG_H

#include "dtrain/base.h"

/* Choices: the words of an enumerated option, in the order of the C enumerators. */
#define DT_FORMAT_WORDS "auto|idx|csv|libsvm|hdf5"
enum dt_format { DT_FORMAT_AUTO, DT_FORMAT_IDX, DT_FORMAT_CSV, DT_FORMAT_LIBSVM, DT_FORMAT_HDF5 };
#define DT_HEADER_WORDS "auto|yes|no"
enum dt_header { DT_HEADER_AUTO, DT_HEADER_YES, DT_HEADER_NO };
#define DT_NORMALIZE_WORDS "none|standard"
enum dt_normalize { DT_NORMALIZE_NONE, DT_NORMALIZE_STANDARD };
#define DT_KIND_WORDS "linear|mlp"
enum dt_kind { DT_KIND_LINEAR, DT_KIND_MLP };
#define DT_ACTIVATION_WORDS "relu|tanh|sigmoid|gelu"
enum dt_activation { DT_RELU, DT_TANH, DT_SIGMOID, DT_GELU };
#define DT_TASK_WORDS "classify|regress"
enum dt_task { DT_CLASSIFY, DT_REGRESS };
#define DT_MODE_WORDS "sync|async"
enum dt_mode { DT_SYNC, DT_ASYNC };
#define DT_OPTIMIZER_WORDS "sgd|nesterov|adagrad|rmsprop|adam|adamw"
enum dt_optimizer_kind { DT_SGD, DT_NESTEROV, DT_ADAGRAD, DT_RMSPROP, DT_ADAM, DT_ADAMW };
#define DT_SCHEDULE_WORDS "constant|linear|cosine|exponential|step"
enum dt_schedule_kind { DT_CONSTANT, DT_LINEAR, DT_COSINE, DT_EXPONENTIAL, DT_STEP };
#define DT_EXCHANGE_WORDS "auto|reduce|node|ordered"
enum dt_exchange_kind { DT_EXCHANGE_AUTO, DT_REDUCE, DT_NODE, DT_ORDERED };

/* Types: INT (int64_t), REAL (double), BOOL (bool), TEXT (char *, never NULL), WORD (int; one of the
 * words). Range: least and greatest value; for WORD the words.
 *
 * X(section, key, TYPE, default as text, min, max, words or NULL, resume: FIXED or FREE, help)
 * FIXED keys define the run: a resume that changes one is refused. FREE keys may change. */
#define DT_OPTIONS_run(X)                                                                          \
    X(run, dir, TEXT, "run", 0, 0, NULL, FREE,                                                     \
      "run directory: config, metrics, checkpoints, exports")                                      \
    X(run, seed, INT, "1", 0, 9e15, NULL, FIXED,                                                   \
      "seed of initial weights, data order and dropout")                                           \
    X(run, replicas, INT, "0", 0, 65536, NULL, FIXED,                                              \
      "logical workers R; 0: as many as workers at the first start")                               \
    X(run, threads, INT, "1", 1, 1024, NULL, FIXED, "BLAS threads of a rank")                      \
    X(run, reproducible, BOOL, "no", 0, 0, NULL, FREE,                                             \
      "insist on the same bits at any number of ranks and hosts")                                  \
    X(run, kernel, TEXT, "auto", 0, 0, NULL, FREE,                                                 \
      "of matrix products: oneDNN, or OpenBLAS's as OPENBLAS_CORETYPE has it (Haswell, Zen, "      \
      "...); auto: from a table of CPU models; env: what the environment says")                    \
    X(run, resume, TEXT, "auto", 0, 0, NULL, FREE,                                                 \
      "auto: continue from the newest checkpoint; never: an error if there is one; or a "          \
      "checkpoint's path")                                                                         \
    X(run, checkpoint_steps, INT, "0", 0, 9e15, NULL, FREE,                                        \
      "checkpoint every so many steps; 0: off")                                                    \
    X(run, checkpoint_secs, REAL, "600", 0, 1e9, NULL, FREE,                                       \
      "checkpoint every so many seconds; 0: off")                                                  \
    X(run, keep, INT, "5", 0, 1e9, NULL, FREE, "checkpoints to keep; 0: all")                      \
    X(run, log_steps, INT, "100", 1, 9e15, NULL, FREE, "steps between train records")              \
    X(run, stall_secs, REAL, "600", 0, 1e9, NULL, FREE,                                            \
      "the watchdog ends the job after so long without progress; 0: off")

#define DT_OPTIONS_data(X)                                                                         \
    X(data, train, TEXT, "", 0, 0, NULL, FIXED, "training files or globs, comma-separated")        \
    X(data, train_labels, TEXT, "", 0, 0, NULL, FIXED, "label files of the training data (IDX)")   \
    X(data, eval, TEXT, "", 0, 0, NULL, FREE, "held-out files or globs, comma-separated")          \
    X(data, eval_labels, TEXT, "", 0, 0, NULL, FREE, "label files of the held-out data (IDX)")     \
    X(data, eval_fraction, REAL, "0", 0, 0.9, NULL, FIXED,                                         \
      "hold out this fraction of the training rows")                                               \
    X(data, format, WORD, "auto", 0, 0, DT_FORMAT_WORDS, FIXED,                                    \
      "file format; auto: by content and name")                                                    \
    X(data, header, WORD, "auto", 0, 0, DT_HEADER_WORDS, FIXED,                                    \
      "CSV: whether the first row names the columns")                                              \
    X(data, label, TEXT, "-1", 0, 0, NULL, FIXED,                                                  \
      "CSV: label column by name or number from 0, negative from the end")                         \
    X(data, ignore, TEXT, "", 0, 0, NULL, FIXED,                                                   \
      "CSV: columns to leave out, names or numbers, comma-separated")                              \
    X(data, scale, REAL, "1", -1e30, 1e30, NULL, FIXED, "factor on every feature")                 \
    X(data, normalize, WORD, "none", 0, 0, DT_NORMALIZE_WORDS, FIXED,                              \
      "standard: zero mean and unit variance, statistics kept in the model")                       \
    X(data, memory_mb, INT, "1024", 1, 1e8, NULL, FIXED,                                           \
      "MiB a rank for data; what is larger is streamed")                                           \
    X(data, shuffle_window, INT, "0", 0, 9e15, NULL, FIXED,                                        \
      "rows in the window of a streamed shuffle; 0: as memory_mb allows")

#define DT_OPTIONS_model(X)                                                                        \
    X(model, kind, WORD, "mlp", 0, 0, DT_KIND_WORDS, FIXED,                                        \
      "linear: no hidden layer; mlp: a multilayer perceptron")                                     \
    X(model, hidden, TEXT, "512,256", 0, 0, NULL, FIXED,                                           \
      "mlp: widths of the hidden layers, comma-separated")                                         \
    X(model, activation, WORD, "relu", 0, 0, DT_ACTIVATION_WORDS, FIXED,                           \
      "mlp: activation of the hidden layers (gelu: by erf)")                                       \
    X(model, dropout, REAL, "0", 0, 0.95, NULL, FIXED,                                             \
      "mlp: probability to drop a hidden unit in training")                                        \
    X(model, task, WORD, "classify", 0, 0, DT_TASK_WORDS, FIXED,                                   \
      "classify: cross-entropy; regress: squared error")

#define DT_OPTIONS_train(X)                                                                        \
    X(train, mode, WORD, "sync", 0, 0, DT_MODE_WORDS, FIXED,                                       \
      "sync: averaged gradients; async: Downpour SGD")                                             \
    X(train, batch, INT, "128", 0, 1e9, NULL, FIXED,                                               \
      "global batch: samples a step over all replicas; 0: the whole data set")                     \
    X(train, epochs, REAL, "10", 0, 1e9, NULL, FREE, "passes over the training data")              \
    X(train, max_steps, INT, "-1", -1, 9e15, NULL, FREE,                                           \
      "last step, absolute; -1: none; 0: write step 0 and end")                                    \
    X(train, optimizer, WORD, "sgd", 0, 0, DT_OPTIMIZER_WORDS, FIXED,                              \
      "update rule, with the numbers of PyTorch's optimizer of this name (nesterov: sgd's)")       \
    X(train, lr, REAL, "0.01", 0, 1e9, NULL, FIXED, "learning rate")                               \
    X(train, momentum, REAL, "0.9", 0, 0.999999, NULL, FIXED, "sgd, nesterov, rmsprop: momentum")  \
    X(train, beta1, REAL, "0.9", 0, 0.999999, NULL, FIXED,                                         \
      "adam, adamw: decay of the first moment")                                                    \
    X(train, beta2, REAL, "0.999", 0, 0.99999999, NULL, FIXED,                                     \
      "adam, adamw: decay of the second moment")                                                   \
    X(train, alpha, REAL, "0.99", 0, 0.99999999, NULL, FIXED,                                      \
      "rmsprop: decay of the mean square of the gradient")                                         \
    X(train, epsilon, REAL, "-1", -1, 1, NULL, FIXED,                                              \
      "added to the denominator; -1: 1e-10 for adagrad, 1e-8 for the others")                      \
    X(train, weight_decay, REAL, "0", 0, 1e9, NULL, FIXED,                                         \
      "L2 penalty on all parameters; decoupled in adamw")                                          \
    X(train, clip_norm, REAL, "0", 0, 1e30, NULL, FIXED,                                           \
      "greatest global norm of a step's gradient; 0: off")                                         \
    X(train, schedule, WORD, "constant", 0, 0, DT_SCHEDULE_WORDS, FIXED,                           \
      "learning rate over the steps")                                                              \
    X(train, warmup_steps, INT, "0", 0, 9e15, NULL, FIXED,                                         \
      "steps in which the rate rises linearly from 0")                                             \
    X(train, decay_steps, INT, "0", 0, 9e15, NULL, FIXED,                                          \
      "length of the schedule, or its interval (exponential, step); 0: the whole run")             \
    X(train, decay_rate, REAL, "0.1", 0, 1, NULL, FIXED, "exponential, step: factor an interval")  \
    X(train, min_lr, REAL, "0", 0, 1e9, NULL, FIXED,                                               \
      "linear, cosine: the rate at the end; else its floor")                                       \
    X(train, exchange, WORD, "auto", 0, 0, DT_EXCHANGE_WORDS, FREE,                                \
      "sync: how gradients reach the bank")                                                        \
    X(train, staleness, INT, "-1", -1, 1e9, NULL, FIXED,                                           \
      "async: greatest clock gap; -1: no bound; 0: runs sync")                                     \
    X(train, staleness_lr, BOOL, "no", 0, 0, NULL, FIXED,                                          \
      "async: divide the rate by 1 + staleness")                                                   \
    X(train, delay_compensation, REAL, "0", 0, 1e9, NULL, FIXED,                                   \
      "async: lambda of DC-ASGD; 0: off")                                                          \
    X(train, warm_start_steps, INT, "0", 0, 9e15, NULL, FIXED,                                     \
      "async: steps that one worker does alone first")

#define DT_OPTIONS_eval(X)                                                                         \
    X(eval, steps, INT, "0", -1, 9e15, NULL, FREE,                                                 \
      "evaluate in place every so many steps; 0: each epoch; -1: only at the end")                 \
    X(eval, batches, INT, "0", 0, 9e15, NULL, FREE, "first N chunks of 256 rows; 0: all")          \
    X(eval, metric, WORD, "auto", 0, 0, DT_METRIC_WORDS, FREE,                                     \
      "what makes a model the best; auto: accuracy or rmse")                                       \
    X(eval, patience, INT, "0", 0, 1e9, NULL, FREE,                                                \
      "early stop after so many evaluations without a better metric; 0: off")                      \
    X(eval, dedicated, BOOL, "no", 0, 0, NULL, FREE,                                               \
      "the last rank evaluates checkpoints, training does not wait")                               \
    X(eval, throttle_secs, REAL, "0", 0, 1e9, NULL, FREE,                                          \
      "dedicated: least time between evaluations")                                                 \
    X(eval, start_delay_secs, REAL, "0", 0, 1e9, NULL, FREE,                                       \
      "dedicated: time before the first evaluation")

#define DT_OPTIONS_export(X)                                                                       \
    X(export, latest, BOOL, "yes", 0, 0, NULL, FREE, "export a model with each checkpoint")        \
    X(export, best, BOOL, "yes", 0, 0, NULL, FREE, "export the best model by eval.metric")         \
    X(export, keep, INT, "5", 0, 1e9, NULL, FREE, "exported versions to keep; 0: all")

/* Hooks for tests; not in `dtrain options`. */
#define DT_OPTIONS_test(X)                                                                         \
    X(test, slow_rank, INT, "-1", -1, 1e9, NULL, FREE,                                             \
      "this rank sleeps test.slow_secs a step, and a chunk of an evaluation")                      \
    X(test, slow_secs, REAL, "0", 0, 1e6, NULL, FREE, "see test.slow_rank")

#define DT_METRIC_WORDS "auto|loss|accuracy|top5|auc|rmse|mae|r2"
enum dt_metric {
    DT_METRIC_AUTO,
    DT_METRIC_LOSS,
    DT_METRIC_ACCURACY,
    DT_METRIC_TOP5,
    DT_METRIC_AUC,
    DT_METRIC_RMSE,
    DT_METRIC_MAE,
    DT_METRIC_R2
};

#define DT_SECTIONS(S) S(run) S(data) S(model) S(train) S(eval) S(export) S(test)

#define DT_FIELD_INT int64_t
#define DT_FIELD_REAL double
#define DT_FIELD_BOOL bool
#define DT_FIELD_TEXT char *
#define DT_FIELD_WORD int
#define DT_FIELD(section, key, type, ...) DT_FIELD_##type key;
#define DT_SECTION_STRUCT(section)                                                                 \
    struct {                                                                                       \
        DT_OPTIONS_##section(DT_FIELD)                                                             \
    } section;

/* All options, resolved: cfg->train.lr and so on. */
struct dt_config {
    DT_SECTIONS(DT_SECTION_STRUCT)
};

/* Sets every option to its default. Free with dt_config_free. */
dt_status dt_config_init(struct dt_config *config);
void dt_config_free(struct dt_config *config);

/* Reads an INI file over what is set: [section], key = value, comments from ';' or '#' at the start of a
 * line or from " ;" on. A value may stand in double quotes, with \\, \" and \xHH inside, but \x3b for
 * ';'. Integers may be written 1e6.
 * DT_EUSAGE: cannot be read, syntax, unknown section or key (names the nearest), a key given twice,
 * wrong type or out of range; the message begins "FILE:LINE: ". */
dt_status dt_config_read_file(struct dt_config *config, const char *path);
/* The same from memory; `name` stands for the file in messages. */
dt_status dt_config_read_text(struct dt_config *config, const char *name, const char *text);

/* Sets one option from "section.key=value". DT_EUSAGE as above, the message begins with the key. */
dt_status dt_config_set(struct dt_config *config, const char *assignment);

/* Checks that hold between keys and with `size` ranks (async needs 2, a dedicated evaluator 3, ...);
 * size 0: no check of ranks. DT_EUSAGE names the keys. */
dt_status dt_config_check(const struct dt_config *config, int size);

/* The whole config as an INI text that reads back to the same values (numbers in shortest form that
 * round-trips). Test hooks are left out unless set. Caller frees with dt_free. */
dt_status dt_config_print(const struct dt_config *config, char **out_text);

/* CRC-32C of dt_config_print without run.dir and run.resume. */
dt_status dt_config_crc(const struct dt_config *config, uint32_t *out);

/* A resume with `now` of a run that was made with `before`: DT_EMISMATCH names the first FIXED key
 * that differs, with both values. now->run.replicas 0 matches any. */
dt_status dt_config_match(const struct dt_config *before, const struct dt_config *now);

/* `dtrain options`: every key with type, range, default and meaning, to `out`; as a Markdown table
 * if `markdown`. */
void dt_config_describe(FILE *out, bool markdown);

/* The word of an enumerated value, e.g. dt_config_word(DT_MODE_WORDS, DT_SYNC) -> "sync"; copied
 * into a buffer of at least 16 bytes, which is returned. */
const char *dt_config_word(const char *words, int value, char buffer[16]);

#endif
