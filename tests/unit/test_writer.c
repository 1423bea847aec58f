/* Fails if a background save sees later changes of the weights, loses an error or a result, removes
 * a file under evaluation, or races (run it under ThreadSanitizer). */
#include "state_sample.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* ---- a disk that waits or fails ------------------------------------------------------------- */

static bool gate_closed;  /* fsync waits while this is true */
static int failing_syncs; /* number of syncs, from the next one, that fail */
static ino_t synced[16];  /* inodes of files that were synced, in order */
static int syncs;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static bool is_held(void)
{
    pthread_mutex_lock(&gate);
    bool held = gate_closed;
    pthread_mutex_unlock(&gate);
    return held;
}

static void set_gate(bool closed)
{
    pthread_mutex_lock(&gate);
    gate_closed = closed;
    pthread_mutex_unlock(&gate);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    while (is_held())
        dt__sleep_secs(0.001);
    pthread_mutex_lock(&gate);
    struct stat info;
    if (fstat(fd, &info) == 0 && syncs < 16) synced[syncs++] = info.st_ino;
    bool fails = failing_syncs > 0;
    if (fails) failing_syncs--;
    pthread_mutex_unlock(&gate);
    errno = EIO;
    return fails ? -1 : __real_fsync(fd);
}

static dt_status create(const char *dir, int64_t keep, struct dt_writer **out)
{
    struct dt_writer_spec spec = {.dir = dir, .keep = keep};
    return dt__writer_create(&spec, out);
}

static struct dt_saved poll_saved(struct dt_writer *writer)
{
    struct dt_saved saved;
    ck_assert(dt__writer_poll(writer, true, &saved));
    return saved;
}

START_TEST(the_snapshot_is_taken_in_the_call)
{
    struct dt_saved saved;
    struct dt_writer *writer;
    struct dt_checkpoint loaded;
    struct dt_checkpoint live = sample_checkpoint(5, 300, 200),
                         expected = sample_checkpoint(5, 300, 200);
    assert_ok(create(test_dir, 0, &writer));
    ck_assert(!dt__writer_poll(writer, true, &saved));
    assert_ok(dt__writer_start(writer, &live));
    for (size_t i = 0; i < live.params_count; i++)
        live.params[i] = live.state[0][i] = -1;
    live.config[0] = 'X';
    live.draws[0] = 0;
    live.schema.mean[0] = -7;
    live.schema.label_names[0][0] = '?';
    saved = poll_saved(writer);
    ck_assert_int_eq(saved.status, DT_OK);
    ck_assert_uint_eq(saved.step, 5);
    ck_assert_str_eq(saved.file, "step-000000005.h5");
    ck_assert(saved.secs > 0 && saved.secs < 60);
    assert_ok(dt__checkpoint_load(in_dir(saved.file), &loaded));
    assert_same_checkpoint(&loaded, &expected);
    ck_assert(!dt__writer_poll(writer, true, &saved));
    dt__writer_destroy(writer);
    dt__checkpoint_free(&loaded);
    dt__checkpoint_free(&live);
    dt__checkpoint_free(&expected);
}
END_TEST

static pthread_t failing_thread;  /* only allocations of this thread fail */
static int allocations_left = -1; /* number of allocations until one fails; -1: none fails */
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (pthread_equal(pthread_self(), failing_thread) && allocations_left >= 0 &&
        allocations_left-- == 0)
        return NULL;
    return __real_aligned_alloc(alignment, size);
}

/* If memory runs out during a snapshot, that is an error; otherwise the snapshot is complete. */
START_TEST(memory_may_run_out_in_a_snapshot)
{
    bool reached = true;
    struct dt_checkpoint live = sample_checkpoint(5, 20, 10), loaded;
    failing_thread = pthread_self();
    int tries = 0;
    for (; reached; tries++) {
        struct dt_writer *writer;
        assert_ok(create(test_dir, 0, &writer));
        allocations_left = tries;
        const dt_status status = dt__writer_start(writer, &live);
        reached = allocations_left < 0;
        allocations_left = -1;
        ck_assert_int_eq((int)status, reached ? DT_EMEMORY : DT_OK);
        if (!status) {
            assert_ok(poll_saved(writer).status);
            assert_ok(dt__checkpoint_load(in_dir("step-000000005.h5"), &loaded));
            assert_same_checkpoint(&loaded, &live);
            dt__checkpoint_free(&loaded);
        }
        dt__writer_destroy(writer);
    }
    ck_assert_int_gt(tries, 10);
    dt__checkpoint_free(&live);
}
END_TEST

/* Buffers are reused: nothing of an earlier, larger checkpoint may remain. */
START_TEST(saves_may_follow_each_other)
{
    struct dt_writer *writer;
    assert_ok(create(test_dir, 3, &writer));
    for (uint64_t step = 1; step <= 20; step++) {
        struct dt_checkpoint loaded, checkpoint = sample_checkpoint(step, step % 2 ? 40 : 3, 20);
        if (step % 3 == 0) {
            dt_free((void *)checkpoint.state_name[1]);
            dt__free_backed(checkpoint.state[1]);
            checkpoint.state_name[1] = NULL;
            checkpoint.state[1] = NULL;
            checkpoint.nstate = 1;
        }
        assert_ok(dt__writer_start(writer, &checkpoint));
        struct dt_saved saved = poll_saved(writer);
        ck_assert_int_eq(saved.status, DT_OK);
        assert_ok(dt__checkpoint_load(in_dir(saved.file), &loaded));
        assert_same_checkpoint(&loaded, &checkpoint);
        dt__checkpoint_free(&loaded);
        dt__checkpoint_free(&checkpoint);
    }
    dt__writer_destroy(writer);
    ck_assert_int_eq(count_names(test_dir, "step-"), 3);
}
END_TEST

START_TEST(an_error_reaches_the_caller)
{
    struct dt_writer *writer;
    struct dt_checkpoint checkpoint = sample_checkpoint(1, 5, 4);
    fclose(fopen(in_dir("file"), "w"));
    assert_ok(create(in_dir("file/ckpt"), 0, &writer));
    assert_ok(dt__writer_start(writer, &checkpoint));
    struct dt_saved saved = poll_saved(writer);
    ck_assert_int_eq(saved.status, DT_EIO);
    ck_assert_ptr_null(saved.file);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "file"));
    assert_ok(dt__writer_start(writer, &checkpoint));
    ck_assert_int_eq(dt__writer_start(writer, &checkpoint), DT_EIO); /* the result was not polled */
    ck_assert(!dt__writer_poll(writer, true, &saved));
    dt__writer_destroy(writer);
    dt__checkpoint_free(&checkpoint);
}
END_TEST

/* Fails if a power failure can lose records although the checkpoint after them exists. */
START_TEST(records_are_synced_before_the_checkpoint)
{
    struct dt_writer *writer;
    struct stat info, saved_file;
    char records[128];
    snprintf(records, sizeof records, "%s", in_dir("metrics.jsonl"));
    fclose(fopen(records, "w"));
    struct dt_writer_spec spec = {.dir = test_dir, .records = records};
    struct dt_checkpoint checkpoint = sample_checkpoint(1, 5, 4);
    assert_ok(dt__writer_create(&spec, &writer));
    assert_ok(dt__writer_start(writer, &checkpoint));
    ck_assert_int_eq(poll_saved(writer).status, DT_OK);
    dt__writer_destroy(writer);
    dt__checkpoint_free(&checkpoint);
    ck_assert_int_eq(stat(records, &info), 0);
    ck_assert_int_eq(stat(in_dir("step-000000001.h5"), &saved_file), 0);
    ck_assert_int_ge(syncs, 2);
    ck_assert_uint_eq(synced[0], info.st_ino);
    ck_assert_uint_eq(synced[1], saved_file.st_ino);
}
END_TEST

/* ---- exports -------------------------------------------------------------------------------- */

static char latest_dir[128], best_dir[128];

static struct dt_writer *create_exporter(void)
{
    struct dt_writer *writer;
    struct dt_writer_spec spec = {
        .dir = test_dir, .latest_dir = latest_dir, .best_dir = best_dir, .export_keep = 2};
    snprintf(latest_dir, sizeof latest_dir, "%s", in_dir("export/latest"));
    snprintf(best_dir, sizeof best_dir, "%s", in_dir("export/best"));
    assert_ok(dt__writer_create(&spec, &writer));
    return writer;
}

static struct dt_saved save(struct dt_writer *writer, uint64_t step, uint64_t best)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(step, 5, 4);
    checkpoint.best.step = best;
    assert_ok(dt__writer_start(writer, &checkpoint));
    dt__checkpoint_free(&checkpoint);
    return poll_saved(writer);
}

static void hand_over_best(struct dt_writer *writer, uint64_t step)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(step, 5, 4);
    checkpoint.best.step = step;
    assert_ok(dt__writer_best(writer, &checkpoint));
    dt__checkpoint_free(&checkpoint);
}

/* Checks that the highest version in `base` is that of `step`, with its weights. */
static void expect_export(const char *base, uint64_t step)
{
    char *path;
    struct dt_checkpoint model;
    assert_ok(dt__export_load(base, false, &model, &path));
    ck_assert_uint_eq(model.step, step);
    ck_assert(model.params[0] == (float)step);
    dt__checkpoint_free(&model);
    dt_free(path);
}

/* Fails if a run that ends leaves its best model unexported. */
START_TEST(a_best_that_waits_is_exported_at_the_end)
{
    struct dt_writer *writer = create_exporter();
    for (uint64_t step = 1; step <= 5; step++)
        hand_over_best(writer, step);
    while (!dt__path_exists(best_dir))
        dt__sleep_secs(0.001);
    hand_over_best(writer, 6);
    hand_over_best(writer, 7);
    dt__writer_destroy(writer);
    expect_export(best_dir, 7);
}
END_TEST

START_TEST(an_export_follows_the_save)
{
    struct dt_writer *writer = create_exporter();
    for (uint64_t step = 1; step <= 3; step++) {
        struct dt_saved saved = save(writer, step, 0);
        ck_assert_int_eq(saved.status, DT_OK);
        ck_assert_int_eq(saved.exported, DT_OK);
    }
    dt__writer_destroy(writer);
    expect_export(latest_dir, 3);
    ck_assert(!dt__path_exists(best_dir));
}
END_TEST

START_TEST(a_failed_export_is_not_a_failed_save)
{
    struct dt_writer *writer = create_exporter();
    ck_assert_int_eq(mkdir(in_dir("export"), 0777), 0);
    fclose(fopen(latest_dir, "w"));
    struct dt_saved saved = save(writer, 4, 0);
    ck_assert_int_eq(saved.status, DT_OK);
    ck_assert_str_eq(saved.file, "step-000000004.h5");
    ck_assert_int_eq(saved.exported, DT_EIO);
    ck_assert_ptr_nonnull(strstr(saved.export_error, "export/latest"));
    ck_assert_uint_eq(saved.export_step, 4);
    dt__writer_destroy(writer);
}
END_TEST

/* A best model is exported without a checkpoint; of several in a row, at least the last is. */
START_TEST(the_best_needs_no_checkpoint)
{
    struct dt_writer *writer = create_exporter();
    hand_over_best(writer, 7);
    for (int i = 0; i < 5000 && !dt__path_exists(in_dir("export/best/7")); i++)
        dt__sleep_secs(0.001);
    expect_export(best_dir, 7);
    ck_assert_int_eq(count_names(test_dir, "step-"), 0);
    for (uint64_t step = 8; step <= 40; step++)
        hand_over_best(writer, step);
    ck_assert_int_eq(save(writer, 41, 40).exported, DT_OK);
    expect_export(best_dir, 40);
    dt__writer_destroy(writer);
}
END_TEST

/* Handing over a model does not wait for the disk. */
START_TEST(the_best_does_not_block)
{
    struct dt_writer *writer = create_exporter();
    set_gate(true);
    for (uint64_t step = 1; step <= 5; step++)
        hand_over_best(writer, step);
    ck_assert(!dt__writer_busy(writer));
    set_gate(false);
    ck_assert_int_eq(save(writer, 6, 5).exported, DT_OK);
    expect_export(best_dir, 5);
    dt__writer_destroy(writer);
}
END_TEST

/* After one error that passes, the next save exports the best model. */
START_TEST(a_failed_best_is_tried_again)
{
    struct dt_writer *writer = create_exporter();
    dt_log_set_level(DT_LOG_ERROR);
    failing_syncs = 1;
    hand_over_best(writer, 3);
    for (int i = 0; i < 5000 && failing_syncs; i++)
        dt__sleep_secs(0.001);
    ck_assert(!dt__path_exists(in_dir("export/best/3")));
    ck_assert_int_eq(save(writer, 4, 3).exported, DT_OK);
    expect_export(best_dir, 3);
    dt__writer_destroy(writer);
}
END_TEST

static atomic_int warnings; /* number of warnings about the best model of step 3 */

static void count_warnings(void *arg, enum dt_log_level level, const char *line)
{
    (void)arg;
    warnings += level == DT_LOG_WARN && strstr(line, "of step 3: ") != NULL;
}

/* Fails if a run does not report that its best model has no file, or reports it at each attempt. */
START_TEST(a_failed_best_is_reported_once)
{
    struct dt_writer *writer = create_exporter();
    dt_log_set_sink(count_warnings, NULL);
    ck_assert_int_eq(mkdir(in_dir("export"), 0777), 0);
    fclose(fopen(best_dir, "w"));
    hand_over_best(writer, 3);
    for (int i = 0; i < 5000 && !warnings; i++)
        dt__sleep_secs(0.001);
    ck_assert_int_eq(warnings, 1);
    dt__writer_destroy(writer); /* tries again */
    dt_log_set_sink(NULL, NULL);
    ck_assert_int_eq(warnings, 1);
}
END_TEST

/* Checkpoints contain the weights of the best model as long as the export fails. */
START_TEST(a_checkpoint_has_the_best_that_has_no_file)
{
    struct dt_checkpoint loaded;
    struct dt_writer *writer = create_exporter();
    dt_log_set_level(DT_LOG_ERROR);
    ck_assert_int_eq(mkdir(in_dir("export"), 0777), 0);
    fclose(fopen(best_dir, "w"));
    hand_over_best(writer, 3);
    struct dt_saved saved = save(writer, 5, 3);
    ck_assert_uint_eq(saved.export_step, 3); /* that of the best model, whose export failed */
    ck_assert_int_eq(saved.status, DT_OK);
    ck_assert_int_eq(saved.exported, DT_EIO);
    ck_assert_ptr_nonnull(strstr(saved.export_error, "export/best"));
    assert_ok(dt__checkpoint_load(in_dir("latest.h5"), &loaded));
    ck_assert_ptr_nonnull(loaded.best_params);
    ck_assert(loaded.best_params[0] == 3.0f && loaded.params[0] == 5.0f);
    dt__checkpoint_free(&loaded);
    ck_assert_int_eq(unlink(best_dir), 0);
    ck_assert_int_eq(save(writer, 6, 3).exported, DT_OK);
    expect_export(best_dir, 3);
    assert_ok(dt__checkpoint_load(in_dir("latest.h5"), &loaded));
    ck_assert_ptr_null(loaded.best_params);
    dt__checkpoint_free(&loaded);
    dt__writer_destroy(writer);
}
END_TEST

/* ---- threads -------------------------------------------------------------------------------- */

START_TEST(the_caller_is_not_blocked)
{
    struct dt_saved saved;
    struct dt_writer *writer;
    struct dt_checkpoint checkpoint = sample_checkpoint(1, 5, 4);
    set_gate(true);
    assert_ok(create(test_dir, 0, &writer));
    ck_assert(!dt__writer_busy(writer));
    assert_ok(dt__writer_start(writer, &checkpoint));
    ck_assert(dt__writer_busy(writer));
    ck_assert(!dt__writer_poll(writer, false, &saved));
    set_gate(false);
    ck_assert_int_eq(poll_saved(writer).status, DT_OK);
    ck_assert(!dt__writer_busy(writer));
    dt__writer_destroy(writer);
    dt__checkpoint_free(&checkpoint);
}
END_TEST

START_TEST(destroy_waits_for_the_save)
{
    struct dt_writer *writer;
    struct dt_checkpoint loaded, checkpoint = sample_checkpoint(1, 300, 200);
    assert_ok(create(test_dir, 0, &writer));
    assert_ok(dt__writer_start(writer, &checkpoint));
    dt__writer_destroy(writer);
    assert_ok(dt__checkpoint_load(in_dir("latest.h5"), &loaded));
    dt__checkpoint_free(&loaded);
    dt__checkpoint_free(&checkpoint);
    dt__writer_destroy(NULL);
}
END_TEST

START_TEST(the_protected_file_is_kept)
{
    struct dt_writer *writer;
    assert_ok(create(test_dir, 2, &writer));
    dt__writer_protect(writer, "step-000000002.h5");
    for (uint64_t step = 1; step <= 9; step++) {
        struct dt_checkpoint checkpoint = sample_checkpoint(step, 5, 4);
        if (step == 7) dt__writer_protect(writer, "step-000000006.h5");
        assert_ok(dt__writer_start(writer, &checkpoint));
        poll_saved(writer);
        ck_assert_int_eq(dt__path_exists(in_dir("step-000000002.h5")), step >= 2 && step < 7);
        dt__checkpoint_free(&checkpoint);
    }
    ck_assert(dt__path_exists(in_dir("step-000000006.h5")));
    dt__writer_protect(writer, NULL);
    dt__writer_destroy(writer);
}
END_TEST

/* Files are protected and released at any moment of a save: neither the newest nor a protected file
 * may be lost. */
START_TEST(protecting_during_saves_loses_nothing)
{
    struct dt_writer *writer;
    struct dt_saved saved;
    assert_ok(create(test_dir, 2, &writer));
    for (uint64_t step = 1; step <= 60; step++) {
        char name[DT_CHECKPOINT_NAME];
        struct dt_checkpoint loaded, checkpoint = sample_checkpoint(step, 5, 4);
        assert_ok(dt__writer_start(writer, &checkpoint));
        for (bool claim = true; !dt__writer_poll(writer, false, &saved); claim = !claim)
            dt__writer_protect(writer, claim ? dt__checkpoint_name(step - 1, name) : NULL);
        ck_assert_int_eq(saved.status, DT_OK);
        assert_ok(dt__checkpoint_load(in_dir("latest.h5"), &loaded));
        ck_assert_uint_eq(loaded.step, step);
        dt__checkpoint_free(&loaded);
        dt__checkpoint_free(&checkpoint);
    }
    dt__writer_protect(writer, NULL);
    dt__writer_destroy(writer);
    ck_assert_int_eq(count_names(test_dir, "step-"), 2);
}
END_TEST

START_TEST(a_released_file_is_removed)
{
    struct dt_writer *writer;
    assert_ok(create(test_dir, 2, &writer));
    dt__writer_protect(writer, "step-000000001.h5");
    for (uint64_t step = 1; step <= 4; step++) {
        struct dt_checkpoint checkpoint = sample_checkpoint(step, 5, 4);
        assert_ok(dt__writer_start(writer, &checkpoint));
        poll_saved(writer);
        dt__checkpoint_free(&checkpoint);
    }
    ck_assert_int_eq(count_names(test_dir, "step-"), 3);
    dt__writer_protect(writer, NULL);
    dt__writer_destroy(writer);
    ck_assert_int_eq(count_names(test_dir, "step-"), 2);
}
END_TEST

/* Signals must be handled by the thread that started the writer. */
static volatile sig_atomic_t other_thread;
static pthread_t main_thread;

static void on_signal(int signal)
{
    (void)signal;
    if (!pthread_equal(pthread_self(), main_thread)) other_thread = 1;
}

START_TEST(the_thread_handles_no_signals)
{
    sigset_t mask;
    struct dt_writer *writer;
    main_thread = pthread_self();
    signal(SIGUSR1, on_signal);
    assert_ok(create(test_dir, 2, &writer));
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, NULL); /* now only another thread could handle it */
    kill(getpid(), SIGUSR1);
    dt__sleep_secs(0.1);
    ck_assert_int_eq(other_thread, 0);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    dt__writer_destroy(writer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_snapshot_is_taken_in_the_call,
        memory_may_run_out_in_a_snapshot,
        saves_may_follow_each_other,
        an_error_reaches_the_caller,
        records_are_synced_before_the_checkpoint,
        an_export_follows_the_save,
        a_best_that_waits_is_exported_at_the_end,
        a_failed_export_is_not_a_failed_save,
        the_best_needs_no_checkpoint,
        the_best_does_not_block,
        a_failed_best_is_tried_again,
        a_failed_best_is_reported_once,
        a_checkpoint_has_the_best_that_has_no_file,
        the_caller_is_not_blocked,
        destroy_waits_for_the_save,
        the_protected_file_is_kept,
        protecting_during_saves_loses_nothing,
        a_released_file_is_removed,
        the_thread_handles_no_signals,
    };
    return run_tests("writer", (int)(sizeof tests / sizeof *tests), tests);
}
