/* The life of a step at an agent: what its node's replicas give goes to the owners, sums are
 * updated as they become whole, and new weights go to all nodes.
 *
 * A bucket begins when all workers of the node have its gradients written and read its weights no
 * more, while they still compute the gradients of earlier layers; where one node holds all, when
 * all have ended the step. Each owner updates its chunks in their order, which is the same at every
 * node: so messages between two ranks have an order, too, and need no numbers.
 *
 * The owner does not wait for the agreement on what ranks ask for before it updates, where there
 * are messages: a step that turns out to have failed ends the run, and its weights are never
 * saved. */
#include <string.h>

#include "comm/exchange.h"

static dt_status owners_prepare(struct dt_exchange *x, struct dt__layout *layout)
{
    DT_TRY(dt__layout_chunks(x, layout));
    if (x->topo->agent < 0) return DT_OK;
    DT_TRY(dt__keep(&x->kept, x->layout->byte_count, 1, "sums and updates", &x->bytes));
    for (int v = 1; v < x->spec.vectors && x->topo->node > 0; v++)
        DT_TRY(dt__keep(&x->kept, x->layout->own, sizeof(float), "optimizer state", &x->state[v]));
    for (int g = 0; g < x->spec.wire.groups && x->spec.wire.kind && x->topo->node > 0; g++) {
        const int node = x->topo->group[g].node;
        if (node >= 0 && node != x->topo->node) continue;
        DT_TRY(dt__keep(&x->kept, node < 0 ? x->layout->own : x->layout->acted, sizeof(float),
                        "rounding errors", &x->error[g]));
    }
    return x->dealt ? dt__rows_exchange_create(x) : DT_OK;
}

/* ---- messages of a chunk -------------------------------------------------------------------- */

/* The sums of its replicas' subtrees, from a node to the owner: this node's to another one, or an
 * own chunk's from all other nodes. */
static void move_sums(struct dt_exchange *x, struct dt__chunk *chunk)
{
    const bool own = chunk->node == x->topo->node;
    for (int s = 0; s < x->topo->subtrees; s++) {
        const struct dt__subtree *subtree = &x->topo->subtree[s];
        if (own == (subtree->node == x->topo->node)) continue;
        const int rank = dt__chunk_rank(x, chunk, own ? subtree->node : chunk->node);
        dt__message_begin(&x->requests, own ? dt__chunk_left(x, chunk) : &x->step.sends,
                          dt__sum_at(x, chunk, s), dt__sum_bytes(chunk, subtree->whole),
                          (struct dt__envelope){!own, rank, DT__TAG_SUMS});
    }
}

/* Its new weights, or, with a rounded wire, the update of them: an own chunk's to a node, else from
 * its owner. */
static void move_weights(struct dt_exchange *x, struct dt__chunk *chunk, int node)
{
    const bool own = chunk->node == x->topo->node;
    const void *weights = x->memory->vectors[0] + chunk->at.begin;
    if (chunk->wire) weights = x->bytes + chunk->update;
    dt__message_begin(&x->requests, own ? &x->step.sends : dt__chunk_left(x, chunk), weights,
                      chunk->bytes,
                      (struct dt__envelope){own, dt__chunk_rank(x, chunk, node), DT__TAG_WEIGHTS});
}

/* ---- a step --------------------------------------------------------------------------------- */

/* Sums that other nodes send are asked for from the first: they come to where nobody else reads. */
static void owners_begin(struct dt_exchange *x)
{
    if (x->rows_exchange) dt__rows_begin(x, true);
    for (int c = 0; c < x->layout->chunks; c++) {
        struct dt__chunk *chunk = &x->layout->chunk[c];
        *dt__chunk_left(x, chunk) = 1; /* this node's replicas */
        if (chunk->agent == x->topo->agent && chunk->node == x->topo->node) move_sums(x, chunk);
    }
}

/* Updates an own chunk, and sends what comes of it. */
static void update_chunk(struct dt_exchange *x, struct dt__chunk *chunk)
{
    const double start = dt__clock_secs();
    if (chunk->is_tiled) return;
    dt__chunk_update(x, chunk);
    x->step.times.update += dt__clock_secs() - start;
    dt__event_post(&x->memory->control->bucket[chunk->bucket].updated, 1);
    for (int i = 1; i < x->topo->nodes; i++)
        move_weights(x, chunk, (x->topo->node + i) % x->topo->nodes);
}

/* Own chunks of which all sums are there are updated, or, with the norm, summed. */
static bool advance_sums(struct dt_exchange *x)
{
    const int before = x->step.summed;
    for (; x->step.summed < x->layout->chunks; x->step.summed++) {
        struct dt__chunk *chunk = &x->layout->chunk[x->step.summed];
        const double start = dt__clock_secs();
        if (chunk->agent != x->topo->agent || chunk->node != x->topo->node) continue;
        if (*dt__chunk_left(x, chunk)) break;
        if (!x->spec.norm.needed) {
            update_chunk(x, chunk);
            continue;
        }
        dt__chunk_sum(x, chunk);
        x->step.times.reduce += dt__clock_secs() - start;
    }
    return x->step.summed != before;
}

/* Other nodes' chunks whose new weights have come. */
static bool advance_weights(struct dt_exchange *x)
{
    const int before = x->step.taken;
    for (; x->step.taken < x->layout->chunks; x->step.taken++) {
        const struct dt__chunk *chunk = &x->layout->chunk[x->step.taken];
        if (chunk->agent != x->topo->agent || chunk->node == x->topo->node) continue;
        if (*dt__chunk_left(x, chunk)) break;
        if (chunk->wire)
            dt__wire_add(chunk->wire, chunk->at.begin, chunk->at.end - chunk->at.begin,
                         x->bytes + chunk->update, x->memory->vectors[0] + chunk->at.begin);
        dt__event_post(&x->memory->control->bucket[chunk->bucket].updated, 1);
    }
    return x->step.taken != before;
}

/* The node's gradients of the bucket are there. New weights may come in from now on: not before,
 * for a node without replicas gives no sum that the owner would wait for, while its workers may
 * still read the old ones. */
static void start_bucket(struct dt_exchange *x, int b)
{
    const struct dt__bucket *bucket = &x->layout->bucket[b];
    for (int c = bucket->chunk; c < bucket->chunk_end; c++) {
        struct dt__chunk *chunk = &x->layout->chunk[c];
        const double start = dt__clock_secs();
        if (chunk->agent != x->topo->agent) continue;
        --*dt__chunk_left(x, chunk);
        if (chunk->node == x->topo->node) continue;
        /* The sum is sent from the slot of a replica that may be another worker's. That worker
         * writes it again only behind its next forward, which waits for the weights of all
         * chunks: these come once the owner has the sum. */
        dt__chunk_give(x, chunk);
        x->step.times.reduce += dt__clock_secs() - start;
        move_sums(x, chunk);
        move_weights(x, chunk, chunk->node);
    }
    advance_sums(x);
}

static bool advance_buckets(struct dt_exchange *x)
{
    const int before = x->step.started;
    for (; x->step.started < x->spec.buckets; x->step.started++) {
        const int b = dt__bucket_at(x, x->step.started);
        if (!dt__event_reached(&x->memory->control->bucket[b].ready, x->step.all_done)) break;
        start_bucket(x, b);
    }
    return x->step.started != before;
}

/* Each agent has the blocks of its slice as soon as their sums are there; the first agents bring
 * those of all nodes together. */
static bool advance_norm(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    const uint32_t all = x->step.tick * (uint32_t)x->topo->agents;
    const bool brings = x->topo->agent == 0;
    if (x->step.norm == DT__NORM_OPEN) {
        if (x->step.started < x->spec.buckets || x->step.summed < x->layout->chunks) return false;
        if (x->rows_exchange && !dt__rows_summed(x)) return false;
        dt__norm_blocks(x, x->memory->norms, x->memory->sums, dt__norm_slice(x));
        x->step.norm = DT__NORM_POSTED;
        dt__event_post(&control->normed, 1);
    }
    if (x->step.norm == DT__NORM_POSTED && brings && dt__event_reached(&control->normed, all)) {
        x->step.norm = DT__NORM_SENT;
        DT_MPI(MPI_Iallreduce(x->memory->norms, x->memory->all_norms, (int)x->memory->norm_count,
                              MPI_DOUBLE, MPI_SUM, x->firsts.comm,
                              dt__request_add(&x->requests, &x->step.norm_left)));
        return true;
    }
    if (x->step.norm == DT__NORM_SENT && !x->step.norm_left)
        dt__event_post(&control->norm_known, 1);
    if (x->step.norm == DT__NORM_KNOWN || !dt__event_reached(&control->norm_known, x->step.tick))
        return false;
    x->step.norm = DT__NORM_KNOWN;
    dt__norm_tell(x, x->memory->all_norms);
    for (int i = 0; i < x->spec.buckets; i++) {
        const struct dt__bucket *bucket = &x->layout->bucket[dt__bucket_at(x, i)];
        for (int c = bucket->chunk; c < bucket->chunk_end; c++)
            if (x->layout->chunk[c].node == x->topo->node &&
                x->layout->chunk[c].agent == x->topo->agent)
                update_chunk(x, &x->layout->chunk[c]);
    }
    return true;
}

static bool owners_advance(struct dt_exchange *x)
{
    bool moved = advance_buckets(x);
    moved |= advance_sums(x);
    moved |= advance_weights(x);
    if (x->rows_exchange) moved |= dt__rows_advance(x);
    return advance_norm(x) || moved;
}

static bool owners_done(const struct dt_exchange *x)
{
    return x->step.started == x->spec.buckets && x->step.summed == x->layout->chunks &&
           x->step.taken == x->layout->chunks && !x->step.sends && x->step.norm == DT__NORM_KNOWN &&
           (!x->rows_exchange || dt__rows_done(x));
}

/* ---- what reduce.c shares ------------------------------------------------------------------- */

void dt__bucket_ready(struct dt_exchange *x, int bucket)
{
    dt__event_post(&x->memory->control->bucket[bucket].ready, 1);
    dt__exchange_advance(x);
}

int dt__step_finish(struct dt_exchange *x)
{
    dt__exchange_finish(x, &x->step.open, "the other hosts");
    if (x->rows_exchange) dt__rows_end(x);
    const int asked = x->memory->control->agreed_ask[x->step.tick & 1];
    x->step.steps += !(asked & DT_ASK_VOID);
    return asked;
}

int dt__step_end(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    if (x->rows_exchange) dt__event_post(&control->listed, 1);
    dt__event_post(&control->ended, 1);
    return dt__step_finish(x);
}

static bool owners_apply(const struct dt_exchange *x)
{
    return x->exchange != DT_EXCHANGE_REDUCE;
}

const struct dt__backend dt__owners_backend = {
    .applies = owners_apply,
    .prepare = owners_prepare,
    .begin = owners_begin,
    .ready = dt__bucket_ready,
    .advance = owners_advance,
    .done = owners_done,
    .end = dt__step_end,
};
