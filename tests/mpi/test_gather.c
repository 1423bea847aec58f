/* Gathers from each rank 2 GiB and a little more, beyond the count of an MPI call, and lengths that
 * no chunk divides; moves floats between each rank and the first one. Fails if a length is cut to
 * an int, if chunks land in the wrong place, or if floats are wrong where all are equal, all but
 * the last are equal, or none is a number.
 *
 * The 2 GiB are one chunk of 16 MiB, mapped many times, so they take no more memory than that. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/comm.h"
#include "mpi/expect.h"

enum { CHUNK = 16 << 20 };

/* Returns `chunks` contiguous mappings of the same memory. */
static char *map_again(size_t chunks)
{
    int fd = memfd_create("chunk", 0);
    char *at = mmap(NULL, chunks * CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || ftruncate(fd, CHUNK) || at == MAP_FAILED) abort();
    for (size_t i = 0; i < chunks; i++)
        if (mmap(at + i * CHUNK, CHUNK, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
            abort();
    close(fd);
    return at;
}

static void gather_large(struct dt_world *world)
{
    const size_t chunks = ((size_t)2 << 30) / CHUNK + 1, length = ((size_t)2 << 30) + 5;
    char *from = map_again(chunks), *to = map_again(chunks);
    memset(from, 7, CHUNK);
    dt__ranks_gather(world->trainers, from, length, to);
    EXPECT(to[0] == 7 && to[CHUNK - 1] == 7 && !memcmp(from, to, CHUNK),
           "the gathered chunks differ");
    munmap(from, chunks * CHUNK);
    munmap(to, chunks * CHUNK);
}

static void gather_small(struct dt_world *world, size_t length)
{
    int rank = world->rank, size = world->size;
    unsigned char *mine = calloc(length, 1), *all = rank ? NULL : malloc((size_t)size * length);
    for (size_t i = 0; i < length; i++)
        mine[i] = (unsigned char)(i * 7 + (size_t)rank);
    dt__ranks_gather(world->trainers, mine, length, all);
    for (size_t i = 0; all && i < (size_t)size * length; i++)
        EXPECT(all[i] == (unsigned char)(i % length * 7 + i / length), "byte %zu is wrong", i);
    free(mine);
    free(all);
}

enum { FLOATS = 20011 };

/* Fills floats by kind. 0: different numbers; 1: all equal; 2: all equal except the last; 3:
 * NaN. */
static void fill(float *floats, int kind, int rank)
{
    for (size_t i = 0; i < FLOATS; i++)
        floats[i] = kind == 3 ? NAN : kind ? (float)rank + 0.5f : (float)(i + 7 * (size_t)rank);
    if (kind == 2) floats[FLOATS - 1] = -1;
}

/* Moves floats from each rank to the first one (`to_first`), or from the first one to each rank. */
static void move_floats(struct dt_world *world, size_t n, int kind, bool to_first)
{
    static float own[FLOATS], first[FLOATS], want[FLOATS], untouched[FLOATS];
    for (int rank = 0; rank < world->size; rank++) {
        const bool has_first = world->rank == 0, has_own = world->rank == rank;
        memset(own, 0, sizeof own);
        memset(first, 0, sizeof first);
        if (to_first ? has_own : has_first) fill(to_first ? own : first, kind, rank);
        fill(want, kind, rank);
        dt__ranks_move(world->trainers, rank, to_first, own, first, n);
        if (!(to_first ? has_first : has_own)) continue;
        const float *got = to_first ? first : own;
        EXPECT(!memcmp(got, want, n * sizeof *got),
               "%zu floats of kind %d differ, rank %d, to first %d", n, kind, rank, to_first);
        EXPECT(!memcmp(got + n, untouched, (FLOATS - n) * sizeof *got),
               "kind %d: floats beyond the last one changed", kind);
    }
}

int main(void)
{
    struct dt_world *world;
    if (dt_world_create(&world)) return 1;
    dt__world_set_roles(world, false);
    gather_small(world, 1);
    gather_small(world, 100003);
    if (world->size == 1) gather_large(world);
    for (int kind = 0; kind < 4; kind++)
        for (int to_first = 0; to_first < 2; to_first++) {
            move_floats(world, FLOATS, kind, to_first);
            move_floats(world, 1, kind, to_first);
            move_floats(world, 0, kind, to_first);
        }
    int rank = world->rank;
    dt_world_destroy(world);
    if (rank == 0) printf("%s\n", failures ? "failed" : "ok");
    return failures != 0;
}
