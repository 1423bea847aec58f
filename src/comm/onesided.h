/* onesided: memory of an owner of weights. Every worker can put bytes into it, and operate on its
 * control words.
 *
 * The slot protocol uses its transport only through this interface. The transports are memory that
 * a host shares (async_shared.c), an MPI window with memory at each owner (async_window.c), and a
 * scheduler in one process that delays and interleaves every operation
 * (tests/unit/onesided_fake.h). */
#ifndef DT_COMM_ONESIDED_H
#define DT_COMM_ONESIDED_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "comm/comm.h"

struct dt__onesided;

enum dt__op { DT__NO_OP, DT__REPLACE, DT__SUM };
enum dt__end { DT__WORKERS, DT__BANK };

/* Control words are at the start of the memory, each on its own cache line. */
enum { DT__WORD_STRIDE = 64 };

/* An answer to a request for weights, on the owner and on the worker. */
struct dt__answer {
    struct dt__head {     /* the weights follow it */
        uint64_t version; /* updates in the weights */
        uint64_t floor;   /* gradients of this span in the weights, of the active worker that has
                           * the fewest */
    } head;
    int left; /* messages of the answer in flight */
};

struct dt__onesided_ops {
    /* Operates atomically on a control word (in windows only on a word of this rank), and returns
     * the former value. Complete when the call returns. Does not order other operations. */
    uint64_t (*fetch_op)(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value);
    /* If the memory is reached by loads and stores, orders them: later loads see what other ranks
     * have completed, and ranks that start operations later see earlier stores. */
    void (*sync)(struct dt__onesided *remote);
    /* Pauses a little, or until there is news, and makes progress; ends the job if that takes too
     * long. The rank is shown as waiting for `what` until its next dt__world_heartbeat. */
    void (*pause)(struct dt__onesided *remote, const char *what);
    /* Ends the pauses of the workers or of the bank: there is news for them. */
    void (*notify)(struct dt__onesided *remote, enum dt__end whom);
    /* Lets MPI receive what other ranks send, and executes the operations that they have started on
     * this rank's memory. */
    void (*progress)(struct dt__onesided *remote);
    void (*close)(struct dt__onesided *remote); /* closes the memory of all owners; collective over
                                                 * the trainers */

    /* The functions below are for windows; they are NULL in shared memory. No call waits for
     * another rank: *left, a counter of the caller, rises at once, and falls in `progress` when an
     * operation completes.
     *
     * Starts a put. It is complete when all bytes have left this rank, and may change. They arrive
     * in any order, without notice. */
    void (*put)(struct dt__onesided *remote, int *left, size_t offset, const void *bytes,
                size_t length);
    /* Starts a fetch_op. Operations of one rank on one owner keep their order. When it is
     * complete, *before has the former value. before and left are NULL if the caller does not need
     * that. */
    void (*begin)(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value,
                  uint64_t *before, int *left);
    /* Sends the owner's answer to a worker: the head, then `length` bytes of body. Neither may
     * change until the send is complete. */
    void (*send)(struct dt__onesided *remote, int worker, struct dt__answer *answer,
                 const void *body, size_t length);
    /* Prepares to receive the next answer on a worker. It is complete when the answer has
     * arrived. */
    void (*expect)(struct dt__onesided *remote, struct dt__answer *answer, void *body,
                   size_t length);
};

struct dt__onesided {
    const struct dt__onesided_ops *ops;
    unsigned char *memory; /* the owner's memory; NULL if loads and stores do not reach it */
};

/* Collective over the trainers. Creates `bytes` of memory on the bank, shared by the ranks of one
 * host; the first `zeroed` bytes are 0. Fails on all ranks or on none. DT_EMEMORY: not enough
 * memory. arena: for this rank's memory; must outlive `close`. */
dt_status dt__onesided_shared(struct dt_world *world, struct dt__arena **arena, size_t bytes,
                              size_t zeroed, struct dt__onesided **out);

/* The memory of one owner in a window. */
struct dt__window_target {
    int owner;            /* rank among the trainers; each has at most one target */
    size_t bytes, zeroed; /* of the memory, as in dt__onesided_shared */
    struct dt__onesided **out;
};
/* Collective over the trainers. Creates a window over the memory of all owners. DT_ECOMM: MPI
 * cannot create one here. */
dt_status dt__onesided_window(struct dt_world *world, struct dt__arena **arena, int targets,
                              const struct dt__window_target *target);

#endif
