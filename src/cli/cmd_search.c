/* `dtrain search`: many trials in one job. */
#include "cli/cli.h"
#include "search/search.h"

dt_status cmd_search(int argc, char **argv)
{
    return cli_in_world(dt__search, argc, argv);
}
