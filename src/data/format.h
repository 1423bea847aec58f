/* A format of files. */
#ifndef DATA_FORMAT_H
#define DATA_FORMAT_H

#include "data/source.h"

struct dt__grammar;
struct dt__survey;

/* The entries that rows of a format have: none; a table's columns of texts; all numbers that are
 * not 0. */
enum dt__sparsity { DT__WHOLE, DT__CATEGORIES, DT__SPARSE };
struct dt__format {
    const char *name;
    enum dt__sparsity sparsity;
    bool labels_apart;   /* labels are in a separate file */
    bool stores_columns; /* shards of a table keep its columns */
    bool keys_apart;     /* groups and times of rows are in separate files */
    /* Returns true if a file is of the format, by its suffix (from the last point on) and its first
     * bytes, unpacked. NULL: the format cannot be recognised. */
    bool (*is)(const char *suffix, const unsigned char *head, size_t length);
    const struct dt__grammar *grammar; /* of formats of text; else NULL */
    /* Counts the rows of a file and checks all that can be checked cheaply (text: every row); adds
     * shape and labels to the survey. */
    dt_status (*survey)(struct dt__survey *survey, struct dt__file *file);
    /* Opens a file to read rows. */
    dt_status (*open)(const struct dt_source *source, const struct dt__file *file,
                      void **out_reader);
    /* Adds rows [row, row + count) of the file to a block of the source's layout. Messages name the
     * file. Reading forward is cheap. */
    dt_status (*read)(void *reader, uint64_t row, size_t count, struct dt__block *out);
    void (*close)(void *reader);
    /* Returns the bytes of unpacked data that an open reader keeps; NULL: few. */
    uint64_t (*held)(const void *reader);
};

#endif
