/* Random numbers and permutations without state: pure functions of a key and a counter. */
#include "base/base.h"
#include "base/clones.h"
#include "base/elementary.h"
#include "base/limits.h"

#include <math.h>

#include "base/internal.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* Constants and round of Philox4x32. Source: Salmon et al., SC 2011, section 3.3 and table 2. */
enum { PHILOX_ROUNDS = 10 };
static const uint32_t PHILOX_M0 = 0xD2511F53u, PHILOX_M1 = 0xCD9E8D57u;
static const uint32_t PHILOX_W0 = 0x9E3779B9u, PHILOX_W1 = 0xBB67AE85u;

/* The rounds for several blocks at once; the compiler uses vectors if there are enough blocks. */
static inline __attribute__((always_inline)) void philox_rounds(const uint32_t key[2], int blocks,
                                                                uint32_t *c0, uint32_t *c1,
                                                                uint32_t *c2, uint32_t *c3)
{
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++, k0 += PHILOX_W0, k1 += PHILOX_W1) {
        for (int b = 0; b < blocks; b++) {
            uint64_t p0 = (uint64_t)PHILOX_M0 * c0[b], p1 = (uint64_t)PHILOX_M1 * c2[b];
            c0[b] = (uint32_t)(p1 >> 32) ^ c1[b] ^ k0;
            c1[b] = (uint32_t)p1;
            c2[b] = (uint32_t)(p0 >> 32) ^ c3[b] ^ k1;
            c3[b] = (uint32_t)p0;
        }
    }
}

void dt__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    memcpy(out, counter, 4 * sizeof *out);
    philox_rounds(key, 1, &out[0], &out[1], &out[2], &out[3]);
}

static uint32_t low(uint64_t value)
{
    return (uint32_t)value;
}

static uint32_t high(uint64_t value)
{
    return (uint32_t)(value >> 32);
}

/* Derives a key in two steps. The seed as a key maps (stream, a) to a key and half a counter; this
 * key maps that half and b to the final key. */
struct dt_rng dt__rng_make(uint64_t seed, enum dt_stream stream, uint64_t a, uint64_t b)
{
    const uint32_t seed_key[2] = {low(seed), high(seed)};
    const uint32_t first[4] = {low(a), high(a), (uint32_t)stream, 0};
    uint32_t link[4], out[4];
    dt__philox(seed_key, first, link);
    const uint32_t second[4] = {low(b), high(b), link[2], link[3]};
    dt__philox(link, second, out);
    return (struct dt_rng){{out[0], out[1]}};
}

void dt__rng_block(const struct dt_rng *rng, uint64_t counter, uint32_t out[4])
{
    const uint32_t words[4] = {low(counter), high(counter), 0, 0};
    dt__philox(rng->key, words, out);
}

enum { LANES = DT__RNG_LANES };

DT__CLONES
static void philox_lanes(const uint32_t key[2], uint64_t counter, uint32_t out[4 * LANES])
{
    uint32_t c0[LANES], c1[LANES], c2[LANES] = {0}, c3[LANES] = {0};
    for (unsigned l = 0; l < LANES; l++)
        c0[l] = low(counter + l), c1[l] = high(counter + l);
    philox_rounds(key, LANES, c0, c1, c2, c3);
    for (int l = 0; l < LANES; l++, out += 4)
        out[0] = c0[l], out[1] = c1[l], out[2] = c2[l], out[3] = c3[l];
}

void dt__rng_blocks(const struct dt_rng *rng, uint64_t counter, size_t count, uint32_t *out)
{
    for (; count >= LANES; count -= LANES, counter += LANES, out += (size_t)4 * LANES)
        philox_lanes(rng->key, counter, out);
    for (; count; count--, counter++, out += 4)
        dt__rng_block(rng, counter, out);
}

static uint64_t join(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint64_t dt__rng_u64(const struct dt_rng *rng, uint64_t index)
{
    uint32_t words[4];
    dt__rng_block(rng, index / 2, words);
    return join(words + 2 * (index % 2));
}

double dt__rng_uniform(const struct dt_rng *rng, uint64_t index)
{
    return unit(dt__rng_u64(rng, index));
}

double dt__rng_normal(const struct dt_rng *rng, uint64_t index)
{
    uint32_t words[4];
    dt__rng_block(rng, index, words);
    const double u = 1.0 - unit(join(words)); /* never 0 */
    const double angle = 2.0 * 3.14159265358979323846 * unit(join(words + 2));
    return sqrt(-2.0 * dt__elementary->log(u)) * dt__elementary->cos(angle);
}

/* ---- permutations ---------------------------------------------------------------------------- */

/* The domain is the smallest power of two >= n, so fewer than two rounds of cycle walking are
 * expected. Its bits are split into two halves, which may differ by one bit; each half in turn is
 * XORed with a mix of the other. Halves of one or two bits mix badly: over 200,000 keys for n = 5
 * to 8, chi-square of the first two elements is 30 to 100 times its degrees of freedom. So a small
 * n walks through 256. */
enum { LEAST_BITS = 8 };

void dt__perm_init(struct dt_perm *perm, uint64_t n, struct dt_rng rng)
{
    int bits = LEAST_BITS;
    while (bits < 63 && (uint64_t)1 << bits < n)
        bits++;
    perm->n = n;
    perm->high_bits = bits / 2;
    perm->low_bits = bits - bits / 2;
    for (int round = 0; round < DT_PERM_ROUNDS; round++)
        perm->key[round] = dt__rng_u64(&rng, (uint64_t)round);
}

/* The finalizer of MurmurHash3 (Appleby, public domain): each input bit flips half of the output
 * bits on average. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

uint64_t dt__perm_at(const struct dt_perm *perm, uint64_t index)
{
    const uint64_t low_mask = (UINT64_C(1) << perm->low_bits) - 1;
    const uint64_t high_mask = (UINT64_C(1) << perm->high_bits) - 1;
    do {
        uint64_t low = index & low_mask, high = index >> perm->low_bits;
        for (int round = 0; round < DT_PERM_ROUNDS; round += 2) {
            high ^= mix(low ^ perm->key[round]) & high_mask;
            low ^= mix(high ^ perm->key[round + 1]) & low_mask;
        }
        index = high << perm->low_bits | low;
    } while (index >= perm->n);
    return index;
}
