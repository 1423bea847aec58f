/* Rows of JSON, read from left to right as they stand in memory, without a tree.
 *
 * Text is checked whole once. A cursor in it then meets nothing malformed, and can take commas and
 * colons for blanks: only brackets, texts and the words between them (numbers, true, false, null)
 * say anything. */
#ifndef DATA_JSON_ROWS_H
#define DATA_JSON_ROWS_H

#include "data/columns.h"
#include "data/text.h"

/* ---- text ----------------------------------------------------------------------------------- */

/* DT_EFORMAT: text[0..length) is not one value of JSON: "not JSON: line 1, column 7: ...". */
dt_status dt__json_check(const char *text, size_t length);

/* What is still to be read of text that was checked. */
struct dt__json {
    const char *at, *end;
};

/* The next character that says something; 0 at the end. */
char dt__json_peek(struct dt__json *json);
/* Passes a value, or a name, over. */
void dt__json_skip(struct dt__json *json);
/* Reads a text, which lies where it stood or in `scratch`, until that is used again. DT_EMEMORY. */
dt_status dt__json_read_string(struct dt__json *json, struct dt_text *scratch,
                               struct dt__cell *out);
/* The values of some names of an object, each a cursor over that value alone, or {NULL, NULL}
 * without one. DT_EFORMAT: the value is no object ("expected a JSON object"), or has one of the
 * names twice. */
dt_status dt__json_members(struct dt__json object, const char *const *names, size_t count,
                           struct dt__json *out);

/* ---- rows ----------------------------------------------------------------------------------- */

/* Reads rows of columns, which others may read by at the same time. */
struct dt__json_rows {
    const struct dt__columns *columns; /* without items: numbers that have no names */
    bool exact;                        /* they are the model's features, one by one */
    bool *seen; /* (columns) names of the object under way; NULL: names tell no columns apart */
    uint32_t *words; /* (columns) what a row's values say */
    struct dt_text scratch;
};

/* Columns outlive the rows. */
dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact);
void dt__json_rows_free(struct dt__json_rows *rows);

/* Reads values into the words of `count` columns from `column` on: the one at the cursor, or those
 * of the list there and of the lists in it. DT_EFORMAT: more, or fewer. */
dt_status dt__json_values(struct dt__json_rows *rows, struct dt__json *json, size_t column,
                          size_t count);
/* Reads the next `columns` values, whatever lists they stand in, of which there are so many. */
dt_status dt__json_flat_row(struct dt__json_rows *rows, struct dt__json *json, struct dt__row *out);
/* Reads a row: a list of the columns' values, nested as deep as a picture's shape asks for, or the
 * value of the only one; an object {"carat": 0.5, "cut": "Ideal"} by their names; or {"input":
 * LIST}. The cursor stands behind the row whatever comes of it. DT_EFORMAT: "item 1 (cut): ...",
 * "column 'cut' is missing", ... */
dt_status dt__json_row(struct dt__json_rows *rows, struct dt__json *json, struct dt__row *out);

#endif
