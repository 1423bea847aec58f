/* Shared by the server's files: versions of the model, the batcher, requests and answers as
 * JSON. */
#ifndef PREDICT_SERVE_H
#define PREDICT_SERVE_H

#include <pthread.h>
#include <sys/stat.h>

#include "data/json_rows.h"
#include "predict/predict.h"

/* Identifies the file from which a model was loaded: a file that replaces it, or was written again,
 * is a different one. The size distinguishes a half-written file from the whole one, which may be
 * written within one tick of the file clock. */
struct dt__file_id {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec written;
};

/* A model in use; it lives until its last user releases it. */
struct dt__version {
    struct dt_predictor *predictor;
    /* columns by which rows are read; without items: numbers without names */
    struct dt__columns columns;
    struct dt__file_id file;
    uint64_t number;
    int users; /* protected by the server's lock */
};

/* ---- batcher.c: rows of many requests through the network at once --------------------------- */

struct dt__batcher;
/* threads: of matrix products. */
dt_status dt__batcher_create(int threads, struct dt__batcher **out);
void dt__batcher_destroy(struct dt__batcher *batcher); /* no thread may be waiting */
struct dt__request;
/* Predicts `count` rows of a request from `first` on, at most the predictor's chunk, together with
 * rows of other threads. Any thread may call it; it waits. The caller holds the version. */
dt_status dt__batcher_answer(struct dt__batcher *batcher, const struct dt__version *version,
                             const struct dt__request *request, size_t first, size_t count,
                             float *out, int32_t *out_class);
/* Returns the batches and rows so far. */
void dt__batcher_counts(struct dt__batcher *batcher, uint64_t *out_batches, uint64_t *out_rows);

/* ---- protocol.c: requests and answers -------------------------------------------------------- */

enum dt__protocol { DT__INSTANCES, DT__INPUTS, DT__INFER };

/* A parsed request. */
struct dt__request {
    enum dt__protocol protocol; /* how to answer */
    const char *key;            /* member that holds its rows */
    char *id;                   /* v2: the request's id; NULL: none */
    unsigned outputs;           /* v2: bits of the requested outputs; 0: all */
    int max_rows;
    size_t rows;
    struct dt__json_rows reader;
    uint32_t *words;    /* the values, row by row (rows, columns), as words; */
    uint32_t **lists;   /* or, for lists by name, those of a column start here (rows) ... */
    uint32_t *list_end; /* ... and of the last one end here; `words`: there are none */
    uint32_t *row;      /* (columns) one row, assembled */
};
/* Parses the body of ":predict" (v2 false) or "/infer"; the body is not needed afterwards. The
 * caller frees the request in any case. DT_EFORMAT: the text says what is wrong. */
dt_status dt__request_read(const char *body, size_t length, bool v2,
                           const struct dt__version *version, int max_rows,
                           struct dt__request *out);
void dt__request_free(struct dt__request *request);
/* Converts rows [first, first + count) to the network's inputs, as rows `at` and following.
 * DT_EMEMORY. */
dt_status dt__request_inputs(const struct dt__request *request, size_t first, size_t count,
                             const struct dt_predictor *predictor, struct dt_inputs *to, size_t at);
/* Adds the answer as JSON to text; name: the model's name in paths, as JSON. */
dt_status dt__answer_format(const struct dt__request *request, const struct dt__version *version,
                            const char *name, const float *answers, const int32_t *classes,
                            struct dt_text *text);
/* Adds the answer to GET of a model in v2: its inputs and outputs. */
dt_status dt__metadata_format(const struct dt__version *version, const char *name,
                              struct dt_text *text);

#endif
