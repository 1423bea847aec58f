/* Values of a table: the text of a cell becomes a word, and the words of a row become its features.
 * Rows of files, of predictions and of requests pass here, whatever their format. */
#ifndef TABLE_VALUES_H
#define TABLE_VALUES_H

#include "table/block.h"
#include "table/columns.h"

/* Converts the cell of a column to a word of typed rows; while learning, counts a text. DT_EFORMAT:
 * not a number; missing where data.missing=error; a date. */
dt_status dt__cell_word(struct dt__columns *columns, size_t column, const char *text, size_t length,
                        uint32_t *out);
/* Adds the row that `count` words describe; one word per column comes first. The columns are
 * resolved. */
dt_status dt__table_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                        const struct dt__row_layout *layout, struct dt__block *out);

#endif
