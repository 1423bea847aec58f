#include "model/dropout.h"

#include <math.h>

/* Drop number i is word i % 4 of block i / 4 of the key; a unit is dropped if the word is below
 * rate * 2^32. Blocks are made a run at a time. */
enum { WORDS = 4, BLOCKS = 64, RUN = WORDS * BLOCKS };

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
    const uint32_t threshold = (uint32_t)fmin(dropout->rate * 0x1p32, 0xffffffffp0);
    const float scale = (float)(1.0 / (1.0 - dropout->rate));
    uint32_t words[RUN];
    for (int done = 0; done < n;) {
        const uint64_t at = number + (uint64_t)done;
        const int skip = (int)(at % WORDS), left = n - done;
        const int part = RUN - skip < left ? RUN - skip : left;
        const size_t blocks = (size_t)((skip + part + WORDS - 1) / WORDS);
        dt_rng_blocks(&dropout->key, at / WORDS, blocks, words);
        apply_run(words + skip, threshold, scale, part, a + done, b + done);
        done += part;
    }
}
