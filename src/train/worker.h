/* A worker: the gradients of its replicas, and its chunks of the evaluation data. */
#ifndef DT_TRAIN_WORKER_H
#define DT_TRAIN_WORKER_H

#include "train/job.h"

/* The largest number of rows that go through a network at once. A larger local batch takes several
 * passes, unless the model has batchnorm or split layers. */
enum { DT__SLICE_ROWS = 4096 };

/* The parts of a worker's time in sync training. */
enum dt__budget {
    DT__COMPUTE,
    DT__DATA,
    DT__WAIT,
    DT__REDUCE,
    DT__UPDATE,
    DT__NETWORK,
    DT__BUDGET_PARTS
};

/* A worker's chunks of one set of rows, measured in place. */
struct dt_measured {
    struct dt_measure *measure; /* NULL: this worker has no chunk of the set */
    uint64_t chunk, chunk_end;  /* chunks [chunk, chunk_end) */
};

/* Reads the rows of replicas, and keeps the last batch that it read. */
struct dt_reader {
    struct dt_loader *loader;
    struct dt_batch batch;
    struct dt_local_batch local; /* the rows that `batch` holds */
    int replica;                 /* the replica that these rows belong to */
};

struct dt_worker {
    int first, count;         /* its replicas: the first, and how many */
    struct dt_reader *reader; /* (readers) one for all replicas or, with split layers, one for
                               * each */
    int readers;
    struct dt_network *network;
    double *loss;     /* (R) loss sums of its replicas since the last train record */
    uint64_t *draws;  /* async: (R) next draw of each replica of this worker */
    dt_status failed; /* status of the first failed step; the message is in this thread's error
                       * text */
    double budget[DT__BUDGET_PARTS]; /* seconds in sync training up to the end of the last span */
    double data_secs;                /* seconds of this span spent waiting for the loader */
    uint64_t samples;                /* samples trained on since the start */
    bool wire_reported;              /* dt__advise_wire has reported */
    struct dt_measured *measured;    /* (sets) evaluation in place; NULL: there is none */
    int sets;
};

/* Opens the worker: its network, readers and chunks of the evaluation data. Not collective. DT_EIO,
 * DT_EFORMAT: its data cannot be read. */
dt_status dt__worker_open(struct dt_job *job, struct dt_worker *worker);
void dt__worker_close(struct dt_worker *worker);

/* Lists in steps->factored the matrices whose gradients may stay factors until they are used. The
 * list is empty with sparse rows, with a rounded wire, and if a local batch takes several passes.
 * DT_EMEMORY. */
dt_status dt__list_factored(struct dt_job *job, struct dt_steps *steps);
/* Computes the gradient of the replica's local batch, summed over its rows, into the slot, and adds
 * the loss to worker->loss. draw: number of the batch, in sync training the step. Returns false,
 * with worker->failed set, if the loss is not finite or data could not be read. */
bool dt__replica_gradient(const struct dt_job *job, struct dt_worker *worker, int replica,
                          uint64_t draw, const float *weights, struct dt_slot slot,
                          const struct dt_network_hooks *hooks);
/* Reads rows of a replica's local batch, unless they are the rows that were read last. */
dt_status dt__read_rows(struct dt_worker *worker, int replica, struct dt_local_batch rows,
                        struct dt_batch *out);
/* Sync: lists the inputs that the worker's replicas read in a step. Sets worker->failed if data
 * cannot be read. */
void dt__list_inputs(const struct dt_job *job, struct dt_worker *worker, uint64_t step,
                     const struct dt_touched *inputs);
/* Sets worker->failed to status, unless an earlier step has failed. A worker that has failed
 * continues with the data it has, so that other ranks do not wait for it; the step has no
 * effect. */
void dt__step_fail(struct dt_worker *worker, uint64_t step, dt_status status);
/* DT_ENUMERIC: the loss is not finite. */
dt_status dt__loss_check(const struct dt_job *job, int replica, double loss);
/* Sets [*first, *end) to the worker's range of the `chunks` chunks of a set. */
void dt__chunks_of(const struct dt_job *job, int worker, uint64_t chunks, uint64_t *first,
                   uint64_t *end);
/* Async: returns the worker's replica with the fewest draws, and advances it to its next draw that
 * has rows. The choice depends on the draws alone, so a resumed run continues with the same
 * replica. The worker must have rows. */
int dt__next_replica(const struct dt_job *job, const struct dt_worker *worker);
/* Computes the next gradient of the replica. touched: receives the touched rows, and grad holds
 * only those; NULL: grad is whole. */
struct dt_gradient_info dt__async_gradient(const struct dt_job *job, struct dt_worker *worker,
                                           int replica, const float *weights, float *grad,
                                           const struct dt_touched *touched);

#endif
