/* read: the one guarded way to read HDF5: checkpoints, models, and data files from outside.
 *
 * HDF5's library crashes on some malformed files, and when memory runs out inside it. So it never
 * opens a file in this process. A reader process (guard.h) opens the file, walks through all of it
 * and sends a table of its contents, which is checked here like any other input. Arrays that are
 * stored as they are in memory are then read directly from the file. Arrays that must be converted
 * or unpacked are read by a reader process, which lives until the file is closed. If it dies, the
 * file is refused with a message. Several threads may have files open, but only one thread may use
 * a file. */
#ifndef DT_HDF5_READ_H
#define DT_HDF5_READ_H

#include "base/base.h"

/* Types of numbers in memory; the byte order of a file is not visible. */
enum dt__h5_type {
    DT__H5_U8,
    DT__H5_I8,
    DT__H5_U16,
    DT__H5_I16,
    DT__H5_U32,
    DT__H5_I32,
    DT__H5_U64,
    DT__H5_I64,
    DT__H5_F16, /* only in files */
    DT__H5_F32,
    DT__H5_F64,
    DT__H5_TEXT
};
enum { DT__H5_MAX_RANK = 4 };
/* Upper bounds in bytes for one text of a list, and for a list, in which every text takes the space
 * of the longest. */
enum { DT__H5_TEXT_BYTES = 1 << 16, DT__H5_TEXTS_BYTES = 1 << 28 };

enum dt__h5_kind { DT__H5_GROUP, DT__H5_ARRAY, DT__H5_ATTRIBUTE, DT__H5_REFUSED };

/* A group, a data set or an attribute. The table lists only items that hard links reach. Attributes
 * are single numbers of any size or texts. Arrays have rank 1 to 4, are not empty, and are stored
 * in the file itself, contiguous or in chunks with HDF5's standard filters. Other data sets are
 * listed as DT__H5_REFUSED. */
struct dt__h5_item {
    enum dt__h5_kind kind;
    enum dt__h5_type type;
    const char *path; /* such as "/model/layers", or "/model@task" for an attribute */
    int rank;         /* 0: a single value */
    uint64_t dims[DT__H5_MAX_RANK];
    uint64_t count, size; /* number of elements; bytes of each (1 for texts) */
    /* For an attribute its value; for an array of texts its `count` texts, each with a final NUL;
     * for a refused item the reason. */
    const void *data;
    size_t length;   /* of `data`, in bytes */
    uint64_t offset; /* position of an array in the file if it is stored as in memory; else
                      * UINT64_MAX */
    size_t cache;    /* with large chunks: bytes of cache that the array needs in a reader process;
                      * else 0 */
};

struct dt__h5_file;

/* Opens a file for reading. The caller closes *out, which is set only on success. Not collective.
 *
 * DT_EIO: the file is missing, or its reader process was killed twice. DT_EFORMAT: it is not a
 * plain file or not HDF5, or the library crashes on it. The message begins with the path. */
dt_status dt__h5_open(const char *path, struct dt__h5_file **out);
void dt__h5_close(struct dt__h5_file *file);

/* Returns the item of this kind at the path; NULL if there is none. */
const struct dt__h5_item *dt__h5_find(const struct dt__h5_file *file, enum dt__h5_kind kind,
                                      const char *path);
/* Finds an array. DT_EFORMAT: it is missing, or refused; the message has the reason. */
dt_status dt__h5_array(const struct dt__h5_file *file, const char *path,
                       const struct dt__h5_item **out);
/* Returns true if the file has this array, even if it is refused. */
bool dt__h5_has_array(const struct dt__h5_file *file, const char *path);
/* Returns item `index` in the order of the table; NULL after the last one. */
const struct dt__h5_item *dt__h5_item_at(const struct dt__h5_file *file, size_t index);

/* Reads the rows [first, first + rows) of an array into `out` (rows, dims[1], ...), row-major,
 * converted to the type `as`; values outside its range become the nearest value in it. DT_EIO or
 * DT_EFORMAT, as in dt__h5_open. */
dt_status dt__h5_read(struct dt__h5_file *file, const struct dt__h5_item *array, uint64_t first,
                      uint64_t rows, enum dt__h5_type as, void *out);

/* Reads an array of texts of rank 1 as a list. The caller frees each text and the list with
 * dt_free.
 *
 * DT_EFORMAT: it is missing, or not a list of texts. */
dt_status dt__h5_names(const struct dt__h5_file *file, const char *path, char ***out,
                       size_t *out_count);

/* Reads a text attribute and its continuations (see dt__h5_put_text) as one text, which the caller
 * frees; *out is NULL if there is no such attribute. DT_EMEMORY. */
dt_status dt__h5_text(const struct dt__h5_file *file, const char *path, char **out);
/* Writes the path of continuation `number` of a text into `out` and returns it: NAME for 0, then
 * NAME_1, NAME_2, ... */
enum { DT__H5_PATH = 256 };
const char *dt__h5_numbered(char out[DT__H5_PATH], const char *path, int number);

/* Returns the bytes of a number of this type. */
size_t dt__h5_type_size(enum dt__h5_type type);

#endif
