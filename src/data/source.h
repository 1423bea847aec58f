/* A surveyed source: what its files hold, and which of their rows belong to this part.
 *
 * Rows have two numbers. The raw row counts all rows of all files; the row counts those of the
 * part, which is one side of the split. They are the same unless the data is split. */
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

/* Besides enum dt_format; a shard of a table is HDF5 until its survey. */
enum { DT__FORMAT_MEMORY = DT_FORMAT_HDF5 + 1, DT__FORMAT_SHARD };
enum { DT__MAX_TARGETS = 1 << 20 };

/* Where typed rows can be entered: the offset of a row. */
struct dt__row_mark {
    uint64_t row, offset;
};

/* IDX: numbers of a file, or of its labels. */
struct dt__idx_array {
    bool unpacked;   /* they lie in the file of typed rows, else in their own */
    uint64_t offset; /* of the first one there */
    int type;        /* as IDX has it */
    size_t items;    /* of a row */
};

struct dt__file {
    int format;                /* enum dt_format */
    uint64_t rows;             /* all its rows */
    uint64_t raw;              /* raw row of its first */
    uint64_t bytes;            /* size of both files: has one changed since? */
    struct dt__idx_array x, y; /* IDX: of the file and of its labels */
    struct dt_arrays arrays;   /* DT__FORMAT_MEMORY: lent, for this process alone */
    size_t nmarks;
    /* What is in memory of its own comes last. */
    struct dt__row_mark *marks; /* text: row 0, then one every so many bytes, and the end */
    size_t marks_capacity;
    char *path, *labels;   /* labels: NULL, or the file that holds them apart */
    char *x_name, *y_name; /* HDF5: of its data sets */
};

struct dt_source {
    struct dt__row_layout layout;
    uint64_t raw_rows, rows;
    uint64_t entries;      /* sparse: of all raw rows */
    uint64_t most_entries; /* of one row */
    uint64_t memory;       /* bytes: data.memory_mb */
    float weight_scale;    /* of the rows' weights, so that their mean over training rows is 1 */
    uint32_t text_crc;  /* CRC-32C of the records of text, or of the arrays, that were surveyed */
    enum dt__side side; /* of the split that is this part */
    bool numbered;      /* data.class_names: a text may be a class's number */
    bool gaps;          /* missing values are NaN: what stands for them is being learned */
    bool takes_unknown; /* rows may have classes that the schema does not have; label -1 */
    uint64_t unknown;   /* number of such rows */
    size_t label_codes; /* of typed rows */
    /* What is in memory of its own comes last. */
    struct dt__split split;
    struct dt__split *fold; /* (folds) of search.folds: each holds out one of them */
    size_t folds;
    struct dt_schema schema;
    float *class_weight;        /* (classes) factor by the row's class; NULL: none */
    struct dt__classes classes; /* the schema's */
    struct dt__columns columns; /* CSV */
    int32_t *label_class;       /* (label_codes) the class of each; NULL: the same */
    struct dt__typed typed;     /* text, packed files */
    struct dt__row_keys keys;   /* of the raw rows, only for DT_PART_SHARDS */
    struct dt__file *files;
    size_t nfiles;
    struct dt__block
        lent; /* all raw rows, in memory of others (dt__lent_rows_attach); else empty */
};

/* Which of `count` rising numbers, `stride` bytes apart from `first` on, is the last that is at
 * most `value`; the first is. */
size_t dt__find_last(const uint64_t *first, size_t count, size_t stride, uint64_t value);

/* Bytes of a row in memory, on the average. */
uint64_t dt__source_row_bytes(const struct dt_source *source);
/* Entries of so many rows, on the average and a little more. */
uint64_t dt__source_entries(const struct dt_source *source, uint64_t rows);
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
