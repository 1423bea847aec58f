/* Reads rows of a source from its files. */
#ifndef DATA_CURSOR_H
#define DATA_CURSOR_H

#include "data/source.h"

/* A cursor reads rows of a source from any of its files, and keeps open the files that it used
 * last. With `stops`, reads return DT_STOPPED once a stop is requested. */
struct dt__cursor;
dt_status dt__cursor_open(const struct dt_source *source, bool stops, struct dt__cursor **out);
void dt__cursor_close(struct dt__cursor *cursor);
/* Appends rows [row, row + count) of the source to a block. DT_EMISMATCH: a file has changed since
 * the survey. */
dt_status dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                          struct dt__block *out);

/* A function that gets each block of a walk. */
typedef dt_status dt__rows_fn(void *arg, const struct dt__block *block);
/* Walks over the source's rows in order: reads and visits the first `rows` of every `stride` rows.
 * DT_STOPPED. */
dt_status dt__source_walk(const struct dt_source *source, size_t rows, uint64_t stride,
                          dt__rows_fn *visit, void *arg);

#endif
