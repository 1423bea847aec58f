/* A file format: what its files look like, and the functions that survey and read them. */
#ifndef DATA_FORMAT_H
#define DATA_FORMAT_H

#include "data/source.h"

struct dt__grammar;
struct dt__survey;

/* The sparse entries of a format's rows: none, one per column of texts in a table, or one per
 * number that is not 0. */
enum dt__sparsity { DT__WHOLE, DT__CATEGORIES, DT__SPARSE };
struct dt__format {
    const char *name;
    enum dt__sparsity sparsity;
    bool labels_apart;   /* labels are in a separate file */
    bool stores_columns; /* files have the columns of a table (shards) */
    bool keys_apart;     /* groups and times of rows are in separate files */
    /* Returns true if a file has this format, judged by its suffix (from the last point on) and its
     * first bytes, unpacked. NULL: the format is not recognised in this way. */
    bool (*is)(const char *suffix, const unsigned char *head, size_t length);
    const struct dt__grammar *grammar; /* of a text format; else NULL */
    /* Counts the rows of a file, checks all that is cheap to check (of text every row), and adds
     * shape and labels to the survey. */
    dt_status (*survey)(struct dt__survey *survey, struct dt__file *file);
    /* Opens a file for reading rows. */
    dt_status (*open)(const struct dt_source *source, const struct dt__file *file,
                      void **out_reader);
    /* Appends rows [row, row + count) of the file to a block that has the source's layout. Messages
     * name the file. Reading forward is cheap. */
    dt_status (*read)(void *reader, uint64_t row, size_t count, struct dt__block *out);
    /* Closes a reader. */
    void (*close)(void *reader);
    /* Returns the bytes of unpacked data that an open reader keeps in memory; NULL: few. */
    uint64_t (*held)(const void *reader);
};

#endif
