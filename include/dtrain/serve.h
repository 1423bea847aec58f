/* serve: predictions over HTTP, by TensorFlow Serving's REST (/v1/models/NAME:predict) and the Open
 * Inference Protocol v2 (/v2/models/NAME/infer). Not collective; needs no MPI. */
#ifndef DTRAIN_SERVE_H
#define DTRAIN_SERVE_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DT_SERVER_OPTIONS_INIT: the defaults of `dtrain serve`. */
struct dt_server_options {
    size_t size;      /* sizeof(struct dt_server_options) */
    const char *host; /* address to listen on; "0.0.0.0" or "::": open to the network */
    int port;         /* 0: any that is free */
    const char *name; /* the model's name in paths */
    int connections;  /* most at a time; further ones are closed as they come */
    int max_rows;     /* most rows of a request */
    size_t max_body;  /* most bytes of a request; 16 times this for all requests, and all answers */
    int threads;      /* of matrix products */
    /* seconds to receive a request, to send an answer, to keep an idle connection, and to finish
     * requests when the server stops */
    double timeout_secs;
    /* coverage of the intervals of numbers, below 1; 0: as the model's run asked; -1: none */
    double interval;
};
#define DT_SERVER_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct dt_server_options), "127.0.0.1", 8501, "default", 256, 10000, 16u << 20, 1,  \
            30, 0                                                                                  \
    }

struct dt_server;

/* Loads the model at a path (see dt_predictor_open) and answers requests on separate threads.
 * options: NULL: the defaults; its texts must outlive the server. *out is NULL on failure.
 * DT_EUSAGE: an option is missing or out of range. DT_EIO: the address is wrong or in use. Other
 * errors as dt_predictor_open. */
dt_status dt_server_start(const char *model, const struct dt_server_options *options,
                          struct dt_server **out);
/* Returns the port at which the server listens. */
int dt_server_port(const struct dt_server *server);
/* Loads a newer version of the model, if the path has one, for later requests, and closes slow
 * connections. Logs a warning about a version that it cannot load, and keeps the old one. Call it
 * about twice a second, from one thread. */
void dt_server_poll(struct dt_server *server);
/* Answers the requests that have arrived, then ends the server and frees it. NULL is fine. */
void dt_server_stop(struct dt_server *server);

#ifdef __cplusplus
}
#endif

#endif
