/* Cursors: read rows of a source from its files. */
#ifndef DATA_CURSOR_H
#define DATA_CURSOR_H

#include "data/source.h"

/* A reader of a source's rows. It keeps the most recently used files open. */
struct dt__cursor;
/* Makes a cursor. With `stops`, its reads return DT_STOPPED once a stop is requested.
 * DT_EMEMORY. */
dt_status dt__cursor_open(const struct dt_source *source, bool stops, struct dt__cursor **out);
void dt__cursor_close(struct dt__cursor *cursor);
/* Appends rows [row, row + count) of the source to a block. DT_EIO, DT_EFORMAT; DT_EMISMATCH: a
 * file has changed since the survey; DT_STOPPED. */
dt_status dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                          struct dt__block *out);

/* A function that dt__source_walk calls with each block of rows. */
typedef dt_status dt__rows_fn(void *arg, const struct dt__block *block);
/* Walks over the source's rows in order: of every `stride` rows, reads the first `rows` as one
 * block, and calls `visit` with it. Returns the first failure. DT_STOPPED: a stop is requested. */
dt_status dt__source_walk(const struct dt_source *source, size_t rows, uint64_t stride,
                          dt__rows_fn *visit, void *arg);

#endif
