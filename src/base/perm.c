#include "dtrain/base.h"

/* The domain is the least power of two >= n, so that less than two walks are expected; its bits are
 * split into two halves that may differ by one, each XORed in turn with a mix of the other. Halves of
 * one or two bits mix badly (over 200,000 keys of n = 5 to 8, chi-square of the first two elements is
 * 30 to 100 times its degrees of freedom), so a small n walks through 256. */
enum { LEAST_BITS = 8 };

void dt_perm_init(struct dt_perm *perm, uint64_t n, struct dt_rng rng)
{
    int bits = LEAST_BITS;
    while (bits < 63 && (uint64_t)1 << bits < n)
        bits++;
    perm->n = n;
    perm->high_bits = bits / 2;
    perm->low_bits = bits - bits / 2;
    for (int round = 0; round < DT_PERM_ROUNDS; round++)
        perm->key[round] = dt_rng_u64(&rng, (uint64_t)round);
}

/* Finalizer of MurmurHash3 (Appleby, public domain): each input bit flips half of the output bits. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

static uint64_t mask(int bits)
{
    return ((uint64_t)1 << bits) - 1;
}

static uint64_t feistel(const struct dt_perm *perm, uint64_t value)
{
    uint64_t low_mask = mask(perm->low_bits), high_mask = mask(perm->high_bits);
    uint64_t low = value & low_mask, high = value >> perm->low_bits;
    for (int round = 0; round < DT_PERM_ROUNDS; round += 2) {
        high ^= mix(low ^ perm->key[round]) & high_mask;
        low ^= mix(high ^ perm->key[round + 1]) & low_mask;
    }
    return high << perm->low_bits | low;
}

uint64_t dt_perm_at(const struct dt_perm *perm, uint64_t index)
{
    do
        index = feistel(perm, index);
    while (index >= perm->n);
    return index;
}
