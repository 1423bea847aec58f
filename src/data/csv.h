/* Rows of CSV (RFC 4180), for files and for rows to predict; those of JSON are made of such cells,
 * too. */
#ifndef DATA_CSV_H
#define DATA_CSV_H

#include "data/header.h"
#include "data/typed.h"

/* Takes the next cell from *text, quotes undone in place, and moves *text behind its separator, or
 * to NULL behind the last cell. The separator ' ' is a run of blanks and tabs, also at the start
 * and the end of a record. DT_EFORMAT: text behind a closing quote. */
dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out);

/* Adds the cells of a record, which stays as it is, without the blanks around them. */
dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out);

/* What the cell of a column says, as a word of typed rows; learning, a text is counted. DT_EFORMAT:
 * not a number, missing where data.missing=error, a date. */
dt_status dt__cell_word(struct dt__columns *columns, size_t column, const char *text, size_t length,
                        uint32_t *out);
/* Of settled columns: adds the row that `count` words say, one a column first. */
dt_status dt__table_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                        const struct dt__layout *layout, struct dt__block *out);

/* Parses one record by parser->header's roles into words, label and weight. Columns in messages
 * count from 0, as in data.label. DT_EFORMAT: too few or too many cells, or a cell is wrong. */
extern const struct dt__grammar dt__csv_grammar;

#endif
