/* Values of a table: the text of a cell becomes a word, and the words of a row its features. Rows
 * of files, of predictions and of requests pass here, whatever format they come from. */
#ifndef TABLE_VALUES_H
#define TABLE_VALUES_H

#include "table/block.h"
#include "table/columns.h"

/* What the cell of a column says, as a word of typed rows; learning, a text is counted. DT_EFORMAT:
 * not a number, missing where data.missing=error, a date. */
dt_status dt__cell_word(struct dt__columns *columns, size_t column, const char *text, size_t length,
                        uint32_t *out);
/* Of settled columns: adds the row that `count` words say, one a column first. */
dt_status dt__table_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                        const struct dt__row_layout *layout, struct dt__block *out);

#endif
