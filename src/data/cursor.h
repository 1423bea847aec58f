/* Reads rows of a source. */
#ifndef DATA_CURSOR_H
#define DATA_CURSOR_H

#include "data/source.h"

/* Reads rows of a source in any of its files; keeps the files open that it used last. `stops`: a
 * read returns DT_STOPPED once a stop is requested. */
struct dt__cursor;
dt_status dt__cursor_open(const struct dt_source *source, bool stops, struct dt__cursor **out);
void dt__cursor_close(struct dt__cursor *cursor);
/* Adds rows [row, row + count) of the part to a block. DT_EMISMATCH: a file changed since the
 * survey. */
dt_status dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                          struct dt__block *out);

/* Visits a block of rows. */
typedef dt_status dt__rows_fn(void *arg, const struct dt__block *block);
/* Reads the rows of the part in order, and visits the first `rows` rows of every `stride`.
 * DT_STOPPED. */
dt_status dt__source_walk(const struct dt_source *source, size_t rows, uint64_t stride,
                          dt__rows_fn *visit, void *arg);

#endif
