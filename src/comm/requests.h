/* Pending MPI requests: everything that a rank waits for, in one list that one call tests.
 *
 * Each request belongs to a counter of the caller, which rises when the request is added and falls
 * when it completes. So a caller that waits for several requests checks one number: a chunk waits
 * for the sums of all nodes, a stage of agreement for its messages, an owner for an answer to leave
 * before its buffer changes. */
#ifndef DT_COMM_REQUESTS_H
#define DT_COMM_REQUESTS_H

#include <mpi.h>

#include "base/limits.h"
#include "comm/comm.h"

struct dt__requests {
    struct dt_world *world;
    MPI_Comm comm;        /* for messages */
    MPI_Request *request; /* (capacity) */
    int **left;           /* (capacity) counter of each request */
    int *index;           /* (capacity) for MPI_Testsome */
    int count;
    size_t capacity; /* grows in the first steps; lack of memory for that ends the job */
};

/* Returns an entry for one more request, and raises *left. The caller must fill the entry at once
 * with an MPI call. */
MPI_Request *dt__request_add(struct dt__requests *requests, int *left);
/* Not collective. Removes completed requests. Returns whether there were any. */
bool dt__requests_advance(struct dt__requests *requests);
/* Frees the list. No request may be pending. */
void dt__requests_free(struct dt__requests *requests);

/* Direction of a message, the rank at its other end, its tag, and the upper bound on the bytes of
 * one MPI message: DT__MPI_CHUNK, or DT__EAGER, which is below TCP's eager limit. MPI sends a
 * longer message only after the receiver has consented, and the consent may be queued after
 * megabytes that the receiver sends. */
enum { DT__EAGER = DT__CHUNK * sizeof(float) };
struct dt__envelope {
    bool sends;
    int rank, tag;
    size_t most;
};
/* Not collective. Starts a message of any length; a length of 0 sends nothing. Messages with one
 * tag between two ranks keep their order. bytes are only read if the message is sent from here. */
void dt__message_begin(struct dt__requests *requests, int *left, const void *bytes, size_t length,
                       struct dt__envelope envelope);

#endif
