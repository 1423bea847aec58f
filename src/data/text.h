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

struct dt__packed;
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
 * DT_EIO: "PATH: ..."; DT_EFORMAT: a pipe of packed rows. */
dt_status dt__lines_open(struct dt__lines *lines, const char *path);
dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name);
void dt__lines_close(struct dt__lines *lines);

/* Takes decimal commas, as the configuration says. */
void dt__lines_decimal(struct dt__lines *lines, const struct dt_config *config);

/* On from the first record, or from here. */
void dt__lines_release(struct dt__lines *lines, bool rewind);

/* Whether the next call gives a line, or the end, or can read on, without waiting for input. */
bool dt__lines_ready(const struct dt__lines *lines);

/* Next line without its line end (LF or CRLF), or NULL behind the last. With `quotes` a record is
 * several lines where a line end stands between double quotes. May be written to; valid until the
 * next call. DT_EFORMAT: a quote that does not close, a record of more than 64 MiB. */
dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length);

struct dt__header;
/* What turns the records of a file into typed rows. */
struct dt__parser {
    struct dt__columns *columns;     /* CSV */
    const struct dt__header *header; /* CSV: which of the file's columns is what */
    uint32_t features;               /* LIBSVM: greater indices are left out; 0: to be counted */
    uint32_t widest;                 /* LIBSVM: greatest index of any row so far */
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
    bool (*is_empty)(char *record, size_t length); /* it is passed over */
    dt_status (*parse)(struct dt__parser *parser, char *record, size_t length);
    /* The numbers and entries of a typed row. */
    dt_status (*row)(const struct dt__columns *columns, const uint32_t *words, size_t count,
                     struct dt__row *row);
};

/* Parses all records from where `lines` stands: typed rows, marks, labels, entries, whether values
 * are bytes. */
dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser);

#endif
