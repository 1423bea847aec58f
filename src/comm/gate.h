/* A counter in shared memory that ranks of one host wait for: short spin, then a futex. */
#ifndef DT_COMM_GATE_H
#define DT_COMM_GATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "dtrain/comm.h"

struct dt__gate {
    _Alignas(64) _Atomic uint32_t count; /* only rises, modulo 2^32 */
    _Atomic uint32_t sleepers;
};

/* Raises the count, and wakes those who sleep. What was written before is seen by those who see it.
 * Returns the new count. */
uint32_t dt__gate_post(struct dt__gate *gate, uint32_t n);
bool dt__gate_reached(struct dt__gate *gate, uint32_t target);
/* Waits until the count has reached `target`, which the watchdog is told. */
void dt__gate_wait(struct dt__gate *gate, uint32_t target, struct dt_world *world,
                   const char *what);
/* Sleeps until the target is reached or `secs` are over; true if it is reached. */
bool dt__gate_wait_for(struct dt__gate *gate, uint32_t target, double secs);

#endif
