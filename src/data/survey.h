/* A survey under way: what the files seen so far have in common; and the statistics of
 * normalisation. */
#ifndef DATA_SURVEY_H
#define DATA_SURVEY_H

#include "data/source.h"

struct dt__survey {
    const struct dt_config *config;
    bool known; /* the source's schema is that of a model; else it is learned, member by member */
    bool training;            /* also if `known`, on a resume: rows are weighted */
    bool predicting;          /* labels may be missing */
    struct dt_source *source; /* in the making */
    struct dt__labels labels;
    const struct dt_targets *of;  /* what the rows' targets are */
    uint64_t bytes;               /* of all files */
    bool floats;                  /* a value was seen that is not an integer in 0..255 */
    bool weights;                 /* rows have weights */
    bool values;                  /* an entry was seen that is not 1 */
    char *weight_column;          /* NULL: no name has been seen */
    bool said_beyond, said_extra; /* what is said once */
};

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
/* shard.c: whether the files of data.train (lists[0]), or of data.eval (lists[1]), have all shards
 * of each set that `dtrain shard` has written, but for those of the other key; says if not. A set
 * of both keys is data.train's. DT_EIO: some have no name yet: it was killed, or has not ended. */
dt_status dt__shards_check(const struct dt__names lists[2], bool eval);
/* Deviations from the mean beyond which a value is told of: some are common in counts and prices,
 * so many hardly. */
enum { DT__FAR_DEVIATIONS = 20 };
/* data.clip with data.normalize=robust, where it is not given. */
enum { DT__ROBUST_CLIP = 5 };
/* statistics.c: reads the rows of the part, if `config` asks for what follows from them: what
 * stands for missing values, schema.mean and inv_std (of raw * scale, population variance), the
 * targets' units, all unless `known` has them; the scale of weights and weights of classes, which
 * no schema has: a resume learns them anew. Checks targets that the loss bounds, of evaluation data
 * as well. DT_EFORMAT: one that the loss does not take.
 * Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979, eq. 2.1. */
dt_status dt__statistics_learn(const struct dt__survey *survey);

#endif
