/* Typed rows: the form in which the survey stores rows of text files, so that text is parsed only
 * once. The same file also holds the decompressed bytes of packed IDX files.
 *
 * A source has one such file per host, unnamed, in $TMPDIR. Other processes of the host open it as
 * /proc/PID/fd/N, where PID is the process that made it. The file disappears when the last process
 * closes it.
 *
 *     file    id of 16 bytes | for each file of the source, in the survey's order: typed rows, or
 *             the decompressed bytes of an IDX file
 *     row     count | y | weight | word 0 | ... | word count - 1        4 bytes each, native
 *     table   one word per column: a number as a float, a category's code, or DT__MISSING
 *     LIBSVM  two words per entry: its index from 0, its value as a float
 *
 * y is a float (regress) or the code of a label: a class, a number, or the position of the label's
 * text in the survey's dictionary. Which class or category a code means is known only after the
 * whole survey, so codes are converted when a row is read. */
#ifndef DATA_TYPED_H
#define DATA_TYPED_H

#include "data/data.h"

struct dt__typed {
    int fd; /* -1: no file */
    uint64_t id[2], bytes;
    unsigned char *waiting; /* (length) bytes not yet written to the file */
    size_t length, capacity;
};

struct dt__typed_row {
    uint32_t count;
    union {
        int32_t label;
        float target;
    } y;
    float weight;
};

/* Appends bytes to the file. The first call creates the file. DT_EIO: the disk is full. */
dt_status dt__typed_add(struct dt__typed *typed, const void *bytes, size_t length);
/* Returns the offset at which the next bytes are appended. */
uint64_t dt__typed_end(const struct dt__typed *typed);
/* Writes the waiting bytes to the file. DT_EIO. */
dt_status dt__typed_flush(struct dt__typed *typed);
void dt__typed_close(struct dt__typed *typed);

#endif
