/* The wire: floats rounded for a link. The rounding error is kept and added to the values that are
 * rounded next.
 *
 *   bf16   the upper half of each float, rounded to the nearest
 *   q8     blocks of DT__WIRE_BLOCK floats: a scale, max |x| / 127, as a float, and a signed byte
 *          each
 *
 *   f32    nothing is rounded; floats travel from and to where they are
 *
 * Blocks are cut at multiples of DT__WIRE_BLOCK of the flat vector's offsets, so rounding does not
 * depend on which rank rounds which range; only a bucket's ends cut them elsewhere. The kernels act
 * on any range whose ends are such cuts. Rounded floats are the same to the bit on both ends of a
 * link.
 * Source: Seide et al., "1-bit stochastic gradient descent and its application to data-parallel
 * distributed training of speech DNNs", Interspeech 2014 (error feedback); Tang et al.,
 * "DoubleSqueeze: parallel stochastic gradient descent with double-pass error-compensated
 * compression", ICML 2019 (both ways). */
#ifndef DT_COMM_WIRE_H
#define DT_COMM_WIRE_H

#include <stddef.h>

enum { DT__WIRE_BLOCK = 256 };

/* Returns the bytes of floats [offset, offset + n). wire: enum dt_wire. */
size_t dt__wire_bytes(int wire, size_t offset, size_t n);

/* Rounds values + error: writes the rounded floats to values, as they travel to bytes (NULL: not
 * needed), and the new rounding error to error. A value that is not finite makes all of its block
 * NaN. f32 only copies values to bytes, and reads no error. */
void dt__wire_round(int wire, size_t offset, size_t n, float *values, float *error,
                    unsigned char *bytes);
/* Returns the floats that bytes hold: read into out (n), or, in f32, at their own address. */
float *dt__wire_read(int wire, size_t offset, size_t n, const unsigned char *bytes, float *out);

/* Rounds an update: adds round(fresh - weights + error) to weights, and writes the rounded
 * difference to bytes (NULL: not needed). fresh is overwritten. f32 copies fresh to weights, unless
 * they are the same place. */
void dt__wire_update(int wire, size_t offset, size_t n, float *fresh, float *error, float *weights,
                     unsigned char *bytes);
/* Adds a rounded difference that arrived to weights. In f32 the weights themselves have arrived. */
void dt__wire_add(int wire, size_t offset, size_t n, const unsigned char *bytes, float *weights);

#endif
