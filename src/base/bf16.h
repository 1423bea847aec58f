/* bf16: the upper half of a float. */
#ifndef BASE_BF16_H
#define BASE_BF16_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Rounds to the nearest bf16, ties to even; NaN stays NaN. */
static inline uint16_t dt__bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t nan = bits >> 16 | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* Rounds n floats. */
void dt__bf16_round(size_t n, const float *values, uint16_t *out);

static inline float dt__bf16_value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
