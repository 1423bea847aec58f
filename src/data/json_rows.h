/* Rows of JSON. */
#ifndef DATA_JSON_ROWS_H
#define DATA_JSON_ROWS_H

#include "table/columns.h"
#include "text/json_reader.h"

/* ---- rows ----------------------------------------------------------------------------------- */

/* Reads rows of JSON into the words of typed rows. Several readers may share the columns. */
struct dt__json_rows {
    const struct dt__columns *columns; /* items NULL: numbers without names */
    bool exact;                        /* each column is a feature of the model: messages do not
                                        * call it a column */
    bool *seen;                        /* (columns) which columns the current object has named;
                                        * NULL: columns have no distinct names */
    struct dt_text scratch;            /* holds decoded texts */
};

/* The columns must outlive the rows. DT_EMEMORY. */
dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact);
void dt__json_rows_free(struct dt__json_rows *rows);

/* The following functions start at `token`, the last token read, and leave the reader after the
 * value, whether they fail or not. If the text is not JSON, their result is arbitrary;
 * dt__json_finish reports the error. */

/* Reads a value, or the values of a list and of the lists in it, into words[0..count), for columns
 * [column, column + count). DT_EFORMAT: the number of values is not `count`, or a value does not
 * suit its column. */
dt_status dt__json_values(const struct dt__json_rows *rows, struct dt__json *json, char token,
                          size_t column, size_t count, uint32_t *words);
/* Reads a row into words (columns). The row is a list of the columns' values, which may be nested
 * like a picture's rows; the value of the only column; an object {"carat": 0.5, "cut": "Ideal"},
 * which names the columns; or {"input": LIST}. DT_EFORMAT: "item 1 (cut): ...", "column 'cut' is
 * missing", ... */
dt_status dt__json_row(const struct dt__json_rows *rows, struct dt__json *json, char token,
                       uint32_t *words);

#endif
