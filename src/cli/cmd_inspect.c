/* dtrain inspect: what files hold, tables of rows or files of our own. */
#include <string.h>

#include "cli/cli.h"
#include "dtrain/data.h"
#include "dtrain/state.h"

dt_status cmd_inspect(int argc, char **argv)
{
    struct dt_config config;
    int files = 0;
    DT_TRY(dt_config_init(&config));
    dt_status status = DT_OK;
    for (int i = 1; i < argc && !status; i++) {
        if (strchr(argv[i], '=') && !dt_path_exists(argv[i]))
            status = dt_config_set_for(&config, strncmp(argv[i], "data.", 5) ? "inspect" : NULL,
                                       argv[i]); /* whatever a run takes of its data */
        else
            argv[++files] = argv[i];
    }
    if (!status && !files)
        status = dt_fail(DT_EUSAGE, "inspect: expected a file or a run directory");
    for (int i = 1; i <= files && !status; i++) {
        if (i > 1) printf("\n");
        if (dt_data_is_table(argv[i]))
            status = dt_data_inspect(&config, argv[i], stdout);
        else
            status = dt_inspect(argv[i], stdout);
    }
    dt_config_free(&config);
    return status;
}
