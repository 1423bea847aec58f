/* Rows of text. All text formats share the pass over a file (dt__text_survey) and the reader of
 * typed rows. They differ in their grammar: it converts a record to a typed row, and a typed row to
 * a row of a block. */
#ifndef DATA_TEXT_ROWS_H
#define DATA_TEXT_ROWS_H

#include "data/parser.h"
#include "data/source.h"

struct dt__lines;
struct dt__survey;

/* The grammar of a text format. Its error messages name the column, but not the file or the
 * line. */
struct dt__grammar {
    bool quotes; /* records may span lines between quotes */
    /* Returns true for a record to skip. NULL: only records of length 0 are skipped. */
    bool (*is_empty)(char *record, size_t length);
    /* Parses a record, which it may overwrite, into the parser's words and cells. DT_EFORMAT. */
    dt_status (*parse)(struct dt__parser *parser, char *record, size_t length);
    /* Adds a typed row to a block, except its y and weight. */
    dt_status (*row)(const struct dt__columns *columns, const uint32_t *words, size_t count,
                     const struct dt__row_layout *layout, struct dt__block *out);
    /* Sets *out to true if a record lacks a label (data.unlabelled=skip). May overwrite the record.
     * NULL: records must have labels. */
    dt_status (*lacks_label)(const struct dt__parser *parser, char *record, size_t length,
                             bool *out);
    /* Improves, if possible, the message of a failure to parse a record. Returns `status`. NULL:
     * the message stays. */
    dt_status (*explain)(const struct dt__parser *parser, const char *record, dt_status status);
};

/* Parses all remaining records of `lines`. Appends the typed rows to the source's file of typed
 * rows, and adds marks to `file`, and labels, entries and the kinds of values to the survey. */
dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser);

/* The `open`, `read` and `close` of all text formats: read the typed rows that the survey
 * stored. */
dt_status dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                const struct dt__grammar *grammar, void **out);
dt_status dt__typed_reader_read(void *reader, uint64_t row, size_t count, struct dt__block *out);
void dt__typed_reader_close(void *reader);

#endif
