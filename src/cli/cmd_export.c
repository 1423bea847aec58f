/* `dtrain export`: a model as a file for other programs. */
#include <string.h>

#include "cli/cli.h"
#include "predict/onnx.h"

dt_status cmd_export(int argc, char **argv)
{
    struct dt_predictor *predictor;
    if (argc != 3) return dt_fail(DT_EUSAGE, "export: expected MODEL OUT.onnx");
    const char *out = argv[2], *dot = strrchr(out, '.');
    if (!dot || strcmp(dot, ".onnx") != 0)
        return dt_fail(DT_EUSAGE, "%s: expected a name that ends in .onnx", out);
    DT_TRY(dt__predictor_load(argv[1], &predictor));
    if (dt__path_is_dir(argv[1])) dt__info("export: %s", predictor->path);
    dt_status status = dt__onnx_write(predictor, out);
    dt_predictor_close(predictor);
    return status;
}
