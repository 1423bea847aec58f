/* Shared by the files of the server: versions of the model, the batcher, and requests and answers
 * as JSON. */
#ifndef PREDICT_SERVE_H
#define PREDICT_SERVE_H

#include <pthread.h>
#include <sys/stat.h>

#include "data/json_rows.h"
#include "predict/predict.h"

/* Identifies a model file. A file that replaces it, or that was written again, has another
 * identity. The size distinguishes a file that is half written from the same file when complete:
 * both may have the same time, since the file system's clock is coarse. */
struct dt__file_id {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec written;
};

/* A loaded version of the model; it lives until its last user releases it. */
struct dt__version {
    struct dt_predictor *predictor;
    /* columns by which rows are read; items NULL: numbers without names */
    struct dt__columns columns;
    struct dt__file_id file;
    uint64_t number;
    int users; /* protected by the server's lock */
};

/* ---- batcher.c: rows of many requests through the network at once --------------------------- */

struct dt__batcher;
/* Creates a batcher. threads: number of threads of each matrix product. */
dt_status dt__batcher_create(int threads, struct dt__batcher **out);
void dt__batcher_destroy(struct dt__batcher *batcher); /* no thread may be waiting in it */
struct dt__request;
/* Predicts rows [first, first + count) of a request, at most the predictor's chunk, in one batch
 * with rows of other threads. May be called by any thread, and waits for the answer. The caller
 * holds the version. */
dt_status dt__batcher_answer(struct dt__batcher *batcher, const struct dt__version *version,
                             const struct dt__request *request, size_t first, size_t count,
                             float *out, int32_t *out_class);
/* Returns the numbers of batches and rows so far. */
void dt__batcher_counts(struct dt__batcher *batcher, uint64_t *out_batches, uint64_t *out_rows);

/* ---- protocol.c: requests and answers -------------------------------------------------------- */

enum dt__protocol { DT__INSTANCES, DT__INPUTS, DT__INFER };

/* A request that has been parsed. */
struct dt__request {
    enum dt__protocol protocol; /* determines the form of the answer */
    const char *key;            /* name of the member that holds the rows */
    char *id;                   /* v2: the request's id; NULL: it has none */
    unsigned outputs;           /* v2: bit set of the requested outputs (enum part); 0: all */
    int max_rows;
    size_t rows;
    struct dt__json_rows reader;
    uint32_t *words;    /* the values: row by row, (rows, columns), or as one list per column */
    uint32_t **lists;   /* (columns) for lists: start of each column's list (rows) in `words` */
    uint32_t *list_end; /* end of the last list; equal to `words`: there are no lists */
    uint32_t *row;      /* (columns) one row, assembled from the lists */
};
/* Parses the body of ":predict" (v2 false) or "/infer" (v2 true). The body is not needed
 * afterwards. The caller frees the request even after an error. DT_EFORMAT: the message says what
 * is wrong. */
dt_status dt__request_read(const char *body, size_t length, bool v2,
                           const struct dt__version *version, int max_rows,
                           struct dt__request *out);
void dt__request_free(struct dt__request *request);
/* Converts rows [first, first + count) to inputs of the network, and writes them to rows at, at +
 * 1, ... of `to`. DT_EMEMORY. */
dt_status dt__request_inputs(const struct dt__request *request, size_t first, size_t count,
                             const struct dt_predictor *predictor, struct dt_inputs *to, size_t at);
/* Adds the answer as JSON to text. name: the model's name in paths, as JSON. */
dt_status dt__answer_format(const struct dt__request *request, const struct dt__version *version,
                            const char *name, const float *answers, const int32_t *classes,
                            struct dt_text *text);
/* Adds the answer to a GET of a model in v2, which describes its inputs and outputs, to text. */
dt_status dt__metadata_format(const struct dt__version *version, const char *name,
                              struct dt_text *text);

#endif
