/* A list of memory blocks that are freed together, so that an object made of many tables needs no
 * list of them when it is freed. */
#ifndef BASE_KEPT_H
#define BASE_KEPT_H

#include "base/base.h"

struct dt__kept;

/* Like dt__alloc; adds the block to the list (NULL: an empty one). */
dt_status dt__keep(struct dt__kept **kept, size_t count, size_t size, const char *what,
                   void *out_pointer);
/* Frees all blocks and empties the list. */
void dt__kept_free(struct dt__kept **kept);

#endif
