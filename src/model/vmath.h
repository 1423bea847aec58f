/* vmath: exp, tanh, erf, logarithms, cos and the normal quantile in a form that compilers can
 * vectorise: no calls, no branches. An element's result does not depend on its position in a
 * vector.
 *
 * NaN stays NaN. Coefficients are minimax fits in relative error (weighted least squares on
 * Chebyshev nodes, reweighted until the error is level); tests/unit/test_vmath.c measures the
 * errors stated here. */
#ifndef MODEL_VMATH_H
#define MODEL_VMATH_H

#include <stdint.h>
#include <string.h>

static inline float dt__clampf(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* Returns 2^n for -126 <= n <= 127. */
static inline float dt__exp2i(uint32_t n)
{
    uint32_t bits = (n + 127u) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns n from the low bits of the float 1.5 * 2^23 + n. The result is unsigned, because the
 * float may be NaN. */
static inline uint32_t dt__low_bits(float shifted)
{
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return bits - 0x4b400000u;
}

/* Returns e^x within 9e-8 relative; 0 below -104, infinity above 88.73. x = n ln 2 + r, |r| <= ln 2
 * / 2; e^x = 2^n e^r. 2^n is applied in two halves, so that neither is out of range. */
static inline float dt__expf(float x)
{
    const float to_int = 0x1.8p23f; /* adding it rounds to a whole number */
    float z = dt__clampf(x, -105.0f, 90.0f);
    float shifted = z * 1.44269504f + to_int;
    float whole = shifted - to_int;
    float r = (z - whole * 0.693359375f) - whole * -2.12194440e-4f;
    float p = 1.39015331e-3f;
    p = p * r + 8.36373959e-3f;
    p = p * r + 4.16668616e-2f;
    p = p * r + 1.66665733e-1f;
    p = p * r + 0.5f;
    p = (p * r) * r + r;
    uint32_t n = dt__low_bits(shifted), half = (uint32_t)((int32_t)n >> 1);
    return (p + 1.0f) * dt__exp2i(half) * dt__exp2i(n - half);
}

/* Returns tanh(x) within 4e-7 relative: an odd rational function on [-9, 9]. */
static inline float dt__tanhf(float x)
{
    float z = dt__clampf(x, -9.0f, 9.0f);
    float t = z * z;
    float p = 1.3319096e-8f;
    p = p * t + 2.05835022e-5f;
    p = p * t + 3.49403615e-3f;
    p = p * t + 1.33797199e-1f;
    p = p * t + 1.0f;
    float q = 7.76203024e-7f;
    q = q * t + 3.28309514e-4f;
    q = q * t + 2.58710794e-2f;
    q = q * t + 4.67130333e-1f;
    q = q * t + 1.0f;
    return dt__clampf(z * p / q, -1.0f, 1.0f);
}

/* Returns erf(x) within 5e-7 relative: an odd rational function on [-3.95, 3.95]. */
static inline float dt__erff(float x)
{
    float z = dt__clampf(x, -3.95f, 3.95f);
    float t = z * z;
    float p = 2.02588694e-6f;
    p = p * t + 2.84687092e-4f;
    p = p * t + 3.80818895e-3f;
    p = p * t + 5.28755337e-2f;
    p = p * t + 1.91551119e-1f;
    p = p * t + 1.12837911f;
    float q = 3.78315453e-5f;
    q = q * t + 1.17072987e-3f;
    q = q * t + 1.50551489e-2f;
    q = q * t + 1.14559941e-1f;
    q = q * t + 5.03090441e-1f;
    q = q * t + 1.0f;
    return dt__clampf(z * p / q, -1.0f, 1.0f);
}

/* Returns log(1 + x) for 0 <= x <= 1, within 3e-7 relative. */
static inline float dt__log1pf(float x)
{
    float p = 3.41728446e-3f;
    p = p * x + 2.381576e-1f;
    p = p * x + 1.06621861f;
    p = p * x + 1.0f;
    float q = 7.52873197e-2f;
    q = q * x + 6.87936425e-1f;
    q = q * x + 1.5662185f;
    q = q * x + 1.0f;
    return x * p / q;
}

/* Returns log(x) for normal x > 0, within 1e-9 relative.
 * x = 2^n m, sqrt(1/2) <= m < sqrt(2); log(m) = 2 atanh(s), s = (m - 1) / (m + 1). */
static inline double dt__log(float x)
{
    const uint32_t least = 0x3f3504f3u; /* sqrt(1/2) */
    uint32_t bits;
    float m;
    memcpy(&bits, &x, sizeof bits);
    const int32_t n = (int32_t)(bits - least) >> 23;
    bits -= (uint32_t)n << 23;
    memcpy(&m, &bits, sizeof m);
    double s = ((double)m - 1.0) / ((double)m + 1.0);
    double t = s * s;
    double p = 1.0 / 13.0;
    p = p * t + 1.0 / 11.0;
    p = p * t + 1.0 / 9.0;
    p = p * t + 1.0 / 7.0;
    p = p * t + 1.0 / 5.0;
    p = p * t + 1.0 / 3.0;
    p = p * t + 1.0;
    return 2.0 * s * p + (double)n * 0.69314718055994531;
}

/* Returns the polynomial of x with n coefficients, that of the highest power first. */
static inline float dt__polynomial(float x, int n, const float *coefficient)
{
    float y = coefficient[0];
    for (int i = 1; i < n; i++)
        y = y * x + coefficient[i];
    return y;
}

/* Returns cos(2 pi t) within 2e-7, for |t| below 2^22: with u = |t - round(t)| it is sin(2 pi (1/4
 * - u)). The coefficients have names, because exported graphs use them, too. */
#define DT__COS_TERMS 5
static const float dt__cos_term[DT__COS_TERMS] = {39.7598271f, -76.5811726f, 81.6024764f,
                                                  -41.3416806f, 6.28318528f};
static inline float dt__cos_turns(float t)
{
    const float to_int = 0x1.8p23f;
    float u = t - ((t + to_int) - to_int);
    float s = 0.25f - (u < 0.0f ? -u : u);
    return s * dt__polynomial(s * s, DT__COS_TERMS, dt__cos_term);
}

/* Returns the z that a standard normal number exceeds with probability p, 0 <= p <= 1/2, within
 * 1e-6; at most DT__NORMAL_MOST. Source: Wichura 1988, algorithm AS 241, PPND7. */
#define DT__NORMAL_MOST 5.2f
#define DT__NORMAL_LEAST 9e-8f /* a p whose z exceeds DT__NORMAL_MOST */
#define DT__NORMAL_NEAR 0.425f /* largest 1/2 - p for which the first approximation holds */
static const float dt__normal_near[2][4] = {
    {59.109374720f, 159.29113202f, 50.434271938f, 3.3871327179f},
    {67.187563600f, 78.757757664f, 17.895169469f, 1.0f}};
static const float dt__normal_far[2][4] = {
    {0.17023821103f, 1.3067284816f, 2.7568153900f, 1.4234372777f},
    {0.0f, 0.12021132975f, 0.73700164250f, 1.0f}};
static inline float dt__normal_tail(float p)
{
    float q = 0.5f - p, r = 0.180625f - q * q;
    float near = q * dt__polynomial(r, 4, dt__normal_near[0]);
    near = near / dt__polynomial(r, 4, dt__normal_near[1]);
    float least = p < DT__NORMAL_LEAST ? DT__NORMAL_LEAST : p;
    float t = (float)__builtin_sqrt(-dt__log(least)) - 1.6f;
    float far = dt__polynomial(t, 4, dt__normal_far[0]) / dt__polynomial(t, 4, dt__normal_far[1]);
    float z = q > DT__NORMAL_NEAR ? far : near;
    return z > DT__NORMAL_MOST ? DT__NORMAL_MOST : z;
}

/* Returns 1 / (1 + e^-x). */
static inline float dt__sigmoidf(float x)
{
    return 1.0f / (1.0f + dt__expf(-x));
}

#endif
