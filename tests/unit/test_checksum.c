/* CRC-32C: the published values, both implementations, and chaining. */
#include "unit/suite.h"

#include "base/internal.h"

typedef uint32_t crc_fn(uint32_t crc, const void *bytes, size_t length);
static crc_fn *const IMPLEMENTATIONS[] = {dt__crc32c, dt__crc32c_portable};

/* Sources: RFC 3720, appendix B.4, and the check value in the catalogue of CRCs. */
START_TEST(published_values)
{
    unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
    }
    for (int i = 0; i < 2; i++) {
        crc_fn *crc = IMPLEMENTATIONS[i];
        ck_assert_uint_eq(crc(0, "123456789", 9), 0xe3069283);
        ck_assert_uint_eq(crc(0, zeros, 32), 0x8a9136aa);
        ck_assert_uint_eq(crc(0, ones, 32), 0x62a8ab43);
        ck_assert_uint_eq(crc(0, up, 32), 0x46dd794e);
        ck_assert_uint_eq(crc(0, down, 32), 0x113fdb5c);
        ck_assert_uint_eq(crc(0, "", 0), 0);
    }
}
END_TEST

/* Any length, alignment and cut gives the same sum, in hardware and with the table. */
START_TEST(cuts_and_alignment_do_not_matter)
{
    unsigned char bytes[200];
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)dt__rng_u64(&rng, i);
    for (size_t begin = 0; begin < 9; begin++) {
        for (size_t end = begin; end <= sizeof bytes; end += 5) {
            const size_t middle = begin + (end - begin) / 3;
            uint32_t whole = dt__crc32c_portable(0, bytes + begin, end - begin);
            uint32_t part = dt__crc32c(0, bytes + begin, middle - begin);
            ck_assert_uint_eq(dt__crc32c(part, bytes + middle, end - middle), whole);
        }
    }
}
END_TEST

/* Long inputs are summed in three interleaved parts. */
START_TEST(long_inputs_have_the_same_sum)
{
    enum { LENGTH = 3 * 12288 + 7 };
    static unsigned char bytes[LENGTH];
    struct dt_rng rng = dt__rng_make(2, DT_STREAM_TEST, 0, 0);
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (unsigned char)dt__rng_u64(&rng, i);
    const size_t lengths[] = {12287, 12288, 12289, 24576, 30000, LENGTH - 3};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t begin = 0; begin < 3; begin++)
            ck_assert_uint_eq(dt__crc32c(77, bytes + begin, lengths[i]),
                              dt__crc32c_portable(77, bytes + begin, lengths[i]));
}
END_TEST

START_TEST(every_flipped_bit_changes_the_sum)
{
    unsigned char bytes[64] = {1, 2, 3};
    uint32_t sum = dt__crc32c(0, bytes, sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert_uint_ne(dt__crc32c(0, bytes, sizeof bytes), sum);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

SUITE("crc", published_values, cuts_and_alignment_do_not_matter, long_inputs_have_the_same_sum,
      every_flipped_bit_changes_the_sum)
