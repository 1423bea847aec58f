/* Signals and threads: which signals request a stop, what a second one does, how threads are
 * started, and that no handler's frame is written where a kernel has moved the stack pointer. */
#include "unit/suite.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static const int STOPS[] = {SIGUSR1, SIGTERM, SIGINT};

/* Seconds by which the clock is ahead. */
static volatile time_t clock_ahead;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = __real_clock_gettime(clock, now);
    now->tv_sec += clock_ahead;
    return result;
}

/* Waits until another thread has handled the signal to this process; returns whether a stop is
 * requested. */
static bool requested_soon(void)
{
    for (int i = 0; i < 1000 && !dt__stop_requested(); i++)
        dt__sleep_secs(0.01);
    return dt__stop_requested();
}

/* Returns the exit code of `body` in a separate process, or 256 + the signal that ended it. */
static int exit_of(void body(int arg), int arg)
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

static void signal_once(int number)
{
    EXPECT_OK(dt_stop_install());
    if (dt__stop_requested()) _exit(2);
    kill(getpid(), number);
    _exit(requested_soon() ? 0 : 1);
}

START_TEST(each_signal_requests_a_stop)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(exit_of(signal_once, STOPS[i]), 0);
}
END_TEST

static void signal_before_install(int number)
{
    dt__stop_block(true);
    kill(getpid(), number);
    dt__sleep_secs(0.01);
    EXPECT_OK(dt_stop_install());
    _exit(requested_soon() ? 0 : 1);
}

static void signal_after_unblock(int number)
{
    signal(number, SIG_DFL); /* Check installs handlers */
    dt__stop_block(true);
    kill(getpid(), number);
    dt__stop_block(false);
}

/* Fails if a signal in the first moments of a process ends it instead of requesting a stop. */
START_TEST(an_early_signal_is_not_lost)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(exit_of(signal_before_install, STOPS[i]), 0);
        ck_assert_int_eq(exit_of(signal_after_unblock, STOPS[i]), 256 + STOPS[i]);
    }
}
END_TEST

/* Sends SIGTERM `secs` seconds after the first request; exits with 7 if that does not end the
 * process. */
static void signal_again(int secs)
{
    clock_ahead = secs;
    kill(getpid(), SIGTERM);
    dt__sleep_secs(secs > 5 ? 10 : 0.2);
    _exit(7);
}

static void signal_twice(int secs)
{
    EXPECT_OK(dt_stop_install());
    kill(getpid(), SIGUSR1);
    if (!requested_soon()) _exit(1);
    signal_again(secs);
}

/* mpirun and Slurm may deliver one request twice: only a signal 5 seconds later means that the stop
 * takes too long. */
START_TEST(a_second_signal_ends_the_process_after_five_seconds)
{
    ck_assert_int_eq(exit_of(signal_twice, 3), 7);
    ck_assert_int_eq(exit_of(signal_twice, 7), 75);
}
END_TEST

static void request_and_signal(int secs)
{
    EXPECT_OK(dt__stop_check());
    EXPECT_OK(dt_stop_install());
    dt_stop_request();
    EXPECT_FAIL(dt__stop_check(), DT_STOPPED, "stopped on request");
    signal_again(secs);
}

/* A request by the program itself counts as the first signal, which does not end the process. */
START_TEST(a_request_by_the_program_is_a_first_signal)
{
    ck_assert_int_eq(exit_of(request_and_signal, 0), 7);
    ck_assert_int_eq(exit_of(request_and_signal, 7), 75);
}
END_TEST

static void write_to_broken_pipe(int unused)
{
    int ends[2];
    (void)unused;
    if (pipe(ends)) _exit(1);
    close(ends[0]);
    EXPECT_OK(dt_stop_install());
    _exit(write(ends[1], "x", 1) == -1 && !dt__stop_requested() ? 0 : 1);
}

/* Writing to a pipe whose reader has gone must return an error, and not end the process. */
START_TEST(a_broken_pipe_is_no_signal)
{
    ck_assert_int_eq(exit_of(write_to_broken_pipe, 0), 0);
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

/* Moves the stack pointer into the heap, as kernels of matrix libraries do that use rsp as another
 * pointer. */
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

static pid_t send_forever(int number)
{
    pid_t parent = getpid(), child = fork();
    while (child == 0) {
        kill(parent, number);
        usleep(1000);
    }
    return child;
}

/* Exits with 0 if the heap is unchanged, 1 if a frame was written to it, 2 if the signal did not
 * arrive. */
static void compute_under(int number, bool installed)
{
    char *block = malloc(BLOCK);
    bool stops = number == SIGUSR1 || number == SIGTERM || number == SIGINT;
    memset(block, MARK, BLOCK);
    if (installed) EXPECT_OK(dt_stop_install());
    if (!installed || !stops) signal(number, handle);
    pid_t sender = send_forever(number);
    bool arrived = false;
    for (int i = 0; i < 100 && !arrived; i++) { /* the sender may have to wait for a core */
        spin_with_stack_in(block);
        arrived = handled || dt__stop_requested();
    }
    kill(sender, SIGKILL);
    for (int i = 0; i < BLOCK; i++)
        if (block[i] != (char)MARK) _exit(1);
    _exit(arrived ? 0 : 2);
}

static void compute_safely(int number)
{
    compute_under(number, true);
}

static void compute_with_a_handler(int number)
{
    compute_under(number, false);
}

/* A stop, a profiler's tick or a child's end arrives while a kernel runs: a handler in the
 * computing thread would overwrite the heap. The first line shows that the test finds this. */
START_TEST(no_frame_is_written_where_a_kernel_computes)
{
    static const int others[] = {SIGPROF, SIGCHLD, SIGALRM, SIGUSR2, SIGWINCH};
    ck_assert_int_eq(exit_of(compute_with_a_handler, SIGUSR1), 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(exit_of(compute_safely, STOPS[i]), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(exit_of(compute_safely, others[i]), 0);
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

struct thread_state {
    sigset_t mask;
    stack_t stack;
    bool flushes;
};

static void *read_thread_state(void *arg)
{
    struct thread_state *thread_state = arg;
    pthread_sigmask(SIG_BLOCK, NULL, &thread_state->mask);
    sigaltstack(NULL, &thread_state->stack);
    thread_state->flushes = flushes_denormals();
    return arg;
}

START_TEST(a_thread_gets_only_signals_of_its_faults)
{
    struct thread_state thread_state = {0};
    pthread_t thread;
    void *result;
    EXPECT_OK(dt__thread_start(&thread, "test", read_thread_state, &thread_state));
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, &thread_state);
    ck_assert(!flushes_denormals() && thread_state.flushes);
    ck_assert(sigismember(&thread_state.mask, SIGUSR1) && sigismember(&thread_state.mask, SIGPROF));
    ck_assert(!sigismember(&thread_state.mask, SIGSEGV) &&
              !sigismember(&thread_state.mask, SIGABRT));
    ck_assert(!(thread_state.stack.ss_flags & SS_DISABLE));
    ck_assert_uint_ge(thread_state.stack.ss_size, 65536);
    pthread_sigmask(SIG_BLOCK, NULL, &thread_state.mask);
    ck_assert(!sigismember(&thread_state.mask, SIGUSR1));
    dt__denormals_flush();
    ck_assert(flushes_denormals());
}
END_TEST

static char *main_address; /* address on the main thread's stack */

static void check_handler_stack(int number)
{
    char handler_address = (char)number;
    ptrdiff_t distance = &handler_address - main_address;
    _exit(distance > -(8 << 20) && distance < 8 << 20 ? 1 : 0);
}

static void make_a_fault(int unused)
{
    char local = (char)unused;
    main_address = &local;
    signal(SIGSEGV, check_handler_stack);
    dt__signals_move_handlers();
    raise(SIGSEGV);
}

START_TEST(handlers_of_faults_use_another_stack)
{
    ck_assert_int_eq(exit_of(make_a_fault, 0), 0);
}
END_TEST

/* ---- an exit that hangs --------------------------------------------------------------------- */

static void hang_at_exit(int installed)
{
    sigset_t all;
    sigfillset(&all);
    if (installed) EXPECT_OK(dt_stop_install());
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0) _exit(98);
    dt__exit_within(0.5, DT_STOPPED, "late\n");
    dt__sleep_secs(100);
}

START_TEST(an_exit_that_hangs_has_its_code)
{
    int pipes[2], out = dup(STDOUT_FILENO);
    char output[16] = "";
    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDOUT_FILENO);
    const int with_thread = exit_of(hang_at_exit, 1), without = exit_of(hang_at_exit, 0);
    dup2(out, STDOUT_FILENO);
    ck_assert_int_eq(with_thread, 75);
    ck_assert_int_eq(without, 75);
    ck_assert_int_eq(read(pipes[0], output, sizeof output), 10);
    ck_assert_str_eq(output, "late\nlate\n");
}
END_TEST

static void crash_at_end(int status)
{
    dt__exit_within(100, (dt_status)status, NULL);
    raise(SIGILL);
}

START_TEST(a_crash_at_exit_keeps_the_code_of_an_error)
{
    ck_assert_int_eq(exit_of(crash_at_end, DT_EUSAGE), 2);
    ck_assert_int_eq(exit_of(crash_at_end, DT_OK), 256 + SIGILL);
}
END_TEST

/* ---- long work ------------------------------------------------------------------------------ */

static int count;

static void count_up(void)
{
    ++count;
}

START_TEST(long_work_shows_its_progress)
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

SUITE("signals", each_signal_requests_a_stop, an_early_signal_is_not_lost,
      a_second_signal_ends_the_process_after_five_seconds,
      a_request_by_the_program_is_a_first_signal, a_broken_pipe_is_no_signal,
      no_frame_is_written_where_a_kernel_computes, a_thread_gets_only_signals_of_its_faults,
      handlers_of_faults_use_another_stack, an_exit_that_hangs_has_its_code,
      a_crash_at_exit_keeps_the_code_of_an_error, long_work_shows_its_progress)
