/* The life of a step at an agent: what its node's replicas give goes to the owners, sums are
 * updated as they become whole, and new weights go to all nodes.
 *
 * A bucket begins when all workers of the node have its gradients written and read its weights no
 * more, while they still compute the gradients of earlier layers; where one node holds all, when
 * all have ended the step. All messages of a step are persistent requests, made once.
 *
 * The owner does not wait for the agreement on what ranks ask for before it updates, where there
 * are messages: a step that turns out to have failed ends the run, and its weights are never
 * saved. */
#include <string.h>

#include "comm/exchange.h"

struct dt__messages {
    MPI_Request *request;
    struct dt__chunk **chunk; /* (requests) what each is of */
    int *index;               /* (requests) those that have ended, of one look */
    int requests;

    /* The step under way. */
    int done;                 /* requests that have ended */
    MPI_Request norm_request; /* first agent: MPI_REQUEST_NULL: not sent, or known */
};

/* ---- create --------------------------------------------------------------------------------- */

/* To or from who acts for the chunk in another node. */
static void add_message(struct dt_exchange *x, bool sends, struct dt__chunk *chunk, void *bytes,
                        size_t length, int node, int tag)
{
    struct dt__messages *m = x->messages;
    MPI_Request *request = &m->request[m->requests];
    const int rank = dt__chunk_rank(x, chunk, node), n = (int)length;
    m->chunk[m->requests++] = chunk;
    if (sends)
        DT_MPI(MPI_Send_init(bytes, n, MPI_BYTE, rank, tag, x->all.comm, request));
    else
        DT_MPI(MPI_Recv_init(bytes, n, MPI_BYTE, rank, tag, x->all.comm, request));
}

static void add_messages_of_chunk(struct dt_exchange *x, struct dt__chunk *chunk)
{
    const bool own = chunk->node == x->node;
    void *weights = x->vectors[0] + chunk->at.begin; /* or the rounded update of them */
    if (chunk->wire) weights = x->bytes + chunk->update;
    chunk->sums_at = x->messages->requests;
    for (int s = 0; s < x->subtrees; s++) {
        const struct dt__subtree *subtree = &x->subtree[s];
        if (own == (subtree->node == x->node)) continue;
        add_message(x, !own, chunk, dt__sum_at(x, chunk, s), dt__sum_bytes(chunk, subtree->whole),
                    own ? subtree->node : chunk->node, chunk->tag + subtree->number);
    }
    chunk->weights_at = x->messages->requests;
    for (int i = 1; i < x->nodes; i++) {
        const int node = (x->node + i) % x->nodes;
        if (own || node == chunk->node)
            add_message(x, own, chunk, weights, chunk->bytes, node, chunk->tag + x->tags - 1);
    }
    chunk->requests_end = x->messages->requests;
}

static void add_messages(struct dt_exchange *x)
{
    for (int c = 0; c < x->chunks && x->nodes > 1; c++)
        if (x->chunk[c].agent == x->agent) add_messages_of_chunk(x, &x->chunk[c]);
}

static dt_status owners_prepare(struct dt_exchange *x)
{
    DT_TRY(dt__layout_chunks(x));
    if (x->agent < 0) return DT_OK;
    DT_TRY(dt__keep(&x->kept, 1, sizeof *x->messages, "requests", &x->messages));
    struct dt__messages *m = x->messages;
    DT_TRY(dt__keep(&x->kept, x->byte_count, 1, "sums and updates", &x->bytes));
    for (int v = 1; v < x->spec.vectors && x->node > 0; v++)
        DT_TRY(dt__keep(&x->kept, x->own, sizeof(float), "optimizer state", &x->state[v]));
    for (int g = 0; g < x->spec.groups && x->spec.wire && x->node > 0; g++) {
        const int node = x->group[g].node;
        if (node >= 0 && node != x->node) continue;
        DT_TRY(dt__keep(&x->kept, node < 0 ? x->own : x->acted, sizeof(float), "rounding errors",
                        &x->error[g]));
    }
    m->norm_request = MPI_REQUEST_NULL;
    /* of an own chunk: sums from all other subtrees, weights to all other nodes; else fewer */
    const size_t most = (size_t)x->acted_chunks * (size_t)(x->subtrees + x->nodes);
    DT_TRY(dt__keep(&x->kept, most, sizeof *m->request, "requests", &m->request));
    DT_TRY(dt__keep(&x->kept, most, sizeof *m->chunk, "requests", &m->chunk));
    DT_TRY(dt__keep(&x->kept, most, sizeof *m->index, "requests", &m->index));
    return x->dealt ? dt__rows_exchange_create(x) : DT_OK;
}

static void owners_disconnect(struct dt_exchange *x)
{
    struct dt__messages *m = x->messages;
    for (int i = 0; m && i < m->requests && m->request; i++)
        DT_MPI(MPI_Request_free(&m->request[i]));
}

/* ---- a step --------------------------------------------------------------------------------- */

static void start_messages(struct dt_exchange *x, int begin, int end)
{
    if (begin < end) DT_MPI(MPI_Startall(end - begin, &x->messages->request[begin]));
}

/* Sums that other nodes send are asked for from the first: they come to where nobody else reads. */
static void owners_begin(struct dt_exchange *x)
{
    if (x->rows_exchange) dt__rows_begin(x, true);
    x->messages->done = 0;
    for (int c = 0; c < x->chunks; c++) {
        struct dt__chunk *chunk = &x->chunk[c];
        chunk->missing = x->others + 1;
        if (chunk->node == x->node) start_messages(x, chunk->sums_at, chunk->weights_at);
    }
}

/* Updates an own chunk, and sends its weights, or, with a rounded wire, the update. */
static void update_chunk(struct dt_exchange *x, struct dt__chunk *chunk)
{
    const double start = dt_clock_secs();
    if (chunk->is_tiled) return;
    dt__chunk_update(x, chunk);
    x->times.update += dt_clock_secs() - start;
    dt__event_post(&x->control->bucket[chunk->bucket].updated, 1);
    start_messages(x, chunk->weights_at, chunk->requests_end);
}

/* This agent's rows and tiles of a bucket. */
static void update_shares(struct dt_exchange *x, int b)
{
    const struct dt__bucket *bucket = &x->bucket[b];
    const double start = dt_clock_secs();
    if (!bucket->has_shares) return;
    for (int s = bucket->segment; s < bucket[1].segment; s++) {
        const struct dt__segment *segment = &x->segment[s];
        if (segment->kind == DT__ROWS) dt__rows_update(x, segment->index);
        if (segment->kind == DT__TILED) dt__tiles_update(x, segment->index);
    }
    x->times.update += dt_clock_secs() - start;
    dt__event_post(&x->control->bucket[b].updated, 1);
}

/* One more of an own chunk's sums is there: the last one makes it whole. */
static void chunk_progress(struct dt_exchange *x, struct dt__chunk *chunk)
{
    const double start = dt_clock_secs();
    if (--chunk->missing > 0) return;
    x->summed++;
    if (!x->spec.norm) {
        update_chunk(x, chunk);
        return;
    }
    dt__chunk_sum(x, chunk);
    x->times.reduce += dt_clock_secs() - start;
}

/* The node's gradients of the bucket are there. New weights may come in from now on: not before,
 * for a node without replicas gives no sum that the owner would wait for, while its workers may
 * still read the old ones. */
static void start_bucket(struct dt_exchange *x, int b)
{
    const struct dt__bucket *bucket = &x->bucket[b];
    for (int c = bucket->chunk; c < bucket->chunk_end; c++) {
        struct dt__chunk *chunk = &x->chunk[c];
        if (chunk->agent != x->agent) continue;
        if (chunk->node == x->node) {
            chunk_progress(x, chunk);
            continue;
        }
        const double start = dt_clock_secs();
        /* The sum is sent from the slot of a replica that may be another worker's. That worker
         * writes it again only behind its next forward, which waits for the weights of all
         * chunks: these come once the owner has the sum. */
        dt__chunk_give(x, chunk);
        x->times.reduce += dt_clock_secs() - start;
        start_messages(x, chunk->sums_at, chunk->requests_end);
    }
    if (x->nodes == 1 && !x->spec.norm) update_shares(x, b);
}

/* Buckets in the order in which they get ready, from the last one; on one node, where they are all
 * ready at once, in the order in which the next step needs them. */
static int bucket_at(const struct dt_exchange *x, int turn)
{
    return x->nodes == 1 ? turn : x->spec.buckets - 1 - turn;
}

static bool advance_buckets(struct dt_exchange *x)
{
    const int before = x->started;
    while (x->started < x->spec.buckets) {
        const int b = bucket_at(x, x->started);
        if (x->nodes == 1 ? !dt__event_reached(&x->control->agreed, x->tick)
                          : !dt__event_reached(&x->control->bucket[b].ready, x->all_done))
            break;
        start_bucket(x, b);
        x->started++;
    }
    return x->started != before;
}

/* What has come in, or gone out. */
static bool advance_messages(struct dt_exchange *x)
{
    struct dt__messages *m = x->messages;
    int count;
    DT_MPI(MPI_Testsome(m->requests, m->request, &count, m->index, MPI_STATUSES_IGNORE));
    if (count == MPI_UNDEFINED || count == 0) return false;
    m->done += count;
    for (int i = 0; i < count; i++) {
        struct dt__chunk *chunk = m->chunk[m->index[i]];
        const bool own = chunk->node == x->node, sum = m->index[i] < chunk->weights_at;
        if (own && sum) chunk_progress(x, chunk);
        if (own || sum) continue;
        if (chunk->wire)
            dt__wire_add(chunk->wire, chunk->at.begin, chunk->at.end - chunk->at.begin,
                         x->bytes + chunk->update, x->vectors[0] + chunk->at.begin);
        dt__event_post(&x->control->bucket[chunk->bucket].updated, 1);
    }
    return true;
}

/* Each agent has the blocks of its slice as soon as their sums are there; on several nodes the
 * first agents bring those of all together. */
static bool advance_norm(struct dt_exchange *x)
{
    struct dt__messages *m = x->messages;
    struct dt__control *control = x->control;
    const uint32_t all = x->tick * (uint32_t)x->agents;
    if (x->norm == DT__NORM_OPEN) {
        if (x->started < x->spec.buckets || x->summed < x->own_chunks) return false;
        if (x->rows_exchange && !dt__rows_summed(x)) return false;
        dt__norm_blocks(x, x->norms, x->sums, dt__norm_slice(x));
        x->norm = DT__NORM_POSTED;
        const bool last = dt__event_post(&control->normed, 1) == all;
        if (last && x->nodes == 1) dt__event_post(&control->norm_known, 1);
    }
    if (x->norm == DT__NORM_KNOWN) return false;
    bool known = dt__event_reached(&control->norm_known, x->tick);
    if (!known && x->nodes > 1 && x->agent == 0 && dt__event_reached(&control->normed, all)) {
        int done;
        if (m->norm_request == MPI_REQUEST_NULL)
            DT_MPI(MPI_Iallreduce(x->norms, x->all_norms, (int)x->norm_count, MPI_DOUBLE, MPI_SUM,
                                  x->firsts.comm, &m->norm_request));
        DT_MPI(MPI_Test(&m->norm_request, &done, MPI_STATUS_IGNORE));
        known = done;
        if (known) dt__event_post(&control->norm_known, 1);
    }
    if (!known) return false;
    x->norm = DT__NORM_KNOWN;
    dt__norm_tell(x, x->all_norms);
    for (int i = 0; i < x->spec.buckets; i++) {
        const struct dt__bucket *bucket = &x->bucket[bucket_at(x, i)];
        for (int c = bucket->chunk; c < bucket->chunk_end; c++)
            if (x->chunk[c].node == x->node && x->chunk[c].agent == x->agent)
                update_chunk(x, &x->chunk[c]);
        if (x->nodes == 1) update_shares(x, bucket_at(x, i));
    }
    return true;
}

static bool owners_advance(struct dt_exchange *x)
{
    bool moved = advance_buckets(x);
    if (x->nodes > 1) {
        moved |= advance_messages(x);
        if (x->agent == 0) moved |= dt__asks_advance(x);
        if (x->rows_exchange) moved |= dt__rows_advance(x);
    }
    return advance_norm(x) || moved;
}

static bool owners_done(const struct dt_exchange *x)
{
    return x->started == x->spec.buckets && x->messages->done == x->messages->requests &&
           x->norm == DT__NORM_KNOWN && (!x->rows_exchange || dt__rows_done(x));
}

const struct dt__way dt__way_owners = {
    .prepare = owners_prepare,
    .connect = add_messages,
    .disconnect = owners_disconnect,
    .begin = owners_begin,
    .advance = owners_advance,
    .done = owners_done,
};
