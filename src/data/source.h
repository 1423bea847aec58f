/* A surveyed source: what its files hold, and which of their rows belong to this part.
 *
 * Rows have two numbers. The raw row counts all rows of all files; the row counts those of the part
 * (training, or held out). They are the same unless a fraction is held out. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "data/holdout.h"
#include "data/layout.h"
#include "dtrain/data.h"

enum { DT__MAX_FEATURES = 1 << 24, DT__MAX_TARGETS = 1 << 20 };

/* Where a text file can be entered: the byte offset and line of a row. */
struct dt__mark {
    uint64_t row, offset, line;
};

struct dt__file {
    char *path, *labels;    /* labels: NULL, or the file that holds them apart */
    int format;             /* enum dt_format */
    uint64_t rows;          /* all its rows */
    uint64_t raw;           /* raw row of its first */
    uint64_t bytes;         /* size of both files: has one changed since? */
    struct dt__mark *marks; /* text: row 0 and then one every so many bytes */
    size_t nmarks, marks_capacity;
};

struct dt_source {
    struct dt_schema schema;
    struct dt__layout layout;
    struct dt__file *files;
    size_t nfiles;
    uint64_t raw_rows, rows;
    struct dt__holdout holdout;
    bool held_out;  /* this part is the held-out one */
    int32_t *roles; /* CSV: of each column, a feature's index or a DT__ROLE */
    size_t columns;
};

enum { DT__ROLE_IGNORE = -1, DT__ROLE_LABEL = -2 };

/* Raw row of a row of the part. */
uint64_t dt__source_raw(const struct dt_source *source, uint64_t row);
/* Rows of the part among the first `raw` raw rows. */
uint64_t dt__source_before(const struct dt_source *source, uint64_t raw);
/* Rows of the part in a file: they are consecutive. */
void dt__source_file_rows(const struct dt_source *source, size_t file, uint64_t *begin,
                          uint64_t *count);

/* Size of a file (and of its label file). DT_EIO: missing, no plain file. */
dt_status dt__file_measure(const struct dt__file *file, uint64_t *out);

#endif
