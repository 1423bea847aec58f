/* Records of CSV (RFC 4180): their separator and their cells. */
#ifndef TEXT_CSV_RECORD_H
#define TEXT_CSV_RECORD_H

#include "text/text.h"

/* Finds the separator for `key` (data.separator). With auto: whichever of comma, semicolon, tab and
 * bar the record has most often outside quotes or, with `blanks`, runs of blanks. Decimal commas do
 * not count if another separator exists: with data.decimal (`decimals`) all of them, else commas
 * that are between digits, at most one between two of the other separators (1,5;2,5). DT_EUSAGE:
 * data.separator is not valid; DT_EFORMAT: lines end in carriage returns. */
dt_status dt__csv_separator(const char *key, bool decimals, const char *record, size_t length,
                            bool blanks, char *out);

/* Returns true if a character ends a cell. The separator ' ' is a run of blanks and tabs. */
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

/* Takes the next cell from *text, undoing quotes in place, and moves *text past its separator, or
 * to NULL after the last cell. The separator ' ' is a run of blanks and tabs, also at the start and
 * the end of a record. DT_EFORMAT: text after a closing quote. */
dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out);

/* Adds the cells of a record, without the blanks around them; the record is unchanged. */
dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out);

#endif
