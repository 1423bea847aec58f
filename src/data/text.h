/* Text formats: numbered lines, one row a record, some places marked where a file can be
 * entered. */
#ifndef DATA_TEXT_H
#define DATA_TEXT_H

#include <string.h>

#include "data/survey.h"

/* A piece of a record. */
struct dt__cell {
    char *text;
    size_t length;
};
static inline bool dt__cell_is(struct dt__cell cell, const char *text)
{
    return cell.length == strlen(text) && !memcmp(cell.text, text, cell.length);
}

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

/* Opens a file, which may be packed, behind its byte order mark if it has one. DT_EIO: "PATH:
 * ...". */
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
dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length);

/* What turns the records of a file into rows. */
struct dt__parser {
    const struct dt__file
        *file; /* CSV: the roles of its columns; NULL for LIBSVM rows to predict */
    struct dt__columns *columns;   /* CSV */
    uint32_t features;             /* LIBSVM: greater indices are left out; 0: to be counted */
    uint32_t widest;               /* LIBSVM: greatest index of any row so far */
    uint64_t bytes;                /* LIBSVM: of all the data, which bounds an index that counts */
    struct dt__row row;            /* of the last record */
    struct dt__cell label, weight; /* its text; empty if there is none */
};

/* A grammar: parses a record. Messages name the column alone. */
struct dt__grammar {
    bool quotes; /* records may hold line ends between quotes */
    dt_status (*parse)(struct dt__parser *parser, char *record, size_t length);
};

/* Parses all records from where `lines` stands: rows, marks, labels, entries, whether values are
 * bytes. */
dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser);

/* The reader that struct dt__format asks for, of its grammar. */
dt_status dt__text_open(const struct dt_source *source, const struct dt__file *file, bool random,
                        void **out_reader);
dt_status dt__text_read(void *reader, uint64_t row, size_t count, struct dt__block *out);
void dt__text_close(void *reader);

#endif
