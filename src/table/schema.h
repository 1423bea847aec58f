/* The schema of a table: what is learned from its columns and kept with a model. */
#ifndef TABLE_SCHEMA_H
#define TABLE_SCHEMA_H

#include "base/base.h"
#include "config/config.h"
#include "model/encoding.h"
#include "model/model.h"

enum { DT__MAX_FEATURES = 1 << 24 };

enum dt_column_kind { DT_COLUMN_NUMBER, DT_COLUMN_CATEGORY, DT_COLUMN_DATE };

/* A column of a table. A table of plain numbers has no such list of columns. */
struct dt_column {
    char *name; /* NULL without a header */
    int kind;   /* enum dt_column_kind */
    int first;  /* its first feature: a category has one per text and one for all other texts; a
                 * date has days since 1970-01-01, year, month, weekday and, if it has times,
                 * hour */
    int flag;   /* number, date: the feature that is 1 where the value is missing; 0: no such
                 * feature */
    float fill; /* replaces a missing number (of a date: the days) before scaling; NaN: no
                 * replacement, or not known yet */
    char **categories; /* (ncategories) category: the texts, most frequent first, ties bytewise,
                        * NULL if hashed; date: one text, its format, such as d.m.Y or Y-m-d H:M */
    int ncategories;
};

/* Facts that are learned from the training data and kept with the model: enough to read other data
 * in the same way and to name the results. */
struct dt_schema {
    int task;       /* enum dt_task */
    int features;   /* inputs of the network: the dense ones, then the sparse ones */
    int dense;      /* number of dense inputs; equals `features` if rows have no sparse part */
    int shape[3];   /* height, width, channels (last) of a row; 0, 0, 0: not known */
    int classes;    /* classify: at least 2; else 0 */
    int targets;    /* regress: columns of y; else 0 */
    double scale;   /* x = (raw * scale - mean) * inv_std, */
    double clip;    /* clipped to -clip..clip; 0: not clipped */
    int ncolumns;   /* columns of the table; 0: no list of columns */
    int hash_bits;  /* texts of categories are hashed to 2^hash_bits features; 0: categories have
                     * dictionaries */
    int hash_trims; /* 1: blanks around a text are trimmed before hashing */
    int encoded;    /* number of encoded features; each has a z in every row (model/encoding.h) */
    int quantiles;  /* of all encoded features together; each feature has equally many */
    float *mean;    /* (features), NULL without normalisation */
    float *inv_std; /* (features), 1 where a feature is constant */
    int64_t *encoded_feature;  /* (encoded) their indices, ascending; all are dense */
    float *quantile;           /* (quantiles) of the raw values, feature by feature, each
                                * ascending */
    float *target_mean;        /* (targets) training fits (y - mean) / std; NULL: it fits y */
    float *target_std;         /* (targets), 1 where a target is constant */
    float *target_least;       /* (targets) lower bound of predictions: the least training target;
                                * NULL: no bounds */
    float *target_greatest;    /* (targets) upper bound: the greatest training target */
    char **feature_names;      /* (features), NULL if the data has none */
    char **label_names;        /* (classes), NULL if labels are plain numbers */
    int64_t *label_numbers;    /* (classes) the label of each class in files; NULL: labels are
                                * positions or names */
    char *label_column;        /* name of the CSV label column, NULL if it has none */
    struct dt_column *columns; /* (ncolumns); NULL: each column is one feature, a number */
};
static inline struct dt_quantiles dt__schema_quantiles(const struct dt_schema *schema)
{
    const size_t columns = (size_t)schema->encoded;
    return (struct dt_quantiles){columns, columns ? (size_t)schema->quantiles / columns : 0,
                                 schema->quantile};
}
/* Removes the quantiles, so that no feature is encoded and rows have no z. */
void dt__schema_forget_quantiles(struct dt_schema *schema);
void dt__schema_free(struct dt_schema *schema); /* frees the members, zeroes the struct */
/* Returns the number of categories; a sparse row has one entry for each, in the order of the
 * columns. */
int dt__schema_categories(const struct dt_schema *schema);
/* Returns the outputs of a network for this schema: 1 for two classes, else the number of classes
 * or targets. A network may have several outputs per target: see dt__model_desc_each. */
int dt__schema_nout(const struct dt_schema *schema);
/* Returns the facts about a table with `rows` rows from which the preset is chosen. `evaluates`:
 * the run has held-out rows. */
struct dt_table_size dt__schema_size(const struct dt_schema *schema, uint64_t rows, bool evaluates);

/* ---- members --------------------------------------------------------------------------------- */

/* Kinds of memory that a schema owns, a pointer at `member`: floats or int64_t (count), a text, a
 * list of (count) texts, or (count) columns, whose members follow. */
enum dt__member {
    DT__MEMBER_FLOATS,
    DT__MEMBER_NUMBERS,
    DT__MEMBER_TEXT,
    DT__MEMBER_NAMES,
    DT__MEMBER_COLUMNS
};
typedef dt_status dt__member_fn(void *arg, enum dt__member kind, void *member, size_t count);
dt_status dt__schema_visit(struct dt_schema *schema, dt__member_fn *visit, void *arg);

#endif
