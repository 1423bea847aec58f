/* Values of a table: converts the text of a cell to a word, and the words of a row to its features.
 * Rows of files, of predictions and of requests all pass through here, whatever their format. */
#ifndef TABLE_VALUES_H
#define TABLE_VALUES_H

#include "table/block.h"
#include "table/columns.h"

/* Converts the text of a cell in the column `column` to a word of typed rows. While learning, it
 * adds a text of a category to the column's dictionary and counts it. DT_EFORMAT: the text is not a
 * value of the column's kind, or is missing while data.missing=error. */
dt_status dt__cell_word(struct dt__columns *columns, size_t column, const char *text, size_t length,
                        uint32_t *out);
/* Appends a row to `out` from its `count` words. The first words belong to the columns, in order.
 * The columns must be resolved. */
dt_status dt__table_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                        const struct dt__row_layout *layout, struct dt__block *out);

#endif
