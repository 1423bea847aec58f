/* Helpers for all test programs: main, assertions, and a directory for each test. */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* Runs the tests of a case, each in a separate process; returns main's exit code. */
static inline int suite_run_case(const char *name, TCase *test_case)
{
    Suite *suite = suite_create(name);
    tcase_set_timeout(test_case, 60);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

static inline int suite_run(const char *name, const TTest *const *tests, size_t count)
{
    TCase *test_case = tcase_create(name);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(test_case, tests[i]);
    return suite_run_case(name, test_case);
}

/* main(): SUITE("name", test, test, ...) */
#define SUITE(name, ...)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return suite_run(name, tests, sizeof tests / sizeof *tests);                               \
    }

/* Assertion for loops over many values: Check makes a system call for each ck_assert that holds. */
#define EXPECT(condition)                                                                          \
    do                                                                                             \
        if (!(condition)) ck_abort_msg("expected %s", #condition);                                 \
    while (0)
#define EXPECT_OK(call)                                                                            \
    do                                                                                             \
        if ((call) != DT_OK) ck_abort_msg("%s: %s", #call, dt_error_text());                       \
    while (0)
/* Asserts that the call fails with status `expected` and a message that contains `text`. */
#define EXPECT_FAIL(call, expected, text)                                                          \
    do {                                                                                           \
        ck_assert_int_eq((int)(call), (int)(expected));                                            \
        ck_assert_msg(strstr(dt_error_text(), text) != NULL, "%s: message is '%s', not '%s'",      \
                      #call, dt_error_text(), text);                                               \
    } while (0)

/* Makes a directory in $SCRATCH, or in /tmp if that is unset. */
static inline void scratch_make(char path[64])
{
    const char *top = getenv("SCRATCH");
    snprintf(path, 64, "%s/dtrain-test-XXXXXX", top ? top : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(path));
}

/* Makes a directory and changes to it; scratch_leave removes the directory and its contents. */
static inline void scratch_enter(char path[64])
{
    scratch_make(path);
    ck_assert_int_eq(chdir(path), 0);
}

static inline int scratch_remove(const char *path, const struct stat *info, int type,
                                 struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static inline void scratch_clear(const char *path)
{
    ck_assert_int_eq(nftw(path, scratch_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void scratch_leave(const char *path)
{
    ck_assert_int_eq(chdir("/"), 0);
    scratch_clear(path);
}

#endif
