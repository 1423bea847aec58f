/* `dtrain export`: writes a model as a file for other programs. */
#include <string.h>

#include "cli/cli.h"
#include "predict/onnx.h"

dt_status cmd_export(int argc, char **argv)
{
    struct dt_predictor *predictor;
    static const char interval[] = "predict.interval=";
    const char *given = argc == 4 && !strncmp(argv[3], interval, strlen(interval)) ? argv[3] : NULL;
    struct dt_config config;
    if (argc != 3 && !given)
        return dt_fail(DT_EUSAGE, "export: expected MODEL OUT.onnx [predict.interval=0.9]");
    const char *out = argv[2], *dot = strrchr(out, '.');
    if (!dot || strcmp(dot, ".onnx") != 0)
        return dt_fail(DT_EUSAGE, "%s: expected a name that ends in .onnx", out);
    DT_TRY(dt__predictor_load(argv[1], &predictor));
    if (dt__path_is_dir(argv[1])) dt__info("export: %s", predictor->path);
    dt_status status = given ? dt__config_init(&config) : DT_OK;
    if (given && !status) {
        status = dt__config_set_for(&config, "export", given);
        if (!status) status = dt__predictor_interval(predictor, config.predict.interval);
        dt__config_free(&config);
    }
    if (!status) status = dt__onnx_write(predictor, out);
    dt_predictor_close(predictor);
    return status;
}
