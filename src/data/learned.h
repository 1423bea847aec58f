/* A survey in progress: what it has learned from the files so far, and the checks that each further
 * file agrees with the earlier files. */
#ifndef DATA_LEARNED_H
#define DATA_LEARNED_H

#include "data/row_keys.h"
#include "data/source.h"
#include "text/input.h"

struct dt__survey {
    const struct dt_config *config;
    bool known;               /* source->schema is a model's, and the files must fit it; false: the
                               * survey learns the schema from the files */
    bool training;            /* the rows are used in training, or written to shards */
    bool weighs;              /* rows may have weights: in training, or with eval.weighted */
    bool predicting;          /* labels may be missing */
    bool splits;              /* the rows are those of data.train, and a split holds out some */
    bool keyed;               /* the survey collects groups and times of rows, if there are any */
    struct dt_source *source; /* the source being made */
    struct dt__lines lines;   /* the current file, if its format is text */
    struct dt__labels labels;
    const struct dt_targets *targets; /* what the loss accepts as targets */
    uint64_t bytes;                   /* size of all files */
    bool has_floats;                  /* some value is, or may be, no integer in 0..255 */
    bool has_weights;                 /* rows have weights */
    bool has_values;                  /* some sparse entry is not 1 */
    struct dt__row_keys keys;         /* groups and times of the rows; filled only if `keyed` */
    char *key_columns[3];             /* names of columns: see dt__survey_key_column */
    bool warned_beyond, warned_extra; /* true once the warning was printed */
};

/* Returns the member of survey->key_columns for a role: time, group or weight. It stores the name
 * of the column that has this role, once the first header has been read. NULL for any other
 * role. */
char **dt__survey_key_column(struct dt__survey *survey, int32_t role);

/* Checks that `now` equals `before`. `now` is the number of `what` (such as "features") in a file,
 * and `before` their number in the model or in the earlier files; with `before` 0 (no earlier
 * file), any number passes. DT_EMISMATCH: they differ; the message does not name the file. */
dt_status dt__survey_same(const struct dt__survey *survey, const char *what, uint64_t now,
                          uint64_t before);
/* Records that a file's rows have `features` features. DT_EMISMATCH: the model or an earlier file
 * has another number; DT_EFORMAT: too many. */
dt_status dt__survey_features(struct dt__survey *survey, uint64_t features);
/* Records that a file's rows have `targets` targets (regress). DT_EMISMATCH: the model or an
 * earlier file has another number; DT_EFORMAT: none, or too many. */
dt_status dt__survey_targets(struct dt__survey *survey, uint64_t targets);
/* Records the shape of a file's rows. The file's data set has the dimensions dims[0..rank): dims[0]
 * is the number of rows, and a row is an array of dims[1..rank). A row of two dimensions is a
 * picture (height, width), one of three (height, width, channels); any other row has no shape.
 * DT_EMISMATCH: the earlier files or the model have another shape. */
dt_status dt__survey_shape(struct dt__survey *survey, int rank, const uint64_t *dims);
/* Records the names of a file's features. The first file's names move into the schema, and `names`
 * is left empty. DT_EMISMATCH: a later file has other names. */
dt_status dt__survey_names(struct dt__survey *survey, struct dt__names *names);
/* Records the columns of a table that are stored in a shard. If the survey's schema has no columns
 * yet, those of `read` move into it. DT_EMISMATCH: it has columns, and they differ. */
dt_status dt__survey_columns(struct dt__survey *survey, struct dt_schema *read);

#endif
