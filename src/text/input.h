/* Input: files, plain or packed by gzip or zstd, read from front to back; and the numbered records
 * of text in a file or a stream. */
#ifndef TEXT_INPUT_H
#define TEXT_INPUT_H

#include <stdio.h>

#include "base/base.h"

/* Fails with DT_EFORMAT if the first bytes of a file or a stream show that its rows cannot be read
 * from it as it is: it is packed, or of a known foreign kind (NumPy, Parquet, zip, UTF-16 etc.).
 * The message says what to do. */
enum { DT__PACKED_HEAD = 16 }; /* bytes that suffice to decide */
dt_status dt__packed_refuse(const char *path, const unsigned char *head, size_t length);

/* Returns true if a path is a pipe or the like, which can be read only once. */
bool dt__path_is_pipe(const char *path);

/* A file whose bytes are unpacked as they are read, or a plain file. */
struct dt__packed;
/* Opens a file; `path` must outlive it. DT_EIO, DT_EMEMORY. */
dt_status dt__packed_open(const char *path, struct dt__packed **out);
void dt__packed_close(struct dt__packed *packed);
/* Reads the next bytes, at most `size`; *length is 0 at the end. DT_EIO; DT_EFORMAT: the file is
 * damaged or truncated. */
dt_status dt__packed_read(struct dt__packed *packed, void *to, size_t size, size_t *length);
/* Returns true if the file is packed. Then reading cannot start in the middle. */
bool dt__packed_is(const struct dt__packed *packed);

/* Reads the first `size` bytes of a file, unpacked, or all bytes of a shorter file. DT_EIO;
 * DT_EFORMAT: the file is damaged, or dt__packed_refuse refuses it. */
dt_status dt__packed_head(const char *path, unsigned char *head, size_t size, size_t *length);

/* ---- records -------------------------------------------------------------------------------- */

struct dt__lines {
    struct dt__packed *file; /* NULL: `in` is read */
    FILE *in;                /* a stream; NULL: `file` is read */
    bool borrowed;           /* `in` is closed by its opener */
    const char *name;        /* for messages; borrowed */
    char *data;
    size_t capacity, start, begin, end; /* data[begin..end) is not yet returned; data[start..) is
                                         * kept while `held` */
    uint64_t line;                      /* line at which the last record starts */
    uint64_t next_line;                 /* line at which the next record starts */
    uint64_t rewound;                   /* records that start before this line were also returned
                                         * before the rewind */
    /* eof: no bytes are left to read; held: until dt__lines_release, all data is kept */
    bool eof, held;
    bool commas;       /* CSV: numbers have a decimal comma, which becomes a point */
    char separator;    /* with `commas`: ends cells, and so do ; tab and |. If it is a comma, only
                        * commas in quotes are decimal commas */
    bool warned_point; /* has warned that a number has a point, which may separate thousands */
    bool keeps;        /* set by the caller: `raw` keeps the last record unchanged */
    char *raw;
    size_t raw_capacity;
};

/* Opens a file, which may be packed, or a pipe, and skips a byte order mark. Until
 * dt__lines_release all data is kept, so that the first records can be inspected and then read
 * again. DT_EIO: "PATH: ..." */
dt_status dt__lines_open(struct dt__lines *lines, const char *path);
/* Does the same for a stream, from its current position. The caller closes it; `name` is for
 * messages. */
dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name);
void dt__lines_close(struct dt__lines *lines);

/* Sets whether numbers have decimal commas, and the separator from data.separator. */
void dt__lines_decimal(struct dt__lines *lines, bool commas, const char *separator);
/* Replaces the decimal comma by a point in each cell that this makes a number. Outside quotes, a
 * comma separates cells if it is the separator or is next to a quote. */
void dt__lines_commas(struct dt__lines *lines, char *text, size_t length);

/* Stops keeping all data, and continues with the first record (`rewind`) or with the next one. */
void dt__lines_release(struct dt__lines *lines, bool rewind);

/* Returns true if dt__lines_next can read, or return a line or the end, without waiting for
 * input. */
bool dt__lines_ready(const struct dt__lines *lines);

/* Reads the next line, without its line end (LF or CRLF); *out is NULL after the last one. With
 * `quotes`, a record continues over line ends between double quotes. The caller may write to the
 * text, which is valid until the next call. DT_EFORMAT: a quote does not close, or a record has
 * more than 64 MiB. */
dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length);

#endif
