/* What the files of the server share: versions of the model, the batcher, requests and answers as
 * JSON. */
#ifndef PREDICT_SERVE_H
#define PREDICT_SERVE_H

#include <pthread.h>
#include <sys/stat.h>

#include "data/json_rows.h"
#include "predict/predict.h"

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
/* Answers `count` rows of a request from `first` on, at most a chunk of the predictor's, together
 * with those that others bring meanwhile. Any thread; waits. The caller holds the version. */
dt_status dt__batcher_answer(struct dt__batcher *batcher, const struct dt__version *version,
                             const struct dt__request *request, size_t first, size_t count,
                             float *out, int32_t *out_class);
/* Batches and rows so far. */
void dt__batcher_counts(struct dt__batcher *batcher, uint64_t *out_batches, uint64_t *out_rows);

/* ---- protocol.c: requests and answers -------------------------------------------------------- */

enum dt__protocol { DT__INSTANCES, DT__INPUTS, DT__INFER };

/* A request, read. */
struct dt__request {
    enum dt__protocol protocol; /* how to answer */
    const char *key;            /* under which its rows stand */
    char *id;                   /* v2: the request's own; NULL: none */
    unsigned outputs;           /* v2: bits of those that are asked for; 0: all */
    int max_rows;
    size_t rows;
    struct dt__json_rows reader;
    uint32_t *words;    /* what the values say, row by row (rows, columns); */
    uint32_t **lists;   /* or, of lists by name, a column's here (rows) ... */
    uint32_t *list_end; /* ... of which the last ends here; `words`: there are none */
    uint32_t *row;      /* (columns) one of them, put together */
};
/* Reads the body of ":predict" (v2 false) or "/infer", which is needed no more then. The request is
 * to be freed in any case. DT_EFORMAT: says what is wrong with it. */
dt_status dt__request_read(const char *body, size_t length, bool v2,
                           const struct dt__version *version, int max_rows,
                           struct dt__request *out);
void dt__request_free(struct dt__request *request);
/* Rows [first, first + count) as the network takes them, as those from `at` on. DT_EMEMORY. */
dt_status dt__request_inputs(const struct dt__request *request, size_t first, size_t count,
                             const struct dt_predictor *predictor, struct dt_inputs *to, size_t at);
/* The answer as JSON, added to text; name: the model's in paths, as JSON. */
dt_status dt__answer_format(const struct dt__request *request, const struct dt__version *version,
                            const char *name, const float *answers, const int32_t *classes,
                            struct dt_text *text);
/* GET of a model in v2: its inputs and outputs. */
dt_status dt__metadata_format(const struct dt__version *version, const char *name,
                              struct dt_text *text);

#endif
