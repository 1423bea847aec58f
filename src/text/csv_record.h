/* Records of CSV (RFC 4180): their separator and their cells. */
#ifndef TEXT_CSV_RECORD_H
#define TEXT_CSV_RECORD_H

#include "text/text.h"

/* Finds the separator that `key` (data.separator) means; auto: the one of comma, semicolon, tab and
 * bar that the record has most often outside of quotes, or, with `blanks`, runs of blanks. Decimal
 * commas are not counted where another separator is found: those of data.decimal (`decimals`), and
 * commas that are all between digits, at most one from one of the other separators to the next
 * (1,5;2,5). DT_EUSAGE: data.separator is none; DT_EFORMAT: lines end in carriage returns. */
dt_status dt__csv_separator(const char *key, bool decimals, const char *record, size_t length,
                            bool blanks, char *out);

/* Whether a character ends a cell. The separator ' ' is a run of blanks and tabs. */
static inline bool dt__csv_ends_cell(char c, char separator)
{
    return c == separator || (c == '\t' && separator == ' ');
}

/* Returns the cell after the separator at p, or NULL at the end of the record. */
static inline char *dt__csv_pass(char *p, char *end, char separator)
{
    if (separator != ' ') return p < end ? p + 1 : NULL;
    while (p < end && dt__csv_ends_cell(*p, separator))
        p++;
    return p < end ? p : NULL;
}

/* Takes the next cell from *text, quotes undone in place, and moves *text behind its separator, or
 * to NULL behind the last cell. The separator ' ' is a run of blanks and tabs, also at the start
 * and the end of a record. DT_EFORMAT: text behind a closing quote. */
dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out);

/* Adds the cells of a record, which stays as it is, without the blanks around them. */
dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out);

#endif
