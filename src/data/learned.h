/* A survey in progress: what is learned of the files, and what they must have in common. */
#ifndef DATA_LEARNED_H
#define DATA_LEARNED_H

#include "data/row_keys.h"
#include "data/source.h"
#include "text/input.h"

struct dt__survey {
    const struct dt_config *config;
    bool known; /* the source's schema is that of a model; else it is learned, member by member */
    bool training;            /* also if `known`, on a resume: rows are weighted */
    bool weighs;              /* rows may have weights: in training, and with eval.weighted */
    bool predicting;          /* labels may be missing */
    bool splits;              /* the rows are those of data.train, of which some are held out */
    bool keyed;               /* groups and times of the rows are asked for, if there are any */
    struct dt_source *source; /* in the making */
    struct dt__lines lines;   /* of the file at hand, if its format is text */
    struct dt__labels labels;
    const struct dt_targets *of;  /* what the rows' targets are */
    uint64_t bytes;               /* of all files */
    bool floats;                  /* a value was seen that is not an integer in 0..255 */
    bool weights;                 /* rows have weights */
    bool values;                  /* an entry was seen that is not 1 */
    struct dt__row_keys keys;     /* of the rows, where they are to be split by them */
    char *key_columns[3];         /* dt__survey_key_column */
    bool said_beyond, said_extra; /* what is said once */
};

/* The name of the column that has a role, once a header has shown it: of time, group and weight;
 * NULL: of another role none is kept. */
char **dt__survey_key_column(struct dt__survey *survey, int32_t role);

/* A file has `now` of something, the files before it (or the model) `before`, 0 where it is the
 * first. DT_EMISMATCH. The message lacks the path. */
dt_status dt__survey_same(const struct dt__survey *survey, const char *what, uint64_t now,
                          uint64_t before);
/* A file with rows of `features` values, or so many columns of y (regress): all must have the
 * same. */
dt_status dt__survey_features(struct dt__survey *survey, uint64_t features);
dt_status dt__survey_targets(struct dt__survey *survey, uint64_t targets);
/* A file whose rows have rank - 1 dimensions, dims[1..rank): 2 of them are height and width, 3
 * those and channels; other ranks have no shape. DT_EMISMATCH: unlike the files before, or unlike
 * those of the model. */
dt_status dt__survey_shape(struct dt__survey *survey, int rank, const uint64_t *dims);
/* Takes over the names of the features (count of them), or compares with those that are there. */
dt_status dt__survey_names(struct dt__survey *survey, struct dt__names *names);
/* Takes over the columns of a table that a file of `read->features` features had them from, or
 * compares with those that are there. */
dt_status dt__survey_columns(struct dt__survey *survey, struct dt_schema *read);

#endif
