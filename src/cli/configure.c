#include <string.h>

#include "cli/cli.h"

bool cli_is_assignment(const char *argument)
{
    return argument[strcspn(argument, "=/")] == '=';
}

static dt_status read_config(struct dt_config *config, const char *path)
{
    if (!dt_path_exists(path))
        return dt_fail(DT_EUSAGE,
                       "%s: no such configuration file, nor a command; see dtrain --help", path);
    return dt_config_read_file(config, path);
}

dt_status cli_configure(struct dt_config *config, int count, char **arguments)
{
    if (count == 0) return dt_fail(DT_EUSAGE, "expected a configuration file; see dtrain --help");
    for (int i = 0; i < count; i++) {
        if (!cli_is_assignment(arguments[i])) DT_TRY(read_config(config, arguments[i]));
    }
    for (int i = 0; i < count; i++) {
        if (cli_is_assignment(arguments[i])) DT_TRY(dt_config_set(config, arguments[i]));
    }
    return DT_OK;
}

dt_status cli_set_options(struct dt_config *config, int count, char **arguments)
{
    for (int i = 0; i < count; i++)
        DT_TRY(dt_config_set(config, arguments[i]));
    return DT_OK;
}
