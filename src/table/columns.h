/* The columns of a table that hold features: numbers, dates, or categories with a dictionary. They
 * are in one of three states:
 *
 *     learning    after dt__columns_init. The first value that a survey reads in a column decides
 *                 its kind: a number, a date or a text. The survey counts texts and numbers them in
 *                 order of appearance.
 *     resolved    after dt__columns_resolve or dt__columns_of_schema. Each column knows its
 *                 features, each category its dictionary. Words read while learning hold the
 *                 numbers that the survey gave to texts; `map` converts these numbers to codes.
 *     nameless    after dt__columns_of_json, for numbers without names: like resolved, but without
 *                 items, which would take gigabytes for many features. Column c is feature c.
 *
 * Numbers come first among the features; a date is several numbers. Then comes a flag for each
 * column of numbers or dates that had gaps (data.missing=flag). The categories come last: each has
 * one feature for every text that is frequent enough (most frequent first, ties bytewise) and one
 * for all other texts; with data.hash_bits all of them share one hashed range. */
#ifndef TABLE_COLUMNS_H
#define TABLE_COLUMNS_H

#include "table/block.h"
#include "text/date.h"
#include "text/text.h"

static const uint32_t DT__MISSING = UINT32_MAX; /* as a float: NaN */

enum {
    DT__COLUMN_OPEN = -1
}; /* no value was seen yet; a kind in addition to enum
                                * dt_column_kind */

struct dt__column {
    char *name;   /* NULL without header */
    size_t place; /* number of the column in the first file, from 0 */
    int kind;
    struct dt__dates dates;
    struct dt__dict dict; /* category: while learning, the texts seen; afterwards the dictionary */
    /* while learning */
    bool insisted;    /* data.categories names it */
    uint64_t missing; /* cells without a value */
    bool falls;       /* some value was not a whole number above `last`, the previous value */
    double last;
    /* once resolved */
    int first, flag;  /* the first feature; the flag's feature, 0: no flag */
    float fill;       /* replaces a missing number; NaN: not known yet */
    uint32_t blank;   /* category: the code of a missing value */
    uint64_t unknown; /* category: CSV cells with an unknown text; not counted for JSON rows, which
                       * share the columns */
    uint32_t *map;    /* category: (ncodes) code of each text seen; NULL: words are codes */
    size_t ncodes;
};

struct dt__columns {
    struct dt__column *items; /* (count); NULL: nameless */
    size_t count;
    int missing;     /* enum dt_missing */
    int hash_bits;   /* 0: each column has a dictionary */
    bool hash_trims; /* blanks around a text are trimmed before hashing */
    bool learning;
    /* while learning */
    bool take_texts, take_dates; /* texts may become categories, dates numbers */
    uint64_t rows;               /* rows seen */
    /* once resolved */
    struct dt__dict names; /* of the items; empty if they have none */
    int numbers;           /* number of features that are numbers or flags */
    size_t entries;        /* sparse entries per row: one per category, in the order of the
                            * columns */
};

/* Starts learning `count` columns with the settings of `config`. No column has a kind yet. */
dt_status dt__columns_init(struct dt__columns *columns, const struct dt_config *config,
                           size_t count);
/* Writes what was learned to the schema (columns, features, dense, feature_names) and resolves the
 * columns. DT_EFORMAT: too many features; a column has too many distinct texts for categories. */
dt_status dt__columns_resolve(struct dt__columns *columns, const struct dt_config *config,
                              struct dt_schema *schema);
/* Makes resolved columns from those of a schema; a schema without columns gives one column of
 * numbers per feature. */
dt_status dt__columns_of_schema(struct dt__columns *columns, const struct dt_schema *schema);
/* Makes the columns for all formats except CSV. Numbers without names become nameless columns;
 * otherwise the result is that of dt__columns_of_schema. */
dt_status dt__columns_of_json(struct dt__columns *columns, const struct dt_schema *schema);
void dt__columns_free(struct dt__columns *columns);
/* Assigns feature numbers to a schema's columns: first numbers, then flags, then categories, each
 * in the order of the columns. All code that reads cells or rows relies on this order. */
struct dt__placed {
    uint64_t numbers, features;
    bool same; /* true if no feature number changed */
};
struct dt__placed dt__columns_place(struct dt_schema *schema);
/* Returns how many numeric features a column has, not counting its flag. Unless `fill` is NULL, it
 * receives the value that each of these takes in a row where the column is empty. */
int dt__column_numbers(const struct dt_column *column, float fill[DT__DATE_NUMBERS]);

/* Warns about each column whose text is unknown in more than half of `rows`; a usual cause is TRUE
 * instead of True. */
void dt__columns_report_unknown(const struct dt__columns *columns, const char *path, uint64_t rows);
/* Writes a column as keys that list columns accept it: by its name, or by its number if the name
 * contains a comma, is a number, is empty or is too long. */
enum { DT__PLACE_SIZE = 64 };
void dt__column_listed(const struct dt__column *column, char out[DT__PLACE_SIZE]);
/* Returns the code of a text in the category `index`. The columns must be resolved, or hashed. */
uint32_t dt__column_code(const struct dt__columns *columns, size_t at, const char *text,
                         size_t length);

/* Returns the code for a word of a category. The column must be resolved. */
static inline uint32_t dt__column_word_code(const struct dt__column *column, uint32_t word)
{
    if (word == DT__MISSING) return column->blank;
    return column->map ? column->map[word] : word;
}

/* ---- shards --------------------------------------------------------------------------------- */

/* Makes resolved columns from those that `schema` has from shards, and names its features.
 * Replacements of missing numbers become unknown: they must be learned from the rows, as for
 * CSV. */
dt_status dt__columns_of_shards(struct dt__columns *columns, struct dt_schema *schema);
/* Replaces the words of categories in a row by their codes. The columns must be resolved. */
void dt__columns_encode(const struct dt__columns *columns, uint32_t *words);
/* Checks each word of a row against its column; with `bytes`, numbers must be integers in 0..255.
 * The columns must be resolved. DT_EFORMAT: names the column. */
dt_status dt__columns_check(const struct dt__columns *columns, bool bytes, const uint32_t *words);

#endif
