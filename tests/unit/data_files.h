/* Helpers for the tests of data: they write small files, set options, survey files and read their
 * rows. */
#ifndef UNIT_DATA_FILES_H
#define UNIT_DATA_FILES_H

#include <dirent.h>

#include "data/data.h"
#include "suite.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char home[64];
static struct dt_config config;

static inline void data_enter(void)
{
    scratch_enter(home);
    EXPECT_OK(dt__config_init(&config));
}

static inline void data_leave(void)
{
    dt__config_free(&config);
    scratch_leave(home);
}

static inline void put_bytes(const char *path, const void *bytes, size_t length)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, length, out), length);
    ck_assert_int_eq(fclose(out), 0);
}

static inline void put_text(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

static inline void set(const char *assignment)
{
    EXPECT_OK(dt_config_set(&config, assignment));
}

/* Returns the number of threads of this process; a loader that streams adds one. */
static inline int threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    for (const struct dirent *task; (task = readdir(tasks));)
        count += *task->d_name != '.';
    closedir(tasks);
    return count;
}

static inline struct dt_source *survey(void)
{
    struct dt_source *source;
    EXPECT_OK(dt__source_survey(&config, DT_PART_TRAIN, NULL, &source));
    return source;
}

static inline dt_status try_survey(void)
{
    struct dt_source *source;
    dt_status status = dt__source_survey(&config, DT_PART_TRAIN, NULL, &source);
    if (!status) dt__source_destroy(source);
    return status;
}

/* Opens a table of all rows of the source; the caller destroys it. */
static inline struct dt_table *open_table(const struct dt_source *source)
{
    struct dt_table *table;
    EXPECT_OK(dt__table_create(&config, source, 0, dt__source_rows(source), &table));
    return table;
}

static inline struct dt_batch read_row(struct dt_table *table, uint64_t row)
{
    struct dt_batch batch;
    EXPECT_OK(dt__table_read(table, row, 1, &batch));
    return batch;
}

/* Surveys the files of the configuration and compares their inputs with `expected` (rows, features)
 * and, unless NULL, their labels. */
static inline void expect_rows(const float *expected, const int32_t *labels, size_t rows,
                               size_t features)
{
    struct dt_source *source = survey();
    ck_assert_uint_eq(dt__source_rows(source), rows);
    ck_assert_int_eq(dt__source_schema(source)->features, (int)features);
    struct dt_table *table = open_table(source);
    for (size_t r = 0; r < rows; r++) {
        struct dt_batch batch = read_row(table, r);
        for (size_t f = 0; f < features; f++)
            ck_assert_float_eq(batch.x[f], expected[r * features + f]);
        if (labels) ck_assert_int_eq(batch.label[0], labels[r]);
    }
    dt__table_destroy(table);
    dt__source_destroy(source);
}

/* A test that runs `count` times, usually once per row of a table of cases. */
struct loop {
    const TTest *test;
    size_t count;
};

/* Runs the tests, each in a separate directory with a fresh config; returns main's exit code. */
static inline int data_run(const char *name, const struct loop *tests, size_t count)
{
    TCase *test_case = tcase_create(name);
    tcase_add_checked_fixture(test_case, data_enter, data_leave);
    for (size_t i = 0; i < count; i++)
        tcase_add_loop_test(test_case, tests[i].test, 0, (int)tests[i].count);
    return suite_run_case(name, test_case);
}

#define DATA_SUITE(name, ...)                                                                      \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct loop tests[] = {__VA_ARGS__};                                                 \
        return data_run(name, tests, COUNT(tests));                                                \
    }

#endif
