/* Checked memory and growing text, also when memory runs out. */
#include "unit/suite.h"

#include <math.h>

#include "base/internal.h"

/* AddressSanitizer ends the program at an impossible size unless told to fail like malloc. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- memory that runs out ------------------------------------------------------------------- */

static int allocations_left = -1; /* -1: no limit */
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return __real_aligned_alloc(alignment, size);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

START_TEST(sizes_that_overflow_are_refused)
{
    size_t out = 7;
    ck_assert(!dt_size_mul(SIZE_MAX / 2, 3, &out));
    ck_assert(!dt_size_add(SIZE_MAX, 1, &out));
    ck_assert_uint_eq(out, 7);
    ck_assert(dt_size_mul(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    ck_assert(dt_size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
}
END_TEST

/* ---- allocation ----------------------------------------------------------------------------- */

static bool all_zero(const unsigned char *bytes, size_t length)
{
    while (length > 0 && bytes[length - 1] == 0)
        length--;
    return length == 0;
}

/* Memory that was used before must come back zeroed as well. */
START_TEST(memory_is_zeroed_and_aligned)
{
    for (size_t size = 0; size < 300; size += 7) {
        unsigned char *bytes;
        EXPECT_OK(dt_alloc(size, 1, "bytes", &bytes));
        ck_assert_uint_eq((uintptr_t)bytes % 64, 0);
        ck_assert(all_zero(bytes, size));
        memset(bytes, 0xff, size);
        dt_free(bytes);
    }
    dt_free(NULL);
}
END_TEST

START_TEST(impossible_sizes_are_errors)
{
    void *pointer = &pointer;
    EXPECT_FAIL(dt_alloc(SIZE_MAX / 4, 8, "weights", &pointer), DT_EMEMORY, "weights");
    EXPECT_FAIL(dt_alloc(SIZE_MAX, 1, "weights", &pointer), DT_EMEMORY, "weights");
    EXPECT_FAIL(dt_alloc((size_t)1 << 62, 1, "weights", &pointer), DT_EMEMORY, "weights");
    ck_assert_ptr_eq(pointer, &pointer);
}
END_TEST

START_TEST(growing_keeps_what_was_there_and_zeroes_the_rest)
{
    uint32_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t n = 1; n <= 1000; n++) {
        size_t before = capacity;
        EXPECT_OK(dt_grow(&items, &capacity, n, sizeof *items, "items"));
        ck_assert_uint_ge(capacity, n);
        if (capacity > before) {
            ck_assert_uint_ge(capacity, 2 * before);
            ck_assert(all_zero((unsigned char *)(items + before), (capacity - before) * 4));
        }
        items[n - 1] = n;
    }
    for (uint32_t n = 1; n <= 1000; n++)
        ck_assert_uint_eq(items[n - 1], n);
    dt_free(items);
}
END_TEST

START_TEST(growing_that_fails_changes_nothing)
{
    int *items = NULL;
    size_t capacity = 0;
    EXPECT_OK(dt_grow(&items, &capacity, 4, sizeof *items, "items"));
    int *before = items;
    items[3] = 42;
    EXPECT_FAIL(dt_grow(&items, &capacity, SIZE_MAX, sizeof *items, "items"), DT_EMEMORY, "items");
    allocations_left = 0;
    EXPECT_FAIL(dt_grow(&items, &capacity, 5, sizeof *items, "items"), DT_EMEMORY, "items");
    ck_assert_ptr_eq(items, before);
    ck_assert_uint_eq(capacity, 4);
    ck_assert_int_eq(items[3], 42);
    dt_free(items);
}
END_TEST

/* ---- text ----------------------------------------------------------------------------------- */

START_TEST(text_grows_and_stays_terminated)
{
    struct dt_text text = {0};
    EXPECT_OK(dt_text_append(&text, "", 0));
    ck_assert_str_eq(text.data, "");
    for (int i = 0; i < 500; i++)
        EXPECT_OK(dt_text_add(&text, "%d,", i % 10));
    EXPECT_OK(dt_text_append(&text, "a\0b", 3));
    ck_assert_uint_eq(text.length, 1003);
    ck_assert_int_eq(memcmp(text.data + 998, "9,a\0b", 6), 0);
    text.length = 0;
    EXPECT_OK(dt_text_append(&text, "again", 5));
    ck_assert_str_eq(text.data, "again");
    dt_text_free(&text);
    ck_assert_ptr_null(text.data);
}
END_TEST

START_TEST(text_without_memory_is_an_error_and_stays_whole)
{
    struct dt_text text = {0};
    char *copy;
    EXPECT_OK(dt_text_add(&text, "abc"));
    allocations_left = 0;
    EXPECT_FAIL(dt_text_add(&text, "%0100d", 1), DT_EMEMORY, "text");
    EXPECT_FAIL(dt_strdup("abc", &copy), DT_EMEMORY, "text");
    ck_assert_str_eq(text.data, "abc");
    ck_assert_uint_eq(text.length, 3);
    dt_text_free(&text);
}
END_TEST

/* ---- numbers as text ------------------------------------------------------------------------ */

START_TEST(reals_are_shortest_and_read_back)
{
    char buffer[DT_REAL_TEXT];
    ck_assert_str_eq(dt_real_text(0.1, buffer), "0.1");
    ck_assert_str_eq(dt_real_text(1e6, buffer), "1000000");
    ck_assert_str_eq(dt_real_text(1e22, buffer), "1e+22");
    ck_assert_str_eq(dt_real_text(0.1 + 0.2, buffer), "0.30000000000000004");
    ck_assert_str_eq(dt_real_text(-0.5, buffer), "-0.5");
    struct dt_rng rng = dt_rng_make(1, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = dt_rng_u64(&rng, i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        double back = strtod(dt_real_text(value, buffer), NULL);
        ck_assert_int_eq(memcmp(&back, &value, sizeof value), 0);
    }
}
END_TEST

SUITE("memory", sizes_that_overflow_are_refused, memory_is_zeroed_and_aligned,
      impossible_sizes_are_errors, growing_keeps_what_was_there_and_zeroes_the_rest,
      growing_that_fails_changes_nothing, text_grows_and_stays_terminated,
      text_without_memory_is_an_error_and_stays_whole, reals_are_shortest_and_read_back)
