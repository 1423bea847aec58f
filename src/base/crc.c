#include "base/crc.h"

#include <string.h>

#include "dtrain/base.h"

/* Remainders of the sixteen nibbles; polynomial 0x1EDC6F41, reflected. */
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
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse(uint32_t crc, const void *bytes,
                                                             size_t length)
{
    const unsigned char *at = bytes;
    uint64_t sum = ~crc;
    for (; length >= 8; at += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    for (; length > 0; at++, length--)
        sum = __builtin_ia32_crc32qi((uint32_t)sum, *at);
    return ~(uint32_t)sum;
}

uint32_t dt_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    if (__builtin_cpu_supports("sse4.2")) return crc32c_sse(crc, bytes, length);
    return dt__crc32c_portable(crc, bytes, length);
}
#else
uint32_t dt_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    return dt__crc32c_portable(crc, bytes, length);
}
#endif
