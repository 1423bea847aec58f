/* Rows of JSON. */
#ifndef DATA_JSON_ROWS_H
#define DATA_JSON_ROWS_H

#include "table/columns.h"
#include "text/json_reader.h"

/* ---- rows ----------------------------------------------------------------------------------- */

/* Reads rows of columns, which others may read by at the same time, as words of typed rows. */
struct dt__json_rows {
    const struct dt__columns *columns; /* without items: numbers that have no names */
    bool exact;                        /* they are the model's features, one by one */
    bool *seen; /* (columns) names of the object under way; NULL: names tell no columns apart */
    struct dt_text scratch; /* for a reader */
};

/* Columns outlive the rows. */
dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact);
void dt__json_rows_free(struct dt__json_rows *rows);

/* What follows begins at `token`, the last one, and leaves the reader behind the value whatever
 * comes of it. Of what is no JSON they may say anything: dt__json_finish tells. */

/* Reads the value, or those of the list and of the lists in it, into words[0..count), for as many
 * columns from `column` on. DT_EFORMAT: more, or fewer. */
dt_status dt__json_values(const struct dt__json_rows *rows, struct dt__json *json, char token,
                          size_t column, size_t count, uint32_t *words);
/* Reads a row into words (columns): a list of the columns' values, nested as deep as a picture's
 * shape asks for, or the value of the only one; an object {"carat": 0.5, "cut": "Ideal"} by their
 * names; or {"input": LIST}. DT_EFORMAT: "item 1 (cut): ...", "column 'cut' is missing", ... */
dt_status dt__json_row(const struct dt__json_rows *rows, struct dt__json *json, char token,
                       uint32_t *words);

#endif
