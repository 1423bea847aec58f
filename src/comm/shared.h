/* Memory that ranks of one host share, and event counts in it. */
#ifndef DT_COMM_SHARED_H
#define DT_COMM_SHARED_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>

#include "comm/comm.h"

/* Returns `bytes` rounded up to whole cache lines. */
static inline size_t dt__cache_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

struct dt__shared {
    unsigned char *memory; /* cache-line aligned; shared by all ranks */
    size_t bytes;          /* of the mapping */
    void *own;             /* private memory, if a single rank uses it */
};

/* An allocator of shared memory. While `memory` is NULL it only counts bytes. */
struct dt__shm {
    /* directory on a disk for the file that backs the memory, which may then be larger than the
     * host's memory; NULL: /dev/shm */
    const char *dir;
    unsigned char *memory;
    size_t used;   /* SIZE_MAX: the sum of sizes overflowed */
    size_t filled; /* the first `filled` of the used bytes will all be written */
    /* Ranges of bytes that are never touched, in rising order: they have addresses but no pages. */
    struct dt__hole {
        size_t begin, end;
    } * hole; /* the caller's; NULL: holes are not recorded */
    int holes;
};
/* Takes count * size bytes, starting at a cache line, and returns their address; NULL while
 * `memory` is NULL. */
void *dt__shm_take(struct dt__shm *shm, size_t count, size_t size);

/* Collective over comm. Creates shm->used bytes of zeroed memory that the ranks of `comm`, all on
 * one host, share. what: its purpose, for messages. All ranks of `all`, which includes those of
 * comm, call it, and it fails on all of them or on none. DT_EMEMORY: not enough memory, or no
 * shared memory here. */
dt_status dt__shared_create(MPI_Comm comm, const struct dt__shm *shm, const char *what,
                            const struct dt_ranks *all, struct dt__shared *out);
/* Returns DT_EMEMORY if /dev/shm has less than `bytes` free. */
dt_status dt__shm_has_space(size_t bytes, const char *what);
/* Not collective. Returns whether the ranks of `comm`, all on one host, can share `bytes`. A single
 * rank uses nothing of /dev/shm. */
bool dt__shared_fits(MPI_Comm comm, size_t bytes, const char *what);
/* Prepares bytes at `begin` that will all be written, and be read at random. One rank calls it
 * before the bytes are written. For many bytes the kernel provides huge pages where it can: reading
 * a random row of 256 MB took 28 ns instead of 45. Writes a zero to each page. */
void dt__shared_fill(const struct dt__shared *shared, const void *begin, size_t bytes);
void dt__shared_free(struct dt__shared *shared);

/* A counter that ranks of one host wait for, with a short spin and then a futex. Source: Reed and
 * Kanodia, "Synchronization with eventcounts and sequencers", CACM 1979. */
struct dt__event_count {
    _Alignas(64) _Atomic uint32_t count; /* only rises, modulo 2^32 */
    _Atomic uint32_t sleepers;
};

/* Raises the count by n, and wakes sleeping waiters. A rank that sees the new count also sees what
 * was written before. Returns the new count. */
uint32_t dt__event_post(struct dt__event_count *event, uint32_t n);
bool dt__event_reached(struct dt__event_count *event, uint32_t target);
/* Waits until the count has reached `target`. Meanwhile the watchdog shows this rank as waiting for
 * `what`. */
void dt__event_wait(struct dt__event_count *event, uint32_t target, struct dt_world *world,
                    const char *what);
/* Sleeps until the target is reached or `secs` have passed. Returns whether it is reached. */
bool dt__event_wait_for(struct dt__event_count *event, uint32_t target, double secs);

#endif
