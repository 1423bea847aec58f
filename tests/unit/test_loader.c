/* The loader. Fails if memory and streams give different orders, if an epoch does not have each
 * sample exactly once, if a resume continues elsewhere, or if unreadable data is no error. */
#include <math.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/batch.h"
#include "data/cursor.h"
#include "data/text_rows.h"
#include "data_files.h"

enum { ROWS = 44000, FEATURES = 12, REPLICAS = 3, BATCH = 500, MAX_ROWS = 64 };

enum { COUNTED = 1 << 16 };
/* Sum of the allocations of at least 64 KiB in this thread; the read-ahead thread has its own
 * sum. */
static _Thread_local size_t allocated_bytes;
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (size >= COUNTED) allocated_bytes += size;
    return __real_aligned_alloc(alignment, size);
}

/* Rows that any thread has read from files. */
static size_t rows_read;
dt_status __real_dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                                 struct dt__block *out);
dt_status __wrap_dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                                 struct dt__block *out);
dt_status __wrap_dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                                 struct dt__block *out)
{
    __atomic_fetch_add(&rows_read, count, __ATOMIC_RELAXED);
    return __real_dt__cursor_read(cursor, row, count, out);
}

/* Number of times a file was opened to read rows. */
static int opens;
dt_status __real_dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                       const struct dt__grammar *grammar, void **out);
dt_status __wrap_dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                       const struct dt__grammar *grammar, void **out);
dt_status __wrap_dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                       const struct dt__grammar *grammar, void **out)
{
    opens++;
    return __real_dt__typed_reader_open(source, file, grammar, out);
}

/* Writes a file whose first feature is the row's number. */
static void put_numbered(const char *path, int first, int rows)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    for (int r = first; r < first + rows; r++) {
        fprintf(out, "%d", r);
        for (int f = 1; f < FEATURES; f++)
            fprintf(out, ",%d.5", (r * 31 + f) % 997);
        fprintf(out, ",%d\n", r % 5);
    }
    ck_assert_int_eq(fclose(out), 0);
}

/* Makes seven files (2.2 MiB as floats), so that the runs of a shard are not adjacent. */
static struct dt_source *make_source(void)
{
    static const int rows[] = {11000, 500, 9000, 1, 13499, 7000, 3000};
    int first = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu.csv", i);
        put_numbered(name, first, rows[i]);
        first += rows[i];
    }
    ck_assert_int_eq(first, ROWS);
    set("data.train=?.csv");
    return survey();
}

static struct dt_plan *make_plan(const struct dt_source *source)
{
    struct dt_plan *plan;
    EXPECT_OK(dt__plan_create(source, 7, REPLICAS, BATCH, &plan));
    return plan;
}

static struct dt_loader *open_loader(const struct dt_source *source, const struct dt_plan *plan,
                                     int first, int count, uint64_t step)
{
    struct dt_loader *loader;
    int max_rows = (int)dt__plan_max_local_batch(plan);
    EXPECT_OK(dt__loader_create(&config, source, plan, first, count, 1, max_rows, step, &loader));
    return loader;
}

static struct dt_batch read_local(struct dt_loader *loader, const struct dt_plan *plan,
                                  uint64_t step, int replica)
{
    struct dt_local_batch local = dt__plan_local_batch(plan, step, replica);
    struct dt_batch batch;
    EXPECT_OK(dt__loader_read(loader, replica, local.epoch, local.begin, (int)local.count, &batch));
    ck_assert_int_eq(batch.rows, (int)local.count);
    return batch;
}

/* Memory, shuffle window, and whether a rank with all replicas streams; a rank with one replica
 * never does. */
static const struct {
    const char *memory, *window;
    bool all_stream;
    uint64_t epochs; /* fewer where a window of one row is slow */
} SIZES[] = {
    {"data.memory_mb=1024", "data.shuffle_window=0", false, 2},
    {"data.memory_mb=2", "data.shuffle_window=0", true, 2},
    {"data.memory_mb=2", "data.shuffle_window=100", true, 2},
    {"data.memory_mb=2", "data.shuffle_window=1", true, 1},
    {"data.memory_mb=1", "data.shuffle_window=0", true, 2},
};

/* A loader of all replicas and loaders of one replica each give the same rows in the same order,
 * each row once per epoch, in full batches, with the row's values and label. */
START_TEST(order_is_the_same_everywhere)
{
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    set(SIZES[_i].memory), set(SIZES[_i].window);
    int before = threads();
    struct dt_loader *all = open_loader(source, plan, 0, REPLICAS, 0), *single[REPLICAS];
    for (int r = 0; r < REPLICAS; r++)
        single[r] = open_loader(source, plan, r, 1, 0);
    ck_assert_int_eq(threads() - before, SIZES[_i].all_stream);
    static int seen[ROWS];
    memset(seen, 0, sizeof seen);
    uint64_t steps = dt__plan_steps_per_epoch(plan);
    for (uint64_t step = 0; step < SIZES[_i].epochs * steps; step++) {
        for (int r = 0; r < REPLICAS; r++) {
            struct dt_batch a = read_local(all, plan, step, r);
            struct dt_batch b = read_local(single[r], plan, step, r);
            ck_assert_mem_eq(a.x, b.x, (size_t)a.rows * FEATURES * sizeof *a.x);
            ck_assert_mem_eq(a.label, b.label, (size_t)a.rows * sizeof *a.label);
            for (int i = 0; i < a.rows; i++) {
                int row = (int)a.x[i * FEATURES];
                EXPECT(++seen[row] == (int)(step / steps) + 1);
                EXPECT(a.label[i] == row % 5);
                EXPECT(a.x[i * FEATURES + 3] == (float)((row * 31 + 3) % 997) + 0.5f);
            }
        }
    }
    for (int r = 0; r < REPLICAS; r++)
        dt__loader_destroy(single[r]);
    dt__loader_destroy(all);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* Returns the row number of a sample of replica 0. */
static double row_of_sample(struct dt_loader *loader, uint64_t epoch, uint64_t index)
{
    struct dt_batch batch;
    EXPECT_OK(dt__loader_read(loader, 0, epoch, index, 1, &batch));
    return (double)batch.x[0];
}

/* Epochs have different orders, and none is that of the file. In a random order of n rows the mean
 * jump between successive rows is n / 3. */
START_TEST(order_is_shuffled)
{
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    set(_i ? "data.memory_mb=2" : "data.memory_mb=64");
    struct dt_loader *loader = open_loader(source, plan, 0, REPLICAS, 0);
    uint64_t rows = dt__plan_replica_rows(plan, 0), same = 0;
    double jumps = 0, *first;
    EXPECT_OK(dt__alloc(rows, sizeof *first, "rows", &first));
    for (uint64_t i = 0; i < rows; i++)
        first[i] = row_of_sample(loader, 0, i);
    for (uint64_t i = 1; i < rows; i++) {
        jumps += fabs(first[i] - first[i - 1]) / (double)(rows - 1);
        same += row_of_sample(loader, 1, i) == first[i];
    }
    ck_assert_double_gt(jumps, (double)rows / 4);
    ck_assert_uint_lt(same, rows / 100);
    dt_free(first);
    dt__loader_destroy(loader);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* A loader that starts at a later step, and a loader that jumps there and back, read the same rows
 * as the first time. */
START_TEST(resume_reads_the_same)
{
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    set(_i ? "data.memory_mb=1" : "data.memory_mb=64");
    struct dt_loader *first = open_loader(source, plan, 0, REPLICAS, 0);
    uint64_t steps = dt__plan_steps_per_epoch(plan);
    const uint64_t starts[] = {1, 17, steps - 1, steps, 3 * steps + 40};
    for (size_t s = 0; s < COUNT(starts); s++) {
        struct dt_loader *later = open_loader(source, plan, 0, REPLICAS, starts[s]);
        for (uint64_t step = starts[s]; step < starts[s] + 3; step++) {
            for (int r = 0; r < REPLICAS; r++) {
                struct dt_batch a = read_local(first, plan, step, r);
                struct dt_batch b = read_local(later, plan, step, r);
                ck_assert_mem_eq(a.x, b.x, (size_t)a.rows * FEATURES * sizeof *a.x);
            }
        }
        read_local(first, plan, 0, 1); /* jumps back */
        dt__loader_destroy(later);
    }
    dt__loader_destroy(first);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* The loader jumps to and fro while its thread reads elsewhere. Fails if a window is used when the
 * thread has read only a part of it. */
START_TEST(jumps_read_the_same)
{
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    set("data.memory_mb=2");
    int before = threads();
    /* in memory, in the order of windows */
    struct dt_loader *order = open_loader(source, plan, 0, 1, 0);
    ck_assert_int_eq(threads(), before);
    struct dt_loader *streamed = open_loader(source, plan, 0, REPLICAS, 0);
    ck_assert_int_eq(threads(), before + 1);
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < 150; i++) {
        uint64_t step = dt__rng_u64(&rng, i) % (2 * dt__plan_steps_per_epoch(plan));
        struct dt_batch a = read_local(order, plan, step, 0);
        struct dt_batch b = read_local(streamed, plan, step, 0);
        ck_assert_mem_eq(a.x, b.x, (size_t)a.rows * FEATURES * sizeof *a.x);
    }
    dt__loader_destroy(streamed), dt__loader_destroy(order);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* Over all epochs the thread reads each row once per epoch, and at the end at most two windows per
 * replica more. Fails if it reads rows that no batch uses. */
START_TEST(only_needed_rows_are_read)
{
    enum { EPOCHS = 3 };
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    set("data.memory_mb=2");
    rows_read = 0;
    struct dt_loader *loader = open_loader(source, plan, 0, REPLICAS, 0);
    for (uint64_t step = 0; step < EPOCHS * dt__plan_steps_per_epoch(plan); step++)
        for (int r = 0; r < REPLICAS; r++)
            (void)read_local(loader, plan, step, r);
    dt__loader_destroy(loader); /* also ends the thread */
    ck_assert_uint_ge(rows_read, EPOCHS * ROWS);
    ck_assert_uint_le(rows_read, (EPOCHS + 1) * ROWS);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* Before the first request, the thread reads each replica's window at the resumed position, and the
 * next one. Fails if the loader starts elsewhere, or by a hang if it reads only what is
 * requested. */
START_TEST(next_windows_are_read_ahead)
{
    enum { WINDOW = 96, AHEAD = 2 * REPLICAS * WINDOW };
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    const uint64_t step = dt__plan_steps_per_epoch(plan) / 2;
    set("data.memory_mb=2"), set("data.shuffle_window=96");
    rows_read = 0;
    struct dt_loader *loader = open_loader(source, plan, 0, REPLICAS, step);
    while (__atomic_load_n(&rows_read, __ATOMIC_RELAXED) < AHEAD)
        usleep(1000);
    for (int r = 0; r < REPLICAS; r++) {
        struct dt_local_batch local = dt__plan_local_batch(plan, step, r);
        struct dt_batch batch;
        EXPECT_OK(dt__loader_read(loader, r, local.epoch, local.begin, 1, &batch));
    }
    ck_assert_uint_eq(__atomic_load_n(&rows_read, __ATOMIC_RELAXED), AHEAD);
    dt__loader_destroy(loader), dt__plan_destroy(plan), dt__source_destroy(source);
}
END_TEST

/* The windows of a rank with all replicas fit in data.memory_mb, and use more than half of it. */
START_TEST(windows_fit_in_memory)
{
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    set("data.memory_mb=2");
    int before = threads();
    allocated_bytes = 0;
    struct dt_loader *loader = open_loader(source, plan, 0, REPLICAS, 0);
    size_t bytes = allocated_bytes;
    ck_assert_int_eq(threads(), before + 1);
    ck_assert_uint_le(bytes, 2 << 20);
    ck_assert_uint_ge(bytes, 1 << 20);
    dt__loader_destroy(loader);
    /* One loader per replica: each shard alone fits in memory, but not all of them together. */
    for (int loaders = 1; loaders <= REPLICAS; loaders += REPLICAS - 1) {
        EXPECT_OK(dt__loader_create(&config, source, plan, 0, 1, loaders,
                                    (int)dt__plan_max_local_batch(plan), 0, &loader));
        ck_assert_int_eq(threads(), before + (loaders > 1));
        dt__loader_destroy(loader);
    }
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

static void put_idx(const char *path, int type, int rows, int columns)
{
    const unsigned char head[12] = {0,
                                    0,
                                    (unsigned char)type,
                                    columns ? 2 : 1,
                                    0,
                                    0,
                                    (unsigned char)(rows >> 8),
                                    (unsigned char)rows,
                                    0,
                                    0,
                                    0,
                                    (unsigned char)columns};
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(head, columns ? 12 : 8, 1, out), 1);
    for (int i = 0; i < rows * (columns ? 4 * columns : 1); i++)
        putc(columns ? 0 : i % 2, out);
    ck_assert_int_eq(fclose(out), 0);
}

/* Rows may be read from the file itself: if it changes after the survey, that must be an error, and
 * never other data. The rows may be loaded, or streamed by a thread, which may meet the change
 * before the first request. */
START_TEST(a_changed_file_is_an_error)
{
    put_idx("x", 0x0D, ROWS, FEATURES), put_idx("y", 0x08, ROWS, 0);
    set("data.train=x"), set("data.train_labels=y");
    struct dt_source *source = survey();
    struct dt_plan *plan = make_plan(source);
    struct dt_loader *loader;
    int max_rows = (int)dt__plan_max_local_batch(plan);
    ck_assert_int_eq(truncate("x", 1000), 0);
    EXPECT_FAIL(dt__loader_create(&config, source, plan, 0, REPLICAS, 1, max_rows, 0, &loader),
                DT_EMISMATCH, "x: the file has changed since the survey");
    set("data.memory_mb=1");
    EXPECT_OK(dt__loader_create(&config, source, plan, 0, REPLICAS, 1, max_rows, 0, &loader));
    struct dt_batch batch;
    struct dt_local_batch local = dt__plan_local_batch(plan, 0, 0);
    EXPECT_FAIL(dt__loader_read(loader, 0, 0, local.begin, (int)local.count, &batch), DT_EMISMATCH,
                "x: the file has changed since the survey");
    dt__loader_destroy(loader);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* After the survey, the text files are removed. Fails if a load parses them again. */
START_TEST(text_is_read_once)
{
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.csv", i);
        ck_assert_int_eq(unlink(name), 0);
    }
    if (_i) set("data.memory_mb=1");
    struct dt_loader *loader = open_loader(source, plan, 0, REPLICAS, 0);
    read_local(loader, plan, 0, 0);
    dt__loader_destroy(loader);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* Each row is either held out or in a batch of each epoch, with its value scaled. */
START_TEST(held_out_rows_are_never_in_a_batch)
{
    set("data.eval_fraction=0.25"), set("data.scale=2");
    if (_i) set("data.memory_mb=1");
    struct dt_source *source = make_source(), *eval;
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
    struct dt_plan *plan = make_plan(source);
    struct dt_loader *loader = open_loader(source, plan, 0, REPLICAS, 0);
    struct dt_table *table = open_table(eval);
    static int seen[ROWS];
    memset(seen, 0, sizeof seen);
    ck_assert_uint_eq(dt__source_rows(eval), ROWS / 4);
    float last = -1;
    for (uint64_t r = 0; r < ROWS / 4; r++) {
        float x = read_row(table, r).x[0];
        ck_assert_float_gt(x, last);
        seen[(int)(last = x) / 2]++;
    }
    for (uint64_t step = 0; step < dt__plan_steps_per_epoch(plan); step++)
        for (int r = 0; r < REPLICAS; r++) {
            struct dt_batch batch = read_local(loader, plan, step, r);
            for (int i = 0; i < batch.rows; i++)
                seen[(int)batch.x[i * FEATURES] / 2]++;
        }
    for (int r = 0; r < ROWS; r++)
        ck_assert_int_eq(seen[r], 1);
    dt__table_destroy(table);
    dt__loader_destroy(loader);
    dt__plan_destroy(plan);
    dt__source_destroy(eval);
    dt__source_destroy(source);
}
END_TEST

/* Fails if destroying a loader hangs or leaks while its thread reads. */
START_TEST(loader_ends_while_reading)
{
    set("data.memory_mb=1");
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    for (int i = 0; i < 12; i++) {
        struct dt_loader *loader = open_loader(source, plan, 0, REPLICAS, (uint64_t)i);
        if (i % 3) read_local(loader, plan, (uint64_t)(i % 2 ? 60 : i), 1);
        dt__loader_destroy(loader);
    }
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

static int calls_left;

static void stop_after_calls(void)
{
    if (--calls_left == 0) dt_stop_request();
}

/* Fails if a survey or a load ignores a stop request, or if the watchdog takes it for a hang.
 * Training reads in the same way, but a stop request does not end its read. */
START_TEST(long_work_shows_progress_and_can_be_stopped)
{
    static const struct {
        bool load;
        int calls;
    } cases[] = {{false, 1}, {false, 9}, {true, 1}, {true, 9}};
    struct dt_source *source = make_source();
    struct dt_plan *plan = make_plan(source);
    struct dt_loader *streamed, *in_memory = NULL;
    struct dt_source *again = NULL;
    set("data.memory_mb=2");
    streamed = open_loader(source, plan, 0, REPLICAS, 0);
    set("data.memory_mb=1024");
    calls_left = cases[_i].calls;
    dt__work_watch(stop_after_calls);
    dt_status status = cases[_i].load ? dt__loader_create(&config, source, plan, 0, REPLICAS, 1,
                                                          300, 0, &in_memory)
                                      : dt__source_survey(&config, DT_PART_TRAIN, NULL, &again);
    EXPECT_FAIL(status, DT_STOPPED, "stopped");
    dt__work_watch(NULL);
    read_local(streamed, plan, 60, 1);
    ck_assert(dt__stop_requested());
    dt__loader_destroy(streamed);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* Files that are read alternately stay open; opening one too many closes the least recently used
 * one. */
START_TEST(files_stay_open)
{
    enum { LAST = DT__OPEN_FILES };
    struct dt__block block;
    struct dt__cursor *cursor;
    for (int i = 0; i <= LAST; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.csv", i);
        put_numbered(name, i, 1);
    }
    set("data.train=?.csv");
    struct dt_source *source = survey();
    EXPECT_OK(dt__block_alloc(&source->layout, 4 * LAST, 0, &block));
    EXPECT_OK(dt__cursor_open(source, false, &cursor));
    for (int i = 0; i < LAST; i++)
        EXPECT_OK(dt__cursor_read(cursor, (uint64_t)i, 1, &block));
    for (int i = LAST; i-- > 0;)
        EXPECT_OK(dt__cursor_read(cursor, (uint64_t)i, 1, &block));
    ck_assert_int_eq(opens, LAST);
    for (int i = LAST; i >= 0; i--)
        if (i != LAST - 1) EXPECT_OK(dt__cursor_read(cursor, (uint64_t)i, 1, &block));
    ck_assert_int_eq(opens, LAST + 1);
    dt__cursor_close(cursor), dt__block_free(&block), dt__source_destroy(source);
}
END_TEST

DATA_SUITE("loader", {order_is_the_same_everywhere, COUNT(SIZES)}, {order_is_shuffled, 2},
           {resume_reads_the_same, 2}, {jumps_read_the_same, 1}, {windows_fit_in_memory, 1},
           {only_needed_rows_are_read, 1}, {next_windows_are_read_ahead, 1},
           {a_changed_file_is_an_error, 1}, {text_is_read_once, 2},
           {held_out_rows_are_never_in_a_batch, 2}, {loader_ends_while_reading, 1},
           {files_stay_open, 1}, {long_work_shows_progress_and_can_be_stopped, 4})
