/* `dtrain serve`: serves a model over HTTP until it is asked to stop. */
#include <string.h>

#include "cli/cli.h"
#include "dtrain/serve.h"

static double interval_of(const struct dt_config *config)
{
    if (!dt__config_is_given(config, "predict.interval")) return 0;
    return config->predict.interval > 0 ? config->predict.interval : -1;
}

static dt_status serve(const char *path, const struct dt_config *config)
{
    const struct dt_server_options options = {.size = sizeof options,
                                              .host = config->serve.host,
                                              .port = (int)config->serve.port,
                                              .name = config->serve.name,
                                              .connections = (int)config->serve.connections,
                                              .max_rows = (int)config->serve.max_rows,
                                              .max_body = (size_t)config->serve.max_body_mb << 20,
                                              .threads = (int)config->run.threads,
                                              .timeout_secs = config->serve.timeout_secs,
                                              .interval = interval_of(config)};
    struct dt_server *server;
    DT_TRY(dt_server_start(path, &options, &server));
    const bool ipv6 = strchr(options.host, ':') != NULL; /* its colons do not come before a port */
    dt__info("serving %s at http://%s%s%s:%d/v1/models/%s:predict", path, ipv6 ? "[" : "",
             options.host, ipv6 ? "]" : "", dt_server_port(server), options.name);
    while (!dt__stop_requested()) {
        dt_server_poll(server);
        dt__sleep_secs(0.25);
    }
    dt_server_stop(server);
    dt__info("stopped");
    return DT_OK;
}

dt_status cmd_serve(int argc, char **argv)
{
    struct cli_model model;
    dt__stop_block(true);
    DT_TRY(dt_stop_install());
    DT_TRY(cli_model_open(&model, argc, argv));
    dt_predictor_close(model.predictor); /* the server opens the model itself */
    model.predictor = NULL;
    dt_status status = serve(argv[1], &model.config);
    cli_model_close(&model);
    return status;
}
