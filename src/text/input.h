/* Input of data: files, plain or packed by gzip or zstd, read from front to back; and the numbered
 * records of text in a file or a stream. */
#ifndef TEXT_INPUT_H
#define TEXT_INPUT_H

#include <stdio.h>

#include "base/base.h"

/* Checks whether the first bytes of a file or a stream can be rows as they are. DT_EFORMAT: they
 * are packed, or of a known kind that is not read (NumPy, Parquet, zip, UTF-16 etc.); the message
 * says what to do. */
enum { DT__PACKED_HEAD = 16 }; /* bytes that decide */
dt_status dt__packed_refuse(const char *path, const unsigned char *head, size_t length);

/* Returns true if a path is a pipe or similar, which can be read only once. */
bool dt__path_is_pipe(const char *path);

/* A file that is unpacked as its bytes are read, or a plain file. DT_EIO. */
struct dt__packed;
dt_status dt__packed_open(const char *path, struct dt__packed **out);
void dt__packed_close(struct dt__packed *packed);
/* Reads the next bytes, at most `size`; *length 0: the end. DT_EIO; DT_EFORMAT: damaged or
 * truncated. */
dt_status dt__packed_read(struct dt__packed *packed, void *to, size_t size, size_t *length);
/* Returns true if the file is packed, so that reading cannot start in the middle. */
bool dt__packed_is(const struct dt__packed *packed);

/* Reads the first bytes of a file, unpacked; *length is at most `size`. DT_EIO; DT_EFORMAT:
 * damaged, or refused by dt__packed_refuse. */
dt_status dt__packed_head(const char *path, unsigned char *head, size_t size, size_t *length);

/* ---- records -------------------------------------------------------------------------------- */

struct dt__lines {
    struct dt__packed *file; /* NULL: */
    FILE *in;                /* a stream, */
    bool borrowed;           /* closed by its opener */
    const char *name;        /* for messages; borrowed */
    char *data;
    size_t capacity, start, begin, end; /* start: kept for a rewind; not yet returned:
                                         * data[begin..end) */
    uint64_t line;                      /* line at which the last record began */
    uint64_t next_line;                 /* line at which the next record begins */
    uint64_t rewound; /* records that begin in earlier lines were returned once before */
    bool eof, held;
    bool commas;    /* CSV: numbers have a decimal comma, which becomes a point */
    char separator; /* with `commas`, ends a cell, as all separators that data.separator=auto finds
                      * except the comma do; a separating comma leaves only those in quotes as
                      * decimal commas */
    bool warned_point; /* has warned that a number has a point, which may separate thousands */
    bool keeps;        /* set by the caller: `raw` keeps the last record unchanged */
    char *raw;
    size_t raw_capacity;
};

/* Opens a file, which may be packed, or a pipe, after its byte order mark if it has one;
 * dt__lines_attach reads on from a stream. Everything read is kept, so that the first records can
 * be inspected, until dt__lines_release. DT_EIO: "PATH: ..." */
dt_status dt__lines_open(struct dt__lines *lines, const char *path);
dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name);
void dt__lines_close(struct dt__lines *lines);

/* Sets whether numbers have decimal commas, and the separator from data.separator. */
void dt__lines_decimal(struct dt__lines *lines, bool commas, const char *separator);
/* Replaces the comma by a point in cells that would be numbers except for it. Next to a separator,
 * a comma outside quotes separates cells; if the comma is the separator, each one does. */
void dt__lines_commas(struct dt__lines *lines, char *text, size_t length);

/* Continues from the first record (`rewind`), or from here. */
void dt__lines_release(struct dt__lines *lines, bool rewind);

/* Returns true if the next call returns a line or the end, or can read, without waiting for
 * input. */
bool dt__lines_ready(const struct dt__lines *lines);

/* Returns the next line without its line end (LF or CRLF), or NULL after the last one. With
 * `quotes`, a record continues over line ends between double quotes. The caller may write to it; it
 * is valid until the next call. DT_EFORMAT: an unclosed quote, or a record of more than 64 MiB. */
dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length);

#endif
