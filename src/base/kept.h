/* Memory that goes with one thing: blocks of a list, which are freed together. What is made of many
 * tables needs no list of them at its end. */
#ifndef BASE_KEPT_H
#define BASE_KEPT_H

#include "base/base.h"

struct dt__kept;

/* dt__alloc of a block of the list (NULL: an empty one). */
dt_status dt__keep(struct dt__kept **kept, size_t count, size_t size, const char *what,
                   void *out_pointer);
/* Frees all blocks; the list is empty behind it. */
void dt__kept_free(struct dt__kept **kept);

#endif
