/* What the tests of the exchange compare with, written out. */
#ifndef DTRAIN_TESTS_MPI_SERIAL_H
#define DTRAIN_TESTS_MPI_SERIAL_H

#include <stddef.h>

/* The square of the norm of a sum of gradients: by blocks, in eight lanes each. */
static double serial_norm(size_t params, const float *sum)
{
    enum { NORM_BLOCK = 2048 };
    double total = 0;
    for (size_t at = 0; at < params; at += NORM_BLOCK) {
        double lane[8] = {0};
        for (size_t i = at; i < params && i < at + NORM_BLOCK; i++)
            lane[(i - at) & 7] += (double)sum[i] * (double)sum[i];
        total += ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                 ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
    return total;
}

#endif
