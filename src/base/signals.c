/* Signals and threads of a process that computes.
 *
 * While a kernel of a matrix library runs, the stack pointer may point into a heap block. The frame
 * that the system writes for a signal handler would then overwrite malloc's memory, so no handler
 * may run on a computing thread. Such threads block all signals except faults, from before the
 * first thread starts. One separate thread takes the signals: SIGUSR1, SIGTERM and SIGINT with
 * sigwaitinfo, as a request to stop. Other signals (a profiler's SIGPROF, SIGCHLD, SIGTSTP, ...)
 * have their usual effect or handler there, on a stack that no kernel moves. Handlers of faults get
 * an alternate stack.
 *
 * Threads, including those of MPI, OpenMP and OpenBLAS, inherit the mask and the floating-point
 * control register of the thread that starts them. */
#include "base/base.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/internal.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* ---- the stop request ----------------------------------------------------------------------- */

static const int64_t PATIENCE_NS = 5000000000; /* mpirun and Slurm may deliver the same request
                                                * twice */

/* Time of the first request, in nanoseconds of the monotonic clock; 0: none. */
static _Atomic int64_t stop_since;
static _Atomic bool signals_ask; /* dt_stop_install was called: a signal stops all trainings of the
                                  * process */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + 1;
}

void dt_stop_request(void)
{
    int64_t none = 0;
    atomic_compare_exchange_strong(&stop_since, &none, now_ns());
}

void dt__stop_clear(void)
{
    if (!atomic_load(&signals_ask)) atomic_store(&stop_since, 0);
}

bool dt__stop_requested(void)
{
    return atomic_load_explicit(&stop_since, memory_order_relaxed) != 0;
}

dt_status dt__stop_check(void)
{
    return dt__stop_requested() ? dt_fail(DT_STOPPED, "stopped on request") : DT_OK;
}

/* ---- the signal thread --------------------------------------------------------------------- */

static void stop_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
}

/* Sets all signals except faults, which belong to the thread that causes them. */
static void all_but_faults(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(set, faults[i]);
}

void dt__stop_block(bool block)
{
    sigset_t set;
    stop_signals(&set);
    pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void *take_signals(void *arg)
{
    (void)arg;
    sigset_t set;
    stop_signals(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    for (;;) {
        if (sigwaitinfo(&set, NULL) < 0)
            continue; /* interrupted by the handler of another
                                                    * signal */
        int64_t since = atomic_load(&stop_since);
        if (since && now_ns() - since >= PATIENCE_NS) _exit(dt_status_exit_code(DT_STOPPED));
        dt_stop_request();
    }
    return NULL;
}

dt_status dt_stop_install(void)
{
    pthread_t thread;
    sigset_t set;
    signal(SIGPIPE, SIG_IGN);
    all_but_faults(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    DT_TRY(dt__thread_start(&thread, "signals", take_signals, NULL));
    pthread_detach(thread);
    atomic_store(&signals_ask, true);
    return DT_OK;
}

/* ---- exit within a time -------------------------------------------------------------------- */

static _Atomic int code_at_end;
static const char *_Atomic line_at_end;

static void end_now(int number)
{
    const char *line = number == SIGALRM ? atomic_load(&line_at_end) : NULL;
    if (line) (void)!write(STDERR_FILENO, line, strlen(line));
    _exit(atomic_load(&code_at_end));
}

/* When the first rank ends with an error, mpirun notifies the others. Open MPI may pass that
 * message to code that it has already unloaded (4.1.4, seen once, on busy cores), which crashes the
 * rank. The job has already printed its error, so its exit code is kept. */
void dt__exit_within(double secs, dt_status status, const char *line)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* the process may have no signal thread */
    atomic_store(&line_at_end, line);
    atomic_store(&code_at_end, dt_status_exit_code(status));
    signal(SIGALRM, end_now);
    for (size_t i = 0; status && i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], end_now);
    alarm((unsigned)ceil(secs));
}

/* ---- alternate stacks ----------------------------------------------------------------------- */

/* Returns the size of a signal frame on this CPU (11 KiB with AVX-512 and AMX) plus space for a
 * backtrace. */
static size_t alternate_size(void)
{
    const size_t least = getauxval(AT_MINSIGSTKSZ), page = 4096;
    return (least + page - 1) / page * page + (64 << 10);
}

/* Makes an alternate stack for the calling thread and returns its memory. NULL: no memory; handlers
 * then use the normal stack. */
static void *alternate_stack_make(void)
{
    stack_t stack = {.ss_size = alternate_size()};
    stack.ss_sp =
        mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED) return NULL;
    sigaltstack(&stack, NULL);
    return stack.ss_sp;
}

void dt__signals_move_handlers(void)
{
    struct sigaction action;
    stack_t stack;
    if (sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_DISABLE) alternate_stack_make();
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (sigaction(number, NULL, &action)) continue; /* reserved by the C library */
        bool handler = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
        if (!handler || action.sa_flags & SA_ONSTACK) continue;
        action.sa_flags |= SA_ONSTACK;
        sigaction(number, &action, NULL);
    }
}

/* ---- other processes ------------------------------------------------------------------------ */

uint64_t dt__process_start(long pid, char *out_state)
{
    char path[64], line[1024];
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *in = fopen(path, "re");
    const char *name_end = in && fgets(line, sizeof line, in) ? strrchr(line, ')') : NULL;
    if (in) fclose(in);
    /* the state is field 3 and the start field 22 */
    if (!name_end || sscanf(name_end + 1,
                            " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                            "%*s %*s %llu",
                            out_state, &start) != 2)
        return 0;
    return start;
}

/* ---- threads -------------------------------------------------------------------------------- */

void dt__denormals_flush(void)
{
#if defined(__x86_64__)
    enum { FLUSH_TO_ZERO = 1 << 15, DENORMALS_ARE_ZERO = 1 << 6 };
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" ::"r"(control | UINT64_C(1) << 24));
#endif
}

void dt__floats_begin(fenv_t *out_before)
{
    fegetenv(out_before);
    fesetenv(FE_DFL_ENV);
    dt__denormals_flush();
}

void dt__floats_end(const fenv_t *before)
{
    fesetenv(before);
}

struct thread_start {
    const char *name;
    dt_thread_fn *body;
    void *arg;
};

static void *thread_body(void *arg)
{
    struct thread_start start = *(struct thread_start *)arg;
    char name[16];
    dt_free(arg);
    snprintf(name, sizeof name, "dt %s", start.name);
    pthread_setname_np(pthread_self(), name);
    dt__denormals_flush();
    void *stack = alternate_stack_make();
    void *result = start.body(start.arg);
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    if (stack) munmap(stack, alternate_size());
    return result;
}

dt_status dt__thread_start(pthread_t *out, const char *name, dt_thread_fn *body, void *arg)
{
    struct thread_start *start;
    sigset_t set, before;
    DT_TRY(dt__alloc(1, sizeof *start, "a thread", &start));
    *start = (struct thread_start){name, body, arg};
    all_but_faults(&set);
    pthread_sigmask(SIG_SETMASK, &set, &before);
    int error = pthread_create(out, NULL, thread_body, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) return DT_OK;
    dt_free(start);
    return dt_fail(DT_EMEMORY, "cannot start the thread '%s': %s", name, strerror(error));
}
