/* Whole floats, a kind of range: every gradient has all of them. They are cut into chunks, each
 * with an owner (layout.c). On several nodes, in a step:
 *
 *   node                                          owner of a chunk
 *     sums the chunk over its replicas,   --->      adds these partial sums in the tree's order,
 *     when its workers' gradients of                and, once the norm is known, updates its chunk
 *     the bucket are written
 *     takes the new weights               <---      sends the new weights
 *
 * Each owner updates its chunks in order, and the order is the same on every node. So messages
 * between two ranks have an order too, and need no numbers. */
#include <string.h>

#include "comm/exchange.h"

/* State of a step. */
struct dt__whole {
    /* (chunks) number of what a chunk still waits for: 1 for the gradients of this node's replicas;
     * then the other nodes' sums for an owned chunk, the new weights for another one. */
    int *left;
    int started; /* buckets that this agent has started to work on */
    /* Numbers of chunks that are complete: owned ones summed; owned ones updated; others whose new
     * weights have arrived. */
    int summed, updated, taken;
    int sends; /* sends in flight */
};

static dt_status whole_create(struct dt_exchange *x)
{
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "chunk table", DT__TABLE(x->whole, 1)));
    x->whole->started = x->spec.buckets; /* no step has started */
    x->whole->summed = x->whole->updated = x->whole->taken = x->layout->chunks;
    return DT__ARENA_ALLOC(&x->arena, "chunk table",
                           DT__TABLE(x->whole->left, (size_t)x->layout->chunks));
}

static int *left_of(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    return &x->whole->left[chunk - x->layout->chunk];
}

/* is_own: returns whether this agent owns the chunk. is_acted: returns whether it acts for the
 * owner of a chunk on another node. */
static bool is_own(const struct dt_exchange *x, const struct dt__chunk *chunk)
{
    return chunk->agent == x->topo->agent && chunk->node == x->topo->node;
}
static bool is_acted(const struct dt_exchange *x, const struct dt__chunk *chunk)
{
    return chunk->agent == x->topo->agent && chunk->node != x->topo->node;
}

/* ---- messages of a chunk -------------------------------------------------------------------- */

/* Sends this node's partial sums to the chunk's owner or, for an owned chunk, receives those of all
 * other nodes. */
static void move_sums(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    const bool own = chunk->node == x->topo->node;
    for (int s = 0; s < x->topo->partials; s++) {
        const struct dt__partial_sum *partial = &x->topo->partial[s];
        if (own == (partial->node == x->topo->node)) continue;
        const int rank = dt__chunk_rank(x, chunk, own ? partial->node : chunk->node);
        dt__message_begin(&x->requests, own ? left_of(x, chunk) : &x->whole->sends,
                          dt__sum_at(x, chunk, s), dt__sum_bytes(chunk, partial->covers_group),
                          (struct dt__envelope){!own, rank, DT__TAG_SUMS, DT__MPI_CHUNK});
    }
}

/* Sends an owned chunk's new weights, or the rounded update, to a node or, for another chunk,
 * receives them from its owner. */
static void move_weights(struct dt_exchange *x, const struct dt__chunk *chunk, int node)
{
    const bool own = chunk->node == x->topo->node;
    dt__message_begin(
        &x->requests, own ? &x->whole->sends : left_of(x, chunk), dt__update_at(x, chunk),
        chunk->bytes,
        (struct dt__envelope){own, dt__chunk_rank(x, chunk, node), DT__TAG_WEIGHTS, DT__MPI_CHUNK});
}

/* ---- a step on several nodes ---------------------------------------------------------------- */

/* Starts to receive other nodes' sums at once, since no other rank uses the buffers. */
static void whole_begin(struct dt_exchange *x)
{
    x->whole->started = x->whole->summed = x->whole->updated = x->whole->taken = 0;
    for (int c = 0; c < x->layout->chunks; c++) {
        const struct dt__chunk *chunk = &x->layout->chunk[c];
        *left_of(x, chunk) = 1; /* this node's replicas */
        if (is_own(x, chunk)) move_sums(x, chunk);
    }
}

/* Starts a bucket, once the node's gradients of it are written. From now on new weights may arrive.
 * They may not before: a node without replicas sends no sum for which the owner would wait, while
 * its workers may still read the old weights. */
static void start_bucket(struct dt_exchange *x, const struct dt__bucket *bucket)
{
    for (int c = bucket->chunk; c < bucket->chunk_end; c++) {
        const struct dt__chunk *chunk = &x->layout->chunk[c];
        const double start = dt__clock_secs();
        --*left_of(x, chunk);
        if (!is_acted(x, chunk)) continue;
        /* The sum is sent from a replica's slot, perhaps of another worker. That worker writes the
         * slot again only after its next forward pass, which waits for the weights of all chunks,
         * and these arrive only after the owner has the sum. */
        dt__chunk_give(x, chunk);
        x->spec.times->reduce += dt__clock_secs() - start;
        move_sums(x, chunk);
        move_weights(x, chunk, chunk->node);
    }
}

/* Sums owned chunks, if the norm needs all sums before the first update. */
static void advance_sums(struct dt_exchange *x)
{
    struct dt__whole *whole = x->whole;
    for (; whole->summed < x->layout->chunks; whole->summed++) {
        const struct dt__chunk *chunk = &x->layout->chunk[whole->summed];
        if (!is_own(x, chunk)) continue;
        if (*left_of(x, chunk)) break;
        dt__norm_sum(x, chunk);
    }
}

/* Updates owned chunks and sends their new weights. */
static void advance_updates(struct dt_exchange *x)
{
    struct dt__whole *whole = x->whole;
    for (; !x->norm.phases && whole->updated < whole->summed; whole->updated++) {
        const struct dt__chunk *chunk = &x->layout->chunk[whole->updated];
        const double start = dt__clock_secs();
        if (!is_own(x, chunk)) continue;
        dt__chunk_update(x, chunk);
        x->spec.times->update += dt__clock_secs() - start;
        dt__event_post(&x->memory->control->bucket[chunk->bucket].updated, 1);
        for (int i = 1; i < x->topo->nodes; i++)
            move_weights(x, chunk, (x->topo->node + i) % x->topo->nodes);
    }
}

/* Takes the new weights of other nodes' chunks once they have arrived. */
static void advance_weights(struct dt_exchange *x)
{
    struct dt__whole *whole = x->whole;
    for (; whole->taken < x->layout->chunks; whole->taken++) {
        const struct dt__chunk *chunk = &x->layout->chunk[whole->taken];
        const size_t begin = chunk->at.begin;
        if (!is_acted(x, chunk)) continue;
        if (*left_of(x, chunk)) break;
        dt__wire_add(chunk->wire, begin, chunk->at.end - begin, dt__update_at(x, chunk),
                     x->memory->vectors[0] + begin);
        dt__event_post(&x->memory->control->bucket[chunk->bucket].updated, 1);
    }
}

static bool whole_advance(struct dt_exchange *x)
{
    struct dt__whole *whole = x->whole;
    const int before = whole->started + whole->summed + whole->updated + whole->taken;
    for (; whole->started < x->spec.buckets; whole->started++) {
        const int b = dt__bucket_at(x, whole->started);
        if (!dt__event_reached(&x->memory->control->bucket[b].ready, x->step->all_done)) break;
        start_bucket(x, &x->layout->bucket[b]);
        advance_sums(x);
        advance_updates(x);
    }
    advance_sums(x);
    advance_updates(x);
    advance_weights(x);
    return whole->started + whole->summed + whole->updated + whole->taken != before;
}

static bool whole_summed(const struct dt_exchange *x)
{
    return x->whole->started == x->spec.buckets && x->whole->summed == x->layout->chunks;
}

static bool whole_done(const struct dt_exchange *x)
{
    const struct dt__whole *whole = x->whole;
    return whole_summed(x) && whole->updated == x->layout->chunks &&
           whole->taken == x->layout->chunks && !whole->sends;
}

/* ---- sums and updates ----------------------------------------------------------------------- */

void dt__whole_squares(struct dt_exchange *x, const struct dt__range *range, struct dt__floats at,
                       struct dt__norm *norm)
{
    (void)x;
    norm->at = dt__clip(dt__clip(range->at, at), norm->at);
    dt__norm_add(norm, norm->sum + norm->at.begin, norm->at.begin, norm->at.end - norm->at.begin);
}

static uint32_t whole_update(struct dt_exchange *x, const struct dt__range *range)
{
    uint32_t updated = 0;
    for (int c = range->chunk; c < range->chunk_end; c++) {
        if (!is_own(x, &x->layout->chunk[c])) continue;
        dt__chunk_update(x, &x->layout->chunk[c]);
        updated++;
    }
    return updated;
}

/* ---- between spans -------------------------------------------------------------------------- */

/* Moves a chunk's floats of one vector between the bank and another node. Vectors are the
 * optimizer's state, which the chunk's owner keeps, and then the errors of groups' sums, which the
 * rank that rounds the sum keeps. */
static void move_chunk(struct dt_exchange *x, const struct dt__chunk *chunk, bool to_bank, int v)
{
    const int group = v - x->spec.vectors;
    const int rounds = group < 0 ? -1 : x->topo->group[group].node;
    const int node = rounds < 0 ? chunk->node : rounds;
    const int keeper = dt__chunk_rank(x, chunk, node);
    float *vectors[DT_EXCHANGE_VECTORS];
    if (node == 0 || (x->topo->rank && x->topo->rank != keeper)) return;
    dt__chunk_vectors(x, chunk, vectors);
    float *floats = group < 0 ? vectors[v] : dt__chunk_error(x, chunk, group);
    floats += chunk->at.begin;
    dt__ranks_move(&x->all, keeper, to_bank, floats, floats, chunk->at.end - chunk->at.begin);
}

/* Copies floats of the first `vectors` vectors between the node's memory and the books. Only the
 * bank has books. */
static void copy_books(struct dt_exchange *x, struct dt__floats at, bool to_bank, int vectors)
{
    const bool has_books = x->world->is_bank && x->memory->books[0];
    for (int v = 0; v < vectors && v < x->spec.vectors && has_books; v++) {
        float *own = x->memory->vectors[v] + at.begin, *book = x->memory->books[v] + at.begin;
        memcpy(to_bank ? book : own, to_bank ? own : book, (at.end - at.begin) * sizeof *own);
    }
}

/* Nodes list the owners in different orders; here all ranks visit them in the same order. */
void dt__whole_move(struct dt_exchange *x, const struct dt__range *range, bool to_bank, int vectors)
{
    const struct dt__floats at = range->at;
    if (!to_bank) {
        copy_books(x, at, false, vectors);
        dt__ranks_barrier(&x->all); /* the bank has filled its node's memory */
        x->firsts.what = "weights";
        if (x->topo->agent == 0)
            dt__ranks_bcast(&x->firsts, x->memory->vectors[0] + at.begin,
                            (at.end - at.begin) * sizeof(float), 0);
    }
    for (int node = 0; node < x->topo->nodes; node++)
        for (int c = range->chunk; c < range->chunk_end; c++)
            for (int v = 1; v < vectors && x->layout->chunk[c].node == node; v++)
                move_chunk(x, &x->layout->chunk[c], to_bank, v);
    if (to_bank) copy_books(x, at, true, vectors);
}

const struct dt__kind dt__whole_kind = {
    .is_cut = true,
    .create = whole_create,
    .begin = whole_begin,
    .advance = whole_advance,
    .summed = whole_summed,
    .done = whole_done,
    .move = dt__whole_move,
    .squares = dt__whole_squares,
    .update = whole_update,
};
