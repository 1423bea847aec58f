#include "base/bf16.h"

#include "base/clones.h"

DT__CLONES
static void halves_round(size_t n, const float *restrict values, uint16_t *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dt__bf16_of(values[i]);
}

void dt__bf16_round(size_t n, const float *values, uint16_t *out)
{
    halves_round(n, values, out);
}
