/* A worker: the gradients of its replicas, and its chunks of the evaluation data. */
#ifndef DT_TRAIN_WORKER_H
#define DT_TRAIN_WORKER_H

#include "train/job.h"

/* Rows that go through a network at once; a larger share of a batch is done in slices, but with
 * batchnorm. */
enum { DT__SLICE_ROWS = 4096 };

/* What a worker's time in sync training goes into. */
enum dt__budget {
    DT__COMPUTE,
    DT__DATA,
    DT__WAIT,
    DT__REDUCE,
    DT__UPDATE,
    DT__NETWORK,
    DT__BUDGET_PARTS
};

/* A set of rows, as a worker measures it in place. */
struct dt_measured {
    struct dt_measure *measure;  /* NULL: it has no chunk */
    uint64_t chunk, chunk_end;   /* its chunks of the set */
};

/* Rows of replicas, and those that were the last to be read. */
struct dt_reader {
    struct dt_loader *loader;
    struct dt_batch batch;
    struct dt_share share; /* the batch is these rows ... */
    int replica;           /* ... of this one */
};

struct dt_worker {
    int first, count;         /* its replicas */
    struct dt_reader *reader; /* (readers) one for all of them, or, with split layers, one each */
    int readers;
    struct dt_network *network;
    double *loss;     /* (R) loss sums of its replicas since the last train record */
    uint64_t *draws;  /* async: (R) the next draw of each of its replicas */
    dt_status failed; /* what went wrong in a step; its message is this thread's error text */
    double budget[DT__BUDGET_PARTS]; /* seconds in sync training, up to the last span's end */
    double data_secs;                /* of this span: waited for the loader */
    uint64_t samples;                /* that it has trained on since the start */
    bool wire_told;                  /* what the exchange with other hosts takes, once */
    struct dt_measured *measured;    /* (sets) evaluation in place; NULL: there is none */
    int sets;
};

/* What this rank does of the job. Not collective. DT_EIO, DT_EFORMAT: its data cannot be read. */
dt_status dt__worker_open(struct dt_job *job, struct dt_worker *worker);
void dt__worker_close(struct dt_worker *worker);

/* Lists the matrices whose gradients may stay factors until they are used: of dense rows that go
 * through the network at once, without local steps or a rounded wire. DT_EMEMORY. */
dt_status dt__list_factored(struct dt_job *job, struct dt_steps *steps);
/* Adds the loss of a replica's share of step (async: draw) `draw` to worker->loss and puts the sum
 * of its gradient over the share into the slot; false, with worker->failed set, if the loss is not
 * finite or data could not be read. */
bool dt__replica_gradient(const struct dt_job *job, struct dt_worker *worker, int replica,
                          uint64_t draw, const float *weights, struct dt_slot slot,
                          const struct dt_network_hooks *hooks);
/* Rows of a replica's share. Nothing is done if they are those that were read last. */
dt_status dt__read_rows(struct dt_worker *worker, int replica, struct dt_share rows,
                        struct dt_batch *out);
/* Sync: lists the inputs that the worker's replicas read in a step; worker->failed is set where
 * data cannot be read. */
void dt__list_inputs(const struct dt_job *job, struct dt_worker *worker, uint64_t step,
                     const struct dt_touched *inputs);
/* Sets worker->failed, if this is a failure, and the first one. A worker that has failed goes on
 * with what it has, so that the others do not wait: the step is void. */
void dt__step_fail(struct dt_worker *worker, uint64_t step, dt_status status);
/* DT_ENUMERIC: it is not finite. */
dt_status dt__loss_check(const struct dt_job *job, int replica, double loss);
/* The chunks of the evaluation data that a worker measures. */
void dt__chunks_of(const struct dt_job *job, int worker, uint64_t chunks, uint64_t *first,
                   uint64_t *end);
/* Async: the one of the worker's replicas that has drawn least, at its next draw that has rows: a
 * function of the draws alone, so that a resume goes on with the same one. The worker has rows. */
int dt__next_replica(const struct dt_job *job, const struct dt_worker *worker);
/* That replica's next gradient; touched: where to list its touched rows, of which grad has no
 * others then; NULL: it is whole. */
struct dt_note dt__async_gradient(const struct dt_job *job, struct dt_worker *worker, int replica,
                                  const float *weights, float *grad,
                                  const struct dt_touched *touched);

#endif
