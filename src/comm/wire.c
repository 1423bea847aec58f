/* Rounding for the wire, a block at a time, so that passes over a block stay in the first cache. */
#include "comm/wire.h"

#include <math.h>
#include <string.h>

#include "base/bf16.h"
#include "base/clones.h"
#include "config/config.h"

/* A block whose greatest magnitude is less becomes zeros, since the inverse of its scale would not
 * be finite. */
static const float LEAST = 0x1p-100f;

/* Returns the floats of the first block of [offset, offset + n). */
static size_t block_length(size_t offset, size_t n)
{
    size_t left = DT__WIRE_BLOCK - offset % DT__WIRE_BLOCK;
    return n < left ? n : left;
}

size_t dt__wire_bytes(int wire, size_t offset, size_t n)
{
    if (wire == DT_WIRE_F32) return n * sizeof(float);
    if (wire == DT_WIRE_BF16) return n * sizeof(uint16_t);
    if (n == 0) return 0;
    size_t blocks = (offset + n - 1) / DT__WIRE_BLOCK - offset / DT__WIRE_BLOCK + 1;
    return n + blocks * sizeof(float);
}

/* ---- one block ------------------------------------------------------------------------------ */

DT__CLONES
static void bf16_round(size_t n, float *restrict values, float *restrict error,
                       uint16_t *restrict half)
{
    for (size_t i = 0; i < n; i++) {
        float value = values[i] + error[i];
        half[i] = dt__bf16_of(value);
        values[i] = dt__bf16_value(half[i]);
        error[i] = value - values[i];
    }
}

DT__CLONES
static void bf16_read(size_t n, const uint16_t *restrict half, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dt__bf16_value(half[i]);
}

/* Adds error to values. Returns the greatest magnitude; NaN or infinity if some value is not
 * finite. */
DT__CLONES
static float q8_add(size_t n, float *restrict values, const float *restrict error)
{
    uint32_t most = 0;
    float result;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        values[i] += error[i];
        memcpy(&bits, &values[i], sizeof bits);
        bits &= 0x7fffffffu; /* magnitudes have the order of their bits */
        most = bits > most ? bits : most;
    }
    memcpy(&result, &most, sizeof result);
    return result;
}

/* Adding and subtracting 1.5 * 2^23 rounds to the nearest, ties to even. */
DT__CLONES
static void q8_round(size_t n, float scale, float inverse, float *restrict values,
                     float *restrict error, signed char *restrict byte)
{
    const float round = 12582912.0f;
    for (size_t i = 0; i < n; i++) {
        float value = values[i];
        int q = (int)((value * inverse + round) - round);
        byte[i] = (signed char)q;
        values[i] = (float)q * scale;
        error[i] = value - values[i];
    }
}

DT__CLONES
static void q8_read(size_t n, float scale, const signed char *restrict byte, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)byte[i] * scale;
}

static void q8_block(size_t n, float *values, float *error, unsigned char *bytes)
{
    const float most = q8_add(n, values, error);
    const bool finite = isfinite(most), zeros = finite && most < LEAST;
    const float scale = zeros ? 0 : finite ? most / 127 : NAN;
    memcpy(bytes, &scale, sizeof scale);
    if (!finite) memset(values, 0, n * sizeof *values); /* NaN cannot be converted to an integer */
    q8_round(n, scale, zeros || !finite ? 0 : 127 / most, values, error,
             (signed char *)bytes + sizeof scale);
}

/* ---- ranges --------------------------------------------------------------------------------- */

void dt__wire_round(int wire, size_t offset, size_t n, float *values, float *error,
                    unsigned char *bytes)
{
    _Alignas(64) unsigned char unused[DT__WIRE_BLOCK * sizeof(uint16_t)];
    if (wire == DT_WIRE_F32) {
        if (bytes) memcpy(bytes, values, n * sizeof *values);
        return;
    }
    for (size_t at = 0, length; at < n; at += length) {
        length = block_length(offset + at, n - at);
        unsigned char *to = bytes ? bytes + dt__wire_bytes(wire, offset, at) : unused;
        if (wire == DT_WIRE_BF16)
            bf16_round(length, values + at, error + at, (uint16_t *)(void *)to);
        else
            q8_block(length, values + at, error + at, to);
    }
}

float *dt__wire_read(int wire, size_t offset, size_t n, const unsigned char *bytes, float *out)
{
    if (wire == DT_WIRE_F32) return (float *)(uintptr_t)bytes;
    if (wire == DT_WIRE_BF16) bf16_read(n, (const uint16_t *)(const void *)bytes, out);
    for (size_t at = 0, length; wire == DT_WIRE_Q8 && at < n; at += length) {
        float scale;
        length = block_length(offset + at, n - at);
        memcpy(&scale, bytes, sizeof scale);
        q8_read(length, scale, (const signed char *)bytes + sizeof scale, out + at);
        bytes += sizeof scale + length;
    }
    return out;
}

DT__CLONES
static void weights_add(size_t n, const float *restrict values, float *restrict weights)
{
    for (size_t i = 0; i < n; i++)
        weights[i] += values[i];
}

DT__CLONES
static void weights_subtract(size_t n, const float *restrict weights, float *restrict values)
{
    for (size_t i = 0; i < n; i++)
        values[i] -= weights[i];
}

void dt__wire_update(int wire, size_t offset, size_t n, float *fresh, float *error, float *weights,
                     unsigned char *bytes)
{
    if (wire == DT_WIRE_F32) {
        if (fresh != weights) memcpy(weights, fresh, n * sizeof *weights);
        return;
    }
    weights_subtract(n, weights, fresh);
    dt__wire_round(wire, offset, n, fresh, error, bytes);
    weights_add(n, fresh, weights);
}

void dt__wire_add(int wire, size_t offset, size_t n, const unsigned char *bytes, float *weights)
{
    float block[DT__WIRE_BLOCK];
    for (size_t at = 0, length; wire != DT_WIRE_F32 && at < n; at += length) {
        length = block_length(offset + at, n - at);
        dt__wire_read(wire, offset + at, length, bytes + dt__wire_bytes(wire, offset, at), block);
        weights_add(length, block, weights + at);
    }
}
