/* Sums of squares whose order of addition depends only on positions in the vector, however the
 * vector is cut: float i is added to partial sum i mod 8, in double, and the partial sums are added
 * in a tree. */
#include "base/clones.h"
#include "base/internal.h"

DT__CLONES
static void squares_add(double partial[8], const float *values, size_t at, size_t n)
{
    size_t i = 0;
    for (; i < n && (at + i) & 7; i++)
        partial[(at + i) & 7] += (double)values[i] * (double)values[i];
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            partial[j] += (double)values[i + j] * (double)values[i + j];
    for (size_t j = 0; i + j < n; j++)
        partial[j] += (double)values[i + j] * (double)values[i + j];
}

void dt__squares_add(double partial[8], const float *values, size_t at, size_t n)
{
    squares_add(partial, values, at, n);
}

double dt__partials_sum(const double partial[8])
{
    return ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
           ((partial[4] + partial[5]) + (partial[6] + partial[7]));
}
