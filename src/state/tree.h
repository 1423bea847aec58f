/* tree: reading our own HDF5 images without the HDF5 library.
 *
 * The library takes crafted files on trust and crashes on some. This reader knows only what our
 * writer makes of HDF5's format: hard links in object headers, numbers and strings of fixed size,
 * contiguous data. It checks every length against the image and allocates nothing; whatever is not
 * as expected is "not there".
 * Source: HDF5 File Format Specification 3.0, sections II.A, IV.A.1.b and IV.A.2. */
#ifndef DT_STATE_TREE_H
#define DT_STATE_TREE_H

#include "dtrain/base.h"
#include "state/image.h"

/* Little-endian numbers, two's complement or IEEE; UTF-8 text of fixed size that ends with NUL. */
enum dt__type { DT__U8, DT__I32, DT__U32, DT__I64, DT__U64, DT__F32, DT__F64, DT__TEXT };

/* Bytes that are inside the image. */
struct dt__span {
    const unsigned char *at;
    size_t left;
};

/* A value or array: count elements of `size` bytes each in `bytes`, not aligned. */
struct dt__value {
    enum dt__type type;
    int rank; /* 0: one value; 1; 2 */
    uint64_t dims[2], count;
    size_t size;
    struct dt__span bytes;
};

/* A group or data set: the blocks of its header. The limits bound the time that a hostile file costs. */
enum { DT__MAX_BLOCKS = 64, DT__MAX_HEADER = 1 << 22 };
struct dt__object {
    struct dt__span blocks[DT__MAX_BLOCKS];
    int count;
    size_t length; /* of all blocks */
    bool ordered;  /* messages carry their creation order */
};

struct dt__tree {
    struct dt__span file; /* the image behind its user block */
    uint64_t root;        /* address of the root group */
};

/* The image must outlive the tree. False: not a file of the kind that we write. */
bool dt__tree_open(const struct dt__image *image, struct dt__tree *out);
/* `path` is absolute ("/model/layers"). */
bool dt__tree_object(const struct dt__tree *tree, const char *path, struct dt__object *out);
bool dt__tree_dataset(const struct dt__tree *tree, const char *path, struct dt__value *out);
bool dt__object_attribute(const struct dt__object *object, const char *name, struct dt__value *out);

#endif
