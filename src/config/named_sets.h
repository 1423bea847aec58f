/* The sets of rows that eval.also names. */
#ifndef CONFIG_NAMED_SETS_H
#define CONFIG_NAMED_SETS_H

#include "config/config.h"

enum { DT__SET_NAME = 32 };

/* A set of rows: files, given as in data.eval, with their label files; a sample of the training
 * rows; or the test rows that data.test_fraction takes. */
struct dt__named_set {
    char name[DT__SET_NAME];
    char *files, *labels; /* lists of paths; labels is "" if there are none */
    uint64_t sample;      /* number of sampled training rows; 0: not a sample */
    bool split;           /* the set is the test rows of data.train */
};

struct dt__named_sets {
    struct dt__named_set *items;
    size_t count;
};

/* Parses eval.also and eval.also_labels. NAME:FILE starts a set; a word without NAME: belongs to
 * the set before it. With data.test_fraction the set `test` comes first. The caller frees `out`,
 * which is empty after an error. DT_EUSAGE: a word before the first set, a set without files, a
 * name that is taken, labels for an unknown set, or no number after train:. The message names the
 * key. DT_EMEMORY. */
dt_status dt__sets_parse(const struct dt_config *config, struct dt__named_sets *out);
void dt__sets_free(struct dt__named_sets *sets);

/* Name of the set of test rows, which are measured only once, at the end. */
extern const char DT__TEST_SET[];
/* Name that the record of the old model (run.init) uses for its set. No set may have this name. */
extern const char DT__INIT_SET[];

#endif
