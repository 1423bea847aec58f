/* serve: predictions over HTTP. A server has a model, answers TensorFlow Serving's REST
 * (/v1/models/NAME:predict) and the Open Inference Protocol v2 (/v2/models/NAME/infer), and takes
 * up new versions of the model as they appear. Not collective; MPI need not be initialised. */
#ifndef DTRAIN_SERVE_H
#define DTRAIN_SERVE_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_server_options {
    const char *host; /* address to listen on, "127.0.0.1"; "0.0.0.0" or "::" is the network */
    int port;         /* 0: any that is free */
    const char *name; /* of the model in paths */
    int connections;  /* at most so many at once; more are closed as they come */
    int max_rows;     /* of a request */
    size_t max_body;  /* bytes of a request; all, and all answers, have 16 times as many */
    int threads;      /* of matrix products */
    /* For a request to arrive, an answer to be taken, a connection to be idle, a stop to answer. */
    double timeout_secs;
};

struct dt_server;

/* Loads the model (as dt_predictor_open does) and listens. The options' texts outlive the server.
 * DT_EUSAGE: an option is missing or out of range; DT_EIO: the address is in use or is none; else
 * as dt_predictor_open. *out is NULL then. */
dt_status dt_server_start(const char *model, const struct dt_server_options *options,
                          struct dt_server **out);
int dt_server_port(const struct dt_server *server);
/* To be called about twice a second: takes up the model that the path stands for by now
 * (dt_model_find; a file that was written again is another one), which answers every request that
 * comes from then on, and closes connections that have been slow for too long. A model that cannot
 * be loaded is warned of, and passed over: for good if it is damaged, else until it can be. */
void dt_server_poll(struct dt_server *server);
/* Takes no more, answers what it has taken, and frees all. NULL is fine. */
void dt_server_stop(struct dt_server *server);

#ifdef __cplusplus
}
#endif

#endif
