/* A surveyed source: the contents of its files, and which of their rows belong to the source.
 *
 * A row has two numbers. Its raw row counts all rows of all files; its row counts only the rows of
 * this source, which are one side of the split. The two are equal unless the data is split. */
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

/* Formats besides those of enum dt_format. A shard of a table counts as HDF5 until its survey. */
enum { DT__FORMAT_MEMORY = DT_FORMAT_HDF5 + 1, DT__FORMAT_SHARD };
enum { DT__MAX_TARGETS = 1 << 20 };

/* A row at which a reader of typed rows can start. offset: where its bytes start in the file of
 * typed rows. */
struct dt__row_mark {
    uint64_t row, offset;
};

/* IDX: where the numbers of a data file or of a label file are. */
struct dt__idx_array {
    bool unpacked;   /* true: they are in the file of typed rows; false: in the IDX file itself */
    uint64_t offset; /* of the first number in that file */
    int type;        /* the IDX type code */
    size_t items;    /* items in a row */
};

struct dt__file {
    int format;                /* enum dt_format, DT__FORMAT_MEMORY or DT__FORMAT_SHARD */
    uint64_t rows;             /* all rows of the file */
    uint64_t raw;              /* raw row of the file's first row */
    uint64_t bytes;            /* size, including the label file; shows changes since the survey */
    struct dt__idx_array x, y; /* IDX: inputs, and labels or targets */
    struct dt_arrays arrays;   /* DT__FORMAT_MEMORY: borrowed, valid only in this process */
    size_t nmarks;
    /* Members that point to memory that the file owns follow. */
    struct dt__row_mark *marks; /* text: row 0, rows at least DT__MARK_BYTES apart, and the end */
    size_t marks_capacity;
    char *path, *labels;   /* labels: the separate file of labels; NULL: none */
    char *x_name, *y_name; /* HDF5: names of the data sets */
};

struct dt_source {
    struct dt__row_layout layout;
    uint64_t raw_rows, rows;
    uint64_t entries;      /* sparse: number of entries of all raw rows */
    uint64_t most_entries; /* upper bound of the entries of any row */
    uint64_t memory;       /* bytes: data.memory_mb */
    float weight_scale;    /* scales the rows' weights to a mean of 1 over training rows */
    uint32_t text_crc;     /* CRC-32C of all records of text, or of rows in memory */
    enum dt__side side;    /* the side of the split whose rows this source has */
    bool numbered;         /* data.class_names is set: a text may be a class's number */
    bool gaps;             /* missing values are NaN, while their replacements are not yet
                            * learned */
    bool takes_unknown;    /* the schema may lack classes of rows; their labels become -1 */
    uint64_t unknown;      /* number of rows with such labels */
    size_t label_codes;    /* number of different label codes in typed rows */
    /* Members that point to memory that the source owns follow. */
    struct dt__split split;
    struct dt__split *fold; /* (folds) with search.folds: split f holds out fold f */
    size_t folds;
    struct dt_schema schema;
    float *class_weight;        /* (classes) factor of a row's weight, by its class; NULL: 1 */
    struct dt__classes classes; /* the schema's classes */
    struct dt__columns columns; /* CSV */
    int32_t *label_class;       /* (label_codes) class of each code; NULL: codes are classes */
    struct dt__typed typed;     /* rows of text, bytes of packed files */
    struct dt__row_keys keys;   /* groups and times of the raw rows, only for DT_PART_SHARDS */
    struct dt__file *files;
    size_t nfiles;
    /* All raw rows, in the memory passed to dt__borrowed_rows_attach; empty: not borrowed. */
    struct dt__block borrowed;
};

/* Returns, by binary search, the index of the last of `count` numbers that is at most `value`. The
 * numbers are in ascending order and `stride` bytes apart; the first one must be at most
 * `value`. */
size_t dt__find_last(const uint64_t *first, size_t count, size_t stride, uint64_t value);

/* Returns the mean size of a row in memory, in bytes, including its sparse entries. */
uint64_t dt__source_row_bytes(const struct dt_source *source);
/* Returns the expected number of sparse entries of `rows` rows, plus a margin of 5%. */
uint64_t dt__source_entries(const struct dt_source *source, uint64_t rows);
/* Returns the raw row of a row of the source. */
uint64_t dt__source_raw(const struct dt_source *source, uint64_t row);
/* Returns the number of the source's rows among the first `raw` raw rows. */
uint64_t dt__source_before(const struct dt_source *source, uint64_t raw);
/* Finds the source's rows that are in file number `file`: rows [*begin, *begin + *count). */
void dt__source_file_rows(const struct dt_source *source, size_t file, uint64_t *begin,
                          uint64_t *count);

/* Measures the size of a file and its label file together, in bytes. DT_EIO: either is missing or
 * not a regular file. */
dt_status dt__file_measure(const struct dt__file *file, uint64_t *out);

#endif
