/* The held-out rows, as a bit set with rank and select. */
#include "data/holdout.h"

enum { WORD = 64, BLOCK = 4096, BLOCK_WORDS = BLOCK / WORD };

dt_status dt__holdout_init(struct dt__holdout *holdout, uint64_t seed, uint64_t rows,
                           uint64_t count)
{
    struct dt__holdout made = {.seed = seed, .rows = rows, .count = count};
    struct dt_perm perm;
    size_t blocks = (size_t)(rows / BLOCK + 1);
    *holdout = made;
    if (!count) return DT_OK;
    DT_TRY(dt_alloc(blocks, BLOCK / 8, "held-out rows", &made.bits));
    dt_status status = dt_alloc(blocks + 1, sizeof *made.before, "held-out rows", &made.before);
    if (status) {
        dt_free(made.bits);
        return status;
    }
    dt_perm_init(&perm, rows, dt_rng_make(seed, DT_STREAM_HOLDOUT, 0, 0));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t raw = dt_perm_at(&perm, i);
        made.bits[raw / WORD] |= (uint64_t)1 << raw % WORD;
        made.before[raw / BLOCK + 1]++;
    }
    for (size_t b = 0; b < blocks; b++)
        made.before[b + 1] += made.before[b];
    *holdout = made;
    return DT_OK;
}

void dt__holdout_free(struct dt__holdout *holdout)
{
    dt_free(holdout->bits);
    dt_free(holdout->before);
    *holdout = (struct dt__holdout){0};
}

bool dt__holdout_has(const struct dt__holdout *holdout, uint64_t raw)
{
    return holdout->count && holdout->bits[raw / WORD] >> raw % WORD & 1;
}

uint64_t dt__holdout_before(const struct dt__holdout *holdout, uint64_t raw)
{
    if (!holdout->count) return 0;
    uint64_t count = holdout->before[raw / BLOCK];
    for (uint64_t w = raw / BLOCK * BLOCK_WORDS; w < raw / WORD; w++)
        count += (uint64_t)__builtin_popcountll(holdout->bits[w]);
    uint64_t last = raw % WORD ? holdout->bits[raw / WORD] << (WORD - raw % WORD) : 0;
    return count + (uint64_t)__builtin_popcountll(last);
}

/* The least raw row with `index` rows of the part in front of it that is of the part itself. */
uint64_t dt__holdout_select(const struct dt__holdout *holdout, bool held_out, uint64_t index)
{
    uint64_t low = index, high = holdout->rows - 1;
    if (!holdout->count) return index;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t before = dt__holdout_before(holdout, middle + 1);
        if ((held_out ? before : middle + 1 - before) > index)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
