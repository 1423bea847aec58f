#include <stdlib.h>

#include "cli/cli.h"
#include "dtrain/train.h"

/* Rank 0 reads the configuration and sends it on; the others' stays at its defaults. */
static dt_status train(struct dt_world *world, int argc, char **argv)
{
    struct dt_config config;
    dt_status status = dt_config_init(&config);
    if (!status && dt_world_is_bank(world)) status = cli_configure(&config, argc - 1, argv + 1);
    if (!status && dt_world_is_bank(world)) status = cli_check_kernel(&config);
    status = dt_world_agree(world, status);
    if (!status) status = dt_train(world, &config);
    dt_config_free(&config);
    return status;
}

/* A process that Slurm started alone has no world to agree with: the first of them tells. */
static bool is_first_task(void)
{
    const char *task = getenv("SLURM_PROCID");
    return !task || task[0] == '0';
}

dt_status cmd_train(int argc, char **argv)
{
    struct dt_world *world = NULL;
    dt_stop_install();
    dt_status status = dt_world_create(&world);
    if (status) {
        if (is_first_task()) dt_error("%s", dt_error_text());
        return status;
    }
    status = train(world, argc, argv);
    if (status && status != DT_STOPPED && dt_world_is_bank(world)) dt_error("%s", dt_error_text());
    dt_world_destroy(world);
    return status;
}
