/* Requests of MPI that are under way: all that a rank waits for, in a list that one call looks at.
 *
 * Each request belongs to a count of the caller's, which rises as it is added and falls as it is
 * done. So whoever waits for several looks at a number: a chunk for the sums of all nodes, a round
 * of agreement for its messages, an owner for an answer that must have left before its buffer may
 * change. */
#ifndef DT_COMM_REQUESTS_H
#define DT_COMM_REQUESTS_H

#include <mpi.h>

#include "base/limits.h"
#include "comm/comm.h"

struct dt__requests {
    struct dt_world *world;
    MPI_Comm comm;        /* of messages */
    MPI_Request *request; /* (room) */
    int **left;           /* (room) the count of each */
    int *index;           /* (room) scratch */
    int count;
    size_t room; /* grows in the first steps; where it cannot, the job ends */
};

/* Room for one more, which an MPI call fills at once. */
MPI_Request *dt__request_add(struct dt__requests *requests, int *left);
/* Takes off those that are done; true if there were some. */
bool dt__requests_advance(struct dt__requests *requests);
/* None is under way. */
void dt__requests_free(struct dt__requests *requests);

/* Which way a message goes, whom to or whom from, and what it is. */
struct dt__envelope {
    bool sends;
    int rank, tag;
};
/* Begins one: of any length, none if that is 0. Those of one tag between two ranks keep their
 * order. What is sent is only read. */
void dt__message_begin(struct dt__requests *requests, int *left, const void *bytes, size_t length,
                       struct dt__envelope envelope);
/* Begins a message as several of at most DT__EAGER bytes, which is below TCP's eager limit. Before
 * MPI sends a longer one it waits for the receiver's consent, which may be queued after megabytes
 * that the receiver sends. */
enum { DT__EAGER = DT__CHUNK * sizeof(float) };
void dt__eager_begin(struct dt__requests *requests, int *left, const void *bytes, size_t length,
                     struct dt__envelope envelope);

#endif
