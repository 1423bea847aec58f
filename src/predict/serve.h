/* What the files of the server share: versions of the model, the batcher, requests and answers as
 * JSON. */
#ifndef PREDICT_SERVE_H
#define PREDICT_SERVE_H

#include <pthread.h>
#include <sys/stat.h>

#include "data/json_rows.h"
#include "dtrain/predict.h"

/* Which file a model was loaded from: another one in its place, or one that was written again, is
 * another. The size tells half a file from the whole one, which may be written within one tick of
 * the clock of files. */
struct dt__file_id {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec written;
};

/* A model that is answered from until the last who uses it lets go. */
struct dt__version {
    struct dt_predictor *predictor;
    /* that rows are read by; without items: numbers that have no names */
    struct dt__columns columns;
    struct dt__file_id file;
    uint64_t number;
    int users; /* under the server's lock */
};

/* ---- batcher.c: rows of many requests through the network at once --------------------------- */

struct dt__batcher;
/* threads: of matrix products. */
dt_status dt__batcher_create(int threads, struct dt__batcher **out);
void dt__batcher_destroy(struct dt__batcher *batcher); /* nobody waits any more */
struct dt__request;
/* Answers the rows that a request has read, together with those that others bring meanwhile. Any
 * thread; waits. The caller holds the version. */
dt_status dt__batcher_answer(struct dt__batcher *batcher, const struct dt__version *version,
                             const struct dt__request *request, float *out, int32_t *out_class);
/* Batches and rows so far. */
void dt__batcher_counts(struct dt__batcher *batcher, uint64_t *out_batches, uint64_t *out_rows);

/* ---- protocol.c: requests and answers -------------------------------------------------------- */

enum dt__protocol { DT__INSTANCES, DT__INPUTS, DT__INFER };

/* A request under way. */
struct dt__request {
    enum dt__protocol protocol; /* how to answer */
    enum { DT__ROWS, DT__TENSOR, DT__COLUMNS } form;
    const char *key;          /* under which its rows stand */
    char *id;                 /* v2: the request's own; NULL: none */
    unsigned outputs;         /* v2: bits of those that are asked for; 0: all */
    struct dt__json left;     /* rows, tensor: what is not yet read */
    struct dt__json *columns; /* (columns) the same for each; NULL: they have no names */
    size_t total;             /* tensor, columns: rows; a list has as many as it has */
    size_t rows;              /* read so far */
    int max_rows;
    struct dt__json_rows reader;
    struct dt__row row;
    struct dt_inputs inputs; /* (room) rows that were read last, */
    size_t room, count;      /* so many of them */
};
/* Opens the body of ":predict" (v2 false) or "/infer", which is read until the last
 * dt__request_read. It is to be freed in any case.
 * DT_EFORMAT: says what is wrong with it. */
dt_status dt__request_open(const char *body, size_t length, bool v2,
                           const struct dt__version *version, int max_rows,
                           struct dt__request *out);
void dt__request_free(struct dt__request *request);
/* Reads the next rows, as many as are computed at once; none are left if request->count is 0.
 * DT_EFORMAT. */
dt_status dt__request_read(struct dt__request *request, const struct dt_predictor *predictor);
/* The answer as JSON, added to text; name: the model's in paths, as JSON. */
dt_status dt__answer_format(const struct dt__request *request, const struct dt__version *version,
                            const char *name, const float *answers, const int32_t *classes,
                            struct dt_text *text);
/* GET of a model in v2: its inputs and outputs. */
dt_status dt__metadata_format(const struct dt__version *version, const char *name,
                              struct dt_text *text);

#endif
