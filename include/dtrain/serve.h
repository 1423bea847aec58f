/* serve: predictions over HTTP, with TensorFlow Serving's REST API (/v1/models/NAME:predict) and
 * the Open Inference Protocol v2 (/v2/models/NAME/infer). Not collective; needs no MPI. */
#ifndef DTRAIN_SERVE_H
#define DTRAIN_SERVE_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options of a server. DT_SERVER_OPTIONS_INIT sets the defaults of `dtrain serve`. */
struct dt_server_options {
    size_t size;      /* sizeof(struct dt_server_options) */
    const char *host; /* address to listen on; "0.0.0.0" or "::": open to the network */
    int port;         /* 0: any free port */
    const char *name; /* the model's name in request paths */
    int connections;  /* upper bound; further connections are closed at once */
    int max_rows;     /* most rows per request */
    /* most bytes of one request; all requests together, and all answers together, may have 16 times
     * as many */
    size_t max_body;
    int threads; /* of matrix products */
    /* seconds allowed for each of these: receiving a request, sending an answer, an idle
     * connection, and finishing the pending requests when the server stops */
    double timeout_secs;
    /* coverage of the intervals around predicted numbers, below 1; 0: predict.interval of the
     * model's run; -1: no intervals */
    double interval;
};
#define DT_SERVER_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct dt_server_options), "127.0.0.1", 8501, "default", 256, 10000, 16u << 20, 1,  \
            30, 0                                                                                  \
    }

struct dt_server;

/* Loads the model at a path (see dt_predictor_open) and answers requests on separate threads.
 * options: NULL for the defaults; its texts must outlive the server. *out is NULL on failure.
 * DT_EUSAGE: an option is missing or out of range. DT_EIO: the address is wrong or in use. Other
 * errors are those of dt_predictor_open. */
dt_status dt_server_start(const char *model, const struct dt_server_options *options,
                          struct dt_server **out);
/* Returns the port at which the server listens. */
int dt_server_port(const struct dt_server *server);
/* Loads a newer version of the model if the path has one, to answer later requests with it, and
 * closes slow connections. If it cannot load the new version, it logs a warning and keeps the old
 * one. Call it about twice a second, always from the same thread. */
void dt_server_poll(struct dt_server *server);
/* Answers the requests that have arrived, then stops the server and frees it. NULL is fine. */
void dt_server_stop(struct dt_server *server);

#ifdef __cplusplus
}
#endif

#endif
