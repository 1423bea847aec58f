#include "comm/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "comm/world.h"

/* Pauses before a waiter sleeps: some 20 us, longer than a futex takes to wake, shorter than a step. */
enum { SPIN_PAUSES = 600 };
static const double TALK_SECS = 0.1; /* a sleeping waiter looks for heartbeats this often */

static void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

bool dt__gate_reached(struct dt__gate *gate, uint32_t target)
{
    return (int32_t)(atomic_load_explicit(&gate->count, memory_order_acquire) - target) >= 0;
}

uint32_t dt__gate_post(struct dt__gate *gate, uint32_t n)
{
    uint32_t count = atomic_fetch_add(&gate->count, n) + n;
    if (atomic_load(&gate->sleepers))
        syscall(SYS_futex, &gate->count, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    return count;
}

bool dt__gate_wait_for(struct dt__gate *gate, uint32_t target, double secs)
{
    struct timespec span = {.tv_sec = (time_t)secs,
                            .tv_nsec = (long)((secs - (double)(time_t)secs) * 1e9)};
    atomic_fetch_add(&gate->sleepers, 1);
    uint32_t seen = atomic_load(&gate->count);
    if ((int32_t)(seen - target) < 0)
        syscall(SYS_futex, &gate->count, FUTEX_WAIT, seen, &span, NULL, 0);
    atomic_fetch_sub(&gate->sleepers, 1);
    return dt__gate_reached(gate, target);
}

void dt__gate_wait(struct dt__gate *gate, uint32_t target, struct dt_world *world, const char *what)
{
    if (dt__gate_reached(gate, target)) return;
    for (int i = 0; world->spin && i < SPIN_PAUSES; i++) {
        cpu_pause();
        if (dt__gate_reached(gate, target)) return;
    }
    dt__watch_wait(world, what);
    while (!dt__gate_wait_for(gate, target, TALK_SECS))
        dt__watch_talk(world);
    dt__watch_touch(world);
}
