/* A surveyed source: what its files hold, and which of their rows belong to this part.
 *
 * Rows have two numbers. The raw row counts all rows of all files; the row counts the rows of the
 * part, which is one side of the split. They are equal unless the data is split. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "base/base.h"
#include "data/data.h"
#include "data/row_keys.h"
#include "data/row_split.h"
#include "data/typed.h"
#include "table/block.h"
#include "table/columns.h"
#include "table/labels.h"
#include "text/text.h"

/* In addition to enum dt_format; a shard of a table is HDF5 until its survey. */
enum { DT__FORMAT_MEMORY = DT_FORMAT_HDF5 + 1, DT__FORMAT_SHARD };
enum { DT__MAX_TARGETS = 1 << 20 };

/* A row where a reader of typed rows can start, and its offset. */
struct dt__row_mark {
    uint64_t row, offset;
};

/* IDX: numbers of a file, or of its labels. */
struct dt__idx_array {
    bool unpacked;   /* they are in the file of typed rows, else in their own file */
    uint64_t offset; /* of the first number there */
    int type;        /* the IDX type code */
    size_t items;    /* items in a row */
};

struct dt__file {
    int format;                /* enum dt_format */
    uint64_t rows;             /* all rows of the file */
    uint64_t raw;              /* raw row of its first */
    uint64_t bytes;            /* size of both files, to detect a change since the survey */
    struct dt__idx_array x, y; /* IDX: of the file and of its labels */
    struct dt_arrays arrays;   /* DT__FORMAT_MEMORY: borrowed, valid in this process alone */
    size_t nmarks;
    /* The members in memory that the file owns come last. */
    struct dt__row_mark *marks; /* text: row 0, one per DT__MARK_BYTES or more, and the end */
    size_t marks_capacity;
    char *path, *labels;   /* labels: NULL, or the separate file that holds them */
    char *x_name, *y_name; /* HDF5: names of its data sets */
};

struct dt_source {
    struct dt__row_layout layout;
    uint64_t raw_rows, rows;
    uint64_t entries;      /* sparse: of all raw rows */
    uint64_t most_entries; /* of one row */
    uint64_t memory;       /* bytes: data.memory_mb */
    float weight_scale;    /* factor of the rows' weights that makes their mean over training rows
                            * 1 */
    uint32_t text_crc;  /* CRC-32C of the records of text, or of the arrays, that were surveyed */
    enum dt__side side; /* the side of the split that is this part */
    bool numbered;      /* data.class_names: a text may be a class's number */
    bool gaps;          /* missing values are NaN: their replacements are not learned yet */
    bool takes_unknown; /* rows may have classes that the schema lacks; their label is -1 */
    uint64_t unknown;   /* number of such rows */
    size_t label_codes; /* of typed rows */
    /* The members in memory that the source owns come last. */
    struct dt__split split;
    struct dt__split *fold; /* (folds) of search.folds: each holds out one fold */
    size_t folds;
    struct dt_schema schema;
    float *class_weight;        /* (classes) factor by the row's class; NULL: none */
    struct dt__classes classes; /* the schema's */
    struct dt__columns columns; /* CSV */
    int32_t *label_class;       /* (label_codes) the class of each; NULL: codes are classes */
    struct dt__typed typed;     /* text, packed files */
    struct dt__row_keys keys;   /* of the raw rows, only for DT_PART_SHARDS */
    struct dt__file *files;
    size_t nfiles;
    struct dt__block
        lent; /* all raw rows, in memory that is borrowed (dt__lent_rows_attach); else empty */
};

/* Returns the index of the last of `count` rising numbers, `stride` bytes apart from `first` on,
 * that is at most `value`. The first number is. */
size_t dt__find_last(const uint64_t *first, size_t count, size_t stride, uint64_t value);

/* Returns the mean number of bytes of a row in memory. */
uint64_t dt__source_row_bytes(const struct dt_source *source);
/* Returns the mean number of entries of `rows` rows, and a little more. */
uint64_t dt__source_entries(const struct dt_source *source, uint64_t rows);
/* Returns the raw row of a row of the part. */
uint64_t dt__source_raw(const struct dt_source *source, uint64_t row);
/* Returns the number of rows of the part among the first `raw` raw rows. */
uint64_t dt__source_before(const struct dt_source *source, uint64_t raw);
/* Returns the range of the part's rows in a file: they are consecutive. */
void dt__source_file_rows(const struct dt_source *source, size_t file, uint64_t *begin,
                          uint64_t *count);

/* Measures the size of a file (and of its label file). DT_EIO: missing, not a regular file. */
dt_status dt__file_measure(const struct dt__file *file, uint64_t *out);

#endif
