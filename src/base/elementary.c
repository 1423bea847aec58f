#include "base/elementary.h"

#include <math.h>

/* ln 2 and pi / 2, each as a sum HIGH + LOW. The last 21 bits of HIGH are zero, so its products
 * with small integers are exact. */
static const double LN2_HIGH = 0x1.62e42fee00000p-1, LN2_LOW = 0x1.a39ef35793c76p-33;
static const double QUARTER_HIGH = 0x1.921fb54400000p+0, QUARTER_LOW = 0x1.0b4611a626331p-34;

/* log x: x = 2^e m with sqrt(1/2) <= m < sqrt(2); log m = 2 (s + s^3 / 3 + ...) with s = (m - 1) /
 * (m + 1). */
static double plain_log(double x)
{
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752440) m *= 2.0, e--;
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double sum = 0.0;
    for (int n = 23; n > 1; n -= 2)
        sum = sum * z + 1.0 / n;
    const double log_m = 2.0 * s + 2.0 * s * (sum * z);
    return e * LN2_HIGH + (log_m + e * LN2_LOW);
}

/* e^x = 2^n e^r with x = n ln 2 + r and |r| <= ln 2 / 2. */
static double plain_exp(double x)
{
    if (x < -746.0) return 0.0;
    const double n = floor(x / 0.69314718055994530942 + 0.5);
    const double r = (x - n * LN2_HIGH) - n * LN2_LOW;
    double sum = 0.0;
    for (int i = 14; i > 1; i--)
        sum = (sum + 1.0) * r / i;
    return ldexp(1.0 + (r + r * sum), (int)n);
}

/* cos x: x = n pi / 2 + r with |r| <= pi / 4; for n mod 4 = 0, 1, 2, 3 the result is cos r, -sin r,
 * -cos r, sin r. */
static double plain_cos(double x)
{
    const double n = floor(x / 1.57079632679489661923 + 0.5);
    const double r = (x - n * QUARTER_HIGH) - n * QUARTER_LOW, z = r * r;
    const int quarter = (int)n & 3, first = quarter & 1;
    double sum = 0.0;
    for (int i = 20 + first; i > 1; i -= 2)
        sum = (1.0 + sum) * -z / (i * (i - 1));
    const double value = first ? r + r * sum : 1.0 + sum;
    return quarter == 1 || quarter == 2 ? -value : value;
}

static double plain_pow(double x, double y)
{
    if (x > 0.0) return plain_exp(y * plain_log(x));
    return y > 0.0 ? 0.0 : 1.0;
}

static float plain_logf(float x)
{
    return (float)plain_log((double)x);
}

static float plain_expm1f(float x)
{
    return (float)(plain_exp((double)x) - 1.0);
}

static const struct dt__elementary LIBRARY = {log, cos, pow, logf, expm1f};
static const struct dt__elementary PORTABLE = {plain_log, plain_cos, plain_pow, plain_logf,
                                               plain_expm1f};
const struct dt__elementary *dt__elementary = &LIBRARY;

void dt__elementary_choose(bool portable)
{
    dt__elementary = portable ? &PORTABLE : &LIBRARY;
}
