/* The columns of a table that are features: numbers, dates, or categories with a dictionary. They
 * are in one of three states:
 *
 *     learning    dt__columns_init. A survey's first value in a column decides its kind: a number,
 *                 a date or a text. Texts are counted, and numbered in order of appearance.
 *     resolved    dt__columns_resolve, after learning; dt__columns_of_schema. Columns know their
 *                 features, and categories have their dictionary. Words that were read while
 *                 learning hold the texts' numbers from then: `map` converts them to codes.
 *     nameless    dt__columns_of_json for numbers without names: like resolved, but without items,
 *                 which would take gigabytes for many features. Column c is feature c.
 *
 * The numbers come first among the features, including those of dates. A flag follows for each of
 * these columns that had gaps (data.missing=flag), and then the categories: one feature for each
 * text that is frequent enough (by count, then bytewise) and one for all others; or one hashed
 * range for all columns of texts. */
#ifndef TABLE_COLUMNS_H
#define TABLE_COLUMNS_H

#include "table/block.h"
#include "text/date.h"
#include "text/text.h"

static const uint32_t DT__MISSING = UINT32_MAX; /* as a float: NaN */

enum { DT__COLUMN_OPEN = -1 }; /* in addition to enum dt_column_kind: no value was seen yet */

struct dt__column {
    char *name;   /* NULL without header */
    size_t place; /* in the first file, from 0 */
    int kind;
    struct dt__dates dates;
    struct dt__dict dict; /* of a category: the texts seen; once resolved, its dictionary */
    /* learning */
    bool insisted;    /* data.categories names it */
    uint64_t missing; /* cells without a value */
    bool falls;       /* a value is no whole number above `last`, the value before it */
    double last;
    /* resolved */
    int first, flag;  /* features; flag 0: none */
    float fill;       /* replacement of a missing number; NaN: not known yet */
    uint32_t blank;   /* category: the code of a missing value */
    uint64_t unknown; /* category: cells of CSV with an unknown text; JSON rows share columns */
    uint32_t *map;    /* category: (ncodes) codes of the texts seen; NULL: words are codes */
    size_t ncodes;
};

struct dt__columns {
    struct dt__column *items; /* (count); NULL: nameless */
    size_t count;
    int missing;     /* enum dt_missing */
    int hash_bits;   /* 0: one dictionary per column */
    bool hash_trims; /* texts are hashed without the blanks around them */
    bool learning;
    /* learning */
    bool texts, dates; /* texts: columns of texts may be categories; dates: columns of dates may be
                        * numbers */
    uint64_t rows;     /* rows seen */
    /* resolved */
    struct dt__dict names; /* of the items, if they have names */
    int numbers;           /* features that are numbers or flags */
    size_t entries;        /* entries of a row, one per category, in the order of the columns */
};

/* Starts learning `count` columns, in which no value was seen, with the settings of `config`. */
dt_status dt__columns_init(struct dt__columns *columns, const struct dt_config *config,
                           size_t count);
/* Writes what was learned to the schema (columns, features, dense, feature_names), and resolves the
 * columns. DT_EFORMAT: too many features, a column of texts that are all different. */
dt_status dt__columns_resolve(struct dt__columns *columns, const struct dt_config *config,
                              struct dt_schema *schema);
/* Makes resolved columns from those of a schema; if it has none, one column of numbers per
 * feature. */
dt_status dt__columns_of_schema(struct dt__columns *columns, const struct dt_schema *schema);
/* Makes the columns for all formats except CSV: numbers without names are nameless, all else as in
 * dt__columns_of_schema. */
dt_status dt__columns_of_json(struct dt__columns *columns, const struct dt_schema *schema);
void dt__columns_free(struct dt__columns *columns);
/* Places the features of a schema's columns: numbers, flags, categories, each in the order of the
 * columns. All code that reads cells or rows relies on it. */
struct dt__placed {
    uint64_t numbers, features;
    bool same; /* they had these places before */
};
struct dt__placed dt__columns_place(struct dt_schema *schema);
/* Returns the number of a column's features that are numbers, without flags. If `fill` is not NULL,
 * it gets the value of each in a row without the column's value. */
int dt__column_numbers(const struct dt_column *column, float fill[DT__DATE_NUMBERS]);

/* Reports the columns that have unknown texts in more than half of `rows`: TRUE for True,
 * perhaps. */
void dt__columns_report_unknown(const struct dt__columns *columns, const char *path, uint64_t rows);
/* Writes a column as a list of columns takes it: its name, or its number where the name would be
 * read as another column. */
enum { DT__PLACE_SIZE = 64 };
void dt__column_listed(const struct dt__column *column, char out[DT__PLACE_SIZE]);
/* Returns the code of a text in column `at`, a category. The columns are resolved, or hashed. */
uint32_t dt__column_code(const struct dt__columns *columns, size_t at, const char *text,
                         size_t length);

/* Returns the code of a category's word. The columns are resolved. */
static inline uint32_t dt__column_word_code(const struct dt__column *column, uint32_t word)
{
    if (word == DT__MISSING) return column->blank;
    return column->map ? column->map[word] : word;
}

/* ---- shards --------------------------------------------------------------------------------- */

/* Resolves the columns that shards have in `schema`, and names its features. The replacements of
 * missing numbers must be learned from the rows, as for CSV. */
dt_status dt__columns_of_shards(struct dt__columns *columns, struct dt_schema *schema);
/* Replaces a row's words of categories by their codes. The columns are resolved. */
void dt__columns_encode(const struct dt__columns *columns, uint32_t *words);
/* Checks that each word of a row is one of its column; `bytes`: numbers are bytes. The columns are
 * resolved. DT_EFORMAT: names the column. */
dt_status dt__columns_check(const struct dt__columns *columns, bool bytes, const uint32_t *words);

#endif
