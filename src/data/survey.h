/* A survey under way: what the files seen so far have in common. */
#ifndef DATA_SURVEY_H
#define DATA_SURVEY_H

#include "data/labels.h"
#include "data/source.h"

struct dt__survey {
    const struct dt_config *config;
    const struct dt_schema *known; /* NULL: the schema is learned */
    struct dt_source *source;      /* in the making */
    struct dt__labels labels;
    int task;
    int features, targets; /* 0: not known yet */
    bool floats;           /* a value was seen that is not an integer in 0..255 */
    char *label_column;
    float *x; /* scratch for a row of text */
    size_t x_capacity;
};

/* A file with rows of `features` values; all files (and `known`) must have the same.
 * DT_EMISMATCH. The message lacks the path. */
dt_status dt__survey_features(struct dt__survey *survey, uint64_t features);
/* The same for the columns of y (regress). */
dt_status dt__survey_targets(struct dt__survey *survey, uint64_t targets);
/* Takes over the names of the features (count of them), or compares with those that are there. */
dt_status dt__survey_names(struct dt__survey *survey, struct dt__names *names);
/* Marks row `row` of a text file as a place to enter, if the last mark is far enough behind. */
dt_status dt__survey_mark(struct dt__file *file, uint64_t row, uint64_t offset, uint64_t line);

#endif
