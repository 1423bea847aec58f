/* onesided: memory of an owner of weights that every worker can put into and count in.
 *
 * All that the slot protocol knows of its transport: memory that a host shares (async_shared.c), an
 * MPI window with memory at each owner (async_window.c), or a scheduler in one process that delays
 * and interleaves every operation (tests/unit/onesided_fake.h). */
#ifndef DT_COMM_ONESIDED_H
#define DT_COMM_ONESIDED_H

#include <stddef.h>
#include <stdint.h>

#include "base/kept.h"
#include "comm/comm.h"

struct dt__onesided;

enum dt__op { DT__NO_OP, DT__REPLACE, DT__SUM };
enum dt__end { DT__WORKERS, DT__BANK };

/* Control words are the first of the memory, each on a cache line of its own. */
enum { DT__WORD_STRIDE = 64 };

/* An answer, at either end. */
struct dt__answer {
    struct dt__head {     /* the weights stand behind it */
        uint64_t version; /* updates in them */
        uint64_t floor;   /* fewest gradients of this span in them, of any active worker */
    } head;
    int left; /* it is under way */
};

struct dt__onesided_ops {
    /* A control word, in windows the owner's own: atomic, and done when the call returns; the value
     * before. Orders nothing else. */
    uint64_t (*fetch_op)(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value);
    /* Where memory is reached by loads and stores: what others have completed is seen by later
     * loads, and earlier stores are seen by what others begin later. */
    void (*sync)(struct dt__onesided *remote);
    /* Passes a little time, or waits for news; makes progress; ends the job if it takes too long.
     * `what` is waited for, until the rank's next dt__world_heartbeat. */
    void (*pause)(struct dt__onesided *remote, const char *what);
    /* There is news for those who pause. */
    void (*notify)(struct dt__onesided *remote, enum dt__end whom);
    /* Lets MPI take in what others send, and does at this rank's memory what they have begun. */
    void (*progress)(struct dt__onesided *remote);
    void (*close)(struct dt__onesided *remote); /* of all owners; collective over the trainers */

    /* The rest is for windows alone, and NULL in shared memory. Nothing waits for another rank: a
     * count of the caller's, `left`, rises at once, and falls in `progress` as things are done.
     *
     * Begins to put. Done: all has left this rank, and the bytes may change. They land in any
     * order, and nothing says that they have. */
    void (*put)(struct dt__onesided *remote, int *left, size_t offset, const void *bytes,
                size_t length);
    /* Begins fetch_op. What one rank begins at one owner keeps its order. Done: the value before is
     * there. NULL, and left too: nobody wants it. */
    void (*begin)(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value,
                  uint64_t *before, int *left);
    /* The owner answers a worker: `length` bytes of body behind a head. Both rest until that is
     * done. */
    void (*send)(struct dt__onesided *remote, int worker, struct dt__answer *answer,
                 const void *body, size_t length);
    /* The worker's end of it: where the next answer is to go. Done: it is there. */
    void (*expect)(struct dt__onesided *remote, struct dt__answer *answer, void *body,
                   size_t length);
};

struct dt__onesided {
    const struct dt__onesided_ops *ops;
    unsigned char *memory; /* the owner's; NULL where loads and stores do not reach it */
};

/* `bytes` of memory at the bank, which the ranks of one host share, the first `zeroed` of them 0.
 * Collective over the trainers; fails on all ranks or on none. DT_EMEMORY: no room. kept: has what
 * this rank needs, until behind `close`. */
dt_status dt__onesided_shared(struct dt_world *world, struct dt__kept **kept, size_t bytes,
                              size_t zeroed, struct dt__onesided **out);

/* What an owner has of a window. */
struct dt__window_target {
    int owner;            /* rank among the trainers; each has one target at most */
    size_t bytes, zeroed; /* of its memory, as for dt__onesided_shared */
    struct dt__onesided **out;
};
/* The same over a window of all owners' memory. DT_ECOMM: MPI has no such memory here. */
dt_status dt__onesided_window(struct dt_world *world, struct dt__kept **kept, int targets,
                              const struct dt__window_target *target);

#endif
