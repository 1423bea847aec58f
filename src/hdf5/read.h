/* read: the one guarded way to read HDF5: checkpoints, models, and data files from outside.
 *
 * HDF5's library crashes on some malformed files, and when memory runs out inside it. So it never
 * opens a file in this process. A reader process (guard.h) opens the file, walks all of it and
 * sends a table of its contents, which is checked here like any other input. Arrays whose layout is
 * that of memory are then read straight from the file; arrays that must be converted or unpacked
 * are read by the reader process, which lives until the file is closed. If it dies, the file is
 * refused by name. Several threads may have files open; one file belongs to one thread. */
#ifndef DT_HDF5_READ_H
#define DT_HDF5_READ_H

#include "base/base.h"

/* Numbers, by the machine's names; the byte order of a file is not visible. */
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
/* Limits in bytes of a text in a list, and of a list, whose texts all take the length of the
 * longest. */
enum { DT__H5_TEXT_BYTES = 1 << 16, DT__H5_TEXTS_BYTES = 1 << 28 };

enum dt__h5_kind { DT__H5_GROUP, DT__H5_ARRAY, DT__H5_ATTRIBUTE, DT__H5_REFUSED };

/* A group, a data set or an attribute. Listed are only items that hard links reach: numbers of any
 * size and texts; arrays of rank 1 to 4, not empty, stored in the file itself, contiguous or in
 * chunks with HDF5's standard filters. */
struct dt__h5_item {
    enum dt__h5_kind kind;
    enum dt__h5_type type;
    const char *path; /* "/model/layers"; for an attribute "/model@task" */
    int rank;         /* 0: a single value */
    uint64_t dims[DT__H5_MAX_RANK];
    uint64_t count, size; /* number of elements; bytes of one (1 for texts) */
    /* Attribute: its value. Array of texts: `count` texts, each with a final NUL. Refused: the
     * reason. */
    const void *data;
    size_t length;   /* of the data */
    uint64_t offset; /* position in the file of an array in the layout of memory; UINT64_MAX: not
                      * so */
    size_t cache;    /* large chunks: bytes that a reader process of the array keeps */
};

struct dt__h5_file;

/* Opens a file for reading; the caller closes *out, which is set only on success. Not collective.
 *
 * DT_EIO: missing, or its reader was killed twice; DT_EFORMAT: not a plain file, not HDF5, or the
 * library crashes on it. The message begins with the path. */
dt_status dt__h5_open(const char *path, struct dt__h5_file **out);
void dt__h5_close(struct dt__h5_file *file);

/* Returns the item of that kind at the path, or NULL. */
const struct dt__h5_item *dt__h5_find(const struct dt__h5_file *file, enum dt__h5_kind kind,
                                      const char *path);
/* Returns an array. DT_EFORMAT: missing or refused, with the reason. */
dt_status dt__h5_array(const struct dt__h5_file *file, const char *path,
                       const struct dt__h5_item **out);
/* Returns true if there is such an array, refused or not. */
bool dt__h5_has_array(const struct dt__h5_file *file, const char *path);
/* Returns item `index` in the file's order; NULL after the last one. */
const struct dt__h5_item *dt__h5_item_at(const struct dt__h5_file *file, size_t index);

/* Reads rows [first, first + rows) of an array, converted to `as` (values beyond its range become
 * the nearest), into (rows, dims[1], ...) row-major. DT_EIO or DT_EFORMAT, as in dt__h5_open. */
dt_status dt__h5_read(struct dt__h5_file *file, const struct dt__h5_item *array, uint64_t first,
                      uint64_t rows, enum dt__h5_type as, void *out);

/* Reads an array of texts of rank 1 as a list: free each text and the list with dt_free.
 *
 * DT_EFORMAT: missing, or not a list of texts. */
dt_status dt__h5_names(const struct dt__h5_file *file, const char *path, char ***out,
                       size_t *out_count);

/* Reads a text attribute and its continuations (dt__h5_put_text) as one text that the caller frees;
 * NULL if there is none. DT_EMEMORY. */
dt_status dt__h5_text(const struct dt__h5_file *file, const char *path, char **out);
/* Writes the path of a continuation of a text, NAME, NAME_1, NAME_2, ..., into `out`, and returns
 * it. */
enum { DT__H5_PATH = 256 };
const char *dt__h5_numbered(char out[DT__H5_PATH], const char *path, int number);

/* Returns the bytes of a number of the type. */
size_t dt__h5_type_size(enum dt__h5_type type);

#endif
