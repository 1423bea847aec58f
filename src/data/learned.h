/* A survey in progress: what has been learned of the files, and what all files must agree on. */
#ifndef DATA_LEARNED_H
#define DATA_LEARNED_H

#include "data/row_keys.h"
#include "data/source.h"
#include "text/input.h"

struct dt__survey {
    const struct dt_config *config;
    bool known;               /* source->schema is a model's; false: the schema is learned from the
                               * files */
    bool training;            /* the rows are for training or for shards */
    bool weighs;              /* rows may have weights: in training, or with eval.weighted */
    bool predicting;          /* labels may be missing */
    bool splits;              /* the rows are those of data.train, and some of them are held out */
    bool keyed;               /* groups and times of the rows are collected, if the data has any */
    struct dt_source *source; /* the source being made */
    struct dt__lines lines;   /* the current file, if its format is text */
    struct dt__labels labels;
    const struct dt_targets *targets; /* what the loss accepts as targets */
    uint64_t bytes;                   /* size of all files */
    bool has_floats;                  /* some value may not be an integer in 0..255 */
    bool has_weights;                 /* rows have weights */
    bool has_values;                  /* some sparse entry is not 1 */
    struct dt__row_keys keys;         /* groups and times of the rows; filled only if `keyed` */
    char *key_columns[3];             /* names, see dt__survey_key_column */
    bool warned_beyond, warned_extra; /* these warnings were printed */
};

/* Returns the slot for the name of the column whose role is `role` (time, group or weight); the
 * slot is filled when the first header is read. NULL for any other role. */
char **dt__survey_key_column(struct dt__survey *survey, int32_t role);

/* Checks that `now`, the number of `what` (such as "features") in a file, equals `before`, the
 * number in the model or in the earlier files. `before` is 0 for the first file, which passes.
 * DT_EMISMATCH; the message lacks the path. */
dt_status dt__survey_same(const struct dt__survey *survey, const char *what, uint64_t now,
                          uint64_t before);
/* Adds a file whose rows have `features` features. DT_EMISMATCH: the model or an earlier file has
 * another number; DT_EFORMAT: too many. */
dt_status dt__survey_features(struct dt__survey *survey, uint64_t features);
/* Adds a file whose rows have `targets` columns of y (regress). DT_EMISMATCH: the model or an
 * earlier file has another number; DT_EFORMAT: none, or too many. */
dt_status dt__survey_targets(struct dt__survey *survey, uint64_t targets);
/* Adds a file whose data set has `rank` dimensions: dims[0] rows, and a row of dims[1..rank). Two
 * dimensions of a row are height and width, three are height, width and channels; rows of other
 * ranks have no shape. DT_EMISMATCH: differs from the earlier files or from the model. */
dt_status dt__survey_shape(struct dt__survey *survey, int rank, const uint64_t *dims);
/* Adds the names of a file's features: the first file gives them to the schema, which then owns
 * them; later files must have the same. DT_EMISMATCH. */
dt_status dt__survey_names(struct dt__survey *survey, struct dt__names *names);
/* Adds the columns of a table that are stored in a shard: `read` gives them to the schema if it has
 * none; else they must be the same. DT_EMISMATCH. */
dt_status dt__survey_columns(struct dt__survey *survey, struct dt_schema *read);

#endif
