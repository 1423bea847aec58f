/* A file format: what its files look like, and the functions that survey and read them. */
#ifndef DATA_FORMAT_H
#define DATA_FORMAT_H

#include "data/source.h"

struct dt__grammar;
struct dt__survey;

/* Which features a format's rows keep as sparse entries, instead of as dense values. */
enum dt__sparsity {
    DT__WHOLE,      /* none */
    DT__CATEGORIES, /* the categories of a table: one entry per column of texts */
    DT__SPARSE      /* all features: one entry per number that is not 0 */
};

struct dt__format {
    const char *name;
    enum dt__sparsity sparsity;
    bool labels_apart;   /* labels are in a separate file */
    bool stores_columns; /* files have the columns of a table (shards) */
    bool keys_apart;     /* groups and times of rows are in separate files */
    /* Returns true if a file has this format, judged by `suffix`, the end of its name from the last
     * point on, and `head`, its first `length` bytes, decompressed. NULL: the format cannot be
     * recognised in this way. */
    bool (*is)(const char *suffix, const unsigned char *head, size_t length);
    const struct dt__grammar *grammar; /* how to parse a text format; NULL: not text */
    /* Counts the rows of a file, and adds its shape and labels to the survey. Parses every row of a
     * text format; in other formats, makes only the cheap checks. */
    dt_status (*survey)(struct dt__survey *survey, struct dt__file *file);
    /* Opens a file for reading rows. *out_reader: a reader for the functions below, which the
     * caller closes. */
    dt_status (*open)(const struct dt_source *source, const struct dt__file *file,
                      void **out_reader);
    /* Appends rows [row, row + count) of the file to a block that has the source's layout. Messages
     * name the file. Reads in ascending order of rows are cheap; a read that goes back may be
     * slow. */
    dt_status (*read)(void *reader, uint64_t row, size_t count, struct dt__block *out);
    /* Closes a reader. */
    void (*close)(void *reader);
    /* Returns the size of the decompressed data that an open reader keeps in memory, in bytes.
     * NULL: negligible. */
    uint64_t (*held)(const void *reader);
};

#endif
