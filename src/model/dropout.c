#include "model/dropout.h"

#include <math.h>

/* Drop number i is word i % 4 of block i / 4 of the key; a unit is dropped if the word is below
 * rate * 2^32. Blocks are made a run at a time, so that their rounds overlap. */
enum { WORDS = 4, BLOCKS = 16, RUN = WORDS * BLOCKS };

static void run_of_words(const struct dt_rng *key, uint64_t block, uint32_t words[RUN])
{
    for (uint64_t i = 0; i < BLOCKS; i++) dt_rng_block(key, block + i, words + WORDS * i);
}

static void apply_run(const uint32_t *restrict words, uint32_t threshold, float scale, int n,
                      float *restrict a, float *restrict b)
{
    for (int i = 0; i < n; i++) {
        float factor = words[i] < threshold ? 0.0f : scale;
        a[i] *= factor;
        b[i] *= factor;
    }
}

void dt__dropout_apply(const struct dt__dropout *dropout, uint64_t number, int n, float *restrict a,
                       float *restrict b)
{
    const uint32_t threshold = (uint32_t)llrint(dropout->rate * 0x1p32);
    const float scale = (float)(1.0 / (1.0 - dropout->rate));
    uint32_t words[RUN];
    for (int done = 0; done < n;) {
        int skip = (int)((number + (uint64_t)done) % WORDS);
        int part = RUN - skip < n - done ? RUN - skip : n - done;
        run_of_words(&dropout->key, (number + (uint64_t)done) / WORDS, words);
        apply_run(words + skip, threshold, scale, part, a + done, b + done);
        done += part;
    }
}
