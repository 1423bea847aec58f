/* Readers: one table row a format. */
#ifndef DATA_READER_H
#define DATA_READER_H

#include "data/survey.h"

struct dt__grammar;
/* What rows of a format may have as entries: nothing; a table's columns of texts; all numbers that
 * are not 0. */
enum dt__sparsity { DT__WHOLE, DT__CATEGORIES, DT__SPARSE };
struct dt__format {
    const char *name;
    enum dt__sparsity sparsity;
    bool labels_apart;   /* in a file of their own */
    bool stores_columns; /* of a table: shards of it */
    /* Whether a file is of the format, by its name from the last point on, and its first bytes,
     * unpacked; NULL: nothing tells. */
    bool (*is)(const char *suffix, const unsigned char *head, size_t length);
    const struct dt__grammar *grammar; /* of text; else NULL */
    /* Counts the rows of a file and checks all that can be checked cheaply (text: every row); adds
     * shape and labels to the survey. */
    dt_status (*survey)(struct dt__survey *survey, struct dt__file *file);
    /* Opens a file to read rows. */
    dt_status (*open)(const struct dt_source *source, const struct dt__file *file,
                      void **out_reader);
    /* Adds rows [row, row + count) of the file to a block of the source's layout. Messages name the
     * file. Going forward is cheap. */
    dt_status (*read)(void *reader, uint64_t row, size_t count, struct dt__block *out);
    void (*close)(void *reader);
};

extern const struct dt__format dt__format_idx, dt__format_csv, dt__format_libsvm, dt__format_hdf5,
    dt__format_memory;

/* By enum dt_format, but for AUTO. */
extern const struct dt__format *const dt__formats[];
/* Tells the format of a file by its first bytes, unpacked, and its name. DT_EIO: cannot be read;
 * DT_EFORMAT: empty, or known to be something else. */
dt_status dt__format_detect(const char *path, int *out);
/* DT_EFORMAT: a stream that begins with these bytes is no text; name is for the message. */
dt_status dt__stream_refuse(const char *name, const unsigned char *head, size_t length);

/* Reads rows of a source wherever they lie; keeps the files open that it used last. */
struct dt__cursor;
dt_status dt__cursor_open(const struct dt_source *source, struct dt__cursor **out);
void dt__cursor_close(struct dt__cursor *cursor);
/* Adds rows [row, row + count) of the part to a block. DT_EMISMATCH: a file changed since the
 * survey. */
dt_status dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                          struct dt__block *out);
/* The same of many rows, piece by piece. DT_STOPPED: a stop was requested meanwhile. */
dt_status dt__cursor_load(struct dt__cursor *cursor, uint64_t row, uint64_t count,
                          struct dt__block *out);

/* What is done with a block of rows. */
typedef dt_status dt__rows_fn(void *arg, const struct dt__block *block);
/* Reads the rows of the part in order, `rows` of every `stride` at once. DT_STOPPED. */
dt_status dt__source_walk(const struct dt_source *source, size_t rows, uint64_t stride,
                          dt__rows_fn *visit, void *arg);

#endif
