/* A split: the side of each row of the training data, decided by the row's keys and a seed.
 *
 *     rows in file order --> an order of the split --> ranges of that order are sides
 *
 *     kind        key of a row          order                        a side has
 *     random      none                  a keyed permutation          the next rows
 *     stratified  its class             the same, class after class  rows at even distances
 *     grouped     its group             groups, permuted             whole groups
 *     by time     its time              latest first                 whole instants
 *     both        its group and time    groups, by their latest row  whole groups
 *
 * The test rows are taken first; `held_out` is a fraction of the remaining rows. With `folds` = K,
 * the remaining rows are cut into K folds, and one fold is held out. With times, they are cut into
 * K + 1 blocks instead: fold 0 is the latest block, the earliest block is in no fold, and only rows
 * earlier than the held-out fold train. The split depends on keys, rule and seed alone, not on
 * ranks, memory or the format of the files. Not collective. */
#ifndef DATA_ROW_SPLIT_H
#define DATA_ROW_SPLIT_H

#include "base/base.h"

/* LEFT_OUT: the row is in a gap or, in folds with times, later than the held-out fold. */
enum dt__side { DT__TRAIN, DT__HELD_OUT, DT__TEST, DT__LEFT_OUT, DT__SIDES };

/* The keys of all rows, in file order; borrowed. `stratum` is ignored if there are groups or
 * times. */
struct dt__split_keys {
    uint64_t rows;
    const uint32_t *stratum; /* (rows) classes from 0; NULL: not stratified */
    const uint32_t *group;   /* (rows) groups from 0 without gaps; NULL: no groups */
    const double *time;      /* (rows) finite, in seconds; NULL: no times */
};

struct dt__gap {
    double size;     /* 0: no gap */
    bool in_seconds; /* `size` is in seconds; else in rows */
};

struct dt__split_rule {
    uint64_t seed;
    double test, held_out; /* fractions in [0, 1) */
    uint64_t folds, fold;  /* folds > 0: fold `fold`, from 0, is held out, and `held_out` is
                            * ignored */
    const char *key;       /* in messages: the option that asks for held-out rows */
    struct dt__gap gap;    /* with times: the rows to leave out between two sides */
};

/* The side of each row, as bits, and for each block of rows the number of rows of each side in the
 * blocks before it. */
struct dt__split {
    uint64_t rows, count[DT__SIDES];
    bool plain; /* held-out rows are drawn at random, and all other rows train */
    /* Members that point to memory that the split owns follow. */
    uint64_t *bits[2];             /* (rows, packed) bits 0 and 1 of the side; NULL: all rows
                                    * train */
    uint64_t (*before)[DT__SIDES]; /* (blocks + 1) rows of each side before a block; NULL: all rows
                                    * train */
};

/* Splits the rows. If the rule asks for nothing, all rows train, and the split needs no memory.
 * DT_EMISMATCH: a side that the rule asks for, or the training side, would be empty; the message
 * names the option. DT_EMEMORY. */
dt_status dt__split_make(const struct dt__split_rule *rule, const struct dt__split_keys *keys,
                         struct dt__split *out);
void dt__split_free(struct dt__split *split);
/* Makes a split in which all `rows` rows train. The caller then sets the side of the other rows
 * (dt__split_set) and calls dt__split_count. DT_EMEMORY. */
dt_status dt__split_alloc(struct dt__split *split, uint64_t rows);
/* Sets the side of a row, at most once per row. */
void dt__split_set(struct dt__split *split, uint64_t row, enum dt__side side);
/* Returns the size in bytes of each array in `bits`. */
size_t dt__split_bytes(const struct dt__split *split);
/* Counts the rows of each side. Call it once, after the last dt__split_set. */
void dt__split_count(struct dt__split *split);
/* Adds the split to a CRC-32C: the number of held-out rows and, unless `plain`, the side of each
 * row. */
uint32_t dt__split_crc(const struct dt__split *split, uint32_t crc);

/* Returns the side of a row. */
enum dt__side dt__split_side(const struct dt__split *split, uint64_t row);
/* Returns how many of the first `row` rows are on `side`. */
uint64_t dt__split_before(const struct dt__split *split, enum dt__side side, uint64_t row);
/* Returns the row of `side` that has exactly `index` rows of that side before it. Such a row must
 * exist. */
uint64_t dt__split_select(const struct dt__split *split, enum dt__side side, uint64_t index);

#endif
