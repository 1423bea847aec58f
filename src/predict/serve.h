/* What the files of the server share: versions of the model, the batcher, requests and answers as JSON. */
#ifndef PREDICT_SERVE_H
#define PREDICT_SERVE_H

#include <pthread.h>
#include <sys/stat.h>

#include "dtrain/predict.h"

/* Which file a model was loaded from: another one in its place, or one that was written again, is another. */
struct dt__file_id {
    dev_t device;
    ino_t inode;
    struct timespec written;
};

/* A model that is answered from until the last who uses it lets go. */
struct dt__version {
    struct dt_predictor *predictor;
    struct dt__file_id file;
    uint64_t number;
    int users; /* under the server's lock */
};

/* ---- batcher.c: rows of many requests through the network at once --------------------------- */

struct dt__batcher;
dt_status dt__batcher_create(struct dt__batcher **out);
void dt__batcher_destroy(struct dt__batcher *batcher); /* nobody waits any more */
struct dt__request;
/* Answers the rows of a request together with those that others bring meanwhile. Any thread; waits. The caller
 * holds the version. */
dt_status dt__batcher_answer(struct dt__batcher *batcher, const struct dt__version *version,
                             const struct dt__request *request, float *out, int32_t *out_class);
/* Batches and rows so far. */
void dt__batcher_counts(struct dt__batcher *batcher, uint64_t *out_batches, uint64_t *out_rows);

/* ---- protocol.c: requests and answers ----------------------------------------------------------- */

enum dt__protocol { DT__INSTANCES, DT__INPUTS, DT__INFER };

/* A request as numbers. */
struct dt__request {
    enum dt__protocol protocol; /* how to answer */
    size_t rows;
    struct dt_inputs inputs;
    char *id; /* v2: the request's own; NULL: none */
};
/* From the body of ":predict" (v2 false) or "/infer". DT_EFORMAT: says what is wrong with it. */
dt_status dt__request_parse(const char *body, size_t length, bool v2,
                            const struct dt_predictor *predictor, int max_rows,
                            struct dt__request *out);
void dt__request_free(struct dt__request *request);
/* The answer as JSON, added to text. */
dt_status dt__answer_format(const struct dt__request *request, const struct dt_predictor *predictor,
                            const char *name, uint64_t version, const float *answers,
                            const int32_t *classes, struct dt_text *text);
/* GET of a model in v2: its inputs and outputs. */
dt_status dt__metadata_format(const struct dt_predictor *predictor, const char *name,
                              uint64_t version, struct dt_text *text);

#endif
