#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

/* Philox4x32-10 with the whole counter, as its published test vectors have it. */
void dt__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
