/* elementary: the mathematical functions on which weights depend (initial values, rates,
 * baselines). Those of the C library may round the last bit differently in another version or on
 * another CPU. run.kernel=portable chooses functions of plain arithmetic, whose errors
 * tests/unit/test_rng.c measures. */
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
