/* Records of CSV: finds the separator of their cells, and cuts the cells. Source: RFC 4180, section
 * 2. Other separators, runs of blanks, and blanks before a quote are also accepted. */
#include "text/csv_record.h"

#include <ctype.h>
#include <string.h>

/* ---- the separator --------------------------------------------------------------------------- */

static const char SEPARATORS[] = ",;\t|"; /* candidates of data.separator=auto */

/* Returns true for a number (perhaps with a decimal comma), a missing value, or a text in
 * quotes. */
static bool word_is_plain(const char *word, size_t length)
{
    const enum dt__text_kind kind = dt__text_kind(word, length);
    if (*word == ',' || word[length - 1] == ',') return false;
    return *word == '"' || kind == DT__TEXT_COMMA || kind == DT__TEXT_COMMA_OR_UNIT ||
           dt__text_is_number(word, length) || dt__text_is_missing(word, length);
}

/* Returns true if runs of blanks separate the cells of a record. If the record has another
 * separator, all its words must be plain, most gaps between them must be blanks rather than tabs,
 * and at least one gap must have two blanks. (Aligned tables may have one tab before a last text.
 * Between tabs or commas, a cell may be 1 250 or a list of numbers, with single blanks.) */
static bool blanks_separate(const char *record, size_t length, bool has_separator)
{
    const char *const end = record + length, *word;
    size_t blanks = 0, tabs = 0;
    bool plain = true, wide = false, tab = false;
    for (const char *p = record, *gap; true; plain &= word_is_plain(word, (size_t)(p - word))) {
        for (gap = p, tab = false; p < end && (*p == ' ' || *p == '\t'); p++)
            tab |= *p == '\t';
        if (p == end) break;
        blanks += gap > record && !tab;
        tabs += gap > record && tab;
        wide |= gap > record && !tab && p > gap + 1;
        bool open = false;
        for (word = p; p < end && (open || (*p != ' ' && *p != '\t')); p++)
            open ^= *p == '"';
    }
    return blanks && (!has_separator || (plain && blanks > tabs && wide));
}

dt_status dt__csv_separator(const char *key, bool decimals, const char *record, size_t length,
                            bool blanks, char *out)
{
    size_t counts[sizeof SEPARATORS] = {0}, best = 0;
    bool open = false, comma = false, decimal = true, returns = false;
    if (!strcmp(key, "tab") || !strcmp(key, "\\t")) key = "\t";
    if (!strcmp(key, "space")) key = " ";
    const bool given = strlen(key) == 1 && !strchr("\"\r\n.", *key);
    if (!given && strcmp(key, "auto"))
        return dt_fail(DT_EUSAGE,
                       "data.separator=%s: expected auto, tab, space or one character, not a quote "
                       "or a point",
                       key);
    for (size_t i = 0; i < length; i++) {
        const char before = i ? record[i - 1] : 0, after = i + 1 < length ? record[i + 1] : 0;
        const char *found = strchr(SEPARATORS, record[i]);
        open ^= record[i] == '"';
        returns |= record[i] == '\r' && !open && after && after != '\r';
        if (open || !found) continue;
        counts[found - SEPARATORS]++;
        if (record[i] == ',')
            decimal &= !comma && isdigit((unsigned char)before) && isdigit((unsigned char)after);
        comma = record[i] == ',';
    }
    if (returns)
        return dt_fail(DT_EFORMAT, "line ends are single carriage returns, as old Macs write them: "
                                   "tr '\\r' '\\n' <FILE >NEW makes lines of them");
    const bool commas = counts[0] && !decimals;
    if (decimal || !commas) counts[0] = 0;
    for (size_t i = 1; SEPARATORS[i]; i++)
        if (counts[i] > counts[best]) best = i;
    if (blanks) blanks = blanks_separate(record, length, commas || counts[best]);
    *out = given ? *key : blanks ? ' ' : SEPARATORS[best];
    return DT_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static char *separator_next(char *cell, char *end, char separator)
{
    char *p = cell < end && separator != ' ' ? memchr(cell, separator, (size_t)(end - cell)) : NULL;
    if (separator != ' ') return p ? p : end;
    for (p = cell; p < end && !dt__csv_ends_cell(*p, separator);)
        p++;
    return p;
}

dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out)
{
    char *cell = *text, *stop = cell, *quote = cell;
    const bool runs = separator == ' ';
    while (quote < end && (*quote == ' ' || *quote == '\t') && (runs || *quote != separator))
        quote++;
    if (runs) cell = quote;             /* blanks at the start have no cell before them */
    if (quote < end && *quote == '"') { /* the quote closes: a record has an even number of
                                         * quotes */
        char *to = quote + 1, *from = quote + 1;
        while (from < end && (*from != '"' || (from + 1 < end && from[1] == '"'))) {
            from += *from == '"';
            *to++ = *from++;
        }
        *out = (struct dt__cell){quote + 1, (size_t)(to - quote - 1)};
        stop = from < end ? from + 1 : end;
        if (stop < end && !dt__csv_ends_cell(*stop, separator))
            return dt_fail(DT_EFORMAT, "text after a closing quote");
    } else {
        stop = separator_next(cell, end, separator);
        *out = (struct dt__cell){cell, (size_t)(stop - cell)};
    }
    *text = dt__csv_pass(stop, end, separator);
    return DT_OK;
}

dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out)
{
    char *copy, *text;
    struct dt__cell cell;
    dt_status status = DT_OK;
    DT_TRY(dt__alloc(length + 1, 1, "row", &copy));
    memcpy(copy, record, length);
    for (text = copy; text;) {
        DT_GUARD(dt__csv_cell(&text, copy + length, separator, &cell));
        const char *name = cell.text;
        dt__text_trim(&name, &cell.length);
        DT_GUARD(dt__names_add(out, name, cell.length));
    }
done:
    dt_free(copy);
    return status;
}
