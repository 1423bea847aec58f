/* The wire: floats rounded for a link, with the rounding error kept and added to what is rounded
 * next.
 *
 *   bf16   the upper half of each float, rounded to the nearest
 *   q8     blocks of DT__WIRE_BLOCK floats: a scale, max |x| / 127, as a float, and a signed byte
 *          each
 *
 * Blocks are cut at multiples of DT__WIRE_BLOCK of the flat vector's offsets, so that what is
 * rounded does not depend on who rounds which range; only a bucket's ends cut them elsewhere. The
 * kernels act on any range whose ends are such cuts. Rounded floats are the same to the bit on both
 * ends of a link.
 * Source: Seide et al., "1-bit stochastic gradient descent and its application to data-parallel
 * distributed training of speech DNNs", Interspeech 2014 (error feedback); Tang et al.,
 * "DoubleSqueeze: parallel stochastic gradient descent with double-pass error-compensated
 * compression", ICML 2019 (both ways). */
#ifndef DT_COMM_WIRE_H
#define DT_COMM_WIRE_H

#include <stddef.h>

enum { DT__WIRE_BLOCK = 256 };

/* Bytes of floats [offset, offset + n). wire: enum dt_wire. */
size_t dt__wire_bytes(int wire, size_t offset, size_t n);

/* Rounds values + error: the rounded floats go to values and, as they travel, to bytes (NULL: not
 * needed); what rounding left goes to error. A value that is not finite makes all of its block NaN.
 * f32 changes nothing. */
void dt__wire_round(int wire, size_t offset, size_t n, float *values, float *error,
                    unsigned char *bytes);
/* Reads rounded floats back from bytes. */
void dt__wire_read(int wire, size_t offset, size_t n, const unsigned char *bytes, float *out);

/* Rounds an update: adds round(fresh - weights + error) to weights, and writes the rounded
 * difference to bytes. fresh is overwritten. */
void dt__wire_update(int wire, size_t offset, size_t n, float *fresh, float *error, float *weights,
                     unsigned char *bytes);
/* Adds the rounded difference that arrived to weights. */
void dt__wire_add(int wire, size_t offset, size_t n, const unsigned char *bytes, float *weights);

#endif
