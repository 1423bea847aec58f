/* write: the one way to write HDF5.
 *
 * A file is built in two passes. First HDF5's library lays it out: groups, attributes and the
 * places of arrays, whose bytes it never sees; what it writes, metadata alone, is kept in pages of
 * memory. Then the whole file is streamed in order, the arrays from where the caller has them, into
 * a function of the caller's: so that disk errors are ours, a checksum can be taken on the way, and
 * nothing is held twice. The same content gives the same bytes. */
#ifndef DT_HDF5_WRITE_H
#define DT_HDF5_WRITE_H

#include "hdf5/read.h"

struct dt__h5_layout;

/* Begins a file. path: for messages, lent; user_block: bytes before the HDF5 part (0, or a power of
 * two from 512 on), which are zeros for the caller to write. End it with dt__h5_layout_free. */
dt_status dt__h5_layout_create(const char *path, size_t user_block, struct dt__h5_layout **out);
void dt__h5_layout_free(struct dt__h5_layout *layout);

/* Each takes an absolute path, of an attribute "/model@task"; the groups on the way are made. The
 * first failure is kept, and is what dt__h5_stream returns, so that a caller may check once. */
void dt__h5_put_group(struct dt__h5_layout *layout, const char *path); /* unless it is there */
/* What path, type, rank, dims and data say, of texts `size` too, with the NUL: an array, rank 1 to
 * 4; of rank 0 an attribute, whose value is copied. Data of an array are lent until the file has
 * been streamed; NULL: room alone. The place of its bytes in the file is *out_offset (may be
 * NULL). */
void dt__h5_put(struct dt__h5_layout *layout, const struct dt__h5_item *item, uint64_t *out_offset);
/* Whether a list of so many texts, the longest of so many bytes, can be written. */
bool dt__h5_names_fit(size_t count, size_t longest);
/* An array of texts of rank 1, of one fixed size; copied. */
void dt__h5_put_names(struct dt__h5_layout *layout, const char *path, char *const *names,
                      size_t count);
/* An attribute that is a text, which goes on in NAME_1, NAME_2, ... beyond 60,000 bytes, for an
 * attribute has less than 64 KiB. */
void dt__h5_put_text(struct dt__h5_layout *layout, const char *path, const char *text);

/* Memory that is there as long as the layout; NULL: there is none, which is the layout's
 * failure. */
void *dt__h5_layout_alloc(struct dt__h5_layout *layout, size_t count, size_t size);
/* A failure of the caller's own, whose message is set, counts like one of these. */
void dt__h5_layout_fail(struct dt__h5_layout *layout, dt_status status);

/* Ends the layout, and passes on the whole file from its first byte, in pieces of up to 1 MiB. Room
 * without data is passed on as NULL with its length. DT_EIO, DT_EMEMORY, DT_EFORMAT: the first
 * failure; or what the sink returns. */
typedef dt_status dt__h5_sink_fn(void *arg, const void *bytes, size_t length);
dt_status dt__h5_stream(struct dt__h5_layout *layout, dt__h5_sink_fn *sink, void *arg);

/* The version that this was built with, "1.10.8", into buffer, which is returned. */
const char *dt__h5_version(char buffer[16]);

#endif
