/* Prints a machine's sgemm rate in GFLOP/s: of one core, and of several at once, each in a forked
 * process. Fractions of peak refer to this figure.
 *
 *   sgemm_peak [CORES]      CORES: all by default. OPENBLAS_CORETYPE chooses the kernel; "oneDNN",
 * too */
#include "model/blas.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 1024, ROUNDS = 12, CALLS = 6 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *matrix(void)
{
    const size_t count = (size_t)N * N;
    float *values = aligned_alloc(64, count * sizeof *values);
    if (!values) exit(1);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((int)(i * 2654435761u >> 16 & 1023) - 512) / 512.0f;
    return values;
}

/* Returns the best of several rounds, since other load only makes rounds slower. */
static double measure(void)
{
    float *a = matrix(), *b = matrix(), *c = matrix();
    double best = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = seconds();
        for (int i = 0; i < CALLS; i++)
            dt__gemm((struct dt__product){.m = N, .n = N, .k = N}, a, b, c);
        double rate = 2e-9 * N * N * N * CALLS / (seconds() - start);
        if (rate > best) best = rate;
    }
    free(a), free(b), free(c);
    return best;
}

/* Returns the sum of the rates of `cores` processes at once. */
static double measure_all(int cores)
{
    int pipe_ends[2];
    if (pipe(pipe_ends)) exit(1);
    for (int i = 0; i < cores; i++) {
        if (fork()) continue;
        double rate = measure();
        _exit(write(pipe_ends[1], &rate, sizeof rate) != sizeof rate);
    }
    close(pipe_ends[1]); /* so that the read ends if a process dies of an instruction that this CPU
                          * lacks */
    double sum = 0.0, rate;
    for (int i = 0; i < cores; i++) {
        if (read(pipe_ends[0], &rate, sizeof rate) != sizeof rate) exit(1);
        sum += rate;
        wait(NULL);
    }
    return sum;
}

int main(int argc, char **argv)
{
    const long cores = argc > 1 ? strtol(argv[1], NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
    const char *kernel = getenv("OPENBLAS_CORETYPE");
    if (dt__blas_select(kernel ? kernel : "auto")) fprintf(stderr, "%s\n", dt_error_text());
    dt__blas_set_threads(1);
    printf("kernel %s\n", dt__blas_kernel());
    fflush(stdout);
    printf("cores 1 gflops %.1f\n", measure_all(1));
    if (cores > 1) printf("cores %ld gflops %.1f\n", cores, measure_all((int)cores));
    return 0;
}
