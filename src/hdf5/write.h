/* write: the one way to write HDF5.
 *
 * A file is built in two passes. First HDF5's library lays it out: groups, attributes and the
 * positions of arrays, whose bytes it never sees; its own output, metadata only, is kept in pages
 * of memory. Then the whole file is streamed in order, with the arrays from the caller's memory,
 * into a function of the caller. So disk errors are reported by the caller's code, a checksum can
 * be computed on the way, and nothing is held twice. The same content gives the same bytes. */
#ifndef DT_HDF5_WRITE_H
#define DT_HDF5_WRITE_H

#include "hdf5/read.h"

struct dt__h5_layout;

/* Begins a file. path: for messages, not copied; user_block: bytes before the HDF5 part (0, or a
 * power of two from 512 on), zeros that the caller overwrites. End it with dt__h5_layout_free. */
dt_status dt__h5_layout_create(const char *path, size_t user_block, struct dt__h5_layout **out);
void dt__h5_layout_free(struct dt__h5_layout *layout);

/* Each function takes an absolute path, for an attribute "/model@task", and makes the groups on the
 * way. The first failure is kept, and dt__h5_stream returns it, so a caller may check once. */
void dt__h5_put_group(struct dt__h5_layout *layout, const char *path); /* no effect if it exists */
/* Adds an item from its path, type, rank, dims and data (for texts also `size`, with the NUL): an
 * array of rank 1 to 4; rank 0 is an attribute, whose value is copied. An array's data are borrowed
 * until the file has been streamed; NULL: reserved space. *out_offset (may be NULL) is the position
 * of its bytes in the file. */
void dt__h5_put(struct dt__h5_layout *layout, const struct dt__h5_item *item, uint64_t *out_offset);
/* Returns true if a list of `count` texts, the longest of `longest` bytes, can be written. */
bool dt__h5_names_fit(size_t count, size_t longest);
/* Adds an array of texts of rank 1, of one fixed size; copied. */
void dt__h5_put_names(struct dt__h5_layout *layout, const char *path, char *const *names,
                      size_t count);
/* Adds a text attribute, which continues in NAME_1, NAME_2, ... beyond 60,000 bytes, since an
 * attribute has less than 64 KiB. */
void dt__h5_put_text(struct dt__h5_layout *layout, const char *path, const char *text);

/* Allocates memory that lives as long as the layout; NULL: none, which is kept as the layout's
 * failure. */
void *dt__h5_layout_alloc(struct dt__h5_layout *layout, size_t count, size_t size);
/* Records a failure of the caller, whose message is set, like one of these functions. */
void dt__h5_layout_fail(struct dt__h5_layout *layout, dt_status status);

/* Ends the layout, and passes the whole file from its first byte to the sink, at most 1 MiB a call.
 * Reserved space is passed as NULL with its length. Returns the first failure (DT_EIO, DT_EMEMORY,
 * DT_EFORMAT), or what the sink returns. */
typedef dt_status dt__h5_sink_fn(void *arg, const void *bytes, size_t length);
dt_status dt__h5_stream(struct dt__h5_layout *layout, dt__h5_sink_fn *sink, void *arg);

/* Writes the version that this was built with, "1.10.8", into buffer, and returns it. */
const char *dt__h5_version(char buffer[16]);

#endif
