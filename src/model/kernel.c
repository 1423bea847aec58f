/* Which kernels suit this CPU. */
#include "dtrain/model.h"
#include "model/blas.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct cpu {
    char vendor[13];
    unsigned family, model;
};

enum vectors { AVX2, AVX512 };

/* The fastest sgemm of OpenBLAS 0.3.21 and oneDNN 2.6 by CPU; `net_speed` of scripts/bench, told a
 * kernel, measures it again.
 * Zen 4 splits 512-bit operations in two: of OpenBLAS's kernels Haswell is 5 to 20 % faster there
 * (measured). Zen 5 servers and desktops do not: OpenBLAS's SkylakeX is 1.95 times as fast as Haswell
 * (measured: 269 against 138 GFLOP/s a core), and oneDNN, which packs less of small batches, another
 * 1.14 to 1.17 times on whole steps. The others are not measured: each is a kernel made for that CPU,
 * and named so that hosts of one family agree on their bits. */
static const struct kernel {
    const char *vendor, *name;
    unsigned family, first_model, last_model;
    enum vectors needs; /* a virtual machine may hide them: OpenBLAS would not look */
} KERNELS[] = {
    {"AuthenticAMD", "Zen", 0x17, 0x00, 0xff, AVX2},        /* Zen, Zen 2 */
    {"AuthenticAMD", "Zen", 0x19, 0x00, 0x0f, AVX2},        /* Zen 3 */
    {"AuthenticAMD", "Haswell", 0x19, 0x10, 0x1f, AVX2},    /* Zen 4 */
    {"AuthenticAMD", "Zen", 0x19, 0x20, 0x5f, AVX2},        /* Zen 3 */
    {"AuthenticAMD", "Haswell", 0x19, 0x60, 0xaf, AVX2},    /* Zen 4 */
    {"AuthenticAMD", DT__ONEDNN, 0x1a, 0x00, 0x1f, AVX512}, /* Zen 5, servers */
    {"AuthenticAMD", DT__ONEDNN, 0x1a, 0x40, 0x4f, AVX512}, /* Zen 5, desktops */
    {"GenuineIntel", DT__ONEDNN, 0x06, 0x55, 0x55, AVX512}, /* Skylake, Cascade Lake, Cooper Lake */
    {"GenuineIntel", DT__ONEDNN, 0x06, 0x6a, 0x6c, AVX512}, /* Ice Lake servers */
    {"GenuineIntel", DT__ONEDNN, 0x06, 0x8f, 0x8f, AVX512}, /* Sapphire Rapids */
    {"GenuineIntel", DT__ONEDNN, 0x06, 0xcf, 0xcf, AVX512}, /* Emerald Rapids */
};

#if defined(__x86_64__)
/* Source: Intel SDM, volume 2A, CPUID, leaves 0 and 1. */
static bool identify(struct cpu *cpu)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return false;
    memcpy(cpu->vendor, &b, 4);
    memcpy(cpu->vendor + 4, &d, 4);
    memcpy(cpu->vendor + 8, &c, 4);
    cpu->vendor[12] = '\0';
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    unsigned family = a >> 8 & 0xf;
    cpu->family = family == 0xf ? family + (a >> 20 & 0xff) : family;
    cpu->model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
    return true;
}
#else
static bool identify(struct cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif

static bool has(enum vectors needs)
{
#if defined(__x86_64__)
    if (needs == AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return needs != AVX2 && needs != AVX512;
#endif
}

static bool matches(const struct kernel *kernel, const struct cpu *cpu)
{
    return strcmp(kernel->vendor, cpu->vendor) == 0 && kernel->family == cpu->family &&
           kernel->first_model <= cpu->model && cpu->model <= kernel->last_model;
}

const char *dt_blas_kernel_for_cpu(void)
{
    struct cpu cpu;
    if (!identify(&cpu)) return NULL;
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (matches(&KERNELS[i], &cpu)) return has(KERNELS[i].needs) ? KERNELS[i].name : NULL;
    return NULL;
}
