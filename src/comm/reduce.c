/* A step by plain MPI_Reduce and MPI_Bcast: each rank is a node and contributes the sum of its
 * replicas, and the bank updates. The MPI library chooses the order of the sum, so bits are equal
 * only for equal numbers of ranks.
 *
 * The weights of chunk c go down while the gradients of chunk c + 1 come up, so a link that carries
 * both directions at once is busy for bytes / bandwidth a step. Chunks go from the last bucket to
 * the first, each as soon as its bucket is ready, while earlier layers are still in their backward
 * pass. */
#include <string.h>

#include "comm/exchange.h"

struct dt__reduce {
    const float *mine; /* (P) this rank's sums; zeros without replicas */
    float *sum;        /* on the bank: (P) sums of gradients; else NULL */
    int least;         /* number of sums needed before the first update: with the norm, all of
                        * them */
    int *left;         /* (chunks) 1: the chunk's sum or weights are in flight */
    int started;       /* buckets whose sums this rank has contributed */
    /* Numbers of chunks of this step: sums started up, sums arrived, weights started down, weights
     * arrived. */
    int up, summed, down, taken;
};

/* ---- create --------------------------------------------------------------------------------- */

static dt_status reduce_prepare(struct dt_exchange *x, struct dt__layout *layout)
{
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "chunk table", DT__TABLE(x->reduce, 1)));
    struct dt__reduce *s = x->reduce;
    size_t most = x->spec.params / DT__CHUNK + (size_t)x->spec.buckets;
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "chunk table", DT__TABLE(layout->chunk, most),
                           DT__TABLE(s->left, most)));
    for (int b = x->spec.buckets - 1; b >= 0; b--) {
        const struct dt__floats bucket = layout->bucket[b].at;
        for (size_t at = bucket.begin; at < bucket.end;
             at += DT__CHUNK, layout->bucket[b].increment++)
            layout->chunk[layout->chunks++] = (struct dt__chunk){
                .bucket = b, .at = dt__clip((struct dt__floats){at, at + DT__CHUNK}, bucket)};
    }
    s->started = x->spec.buckets; /* no step has started */
    s->up = s->summed = s->down = s->taken = layout->chunks;
    s->least = x->spec.norm.needed && x->topo->node == 0 ? layout->chunks : 0;
    for (int p = x->topo->partials - 1; p >= 0; p--)
        if (x->topo->partial[p].node == x->topo->node)
            s->mine = x->memory->slot[x->topo->partial[p].first];
    if (x->topo->node == 0 && !s->mine) s->sum = x->memory->sums;
    if (x->topo->node == 0 && !s->sum)
        DT_TRY(DT__ARENA_ALLOC(&x->arena, "gradient sums", DT__TABLE(s->sum, x->spec.params)));
    if (s->mine) return DT_OK;
    return DT__ARENA_ALLOC(&x->arena, "zeros", DT__TABLE(s->mine, x->spec.params));
}

/* ---- a step --------------------------------------------------------------------------------- */

static void reduce_begin(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    s->started = s->up = s->summed = s->down = s->taken = 0;
}

/* Sends this rank's gradients up, bucket by bucket, as far as is possible now. At most
 * DT__STREAM_CHUNKS chunks are in flight. */
static bool advance_up(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    const int before = s->started + s->up + s->summed;
    for (; s->started < x->spec.buckets; s->started++) {
        const int b = dt__bucket_at(x, s->started);
        if (!dt__event_reached(&x->memory->control->bucket[b].ready, x->step->all_done)) break;
        dt__floats_give(x, x->layout->bucket[b].at);
    }
    for (; s->up < x->layout->chunks && s->up - s->summed < DT__STREAM_CHUNKS; s->up++) {
        const struct dt__chunk *chunk = &x->layout->chunk[s->up];
        const size_t begin = chunk->at.begin;
        if (chunk->bucket < x->spec.buckets - s->started) break;
        DT_MPI(MPI_Ireduce(s->mine + begin, s->sum ? s->sum + begin : NULL,
                           (int)(chunk->at.end - begin), MPI_FLOAT, MPI_SUM, 0, x->firsts.comm,
                           dt__request_add(&x->requests, &s->left[s->up])));
    }
    while (s->summed < s->up && !s->left[s->summed])
        s->summed++;
    return s->started + s->up + s->summed != before;
}

/* Computes the norm of the gradient. Only for the bank, which has all sums. */
static void make_norm(struct dt_exchange *x)
{
    dt__norm_blocks(x, x->reduce->sum, (struct dt__floats){0, x->spec.params});
    for (int b = 0; b < x->spec.buckets; b++)
        dt__floats_measure(x, x->layout->bucket[b].at, x->reduce->sum, x->memory->vectors);
    dt__norm_publish(x, x->memory->norms);
}

/* Updates the chunks that are summed (with the norm: all, once all are summed) and sends their
 * weights, on the bank; receives the weights on other ranks. Sums and weights have separate
 * communicators, so their calls need no common order. The bank does not wait for the agreement on
 * what ranks ask for, whose message is queued after megabytes of gradients: if the step turns out
 * to have failed, the run ends, and its weights are never saved. */
static bool advance_down(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    const int before = s->down + s->taken;
    const int may = s->summed < s->least ? 0 : s->summed;
    if (s->least && may && !s->down) make_norm(x);
    for (; s->down < may && s->down - s->taken < DT__STREAM_CHUNKS; s->down++) {
        const struct dt__chunk *chunk = &x->layout->chunk[s->down];
        const size_t begin = chunk->at.begin, n = chunk->at.end - begin;
        float *weights = x->memory->vectors[0] + begin;
        if (s->sum)
            x->spec.update(x->spec.arg, &x->step->info, begin, n, s->sum + begin,
                           x->memory->vectors, weights);
        DT_MPI(MPI_Ibcast(weights, (int)n, MPI_FLOAT, 0, x->all.comm,
                          dt__request_add(&x->requests, &s->left[s->down])));
    }
    for (; s->taken < s->down && !s->left[s->taken]; s->taken++)
        dt__event_post(&x->memory->control->bucket[x->layout->chunk[s->taken].bucket].updated, 1);
    return s->down + s->taken != before;
}

static bool reduce_advance(struct dt_exchange *x)
{
    const bool moved = advance_up(x);
    return advance_down(x) || moved;
}

static bool reduce_done(const struct dt_exchange *x)
{
    return x->reduce->taken == x->layout->chunks;
}

static bool reduce_applies(const struct dt_exchange *x)
{
    return x->spec.kind == DT_EXCHANGE_REDUCE && x->topo->nodes > 1;
}

static const struct dt__kind *const KINDS[] = {&dt__whole_kind, NULL};
const struct dt__backend dt__reduce_backend = {
    .kinds = KINDS,
    .applies = reduce_applies,
    .prepare = reduce_prepare,
    .begin = reduce_begin,
    .advance = reduce_advance,
    .done = reduce_done,
    .end = dt__step_end,
};
