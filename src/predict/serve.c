/* The server: connections, routes, versions of the model, and counts for Prometheus.
 *
 * libmicrohttpd runs each connection in a separate thread. The thread reads the body of a request,
 * parses it, passes its rows to the batcher and waits for the answer. A request keeps the version
 * of the model with which it began; later requests use a newer version, and the old one is freed
 * when its last user releases it.
 *
 * Everything has a limit: the connections, the bytes of a body, of all bodies together and of all
 * answers together, the rows, and the time from the first to the last byte of a request, and of its
 * answer. dt_server_poll enforces the time limits, because libmicrohttpd's own timeout never ends a
 * client that sends or takes a byte now and then. */
#include "dtrain/serve.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/load.h"
#include "predict/serve.h"
#include "report/report.h"
#include "state/state.h"

#define SYMBOLS(X)                                                                                 \
    X(MHD_, add_response_header)                                                                   \
    X(MHD_, create_response_from_buffer)                                                           \
    X(MHD_, destroy_response)                                                                      \
    X(MHD_, get_connection_info)                                                                   \
    X(MHD_, get_daemon_info)                                                                       \
    X(MHD_, lookup_connection_value)                                                               \
    X(MHD_, queue_response)                                                                        \
    X(MHD_, quiesce_daemon)                                                                        \
    X(MHD_, start_daemon)                                                                          \
    X(MHD_, stop_daemon)
static struct {
    SYMBOLS(DT__POINTER)
} MHD;
static const char *const symbols[] = {SYMBOLS(DT__NAME)};
static struct dt__library library = DT__LIBRARY("microhttpd", symbols, &MHD);

/* BODIES: how many bodies of the largest size fit in memory at once (or more smaller ones).
 * NUMBER_BYTES: memory for a number of an answer and its text, which grows by doubling. */
enum {
    TOO_LARGE = 413,
    PACKED = 415,
    BUCKETS = 12,
    BODIES = 16,
    HEADER_BYTES = 32 << 10,
    NUMBER_BYTES = 32
};
static const double BUCKET_SECS[BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                            0.05,   0.1,   0.25,   0.5,   1,    2.5};

/* An open connection. */
struct connection {
    int fd; /* -1: the entry is free */
    /* clock at which waiting for the client began; 0: a request is being answered */
    _Atomic double waits_since;
    bool closed; /* the server closed it because the client was too slow */
};

/* A request, from its headers to its answer. */
struct exchange {
    struct dt_server *server;
    struct connection *connection;
    const struct route *route; /* NULL: not known yet, or there is none */
    double began;
    struct dt_text body; /* bodies_bytes includes its capacity */
    size_t announced;    /* length of the body by Content-Length; 0: unknown */
    size_t answer_bytes; /* reserved for the answer; answers_bytes includes them */
    unsigned refusal;    /* HTTP status with which the request is refused without reading its body;
                          * 0: none */
    unsigned code;
};

/* Adds the answer of a route to `text`. DT_EFORMAT: the request is wrong. */
typedef dt_status answer_fn(struct exchange *exchange, const struct dt__version *version,
                            struct dt_text *text);

/* A route. '*' in its path is NAME or NAME/versions/NUMBER. */
struct route {
    const char *path;
    answer_fn *answer;
    const char *constant; /* the answer, in place of a function */
    bool posts;           /* POST of rows to predict; else GET and HEAD */
    bool v2;              /* belongs to the Open Inference Protocol */
};

/* Counts for /metrics. */
struct counts {
    uint64_t codes[600]; /* number of answers by HTTP status */
    uint64_t bucket[BUCKETS + 1];
    double secs; /* time of all predictions */
};

struct dt_server {
    struct dt_server_options options;
    char *model;         /* path of the model */
    struct dt_text name; /* the model's name in paths, as JSON */
    struct MHD_Daemon *daemon;
    struct dt__batcher *batcher;
    atomic_bool stopping;
    atomic_int active; /* requests whose headers have arrived and whose answer is not complete */

    /* Used only by dt_server_poll: the newest file if it could not be loaded, the reason, the clock
     * of the next try, and the pause before it. */
    struct dt__file_id refused;
    char reason[DT_ERROR_MAX];
    double retry_at, pause_secs;

    pthread_mutex_t lock;           /* protects everything below */
    struct dt__version *version;    /* the current version; only dt_server_poll changes it */
    struct connection *connections; /* (options.connections) */
    size_t bodies_bytes;            /* memory of the bodies of all requests */
    size_t answers_bytes;           /* memory of all answers that are not sent yet */
    struct counts counts;
};

/* ---- versions ------------------------------------------------------------------------------- */

/* Identifies a file; all zero: there is none. */
static struct dt__file_id file_identify(const char *path)
{
    struct stat info;
    if (stat(path, &info)) return (struct dt__file_id){0};
    return (struct dt__file_id){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

static bool is_same_file(struct dt__file_id a, struct dt__file_id b)
{
    return a.device == b.device && a.inode == b.inode && a.size == b.size &&
           a.written.tv_sec == b.written.tv_sec && a.written.tv_nsec == b.written.tv_nsec;
}

static void version_free(struct dt__version *version)
{
    dt__columns_free(&version->columns);
    dt_predictor_close(version->predictor);
    dt_free(version);
}

static dt_status version_load(const char *path, double interval, struct dt__version **out)
{
    struct dt__version *version;
    char *found = NULL;
    DT_TRY(dt__alloc(1, sizeof *version, "version", &version));
    /* Identify the file before reading it: if another file replaces it meanwhile, dt_server_poll
     * sees a difference and loads that one. */
    dt_status status = dt__model_find(path, true, &found, NULL);
    if (!status) version->file = file_identify(found);
    dt_free(found);
    if (!status) status = dt_predictor_open(path, &version->predictor);
    if (!status && interval != 0)
        status = dt__predictor_interval(version->predictor, interval > 0 ? interval : 0);
    if (!status) status = dt__columns_of_json(&version->columns, &version->predictor->file.schema);
    if (status) {
        version_free(version);
        return status;
    }
    const char *file = version->predictor->path, *slash = strrchr(file, '/'),
               *name = slash ? slash : file;
    char *end;
    /* If the directory's name is a number, it is the version's number; else the model's step is. */
    while (name > file && name[-1] != '/')
        name--;
    version->number = strtoull(name, &end, 10);
    if (end != slash || name == slash || !isdigit((unsigned char)*name))
        version->number = version->predictor->file.step;
    version->users = 1; /* the server itself */
    *out = version;
    return DT_OK;
}

static struct dt__version *version_hold(struct dt_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct dt__version *version = server->version;
    version->users++;
    pthread_mutex_unlock(&server->lock);
    return version;
}

static void version_release(struct dt_server *server, struct dt__version *version)
{
    pthread_mutex_lock(&server->lock);
    bool last = --version->users == 0;
    pthread_mutex_unlock(&server->lock);
    if (last) version_free(version);
}

/* Remembers a file that could not be loaded. Loading it is tried again, after longer and longer
 * pauses, if the cause may go away while the file stays the same (memory, descriptors,
 * permissions); not if the file is damaged. */
static void version_refuse(struct dt_server *server, struct dt__file_id file, dt_status status)
{
    const double MOST_SECS = 60;
    const bool may_pass = status == DT_EIO || status == DT_EMEMORY;
    const bool again = is_same_file(file, server->refused);
    if (!again || strcmp(server->reason, dt_error_text()) != 0)
        dt__warn("passed over: %s", dt_error_text());
    snprintf(server->reason, sizeof server->reason, "%s", dt_error_text());
    server->refused = file;
    server->pause_secs = again ? fmin(2 * server->pause_secs, MOST_SECS) : 1;
    if (may_pass) dt__debug("tried again in %g s", server->pause_secs);
    server->retry_at = may_pass ? dt__clock_secs() + server->pause_secs : INFINITY;
}

static void version_take_up_newer(struct dt_server *server)
{
    char *path;
    struct dt__version *newer, *older = server->version;
    if (dt__model_find(server->model, true, &path, NULL)) return;
    const struct dt__file_id file = file_identify(path);
    const bool pausing = dt__clock_secs() < server->retry_at;
    const bool known =
        is_same_file(file, older->file) || (pausing && is_same_file(file, server->refused));
    const dt_status status = known ? DT_OK : version_load(path, server->options.interval, &newer);
    if (status) {
        version_refuse(server, file, status);
    } else if (!known) {
        pthread_mutex_lock(&server->lock);
        server->version = newer;
        pthread_mutex_unlock(&server->lock);
        dt__info("version %llu in place of %llu: %s", (unsigned long long)newer->number,
                 (unsigned long long)older->number, newer->predictor->path);
        version_release(server, older);
    }
    dt_free(path);
}

/* ---- answers -------------------------------------------------------------------------------- */

static dt_status answer_ready(struct exchange *exchange, const struct dt__version *version,
                              struct dt_text *text)
{
    (void)version;
    return dt__text_add(text, "{\"name\":%s,\"ready\":true}\n", exchange->server->name.data);
}

static dt_status answer_status(struct exchange *exchange, const struct dt__version *version,
                               struct dt_text *text)
{
    (void)exchange;
    return dt__text_add(text,
                        "{\"model_version_status\":[{\"version\":\"%llu\",\"state\":\"AVAILABLE\","
                        "\"status\":{\"error_code\":\"OK\",\"error_message\":\"\"}}]}\n",
                        (unsigned long long)version->number);
}

static dt_status answer_metadata(struct exchange *exchange, const struct dt__version *version,
                                 struct dt_text *text)
{
    return dt__metadata_format(version, exchange->server->name.data, text);
}

static dt_status answer_metrics(struct exchange *exchange, const struct dt__version *version,
                                struct dt_text *text)
{
    struct dt_server *server = exchange->server;
    uint64_t batches, rows, count = 0;
    dt__batcher_counts(server->batcher, &batches, &rows);
    pthread_mutex_lock(&server->lock);
    const struct counts counts = server->counts;
    pthread_mutex_unlock(&server->lock);
    DT_TRY(dt__text_add(text, "# HELP dtrain_serve_requests_total Answers by HTTP status.\n"
                              "# TYPE dtrain_serve_requests_total counter\n"));
    for (int code = 0; code < 600; code++)
        if (counts.codes[code] || code == MHD_HTTP_OK)
            DT_TRY(dt__text_add(text, "dtrain_serve_requests_total{code=\"%d\"} %llu\n", code,
                                (unsigned long long)counts.codes[code]));
    DT_TRY(dt__text_add(
        text, "# HELP dtrain_serve_latency_seconds From a prediction's headers to its answer.\n"
              "# TYPE dtrain_serve_latency_seconds histogram\n"));
    for (int i = 0; i <= BUCKETS; i++) {
        char bound[32] = "+Inf";
        if (i < BUCKETS) (void)dt__real_text(BUCKET_SECS[i], bound);
        count += counts.bucket[i];
        DT_TRY(dt__text_add(text, "dtrain_serve_latency_seconds_bucket{le=\"%s\"} %llu\n", bound,
                            (unsigned long long)count));
    }
    return dt__text_add(
        text,
        "dtrain_serve_latency_seconds_sum %.9g\ndtrain_serve_latency_seconds_count %llu\n"
        "# HELP dtrain_serve_rows_total Rows predicted.\n"
        "# TYPE dtrain_serve_rows_total counter\ndtrain_serve_rows_total %llu\n"
        "# HELP dtrain_serve_batches_total Batches that they were computed in.\n"
        "# TYPE dtrain_serve_batches_total counter\ndtrain_serve_batches_total %llu\n"
        "# HELP dtrain_serve_model_version Step of the model that answers.\n"
        "# TYPE dtrain_serve_model_version gauge\ndtrain_serve_model_version %llu\n"
        "# HELP dtrain_serve_active_requests Requests in progress.\n"
        "# TYPE dtrain_serve_active_requests gauge\ndtrain_serve_active_requests %d\n",
        counts.secs, (unsigned long long)count, (unsigned long long)rows,
        (unsigned long long)batches, (unsigned long long)version->number, server->active);
}

static void exchange_free_body(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->server->lock);
    exchange->server->bodies_bytes -= exchange->body.capacity;
    pthread_mutex_unlock(&exchange->server->lock);
    dt__text_free(&exchange->body);
}

/* Reserves bytes for the answer. Over the total limit, which equals that of bodies, only small
 * answers (a connection's share) or a single large one are admitted. */
static dt_status answer_reserve(struct exchange *exchange, size_t bytes)
{
    struct dt_server *server = exchange->server;
    const size_t capacity = BODIES * server->options.max_body;
    pthread_mutex_lock(&server->lock);
    const size_t others = server->answers_bytes - exchange->answer_bytes;
    const bool fits = bytes <= capacity / (size_t)server->options.connections || !others ||
                      (bytes <= capacity && others <= capacity - bytes);
    if (fits) {
        exchange->answer_bytes = bytes;
        server->answers_bytes = others + bytes;
    }
    pthread_mutex_unlock(&server->lock);
    return fits ? DT_OK : dt_fail(DT_EMEMORY, "too much at once; try again");
}

/* Parses the request, predicts its rows and formats the answer. */
static dt_status answer_rows(struct exchange *exchange, const struct dt__version *version,
                             struct dt_text *text)
{
    struct dt_server *server = exchange->server;
    const struct dt_predictor *predictor = version->predictor;
    const size_t width = predictor->width;
    const char *body = exchange->body.data ? exchange->body.data : "";
    struct dt__request request;
    float *out = NULL;
    int32_t *classes = NULL;
    dt_status status;
    DT_GUARD(dt__request_read(body, exchange->body.length, exchange->route->v2, version,
                              server->options.max_rows, &request));
    exchange_free_body(exchange);
    DT_GUARD(answer_reserve(exchange, request.rows * width * NUMBER_BYTES));
    DT_GUARD(dt__alloc(request.rows * width, sizeof *out, "answers", &out));
    DT_GUARD(dt__alloc(request.rows, sizeof *classes, "answers", &classes));
    for (size_t at = 0, count; at < request.rows; at += count) {
        count = request.rows - at < predictor->chunk ? request.rows - at : predictor->chunk;
        DT_GUARD(dt__batcher_answer(server->batcher, version, &request, at, count, out + at * width,
                                    classes + at));
        for (size_t r = at; r < at + count; r++)
            if (dt__predictor_check(predictor, out + r * width))
                DT_GUARD(dt_fail_prefix(DT_EFORMAT, "row %zu: ", r));
    }
    dt_free(request.words); /* the answer's text may be as large as the request */
    request.words = NULL;
    DT_GUARD(dt__answer_format(&request, version, server->name.data, out, classes, text));
    status = answer_reserve(exchange, text->capacity);
done:
    dt__request_free(&request);
    dt_free(out);
    dt_free(classes);
    return status;
}

/* ---- routes --------------------------------------------------------------------------------- */

static const char SERVER[] =
    "{\"name\":\"dtrain\",\"version\":\"" DT_VERSION "\",\"extensions\":[]}\n";
static const char ALIVE[] = "{\"live\":true,\"ready\":true}\n";

static const struct route ROUTES[] = {
    {"/metrics", answer_metrics, NULL, false, false},
    {"/v1/models/*", answer_status, NULL, false, false},
    {"/v1/models/*:predict", answer_rows, NULL, true, false},
    {"/v2", NULL, SERVER, false, true},
    {"/v2/", NULL, SERVER, false, true},
    {"/v2/health/live", NULL, ALIVE, false, true},
    {"/v2/health/ready", NULL, ALIVE, false, true},
    {"/v2/models/*", answer_metadata, NULL, false, true},
    {"/v2/models/*/ready", answer_ready, NULL, false, true},
    {"/v2/models/*/infer", answer_rows, NULL, true, true},
};

/* The model and, optionally, the version that the path of a request names. */
struct target {
    bool other; /* a model that is not served */
    bool has_version;
    uint64_t version;
};

/* Returns true if the path of a request, `url`, belongs to a route's path. *out is set as soon as
 * the start of the path matches, even if its end does not; so after a search through all routes it
 * says whether another model was meant. */
static bool path_matches(const char *path, const char *url, const char *name, struct target *out)
{
    static const char versions[] = "/versions/";
    const size_t before = strcspn(path, "*"), length = strlen(name);
    if (!path[before]) return !strcmp(path, url);
    if (strncmp(url, path, before)) return false;
    const char *rest = url + before;
    *out = (struct target){.other = strncmp(rest, name, length) || !strchr("/:", rest[length])};
    rest += out->other ? strcspn(rest, "/:") : length;
    if (!strncmp(rest, versions, strlen(versions))) {
        const char *number = rest + strlen(versions);
        char *end;
        out->version = strtoull(number, &end, 10);
        out->has_version = true;
        if (end == number || *number == '-') out->other = true;
        rest = end;
    }
    return !strcmp(rest, path + before + 1);
}

/* Sets exchange->code. Returns the error of the request, or NULL if the answer is in `text`. */
static const char *exchange_work(struct exchange *exchange, const struct dt__version *version,
                                 const char *url, const char *method, struct dt_text *text)
{
    const char *name = exchange->server->options.name;
    const bool reads = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    struct target target = {.other = false};
    size_t i = 0;
    while (i < sizeof ROUTES / sizeof *ROUTES && !path_matches(ROUTES[i].path, url, name, &target))
        i++;
    const struct route *route = i < sizeof ROUTES / sizeof *ROUTES ? &ROUTES[i] : NULL;
    exchange->route = route;
    exchange->code = exchange->refusal;
    if (exchange->code == TOO_LARGE) return "the request is too large";
    if (exchange->code == PACKED)
        return "the body has a Content-Encoding: expected JSON that is not packed";
    if (exchange->code) return "too much at once; try again";
    exchange->code = MHD_HTTP_NOT_FOUND;
    if (target.other) return "no such model";
    if (!route) return "no such path";
    exchange->code = MHD_HTTP_METHOD_NOT_ALLOWED;
    if (route->posts ? strcmp(method, "POST") != 0 : !reads) return "not with this method";
    exchange->code = MHD_HTTP_NOT_FOUND;
    if (target.has_version && target.version != version->number)
        return "this version is not served";
    const dt_status status = route->answer ? route->answer(exchange, version, text)
                                           : dt__text_add(text, "%s", route->constant);
    exchange->code = !status                ? MHD_HTTP_OK
                     : status == DT_EFORMAT ? MHD_HTTP_BAD_REQUEST
                     : status == DT_EMEMORY ? MHD_HTTP_SERVICE_UNAVAILABLE
                                            : MHD_HTTP_INTERNAL_SERVER_ERROR;
    return status ? dt_error_text() : NULL;
}

/* Passes the answer or the error to libmicrohttpd. */
static enum MHD_Result exchange_answer(struct exchange *exchange, struct MHD_Connection *connection,
                                       const char *url, const char *method)
{
    struct dt_text text = {0};
    struct MHD_Response *response = NULL;
    enum MHD_Result result = MHD_NO;
    struct dt__version *version = version_hold(exchange->server);
    const char *error = exchange_work(exchange, version, url, method, &text), *type;
    const struct route *route = exchange->route;
    if (error) {
        dt__text_free(&text); /* it may already hold a large part of an answer */
        dt__text_add(&text, "{\"error\":");
        dt__json_add_string(&text, error);
        dt__text_add(&text, "}\n");
    }
    if (!text.status)
        response = MHD.create_response_from_buffer(text.length, text.data, MHD_RESPMEM_MUST_FREE);
    if (!response) goto done;
    text = (struct dt_text){0}; /* libmicrohttpd owns it now */
    if (exchange->connection) exchange->connection->waits_since = dt__clock_secs();
    type = !error && route->answer == answer_metrics ? "text/plain; version=0.0.4"
                                                     : "application/json";
    MHD.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (exchange->code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD.add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                route->posts ? "POST" : "GET, HEAD");
    if (exchange->server->stopping || exchange->code == TOO_LARGE)
        MHD.add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    result = MHD.queue_response(connection, exchange->code, response);
    MHD.destroy_response(response);
done:
    dt__text_free(&text);
    version_release(exchange->server, version);
    return result;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Reserves memory for a body of `length` bytes and a NUL. The capacity doubles, up to the announced
 * length, so a client has sent at least half of what its body occupies. Returns false if the total
 * limit or the memory does not allow it. */
static bool exchange_grow_body(struct exchange *exchange, size_t length)
{
    struct dt_server *server = exchange->server;
    struct dt_text old = exchange->body, *body = &exchange->body;
    size_t wanted = 2 * old.capacity > DT__BODY_BYTES ? 2 * old.capacity : DT__BODY_BYTES;
    if (wanted <= length) wanted = length + 1;
    if (length <= exchange->announced && exchange->announced < wanted)
        wanted = exchange->announced + 1;
    pthread_mutex_lock(&server->lock);
    const bool fits = server->bodies_bytes + wanted <= BODIES * server->options.max_body;
    if (fits) server->bodies_bytes += wanted - old.capacity;
    pthread_mutex_unlock(&server->lock);
    if (!fits) return false;
    *body = (struct dt_text){.capacity = wanted};
    dt_status status = dt__alloc(wanted, 1, "request", &body->data);
    if (!status) status = dt__text_append(body, old.data, old.length);
    dt__text_free(&old);
    return !status;
}

/* Adds bytes to the body, unless it is larger than a body may be, or all bodies together are. The
 * bytes of a refused body are dropped. */
static void exchange_take_body(struct exchange *exchange, const char *bytes, size_t size)
{
    const size_t length = exchange->body.length + size;
    if (exchange->refusal) return;
    if (length > exchange->server->options.max_body)
        exchange->refusal = TOO_LARGE;
    else if (length >= exchange->body.capacity && !exchange_grow_body(exchange, length))
        exchange->refusal = MHD_HTTP_SERVICE_UNAVAILABLE;
    else
        (void)dt__text_append(&exchange->body, bytes, size); /* the capacity is reserved */
    if (exchange->refusal) exchange_free_body(exchange);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size, void **context)
{
    struct exchange *exchange = *context;
    struct dt_server *server = cls;
    (void)version;
    if (!exchange) { /* the first call comes after the headers */
        const char *length = MHD.lookup_connection_value(connection, MHD_HEADER_KIND,
                                                         MHD_HTTP_HEADER_CONTENT_LENGTH);
        const char *packing = MHD.lookup_connection_value(connection, MHD_HEADER_KIND,
                                                          MHD_HTTP_HEADER_CONTENT_ENCODING);
        const union MHD_ConnectionInfo *info =
            MHD.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        if (dt__alloc(1, sizeof *exchange, "request", &exchange)) return MHD_NO;
        *context = exchange;
        exchange->server = server;
        exchange->began = dt__clock_secs();
        exchange->connection = info ? info->socket_context : NULL;
        /* the time for which the connection was idle does not count for this request */
        if (exchange->connection) exchange->connection->waits_since = exchange->began;
        exchange->announced = length ? strtoull(length, NULL, 10) : 0;
        if (packing && strcasecmp(packing, "identity") != 0) exchange->refusal = PACKED;
        if (exchange->announced > server->options.max_body) exchange->refusal = TOO_LARGE;
        server->active++;
        return exchange->refusal == TOO_LARGE ? exchange_answer(exchange, connection, url, method)
                                              : MHD_YES;
    }
    if (*size) {
        exchange_take_body(exchange, bytes, *size);
        *size = 0;
        return MHD_YES;
    }
    if (exchange->connection) exchange->connection->waits_since = 0;
    return exchange_answer(exchange, connection, url, method);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct dt_server *server = cls;
    struct exchange *exchange = *context;
    (void)connection;
    (void)code;
    if (!exchange) return;
    double secs = dt__clock_secs() - exchange->began;
    int bucket = 0;
    while (bucket < BUCKETS && secs > BUCKET_SECS[bucket])
        bucket++;
    exchange_free_body(exchange);
    pthread_mutex_lock(&server->lock);
    server->answers_bytes -= exchange->answer_bytes;
    server->counts.codes[exchange->code] += exchange->code != 0;
    if (exchange->code == MHD_HTTP_OK && exchange->route->posts) {
        server->counts.bucket[bucket]++;
        server->counts.secs += secs;
    }
    if (exchange->connection) exchange->connection->waits_since = dt__clock_secs();
    pthread_mutex_unlock(&server->lock);
    dt_free(exchange);
    *context = NULL;
    server->active--;
}

/* ---- connections ---------------------------------------------------------------------------- */

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct dt_server *server = cls;
    const union MHD_ConnectionInfo *info =
        MHD.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED && *socket_context) {
        ((struct connection *)*socket_context)->fd = -1;
        *socket_context = NULL;
    }
    for (int i = 0;
         code == MHD_CONNECTION_NOTIFY_STARTED && info && i < server->options.connections; i++) {
        if (server->connections[i].fd >= 0) continue;
        server->connections[i].waits_since = dt__clock_secs();
        server->connections[i].closed = false;
        server->connections[i].fd = info->connect_fd;
        *socket_context = &server->connections[i];
        break;
    }
    pthread_mutex_unlock(&server->lock);
}

static void connections_close_slow(struct dt_server *server)
{
    double now = dt__clock_secs();
    pthread_mutex_lock(&server->lock);
    for (int i = 0; i < server->options.connections; i++) {
        struct connection *connection = &server->connections[i];
        double since = connection->waits_since;
        if (connection->fd < 0 || connection->closed || since == 0) continue;
        if (now - since < server->options.timeout_secs) continue;
        connection->closed = true;
        shutdown(connection->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&server->lock);
}

void dt_server_poll(struct dt_server *server)
{
    version_take_up_newer(server);
    connections_close_slow(server);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Logs libmicrohttpd's messages. */
static void on_log(void *cls, const char *format, va_list args)
{
    char line[DT_ERROR_MAX];
    (void)cls;
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = '\0';
    dt__debug("%s", line);
}

static dt_status server_listen(struct dt_server *server)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found;
    const struct dt_server_options *options = &server->options;
    char port[8];
    int one = 1, fd = -1;
    snprintf(port, sizeof port, "%d", options->port);
    int error = getaddrinfo(options->host, port, &hints, &found);
    if (error) return dt_fail(DT_EIO, "%s: %s", options->host, gai_strerror(error));
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) &&
                 !bind(fd, found->ai_addr, found->ai_addrlen) && !listen(fd, SOMAXCONN);
    int reason = errno;
    freeaddrinfo(found);
    if (!bound) {
        if (fd >= 0) close(fd);
        return dt_fail(DT_EIO, "cannot listen at %s, port %s: %s", options->host, port,
                       strerror(reason));
    }
    server->daemon = MHD.start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ERROR_LOG | MHD_USE_ITC,
        0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(options->timeout_secs + 1), MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)(1 << 20), MHD_OPTION_END);
    if (server->daemon) return DT_OK;
    close(fd);
    return dt_fail(DT_EIO, "the server cannot be started");
}

dt_status dt_server_start(const char *model, const struct dt_server_options *options,
                          struct dt_server **out)
{
    static const struct dt_server_options defaults = DT_SERVER_OPTIONS_INIT;
    struct dt_server_options read;
    struct dt_server *server;
    dt_status status;
    *out = NULL;
    if (!options) options = &defaults;
    DT_TRY(dt__options_read(&read, sizeof read, options, "dt_server_options"));
    options = &read;
    if (!options->host || !options->name || options->port < 0 || options->port > 65535 ||
        options->connections < 1 || options->max_rows < 1 || options->threads < 1 ||
        !(options->timeout_secs > 0) || !(options->interval < 1))
        return dt_fail(DT_EUSAGE, "a server: expected a host, a name, a port from 0 to 65535, and "
                                  "connections, max_rows, threads and timeout_secs above 0");
    DT_TRY(dt__library_load(&library));
    DT_TRY(dt__alloc(1, sizeof *server, "server", &server));
    server->options = *options;
    pthread_mutex_init(&server->lock, NULL);
    DT_GUARD(dt__strdup(model, &server->model));
    DT_GUARD(dt__json_add_string(&server->name, options->name));
    DT_GUARD(dt__alloc((size_t)options->connections, sizeof *server->connections, "connections",
                       &server->connections));
    for (int i = 0; i < options->connections; i++)
        server->connections[i].fd = -1;
    DT_GUARD(version_load(model, options->interval, &server->version));
    DT_GUARD(dt__batcher_create(options->threads, &server->batcher));
    DT_GUARD(server_listen(server));
    *out = server;
done:
    if (status) dt_server_stop(server);
    return status;
}

int dt_server_port(const struct dt_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD.get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : -1;
}

void dt_server_stop(struct dt_server *server)
{
    if (!server) return;
    if (server->daemon) {
        server->stopping = true;
        int fd = MHD.quiesce_daemon(server->daemon);
        if (fd >= 0)
            shutdown(fd, SHUT_RDWR); /* else new clients would wait in the socket's queue until the
                                      * end */
        double until = dt__clock_secs() + server->options.timeout_secs;
        while (server->active && dt__clock_secs() < until) {
            connections_close_slow(server);
            dt__sleep_secs(0.01);
        }
        MHD.stop_daemon(server->daemon);
        if (fd >= 0) close(fd);
    }
    dt__batcher_destroy(server->batcher);
    if (server->version) version_release(server, server->version);
    pthread_mutex_destroy(&server->lock);
    dt_free(server->connections);
    dt__text_free(&server->name);
    dt_free(server->model);
    dt_free(server);
}
