/* Values of a table: the text of a cell becomes a word, and the words of a row become its features.
 * Rows of files, of predictions and of requests pass here, whatever their format. */
#ifndef TABLE_VALUES_H
#define TABLE_VALUES_H

#include "table/block.h"
#include "table/columns.h"

/* Converts the cell of a column to a word of typed rows. While learning, a text of a category is
 * added to the column's dictionary and counted. DT_EFORMAT: not a value of the column's kind, or a
 * missing value with data.missing=error. */
dt_status dt__cell_word(struct dt__columns *columns, size_t column, const char *text, size_t length,
                        uint32_t *out);
/* Adds the features of a row from its `count` words, of which the first are one per column. The
 * columns are resolved. */
dt_status dt__table_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                        const struct dt__row_layout *layout, struct dt__block *out);

#endif
