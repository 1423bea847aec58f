/* What a table holds, column by column: what a user looks at before the first run. Exact up to some
 * 100 MB, beyond that of the first rows, and it says of how many. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/csv.h"
#include "data/number.h"
#include "data/packed.h"
#include "data/reader.h"

enum {
    MOST_DISTINCT = 100000,
    MOST_CLASSES = 20, /* whole numbers of more kinds are amounts */
    SHOWN_VALUES = 3,
    VALUE_WIDTH = 12,
    NAME_WIDTH = 24,
    NAME_BYTES = 256
};
static const uint64_t MOST_BYTES = UINT64_C(100) << 20;

struct summary {
    char name[NAME_BYTES + 1];
    uint64_t missing, numbers, fractions, texts;
    uint64_t infinite,
        kinds[DT__TEXT_KINDS]; /* of the texts: numbers that are not finite, others */
    double least, greatest, sum, squares, last;
    bool falls;               /* a number is not above the one before */
    struct dt__dict distinct; /* up to MOST_DISTINCT */
    char first[SHOWN_VALUES][VALUE_WIDTH + 1];
    int shown;
};

struct table {
    struct dt__lines lines;
    struct dt__header header;
    bool whole;
    struct summary *columns; /* (header.cells.count) */
    uint64_t rows, uneven;   /* uneven: rows with another number of cells */
};

/* ---- reading -------------------------------------------------------------------------------- */

/* At most `width` bytes, not cut within a character of UTF-8, nothing that a terminal would act
 * on. */
static void text_copy(const char *from, size_t length, size_t width, char *out)
{
    size_t n = length < width ? length : width;
    while (n && n < length && ((unsigned char)from[n] & 0xC0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = iscntrl((unsigned char)from[i]) ? ' ' : from[i];
    out[n] = 0;
}

static dt_status summary_add(struct summary *summary, const struct dt__cell *cell)
{
    double value;
    uint32_t number;
    if (dt__text_is_missing(cell->text, cell->length)) {
        summary->missing++;
        return DT_OK;
    }
    if (summary->distinct.count < MOST_DISTINCT)
        DT_TRY(dt__dict_add(&summary->distinct, cell->text, cell->length, &number));
    if (summary->shown < SHOWN_VALUES)
        text_copy(cell->text, cell->length, VALUE_WIDTH, summary->first[summary->shown++]);
    const enum dt__number kind = dt__number_parse(cell->text, cell->length, &value);
    if (kind != DT__NUMBER_GOOD) {
        summary->texts++;
        if (kind == DT__NUMBER_NOT_FINITE)
            summary->infinite++;
        else
            summary->kinds[dt__text_kind(cell->text, cell->length)]++;
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
    return DT_OK;
}

/* The first row has names if no cell of it is a number, or one is data.label. */
static dt_status table_begin(struct table *table, const struct dt_config *config,
                             const char *record, size_t length)
{
    struct dt__header *header = &table->header;
    struct dt__names *cells = &header->cells;
    DT_TRY(dt__header_parse(header, config, record, length));
    DT_TRY(dt_alloc(cells->count, sizeof *table->columns, "columns", &table->columns));
    header->names = dt__header_has_no_numbers(header);
    for (size_t i = 0; i < cells->count; i++) {
        double value;
        header->names |= !strcmp(cells->items[i], config->data.label) &&
                         dt__number_parse(cells->items[i], strlen(cells->items[i]), &value);
    }
    for (size_t i = 0; i < cells->count; i++) {
        struct summary *column = &table->columns[i];
        if (header->names)
            text_copy(cells->items[i], strlen(cells->items[i]), NAME_BYTES, column->name);
        else
            snprintf(column->name, sizeof column->name, "%zu", i);
    }
    return DT_OK;
}

static dt_status table_read(struct table *table, const struct dt_config *config)
{
    char *record;
    size_t length;
    uint64_t bytes = 0;
    for (;;) {
        if (table->rows && bytes > MOST_BYTES) return DT_OK;
        DT_TRY(dt__lines_next(&table->lines, true, &record, &length));
        if (!record) break;
        bytes += length + 1;
        if (!length) continue;
        if (!table->header.cells.count) {
            DT_TRY(table_begin(table, config, record, length));
            dt__lines_release(&table->lines, !table->header.names);
            continue;
        }
        struct dt__cell cell;
        size_t column = 0;
        for (char *text = record; text; column++) {
            dt_status status = dt__csv_cell(&text, record + length, table->header.separator, &cell);
            if (!status && column < table->header.cells.count)
                status = summary_add(&table->columns[column], &cell);
            if (status)
                return dt_fail_prefix(status, "%s:%" PRIu64 ": ", table->lines.name,
                                      table->lines.line);
        }
        table->uneven += column != table->header.cells.count;
        table->rows++;
    }
    table->whole = true;
    return DT_OK;
}

/* ---- telling -------------------------------------------------------------------------------- */

static const char *summary_type(const struct summary *column, uint64_t rows)
{
    const size_t distinct = column->distinct.count;
    const bool counts = !column->fractions && distinct == rows &&
                        (!column->falls || column->greatest - column->least + 1 == (double)rows);
    const uint64_t *kinds = column->kinds, texts = column->texts;
    const uint64_t commas = kinds[DT__TEXT_COMMA] + kinds[DT__TEXT_COMMA_OR_UNIT];
    if (!column->numbers && !texts) return "empty";
    if (texts && kinds[DT__TEXT_DATE] == texts) return "date";
    if (texts && commas == texts) return "comma";
    if (texts && kinds[DT__TEXT_UNIT] + commas == texts) return "signed";
    if (texts && column->infinite == texts) return "not finite";
    if (texts && column->numbers) return "mixed";
    /* Texts that are nearly all different, or whole numbers that rise or count the rows. */
    if (rows > 100 && (texts ? distinct > rows / 2 : counts)) return "identifier";
    if (texts) return "category";
    return column->fractions ? "number" : "integer";
}

static void summary_print(const struct summary *column, bool label, uint64_t rows, FILE *out)
{
    char distinct[24];
    snprintf(distinct, sizeof distinct, "%zu%s", column->distinct.count,
             column->distinct.count == MOST_DISTINCT ? "+" : "");
    char name[NAME_WIDTH + 1];
    text_copy(column->name, strlen(column->name), NAME_WIDTH, name);
    fprintf(out, "%-*s %-7s %-10s %8" PRIu64 " %8s ", NAME_WIDTH, name, label ? "label" : "feature",
            summary_type(column, rows), column->missing, distinct);
    if (column->numbers)
        fprintf(out, "%11.5g %11.5g %11.5g  ", column->least, column->sum / (double)column->numbers,
                column->greatest);
    else
        fprintf(out, "%11s %11s %11s  ", "", "", "");
    for (int i = 0; i < column->shown; i++)
        fprintf(out, "%s%s", i ? ", " : "", column->first[i]);
    fprintf(out, "\n");
}

/* Types of columns that are no features. */
static const char TO_IGNORE[] = "date|identifier|empty";

static bool summary_is(const struct summary *column, const char *types, uint64_t rows)
{
    return dt_config_word_index(types, summary_type(column, rows)) >= 0;
}

/* As data.ignore takes it: by number where the name is none, or would not stand in a list or in a
 * line of INI. */
static void print_column(const struct table *table, size_t column, FILE *out)
{
    const char *name = table->columns[column].name;
    if (*name && !strpbrk(name, ",;#\"") && strlen(name) < NAME_BYTES)
        fprintf(out, "%s", name);
    else
        fprintf(out, "%zu", column);
}

/* Names of the columns of these types, as a list behind a key. */
static void print_list(const struct table *table, size_t label_at, const char *key, const char *why,
                       const char *types, FILE *out)
{
    bool any = false;
    for (size_t i = 0; i < table->header.cells.count; i++) {
        const bool feature = i != label_at || strchr(key, ';'); /* comments are of all columns */
        if (!feature || !summary_is(&table->columns[i], types, table->rows)) continue;
        fprintf(out, "%s", any ? "," : key);
        print_column(table, i, out);
        any = true;
    }
    if (any) fprintf(out, "   ; %s\n", why);
}

/* Deviations of the farthest value from the mean. */
static double summary_farthest(const struct summary *column)
{
    const double n = (double)column->numbers, mean = column->sum / n;
    const double variance = column->squares / n - mean * mean;
    return n > 0 && variance > 0
               ? fmax(column->greatest - mean, mean - column->least) / sqrt(variance)
               : 0;
}

static void print_advice(const struct table *table, size_t label_at, FILE *out)
{
    const struct summary *label = &table->columns[label_at];
    uint64_t missing = 0;
    double widest = 0, farthest = 0;
    const char *far = "";
    for (size_t i = 0; i < table->header.cells.count; i++) {
        const struct summary *column = &table->columns[i];
        if (i == label_at || summary_is(column, TO_IGNORE, table->rows)) continue;
        missing += column->missing;
        if (column->numbers)
            widest = fmax(widest, fmax(fabs(column->least), fabs(column->greatest)));
        const double apart = summary_farthest(column);
        if (apart <= farthest) continue;
        far = column->name;
        farthest = apart;
    }
    const bool numbers = label->numbers && !label->texts;
    const bool values = numbers && (label->fractions || label->greatest >= 1000 ||
                                    label->least < -1 || label->distinct.count > MOST_CLASSES);
    fprintf(out, "\n[data]\ntrain = %s\nlabel = ", table->lines.name);
    if (table->header.names)
        print_column(table, label_at, out);
    else
        fprintf(out, "%zd", (ssize_t)label_at - (ssize_t)table->header.cells.count);
    fprintf(out, "   ; what is predicted: ");
    fprintf(out, "another column's name, or -1\n");
    if (label->missing)
        fprintf(out, "unlabelled = skip   ; %" PRIu64 " rows have no label\n", label->missing);
    print_list(table, label_at, "ignore = ", "no features", TO_IGNORE, out);
    print_list(table, label_at, "decimal = ,   ; commas in ", "in place of points", "comma", out);
    print_list(table, label_at, "; signs, or commas between thousands, in ", "leave them out",
               "signed", out);
    print_list(table, label_at, "; inf or beyond 3e38 in ", "leave such rows out, or put NA there",
               "not finite", out);
    print_list(table, label_at, "categories = ", "numbers and texts: all as texts", "mixed", out);
    if (missing) fprintf(out, "missing = mean   ; or flag: and a 0/1 column\n");
    fprintf(out, "eval_fraction = 0.2\n");
    if (values)
        fprintf(out, "\n[model]\ntask = regress%s\n",
                label->fractions ? "" : "   ; classify: each number is a class");
    else if (numbers && label->distinct.count > 2)
        fprintf(out, "\n[model]\ntask = classify   ; regress: the numbers are counts or amounts\n");
    fprintf(out, "\n; optimizer, rate, length and width: `dtrain options run.preset`\n"
                 "; with these lines in my.ini: dtrain my.ini run.dir=runs/first\n");
    if (farthest > DT__FAR_DEVIATIONS)
        fprintf(out, "; normalised by it, for %s has a value %.0f deviations from its mean\n", far,
                farthest);
    else if (widest > 10)
        fprintf(out, "; normalised by it, for values reach %g\n", widest);
}

dt_status dt_data_inspect(const struct dt_config *config, const char *path, FILE *out)
{
    struct table table = {0};
    size_t label = 0;
    int format;
    DT_TRY(dt__format_detect(path, &format)); /* says what a file is that is no table */
    DT_TRY(dt__lines_open(&table.lines, path));
    table.lines.commas = config->data.decimal == DT_DECIMAL_COMMA;
    dt_status status = table_read(&table, config);
    if (!status && !table.header.cells.count)
        status = dt_fail(DT_EFORMAT, "%s: the file has no rows", path);
    if (!status && dt__header_find(&table.header, "data.label", config->data.label, &label))
        status = dt_fail_prefix(DT_EMISMATCH, "%s:1: ", path);
    if (!status) {
        fprintf(out, "%s: CSV, %s%" PRIu64 " rows, %zu columns%s\n", path,
                table.whole ? "" : "of the first ", table.rows, table.header.cells.count,
                table.header.names ? "" : ", no header");
        if (!table.rows) fprintf(out, "no rows behind the header\n");
        if (table.uneven)
            fprintf(out, "%" PRIu64 " rows have another number of columns\n", table.uneven);
        fprintf(out, "\n%-*s %-7s %-10s %8s %8s %11s %11s %11s  %s\n", NAME_WIDTH, "column", "role",
                "type", "missing", "distinct", "minimum", "mean", "maximum", "first values");
        for (size_t i = 0; i < table.header.cells.count; i++)
            summary_print(&table.columns[i], i == label, table.rows, out);
        print_advice(&table, label, out);
    }
    for (size_t i = 0; table.columns && i < table.header.cells.count; i++)
        dt__dict_free(&table.columns[i].distinct);
    dt_free(table.columns);
    dt__header_free(&table.header);
    dt__lines_close(&table.lines);
    return status;
}

bool dt_data_is_table(const char *path)
{
    static const char *const parts[] = {".csv", ".tsv", ".txt", ".dat"};
    int format;
    if (dt_path_is_dir(path) || !dt_path_exists(path)) return false;
    const dt_status status = dt__format_detect(path, &format);
    if (status) return status == DT_EFORMAT;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(path, parts[i])) return dt__formats[format]->sparsity == DT__CATEGORIES;
    return false;
}
