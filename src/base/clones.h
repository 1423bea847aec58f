/* DT__CLONES before a hot loop builds the function for three generations of instructions; the one
 * that suits the CPU is chosen when the program is loaded. The function must be static: clang gives
 * others no name that another file can link. The bits are the same in each clone: nothing is
 * contracted, and no sum changes its order. No clones are built for AVX2 or better, where loops use
 * the instructions of the build, for address sanitizers and fuzzers, which are not ready while a
 * program is loaded, and with C libraries without indirect functions.
 *
 * DT__AVX512 names the newest generation, with AVX512BW except for gcc before 12: without its
 * 16-bit words gcc uses vectors of half the width, and rounding to bf16 takes three times as long
 * (0.147 instead of 0.048 ns a float, Zen 5). gcc 12 and later know it by the name of its level;
 * clang 14 would read "arch=" as one CPU model. */
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
