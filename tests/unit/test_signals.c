/* Signals and threads: what asks to stop, what a second request does, that no handler's frame is written
 * where a kernel has moved the stack pointer to, and what threads are started with. */
#include "unit/suite.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static const int STOPS[] = {SIGUSR1, SIGTERM, SIGINT};

/* Seconds by which the clock is ahead. */
static volatile time_t ahead;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = __real_clock_gettime(clock, now);
    now->tv_sec += ahead;
    return result;
}

/* A signal to the process is taken by another thread: soon. */
static bool requested_soon(void)
{
    for (int i = 0; i < 1000 && !dt__stop_requested(); i++)
        dt__sleep_secs(0.01);
    return dt__stop_requested();
}

/* Returns the exit code of `body` in a separate process, or 256 + the signal that ended it. */
static int end_of(void body(int arg), int arg)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        body(arg);
        _exit(99);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- the request ---------------------------------------------------------------------------- */

static void ask_to_stop(int number)
{
    EXPECT_OK(dt_stop_install());
    if (dt__stop_requested()) _exit(2);
    kill(getpid(), number);
    _exit(requested_soon() ? 0 : 1);
}

START_TEST(each_signal_asks_to_stop)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(end_of(ask_to_stop, STOPS[i]), 0);
}
END_TEST

static void come_early(int number)
{
    dt__stop_block(true);
    kill(getpid(), number);
    dt__sleep_secs(0.01);
    EXPECT_OK(dt_stop_install());
    _exit(requested_soon() ? 0 : 1);
}

static void come_unwanted(int number)
{
    signal(number, SIG_DFL); /* Check has handlers */
    dt__stop_block(true);
    kill(getpid(), number);
    dt__stop_block(false);
}

/* Would catch a stop in the first moments of a process that ends it as if nobody cared. */
START_TEST(an_early_signal_waits)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(end_of(come_early, STOPS[i]), 0);
        ck_assert_int_eq(end_of(come_unwanted, STOPS[i]), 256 + STOPS[i]);
    }
}
END_TEST

/* SIGTERM `secs` seconds after the first request: returns 7 if it does not end the process. */
static void ask_again(int secs)
{
    ahead = secs;
    kill(getpid(), SIGTERM);
    dt__sleep_secs(secs > 5 ? 10 : 0.2);
    _exit(7);
}

static void ask_twice(int secs)
{
    EXPECT_OK(dt_stop_install());
    kill(getpid(), SIGUSR1);
    if (!requested_soon()) _exit(1);
    ask_again(secs);
}

/* mpirun and Slurm may deliver one request twice: only a later one is impatience. */
START_TEST(a_second_signal_ends_the_process_after_five_seconds)
{
    ck_assert_int_eq(end_of(ask_twice, 3), 7);
    ck_assert_int_eq(end_of(ask_twice, 7), 75);
}
END_TEST

static void ask_from_within(int secs)
{
    EXPECT_OK(dt__stop_check());
    EXPECT_OK(dt_stop_install());
    dt_stop_request();
    EXPECT_FAIL(dt__stop_check(), DT_STOPPED, "stopped on request");
    ask_again(secs);
}

/* A request from within counts as a first signal, which alone does not end the process. */
START_TEST(a_request_from_within_is_a_first_signal)
{
    ck_assert_int_eq(end_of(ask_from_within, 0), 7);
    ck_assert_int_eq(end_of(ask_from_within, 7), 75);
}
END_TEST

static void write_to_nobody(int unused)
{
    int ends[2];
    (void)unused;
    if (pipe(ends)) _exit(1);
    close(ends[0]);
    EXPECT_OK(dt_stop_install());
    _exit(write(ends[1], "x", 1) == -1 && !dt__stop_requested() ? 0 : 1);
}

/* A reader of our output that goes away must be an error to handle, not the end. */
START_TEST(a_broken_pipe_is_no_signal)
{
    ck_assert_int_eq(end_of(write_to_nobody, 0), 0);
}
END_TEST

/* ---- kernels that move the stack pointer ---------------------------------------------------- */

#if defined(__x86_64__)
enum { BLOCK = 1 << 16, MARK = 0xa5 };

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled = 1;
}

/* As in kernels of matrix libraries that use rsp as a further pointer: it points into the heap. */
static void spin_with_stack_in(char *block)
{
    long turns = 150000000;
    char *middle = block + BLOCK / 2;
    __asm__ volatile("movq %%rsp, %%r12\n\t"
                     "movq %1, %%rsp\n"
                     "1:\n\t"
                     "decq %0\n\t"
                     "jnz 1b\n\t"
                     "movq %%r12, %%rsp"
                     : "+r"(turns)
                     : "r"(middle)
                     : "r12", "memory", "cc");
}

static pid_t send_for_ever(int number)
{
    pid_t parent = getpid(), child = fork();
    while (child == 0) {
        kill(parent, number);
        usleep(1000);
    }
    return child;
}

/* Exit code 0: the heap is as it was, 1: a frame lies in it, 2: the signal did not come. */
static void compute_under(int number, bool installed)
{
    char *block = malloc(BLOCK);
    bool stops = number == SIGUSR1 || number == SIGTERM || number == SIGINT;
    memset(block, MARK, BLOCK);
    if (installed) EXPECT_OK(dt_stop_install());
    if (!installed || !stops) signal(number, handle);
    pid_t sender = send_for_ever(number);
    bool came = false;
    for (int i = 0; i < 100 && !came; i++) { /* the sender may have to wait for a core */
        spin_with_stack_in(block);
        came = handled || dt__stop_requested();
    }
    kill(sender, SIGKILL);
    for (int i = 0; i < BLOCK; i++)
        if (block[i] != (char)MARK) _exit(1);
    _exit(came ? 0 : 2);
}

static void compute_safely(int number)
{
    compute_under(number, true);
}

static void compute_with_a_handler(int number)
{
    compute_under(number, false);
}

/* A stop, a profiler's tick or a child's end while a kernel runs: with a handler on the computing thread
 * the heap is overwritten (the first line shows that the test would see it). */
START_TEST(no_frame_is_written_where_a_kernel_computes)
{
    static const int others[] = {SIGPROF, SIGCHLD, SIGALRM, SIGUSR2, SIGWINCH};
    ck_assert_int_eq(end_of(compute_with_a_handler, SIGUSR1), 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(end_of(compute_safely, STOPS[i]), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(end_of(compute_safely, others[i]), 0);
}
END_TEST
#else
START_TEST(no_frame_is_written_where_a_kernel_computes)
{
}
END_TEST
#endif

/* ---- threads -------------------------------------------------------------------------------- */

static volatile double tiny = 1e-308;

static bool flushes_denormals(void)
{
    return tiny * 1e-5 == 0.0;
}

struct seen {
    sigset_t mask;
    stack_t stack;
    bool flushes;
};

static void *look_around(void *arg)
{
    struct seen *seen = arg;
    pthread_sigmask(SIG_BLOCK, NULL, &seen->mask);
    sigaltstack(NULL, &seen->stack);
    seen->flushes = flushes_denormals();
    return arg;
}

START_TEST(a_thread_takes_nothing_but_its_faults)
{
    struct seen seen = {0};
    pthread_t thread;
    void *result;
    EXPECT_OK(dt__thread_start(&thread, "test", look_around, &seen));
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, &seen);
    ck_assert(!flushes_denormals() && seen.flushes);
    ck_assert(sigismember(&seen.mask, SIGUSR1) && sigismember(&seen.mask, SIGPROF));
    ck_assert(!sigismember(&seen.mask, SIGSEGV) && !sigismember(&seen.mask, SIGABRT));
    ck_assert(!(seen.stack.ss_flags & SS_DISABLE));
    ck_assert_uint_ge(seen.stack.ss_size, 65536);
    pthread_sigmask(SIG_BLOCK, NULL, &seen.mask);
    ck_assert(!sigismember(&seen.mask, SIGUSR1));
    dt__denormals_flush();
    ck_assert(flushes_denormals());
}
END_TEST

static char *here; /* on the main thread's stack */

static void end_elsewhere(int number)
{
    char there = (char)number;
    ptrdiff_t distance = &there - here;
    _exit(distance > -(8 << 20) && distance < 8 << 20 ? 1 : 0);
}

static void make_a_fault(int unused)
{
    char local = (char)unused;
    here = &local;
    signal(SIGSEGV, end_elsewhere);
    dt__signals_move_handlers();
    raise(SIGSEGV);
}

START_TEST(handlers_of_faults_have_a_stack_of_their_own)
{
    ck_assert_int_eq(end_of(make_a_fault, 0), 0);
}
END_TEST

/* ---- an end that does not come -------------------------------------------------------------- */

static void stay_on(int installed)
{
    sigset_t all;
    sigfillset(&all);
    if (installed) EXPECT_OK(dt_stop_install());
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0) _exit(98);
    dt__exit_within(0.5, DT_STOPPED, "late\n");
    dt__sleep_secs(100);
}

START_TEST(an_end_that_does_not_come_has_its_code)
{
    int pipes[2], out = dup(STDOUT_FILENO);
    char said[16] = "";
    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDOUT_FILENO);
    const int with_thread = end_of(stay_on, 1), without = end_of(stay_on, 0);
    dup2(out, STDOUT_FILENO);
    ck_assert_int_eq(with_thread, 75);
    ck_assert_int_eq(without, 75);
    ck_assert_int_eq(read(pipes[0], said, sizeof said), 10);
    ck_assert_str_eq(said, "late\nlate\n");
}
END_TEST

static void crash_at_end(int status)
{
    dt__exit_within(100, (dt_status)status, NULL);
    raise(SIGILL);
}

START_TEST(a_crash_at_the_end_keeps_the_code_of_an_error)
{
    ck_assert_int_eq(end_of(crash_at_end, DT_EUSAGE), 2);
    ck_assert_int_eq(end_of(crash_at_end, DT_OK), 256 + SIGILL);
}
END_TEST

/* ---- long work ------------------------------------------------------------------------------ */

static int count;

static void count_up(void)
{
    ++count;
}

START_TEST(who_watches_long_work_is_told)
{
    count = 0;
    dt__work_progress();
    dt__work_watch(count_up);
    dt__work_progress();
    dt__work_progress();
    dt__work_watch(NULL);
    dt__work_progress();
    ck_assert_int_eq(count, 2);
}
END_TEST

SUITE("signals", each_signal_asks_to_stop, an_early_signal_waits,
      a_second_signal_ends_the_process_after_five_seconds, a_request_from_within_is_a_first_signal,
      a_broken_pipe_is_no_signal, no_frame_is_written_where_a_kernel_computes,
      a_thread_takes_nothing_but_its_faults, handlers_of_faults_have_a_stack_of_their_own,
      an_end_that_does_not_come_has_its_code, a_crash_at_the_end_keeps_the_code_of_an_error, who_watches_long_work_is_told)
