/* Checked memory, growing text, and allocations that fail. */
#include "unit/suite.h"

#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/arena.h"

/* This option keeps AddressSanitizer from ending the program at an impossible size, at which malloc
 * would fail. */
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
    ck_assert(!dt__size_mul(SIZE_MAX / 2, 3, &out));
    ck_assert(!dt__size_add(SIZE_MAX, 1, &out));
    ck_assert_uint_eq(out, 7);
    ck_assert(dt__size_mul(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    ck_assert(dt__size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
}
END_TEST

/* ---- allocation ----------------------------------------------------------------------------- */

/* Returns true if a file in the directory is mapped. */
static bool is_mapped(const char *dir)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, dir) != NULL;
    fclose(maps);
    return found;
}

/* Bytes of memory that the host seems to have; 0: the real number. */
static long memory_bytes;
long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name)
{
    if (!memory_bytes || name != _SC_PHYS_PAGES) return __real_sysconf(name);
    return memory_bytes / __real_sysconf(_SC_PAGESIZE);
}

static bool all_zero(const unsigned char *bytes, size_t length)
{
    while (length > 0 && bytes[length - 1] == 0)
        length--;
    return length == 0;
}

/* Fails if reused memory is not zeroed. */
START_TEST(memory_is_zeroed_and_aligned)
{
    for (size_t size = 0; size < 300; size += 7) {
        unsigned char *bytes;
        EXPECT_OK(dt__alloc(size, 1, "bytes", &bytes));
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
    static const size_t counts[] = {SIZE_MAX / 4, SIZE_MAX / 8, (size_t)1 << 59};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        void *pointer = &pointer; /* must become NULL: a caller might free it */
        EXPECT_FAIL(dt__alloc(counts[i], 8, "weights", &pointer), DT_EMEMORY, "weights");
        ck_assert_ptr_null(pointer);
    }
}
END_TEST

START_TEST(growing_keeps_old_items_and_zeroes_new_ones)
{
    uint32_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t n = 1; n <= 1000; n++) {
        size_t before = capacity;
        EXPECT_OK(dt__grow(&items, &capacity, n, sizeof *items, "items"));
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
    EXPECT_OK(dt__grow(&items, &capacity, 4, sizeof *items, "items"));
    int *before = items;
    items[3] = 42;
    EXPECT_FAIL(dt__grow(&items, &capacity, SIZE_MAX, sizeof *items, "items"), DT_EMEMORY, "items");
    allocations_left = 0;
    EXPECT_FAIL(dt__grow(&items, &capacity, 5, sizeof *items, "items"), DT_EMEMORY, "items");
    ck_assert_ptr_eq(items, before);
    ck_assert_uint_eq(capacity, 4);
    ck_assert_int_eq(items[3], 42);
    dt_free(items);
}
END_TEST

/* An allocation that fails leaves the earlier blocks unchanged. AddressSanitizer would show
 * leaks. */
START_TEST(blocks_of_an_arena_are_freed_together)
{
    struct dt__arena *arena = NULL;
    unsigned char *block[3];
    for (size_t i = 0; i < 3; i++) {
        EXPECT_OK(dt__arena_alloc(&arena, i, 100, "blocks", &block[i]));
        ck_assert_uint_eq((uintptr_t)block[i] % 64, 0);
        ck_assert(all_zero(block[i], 100 * i));
        memset(block[i], 0xff, 100 * i);
    }
    const struct dt__arena *last = arena;
    void *no_block;
    EXPECT_FAIL(dt__arena_alloc(&arena, SIZE_MAX, 1, "blocks", &no_block), DT_EMEMORY, "blocks");
    EXPECT_FAIL(dt__arena_alloc(&arena, SIZE_MAX / 2, 3, "blocks", &no_block), DT_EMEMORY,
                "blocks");
    ck_assert_ptr_eq(arena, last);
    dt__arena_free(&arena);
    ck_assert_ptr_null(arena);
    dt__arena_free(&arena);
}
END_TEST

/* A block of at least a sixteenth of the host's memory is a file without a name; a smaller block,
 * and one that has no directory for the file, is plain memory. */
START_TEST(large_backed_memory_is_a_file_without_a_name)
{
    enum { SMALL = 1000, BIG = 10 << 20 };
    static const char *const sibling[] = {"x", "nowhere/x", NULL};
    unsigned char *bytes;
    char dir[64];
    scratch_enter(dir);
    memory_bytes = 16L * BIG;
    for (int i = 0; i < 3; i++)
        for (size_t size = SMALL; size <= BIG; size += BIG - SMALL) {
            EXPECT_OK(dt__alloc_backed(sibling[i], size, 1, "bytes", &bytes));
            ck_assert_uint_eq((uintptr_t)bytes % 64, 0);
            ck_assert(all_zero(bytes, size));
            memset(bytes, 0xff, size);
            ck_assert_int_eq(is_mapped(dir), i == 0 && size == BIG);
            dt__free_backed(bytes);
            ck_assert(!is_mapped(dir));
        }
    dt__free_backed(NULL);
    EXPECT_FAIL(dt__alloc_backed("x", SIZE_MAX / 4, 8, "weights", &bytes), DT_EMEMORY, "weights");
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* the directory is empty */
}
END_TEST

START_TEST(the_limit_is_the_lowest_of_all)
{
    struct rlimit before, less;
    ck_assert(dt__memory_limit() > 1e6);
    memory_bytes = 64 << 20;
    ck_assert(dt__memory_limit() <= 64 << 20);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    less = (struct rlimit){32 << 20, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &less), 0);
    const double limit = dt__memory_limit();
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert(limit <= 32 << 20);
}
END_TEST

/* ---- text ----------------------------------------------------------------------------------- */

START_TEST(text_grows_and_stays_terminated)
{
    struct dt_text text = {0};
    EXPECT_OK(dt__text_append(&text, "", 0));
    ck_assert_str_eq(text.data, "");
    for (int i = 0; i < 500; i++)
        EXPECT_OK(dt__text_add(&text, "%d,", i % 10));
    EXPECT_OK(dt__text_append(&text, "a\0b", 3));
    ck_assert_uint_eq(text.length, 1003);
    ck_assert_int_eq(memcmp(text.data + 998, "9,a\0b", 6), 0);
    text.length = 0;
    EXPECT_OK(dt__text_append(&text, "again", 5));
    ck_assert_str_eq(text.data, "again");
    dt__text_free(&text);
    ck_assert_ptr_null(text.data);
}
END_TEST

START_TEST(text_without_memory_is_an_error_and_unchanged)
{
    struct dt_text text = {0};
    char *copy;
    EXPECT_OK(dt__text_add(&text, "abc"));
    allocations_left = 0;
    EXPECT_FAIL(dt__text_add(&text, "%0100d", 1), DT_EMEMORY, "text");
    EXPECT_FAIL(dt__strdup("abc", &copy), DT_EMEMORY, "text");
    ck_assert_str_eq(text.data, "abc");
    ck_assert_uint_eq(text.length, 3);
    dt__text_free(&text);
}
END_TEST

/* After a failure every addition fails until the text is cleared, as the text would have a gap. */
START_TEST(a_texts_first_failure_stays)
{
    struct dt_text text = {0};
    char *out = NULL;
    EXPECT_OK(dt__text_add(&text, "abc"));
    allocations_left = 0;
    EXPECT_FAIL(dt__text_add(&text, "%0100d", 1), DT_EMEMORY, "text");
    allocations_left = -1;
    EXPECT_FAIL(dt__text_add(&text, "d"), DT_EMEMORY, "text");
    EXPECT_FAIL(dt__text_append(&text, "", 0), DT_EMEMORY, "text");
    ck_assert_str_eq(text.data, "abc");
    dt__text_clear(&text);
    EXPECT_OK(dt__text_add(&text, "d"));
    EXPECT_OK(dt__text_end(&text, &out));
    ck_assert_str_eq(out, "d");
    ck_assert_ptr_null(text.data);
    dt_free(out);
    EXPECT_OK(dt__text_add(&text, "e"));
    text.status = DT_EMEMORY;
    EXPECT_FAIL(dt__text_end(&text, &out), DT_EMEMORY, "text");
    ck_assert_ptr_null(text.data);
}
END_TEST

/* ---- numbers as text ------------------------------------------------------------------------ */

START_TEST(reals_are_shortest_and_read_back)
{
    char buffer[DT_REAL_TEXT];
    ck_assert_str_eq(dt__real_text(0.1, buffer), "0.1");
    ck_assert_str_eq(dt__real_text(1e6, buffer), "1000000");
    ck_assert_str_eq(dt__real_text(1e22, buffer), "1e+22");
    ck_assert_str_eq(dt__real_text(0.1 + 0.2, buffer), "0.30000000000000004");
    ck_assert_str_eq(dt__real_text(-0.5, buffer), "-0.5");
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = dt__rng_u64(&rng, i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        double back = strtod(dt__real_text(value, buffer), NULL);
        ck_assert_int_eq(memcmp(&back, &value, sizeof value), 0);
    }
}
END_TEST

/* A program may run with a library that is older or newer than the headers it was compiled with. */
START_TEST(options_may_be_of_another_version)
{
    struct known {
        size_t size;
        int a, b;
    } to;
    struct {
        size_t size;
        int a, b, more[2];
    } newer = {sizeof newer, 1, 2, {0, 0}};
    ck_assert_int_eq(dt__options_read(&to, sizeof to, &newer, "dt_x"), DT_OK);
    ck_assert_int_eq(to.b, 2);
    newer.more[1] = 1;
    ck_assert_int_eq(dt__options_read(&to, sizeof to, &newer, "dt_x"), DT_EUSAGE);
    ck_assert_str_eq(dt_error_text(),
                     "struct dt_x: a member is set that dtrain " DT_VERSION " does not know");
    newer.size = offsetof(struct known, b); /* as if compiled before b existed */
    ck_assert_int_eq(dt__options_read(&to, sizeof to, &newer, "dt_x"), DT_OK);
    ck_assert_int_eq(to.a, 1);
    ck_assert_int_eq(to.b, 0);
    newer.size = 0;
    ck_assert_int_eq(dt__options_read(&to, sizeof to, &newer, "dt_x"), DT_EUSAGE);
    ck_assert_str_eq(dt_error_text(), "struct dt_x: its size is 0: expected its _INIT macro");
}
END_TEST

SUITE("memory", options_may_be_of_another_version, sizes_that_overflow_are_refused,
      memory_is_zeroed_and_aligned, impossible_sizes_are_errors,
      growing_keeps_old_items_and_zeroes_new_ones, growing_that_fails_changes_nothing,
      blocks_of_an_arena_are_freed_together, large_backed_memory_is_a_file_without_a_name,
      the_limit_is_the_lowest_of_all, text_grows_and_stays_terminated,
      text_without_memory_is_an_error_and_unchanged, a_texts_first_failure_stays,
      reals_are_shortest_and_read_back)
