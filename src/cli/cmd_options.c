#include <string.h>

#include "cli/cli.h"

dt_status cmd_options(int argc, char **argv)
{
    bool markdown = argc == 2 && !strcmp(argv[1], "--markdown");
    if (argc > 1 && !markdown)
        return dt_fail(DT_EUSAGE, "%s: expected --markdown or nothing", argv[1]);
    dt_config_describe(stdout, markdown);
    return DT_OK;
}
