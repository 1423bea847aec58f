/* Input of data: files as they are, or packed by gzip or zstd, read from front to back; and the
 * numbered records of text in them, or in a stream. */
#ifndef TEXT_INPUT_H
#define TEXT_INPUT_H

#include <stdio.h>

#include "base/base.h"

/* Whether the first bytes of a file or a stream can be rows as they stand. DT_EFORMAT: they are
 * packed, or of a kind that is named and not read (NumPy, Parquet, zip, UTF-16 and the like); the
 * message says what to do. */
enum { DT__PACKED_HEAD = 16 }; /* bytes that tell */
dt_status dt__packed_refuse(const char *path, const unsigned char *head, size_t length);

/* Whether a path is a pipe or the like, which can be read but once. */
bool dt__path_is_pipe(const char *path);

/* A file that is being unpacked, as its bytes are asked for; one that is not packed as it stands.
 * DT_EIO. */
struct dt__packed;
dt_status dt__packed_open(const char *path, struct dt__packed **out);
void dt__packed_close(struct dt__packed *packed);
/* The next bytes, at most `size`; *length 0: the end. DT_EIO; DT_EFORMAT: damaged, truncated. */
dt_status dt__packed_read(struct dt__packed *packed, void *to, size_t size, size_t *length);
/* Whether it is packed, so that it cannot be entered in the middle. */
bool dt__packed_is(const struct dt__packed *packed);

/* The first bytes of a file, unpacked; *length of at most `size`. DT_EIO; DT_EFORMAT: damaged, or
 * what dt__packed_refuse does not take. */
dt_status dt__packed_head(const char *path, unsigned char *head, size_t size, size_t *length);

/* ---- records -------------------------------------------------------------------------------- */

struct dt__lines {
    struct dt__packed *file; /* NULL: */
    FILE *in;                /* a stream, */
    bool lent;               /* whoever opened it closes it */
    const char *name;        /* for messages; lent */
    char *data;
    size_t capacity, start, begin, end; /* start: held for a rewind; not yet handed out:
                                           data[begin..end) */
    uint64_t line;                      /* the line at which the last record began */
    uint64_t next_line;                 /* the line at which the next begins */
    uint64_t rewound; /* records that begin in lines before have been handed out once */
    bool eof, held;
    bool commas;     /* of CSV: numbers have a decimal comma, which becomes a point */
    char separator;  /* ends a cell then, and so does any of those that are found by themselves but
                      * the comma; of a comma only those in quotes are decimal ones */
    bool said_point; /* that one of them has a point, which may mean thousands */
    bool keeps;      /* set by the caller: `raw` is to be the last record as it stood */
    char *raw;
    size_t raw_room;
};

/* Opens a file, which may be packed, or a pipe, behind its byte order mark if it has one; reads on
 * from a stream. What is read is held, for a look at the first records, until dt__lines_release.
 * DT_EIO: "PATH: ..." */
dt_status dt__lines_open(struct dt__lines *lines, const char *path);
dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name);
void dt__lines_close(struct dt__lines *lines);

/* Sets whether numbers have decimal commas, and the separator that data.separator says. */
void dt__lines_decimal(struct dt__lines *lines, bool commas, const char *separator);
/* Puts a point in place of the comma in cells that are a number but for that. Outside of quotes a
 * comma beside one separates cells; every one does where it is the separator. */
void dt__lines_commas(struct dt__lines *lines, char *text, size_t length);

/* On from the first record, or from here. */
void dt__lines_release(struct dt__lines *lines, bool rewind);

/* Whether the next call gives a line, or the end, or can read on, without waiting for input. */
bool dt__lines_ready(const struct dt__lines *lines);

/* Next line without its line end (LF or CRLF), or NULL behind the last. With `quotes` a record is
 * several lines where a line end stands between double quotes. May be written to; valid until the
 * next call. DT_EFORMAT: a quote that does not close, a record of more than 64 MiB. */
dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length);

#endif
