/* Pending MPI requests: everything that a rank waits for, in one list that one call tests.
 *
 * Each request belongs to a counter of the caller, which rises when the request is added and falls
 * when it completes. So a caller that waits for several requests checks one number: a chunk for the
 * sums of all nodes, a stage of agreement for its messages, an owner for an answer that must have
 * left before its buffer may change. */
#ifndef DT_COMM_REQUESTS_H
#define DT_COMM_REQUESTS_H

#include <mpi.h>

#include "base/limits.h"
#include "comm/comm.h"

struct dt__requests {
    struct dt_world *world;
    MPI_Comm comm;        /* for messages */
    MPI_Request *request; /* (capacity) */
    int **left;           /* (capacity) counter of each */
    int *index;           /* (capacity) scratch */
    int count;
    size_t capacity; /* grows in the first steps, and ends the job if it cannot */
};

/* Returns an entry for one more request, which the caller must fill at once by an MPI call. */
MPI_Request *dt__request_add(struct dt__requests *requests, int *left);
/* Not collective.
 * Removes completed requests; returns true if there were any. */
bool dt__requests_advance(struct dt__requests *requests);
/* Frees the list, which has no pending requests. */
void dt__requests_free(struct dt__requests *requests);

/* Direction of a message, its other end, its tag, and the bytes that one MPI message has at most:
 * DT__MPI_CHUNK, or DT__EAGER, which is below TCP's eager limit. Before MPI sends a longer one it
 * waits for the receiver's consent, which may be queued after megabytes that the receiver sends. */
enum { DT__EAGER = DT__CHUNK * sizeof(float) };
struct dt__envelope {
    bool sends;
    int rank, tag;
    size_t most;
};
/* Not collective.
 * Begins a message of any length; none is sent if the length is 0. Messages of one tag between two
 * ranks keep their order. Bytes that are sent are only read. */
void dt__message_begin(struct dt__requests *requests, int *left, const void *bytes, size_t length,
                       struct dt__envelope envelope);

#endif
