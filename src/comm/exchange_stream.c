/* Several groups: leaders stream chunks of gradient sums up to the bank, and new weights come down.
 *
 * Chunk c's weights go down while chunk c + 1's gradients come up, so that a link that carries both
 * directions at once is busy for bytes / bandwidth a step. Up is MPI_Ireduce (node, reduce: the
 * library chooses the order of the sum) or, for the fixed tree (ordered), messages to the chunk's
 * owner: a group sends one partial sum for each maximal subtree that it holds, the owner sums in tree
 * order and sends the result to the bank. With H groups, up costs at most 2 * bytes a link.
 *
 * Chunks go from the last bucket to the first, and up as soon as their bucket is summed, while
 * workers still compute the gradients of earlier layers. */
#include "comm/exchange.h"

#include <string.h>

struct dt__stream {
    struct dt__chunk *chunk;
    int chunks;
    struct dt__part *part; /* maximal subtrees of all groups, in tree order */
    int parts;
    MPI_Comm up, down;
    float *sum;              /* bank: (P) gradient sums; else NULL */
    float *zeros;            /* (DT__CHUNK) what a group without replicas gives */
    MPI_Request *up_request; /* (DT__DEPTH, parts + 1) */
    MPI_Request down_request[DT__DEPTH];
    int up_stage[DT__DEPTH]; /* owner: 0 while partial sums come in, 1 while the sum goes out */
    float *incoming;         /* (DT__DEPTH, parts, DT__CHUNK) at owners */
    float *outgoing;         /* (DT__DEPTH, DT__CHUNK) at owners other than the bank */
    const float **leaf;      /* (R) for the sum of one chunk */
    int *whole;              /* (R) */

    /* The step under way, counted in chunks, in order. */
    int posted, up_done; /* sums on their way up; arrived at the bank */
    int sent, down_done; /* weights on their way down; arrived here */
    int buckets_summed;  /* buckets of which this worker has summed its slice */
    MPI_Request ask_request;
    int ask; /* what all ranks ask for, once judged */
    enum { ASK_OPEN, ASK_POSTED, ASK_JUDGED } ask_stage;
};

/* ---- create --------------------------------------------------------------------------------- */

static bool held_by_one(const struct dt_exchange *x, int first, int end)
{
    for (int r = first; r < end; r++)
        if (x->group_of_replica[r] != x->group_of_replica[first]) return false;
    return true;
}

static void find_parts(struct dt_exchange *x, int first, int end)
{
    struct dt__stream *s = x->stream;
    if (held_by_one(x, first, end)) {
        s->part[s->parts++] = (struct dt__part){first, end, x->group_of_replica[first]};
        return;
    }
    int split = dt__tree_split(first, end);
    find_parts(x, first, split);
    find_parts(x, split, end);
}

static dt_status cut_chunks(struct dt_exchange *x)
{
    struct dt__stream *s = x->stream;
    size_t most = x->spec.params / DT__CHUNK + (size_t)x->spec.buckets;
    DT_TRY(dt_alloc(most, sizeof *s->chunk, "chunk table", &s->chunk));
    for (int b = x->spec.buckets - 1; b >= 0; b--) {
        x->pieces[b] = 0;
        for (size_t at = dt__bucket_begin(x, b); at < x->bucket_end[b]; at += DT__CHUNK) {
            size_t end = at + DT__CHUNK < x->bucket_end[b] ? at + DT__CHUNK : x->bucket_end[b];
            s->chunk[s->chunks++] = (struct dt__chunk){b, at, end};
            x->pieces[b]++;
        }
    }
    return DT_OK;
}

/* Few groups: the bank sums all. More: chunks are dealt out, so that no link carries H times bytes. */
static int owner_of(const struct dt_exchange *x, int chunk)
{
    return x->groups > 3 ? chunk % x->groups : 0;
}

static dt_status allocate(struct dt_exchange *x)
{
    struct dt__stream *s = x->stream;
    size_t replicas = (size_t)x->spec.replicas, parts = (size_t)s->parts;
    DT_TRY(dt_alloc(DT__DEPTH * (parts + 1), sizeof(MPI_Request), "requests", &s->up_request));
    DT_TRY(dt_alloc(DT__CHUNK, sizeof(float), "zeros", &s->zeros));
    if (x->group_index == 0)
        DT_TRY(dt_alloc(x->spec.params, sizeof(float), "gradient sums", &s->sum));
    if (!x->tree || (x->groups <= 3 && x->group_index)) return DT_OK;
    DT_TRY(dt_alloc(DT__DEPTH * parts * DT__CHUNK, sizeof(float), "partial sums", &s->incoming));
    DT_TRY(dt_alloc(DT__DEPTH * DT__CHUNK, sizeof(float), "partial sums", &s->outgoing));
    DT_TRY(dt_alloc(replicas, sizeof *s->leaf, "sum table", &s->leaf));
    return dt_alloc(replicas, sizeof *s->whole, "sum table", &s->whole);
}

dt_status dt__stream_create(struct dt_exchange *x)
{
    DT_TRY(dt_alloc(1, sizeof *x->stream, "stream", &x->stream));
    struct dt__stream *s = x->stream;
    s->up = s->down = MPI_COMM_NULL;
    DT_TRY(dt_alloc((size_t)x->spec.replicas, sizeof *s->part, "subtree table", &s->part));
    find_parts(x, 0, x->spec.replicas);
    DT_TRY(cut_chunks(x));
    if (x->leaders == MPI_COMM_NULL) return DT_OK;
    DT_MPI(MPI_Comm_dup(x->leaders, &s->up));
    DT_MPI(MPI_Comm_dup(x->leaders, &s->down));
    return allocate(x);
}

void dt__stream_destroy(struct dt_exchange *x)
{
    struct dt__stream *s = x->stream;
    if (!s) return;
    if (s->up != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&s->up));
    if (s->down != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&s->down));
    void *owned[] = {s->chunk,    s->part,     s->sum,  s->zeros, s->up_request,
                     s->incoming, s->outgoing, s->leaf, s->whole, s};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free(owned[i]);
    x->stream = NULL;
}

/* ---- sums inside the group ------------------------------------------------------------------ */

/* Sums of a block: one a subtree (ordered), or all of the group's in the first one's place. */
static void sum_block(struct dt_exchange *x, size_t at, size_t n)
{
    struct dt__stream *s = x->stream;
    float *first = NULL;
    for (int p = 0; p < s->parts; p++) {
        struct dt__part part = s->part[p];
        if (part.group != x->group_index) continue;
        const float *sum = dt__tree_sum((const float *const *)x->slot, NULL, part.first, part.end,
                                        at, n, x->scratch);
        float *out = x->slot[part.first] + at;
        if (x->tree || !first) {
            if (sum != out) memcpy(out, sum, n * sizeof *out);
            if (!first) first = out;
        } else {
            for (size_t i = 0; i < n; i++)
                first[i] += sum[i];
        }
    }
}

static void sum_slice(struct dt_exchange *x, int bucket)
{
    size_t begin, end;
    dt__slice(dt__bucket_begin(x, bucket), x->bucket_end[bucket], x->worker, x->group_workers,
              DT__TREE_BLOCK, &begin, &end);
    for (size_t at = begin; at < end; at += DT__TREE_BLOCK)
        sum_block(x, at, end - at < DT__TREE_BLOCK ? end - at : DT__TREE_BLOCK);
    dt__gate_post(&x->control->bucket[bucket].summed, 1);
}

static uint32_t all_workers(const struct dt_exchange *x)
{
    return x->tick * (uint32_t)x->group_workers;
}

/* Worker: sums its slice of the next bucket that all workers of the group have ready. */
static bool advance_sums(struct dt_exchange *x)
{
    struct dt__stream *s = x->stream;
    if (x->worker < 0 || s->buckets_summed == x->spec.buckets) return false;
    int bucket = x->spec.buckets - 1 - s->buckets_summed;
    if (!dt__gate_reached(&x->control->bucket[bucket].ready, all_workers(x))) return false;
    sum_slice(x, bucket);
    s->buckets_summed++;
    return true;
}

/* ---- up: MPI_Ireduce ------------------------------------------------------------------------ */

static MPI_Request *up_requests(struct dt__stream *s, int c)
{
    return s->up_request + (size_t)(c % DT__DEPTH) * ((size_t)s->parts + 1);
}

static void post_reduce(struct dt_exchange *x, int c)
{
    struct dt__stream *s = x->stream;
    struct dt__chunk chunk = s->chunk[c];
    const float *mine = s->zeros;
    for (int p = s->parts - 1; p >= 0; p--)
        if (s->part[p].group == x->group_index) mine = x->slot[s->part[p].first] + chunk.begin;
    DT_MPI(MPI_Ireduce(mine, s->sum ? s->sum + chunk.begin : NULL, (int)(chunk.end - chunk.begin),
                       MPI_FLOAT, MPI_SUM, 0, s->up, up_requests(s, c)));
}

static bool reduce_done(struct dt_exchange *x, int c)
{
    int done;
    DT_MPI(MPI_Test(up_requests(x->stream, c), &done, MPI_STATUS_IGNORE));
    return done;
}

/* ---- up: the fixed tree --------------------------------------------------------------------- */

static float *incoming(struct dt__stream *s, int c, int part)
{
    return s->incoming + ((size_t)(c % DT__DEPTH) * (size_t)s->parts + (size_t)part) * DT__CHUNK;
}

static void post_tree(struct dt_exchange *x, int c)
{
    struct dt__stream *s = x->stream;
    struct dt__chunk chunk = s->chunk[c];
    MPI_Request *request = up_requests(s, c);
    int n = (int)(chunk.end - chunk.begin), owner = owner_of(x, c), me = x->group_index;
    for (int p = 0; p <= s->parts; p++)
        request[p] = MPI_REQUEST_NULL;
    for (int p = 0; p < s->parts; p++) {
        int from = s->part[p].group;
        if (me == owner && from != me)
            DT_MPI(MPI_Irecv(incoming(s, c, p), n, MPI_FLOAT, from, p, s->up, &request[p]));
        if (me != owner && from == me)
            DT_MPI(MPI_Isend(x->slot[s->part[p].first] + chunk.begin, n, MPI_FLOAT, owner, p, s->up,
                             &request[p]));
    }
    if (me == 0 && owner != 0)
        DT_MPI(MPI_Irecv(s->sum + chunk.begin, n, MPI_FLOAT, owner, s->parts, s->up,
                         &request[s->parts]));
    s->up_stage[c % DT__DEPTH] = 0;
}

/* Owner, with all partial sums there: sums the chunk in tree order into `out`. */
static void sum_chunk(struct dt_exchange *x, int c, float *out)
{
    struct dt__stream *s = x->stream;
    struct dt__chunk chunk = s->chunk[c];
    for (int p = 0; p < s->parts; p++) {
        struct dt__part part = s->part[p];
        bool mine = part.group == x->group_index;
        s->leaf[part.first] = mine ? x->slot[part.first] + chunk.begin : incoming(s, c, p);
        s->whole[part.first] = part.end;
    }
    size_t n = chunk.end - chunk.begin;
    for (size_t at = 0; at < n; at += DT__TREE_BLOCK) {
        size_t rows = n - at < DT__TREE_BLOCK ? n - at : DT__TREE_BLOCK;
        const float *sum =
            dt__tree_sum(s->leaf, s->whole, 0, x->spec.replicas, at, rows, x->scratch);
        memcpy(out + at, sum, rows * sizeof *out);
    }
}

static bool tree_done(struct dt_exchange *x, int c)
{
    struct dt__stream *s = x->stream;
    struct dt__chunk chunk = s->chunk[c];
    MPI_Request *request = up_requests(s, c);
    int done;
    DT_MPI(MPI_Testall(s->parts + 1, request, &done, MPI_STATUSES_IGNORE));
    if (!done || owner_of(x, c) != x->group_index || s->up_stage[c % DT__DEPTH]) return done;
    if (s->sum) {
        sum_chunk(x, c, s->sum + chunk.begin);
        return true;
    }
    float *out = s->outgoing + (size_t)(c % DT__DEPTH) * DT__CHUNK;
    sum_chunk(x, c, out);
    DT_MPI(MPI_Isend(out, (int)(chunk.end - chunk.begin), MPI_FLOAT, 0, s->parts, s->up,
                     &request[s->parts]));
    s->up_stage[c % DT__DEPTH] = 1;
    return false;
}

/* ---- down ----------------------------------------------------------------------------------- */

static void post_down(struct dt_exchange *x, int c)
{
    struct dt__stream *s = x->stream;
    struct dt__chunk chunk = s->chunk[c];
    size_t n = chunk.end - chunk.begin;
    if (s->sum)
        x->spec.update(x->spec.arg, &x->info, chunk.begin, n, s->sum + chunk.begin, x->vectors,
                       x->vectors[0] + chunk.begin);
    DT_MPI(MPI_Ibcast(x->vectors[0] + chunk.begin, (int)n, MPI_FLOAT, 0, s->down,
                      &s->down_request[c % DT__DEPTH]));
}

static bool down_done(struct dt_exchange *x, int c)
{
    struct dt__stream *s = x->stream;
    int done;
    DT_MPI(MPI_Test(&s->down_request[c % DT__DEPTH], &done, MPI_STATUS_IGNORE));
    if (done) dt__gate_post(&x->control->bucket[s->chunk[c].bucket].updated, 1);
    return done;
}

/* ---- a step --------------------------------------------------------------------------------- */

static void take_norm(struct dt_exchange *x)
{
    dt__norm_blocks(x, x->stream->sum, 0, x->spec.params);
    x->info.norm2 = dt__norm_total(x);
}

static bool up_ready(struct dt_exchange *x)
{
    struct dt__stream *s = x->stream;
    if (s->posted == s->chunks || s->posted - s->up_done == DT__DEPTH) return false;
    struct dt__gate *summed = &x->control->bucket[s->chunk[s->posted].bucket].summed;
    return dt__gate_reached(summed, all_workers(x));
}

static bool advance_up(struct dt_exchange *x)
{
    struct dt__stream *s = x->stream;
    int before = s->posted + s->up_done;
    while (up_ready(x)) {
        if (x->tree)
            post_tree(x, s->posted++);
        else
            post_reduce(x, s->posted++);
    }
    while (s->up_done < s->posted && (x->tree ? tree_done : reduce_done)(x, s->up_done)) {
        s->up_done++;
        if (s->sum && x->spec.norm && s->up_done == s->chunks) take_norm(x);
    }
    return s->posted + s->up_done != before;
}

/* What the group asks for goes to all leaders once its workers have ended the step. */
static bool advance_verdict(struct dt_exchange *x, int bank_ask)
{
    struct dt__stream *s = x->stream;
    int done = 0;
    if (s->ask_stage == ASK_OPEN && dt__gate_reached(&x->control->ended, all_workers(x))) {
        s->ask = bank_ask | atomic_exchange(&x->control->asks[x->tick & 1], 0);
        DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, &s->ask, 1, MPI_INT, MPI_BOR, x->leaders,
                              &s->ask_request));
        s->ask_stage = ASK_POSTED;
    }
    if (s->ask_stage != ASK_POSTED) return false;
    DT_MPI(MPI_Test(&s->ask_request, &done, MPI_STATUS_IGNORE));
    if (!done) return false;
    s->ask_stage = ASK_JUDGED;
    dt__share_judge(x, s->ask);
    return true;
}

/* The bank may send what is summed (with the norm: all or nothing); the others await all. It does not
 * wait for the verdict, whose message stands behind megabytes of gradients in the connection: a step
 * that turns out to have failed ends the run, and its weights are never saved. */
static int may_send(const struct dt_exchange *x)
{
    const struct dt__stream *s = x->stream;
    if (!s->sum) return s->chunks;
    return x->spec.norm && s->up_done < s->chunks ? 0 : s->up_done;
}

static bool advance_down(struct dt_exchange *x)
{
    struct dt__stream *s = x->stream;
    int before = s->sent + s->down_done, may = may_send(x);
    while (s->sent < may && s->sent - s->down_done < DT__DEPTH)
        post_down(x, s->sent++);
    while (s->down_done < s->sent && down_done(x, s->down_done))
        s->down_done++;
    return s->sent + s->down_done != before;
}

static bool step_done(const struct dt__stream *s)
{
    return s->ask_stage == ASK_JUDGED && s->up_done == s->chunks && s->down_done == s->chunks;
}

static void reset_step(struct dt__stream *s)
{
    s->posted = s->up_done = s->sent = s->down_done = s->buckets_summed = 0;
    s->ask_stage = ASK_OPEN;
}

/* Leader: carries the step through to its end. Returns what all ranks ask for. */
static int lead_step(struct dt_exchange *x, int bank_ask)
{
    struct dt__stream *s = x->stream;
    double start = dt_clock_secs();
    struct dt__wait wait;
    dt__wait_init(&wait, x->world, "the other hosts");
    while (!step_done(s)) {
        bool moved = advance_sums(x);
        moved |= advance_up(x);
        moved |= advance_verdict(x, bank_ask);
        moved |= advance_down(x);
        if (moved)
            dt__wait_progress(&wait);
        else
            dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
    x->times.network += dt_clock_secs() - start;
    return s->ask;
}

/* ---- worker --------------------------------------------------------------------------------- */

void dt__stream_ready(struct dt_exchange *x, int bucket)
{
    if (bucket == x->spec.buckets - 1) reset_step(x->stream);
    dt__gate_post(&x->control->bucket[bucket].ready, 1);
    while (advance_sums(x))
        continue;
    if (x->group_rank == 0) advance_up(x);
}

/* Sums the buckets that are left, waiting for the slower workers. */
static void finish_sums(struct dt_exchange *x)
{
    for (int b = x->spec.buckets - 1 - x->stream->buckets_summed; b >= 0; b--) {
        dt__gate_wait(&x->control->bucket[b].ready, all_workers(x), x->world,
                      "the other workers' gradients");
        advance_sums(x);
    }
}

int dt__stream_end(struct dt_exchange *x, int ask)
{
    dt__share_arrive(x, ask);
    if (x->group_rank == 0) return lead_step(x, DT_ASK_NONE);
    double start = dt_clock_secs();
    finish_sums(x);
    dt__gate_wait(&x->control->judged, x->tick, x->world, "the other hosts' gradients");
    x->times.network += dt_clock_secs() - start;
    return x->control->verdict[x->tick & 1];
}

/* ---- bank ----------------------------------------------------------------------------------- */

int dt__stream_serve(struct dt_exchange *x, uint64_t from, uint64_t until, dt_ask_fn *ask,
                     void *arg, uint64_t *out_step)
{
    int verdict = DT_ASK_NONE;
    uint64_t step = from;
    while (step < until && !verdict) {
        dt_exchange_begin(x, step);
        reset_step(x->stream);
        verdict = lead_step(x, ask(arg));
        if (!(verdict & DT_ASK_ERROR)) step++;
    }
    *out_step = step;
    return verdict;
}
