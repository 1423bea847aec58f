/* config: one table of options, DT_OPTIONS_*. The struct, parsing, printing, `dtrain options`,
 * completions and the page dtrain-config(5) all derive from it. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/base.h"
#include "dtrain/config.h"

/* Choices: the words of each enumerated option, in the order of its C enumerators. */
#define DT_FORMAT_CHOICES "auto|idx|csv|libsvm|json|hdf5"
enum dt_format {
    DT_FORMAT_AUTO,
    DT_FORMAT_IDX,
    DT_FORMAT_CSV,
    DT_FORMAT_LIBSVM,
    DT_FORMAT_JSON,
    DT_FORMAT_HDF5
};
#define DT_HEADER_CHOICES "auto|yes|no"
enum dt_header { DT_HEADER_AUTO, DT_HEADER_YES, DT_HEADER_NO };
#define DT_NORMALIZE_CHOICES "none|standard|robust"
enum dt_normalize { DT_NORMALIZE_NONE, DT_NORMALIZE_STANDARD, DT_NORMALIZE_ROBUST };
#define DT_ENCODE_CHOICES "none|normal|ple|cosine|auto"
enum dt_encode {
    DT_ENCODE_NONE,
    DT_ENCODE_NORMAL,
    DT_ENCODE_PLE,
    DT_ENCODE_COSINE,
    DT_ENCODE_AUTO
};
#define DT_NORMALIZE_TARGET_CHOICES "auto|no|yes"
enum dt_normalize_target {
    DT_NORMALIZE_TARGET_AUTO,
    DT_NORMALIZE_TARGET_NO,
    DT_NORMALIZE_TARGET_YES
};
#define DT_PRECISION_CHOICES "f32|bf16"
enum dt_precision { DT_PRECISION_F32, DT_PRECISION_BF16 };
#define DT_KIND_CHOICES "linear|mlp"
enum dt_kind { DT_KIND_LINEAR, DT_KIND_MLP };
#define DT_ACTIVATION_CHOICES "relu|tanh|sigmoid|gelu|silu|leaky_relu|softplus"
enum dt_activation {
    DT_ACT_RELU,
    DT_ACT_TANH,
    DT_ACT_SIGMOID,
    DT_ACT_GELU,
    DT_ACT_SILU,
    DT_ACT_LEAKY_RELU,
    DT_ACT_SOFTPLUS
};
#define DT_OUTPUT_BIAS_CHOICES "auto|zero|baseline"
enum dt_output_bias { DT_OUTPUT_BIAS_AUTO, DT_OUTPUT_BIAS_ZERO, DT_OUTPUT_BIAS_BASELINE };
#define DT_TASK_CHOICES "classify|regress|multilabel"
#define DT_CLASS_WEIGHT_CHOICES "none|balanced"
enum dt_class_weight { DT_CLASS_WEIGHT_NONE, DT_CLASS_WEIGHT_BALANCED };
#define DT_UNLABELLED_CHOICES "error|skip"
enum dt_unlabelled { DT_UNLABELLED_ERROR, DT_UNLABELLED_SKIP };
#define DT_DECIMAL_CHOICES ".|,"
enum dt_decimal { DT_DECIMAL_POINT, DT_DECIMAL_COMMA };
#define DT_DATES_CHOICES "auto|error"
enum dt_dates { DT_DATES_AUTO, DT_DATES_ERROR };
#define DT_MISSING_CHOICES "error|mean|flag"
enum dt_missing { DT_MISSING_ERROR, DT_MISSING_MEAN, DT_MISSING_FLAG };
enum dt_task { DT_TASK_CLASSIFY, DT_TASK_REGRESS, DT_TASK_MULTILABEL };
#define DT_LOSS_CHOICES "auto|mse|mae|huber|poisson|binary|quantile"
enum dt_loss {
    DT_LOSS_AUTO,
    DT_LOSS_MSE,
    DT_LOSS_MAE,
    DT_LOSS_HUBER,
    DT_LOSS_POISSON,
    DT_LOSS_BINARY,
    DT_LOSS_QUANTILE
};
#define DT_MODE_CHOICES "sync|async"
enum dt_mode { DT_MODE_SYNC, DT_MODE_ASYNC };
#define DT_OPTIMIZER_CHOICES "sgd|nesterov|adagrad|rmsprop|adam|adamw|ftrl|lamb"
enum dt_optimizer_kind {
    DT_OPT_SGD,
    DT_OPT_NESTEROV,
    DT_OPT_ADAGRAD,
    DT_OPT_RMSPROP,
    DT_OPT_ADAM,
    DT_OPT_ADAMW,
    DT_OPT_FTRL,
    DT_OPT_LAMB
};
#define DT_WIDE_OPTIMIZER_CHOICES "same|" DT_OPTIMIZER_CHOICES /* enum dt_optimizer_kind + 1 */
#define DT_WIDE(key) (DT_OPT_##key + 1)                        /* 0 is "same" */
#define DT_SCHEDULE_CHOICES "constant|linear|cosine|exponential|step|plateau"
enum dt_schedule_kind {
    DT_SCHED_CONSTANT,
    DT_SCHED_LINEAR,
    DT_SCHED_COSINE,
    DT_SCHED_EXPONENTIAL,
    DT_SCHED_STEP,
    DT_SCHED_PLATEAU
};
#define DT_EXCHANGE_CHOICES "auto|reduce|node|ordered"
enum dt_exchange_kind {
    DT_EXCHANGE_AUTO,
    DT_EXCHANGE_REDUCE,
    DT_EXCHANGE_NODE,
    DT_EXCHANGE_ORDERED
};
#define DT_WIRE_CHOICES "f32|bf16|q8"
enum dt_wire { DT_WIRE_F32, DT_WIRE_BF16, DT_WIRE_Q8 };

#define DT_EXPORT_CHOICES "no|yes|better"
enum dt_export { DT_EXPORT_NO, DT_EXPORT_YES, DT_EXPORT_BETTER };
#define DT_PREDICT_FORMAT_CHOICES "json|csv"
enum dt_predict_format { DT_PREDICT_JSON, DT_PREDICT_CSV };
#define DT_PRESET_CHOICES "auto|table|none"
enum dt_preset { DT_PRESET_AUTO, DT_PRESET_TABLE, DT_PRESET_NONE };
/* The settings of run.preset=table that do not depend on the data. */
#define DT_PRESET_TABLE(X)                                                                         \
    X("data.normalize", "robust")                                                                  \
    X("train.optimizer", "adamw")                                                                  \
    X("train.lr", "0.002") X("train.schedule", "cosine")
#define DT_PRESET_PAIR(key, value) key "=" value ", "

/* X(section, key, TYPE, default as text, min, max, choices or NULL, resume, commands, help)
 *
 * TYPE is INT (int64_t), REAL (double), BOOL (bool), TEXT (char *, never NULL) or CHOICE (int, the
 * index of one of the choices). min and max bound INT and REAL; `choices` lists the words of a
 * CHOICE. `commands` names the commands that take the key.
 *
 * `resume` is FIXED, FREE or RECORDED. FIXED keys define the run: a resume that changes one is
 * refused. FREE keys may change. RECORDED keys may change too, but they change the bits, so the
 * run's history records the change.
 *
 * DT_RETIRED keys no longer have any effect. Old configurations, checkpoints and models list them,
 * so the default value is accepted silently; a run with any other value is refused
 * (src/config/check.c). */
#define DT_RETIRED "" /* in place of `commands` */
#define DT_OPTIONS_run(X)                                                                          \
    X(run, dir, TEXT, "run", 0, 0, NULL, FREE, "train",                                            \
      "run directory: config, metrics, checkpoints, exports")                                      \
    X(run, preset, CHOICE, "auto", 0, 0, DT_PRESET_CHOICES, FREE, "train",                         \
      "table: defaults that suit most tables, for keys that are not given: " DT_PRESET_TABLE(      \
          DT_PRESET_PAIR) "data.normalize_target=yes, data.clamp_target=yes (regress), "           \
                          "eval.metric=loss (classes), "                                           \
                          "model.output_bias=baseline, and, by kind, rows and columns, "           \
                          "data.encode, train.weight_decay, train.epochs, train.batch, "           \
                          "eval.steps, eval.patience, model.hidden, model.dropout, and, with "     \
                          "many texts, model.embedding, model.wide, train.wide_lr and "            \
                          "train.decay_matrices; the start prints them. With another "             \
                          "train.optimizer than adamw no rate, weight decay and schedule. "        \
                          "auto: table for CSV if neither train.optimizer nor train.lr is given, " \
                          "else none")                                                             \
    X(run, seed, INT, "1", 0, 9e15, NULL, FIXED, "train shard",                                    \
      "seed of initial weights, data order and dropout")                                           \
    X(run, replicas, INT, "0", 0, 65536, NULL, FIXED, "train",                                     \
      "R: each batch is divided into R parts, called replicas, which the workers share. The "      \
      "result depends on R, not on the number of workers. 0: the number of workers at the "        \
      "first start, but at least train.groups")                                                    \
    X(run, parts, INT, "0", 0, 1024, NULL, FIXED, "train",                                         \
      "number of parts into which the outputs (neurons) of each split layer (model.split) "        \
      "are divided. Workers share the parts. The result depends on this number. 0: 16 at the "     \
      "first start")                                                                               \
    X(run, threads, INT, "1", 1, 1024, NULL, FIXED, "train eval predict serve",                    \
      "BLAS threads per rank")                                                                     \
    X(run, precision, CHOICE, "f32", 0, 0, DT_PRECISION_CHOICES, FIXED, "train",                   \
      "precision of the matrix products in all layers except the last; bf16: operands in "         \
      "bf16, sums in f32. Weights, optimizer, loss and every evaluation stay f32")                 \
    X(run, reproducible, BOOL, "no", 0, 0, NULL, FREE, "train",                                    \
      "refuse settings and hosts with which the result would depend on the number of ranks "       \
      "or hosts, or on timing")                                                                    \
    X(run, kernel, TEXT, "auto", 0, 0, NULL, FREE, "train eval predict serve",                     \
      "kernel of the matrix products: oneDNN, or one of OpenBLAS by its name (Haswell, Zen, "      \
      "..., as in OPENBLAS_CORETYPE); portable: the program's own, with the same bits on every "   \
      "x86 CPU that has AVX2 and FMA; auto: chosen by the model of the CPU; env: what the "        \
      "environment says. Another kernel gives other bits")                                         \
    X(run, resume, TEXT, "auto", 0, 0, NULL, FREE, "train",                                        \
      "auto: continue from the newest checkpoint; never: an error if there is a "                  \
      "checkpoint; or the path of a checkpoint")                                                   \
    X(run, init, TEXT, "", 0, 0, NULL, FREE, "train",                                              \
      "initial weights of a new run: a model, a checkpoint, or a run directory (its newest "       \
      "checkpoint); layers are taken where they fit")                                              \
    X(run, checkpoint_steps, INT, "0", 0, 9e15, NULL, FREE, "train",                               \
      "checkpoint every N steps; 0: off")                                                          \
    X(run, checkpoint_secs, REAL, "600", 0, 1e9, NULL, FREE, "train",                              \
      "checkpoint every N seconds; 0: off")                                                        \
    X(run, keep, INT, "5", 0, 1e9, NULL, FREE, "train", "checkpoints to keep; 0: all")             \
    X(run, log_steps, INT, "100", 1, 9e15, NULL, FREE, "train", "steps between train records")     \
    X(run, stall_secs, REAL, "600", 0, 1e9, NULL, FREE, "train",                                   \
      "the watchdog ends the job after so long without progress; 0: off")

#define DT_OPTIONS_data(X)                                                                         \
    X(data, train, TEXT, "", 0, 0, NULL, FIXED, "train shard",                                     \
      "training files or globs, comma-separated")                                                  \
    X(data, train_labels, TEXT, "", 0, 0, NULL, FIXED, "train shard",                              \
      "label files of the training data (IDX)")                                                    \
    X(data, eval, TEXT, "", 0, 0, NULL, FREE, "train eval predict",                                \
      "held-out files or globs, comma-separated")                                                  \
    X(data, eval_labels, TEXT, "", 0, 0, NULL, FREE, "train eval predict",                         \
      "label files of the held-out data (IDX)")                                                    \
    X(data, eval_fraction, REAL, "0", 0, 0.9, NULL, FIXED, "train",                                \
      "hold out this fraction of the training rows")                                               \
    X(data, folds, INT, "0", 0, 1000, NULL, FIXED, "train",                                        \
      "K: cut the training rows into K parts, of which data.fold is held out, in place of "        \
      "data.eval_fraction; 0: off")                                                                \
    X(data, fold, INT, "0", 0, 999, NULL, FIXED, "train",                                          \
      "with data.folds: the part that is held out, from 0; with data.time, 0 has the latest rows") \
    X(data, split_seed, INT, "-1", -1, 9e15, NULL, FIXED, "train",                                 \
      "seed of the choice of held-out rows; -1: run.seed")                                         \
    X(data, test_fraction, REAL, "0", 0, 0.9, NULL, FIXED, "train",                                \
      "take this fraction of the training rows as a test set before any other is held out: it "    \
      "chooses nothing, and is measured once, at the end, by the best model")                      \
    X(data, stratify, BOOL, "yes", 0, 0, NULL, FIXED, "train",                                     \
      "held-out and test rows have their fraction of each class; no: they are drawn at random "    \
      "(in configurations and models that lack the key: no)")                                      \
    X(data, group, TEXT, "", 0, 0, NULL, FIXED, "train shard inspect",                             \
      "rows of one group are either trained on or held out: a column, which is no feature then; "  \
      "HDF5: a data set; LIBSVM and IDX: a file for each data file, one value a line")             \
    X(data, time, TEXT, "", 0, 0, NULL, FIXED, "train shard inspect",                              \
      "held-out and test rows are the latest: a column of numbers or dates, which stays a "        \
      "feature unless data.ignore has it; HDF5, LIBSVM and IDX: as data.group")                    \
    X(data, gap, TEXT, "0", 0, 0, NULL, FIXED, "train",                                            \
      "with data.time: what is left out in front of held-out and of test rows: so many rows, or "  \
      "a time such as 3600s or 2d (numbers of data.time count seconds)")                           \
    X(data, format, CHOICE, "auto", 0, 0, DT_FORMAT_CHOICES, FIXED, "train eval predict shard",    \
      "file format; auto: by content and name")                                                    \
    X(data, header, CHOICE, "auto", 0, 0, DT_HEADER_CHOICES, FIXED,                                \
      "train eval predict shard inspect", "CSV: whether the first row names the columns")          \
    X(data, label, TEXT, "-1", 0, 0, NULL, FIXED, "train eval predict shard inspect",              \
      "CSV: the column to predict, by name or number. Numbers count from 0, or from -1 at "        \
      "the end. regress and multilabel: one or more, comma-separated; \\, is a comma of a name")   \
    X(data, ignore, TEXT, "", 0, 0, NULL, FIXED, "train eval predict shard inspect",               \
      "CSV: columns to leave out: names or numbers, as for data.label, comma-separated")           \
    X(data, weight, TEXT, "", 0, 0, NULL, FIXED, "train shard inspect",                            \
      "CSV: column with the weights of the training rows, relative to their mean, which shards "   \
      "keep; empty: none")                                                                         \
    X(data, separator, TEXT, "auto", 0, 0, NULL, FIXED, "train eval predict shard inspect",        \
      "CSV: auto (comma, semicolon, tab, bar, or else blanks), tab, space or a character. space: " \
      "a run of blanks or tabs is one separator, also at the start and end of a line")             \
    X(data, unlabelled, CHOICE, "error", 0, 0, DT_UNLABELLED_CHOICES, FIXED,                       \
      "train eval predict shard", "CSV: rows without a label are an error, or are left out")       \
    X(data, decimal, CHOICE, ".", 0, 0, DT_DECIMAL_CHOICES, FIXED,                                 \
      "train eval predict shard inspect", "CSV: character before the decimals of numbers: . or ,") \
    X(data, missing, CHOICE, "error", 0, 0, DT_MISSING_CHOICES, FIXED, "train shard inspect",      \
      "CSV: what a gap means (an empty field, NA, N/A, NaN, null or ?). error: a gap is an "       \
      "error. mean: a number takes the column's mean in the training data. flag: as mean, "        \
      "and a 0/1 column marks the gaps. With mean and flag a gap in a column of texts is a "       \
      "separate category")                                                                         \
    X(data, categories, TEXT, "auto", 0, 0, NULL, FIXED, "train shard inspect",                    \
      "CSV: columns whose texts become features. auto: those whose first value is a text. A "      \
      "list of columns (names or numbers): these as well, even if their values are numbers, "      \
      "or texts that are nearly all different. none: a text is an error, unless data.ignore "      \
      "leaves its column out. Each different text of a column becomes one 0/1 feature; one "       \
      "more is for texts that training never saw")                                                 \
    X(data, dates, CHOICE, "auto", 0, 0, DT_DATES_CHOICES, FIXED, "train shard inspect",           \
      "CSV columns of dates (2021-03-04, 4.3.2021, 3/4/2021, with or without a time): auto: each " \
      "becomes numbers: days since 1970, year, month, weekday (Monday is 1), and hour where "      \
      "there are times (zones are not looked at); times alone (13:25) become the hour; "           \
      "error: they are an error")                                                                  \
    X(data, class_names, TEXT, "", 0, 0, NULL, FIXED, "train shard",                               \
      "names of the classes: comma-separated, or a file with one a line. If labels are numbers "   \
      "from 0: names of 0, 1, ..., also of classes that no row has. If they are other numbers: a " \
      "name for each, in numeric order. If labels are texts, or to choose the order of numbers: "  \
      "list the labels themselves. Of two classes the second is the positive one")                 \
    X(data, min_count, INT, "1", 1, 9e15, NULL, FIXED, "train shard",                              \
      "texts of a column that occur less often than this in training all become one "              \
      "category. Texts that training never saw belong to it too")                                  \
    X(data, hash_bits, INT, "0", 0, 26, NULL, FIXED, "train shard",                                \
      "B: texts of all columns are hashed to 2^B features, without dictionaries; 0: one "          \
      "dictionary per column")                                                                     \
    X(data, features, INT, "0", 0, 2147483647, NULL, FIXED, "train shard",                         \
      "LIBSVM: number of features; greater indices are ignored; 0: the greatest index in "         \
      "the training data, at most 16777216")                                                       \
    X(data, augment, TEXT, "", 0, 0, NULL, FIXED, "train",                                         \
      "changes to training pictures: any of shift N, flip, cutout N, noise DEVIATION")             \
    X(data, x, TEXT, "/x", 0, 0, NULL, FIXED, "train eval predict shard",                          \
      "HDF5: data set of the rows")                                                                \
    X(data, y, TEXT, "/y", 0, 0, NULL, FIXED, "train eval predict shard",                          \
      "HDF5: data set of labels (whole numbers, texts or one-hot rows) or targets")                \
    X(data, shape, TEXT, "", 0, 0, NULL, FIXED, "train shard",                                     \
      "shape of a row, HEIGHTxWIDTHxCHANNELS, for layers that need one; empty: the file's")        \
    X(data, scale, REAL, "1", -1e30, 1e30, NULL, FIXED, "train",                                   \
      "factor by which every feature is multiplied")                                               \
    X(data, normalize, CHOICE, "none", 0, 0, DT_NORMALIZE_CHOICES, FIXED, "train",                 \
      "standard: features with mean 0 and variance 1, statistics kept in the model; "              \
      "robust: the same, but misprints and other outliers do not change the statistics; it "       \
      "also sets data.clip=5 if that is 0")                                                        \
    X(data, clip, REAL, "0", 0, 1e9, NULL, FIXED, "train",                                         \
      "limits features to this value and its negative, after scaling and normalisation, so "       \
      "that outliers do not decide a prediction (5 is usual for tables); 0: off, or 5 with "       \
      "data.normalize=robust")                                                                     \
    X(data, encode, CHOICE, "auto", 0, 0, DT_ENCODE_CHOICES, FIXED, "train",                       \
      "further inputs from each number of a table (not from texts, flags or columns of two "       \
      "values): normal: z, the normal quantile of its rank; ple: z and piecewise linear "          \
      "fractions of it; cosine: z and cosines of it at fixed random frequencies; auto: with "      \
      "run.preset=table as rows and columns suggest, else none")                                   \
    X(data, encode_bins, INT, "16", 2, 256, NULL, FIXED, "train",                                  \
      "data.encode=ple: bins of a number, each of as many rows where values differ")               \
    X(data, encode_scale, REAL, "0.2", 0.001, 100, NULL, FIXED, "train",                           \
      "data.encode=cosine: deviation of the frequencies")                                          \
    X(data, encode_width, INT, "24", 1, 256, NULL, FIXED, "train",                                 \
      "data.encode=cosine: frequencies of a number")                                               \
    X(data, normalize_target, CHOICE, "auto", 0, 0, DT_NORMALIZE_TARGET_CHOICES, FIXED, "train",   \
      "regress: yes: learn targets with mean 0 and deviation 1; losses and predictions stay "      \
      "in the units of the targets; auto: yes if a target's mean is above 10 or below -10, "       \
      "or its deviation is below 0.1 or above 10")                                                 \
    X(data, clamp_target, BOOL, "no", 0, 0, NULL, FIXED, "train",                                  \
      "regress: predictions stay within the range of the training targets, so that a strange row " \
      "gets no strange value. A trend that goes on beyond that range needs no")                    \
    X(data, memory_mb, INT, "1024", 1, 1e8, NULL, FIXED, "train eval predict shard",               \
      "MiB per rank for data; larger data is streamed")                                            \
    X(data, shuffle_window, INT, "0", 0, 9e15, NULL, FIXED, "train",                               \
      "rows in the window of a streamed shuffle; 0: as memory_mb allows")

#define DT_OPTIONS_model(X)                                                                        \
    X(model, layers, TEXT, "", 0, 0, NULL, FIXED, "train",                                         \
      "the network: layers, comma-separated, e.g. dense 512 relu, dropout 0.2, dense 256 "         \
      "relu. The word linear alone: no hidden layer. Empty: made from model.kind, "                \
      "model.hidden, model.activation and model.dropout; do not set both")                         \
    X(model, split, INT, "0", 0, 9e15, NULL, FIXED, "train",                                       \
      "least number of weights of a dense layer that is split. Each worker holds the weights "     \
      "of some outputs (neurons) of a split layer. What travels is the layer's inputs, its "       \
      "outputs and the gradients by these, in place of the gradient of the weights. An output "    \
      "layer must also have 1,024 classes or more to be split. 0: no "                             \
      "layer is split by its size. One layer by hand, in model.layers: dense 4096 relu "           \
      "split, or output dense 100000 split")                                                       \
    X(model, kind, CHOICE, "mlp", 0, 0, DT_KIND_CHOICES, FREE, "train",                            \
      "short form of model.layers: linear: no hidden layer; mlp: a multilayer perceptron")         \
    X(model, hidden, TEXT, "512,256", 0, 0, NULL, FREE, "train",                                   \
      "mlp: widths of the hidden layers, comma-separated")                                         \
    X(model, activation, CHOICE, "relu", 0, 0, DT_ACTIVATION_CHOICES, FREE, "train",               \
      "mlp: activation of the hidden layers (gelu: by erf)")                                       \
    X(model, dropout, REAL, "0", 0, 0.95, NULL, FREE, "train",                                     \
      "mlp: probability to drop a hidden unit in training")                                        \
    X(model, embedding, INT, "0", 0, 65536, NULL, FREE, "train",                                   \
      "tables: each different text gets a learned vector of N numbers, which the first "           \
      "layer reads in place of 0/1 inputs; 0: off")                                                \
    X(model, wide, BOOL, "no", 0, 0, NULL, FREE, "train",                                          \
      "wide and deep: adds a linear path from all inputs to the outputs")                          \
    X(model, output_bias, CHOICE, "auto", 0, 0, DT_OUTPUT_BIAS_CHOICES, FIXED, "train",            \
      "where the bias of the output layer starts: zero, or baseline: at the constant that has "    \
      "the least loss on the training rows (mean, median, log-odds, ...). No weight decay draws "  \
      "it to 0 then, and with poisson the weights of that layer start at 0. auto: baseline with "  \
      "run.preset=table or train.loss=poisson, else zero")                                         \
    X(model, task, CHOICE, "classify", 0, 0, DT_TASK_CHOICES, FIXED, "train shard",                \
      "classify: one class per row; regress: one or more numbers; multilabel: several "            \
      "columns that are 0 or 1. train.loss says which loss")

#define DT_OPTIONS_train(X)                                                                        \
    X(train, mode, CHOICE, "sync", 0, 0, DT_MODE_CHOICES, FIXED, "train",                          \
      "sync: averaged gradients; async: Downpour SGD")                                             \
    X(train, batch, INT, "128", 0, 1e9, NULL, FIXED, "train",                                      \
      "sync: samples in one step, all replicas together. async: a gradient is of batch / "         \
      "replicas samples, and each gradient is one step. So an epoch has R times as many "          \
      "steps (R: run.replicas), for all keys that count steps. 0: the whole data set")             \
    X(train, epochs, REAL, "10", 0, 1e9, NULL, FREE, "train", "passes over the training data")     \
    X(train, max_steps, INT, "-1", -1, 9e15, NULL, FREE, "train",                                  \
      "training ends at this step, counted from the run's first start, not from a resume; "        \
      "-1: no limit; 0: save step 0 and end")                                                      \
    X(train, optimizer, CHOICE, "sgd", 0, 0, DT_OPTIMIZER_CHOICES, FIXED, "train",                 \
      "update rule. sgd, adagrad, rmsprop, adam and adamw have PyTorch's formulas; "               \
      "nesterov is PyTorch's SGD with nesterov=True. The default values are those of this "        \
      "page, not PyTorch's. ftrl is FTRL-Proximal: alpha is train.lr, beta train.epsilon, "        \
      "L1 train.l1, L2 train.weight_decay. lamb: adamw's step, scaled to the norm of the "         \
      "tensor's weights, for large batches")                                                       \
    X(train, wide_optimizer, CHOICE, "same", 0, 0, DT_WIDE_OPTIMIZER_CHOICES, FIXED, "train",      \
      "update rule of the linear path of model.wide; same: train.optimizer")                       \
    X(train, wide_lr, REAL, "0", 0, 1e9, NULL, RECORDED, "train",                                  \
      "learning rate of the linear path of model.wide; it follows train.schedule, except "         \
      "with ftrl; 0: train.lr")                                                                    \
    X(train, lr, REAL, "0.01", 0, 1e9, NULL, RECORDED, "train", "learning rate")                   \
    X(train, momentum, REAL, "0.9", 0, 0.999999, NULL, RECORDED, "train",                          \
      "sgd, nesterov, rmsprop: momentum")                                                          \
    X(train, beta1, REAL, "0.9", 0, 0.999999, NULL, RECORDED, "train",                             \
      "adam, adamw, lamb: decay of the first moment")                                              \
    X(train, beta2, REAL, "0.999", 0, 0.99999999, NULL, RECORDED, "train",                         \
      "adam, adamw, lamb: decay of the second moment")                                             \
    X(train, alpha, REAL, "0.99", 0, 0.99999999, NULL, RECORDED, "train",                          \
      "rmsprop: decay of the mean square of the gradient")                                         \
    X(train, epsilon, REAL, "-1", -1, 1e6, NULL, RECORDED, "train",                                \
      "added to the denominator, so that it is not 0; -1: 1e-10 for adagrad, 1 for "               \
      "ftrl, 1e-6 for lamb, 1e-8 for the others")                                                  \
    X(train, l1, REAL, "0", 0, 1e9, NULL, RECORDED, "train",                                       \
      "ftrl: L1 strength. A weight is exactly 0 as long as its accumulated gradient is not "       \
      "larger than this")                                                                          \
    X(train, weight_decay, REAL, "0", 0, 1e9, NULL, RECORDED, "train",                             \
      "L2 penalty on all parameters, except a bias that starts at model.output_bias=baseline; "    \
      "decoupled in adamw and lamb")                                                               \
    X(train, decay_matrices, BOOL, "no", 0, 0, NULL, RECORDED, "train",                            \
      "yes: weight_decay and l1 shrink only matrices, the weights of layers and embeddings; not "  \
      "biases, scales, normalisation and the linear path of model.wide")                           \
    X(train, lazy, BOOL, "no", 0, 0, NULL, FIXED, "train",                                         \
      "sparse rows: a step updates the weights and the optimizer state of only those "             \
      "features that occur in its batch (sgd without momentum, adagrad and ftrl, without "         \
      "weight decay, always do so)")                                                               \
    X(train, loss, CHOICE, "auto", 0, 0, DT_LOSS_CHOICES, FIXED, "train",                          \
      "auto: cross-entropy (binary for model.task=multilabel), or mse (squared error) for "        \
      "model.task=regress, which may have others: mae (absolute), huber, poisson (counts: the "    \
      "prediction is e^output), or quantile (several of each target)")                             \
    X(train, quantiles, TEXT, "0.05,0.5,0.95", 0, 0, NULL, FIXED, "train",                         \
      "train.loss=quantile: the quantiles to predict, rising; 0.05: 5 % of the targets lie "       \
      "below the prediction")                                                                      \
    X(train, huber_delta, REAL, "1", 1e-30, 1e30, NULL, FIXED, "train",                            \
      "train.loss=huber: errors up to this are squared, larger ones count linearly; unit: "        \
      "that of the targets, or their deviation where data.normalize_target standardises "          \
      "them")                                                                                      \
    X(train, clip_norm, REAL, "0", 0, 1e30, NULL, RECORDED, "train",                               \
      "limit of the global norm of a step's gradient; 0: off")                                     \
    X(train, class_weight, CHOICE, "none", 0, 0, DT_CLASS_WEIGHT_CHOICES, FIXED, "train",          \
      "balanced: rows of rare classes weigh more, rows / (classes * rows of the class)")           \
    X(train, schedule, CHOICE, "constant", 0, 0, DT_SCHEDULE_CHOICES, RECORDED, "train",           \
      "how the learning rate changes with the steps; plateau: multiplied by decay_rate "           \
      "when evaluations get no better")                                                            \
    X(train, plateau_evals, INT, "3", 1, 1e9, NULL, RECORDED, "train",                             \
      "plateau: the rate falls after N evaluations (eval.steps) without a better "                 \
      "metric")                                                                                    \
    X(train, warmup_steps, INT, "0", 0, 9e15, NULL, RECORDED, "train",                             \
      "steps in which the rate rises linearly from 0")                                             \
    X(train, decay_steps, INT, "0", 0, 9e15, NULL, RECORDED, "train",                              \
      "length of the schedule, or its interval (exponential, step); 0: the whole run")             \
    X(train, decay_rate, REAL, "0.1", 0, 1e12, NULL, RECORDED, "train",                            \
      "exponential, step: factor per interval; plateau: factor")                                   \
    X(train, min_lr, REAL, "0", 0, 1e9, NULL, RECORDED, "train",                                   \
      "linear, cosine: the rate at the end; exponential, step, plateau: the least rate; "          \
      "constant: no effect")                                                                       \
    X(train, exchange, CHOICE, "auto", 0, 0, DT_EXCHANGE_CHOICES, FREE, "train",                   \
      "sync: how gradients are summed. node: on one host, by the workers in shared memory. "       \
      "ordered: on several hosts, by messages between workers. Both add in one fixed "             \
      "order, so the result does not depend on the number of ranks. reduce: by MPI_Reduce "        \
      "to the bank, in an order that depends on the ranks. auto: node on one host, ordered "       \
      "on several")                                                                                \
    X(train, local_steps, INT, "1", 1, 1e9, NULL, RECORDED, "train",                               \
      "steps in a round. In a round each group of replicas trains its own copy of the "            \
      "weights. At the end of the round the weights move by train.outer_lr times the mean "        \
      "of the groups' changes. For slow networks. 1: every step is exchanged")                     \
    X(train, groups, INT, "0", 0, 65536, NULL, RECORDED, "train",                                  \
      "with local_steps > 1, or wire=bf16 or q8: number of groups into which the replicas "        \
      "are divided: the first replicas are group 0, the next ones group 1, and so on. The "        \
      "result depends on it. 0: the number of hosts at the first start, but at most "              \
      "run.replicas")                                                                              \
    X(train, outer_lr, REAL, "0.7", 0, 1e9, NULL, RECORDED, "train",                               \
      "local_steps > 1: rate of the update at the end of a round, by the mean of the "             \
      "groups' changes")                                                                           \
    X(train, outer_momentum, REAL, "0.9", 0, 0.999999, NULL, RECORDED, "train",                    \
      "local_steps > 1: Nesterov momentum of that update")                                         \
    X(train, local_after, INT, "0", 0, 9e15, NULL, RECORDED, "train",                              \
      "local_steps > 1: up to this step, every step is exchanged")                                 \
    X(train, overlap, BOOL, "no", 0, 0, NULL, RECORDED, "train",                                   \
      "local_steps > 1: the exchange of a round goes on during the next round, and its "           \
      "result is applied one round late (DiLoCo, Douillard et al. 2023, with late "                \
      "updates). It changes the result; train.outer_lr is then better at 0.4 to 0.5")              \
    X(train, wire, CHOICE, "f32", 0, 0, DT_WIRE_CHOICES, RECORDED, "train",                        \
      "train.mode=sync: number format on the network between groups: f32; bf16: 16 bits; q8: 8 "   \
      "bits, and one scale per 256 numbers. The sender keeps the rounding error and adds it to "   \
      "its "                                                                                       \
      "next message (not for embedding tables and weights of sparse inputs, unless "               \
      "train.local_steps is set)")                                                                 \
    X(train, staleness, INT, "-1", -1, 1e9, NULL, FIXED, "train",                                  \
      "async: by how many gradients the fastest worker may be ahead of the slowest, "              \
      "counted from 0 after each evaluation; -1: no limit; 0: runs sync")                          \
    X(train, staleness_lr, BOOL, "no", 0, 0, NULL, FIXED, "train",                                 \
      "async: divide the rate of each gradient by 1 + the number of updates since the worker "     \
      "read the weights for it (train.staleness is something else)")                               \
    X(train, owners, INT, "0", 0, 1e6, NULL, FREE, "train",                                        \
      "async on several hosts: an owner is a rank that keeps and updates a part of the "           \
      "weights. 0: all workers are owners. 1: only the bank. N from 2 to the number of "           \
      "workers: N of them. A greater N: all workers and the bank")                                 \
    X(train, delay_compensation, REAL, "0", 0, 1e9, NULL, FIXED, DT_RETIRED, "")                   \
    X(train, warm_start_steps, INT, "0", 0, 9e15, NULL, FIXED, "train",                            \
      "async: in the first N steps only one worker computes gradients; the others wait")

#define DT_OPTIONS_eval(X)                                                                         \
    X(eval, steps, INT, "0", -1, 9e15, NULL, FREE, "train",                                        \
      "evaluate every N steps, while training waits; 0: each epoch; -1: only at the "              \
      "end. No effect with eval.dedicated")                                                        \
    X(eval, batches, INT, "0", 0, 9e15, NULL, FREE, "train eval",                                  \
      "evaluate only the first N x 256 held-out rows, N being this number; 0: all")                \
    X(eval, metric, CHOICE, "auto", 0, 0, DT_METRIC_CHOICES, FREE, "train",                        \
      "metric that decides which model is best; auto: accuracy, rmse, or what suits "              \
      "train.loss. Of several targets with different units, rmse says most about the largest; "    \
      "r2 counts all the same")                                                                    \
    X(eval, also, TEXT, "", 0, 0, NULL, FREE, "train eval",                                        \
      "further sets of rows to measure, which choose nothing: "                                    \
      "shift:later.csv,more.csv,train:5000. "                                                      \
      "NAME:FILES starts a set, a word without NAME: belongs to the set before, train:N is a "     \
      "sample of N training rows, ./a:b.csv is a path with a colon. Rows of classes that "         \
      "training never saw count as wrong. The set test is measured only once, at the end, by "     \
      "the best model")                                                                            \
    X(eval, also_labels, TEXT, "", 0, 0, NULL, FREE, "train eval",                                 \
      "IDX: label files of these sets, written alike: shift:labels.idx1")                          \
    X(eval, full, BOOL, "no", 0, 0, NULL, FREE, "train eval",                                      \
      "all metrics: f1, balanced_accuracy, average_precision, brier, ece and mape too, where "     \
      "the model has them. dtrain eval adds intervals that hold 95 % of bootstrap samples")        \
    X(eval, weighted, BOOL, "no", 0, 0, NULL, FREE, "train eval",                                  \
      "weigh held-out rows by data.weight, which their files must have then; no: each row "        \
      "counts once")                                                                               \
    X(eval, positive, TEXT, "", 0, 0, NULL, FREE, "train",                                         \
      "the class, of two, that counts as positive: its name or number; empty: class 1")            \
    X(eval, threshold, TEXT, "0.5", 0, 0, NULL, FREE, "train",                                     \
      "two classes: the probability above which a row is called positive, or what held-out rows "  \
      "choose it by at the end: f1, balanced_accuracy, cost:FP,FN (the costs of a false positive " \
      "and a false negative), recall:R (at least R of the positive rows). The model keeps it")     \
    X(eval, calibrate, CHOICE, "no", 0, 0, DT_CALIBRATE_CHOICES, FREE, "train",                    \
      "classes: yes: divide the outputs by a temperature, fitted to held-out rows at the end, so " \
      "that probabilities are frequencies; auto: only if their log loss falls by more than its "   \
      "standard error. The model keeps it")                                                        \
    X(eval, json, BOOL, "no", 0, 0, NULL, FREE, "eval",                                            \
      "dtrain eval: JSON on a terminal too; elsewhere it is JSON anyway")                          \
    X(eval, patience, INT, "0", 0, 1e9, NULL, FREE, "train",                                       \
      "early stop after N evaluations in which eval.metric is not better; 0: off. An "             \
      "equal one is not better, though with less loss it becomes the best model. With "            \
      "train.schedule=linear or cosine, counting starts after 60 % of the steps. With "            \
      "eval.dedicated the step depends on timing")                                                 \
    X(eval, dedicated, BOOL, "no", 0, 0, NULL, FREE, "train",                                      \
      "the last rank is no worker, but evaluates the newest checkpoint "                           \
      "(run.checkpoint_steps, run.checkpoint_secs) while training goes on. If it is too "          \
      "slow, it leaves out checkpoints. Start one rank more")                                      \
    X(eval, throttle_secs, REAL, "0", 0, 1e9, NULL, FREE, "train",                                 \
      "dedicated: least seconds between evaluations")                                              \
    X(eval, start_delay_secs, REAL, "0", 0, 1e9, NULL, FREE, "train",                              \
      "dedicated: seconds before the first evaluation")

#define DT_OPTIONS_export(X)                                                                       \
    X(export, latest, BOOL, "yes", 0, 0, NULL, FREE, "train",                                      \
      "export a model with each checkpoint")                                                       \
    X(export, best, CHOICE, "yes", 0, 0, DT_EXPORT_CHOICES, FREE, "train",                         \
      "export the best model by eval.metric; better: only one that beats the model of run.init, "  \
      "measured on the same rows, so that what is in export/best stays otherwise")                 \
    X(export, keep, INT, "5", 0, 1e9, NULL, FREE, "train",                                         \
      "exported versions to keep; 0: all. A best model that a better one follows at once "         \
      "may be left out")

#define DT_OPTIONS_predict(X)                                                                      \
    X(predict, format, CHOICE, "json", 0, 0, DT_PREDICT_FORMAT_CHOICES, FREE, "predict",           \
      "format of the predictions: JSON lines, or CSV with a header, which names classes and "      \
      "targets. The column error says why a row could not be predicted")                           \
    X(predict, keep, TEXT, "", 0, 0, NULL, FREE, "predict",                                        \
      "columns of standard input to copy into the predictions, as texts, comma-separated: "        \
      "id,name")                                                                                   \
    X(predict, held_out, BOOL, "no", 0, 0, NULL, FREE, "predict",                                  \
      "predict the rows that dtrain eval measures (data.eval or data.eval_fraction), not "         \
      "standard input")                                                                            \
    X(predict, spread, BOOL, "no", 0, 0, NULL, FREE, "predict",                                    \
      "predictions of a model of several members have their deviation too, as spread")             \
    X(predict, interval, REAL, "0", 0, 0.9999, NULL, FREE, "train predict export serve",           \
      "numbers: the part of new targets, e.g. 0.9, that lies between low and high of their "       \
      "predictions; 0: no intervals. A run keeps residuals of its test rows "                      \
      "(data.test_fraction), "                                                                     \
      "a search with folds those of held-out rows, and the model then gives intervals of any "     \
      "coverage")                                                                                  \
    X(predict, target, BOOL, "no", 0, 0, NULL, FREE, "predict",                                    \
      "with data.eval or predict.held_out: predictions have the true class or value too, "         \
      "as target (and target_label)")                                                              \
    X(predict, features, BOOL, "no", 0, 0, NULL, FREE, "predict",                                  \
      "with data.eval or predict.held_out: predictions have the inputs of the network too, "       \
      "scaled and normalised")

#define DT_OPTIONS_serve(X)                                                                        \
    X(serve, host, TEXT, "127.0.0.1", 0, 0, NULL, FREE, "serve",                                   \
      "address to listen on; 0.0.0.0: open to the network")                                        \
    X(serve, port, INT, "8501", 0, 65535, NULL, FREE, "serve", "port; 0: one that is free")        \
    X(serve, name, TEXT, "default", 0, 0, NULL, FREE, "serve", "the model's name in paths")        \
    X(serve, connections, INT, "256", 1, 65536, NULL, FREE, "serve",                               \
      "connections at the same time")                                                              \
    X(serve, max_rows, INT, "10000", 1, 1e8, NULL, FREE, "serve", "rows per request")              \
    X(serve, max_body_mb, INT, "16", 1, 1024, NULL, FREE, "serve", "MiB per request")              \
    X(serve, timeout_secs, REAL, "30", 0.1, 86400, NULL, FREE, "serve",                            \
      "time limit for receiving a request, for sending an answer, for an idle connection, "        \
      "and for finishing requests at a stop")

/* Output formats in addition to metrics.jsonl. */
#define DT_OPTIONS_report(X)                                                                       \
    X(report, tensorboard, BOOL, "no", 0, 0, NULL, FREE, "train",                                  \
      "TensorBoard event files in RUN_DIR/tensorboard")                                            \
    X(report, trace, BOOL, "no", 0, 0, NULL, FREE, "train",                                        \
      "RUN_DIR/trace.json: each rank's phases, for chrome://tracing")                              \
    X(report, prometheus, TEXT, "", 0, 0, NULL, FREE, "train",                                     \
      "path of a file NAME.prom for Prometheus' node_exporter, rewritten with each record")

/* Options of dtrain search: many trials in one job. */
#define DT_OPTIONS_search(X)                                                                       \
    X(search, trials, INT, "16", 1, 1e6, NULL, FREE, "search",                                     \
      "number of trials. The first is the configuration as it is, the second the same with "       \
      "model.layers=linear. A search that has ended goes on with a greater number")                \
    X(search, space, TEXT, "", 0, 0, NULL, FIXED, "search",                                        \
      "what the other trials draw: KEY=VALUES, separated by semicolons. VALUES: one value, or "    \
      "several with bars between them; of numbers also LOW..HIGH or log LOW..HIGH; with turn in "  \
      "front, trials take them in turn. Keys of model and train. In a file the whole is in "       \
      "double quotes. Empty: a space that suits the data, which the start prints")                 \
    X(search, folds, INT, "0", 0, 1000, NULL, FIXED, "search",                                     \
      "K: trains each trial K times, each time without one of K parts of the rows, on which it "   \
      "is measured; 0: held-out rows are data.eval or data.eval_fraction (then 0.2)")              \
    X(search, first_epochs, INT, "0", 0, 1e9, NULL, FIXED, "search",                               \
      "trials stop after this number of epochs, and only search.finish of them go on; 0: each "    \
      "trains to its end")                                                                         \
    X(search, finish, INT, "0", 0, 1e6, NULL, FIXED, "search",                                     \
      "with search.first_epochs: how many of the best trials go on to their ends; 0: all")         \
    X(search, ensemble, INT, "16", 1, 1000, NULL, FREE, "search",                                  \
      "the model is the mean of at most this number of trials; 1: the best alone")                 \
    X(search, ranks, INT, "1", 1, 65536, NULL, FIXED, "search", "ranks that train a trial")        \
    X(search, keep, INT, "0", 0, 1e6, NULL, FREE, "search",                                        \
      "number of further trials, the best ones, whose models are kept")

/* Options of dtrain importance. */
#define DT_OPTIONS_importance(X)                                                                   \
    X(importance, repeats, INT, "5", 1, 10000, NULL, FREE, "importance",                           \
      "how often the rows of each column are permuted")                                            \
    X(importance, metric, CHOICE, "auto", 0, 0, DT_METRIC_CHOICES, FREE, "importance",             \
      "the metric that gets worse; auto: eval.metric of the run")                                  \
    X(importance, group, BOOL, "yes", 0, 0, NULL, FREE, "importance",                              \
      "permute columns of numbers together that correlate by 0.9 or more, or -0.9 or less")

/* Hooks for tests; `dtrain options` does not list them. */
#define DT_OPTIONS_test(X)                                                                         \
    X(test, slow_rank, INT, "-1", -1, 1e9, NULL, FREE, "train",                                    \
      "this rank sleeps test.slow_secs a step and a chunk of an evaluation; 0: a surveyed file")   \
    X(test, slow_secs, REAL, "0", 0, 1e6, NULL, FREE, "train", "see test.slow_rank")               \
    X(test, round_secs, REAL, "20", 0, 1e6, NULL, FREE, "train",                                   \
      "how long a stop waits for the end of a round of local steps")

#define DT_CALIBRATE_CHOICES "no|auto|yes"
enum dt_calibrate { DT_CALIBRATE_NO, DT_CALIBRATE_AUTO, DT_CALIBRATE_YES };
#define DT_METRIC_CHOICES                                                                          \
    "auto|loss|log_loss|pinball|accuracy|top5|auc|f1|balanced_accuracy|average_precision|brier|"   \
    "ece|rmse|mae|r2|mape"
enum dt_metric {
    DT_METRIC_AUTO,
    DT_METRIC_LOSS,
    DT_METRIC_LOG_LOSS, /* the loss, for classes */
    DT_METRIC_PINBALL,  /* the loss, with train.loss=quantile */
    DT_METRIC_ACCURACY,
    DT_METRIC_TOP5,
    DT_METRIC_AUC,
    DT_METRIC_F1,
    DT_METRIC_BALANCED_ACCURACY,
    DT_METRIC_AVERAGE_PRECISION,
    DT_METRIC_BRIER,
    DT_METRIC_ECE,
    DT_METRIC_RMSE,
    DT_METRIC_MAE,
    DT_METRIC_R2,
    DT_METRIC_MAPE
};

#define DT_SECTIONS(S)                                                                             \
    S(run)                                                                                         \
    S(data)                                                                                        \
    S(model)                                                                                       \
    S(train) S(eval) S(export) S(report) S(predict) S(serve) S(search) S(importance) S(test)

#define DT_FIELD_INT int64_t
#define DT_FIELD_REAL double
#define DT_FIELD_BOOL bool
#define DT_FIELD_TEXT char *
#define DT_FIELD_CHOICE int
#define DT_FIELD(section, key, type, ...) DT_FIELD_##type key;
/* A section's member has the section's name, except in C++, where export is a keyword: export_. */
#define DT_MEMBER_run run
#define DT_MEMBER_data data
#define DT_MEMBER_model model
#define DT_MEMBER_train train
#define DT_MEMBER_report report
#define DT_MEMBER_eval eval
#ifdef __cplusplus
#define DT_MEMBER_export export_
#else
#define DT_MEMBER_export export
#endif
#define DT_MEMBER_predict predict
#define DT_MEMBER_serve serve
#define DT_MEMBER_search search
#define DT_MEMBER_importance importance
#define DT_MEMBER_test test
#define DT_SECTION_STRUCT(section)                                                                 \
    struct {                                                                                       \
        DT_OPTIONS_##section(DT_FIELD)                                                             \
    } DT_MEMBER_##section;

enum { DT_MAX_OPTIONS = 160 };

/* The values of all options: config->train.lr and so on. */
struct dt_config {
    DT_SECTIONS(DT_SECTION_STRUCT)
    unsigned char given[DT_MAX_OPTIONS]; /* for each option, an enum dt_given */
};

/* How an option got its value: it still has its default; a file, a text or an assignment set it;
 * the preset set it. */
enum dt_given { DT_GIVEN_NOT, DT_GIVEN, DT_GIVEN_BY_PRESET };

/* Sets every option to its default. Free with dt__config_free. */
dt_status dt__config_init(struct dt_config *config);
void dt__config_free(struct dt_config *config);

/* Sets one key, like dt_config_set, but only if `command` ("train", "eval", ...) takes it.
 * DT_EUSAGE: also if it does not; the message lists the keys that the command takes. */
dt_status dt__config_set_for(struct dt_config *config, const char *command, const char *assignment);

/* Returns true if a file, a text, an assignment or the preset has set the key, "section.key". */
bool dt__config_is_given(const struct dt_config *config, const char *name);
/* Returns true if the key's value differs from its default and is not empty. For a run's
 * config.ini, which lists every key, dt__config_is_given says nothing. */
bool dt__config_is_changed(const struct dt_config *config, const char *name);

/* Decides run.preset=auto and sets the preset's values, except for keys that are given. `table`:
 * the training data is a table. Call it before dt__config_check; dt_train does so. */
dt_status dt__config_resolve(struct dt_config *config, bool table);
/* The properties of the training data that the preset depends on. */
struct dt_table_size {
    uint64_t rows;  /* training rows */
    int features;   /* inputs of the network, without encodings */
    int numbers;    /* columns that data.encode may encode */
    int classes;    /* 0: the task is regress or multilabel */
    bool sparse;    /* some columns are texts */
    bool evaluates; /* there are held-out rows */
};
/* Sets the preset's values that depend on the training data. Call it after dt__config_resolve. */
dt_status dt__config_resolve_by_data(struct dt_config *config, const struct dt_table_size *size);
/* Returns true if model.layers is known only after dt__config_resolve_by_data, because the preset
 * chooses the widths by the data. */
bool dt__config_widths_wait(const struct dt_config *config);
/* Resolves the preset for a resume of the run `before`: keys that a preset set, in the earlier run
 * or now, take the values of the earlier run unless they are given now. */
dt_status dt__config_resolve_resume(struct dt_config *config, const struct dt_config *before);
/* Writes "key=value, ..." for the keys that the preset has set. The caller frees it. */
dt_status dt__config_preset_text(const struct dt_config *config, char **out);

/* Returns true if some rows of data.train are held out (test rows do not count). */
bool dt__config_holds_out(const struct dt_config *config);

/* Parses data.gap: *size is in seconds if *is_time, else in rows. Returns false if the text is
 * neither. */
bool dt__config_gap(const struct dt_config *config, double *size, bool *is_time);

/* Checks the keys against each other and against the number of ranks, `size` (async needs 2, a
 * dedicated evaluator 3, ...). With size 0 the number of ranks is not checked. DT_EUSAGE: the
 * message names the keys. */
dt_status dt__config_check(const struct dt_config *config, int size);

/* Writes the given keys as text that dt_config_read_text parses. The caller frees it. */
dt_status dt__config_given_text(const struct dt_config *config, char **out_text);
/* Writes "key = value" for the given keys of a section, except those listed in `but` ("a|b|c").
 * DT_EMEMORY. */
dt_status dt__config_print_given(const struct dt_config *config, const char *section,
                                 const char *but, FILE *out);

/* Reads the configuration that a checkpoint or a model has saved. Keys that it lacks were added to
 * the program after that run, and get the values that reproduce what the run did. DT_EUSAGE. */
dt_status dt__config_read_saved(struct dt_config *config, const char *name, const char *text);

/* Packs all values, and how each was given, for another process of the same program. The caller
 * frees the bytes with dt_free. DT_EMEMORY. */
dt_status dt__config_pack(const struct dt_config *config, void *out_bytes, size_t *out_length);
/* Sets all values from packed bytes. DT_EMISMATCH: another program packed them; the configuration
 * is unchanged. */
dt_status dt__config_unpack(struct dt_config *config, const void *bytes, size_t length);

/* Removes, in place, the quotes that dt_config_print puts around a value. Returns false if the
 * value begins with '"' but is not a well-formed quoted text. */
bool dt__value_unquote(char *value);
/* Computes the CRC-32C of the text of dt_config_print without run.dir and run.resume. */
dt_status dt__config_crc(const struct dt_config *config, uint32_t *out);

/* Checks that `now` may resume the run that was made with `before`. DT_EMISMATCH: a FIXED key
 * differs; the message names the first one, with both values. now->run.replicas=0 matches any
 * value. */
dt_status dt__config_match(const struct dt_config *before, const struct dt_config *now);
/* Checks the same for a resumed search, whose later trials must be made as its first ones were.
 * DT_EMISMATCH: also if a RECORDED key differs, or a FREE key that a trial's weights or score, or
 * the model, depend on. */
dt_status dt__config_match_search(const struct dt_config *before, const struct dt_config *now);
/* Calls `report` for each RECORDED key that differs, with both values as text. Returns DT_EMEMORY,
 * or the first error of `report`. */
typedef dt_status dt_change_fn(void *arg, const char *key, const char *before, const char *now);
dt_status dt__config_changes(const struct dt_config *before, const struct dt_config *now,
                             dt_change_fn *report, void *arg);

/* Writes the keys with type, range, default and meaning to `out`, as `dtrain options` does: for a
 * terminal, as a Markdown table, as the manual page dtrain-config(5), or as a JSON Schema. `what`
 * selects a section or a key; NULL: all.
 *
 * DT_EUSAGE: there is no such section or key. */
enum dt_describe { DT_DESCRIBE_TEXT, DT_DESCRIBE_MARKDOWN, DT_DESCRIBE_MANUAL, DT_DESCRIBE_SCHEMA };
dt_status dt__config_describe(FILE *out, enum dt_describe form, const char *what);

/* Copies the word of an enumerated value into a buffer of at least 16 bytes and returns it, e.g.
 * dt__config_choice(DT_MODE_CHOICES, DT_MODE_SYNC) -> "sync". */
const char *dt__config_choice(const char *choices, int value, char buffer[16]);
/* Returns the index of a word in "a|b|c"; -1: it is not one of them. */
int dt__config_choice_index(const char *choices, const char *text);

#endif
