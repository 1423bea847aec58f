/* A list of memory blocks that are freed together, so that an object made of many tables needs no
 * list of them when it is freed. */
#ifndef BASE_KEPT_H
#define BASE_KEPT_H

#include "base/base.h"

struct dt__kept;

/* Like dt__alloc; adds the block to the list (NULL: an empty one). */
dt_status dt__keep(struct dt__kept **kept, size_t count, size_t size, const char *what,
                   void *out_pointer);
/* Keeps several tables, each given as DT__TABLE(POINTER, COUNT): COUNT entries of what POINTER
 * points at. */
struct dt__table {
    void *pointer;
    size_t count, size;
};
dt_status dt__keep_tables(struct dt__kept **kept, const char *what, const struct dt__table *table,
                          size_t tables);
#define DT__TABLE(pointer, count)                                                                  \
    {                                                                                              \
        &(pointer), (count), sizeof *(pointer)                                                     \
    }
#define DT__KEEP(kept, what, ...)                                                                  \
    dt__keep_tables(kept, what, (const struct dt__table[]){__VA_ARGS__},                           \
                    sizeof((const struct dt__table[]){__VA_ARGS__}) / sizeof(struct dt__table))
/* Frees all blocks and empties the list. */
void dt__kept_free(struct dt__kept **kept);

#endif
