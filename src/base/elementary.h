/* elementary: the functions that weights depend on: initial values, rates, baselines. The C
 * library's may round the last bit in another way in another version, or on another CPU. Those of
 * run.kernel=portable are plain arithmetic; tests/unit/test_rng.c measures their errors. */
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

/* In use: the C library's, unless portable ones are chosen. */
extern const struct dt__elementary *dt__elementary;
/* Not while other threads compute. */
void dt__elementary_choose(bool portable);

#endif
