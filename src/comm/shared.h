/* Memory that ranks of one host share, and event counts in it. */
#ifndef DT_COMM_SHARED_H
#define DT_COMM_SHARED_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>

#include "comm/comm.h"

/* Room for so many bytes, in whole cache lines. */
static inline size_t dt__cache_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

struct dt__shared {
    unsigned char *memory; /* cache-line aligned; the same bytes at every rank */
    size_t bytes;          /* mapped */
    void *own;             /* of a single rank: plain memory */
};

/* Shared memory as it is dealt out; without memory it is only counted. */
struct dt__room {
    /* where a file is the memory, on a disk: it may be larger than the host's; NULL: /dev/shm */
    const char *dir;
    unsigned char *memory;
    size_t used;   /* SIZE_MAX: more than can be */
    size_t filled; /* of these, from the first on, those that are written all over */
    /* bytes that nobody will touch: they have addresses and no pages; rising */
    struct dt__hole {
        size_t begin, end;
    } * hole; /* the caller's; NULL: none are noted */
    int holes;
};
/* The next bytes, from a cache line on; NULL without memory. */
void *dt__room_take(struct dt__room *room, size_t count, size_t size);

/* room->used bytes of memory that the ranks of `comm` share, all of one host; what: whose it is,
 * for messages. The contents are zeros. Collective over comm; fails on all ranks of `all`,
 * which holds comm's, or on none, and all of them call it. DT_EMEMORY: no room, or no such memory
 * here. */
dt_status dt__shared_create(MPI_Comm comm, const struct dt__room *room, const char *what,
                            const struct dt_ranks *all, struct dt__shared *out);
/* DT_EMEMORY: /dev/shm has less than that. */
dt_status dt__shared_room(size_t bytes, const char *what);
/* Whether the ranks of `comm`, all of one host, can share so much: one rank alone takes none of
 * /dev/shm. */
bool dt__shared_fits(MPI_Comm comm, size_t bytes, const char *what);
/* Bytes at `begin` will all be written, and read anywhere: at one rank, before they are. If they
 * are many the kernel gives huge pages where it can: a row at random of 256 MB took 28 ns instead
 * of 45. Writes a zero to each of these pages. */
void dt__shared_fill(const struct dt__shared *shared, const void *begin, size_t bytes);
void dt__shared_free(struct dt__shared *shared);

/* A counter that ranks of one host wait for: short spin, then a futex. Source: Reed and Kanodia,
 * "Synchronization with eventcounts and sequencers", CACM 1979. */
struct dt__event_count {
    _Alignas(64) _Atomic uint32_t count; /* only rises, modulo 2^32 */
    _Atomic uint32_t sleepers;
};

/* Raises the count, and wakes those who sleep. What was written before is seen by those who see it.
 * Returns the new count. */
uint32_t dt__event_post(struct dt__event_count *event, uint32_t n);
bool dt__event_reached(struct dt__event_count *event, uint32_t target);
/* Waits until the count has reached `target`, which the watchdog is told. */
void dt__event_wait(struct dt__event_count *event, uint32_t target, struct dt_world *world,
                    const char *what);
/* Sleeps until the target is reached or `secs` are over; true if it is reached. */
bool dt__event_wait_for(struct dt__event_count *event, uint32_t target, double secs);

#endif
