/* onesided: memory of an owner of weights that every worker can put into and count in.
 *
 * The slot protocol accesses its transport only through this interface: memory that a host shares
 * (async_shared.c), an MPI window with memory at each owner (async_window.c), or a scheduler in one
 * process that delays and interleaves every operation (tests/unit/onesided_fake.h). */
#ifndef DT_COMM_ONESIDED_H
#define DT_COMM_ONESIDED_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "comm/comm.h"

struct dt__onesided;

enum dt__op { DT__NO_OP, DT__REPLACE, DT__SUM };
enum dt__end { DT__WORKERS, DT__BANK };

/* Control words are at the start of the memory, each on a separate cache line. */
enum { DT__WORD_STRIDE = 64 };

/* An answer, at the owner and at the worker. */
struct dt__answer {
    struct dt__head {     /* followed by the weights */
        uint64_t version; /* updates in them */
        uint64_t floor;   /* fewest gradients of this span in them, of any active worker */
    } head;
    int left; /* messages of it in flight */
};

struct dt__onesided_ops {
    /* Operates atomically on a control word (in windows only the owner's own), and returns the
     * value before. Complete when the call returns. Orders nothing else. */
    uint64_t (*fetch_op)(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value);
    /* Orders loads and stores, where memory is reached by them: later loads see what other ranks
     * have completed, and earlier stores are visible to what others begin later. */
    void (*sync)(struct dt__onesided *remote);
    /* Pauses a little, or until there is news; makes progress; ends the job if it takes too long.
     * The rank is shown as waiting for `what` until its next dt__world_heartbeat. */
    void (*pause)(struct dt__onesided *remote, const char *what);
    /* Notifies ranks that pause of news. */
    void (*notify)(struct dt__onesided *remote, enum dt__end whom);
    /* Lets MPI receive what other ranks send, and executes the operations that they have begun on
     * this rank's memory. */
    void (*progress)(struct dt__onesided *remote);
    void (*close)(struct dt__onesided *remote); /* for all owners; collective over the trainers */

    /* The functions below are only for windows, and NULL in shared memory. No call waits for
     * another rank: a counter of the caller, `left`, rises at once, and falls in `progress` as
     * operations complete.
     *
     * Begins a put. Complete: all bytes have left this rank, and may change. They arrive in any
     * order, without notice. */
    void (*put)(struct dt__onesided *remote, int *left, size_t offset, const void *bytes,
                size_t length);
    /* Begins fetch_op. Operations by one rank on one owner keep their order. Complete: the value
     * before is stored. before and left NULL: the caller does not need it. */
    void (*begin)(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value,
                  uint64_t *before, int *left);
    /* Sends a worker the owner's answer: `length` bytes of body after a header. Neither may change
     * until that completes. */
    void (*send)(struct dt__onesided *remote, int worker, struct dt__answer *answer,
                 const void *body, size_t length);
    /* Prepares to receive the next answer at a worker. Complete: it has arrived. */
    void (*expect)(struct dt__onesided *remote, struct dt__answer *answer, void *body,
                   size_t length);
};

struct dt__onesided {
    const struct dt__onesided_ops *ops;
    unsigned char *memory; /* of the owner; NULL where loads and stores do not reach it */
};

/* Collective over the trainers.
 * Creates `bytes` of memory at the bank, shared by the ranks of one host, with the first `zeroed`
 * bytes 0. Fails on all ranks or on none. DT_EMEMORY: not enough memory. arena: allocates what this
 * rank needs, until after `close`. */
dt_status dt__onesided_shared(struct dt_world *world, struct dt__arena **arena, size_t bytes,
                              size_t zeroed, struct dt__onesided **out);

/* An owner's target in a window. */
struct dt__window_target {
    int owner;            /* rank among the trainers; each has at most one target */
    size_t bytes, zeroed; /* of its memory, as in dt__onesided_shared */
    struct dt__onesided **out;
};
/* Collective over the trainers.
 * Creates a window of all owners' memory. DT_ECOMM: MPI has no such memory here. */
dt_status dt__onesided_window(struct dt_world *world, struct dt__arena **arena, int targets,
                              const struct dt__window_target *target);

#endif
