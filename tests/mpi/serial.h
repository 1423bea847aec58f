/* A plain serial implementation, with which the tests compare the exchange, and a function that
 * sometimes delays a rank. */
#ifndef DTRAIN_TESTS_MPI_SERIAL_H
#define DTRAIN_TESTS_MPI_SERIAL_H

#include <stdlib.h>

#include "comm/comm.h"

/* Returns element i of the sum of `replicas` gradients g, in the order of the fixed tree. */
static float tree_sum(int replicas, float *const *g, size_t i)
{
    switch (replicas) {
    case 1:
        return g[0][i];
    case 2:
        return g[0][i] + g[1][i];
    case 3:
        return (g[0][i] + g[1][i]) + g[2][i];
    case 4:
        return (g[0][i] + g[1][i]) + (g[2][i] + g[3][i]);
    case 5:
        return ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + g[4][i];
    case 6:
        return ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + (g[4][i] + g[5][i]);
    case 7:
        return ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + ((g[4][i] + g[5][i]) + g[6][i]);
    default:
        abort();
    }
}

/* Returns the square of the norm of a sum of gradients. Each block is summed in eight partial
 * sums. */
static double serial_norm(size_t params, const float *sum)
{
    enum { NORM_BLOCK = 2048 };
    double total = 0;
    for (size_t at = 0; at < params; at += NORM_BLOCK) {
        double partial[8] = {0};
        for (size_t i = at; i < params && i < at + NORM_BLOCK; i++)
            partial[(i - at) & 7] += (double)sum[i] * (double)sum[i];
        total += ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
                 ((partial[4] + partial[5]) + (partial[6] + partial[7]));
    }
    return total;
}

static void dawdle(const struct dt_world *world, uint64_t step)
{
    struct dt_rng rng = dt__rng_make(7, DT_STREAM_TEST, (uint64_t)world->rank, 0);
    if (dt__rng_uniform(&rng, step) < 0.3) dt__sleep_secs(2e-3);
}

#endif
