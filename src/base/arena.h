/* An arena: memory blocks that are freed together, so that an object made of many tables needs no
 * list of them when it is freed. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

struct dt__arena;

/* Like dt__alloc; also adds the block to the arena. *arena is NULL for an empty arena. */
dt_status dt__arena_alloc(struct dt__arena **arena, size_t count, size_t size, const char *what,
                          void *out_pointer);
/* Allocates several tables, each given as DT__TABLE(POINTER, COUNT): memory for COUNT items of the
 * type that POINTER points to. */
struct dt__table {
    void *pointer;
    size_t count, size;
};
dt_status dt__arena_tables(struct dt__arena **arena, const char *what,
                           const struct dt__table *table, size_t tables);
#define DT__TABLE(pointer, count)                                                                  \
    {                                                                                              \
        &(pointer), (count), sizeof *(pointer)                                                     \
    }
#define DT__ARENA_ALLOC(arena, what, ...)                                                          \
    dt__arena_tables(arena, what, (const struct dt__table[]){__VA_ARGS__},                         \
                     sizeof((const struct dt__table[]){__VA_ARGS__}) / sizeof(struct dt__table))
/* Frees all blocks; the arena is then empty. */
void dt__arena_free(struct dt__arena **arena);

#endif
