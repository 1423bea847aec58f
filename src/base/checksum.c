/* CRC-32C, with the CPU's instruction on three interleaved ranges if it exists, else nibble by
 * nibble. */
#include "base/internal.h"

#include <string.h>

#include "base/base.h"

/* Remainders of the sixteen nibbles, for the polynomial 0x1EDC6F41, bits reflected. */
static const uint32_t NIBBLE[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t dt__crc32c_portable(uint32_t crc, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ NIBBLE[crc & 15];
        crc = crc >> 4 ^ NIBBLE[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)
#define SSE42 __attribute__((target("sse4.2")))

/* The instruction's latency is three times the interval at which it can be issued. So three
 * interleaved sums are three times as fast as one, as fast as one core reads memory. */
enum { RANGE = 4096 };
/* x^(8 * RANGE) and x^(16 * RANGE) modulo the polynomial: the factors of a sum when one or two more
 * ranges follow. */
static const uint32_t FACTOR_1 = 0x35d73a62, FACTOR_2 = 0x28461564;

/* Returns a * b modulo the polynomial, bits reflected. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        if (a & bit) product ^= b;
        b = b & 1 ? b >> 1 ^ 0x82f63b78 : b >> 1;
    }
    return product;
}

SSE42 static uint64_t add_word(uint64_t sum, const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return __builtin_ia32_crc32di(sum, word);
}

/* Adds 3 * RANGE bytes to the sum. */
SSE42 static uint64_t add_ranges(uint64_t sum, const unsigned char *at)
{
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < RANGE; i += 8) {
        sum = add_word(sum, at + i);
        second = add_word(second, at + RANGE + i);
        third = add_word(third, at + 2 * RANGE + i);
    }
    return multiply(FACTOR_2, (uint32_t)sum) ^ multiply(FACTOR_1, (uint32_t)second) ^ third;
}

SSE42 static uint32_t crc32c_sse(uint32_t crc, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t sum = ~crc;
    for (; length >= 3 * RANGE; at += 3 * RANGE, length -= 3 * RANGE)
        sum = add_ranges(sum, at);
    for (; length >= 8; at += 8, length -= 8)
        sum = add_word(sum, at);
    for (; length > 0; at++, length--)
        sum = __builtin_ia32_crc32qi((uint32_t)sum, *at);
    return ~(uint32_t)sum;
}

uint32_t dt__crc32c(uint32_t crc, const void *bytes, size_t length)
{
    if (__builtin_cpu_supports("sse4.2")) return crc32c_sse(crc, bytes, length);
    return dt__crc32c_portable(crc, bytes, length);
}
#else
uint32_t dt__crc32c(uint32_t crc, const void *bytes, size_t length)
{
    return dt__crc32c_portable(crc, bytes, length);
}
#endif
