#include "dtrain/base.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static const time_t PATIENCE_SECS = 5; /* mpirun and Slurm may deliver one request twice */

static volatile sig_atomic_t stop_flag;
static volatile time_t stop_since;

static void on_signal(int number)
{
    (void)number;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!stop_flag) {
        stop_since = now.tv_sec;
        stop_flag = 1;
    } else if (now.tv_sec - stop_since >= PATIENCE_SECS) {
        _exit(dt_status_exit_code(DT_STOPPED));
    }
}

void dt_stop_install(void)
{
    static const int numbers[] = {SIGUSR1, SIGTERM, SIGINT};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void dt_stop_request(void)
{
    struct timespec now;
    if (stop_flag) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    stop_since = now.tv_sec;
    stop_flag = 1;
}

bool dt_stop_requested(void)
{
    return stop_flag;
}

dt_status dt_stop_check(void)
{
    return stop_flag ? dt_fail(DT_STOPPED, "stopped on request") : DT_OK;
}
