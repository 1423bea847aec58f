/* The portable way, beside the one that dt_crc32c takes, so that a test can hold them together. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t dt__crc32c_portable(uint32_t crc, const void *bytes, size_t length);

#endif
