/* Shared libraries that are loaded at first use. */
#include "base/load.h"
#include "suite.h"

#define SYMBOLS(X) X(openblas_, get_config) X(openblas_, no_such_thing)
char *openblas_get_config(void);
void openblas_no_such_thing(void);
static struct {
    SYMBOLS(DT__POINTER)
} table;
static const char *const symbols[] = {SYMBOLS(DT__NAME)};

START_TEST(symbols_are_found)
{
    struct dt__library library = DT__LIBRARY("openblas", symbols, &table, .alone = true);
    library.count = 1;
    for (int i = 0; i < 2; i++) {
        table.get_config = NULL;
        EXPECT_OK(dt__library_load(&library));
        EXPECT_OK(dt__library_load(&library));
        ck_assert_ptr_nonnull(strstr(table.get_config(), "OpenBLAS"));
        dt__library_unload(&library);
    }
}
END_TEST

/* Fails if a function is called through a pointer that is not set because the library's version
 * lacks it. */
START_TEST(missing_symbols_and_libraries_are_named)
{
    struct dt__library library = DT__LIBRARY("openblas", symbols, &table);
    struct dt__library none = DT__LIBRARY("openblast", symbols, &table);
    EXPECT_FAIL(dt__library_load(&library), DT_EIO, "openblas_no_such_thing");
    ck_assert_ptr_null(library.handle);
    EXPECT_FAIL(dt__library_load(&none), DT_EIO, "cannot load libopenblast");
}
END_TEST

SUITE("library", symbols_are_found, missing_symbols_and_libraries_are_named)
