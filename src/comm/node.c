/* The exchange on one host. All ranks share memory: each replica's gradient is in its slot, and
 * there is one copy of the weights.
 *
 *   each worker   gradients ... `ended` | `agreed` | sum and update own chunks | next forward pass
 *
 * Sums start when all workers have ended the step, because the sum of a slice needs every slot.
 * Then each worker sums and updates its own chunks, rows and tiles in one pass over memory. Those
 * of the first layer come first, because the next forward pass needs them first. A waiting worker
 * sleeps on an event count. Costs per step: no message; each worker counts one event when its
 * gradients are written, and one for each bucket that it has updated. */
#include "comm/exchange.h"

static bool node_applies(const struct dt_exchange *x)
{
    return x->topo->nodes == 1;
}

/* Agrees on what ranks ask for. The last worker to end the step collects what the others and the
 * bank have asked for by then; if that is anything, the span ends after this step. Returns what all
 * ranks ask for. */
static int node_agree(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    const bool last = dt__event_post(&control->ended, 1) == x->step->all_done;
    if (last) dt__asks_publish(x, dt__asks_of_node(x));
    dt__exchange_wait(x, &control->agreed, x->step->tick, "the other workers' gradients");
    return control->agreed_asks[x->step->tick & 1];
}

/* Sums this agent's chunks, computes its blocks of the norm, and waits until the norm of all blocks
 * is known. */
static void node_norm(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    const uint32_t all = x->step->tick * (uint32_t)x->topo->agents;
    for (int c = 0; c < x->layout->chunks; c++)
        if (x->layout->chunk[c].agent == x->topo->agent) dt__norm_sum(x, &x->layout->chunk[c]);
    dt__norm_blocks(x, x->memory->sums, dt__norm_slice(x));
    if (dt__event_post(&control->normed, 1) == all) dt__event_post(&control->norm_known, 1);
    dt__exchange_wait(x, &control->norm_known, x->step->tick, "sums");
    dt__norm_publish(x, x->memory->norms);
}

static int node_end(struct dt_exchange *x)
{
    const int asked = node_agree(x);
    if (asked & DT_ASK_VOID) return asked;
    if (x->memory->sums) node_norm(x);
    const double start = dt__clock_secs();
    for (int b = 0; b < x->spec.buckets; b++) {
        uint32_t updated = 0;
        for (int s = x->layout->bucket[b].range; s < x->layout->bucket[b + 1].range; s++)
            updated += x->layout->range[s].kind->update(x, &x->layout->range[s]);
        if (updated) dt__event_post(&x->memory->control->bucket[b].updated, updated);
    }
    x->spec.times->update += dt__clock_secs() - start;
    return dt__step_close(x);
}

static const struct dt__kind *const KINDS[] = {&dt__whole_kind, &dt__touched_kind, &dt__tiles_kind,
                                               &dt__summed_tiles_kind, NULL};
const struct dt__backend dt__node_backend = {
    .kinds = KINDS,
    .applies = node_applies,
    .prepare = dt__layout_chunks,
    .end = node_end,
};
