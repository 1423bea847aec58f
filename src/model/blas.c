/* Matrix products by oneDNN, by OpenBLAS, or by the library's own code (portable.h).
 *
 * OpenBLAS reads its kernel from OPENBLAS_CORETYPE and starts threads while it loads, so the kernel
 * must be chosen, and signals blocked, before that. If oneDNN multiplies, OpenBLAS is loaded only
 * to transpose. */
#include "model/blas.h"

#include "base/elementary.h"
#include "base/load.h"
#include "model/bf16_products.h"
#include "model/model.h"
#include "model/onednn.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Functions of the OpenMP runtime that oneDNN uses. Only one compiler comes with a header for
 * them. */
void omp_set_num_threads(int threads);
void GOMP_parallel(void (*body)(void *arg), void *arg, unsigned threads, unsigned flags);

/* ---- the library and its kernel ------------------------------------------------------------- */

/* State of the libraries in this process: global, because the libraries' own state is. */
static struct {
    pthread_mutex_t lock;          /* held while the kernel is chosen */
    bool chosen, onednn, portable; /* whether a kernel is chosen, and which library multiplies;
                                    * neither onednn nor portable: OpenBLAS */
    char loaded[32];               /* OPENBLAS_CORETYPE at the last load of OpenBLAS */
    char name[64];                 /* the kernel's name, including the bf16 kernel's */
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define SYMBOLS(X)                                                                                 \
    X(cblas_, sgemm)                                                                               \
    X(cblas_, somatcopy)                                                                           \
    X(openblas_, get_corename)                                                                     \
    X(openblas_, get_config)                                                                       \
    X(openblas_, set_num_threads)
static struct {
    SYMBOLS(DT__POINTER)
} openblas;

/* Loaded in isolation (.alone): searching the program's other libraries for its symbols took a
 * quarter of a short job's time. */
static const char *const symbols[] = {SYMBOLS(DT__NAME)};
static struct dt__library library = DT__LIBRARY("openblas", symbols, &openblas, .alone = true);

static dt_status openblas_reload(void)
{
    dt__library_unload(&library);
    return dt__library_load(&library);
}

/* Sets an environment variable, or removes it if value is NULL. */
static void variable_set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Loads OpenBLAS with a kernel. OpenBLAS reads the kernel from the environment only while it loads,
 * so another kernel needs a reload. On a CPU newer than itself OpenBLAS chooses its slowest kernel,
 * Prescott; then it is reloaded with a kernel for the CPU's features, unless the environment names
 * a kernel. */
static dt_status openblas_load(const char *kernel)
{
    const char *now = getenv("OPENBLAS_CORETYPE"), *suited = dt__blas_kernel_by_features();
    char users[32];
    snprintf(users, sizeof users, "%s", now ? now : "");
    if (!kernel || !strcasecmp(kernel, DT__ONEDNN)) kernel = *users ? users : NULL;
    if (library.handle && !strcasecmp(kernel ? kernel : "", blas.loaded)) return DT_OK;
    snprintf(blas.loaded, sizeof blas.loaded, "%s", kernel ? kernel : "");
    const bool threads = getenv("OPENBLAS_NUM_THREADS");
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    variable_set("OPENBLAS_CORETYPE", kernel);
    dt_status status = openblas_reload();
    if (!status && !kernel && suited && !strcasecmp(openblas.get_corename(), "Prescott")) {
        variable_set("OPENBLAS_CORETYPE", suited);
        status = openblas_reload();
    }
    /* Restore the environment for programs that this program starts. */
    variable_set("OPENBLAS_CORETYPE", *users ? users : NULL);
    if (!threads) variable_set("OPENBLAS_NUM_THREADS", NULL);
    return status;
}

/* Loads OpenBLAS with the kernel for this CPU, unless it is already loaded. */
static dt_status openblas_need(void)
{
    pthread_mutex_lock(&blas.lock);
    const dt_status status = library.handle ? DT_OK : openblas_load(dt__blas_kernel_for_cpu());
    pthread_mutex_unlock(&blas.lock);
    return status;
}

/* Lets oneDNN multiply if `kernel` names it. Sets one instruction set of oneDNN on every CPU that
 * supports it, so that the name stands for the same bits; if bf16 has chosen a higher set, the f32
 * kernels are the same. One exception: a forward convolution in f32 with large weights (brgconv of
 * oneDNN 2.6.3) sums in blocks whose size depends on the second-level cache, so its bits may differ
 * between CPU models. */
static void onednn_choose(const char *kernel)
{
    const dnnl_cpu_isa_t isa = dnnl_cpu_isa_avx512_core;
    const bool named = !strcasecmp(kernel, DT__ONEDNN) && !dt__onednn_load();
    if (named) dnnl.set_max_cpu_isa(isa);
    blas.onednn = named && (dnnl.get_effective_cpu_isa() & isa) == isa;
}

bool dt__blas_choose(const char *kernel)
{
    blas.portable = false;
    dt__elementary_choose(false);
    onednn_choose(kernel);
    if (!blas.onednn) blas.onednn = openblas_need() != DT_OK;
    return blas.onednn;
}

static const char *kernel_name(void)
{
    if (blas.portable) return DT__PORTABLE;
    return blas.onednn ? DT__ONEDNN : openblas.get_corename();
}

/* Chooses the kernel that `kernel_option` names before any "-bf16-"; dt__bf16_select reads the part
 * from there on. again: also if a kernel is already chosen. */
static dt_status blas_select(const char *kernel_option, bool again)
{
    char option[32];
    const char *suffix = strstr(kernel_option, DT__BF16_SUFFIX);
    snprintf(option, sizeof option, "%.*s",
             suffix ? (int)(suffix - kernel_option) : (int)strlen(kernel_option), kernel_option);
    bool named = strcmp(option, "auto") && strcmp(option, "env");
    const char *kernel = named ? option : strcmp(option, "env") ? dt__blas_kernel_for_cpu() : NULL;
    dt_status status = DT_OK;
    pthread_mutex_lock(&blas.lock);
    if (blas.chosen && !again) goto done;
    dt__denormals_flush(); /* before the libraries start threads, which inherit the setting */
    if (kernel && !strcasecmp(kernel, DT__ONEDNN)) status = dt__onednn_load();
    if (status) goto done;
    blas.portable = dt__portable_choose(kernel ? kernel : "");
    dt__elementary_choose(blas.portable);
    onednn_choose(kernel ? kernel : "");
    if (!blas.onednn && !blas.portable) status = openblas_load(kernel);
    if (!status) blas.chosen = true;
    if (!status && named && !blas.portable && strcasecmp(option, kernel_name()))
        status = dt_fail(DT_EUSAGE, "run.kernel=%s: expected a kernel for this machine; it runs %s",
                         option, kernel_name());
done:
    pthread_mutex_unlock(&blas.lock);
    return status;
}

dt_status dt__blas_select(const char *kernel)
{
    return blas_select(kernel, true);
}

dt_status dt__blas_need(void)
{
    return blas.chosen ? DT_OK : blas_select("auto", false);
}

/* oneDNN's limit can be set only once: if bf16 or another kernel has set it, nothing changes. */
dt_status dt__convolutions_limit(void)
{
    static const struct {
        const char *kernel;
        dnnl_cpu_isa_t isa;
    } levels[] = {
        {"SapphireRapids", dnnl_cpu_isa_avx512_core},
        {"Cooperlake", dnnl_cpu_isa_avx512_core},
        {"SkylakeX", dnnl_cpu_isa_avx512_core},
        {"Haswell", dnnl_cpu_isa_avx2},
        {"Zen", dnnl_cpu_isa_avx2},
        {"Excavator", dnnl_cpu_isa_avx2},
        {"Sandybridge", dnnl_cpu_isa_avx},
        {"Bulldozer", dnnl_cpu_isa_avx},
        {"Piledriver", dnnl_cpu_isa_avx},
        {"Steamroller", dnnl_cpu_isa_avx},
    };
    dnnl_cpu_isa_t isa = dnnl_cpu_isa_sse41;
    DT_TRY(dt__onednn_load());
    DT_TRY(dt__blas_need());
    if (blas.onednn) return DT_OK;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcasecmp(levels[i].kernel, kernel_name())) isa = levels[i].isa;
    (void)dnnl.set_max_cpu_isa(isa);
    return DT_OK;
}

/* ---- products ------------------------------------------------------------------------------- */

dt_status dt__gemm(struct dt__product product, const float *a, const float *b, float *c)
{
    const int m = product.m, n = product.n, k = product.k;
    const bool ta = product.ta, tb = product.tb;
    const int lda = ta ? m : k, ldb = tb ? k : n;
    const float beta = product.add ? 1.0f : 0.0f;
    if (blas.portable)
        return dt__portable_gemm((struct dt__sizes){m, n, k}, dt__strided(a, ta, (size_t)lda),
                                 dt__strided(b, tb, (size_t)ldb), product.add, c, (size_t)n);
    if (!blas.onednn) {
        openblas.sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                       tb ? CblasTrans : CblasNoTrans, m, n, k, 1.0f, a, lda, b, ldb, beta, c, n);
        return DT_OK;
    }
    const dnnl_status_t status =
        dnnl.sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, beta, c, n);
    if (!status) return DT_OK;
    char text[64];
    snprintf(text, sizeof text, "the product (%d, %d) x (%d, %d)", m, k, k, n);
    return dt__dnnl_check(status, text);
}

/* The n and k from which on transposing makes products 1.03 to 1.2 times as fast (measured with n
 * and k of 256 to 4096, m of 64 to 256). */
enum { WORTH_TRANSPOSING = 256 };

static bool is_transposed(int n, int k)
{
    return blas.onednn && n >= WORTH_TRANSPOSING && k >= WORTH_TRANSPOSING;
}

dt_status dt__gemm_transposed_need(int n, int k)
{
    return is_transposed(n, k) ? openblas_need() : DT_OK;
}

dt_status dt__gemm_transposed(struct dt__sizes size, const float *a, const float *b, float *scratch,
                              float *c)
{
    const int m = size.m, n = size.n, k = size.k;
    if (!is_transposed(n, k))
        return dt__gemm((struct dt__product){.m = m, .n = n, .k = k, .tb = true}, a, b, c);
    float *transposed_a = scratch, *transposed_c = scratch + (size_t)m * (size_t)k;
    openblas.somatcopy(CblasRowMajor, CblasTrans, m, k, 1.0f, a, k, transposed_a, m);
    DT_TRY(dt__gemm((struct dt__product){.m = n, .n = m, .k = k}, b, transposed_a, transposed_c));
    openblas.somatcopy(CblasRowMajor, CblasTrans, n, m, 1.0f, transposed_c, m, c, n);
    return DT_OK;
}

enum { PADDED_ROWS = 24 }; /* a multiple of the rows of OpenBLAS's tiles: 2, 4, 8, 12 */

dt_status dt__gemm_padded(struct dt__sizes size, const float *a, const float *b, bool add, float *c)
{
    const int n = size.n, k = size.k, whole = size.m / PADDED_ROWS * PADDED_ROWS;
    const size_t left = (size_t)(size.m - whole), nin = (size_t)k, nout = (size_t)n;
    float *padded;
    dt_status status = DT_OK;
    if (whole)
        DT_TRY(dt__gemm((struct dt__product){.m = whole, .n = n, .k = k, .add = add}, a, b, c));
    if (!left) return DT_OK;
    DT_TRY(dt__alloc(PADDED_ROWS * (nin + nout), sizeof *padded, "rows of a product", &padded));
    float *sums = padded + PADDED_ROWS * nin;
    memcpy(padded, a + (size_t)whole * nin, left * nin * sizeof *padded);
    c += (size_t)whole * nout;
    memcpy(sums, c, left * nout * sizeof *sums);
    status = dt__gemm((struct dt__product){.m = PADDED_ROWS, .n = n, .k = k, .add = add}, padded, b,
                      sums);
    memcpy(c, sums, left * nout * sizeof *c);
    dt_free(padded);
    return status;
}

dt_status dt__gemm_rowwise(struct dt__sizes size, const float *a, const float *b, bool add,
                           float *c)
{
    const size_t nout = (size_t)size.n;
    if (!dt__portable_need()) return dt__gemm_padded(size, a, b, add, c);
    return dt__portable_gemm(size, dt__strided(a, false, (size_t)size.k),
                             dt__strided(b, false, nout), add, c, nout);
}

bool dt__blas_is_portable(void)
{
    return blas.portable;
}

/* ---- names ---------------------------------------------------------------------------------- */

const char *dt__blas_kernel(void)
{
    if (dt__blas_need()) return "none";
    if (!dt__bf16_kernel()) return kernel_name();
    snprintf(blas.name, sizeof blas.name, "%s" DT__BF16_SUFFIX "%s", kernel_name(),
             dt__bf16_kernel());
    return blas.name;
}

const char *dt__blas_version(void)
{
    return openblas_need() ? "none" : openblas.get_config();
}

static void thread_flush_denormals(void *arg)
{
    (void)arg;
    dt__denormals_flush();
}

/* Also makes the threads that the program's own use of OpenMP has started flush denormals. */
void dt__blas_set_threads(int threads)
{
    if (dt__blas_need()) return;
    dt__portable_set_threads(threads);
    if (library.handle) openblas.set_num_threads(threads);
    omp_set_num_threads(threads);
    GOMP_parallel(thread_flush_denormals, NULL, (unsigned)threads, 0);
}
