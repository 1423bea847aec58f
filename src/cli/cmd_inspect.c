#include "cli/cli.h"
#include "dtrain/state.h"

dt_status cmd_inspect(int argc, char **argv)
{
    if (argc != 2) return dt_fail(DT_EUSAGE, "inspect: expected one file");
    return dt_inspect(argv[1], stdout);
}
