/* Rows of JSON. */
#ifndef DATA_JSON_ROWS_H
#define DATA_JSON_ROWS_H

#include "table/columns.h"
#include "text/json_reader.h"

/* ---- rows ----------------------------------------------------------------------------------- */

/* Reads rows of columns as words of typed rows. Several readers may use the columns at the same
 * time. */
struct dt__json_rows {
    const struct dt__columns *columns; /* without items: numbers that have no names */
    bool exact;                        /* the columns are the model's features, one by one */
    bool *seen; /* (columns) names seen in the current object; NULL: names do not identify
                 * columns */
    struct dt_text scratch; /* for a reader */
};

/* The columns outlive the rows. */
dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact);
void dt__json_rows_free(struct dt__json_rows *rows);

/* The following functions start at `token`, the last one read, and leave the reader after the value
 * whether they fail or not. If the text is not JSON, their result is arbitrary: dt__json_finish
 * reports that. */

/* Reads the value, or the values of a list and its nested lists, into words[0..count), for `count`
 * columns from `column` on. DT_EFORMAT: more values, or fewer. */
dt_status dt__json_values(const struct dt__json_rows *rows, struct dt__json *json, char token,
                          size_t column, size_t count, uint32_t *words);
/* Reads a row into words (columns): a list of the columns' values, nested as deep as a picture's
 * shape asks for, or the value of the only column; an object {"carat": 0.5, "cut": "Ideal"} by
 * their names; or {"input": LIST}. DT_EFORMAT: "item 1 (cut): ...", "column 'cut' is missing",
 * ... */
dt_status dt__json_row(const struct dt__json_rows *rows, struct dt__json *json, char token,
                       uint32_t *words);

#endif
