/* One group holds all ranks: workers sum and update slices side by side, the bank sleeps. */
#include "comm/exchange.h"

#include <string.h>

static const double BANK_NAP_SECS =
    0.02; /* how often a sleeping bank looks for signals and clocks */

/* ---- verdict -------------------------------------------------------------------------------- */

bool dt__share_arrive(struct dt_exchange *x, int ask)
{
    struct dt__control *control = x->control;
    if (ask) atomic_fetch_or(&control->asks[x->tick & 1], ask);
    uint32_t target = x->tick * (uint32_t)x->group_workers;
    return dt__gate_post(&control->ended, 1) == target;
}

void dt__share_judge(struct dt_exchange *x, int verdict)
{
    x->control->verdict[x->tick & 1] = verdict;
    dt__gate_post(&x->control->judged, 1);
}

/* The last to arrive judges for all: what was asked by then ends the leg behind this step. */
static int meet(struct dt_exchange *x, int ask)
{
    struct dt__control *control = x->control;
    if (dt__share_arrive(x, ask)) {
        int asked = atomic_exchange(&control->asks[x->tick & 1], 0);
        dt__share_judge(x, asked | atomic_load(&control->bank_ask));
    } else {
        dt__gate_wait(&control->judged, x->tick, x->world, "the other workers' gradients");
    }
    return control->verdict[x->tick & 1];
}

/* ---- norm ----------------------------------------------------------------------------------- */

void dt__norm_blocks(struct dt_exchange *x, const float *sum, size_t begin, size_t end)
{
    for (size_t at = begin; at < end; at += DT__NORM_BLOCK) {
        size_t last = at + DT__NORM_BLOCK < end ? at + DT__NORM_BLOCK : end;
        double lane[8] = {0};
        for (size_t i = at; i < last; i++)
            lane[(i - at) & 7] += (double)sum[i] * (double)sum[i];
        x->norms[at / DT__NORM_BLOCK] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                                        ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
}

double dt__norm_total(const struct dt_exchange *x)
{
    double total = 0;
    for (size_t b = 0; b < x->norm_blocks; b++)
        total += x->norms[b];
    return total;
}

/* ---- update --------------------------------------------------------------------------------- */

static const float *tree_block(struct dt_exchange *x, size_t at, size_t n)
{
    return dt__tree_sum((const float *const *)x->slot, NULL, 0, x->spec.replicas, at, n,
                        x->scratch);
}

/* New weights are made in this core's cache and go out in one run. Other cores hold the old ones, and
 * single lines would be taken back from them one by one, between those of the state: 44 us for 50,000
 * weights on cores without a common cache, 27 us in runs (measured). */
static void update_block(struct dt_exchange *x, size_t at, size_t n, const float *grad)
{
    float *weights = x->vectors[0] + at, *out = x->group_workers > 1 ? x->fresh : weights;
    x->spec.update(x->spec.arg, &x->info, at, n, grad, x->vectors, out);
    if (out != weights) memcpy(weights, out, n * sizeof *weights);
}

/* Sum and update of floats [begin, end), a block at a time: the sum never leaves the cache. */
static void update_range(struct dt_exchange *x, size_t begin, size_t end)
{
    for (size_t at = begin; at < end; at += DT__TREE_BLOCK) {
        size_t n = end - at < DT__TREE_BLOCK ? end - at : DT__TREE_BLOCK;
        update_block(x, at, n, x->spec.norm ? x->slot[0] + at : tree_block(x, at, n));
    }
}

/* The norm needs all sums first: they stay in replica 0's slot, and its blocks give the norm. */
static void sum_for_norm(struct dt_exchange *x)
{
    size_t begin, end;
    dt__slice(0, x->spec.params, x->worker, x->group_workers, DT__NORM_BLOCK, &begin, &end);
    for (size_t at = begin; at < end; at += DT__TREE_BLOCK) {
        size_t n = end - at < DT__TREE_BLOCK ? end - at : DT__TREE_BLOCK;
        const float *sum = tree_block(x, at, n);
        float *out = x->slot[0] + at;
        for (size_t i = 0; i < n; i++)
            out[i] = sum[i];
    }
    dt__norm_blocks(x, x->slot[0], begin, end);
    dt__gate_post(&x->control->normed, 1);
    dt__gate_wait(&x->control->normed, x->tick * (uint32_t)x->group_workers, x->world, "sums");
    x->info.norm2 = dt__norm_total(x);
}

static void update_slices(struct dt_exchange *x)
{
    if (x->spec.norm) sum_for_norm(x);
    for (int b = 0; b < x->spec.buckets; b++) {
        size_t begin, end;
        dt__slice(dt__bucket_begin(x, b), x->bucket_end[b], x->worker, x->group_workers, 16, &begin,
                  &end);
        update_range(x, begin, end);
        dt__gate_post(&x->control->bucket[b].updated, 1);
    }
}

int dt__share_end(struct dt_exchange *x, int ask)
{
    double start = dt_clock_secs();
    int verdict = meet(x, ask);
    double met = dt_clock_secs();
    if (!(verdict & DT_ASK_ERROR)) update_slices(x);
    x->times.wait += met - start;
    x->times.update += dt_clock_secs() - met;
    return verdict;
}

/* ---- bank ----------------------------------------------------------------------------------- */

int dt__share_serve(struct dt_exchange *x, uint64_t from, dt_ask_fn *ask, void *arg,
                    uint64_t *out_step)
{
    struct dt__control *control = x->control;
    uint32_t all_rest = x->legs * (uint32_t)x->group_workers;
    uint32_t judged = x->tick; /* verdicts before this leg */
    dt_world_beat(x->world, "serving", from);
    dt__watch_wait(x->world, "the workers");
    while (!dt__gate_wait_for(&control->rested, all_rest, BANK_NAP_SECS))
        atomic_store(&control->bank_ask, ask(arg));
    dt__watch_touch(x->world);
    atomic_store(&control->bank_ask, 0);
    x->tick = atomic_load(&control->judged.count);
    int verdict = x->tick == judged ? DT_ASK_NONE : control->verdict[x->tick & 1];
    *out_step = from + (x->tick - judged) - (verdict & DT_ASK_ERROR ? 1 : 0);
    return verdict;
}
