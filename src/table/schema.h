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
    int first;  /* its feature, or the first of several; a category has one per text, and one for
                 * all others; a date has days since 1970-01-01, year, month, weekday, and, with
                 * times, hour */
    int flag;   /* number, date: the feature that is 1 where the value is missing; 0: none */
    float fill; /* replacement of a missing number (date: of its first), before scaling; NaN: values
                 * may not be missing */
    char **categories; /* (ncategories) texts, by count, then bytewise; NULL: hashed; for a date:
                        * its format, d.m.Y, Y-m-d H:M, ... */
    int ncategories;
};

/* The facts learned from the training data and kept with the model: enough to read other data the
 * same way, and to name the results. */
struct dt_schema {
    int task;       /* enum dt_task */
    int features;   /* inputs of the network: dense ones, then sparse ones */
    int dense;      /* number of dense ones; equals features, unless that is too many to store */
    int shape[3];   /* of a row: height, width, channels (last); 0, 0, 0: not known */
    int classes;    /* classify: at least 2; else 0 */
    int targets;    /* regress: columns of y; else 0 */
    double scale;   /* x = (raw * scale - mean) * inv_std, */
    double clip;    /* clipped to -clip..clip; 0: not clipped */
    int ncolumns;   /* of a table; 0: see columns */
    int hash_bits;  /* texts of categories are hashed to 2^hash_bits features; 0: dictionaries */
    int hash_trims; /* 1: without the blanks around them */
    int encoded;    /* features that are encoded: a row has z of each (model/encoding.h) */
    int quantiles;  /* of all encoded features; each has the same number */
    float *mean;    /* (features), NULL without normalisation */
    float *inv_std; /* (features), 1 where a feature is constant */
    int64_t *encoded_feature;  /* (encoded) ascending, all dense */
    float *quantile;           /* (quantiles) of the raw values, ascending for each feature */
    float *target_mean;        /* (targets) learned is (y - mean) / std; NULL: y itself */
    float *target_std;         /* (targets), 1 where a target is constant */
    float *target_least;       /* (targets) lower bound of predictions; NULL: not bounded */
    float *target_greatest;    /* (targets) upper bound: the range of the training targets */
    char **feature_names;      /* (features), NULL if the data has none */
    char **label_names;        /* (classes), NULL if labels are plain numbers */
    int64_t *label_numbers;    /* (classes) the labels in files; NULL: positions, or names */
    char *label_column;        /* name of the CSV label column, NULL if it has none */
    struct dt_column *columns; /* (ncolumns); NULL: one column per feature, all numbers */
};
static inline struct dt_quantiles dt__schema_quantiles(const struct dt_schema *schema)
{
    const size_t columns = (size_t)schema->encoded;
    return (struct dt_quantiles){columns, columns ? (size_t)schema->quantiles / columns : 0,
                                 schema->quantile};
}
/* Forgets the quantiles: rows have no z. */
void dt__schema_forget_quantiles(struct dt_schema *schema);
void dt__schema_free(struct dt_schema *schema); /* frees the members, zeroes the struct */
/* Returns the number of columns of categories: a row has an entry for each, in their order. */
int dt__schema_categories(const struct dt_schema *schema);
/* Returns nout of a network for this schema: 1 for two classes, else the number of classes or
 * targets. A network may have several outputs per target: dt__model_desc_each. */
int dt__schema_nout(const struct dt_schema *schema);
/* Returns the facts of a table with this schema that the preset depends on. */
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
