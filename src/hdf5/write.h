/* write: the one way to write HDF5.
 *
 * A file is written in two passes. In the first, HDF5's library lays the file out: groups,
 * attributes, and the positions of arrays. It never sees the bytes of arrays, and its own output,
 * which is only metadata, stays in memory. In the second, the whole file is streamed in order into
 * a function of the caller, with the arrays taken from the caller's memory. So the caller's code
 * reports disk errors and can compute a checksum on the way, and no array is in memory twice. The
 * same content gives the same bytes. */
#ifndef DT_HDF5_WRITE_H
#define DT_HDF5_WRITE_H

#include "hdf5/read.h"

struct dt__h5_layout;

/* Starts the layout of a file. path: for messages, not copied. user_block: bytes in front of the
 * HDF5 part (0, or a power of two from 512 on); they are zeros, which the caller overwrites. Free
 * the result with dt__h5_layout_free. */
dt_status dt__h5_layout_create(const char *path, size_t user_block, struct dt__h5_layout **out);
void dt__h5_layout_free(struct dt__h5_layout *layout);

/* Each of these functions takes an absolute path (for an attribute such as "/model@task") and makes
 * missing groups on the way. After a failure they do nothing, and dt__h5_stream returns the first
 * failure, so a caller may check only that. */
void dt__h5_put_group(struct dt__h5_layout *layout, const char *path); /* no effect if the group
                                                                        * exists */
/* Adds an item, given by its path, type, rank, dims and data (for texts also `size`, with the NUL):
 * an array of rank 1 to 4, or an attribute if the rank is 0, whose value is copied. The data of an
 * array are borrowed until the file has been streamed; NULL only reserves the space. *out_offset
 * (may be NULL) becomes the position of the array's bytes in the file. */
void dt__h5_put(struct dt__h5_layout *layout, const struct dt__h5_item *item, uint64_t *out_offset);
/* Returns true if a list of `count` texts can be written whose longest text has `longest` bytes. */
bool dt__h5_names_fit(size_t count, size_t longest);
/* Adds an array of texts of rank 1, stored with one fixed size. The texts are copied. */
void dt__h5_put_names(struct dt__h5_layout *layout, const char *path, char *const *names,
                      size_t count);
/* Adds a text attribute. An attribute has less than 64 KiB, so a text of more than 60,000 bytes
 * continues in the attributes NAME_1, NAME_2, ... */
void dt__h5_put_text(struct dt__h5_layout *layout, const char *path, const char *text);

/* Allocates memory that lives as long as the layout. Returns NULL if there is none, which becomes
 * the layout's failure. */
void *dt__h5_layout_alloc(struct dt__h5_layout *layout, size_t count, size_t size);
/* Records a failure of the caller, whose error text is already set, as if one of these functions
 * had failed. */
void dt__h5_layout_fail(struct dt__h5_layout *layout, dt_status status);

/* Ends the layout and passes the whole file, from its first byte, to the sink, at most 1 MiB per
 * call. Reserved space is passed as NULL with its length. Returns the first failure of the layout
 * (DT_EIO, DT_EMEMORY, DT_EFORMAT) or of the sink. */
typedef dt_status dt__h5_sink_fn(void *arg, const void *bytes, size_t length);
dt_status dt__h5_stream(struct dt__h5_layout *layout, dt__h5_sink_fn *sink, void *arg);

/* Writes the version of the library that this program was built with, such as "1.10.8", into buffer
 * and returns it. */
const char *dt__h5_version(char buffer[16]);

#endif
