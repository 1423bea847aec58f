/* The schema of a table: what is learned of its columns, and kept with a model. */
#ifndef TABLE_SCHEMA_H
#define TABLE_SCHEMA_H

#include "base/base.h"
#include "config/config.h"
#include "model/encoding.h"
#include "model/model.h"

enum { DT__MAX_FEATURES = 1 << 24 };

enum dt_column_kind { DT_COLUMN_NUMBER, DT_COLUMN_CATEGORY, DT_COLUMN_DATE };

/* A column of a table whose columns are not all plain numbers. */
struct dt_column {
    char *name; /* NULL without a header */
    int kind;   /* enum dt_column_kind */
    int first;  /* its feature, or the first of a category's: one a text, one for all others; of a
                 * date's: days since 1970-01-01, year, month, weekday, and, with times, hour */
    int flag;   /* number, date: the feature that is 1 where the value is missing; 0: none */
    float fill; /* what stands for a missing number (date: its first), before scaling; NaN: none may
                 * be missing */
    char **categories; /* (ncategories) texts, by count, then bytewise; NULL: hashed; a date: how it
                        * is written, d.m.Y, Y-m-d H:M, ... */
    int ncategories;
};

/* What is learned from the training data and kept with the model: enough to read other data the
 * same way, and to name the results. */
struct dt_schema {
    int task;       /* enum dt_task */
    int features;   /* inputs of the network: dense ones, and behind them sparse ones */
    int dense;      /* how many are dense; features, unless that is too many to store */
    int shape[3];   /* of a row: height, width, channels (last); 0, 0, 0: none is known */
    int classes;    /* classify: at least 2; else 0 */
    int targets;    /* regress: columns of y; else 0 */
    double scale;   /* x = (raw * scale - mean) * inv_std, */
    double clip;    /* and that within -clip to clip; 0: wherever it is */
    int ncolumns;   /* of a table; 0: see columns */
    int hash_bits;  /* texts of categories are hashed to 2^hash_bits features; 0: dictionaries */
    int hash_trims; /* 1: without the blanks around them */
    int encoded;    /* features that are encoded: a row has z of each (model/encoding.h) */
    int quantiles;  /* of all of them, as many of each */
    float *mean;    /* (features), NULL without normalisation */
    float *inv_std; /* (features), 1 where a feature is constant */
    int64_t *encoded_feature;  /* (encoded) ascending, all dense */
    float *quantile;           /* (quantiles) of the raw values, ascending for each of them */
    float *target_mean;        /* (targets) learned is (y - mean) / std; NULL: y as it stands */
    float *target_std;         /* (targets), 1 where a target is constant */
    float *target_least;       /* (targets) predictions stay from here, NULL: they are not held */
    float *target_greatest;    /* (targets) to here: the range of the training targets */
    char **feature_names;      /* (features), NULL if the data has none */
    char **label_names;        /* (classes), NULL if labels are plain numbers */
    int64_t *label_numbers;    /* (classes) what files have for them; NULL: positions, or names */
    char *label_column;        /* name of the CSV label column, NULL if it has none */
    struct dt_column *columns; /* (ncolumns); NULL: a column a feature, all numbers */
};
static inline struct dt_quantiles dt__schema_quantiles(const struct dt_schema *schema)
{
    const size_t columns = (size_t)schema->encoded;
    return (struct dt_quantiles){
        columns, columns ? (size_t)schema->quantiles / columns : 0, schema->quantile};
}
/* Forgets the quantiles: rows have no z. */
void dt__schema_forget_quantiles(struct dt_schema *schema);
void dt__schema_free(struct dt_schema *schema); /* frees the members, zeroes the struct */
/* Columns of categories: a row has an entry of each, in their order. */
int dt__schema_categories(const struct dt_schema *schema);
/* nout of a network for this schema: 1 for two classes, or classes, or targets (of each of which it
 * may have several outputs: dt__model_desc_each). */
int dt__schema_nout(const struct dt_schema *schema);
/* What the preset asks of a table with this schema. */
struct dt_table_size dt__schema_size(const struct dt_schema *schema, uint64_t rows, bool evaluates);

/* ---- members --------------------------------------------------------------------------------- */

/* What a schema has in memory of its own, a pointer at `member`: floats or int64_t (count), a
 * text, a list of (count) texts, or (count) columns, whose members follow. */
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
