/* Would catch: a background save that sees later changes of the weights, loses an error or a result,
 * removes a file under evaluation, or races (run it under ThreadSanitizer). */
#include "state_sample.h"

#include <pthread.h>
#include <signal.h>

static struct dt_saved poll_saved(struct dt_writer *writer)
{
    struct dt_saved saved;
    ck_assert(dt_writer_poll(writer, true, &saved));
    return saved;
}

START_TEST(the_snapshot_is_of_the_call)
{
    struct dt_saved saved;
    struct dt_writer *writer;
    struct dt_checkpoint loaded;
    struct dt_checkpoint live = sample_checkpoint(5, 300, 200),
                         then = sample_checkpoint(5, 300, 200);
    assert_ok(dt_writer_create(test_dir, 0, NULL, NULL, &writer));
    ck_assert(!dt_writer_poll(writer, true, &saved));
    assert_ok(dt_writer_start(writer, &live));
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
    assert_ok(dt_checkpoint_load(in_dir(saved.file), &loaded));
    assert_same_checkpoint(&loaded, &then);
    ck_assert(!dt_writer_poll(writer, true, &saved));
    dt_writer_destroy(writer);
    dt_checkpoint_free(&loaded);
    dt_checkpoint_free(&live);
    dt_checkpoint_free(&then);
}
END_TEST

/* Buffers are used again: nothing of an earlier, larger checkpoint may remain. */
START_TEST(one_save_after_another)
{
    struct dt_writer *writer;
    assert_ok(dt_writer_create(test_dir, 3, NULL, NULL, &writer));
    for (uint64_t step = 1; step <= 20; step++) {
        struct dt_checkpoint loaded, checkpoint = sample_checkpoint(step, step % 2 ? 40 : 3, 20);
        if (step % 3 == 0) {
            dt_free((void *)checkpoint.state_name[1]);
            dt_free(checkpoint.state[1]);
            checkpoint.state_name[1] = NULL;
            checkpoint.state[1] = NULL;
            checkpoint.nstate = 1;
        }
        assert_ok(dt_writer_start(writer, &checkpoint));
        struct dt_saved saved = poll_saved(writer);
        ck_assert_int_eq(saved.status, DT_OK);
        assert_ok(dt_checkpoint_load(in_dir(saved.file), &loaded));
        assert_same_checkpoint(&loaded, &checkpoint);
        dt_checkpoint_free(&loaded);
        dt_checkpoint_free(&checkpoint);
    }
    dt_writer_destroy(writer);
    ck_assert_int_eq(count_names(test_dir, "step-"), 3);
}
END_TEST

START_TEST(an_error_reaches_the_caller)
{
    struct dt_writer *writer;
    struct dt_checkpoint checkpoint = sample_checkpoint(1, 5, 4);
    fclose(fopen(in_dir("file"), "w"));
    assert_ok(dt_writer_create(in_dir("file/ckpt"), 0, NULL, NULL, &writer));
    assert_ok(dt_writer_start(writer, &checkpoint));
    struct dt_saved saved = poll_saved(writer);
    ck_assert_int_eq(saved.status, DT_EIO);
    ck_assert_ptr_null(saved.file);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "file"));
    assert_ok(dt_writer_start(writer, &checkpoint));
    ck_assert_int_eq(dt_writer_start(writer, &checkpoint), DT_EIO); /* nobody polled */
    ck_assert(!dt_writer_poll(writer, true, &saved));
    dt_writer_destroy(writer);
    dt_checkpoint_free(&checkpoint);
}
END_TEST

/* ---- what is done behind a save ------------------------------------------------------------- */

static dt_status export_it(void *arg, const struct dt_checkpoint *checkpoint)
{
    struct dt_export model = dt_export_of(checkpoint);
    return dt_export_write(arg, &model, 2);
}

static dt_status fail_it(void *arg, const struct dt_checkpoint *checkpoint)
{
    (void)arg;
    return dt_fail(DT_EIO, "no export of step %d", (int)checkpoint->step);
}

START_TEST(an_export_follows_the_save)
{
    char *path;
    struct dt_writer *writer;
    struct dt_export model;
    char base[128];
    snprintf(base, sizeof base, "%s", in_dir("export/latest"));
    assert_ok(dt_writer_create(test_dir, 0, export_it, base, &writer));
    for (uint64_t step = 1; step <= 3; step++) {
        struct dt_checkpoint checkpoint = sample_checkpoint(step, 5, 4);
        assert_ok(dt_writer_start(writer, &checkpoint));
        ck_assert_int_eq(poll_saved(writer).status, DT_OK);
        dt_checkpoint_free(&checkpoint);
    }
    dt_writer_destroy(writer);
    assert_ok(dt_export_load(base, &model, &path));
    ck_assert_uint_eq(model.step, 3);
    dt_export_free(&model);
    dt_free(path);
}
END_TEST

START_TEST(a_failed_export_is_told_with_the_file)
{
    struct dt_writer *writer;
    struct dt_checkpoint checkpoint = sample_checkpoint(4, 5, 4);
    assert_ok(dt_writer_create(test_dir, 0, fail_it, NULL, &writer));
    assert_ok(dt_writer_start(writer, &checkpoint));
    struct dt_saved saved = poll_saved(writer);
    ck_assert_int_eq(saved.status, DT_EIO);
    ck_assert_str_eq(dt_error_text(), "no export of step 4");
    ck_assert_str_eq(saved.file, "step-000000004.h5");
    dt_writer_destroy(writer);
    dt_checkpoint_free(&checkpoint);
}
END_TEST

/* ---- threads -------------------------------------------------------------------------------- */

static bool hold;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static dt_status wait_at_gate(void *arg, const struct dt_checkpoint *checkpoint)
{
    (void)arg, (void)checkpoint;
    bool waiting = true;
    while (waiting) {
        pthread_mutex_lock(&gate);
        waiting = hold;
        pthread_mutex_unlock(&gate);
        dt_sleep_secs(0.001);
    }
    return DT_OK;
}

static void set_gate(bool closed)
{
    pthread_mutex_lock(&gate);
    hold = closed;
    pthread_mutex_unlock(&gate);
}

START_TEST(the_caller_is_not_held_up)
{
    struct dt_saved saved;
    struct dt_writer *writer;
    struct dt_checkpoint checkpoint = sample_checkpoint(1, 5, 4);
    set_gate(true);
    assert_ok(dt_writer_create(test_dir, 0, wait_at_gate, NULL, &writer));
    ck_assert(!dt_writer_busy(writer));
    assert_ok(dt_writer_start(writer, &checkpoint));
    ck_assert(dt_writer_busy(writer));
    ck_assert(!dt_writer_poll(writer, false, &saved));
    set_gate(false);
    ck_assert_int_eq(poll_saved(writer).status, DT_OK);
    ck_assert(!dt_writer_busy(writer));
    dt_writer_destroy(writer);
    dt_checkpoint_free(&checkpoint);
}
END_TEST

START_TEST(destroy_waits_for_the_save)
{
    struct dt_writer *writer;
    struct dt_checkpoint loaded, checkpoint = sample_checkpoint(1, 300, 200);
    assert_ok(dt_writer_create(test_dir, 0, NULL, NULL, &writer));
    assert_ok(dt_writer_start(writer, &checkpoint));
    dt_writer_destroy(writer);
    assert_ok(dt_checkpoint_load(in_dir("latest.h5"), &loaded));
    dt_checkpoint_free(&loaded);
    dt_checkpoint_free(&checkpoint);
    dt_writer_destroy(NULL);
}
END_TEST

START_TEST(the_spared_file_stays)
{
    struct dt_writer *writer;
    assert_ok(dt_writer_create(test_dir, 2, NULL, NULL, &writer));
    dt_writer_spare(writer, "step-000000002.h5");
    for (uint64_t step = 1; step <= 9; step++) {
        struct dt_checkpoint checkpoint = sample_checkpoint(step, 5, 4);
        if (step == 7) dt_writer_spare(writer, "step-000000006.h5");
        assert_ok(dt_writer_start(writer, &checkpoint));
        poll_saved(writer);
        ck_assert_int_eq(dt_path_exists(in_dir("step-000000002.h5")), step >= 2 && step < 7);
        dt_checkpoint_free(&checkpoint);
    }
    ck_assert(dt_path_exists(in_dir("step-000000006.h5")));
    dt_writer_spare(writer, NULL);
    dt_writer_destroy(writer);
}
END_TEST

/* Claims that come and go at any moment of a save leave the newest and what is kept. */
START_TEST(claims_during_saves_lose_nothing)
{
    struct dt_writer *writer;
    struct dt_saved saved;
    assert_ok(dt_writer_create(test_dir, 2, NULL, NULL, &writer));
    for (uint64_t step = 1; step <= 60; step++) {
        char name[DT_CHECKPOINT_NAME];
        struct dt_checkpoint loaded, checkpoint = sample_checkpoint(step, 5, 4);
        assert_ok(dt_writer_start(writer, &checkpoint));
        for (bool claim = true; !dt_writer_poll(writer, false, &saved); claim = !claim)
            dt_writer_spare(writer, claim ? dt_checkpoint_name(step - 1, name) : NULL);
        ck_assert_int_eq(saved.status, DT_OK);
        assert_ok(dt_checkpoint_load(in_dir("latest.h5"), &loaded));
        ck_assert_uint_eq(loaded.step, step);
        dt_checkpoint_free(&loaded);
        dt_checkpoint_free(&checkpoint);
    }
    dt_writer_spare(writer, NULL);
    dt_writer_destroy(writer);
    ck_assert_int_eq(count_names(test_dir, "step-"), 2);
}
END_TEST

START_TEST(a_file_no_longer_spared_goes)
{
    struct dt_writer *writer;
    assert_ok(dt_writer_create(test_dir, 2, NULL, NULL, &writer));
    dt_writer_spare(writer, "step-000000001.h5");
    for (uint64_t step = 1; step <= 4; step++) {
        struct dt_checkpoint checkpoint = sample_checkpoint(step, 5, 4);
        assert_ok(dt_writer_start(writer, &checkpoint));
        poll_saved(writer);
        dt_checkpoint_free(&checkpoint);
    }
    ck_assert_int_eq(count_names(test_dir, "step-"), 3);
    dt_writer_spare(writer, NULL);
    dt_writer_destroy(writer);
    ck_assert_int_eq(count_names(test_dir, "step-"), 2);
}
END_TEST

/* Signals are for the thread that started it. */
static volatile sig_atomic_t other_thread;
static pthread_t main_thread;

static void on_signal(int signal)
{
    (void)signal;
    if (!pthread_equal(pthread_self(), main_thread)) other_thread = 1;
}

START_TEST(the_thread_takes_no_signals)
{
    sigset_t only;
    struct dt_writer *writer;
    main_thread = pthread_self();
    signal(SIGUSR1, on_signal);
    assert_ok(dt_writer_create(test_dir, 2, NULL, NULL, &writer));
    sigemptyset(&only);
    sigaddset(&only, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &only, NULL); /* now only another thread could take it */
    kill(getpid(), SIGUSR1);
    dt_sleep_secs(0.1);
    ck_assert_int_eq(other_thread, 0);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    dt_writer_destroy(writer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_snapshot_is_of_the_call,
        one_save_after_another,
        an_error_reaches_the_caller,
        an_export_follows_the_save,
        a_failed_export_is_told_with_the_file,
        the_caller_is_not_held_up,
        destroy_waits_for_the_save,
        the_spared_file_stays,
        claims_during_saves_lose_nothing,
        a_file_no_longer_spared_goes,
        the_thread_takes_no_signals,
    };
    return run_tests("writer", (int)(sizeof tests / sizeof *tests), tests);
}
