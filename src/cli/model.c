#include <string.h>
#include <strings.h>

#include "cli/cli.h"

bool cli_is_given(const char *key, int argc, char **argv)
{
    size_t length = strlen(key);
    for (int i = 2; i < argc; i++)
        if (!strncmp(argv[i], key, length) && argv[i][length] == '=') return true;
    return false;
}

/* Other files than the run's own: neither its labels nor its held-out rows are theirs. */
static dt_status settle_data(struct dt_config *config, int argc, char **argv)
{
    if (!cli_is_given("data.eval", argc, argv)) return DT_OK;
    if (!cli_is_given("data.eval_labels", argc, argv))
        DT_TRY(dt_config_set(config, "data.eval_labels="));
    return dt_config_set(config, "data.eval_fraction=0");
}

/* What the model was made with, and the arguments over it. */
static dt_status configure(struct cli_model *model, int argc, char **argv)
{
    struct dt_config *config = &model->config;
    DT_TRY(dt_config_init(config));
    dt_status status = dt_config_read_text(config, model->path, model->file.config);
    if (!status) status = cli_set_options(config, argc - 2, argv + 2);
    if (!status) status = settle_data(config, argc, argv);
    if (status) dt_config_free(config);
    return status;
}

static void warn_of_kernel(const struct cli_model *model)
{
    const char *kernel = model->config.run.kernel;
    if (strcmp(kernel, "auto") != 0 && strcasecmp(kernel, dt_blas_kernel()) != 0)
        dt_warn("%s was made with run.kernel=%s, this is %s: the last digits may differ",
                model->path, kernel, dt_blas_kernel());
}

dt_status cli_model_open(struct cli_model *model, int argc, char **argv)
{
    if (argc < 2) return dt_fail(DT_EUSAGE, "%s: expected a model", argv[0]);
    *model = (struct cli_model){0};
    DT_TRY(dt_export_load(argv[1], &model->file, &model->path));
    dt_status status = configure(model, argc, argv);
    if (!status) status = dt_model_create(&model->file.spec, &model->network);
    if (status) {
        dt_export_free(&model->file);
        dt_free(model->path);
        return status;
    }
    warn_of_kernel(model);
    dt_blas_set_threads((int)model->config.run.threads);
    return DT_OK;
}

void cli_model_close(struct cli_model *model)
{
    dt_model_destroy(model->network);
    dt_config_free(&model->config);
    dt_export_free(&model->file);
    dt_free(model->path);
}
