/* The server: connections, routes, versions of the model, counts for Prometheus.
 *
 * libmicrohttpd gives each connection a thread of its own, which reads the body, parses it, brings
 * its rows to the batcher and waits. A request holds the version of the model that it began with; a
 * newer one takes its place for those that come later, and the old one goes when the last has let
 * go.
 *
 * Everything has a bound: connections, bytes of a body, bytes of all bodies together, rows, and the
 * time from the first byte to the last of a request and of its answer, which dt_server_poll looks
 * after, since a client that sends or takes a byte now and then would never be idle. */
#include "dtrain/serve.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "dtrain/report.h"
#include "dtrain/state.h"
#include "predict/serve.h"

/* BODIES: the greatest that are there at once; of smaller ones there are more. */
enum { TOO_LARGE = 413, BUCKETS = 12, BODIES = 16, HEADER_BYTES = 32 << 10 };
static const double BUCKET_SECS[BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                            0.05,   0.1,   0.25,   0.5,   1,    2.5};

/* A connection, for as long as it is open. */
struct connection {
    int fd; /* -1: the place is free */
    /* clock since when something of the client's is awaited; 0: a request is worked on */
    _Atomic double waits_since;
    bool closed; /* it was too slow */
};

/* One request, from its headers to its answer. */
struct exchange {
    struct dt_server *server;
    struct connection *connection;
    double began;
    struct dt_text body; /* bodies_bytes counts its capacity */
    size_t told;         /* how long it will be; 0: not told */
    unsigned refusal; /* a status that is settled before the body is there; 0: none */
    unsigned code;
    bool predicts; /* for the histogram */
};

struct dt_server {
    struct dt_server_options options;
    char *model; /* path */
    struct MHD_Daemon *daemon;
    struct dt__batcher *batcher;
    atomic_bool stopping;
    atomic_int active; /* requests between headers and answer */

    pthread_mutex_t lock;
    struct dt__version *version;    /* that answers now */
    struct dt__file_id refused;     /* the newest version, if it could not be loaded */
    struct connection *connections; /* (options.connections) */
    size_t bodies_bytes;            /* of all requests */

    /* For /metrics. */
    uint64_t codes[600]; /* answers by their status */
    uint64_t bucket[BUCKETS + 1];
    double secs; /* of predictions together */
};

/* ---- versions ------------------------------------------------------------------------------- */

/* Zeros: there is no file. */
static struct dt__file_id file_identify(const char *path)
{
    struct stat info;
    if (stat(path, &info)) return (struct dt__file_id){0};
    return (struct dt__file_id){info.st_dev, info.st_ino, info.st_mtim};
}

static bool is_same_file(struct dt__file_id a, struct dt__file_id b)
{
    return a.device == b.device && a.inode == b.inode && a.written.tv_sec == b.written.tv_sec &&
           a.written.tv_nsec == b.written.tv_nsec;
}

static void version_free(struct dt__version *version)
{
    dt__dict_free(&version->names);
    dt__columns_free(&version->columns);
    dt_predictor_close(version->predictor);
    dt_free(version);
}

/* Many features without names, or a few: they take no memory. */
static dt_status version_learn_columns(struct dt__version *version)
{
    const struct dt_schema *schema = &dt_predictor_export(version->predictor)->schema;
    if (schema->columns || schema->feature_names) {
        DT_TRY(dt__columns_of_schema(&version->columns, schema));
        return dt__json_names(&version->columns, &version->names);
    }
    version->columns.count = (size_t)schema->features;
    version->columns.numbers = schema->features;
    return DT_OK;
}

static dt_status version_load(const char *path, struct dt__version **out)
{
    struct dt__version *version;
    DT_TRY(dt_alloc(1, sizeof *version, "version", &version));
    dt_status status = dt_predictor_open(path, &version->predictor);
    if (!status) status = version_learn_columns(version);
    if (status) {
        version_free(version);
        return status;
    }
    const char *file = dt_predictor_path(version->predictor), *slash = strrchr(file, '/'),
               *name = slash ? slash : file;
    char *end;
    version->file = file_identify(file);
    /* A version's number is the name of its directory; a model that stands elsewhere has its
     * step. */
    while (name > file && name[-1] != '/')
        name--;
    version->number = strtoull(name, &end, 10);
    if (end != slash || name == slash || !isdigit((unsigned char)*name))
        version->number = dt_predictor_export(version->predictor)->step;
    version->users = 1; /* the server */
    *out = version;
    return DT_OK;
}

static void version_release(struct dt_server *server, struct dt__version *version)
{
    pthread_mutex_lock(&server->lock);
    bool last = --version->users == 0;
    pthread_mutex_unlock(&server->lock);
    if (last) version_free(version);
}

static void version_take_up_newer(struct dt_server *server)
{
    char *path;
    struct dt__version *newer, *older = server->version;
    if (dt_model_find(server->model, true, &path, NULL)) return;
    const struct dt__file_id file = file_identify(path);
    const bool known = is_same_file(file, older->file) || is_same_file(file, server->refused);
    if (!known && version_load(path, &newer)) {
        dt_warn("passed over: %s", dt_error_text());
        server->refused = file;
    } else if (!known) {
        newer->file = file; /* as it was before it was read */
        pthread_mutex_lock(&server->lock);
        server->version = newer;
        pthread_mutex_unlock(&server->lock);
        dt_info("version %llu in place of %llu: %s", (unsigned long long)newer->number,
                (unsigned long long)older->number, dt_predictor_path(newer->predictor));
        version_release(server, older);
    }
    dt_free(path);
}

/* ---- routes --------------------------------------------------------------------------------- */

enum route {
    ROUTE_NONE,
    ROUTE_METRICS,
    ROUTE_ALIVE,
    ROUTE_SERVER,
    ROUTE_V1_STATUS,
    ROUTE_V1_PREDICT,
    ROUTE_V2_MODEL,
    ROUTE_V2_READY,
    ROUTE_V2_INFER
};

struct target {
    enum route route;
    bool known_name;
    bool has_version;
    uint64_t version;
};

static struct target target_parse(const struct dt_server *server, const char *url)
{
    static const struct {
        const char *prefix, *tail;
        enum route route;
    } rows[] = {
        {"/v1/models/", "", ROUTE_V1_STATUS},      {"/v1/models/", ":predict", ROUTE_V1_PREDICT},
        {"/v2/models/", "", ROUTE_V2_MODEL},       {"/v2/models/", "/ready", ROUTE_V2_READY},
        {"/v2/models/", "/infer", ROUTE_V2_INFER},
    };
    static const char versions[] = "/versions/";
    const char *name = server->options.name;
    const size_t length = strlen(name);
    struct target target = {.route = ROUTE_NONE, .known_name = true};
    if (!strcmp(url, "/metrics")) target.route = ROUTE_METRICS;
    if (!strcmp(url, "/v2/health/live") || !strcmp(url, "/v2/health/ready"))
        target.route = ROUTE_ALIVE;
    if (!strcmp(url, "/v2") || !strcmp(url, "/v2/")) target.route = ROUTE_SERVER;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && target.route == ROUTE_NONE; i++) {
        if (strncmp(url, rows[i].prefix, strlen(rows[i].prefix))) continue;
        /* "NAME" or "NAME/versions/7", and the tail. */
        const char *rest = url + strlen(rows[i].prefix);
        target = (struct target){.route = ROUTE_NONE};
        target.known_name = !strncmp(rest, name, length) && strchr("/:", rest[length]);
        rest += target.known_name ? length : strcspn(rest, "/:");
        if (!strncmp(rest, versions, strlen(versions))) {
            const char *number = rest + strlen(versions);
            char *end;
            target.version = strtoull(number, &end, 10);
            target.has_version = true;
            if (end == number || *number == '-') target.known_name = false;
            rest = end;
        }
        if (!strcmp(rest, rows[i].tail)) target.route = rows[i].route;
    }
    return target;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* The text goes to libmicrohttpd. */
static enum MHD_Result exchange_reply(struct exchange *exchange, struct MHD_Connection *connection,
                                      unsigned code, const char *type, struct dt_text *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text->length, text->data, MHD_RESPMEM_MUST_FREE);
    if (!response) return MHD_NO;
    *text = (struct dt_text){0};
    exchange->code = code;
    if (exchange->connection) exchange->connection->waits_since = dt_clock_secs();
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                exchange->predicts ? "POST" : "GET, HEAD");
    if (exchange->server->stopping || code == TOO_LARGE)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result exchange_reply_error(struct exchange *exchange,
                                            struct MHD_Connection *connection, unsigned code,
                                            const char *message)
{
    struct dt_text text = {0};
    bool made = !dt_text_add(&text, "{\"error\":") && !dt_json_add_string(&text, message) &&
                !dt_text_add(&text, "}\n");
    enum MHD_Result result =
        made ? exchange_reply(exchange, connection, code, "application/json", &text) : MHD_NO;
    dt_text_free(&text);
    return result;
}

static void exchange_free_body(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->server->lock);
    exchange->server->bodies_bytes -= exchange->body.capacity;
    pthread_mutex_unlock(&exchange->server->lock);
    dt_text_free(&exchange->body);
}

/* The rows of a request through the network, as they are read, and what comes of them into
 * `text`. */
static dt_status exchange_predict(struct exchange *exchange, const struct dt__version *version,
                                  bool v2, struct dt_text *text)
{
    struct dt_server *server = exchange->server;
    const struct dt_predictor *predictor = version->predictor;
    const size_t width = (size_t)dt_predictor_width(predictor);
    const char *body = exchange->body.data ? exchange->body.data : "";
    struct dt__request request;
    size_t out_room = 0, classes_room = 0;
    float *out = NULL;
    int32_t *classes = NULL;
    dt_status status;
    DT_GUARD(dt__request_open(body, exchange->body.length, v2, version, server->options.max_rows,
                              &request));
    while (true) {
        const size_t at = request.rows;
        DT_GUARD(dt__request_read(&request, predictor));
        if (!request.count) break;
        DT_GUARD(dt_grow(&out, &out_room, request.rows * width, sizeof *out, "answers"));
        DT_GUARD(dt_grow(&classes, &classes_room, request.rows, sizeof *classes, "answers"));
        DT_GUARD(dt__batcher_answer(server->batcher, version, &request, out + at * width,
                                    classes + at));
        for (size_t r = at; r < request.rows; r++)
            if (dt_predictor_check(predictor, out + r * width))
                DT_GUARD(dt_fail_prefix(DT_EFORMAT, "row %zu: ", r));
    }
    exchange_free_body(exchange);
    DT_GUARD(dt__answer_format(&request, predictor, server->options.name, version->number, out,
                               classes, text));
    status = dt_text_append(text, "\n", 1);
done:
    dt__request_free(&request);
    dt_free(out);
    dt_free(classes);
    return status;
}

static dt_status server_format_metrics(struct dt_server *server, struct dt_text *text)
{
    uint64_t batches, rows, count = 0;
    dt__batcher_counts(server->batcher, &batches, &rows);
    pthread_mutex_lock(&server->lock);
    dt_status status =
        dt_text_add(text, "# HELP dtrain_serve_requests_total Answers by HTTP status.\n"
                          "# TYPE dtrain_serve_requests_total counter\n");
    for (int code = 0; code < 600 && !status; code++)
        if (server->codes[code] || code == 200)
            status = dt_text_add(text, "dtrain_serve_requests_total{code=\"%d\"} %llu\n", code,
                                 (unsigned long long)server->codes[code]);
    if (!status)
        status = dt_text_add(
            text, "# HELP dtrain_serve_latency_seconds From a prediction's headers to its answer.\n"
                  "# TYPE dtrain_serve_latency_seconds histogram\n");
    for (int i = 0; i <= BUCKETS && !status; i++) {
        char bound[32] = "+Inf";
        if (i < BUCKETS) (void)dt_real_text(BUCKET_SECS[i], bound);
        count += server->bucket[i];
        status = dt_text_add(text, "dtrain_serve_latency_seconds_bucket{le=\"%s\"} %llu\n", bound,
                             (unsigned long long)count);
    }
    if (!status)
        status = dt_text_add(
            text,
            "dtrain_serve_latency_seconds_sum %.9g\ndtrain_serve_latency_seconds_count %llu\n"
            "# HELP dtrain_serve_rows_total Rows predicted.\n# TYPE dtrain_serve_rows_total "
            "counter\n"
            "dtrain_serve_rows_total %llu\n"
            "# HELP dtrain_serve_batches_total Batches that they were computed in.\n"
            "# TYPE dtrain_serve_batches_total counter\ndtrain_serve_batches_total %llu\n"
            "# HELP dtrain_serve_model_version Step of the model that answers.\n"
            "# TYPE dtrain_serve_model_version gauge\ndtrain_serve_model_version %llu\n"
            "# HELP dtrain_serve_active_requests Requests under way.\n"
            "# TYPE dtrain_serve_active_requests gauge\ndtrain_serve_active_requests %d\n",
            server->secs, (unsigned long long)count, (unsigned long long)rows,
            (unsigned long long)batches, (unsigned long long)server->version->number,
            server->active);
    pthread_mutex_unlock(&server->lock);
    return status;
}

static dt_status ready_format(const char *name, struct dt_text *text)
{
    DT_TRY(dt_text_add(text, "{\"name\":"));
    DT_TRY(dt_json_add_string(text, name));
    return dt_text_add(text, ",\"ready\":true}\n");
}

/* What is asked of the model, by the version that is there. */
static enum MHD_Result exchange_answer_model(struct exchange *exchange,
                                             struct MHD_Connection *connection,
                                             const struct target *target)
{
    struct dt_server *server = exchange->server;
    pthread_mutex_lock(&server->lock);
    struct dt__version *version = server->version;
    version->users++;
    pthread_mutex_unlock(&server->lock);
    struct dt_text text = {0};
    enum MHD_Result result;
    dt_status status = DT_OK;
    if (target->has_version && target->version != version->number) {
        version_release(server, version);
        return exchange_reply_error(exchange, connection, MHD_HTTP_NOT_FOUND,
                                    "this version is not served");
    }
    if (target->route == ROUTE_V1_STATUS)
        status =
            dt_text_add(&text,
                        "{\"model_version_status\":[{\"version\":\"%llu\",\"state\":\"AVAILABLE\","
                        "\"status\":{\"error_code\":\"OK\",\"error_message\":\"\"}}]}\n",
                        (unsigned long long)version->number);
    else if (target->route == ROUTE_V2_MODEL)
        status =
            dt__metadata_format(version->predictor, server->options.name, version->number, &text);
    else if (target->route == ROUTE_V2_READY)
        status = ready_format(server->options.name, &text);
    else
        status = exchange_predict(exchange, version, target->route == ROUTE_V2_INFER, &text);
    if (status)
        result = exchange_reply_error(exchange, connection,
                                      status == DT_EFORMAT   ? MHD_HTTP_BAD_REQUEST
                                      : status == DT_EMEMORY ? MHD_HTTP_SERVICE_UNAVAILABLE
                                                             : MHD_HTTP_INTERNAL_SERVER_ERROR,
                                      dt_error_text());
    else
        result = exchange_reply(exchange, connection, MHD_HTTP_OK, "application/json", &text);
    dt_text_free(&text);
    version_release(server, version);
    return result;
}

static enum MHD_Result exchange_answer(struct exchange *exchange, struct MHD_Connection *connection,
                                       const char *url, const char *method)
{
    struct dt_server *server = exchange->server;
    struct target target = target_parse(server, url);
    struct dt_text text = {0};
    bool reads = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    exchange->predicts = target.route == ROUTE_V1_PREDICT || target.route == ROUTE_V2_INFER;
    if (exchange->refusal == TOO_LARGE)
        return exchange_reply_error(exchange, connection, exchange->refusal,
                                    "the request is too large");
    if (exchange->refusal)
        return exchange_reply_error(exchange, connection, exchange->refusal,
                                    "too much at once; try again");
    if (target.route == ROUTE_NONE || !target.known_name)
        return exchange_reply_error(exchange, connection, MHD_HTTP_NOT_FOUND,
                                    target.known_name ? "no such path" : "no such model");
    if (exchange->predicts ? strcmp(method, "POST") != 0 : !reads)
        return exchange_reply_error(exchange, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                                    "not with this method");
    if (target.route > ROUTE_SERVER) return exchange_answer_model(exchange, connection, &target);
    dt_status status;
    const char *type = "application/json";
    if (target.route == ROUTE_METRICS) {
        type = "text/plain; version=0.0.4";
        status = server_format_metrics(server, &text);
    } else if (target.route == ROUTE_SERVER) {
        status = dt_text_add(&text, "{\"name\":\"dtrain\",\"version\":\"" DT_VERSION
                                    "\",\"extensions\":[]}\n");
    } else {
        status = dt_text_add(&text, "{\"live\":true,\"ready\":true}\n");
    }
    enum MHD_Result result =
        status ? MHD_NO : exchange_reply(exchange, connection, MHD_HTTP_OK, type, &text);
    dt_text_free(&text);
    return result;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Room for `length` bytes of a body and a NUL. It doubles up to what was told of its length, so
 * that a client has sent half of what it holds. False: there is none. */
static bool exchange_grow_body(struct exchange *exchange, size_t length)
{
    struct dt_server *server = exchange->server;
    struct dt_text old = exchange->body, *body = &exchange->body;
    size_t wanted = 2 * old.capacity > DT__BODY_BYTES ? 2 * old.capacity : DT__BODY_BYTES;
    if (wanted <= length) wanted = length + 1;
    if (length <= exchange->told && exchange->told < wanted) wanted = exchange->told + 1;
    pthread_mutex_lock(&server->lock);
    const bool room = server->bodies_bytes + wanted <= BODIES * server->options.max_body;
    if (room) server->bodies_bytes += wanted - old.capacity;
    pthread_mutex_unlock(&server->lock);
    if (!room) return false;
    *body = (struct dt_text){.capacity = wanted};
    dt_status status = dt_alloc(wanted, 1, "request", &body->data);
    if (!status) status = dt_text_append(body, old.data, old.length);
    dt_text_free(&old);
    return !status;
}

/* Bodies are bounded one by one and together; what is refused is read and forgotten. */
static void exchange_take_body(struct exchange *exchange, const char *bytes, size_t size)
{
    const size_t length = exchange->body.length + size;
    if (exchange->refusal) return;
    if (length > exchange->server->options.max_body)
        exchange->refusal = TOO_LARGE;
    else if (length >= exchange->body.capacity && !exchange_grow_body(exchange, length))
        exchange->refusal = MHD_HTTP_SERVICE_UNAVAILABLE;
    else
        (void)dt_text_append(&exchange->body, bytes, size); /* there is room */
    if (exchange->refusal) exchange_free_body(exchange);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size, void **context)
{
    struct exchange *exchange = *context;
    struct dt_server *server = cls;
    (void)version;
    if (!exchange) { /* its headers */
        const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                         MHD_HTTP_HEADER_CONTENT_LENGTH);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        if (dt_alloc(1, sizeof *exchange, "request", &exchange)) return MHD_NO;
        *context = exchange;
        exchange->server = server;
        exchange->began = dt_clock_secs();
        exchange->connection = info ? info->socket_context : NULL;
        exchange->told = length ? strtoull(length, NULL, 10) : 0;
        if (exchange->told > server->options.max_body) exchange->refusal = TOO_LARGE;
        server->active++;
        return exchange->refusal ? exchange_answer(exchange, connection, url, method) : MHD_YES;
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
    double secs = dt_clock_secs() - exchange->began;
    int bucket = 0;
    while (bucket < BUCKETS && secs > BUCKET_SECS[bucket])
        bucket++;
    exchange_free_body(exchange);
    pthread_mutex_lock(&server->lock);
    if (exchange->code < 600) server->codes[exchange->code] += exchange->code != 0;
    if (exchange->predicts && exchange->code == MHD_HTTP_OK) {
        server->bucket[bucket]++;
        server->secs += secs;
    }
    if (exchange->connection) exchange->connection->waits_since = dt_clock_secs();
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
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED && *socket_context) {
        ((struct connection *)*socket_context)->fd = -1;
        *socket_context = NULL;
    }
    for (int i = 0;
         code == MHD_CONNECTION_NOTIFY_STARTED && info && i < server->options.connections; i++) {
        if (server->connections[i].fd >= 0) continue;
        server->connections[i].waits_since = dt_clock_secs();
        server->connections[i].closed = false;
        server->connections[i].fd = info->connect_fd;
        *socket_context = &server->connections[i];
        break;
    }
    pthread_mutex_unlock(&server->lock);
}

static void connections_close_slow(struct dt_server *server)
{
    double now = dt_clock_secs();
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

/* libmicrohttpd's own words go the way of all others. */
static void on_log(void *cls, const char *format, va_list args)
{
    char line[DT_ERROR_MAX];
    (void)cls;
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = '\0';
    dt_debug("%s", line);
}

static dt_status server_listen(struct dt_server *server)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM},
                    *found;
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
    server->daemon = MHD_start_daemon(
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
    struct dt_server *server;
    dt_status status;
    DT_TRY(dt_alloc(1, sizeof *server, "server", &server));
    server->options = *options;
    pthread_mutex_init(&server->lock, NULL);
    DT_GUARD(dt_strdup(model, &server->model));
    DT_GUARD(dt_alloc((size_t)options->connections, sizeof *server->connections, "connections",
                      &server->connections));
    for (int i = 0; i < options->connections; i++)
        server->connections[i].fd = -1;
    DT_GUARD(version_load(model, &server->version));
    DT_GUARD(dt__batcher_create(options->threads, &server->batcher));
    DT_GUARD(server_listen(server));
    *out = server;
done:
    if (status) dt_server_stop(server);
    return status;
}

int dt_server_port(const struct dt_server *server)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    if (!info || getsockname(info->listen_fd, (struct sockaddr *)&address, &length)) return -1;
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

void dt_server_stop(struct dt_server *server)
{
    if (!server) return;
    if (server->daemon) {
        server->stopping = true;
        int fd = MHD_quiesce_daemon(server->daemon);
        double until = dt_clock_secs() + server->options.timeout_secs;
        while (server->active && dt_clock_secs() < until) {
            connections_close_slow(server);
            dt_sleep_secs(0.01);
        }
        MHD_stop_daemon(server->daemon);
        if (fd >= 0) close(fd);
    }
    dt__batcher_destroy(server->batcher);
    if (server->version) version_release(server, server->version);
    pthread_mutex_destroy(&server->lock);
    dt_free(server->connections);
    dt_free(server->model);
    dt_free(server);
}
