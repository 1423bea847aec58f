/* `dtrain inspect`: a summary of a table, column by column, which a user reads before the first
 * run. For files up to about 100 MB it is exact. For a larger file it covers only the first rows,
 * and says how many. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"
#include "data/csv_header.h"
#include "data/formats.h"
#include "data/statistics.h"
#include "text/csv_record.h"
#include "text/input.h"

enum {
    MOST_DISTINCT = 100000,
    LEAST_NAMES = 100, /* with fewer values, all may differ by chance */
    ODD_FRACTION = 10, /* up to 1 text for this many numbers is a misprint, not a name */
    MOST_CLASSES = 20, /* whole numbers with more distinct values are amounts */
    SOME_POINTS = 20,  /* with fewer numbers, all may have three decimals by chance */
    SHOWN_VALUES = 3,
    VALUE_WIDTH = 12,
    NAME_WIDTH = 24,
    NAME_BYTES = 256
};
static const uint64_t MOST_BYTES = UINT64_C(100) << 20;

struct summary {
    size_t at; /* position of the column in the file */
    int32_t role;
    char name[NAME_BYTES + 1];
    uint64_t missing, numbers, fractions, padded, texts; /* padded: numbers such as 007 */
    uint64_t infinite, kinds[DT__TEXT_KINDS];            /* texts that are infinite numbers; other
                                                          * texts, by kind */
    double least, greatest, sum, squares, last;
    bool falls;                /* some number is not above the number before it */
    struct dt__dict distinct;  /* up to MOST_DISTINCT values, without the blanks around them */
    struct dt__dict exact;     /* the texts of `distinct`, with the blanks around them */
    uint64_t counted;          /* number of values that `distinct` has counted */
    size_t trimmed;            /* number of texts in `distinct` */
    struct dt__dates dates;    /* the format of the texts that are dates */
    char odd[VALUE_WIDTH + 1]; /* the first text or, if odd_date, the date that differs */
    uint64_t odd_line;         /* line of `odd` */
    bool odd_date;             /* a date has another format than the dates before it */
    bool texts_differ;         /* if false, the only text may mean a missing value */
    uint64_t units;            /* texts such as 5 kg, EUR 5, (5) */
    uint64_t points;           /* numbers with a point */
    uint64_t thirds;           /* numbers with 1 to 3 digits before the point, and 3 after it */
    const char *type;          /* see summary_type */
    char first[SHOWN_VALUES][VALUE_WIDTH + 1];
    int shown;
};

struct table {
    const struct dt_config *config;
    struct dt__lines lines;
    struct dt__header header;
    bool whole;
    struct summary *columns, *end; /* (header.cells.count) */
    uint64_t rows, uneven;         /* uneven: rows with a different number of cells */
};

/* ---- reading -------------------------------------------------------------------------------- */

/* Copies at most `width` bytes. Does not split a character of UTF-8, and replaces control
 * characters by blanks. */
static void text_copy(const char *from, size_t length, size_t width, char *out)
{
    size_t n = length < width ? length : width;
    while (n && n < length && ((unsigned char)from[n] & 0xC0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = iscntrl((unsigned char)from[i]) ? ' ' : from[i];
    out[n] = 0;
}

/* Copies one of the first values; ".." replaces what does not fit. */
static void value_copy(const char *text, size_t length, char out[VALUE_WIDTH + 1])
{
    bool whole = length <= VALUE_WIDTH;
    text_copy(text, length, whole ? VALUE_WIDTH : VALUE_WIDTH - 2, out);
    if (!whole) memcpy(out + strlen(out), "..", 3);
}

/* Returns true if a text is one number with a few letters or signs around it, which may be a unit.
 * Returns false for texts such as n7, which are names. */
static bool has_unit(const char *text, size_t length)
{
    enum { MOST_LETTERS = 6 };
    size_t begin = 0, digits = 0;
    while (begin < length && !isdigit((unsigned char)text[begin]))
        begin++;
    size_t end = begin;
    for (; end < length && (isdigit((unsigned char)text[end]) || strchr(".,", text[end])); end++)
        digits += isdigit((unsigned char)text[end]) != 0;
    for (size_t i = end; i < length; i++)
        if (isdigit((unsigned char)text[i])) return false;
    const bool name = begin > 0 && isalpha((unsigned char)text[begin - 1]);
    return digits && !name && begin + (length - end) <= MOST_LETTERS;
}

/* Adds a value to `distinct` and, if it is a text, also to `exact`, with the blanks around it. */
static dt_status distinct_add(struct summary *summary, const struct dt__cell *cell,
                              enum dt__number kind)
{
    const size_t before = summary->distinct.count;
    const char *text = cell->text;
    size_t length = cell->length;
    uint32_t number;
    dt__text_trim(&text, &length);
    DT_TRY(dt__dict_add(&summary->distinct, text, length, &number));
    summary->counted++;
    if (kind != DT__NUMBER_BAD) return DT_OK;
    summary->trimmed += summary->distinct.count - before;
    return dt__dict_add(&summary->exact, cell->text, cell->length, &number);
}

static dt_status summary_add(struct summary *summary, const struct dt__cell *cell, uint64_t line)
{
    double value;
    uint32_t number;
    if (dt__text_is_missing(cell->text, cell->length)) {
        summary->missing++;
        return DT_OK;
    }
    const enum dt__number kind = dt__number_parse(cell->text, cell->length, &value);
    if (summary->distinct.count < MOST_DISTINCT) DT_TRY(distinct_add(summary, cell, kind));
    if (summary->shown < SHOWN_VALUES)
        value_copy(cell->text, cell->length, summary->first[summary->shown++]);
    if (kind != DT__NUMBER_GOOD) {
        const bool first = !summary->texts++, read = !summary->odd_date;
        const enum dt__text_kind text = dt__text_kind(cell->text, cell->length);
        summary->infinite += kind == DT__NUMBER_NOT_FINITE;
        summary->kinds[text] += kind != DT__NUMBER_NOT_FINITE;
        summary->units += text == DT__TEXT_PLAIN && has_unit(cell->text, cell->length);
        if (text == DT__TEXT_DATE && read)
            summary->odd_date =
                dt__dates_read(&summary->dates, true, cell->text, cell->length, &number);
        char shown[VALUE_WIDTH + 1];
        const bool odd = first || (read && summary->odd_date);
        value_copy(cell->text, cell->length, shown);
        summary->texts_differ |= !first && strcmp(shown, summary->odd) != 0;
        if (odd) {
            memcpy(summary->odd, shown, sizeof shown);
            summary->odd_line = line;
        }
        return DT_OK;
    }
    if (!summary->numbers++)
        summary->least = summary->greatest = value;
    else
        summary->falls |= value <= summary->last;
    summary->last = value;
    summary->least = fmin(summary->least, value);
    summary->greatest = fmax(summary->greatest, value);
    summary->sum += value;
    summary->squares += value * value;
    summary->fractions += value != rint(value);
    const char *point = memchr(cell->text, '.', cell->length);
    summary->points += point != NULL;
    summary->thirds += point && cell->text + cell->length - point == 4 && point - cell->text <= 3 &&
                       *cell->text != '0';
    summary->padded +=
        cell->length > 1 && *cell->text == '0' && isdigit((unsigned char)cell->text[1]);
    return DT_OK;
}

/* Interprets the first row as in training, and prepares the columns. */
static dt_status table_begin(struct table *table, const char *record, size_t length)
{
    struct dt__header *header = &table->header;
    struct dt__names *cells = &header->cells;
    struct dt_config config = *table->config;
    config.model.task = DT_TASK_REGRESS; /* several labels are allowed */
    DT_TRY(dt__header_parse(header, &config, &table->lines, record, length, true));
    DT_TRY(dt__alloc(cells->count, sizeof *table->columns, "columns", &table->columns));
    table->end = table->columns + cells->count;
    DT_TRY(dt__header_decide(header, &config, &table->lines));
    for (struct summary *column = table->columns; column < table->end; column++) {
        const size_t i = column->at = (size_t)(column - table->columns);
        column->role = header->roles[i];
        if (header->names)
            text_copy(cells->items[i], strlen(cells->items[i]), NAME_BYTES, column->name);
        else
            snprintf(column->name, sizeof column->name, "%zu", i);
    }
    return dt__header_mark_categories(header, &config, false);
}

static dt_status table_add(struct table *table, char *record, size_t length)
{
    struct summary *column = table->columns;
    struct dt__cell cell;
    for (char *text = record; text; column++) {
        DT_TRY(dt__csv_cell(&text, record + length, table->header.separator, &cell));
        if (column < table->end) DT_TRY(summary_add(column, &cell, table->lines.line));
    }
    table->uneven += column != table->end;
    table->rows++;
    return DT_OK;
}

static dt_status table_read(struct table *table)
{
    struct dt__lines *lines = &table->lines;
    char *record;
    size_t length;
    for (uint64_t bytes = 0; !table->rows || bytes <= MOST_BYTES; bytes += length + 1) {
        const bool first = !table->columns;
        DT_TRY(dt__lines_next(lines, true, &record, &length));
        table->whole = !record;
        if (!record) return DT_OK;
        if (!length) continue;
        const dt_status status =
            first ? table_begin(table, record, length) : table_add(table, record, length);
        if (status) return dt_fail_prefix(status, "%s:%" PRIu64 ": ", lines->name, lines->line);
        if (first) dt__lines_release(lines, !table->header.names);
    }
    return DT_OK;
}

/* Takes as label the last column that has values, because Excel may write empty columns after
 * it. */
static void label_choose(struct table *table)
{
    struct summary *last = table->end - 1, *label = last;
    while (label > table->columns && !label->numbers && !label->texts)
        label--;
    if (dt__config_is_given(table->config, "data.label") || label->role < 0) return;
    last->role = label->role;
    label->role = DT__ROLE_LABEL;
}

/* Returns the type of a column, as the output names it. `decimals`: another column has decimal
 * commas. */
static const char *summary_type(const struct summary *column, bool insisted, bool decimals)
{
    const uint64_t distinct = column->distinct.count, counted = column->counted;
    const bool whole = !column->fractions && !column->texts && !column->missing;
    const bool differ = whole && counted > LEAST_NAMES && distinct == counted;
    const bool counts =
        !column->falls || column->greatest - column->least + 1 == (double)column->numbers;
    const uint64_t *kinds = column->kinds, texts = column->texts;
    const uint64_t commas = kinds[DT__TEXT_COMMA] + kinds[DT__TEXT_COMMA_OR_UNIT];
    const uint64_t most =
        texts - texts / ODD_FRACTION; /* the other texts may mean missing values */
    if (!column->numbers && !texts) return "empty";
    if (insisted) return "category";
    if (texts && kinds[DT__TEXT_DATE] == texts) {
        struct dt__dates dates = column->dates;
        return column->odd_date || !dt__dates_decide(&dates) ? "odd date" : "date";
    }
    const bool decimal = kinds[DT__TEXT_COMMA] || (decimals && !column->numbers);
    if (texts && commas >= most) return decimal ? "comma" : "one comma";
    const uint64_t units = distinct > MOST_CLASSES ? column->units : 0; /* fewer may be names */
    if (texts && kinds[DT__TEXT_UNIT] + commas + units >= most) return "not plain";
    if (texts && column->infinite == texts) return "not finite";
    if (texts && column->numbers) {
        const bool mark = !column->texts_differ && distinct > MOST_CLASSES;
        if (texts <= column->numbers / ODD_FRACTION || mark) return "odd number";
        return counted > LEAST_NAMES && distinct > counted / 2 ? "identifier" : "mixed";
    }
    /* Whole numbers are identifiers if they rise or number the rows; texts are, if nearly all
     * differ. */
    if (differ) return counts ? "identifier" : "unique";
    if (texts && counted > LEAST_NAMES && distinct > counted / 2) return "identifier";
    if (texts) return "category";
    return column->fractions ? "number" : column->padded ? "padded" : "integer";
}

/* Decides the types. A comma that may separate thousands is taken for a decimal comma if another
 * column has unmistakable decimal commas in at least half of its texts. */
static void types_decide(struct table *table)
{
    bool decimals = false;
    for (struct summary *c = table->columns; c < table->end; c++)
        decimals |= c->kinds[DT__TEXT_COMMA] && 2 * c->kinds[DT__TEXT_COMMA] >= c->texts;
    for (struct summary *c = table->columns; c < table->end; c++)
        c->type = summary_type(c, table->header.marks[c->at], decimals);
}

/* ---- printing ------------------------------------------------------------------------------- */

/* Returns true if some numbers are in a notation that is not supported. Statistics of only the
 * other numbers would be misleading. */
static bool summary_misses_numbers(const struct summary *column)
{
    return column->infinite || column->kinds[DT__TEXT_UNIT] || column->kinds[DT__TEXT_COMMA] ||
           column->kinds[DT__TEXT_COMMA_OR_UNIT];
}

/* Returns the role of a column, as the output names it. */
static const char *column_role(const struct summary *column)
{
    return column->role <= DT__ROLE_LABEL    ? "label"
           : column->role == DT__ROLE_WEIGHT ? "weight"
           : column->role == DT__ROLE_GROUP  ? "group"
           : column->role == DT__ROLE_IGNORE ? "ignored"
                                             : "feature";
}

static void summary_print(const struct summary *column, FILE *out)
{
    char distinct[24];
    snprintf(distinct, sizeof distinct, "%zu%s", column->distinct.count,
             column->distinct.count == MOST_DISTINCT ? "+" : "");
    char name[NAME_WIDTH + 1];
    text_copy(column->name, strlen(column->name), NAME_WIDTH, name);
    if (!*name) snprintf(name, sizeof name, "(%zu)", column->at);
    int bytes = NAME_WIDTH; /* bytes of the name's first NAME_WIDTH characters */
    for (const char *c = name; *c; c++)
        bytes += !dt__begins_character(*c);
    fprintf(out, "%-*s %-7s %-10s %8" PRIu64 " %8s ", bytes, name, column_role(column),
            column->type, column->missing, distinct);
    if (column->numbers && !summary_misses_numbers(column))
        fprintf(out, "%11.5g %11.5g %11.5g  ", column->least, column->sum / (double)column->numbers,
                column->greatest);
    else
        fprintf(out, "%11s %11s %11s  ", "", "", "");
    for (int i = 0; i < column->shown; i++)
        fprintf(out, "%s%s", i ? " | " : "", column->first[i]);
    fprintf(out, "\n");
}

/* Returns the types of columns to ignore, as a list for dt__config_choice_index. */
static const char *to_ignore(const struct table *table)
{
    return table->config->data.dates == DT_DATES_ERROR ? "date|odd date|identifier|empty"
                                                       : "odd date|identifier|empty";
}

/* Prints a column as data.ignore takes it:
 *
 * - its name, unless the name is empty, cannot be in a list or in a line of INI, or is also that of
 *   an earlier column; then its position, from 0;
 * - its position from the end, as -1, if the name is a number, which would be read as a position,
 *   or if the position from the start is a name.
 *
 * Returns false if it printed a position from the start. */
static bool print_column(const struct table *table, const struct summary *column, FILE *out)
{
    const struct dt__header *header = &table->header;
    const char *name = column->name;
    size_t first = column->at, other;
    char number[24];
    snprintf(number, sizeof number, "%zu", column->at);
    dt__header_has(header, header->cells.items[column->at], &first);
    const bool from_the_end = header->names && (dt__text_is_number(name, strlen(name)) ||
                                                dt__header_has(header, number, &other));
    const bool named =
        *name && first == column->at && !strpbrk(name, ",;#\"") && strlen(name) < NAME_BYTES;
    if (from_the_end)
        fprintf(out, "-%zu", header->cells.count - column->at);
    else
        fprintf(out, "%s", named ? name : number);
    return from_the_end || named;
}

/* Prints, after `key`, a list of the columns that have the role, and of the features that have one
 * of the types; nothing if there are none. Comments, and the list of decimal commas, also include
 * labels. */
static void print_list(const struct table *table, const char *key, const char *why,
                       const char *role, const char *types, FILE *out)
{
    bool any = false, named = true;
    const bool commas = !strcmp(types, "comma");
    const bool labels =
        (*key == ';' || commas) && dt__config_choice_index("unique|padded|date", types) < 0;
    for (const struct summary *column = table->columns; column < table->end; column++) {
        const bool feature = column->role >= 0 || (labels && column->role <= DT__ROLE_LABEL);
        const char *type = column->type;
        if (commas && !strcmp(type, "not plain") && column->kinds[DT__TEXT_COMMA]) type = "comma";
        if (strcmp(column_role(column), role) != 0 &&
            !(feature && dt__config_choice_index(types, type) >= 0))
            continue;
        fprintf(out, "%s", any ? "," : key);
        named &= print_column(table, column, out);
        any = true;
    }
    if (any)
        fprintf(out, "%s%s%s\n", *why ? "   ; " : "", why,
                *why && !named ? "; numbers are places of columns, from 0 on" : "");
}

/* Prints, for each column, which texts prevent it from being a column of numbers or dates. */
static void print_odd(const struct table *table, FILE *out)
{
    for (const struct summary *column = table->columns; column < table->end; column++) {
        const char *type = column->type, *name = column->name;
        if (column->role < 0 && column->role != DT__ROLE_LABEL) continue;
        if (column->exact.count > column->trimmed)
            fprintf(out,
                    "; %s: %zu values differ from others in the blanks around them alone: they are "
                    "the same texts\n",
                    name, column->exact.count - column->trimmed);
        if (!column->texts && column->points > SOME_POINTS && column->points < column->numbers &&
            column->thirds == column->points)
            fprintf(out,
                    "; %s: each point has three digits after it: if points separate "
                    "thousands, leave them out\n",
                    name);
        if (!strcmp(type, "odd number"))
            fprintf(out,
                    "; %s: %" PRIu64 " of %" PRIu64 " values are no numbers, the first is '%s' in "
                    "line %" PRIu64 ": write numbers or NA there (or, if all are names, set "
                    "categories = %s)\n",
                    name, column->texts, column->texts + column->numbers, column->odd,
                    column->odd_line, name);
        else if (!strcmp(type, "comma") && column->fractions)
            fprintf(out, "; %s: commas and points: if points separate thousands, leave them out\n",
                    name);
        else if (!strcmp(type, "odd date") && column->odd_date)
            fprintf(out,
                    "; %s: '%s' in line %" PRIu64 " is no date like those before it: write "
                    "2021-03-04; until then the column is left out\n",
                    name, column->odd, column->odd_line);
        else if (!strcmp(type, "odd date"))
            fprintf(out,
                    "; %s: no row shows whether day or month comes first: write 2021-03-04; until "
                    "then the column is left out\n",
                    name);
    }
}

/* Returns the distance of the farthest value from the mean, in deviations. */
static double summary_farthest(const struct summary *column)
{
    const double n = (double)column->numbers, mean = column->sum / n;
    const double variance = column->squares / n - mean * mean;
    return n > 0 && variance > 0
               ? fmax(column->greatest - mean, mean - column->least) / sqrt(variance)
               : 0;
}

/* Prints the task that suits the label or labels. */
static void print_task(const struct table *table, FILE *out)
{
    bool numbers = true, amounts = false, flags = true, whole = true;
    size_t labels = 0, kinds = 0;
    for (const struct summary *label = table->columns; label < table->end; label++) {
        if (label->role > DT__ROLE_LABEL) continue;
        labels++;
        kinds = label->distinct.count;
        const bool commas = !strcmp(label->type, "comma");
        numbers &=
            commas || (label->numbers && !label->texts) || !strcmp(label->type, "odd number");
        amounts |= commas || label->fractions || label->greatest >= 1000 || label->least < -1 ||
                   (label->least != 0 && label->least != 1 && kinds > 2) || kinds > MOST_CLASSES;
        whole &= !label->fractions && !commas && label->least >= 0;
        flags &= !label->fractions && label->least >= 0 && label->greatest <= 1;
        if (label->missing == table->rows)
            fprintf(out, "; no row has a label here: data.label=NAME is another column\n");
        else if (label->missing && !dt__config_is_given(table->config, "data.unlabelled"))
            fprintf(out, "unlabelled = skip   ; %" PRIu64 " rows have no label\n", label->missing);
    }
    if (!*table->config->data.eval && !dt__config_is_given(table->config, "data.eval_fraction"))
        fprintf(out, "eval_fraction = 0.2   ; besides, test_fraction = 0.2 takes rows that choose "
                     "nothing: the score of new rows\n");
    if (labels > 1)
        fprintf(out, "\n[model]\ntask = %s\n", flags && numbers ? "multilabel" : "regress");
    else if (numbers && amounts)
        fprintf(out, "\n[model]\ntask = regress%s\n",
                whole
                    ? "   ; or classify, if each number is a class; for counts, train.loss=poisson"
                    : "");
    else if (numbers && kinds > 2)
        fprintf(out, "\n[model]\ntask = classify   ; if each number is a class; if numbers are "
                     "counted or measured: regress (for counts also train.loss=poisson)\n");
}

/* Prints advice about columns of certain types. */
static void print_notices(const struct table *table, FILE *out)
{
    static const struct {
        const char *type, *key, *advice;
    } NOTICES[] = {
        {"unique", "; whole numbers, all different: ", "ignore those that only name rows"},
        {"date", "; dates and times become numbers (data.dates): ", ""},
        {"one comma", "; numbers with three digits after a comma: ",
         "decimal = , if it is the decimal point; if it separates thousands, leave it out"},
        {"not plain", "; numbers with a sign or unit (%, $, kg) or marks between thousands: ",
         "remove these from the numbers, if they are amounts"},
        {"padded", "; numbers with zeros in front: ",
         "if they are codes, data.categories keeps them as texts"},
        {"not finite", "; inf or beyond 3e38 in ", "leave such rows out, or put NA there"},
    };
    for (size_t i = 0; i < sizeof NOTICES / sizeof *NOTICES; i++)
        if (strcmp(NOTICES[i].type, "date") != 0 || table->config->data.dates == DT_DATES_AUTO)
            print_list(table, NOTICES[i].key, NOTICES[i].advice, "", NOTICES[i].type, out);
}

static dt_status print_advice(const struct table *table, FILE *out)
{
    const struct dt_config *config = table->config;
    uint64_t missing = 0;
    double widest = 0, farthest = 0;
    const char *far = "";
    for (const struct summary *column = table->columns; column < table->end; column++) {
        if (column->role < 0 || dt__config_choice_index(to_ignore(table), column->type) >= 0)
            continue;
        missing += column->missing;
        if (summary_misses_numbers(column)) continue;
        if (column->numbers)
            widest = fmax(widest, fmax(fabs(column->least), fabs(column->greatest)));
        const double apart = summary_farthest(column);
        if (apart <= farthest) continue;
        far = column->name;
        farthest = apart;
    }
    fprintf(out, "\n[data]\ntrain = %s\n", table->lines.name);
    print_list(table, "label = ",
               dt__config_is_given(config, "data.label") ? ""
                                                         : "the column to predict: is it this one?",
               "label", "", out);
    print_list(
        table, "ignore = ",
        "left out because of the type in the table above: in an identifier (nearly) all "
        "values differ, an empty column has none. To use a column, remove its name from this "
        "line",
        "ignored", to_ignore(table), out);
    print_list(table, "weight = ", "", "weight", "", out);
    DT_TRY(dt__config_print_given(config, "data", "train|label|ignore|weight", out));
    if (!dt__config_is_given(config, "data.decimal"))
        print_list(table, "decimal = ,   ; a comma is the decimal point in ", "", "", "comma", out);
    if (!dt__config_is_given(config, "data.categories"))
        print_list(table, "categories = ", "numbers and texts: all as texts", "", "mixed", out);
    print_odd(table, out);
    if (missing && !dt__config_is_given(config, "data.missing"))
        fprintf(out,
                "missing = mean   ; a gap among numbers is filled with the column's mean, a gap "
                "among texts is a separate category; missing = flag also adds a column that "
                "marks gaps of numbers\n");
    print_notices(table, out);
    print_task(table, out);
    fprintf(out, "\n; with these lines in my.ini: dtrain my.ini run.dir=runs/first\n");
    if (farthest > DT__FAR_DEVIATIONS)
        fprintf(out,
                "; all features are normalised: %s has a value %.0f deviations from its mean\n",
                far, farthest);
    else if (widest > 10)
        fprintf(out, "; all features are normalised, as some are large (up to %g)\n", widest);
    return DT_OK;
}

dt_status dt__data_inspect(const struct dt_config *config, const char *path, FILE *out, FILE *lines)
{
    struct table table = {.config = config};
    int format;
    dt_status status;
    DT_TRY(dt__format_detect(path, &format)); /* fails for a file that is not a table */
    DT_TRY(dt__text_open(&table.lines, path));
    dt__lines_decimal(&table.lines, config->data.decimal == DT_DECIMAL_COMMA,
                      config->data.separator);
    DT_GUARD(table_read(&table));
    if (!table.columns) DT_GUARD(dt_fail(DT_EFORMAT, "%s: the file has no rows", path));
    label_choose(&table);
    types_decide(&table);
    fprintf(out, "%s: CSV, %s%" PRIu64 " rows, %zu columns%s%s\n", path,
            table.whole ? "" : "of the first ", table.rows, table.header.cells.count,
            table.header.separator == ' ' ? " between blanks" : "",
            table.header.names ? "" : ", no header");
    if (!table.rows) fprintf(out, "no rows after the header\n");
    if (table.uneven)
        fprintf(out, "rows with another number of columns: %" PRIu64 "\n", table.uneven);
    fprintf(out, "\n%-*s %-7s %-10s %8s %8s %11s %11s %11s  %s\n", NAME_WIDTH, "column", "role",
            "type", "missing", "distinct", "minimum", "mean", "maximum", "first values");
    for (const struct summary *column = table.columns; column < table.end; column++)
        summary_print(column, out);
    status = print_advice(&table, lines);
done:
    for (struct summary *column = table.columns; column < table.end; column++)
        dt__dict_free(&column->distinct), dt__dict_free(&column->exact);
    dt_free(table.columns);
    dt__header_free(&table.header);
    dt__lines_close(&table.lines);
    return status;
}

bool dt__data_is_table(const char *path)
{
    static const char *const parts[] = {".csv", ".tsv", ".txt", ".dat"};
    int format;
    if (dt__path_is_dir(path) || !dt__path_exists(path)) return false;
    if (dt__path_is_pipe(path)) return true;
    const dt_status status = dt__format_detect(path, &format);
    if (status) return status == DT_EFORMAT;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(path, parts[i])) return dt__formats[format]->sparsity == DT__CATEGORIES;
    return false;
}
