/* read: the one guarded way to read HDF5: checkpoints, models, and data files of strangers.
 *
 * HDF5's library crashes on some malformed files, and when memory runs out inside it. So it never
 * opens a file in this process: a reader process (guard.h) opens it, walks all of it and sends a
 * table of what it holds, which is checked here like any other input. Arrays that are stored as the
 * machine has numbers are then read straight from the file; what must be converted or unpacked, a
 * reader process reads, which stays until the file is closed. If it dies, the file is refused by
 * name. Files may be open in several threads; one file is one thread's. */
#ifndef DT_HDF5_READ_H
#define DT_HDF5_READ_H

#include "base/base.h"

/* Numbers by the machine's names; which byte order a file has them in shows nowhere. */
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
/* Bytes of a text in a list, and of the list, whose texts all take what the longest takes. */
enum { DT__H5_TEXT_BYTES = 1 << 16, DT__H5_TEXTS_BYTES = 1 << 28 };

enum dt__h5_kind { DT__H5_GROUP, DT__H5_ARRAY, DT__H5_ATTRIBUTE, DT__H5_REFUSED };

/* A group, a data set or an attribute. Only what hard links lead to counts: numbers of any size and
 * texts; arrays of rank 1 to 4, not empty, stored in the file itself, plainly or in chunks with
 * filters that HDF5 brings along. */
struct dt__h5_item {
    enum dt__h5_kind kind;
    enum dt__h5_type type;
    const char *path; /* "/model/layers"; of an attribute "/model@task" */
    int rank;         /* 0: a single value */
    uint64_t dims[DT__H5_MAX_RANK];
    uint64_t count, size; /* elements; bytes of one (1 for texts) */
    /* Attribute: its value. Array of texts: `count` texts, each with a NUL behind it. Refused:
     * why. */
    const void *data;
    size_t length;   /* of the data */
    uint64_t offset; /* in the file, of an array as the machine has it; UINT64_MAX: not so */
    size_t cache;    /* of large chunks: bytes that a reader process of the array keeps */
};

struct dt__h5_file;

/* Opens a file for reading. DT_EIO: missing, or what reads it was killed, twice; DT_EFORMAT: no
 * plain file, not HDF5, or one that the library does not survive. The message begins with the path.
 * Not collective; *out is to be closed, and behind a failure there is none. */
dt_status dt__h5_open(const char *path, struct dt__h5_file **out);
void dt__h5_close(struct dt__h5_file *file);

/* The item of that kind at the path; NULL if there is none. */
const struct dt__h5_item *dt__h5_find(const struct dt__h5_file *file, enum dt__h5_kind kind,
                                      const char *path);
/* An array. DT_EFORMAT: missing or refused, and why. */
dt_status dt__h5_array(const struct dt__h5_file *file, const char *path,
                       const struct dt__h5_item **out);
/* Whether there is one, refused or not. */
bool dt__h5_has_array(const struct dt__h5_file *file, const char *path);
/* Items in the file's order; NULL behind the last. */
const struct dt__h5_item *dt__h5_item_at(const struct dt__h5_file *file, size_t index);

/* Rows [first, first + rows) of an array, converted to `as` (values beyond its range become the
 * nearest), into (rows, dims[1], ...) row-major. DT_EIO or DT_EFORMAT, as at the opening. */
dt_status dt__h5_read(struct dt__h5_file *file, const struct dt__h5_item *array, uint64_t first,
                      uint64_t rows, enum dt__h5_type as, void *out);

/* An array of texts of rank 1 as a list: free each and the list with dt_free.
 * DT_EFORMAT: missing, or no list of texts. */
dt_status dt__h5_names(const struct dt__h5_file *file, const char *path, char ***out,
                       size_t *out_count);

/* An attribute that is a text, with its pieces (dt__h5_put_text), as one that the caller frees;
 * NULL if there is none. DT_EMEMORY. */
dt_status dt__h5_text(const struct dt__h5_file *file, const char *path, char **out);
/* The path of a text's piece: NAME, NAME_1, NAME_2, ...; into `out`, which is returned. */
enum { DT__H5_PATH = 256 };
const char *dt__h5_piece(char out[DT__H5_PATH], const char *path, int piece);

/* Bytes of a number of the type. */
size_t dt__h5_type_size(enum dt__h5_type type);

#endif
