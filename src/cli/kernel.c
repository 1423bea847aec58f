#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/cli.h"
#include "dtrain/model.h"

/* Sets a variable; true if that changed it. */
static bool change(const char *name, const char *value)
{
    const char *old = getenv(name);
    if (old && !strcmp(old, value)) return false;
    return setenv(name, value, 1) == 0;
}

/* By its path: /proc/self/exe would become the name that `ps` shows. */
static void execute_again(char **argv)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = '\0';
        execv(path, argv);
    }
    execv("/proc/self/exe", argv);
    dt_warn("cannot execute the program again; OpenBLAS keeps its own settings");
}

/* run.kernel as far as this rank can tell. Errors are left for the command to find. */
static dt_status kernel_option(const struct command *command, int argc, char **argv, char **out)
{
    struct dt_config config;
    DT_TRY(dt_config_init(&config));
    for (int i = 1; i < argc && command == command_default(); i++) {
        if (!cli_is_assignment(argv[i])) dt_config_read_file(&config, argv[i]);
    }
    for (int i = 1; i < argc; i++) {
        if (cli_is_assignment(argv[i])) dt_config_set(&config, argv[i]);
    }
    dt_status status = dt_strdup(config.run.kernel, out);
    dt_config_free(&config);
    return status;
}

/* The option comes first, then the table: bits must not depend on a variable that some profile sets.
 * The environment counts where it is asked for, and on CPUs that the table does not know. */
static bool settle_kernel(const char *option)
{
    if (!strcmp(option, "env")) return false;
    const char *kernel = strcmp(option, "auto") ? option : dt_blas_kernel_for_cpu();
    return kernel && !dt_blas_choose(kernel) && change("OPENBLAS_CORETYPE", kernel);
}

/* The second time nothing is left to change, so this ends. */
dt_status cli_settle_blas(const struct command *command, int argc, char **argv, char **whole_argv)
{
    char *option;
    DT_TRY(kernel_option(command, argc, argv, &option));
    bool changed = settle_kernel(option);
    dt_free(option);
    if (!getenv("OPENBLAS_NUM_THREADS")) changed |= change("OPENBLAS_NUM_THREADS", "1");
    if (changed) execute_again(whole_argv);
    return DT_OK;
}

dt_status cli_check_kernel(const struct dt_config *config)
{
    const char *kernel = config->run.kernel;
    bool named = strcmp(kernel, "auto") && strcmp(kernel, "env");
    if (!named || !strcasecmp(kernel, dt_blas_kernel())) return DT_OK;
    return dt_fail(DT_EUSAGE, "run.kernel=%s: expected a kernel for this machine; it runs %s",
                   kernel, dt_blas_kernel());
}
