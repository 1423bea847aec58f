/* A step by plain MPI_Reduce and MPI_Bcast: each rank is a node, gives the sum of its replicas, and
 * the bank updates. The MPI library chooses the order of the sum, so bits are the same only for the
 * same number of ranks.
 *
 * Chunk c's weights go down while chunk c + 1's gradients come up: a link that carries both
 * directions at once is busy for bytes / bandwidth a step. Chunks go from the last bucket to the
 * first, each as soon as its bucket is ready, while earlier layers are still in backward. */
#include <string.h>

#include "comm/exchange.h"

struct dt__reduce {
    const float *mine; /* (P) this rank's sums; zeros of one without replicas */
    float *sum;        /* bank: (P) gradient sums; else NULL */
    int up, down;      /* of this step: chunks whose sums, and weights, are or were under way */
};

/* ---- create --------------------------------------------------------------------------------- */

static dt_status reduce_prepare(struct dt_exchange *x, struct dt__layout *layout)
{
    DT_TRY(dt__keep(&x->kept, 1, sizeof *x->reduce, "chunk table", &x->reduce));
    struct dt__reduce *s = x->reduce;
    size_t most = x->spec.params / DT__CHUNK + (size_t)x->spec.buckets;
    DT_TRY(dt__keep(&x->kept, most, sizeof *layout->chunk, "chunk table", &layout->chunk));
    for (int b = x->spec.buckets - 1; b >= 0; b--) {
        const struct dt__floats bucket = layout->bucket[b].at;
        for (size_t at = bucket.begin; at < bucket.end; at += DT__CHUNK, layout->bucket[b].pieces++)
            layout->chunk[layout->chunks++] = (struct dt__chunk){
                .bucket = b, .at = dt__clip((struct dt__floats){at, at + DT__CHUNK}, bucket)};
    }
    if (x->topo->node == 0)
        DT_TRY(dt__keep(&x->kept, x->spec.params, sizeof(float), "gradient sums", &s->sum));
    for (int p = x->topo->subtrees - 1; p >= 0; p--)
        if (x->topo->subtree[p].node == x->topo->node)
            s->mine = x->memory->slot[x->topo->subtree[p].first];
    if (s->mine) return DT_OK;
    return dt__keep(&x->kept, x->spec.params, sizeof(float), "zeros", &s->mine);
}

/* ---- a step --------------------------------------------------------------------------------- */

static void reduce_begin(struct dt_exchange *x)
{
    x->reduce->up = x->reduce->down = 0;
}

/* Sends this rank's gradients up, bucket by bucket, as far as can be done now. At most
 * DT__STREAM_CHUNKS are under way at once. */
static bool advance_up(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    const int before = x->step.started + s->up + x->step.summed;
    for (; x->step.started < x->spec.buckets; x->step.started++) {
        const int b = dt__bucket_at(x, x->step.started);
        if (!dt__event_reached(&x->memory->control->bucket[b].ready, x->step.all_done)) break;
        dt__floats_give(x, x->layout->bucket[b].at);
    }
    for (; s->up < x->layout->chunks && s->up - x->step.summed < DT__STREAM_CHUNKS; s->up++) {
        struct dt__chunk *chunk = &x->layout->chunk[s->up];
        const size_t begin = chunk->at.begin;
        if (chunk->bucket < x->spec.buckets - x->step.started) break;
        DT_MPI(MPI_Ireduce(s->mine + begin, s->sum ? s->sum + begin : NULL,
                           (int)(chunk->at.end - begin), MPI_FLOAT, MPI_SUM, 0, x->firsts.comm,
                           dt__request_add(&x->requests, dt__chunk_left(x, chunk))));
    }
    while (x->step.summed < s->up && !x->step.left[x->step.summed])
        x->step.summed++;
    return x->step.started + s->up + x->step.summed != before;
}

/* The bank, which has all sums: the norm of the gradient. */
static void make_norm(struct dt_exchange *x)
{
    const float *sum = x->reduce->sum;
    dt__norm_blocks(x, x->memory->norms, sum, (struct dt__floats){0, x->spec.params});
    for (int b = 0; b < x->spec.buckets; b++)
        dt__floats_measure(x, x->layout->bucket[b].at, x->reduce->sum, x->memory->vectors);
    dt__norm_tell(x, x->memory->norms);
}

/* The bank updates and sends the chunks that are summed (with the norm: all, once all are summed);
 * the other ranks receive them. Sums and weights have a communicator each, for an order of calls of
 * their own. The bank does not wait for the agreement on what ranks ask for, whose message is
 * queued behind megabytes of gradients: a step that turns out to have failed ends the run, and its
 * weights are never saved. */
static bool advance_down(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    const int before = s->down + x->step.taken;
    int may = x->step.summed;
    if (s->sum && x->spec.norm.needed && x->step.summed < x->layout->chunks) may = 0;
    if (s->sum && x->spec.norm.needed && may && !s->down) make_norm(x);
    for (; s->down < may && s->down - x->step.taken < DT__STREAM_CHUNKS; s->down++) {
        struct dt__chunk *chunk = &x->layout->chunk[s->down];
        const size_t begin = chunk->at.begin, n = chunk->at.end - begin;
        float *weights = x->memory->vectors[0] + begin;
        if (s->sum)
            x->spec.update(x->spec.arg, &x->step.info, begin, n, s->sum + begin, x->memory->vectors,
                           weights);
        DT_MPI(MPI_Ibcast(weights, (int)n, MPI_FLOAT, 0, x->all.comm,
                          dt__request_add(&x->requests, dt__chunk_left(x, chunk))));
    }
    for (; x->step.taken < s->down && !x->step.left[x->step.taken]; x->step.taken++)
        dt__event_post(&x->memory->control->bucket[x->layout->chunk[x->step.taken].bucket].updated,
                       1);
    return s->down + x->step.taken != before;
}

static bool reduce_advance(struct dt_exchange *x)
{
    const bool moved = advance_up(x);
    return advance_down(x) || moved;
}

static bool reduce_done(const struct dt_exchange *x)
{
    return x->step.taken == x->layout->chunks;
}

static bool reduce_applies(const struct dt_exchange *x)
{
    return x->exchange == DT_EXCHANGE_REDUCE;
}

const struct dt__backend dt__reduce_backend = {
    .applies = reduce_applies,
    .prepare = reduce_prepare,
    .begin = reduce_begin,
    .ready = dt__bucket_ready,
    .advance = reduce_advance,
    .done = reduce_done,
    .end = dt__step_end,
};
