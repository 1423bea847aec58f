/* window: the bank's memory as an MPI window, the real transport of the slot protocol. */
#ifndef DT_COMM_WINDOW_H
#define DT_COMM_WINDOW_H

#include "comm/gate.h"
#include "comm/mpi.h"
#include "comm/onesided.h"

struct dt__window {
    struct dt__onesided net; /* first: an operation's net is its window */
    struct dt_world *world;
    MPI_Win win;
    MPI_Aint pad; /* bytes before the first cache line */
    struct dt__wait wait;
    bool waiting;
    struct dt__gate *bank_gate, *worker_gate; /* shared memory: where who waits for news sleeps */
    uint32_t seen;                            /* news that this rank has looked into */
};

/* `bytes` of zeroed memory at the bank. shared: one host's, mapped by every rank (net.memory is set);
 * else put to and got from. Collective over the crew; fails on all ranks or on none, and leaves
 * nothing behind.
 * DT_EMEMORY: no room. DT_ECOMM: MPI has no such window here. */
dt_status dt__window_open(struct dt__window *window, struct dt_world *world, size_t bytes,
                          bool shared);
/* Collective over the crew. */
void dt__window_close(struct dt__window *window);
/* Lets what others put come in, where that needs the bank's hand. */
void dt__window_progress(struct dt__window *window);

#endif
