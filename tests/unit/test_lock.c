/* Fails if two jobs run in one directory, even if the first job removes its lock file, or if the
 * lock of a dead job blocks the next start. */
#include "state_sample.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* Makes another job remove the lock file between open and flock. */
static bool removes_file;
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
    if (removes_file) (void)unlink(in_dir("lock"));
    removes_file = false;
    return __real_flock(fd, operation);
}

/* Starts a child that takes the lock, reports it through a pipe, and sleeps. */
static pid_t start_holder(void)
{
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd;
        if (dt__lock_take(test_dir, &fd) || write(ends[1], "x", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

START_TEST(a_second_job_is_refused_by_name)
{
    int fd = -1;
    char holder[64];
    pid_t child = start_holder();
    ck_assert_int_eq(dt__lock_take(test_dir, &fd), DT_EIO);
    snprintf(holder, sizeof holder, "pid %ld on ", (long)child);
    ck_assert_msg(strstr(dt_error_text(), holder), "%s", dt_error_text());
    ck_assert_int_eq(fd, -1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
END_TEST

START_TEST(a_killed_jobs_lock_does_not_block)
{
    int fd;
    pid_t child = start_holder();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_assert(dt__path_exists(in_dir("lock")));
    assert_ok(dt__lock_take(test_dir, &fd));
    dt__lock_drop(fd);
}
END_TEST

START_TEST(a_lock_that_is_removed_is_taken_again)
{
    int fd, other;
    removes_file = true;
    assert_ok(dt__lock_take(test_dir, &fd));
    ck_assert_int_eq(dt__lock_take(test_dir, &other), DT_EIO);
    dt__lock_drop(fd);
}
END_TEST

START_TEST(a_dropped_lock_is_free)
{
    int fd, again, other;
    assert_ok(dt__lock_take(test_dir, &fd));
    ck_assert_int_eq(dt__lock_take(test_dir, &other), DT_EIO);
    dt__lock_drop(fd);
    assert_ok(dt__lock_take(test_dir, &again));
    dt__lock_drop(again);
}
END_TEST

START_TEST(a_started_program_does_not_inherit_the_lock)
{
    int fd, again, ends[2];
    char byte;
    assert_ok(dt__lock_take(test_dir, &fd));
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) execl("/bin/sleep", "sleep", "30", (char *)NULL);
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0); /* the pipe closes when the child executes
                                                   * sleep */
    close(ends[0]);
    dt__lock_drop(fd);
    assert_ok(dt__lock_take(test_dir, &again));
    dt__lock_drop(again);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
END_TEST

START_TEST(the_holder_is_reported)
{
    int fd;
    char holder[DT_LOCK_HOLDER], expected[32];
    ck_assert_str_eq(dt__lock_holder(test_dir, holder), "");
    assert_ok(dt__lock_take(test_dir, &fd));
    snprintf(expected, sizeof expected, "pid %ld on ", (long)getpid());
    ck_assert_ptr_eq(strstr(dt__lock_holder(test_dir, holder), expected), holder);
    dt__lock_drop(fd);
    ck_assert_str_eq(dt__lock_holder(test_dir, holder), "");
    ck_assert_str_eq(dt__lock_holder(in_dir("nowhere"), holder), "");
}
END_TEST

START_TEST(a_missing_directory_is_an_error)
{
    int fd;
    ck_assert_int_eq(dt__lock_take(in_dir("nowhere"), &fd), DT_EIO);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "nowhere/lock"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_second_job_is_refused_by_name,
        a_killed_jobs_lock_does_not_block,
        a_lock_that_is_removed_is_taken_again,
        a_dropped_lock_is_free,
        a_started_program_does_not_inherit_the_lock,
        the_holder_is_reported,
        a_missing_directory_is_an_error,
    };
    return run_tests("lock", (int)(sizeof tests / sizeof *tests), tests);
}
