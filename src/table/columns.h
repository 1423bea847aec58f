/* The columns of a table that are features: numbers, dates, or categories with a dictionary. They
 * are in one of three states:
 *
 *     learning    dt__columns_init. A survey's first value in a column says what it is, a number, a
 *                 date or a text; texts are counted, and numbered as they come.
 *     settled     dt__columns_settle, of what was learned; dt__columns_of_schema. Columns know
 *                 their features, and categories have their dictionary. Words that were read while
 *                 learning have the texts' numbers from then: `map` makes codes of them.
 *     nameless    dt__columns_of_json of numbers without names: as settled, but without items,
 *                 which of many features would take gigabytes. Column c is feature c.
 *
 * Numbers and those of dates come first among the features, then a flag for each column of them
 * that had gaps (data.missing=flag), then the categories, one feature for each text that is
 * frequent enough (by count, then bytewise) and one for all others; or one hashed range for all
 * columns of texts. */
#ifndef TABLE_COLUMNS_H
#define TABLE_COLUMNS_H

#include "table/block.h"
#include "text/date.h"
#include "text/text.h"

static const uint32_t DT__MISSING = UINT32_MAX; /* as a float: NaN */

enum { DT__COLUMN_OPEN = -1 }; /* beside enum dt_column_kind: no value was seen yet */

struct dt__column {
    char *name;   /* NULL without header */
    size_t place; /* in the first file, from 0 */
    int kind;
    struct dt__dates dates;
    struct dt__dict dict; /* of a category: the texts seen; settled, its dictionary */
    /* learning */
    bool insisted;    /* data.categories names it */
    uint64_t missing; /* cells without a value */
    bool falls;       /* a value is no whole number above `last`, the one before */
    double last;
    /* settled */
    int first, flag;  /* features; flag 0: none */
    float fill;       /* what a missing number is read as; NaN: not known yet */
    uint32_t blank;   /* category: the code of a missing value */
    uint64_t unknown; /* category: cells of CSV with an unknown text; JSON rows share columns */
    uint32_t *map;    /* category: (ncodes) codes of the texts seen; NULL: words are codes */
    size_t ncodes;
};

struct dt__columns {
    struct dt__column *items; /* (count); NULL: nameless */
    size_t count;
    int missing;     /* enum dt_missing */
    int hash_bits;   /* 0: a dictionary a column */
    bool hash_trims; /* texts are hashed without the blanks around them */
    bool learning;
    /* learning */
    bool texts, dates; /* columns of them may be categories, and numbers */
    uint64_t rows;     /* seen */
    /* settled */
    struct dt__dict names; /* of the items, if they have some */
    int numbers;           /* features that are numbers or flags */
    size_t entries;        /* of a row, one a category, in the order of the columns */
};

/* Learning: `count` columns of which no value was seen, as `config` has it. */
dt_status dt__columns_init(struct dt__columns *columns, const struct dt_config *config,
                           size_t count);
/* What was learned goes to the schema (columns, features, dense, feature_names), and the columns
 * are settled. DT_EFORMAT: too many features, a column of texts that are all different. */
dt_status dt__columns_settle(struct dt__columns *columns, const struct dt_config *config,
                             struct dt_schema *schema);
/* Settled: the columns that a schema has; one of numbers a feature, if it has none. */
dt_status dt__columns_of_schema(struct dt__columns *columns, const struct dt_schema *schema);
/* The same for all but CSV: numbers without names are nameless. */
dt_status dt__columns_of_json(struct dt__columns *columns, const struct dt_schema *schema);
void dt__columns_free(struct dt__columns *columns);
/* Places the features of a schema's columns: numbers, flags, categories, each in the order of the
 * columns. All that reads cells or rows relies on it. */
struct dt__placed {
    uint64_t numbers, features;
    bool same; /* they were there before */
};
struct dt__placed dt__columns_place(struct dt_schema *schema);
/* Features of a column that are numbers, flags apart. `fill`, or NULL, gets what each is in a row
 * that lacks the value. */
int dt__column_numbers(const struct dt_column *column, float fill[DT__DATE_NUMBERS]);

/* Says which columns have such texts in more than half of `rows`: TRUE for True, perhaps. */
void dt__columns_tell_unknown(const struct dt__columns *columns, const char *path, uint64_t rows);
/* As a list of columns takes it: its name, or its number where that would be read as another. */
enum { DT__PLACE_SIZE = 64 };
void dt__column_listed(const struct dt__column *column, char out[DT__PLACE_SIZE]);
/* Settled, or hashed: the code of a text in column `at`, which is of categories. */
uint32_t dt__column_code(const struct dt__columns *columns, size_t at, const char *text,
                         size_t length);

/* Settled: the code of a category's word. */
static inline uint32_t dt__column_word_code(const struct dt__column *column, uint32_t word)
{
    if (word == DT__MISSING) return column->blank;
    return column->map ? column->map[word] : word;
}

/* ---- shards --------------------------------------------------------------------------------- */

/* Settles the columns that shards have in `schema`, and names its features. What stands for a
 * missing number is to be learned from the rows that are read, as of CSV. */
dt_status dt__columns_of_shards(struct dt__columns *columns, struct dt_schema *schema);
/* Settled: codes in the place of a row's words of categories. */
void dt__columns_encode(const struct dt__columns *columns, uint32_t *words);
/* Settled: whether each word of a row is one of its column; `bytes`: numbers are bytes. DT_EFORMAT:
 * names the column. */
dt_status dt__columns_check(const struct dt__columns *columns, bool bytes, const uint32_t *words);

#endif
