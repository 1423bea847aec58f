/* Records of CSV (RFC 4180): their separator and their cells. */
#ifndef TEXT_CSV_RECORD_H
#define TEXT_CSV_RECORD_H

#include "text/text.h"

/* Finds the separator of a record for `key` (data.separator). With auto it is the most frequent of
 * comma, semicolon, tab and bar outside quotes or, with `blanks`, runs of blanks. If there is
 * another separator, decimal commas do not count: with `decimals` (data.decimal), all commas; else
 * the commas of a record in which each is between digits, and no two follow each other without
 * another separator (1,5;2,5). DT_EUSAGE: data.separator is not valid; DT_EFORMAT: lines end in
 * carriage returns. */
dt_status dt__csv_separator(const char *key, bool decimals, const char *record, size_t length,
                            bool blanks, char *out);

/* Returns true if a character ends a cell. The separator ' ' means runs of blanks and tabs. */
static inline bool dt__csv_ends_cell(char c, char separator)
{
    return c == separator || (c == '\t' && separator == ' ');
}

/* Returns the start of the cell after the separator at p; NULL: the record ends there. */
static inline char *dt__csv_pass(char *p, char *end, char separator)
{
    if (separator != ' ') return p < end ? p + 1 : NULL;
    while (p < end && dt__csv_ends_cell(*p, separator))
        p++;
    return p < end ? p : NULL;
}

/* Takes the next cell from *text: removes its quotes in place, and moves *text past the separator
 * or, after the last cell, to NULL. If the separator is ' ', runs of blanks may also start and end
 * the record. DT_EFORMAT: there is text after a closing quote. */
dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out);

/* Adds the cells of a record to a list, without the blanks around them. The record is unchanged.
 * DT_EFORMAT, DT_EMEMORY. */
dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out);

#endif
