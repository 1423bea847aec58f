/* A shard: an HDF5 file whose rows are written by us.
 *
 * HDF5 lays the file out, with /x and /y contiguous and allocated; the rows then go to their
 * place by plain writes, so that errors of the disk are ours and no byte is copied twice. */
#ifndef DATA_SHARD_FILE_H
#define DATA_SHARD_FILE_H

#include "data/source.h"

struct dt__shard_file {
    char *path, *temporary;
    struct dt__layout layout;
    int fd;
    uint64_t x_at, y_at;      /* bytes: where the next rows go */
    struct dt__block pending; /* rows not yet written */
    size_t npending;
};

/* Begins PATH, under a temporary name, for `rows` rows. Nothing is left behind on failure. */
dt_status dt__shard_file_create(struct dt__shard_file *file, const char *path,
                                const struct dt_source *source, uint64_t rows);
/* Adds a row: its x and behind it its y, as the layout has them. DT_EIO: disk full. */
dt_status dt__shard_file_put(struct dt__shard_file *file, const unsigned char *row);
/* Syncs it and gives it its name. Frees in any case. */
dt_status dt__shard_file_finish(struct dt__shard_file *file);
/* Removes what there is of it, and frees. */
void dt__shard_file_drop(struct dt__shard_file *file);

#endif
