/* The exchange on one host, from top to bottom. All ranks share memory: each replica's gradient is
 * in its slot, and the weights are in one place.
 *
 *   worker 0, 1, 2   gradients ... ended | agreed | sum, update own chunks | next forward reads
 *
 * Nothing is done before all workers have ended the step: a slice's sum needs every slot. Then each
 * worker sums and updates its own chunks in one pass over memory, the first layer's first, because
 * the next forward needs these first. A waiting worker sleeps at an event count. Costs: no message;
 * two events a worker, one a chunk. */
#include "comm/exchange.h"

static bool node_applies(const struct dt_exchange *x)
{
    return x->topo->nodes == 1;
}

static dt_status node_prepare(struct dt_exchange *x, struct dt__layout *layout)
{
    return dt__layout_chunks(x, layout);
}

static void node_begin(struct dt_exchange *x)
{
    (void)x; /* weights are read, and slots written, in place */
}

static void node_ready(struct dt_exchange *x, int bucket)
{
    (void)x, (void)bucket; /* sums wait for the end of the step */
}

/* The last worker to end the step speaks for all: what was asked by then ends the span after this
 * step. Returns what all ask for. */
static int node_agree(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    const bool last = dt__event_post(&control->ended, 1) == x->step.all_done;
    if (last) dt__asks_publish(x, dt__asks_of_node(x));
    dt__exchange_wait(x, &control->agreed, x->step.tick, "the other workers' gradients");
    return control->agreed_ask[x->step.tick & 1];
}

/* Sums this agent's chunks, and the squares of its blocks; returns once the norm is known. */
static void node_norm(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    const uint32_t all = x->step.tick * (uint32_t)x->topo->agents;
    const double start = dt__clock_secs();
    for (int c = 0; c < x->layout->chunks; c++)
        if (x->layout->chunk[c].agent == x->topo->agent) dt__chunk_sum(x, &x->layout->chunk[c]);
    dt__norm_blocks(x, x->memory->norms, x->memory->sums, dt__norm_slice(x));
    x->step.times.reduce += dt__clock_secs() - start;
    if (dt__event_post(&control->normed, 1) == all) dt__event_post(&control->norm_known, 1);
    dt__exchange_wait(x, &control->norm_known, x->step.tick, "sums");
    dt__norm_tell(x, x->memory->all_norms);
}

static void node_update(struct dt_exchange *x, int bucket)
{
    const struct dt__bucket *of = &x->layout->bucket[bucket];
    for (int c = of->chunk; c < of->chunk_end; c++) {
        const struct dt__chunk *chunk = &x->layout->chunk[c];
        if (chunk->agent != x->topo->agent || chunk->is_tiled) continue;
        dt__chunk_update(x, chunk);
        dt__event_post(&x->memory->control->bucket[bucket].updated, 1);
    }
    dt__shares_update(x, bucket);
}

static int node_end(struct dt_exchange *x)
{
    const int asked = node_agree(x);
    if (asked & DT_ASK_VOID) return asked;
    if (x->spec.norm.needed) node_norm(x);
    const double start = dt__clock_secs();
    for (int b = 0; b < x->spec.buckets; b++)
        node_update(x, b);
    x->step.times.update += dt__clock_secs() - start;
    x->step.steps++;
    return asked;
}

const struct dt__backend dt__node_backend = {
    .applies = node_applies,
    .prepare = node_prepare,
    .begin = node_begin,
    .ready = node_ready,
    .end = node_end,
};
