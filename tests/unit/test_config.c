/* Configurations: defaults, parsing, messages, round trips, checks, presets. */
#include "unit/suite.h"

#include <math.h>

#include "base/internal.h"
#include "config/option.h"
#include "config/named_sets.h"

static struct dt_config config;

static void set_up(void)
{
    EXPECT_OK(dt__config_init(&config));
}

static void set(const char *assignment)
{
    EXPECT_OK(dt_config_set(&config, assignment));
}

#define EXPECT_USAGE(call, text) EXPECT_FAIL(call, DT_EUSAGE, text)
#define EXPECT_TEXT_REFUSED(text, message)                                                         \
    do {                                                                                           \
        EXPECT_USAGE(dt_config_read_text(&config, "f.ini", text), message);                        \
        ck_assert_str_eq(dt_error_text(), message);                                                \
    } while (0)

/* ---- values --------------------------------------------------------------------------------- */

/* Users rely on these defaults: old configurations do not give these keys. */
START_TEST(defaults_are_as_promised)
{
    set_up();
    ck_assert_str_eq(config.run.dir, "run");
    ck_assert_int_eq(config.run.seed, 1);
    ck_assert_int_eq(config.train.batch, 128);
    ck_assert_double_eq(config.train.epochs, 10);
    ck_assert_int_eq(config.train.max_steps, -1);
    ck_assert_int_eq(config.train.staleness, -1);
    ck_assert_str_eq(config.model.hidden, "512,256");
    ck_assert_int_eq(config.data.memory_mb, 1024);
    ck_assert_int_eq(config.train.optimizer, DT_OPT_SGD);
    ck_assert(config.export.latest && config.export.best && !config.eval.dedicated);
    ck_assert_double_eq(config.run.checkpoint_secs, 600);
    dt__config_free(&config);
}
END_TEST

/* A key set to its default value counts as given. */
START_TEST(a_given_key_is_known)
{
    set_up();
    ck_assert(!dt__config_is_given(&config, "model.task"));
    EXPECT_OK(dt_config_read_text(&config, "f.ini", "[model]\ntask = classify\n"));
    set("train.lr=0.5");
    ck_assert(dt__config_is_given(&config, "model.task"));
    ck_assert(dt__config_is_given(&config, "train.lr"));
    ck_assert(!dt__config_is_given(&config, "train.batch"));
    dt__config_free(&config);
}
END_TEST

/* The values' names in the table are in the order of the enumerators. */
START_TEST(names_are_in_the_order_of_enumerators)
{
    set_up();
    const struct {
        const char *assignment;
        const int *field;
        int value;
    } rows[] = {
        {"data.format=hdf5", &config.data.format, DT_FORMAT_HDF5},
        {"data.header=no", &config.data.header, DT_HEADER_NO},
        {"data.normalize=standard", &config.data.normalize, DT_NORMALIZE_STANDARD},
        {"data.normalize=robust", &config.data.normalize, DT_NORMALIZE_ROBUST},
        {"model.kind=linear", &config.model.kind, DT_KIND_LINEAR},
        {"model.activation=gelu", &config.model.activation, DT_ACT_GELU},
        {"model.task=regress", &config.model.task, DT_TASK_REGRESS},
        {"train.mode=async", &config.train.mode, DT_MODE_ASYNC},
        {"train.optimizer=adamw", &config.train.optimizer, DT_OPT_ADAMW},
        {"train.optimizer=adam", &config.train.optimizer, DT_OPT_ADAM},
        {"train.schedule=step", &config.train.schedule, DT_SCHED_STEP},
        {"train.exchange=ordered", &config.train.exchange, DT_EXCHANGE_ORDERED},
        {"eval.metric=r2", &config.eval.metric, DT_METRIC_R2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set(rows[i].assignment);
        ck_assert_msg(*rows[i].field == rows[i].value, "%s: %d", rows[i].assignment,
                      *rows[i].field);
        char word[16];
        const struct dt__option *option = NULL;
        char *name = strndup(rows[i].assignment, strcspn(rows[i].assignment, "="));
        EXPECT_OK(dt__option_find(name, &option));
        dt__config_choice(option->choices, rows[i].value, word);
        ck_assert_str_eq(word, strchr(rows[i].assignment, '=') + 1);
        free(name);
    }
    dt__config_free(&config);
}
END_TEST

START_TEST(numbers_are_read_whole)
{
    set_up();
    set("train.batch=1e6");
    ck_assert_int_eq(config.train.batch, 1000000);
    set("train.batch=+07");
    ck_assert_int_eq(config.train.batch, 7);
    set("run.seed=9000000000000000");
    ck_assert_int_eq(config.run.seed, 9000000000000000);
    set("run.seed=4503599627370497");
    ck_assert_int_eq(config.run.seed, 4503599627370497);
    set("train.lr=.5e-3");
    ck_assert_double_eq(config.train.lr, 0.0005);
    set("data.scale=-0");
    ck_assert(!signbit(config.data.scale));
    dt__config_free(&config);
}
END_TEST

START_TEST(wrong_numbers_are_refused)
{
    set_up();
    const char *const integers[] = {"",      " 1",  "1 ",   "abc",  "1.5", "1e-1",
                                    "1x",    "-1",  "1e10", "0x10", "nan", "inf",
                                    "1e999", "--1", "+",    "1,5",  "1e",  "."};
    const char *const reals[] = {"",      " 1",    "1 ",   "abc",  "1x",  "nan",      "inf", "-inf",
                                 "1e999", "0x1p3", "-0.1", "1e10", "1,5", "infinity", "e",   "."};
    char text[64];
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        snprintf(text, sizeof text, "train.batch=%s", integers[i]);
        EXPECT_USAGE(dt_config_set(&config, text), "expected an integer from 0 to 1000000000");
        ck_assert_int_eq(strncmp(dt_error_text(), text, strlen(text)), 0);
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        snprintf(text, sizeof text, "train.lr=%s", reals[i]);
        EXPECT_USAGE(dt_config_set(&config, text), "expected a number from 0 to 1000000000");
    }
    ck_assert_int_eq(config.train.batch, 128);
    ck_assert_double_eq(config.train.lr, 0.01);
    dt__config_free(&config);
}
END_TEST

START_TEST(yes_and_no_have_other_names)
{
    set_up();
    const char *const yes[] = {"yes", "true", "on", "1", "YES", "True"};
    const char *const no[] = {"no", "false", "off", "0", "No"};
    char text[64];
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        config.eval.dedicated = false;
        snprintf(text, sizeof text, "eval.dedicated=%s", yes[i]);
        set(text);
        ck_assert(config.eval.dedicated);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        config.eval.dedicated = true;
        snprintf(text, sizeof text, "eval.dedicated=%s", no[i]);
        set(text);
        ck_assert(!config.eval.dedicated);
    }
    EXPECT_USAGE(dt_config_set(&config, "eval.dedicated=maybe"), "=maybe: expected yes or no");
    EXPECT_USAGE(dt_config_set(&config, "eval.dedicated="), "expected yes or no");
    dt__config_free(&config);
}
END_TEST

START_TEST(wrong_values_are_refused)
{
    set_up();
    EXPECT_USAGE(dt_config_set(&config, "train.mode=asy"),
                 "train.mode=asy: expected one of sync, async");
    EXPECT_USAGE(dt_config_set(&config, "train.mode="), "expected one of");
    EXPECT_USAGE(dt_config_set(&config, "train.mode=sync|async"), "expected one of");
    EXPECT_USAGE(dt_config_set(&config, "train.mode=Sync"), "expected one of");
    dt__config_free(&config);
}
END_TEST

START_TEST(edit_distance_counts_letters)
{
    ck_assert_uint_eq(dt__edit_distance("", ""), 0);
    ck_assert_uint_eq(dt__edit_distance("abc", ""), 3);
    ck_assert_uint_eq(dt__edit_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(dt__edit_distance("train.lrr", "train.lr"), 1);
}
END_TEST

START_TEST(unknown_keys_name_the_nearest)
{
    set_up();
    const char *const rows[][2] = {
        {"train.lrr=1", "train.lrr: unknown key; did you mean train.lr?"},
        {"lr=1", "lr: unknown key; did you mean train.lr?"},
        {"learning_rate=1", "learning_rate: unknown key; did you mean train.lr?"},
        {"train.l2=1", "train.l2: unknown key; did you mean train.weight_decay?"},
        {"Train.batch=1", "did you mean train.batch?"},
        {"train.optimiser=sgd", "did you mean train.optimizer?"},
        {"train.batch_size=3", "did you mean train.batch?"},
        {"data.colour=3", "data.colour: unknown key; `dtrain options` lists them"},
        {"foo=3", "foo: unknown key; `dtrain options` lists them"},
        {"nosuch.key=1", "nosuch.key: unknown key; `dtrain options` lists them"},
        {"run.checkpoint_step=3", "did you mean run.checkpoint_steps?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        EXPECT_USAGE(dt_config_set(&config, rows[i][0]), rows[i][1]);
    EXPECT_USAGE(dt_config_set(&config, "train.lr"), "train.lr: expected section.key=value");
    EXPECT_USAGE(dt_config_set(&config, "=1"), "expected section.key=value");
    dt__config_free(&config);
}
END_TEST

/* ---- files ---------------------------------------------------------------------------------- */

/* A key that a command would ignore is refused, and the message lists the keys that the command
 * takes. */
START_TEST(a_command_takes_its_own_keys)
{
    static const char *const refused[] = {
        "data.eval_fraction=0.5",  "run.seed=2",   "model.hidden=3", "data.scale=2",
        "data.normalize=standard", "run.dir=here", "train.lr=1",     "data.train=x"};
    set_up();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        EXPECT_FAIL(dt__config_set_for(&config, "eval", refused[i]), DT_EUSAGE,
                    ": not a key of dtrain eval, which takes run.threads, run.kernel, data.eval, ");
    ck_assert_int_ne(config.run.seed, 2);
    EXPECT_OK(dt__config_set_for(&config, "eval", "data.eval=x"));
    EXPECT_OK(dt__config_set_for(&config, "eval", "eval.batches=3"));
    EXPECT_OK(dt__config_set_for(&config, "shard", "run.seed=3"));
    EXPECT_FAIL(dt__config_set_for(&config, "predict", "eval.batches=3"), DT_EUSAGE,
                "eval.batches: not");
    EXPECT_FAIL(dt__config_set_for(&config, "eva", "data.eval=x"), DT_EUSAGE, "which takes none");
    EXPECT_FAIL(dt__config_set_for(&config, "eval", "data.evil=x"), DT_EUSAGE,
                "did you mean data.eval?");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        EXPECT_OK(dt__config_set_for(&config, "train", refused[i]));
    dt__config_free(&config);
}
END_TEST

START_TEST(a_file_keeps_other_keys)
{
    set_up();
    set("train.batch=5");
    EXPECT_OK(
        dt_config_read_text(&config, "f",
                            "\xef\xbb\xbf; comment\r\n[train]\r\nlr = 0.5 ; comment\r\n"
                            "# comment\r\n\r\n  epochs=3\r\n[data]\r\ntrain:a.csv , b;c.csv"));
    ck_assert_double_eq(config.train.lr, 0.5);
    ck_assert_double_eq(config.train.epochs, 3);
    ck_assert_int_eq(config.train.batch, 5);
    ck_assert_str_eq(config.data.train, "a.csv , b;c.csv");
    /* A comma may be the whole value: the next line is then a new key. */
    EXPECT_OK(dt_config_read_text(&config, "r.ini", "[data]\n  decimal = ,\n  label = y\n"));
    ck_assert_str_eq(config.data.label, "y");
    dt__config_free(&config);
}
END_TEST

/* A value that ends with a comma continues in the next line; messages still name the right line. */
START_TEST(a_value_continues_after_a_comma)
{
    EXPECT_OK(dt_config_read_text(&config, "test.ini",
                                  "[model]\nlayers = dense 3 relu, \n    dense 4,\n\tdense 5\n"
                                  "task = regress\n# a, b,\n[run]\nseed = 7\n"));
    ck_assert_str_eq(config.model.layers, "dense 3 relu,      dense 4, \tdense 5");
    ck_assert_int_eq(config.model.task, DT_TASK_REGRESS);
    ck_assert_int_eq((int)config.run.seed, 7);
    EXPECT_FAIL(dt_config_read_text(&config, "test.ini", "[model]\nlayers = a,\n b\n\ntask = x\n"),
                DT_EUSAGE, "test.ini:5: ");
    EXPECT_FAIL(dt_config_read_text(&config, "test.ini", "[model]\nlayers = a\n b\n"), DT_EUSAGE,
                "test.ini:3: expected");
}
END_TEST

START_TEST(messages_about_a_file_name_the_line)
{
    set_up();
    EXPECT_TEXT_REFUSED("[train]\n\nlrr = 1\n",
                        "f.ini:3: train.lrr: unknown key; did you mean train.lr?");
    EXPECT_TEXT_REFUSED("[trian]\nbatch = 1\n",
                        "f.ini:2: trian.batch: unknown key; did you mean train.batch?");
    EXPECT_TEXT_REFUSED("[train]\nbatch = abc\n",
                        "f.ini:2: train.batch=abc: expected an integer from 0 to 1000000000");
    EXPECT_TEXT_REFUSED("[train]\nlr = 1\nbatch=2\nlr = 1\n",
                        "f.ini:4: train.lr: given twice, first in line 2");
    EXPECT_TEXT_REFUSED("[train]\nlr = 1\n[run]\nseed=1\n[train]\nlr=1",
                        "f.ini:6: train.lr: given twice, first in line 2");
    EXPECT_TEXT_REFUSED("[train]\n\nbatch\n", "f.ini:3: expected [section] or key = value");
    EXPECT_TEXT_REFUSED("[train\nbatch = 1\n", "f.ini:1: expected [section] or key = value");
    EXPECT_TEXT_REFUSED("[run]\ndir = \"abc\n",
                        "f.ini:2: run.dir=\"abc: expected a closing quote at the end");
    EXPECT_TEXT_REFUSED("[run]\ndir = \"a\\x0\"\n",
                        "f.ini:2: run.dir=\"a\\x0\": expected a closing quote at the end");
    EXPECT_TEXT_REFUSED("[run]\ndir = \"a\\x00b\"\n",
                        "f.ini:2: run.dir=\"a\\x00b\": expected a closing quote at the end");
    dt__config_free(&config);
}
END_TEST

START_TEST(files_that_are_no_config_are_refused)
{
    char path[64];
    scratch_enter(path);
    set_up();
    EXPECT_USAGE(dt_config_read_file(&config, "none.ini"), "none.ini: cannot open");
    EXPECT_USAGE(dt_config_read_file(&config, "."), "directory");
    EXPECT_OK(dt__file_write("zero", "[run]\0dir=x\n", 12, NULL, NULL));
    EXPECT_USAGE(dt_config_read_file(&config, "zero"), "zero: not a text file");
    EXPECT_OK(dt__file_write("empty", "", 0, NULL, NULL));
    EXPECT_OK(dt_config_read_file(&config, "empty"));
    dt__config_free(&config);
    scratch_leave(path);
}
END_TEST

/* Fails if each line of a list takes stack: one list here has 250,000 lines. */
START_TEST(a_list_continues_in_the_next_line)
{
    enum { LINES = 250000 };
    static char text[64 + 4 * LINES];
    set_up();
    char *at = stpcpy(text, "[data]\ntrain = a,\n  b,\n\tc\neval = d,\n[run]\nseed = 7\n");
    EXPECT_OK(dt_config_read_text(&config, "f.ini", text));
    ck_assert_str_eq(config.data.train, "a,   b, \tc");
    ck_assert_str_eq(config.data.eval, "d,");
    ck_assert_int_eq(config.run.seed, 7);
    at = stpcpy(text, "[data]\ntrain = y");
    for (int i = 0; i < LINES; i++)
        at = stpcpy(at, ",\n ");
    stpcpy(at, "x\nfoo = 1\n");
    EXPECT_USAGE(dt_config_read_text(&config, "f.ini", text),
                 "f.ini:250003: data.foo: unknown key");
    ck_assert_uint_eq(strlen(config.data.train), 3 * LINES + 2);
    dt__config_free(&config);
}
END_TEST

/* Fails if a comma at the end of a comment makes the next key a part of the value. */
START_TEST(a_comment_ends_with_its_line)
{
    set_up();
    EXPECT_OK(dt_config_read_text(&config, "f.ini",
                                  "[train]\n; slow,\n  epochs = 3\n \t; a, b, \n  batch = 5\n"
                                  "# a,\n  lr = 0.5 ; fast,\n  momentum = 0.25\n[data] ; of it,\n"
                                  "  train = a;b,\n  c;d\n  eval = a, ; b, c,\n  label = 2\n"));
    ck_assert_double_eq(config.train.epochs, 3);
    ck_assert_int_eq(config.train.batch, 5);
    ck_assert_double_eq(config.train.lr, 0.5);
    ck_assert_double_eq(config.train.momentum, 0.25);
    ck_assert_str_eq(config.data.train, "a;b,   c;d");
    ck_assert_str_eq(config.data.eval, "a,");
    ck_assert_str_eq(config.data.label, "2");
    EXPECT_TEXT_REFUSED("[data]\ntrain = a, ; b,\n c\n",
                        "f.ini:3: expected [section] or key = value");
    dt__config_free(&config);
}
END_TEST

START_TEST(long_lines_stay_whole)
{
    set_up();
    for (size_t length = 150; length < 100000; length = length * 5 / 4) {
        char *value, *text;
        EXPECT_OK(dt__alloc(length + 1, 1, "value", &value));
        memset(value, 'x', length);
        EXPECT_OK(dt__format(&text, "[data]\ntrain = %s\n[run]\nseed = 3\n", value));
        EXPECT_OK(dt_config_read_text(&config, "f", text));
        ck_assert_str_eq(config.data.train, value);
        dt_free(value);
        dt_free(text);
    }
    dt__config_free(&config);
}
END_TEST

/* ---- round trip ----------------------------------------------------------------------------- */

/* Prints the configuration, reads the text into a fresh one, and compares both texts and all
 * members. The short forms of model.layers are not compared if it is set, because they are not
 * printed then. */
static void round_trip(void)
{
    struct dt_config back;
    char *text, *again;
    EXPECT_OK(dt__config_init(&back));
    EXPECT_OK(dt_config_print(&config, &text));
    EXPECT_OK(dt_config_read_text(&back, "printed", text));
    EXPECT_OK(dt_config_print(&back, &again));
    ck_assert_str_eq(text, again);
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        char before[DT_REAL_TEXT], after[DT_REAL_TEXT];
        if (*config.model.layers && !strcmp(dt__options[i].section, "model")) continue;
        ck_assert_str_eq(dt__option_text(&config, &dt__options[i], before),
                         dt__option_text(&back, &dt__options[i], after));
    }
    dt_free(text);
    dt_free(again);
    dt__config_free(&back);
}

/* Any text from the command line survives being written to a file and read again. */
START_TEST(any_text_survives)
{
    set_up();
    const char *const values[] = {
        "",      " ",           " x",   "x ",  "a;b",  "a ; b", ";",     "#x",
        "x # y", "a=b",         "=",    "a:b", "[x]",  "\"",    "\"x\"", "a\"b",
        "\\",    "\\x41",       "a\nb", "\n",  "\r\n", "\t",    "a\tb",  "\x01",
        "\x7f",  "caf\xc3\xa9", "\xff", "'x'", " ; ",  "a,b c", "x\\",   "\"a\\\"",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char *assignment;
        EXPECT_OK(dt__format(&assignment, "data.train=%s", values[i]));
        set(assignment);
        ck_assert_str_eq(config.data.train, values[i]);
        round_trip();
        dt_free(assignment);
    }
    dt__config_free(&config);
}
END_TEST

START_TEST(random_text_survives)
{
    set_up();
    const char alphabet[] = " ;#=:\"\\xn[]a\n\t\r,\xc3\x7f";
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0, draw = 0; i < 1500; i++) {
        char text[24] = "run.dir=";
        size_t length = 8 + dt__rng_u64(&rng, draw++) % 12;
        for (size_t k = 8; k < length; k++)
            text[k] = alphabet[dt__rng_u64(&rng, draw++) % (sizeof alphabet - 1)];
        set(text);
        round_trip();
    }
    dt__config_free(&config);
}
END_TEST

/* Numbers are printed with as few digits as possible, but with all they need. */
START_TEST(any_number_survives)
{
    struct dt_rng rng = dt__rng_make(2, DT_STREAM_TEST, 0, 0);
    set_up();
    for (uint64_t i = 0; i < 300; i++) {
        config.train.lr = dt__rng_uniform(&rng, 3 * i);
        config.train.weight_decay = 1e9 * dt__rng_uniform(&rng, 3 * i + 1);
        config.run.seed = (int64_t)(dt__rng_u64(&rng, 3 * i + 2) % 9000000000000001u);
        round_trip();
    }
    dt__config_free(&config);
}
END_TEST

/* Returns a value that is not the default. */
static const char *other_value(const struct dt__option *option, char buffer[DT_REAL_TEXT])
{
    switch (option->type) {
    case DT__INT:
    case DT__REAL:
        return dt__real_text(option->max, buffer);
    case DT__BOOL:
        return *option->initial == 'y' ? "no" : "yes";
    case DT__TEXT:
        return "other text";
    case DT__CHOICE:
        dt__config_choice(option->choices, 0, buffer);
        return strcmp(buffer, option->initial) ? buffer
                                               : dt__config_choice(option->choices, 1, buffer);
    }
    return "";
}

START_TEST(every_option_survives)
{
    set_up();
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        char buffer[DT_REAL_TEXT];
        EXPECT_OK(dt__option_set(&config, &dt__options[i], other_value(&dt__options[i], buffer)));
        ck_assert_str_ne(dt__option_text(&config, &dt__options[i], buffer), dt__options[i].initial);
    }
    round_trip();
    dt__config_free(&config);
}
END_TEST

/* The receiving process gets each value and whether it was given; truncated bytes change
 * nothing. */
START_TEST(values_go_to_another_process)
{
    struct dt_config other;
    size_t length;
    char *bytes, before[DT_REAL_TEXT], after[DT_REAL_TEXT];
    set_up();
    EXPECT_OK(dt__config_init(&other));
    for (int i = 0; i < DT__OPTION_COUNT; i += 2) {
        char buffer[DT_REAL_TEXT];
        EXPECT_OK(dt__option_set(&config, &dt__options[i], other_value(&dt__options[i], buffer)));
    }
    EXPECT_OK(dt__config_pack(&config, &bytes, &length));
    EXPECT_FAIL(dt__config_unpack(&other, bytes, length - 1), DT_EMISMATCH, "different programs");
    EXPECT_FAIL(dt__config_unpack(&other, bytes, 1), DT_EMISMATCH, "different programs");
    ck_assert(!dt__config_is_given(&other, dt__options[0].name));
    EXPECT_OK(dt__config_unpack(&other, bytes, length));
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        ck_assert_str_eq(dt__option_text(&config, &dt__options[i], before),
                         dt__option_text(&other, &dt__options[i], after));
        ck_assert(dt__config_is_given(&other, dt__options[i].name) == (i % 2 == 0));
    }
    dt_free(bytes);
    dt__config_free(&other);
    dt__config_free(&config);
}
END_TEST

START_TEST(test_hooks_are_printed_only_when_set)
{
    set_up();
    char *text;
    EXPECT_OK(dt_config_print(&config, &text));
    ck_assert_ptr_null(strstr(text, "[test]"));
    dt_free(text);
    set("test.slow_rank=1");
    EXPECT_OK(dt_config_print(&config, &text));
    ck_assert_ptr_nonnull(strstr(text, "[test]\nslow_rank = 1\n"));
    dt_free(text);
    dt__config_free(&config);
}
END_TEST

/* Old configurations list retired keys: their defaults are accepted silently, and printing omits
 * them. */
START_TEST(retired_keys_keep_their_default)
{
    set_up();
    char *text;
    set("data.train=x");
    EXPECT_OK(dt_config_read_text(&config, "f", "[train]\ndelay_compensation = 0\n"));
    EXPECT_OK(dt__config_set_for(&config, "train", "train.delay_compensation=0"));
    EXPECT_OK(dt__config_check(&config, 3));
    EXPECT_OK(dt_config_print(&config, &text));
    ck_assert_ptr_null(strstr(text, "delay_compensation"));
    dt_free(text);
    set("train.delay_compensation=0.1");
    EXPECT_USAGE(dt__config_check(&config, 3), "train.delay_compensation: this key is retired");
    dt__config_free(&config);
}
END_TEST

/* ---- two configs ---------------------------------------------------------------------------- */

START_TEST(the_checksum_omits_the_place_of_the_run)
{
    uint32_t before, after;
    set_up();
    EXPECT_OK(dt__config_crc(&config, &before));
    set("run.dir=elsewhere");
    set("run.resume=never");
    EXPECT_OK(dt__config_crc(&config, &after));
    ck_assert_uint_eq(before, after);
    set("train.lr=0.011");
    EXPECT_OK(dt__config_crc(&config, &after));
    ck_assert_uint_ne(before, after);
    dt__config_free(&config);
}
END_TEST

START_TEST(a_resume_may_change_only_some_keys)
{
    struct dt_config now;
    set_up();
    EXPECT_OK(dt__config_init(&now));
    EXPECT_OK(dt__config_match(&config, &now));
    set("model.layers=linear");
    EXPECT_OK(dt_config_set(&now, "model.layers=linear"));
    EXPECT_OK(dt_config_set(&now, "train.epochs=99"));
    EXPECT_OK(dt_config_set(&now, "run.dir=other"));
    EXPECT_OK(dt_config_set(&now, "train.exchange=reduce"));
    EXPECT_OK(dt__config_match(&config, &now));
    EXPECT_OK(dt_config_set(&now, "model.layers=dense 3"));
    EXPECT_FAIL(dt__config_match(&config, &now), DT_EMISMATCH,
                "model.layers=dense 3: the run to resume has linear");
    /* The error names the short form from which the layers were made, or model.hidden if no short
     * form was given. */
    static const char *const forms[][2] = {
        {"model.hidden=5", "model.hidden=5, which makes dense 3: the run to resume has linear"},
        {"model.dropout=0.5", "model.dropout=0.5, which makes dense 3"},
        {"model.kind=linear", "model.kind=linear, which makes dense 3"},
        {"train.epochs=3", "model.hidden=512,256, which makes dense 3"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct dt_config made;
        EXPECT_OK(dt__config_init(&made));
        EXPECT_OK(dt_config_set(&made, forms[i][0]));
        dt_free(made.model.layers);
        EXPECT_OK(dt__strdup("dense 3", &made.model.layers)); /* as dt__config_resolve does */
        EXPECT_FAIL(dt__config_match(&config, &made), DT_EMISMATCH, forms[i][1]);
        dt__config_free(&made);
    }
    EXPECT_OK(dt_config_set(&now, "model.layers=linear"));
    set("run.replicas=4");
    EXPECT_OK(dt__config_match(&config, &now));
    EXPECT_OK(dt_config_set(&now, "run.replicas=3"));
    EXPECT_FAIL(dt__config_match(&config, &now), DT_EMISMATCH, "run.replicas=3");
    dt__config_free(&config);
    dt__config_free(&now);
}
END_TEST

/* Fails if a resume lets ftrl compute the weights with another rate, or loses state because two
 * rules share its vectors. */
START_TEST(a_resume_keeps_keys_that_state_depends_on)
{
    static const struct {
        const char *rule, *change;
        bool kept;
    } rows[] = {
        {"train.optimizer=ftrl", "train.lr=0.1", true},
        {"train.optimizer=ftrl", "train.epsilon=2", true},
        {"train.optimizer=ftrl", "train.l1=2", false},
        {"train.optimizer=adam", "train.lr=0.1", false},
        {"train.wide_optimizer=ftrl", "train.lr=0.1", true},
        {"train.wide_optimizer=ftrl", "train.wide_lr=0.1", true},
        {"train.wide_optimizer=ftrl", "train.epsilon=2", false},
        {"train.wide_optimizer=adam", "train.wide_lr=0.1", false},
        {"train.wide_optimizer=adam", "train.momentum=0", true},
        {"train.wide_optimizer=adam", "train.momentum=0.5", false},
        {"train.optimizer=sgd", "train.momentum=0", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_config now;
        set_up();
        EXPECT_OK(dt__config_init(&now));
        set(rows[i].rule);
        EXPECT_OK(dt_config_set(&now, rows[i].rule));
        EXPECT_OK(dt__config_match(&config, &now));
        EXPECT_OK(dt_config_set(&now, rows[i].change));
        if (rows[i].kept)
            EXPECT_FAIL(dt__config_match(&config, &now), DT_EMISMATCH, rows[i].change);
        else
            EXPECT_OK(dt__config_match(&config, &now));
        dt__config_free(&config);
        dt__config_free(&now);
    }
}
END_TEST

/* A dt_change_fn that counts its calls in *arg. */
static dt_status count_change(void *arg, const char *key, const char *before, const char *after)
{
    (void)key, (void)before, (void)after;
    ++*(int *)arg;
    return DT_OK;
}

/* Evaluations decide the rate under the schedule `plateau`, so their settings count as changes. */
START_TEST(a_resume_reports_changed_evaluations_under_plateau)
{
    static const char *const changes[] = {"data.eval=x", "data.eval_labels=x", "eval.steps=3",
                                          "eval.batches=3", "eval.metric=loss"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct dt_config now;
        int changes_seen = 0;
        set_up();
        EXPECT_OK(dt__config_init(&now));
        EXPECT_OK(dt_config_set(&now, changes[i]));
        EXPECT_OK(dt__config_changes(&config, &now, count_change, &changes_seen));
        ck_assert_int_eq(changes_seen, 0);
        set("train.schedule=plateau");
        EXPECT_OK(dt_config_set(&now, "train.schedule=plateau"));
        EXPECT_OK(dt__config_changes(&config, &now, count_change, &changes_seen));
        ck_assert_int_eq(changes_seen, 1);
        dt__config_free(&config);
        dt__config_free(&now);
    }
}
END_TEST

/* ---- checks --------------------------------------------------------------------------------- */

/* The config is valid until a row's assignments break a rule. */
START_TEST(invalid_combinations_are_refused)
{
    const struct {
        int size;
        const char *assignments[4], *text;
    } rows[] = {
        {3, {"data.train="}, "data.train"},
        {3, {"run.dir="}, "run.dir"},
        {3, {"data.eval=x", "data.eval_fraction=0.1"}, "data.eval and data.eval_fraction"},
        {3, {"data.eval_labels=x"}, "data.eval_labels"},
        {3, {"data.folds=3", "data.fold=3"}, "data.folds and data.fold"},
        {3, {"data.folds=1"}, "data.folds and data.fold"},
        {3, {"data.fold=1"}, "data.folds and data.fold"},
        {3, {"data.folds=3", "data.eval_fraction=0.1"}, "data.folds"},
        {3, {"data.gap=3w"}, "data.gap: expected a number of rows (100), seconds"},
        {3, {"data.gap=1.5"}, "data.gap"},
        {3, {"data.gap="}, "data.gap"},
        {3, {"data.gap=s"}, "data.gap"},
        {3, {"data.gap=-1"}, "data.gap"},
        {3, {"data.gap=1ds"}, "data.gap"},
        {3, {"train.schedule=cosine", "train.min_lr=1"}, "train.min_lr"},
        {3, {"train.epsilon=-0.5"}, "train.epsilon"},
        {3, {"run.reproducible=yes", "train.exchange=reduce"}, "train.exchange=reduce"},
        {3, {"run.reproducible=yes", "train.mode=async"}, "train.mode=async"},
        {3, {"train.mode=async", "train.wire=q8"}, "train.mode=async sends f32"},
        {3, {"run.reproducible=yes"}, "run.replicas=0"},
        {3, {"run.reproducible=yes", "run.replicas=2", "train.local_steps=4"}, "train.groups=0"},
        {3, {"run.reproducible=yes", "run.replicas=2", "train.wire=q8"}, "train.groups=0"},
        {3, {"train.optimizer=ftrl", "train.warmup_steps=5"}, "train.warmup_steps=0"},
        {3,
         {"train.optimizer=ftrl", "train.mode=async", "train.staleness_lr=yes"},
         "train.staleness_lr=no"},
        {3, {"eval.metric=rmse"}, "eval.metric"},
        {3, {"eval.metric=auc", "model.task=regress"}, "eval.metric"},
        {3, {"eval.patience=1"}, "eval.patience"},
        {0,
         {"run.reproducible=yes", "eval.dedicated=yes", "eval.patience=1", "data.eval=x"},
         "timing"},
        {3, {"eval.dedicated=yes"}, "eval.dedicated"},
        {2, {"eval.dedicated=yes", "data.eval=x"}, "at least 3 processes"},
        {1, {"train.mode=async"}, "at least 2 processes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_up();
        set("data.train=x");
        EXPECT_OK(dt__config_check(&config, 1));
        for (int k = 0; k < 4 && rows[i].assignments[k]; k++)
            set(rows[i].assignments[k]);
        EXPECT_USAGE(dt__config_check(&config, rows[i].size), rows[i].text);
        dt__config_free(&config);
    }
}
END_TEST

START_TEST(valid_combinations_are_accepted)
{
    const struct {
        int size;
        const char *assignments[4];
    } rows[] = {
        {2, {"train.mode=async"}},
        {0, {"train.mode=async"}},
        {3, {"eval.dedicated=yes", "data.eval=x"}},
        {0, {"eval.dedicated=yes", "data.eval_fraction=0.1"}},
        {0, {"eval.dedicated=yes", "data.folds=3", "data.fold=2"}},
        {1, {"data.gap=1.5d"}},
        {1, {"data.gap=100"}},
        {1, {"data.gap=3600s"}},
        {1, {"train.epsilon=0"}},
        {1, {"eval.metric=rmse", "model.task=regress"}},
        {1, {"eval.metric=loss", "model.task=regress"}},
        {1, {"run.reproducible=yes", "run.replicas=3", "train.exchange=ordered"}},
        {0, {"run.reproducible=yes"}},
        {3, {"train.wide_optimizer=ftrl", "train.warmup_steps=5"}},
        {2, {"run.reproducible=yes", "run.replicas=2", "train.mode=async", "train.staleness=0"}},
        {1, {"eval.patience=1", "data.eval_fraction=0.1"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_up();
        set("data.train=x");
        for (int k = 0; k < 4 && rows[i].assignments[k]; k++)
            set(rows[i].assignments[k]);
        EXPECT_OK(dt__config_check(&config, rows[i].size));
        dt__config_free(&config);
    }
}
END_TEST

/* ---- memory and descriptions ---------------------------------------------------------------- */

static int allocations_left = -1;
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (allocations_left >= 0 && allocations_left-- == 0) return NULL;
    return __real_aligned_alloc(alignment, size);
}

static dt_status resolve_by(uint64_t rows, int features, bool sparse, bool evaluates)
{
    const struct dt_table_size size = {.rows = rows,
                                       .features = features,
                                       .numbers = sparse ? 0 : features,
                                       .sparse = sparse,
                                       .evaluates = evaluates};
    return dt__config_resolve_by_data(&config, &size);
}

static dt_status allocate_all(void)
{
    char *text = NULL;
    dt_status status = dt__config_init(&config);
    if (!status) status = dt_config_read_text(&config, "f", "[data]\ntrain = \"a\\x3bb\"\n");
    if (!status) status = dt_config_set(&config, "train.lr=0.5");
    if (!status) status = dt_config_print(&config, &text);
    dt_free(text);
    text = NULL;
    /* Then prints the values that the preset and the data decide. */
    if (!status) status = dt_config_set(&config, "run.preset=table");
    if (!status) status = dt_config_set(&config, "eval.dedicated=yes");
    if (!status) status = dt__config_resolve(&config, true);
    if (!status) status = resolve_by(1000, 5000, true, true);
    if (!status) status = dt__config_preset_text(&config, &text);
    dt_free(text);
    dt__config_free(&config);
    return status;
}

/* A set has a name and files, whose paths may contain commas, and after ./ a colon; labels are
 * given by the set's name. Fails if a path is read as a set or if a part of the text is lost. */
START_TEST(sets_have_names_and_files)
{
    static const struct {
        const char *also, *message; /* NULL: the text is valid */
    } texts[] = {{"a.csv,b:c.csv", "'a.csv': expected NAME:FILES"},
                 {"2b:c.csv", "'2b:c.csv': expected NAME:FILES"},
                 {"a:", "expected files after the colon"},
                 {"a:x,a:y", "the name 'a' is taken"},
                 {"init:x", "the name 'init' is taken"},
                 {"train:x.csv", "expected a number of training rows"},
                 {"train:0", "expected a number of training rows"},
                 {"train:1.5", "expected a number of training rows"},
                 {"a234567890123456789012345678901234:x", "at most 31 characters"},
                 {"", NULL},
                 {"  ", NULL}};
    struct dt__named_sets sets;
    set_up();
    set("eval.also= shift:later.csv, m\\,b:re.csv ,./a:b.csv,t_2:*.svm,train:5000");
    set("eval.also_labels=t_2:l.idx,m.idx");
    EXPECT_OK(dt__sets_parse(&config, &sets));
    ck_assert_uint_eq(sets.count, 3);
    ck_assert_str_eq(sets.items[0].name, "shift");
    ck_assert_str_eq(sets.items[0].files, "later.csv, m\\,b:re.csv ,./a:b.csv");
    ck_assert_str_eq(sets.items[0].labels, "");
    ck_assert_str_eq(sets.items[1].files, "*.svm");
    ck_assert_str_eq(sets.items[1].labels, "l.idx,m.idx");
    ck_assert(sets.items[2].sample == 5000 && sets.items[0].sample == 0);
    dt__sets_free(&sets);
    set("eval.also_labels=other:l.idx");
    EXPECT_FAIL(dt__sets_parse(&config, &sets), DT_EUSAGE, "eval.also has no such set");
    set("eval.also_labels=");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char assignment[128];
        snprintf(assignment, sizeof assignment, "eval.also=%s", texts[i].also);
        set(assignment);
        if (texts[i].message)
            EXPECT_FAIL(dt__sets_parse(&config, &sets), DT_EUSAGE, texts[i].message);
        else
            EXPECT_OK(dt__sets_parse(&config, &sets));
        ck_assert_uint_eq(sets.count, 0);
    }
    dt__config_free(&config);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    int limit = 0;
    for (;; limit++) {
        allocations_left = limit;
        const dt_status status = allocate_all();
        if (!status && allocations_left >= 0) break; /* the calls need no further allocation */
        ck_assert_int_eq((int)status, DT_EMEMORY);
    }
    ck_assert_int_gt(limit, 20);
}
END_TEST

/* model.output_bias=auto is the baseline with a preset or the loss poisson, else zero; a given
 * value stays. A configuration that a run wrote before the key existed keeps that run's start,
 * zero. */
START_TEST(output_bias_auto_is_decided)
{
    static const struct {
        const char *first, *second;
        bool table;
        int want;
    } rows[] = {
        {NULL, NULL, true, DT_OUTPUT_BIAS_BASELINE},
        {NULL, NULL, false, DT_OUTPUT_BIAS_ZERO},
        {"run.preset=none", NULL, true, DT_OUTPUT_BIAS_ZERO},
        {"train.lr=0.1", NULL, true, DT_OUTPUT_BIAS_ZERO},
        {"model.output_bias=auto", NULL, true, DT_OUTPUT_BIAS_BASELINE},
        {"model.output_bias=zero", NULL, true, DT_OUTPUT_BIAS_ZERO},
        {"model.output_bias=baseline", NULL, false, DT_OUTPUT_BIAS_BASELINE},
        {"model.task=regress", "train.loss=poisson", false, DT_OUTPUT_BIAS_BASELINE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_up();
        if (rows[i].first) EXPECT_OK(dt_config_set(&config, rows[i].first));
        if (rows[i].second) EXPECT_OK(dt_config_set(&config, rows[i].second));
        EXPECT_OK(dt__config_resolve(&config, rows[i].table));
        ck_assert_int_eq(config.model.output_bias, rows[i].want);
        dt__config_free(&config);
    }
    for (int older = 0; older < 2; older++) {
        char *text, *line;
        set_up();
        EXPECT_OK(dt_config_set(&config, "run.preset=table"));
        EXPECT_OK(dt_config_print(&config, &text));
        dt__config_free(&config);
        ck_assert_ptr_nonnull(line = strstr(text, "output_bias = auto\n"));
        if (older) memset(line, '\n', strlen("output_bias = auto"));
        set_up();
        EXPECT_OK(dt_config_read_text(&config, "config.ini", text));
        EXPECT_OK(dt__config_resolve(&config, true));
        ck_assert_int_eq(config.model.output_bias,
                         older ? DT_OUTPUT_BIAS_ZERO : DT_OUTPUT_BIAS_BASELINE);
        dt_free(text);
        dt__config_free(&config);
    }
}
END_TEST

/* Before the key existed, runs held out rows at random. Their configurations, and resumes of their
 * checkpoints, keep these rows. */
START_TEST(older_runs_keep_their_held_out_rows)
{
    char *text, *line;
    struct dt_config before;
    set_up();
    ck_assert(config.data.stratify);
    EXPECT_OK(dt_config_print(&config, &text));
    dt__config_free(&config);
    ck_assert_ptr_nonnull(line = strstr(text, "stratify = yes\n"));
    memset(line, '\n', strlen("stratify = yes"));
    set_up();
    EXPECT_OK(dt_config_read_text(&config, "config.ini", text));
    EXPECT_OK(dt__config_resolve(&config, true));
    ck_assert(!config.data.stratify);
    dt__config_free(&config);
    EXPECT_OK(dt__config_init(&before));
    EXPECT_OK(dt__config_read_saved(&before, "checkpoint", text));
    ck_assert(!before.data.stratify);
    for (int given = 0; given < 2; given++) {
        set_up();
        if (given) set("data.stratify=yes");
        EXPECT_OK(dt__config_resolve(&config, true));
        EXPECT_OK(dt__config_resolve_resume(&config, &before));
        ck_assert_int_eq(config.data.stratify, given);
        dt__config_free(&config);
    }
    dt__config_free(&before);
    dt_free(text);
    set_up();
    set("data.train=x");
    EXPECT_OK(dt__config_resolve(&config, true));
    ck_assert(config.data.stratify);
    dt__config_free(&config);
}
END_TEST

/* A preset sets only keys that are not given, and rate, decay and schedule only if the optimizer is
 * adamw. auto means the preset `table` if the data is a table and neither optimizer nor rate is
 * given. Epochs and widths follow from the data. */
START_TEST(a_preset_sets_what_is_not_given)
{
    char *text;
    set_up();
    EXPECT_OK(dt__config_resolve(&config, false));
    ck_assert_int_eq(config.run.preset, DT_PRESET_NONE);
    ck_assert_int_eq(config.train.optimizer, DT_OPT_SGD);
    EXPECT_OK(resolve_by(1000, 5, false, true));
    ck_assert_double_eq(config.train.epochs, 10);
    EXPECT_OK(dt__config_preset_text(&config, &text));
    ck_assert_str_eq(text, "");
    dt_free(text);
    dt__config_free(&config);
    set_up();
    EXPECT_OK(dt_config_set(&config, "eval.patience=7"));
    EXPECT_OK(dt__config_resolve(&config, true));
    ck_assert_int_eq(config.run.preset, DT_PRESET_TABLE);
    ck_assert_int_eq(config.data.normalize, DT_NORMALIZE_ROBUST);
    ck_assert_int_eq(config.train.optimizer, DT_OPT_ADAMW);
    ck_assert_int_eq(config.train.schedule, DT_SCHED_COSINE);
    ck_assert_double_eq(config.train.lr, 0.002);
    EXPECT_OK(resolve_by(1000, 5, false, true));
    ck_assert_double_eq(config.train.epochs, 47); /* 47 epochs of 32 steps: at least 1,500 steps */
    ck_assert_int_eq(config.eval.steps, 51);
    ck_assert_int_eq(config.eval.patience, 7);
    ck_assert_str_eq(config.model.hidden, "64,64");
    EXPECT_OK(dt__config_preset_text(&config, &text));
    ck_assert_str_eq(
        text, "data.normalize=robust, data.encode=ple, data.encode_bins=8, model.hidden=64,64, "
              "model.dropout=0.4, "
              "model.output_bias=baseline, train.batch=32, train.epochs=47, train.optimizer=adamw, "
              "train.lr=0.002, "
              "train.weight_decay=3, train.schedule=cosine, eval.steps=51, eval.metric=loss");
    dt_free(text);
    dt__config_free(&config);
    set_up();
    EXPECT_OK(dt_config_set(&config, "model.kind=linear"));
    EXPECT_OK(dt__config_resolve(&config, true));
    ck_assert_double_eq(config.train.lr, 0.01);
    EXPECT_OK(resolve_by(10000000, 50000, true, false));
    ck_assert_double_eq(config.train.weight_decay, 0.01);
    ck_assert_double_eq(config.train.epochs, 3);
    ck_assert_int_eq(config.model.embedding, 0);
    ck_assert_int_eq(config.eval.patience, 0);
    dt__config_free(&config);
    set_up();
    EXPECT_OK(dt__config_resolve(&config, true));
    EXPECT_OK(resolve_by(200000, 50000, true, true));
    ck_assert_double_eq(config.train.epochs, 4);
    ck_assert_int_eq(config.model.embedding, 32);
    ck_assert_int_eq(config.train.batch, 256);
    ck_assert(config.model.wide && config.train.decay_matrices);
    ck_assert_int_eq(config.eval.steps, 196); /* four times per epoch */
    dt__config_free(&config);
}
END_TEST

/* The steps between evaluations depend on the mode: an async update comes from one replica, and
 * with a dedicated evaluator the steps between checkpoints count instead. */
START_TEST(a_preset_sets_the_steps_between_evaluations)
{
    set_up();
    EXPECT_OK(dt_config_set(&config, "train.mode=async"));
    EXPECT_OK(dt_config_set(&config, "run.replicas=4"));
    EXPECT_OK(dt__config_resolve(&config, true));
    EXPECT_OK(resolve_by(1000, 5, false, true));
    ck_assert_int_eq(config.eval.steps, 201);
    dt__config_free(&config);
    set_up();
    EXPECT_OK(dt_config_set(&config, "eval.dedicated=yes"));
    EXPECT_OK(dt_config_set(&config, "model.kind=mlp"));
    EXPECT_OK(dt__config_resolve(&config, true));
    ck_assert(dt__config_widths_wait(&config));
    EXPECT_OK(resolve_by(1000, 5, false, true));
    ck_assert(!dt__config_is_given(&config, "eval.steps"));
    ck_assert_int_eq(config.run.checkpoint_steps, 51);
    ck_assert_int_eq(config.eval.patience, 10);
    ck_assert_str_eq(config.model.hidden, "64,64");
    dt__config_free(&config);
    set_up(); /* early stopping would depend on timing */
    EXPECT_OK(dt_config_set(&config, "eval.dedicated=yes"));
    EXPECT_OK(dt_config_set(&config, "run.reproducible=yes"));
    EXPECT_OK(dt__config_resolve(&config, true));
    EXPECT_OK(resolve_by(1000, 5, false, true));
    ck_assert_int_eq(config.eval.patience, 0);
    dt__config_free(&config);
}
END_TEST

/* The values that the preset sets, given the assignment `set` and a table of this size; hidden
 * NULL: any. */
static const struct {
    const char *set;
    struct dt_table_size size;
    const char *hidden, *dropout;
    double decay;
    int encode, bins, batch;
} PRESETS[] = {
    {"", {1999, 9, 9, 2, false, true}, "64,64", "0.4", 3, DT_ENCODE_PLE, 8, 32},
    {"", {2000, 9, 9, 2, false, true}, "128,128", "0.4", 1, DT_ENCODE_PLE, 8, 32},
    {"", {2000, 9, 0, 2, false, true}, "128,128", "0.4", 1, DT_ENCODE_NONE, 16, 32},
    {"", {2000, 300, 300, 3, false, true}, "128,128", "0.2", 0.3, DT_ENCODE_PLE, 4, 32},
    {"", {20000, 784, 784, 10, false, true}, "256,256", "0.2", 0.3, DT_ENCODE_NORMAL, 16, 128},
    {"run.replicas=20", {900, 9, 9, 2, false, true}, "64,64", "0.4", 3, DT_ENCODE_PLE, 8, 160},
    {"model.task=regress",
     {1000, 9, 9, 0, false, true},
     "128,128",
     "0.1",
     0.3,
     DT_ENCODE_PLE,
     16,
     32},
    {"model.task=regress",
     {20000, 9, 9, 0, false, true},
     "256,256,256",
     "0",
     0.3,
     DT_ENCODE_PLE,
     48,
     64},
    {"model.hidden=7", {20000, 9, 9, 2, false, true}, "7", "0", 0.3, DT_ENCODE_PLE, 16, 128},
    {"model.layers=dense 7 relu",
     {20000, 9, 9, 2, false, true},
     NULL,
     "0",
     0.3,
     DT_ENCODE_NONE,
     16,
     128},
    {"model.kind=linear", {20000, 9, 9, 2, false, true}, NULL, "0", 0.01, DT_ENCODE_NONE, 16, 128},
};

/* The preset depends on the task and the number of rows, the encoding on the columns. Linear models
 * and given layers get no encoding. */
START_TEST(a_preset_depends_on_task_and_rows)
{
    for (size_t i = 0; i < sizeof PRESETS / sizeof *PRESETS; i++) {
        char *text;
        set_up();
        if (*PRESETS[i].set) EXPECT_OK(dt_config_set(&config, PRESETS[i].set));
        EXPECT_OK(dt__config_resolve(&config, true));
        EXPECT_OK(dt__config_resolve_by_data(&config, &PRESETS[i].size));
        EXPECT_OK(dt__config_preset_text(&config, &text));
        ck_assert_msg((!PRESETS[i].hidden || !strcmp(config.model.hidden, PRESETS[i].hidden)) &&
                          fabs(config.model.dropout - strtod(PRESETS[i].dropout, NULL)) < 1e-9 &&
                          fabs(config.train.weight_decay - PRESETS[i].decay) < 1e-9 &&
                          config.data.encode == PRESETS[i].encode &&
                          config.data.encode_bins == PRESETS[i].bins &&
                          config.train.batch == PRESETS[i].batch,
                      "case %zu: %s", i, text);
        dt_free(text);
        dt__config_free(&config);
    }
}
END_TEST

START_TEST(a_preset_does_not_change_a_given_optimizer)
{
    set_up();
    EXPECT_OK(dt_config_set(&config, "train.optimizer=ftrl"));
    EXPECT_OK(dt__config_resolve(&config, true));
    ck_assert_int_eq(config.run.preset, DT_PRESET_NONE);
    dt__config_free(&config);
    set_up();
    EXPECT_OK(dt_config_set(&config, "run.preset=table"));
    EXPECT_OK(dt_config_set(&config, "data.normalize=none"));
    EXPECT_OK(dt_config_set(&config, "train.optimizer=ftrl"));
    EXPECT_OK(dt__config_resolve(&config, false));
    ck_assert_int_eq(config.data.normalize, DT_NORMALIZE_NONE);
    ck_assert_int_eq(config.train.schedule, DT_SCHED_CONSTANT);
    ck_assert_double_eq(config.train.lr, 0.01);
    ck_assert_double_eq(config.train.weight_decay, 0);
    dt__config_free(&config);
}
END_TEST

/* A resume keeps the settings with which its run began, whatever the preset sets now; a run from
 * before presets existed gets none. */
START_TEST(a_resume_keeps_its_preset)
{
    struct dt_config before;
    EXPECT_OK(dt__config_init(&before));
    /* the earlier run has decided what auto means */
    EXPECT_OK(dt_config_set(&before, "data.encode=none"));
    set_up();
    EXPECT_OK(dt__config_resolve(&config, true));
    EXPECT_OK(dt__config_resolve_resume(&config, &before));
    ck_assert_int_eq(config.run.preset, DT_PRESET_NONE);
    EXPECT_OK(dt__config_match(&before, &config));
    ck_assert_double_eq(config.train.lr, 0.01);
    dt__config_free(&config);
    EXPECT_OK(dt_config_set(&before, "run.preset=table"));
    EXPECT_OK(dt_config_set(&before, "data.normalize=standard"));
    EXPECT_OK(dt_config_set(&before, "train.epochs=55"));
    EXPECT_OK(dt_config_set(&before, "model.layers=dense 9 relu"));
    set_up();
    /* given, so auto would mean no preset */
    EXPECT_OK(dt_config_set(&config, "train.lr=0.5"));
    EXPECT_OK(dt__config_resolve(&config, true));
    EXPECT_OK(dt__config_resolve_resume(&config, &before));
    EXPECT_OK(resolve_by(1000, 5, false, true));
    EXPECT_OK(dt__config_match(&before, &config));
    ck_assert_double_eq(config.train.epochs, 55);
    ck_assert_double_eq(config.train.lr, 0.5);
    dt__config_free(&config);
    EXPECT_OK(dt_config_set(&before, "eval.dedicated=yes"));
    EXPECT_OK(dt_config_set(&before, "run.checkpoint_steps=84"));
    set_up();
    EXPECT_OK(dt_config_set(&config, "eval.dedicated=yes"));
    EXPECT_OK(dt_config_set(&config, "train.epochs=2000"));
    EXPECT_OK(dt__config_resolve(&config, true));
    EXPECT_OK(dt__config_resolve_resume(&config, &before));
    EXPECT_OK(resolve_by(1000, 5, false, true));
    ck_assert_int_eq(config.run.checkpoint_steps, 84);
    dt__config_free(&config);
    dt__config_free(&before);
}
END_TEST

START_TEST(descriptions_have_every_key)
{
    for (int form = DT_DESCRIBE_TEXT; form <= DT_DESCRIBE_MARKDOWN; form++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        EXPECT_OK(dt__config_describe(out, (enum dt_describe)form, NULL));
        fclose(out);
        for (int i = 0; i < DT__OPTION_COUNT; i++) {
            const struct dt__option *option = &dt__options[i];
            bool found = strstr(text, option->name) && strstr(text, option->help);
            ck_assert_msg(found == !dt__option_is_hidden(option), "%s", option->name);
        }
        free(text);
    }
}
END_TEST

SUITE("config", sets_have_names_and_files, defaults_are_as_promised, a_given_key_is_known,
      names_are_in_the_order_of_enumerators, numbers_are_read_whole, wrong_numbers_are_refused,
      yes_and_no_have_other_names, wrong_values_are_refused, edit_distance_counts_letters,
      unknown_keys_name_the_nearest, a_command_takes_its_own_keys, a_file_keeps_other_keys,
      a_value_continues_after_a_comma, messages_about_a_file_name_the_line,
      files_that_are_no_config_are_refused, long_lines_stay_whole,
      a_list_continues_in_the_next_line, a_comment_ends_with_its_line, any_text_survives,
      random_text_survives, any_number_survives, every_option_survives,
      values_go_to_another_process, test_hooks_are_printed_only_when_set,
      retired_keys_keep_their_default, the_checksum_omits_the_place_of_the_run,
      a_resume_may_change_only_some_keys, a_resume_keeps_keys_that_state_depends_on,
      a_resume_reports_changed_evaluations_under_plateau, invalid_combinations_are_refused,
      valid_combinations_are_accepted, every_allocation_may_fail, output_bias_auto_is_decided,
      older_runs_keep_their_held_out_rows, a_preset_sets_what_is_not_given,
      a_preset_sets_the_steps_between_evaluations, a_preset_does_not_change_a_given_optimizer,
      a_preset_depends_on_task_and_rows, a_resume_keeps_its_preset, descriptions_have_every_key)
