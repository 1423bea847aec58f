/* elementary: the mathematical functions on which weights depend (initial values, learning rates,
 * baselines). The results of the C library's functions may differ in the last bit between versions
 * of the library and between CPUs. run.kernel=portable replaces them with functions that use plain
 * arithmetic; tests/unit/test_rng.c bounds the errors of these. */
#ifndef BASE_ELEMENTARY_H
#define BASE_ELEMENTARY_H

#include <stdbool.h>

struct dt__elementary {
    double (*log)(double x);           /* x > 0, normal */
    double (*cos)(double x);           /* 0 <= x <= 1000 */
    double (*pow)(double x, double y); /* x >= 0 */
    float (*logf)(float x);            /* x > 0, normal */
    float (*expm1f)(float x);          /* x >= 0.01 */
};

/* The functions in use; initially the C library's. */
extern const struct dt__elementary *dt__elementary;
/* Chooses the portable functions or the C library's. Must not be called while other threads
 * compute. */
void dt__elementary_choose(bool portable);

#endif
