/* The wire: floats rounded for a link. The rounding error is kept, and added to the values that are
 * rounded next.
 *
 *   bf16   the upper half of each float, rounded to the nearest
 *   q8     blocks of DT__WIRE_BLOCK floats: a scale, max |x| / 127, as a float, then one
 *          signed byte for each float
 *   f32    nothing is rounded; floats are sent from, and received at, their own addresses
 *
 * Blocks are cut at multiples of DT__WIRE_BLOCK in the flat vector, and at a bucket's ends, so
 * rounding does not depend on which rank rounds which range. The functions act on any range whose
 * ends are such cuts. Both ends of a link have the same bits of rounded floats.
 *
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

/* Rounds values + error. Writes the rounded floats to values, their message to bytes (NULL: not
 * needed), and the new rounding error to error. A value that is not finite makes its whole block
 * NaN. f32 only copies values to bytes, and does not use error. */
void dt__wire_round(int wire, size_t offset, size_t n, float *values, float *error,
                    unsigned char *bytes);
/* Returns the floats in a message: out (n), into which they are read, or with f32 the address of
 * bytes itself. */
float *dt__wire_read(int wire, size_t offset, size_t n, const unsigned char *bytes, float *out);

/* Rounds an update: adds round(fresh - weights + error) to weights, and writes the message of the
 * rounded difference to bytes (NULL: not needed). fresh is overwritten. f32 copies fresh to
 * weights, unless both are the same address. */
void dt__wire_update(int wire, size_t offset, size_t n, float *fresh, float *error, float *weights,
                     unsigned char *bytes);
/* Adds the rounded difference in a message to weights. With f32 does nothing, since the weights
 * themselves have arrived. */
void dt__wire_add(int wire, size_t offset, size_t n, const unsigned char *bytes, float *weights);

#endif
