/* Typed rows: what a survey makes of text, and of packed files, once a host; how text becomes them,
 * and how they are read.
 *
 * A source has one file without a name in $TMPDIR, which other processes of the host open as
 * /proc/PID/fd/N of the one that made it. It goes when the last of them closes it.
 *
 *     file    id of 16 bytes | of each file of the source, in the survey's order: typed rows, or
 *             the bytes of a packed IDX file
 *     row     count | y | weight | word 0 | ... | word count - 1        4 bytes each, native
 *     table   a word a column: a number as a float, a category's code, or DT__MISSING
 *     LIBSVM  two words an entry: its index from 0, its value as a float
 *
 * y is a float (regress), or a label's code: a class, a number, or the number of its text in the
 * survey's dictionary. Codes become classes and categories when a row is read: only the whole data
 * says which. */
#ifndef DATA_TYPED_H
#define DATA_TYPED_H

#include "data/data.h"
#include "data/text.h"

static const uint32_t DT__MISSING = UINT32_MAX; /* as a float: NaN */

struct dt__typed {
    int fd; /* -1: no file */
    uint64_t id[2], bytes;
    unsigned char *waiting; /* not yet in the file */
    size_t length, room;
};

struct dt__typed_row {
    uint32_t count;
    union {
        int32_t label;
        float target;
    } y;
    float weight;
};

/* Adds bytes at the end; the first make the file. DT_EIO: disk full. */
dt_status dt__typed_add(struct dt__typed *typed, const void *bytes, size_t length);
/* Where the next bytes go. */
uint64_t dt__typed_end(const struct dt__typed *typed);
/* All bytes are in the file. */
dt_status dt__typed_flush(struct dt__typed *typed);
void dt__typed_close(struct dt__typed *typed);

/* ---- text ----------------------------------------------------------------------------------- */

struct dt__block;
struct dt__columns;
struct dt__file;
struct dt__header;
struct dt__layout;
struct dt__lines;
struct dt__survey;

/* What turns the records of a file into typed rows. */
struct dt__parser {
    struct dt__columns *columns;     /* CSV */
    const struct dt__header *header; /* CSV: which of the file's columns is what */
    uint32_t features;               /* LIBSVM: greater indices are left out; 0: to be counted */
    uint64_t widest;                 /* LIBSVM: greatest index of any row so far */
    uint64_t bytes;  /* LIBSVM: of all the data, which bounds an index that counts; of a pipe 0 */
    uint32_t *words; /* (count) of the last record; behind those of columns are further targets */
    size_t count, room;
    struct dt__cell label, weight; /* its text; empty if there is none */
    const struct dt_targets *of;   /* of further labels ... */
    size_t more;                   /* ... so many */
    size_t entries;                /* sparse ones of the last record */
    bool floats, values;           /* of all: a value that is no byte, an entry that is not 1 */
};
/* The number of a label. DT_EFORMAT: it is missing, none, or none that the loss takes. */
dt_status dt__target_read(const struct dt_targets *of, const struct dt__cell *label, float *out);
/* Adds a word to the row. */
dt_status dt__parser_add(struct dt__parser *parser, uint32_t word);

/* A grammar of text. Messages name the column alone. */
struct dt__grammar {
    bool quotes;                                   /* records may hold line ends between quotes */
    bool (*is_empty)(char *record, size_t length); /* is passed over; NULL: without a byte alone */
    dt_status (*parse)(struct dt__parser *parser, char *record, size_t length);
    /* Adds a typed row, all but y and weight. */
    dt_status (*row)(const struct dt__columns *columns, const uint32_t *words, size_t count,
                     const struct dt__layout *layout, struct dt__block *out);
};

/* Parses all records from where `lines` stands: typed rows, marks, labels, entries, whether values
 * are bytes. */
dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser);

/* The reader of formats that are text: of the typed rows that the survey has made. */
dt_status dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                void **out);
dt_status dt__typed_reader_read(void *reader, uint64_t row, size_t count, struct dt__block *out);
void dt__typed_reader_close(void *reader);

#endif
