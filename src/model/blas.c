/* Matrix products by oneDNN or OpenBLAS.
 *
 * OpenBLAS is loaded here, by name, at the first need of it: it reads OPENBLAS_CORETYPE, its
 * kernel, and starts threads as it loads, so the kernel must be settled and signals blocked
 * before. */
#include "model/blas.h"

#include "dtrain/model.h"
#include "model/bf16_products.h"

#include <cblas.h>
#include <dlfcn.h>
#include <dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The OpenMP runtime's that oneDNN runs on; its header comes with one compiler only. */
void omp_set_num_threads(int threads);
void GOMP_parallel(void (*body)(void *arg), void *arg, unsigned threads, unsigned flags);

/* ---- the library and its kernel ------------------------------------------------------------- */

static bool use_onednn;

static struct {
    void *library;
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_somatcopy) *somatcopy;
    __typeof__(openblas_get_corename) *get_corename;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_set_num_threads) *set_num_threads;
} openblas;

static pthread_mutex_t settling = PTHREAD_MUTEX_INITIALIZER;
static bool settled;

/* The linker's own path first, then where the library was when this one was built. */
static dt_status openblas_open(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so",
                                        DT_OPENBLAS_DIR "/libopenblas.so"};
    static const struct {
        const char *name;
        void *place;
    } functions[] = {{"cblas_sgemm", &openblas.sgemm},
                     {"cblas_somatcopy", &openblas.somatcopy},
                     {"openblas_get_corename", &openblas.get_corename},
                     {"openblas_get_config", &openblas.get_config},
                     {"openblas_set_num_threads", &openblas.set_num_threads}};
    if (openblas.library) dlclose(openblas.library);
    openblas.library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !openblas.library; i++)
        openblas.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!openblas.library) return dt_fail(DT_EIO, "cannot load OpenBLAS: %s", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(openblas.library, functions[i].name);
        if (!function)
            return dt_fail(DT_EIO, "OpenBLAS has no %s: %s", functions[i].name, dlerror());
        memcpy(functions[i].place, &function, sizeof function);
    }
    return DT_OK;
}

/* OpenBLAS's kernel is by the environment as it loads: for another one it is loaded again. On a CPU
 * that is newer than itself it takes the slowest of all, Prescott: then it is told what the CPU can
 * do, unless the environment asked. */
static dt_status openblas_load(const char *kernel)
{
    static char users[32];  /* the variable, as this process found it */
    static char loaded[32]; /* what it said at the last loading */
    const char *now = getenv("OPENBLAS_CORETYPE"), *suited = dt__blas_kernel_by_features();
    if (!settled && now) snprintf(users, sizeof users, "%s", now);
    if (!kernel || !strcasecmp(kernel, DT__ONEDNN)) kernel = *users ? users : NULL;
    if (openblas.library && !strcasecmp(kernel ? kernel : "", loaded)) return DT_OK;
    snprintf(loaded, sizeof loaded, "%s", kernel ? kernel : "");
    if (kernel)
        setenv("OPENBLAS_CORETYPE", kernel, 1);
    else
        unsetenv("OPENBLAS_CORETYPE");
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    DT_TRY(openblas_open());
    if (kernel || !suited || strcasecmp(openblas.get_corename(), "Prescott")) return DT_OK;
    setenv("OPENBLAS_CORETYPE", suited, 1);
    return openblas_open();
}

/* One instruction set of oneDNN, and so one name for its bits, on every CPU that has it; where bf16
 * has settled on more, the kernels of f32 are the same. */
bool dt_blas_choose(const char *kernel)
{
    const dnnl_cpu_isa_t isa = dnnl_cpu_isa_avx512_core;
    use_onednn = false;
    if (strcasecmp(kernel, DT__ONEDNN)) return false;
    dnnl_set_max_cpu_isa(isa);
    use_onednn = (dnnl_get_effective_cpu_isa() & isa) == isa;
    return use_onednn;
}

static const char *kernel_name(void)
{
    return use_onednn ? DT__ONEDNN : openblas.get_corename();
}

/* What stands behind "-bf16-" is dt_bf16_settle's. */
dt_status dt_blas_settle(const char *whole)
{
    char option[32];
    const char *suffix = strstr(whole, DT__BF16_SUFFIX);
    snprintf(option, sizeof option, "%.*s", suffix ? (int)(suffix - whole) : (int)strlen(whole),
             whole);
    bool named = strcmp(option, "auto") && strcmp(option, "env");
    const char *kernel = named ? option : strcmp(option, "env") ? dt_blas_kernel_for_cpu() : NULL;
    pthread_mutex_lock(&settling);
    dt_denormals_flush(); /* threads of the libraries inherit it */
    dt_blas_choose(kernel ? kernel : "");
    dt_status status = openblas_load(kernel);
    if (!status) settled = true;
    if (!status && named && strcasecmp(option, kernel_name()))
        status = dt_fail(DT_EUSAGE, "run.kernel=%s: expected a kernel for this machine; it runs %s",
                         option, kernel_name());
    pthread_mutex_unlock(&settling);
    return status;
}

dt_status dt__blas_need(void)
{
    return settled ? DT_OK : dt_blas_settle("auto");
}

/* ---- products ------------------------------------------------------------------------------- */

dt_status dt__gemm(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, bool add,
                   float *c)
{
    const int lda = ta ? m : k, ldb = tb ? k : n;
    const float beta = add ? 1.0f : 0.0f;
    if (!use_onednn) {
        openblas.sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                       tb ? CblasTrans : CblasNoTrans, m, n, k, 1.0f, a, lda, b, ldb, beta, c, n);
        return DT_OK;
    }
    const dnnl_status_t status =
        dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, beta, c, n);
    if (!status) return DT_OK;
    return dt_fail(status == dnnl_out_of_memory ? DT_EMEMORY : DT_EBUG,
                   "oneDNN: the product (%d, %d) x (%d, %d) failed with status %d", m, k, k, n,
                   (int)status);
}

/* 1.03 to 1.2 times as fast from here on (measured: n and k of 256 to 4096, m of 64 to 256). */
enum { WORTH_TRANSPOSING = 256 };

dt_status dt__gemm_transposed(int m, int n, int k, const float *a, const float *b, float *scratch,
                              float *c)
{
    if (!use_onednn || n < WORTH_TRANSPOSING || k < WORTH_TRANSPOSING)
        return dt__gemm(false, true, m, n, k, a, b, false, c);
    float *transposed_a = scratch, *transposed_c = scratch + (size_t)m * (size_t)k;
    openblas.somatcopy(CblasRowMajor, CblasTrans, m, k, 1.0f, a, k, transposed_a, m);
    DT_TRY(dt__gemm(false, false, n, m, k, b, transposed_a, false, transposed_c));
    openblas.somatcopy(CblasRowMajor, CblasTrans, n, m, 1.0f, transposed_c, m, c, n);
    return DT_OK;
}

/* ---- what it is ----------------------------------------------------------------------------- */

const char *dt_blas_kernel(void)
{
    static char name[64];
    if (dt__blas_need()) return "none";
    if (!dt__bf16_kernel()) return kernel_name();
    snprintf(name, sizeof name, "%s" DT__BF16_SUFFIX "%s", kernel_name(), dt__bf16_kernel());
    return name;
}

const char *dt_blas_version(void)
{
    return dt__blas_need() ? "none" : openblas.get_config();
}

const char *dt_onednn_version(char buffer[DT_ONEDNN_VERSION])
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(buffer, DT_ONEDNN_VERSION, "%d.%d.%d", version->major, version->minor, version->patch);
    return buffer;
}

static void thread_flush_denormals(void *arg)
{
    (void)arg;
    dt_denormals_flush();
}

/* A program that uses OpenMP itself has threads that inherited nothing. */
void dt_blas_set_threads(int threads)
{
    if (dt__blas_need()) return;
    openblas.set_num_threads(threads);
    omp_set_num_threads(threads);
    GOMP_parallel(thread_flush_denormals, NULL, (unsigned)threads, 0);
}
