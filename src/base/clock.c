/* Clocks, sleep, and the reports of progress during long work. */
#include "base/base.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double dt__clock_secs(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double dt__clock_cpu_secs(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t dt__clock_unix(void)
{
    return (int64_t)time(NULL);
}

void dt__sleep_secs(double secs)
{
    if (!(secs > 0)) return;
    struct timespec left = {(time_t)secs, (long)((secs - (double)(time_t)secs) * 1e9)};
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

static _Atomic(dt_work_fn *) watcher;

void dt__work_watch(dt_work_fn *report)
{
    atomic_store(&watcher, report);
}

void dt__work_progress(void)
{
    dt_work_fn *report = atomic_load(&watcher);
    if (report) report();
}
