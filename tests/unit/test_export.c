/* Fails if another program sees an incomplete export, if an export lacks what prediction needs or
 * is not the highest version, or if a path finds the wrong model. */
#include "state_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- failing calls -------------------------------------------------------------------------- */

static int calls, fail_at;
static bool no_exchange; /* as on a file system that cannot exchange two names */

static bool fails_now(void)
{
    bool now = fail_at && ++calls == fail_at;
    if (now) errno = ENOSPC;
    return now;
}

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails_now() ? -1 : __real_##name arguments;                                         \
    }
WRAP(ssize_t, write, (int fd, const void *bytes, size_t length), (fd, bytes, length))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    return fails_now() ? NULL : __real_opendir(path);
}

/* Inodes of the directories that were synced, in order. */
static ino_t synced[8];
static int syncs;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    struct stat info;
    if (!fstat(fd, &info) && S_ISDIR(info.st_mode) && syncs < 8) synced[syncs++] = info.st_ino;
    return fails_now() ? -1 : __real_fsync(fd);
}

int __real_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    if (no_exchange) errno = EINVAL;
    return no_exchange || fails_now() ? -1 : __real_renameat2(a, from, b, to, flags);
}

static void (*before_load)(void); /* called once, after a model is found and before it is opened */

dt_status __real_dt__file_load(const char *path, enum dt__wanted wanted, struct dt_checkpoint *out,
                               uint64_t *out_bytes);
dt_status __wrap_dt__file_load(const char *path, enum dt__wanted wanted, struct dt_checkpoint *out,
                               uint64_t *out_bytes);
dt_status __wrap_dt__file_load(const char *path, enum dt__wanted wanted, struct dt_checkpoint *out,
                               uint64_t *out_bytes)
{
    void (*before)(void) = before_load;
    before_load = NULL;
    if (before) before();
    return __real_dt__file_load(path, wanted, out, out_bytes);
}

/* ---- helpers -------------------------------------------------------------------------------- */

/* Exports the sample checkpoint of `step` with `mark` as its best value. */
static dt_status try_export(const char *base, uint64_t step, double mark, int64_t keep)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(step, 20, 10);
    struct dt_checkpoint model = checkpoint;
    model.best.value = mark;
    dt_status status = dt__export_write(base, &model, keep);
    dt__checkpoint_free(&checkpoint);
    return status;
}

static void assert_is_sample(const struct dt_checkpoint *model)
{
    struct dt_checkpoint sample = sample_checkpoint(model->step, 20, 10);
    assert_same_desc(&model->desc, &sample.desc);
    assert_same_schema(&model->schema, &sample.schema);
    ck_assert_uint_eq(model->params_count, sample.params_count);
    assert_same_floats(model->params, sample.params, sample.params_count);
    ck_assert_str_eq(model->config, sample.config);
    dt__checkpoint_free(&sample);
}

/* Returns the mark of the model that the path leads to, which must be a complete sample. */
static double load_mark(const char *path, uint64_t *out_step, const char *end_of_path)
{
    char *from;
    struct dt_checkpoint model;
    assert_ok(dt__export_load(path, false, &model, &from));
    assert_is_sample(&model);
    ck_assert_msg(strlen(from) >= strlen(end_of_path) &&
                      !strcmp(from + strlen(from) - strlen(end_of_path), end_of_path),
                  "%s does not end with %s", from, end_of_path);
    double mark = model.best.value;
    *out_step = model.step;
    dt__checkpoint_free(&model);
    dt_free(from);
    return mark;
}

static bool has_version(const char *base, uint64_t step)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%llu/model.h5", base, (unsigned long long)step);
    return dt__path_exists(path);
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* Checks the ends of two paths that dt__model_find returns for `path`: the model's file, and the
 * directory of checkpoints. */
static void assert_found(const char *path, bool best, const char *end_of_file,
                         const char *end_of_checkpoints)
{
    char *found[2];
    const char *const ends[2] = {end_of_file, end_of_checkpoints};
    assert_ok(dt__model_find(path, best, &found[0], &found[1]));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(!found[i], !ends[i]);
        if (!ends[i]) continue;
        size_t length = strlen(found[i]), end = strlen(ends[i]);
        ck_assert_msg(length >= end && !strcmp(found[i] + length - end, ends[i]),
                      "%s: %s does not end with %s", path, found[i], ends[i]);
        dt_free(found[i]);
    }
}

START_TEST(every_path_leads_to_the_model)
{
    char *file;
    uint64_t step;
    struct dt_checkpoint checkpoint = sample_checkpoint(7, 20, 10);
    checkpoint.best.value = 3;
    assert_ok(try_export(in_dir("export/latest"), 9, 1, 0));
    assert_ok(try_export(in_dir("export/latest"), 10, 2, 0));
    assert_ok(save_checkpoint(in_dir("ckpt"), &checkpoint, 0, NULL, &file));
    ck_assert(load_mark(in_dir("export/latest"), &step, "latest/10/model.h5") == 2 && step == 10);
    ck_assert(load_mark(in_dir("export/latest/9"), &step, "latest/9/model.h5") == 1 && step == 9);
    ck_assert(load_mark(in_dir("export/latest/9/model.h5"), &step, "9/model.h5") == 1 && step == 9);
    ck_assert(load_mark(test_dir, &step, "ckpt/step-000000007.h5") == 3 && step == 7);
    ck_assert(load_mark(in_dir("ckpt"), &step, "ckpt/step-000000007.h5") == 3 && step == 7);
    ck_assert(load_mark(in_dir("ckpt/latest.h5"), &step, "ckpt/latest.h5") == 3 && step == 7);
    /* The best export of a run, if there is one, comes before its checkpoints if `best` is asked
     * for. */
    const char *newest = "/ckpt/step-000000007.h5";
    close(open(in_dir("export/best"), O_CREAT | O_WRONLY, 0600));
    assert_found(test_dir, true, newest, "/ckpt");
    ck_assert_int_eq(remove(in_dir("export/best")) || mkdir(in_dir("export/best"), 0700), 0);
    assert_found(test_dir, true, newest, "/ckpt");
    assert_ok(try_export(in_dir("export/best"), 5, 1, 0));
    assert_found(test_dir, true, "/export/best/5/model.h5", NULL);
    assert_found(test_dir, false, newest, "/ckpt");
    assert_found(in_dir("ckpt"), true, newest, "/ckpt");
    assert_found(in_dir("ckpt/latest.h5"), true, "/ckpt/latest.h5", NULL);
    assert_found(in_dir("nowhere"), true, "/nowhere", NULL);
    dt__checkpoint_free(&checkpoint);
    dt_free(file);
}
END_TEST

/* Rows of zeros in a first layer of 200 x 10 weights: of its rows every third, every 7th, none or
 * all are not zero. Fails if a row comes back elsewhere or with other bits (-0 included), or if few
 * such rows do not make a smaller file. */
START_TEST(rows_of_zeros_are_not_stored)
{
    static const int nth[] = {3, 7, 20, 1};
    uint64_t whole_bytes = 0;
    for (int i = (int)(sizeof nth / sizeof *nth) - 1; i >= 0; i--) {
        struct dt_checkpoint checkpoint = sample_checkpoint(5, 200, 10);
        struct dt_checkpoint model = checkpoint, loaded;
        for (size_t row = 0; row < 200; row++)
            if (nth[i] == 20 || row % (size_t)nth[i])
                memset(model.params + row * 10, 0, 10 * sizeof(float));
        model.params[61] = -0.0f;
        char *from;
        struct stat file;
        assert_ok(dt__export_write(test_dir, &model, 1));
        assert_ok(dt__export_load(test_dir, false, &loaded, &from));
        assert_same_floats(loaded.params, model.params, model.params_count);
        ck_assert_int_eq(stat(from, &file), 0);
        if (nth[i] == 1) whole_bytes = (uint64_t)file.st_size;
        if (nth[i] > 3) ck_assert_uint_lt((uint64_t)file.st_size, whole_bytes - 3 * 200 * 10);
        dt__checkpoint_free(&loaded);
        dt__checkpoint_free(&checkpoint);
        dt_free(from);
    }
}
END_TEST

/* Makes two columns of numbers, one of them with a flag, and two columns of categories with three
 * texts each, as after training. */
static void make_columns(struct dt_column columns[4])
{
    static char *texts[] = {"red", "", "blue"};
    for (int c = 0; c < 4; c++)
        columns[c] = (struct dt_column){.kind = c % 2, .fill = 0.5f};
    for (int c = 1; c < 4; c += 2)
        columns[c].categories = texts, columns[c].ncategories = 3;
    columns[0].name = "", columns[1].name = "color", columns[2].name = "\na b",
    columns[3].name = "x";
    columns[2].first = 1, columns[2].flag = 2;
    columns[1].first = 3, columns[3].first = 7;
}

enum { TABLE_FEATURES = 11, WRONG_TABLES = 18 };

static void damage_columns(int kind, struct dt_schema *schema)
{
    struct dt_column *c = schema->columns;
    int *const numbers[] = {&c[0].first, &c[1].first, &c[2].first,   &c[3].first,
                            &c[2].flag,  &c[1].kind,  &schema->dense};
    const int wrong[] = {1, 7, 0, 3, 1, 2, 2}, out_of_range[] = {-1, 8, 1 << 30, -2, 9, -1, -1};
    if (kind < 14) *numbers[kind / 2] = kind % 2 ? out_of_range[kind / 2] : wrong[kind / 2];
    if (kind == 14) c[3].ncategories = 2;
    if (kind == 15) c[0].flag = 3;
    if (kind == 16) c[0].fill = (float)INFINITY;
    if (kind == 17) { /* a date beyond the range of days */
        static char *form[] = {"Y-m-d"};
        c[0] = (struct dt_column){.kind = DT_COLUMN_DATE,
                                  .fill = 3e38f,
                                  .name = "",
                                  .categories = form,
                                  .ncategories = 1};
    }
}

/* Readers of rows rely on each column's place among the features: a file whose places are wrong is
 * refused, any other loads with every column, even one whose name is empty. */
START_TEST(wrong_places_of_columns_are_refused)
{
    for (int kind = -2; kind < WRONG_TABLES; kind++) {
        struct dt_column columns[4];
        struct dt_checkpoint checkpoint = sample_checkpoint(5, TABLE_FEATURES, 3);
        struct dt_checkpoint model = checkpoint, loaded;
        char *from;
        make_columns(columns);
        model.schema.columns = columns, model.schema.ncolumns = 4;
        model.schema.dense = kind == -2 ? TABLE_FEATURES : 3;
        if (kind >= 0) damage_columns(kind, &model.schema);
        assert_ok(dt__export_write(test_dir, &model, 1));
        if (kind < 0) {
            assert_ok(dt__export_load(test_dir, false, &loaded, &from));
            ck_assert_int_eq(loaded.schema.ncolumns, 4);
            ck_assert_int_eq(loaded.schema.dense, model.schema.dense);
            for (int c = 0; c < 4; c++) {
                const struct dt_column *column = &loaded.schema.columns[c];
                ck_assert_str_eq(column->name, columns[c].name);
                ck_assert_int_eq(column->first, columns[c].first);
                ck_assert_int_eq(column->flag, columns[c].flag);
                assert_same_names(column->categories, columns[c].categories,
                                  columns[c].ncategories);
            }
            dt__checkpoint_free(&loaded);
            dt_free(from);
        } else {
            EXPECT_FAIL(dt__export_load(test_dir, false, &loaded, &from), DT_EFORMAT,
                        "/schema/columns");
        }
        dt__checkpoint_free(&checkpoint);
    }
}
END_TEST

START_TEST(a_path_to_nothing_is_an_error)
{
    char *from;
    struct dt_checkpoint model;
    ck_assert_int_eq(dt__export_load(in_dir("nowhere"), false, &model, &from), DT_EIO);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "nowhere: cannot open"));
    ck_assert_int_eq(dt__export_load(test_dir, false, &model, &from), DT_EIO);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "neither a model nor a checkpoint"));
    ck_assert_int_eq(dt__export_load("/bin/ls", false, &model, &from), DT_EFORMAT);
}
END_TEST

START_TEST(a_damaged_model_is_refused)
{
    char *from;
    struct dt_checkpoint model;
    assert_ok(try_export(test_dir, 4, 1, 0));
    ck_assert_int_eq(truncate(in_dir("4/model.h5"), 3000), 0);
    ck_assert_int_eq(dt__export_load(test_dir, false, &model, &from), DT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "4/model.h5: damaged"));
}
END_TEST

/* A model is not a checkpoint: a resume from one must fail with a message. */
START_TEST(a_model_does_not_load_as_a_checkpoint)
{
    struct dt_checkpoint checkpoint;
    assert_ok(try_export(test_dir, 4, 1, 0));
    ck_assert_int_eq(dt__checkpoint_load(in_dir("4/model.h5"), &checkpoint), DT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "a model, not a checkpoint"));
}
END_TEST

/* ---- versions ------------------------------------------------------------------------------- */

/* The version's directory is synced, then its parent: without both, a crash may lose the export. */
START_TEST(both_directories_of_a_version_are_synced)
{
    struct stat base, version;
    syncs = 0;
    assert_ok(try_export(test_dir, 7, 0, 0));
    ck_assert(!stat(test_dir, &base) && !stat(in_dir("7"), &version));
    ck_assert_int_eq(syncs, 2);
    ck_assert(synced[0] == version.st_ino && synced[1] == base.st_ino);
}
END_TEST

START_TEST(the_oldest_versions_are_removed)
{
    for (uint64_t step = 8; step <= 12; step++)
        assert_ok(try_export(test_dir, step, 0, 3));
    for (uint64_t step = 8; step <= 12; step++)
        ck_assert_int_eq(has_version(test_dir, step), step >= 10);
    assert_ok(try_export(test_dir, 13, 0, 0));
    ck_assert(has_version(test_dir, 10));
    assert_ok(try_export(test_dir, 14, 0, 1));
    ck_assert(has_version(test_dir, 14) && !has_version(test_dir, 13));
    ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
}
END_TEST

static void export_next(void)
{
    assert_ok(try_export(test_dir, 8, 0.8, 1));
}

/* Fails if it is an error that a newer version replaces the one just found. */
START_TEST(a_version_may_be_replaced_while_it_is_found)
{
    uint64_t step;
    assert_ok(try_export(test_dir, 7, 0.7, 1));
    before_load = export_next;
    ck_assert_double_eq(load_mark(test_dir, &step, "/8/model.h5"), 0.8);
    ck_assert_uint_eq(step, 8);
}
END_TEST

START_TEST(the_same_step_is_replaced)
{
    uint64_t step;
    for (int i = 0; i < 2; i++) {
        no_exchange = i;
        assert_ok(try_export(test_dir, 5, 1 + i, 0));
        assert_ok(try_export(test_dir, 5, 3 + i, 0));
        ck_assert(load_mark(test_dir, &step, "5/model.h5") == 3 + i);
        ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
    }
    no_exchange = false;
}
END_TEST

/* The highest version is the last one written, even after a resume from an older step. */
START_TEST(versions_of_an_abandoned_branch_are_removed)
{
    uint64_t step;
    for (uint64_t i = 1; i <= 4; i++)
        assert_ok(try_export(test_dir, i * 10, (double)i, 0));
    assert_ok(try_export(test_dir, 25, 9, 0));
    ck_assert(load_mark(test_dir, &step, "25/model.h5") == 9);
    ck_assert(has_version(test_dir, 20) && !has_version(test_dir, 30));
}
END_TEST

START_TEST(other_names_are_left_alone)
{
    const char *const names[] = {"007", "9x", "-5", "+5", "notes", "18446744073709551616"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_int_eq(mkdir(in_dir(names[i]), 0777), 0);
    uint64_t step;
    assert_ok(try_export(test_dir, 3, 1, 1));
    ck_assert(load_mark(test_dir, &step, "3/model.h5") == 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert(dt__path_is_dir(in_dir(names[i])));
    /* The directory of a version that another program is copying has no model yet. */
    ck_assert_int_eq(mkdir(in_dir("4"), 0777), 0);
    ck_assert(load_mark(test_dir, &step, "3/model.h5") == 1);
}
END_TEST

START_TEST(leftovers_of_a_killed_export_do_not_block)
{
    ck_assert_int_eq(mkdir(in_dir(".tmp-5"), 0777), 0);
    close(open(in_dir(".tmp-5/model.h5"), O_CREAT | O_WRONLY, 0600));
    close(open(in_dir(".tmp-5/model.h5.tmp-0123"), O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(mkdir(in_dir(".tmp-7"), 0777), 0);
    assert_ok(try_export(test_dir, 5, 1, 0));
    ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
}
END_TEST

START_TEST(the_best_metric_survives)
{
    struct dt_best best = {.known = true};
    assert_ok(dt__export_best(in_dir("nowhere"), &best));
    ck_assert(!best.known);
    assert_ok(try_export(test_dir, 10, 0.5, 0));
    assert_ok(try_export(test_dir, 20, 0.75, 0));
    assert_ok(dt__export_best(test_dir, &best));
    ck_assert(best.known && best.value == 0.75);
    ck_assert_str_eq(best.metric, "accuracy");
    dt_log_set_level(DT_LOG_ERROR);
    ck_assert_int_eq(truncate(in_dir("20/model.h5"), 3000), 0);
    assert_ok(dt__export_best(test_dir, &best));
    ck_assert(best.known && best.value == 0.5);
}
END_TEST

/* ---- failures ------------------------------------------------------------------------------- */

/* Each system call fails in turn: the version has its old or its new content, or does not exist if
 * it did not before; nothing incomplete ever has a version's name. */
static void fail_each_call(bool existed)
{
    uint64_t step;
    dt_log_set_level(DT_LOG_ERROR);
    for (int at = 1, reached = 1; reached; at++) {
        remove_test_dir();
        make_test_dir();
        if (existed) assert_ok(try_export(test_dir, 5, 1, 2));
        calls = 0;
        fail_at = at;
        dt_status status = try_export(test_dir, 5, 2, 2);
        reached = calls >= at;
        fail_at = 0;
        bool exists = dt__path_exists(in_dir("5"));
        ck_assert_msg(exists || (status && !existed), "call %d: version lost", at);
        if (exists) {
            double mark = load_mark(test_dir, &step, "5/model.h5");
            ck_assert(mark == 2 || (status && existed && mark == 1));
        }
        ck_assert(reached || !status);
        assert_ok(try_export(test_dir, 5, 3, 2));
        ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
    }
}

START_TEST(any_call_may_fail_in_a_new_version)
{
    fail_each_call(false);
}
END_TEST

START_TEST(any_call_may_fail_in_a_replaced_version)
{
    fail_each_call(true);
    no_exchange = true;
    fail_each_call(true);
    no_exchange = false;
}
END_TEST

/* Fails if a directory that cannot be listed is taken for an empty one. */
START_TEST(a_directory_that_cannot_be_listed_is_an_error)
{
    char *from;
    struct dt_checkpoint model;
    assert_ok(try_export(test_dir, 5, 1, 2));
    calls = 0;
    fail_at = 1;
    EXPECT_FAIL(dt__export_load(test_dir, false, &model, &from), DT_EIO, "cannot list");
    fail_at = 0;
}
END_TEST

static void export_forever(void)
{
    for (uint64_t step = 1;; step = step % 7 + 1) {
        if (try_export(test_dir, step, (double)step, 3)) _exit(1);
    }
}

START_TEST(a_kill_leaves_only_complete_versions)
{
    struct dt_rng rng = dt__rng_make((uint64_t)dt__clock_unix(), DT_STREAM_TEST, 4, 0);
    for (uint64_t round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0) export_forever();
        dt__sleep_secs(0.005 + 0.03 * dt__rng_uniform(&rng, round));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        for (uint64_t version = 1; version <= 7; version++) {
            uint64_t step;
            char name[16];
            snprintf(name, sizeof name, "%d", (int)version);
            if (!dt__path_exists(in_dir(name))) continue;
            ck_assert(load_mark(in_dir(name), &step, "model.h5") == (double)version);
        }
    }
}
END_TEST

/* ---- inspect -------------------------------------------------------------------------------- */

static const char *inspect(const char *path, dt_status expected)
{
    static char text[4096];
    FILE *out = fmemopen(text, sizeof text, "w");
    ck_assert_int_eq(dt__inspect(path, out), expected);
    fclose(out);
    return text;
}

static void assert_contains(const char *text, const char *word)
{
    ck_assert_msg(strstr(text, word), "no '%s' in:\n%s", word, text);
}

START_TEST(inspect_prints_what_a_file_contains)
{
    char *file;
    struct dt_checkpoint checkpoint = sample_checkpoint(7, 20, 10);
    assert_ok(save_checkpoint(test_dir, &checkpoint, 0, NULL, &file));
    const char *text = inspect(in_dir(file), DT_OK);
    assert_contains(text, "step-000000007.h5: checkpoint of ");
    assert_contains(
        text,
        " bytes, checksum right\nstep          7\ntask          classify\nparameters    243, ");
    assert_contains(text, "dense 10 gelu, dropout 0.25");
    const char *rest = strstr(text, "\nfeatures ");
    ck_assert_ptr_nonnull(rest);
    ck_assert_str_eq(rest, "\n"
                           "features      20, scale 0.5, normalised\n"
                           "classes       3 (T-shirt, , Stra\xc3\x9f"
                           "e)\n"
                           "best by then  accuracy 0.875 at step 3\n"
                           "mode          async, 3 replicas, seed 77\n"
                           "optimizer     unknown, which keeps first, second\n"
                           "trained       896 samples in 12.2 s, kernel Haswell\n");
    assert_ok(try_export(in_dir("best"), 5, 1, 0));
    assert_contains(inspect(in_dir("best/5/model.h5"), DT_OK), ": model of");
    assert_contains(inspect(in_dir("best"), DT_OK), "best/5/model.h5: model of");
    inspect(in_dir("nowhere"), DT_EIO);
    inspect("/bin/ls", DT_EFORMAT);
    assert_contains(inspect(test_dir, DT_OK), "checkpoint of");
    ck_assert_int_eq(mkfifo(in_dir("pipe"), 0600), 0);
    inspect(in_dir("pipe"), DT_EFORMAT);
    dt__checkpoint_free(&checkpoint);
    dt_free(file);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_path_leads_to_the_model,
        rows_of_zeros_are_not_stored,
        wrong_places_of_columns_are_refused,
        a_path_to_nothing_is_an_error,
        a_damaged_model_is_refused,
        a_model_does_not_load_as_a_checkpoint,
        both_directories_of_a_version_are_synced,
        the_oldest_versions_are_removed,
        a_version_may_be_replaced_while_it_is_found,
        the_same_step_is_replaced,
        versions_of_an_abandoned_branch_are_removed,
        other_names_are_left_alone,
        leftovers_of_a_killed_export_do_not_block,
        the_best_metric_survives,
        any_call_may_fail_in_a_new_version,
        any_call_may_fail_in_a_replaced_version,
        a_directory_that_cannot_be_listed_is_an_error,
        a_kill_leaves_only_complete_versions,
        inspect_prints_what_a_file_contains,
    };
    return run_tests("export", (int)(sizeof tests / sizeof *tests), tests);
}
