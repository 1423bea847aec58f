/* A step by plain MPI_Reduce and MPI_Bcast: each rank alone gives one sum, the bank updates. The
 * library chooses the order of the sum: same bits at the same number of ranks.
 *
 * Chunk c's weights go down while chunk c + 1's gradients come up, so that a link that carries both
 * directions at once is busy for bytes / bandwidth a step. Chunks go from the last bucket to the
 * first, and up as soon as their bucket is ready, while earlier layers are still in backward. */
#include <string.h>

#include "comm/exchange.h"

struct chunk {
    int bucket;
    struct dt__floats at;
};

struct dt__reduce {
    struct chunk *chunk;
    int chunks;
    MPI_Comm up, down;
    const float *mine; /* this rank's sums, (P) */
    float *sum;        /* bank: (P) gradient sums; else NULL */
    float *zeros;      /* (P) what a rank without replicas gives; else NULL */
    MPI_Request up_request[DT__STREAM_CHUNKS], down_request[DT__STREAM_CHUNKS];

    /* The step under way, counted in chunks, in order. */
    int posted, up_done; /* sums on their way up; arrived at the bank */
    int sent, down_done; /* weights on their way down; arrived here */
    MPI_Request ask_request;
    int ask; /* what all ranks ask for, once agreed */
    bool ask_posted;
};

/* ---- create --------------------------------------------------------------------------------- */

static dt_status reduce_prepare(struct dt_exchange *x)
{
    DT_TRY(dt_alloc(1, sizeof *x->reduce, "chunk table", &x->reduce));
    struct dt__reduce *s = x->reduce;
    s->up = s->down = MPI_COMM_NULL;
    size_t most = x->spec.params / DT__CHUNK + (size_t)x->spec.buckets;
    DT_TRY(dt_alloc(most, sizeof *s->chunk, "chunk table", &s->chunk));
    for (int b = x->spec.buckets - 1; b >= 0; b--) {
        const struct dt__floats bucket = x->bucket[b].at;
        const int before = s->chunks;
        for (size_t at = bucket.begin; at < bucket.end; at += DT__CHUNK)
            s->chunk[s->chunks++] =
                (struct chunk){b, dt__clip((struct dt__floats){at, at + DT__CHUNK}, bucket)};
        x->bucket[b].pieces = (uint32_t)(s->chunks - before);
    }
    if (x->node == 0) DT_TRY(dt_alloc(x->spec.params, sizeof(float), "gradient sums", &s->sum));
    for (int p = x->subtrees - 1; p >= 0; p--)
        if (x->subtree[p].node == x->node) s->mine = x->slot[x->subtree[p].first];
    if (s->mine) return DT_OK;
    DT_TRY(dt_alloc(x->spec.params, sizeof(float), "zeros", &s->zeros));
    s->mine = s->zeros;
    return DT_OK;
}

static void reduce_connect(struct dt_exchange *x)
{
    DT_MPI(MPI_Comm_dup(x->firsts.comm, &x->reduce->up));
    DT_MPI(MPI_Comm_dup(x->firsts.comm, &x->reduce->down));
}

static void reduce_destroy(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    if (!s) return;
    if (s->up != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&s->up));
    if (s->down != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&s->down));
    dt_free(s->chunk);
    dt_free(s->sum);
    dt_free(s->zeros);
    dt_free(s);
}

/* ---- a step --------------------------------------------------------------------------------- */

static void reduce_begin(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    s->posted = s->up_done = s->sent = s->down_done = 0;
    s->ask_posted = false;
}

static bool advance_buckets(struct dt_exchange *x)
{
    const int before = x->started;
    for (; x->started < x->spec.buckets; x->started++) {
        const int b = x->spec.buckets - 1 - x->started;
        if (!dt__event_reached(&x->control->bucket[b].ready, x->all_done)) break;
        dt__floats_give(x, x->bucket[b].at);
    }
    return x->started != before;
}

/* With the norm the bank needs all sums before the first update. */
static bool advance_up(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    int before = s->posted + s->up_done;
    for (; s->posted < s->chunks && s->posted - s->up_done < DT__STREAM_CHUNKS; s->posted++) {
        struct chunk chunk = s->chunk[s->posted];
        if (chunk.bucket < x->spec.buckets - x->started) break;
        DT_MPI(MPI_Ireduce(s->mine + chunk.at.begin, s->sum ? s->sum + chunk.at.begin : NULL,
                           (int)(chunk.at.end - chunk.at.begin), MPI_FLOAT, MPI_SUM, 0, s->up,
                           &s->up_request[s->posted % DT__STREAM_CHUNKS]));
    }
    while (s->up_done < s->posted) {
        int done;
        DT_MPI(MPI_Test(&s->up_request[s->up_done % DT__STREAM_CHUNKS], &done, MPI_STATUS_IGNORE));
        if (!done) break;
        if (++s->up_done < s->chunks || !s->sum || !x->spec.norm) continue;
        dt__norm_blocks(x, x->norms, s->sum, (struct dt__floats){0, x->spec.params});
        x->info.norm2 = dt__norm_total(x, x->norms);
        for (int b = 0; b < x->spec.buckets; b++)
            dt__floats_measure(x, x->bucket[b].at, s->sum, x->vectors);
        x->info.measures = x->spec.measure ? x->norms + x->norm_blocks : NULL;
    }
    return s->posted + s->up_done != before;
}

/* What this rank asks for goes to all once it has ended the step. */
static bool advance_ask(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    int done = 0;
    if (!s->ask_posted && dt__event_reached(&x->control->ended, x->all_done)) {
        s->ask = dt__node_asks(x);
        DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, &s->ask, 1, MPI_INT, MPI_BOR, x->firsts.comm,
                              &s->ask_request));
        s->ask_posted = true;
    }
    if (!s->ask_posted || dt__event_reached(&x->control->agreed, x->tick)) return false;
    DT_MPI(MPI_Test(&s->ask_request, &done, MPI_STATUS_IGNORE));
    if (done) dt__all_ask(x, s->ask);
    return done;
}

/* The bank sends what is summed (with the norm: all or nothing); the others await all. It does not
 * wait for the agreement, whose message stands behind megabytes of gradients in the connection: a
 * step that turns out to have failed ends the run, and its weights are never saved. */
static bool advance_down(struct dt_exchange *x)
{
    struct dt__reduce *s = x->reduce;
    int before = s->sent + s->down_done, may = s->sum ? s->up_done : s->chunks;
    if (s->sum && x->spec.norm && s->up_done < s->chunks) may = 0;
    for (; s->sent < may && s->sent - s->down_done < DT__STREAM_CHUNKS; s->sent++) {
        const size_t begin = s->chunk[s->sent].at.begin, n = s->chunk[s->sent].at.end - begin;
        float *weights = x->vectors[0] + begin;
        if (s->sum)
            x->spec.update(x->spec.arg, &x->info, begin, n, s->sum + begin, x->vectors, weights);
        DT_MPI(MPI_Ibcast(weights, (int)n, MPI_FLOAT, 0, s->down,
                          &s->down_request[s->sent % DT__STREAM_CHUNKS]));
    }
    for (; s->down_done < s->sent; s->down_done++) {
        int done;
        DT_MPI(
            MPI_Test(&s->down_request[s->down_done % DT__STREAM_CHUNKS], &done, MPI_STATUS_IGNORE));
        if (!done) break;
        dt__event_post(&x->control->bucket[s->chunk[s->down_done].bucket].updated, 1);
    }
    return s->sent + s->down_done != before;
}

static bool reduce_advance(struct dt_exchange *x)
{
    bool moved = advance_buckets(x);
    moved |= advance_up(x);
    moved |= advance_ask(x);
    return advance_down(x) || moved;
}

static bool reduce_done(const struct dt_exchange *x)
{
    const struct dt__reduce *s = x->reduce;
    return s->up_done == s->chunks && s->down_done == s->chunks;
}

const struct dt__way dt__way_reduce = {
    .prepare = reduce_prepare,
    .connect = reduce_connect,
    .destroy = reduce_destroy,
    .begin = reduce_begin,
    .advance = reduce_advance,
    .done = reduce_done,
};
