/* DT__CLONES before a function with a hot loop builds it for three generations of instructions; the
 * loader chooses the one that suits the CPU. The function must be static: clang gives others no
 * name that another file can link. All clones give the same bits: nothing is contracted, and no sum
 * changes its order. No clones are built in these cases: for AVX2 or better, where loops use the
 * instructions of the build; for address sanitizers and fuzzers, which are not ready while a
 * program is loaded; and with C libraries without indirect functions.
 *
 * DT__AVX512 names the newest generation. It includes AVX512BW, except with gcc before 12. Without
 * its 16-bit operations gcc uses vectors of half the width, and rounding to bf16 takes three times
 * as long (0.147 instead of 0.048 ns per float, Zen 5). gcc 12 and later know the generation by the
 * name of its level; clang 14 would take "arch=" for a single CPU model. */
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

#if defined(__clang__)
#define DT__AVX512 "avx512bw"
#elif defined(__GNUC__) && __GNUC__ >= 12
#define DT__AVX512 "arch=x86-64-v4"
#else
#define DT__AVX512 "avx512f"
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__AVX2__) && !DT__ASAN
#define DT__CLONES __attribute__((target_clones(DT__AVX512, "avx2", "default")))
#else
#define DT__CLONES
#endif

#endif
