/* The stop flag: which signals set it, and what a second one does. */
#include "unit/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* Seconds by which the clock is ahead. */
static time_t ahead;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = __real_clock_gettime(clock, now);
    now->tv_sec += ahead;
    return result;
}

START_TEST(each_signal_asks_to_stop)
{
    const int numbers[] = {SIGUSR1, SIGTERM, SIGINT};
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            dt_stop_install();
            if (dt_stop_requested()) _exit(2);
            raise(numbers[i]);
            _exit(dt_stop_requested() ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

/* mpirun and Slurm may deliver one request twice: only a later one is impatience. */
START_TEST(a_second_signal_ends_the_process_after_five_seconds)
{
    for (int secs = 3; secs <= 7; secs += 4) {
        pid_t child = fork();
        if (child == 0) {
            dt_stop_install();
            raise(SIGUSR1);
            ahead = secs;
            raise(SIGTERM);
            _exit(7);
        }
        int status;
        waitpid(child, &status, 0);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), secs > 5 ? 75 : 7);
    }
}
END_TEST

/* A reader of our output that goes away must be an error to handle, not the end. */
START_TEST(a_broken_pipe_is_no_signal)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    dt_stop_install();
    ck_assert_int_eq(write(ends[1], "x", 1), -1);
    ck_assert(!dt_stop_requested());
}
END_TEST

/* A request from within counts as a first signal, which alone does not end the process. */
START_TEST(a_request_from_within_is_a_first_signal)
{
    EXPECT_OK(dt_stop_check());
    dt_stop_install();
    dt_stop_request();
    ck_assert(dt_stop_requested());
    EXPECT_FAIL(dt_stop_check(), DT_STOPPED, "stopped on request");
    raise(SIGTERM);
    pid_t child = fork();
    if (child == 0) {
        ahead = 7;
        raise(SIGTERM);
        _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(WEXITSTATUS(status), 75);
}
END_TEST

static void count_up(void *count)
{
    ++*(int *)count;
}

START_TEST(who_watches_long_work_is_told)
{
    int count = 0;
    dt_work_gets_on();
    dt_work_watch(count_up, &count);
    dt_work_gets_on();
    dt_work_gets_on();
    dt_work_watch(NULL, NULL);
    dt_work_gets_on();
    ck_assert_int_eq(count, 2);
}
END_TEST

SUITE("stop", each_signal_asks_to_stop, a_second_signal_ends_the_process_after_five_seconds,
      a_request_from_within_is_a_first_signal, who_watches_long_work_is_told,
      a_broken_pipe_is_no_signal)
