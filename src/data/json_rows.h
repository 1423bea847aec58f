/* Rows to predict, written as JSON. */
#ifndef DATA_JSON_ROWS_H
#define DATA_JSON_ROWS_H

#include "table/columns.h"
#include "text/json_reader.h"

/* ---- rows ----------------------------------------------------------------------------------- */

/* A reader of JSON rows, which converts them to words of typed rows. Several readers may share the
 * columns. */
struct dt__json_rows {
    const struct dt__columns *columns; /* items NULL: all are numbers, and have no names */
    bool exact;                        /* each column is one feature of the model, so messages need
                                        * not call it a column */
    bool *seen;                        /* (columns) true: the current object has named the column;
                                        * NULL: columns have no distinct names */
    struct dt_text scratch;            /* holds decoded texts */
};

/* Makes a reader. The columns must outlive it. DT_EMEMORY. */
dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact);
void dt__json_rows_free(struct dt__json_rows *rows);

/* The following functions read the value that starts with `token`, the last token read. They leave
 * `json` after the value, even if they fail. If the text is not valid JSON, their result is
 * arbitrary, and dt__json_finish reports the error. */

/* Reads one value, or all values of a list, which may be nested, into words[0..count). Value i is
 * for column `column` + i. DT_EFORMAT: the number of values is not `count`, or a value is not of
 * its column's kind. */
dt_status dt__json_values(const struct dt__json_rows *rows, struct dt__json *json, char token,
                          size_t column, size_t count, uint32_t *words);
/* Reads a row into words (columns). The row is a list of the columns' values, which may be nested
 * like a picture's rows; the value of the only column; an object {"carat": 0.5, "cut": "Ideal"},
 * which names the columns; or {"input": LIST}. DT_EFORMAT: "item 1 (cut): ...", "column 'cut' is
 * missing", ... */
dt_status dt__json_row(const struct dt__json_rows *rows, struct dt__json *json, char token,
                       uint32_t *words);

#endif
