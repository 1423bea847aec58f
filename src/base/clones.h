/* DT__CLONES before a hot loop: the function is built for three generations of instructions, and
 * the one that suits the CPU is taken as the program is loaded. It is static: clang gives others no
 * name that another file can link. The bits are the same in each: nothing is contracted, and no sum
 * changes its order. A build for AVX2 or better has its vectors anyway. Address sanitizers and
 * fuzzers, which are not ready while a program is loaded, and C libraries without indirect
 * functions do without.
 *
 * DT__AVX512 is the first generation, with AVX512BW: without its words of 16 bits gcc takes vectors
 * of half the width, and to round to bf16 takes three times as long (0.147 in place of 0.048 ns a
 * float, Zen 5). gcc knows it by the name of the level alone, from 12 on; clang 14 would take
 * "arch=" for one model of CPU. */
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
