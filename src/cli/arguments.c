/* Arguments of commands: the log level; a configuration; a model, with settings that override those
 * of its run. Also cells of tables, which several commands print. */
#include <string.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "config/option.h"
#include "config/threshold.h"
#include "data/data.h"

/* ---- the log --------------------------------------------------------------------------------- */

void cli_take_log_level(int *argc, char **argv)
{
    int kept = 0;
    for (int i = 0; i < *argc; i++) {
        const char *word = !strcmp(argv[i], "-q")   ? "error"
                           : !strcmp(argv[i], "-v") ? "debug"
                                                    : NULL;
        if (!strncmp(argv[i], "--log=", 6)) word = argv[i] + 6;
        const int level = word ? dt__config_choice_index("error|warn|info|debug", word) : -1;
        if (level >= 0)
            dt_log_set_level((enum dt_log_level)level);
        else
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
}

/* ---- a configuration ------------------------------------------------------------------------ */

/* Returns true for "section.key=value". A path may contain '=', but only after a '/'. */
static bool is_assignment(const char *argument)
{
    return *argument != '-' && argument[strcspn(argument, "=/")] == '=';
}

/* Returns the command that was probably meant by an unknown word; "": none is similar. */
static const char *command_near(const char *word)
{
    for (size_t i = 0; i < commands_count; i++) {
        const size_t distance = dt__edit_distance(word, commands[i].name);
        if (distance <= 2 && 2 * distance <= strlen(commands[i].name)) return commands[i].name;
    }
    return "";
}

/* Refuses a table that was given in place of a configuration. The message shows the command that
 * trains on the table, with the other arguments. */
static dt_status table_refuse(const char *path, int count, char **arguments)
{
    struct dt_text keys = {0};
    dt_status status = DT_OK;
    for (int i = 0; i < count && !status; i++)
        if (is_assignment(arguments[i])) status = dt__text_add(&keys, " %s", arguments[i]);
    if (!status)
        status =
            dt_fail(DT_EUSAGE,
                    "%s: a table, not a configuration: `dtrain inspect %s` shows what it "
                    "holds, `dtrain data.train=%s data.eval_fraction=0.2 run.dir=runs/first%s` "
                    "trains on it",
                    path, path, path, keys.length ? keys.data : "");
    dt__text_free(&keys);
    return status;
}

dt_status cli_configure(struct dt_config *config, const char *command, int count, char **arguments)
{
    if (count == 0) return dt_fail(DT_EUSAGE, "expected a configuration file; see dtrain --help");
    for (int i = 0; i < count; i++) {
        const char *path = arguments[i];
        if (is_assignment(path)) continue;
        if (path[0] == '-' && !dt__path_exists(path))
            return dt_fail(DT_EUSAGE,
                           "%s: not a flag; there are --log=error|warn|info|debug, -q and -v; see "
                           "dtrain --help",
                           path);
        const char *near = command_near(path);
        const struct dt__option *option;
        if (!dt__path_exists(path) && !dt__option_find(path, &option))
            return dt_fail(DT_EUSAGE, "%s: expected %s=VALUE", path, path);
        if (!dt__path_exists(path))
            return dt_fail(DT_EUSAGE, "%s: no such file, and no command of this name; %s%s%s", path,
                           *near ? "did you mean " : "see dtrain --help", near, *near ? "?" : "");
        const dt_status status = dt_config_read_file(config, path);
        if (status && dt__data_is_table(path)) return table_refuse(path, count, arguments);
        DT_TRY(status);
    }
    for (int i = 0; i < count; i++)
        if (is_assignment(arguments[i])) DT_TRY(dt__config_set_for(config, command, arguments[i]));
    return DT_OK;
}

/* ---- a model -------------------------------------------------------------------------------- */

/* Resets the run's label files, held-out fractions, sets and eval.batches, unless arguments set
 * them: they belong to the run's data, not to the files of data.eval. */
static dt_status model_reset_rows(struct dt_config *config)
{
    static const struct {
        const char *key, *value;
        bool always;
    } RESET[] = {{"data.eval_labels", "", false},   {"data.eval_fraction", "0", true},
                 {"data.test_fraction", "0", true}, {"data.folds", "0", true},
                 {"eval.also", "", false},          {"eval.also_labels", "", false},
                 {"eval.batches", "0", false}};
    char setting[64];
    if (!*config->data.eval) return dt_fail(DT_EUSAGE, "data.eval=: expected files or globs");
    for (size_t i = 0; i < sizeof RESET / sizeof *RESET; i++) {
        if (!RESET[i].always && dt__config_is_given(config, RESET[i].key)) continue;
        (void)snprintf(setting, sizeof setting, "%s=%s", RESET[i].key, RESET[i].value);
        DT_TRY(dt_config_set(config, setting));
    }
    return DT_OK;
}

dt_status cli_model_open(struct cli_model *model, int argc, char **argv)
{
    struct dt_config *config = &model->config;
    dt_status status;
    bool native;
    if (argc < 2) return dt_fail(DT_EUSAGE, "%s: expected a model", argv[0]);
    *model = (struct cli_model){0};
    DT_GUARD(dt__predictor_load(argv[1], &model->predictor));
    DT_GUARD(dt__config_init(config));
    DT_GUARD(dt__config_read_saved(config, model->predictor->path, model->predictor->file.config));
    if (dt__config_certifies(config) && !model->predictor->file.certainty.known)
        dt__warn("%s is not an export of the end of its run: it has no threshold, temperature or "
                 "intervals",
                 model->predictor->path);
    model->held_out = config->data.eval_fraction;
    model->test = config->data.test_fraction;
    model->folds = config->data.folds;
    /* from here on, a key is given only if an argument sets it */
    memset(config->given, 0, sizeof config->given);
    for (int i = 2; i < argc; i++) {
        if (!is_assignment(argv[i]) && dt__path_exists(argv[i]))
            DT_GUARD(
                dt_fail(DT_EUSAGE, "%s: expected data.eval=%s%s", argv[i], argv[i],
                        strcmp(argv[0], "predict") ? "" : ", or rows from standard input: < FILE"));
        DT_GUARD(dt__config_set_for(config, argv[0], argv[i]));
    }
    if (dt__config_is_given(config, "data.eval")) DT_GUARD(model_reset_rows(config));
    /* Use the run's kernel; it is an error if the arguments name one that is not available, and a
     * warning if the run's own is not. Predictions are made in f32, but the kernel of a run in bf16
     * also decides how convolutions in f32 are computed. */
    if (config->run.precision == DT_PRECISION_BF16)
        (void)dt__bf16_select(config->run.kernel, &native);
    (void)dt__bf16_select(NULL, &native);
    status = dt__blas_select(config->run.kernel);
    if (status == DT_EUSAGE && !dt__config_is_given(config, "run.kernel")) {
        dt__warn("%s was made with run.kernel=%s, this is %s: the last digits may differ",
                 model->predictor->path, config->run.kernel, dt__blas_kernel());
        status = DT_OK;
    }
    DT_GUARD(status);
    dt__blas_set_threads((int)config->run.threads);
    if (dt__path_is_dir(argv[1])) dt__info("%s: %s", argv[0], model->predictor->path);
done:
    if (status) cli_model_close(model);
    return status;
}

void cli_model_close(struct cli_model *model)
{
    dt__config_free(&model->config);
    dt_predictor_close(model->predictor);
    *model = (struct cli_model){0}; /* allows a second call */
}

dt_status cli_model_survey(const struct cli_model *model, enum dt_part part, struct dt_source **out)
{
    const struct dt_schema *schema = &model->predictor->file.schema;
    dt_status status = dt__source_survey(&model->config, part, schema, out);
    if (!status && !*out && part == DT_PART_EVAL) /* the run held out only test rows */
        status = dt__source_survey(&model->config, DT_PART_TEST, schema, out);
    const bool named = dt__config_is_given(&model->config, "data.eval");
    if (status == DT_EIO && !named)
        return dt_fail_prefix(status, "the data of the run, whose paths are looked up from here: ");
    if (status || *out) return status;
    return dt_fail(DT_EUSAGE, "%s was trained %s: expected data.eval=FILES", model->predictor->path,
                   model->config.search.folds ? "on all rows, in folds" : "without held-out data");
}

dt_status cli_csv_add(struct dt_text *line, const char *cell, size_t length)
{
    bool quoted = false;
    for (size_t i = 0; i < length; i++)
        quoted |= strchr(",;\"\r\n", cell[i]) != NULL;
    if (!quoted) return dt__text_append(line, cell, length);
    DT_TRY(dt__text_append(line, "\"", 1));
    for (size_t i = 0; i < length; i++)
        DT_TRY(dt__text_append(line, cell[i] == '"' ? "\"\"" : &cell[i], cell[i] == '"' ? 2 : 1));
    return dt__text_append(line, "\"", 1);
}

int cli_text_width(const char *text)
{
    int width = 0;
    for (; text && *text; text++)
        width += dt__begins_character(*text);
    return width;
}

void cli_print_text(const char *text, int width)
{
    const int wide = cli_text_width(text);
    int column = 0;
    for (; text && *text; text++) {
        const bool obeyed = dt__is_obeyed(text);
        column += dt__begins_character(*text);
        if (!width || column <= width) putchar(obeyed ? '?' : *text);
        if (obeyed && !dt__is_control(*text)) text++; /* the character has two bytes */
    }
    printf("%*s", width > wide ? width - wide : 0, "");
}
