/* `dtrain search`: many trials in one job. */
#include "cli/cli.h"
#include "dtrain/train.h"

static dt_status search(struct dt_world *world, struct dt_config *config)
{
    return dt_search(world, config);
}

dt_status cmd_search(int argc, char **argv)
{
    return cli_in_world(search, argc, argv);
}
