/* DT__CLONES before a hot loop: where the build is for any x86-64, the function is built for three
 * generations of instructions, and the one that suits the CPU is taken as the program is loaded. A
 * build for AVX2 or better has its vectors anyway. The bits are the same in each: nothing is
 * contracted, and no sum changes its order. Sanitizers and clang do without. */
#ifndef BASE_CLONES_H
#define BASE_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__AVX2__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(DT_NO_CLONES)
#define DT__CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DT__CLONES
#endif

#endif
