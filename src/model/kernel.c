/* Chooses the kernel for this CPU. */
#include "model/bf16_products.h"
#include "model/blas.h"
#include "model/model.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct cpu {
    char vendor[13];
    unsigned family, model;
};

enum vectors { AVX2, AVX512 };

/* The fastest products of OpenBLAS 0.3.21 and oneDNN 2.6 by CPU. The first row that the CPU
 * supports is chosen. To measure again, run `net_speed` of scripts/bench with a kernel's name.
 *
 * With AVX-512, oneDNN is the fastest on every CPU that was measured, by whole steps: on Zen 4 it
 * is 1.10 to 1.15 times as fast as OpenBLAS's Haswell, Zen and SkylakeX, which are close to each
 * other (hidden layers of 1024 and 4096; no clear difference with 512 and 256); on Zen 5, 1.14 to
 * 1.17 times as fast as SkylakeX; on an Intel server with AMX, 1.15 to 1.5 times as fast as
 * SkylakeX and Cooperlake, which are alike, and 1.5 to 1.8 times as fast as Haswell (hidden layers
 * of 128 to 4096, 64 and 128 rows). One row for all of these also suits a CPU whose model a virtual
 * machine masks, and makes hosts with different CPU models agree on the bits of their products.
 *
 * Zen to Zen 3 were not measured; each has a kernel made for it. */
static const struct kernel {
    enum vectors needs; /* checked, because a virtual machine may hide them; OpenBLAS does not
                         * check */
    const char *name;
    const char *vendor; /* NULL: any model */
    unsigned family, first_model, last_model;
} KERNELS[] = {
    {AVX512, DT__ONEDNN, NULL, 0, 0, 0},
    {AVX2, "Zen", "AuthenticAMD", 0x17, 0x00, 0xff},     /* Zen, Zen 2 */
    {AVX2, "Zen", "AuthenticAMD", 0x19, 0x00, 0x0f},     /* Zen 3 */
    {AVX2, "Haswell", "AuthenticAMD", 0x19, 0x10, 0x1f}, /* Zen 4, servers */
    {AVX2, "Zen", "AuthenticAMD", 0x19, 0x20, 0x5f},     /* Zen 3 */
    {AVX2, "Haswell", "AuthenticAMD", 0x19, 0x60, 0xaf}, /* Zen 4, desktops, dense servers */
};

/* Reads vendor, family and model. Returns false if the CPU cannot report them. Source: Intel SDM,
 * volume 2A, CPUID, leaves 0 and 1. */
static bool identify(struct cpu *cpu)
{
#if defined(__x86_64__)
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
#else
    (void)cpu;
    return false;
#endif
}

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

const char *dt__blas_kernel_of(const char *vendor, unsigned family, unsigned model, bool avx2,
                               bool avx512)
{
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
        const struct kernel *kernel = &KERNELS[i];
        const bool named = kernel->vendor && !strcmp(kernel->vendor, vendor) &&
                           kernel->family == family && kernel->first_model <= model &&
                           model <= kernel->last_model;
        if ((named || !kernel->vendor) && (kernel->needs == AVX2 ? avx2 : avx512))
            return kernel->name;
    }
    return NULL;
}

const char *dt__blas_kernel_for_cpu(void)
{
    struct cpu cpu;
    if (!identify(&cpu)) return NULL;
    return dt__blas_kernel_of(cpu.vendor, cpu.family, cpu.model, has(AVX2), has(AVX512));
}

/* Returns the kernel that OpenBLAS chooses for the CPU models it knows that have these features. */
const char *dt__blas_kernel_by_features(void)
{
    if (has(AVX512)) return "SkylakeX";
    return has(AVX2) ? "Haswell" : NULL;
}

/* Source: Intel SDM, volume 2A, CPUID, leaf 7. */
bool dt__cpu_has_amx(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
#else
    return false;
#endif
}

bool dt__cpu_has_fast_avx512_bf16(void)
{
#if defined(__x86_64__)
    struct cpu cpu;
    unsigned a, b, c, d;
    return identify(&cpu) && !strcmp(cpu.vendor, "AuthenticAMD") && has(AVX512) &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
#else
    return false;
#endif
}
