/* Rows of CSV (RFC 4180): for files and for rows to predict. */
#ifndef DATA_CSV_H
#define DATA_CSV_H

#include "data/names.h"
#include "dtrain/config.h"

struct dt__cell {
    char *text;
    size_t length;
};

/* Takes the next cell from *text, quotes undone in place, and moves *text behind its comma, or to
 * NULL behind the last cell. DT_EFORMAT: text behind a closing quote. */
dt_status dt__csv_cell(char **text, char *end, struct dt__cell *out);

/* What the columns of a row are: a feature's index, DT__ROLE_LABEL or DT__ROLE_IGNORE. */
struct dt__columns {
    const int32_t *roles;
    size_t count;
    char *const *names; /* of the features, for messages; may be NULL */
};

/* Parses one record into x; *label is the label's cell if a column has that role (and label is not
 * NULL). Columns in messages count from 0, as in data.label.
 * DT_EFORMAT: too few or too many cells, a cell that is not a finite number. */
dt_status dt__csv_row(const struct dt__columns *columns, char *text, size_t length, float *x,
                      struct dt__cell *label);

/* All cells of a record, as a list; the record is left as it is. */
dt_status dt__csv_split(const char *record, size_t length, struct dt__names *out);
/* The role of each column by data.label and data.ignore, given the cells of the first row, and
 * whether they are names; *features: how many are features. DT_EMISMATCH: no such column. */
dt_status dt__csv_roles(const struct dt_config *config, const struct dt__names *cells, bool header,
                        int32_t *roles, int32_t *features);
/* Whether cells name columns: no feature among them is a number. */
bool dt__csv_is_header(const struct dt__names *cells, const int32_t *roles);

#endif
