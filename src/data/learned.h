/* A survey in progress: what is learned of the files, and what they must have in common. */
#ifndef DATA_LEARNED_H
#define DATA_LEARNED_H

#include "data/row_keys.h"
#include "data/source.h"
#include "text/input.h"

struct dt__survey {
    const struct dt_config *config;
    bool known; /* the source's schema is a model's; false: it is learned from the files */
    bool training;            /* the rows are for training or for shards, and may have weights */
    bool weighs;              /* rows may have weights: in training, and with eval.weighted */
    bool predicting;          /* labels may be missing */
    bool splits;              /* the rows are data.train's, and some of them are held out */
    bool keyed;               /* collect groups and times of the rows, if there are any */
    struct dt_source *source; /* being made */
    struct dt__lines lines;   /* the current file's, if its format is text */
    struct dt__labels labels;
    const struct dt_targets *of;  /* the targets of the rows */
    uint64_t bytes;               /* of all files */
    bool floats;                  /* not all values are known to be integers in 0..255 */
    bool weights;                 /* rows have weights */
    bool values;                  /* an entry was seen that is not 1 */
    struct dt__row_keys keys;     /* of the rows, if they are split by them */
    char *key_columns[3];         /* dt__survey_key_column */
    bool said_beyond, said_extra; /* warnings that are printed once */
};

/* Returns where the name of the column with a role is kept once a header has shown it: time, group
 * or weight. NULL: names of other roles are not kept. */
char **dt__survey_key_column(struct dt__survey *survey, int32_t role);

/* Checks that a file has as many of something (`now`) as the files before it, or the model
 * (`before`; 0 if it is the first file). DT_EMISMATCH; the message lacks the path. */
dt_status dt__survey_same(const struct dt__survey *survey, const char *what, uint64_t now,
                          uint64_t before);
/* Adds a file with rows of `features` values, or with this many columns of y (regress). All files
 * must have the same number. */
dt_status dt__survey_features(struct dt__survey *survey, uint64_t features);
dt_status dt__survey_targets(struct dt__survey *survey, uint64_t targets);
/* Adds a file whose rows have rank - 1 dimensions, dims[1..rank): two are height and width, three
 * are height, width and channels; other ranks have no shape. DT_EMISMATCH: differs from the earlier
 * files or from the model. */
dt_status dt__survey_shape(struct dt__survey *survey, int rank, const uint64_t *dims);
/* Takes over the names of the features (count of them), or compares them with the known names. */
dt_status dt__survey_names(struct dt__survey *survey, struct dt__names *names);
/* Takes over the columns of the table that a file of `read->features` features was made from, or
 * compares them with the known columns. */
dt_status dt__survey_columns(struct dt__survey *survey, struct dt_schema *read);

#endif
