/* Whether the machines suit the job: one kernel everywhere, a core for each thread that computes. */
#include <string.h>
#include <strings.h>

#include "train/run.h"

/* Of the lowest rank that has something to say; it is no failure. Collective. */
static dt_status warn(struct dt__run *run, dt_status mine)
{
    dt_status status = dt_world_agree(run->world, mine);
    if (status && dt_world_is_bank(run->world)) dt_warn("%s", dt_error_text());
    return DT_OK;
}

static dt_status compare_kernel(const struct dt__run *run, const char *bank_kernel)
{
    if (!strcasecmp(bank_kernel, dt_blas_kernel())) return DT_OK;
    return dt_fail(DT_EMISMATCH,
                   "kernel %s here, %s on %s: %s (run.kernel=%s asks for one everywhere)",
                   dt_blas_kernel(), bank_kernel, dt_world_host(run->world, 0),
                   run->config->run.reproducible ? "run.reproducible=yes cannot be kept"
                                                 : "bits depend on which ranks compute what",
                   bank_kernel);
}

static dt_status check_kernels(struct dt__run *run)
{
    char kernel[64] = "";
    if (dt_world_is_bank(run->world)) strncpy(kernel, dt_blas_kernel(), sizeof kernel - 1);
    DT_TRY(dt_world_bcast(run->world, kernel, sizeof kernel, 0));
    dt_status status = compare_kernel(run, kernel);
    return run->config->run.reproducible ? dt_world_agree(run->world, status) : warn(run, status);
}

/* The bank sleeps while workers compute, unless it is one; an evaluator is nice. */
static dt_status count_cores(const struct dt__run *run)
{
    int workers = dt_world_host_workers(run->world), cores = dt_world_cores(run->world);
    long long threads = run->config->run.threads;
    if (workers * threads <= cores) return DT_OK;
    return dt_fail(DT_EUSAGE, "%s: %d worker%s of %lld thread%s on %d core%s will be slow",
                   dt_world_host(run->world, dt_world_rank(run->world)), workers,
                   workers > 1 ? "s" : "", threads, threads > 1 ? "s" : "", cores,
                   cores > 1 ? "s" : "");
}

dt_status dt__machine_check(struct dt__run *run)
{
    DT_TRY(check_kernels(run));
    return warn(run, count_cores(run));
}
