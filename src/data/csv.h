/* Rows of CSV (RFC 4180): for files and for rows to predict. */
#ifndef DATA_CSV_H
#define DATA_CSV_H

#include "data/text.h"

/* What a column of a file is: a column of struct dt__columns, counted from 0, or one of these.
 * Behind the first label others count down. */
enum { DT__ROLE_IGNORE = -1, DT__ROLE_WEIGHT = -2, DT__ROLE_LABEL = -3 };

/* Takes the next cell from *text, quotes undone in place, and moves *text behind its separator, or
 * to NULL behind the last cell. DT_EFORMAT: text behind a closing quote. */
dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out);

/* Parses one record by parser->file's roles into parser->row, label and weight. Columns in messages
 * count from 0, as in data.label. DT_EFORMAT: too few or too many cells, or a cell is wrong. */
extern const struct dt__grammar dt__csv_grammar;

/* The character that data.separator says; auto: the one of comma, semicolon, tab and bar that the
 * record has most often outside of quotes. DT_EUSAGE. */
dt_status dt__csv_separator(const struct dt_config *config, const char *record, size_t length,
                            char *out);
/* All cells of a record, as a list; the record is left as it is. */
dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out);

/* The role of each column by data.label, data.weight and data.ignore, given the cells of the first
 * row, and whether they are names; *features: how many are features. DT_EMISMATCH: no such
 * column. */
dt_status dt__csv_roles(const struct dt_config *config, const struct dt__names *cells, bool header,
                        int32_t *roles, size_t *features);
/* The role of each column by names that are known: of the columns (all have one), of the labels and
 * of the weight (NULL: there is none). *out_header false, with DT_OK: the cells name no columns.
 * DT_EMISMATCH: they do, but not all; the message lists what is missing. */
dt_status dt__csv_roles_by_name(const struct dt__columns *columns, const struct dt__names *labels,
                                const char *weight, const struct dt__names *cells, int32_t *roles,
                                bool *out_header);
/* Whether cells name columns: no feature among them is a number. */
bool dt__csv_is_header(const struct dt__names *cells, const int32_t *roles);

#endif
