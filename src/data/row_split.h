/* A split: the side of each row of the training data, decided by keys of the rows and a seed.
 *
 *     rows in file order --> an order of the split --> ranges of that order are sides
 *
 *     kind        key of a row          order                        sides are
 *     random      none                  a keyed permutation          its first rows
 *     stratified  its class             the same, class after class  rows at even distances
 *     grouped     its group             groups, permuted             whole groups
 *     in time     its time              latest first                 whole instants
 *     both        its group and time    groups, by their latest row  whole groups
 *
 * The test rows are taken first; `held_out` is a fraction of the rows that are left. With `folds`,
 * these rows are cut into K folds, and the rows of one fold are held out. In time, fold 0 has the
 * latest rows, a fold trains on earlier rows only, and the earliest block (one of K + 1) is in no
 * fold. The result depends on nothing else: not on ranks, memory or the format of the files.
 * Not collective. */
#ifndef DATA_ROW_SPLIT_H
#define DATA_ROW_SPLIT_H

#include "base/base.h"

/* LEFT_OUT: a row of the gap, or, with folds in time, later than the fold. */
enum dt__side { DT__TRAINS, DT__HELD_OUT, DT__TEST, DT__LEFT_OUT, DT__SIDES };

/* Keys of each row, in file order; borrowed. With groups or times there are no strata. */
struct dt__split_keys {
    uint64_t rows;
    const uint32_t *stratum; /* (rows) classes from 0; NULL: not stratified */
    const uint32_t *group;   /* (rows) groups from 0, none left out; NULL: no groups */
    const double *time;      /* (rows) finite, in seconds; NULL: no times */
};

struct dt__gap {
    double size;  /* 0: none */
    bool seconds; /* else rows */
};

struct dt__split_rule {
    uint64_t seed;
    double test, held_out; /* fractions, 0 and more, below 1 */
    uint64_t folds, fold;  /* folds > 0: fold 0..folds-1 is held out in place of `held_out` */
    const char *key;       /* that asks for held-out rows; for messages */
    struct dt__gap gap;    /* in time: left out between sides */
};

/* Bits of the rows' sides, and the count of each side before each block of rows. */
struct dt__split {
    uint64_t rows, count[DT__SIDES];
    bool plain; /* held-out rows are drawn at random, and no row is of another side */
    /* The arrays that the split owns come last. */
    uint64_t *bits[2];             /* bit 0 and bit 1 of the side; NULL: all rows train */
    uint64_t (*before)[DT__SIDES]; /* (blocks + 1) */
};

/* Splits keys->rows rows. A rule that asks for nothing makes all rows train, without memory.
 * DT_EMISMATCH: a side that the rule asks for, or the training rows, would be empty; the message
 * names the key. DT_EMEMORY. */
dt_status dt__split_make(const struct dt__split_rule *rule, const struct dt__split_keys *keys,
                         struct dt__split *out);
void dt__split_free(struct dt__split *split);
/* Makes a split in which all `rows` rows train. The caller gives rows another side, each at most
 * once, and then has them counted. DT_EMEMORY. */
dt_status dt__split_alloc(struct dt__split *split, uint64_t rows);
void dt__split_set(struct dt__split *split, uint64_t row, enum dt__side side);
/* Returns the bytes of each array of `bits`. */
size_t dt__split_bytes(const struct dt__split *split);
void dt__split_count(struct dt__split *split);
/* Adds the split to a CRC-32C: the number of held-out rows, and, unless these are drawn at random
 * and there is no test, the side of each row. */
uint32_t dt__split_crc(const struct dt__split *split, uint32_t crc);

enum dt__side dt__split_side(const struct dt__split *split, uint64_t row);
/* Returns the number of rows of a side among the first `row` rows. */
uint64_t dt__split_before(const struct dt__split *split, enum dt__side side, uint64_t row);
/* Returns the index-th row of a side. */
uint64_t dt__split_select(const struct dt__split *split, enum dt__side side, uint64_t index);

#endif
