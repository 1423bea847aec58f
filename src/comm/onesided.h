/* onesided: memory at the bank that every worker can put into, get from and count in.
 *
 * All that the slot protocol knows of its transport: memory that a host shares (async_shared.c), an
 * MPI window (async_window.c), or a scheduler in one process that delays and interleaves every
 * operation (tests/unit/onesided_fake.h). */
#ifndef DT_COMM_ONESIDED_H
#define DT_COMM_ONESIDED_H

#include <stddef.h>
#include <stdint.h>

#include "dtrain/comm.h"

struct dt__onesided;

enum dt__op { DT__NO_OP, DT__REPLACE, DT__SUM };
enum dt__end { DT__WORKERS, DT__BANK };

/* Control words are the first of the memory, each on a cache line of its own. */
enum { DT__WORD_STRIDE = 64 };

struct dt__onesided_ops {
    /* Payload: offset and length in bytes of the bank's memory. What is put may land in any order,
     * and what is got may be read at any time, until the caller's next flush has returned. */
    void (*put)(struct dt__onesided *remote, size_t offset, const void *bytes, size_t length);
    void (*get)(struct dt__onesided *remote, size_t offset, void *bytes, size_t length);
    void (*flush)(struct dt__onesided *remote);
    /* A control word: atomic, and done at the bank when the call returns; the value before. Orders
     * nothing else. */
    uint64_t (*fetch_and)(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value);
    /* Where memory is reached by loads and stores: what others have completed is seen by later
     * loads, and earlier stores are seen by what others begin later. */
    void (*sync)(struct dt__onesided *remote);
    /* Passes a little time, or waits for news; makes progress; ends the job if it takes too long.
     * `what` is waited for. */
    void (*pause)(struct dt__onesided *remote, const char *what);
    /* What was waited for has come. */
    void (*wake)(struct dt__onesided *remote);
    /* There is news for those who pause. */
    void (*notify)(struct dt__onesided *remote, enum dt__end whom);
    /* Lets what others put come in, where that needs the bank's hand. */
    void (*progress)(struct dt__onesided *remote);
    void (*close)(struct dt__onesided *remote); /* collective over the trainers */
};

struct dt__onesided {
    const struct dt__onesided_ops *ops;
    unsigned char *memory; /* the bank's memory; NULL where loads and stores do not reach it */
};

/* `bytes` of memory at the bank, the first `zeroed` of them 0: shared by the ranks of one host, who
 * all reach it; or put to and got from. Collective over the trainers; fails on all ranks or on
 * none, and leaves nothing behind.
 * DT_EMEMORY: no room. DT_ECOMM: MPI has no such memory here. */
dt_status dt__onesided_shared(struct dt_world *world, size_t bytes, size_t zeroed,
                              struct dt__onesided **out);
dt_status dt__onesided_window(struct dt_world *world, size_t bytes, size_t zeroed,
                              struct dt__onesided **out);

#endif
