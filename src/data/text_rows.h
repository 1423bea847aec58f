/* Rows of text: a grammar turns a record into a typed row, and a typed row into the row of a block.
 * All formats of text share the pass over a file and the reader. */
#ifndef DATA_TEXT_ROWS_H
#define DATA_TEXT_ROWS_H

#include "data/parser.h"
#include "data/source.h"

struct dt__lines;
struct dt__survey;

/* A grammar of text. Messages name only the column. */
struct dt__grammar {
    bool quotes;                                   /* records may hold line ends between quotes */
    bool (*is_empty)(char *record, size_t length); /* returns true for a record to skip; NULL: only
                                                    * those without a byte */
    dt_status (*parse)(struct dt__parser *parser, char *record, size_t length);
    /* Adds a typed row, except y and weight. */
    dt_status (*row)(const struct dt__columns *columns, const uint32_t *words, size_t count,
                     const struct dt__row_layout *layout, struct dt__block *out);
    /* Checks whether a record, which is already cut, lacks a label (data.unlabelled=skip). NULL:
     * records must have labels. */
    dt_status (*lacks_label)(const struct dt__parser *parser, char *record, size_t length,
                             bool *out);
    /* Returns the status of a record that failed, if possible with a better message. May be
     * NULL. */
    dt_status (*explain)(const struct dt__parser *parser, const char *record, dt_status status);
};

/* Parses all records from the position of `lines`: adds typed rows, marks, labels and entries, and
 * notes whether values are bytes. */
dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser);

/* The reader of formats that are text: reads the typed rows that the survey has made. */
dt_status dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                const struct dt__grammar *grammar, void **out);
dt_status dt__typed_reader_read(void *reader, uint64_t row, size_t count, struct dt__block *out);
void dt__typed_reader_close(void *reader);

#endif
