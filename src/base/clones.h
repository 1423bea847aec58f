/* DT__CLONES before a hot loop: the function is built for three generations of instructions, and
 * the one that suits the CPU is taken as the program is loaded. The bits are the same in each:
 * nothing is contracted, and no sum changes its order. Features are named, not levels: clang 14
 * would take "arch=" for one model of CPU, and gcc knows levels from 12 on. A build for AVX2 or
 * better has its vectors anyway. Address sanitizers and fuzzers, which are not ready while a
 * program is loaded, and C libraries without indirect functions do without. */
#ifndef BASE_CLONES_H
#define BASE_CLONES_H

#include <stdint.h>

#ifdef __has_feature
#define DT__ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define DT__ASAN 1
#else
#define DT__ASAN 0
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__AVX2__) && !DT__ASAN
#define DT__CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DT__CLONES
#endif

#endif
