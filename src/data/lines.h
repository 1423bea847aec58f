/* Lines of a text file, read in large blocks and numbered from 1. */
#ifndef DATA_LINES_H
#define DATA_LINES_H

#include "dtrain/base.h"

struct dt__lines {
    FILE *in;
    const char *name; /* for messages; lent */
    bool owned;
    char *data;                  /* bytes of the file from `base` on */
    size_t capacity, begin, end; /* what is not yet handed out: data[begin..end) */
    uint64_t base;
    uint64_t line;      /* the line at which the last record began */
    uint64_t next_line; /* the line at which the next begins */
    bool eof;
};

/* Opens a file, behind its byte order mark if it has one. DT_EIO: "PATH: ...". */
dt_status dt__lines_open(struct dt__lines *lines, const char *path);
/* Reads on from a stream, which stays the caller's. */
dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name);
void dt__lines_close(struct dt__lines *lines);

/* Goes to a byte offset, the beginning of line `line`. */
dt_status dt__lines_seek(struct dt__lines *lines, uint64_t offset, uint64_t line);
/* Byte offset of the next record. */
uint64_t dt__lines_offset(const struct dt__lines *lines);

/* Whether the next call gives a line, or the end, or can read on, without waiting for input. */
bool dt__lines_ready(const struct dt__lines *lines);

/* Next line without its line end (LF or CRLF), or NULL behind the last. With `quotes` a record is
 * several lines where a line end stands between double quotes. May be written to; valid until the
 * next call. DT_EFORMAT: a quote that does not close, a record of more than 64 MiB. */
dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *length);

#endif
