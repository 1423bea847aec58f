/* Splits. Without groups and times, rows are assigned to sides one by one, in a permuted order that
 * is computed and not stored. With groups or times, each group or instant is a unit: the units are
 * sorted, and all rows of a unit go to one side. */
#include "data/row_split.h"

#include <math.h>
#include <stdlib.h>

#include "base/limits.h"

enum { WORD_BITS = 64, BLOCK_BITS = DT__HELD_OUT_ROWS, BLOCK_WORDS = BLOCK_BITS / WORD_BITS };
_Static_assert(BLOCK_BITS % WORD_BITS == 0, "whole words of bits");

/* ---- sides as bits -------------------------------------------------------------------------- */

dt_status dt__split_alloc(struct dt__split *split, uint64_t rows)
{
    const size_t blocks = (size_t)(rows / BLOCK_BITS + 1);
    split->rows = rows;
    dt_status status = DT_OK;
    for (int b = 0; b < 2 && !status; b++)
        status = dt__alloc(blocks, BLOCK_BITS / 8, "held-out rows", &split->bits[b]);
    if (!status)
        status = dt__alloc(blocks + 1, sizeof *split->before, "held-out rows", &split->before);
    if (status) dt__split_free(split);
    return status;
}

size_t dt__split_bytes(const struct dt__split *split)
{
    return (size_t)(split->rows / WORD_BITS + 1) * sizeof **split->bits;
}

uint32_t dt__split_crc(const struct dt__split *split, uint32_t crc)
{
    crc = dt__crc32c(crc, &split->count[DT__HELD_OUT], sizeof *split->count);
    for (int b = 0; b < 2 && split->before && !split->plain; b++)
        crc = dt__crc32c(crc, split->bits[b], dt__split_bytes(split));
    return crc;
}

void dt__split_free(struct dt__split *split)
{
    dt_free(split->bits[0]);
    dt_free(split->bits[1]);
    dt_free(split->before);
    *split = (struct dt__split){0};
}

void dt__split_set(struct dt__split *split, uint64_t row, enum dt__side side)
{
    for (int b = 0; b < 2; b++)
        split->bits[b][row / WORD_BITS] |= (uint64_t)(side >> b & 1) << row % WORD_BITS;
}

enum dt__side dt__split_side(const struct dt__split *split, uint64_t row)
{
    const uint64_t word = row / WORD_BITS, bit = row % WORD_BITS;
    if (!split->before) return DT__TRAIN;
    const uint64_t low = split->bits[0][word] >> bit & 1, high = split->bits[1][word] >> bit & 1;
    return (enum dt__side)(low | high << 1);
}

/* Returns how many of the first `count` rows of a word are on `side`. A word has 64 rows; a greater
 * `count` means all of them. */
static uint64_t word_count(const struct dt__split *split, enum dt__side side, uint64_t word,
                           uint64_t count)
{
    uint64_t rows = ~(uint64_t)0;
    for (int b = 0; b < 2; b++)
        rows &= side >> b & 1 ? split->bits[b][word] : ~split->bits[b][word];
    if (count < WORD_BITS) rows &= ((uint64_t)1 << count) - 1;
    return (uint64_t)__builtin_popcountll(rows);
}

uint64_t dt__split_before(const struct dt__split *split, enum dt__side side, uint64_t row)
{
    if (!split->before) return side == DT__TRAIN ? row : 0;
    uint64_t count = split->before[row / BLOCK_BITS][side];
    for (uint64_t w = row / BLOCK_BITS * BLOCK_WORDS; w < row / WORD_BITS; w++)
        count += word_count(split, side, w, WORD_BITS);
    return count +
           (row % WORD_BITS ? word_count(split, side, row / WORD_BITS, row % WORD_BITS) : 0);
}

uint64_t dt__split_select(const struct dt__split *split, enum dt__side side, uint64_t index)
{
    uint64_t low = index, high = split->rows - 1;
    if (!split->before) return index;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (dt__split_before(split, side, middle + 1) > index)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void dt__split_count(struct dt__split *split)
{
    for (uint64_t row = 0; row < split->rows; row += WORD_BITS) {
        const uint64_t left = split->rows - row;
        for (int s = 0; s < DT__SIDES; s++)
            split->before[row / BLOCK_BITS + 1][s] +=
                word_count(split, (enum dt__side)s, row / WORD_BITS, left);
    }
    for (uint64_t b = 0; b <= split->rows / BLOCK_BITS; b++)
        for (int s = 0; s < DT__SIDES; s++)
            split->before[b + 1][s] += split->before[b][s];
    for (int s = 0; s < DT__SIDES; s++)
        split->count[s] = split->before[split->rows / BLOCK_BITS + 1][s];
}

/* ---- row by row ----------------------------------------------------------------------------- */

static uint64_t fraction_of(double fraction, uint64_t rows)
{
    return (uint64_t)rint(fraction * (double)rows);
}

/* Returns how many of `count` positions, spread evenly over [0, rows), are below `at`. */
static uint64_t even_before(uint64_t at, uint64_t count, uint64_t rows)
{
    return (uint64_t)((unsigned __int128)at * count / rows);
}

/* Returns the side of the row at position `at` of the order. In a stratified split (`even`), the
 * rows of a class have consecutive positions, so positions at even distances give each side its
 * fraction of every class, to within one row. */
static enum dt__side position_side(const struct dt__split_rule *rule, bool even, uint64_t rows,
                                   uint64_t at)
{
    const uint64_t test = fraction_of(rule->test, rows), left = rows - test;
    const uint64_t before = even ? even_before(at, test, rows) : at < test ? at : test;
    const uint64_t held = fraction_of(rule->held_out, left);
    if (even ? even_before(at + 1, test, rows) > before : at < test) return DT__TEST;
    at -= before;
    if (rule->folds) return at % rule->folds == rule->fold ? DT__HELD_OUT : DT__TRAIN;
    return (even ? even_before(at + 1, held, left) > even_before(at, held, left) : at < held)
               ? DT__HELD_OUT
               : DT__TRAIN;
}

/* Computes the first position of each class in an order that has the rows of class 0 first, then
 * those of class 1, and so on: (*out)[class]. */
static dt_status strata_begin(const struct dt__split_keys *keys, uint64_t **out)
{
    uint32_t most = 0;
    uint64_t *begin;
    for (uint64_t row = 0; row < keys->rows; row++)
        if (keys->stratum[row] > most) most = keys->stratum[row];
    DT_TRY(dt__alloc((size_t)most + 2, sizeof *begin, "classes", &begin));
    for (uint64_t row = 0; row < keys->rows; row++)
        begin[keys->stratum[row] + 1]++;
    for (size_t c = 0; c < most; c++)
        begin[c + 1] += begin[c];
    *out = begin;
    return DT_OK;
}

static dt_status rows_split(const struct dt__split_rule *rule, const struct dt__split_keys *keys,
                            struct dt__split *split)
{
    const uint64_t rows = keys->rows;
    uint64_t *next = NULL;
    struct dt_perm perm;
    if (keys->stratum) DT_TRY(strata_begin(keys, &next));
    dt__perm_init(&perm, rows, dt__rng_make(rule->seed, DT_STREAM_HOLDOUT, 0, 0));
    const uint64_t test = fraction_of(rule->test, rows);
    const uint64_t first = test + fraction_of(rule->held_out, rows - test);
    const uint64_t end = next || rule->folds ? rows : first; /* later rows train */
    for (uint64_t i = 0; i < end; i++) {
        const uint64_t row = dt__perm_at(&perm, i);
        const uint64_t at = next ? next[keys->stratum[row]]++ : i;
        dt__split_set(split, row, position_side(rule, next, rows, at));
    }
    dt_free(next);
    return DT_OK;
}

/* ---- unit by unit --------------------------------------------------------------------------- */

/* The rows of one group or of one instant. They all go to one side. */
struct unit {
    double key; /* minus the unit's latest time; without times, random */
    uint64_t rows;
    uint32_t number;
    enum dt__side side;
};

struct units {
    struct unit *items; /* (count) sorted: units are assigned to sides in this order */
    size_t count, at;   /* at: the next unit to assign */
    uint64_t taken;     /* number of rows in the units before `at` */
    uint32_t *of_row;   /* (rows) instant of each row; NULL: units are groups */
};

static int unit_order(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int unit_number_order(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int time_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Numbers the different times from 0, the earliest: (*out)[row] is the number of the row's time,
 * and *count how many times there are. */
static dt_status instants_number(const struct dt__split_keys *keys, uint32_t **out, size_t *count)
{
    const size_t rows = (size_t)keys->rows;
    double *sorted;
    uint32_t *of_row = NULL;
    size_t n = 0;
    dt_status status = dt__alloc(rows, sizeof *sorted, "times", &sorted);
    if (!status) status = dt__alloc(rows, sizeof *of_row, "times", &of_row);
    for (size_t row = 0; row < rows && !status; row++)
        sorted[row] = keys->time[row];
    if (!status) qsort(sorted, rows, sizeof *sorted, time_order);
    for (size_t i = 0; i < rows && !status; i++)
        if (!n || sorted[i] > sorted[n - 1]) sorted[n++] = sorted[i];
    for (size_t row = 0; row < rows && !status; row++) {
        const double *at = bsearch(&keys->time[row], sorted, n, sizeof *sorted, time_order);
        of_row[row] = (uint32_t)(at - sorted);
    }
    dt_free(sorted);
    *out = of_row;
    *count = n;
    return status;
}

/* Makes the units and sorts them. */
static dt_status units_make(const struct dt__split_rule *rule, const struct dt__split_keys *keys,
                            struct units *units)
{
    const struct dt_rng rng = dt__rng_make(rule->seed, DT_STREAM_HOLDOUT, 1, 0);
    const uint32_t *of_row = keys->group;
    if (!of_row) DT_TRY(instants_number(keys, &units->of_row, &units->count));
    if (!of_row) of_row = units->of_row;
    for (uint64_t row = 0; keys->group && row < keys->rows; row++)
        if (of_row[row] >= units->count) units->count = (size_t)of_row[row] + 1;
    DT_TRY(dt__alloc(units->count, sizeof *units->items, "groups", &units->items));
    for (size_t u = 0; u < units->count; u++)
        units->items[u] = (struct unit){
            .number = (uint32_t)u, .key = keys->time ? (double)INFINITY : dt__rng_uniform(&rng, u)};
    for (uint64_t row = 0; row < keys->rows; row++) {
        struct unit *unit = &units->items[of_row[row]];
        unit->rows++;
        if (keys->time) unit->key = fmin(unit->key, -keys->time[row]);
    }
    qsort(units->items, units->count, sizeof *units->items, unit_order);
    return DT_OK;
}

/* Assigns the next unit to a side. */
static void unit_take(struct units *units, enum dt__side side)
{
    units->items[units->at].side = side;
    units->taken += units->items[units->at++].rows;
}

/* Assigns to `side` the next unit, and all later ones up to row `end` of the order. A unit that
 * crosses `end` is included if more than half of its rows lie before `end`. */
static void units_take(struct units *units, uint64_t end, enum dt__side side)
{
    if (units->at < units->count) unit_take(units, side);
    while (units->at < units->count && 2 * units->taken + units->items[units->at].rows < 2 * end)
        unit_take(units, side);
}

/* Marks the units in the gap after the last unit taken as left out. */
static void units_leave_gap(struct units *units, const struct dt__gap *gap)
{
    const uint64_t from = units->taken;
    const double last = units->items[units->at - 1].key;
    while (gap->size > 0 && units->at < units->count &&
           (gap->in_seconds ? units->items[units->at].key < last + gap->size
                            : (double)(units->taken - from) < gap->size))
        unit_take(units, DT__LEFT_OUT);
}

/* Fails because the folds took all `units` units, which have `rows` rows: no earlier rows are left
 * to train on. */
static dt_status folds_fail(const struct dt__split_rule *rule, bool grouped, uint64_t rows,
                            size_t units)
{
    typedef unsigned long long number;
    return dt_fail(DT_EMISMATCH,
                   "%s: fold %llu has no earlier rows to train on (%llu rows, %zu distinct %s); "
                   "expected fewer folds or more %s",
                   rule->key, (number)rule->fold, (number)rows, units, grouped ? "groups" : "times",
                   grouped ? "groups" : "times");
}

static dt_status units_split(const struct dt__split_rule *rule, const struct dt__split_keys *keys,
                             struct dt__split *split)
{
    const bool timed = keys->time;
    const uint64_t blocks = rule->folds + timed;
    struct units units = {0};
    dt_status status;
    DT_GUARD(units_make(rule, keys, &units));
    if (rule->test > 0) {
        units_take(&units, fraction_of(rule->test, keys->rows), DT__TEST);
        if (timed) units_leave_gap(&units, &rule->gap);
    }
    const uint64_t from = units.taken, left = keys->rows - from;
    const size_t first = units.at;
    for (uint64_t f = 0; rule->folds && f <= rule->fold; f++)
        units_take(&units, from + even_before(f + 1, left, blocks),
                   f == rule->fold ? DT__HELD_OUT
                   : timed         ? DT__LEFT_OUT
                                   : DT__TRAIN);
    if (!rule->folds && rule->held_out > 0)
        units_take(&units, from + fraction_of(rule->held_out, left), DT__HELD_OUT);
    if (timed && rule->folds && units.at == units.count && units.at > first)
        DT_GUARD(folds_fail(rule, keys->group, left, units.at - first));
    if (timed && units.taken > from) units_leave_gap(&units, &rule->gap);
    while (units.at < units.count)
        unit_take(&units, DT__TRAIN);
    qsort(units.items, units.count, sizeof *units.items, unit_number_order);
    const uint32_t *of_row = keys->group ? keys->group : units.of_row;
    for (uint64_t row = 0; row < keys->rows; row++)
        dt__split_set(split, row, units.items[of_row[row]].side);
done:
    dt_free(units.items);
    dt_free(units.of_row);
    return status;
}

/* ---- the split ------------------------------------------------------------------------------ */

/* Checks that the training side, and each side that the rule asks for, has rows. */
static dt_status split_check(const struct dt__split_rule *rule, const struct dt__split_keys *keys,
                             const struct dt__split *split)
{
    typedef unsigned long long number;
    const uint64_t rows = split->rows, test = split->count[DT__TEST], left = rows - test;
    const uint64_t held = split->count[DT__HELD_OUT];
    const char *expected =
        keys->group          ? "some but not all (rows of one group stay together: data.group)"
        : keys->time         ? "some but not all (rows of one time stay together: data.time)"
        : rule->folds > left ? "no more folds than rows"
                             : "some but not all";
    if (rule->test > 0 && (!test || !left))
        return dt_fail(DT_EMISMATCH, "data.test_fraction takes %llu of %llu rows; expected %s",
                       (number)test, (number)rows, expected);
    if (rule->gap.size > 0 && held < left && !split->count[DT__TRAIN])
        return dt_fail(DT_EMISMATCH,
                       "data.gap leaves none of %llu rows to train on; expected a smaller gap",
                       (number)rows);
    if ((rule->folds || rule->held_out > 0) && (!held || held == left))
        return dt_fail(DT_EMISMATCH, "%s holds out %llu of %llu rows; expected %s", rule->key,
                       (number)held, (number)left, expected);
    return DT_OK;
}

dt_status dt__split_make(const struct dt__split_rule *rule, const struct dt__split_keys *keys,
                         struct dt__split *out)
{
    struct dt__split split = {0};
    const bool keyed = keys->stratum || keys->group || keys->time;
    *out = (struct dt__split){.rows = keys->rows, .count[DT__TRAIN] = keys->rows};
    if (!(rule->test > 0 || rule->held_out > 0 || rule->folds)) return DT_OK;
    DT_TRY(dt__split_alloc(&split, keys->rows));
    dt_status status = keys->group || keys->time ? units_split(rule, keys, &split)
                                                 : rows_split(rule, keys, &split);
    if (!status) {
        split.plain = !keyed && !rule->folds && rule->test == 0;
        dt__split_count(&split);
        status = split_check(rule, keys, &split);
    }
    if (status)
        dt__split_free(&split);
    else
        *out = split;
    return status;
}
