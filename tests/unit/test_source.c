/* The source: lists and globs, held-out rows, statistics, packing, its checksum, and tables. */
#include <math.h>
#include <sys/stat.h>

#include "data/source.h"
#include "data_files.h"

static int allocations_left = -1; /* number of allocations until one fails; -1: none fails */

static bool fails(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

/* Fails as if the text needed more memory. */
dt_status __real_dt__text_append(struct dt_text *text, const void *bytes, size_t length);
dt_status __wrap_dt__text_append(struct dt_text *text, const void *bytes, size_t length);
dt_status __wrap_dt__text_append(struct dt_text *text, const void *bytes, size_t length)
{
    return fails() ? dt_fail(DT_EMEMORY, "no memory") : __real_dt__text_append(text, bytes, length);
}

static void put_rows(const char *path, int first, int rows)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    for (int r = first; r < first + rows; r++)
        fprintf(out, "%d,%d.25,0.1,%d\n", r, (r % 1009) * (r % 1009) % 1009, r % 2);
    fclose(out);
}

/* Globs are sorted bytewise and lists keep their order; a file whose name is a glob is taken by its
 * name. */
START_TEST(files_are_in_order)
{
    const float x[] = {3, 2, 1, 0, 4};
    put_text("b10.csv", "1,0\n"), put_text("B.csv", "3,0\n"), put_text("b9.csv", "0,0\n");
    put_text("b[9].csv", "4,1\n"), put_text("a.txt", "2,1\n");
    set("data.train=B.csv, a.txt ,b[19]*.csv,b[9].csv");
    expect_rows(x, NULL, 5, 1);
    set("data.train=x*.csv");
    EXPECT_FAIL(try_survey(), DT_EIO, "data.train: no file matches 'x*.csv'");
    set("data.train=nowhere.csv");
    EXPECT_FAIL(try_survey(), DT_EIO, "nowhere.csv: No such file or directory");
    set("data.train=/tmp");
    EXPECT_FAIL(try_survey(), DT_EIO, "/tmp: not a plain file");
    ck_assert_int_eq(mkfifo("pipe.csv", 0600), 0); /* no process writes to it */
    set("data.train=pipe.csv"), set("data.format=hdf5");
    EXPECT_FAIL(try_survey(), DT_EIO, "pipe.csv: a pipe: expected a file");
    set("data.format=auto");
    ck_assert_int_eq(symlink("B.csv", "C.csv"), 0);
    set("data.train=B.csv,b9.csv,./B.csv");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "data.train: './B.csv' appears twice");
    set("data.train=B.csv,C.csv");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH,
                "data.train: 'C.csv' appears twice: it is the same file as 'B.csv'");
    set("data.train= ,");
    EXPECT_FAIL(try_survey(), DT_EUSAGE, "data.train: no files given");
}
END_TEST

/* Fails if weights are silently ignored, or if the target is not the one named. */
START_TEST(keys_of_another_format_are_refused)
{
    static const struct {
        const char *train, *key, *initial, *format;
    } rows[] = {
        {"a.svm", "data.label=0", "data.label=-1",
         "applies only to CSV and JSON lines, and the data is LIBSVM"},
        {"a.svm", "data.ignore=0",
         "data.ignore=", "applies only to CSV and JSON lines, and the data is LIBSVM"},
        {"a.svm", "data.weight=w",
         "data.weight=", "applies only to CSV and JSON lines, and the data is LIBSVM"},
        {"a.svm", "data.hash_bits=3", "data.hash_bits=0", "applies only to CSV and JSON lines"},
        {"a.svm", "data.header=no", "data.header=auto", "applies only to CSV,"},
        {"a.svm", "data.separator=;", "data.separator=auto", "applies only to CSV,"},
        {"a.svm", "data.decimal=,", "data.decimal=.", "applies only to CSV,"},
        {"a.svm", "data.unlabelled=skip", "data.unlabelled=error",
         "applies only to CSV and JSON lines"},
        {"a.svm", "data.dates=error", "data.dates=auto", "applies only to CSV and JSON lines"},
        {"a.csv", "data.features=3", "data.features=0",
         "applies only to LIBSVM, and the data is CSV"},
        {"a.csv", "data.x=/rows", "data.x=/x", "applies only to HDF5, and the data is CSV"},
    };
    char train[32], *text;
    put_text("a.csv", "x,w,y\n1,2,0\n3,4,1\n");
    put_text("a.svm", "1 1:1 2:2\n0 1:2\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(train, sizeof train, "data.train=%s", rows[i].train);
        set(train), set(rows[i].key);
        EXPECT_FAIL(try_survey(), DT_EMISMATCH, rows[i].format);
        set(rows[i].initial);
        EXPECT_OK(try_survey());
    }
    /* config.ini of a run lists all keys; held-out files may have another format. */
    EXPECT_OK(dt_config_print(&config, &text));
    EXPECT_OK(dt_config_read_text(&config, "config.ini", text));
    dt_free(text);
    EXPECT_OK(try_survey());
    set("data.train=a.svm"), set("data.eval=a.csv"), set("data.label=y");
    EXPECT_OK(try_survey());
    set("data.weight=w");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "data.weight: applies only to CSV and JSON lines");
}
END_TEST

/* Training and held-out rows are disjoint, are all rows together, and depend on the seed. */
START_TEST(parts_are_disjoint)
{
    static int seen[3000];
    memset(seen, 0, sizeof seen);
    put_rows("a.csv", 0, 1000), put_rows("b.csv", 1000, 2000);
    set("data.train=?.csv"), set("data.eval_fraction=0.1");
    struct dt_source *train = survey(), *eval, *second;
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(train), &eval));
    ck_assert_uint_eq(dt__source_rows(eval), 300);
    ck_assert_uint_eq(dt__source_rows(train), 2700);
    struct dt_table *tables[] = {open_table(train), open_table(eval)};
    for (uint64_t r = 0; r < 3000; r++) {
        struct dt_batch batch = read_row(tables[r >= 2700], r >= 2700 ? r - 2700 : r);
        ck_assert_int_eq(seen[(int)batch.x[0]]++, 0);
    }
    EXPECT_OK(dt__source_side(train, DT__HELD_OUT, &second));
    ck_assert_uint_eq(dt__source_rows(second), 300);
    struct dt_table *again = open_table(second);
    for (uint64_t r = 0; r < 300; r++)
        ck_assert_float_eq(read_row(again, r).x[0], read_row(tables[1], r).x[0]);
    dt__table_destroy(again), dt__source_destroy(second);
    set("run.seed=2");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(train), &second));
    struct dt_table *table = open_table(second);
    int same = 0;
    for (uint64_t r = 0; r < 300; r++)
        same += read_row(table, r).x[0] == read_row(tables[1], r).x[0];
    ck_assert_int_lt(same, 30);
    dt__table_destroy(table), dt__table_destroy(tables[0]), dt__table_destroy(tables[1]);
    dt__source_destroy(train), dt__source_destroy(eval), dt__source_destroy(second);
    set("data.eval=a.csv");
    EXPECT_FAIL(try_survey(), DT_EUSAGE,
                "data.eval and data.eval_fraction: expected at most one of them");
    set("data.eval="), set("data.eval_fraction=0.00001");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "holds out 0 of 3000 rows");
}
END_TEST

/* Mean and deviation are those of the scaled training rows only; a constant column is not
 * divided. */
START_TEST(statistics_are_those_of_training_rows)
{
    put_rows("a.csv", 0, 3000);
    set("data.train=a.csv"), set("data.eval_fraction=0.3"), set("data.scale=0.3");
    struct dt_source *plain = survey();
    set("data.normalize=standard");
    struct dt_source *source = survey();
    const struct dt_schema *schema = dt__source_schema(source);
    struct dt_table *table = open_table(plain), *normal = open_table(source);
    uint64_t n = dt__source_rows(source);
    for (int f = 0; f < 3; f++) {
        double sum = 0, squares = 0;
        for (uint64_t r = 0; r < n; r++) {
            double x = (double)read_row(table, r).x[f];
            sum += x, squares += x * x;
        }
        double mean = sum / (double)n, deviation = sqrt(squares / (double)n - mean * mean);
        ck_assert_double_eq_tol((double)schema->mean[f], mean, 1e-5 * mean);
        if (f < 2)
            ck_assert_double_eq_tol(1 / (double)schema->inv_std[f], deviation, 1e-4 * deviation);
        else
            ck_assert_float_eq(schema->inv_std[f], 1);
        float x = read_row(table, 7).x[f];
        ck_assert_float_eq(read_row(normal, 7).x[f], (x - schema->mean[f]) * schema->inv_std[f]);
    }
    dt__table_destroy(table), dt__table_destroy(normal);
    dt__source_destroy(plain), dt__source_destroy(source);
}
END_TEST

/* Makes rows of four features: uniform, nearly always 0, mostly 0 and sometimes 1, constant. With
 * `gaps` one row in five lacks the first. Row 77 has `misprint` in the first two, unless it is
 * NULL. */
static struct dt_source *survey_with(const char *normalize, int rows, const char *misprint,
                                     bool gaps)
{
    char assignment[64];
    FILE *out = fopen("a.csv", "w");
    ck_assert_ptr_nonnull(out);
    for (int r = 0; r < rows; r++) {
        const bool with_misprint = misprint && r == 77;
        if (with_misprint)
            fprintf(out, "%s,%s,", misprint, misprint);
        else if (gaps && r % 5 == 3)
            fprintf(out, ",%d,", r % 300 == 8 ? r % 53 + 1 : 0);
        else
            fprintf(out, "%d.5,%d,", r * 7919 % 1009 - 300, r % 300 == 8 ? r % 53 + 1 : 0);
        fprintf(out, "%d,4.25,%d\n", r % 200 == 3, r % 2);
    }
    fclose(out);
    snprintf(assignment, sizeof assignment, "data.normalize=%s", normalize), set(assignment);
    set("data.train=a.csv"), set(gaps ? "data.missing=mean" : "data.missing=error");
    return survey();
}

/* Robust statistics equal the plain ones to the bit if there are no outliers. A misprint of any
 * size, in a sampled row or not, in a column with gaps, changes them little, and not at all in a
 * column that is nearly always 0; the misprint itself becomes 5 deviations, or data.clip. Fails if
 * statistics are clipped but not robust, or if limits exclude rare values. */
START_TEST(robust_statistics_resist_outliers)
{
    static const struct {
        int rows;
        const char *misprint;
        bool gaps;
    } cases[] = {
        {400, "1e9", false}, {400, "-60000", true}, {20000, "3e30", true}, {60000, "1e9", false}};
    const int rows = cases[_i].rows;
    const bool gaps = cases[_i].gaps;
    struct dt_source *plain = survey_with("standard", rows, NULL, gaps);
    struct dt_source *clean = survey_with("robust", rows, NULL, gaps);
    struct dt_source *with_misprint = survey_with("robust", rows, cases[_i].misprint, gaps);
    const struct dt_schema *a = dt__source_schema(plain), *b = dt__source_schema(clean);
    const struct dt_schema *c = dt__source_schema(with_misprint);
    ck_assert_double_eq(a->clip, 0);
    ck_assert_double_eq(b->clip, 5);
    ck_assert_double_eq(c->clip, 5);
    for (int f = 0; f < 4; f++) {
        if (f != 1) ck_assert_float_eq(b->mean[f], a->mean[f]);
        if (f != 1) ck_assert_float_eq(b->inv_std[f], a->inv_std[f]);
        ck_assert_float_eq_tol(c->mean[f] * a->inv_std[f], a->mean[f] * a->inv_std[f], 0.1f);
        ck_assert_float_eq_tol(logf(c->inv_std[f] / a->inv_std[f]), 0, (f == 1 ? 1.2f : 0.05f));
    }
    if (gaps) ck_assert_float_eq_tol(c->columns[0].fill, a->columns[0].fill, 10);
    struct dt_table *table = open_table(with_misprint);
    const float end = *cases[_i].misprint == '-' ? -5 : 5;
    ck_assert_float_eq(read_row(table, 77).x[0], end);
    ck_assert_float_eq(read_row(table, 77).x[1], end);
    dt__table_destroy(table);
    dt__source_destroy(plain), dt__source_destroy(clean), dt__source_destroy(with_misprint);
    set("data.clip=3");
    with_misprint = survey_with("robust", rows, cases[_i].misprint, gaps);
    ck_assert_double_eq(dt__source_schema(with_misprint)->clip, 3);
    dt__source_destroy(with_misprint);
}
END_TEST

/* The same for rows in memory and for columns of bytes, with data.scale; three rows have statistics
 * too. */
START_TEST(robust_statistics_of_arrays_and_bytes)
{
    static float x[600][2];
    static int32_t label[600];
    const bool bytes = _i % 2;
    const int rows = _i < 2 ? 600 : 3;
    FILE *out = fopen("a.csv", "w");
    ck_assert_ptr_nonnull(out);
    for (int r = 0; r < rows; r++) {
        label[r] = r % 2;
        x[r][0] = (float)(r * 7 % 20), x[r][1] = r % 4 ? 0 : 1;
        if (r == 9) x[r][0] = bytes ? 255 : -1e20f;
        fprintf(out, "%g,%g,%d\n", (double)x[r][0], (double)x[r][1], label[r]);
    }
    fclose(out);
    const struct dt_arrays arrays = {
        .rows = (uint64_t)rows, .features = 2, .label = label, .x = x[0]};
    struct dt_source *source;
    set("data.normalize=robust"), set("data.scale=0.5"), set("data.train=a.csv"),
        set("data.header=no");
    if (bytes)
        source = survey();
    else
        EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
    const struct dt_schema *schema = dt__source_schema(source);
    if (rows == 600) {
        ck_assert_int_eq(source->layout.bytes, bytes);
        ck_assert_float_eq_tol(schema->mean[0], 9.5f / 2, 0.05f);
        ck_assert_float_eq_tol(1 / schema->inv_std[0], sqrtf(33.25f) / 2, 0.1f);
        ck_assert_float_eq_tol(schema->mean[1], 0.25f / 2, 1e-4f);
    }
    struct dt_table *table = open_table(source);
    for (uint64_t r = 0; r < (uint64_t)rows; r++)
        for (int f = 0; f < 2; f++)
            ck_assert_float_le(fabsf(read_row(table, r).x[f]), 5);
    dt__table_destroy(table), dt__source_destroy(source);
}
END_TEST

/* The units of targets come from the training rows only, by their weights. A constant target has
 * the deviation 1; `auto` does not change targets near 1; the points of a field share one mean and
 * deviation. */
START_TEST(targets_have_units)
{
    FILE *out = fopen("a.csv", "w");
    fprintf(out, "x,w,y\n");
    for (int i = 0; i < 400; i++)
        fprintf(out, "%d,%d,%d\n", i, i % 2, i % 2 ? 1000 + i % 5 : -77777);
    fclose(out);
    set("data.train=a.csv"), set("data.label=y"), set("data.weight=w"), set("model.task=regress");
    struct dt_source *source = survey(), *in_memory;
    ck_assert_float_eq_tol(dt__source_schema(source)->target_mean[0], 1002, 1e-3f);
    ck_assert_float_eq_tol(dt__source_schema(source)->target_std[0], sqrtf(2), 1e-5f);
    dt__source_destroy(source);
    set("data.weight="), set("data.ignore=w"), set("data.eval_fraction=0.5");
    source = survey();
    struct dt_table *table = open_table(source);
    double sum = 0;
    for (uint64_t r = 0; r < 200; r++)
        sum += (double)read_row(table, r).target[0];
    ck_assert_double_eq_tol((double)dt__source_schema(source)->target_mean[0], sum / 200, 1e-2);
    EXPECT_OK(dt__source_side(source, DT__HELD_OUT, &in_memory));
    ck_assert_float_eq(dt__source_schema(in_memory)->target_std[0],
                       dt__source_schema(source)->target_std[0]);
    dt__table_destroy(table), dt__source_destroy(source), dt__source_destroy(in_memory);
    set("data.normalize_target=no");
    source = survey();
    ck_assert_ptr_null(dt__source_schema(source)->target_mean);
    dt__source_destroy(source);

    static float x[8] = {0}, y[8] = {1, 5, 1, 6, 1, 7, 1, 8};
    const struct dt_arrays arrays = {.rows = 4, .features = 2, .targets = 2, .x = x, .target = y};
    set("data.eval_fraction=0"), set("data.normalize_target=auto");
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
    ck_assert_ptr_null(dt__source_schema(source)->target_mean);
    dt__source_destroy(source);
    set("data.normalize_target=yes");
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
    ck_assert_float_eq(dt__source_schema(source)->target_std[0], 1);
    ck_assert_float_eq(dt__source_schema(source)->target_mean[1], 6.5f);
    ck_assert_float_eq_tol(dt__source_schema(source)->target_std[1], sqrtf(1.25f), 1e-6f);
    dt__source_destroy(source);
    set("model.layers=output conv 1 1x1");
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(dt__source_schema(source)->target_mean[i], 3.75f);
        ck_assert_float_eq_tol(dt__source_schema(source)->target_std[i], sqrtf(8.1875f), 1e-6f);
    }
    dt__source_destroy(source);
}
END_TEST

/* A resume notices a changed value in memory, even the last one. */
START_TEST(the_checksum_depends_on_values_in_memory)
{
    static float x[8] = {0}, y[8] = {1, 5, 1, 6, 1, 7, 1, 8}, weight[4] = {1, 1, 1, 1};
    const struct dt_arrays weighted = {
        .rows = 4, .features = 2, .targets = 2, .x = x, .target = y, .weight = weight};
    float *const last[] = {NULL, x + 7, y + 7, weight + 3};
    uint32_t crc[COUNT(last)];
    struct dt_source *source;
    set("model.task=regress");
    for (size_t i = 0; i < COUNT(last); i++) {
        if (last[i]) *last[i] += 1;
        EXPECT_OK(dt__source_from_arrays(&config, &weighted, NULL, &source));
        EXPECT_OK(dt__source_content(source, &crc[i]));
        dt__source_destroy(source);
        ck_assert_msg(!i || crc[i] != crc[i - 1], "values %zu", i);
    }
}
END_TEST

/* A packed survey reads the same rows elsewhere, and is refused if it is cut anywhere. */
START_TEST(a_packed_survey_is_complete)
{
    put_text("a.csv", "p,q,skip,y\n1,2.5,x,no\n3,4,y,\"a, b\"\n5,6,z,no\n");
    set("data.train=a.csv"), set("data.ignore=skip"), set("data.eval_fraction=0.34");
    set("data.normalize=standard");
    struct dt_source *source = survey(), *copy, *far;
    unsigned char *bytes;
    size_t length;
    EXPECT_OK(dt__source_pack(source, &bytes, &length));
    EXPECT_OK(dt__source_unpack(bytes, length, &copy));
    ck_assert_uint_eq(dt__source_crc(source), dt__source_crc(copy));
    ck_assert_str_eq(dt__source_schema(copy)->label_names[0], "a, b");
    ck_assert_str_eq(dt__source_schema(copy)->feature_names[1], "q");
    ck_assert_str_eq(dt__source_schema(copy)->label_column, "y");
    struct dt_table *a = open_table(source), *b = open_table(copy);
    for (uint64_t r = 0; r < 2; r++)
        ck_assert_mem_eq(read_row(a, r).x, read_row(b, r).x, 2 * sizeof(float));
    dt__table_destroy(b);
    for (size_t cut = 0; cut < length; cut++)
        EXPECT_FAIL(dt__source_unpack(bytes, cut, &far), DT_EBUG, "too short");
    /* A host that cannot see the file of typed rows gets a copy of it. */
    const struct dt_place place = dt__source_place(copy);
    float x[2][2];
    for (uint64_t r = 0; r < 2; r++)
        memcpy(x[r], read_row(a, r).x, sizeof x[r]);
    dt__table_destroy(a);
    dt__source_destroy(source);
    EXPECT_OK(dt__source_unpack(bytes, length, &far));
    ck_assert(dt__source_is_here(copy) && !dt__source_is_here(far));
    EXPECT_FAIL(dt__table_create(&config, far, 0, 2, &a), DT_EBUG, "not on this host");
    setenv("TMPDIR", "/nowhere", 1); /* no directory for the copy */
    EXPECT_FAIL(dt__source_copy_in(far, (unsigned char[16]){0}, 16), DT_EIO,
                "/nowhere: cannot make a temporary file");
    unsetenv("TMPDIR");
    for (uint64_t at = 0; at < place.bytes; at += length) {
        unsigned char chunk[16];
        length = place.bytes - at < sizeof chunk ? (size_t)(place.bytes - at) : sizeof chunk;
        EXPECT_OK(dt__source_copy_out(copy, at, chunk, length));
        EXPECT_OK(dt__source_copy_in(far, chunk, length));
    }
    dt__source_destroy(copy);
    ck_assert(dt__source_is_here(far));
    a = open_table(far);
    for (uint64_t r = 0; r < 2; r++)
        ck_assert_mem_eq(read_row(a, r).x, x[r], sizeof x[r]);
    dt__table_destroy(a);
    dt__source_destroy(far);
    dt_free(bytes);
}
END_TEST

/* Arrays give the same rows, in the same order, and the same statistics as a file of the same
 * numbers. */
START_TEST(arrays_are_a_source)
{
    static float x[300];
    static int32_t label[100];
    FILE *out = fopen("a.csv", "w");
    for (int r = 0; r < 100; r++) {
        for (int f = 0; f < 3; f++)
            fprintf(out, "%g,",
                    (double)(x[3 * r + f] = (float)(r * 7 % 13) * (_i ? 0.5f : 1) + (float)f));
        fprintf(out, "%d\n", label[r] = r % 3);
    }
    fclose(out);
    set("data.train=a.csv"), set("data.normalize=standard"), set("data.eval_fraction=0.2");
    set("data.encode=normal");
    struct dt_arrays arrays = {.rows = 100, .features = 3, .x = x, .label = label};
    struct dt_source *file = survey(), *memory, *in_memory;
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &memory));
    ck_assert_uint_eq(dt__source_rows(memory), 80);
    ck_assert_int_eq(dt__source_schema(memory)->classes, 3);
    ck_assert_int_eq(dt__source_schema(memory)->encoded, 3);
    struct dt_table *a = open_table(file), *b = open_table(memory);
    for (uint64_t r = 0; r < 80; r++) {
        ck_assert_int_eq(read_row(a, r).ndense, 6); /* and z of each feature */
        ck_assert_mem_eq(read_row(a, r).x, read_row(b, r).x, 6 * sizeof *x);
        ck_assert_int_eq(read_row(a, r).label[0], read_row(b, r).label[0]);
    }
    dt__table_destroy(a), dt__table_destroy(b);
    EXPECT_OK(dt__source_side(memory, DT__HELD_OUT, &in_memory));
    ck_assert_uint_eq(dt__source_rows(in_memory), 20);
    dt__source_destroy(in_memory);
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, dt__source_schema(file), &in_memory));
    ck_assert_uint_eq(dt__source_rows(in_memory), 100);
    dt__source_destroy(in_memory);
    label[7] = 9;
    EXPECT_FAIL(dt__source_from_arrays(&config, &arrays, dt__source_schema(file), &in_memory),
                DT_EFORMAT, "rows in memory: row 7: label 9 is out of range");
    arrays.label = NULL;
    EXPECT_FAIL(dt__source_from_arrays(&config, &arrays, NULL, &in_memory), DT_EMISMATCH,
                "expected labels");
    dt__source_destroy(file), dt__source_destroy(memory);
}
END_TEST

/* Evaluation data is checked like training data: targets must suit the loss, labels must be
 * classes. */
START_TEST(evaluation_is_checked)
{
    static float x[4] = {1, 2, 3, 4}, target[4] = {0, 1, 1, 0};
    static int32_t label[4] = {-1, 1, 1, -1};
    struct dt_arrays arrays = {.rows = 4, .features = 1, .targets = 1, .x = x, .target = target};
    struct dt_source *source, *eval;
    set("model.task=multilabel"), set("data.train=none");
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, dt__source_schema(source), &eval));
    dt__source_destroy(eval);
    target[2] = 2;
    EXPECT_FAIL(dt__source_from_arrays(&config, &arrays, dt__source_schema(source), &eval),
                DT_EFORMAT, "evaluation data: a target is 2, expected 0 or 1");
    EXPECT_FAIL(dt__source_from_arrays(&config, &arrays, NULL, &eval), DT_EFORMAT,
                "training data: a target is 2, expected 0 or 1");
    dt__source_destroy(source);
    arrays = (struct dt_arrays){.rows = 4, .features = 1, .x = x, .label = label};
    set("model.task=classify");
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
    EXPECT_OK(dt__source_from_arrays(&config, &arrays, dt__source_schema(source), &eval));
    dt__source_destroy(eval);
    label[3] = 0;
    EXPECT_FAIL(dt__source_from_arrays(&config, &arrays, dt__source_schema(source), &eval),
                DT_EFORMAT, "rows in memory: row 3: label 0 was never seen in training");
    dt__source_destroy(source);
}
END_TEST

/* The last logged line about a deviation or an encoding. */
static char logged[200];

static void catch_deviation(void *arg, enum dt_log_level level, const char *line)
{
    (void)arg, (void)level;
    if (strstr(line, "the standard deviation")) snprintf(logged, sizeof logged, "%s", line);
}

/* A deviation whose inverse is not a normal float scales nothing and gives a warning. */
START_TEST(deviations_may_be_beyond_floats)
{
    static const char *const deviations[] = {"1e-40", "3e38"};
    char text[64];
    snprintf(text, sizeof text, "p,q,y\n%s,1,0\n-%s,3,1\n", deviations[_i], deviations[_i]);
    put_text("a.csv", text);
    set("data.train=a.csv"), set("data.normalize=standard");
    dt_log_set_sink(catch_deviation, NULL);
    struct dt_source *source = survey();
    dt_log_set_sink(NULL, NULL);
    ck_assert_float_eq(dt__source_schema(source)->inv_std[0], 1);
    ck_assert_float_eq(dt__source_schema(source)->inv_std[1], 1);
    ck_assert_msg(strstr(logged, "feature 0 (p): the standard deviation, "), "said is '%s'",
                  logged);
    dt__source_destroy(source);
}
END_TEST

static void catch_encoding(void *arg, enum dt_log_level level, const char *line)
{
    (void)arg, (void)level;
    if (strstr(line, "is not UTF-8")) snprintf(logged, sizeof logged, "%s", line);
}

/* Names of columns, names of classes and texts are checked, including the last one of each. */
START_TEST(other_encodings_give_a_warning)
{
    static const char *const texts[] = {
        "gr\374n,b,y\n1,2,0\n3,4,1\n",   "a,gr\374n,y\n1,2,0\n3,4,1\n",
        "a,gr\374n,y\nx,2,0\nz,4,1\n",   "gr\374n,b,y\nx,2,0\nz,4,1\n",
        "a,b,y\ngr\374n,2,0\nz,4,1\n",   "a,b,y\n2,z,0\n4,gr\374n,1\n",
        "a,b,y\n1,2,gr\374n\n3,4,rot\n", "a,b,y\n1,2,arm\n3,4,gr\374n\n"};
    put_text("a.csv", texts[_i]);
    set("data.train=a.csv");
    dt_log_set_sink(catch_encoding, NULL);
    EXPECT_OK(try_survey());
    dt_log_set_sink(NULL, NULL);
    ck_assert_msg(strstr(logged, "gr\374n' is not UTF-8"), "said is '%s'", logged);
}
END_TEST

/* A checkpoint stores NAME=text: a long name or a long text fits, but not both together. */
START_TEST(names_and_texts_fit_a_checkpoint)
{
    enum { LENGTH = 40000 };
    char name[LENGTH + 1], text[LENGTH + 1];
    memset(name, 'n', LENGTH), memset(text, 't', LENGTH);
    name[LENGTH] = text[LENGTH] = 0;
    for (int both = 0; both <= 1; both++) {
        FILE *out = fopen("a.csv", "w");
        fprintf(out, "%s,b,y\n%s,1,0\nx,2,1\n%s,3,0\nx,4,1\n", name, both ? text : "u",
                both ? text : "u");
        ck_assert_int_eq(fclose(out), 0);
        set("data.train=a.csv");
        if (both)
            EXPECT_FAIL(try_survey(), DT_EFORMAT, "more than a checkpoint holds");
        else
            EXPECT_OK(try_survey());
    }
}
END_TEST

/* If any allocation fails while the held-out part is made, there is an error with a message, and
 * what was allocated before is freed. */
START_TEST(memory_may_run_out)
{
    put_text("a.csv", "p,q,kind,y\n1,2.5,x,no\n3,4,y,\"a, b\"\n5,6,z,no\n");
    set("data.train=a.csv"), set("data.eval_fraction=0.34");
    set("data.normalize=standard");
    struct dt_source *source = survey(), *copy = NULL;
    dt_status status;
    int tries = 0;
    for (;; tries++) {
        allocations_left = tries;
        status = dt__source_side(source, DT__HELD_OUT, &copy);
        if (!status && allocations_left >= 0) break; /* the call needs no further allocation */
        EXPECT_FAIL(status, DT_EMEMORY, "memory");
    }
    allocations_left = -1;
    ck_assert_int_gt(tries, 15);
    ck_assert_uint_eq(dt__source_rows(copy), 1);
    dt__source_destroy(copy), dt__source_destroy(source);
}
END_TEST

/* Compares the rows of two sources that have only numbers. */
static void expect_same_rows(const struct dt_source *a, const struct dt_source *b)
{
    struct dt_table *first_table = open_table(a), *second = open_table(b);
    const size_t features = (size_t)dt__source_schema(a)->features;
    ck_assert_uint_eq(dt__source_rows(a), dt__source_rows(b));
    for (uint64_t r = 0; r < dt__source_rows(a); r++)
        ck_assert_mem_eq(read_row(first_table, r).x, read_row(second, r).x,
                         features * sizeof(float));
    dt__table_destroy(first_table), dt__table_destroy(second);
}

/* The same for a survey of numbers, of categories and dates with gaps, and of two LIBSVM files. */
START_TEST(memory_may_run_out_in_a_survey)
{
    static const char *const trains[] = {"data.train=a.csv", "data.train=b.csv",
                                         "data.train=c.svm,d.svm"};
    dt_status status = DT_EMEMORY;
    put_text("a.csv",
             "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,y\n1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,a\n"
             "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,2,b\n");
    put_text("b.csv", "a,b,c,d,y\nx,1,2021-03-04,,a\n,,2021-03-05,z,b\nx,3,,z,a\n");
    put_text("c.svm", "1 1:1 2:2\n0 1:2\n"), put_text("d.svm", "1 1:1 3:2\n0 1:2\n");
    set(trains[_i]), set(_i == 1 ? "data.missing=flag" : "data.missing=error");
    struct dt_source *known = survey();
    bool reached = true;
    for (int tries = 0; reached; tries++) {
        struct dt_source *source = NULL, *again = NULL;
        allocations_left = tries;
        status = dt__source_survey(&config, DT_PART_TRAIN, NULL, &source);
        if (!status)
            status = dt__source_survey(&config, DT_PART_TRAIN, dt__source_schema(known), &again);
        reached = allocations_left < 0;
        allocations_left = -1;
        if (status) EXPECT_FAIL(status, DT_EMEMORY, "memory");
        ck_assert(!status || reached);
        /* A warning that cannot be made must not lose anything. */
        if (!status) ck_assert_uint_eq(dt__source_crc(source), dt__source_crc(known));
        if (!status) ck_assert_uint_eq(dt__source_crc(again), dt__source_crc(known));
        if (!status && _i < 2) expect_same_rows(again, known);
        dt__source_destroy(source), dt__source_destroy(again);
    }
    dt__source_destroy(known);
}
END_TEST

/* Bytes and floats are normalised with the statistics of their column, in the loader too. */
START_TEST(each_column_has_its_own_statistics)
{
    put_text("a.csv", _i ? "0.5,90,7,0\n1.5,110,9,1\n" : "0,90,7,0\n2,110,9,1\n");
    set("data.train=a.csv"), set("data.normalize=standard"), set("data.scale=0.5");
    struct dt_source *source = survey();
    struct dt_table *table = open_table(source);
    struct dt_plan *plan;
    struct dt_loader *loader;
    struct dt_batch batch;
    EXPECT_OK(dt__plan_create(source, 1, 1, 0, &plan));
    EXPECT_OK(dt__loader_create(&config, source, plan, 0, 1, 1, 2, 0, &loader));
    EXPECT_OK(dt__loader_read(loader, 0, 0, 0, 2, &batch));
    for (int f = 0; f < 3; f++) {
        ck_assert_float_eq_tol(read_row(table, 0).x[f], -1, 1e-6f);
        ck_assert_float_eq_tol(read_row(table, 1).x[f], 1, 1e-6f);
        ck_assert_float_eq_tol(batch.x[f], batch.label[0] ? 1 : -1, 1e-6f);
    }
    dt__loader_destroy(loader), dt__plan_destroy(plan);
    dt__table_destroy(table), dt__source_destroy(source);
}
END_TEST

/* The checksum depends on names, rows and schema, but not on the directory. */
START_TEST(the_checksum_depends_on_the_data)
{
    uint32_t crc[4];
    set("data.normalize=none");
    put_rows("a.csv", 0, 10);
    ck_assert_int_eq(mkdir("d", 0700), 0);
    put_rows("d/a.csv", 0, 10), put_rows("b.csv", 0, 10);
    for (int i = 0; i < 4; i++) {
        static const char *const files[] = {"a.csv", "d/a.csv", "b.csv", "a.csv"};
        char assignment[64];
        snprintf(assignment, sizeof assignment, "data.train=%s", files[i]), set(assignment);
        if (i == 3) put_rows("a.csv", 0, 11);
        struct dt_source *source = survey();
        crc[i] = dt__source_crc(source);
        dt__source_destroy(source);
    }
    ck_assert_uint_eq(crc[0], 0xea12aa7u); /* as in existing checkpoints */
    ck_assert_uint_eq(crc[0], crc[1]);
    ck_assert_uint_ne(crc[0], crc[2]);
    ck_assert_uint_ne(crc[0], crc[3]);
}
END_TEST

/* A table that does not fit in memory gives the same rows as one that fits. */
START_TEST(streamed_tables_have_the_same_rows)
{
    put_rows("a.csv", 0, 60000); /* 0.9 MiB */
    set("data.train=a.csv");
    struct dt_source *source = survey();
    struct dt_table *in_memory, *streamed;
    EXPECT_OK(dt__table_create(&config, source, 5, 60000, &in_memory));
    set("data.memory_mb=1");
    EXPECT_OK(dt__table_create(&config, source, 5, 60000, &streamed));
    for (uint64_t at = 5; at < 60000; at += DT_EVAL_CHUNK) {
        int count = 60000 - at < DT_EVAL_CHUNK ? (int)(60000 - at) : DT_EVAL_CHUNK;
        struct dt_batch a, b;
        EXPECT_OK(dt__table_read(in_memory, at, count, &a));
        EXPECT_OK(dt__table_read(streamed, at, count, &b));
        ck_assert_float_eq(a.x[0], (float)at);
        ck_assert_mem_eq(a.x, b.x, (size_t)count * 3 * sizeof *a.x);
        ck_assert_mem_eq(a.label, b.label, (size_t)count * sizeof *a.label);
    }
    struct dt_batch batch;
    EXPECT_FAIL(dt__table_read(in_memory, 4, 1, &batch), DT_EBUG, "no such rows");
    EXPECT_FAIL(dt__table_read(in_memory, 59999, 2, &batch), DT_EBUG, "no such rows");
    dt__table_destroy(in_memory), dt__table_destroy(streamed);
    dt__source_destroy(source);
}
END_TEST

/* A start and its resume must store rows in the same bytes, since the order of rows depends on
 * that. If a column's first cells are missing, only a later cell shows whether it has texts or
 * numbers. */
START_TEST(leading_gaps_do_not_decide_the_kind)
{
    static const struct {
        const char *rows;
        bool bytes;
    } cases[] = {{"t,n,y\n,1,0\nred,2,1\nblue,3,0\nred,4,1\n", true},
                 {"m,n,y\n,1,0\n1,2,1\n2,3,0\n3,4,1\n", false},
                 {"m,n,y\n0,1,0\n1,2,1\n,3,0\n3,4,1\n", false}};
    struct dt_source *again;
    put_text("a.csv", cases[_i].rows);
    set("data.train=a.csv"), set("data.missing=mean");
    struct dt_source *source = survey();
    EXPECT_OK(dt__source_survey(&config, DT_PART_TRAIN, dt__source_schema(source), &again));
    ck_assert_int_eq(source->layout.bytes, cases[_i].bytes);
    ck_assert_int_eq(again->layout.bytes, cases[_i].bytes);
    dt__source_destroy(again);
    dt__source_destroy(source);
}
END_TEST

/* dt__source_targets gives the targets of the training rows, in order, with the weights of rows and
 * classes, whose mean is 1. Fails if held-out rows are among them, if a row gets another's weight,
 * or if a weight lacks the factor of its class. */
START_TEST(targets_are_read_without_inputs)
{
    struct dt_batch targets;
    put_text("a.csv", "a,w,y\n1,1,no\n2,3,yes\n3,1,no\n4,3,no\n");
    set("data.train=a.csv"), set("data.label=y"), set("data.weight=w");
    set("train.class_weight=balanced");
    struct dt_source *source = survey();
    EXPECT_OK(dt__source_targets(source, &targets));
    ck_assert_int_eq(targets.rows, 4);
    ck_assert_ptr_null(targets.target);
    const float weight[] = {1 / 3.0f, 3, 1 / 3.0f, 1};
    for (int r = 0; r < 4; r++) {
        ck_assert_int_eq(targets.label[r], r == 1);
        ck_assert_float_eq_tol(targets.weight[r], weight[r], 1e-6f);
    }
    dt__source_targets_free(&targets);
    dt__source_destroy(source);
    put_rows("b.csv", 0, 1000);
    set("data.train=b.csv"), set("data.label=0"), set("data.weight="),
        set("train.class_weight=none");
    set("model.task=regress"), set("data.eval_fraction=0.3");
    source = survey();
    EXPECT_OK(dt__source_targets(source, &targets));
    ck_assert_int_eq(targets.rows, 700);
    ck_assert_ptr_null(targets.weight);
    for (uint64_t r = 0; r < 700; r++)
        ck_assert_float_eq(targets.target[r], (float)dt__source_raw(source, r));
    dt__source_targets_free(&targets);
    dt__source_destroy(source);
}
END_TEST

DATA_SUITE("source", {targets_are_read_without_inputs, 1}, {robust_statistics_resist_outliers, 4},
           {robust_statistics_of_arrays_and_bytes, 4}, {targets_have_units, 1},
           {the_checksum_depends_on_values_in_memory, 1}, {files_are_in_order, 1},
           {keys_of_another_format_are_refused, 1}, {parts_are_disjoint, 1},
           {statistics_are_those_of_training_rows, 1}, {a_packed_survey_is_complete, 1},
           {memory_may_run_out, 1}, {memory_may_run_out_in_a_survey, 3}, {arrays_are_a_source, 2},
           {evaluation_is_checked, 1}, {deviations_may_be_beyond_floats, 2},
           {other_encodings_give_a_warning, 8}, {names_and_texts_fit_a_checkpoint, 1},
           {leading_gaps_do_not_decide_the_kind, 3}, {each_column_has_its_own_statistics, 2},
           {the_checksum_depends_on_the_data, 1}, {streamed_tables_have_the_same_rows, 1})
