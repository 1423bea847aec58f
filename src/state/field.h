/* field: members of a struct as attributes of an HDF5 object, by one table for both directions. */
#ifndef DT_STATE_FIELD_H
#define DT_STATE_FIELD_H

#include <stddef.h>

#include "hdf5/read.h"
#include "hdf5/write.h"

enum dt__field_kind {
    DT__FIELD_INT,  /* int */
    DT__FIELD_I64,  /* int64_t */
    DT__FIELD_U32,  /* uint32_t */
    DT__FIELD_U64,  /* uint64_t */
    DT__FIELD_REAL, /* double */
    DT__FIELD_BOOL, /* bool, a byte in the file */
    DT__FIELD_WORD, /* int, one of `words` ("sync|async"), stored as the word */
    DT__FIELD_NAME, /* char[16] */
    DT__FIELD_TEXT  /* char *, no attribute if NULL; beyond 60000 bytes it goes on in NAME_1, ... */
};

struct dt__field {
    const char *name; /* of the attribute */
    enum dt__field_kind kind;
    size_t offset; /* of the member */
    const char *words;
    bool optional; /* a file may have none: the member stays */
};

/* A row of a table: a member of struct RECORD. */
#define DT__FIELD(record, name, member, kind, words, optional)                                     \
    {                                                                                              \
        name, kind, offsetof(struct record, member), words, optional                               \
    }
/* A table as the functions below take it, with its length. */
#define DT__FIELDS(table) table, (int)(sizeof(table) / sizeof *(table))

/* Writes the members of `record` as attributes of the group at `path`. What fails is the layout's
 * failure. */
void dt__fields_put(struct dt__h5_layout *layout, const char *path, const struct dt__field *fields,
                    int count, const void *record);
/* Reads them back; texts are new (dt_free), and those read before a failure stay in the record.
 * DT_EFORMAT: an attribute is missing, of another type, or not one of its words. */
dt_status dt__fields_get(const struct dt__h5_file *file, const char *path,
                         const struct dt__field *fields, int count, void *record);

#endif
