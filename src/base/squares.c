/* Sums of squares whose order depends only on positions in a vector, however it is cut: float i is
 * added to partial sum i mod 8, in double, and the partial sums are added in a tree. */
#include "base/clones.h"
#include "base/internal.h"

DT__CLONES
static void squares_add(double lane[8], const float *values, size_t at, size_t n)
{
    size_t i = 0;
    for (; i < n && (at + i) & 7; i++)
        lane[(at + i) & 7] += (double)values[i] * (double)values[i];
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            lane[j] += (double)values[i + j] * (double)values[i + j];
    for (size_t j = 0; i + j < n; j++)
        lane[j] += (double)values[i + j] * (double)values[i + j];
}

void dt__squares_add(double lane[8], const float *values, size_t at, size_t n)
{
    squares_add(lane, values, at, n);
}

double dt__lanes_sum(const double lane[8])
{
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}
