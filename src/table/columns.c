/* The columns of a table: learned from values, then resolved. */
#include "table/columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"

enum { NAMED_FEATURES = 1 << 16, FEW_TEXTS = 100 };

/* ---- life ----------------------------------------------------------------------------------- */

dt_status dt__columns_init(struct dt__columns *columns, const struct dt_config *config,
                           size_t count)
{
    struct dt__column *items;
    DT_TRY(dt__alloc(count, sizeof *items, "columns", &items));
    for (size_t c = 0; c < count; c++)
        items[c] = (struct dt__column){.kind = DT__COLUMN_OPEN, .last = -INFINITY};
    *columns = (struct dt__columns){.items = items,
                                    .count = count,
                                    .missing = config->data.missing,
                                    .take_texts = strcmp(config->data.categories, "none") != 0,
                                    .take_dates = config->data.dates == DT_DATES_AUTO,
                                    .learning = true,
                                    .hash_trims = true,
                                    .hash_bits = (int)config->data.hash_bits};
    return DT_OK;
}

int dt__column_numbers(const struct dt_column *column, float fill[DT__DATE_NUMBERS])
{
    struct dt__dates dates;
    if (column->kind == DT_COLUMN_CATEGORY) return 0;
    if (column->kind == DT_COLUMN_NUMBER) {
        if (fill) *fill = column->fill;
        return 1;
    }
    dt__dates_parse_form(column->categories[0], &dates);
    if (fill) dt__dates_put_mean(&dates, (double)column->fill, fill);
    return dt__dates_numbers(&dates);
}

uint32_t dt__column_code(const struct dt__columns *columns, size_t at, const char *text,
                         size_t length)
{
    const struct dt__dict *dict = &columns->items[at].dict;
    const uint64_t mask = (UINT64_C(1) << columns->hash_bits) - 1;
    uint32_t number;
    if (columns->hash_bits && columns->hash_trims) dt__text_trim(&text, &length);
    if (columns->hash_bits) return (uint32_t)(dt__text_hash(text, length, at + 1) & mask);
    if (dt__dict_find_blank(dict, text, length, &number)) return number;
    return (uint32_t)dict->count; /* the code of all other texts */
}

dt_status dt__columns_of_schema(struct dt__columns *columns, const struct dt_schema *schema)
{
    const int count = schema->columns ? schema->ncolumns : schema->features;
    struct dt__columns made = {
        .count = (size_t)count, .hash_bits = schema->hash_bits, .numbers = schema->features};
    made.hash_trims = schema->hash_trims;
    dt_status status = DT_OK;
    DT_TRY(dt__alloc((size_t)count, sizeof *made.items, "columns", &made.items));
    for (int c = 0; c < count; c++) {
        struct dt_column plain = {.kind = DT_COLUMN_NUMBER, .first = c, .fill = NAN};
        const struct dt_column *from = schema->columns ? &schema->columns[c] : &plain;
        if (schema->feature_names && !schema->columns) plain.name = schema->feature_names[c];
        struct dt__column *column = &made.items[c];
        *column = (struct dt__column){
            .kind = from->kind, .first = from->first, .flag = from->flag, .fill = from->fill};
        DT_GUARD(dt__dict_add_names(&column->dict, from->categories, (size_t)from->ncategories));
        if (from->name) DT_GUARD(dt__strdup(from->name, &column->name));
        if (from->name) DT_GUARD(dt__dict_add_names(&made.names, &column->name, 1));
        if (column->kind == DT_COLUMN_DATE)
            dt__dates_parse_form(from->categories[0], &column->dates);
        if (column->kind == DT_COLUMN_CATEGORY) {
            made.entries++;
            column->blank = dt__column_code(&made, (size_t)c, "", 0);
            if (column->first < made.numbers)
                made.numbers = column->first; /* numbers and flags come before the categories */
        }
        if (column->flag)
            made.missing = DT_MISSING_FLAG;
        else if (!isnan(column->fill) && !made.missing)
            made.missing = DT_MISSING_MEAN;
    }
    *columns = made;
    return DT_OK;
done:
    dt__columns_free(&made);
    return status;
}

dt_status dt__columns_of_json(struct dt__columns *columns, const struct dt_schema *schema)
{
    if (schema->columns || schema->feature_names) return dt__columns_of_schema(columns, schema);
    *columns = (struct dt__columns){.count = (size_t)schema->features, .numbers = schema->features};
    return DT_OK;
}

void dt__columns_free(struct dt__columns *columns)
{
    for (size_t c = 0; columns->items && c < columns->count; c++) {
        dt_free(columns->items[c].name);
        dt__dict_free(&columns->items[c].dict);
        dt_free(columns->items[c].map);
    }
    dt_free(columns->items);
    dt__dict_free(&columns->names);
    *columns = (struct dt__columns){0};
}

void dt__column_listed(const struct dt__column *column, char out[DT__PLACE_SIZE])
{
    const char *name = column->name;
    const size_t length = name ? strlen(name) : 0;
    if (length && length < DT__PLACE_SIZE && !strchr(name, ',') &&
        !dt__text_is_number(name, length))
        snprintf(out, DT__PLACE_SIZE, "%s", name);
    else
        snprintf(out, DT__PLACE_SIZE, "%zu", column->place);
}

void dt__columns_report_unknown(const struct dt__columns *columns, const char *path, uint64_t rows)
{
    for (size_t c = 0; columns->items && c < columns->count; c++) {
        const struct dt__column *column = &columns->items[c];
        if (column->unknown > rows / 2)
            dt__warn("%s: column %zu (%s): %" PRIu64 " of %" PRIu64
                     " rows have a text that training "
                     "never saw, or too seldom (data.min_count)",
                     path, c, column->name ? column->name : "", column->unknown, rows);
    }
}

/* ---- resolving ------------------------------------------------------------------------------- */

struct ranked {
    const char *text;
    uint64_t count;
};

static int by_count(const void *a, const void *b)
{
    const struct ranked *first = a, *second = b;
    if (first->count != second->count) return first->count > second->count ? -1 : 1;
    return strcmp(first->text, second->text);
}

/* Checks that a checkpoint can hold the texts: those of the categories, and the features' names,
 * which contain them. */
static dt_status texts_check(const struct dt_schema *schema)
{
    size_t count = 0, longest = 0, longest_name = 0;
    for (int c = 0; c < schema->ncolumns; c++) {
        const struct dt_column *column = &schema->columns[c];
        const size_t name = column->name ? strlen(column->name) + 1 : 0; /* NAME=text */
        for (int i = 0; i < column->ncategories; i++, count++) {
            const size_t length = strlen(column->categories[i]);
            if (length > longest) longest = length;
            if (name + length > longest_name) longest_name = name + length;
        }
    }
    const size_t features = schema->features <= NAMED_FEATURES ? (size_t)schema->features : 0;
    if (dt__h5_names_fit(count, longest) && dt__h5_names_fit(features, longest_name)) return DT_OK;
    return dt_fail(DT_EFORMAT,
                   "%zu categories, with texts of up to %zu bytes, are more than a checkpoint "
                   "holds; see data.ignore, data.min_count and data.hash_bits",
                   count, longest);
}

/* Returns how many texts are numbers. Sets *odd to the first non-empty text that is no number, or
 * to the last text if there is none. */
static size_t dict_numbers(const struct dt__dict *dict, const char **odd)
{
    size_t numbers = 0, first = dict->count;
    double value;
    for (size_t i = 0; i < dict->count; i++) {
        const size_t length = dict->entries[i].length;
        const enum dt__number kind = dt__number_parse(dt__dict_text(dict, i), length, &value);
        numbers += kind == DT__NUMBER_GOOD;
        if (first == dict->count && length && kind == DT__NUMBER_BAD) first = i;
    }
    *odd = dict->count ? dt__dict_text(dict, first < dict->count ? first : dict->count - 1) : "";
    return numbers;
}

/* Columns too varied to be categories: more than FEW_TEXTS distinct texts, and more than one for
 * every two rows. */
struct many_texts {
    struct dt_text names;      /* the value to suggest for data.ignore: its current value, then
                                * these columns */
    struct dt_text odd;        /* messages about those of the columns whose texts are mostly
                                * numbers */
    size_t count, most;        /* number of columns in `names`; the most distinct texts in one of
                                * them */
    char last[DT__PLACE_SIZE]; /* the last column in `names` */
};

static void many_texts_add(struct many_texts *many, const struct dt__column *column)
{
    const size_t texts = column->dict.count;
    const char *example;
    char place[DT__PLACE_SIZE];
    const size_t numbers = dict_numbers(&column->dict, &example);
    dt__column_listed(column, place);
    if (numbers > texts / 2) {
        dt__text_add(
            &many->odd,
            "%scolumn %s: %zu of %zu different values are numbers, others are not, such as "
            "'%.40s': write numbers or NA there, or leave the column out with "
            "data.ignore=%s",
            many->odd.length ? "; " : "", place, numbers, texts, example, place);
        return;
    }
    dt__text_add(&many->names, "%s%s", many->names.length ? "," : "", place);
    memcpy(many->last, place, sizeof place);
    many->most = texts > many->most ? texts : many->most;
    many->count++;
}

/* Reports all columns that are too varied in one message. */
static dt_status many_texts_check(const struct dt__columns *columns, const struct dt_config *config)
{
    struct many_texts many = {.count = 0};
    struct dt_text text = {0};
    const unsigned long long rows = (unsigned long long)columns->rows;
    dt__text_add(&many.names, "%s", config->data.ignore);
    for (size_t c = 0; c < columns->count; c++) {
        const struct dt__column *column = &columns->items[c];
        if (column->kind == DT_COLUMN_CATEGORY && !column->insisted &&
            column->dict.count > FEW_TEXTS && column->dict.count > columns->rows / 2)
            many_texts_add(&many, column);
    }
    if (many.count == 1)
        dt__text_add(&text,
                     "column %s: %zu different texts in %llu rows are too many for categories: "
                     "leave it out with data.ignore=%s, or keep it with data.categories=%s",
                     many.last, many.most, rows, many.names.data, many.last);
    else if (many.count)
        dt__text_add(&text,
                     "%zu columns have up to %zu different texts in %llu rows, too many for "
                     "categories: leave them out with data.ignore=%s, or keep those that "
                     "data.categories lists",
                     many.count, many.most, rows, many.names.data);
    if (many.odd.length) dt__text_add(&text, "%s%s", text.length ? "; " : "", many.odd.data);
    dt_status status = text.status;
    if (!status && text.length) status = dt_fail(DT_EFORMAT, "%s", text.data);
    dt__text_free(&many.names);
    dt__text_free(&many.odd);
    dt__text_free(&text);
    return status;
}

/* Makes the dictionary of a category: the texts that occur at least `least` times, most frequent
 * first. */
static dt_status column_rank(const struct dt__columns *columns, size_t index, uint64_t least,
                             struct dt_column *out)
{
    const struct dt__column *column = &columns->items[index];
    const struct dt__dict *dict = &column->dict;
    struct ranked *ranked;
    struct dt__names kept = {0};
    const char *odd;
    const size_t numbers = dict_numbers(dict, &odd);
    DT_TRY(dt__alloc(dict->count, sizeof *ranked, "categories", &ranked));
    for (size_t i = 0; i < dict->count; i++)
        ranked[i] = (struct ranked){dt__dict_text(dict, i), dict->entries[i].count};
    qsort(ranked, dict->count, sizeof *ranked, by_count);
    if (!column->insisted && numbers > dict->count / 2)
        dt__warn(
            "column %zu%s%s%s: its values are taken as texts: %zu of %zu different ones are "
            "numbers, others are not, such as '%.40s' (write NA there to have a numeric column)",
            column->place, column->name ? " (" : "", column->name ? column->name : "",
            column->name ? ")" : "", numbers, dict->count, odd);
    dt_status status = DT_OK;
    for (size_t i = 0; i < dict->count && ranked[i].count >= least && !status; i++)
        status = dt__names_add(&kept, ranked[i].text, strlen(ranked[i].text));
    dt_free(ranked);
    out->categories = kept.items;
    out->ncategories = (int)kept.count;
    return status;
}

static void feature_place(int *first, uint64_t at, struct dt__placed *placed)
{
    placed->same &= *first >= 0 && (uint64_t)*first == at;
    *first = (int)at;
}

struct dt__placed dt__columns_place(struct dt_schema *schema)
{
    struct dt_column *columns = schema->columns, *end = columns + schema->ncolumns;
    const uint64_t hashed = schema->hash_bits ? UINT64_C(1) << schema->hash_bits : 0;
    struct dt__placed placed = {.same = true};
    for (struct dt_column *c = columns; c < end; c++) {
        if (c->kind == DT_COLUMN_CATEGORY) continue;
        feature_place(&c->first, placed.numbers, &placed);
        placed.numbers += (uint64_t)dt__column_numbers(c, NULL);
    }
    for (struct dt_column *c = columns; c < end; c++)
        if (c->flag) feature_place(&c->flag, placed.numbers++, &placed);
    placed.features = placed.numbers;
    for (struct dt_column *c = columns; c < end; c++) {
        if (c->kind != DT_COLUMN_CATEGORY) continue;
        feature_place(&c->first, hashed ? placed.numbers : placed.features, &placed);
        placed.features =
            hashed ? placed.numbers + hashed : placed.features + (uint64_t)c->ncategories + 1;
    }
    return placed;
}

/* Stores the column's date format as its only category. */
static dt_status column_date(struct dt__column *column, struct dt_column *out)
{
    struct dt__names form = {0};
    char text[DT__DATE_FORM];
    const char *name = column->name ? column->name : "";
    if (!dt__dates_decide(&column->dates))
        return dt_fail(DT_EFORMAT,
                       "column %zu (%s): no date shows whether day or month is first, as in "
                       "3/4/2021: write 2021-04-03, or data.ignore=%zu leaves it out",
                       column->place, name, column->place);
    dt__dates_form(&column->dates, text);
    if (dt__dates_numbers(&column->dates) == 1)
        dt__info("column %zu (%s): times, written %s, become a number: hour (data.dates)",
                 column->place, name, text);
    else
        dt__info("column %zu (%s): dates, written %s, become numbers: days, year, month, weekday%s "
                 "(data.dates)",
                 column->place, name, text, column->dates.times ? ", hour" : "");
    dt_status status = dt__names_add(&form, text, strlen(text));
    out->categories = form.items;
    out->ncategories = (int)form.count;
    return status;
}

/* Determines each column's kind and dictionary, then its first feature. */
static dt_status resolve_columns(struct dt__columns *columns, uint64_t least,
                                 struct dt_schema *schema)
{
    schema->ncolumns = (int)columns->count;
    DT_TRY(dt__alloc(columns->count, sizeof *schema->columns, "columns", &schema->columns));
    for (size_t c = 0; c < columns->count; c++) {
        struct dt__column *from = &columns->items[c];
        struct dt_column *to = &schema->columns[c];
        const bool open = from->kind == DT__COLUMN_OPEN;
        to->kind = open ? DT_COLUMN_NUMBER : from->kind;
        const bool number = !open && to->kind != DT_COLUMN_CATEGORY;
        to->fill = columns->missing == DT_MISSING_ERROR || number ? NAN : 0;
        if (open)
            dt__warn("column %zu%s%s%s has no value in any row: data.ignore=%zu leaves it out",
                     from->place, from->name ? " ('" : "", from->name ? from->name : "",
                     from->name ? "')" : "", from->place);
        if (from->name) DT_TRY(dt__strdup(from->name, &to->name));
        if (to->kind == DT_COLUMN_CATEGORY) DT_TRY(column_rank(columns, c, least, to));
        if (to->kind == DT_COLUMN_DATE) DT_TRY(column_date(from, to));
    }
    for (size_t c = 0; c < columns->count && columns->missing == DT_MISSING_FLAG; c++)
        if (schema->columns[c].kind != DT_COLUMN_CATEGORY && columns->items[c].missing)
            schema->columns[c].flag = 1; /* nonzero: has a flag; dt__columns_place replaces it with
                                          * the flag's feature */
    const struct dt__placed placed = dt__columns_place(schema);
    if (placed.features > DT__MAX_FEATURES)
        return dt_fail(DT_EFORMAT,
                       "the categories make more than %d features; see "
                       "data.min_count and data.hash_bits",
                       DT__MAX_FEATURES);
    schema->dense = (int)placed.numbers;
    schema->features = (int)placed.features;
    return texts_check(schema);
}

/* Makes the names of all features from the names of their columns. */
static dt_status resolve_names(struct dt_schema *schema)
{
    if (!schema->columns[0].name || schema->features > NAMED_FEATURES || schema->hash_bits)
        return DT_OK;
    DT_TRY(dt__alloc((size_t)schema->features, sizeof *schema->feature_names, "names",
                     &schema->feature_names));
    for (int c = 0; c < schema->ncolumns; c++) {
        const struct dt_column *column = &schema->columns[c];
        const char *name = column->name;
        char **out = schema->feature_names + column->first;
        struct dt__dates dates;
        if (column->kind == DT_COLUMN_NUMBER) DT_TRY(dt__strdup(name, out));
        if (column->kind == DT_COLUMN_DATE) dt__dates_parse_form(column->categories[0], &dates);
        for (int i = 0; column->kind == DT_COLUMN_DATE && i < dt__dates_numbers(&dates); i++)
            DT_TRY(dt__format(out++, "%s (%s)", name, dt__date_name(&dates, i)));
        if (column->flag)
            DT_TRY(dt__format(&schema->feature_names[column->flag], "%s (missing)", name));
        if (column->kind != DT_COLUMN_CATEGORY) continue;
        for (int i = 0; i < column->ncategories; i++)
            DT_TRY(dt__format(out++, "%s=%s", name, column->categories[i]));
        DT_TRY(dt__format(out, "%s (other)", name));
    }
    return DT_OK;
}

dt_status dt__columns_of_shards(struct dt__columns *columns, struct dt_schema *schema)
{
    if (!schema->feature_names) DT_TRY(resolve_names(schema));
    DT_TRY(dt__columns_of_schema(columns, schema));
    schema->dense = columns->numbers;
    for (size_t c = 0; c < columns->count; c++)
        if (columns->items[c].kind != DT_COLUMN_CATEGORY)
            schema->columns[c].fill = columns->items[c].fill = NAN;
    return DT_OK;
}

void dt__columns_encode(const struct dt__columns *columns, uint32_t *words)
{
    for (size_t c = 0; c < columns->count; c++)
        if (columns->items[c].kind == DT_COLUMN_CATEGORY)
            words[c] = dt__column_word_code(&columns->items[c], words[c]);
}

static bool column_has(const struct dt__column *column, int hash_bits, bool bytes, uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    if (column->kind == DT_COLUMN_CATEGORY)
        return hash_bits ? word < UINT32_C(1) << hash_bits : word <= column->dict.count;
    if (bytes) return dt__floats_are_bytes(&value, 1);
    if (word == DT__MISSING) return true;
    return column->kind == DT_COLUMN_DATE ? dt__dates_has(&column->dates, word) : isfinite(value);
}

dt_status dt__columns_check(const struct dt__columns *columns, bool bytes, const uint32_t *words)
{
    for (size_t c = 0; columns->items && c < columns->count; c++)
        if (!column_has(&columns->items[c], columns->hash_bits, bytes, words[c]))
            return dt_fail(DT_EFORMAT, "column %zu: %08x is no value of it", c, words[c]);
    return DT_OK;
}

/* Warns about a column that may hold row numbers: in a sorted file they give away the labels, and
 * they say nothing about new rows. */
static void warn_of_row_numbers(const struct dt__columns *columns, const struct dt__column *column)
{
    const char *name = column->name;
    char place[DT__PLACE_SIZE];
    if (column->kind != DT_COLUMN_NUMBER) return;
    /* how pandas and R write row numbers, and how pandas names their column when it reads such a
     * file */
    if (name && (!*name || !strncmp(name, "Unnamed: ", 9))) {
        dt__warn("column %zu has no name, and is a feature: if it numbers the rows, "
                 "data.ignore=%zu leaves it out",
                 column->place, column->place);
    } else if (!column->falls && columns->rows > FEW_TEXTS) {
        dt__column_listed(column, place);
        dt__warn("column %s is a feature, and has whole numbers that rise from row to row: if it "
                 "numbers the rows, data.ignore=%s leaves it out",
                 place, place);
    }
}

/* Completes the schema of a table whose columns are all numbers. It stores only their names, unless
 * an earlier file gave names. */
static dt_status resolve_numbers(const struct dt__columns *columns, struct dt_schema *schema)
{
    schema->features = schema->dense = (int)columns->count;
    if (schema->feature_names || !columns->items[0].name) return DT_OK;
    DT_TRY(dt__alloc(columns->count, sizeof(char *), "names", &schema->feature_names));
    for (size_t c = 0; c < columns->count; c++)
        DT_TRY(dt__strdup(columns->items[c].name, &schema->feature_names[c]));
    return DT_OK;
}

dt_status dt__columns_resolve(struct dt__columns *columns, const struct dt_config *config,
                              struct dt_schema *schema)
{
    struct dt__columns learned = *columns;
    bool plain = learned.missing == DT_MISSING_ERROR;
    dt_status status = DT_OK;
    for (size_t c = 0; c < learned.count; c++) {
        plain &= learned.items[c].kind == DT_COLUMN_NUMBER;
        warn_of_row_numbers(&learned, &learned.items[c]);
    }
    if (plain) {
        DT_TRY(resolve_numbers(&learned, schema));
    } else {
        dt__names_free(schema->feature_names, (size_t)schema->features);
        schema->feature_names = NULL;
        schema->hash_bits = learned.hash_bits;
        schema->hash_trims = learned.hash_bits && learned.hash_trims;
        if (learned.hash_bits && config->data.min_count > 1)
            dt__warn(
                "data.min_count=%lld: with data.hash_bits texts are not counted, and rare ones "
                "share no entry",
                (long long)config->data.min_count);
        DT_TRY(many_texts_check(&learned, config));
        DT_TRY(resolve_columns(&learned, (uint64_t)config->data.min_count, schema));
        DT_TRY(resolve_names(schema));
    }
    DT_TRY(dt__columns_of_schema(columns, schema));
    columns->missing = learned.missing;
    /* The numbers that the survey gave to texts become codes of the dictionary; rare texts get the
     * code of all other texts. */
    for (size_t c = 0; c < learned.count; c++) {
        const struct dt__dict *dict = &learned.items[c].dict;
        struct dt__column *to = &columns->items[c];
        if (to->kind != DT_COLUMN_CATEGORY || !dict->count) continue;
        DT_GUARD(dt__alloc(dict->count, sizeof *to->map, "categories", &to->map));
        to->ncodes = dict->count;
        for (size_t i = 0; i < dict->count; i++)
            to->map[i] =
                dt__column_code(columns, c, dt__dict_text(dict, i), dict->entries[i].length);
    }
done:
    dt__columns_free(&learned);
    return status;
}
