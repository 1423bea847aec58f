/* Several groups, each of which owns a slice of the vector: reduce-scatter, update, all-gather.
 *
 * A bucket is dealt out to the groups in slices, equal where each group has one subtree of
 * replicas, else so that the busiest link carries least, and these are cut into chunks. A group
 * sends each chunk's owner one partial sum for each maximal subtree of replicas that it holds. The
 * owner sums in the order of the fixed tree, updates (it has the optimizer's state of its slices),
 * and sends the new weights to all others. So with H groups of one subtree each, a link carries 2
 * (H - 1) / H of the vector's bytes each way, the bound of any all-reduce; and the bits are a
 * function of the replicas alone. All sends go straight to where they are for: two latencies a
 * bucket, at any H.
 * Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
 * models", SC 2020, section 5 (the optimizer's state); the exchange is reduce-scatter and
 * all-gather of Thakur et al., "Optimization of collective communication operations in MPICH",
 * 2005, by direct sends.
 *
 * Chunks go from the last bucket to the first, each as soon as its bucket is summed inside the
 * group, while workers still compute the gradients of earlier layers. A group sends to the owners
 * in an order of its own, so that they are not all sent to the same one first. All messages of a
 * step are persistent requests, made once.
 *
 * With the norm, slices are dealt out of the whole vector, at multiples of its blocks, and every
 * leader gets the blocks' sums of squares before it updates.
 *
 * With a rounded wire a giver's sum travels rounded where its group has all of it, and in f32 in
 * parts where replicas of several groups make it: then the owner rounds it, as it sums. The owner
 * sends the rounded update, which each group adds to its weights. So a link carries 2 (H - 1) / H
 * of the rounded bytes where givers and groups are the same.
 *
 * Touched rows of row-sparse ranges go to all groups, which update them (rows.h); slices are cut of
 * the rest.
 *
 * The owner does not wait for the agreement on what ranks ask for before it updates: a step that
 * turns out to have failed ends the run, and its weights are never saved. */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "comm/reducer.h"

/* A piece of a slice, that travels as one message. */
struct chunk {
    int bucket, owner;
    /* of a group's first part, and so on; behind them, of weights. The same at every group, and
     * the same for each owner: who sends and who receives says whose chunk it is */
    int tag;
    struct dt__floats at;
    int wire;         /* enum dt_wire */
    size_t bytes;     /* of its floats, rounded */
    size_t given;     /* place of these in a giver's rounded sum */
    /* place of the rounded update; f32: none, weights travel from and to where they are */
    size_t update;
    size_t incoming;  /* own: place of the partial sums of other groups, one by one */
    size_t own_at;    /* its place among this group's own floats */
    int missing;      /* own: partial sums that this step still waits for */
    /* of the requests that send: own: its weights; else this group's partial sums */
    int first_send;
};

/* What a request carries. */
struct message {
    enum message_kind { PARTIAL_OUT, PARTIAL_IN, WEIGHTS_OUT, WEIGHTS_IN, ASK_OUT, ASK_IN } kind;
    int chunk;
};

/* Of a part: its number among those of its group, and how many parts of other groups stand before
 * it: those that are all of a giver, and those that are not. */
struct part_place {
    int number, wholes, rests;
};

struct dt__owners {
    struct chunk *chunk; /* in the order of sending */
    int chunks, own_chunks;
    /* (buckets + 1) the chunks of bucket b begin at [b + 1] and end at [b] */
    int *bucket_chunks;
    struct part_place *place; /* (parts + 1) the last one has all of other groups */
    int *part_at;             /* (R) the part whose first replica this is */
    /* (groups + 1) group g owns [cut[g], cut[g + 1]) of each segment; the ends are 0 and 1 */
    double *cut;
    int tags;                 /* of a chunk: one a part of a group, and one of weights */
    int tag_end;              /* behind those of all chunks: of what ranks ask for */
    MPI_Request *request;
    struct message *message;
    int *index; /* (requests) those that have ended, of one look */
    int requests;
    size_t own;                           /* floats that this group owns */
    size_t incoming_bytes, update_bytes;  /* the chunks' */
    unsigned char *incoming, *updates;
    /* (own) of the optimizer; the bank's group has the whole ones */
    float *state[DT_REDUCER_VECTORS];
    /* (givers) (own) of sums that no group can round alone; likewise, NULL: another */
    float **error;
    float *sum;    /* (P) of which the own floats are used, if the norm is asked for */
    double *norms; /* (norm_blocks) likewise */
    int *asks;     /* (groups) what they ask for in this step */

    /* The step under way. */
    int done;    /* requests that have ended */
    int started; /* buckets whose partial sums are on their way, from the last */
    int summed;  /* own chunks whose sum is there */
    bool ask_sent;
    int asks_missing; /* groups that have not said what they ask for */
    bool rows_posted; /* the group's workers may update the touched rows */
    enum { NORM_OPEN, NORM_POSTED, NORM_KNOWN } norm;
    MPI_Request norm_request;
};

/* ---- create: parts and chunks --------------------------------------------------------------- */

/* The part is all of a giver: its group rounds the sum. */
static bool is_whole(const struct dt_reducer *x, const struct dt__part *part)
{
    return x->giver[part->giver].group >= 0;
}

/* A group that has p of all P parts, and owns the share s of the vector, sends p (1 - s) + (H - 1)
 * s vectors, and gets (P - p) s + 1 - s. The shares that it may own if that is to be `most` at
 * most; false: none. */
static bool bound_share(const struct dt_reducer *x, int parts, double most, double *least_share,
                        double *most_share)
{
    const double sends = x->groups - 1 - parts, gets = x->parts - parts - 1;
    *least_share = sends < 0 && parts > most ? (most - parts) / sends : 0;
    *most_share = 1;
    if (sends > 0) *most_share = fmin(*most_share, (most - parts) / sends);
    if (gets > 0) *most_share = fmin(*most_share, (most - 1) / gets);
    return *least_share <= *most_share && (sends < 0 || parts <= most);
}

/* The sums of these over the groups; false: the shares cannot be so that `most` is kept. */
static bool bound_shares(const struct dt_reducer *x, const int *parts_of, double most,
                         double *all_least, double *all_most)
{
    bool can = true;
    *all_least = *all_most = 0;
    for (int g = 0; g < x->groups; g++) {
        double least_share, most_share;
        can &= bound_share(x, parts_of[g], most, &least_share, &most_share);
        *all_least += least_share;
        *all_most += most_share;
    }
    return can && *all_least <= 1 && *all_most >= 1;
}

/* Cuts the vector into the groups' shares, such that the busiest link carries least. */
static void cut_shares(struct dt_reducer *x, const int *parts_of)
{
    double *cut = x->owners->cut, low = 0, high = x->parts + x->groups, all_least, all_most;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(bound_shares(x, parts_of, middle, &all_least, &all_most) ? &high : &low) = middle;
    }
    bound_shares(x, parts_of, high, &all_least, &all_most);
    const double part = all_most > all_least ? (1 - all_least) / (all_most - all_least) : 0;
    for (int g = 0; g < x->groups; g++) {
        double least, most;
        bound_share(x, parts_of[g], high, &least, &most);
        cut[g + 1] = cut[g] + least + part * (most - least);
    }
    cut[x->groups] = 1;
}

/* A group's parts need not stand in a row: ranks may go to hosts in turn. */
static dt_status number_parts(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    struct part_place next = {0};
    int *parts_of = NULL;
    DT_TRY(dt_alloc((size_t)x->parts + 1, sizeof *o->place, "subtree table", &o->place));
    DT_TRY(dt_alloc((size_t)x->spec.replicas, sizeof(int), "subtree table", &o->part_at));
    DT_TRY(dt_alloc((size_t)x->groups + 1, sizeof *o->cut, "subtree table", &o->cut));
    DT_TRY(dt_alloc((size_t)x->groups, sizeof(int), "subtree table", &parts_of));
    for (int p = 0; p < x->parts; p++) {
        const struct dt__part *part = &x->part[p];
        next.number = parts_of[part->group]++;
        if (next.number + 2 > o->tags) o->tags = next.number + 2;
        o->part_at[part->first] = p;
        o->place[p] = next;
        if (part->group == x->group_index) continue;
        *(is_whole(x, part) ? &next.wholes : &next.rests) += 1;
    }
    o->place[x->parts] = next;
    cut_shares(x, parts_of);
    dt_free(parts_of);
    return DT_OK;
}

/* What a group owns of these floats. */
static struct dt__floats owned(const struct dt_reducer *x, struct dt__floats of, int group,
                               size_t grain)
{
    const double *cut = x->owners->cut + group;
    const size_t base = of.begin - of.begin % grain, units = (of.end - base + grain - 1) / grain;
    return dt__clip(of, (struct dt__floats){base + (size_t)((double)units * cut[0] + 0.5) * grain,
                                            base + (size_t)((double)units * cut[1] + 0.5) * grain});
}

/* Bytes of a part's sum of the chunk. */
static size_t partial_bytes(const struct chunk *chunk, bool whole)
{
    return whole ? chunk->bytes : (chunk->at.end - chunk->at.begin) * sizeof(float);
}

/* Own chunk: where the sum of another group's part arrives; of the part behind the last one: where
 * all have ended. */
static size_t incoming_at(const struct dt__owners *o, const struct chunk *chunk, int part)
{
    return chunk->incoming +
           (size_t)o->place[part].wholes * dt__cache_lines(partial_bytes(chunk, true)) +
           (size_t)o->place[part].rests * dt__cache_lines(partial_bytes(chunk, false));
}

/* Of a segment of whole floats, number `number` of all in the order of sending. */
static void cut_piece(struct dt_reducer *x, int bucket, const struct dt__segment *segment,
                      int number, int owner, int piece)
{
    struct dt__owners *o = x->owners;
    const size_t begin = segment->at.begin;
    struct dt__floats at = owned(x, segment->at, owner, x->grain);
    if (x->spec.norm)
        at = dt__clip(owned(x, (struct dt__floats){0, x->spec.params}, owner, DT__TREE_BLOCK),
                      segment->at);
    size_t pieces = (at.end - at.begin + DT__CHUNK - 1) / DT__CHUNK;
    if (pieces > DT__SLICE_CHUNKS) pieces = DT__SLICE_CHUNKS;
    if ((size_t)piece >= pieces) return;
    at = dt__slice(at, piece, (int)pieces, x->grain);
    if (at.begin == at.end) return;
    const int wire = dt__wire_at(x, at.begin);
    struct chunk *chunk = &o->chunk[o->chunks++];
    *chunk = (struct chunk){
        .bucket = bucket,
        .owner = owner,
        .tag = DT__TAG_CHUNKS + (number * DT__SLICE_CHUNKS + piece) * o->tags,
        .at = at,
        .wire = wire,
        .bytes = dt__wire_bytes(wire, at.begin, at.end - at.begin),
        .given = segment->given + dt__wire_bytes(wire, begin, at.begin - begin),
        .update = o->update_bytes,
        .incoming = o->incoming_bytes,
        .own_at = o->own};
    if (wire) o->update_bytes += dt__cache_lines(chunk->bytes);
    if (owner != x->group_index) return;
    o->incoming_bytes = incoming_at(o, chunk, x->parts);
    o->own += at.end - at.begin;
    o->own_chunks++;
}

/* Segments of whole floats, at most. */
static int most_segments(const struct dt_reducer *x)
{
    return x->spec.buckets + x->spec.row_ranges;
}

/* The tag behind those of chunks, which must be one that MPI has. */
static dt_status check_tags(struct dt_reducer *x, int *out_end)
{
    const double end =
        DT__TAG_CHUNKS + (double)most_segments(x) * DT__SLICE_CHUNKS * x->owners->tags;
    int *most, known;
    DT_MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known));
    if (end > (known ? *most : 32767)) /* that any MPI has */
        return dt_fail(
            DT_EUSAGE,
            "%d layers, with %d sums of replicas on one host, are %.0f kinds of messages, "
            "and MPI has tags up to %d: expected fewer replicas, or ranks host by host",
            x->spec.buckets, x->owners->tags - 1, end, known ? *most : 32767);
    *out_end = (int)end;
    return DT_OK;
}

static dt_status cut_chunks(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int buckets = x->spec.buckets, number = 0;
    size_t most = x->spec.params / DT__CHUNK + (size_t)most_segments(x) * (size_t)x->groups + 1;
    DT_TRY(check_tags(x, &o->tag_end));
    DT_TRY(dt_alloc(most, sizeof *o->chunk, "chunk table", &o->chunk));
    DT_TRY(dt_alloc((size_t)buckets + 1, sizeof(int), "chunk table", &o->bucket_chunks));
    for (int b = buckets - 1; b >= 0; b--) {
        struct dt__bucket *bucket = &x->bucket[b];
        for (int s = bucket->segment; s < bucket[1].segment; s++) {
            if (x->segment[s].kind != DT__WHOLE) continue;
            for (int piece = 0; piece < DT__SLICE_CHUNKS; piece++)
                for (int i = 1; i <= x->groups; i++)
                    cut_piece(x, b, &x->segment[s], number, (x->group_index + i) % x->groups,
                              piece);
            number++;
        }
        o->bucket_chunks[b] = o->chunks;
        bucket->pieces = (uint32_t)(o->chunks - o->bucket_chunks[b + 1]);
        if (bucket->has_rows) bucket->pieces += x->group_workers ? (uint32_t)x->group_workers : 1;
    }
    return DT_OK;
}

/* ---- create: messages ----------------------------------------------------------------------- */

/* What travels from the owner. */
static void *weights_of(const struct dt_reducer *x, const struct chunk *chunk)
{
    return chunk->wire ? (void *)(x->owners->updates + chunk->update)
                       : x->vectors[0] + chunk->at.begin;
}

static void add_message(struct dt_reducer *x, enum message_kind kind, int chunk, void *bytes,
                        size_t length, int group, int tag)
{
    struct dt__owners *o = x->owners;
    MPI_Request *request = &o->request[o->requests];
    o->message[o->requests++] = (struct message){kind, chunk};
    if (kind == PARTIAL_OUT || kind == WEIGHTS_OUT || kind == ASK_OUT)
        DT_MPI(MPI_Send_init(bytes, (int)length, MPI_BYTE, group, tag, x->leaders.comm, request));
    else
        DT_MPI(MPI_Recv_init(bytes, (int)length, MPI_BYTE, group, tag, x->leaders.comm, request));
}

/* Of an own chunk: a partial sum from each other group's part, and weights to each other group. Of
 * another group's chunk: this group's partial sums, and its weights. */
static void add_messages_of_chunk(struct dt_reducer *x, int c)
{
    struct dt__owners *o = x->owners;
    struct chunk *chunk = &o->chunk[c];
    const bool own = chunk->owner == x->group_index;
    const int tag = chunk->tag + o->tags - 1;
    chunk->first_send = o->requests;
    for (int p = 0; p < x->parts; p++) {
        const struct dt__part *part = &x->part[p];
        if (own == (part->group == x->group_index)) continue;
        void *sum = own ? o->incoming + incoming_at(o, chunk, p)
                    : is_whole(x, part) && chunk->wire
                        ? x->giver[part->giver].given + chunk->given
                        : (void *)(x->slot[part->first] + chunk->at.begin);
        add_message(x, own ? PARTIAL_IN : PARTIAL_OUT, c, sum,
                    partial_bytes(chunk, is_whole(x, part)), own ? part->group : chunk->owner,
                    chunk->tag + o->place[p].number);
    }
    if (!own) {
        add_message(x, WEIGHTS_IN, c, weights_of(x, chunk), chunk->bytes, chunk->owner, tag);
        return;
    }
    chunk->first_send = o->requests;
    for (int i = 1; i < x->groups; i++)
        add_message(x, WEIGHTS_OUT, c, weights_of(x, chunk), chunk->bytes,
                    (x->group_index + i) % x->groups, tag);
}

/* ---- create --------------------------------------------------------------------------------- */

static dt_status allocate(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    const size_t others = (size_t)x->groups - 1, chunks = (size_t)o->chunks,
                 own_chunks = (size_t)o->own_chunks;
    const size_t foreign = (size_t)(o->place[x->parts].wholes + o->place[x->parts].rests);
    const size_t most = own_chunks * (foreign + others) +
                        (chunks - own_chunks) * ((size_t)x->parts - foreign + 1) + 2 * others;
    DT_TRY(dt_alloc(most, sizeof *o->request, "requests", &o->request));
    DT_TRY(dt_alloc(most, sizeof *o->message, "requests", &o->message));
    DT_TRY(dt_alloc(most, sizeof *o->index, "requests", &o->index));
    DT_TRY(dt_alloc((size_t)x->groups, sizeof(int), "requests", &o->asks));
    DT_TRY(dt_alloc(o->incoming_bytes, 1, "partial sums", &o->incoming));
    DT_TRY(dt_alloc(o->update_bytes, 1, "updates", &o->updates));
    for (int v = 1; v < x->spec.vectors && x->group_index > 0; v++)
        DT_TRY(dt_alloc(o->own, sizeof(float), "optimizer state", &o->state[v]));
    DT_TRY(dt_alloc((size_t)x->spec.givers, sizeof *o->error, "rounding errors", &o->error));
    for (int g = 0; g < x->spec.givers && x->spec.wire && x->group_index > 0; g++)
        if (x->giver[g].group < 0)
            DT_TRY(dt_alloc(o->own, sizeof(float), "rounding errors", &o->error[g]));
    if (dt__rows_are_touched(x)) DT_TRY(dt__rows_exchange_create(x));
    if (!x->spec.norm) return DT_OK;
    DT_TRY(dt_alloc(x->spec.params, sizeof(float), "gradient sums", &o->sum));
    return dt_alloc(x->norm_blocks, sizeof(double), "norm", &o->norms);
}

static dt_status owners_prepare(struct dt_reducer *x)
{
    DT_TRY(dt_alloc(1, sizeof *x->owners, "slices", &x->owners));
    DT_TRY(number_parts(x));
    DT_TRY(cut_chunks(x));
    return x->group_rank == 0 ? allocate(x) : DT_OK;
}

static void owners_connect(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    for (int c = 0; c < o->chunks; c++)
        add_messages_of_chunk(x, c);
    for (int i = 1; i < x->groups; i++) {
        const int group = (x->group_index + i) % x->groups;
        add_message(x, ASK_OUT, 0, &o->asks[x->group_index], sizeof(int), group, o->tag_end);
        add_message(x, ASK_IN, 0, &o->asks[group], sizeof(int), group, o->tag_end);
    }
}

static void owners_destroy(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    dt__rows_exchange_destroy(x);
    if (!o) return;
    for (int i = 0; i < o->requests; i++)
        DT_MPI(MPI_Request_free(&o->request[i]));
    void *tables[] = {o->chunk, o->bucket_chunks, o->place,   o->part_at, o->cut,
                      o->error, o->request,       o->message, o->index,   o->incoming,
                      o->sum,   o->updates,       o->norms,   o->asks,    o};
    for (int v = 0; v < DT_REDUCER_VECTORS; v++)
        dt_free(o->state[v]);
    for (int g = 0; o->error && g < x->spec.givers; g++)
        dt_free(o->error[g]);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        dt_free(tables[i]);
}

/* ---- the optimizer's state ------------------------------------------------------------------ */

/* The vectors as an update of the chunk sees them: whole at the bank's group, else only the own
 * floats of the state, so placed that the chunk's are where they would be in the whole. */
static void vectors_of(const struct dt_reducer *x, const struct chunk *chunk,
                       float *out[DT_REDUCER_VECTORS])
{
    const struct dt__owners *o = x->owners;
    out[0] = x->vectors[0];
    for (int v = 1; v < x->spec.vectors; v++)
        out[v] = x->group_index ? o->state[v] + chunk->own_at - chunk->at.begin : x->vectors[v];
}

/* Likewise the error of a sum that the owners round. */
static float *error_of(const struct dt_reducer *x, const struct chunk *chunk, int giver)
{
    return x->group_index ? x->owners->error[giver] + chunk->own_at - chunk->at.begin
                          : x->giver[giver].error;
}

/* n floats between the bank and another group's leader; the other leaders do nothing. */
static void move_floats(const struct dt_reducer *x, int group, bool to_bank, float *at, size_t n)
{
    dt_ranks_move(&x->leaders, to_bank ? group : 0, to_bank ? 0 : group, at, n * sizeof *at);
}

/* Between the bank and the owners, chunk by chunk; errors of rounded sums stand whole where they
 * are kept, or are the owners' too. The state of row-sparse ranges all groups have, from the
 * bank. */
static void owners_move_state(struct dt_reducer *x, bool to_bank)
{
    const struct dt__owners *o = x->owners;
    for (int c = 0; c < o->chunks; c++) {
        const struct chunk *chunk = &o->chunk[c];
        const size_t begin = chunk->at.begin, n = chunk->at.end - begin;
        float *mine[DT_REDUCER_VECTORS];
        if (x->group_index && chunk->owner != x->group_index) continue;
        vectors_of(x, chunk, mine);
        for (int v = 1; v < x->spec.vectors; v++)
            move_floats(x, chunk->owner, to_bank, mine[v] + begin, n);
        for (int g = 0; g < x->spec.givers && x->spec.wire; g++)
            if (x->giver[g].group < 0)
                move_floats(x, chunk->owner, to_bank, error_of(x, chunk, g) + begin, n);
    }
    for (int g = 0; g < x->spec.givers && x->spec.wire; g++) {
        for (int s = 0; s < x->bucket[x->spec.buckets].segment && x->giver[g].group >= 0; s++) {
            const struct dt__segment *segment = &x->segment[s];
            const size_t begin = segment->at.begin, n = segment->at.end - begin;
            if (segment->kind == DT__WHOLE)
                move_floats(x, x->giver[g].group, to_bank, x->giver[g].error + begin, n);
        }
    }
    for (int i = 0; x->rows_exchange && !to_bank && i < x->spec.row_ranges; i++) {
        const struct dt_row_range *range = &x->spec.row_range[i];
        for (int v = 1; v < x->spec.vectors; v++)
            dt__leaders_bcast(x, x->vectors[v] + range->offset, range->rows * range->width);
    }
}

/* ---- a step --------------------------------------------------------------------------------- */

/* Sums that other groups send are asked for from the first: they come to where nobody else
 * reads. */
static void owners_begin(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    o->done = o->started = o->summed = 0;
    o->ask_sent = false;
    o->asks_missing = x->groups;
    o->norm = x->spec.norm ? NORM_OPEN : NORM_KNOWN;
    o->rows_posted = !x->rows_exchange;
    for (int c = 0; c < o->chunks; c++)
        o->chunk[c].missing = o->place[x->parts].wholes + o->place[x->parts].rests + 1;
    for (int i = 0; i < o->requests; i++) {
        enum message_kind kind = o->message[i].kind;
        if (kind == PARTIAL_IN || kind == ASK_IN) DT_MPI(MPI_Start(&o->request[i]));
    }
}

/* dt__leaf_fn: the sum of a part, of an own chunk of which all partial sums are there. */
static const float *part_leaf(struct dt_reducer *x, const void *arg, int a, int b, size_t at,
                              size_t n, float (*block)[DT__TREE_BLOCK])
{
    const struct dt__owners *o = x->owners;
    const struct chunk *chunk = arg;
    const int p = o->part_at[a];
    (void)n, (void)block;
    if (x->part[p].end != b) return NULL;
    if (x->part[p].group == x->group_index) return x->slot[a] + at;
    return (const float *)(const void *)(o->incoming + incoming_at(o, chunk, p)) +
           (at - chunk->at.begin);
}

/* dt__leaf_fn: the sum of a giver, likewise. */
static const float *giver_leaf(struct dt_reducer *x, const void *arg, int a, int b, size_t at,
                               size_t n, float (*block)[DT__TREE_BLOCK])
{
    const struct chunk *chunk = arg;
    const struct dt__giver *giver = &x->giver[a];
    const size_t begin = chunk->at.begin;
    if (b - a > 1) return NULL;
    if (!chunk->wire || giver->group < 0) {
        const float *sum =
            dt__tree_sum(x, part_leaf, chunk, giver->first, giver[1].first, at, n, block);
        if (chunk->wire) /* of two parts and more: it stands in the block */
            dt__wire_round(chunk->wire, at, n, block[0], error_of(x, chunk, a) + at, NULL);
        return sum;
    }
    /* rounded by its group */
    if (giver->group == x->group_index) return x->slot[giver->first] + at;
    dt__wire_read(chunk->wire, at, n,
                  x->owners->incoming + incoming_at(x->owners, chunk, giver->part) +
                      dt__wire_bytes(chunk->wire, begin, at - begin),
                  block[0]);
    return block[0];
}

/* Updates an own chunk and sends its weights, or, with a rounded wire, the update. */
static void update_chunk(struct dt_reducer *x, int c)
{
    struct dt__owners *o = x->owners;
    const struct chunk *chunk = &o->chunk[c];
    float *vectors[DT_REDUCER_VECTORS];
    vectors_of(x, chunk, vectors);
    double start = dt_clock_secs();
    dt__floats_update(x, giver_leaf, chunk, chunk->at, o->sum, vectors,
                      chunk->wire ? o->updates + chunk->update : NULL);
    x->times.update += dt_clock_secs() - start;
    dt__event_post(&x->control->bucket[chunk->bucket].updated, 1);
    for (int i = 0; i < x->groups - 1; i++)
        DT_MPI(MPI_Start(&o->request[chunk->first_send + i]));
}

/* One more of the chunk's sums is there: the last one makes it whole. */
static void chunk_progress(struct dt_reducer *x, int c)
{
    struct dt__owners *o = x->owners;
    struct chunk *chunk = &o->chunk[c];
    if (--chunk->missing > 0) return;
    o->summed++;
    if (o->sum)
        dt__floats_sum(x, giver_leaf, chunk, chunk->at, o->sum);
    else
        update_chunk(x, c);
}

/* Partial sums of the buckets that the group has summed go out, and their new weights may come in:
 * not before, for a group without replicas has no sum that its owners would wait for, while its
 * workers may still read the old ones. */
static bool advance_buckets(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int before = o->started;
    for (; o->started < x->spec.buckets; o->started++) {
        int b = x->spec.buckets - 1 - o->started;
        if (!dt__event_reached(&x->control->bucket[b].summed, x->group_done)) break;
        for (int c = o->bucket_chunks[b + 1]; c < o->bucket_chunks[b]; c++) {
            if (o->chunk[c].owner == x->group_index) {
                chunk_progress(x, c);
                continue;
            }
            int i = o->chunk[c].first_send;
            for (; o->message[i].kind == PARTIAL_OUT; i++)
                DT_MPI(MPI_Start(&o->request[i]));
            DT_MPI(MPI_Start(&o->request[i])); /* WEIGHTS_IN */
        }
    }
    return o->started != before;
}

/* What has come in, or gone out. */
static bool advance_messages(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int count;
    DT_MPI(MPI_Testsome(o->requests, o->request, &count, o->index, MPI_STATUSES_IGNORE));
    if (count == MPI_UNDEFINED || count == 0) return false;
    o->done += count;
    for (int i = 0; i < count; i++) {
        const struct message *message = &o->message[o->index[i]];
        const struct chunk *chunk = &o->chunk[message->chunk];
        if (message->kind == PARTIAL_IN) chunk_progress(x, message->chunk);
        if (message->kind == ASK_IN) o->asks_missing--;
        if (message->kind != WEIGHTS_IN) continue;
        if (chunk->wire)
            dt__wire_add(chunk->wire, chunk->at.begin, chunk->at.end - chunk->at.begin,
                         o->updates + chunk->update, x->vectors[0] + chunk->at.begin);
        dt__event_post(&x->control->bucket[chunk->bucket].updated, 1);
    }
    return true;
}

/* The touched rows of all groups, and then the norm's blocks of all owners, and all updates. */
static bool advance_norm(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int done;
    const bool rows_come = !x->rows_exchange || dt__rows_exchange_done(x);
    if (o->norm == NORM_OPEN && o->summed == o->own_chunks && rows_come) {
        memset(o->norms, 0, x->norm_blocks * sizeof *o->norms);
        dt__norm_blocks(
            x, o->norms, o->sum,
            owned(x, (struct dt__floats){0, x->spec.params}, x->group_index, DT__TREE_BLOCK));
        DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, o->norms, (int)x->norm_blocks, MPI_DOUBLE, MPI_SUM,
                              x->leaders.comm, &o->norm_request));
        o->norm = NORM_POSTED;
    }
    if (o->norm != NORM_POSTED) return false;
    DT_MPI(MPI_Test(&o->norm_request, &done, MPI_STATUS_IGNORE));
    if (!done) return false;
    o->norm = NORM_KNOWN;
    x->info.norm2 = dt__norm_total(x, o->norms);
    for (int c = 0; c < o->chunks; c++)
        if (o->chunk[c].owner == x->group_index) update_chunk(x, c);
    return true;
}

/* With the rows of all groups, and the norm, the workers update. */
static bool advance_rows(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    if (o->rows_posted) return false;
    const bool moved = dt__rows_exchange_advance(x);
    if (o->norm != NORM_KNOWN || !dt__rows_exchange_done(x)) return moved;
    x->control->norm2 = x->info.norm2;
    dt__event_post(&x->control->exchanged, 1);
    return o->rows_posted = true;
}

/* What the group asks for goes to all others once its workers have ended the step: straight, for a
 * tree's messages would each stand behind the gradients in its connection. */
static bool advance_ask(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    if (!o->ask_sent && dt__event_reached(&x->control->ended, x->group_done)) {
        o->asks[x->group_index] = x->bank_ask | atomic_exchange(&x->control->asks[x->tick & 1], 0);
        for (int i = 0; i < o->requests; i++)
            if (o->message[i].kind == ASK_OUT) DT_MPI(MPI_Start(&o->request[i]));
        o->ask_sent = true;
        o->asks_missing--;
    }
    if (x->agreed || o->asks_missing > 0) return false;
    int asked = 0;
    for (int g = 0; g < x->groups; g++)
        asked |= o->asks[g];
    dt__group_agreed(x, asked);
    return true;
}

static bool owners_done(const struct dt_reducer *x)
{
    const struct dt__owners *o = x->owners;
    return o->done == o->requests && o->rows_posted && o->norm == NORM_KNOWN;
}

const struct dt__reducer_strategy dt__reducer_owners = {
    .prepare = owners_prepare,
    .connect = owners_connect,
    .destroy = owners_destroy,
    .move_state = owners_move_state,
    .begin = owners_begin,
    .advance = {advance_buckets, advance_messages, advance_rows, advance_norm, advance_ask},
    .done = owners_done,
};
