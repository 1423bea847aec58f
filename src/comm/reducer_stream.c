/* Several groups, through the bank: leaders stream chunks of their groups' sums up by MPI_Ireduce,
 * the bank updates, and new weights come down by MPI_Ibcast. The library chooses the order of the
 * sum: same bits at the same number of ranks.
 *
 * Chunk c's weights go down while chunk c + 1's gradients come up, so that a link that carries both
 * directions at once is busy for bytes / bandwidth a step. Chunks go from the last bucket to the
 * first, and up as soon as their bucket is summed, while workers still compute the gradients of
 * earlier layers. */
#include <string.h>

#include "base/limits.h"
#include "comm/reducer.h"

/* A piece of a bucket that travels as one message. */
struct chunk {
    int bucket;
    struct dt__floats at;
};

struct dt__stream {
    struct chunk *chunk;
    int chunks;
    MPI_Comm up, down;
    const float *mine; /* this group's sums, (P) */
    float *sum;        /* bank: (P) gradient sums; else NULL */
    float *zeros;      /* (P) what a group without replicas gives; else NULL */
    MPI_Request up_request[DT__STREAM_CHUNKS], down_request[DT__STREAM_CHUNKS];

    /* The step under way, counted in chunks, in order. */
    int posted, up_done; /* sums on their way up; arrived at the bank */
    int sent, down_done; /* weights on their way down; arrived here */
    MPI_Request ask_request;
    int ask; /* what all ranks ask for, once agreed */
    bool ask_posted;
};

/* ---- create --------------------------------------------------------------------------------- */

static dt_status stream_prepare(struct dt_reducer *x)
{
    DT_TRY(dt_alloc(1, sizeof *x->stream, "stream", &x->stream));
    struct dt__stream *s = x->stream;
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
    if (x->group_rank > 0) return DT_OK;
    if (x->group_index == 0)
        DT_TRY(dt_alloc(x->spec.params, sizeof(float), "gradient sums", &s->sum));
    for (int p = x->parts - 1; p >= 0; p--)
        if (x->part[p].group == x->group_index) s->mine = x->slot[x->part[p].first];
    if (s->mine) return DT_OK;
    DT_TRY(dt_alloc(x->spec.params, sizeof(float), "zeros", &s->zeros));
    s->mine = s->zeros;
    return DT_OK;
}

static void stream_connect(struct dt_reducer *x)
{
    DT_MPI(MPI_Comm_dup(x->leaders.comm, &x->stream->up));
    DT_MPI(MPI_Comm_dup(x->leaders.comm, &x->stream->down));
}

static void stream_destroy(struct dt_reducer *x)
{
    struct dt__stream *s = x->stream;
    if (!s) return;
    if (s->up != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&s->up));
    if (s->down != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&s->down));
    dt_free(s->chunk);
    dt_free(s->sum);
    dt_free(s->zeros);
    dt_free(s);
}

/* ---- a step --------------------------------------------------------------------------------- */

static void stream_begin(struct dt_reducer *x)
{
    struct dt__stream *s = x->stream;
    s->posted = s->up_done = s->sent = s->down_done = 0;
    s->ask_posted = false;
}

/* With the norm the bank needs all sums before the first update. */
static bool advance_up(struct dt_reducer *x)
{
    struct dt__stream *s = x->stream;
    int before = s->posted + s->up_done;
    for (; s->posted < s->chunks && s->posted - s->up_done < DT__STREAM_CHUNKS; s->posted++) {
        struct chunk chunk = s->chunk[s->posted];
        if (!dt__event_reached(&x->control->bucket[chunk.bucket].summed, x->group_done)) break;
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
    }
    return s->posted + s->up_done != before;
}

/* What the group asks for goes to all leaders once its workers have ended the step. */
static bool advance_ask(struct dt_reducer *x)
{
    struct dt__stream *s = x->stream;
    int done = 0;
    if (!s->ask_posted && dt__event_reached(&x->control->ended, x->group_done)) {
        s->ask = x->bank_ask | atomic_exchange(&x->control->asks[x->tick & 1], 0);
        DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, &s->ask, 1, MPI_INT, MPI_BOR, x->leaders.comm,
                              &s->ask_request));
        s->ask_posted = true;
    }
    if (!s->ask_posted || x->agreed) return false;
    DT_MPI(MPI_Test(&s->ask_request, &done, MPI_STATUS_IGNORE));
    if (!done) return false;
    dt__group_agreed(x, s->ask);
    return true;
}

/* The bank sends what is summed (with the norm: all or nothing); the others await all. It does not
 * wait for the agreement, whose message stands behind megabytes of gradients in the connection: a
 * step that turns out to have failed ends the run, and its weights are never saved. */
static bool advance_down(struct dt_reducer *x)
{
    struct dt__stream *s = x->stream;
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

static bool stream_done(const struct dt_reducer *x)
{
    const struct dt__stream *s = x->stream;
    return s->up_done == s->chunks && s->down_done == s->chunks;
}

const struct dt__reducer_strategy dt__reducer_stream = {
    .prepare = stream_prepare,
    .connect = stream_connect,
    .destroy = stream_destroy,
    .begin = stream_begin,
    .advance = {advance_up, advance_ask, advance_down},
    .done = stream_done,
};
