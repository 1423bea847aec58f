/* dtrain inspect: shows the contents of files, which are tables of rows or files of this program.
 * For a table it proposes lines of a configuration, after a trial of them on the data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "data/data.h"
#include "state/state.h"

/* Rough cost of a run with the preset: seconds per step without its products, and per parameter;
 * products per second and core; memory of a rank without data, in MB. */
static const double STEP_SECS = 2e-4, PARAMETER_SECS = 1e-9, CORE_FLOPS = 4e10, RANK_MB = 60;
static const uint64_t MOST_BYTES = UINT64_C(256) << 20; /* largest file that is read a second time
                                                         * to try the proposal */

/* Prints the size of the run that the configuration describes, as an upper bound, since the run
 * stops once there is no improvement. */
static void run_print(const struct dt_config *config, const struct dt_source *source, FILE *out)
{
    const struct dt_schema *schema = dt__source_schema(source);
    const double rows = (double)dt__source_rows(source), batch = (double)config->train.batch;
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN), features = schema->features;
    const double texts = schema->dense < features ? dt__schema_categories(schema) : 0;
    int width = 0;
    sscanf(config->model.hidden, "%d", &width); /* the second layer is assumed to be half as wide */
    const double vector = config->model.embedding ? (double)config->model.embedding : 1;
    const double products = (schema->dense + texts * vector + 0.5 * width) * width;
    const double rest = texts > 0 ? features * (config->model.embedding ? vector : width) : 0;
    const double secs = config->train.epochs * ceil(rows / batch) *
                        (STEP_SECS + (products + rest) * PARAMETER_SECS +
                         6 * products * batch / CORE_FLOPS / cores);
    const double data = rows * (schema->dense + 3 * texts + 1) * sizeof(float);
    fprintf(out,
            "; at most %g passes over %.0f training rows of %.0f numbers: about %.0f %s on %.0f "
            "cores, ",
            config->train.epochs, rows, features, ceil(secs < 100 ? secs : secs / 60),
            secs < 100 ? "s" : "minutes", cores);
    fprintf(out, "%.0f MB a rank\n", RANK_MB + ((products + rest) * 16 + data) / 1e6);
}

static dt_status lines_try(const char *lines, FILE *out)
{
    struct dt_config config;
    struct dt_source *source = NULL;
    char *keys = NULL;
    dt_status status;
    DT_TRY(dt__config_init(&config));
    DT_GUARD(dt_config_read_text(&config, "inspect", lines));
    DT_GUARD(dt__config_resolve(&config, true));
    DT_GUARD(dt__source_survey(&config, DT_PART_TRAIN, NULL, &source));
    const struct dt_table_size size =
        dt__schema_size(dt__source_schema(source), dt__source_rows(source), true);
    DT_GUARD(dt__config_resolve_by_data(&config, &size));
    DT_GUARD(dt__config_preset_text(&config, &keys));
    fprintf(out, "; run.preset=table sets %s (see `dtrain options run.preset`)\n", keys);
    run_print(&config, source, out);
done:
    if (status) fprintf(out, "; these lines do not train yet: %s\n", dt_error_text());
    dt_free(keys);
    dt__source_destroy(source);
    dt__config_free(&config);
    return DT_OK;
}

static dt_status table_inspect(const struct dt_config *config, const char *path, FILE *out)
{
    char *lines = NULL;
    size_t length;
    struct stat info;
    FILE *proposed = open_memstream(&lines, &length);
    if (!proposed) return dt_fail(DT_EMEMORY, "out of memory for the lines that a table needs");
    dt_status status = dt__data_inspect(config, path, out, proposed);
    if (fclose(proposed) && !status)
        status = dt_fail(DT_EMEMORY, "out of memory for the lines that a table needs");
    if (!status) fputs(lines, out);
    if (!status && !stat(path, &info) && S_ISREG(info.st_mode) &&
        (uint64_t)info.st_size < MOST_BYTES)
        status = lines_try(lines, out);
    free(lines);
    return status;
}

dt_status cmd_inspect(int argc, char **argv)
{
    struct dt_config config;
    int files = 0;
    DT_TRY(dt__config_init(&config));
    dt_status status = DT_OK;
    for (int i = 1; i < argc && !status; i++) {
        if (!strchr(argv[i], '=') || dt__path_exists(argv[i]))
            argv[++files] = argv[i];
        else if (strncmp(argv[i], "data.", 5))
            status = dt_fail(DT_EUSAGE, "inspect: %s: expected data.KEY=VALUE", argv[i]);
        else
            status = dt_config_set(&config, argv[i]);
    }
    if (!status && !files)
        status = dt_fail(DT_EUSAGE, "inspect: expected a file or a run directory");
    for (int i = 1; i <= files && !status; i++) {
        if (i > 1) printf("\n");
        if (dt__data_is_table(argv[i]))
            status = table_inspect(&config, argv[i], stdout);
        else
            status = dt__inspect(argv[i], stdout);
    }
    dt__config_free(&config);
    return status;
}
