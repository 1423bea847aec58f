/* `dtrain train`, and what it has in common with the other commands that use MPI: starting the
 * world, reading the configuration, and printing one error line for all ranks. */
#include <string.h>

#include "cli/cli.h"
#include "train/train.h"

/* Reads the configuration on rank 0 and, if this succeeds, calls `body` on all ranks. */
static dt_status configured_run(struct dt_world *world, cli_world_fn *body, int argc, char **argv)
{
    const char *command = strcmp(argv[0], "search") ? "train" : argv[0];
    struct dt_config config = {0};
    dt_status status = dt__config_init(&config);
    dt__world_watch(world, config.run.stall_secs); /* reading files may hang */
    if (!status && world->is_bank) status = cli_configure(&config, command, argc - 1, argv + 1);
    status = dt__ranks_agree(world->all, status);
    if (!status) status = body(world, &config);
    dt__config_free(&config);
    return status;
}

dt_status cli_in_world(cli_world_fn *body, int argc, char **argv)
{
    return cli_run(configured_run, body, argc, argv);
}

dt_status cli_run(cli_run_fn *run, cli_world_fn *body, int argc, char **argv)
{
    struct dt_world *world = NULL;
    char text[DT_ERROR_MAX];
    const dt_status installed =
        dt_stop_install(); /* this may fail on a single rank, so the error is reported below, once
                            * there is a world */
    (void)snprintf(text, sizeof text, "%s", dt_error_text());
    const bool first = cli_is_first_task(); /* read before MPI starts: without a launcher, MPI sets
                                             * the variables that this reads */
    dt_status status = dt_world_create(&world);
    if (status) {
        if (first) dt__error("%s", dt_error_text());
        dt__world_end(NULL, status);
        return status;
    }
    status = dt__ranks_agree(world->all, installed ? dt_fail(installed, "%s", text) : DT_OK);
    if (!status) {
        dt__signals_move_handlers(); /* MPI has installed its fault handlers */
        status = run(world, body, argc, argv);
    }
    if (status && status != DT_STOPPED && world->is_bank && dt__world_claim_error(world))
        dt__error("%s", dt_error_text());
    dt__world_end(world, status);
    return status;
}

/* Trains. Only rank 0 needs a configuration: dt_train sends it to the other ranks. */
static dt_status train(struct dt_world *world, struct dt_config *config)
{
    return dt_train(world, config, NULL);
}

dt_status cmd_train(int argc, char **argv)
{
    return cli_in_world(train, argc, argv);
}
