/* Several groups, each of which owns a slice of the vector: reduce-scatter, update, all-gather.
 *
 * A bucket is dealt out to the groups in equal slices, and these are cut into chunks. A group sends each
 * chunk's owner one partial sum for each maximal subtree of replicas that it holds. The owner sums in
 * the order of the fixed tree, updates (it has the optimizer's state of its slices), and sends the new
 * weights to all others. So with H groups of one subtree each, a link carries 2 (H - 1) / H of the
 * vector's bytes each way, the bound of any all-reduce; and the bits are a function of the replicas
 * alone. All sends go straight to where they are for: two latencies a bucket, at any H.
 * Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
 * SC 2020, section 5 (the optimizer's state); the exchange is reduce-scatter and all-gather of Thakur et
 * al., "Optimization of collective communication operations in MPICH", 2005, by direct sends.
 *
 * Chunks go from the last bucket to the first, each as soon as its bucket is summed inside the group,
 * while workers still compute the gradients of earlier layers. A group sends to the owners in an order
 * of its own, so that they are not all sent to the same one first. All messages of a step are persistent
 * requests, made once.
 *
 * With the norm, slices are dealt out of the whole vector, at multiples of its blocks, and every leader
 * gets the blocks' sums of squares before it updates.
 *
 * With a rounded wire a giver's sum travels rounded where its group has all of it, and in f32 in parts where
 * replicas of several groups make it: then the owner rounds it, as it sums. The owner sends the rounded
 * update, which each group adds to its weights. So a link carries 2 (H - 1) / H of the rounded bytes where
 * givers and groups are the same.
 *
 * Touched rows of row-sparse ranges go to all groups, which update them (rows.h); slices are cut of the rest.
 *
 * The owner does not wait for the agreement on what ranks ask for before it updates: a step that turns
 * out to have failed ends the run, and its weights are never saved. */
#include <string.h>

#include "comm/reducer.h"

enum {
    MOST_PIECES = 64 /* of a slice */
};

/* A piece of a slice, that travels as one message. */
struct chunk {
    int bucket, owner;
    int tag; /* the same at every group: of a group's first part, and so on; behind them, of weights */
    size_t begin, end;
    int wire;         /* enum dt_wire */
    size_t bytes;     /* of its floats, rounded */
    unsigned char *update;   /* (bytes) rounded; f32: NULL, weights travel from and to where they are */
    unsigned char *incoming; /* own: the partial sums of other groups, one by one */
    size_t own_at;    /* its place among this group's own floats */
    int missing;      /* own: partial sums that this step still waits for */
    int first_weight; /* own: the requests that send its weights */
};

/* What a request carries. */
struct message {
    enum message_kind { PARTIAL_OUT, PARTIAL_IN, WEIGHTS_OUT, WEIGHTS_IN, ASK_OUT, ASK_IN } kind;
    int chunk;
};

struct dt__owners {
    struct chunk *chunk; /* in the order of sending */
    int chunks;
    int stretches;      /* of buckets, at most */
    int *bucket_chunks; /* (buckets + 1) the chunks of bucket b begin at [b + 1] and end at [b] */
    int *part_number;   /* (parts) among those of its group */
    int *wholes_before; /* (parts) foreign ones before it that are all of a giver ... */
    int *rests_before;  /* ... and that are not */
    int most_parts;     /* of a group */
    MPI_Comm comm;
    MPI_Request *request;
    struct message *message;
    int *index; /* (requests) those that have ended, of one look */
    int requests;
    size_t own;  /* floats that this group owns */
    int foreign, foreign_wholes; /* parts of other groups; of them those that are all of a giver */
    unsigned char *incoming;     /* the chunks' */
    unsigned char *updates;      /* the chunks' */
    float *
        state[DT_REDUCER_VECTORS]; /* (own) of the optimizer; the bank's group has the whole ones */
    float **error; /* (givers) (own) of sums that no group can round alone; likewise, NULL: another */
    float *sum;         /* (P) of which the own floats are used, if the norm is asked for */
    double *norms;      /* (norm_blocks) likewise */
    const float **leaf; /* (R) for the sum of one chunk */
    int *whole;         /* (R) */
    int *asks;          /* (groups) what they ask for in this step */

    /* The step under way. */
    int done;       /* requests that have ended */
    int started;    /* buckets whose partial sums are on their way, from the last */
    int summed;     /* own chunks whose sum is there */
    int own_chunks; /* of so many */
    bool ask_sent;
    int asks_missing; /* groups that have not said what they ask for */
    bool rows_posted; /* the group's workers may update the touched rows */
    enum { NORM_OPEN, NORM_POSTED, NORM_KNOWN } norm;
    MPI_Request norm_request;
};

/* ---- create: parts -------------------------------------------------------------------------- */

/* A group's parts need not stand in a row: ranks may go to hosts in turn. */
static dt_status number_parts(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int *parts_of = NULL;
    DT_TRY(dt_alloc((size_t)x->parts, sizeof(int), "subtree table", &o->part_number));
    DT_TRY(dt_alloc((size_t)x->parts, sizeof(int), "subtree table", &o->wholes_before));
    DT_TRY(dt_alloc((size_t)x->parts, sizeof(int), "subtree table", &o->rests_before));
    DT_TRY(dt_alloc((size_t)x->groups, sizeof(int), "subtree table", &parts_of));
    for (int p = 0; p < x->parts; p++) {
        int number = parts_of[x->part[p].group]++;
        o->part_number[p] = number;
        if (number >= o->most_parts) o->most_parts = number + 1;
        o->wholes_before[p] = o->foreign_wholes;
        o->rests_before[p] = o->foreign - o->foreign_wholes;
        if (x->part[p].group == x->group_index) continue;
        o->foreign++;
        o->foreign_wholes += x->part[p].whole;
    }
    dt_free(parts_of);
    return DT_OK;
}

static int tags_a_chunk(const struct dt__owners *o)
{
    return o->most_parts + 1;
}

static int tag_of_weights(const struct dt__owners *o, const struct chunk *chunk)
{
    return chunk->tag + o->most_parts;
}

/* ---- create: chunks ------------------------------------------------------------------------- */

/* The owner's slice of a stretch [from, to) of a bucket. */
static void slice_of(const struct dt_reducer *x, size_t from, size_t to, int owner, size_t *begin,
                     size_t *end)
{
    if (!x->spec.norm) {
        dt__slice(from, to, owner, x->groups, dt__grain(x), begin, end);
        return;
    }
    dt__slice(0, x->spec.params, owner, x->groups, DT__TREE_BLOCK, begin, end);
    *begin = *begin > from ? *begin : from;
    *end = *end < to ? *end : to;
    if (*end < *begin) *end = *begin;
}

/* A stretch of floats that are exchanged in slices: what of a bucket is no touched rows. */
struct stretch {
    int bucket, number; /* of all stretches, in the order of sending */
    size_t begin, end;
};

static void cut_piece(struct dt_reducer *x, const struct stretch *stretch, int owner, int piece)
{
    struct dt__owners *o = x->owners;
    size_t begin, end;
    slice_of(x, stretch->begin, stretch->end, owner, &begin, &end);
    size_t pieces = (end - begin + DT__CHUNK - 1) / DT__CHUNK;
    if (pieces > MOST_PIECES) pieces = MOST_PIECES;
    if ((size_t)piece >= pieces) return;
    dt__slice(begin, end, piece, (int)pieces, dt__grain(x), &begin, &end);
    if (begin == end) return;
    bool mine = owner == x->group_index;
    int wire = dt__wire_at(x, begin);
    int number = (stretch->number * MOST_PIECES + piece) * x->groups + owner;
    o->chunk[o->chunks++] = (struct chunk){.bucket = stretch->bucket,
                                           .owner = owner,
                                           .tag = number * tags_a_chunk(o),
                                           .begin = begin,
                                           .end = end,
                                           .wire = wire,
                                           .bytes = dt__wire_bytes(wire, begin, end - begin),
                                           .own_at = o->own};
    if (!mine) return;
    o->own += end - begin;
    o->own_chunks++;
}

static dt_status cut_chunks(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int buckets = x->spec.buckets;
    struct stretch stretch = {0};
    o->stretches = buckets + x->spec.row_ranges;
    size_t most = x->spec.params / DT__CHUNK + (size_t)o->stretches * (size_t)x->groups + 1;
    if ((double)o->stretches * MOST_PIECES * x->groups * tags_a_chunk(o) > INT32_MAX)
        return dt_fail(
            DT_EUSAGE,
            "%d layers on %d hosts, with %d sums of replicas on one of them, are too many "
            "messages a step: expected fewer replicas, or ranks host by host",
            buckets, x->groups, o->most_parts);
    DT_TRY(dt_alloc(most, sizeof *o->chunk, "chunk table", &o->chunk));
    DT_TRY(dt_alloc((size_t)buckets + 1, sizeof(int), "chunk table", &o->bucket_chunks));
    for (int b = buckets - 1; b >= 0; b--) {
        stretch.bucket = b;
        stretch.end = dt__bucket_begin(x, b);
        for (; dt__stretch_next(x, b, &stretch.begin, &stretch.end); stretch.number++)
            for (int piece = 0; piece < MOST_PIECES; piece++)
                for (int i = 1; i <= x->groups; i++)
                    cut_piece(x, &stretch, (x->group_index + i) % x->groups, piece);
        o->bucket_chunks[b] = o->chunks;
        x->pieces[b] = (uint32_t)(o->chunks - o->bucket_chunks[b + 1]);
        if (dt__rows_are_in(x, b))
            x->pieces[b] += x->group_workers ? (uint32_t)x->group_workers : 1;
    }
    return DT_OK;
}

/* ---- create: messages ----------------------------------------------------------------------- */

/* Bytes of a part's sum of the chunk. */
static size_t partial_bytes(const struct chunk *chunk, bool whole)
{
    return whole ? chunk->bytes : (chunk->end - chunk->begin) * sizeof(float);
}

/* Room for so many bytes, in whole cache lines. */
static size_t room(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Own chunk: where the sum of another group's part arrives. */
static unsigned char *incoming(const struct dt__owners *o, const struct chunk *chunk, int part)
{
    return chunk->incoming + (size_t)o->wholes_before[part] * room(partial_bytes(chunk, true)) +
           (size_t)o->rests_before[part] * room(partial_bytes(chunk, false));
}

static size_t incoming_bytes(const struct dt__owners *o, const struct chunk *chunk)
{
    return (size_t)o->foreign_wholes * room(partial_bytes(chunk, true)) +
           (size_t)(o->foreign - o->foreign_wholes) * room(partial_bytes(chunk, false));
}

/* Where the sum of this group's part stands. */
static const void *outgoing(const struct dt_reducer *x, const struct chunk *chunk,
                            const struct dt__part *part)
{
    if (!part->whole || !chunk->wire) return x->slot[part->first] + chunk->begin;
    const size_t bucket = dt__bucket_begin(x, chunk->bucket);
    return x->given[part->giver] + x->given_place[chunk->bucket] +
           dt__wire_bytes(chunk->wire, bucket, chunk->begin - bucket);
}

static MPI_Request *add_message(struct dt__owners *o, enum message_kind kind, int chunk)
{
    o->message[o->requests] = (struct message){kind, chunk};
    return &o->request[o->requests++];
}

/* What travels from the owner. */
static void *weights_of(const struct dt_reducer *x, const struct chunk *chunk)
{
    return chunk->wire ? (void *)chunk->update : x->vectors[0] + chunk->begin;
}

/* Of an own chunk: a partial sum from each other group's part, and weights to each other group. */
static void add_own(struct dt_reducer *x, int c)
{
    struct dt__owners *o = x->owners;
    struct chunk *chunk = &o->chunk[c];
    for (int p = 0; p < x->parts; p++) {
        int from = x->part[p].group;
        if (from == x->group_index) continue;
        DT_MPI(MPI_Recv_init(incoming(o, chunk, p), (int)partial_bytes(chunk, x->part[p].whole),
                             MPI_BYTE, from, chunk->tag + o->part_number[p], o->comm,
                             add_message(o, PARTIAL_IN, c)));
    }
    chunk->first_weight = o->requests;
    for (int i = 1; i < x->groups; i++)
        DT_MPI(MPI_Send_init(weights_of(x, chunk), (int)chunk->bytes, MPI_BYTE,
                             (x->group_index + i) % x->groups, tag_of_weights(o, chunk), o->comm,
                             add_message(o, WEIGHTS_OUT, c)));
}

/* Of another group's chunk: this group's partial sums, and its weights. */
static void add_foreign(struct dt_reducer *x, int c)
{
    struct dt__owners *o = x->owners;
    struct chunk *chunk = &o->chunk[c];
    chunk->first_weight = o->requests;
    for (int p = 0; p < x->parts; p++)
        if (x->part[p].group == x->group_index)
            DT_MPI(MPI_Send_init(outgoing(x, chunk, &x->part[p]),
                                 (int)partial_bytes(chunk, x->part[p].whole), MPI_BYTE,
                                 chunk->owner, chunk->tag + o->part_number[p], o->comm,
                                 add_message(o, PARTIAL_OUT, c)));
    DT_MPI(MPI_Recv_init(weights_of(x, chunk), (int)chunk->bytes, MPI_BYTE, chunk->owner,
                         tag_of_weights(o, chunk), o->comm, add_message(o, WEIGHTS_IN, c)));
}

static void add_messages(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int ask_tag = (o->stretches * MOST_PIECES * x->groups) * tags_a_chunk(o);
    for (int c = 0; c < o->chunks; c++) {
        if (o->chunk[c].owner == x->group_index)
            add_own(x, c);
        else
            add_foreign(x, c);
    }
    for (int i = 1; i < x->groups; i++) {
        int group = (x->group_index + i) % x->groups;
        DT_MPI(MPI_Send_init(&o->asks[x->group_index], 1, MPI_INT, group, ask_tag, o->comm,
                             add_message(o, ASK_OUT, 0)));
        DT_MPI(MPI_Recv_init(&o->asks[group], 1, MPI_INT, group, ask_tag, o->comm,
                             add_message(o, ASK_IN, 0)));
    }
}

/* ---- create --------------------------------------------------------------------------------- */

/* Partial sums that come in, and rounded updates, of all chunks. */
static dt_status allocate_payload(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    size_t partial = 0, updates = 0, most;
    if (!dt_size_mul(o->own + 16 * (size_t)o->own_chunks, sizeof(float) * (size_t)o->foreign, &most))
        return dt_fail(DT_EMEMORY, "partial sums are beyond memory");
    for (int c = 0; c < o->chunks; c++) {
        const struct chunk *chunk = &o->chunk[c];
        if (chunk->owner == x->group_index) partial += incoming_bytes(o, chunk);
        if (chunk->wire) updates += room(chunk->bytes);
    }
    DT_TRY(dt_alloc(partial, 1, "partial sums", &o->incoming));
    DT_TRY(dt_alloc(updates, 1, "updates", &o->updates));
    partial = updates = 0;
    for (int c = 0; c < o->chunks; c++) {
        struct chunk *chunk = &o->chunk[c];
        if (chunk->wire) chunk->update = o->updates + updates;
        if (chunk->wire) updates += room(chunk->bytes);
        if (chunk->owner != x->group_index) continue;
        chunk->incoming = o->incoming + partial;
        partial += incoming_bytes(o, chunk);
    }
    return DT_OK;
}

/* Errors of those sums that the owners round, a slice each. */
static dt_status allocate_errors(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    if (!x->spec.wire) return DT_OK;
    DT_TRY(dt_alloc((size_t)x->spec.givers, sizeof *o->error, "rounding errors", &o->error));
    for (int g = 0; g < x->spec.givers; g++)
        if (!x->part[x->giver_part[g]].whole && x->group_index > 0)
            DT_TRY(dt_alloc(o->own, sizeof(float), "rounding errors", &o->error[g]));
    return DT_OK;
}

static dt_status allocate(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    size_t replicas = (size_t)x->spec.replicas, others = (size_t)x->groups - 1;
    size_t parts = (size_t)(x->parts - o->foreign), chunks = (size_t)o->chunks;
    size_t own_chunks = (size_t)o->own_chunks;
    size_t most = own_chunks * ((size_t)o->foreign + others) + (chunks - own_chunks) * (parts + 1) +
                  2 * others;
    DT_TRY(dt_alloc(most, sizeof *o->request, "requests", &o->request));
    DT_TRY(dt_alloc(most, sizeof *o->message, "requests", &o->message));
    DT_TRY(dt_alloc(most, sizeof *o->index, "requests", &o->index));
    DT_TRY(allocate_payload(x));
    for (int v = 1; v < x->spec.vectors && x->group_index > 0; v++)
        DT_TRY(dt_alloc(o->own, sizeof(float), "optimizer state", &o->state[v]));
    DT_TRY(allocate_errors(x));
    if (dt__rows_are_touched(x)) DT_TRY(dt__rows_exchange_create(x, &x->rows_exchange));
    if (x->spec.norm) {
        DT_TRY(dt_alloc(x->spec.params, sizeof(float), "gradient sums", &o->sum));
        DT_TRY(dt_alloc(x->norm_blocks, sizeof(double), "norm", &o->norms));
    }
    DT_TRY(dt_alloc((size_t)x->groups, sizeof(int), "requests", &o->asks));
    DT_TRY(dt_alloc(replicas, sizeof *o->leaf, "sum table", &o->leaf));
    return dt_alloc(replicas, sizeof *o->whole, "sum table", &o->whole);
}

static dt_status owners_create(struct dt_reducer *x)
{
    dt_status status = dt_alloc(1, sizeof *x->owners, "slices", &x->owners);
    if (!status) x->owners->comm = MPI_COMM_NULL;
    if (!status) status = number_parts(x);
    if (!status) status = cut_chunks(x);
    if (!status && x->leaders != MPI_COMM_NULL) status = allocate(x);
    DT_TRY(dt__agree_among(x->world, x->all, status));
    if (x->leaders == MPI_COMM_NULL) return DT_OK;
    DT_MPI(MPI_Comm_dup(x->leaders, &x->owners->comm));
    add_messages(x);
    if (x->rows_exchange) dt__rows_exchange_connect(x, x->rows_exchange);
    return DT_OK;
}

static void owners_destroy(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    dt__rows_exchange_destroy(x->rows_exchange);
    if (!o) return;
    for (int i = 0; i < o->requests; i++)
        DT_MPI(MPI_Request_free(&o->request[i]));
    if (o->comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&o->comm));
    void *owned[] = {
        o->chunk, o->bucket_chunks, o->part_number, o->wholes_before, o->rests_before,
        o->error, o->request,       o->message,     o->index,         o->incoming,
        o->sum,   o->updates,       o->norms,       o->leaf,          o->whole,
        o->asks,  o};
    for (int v = 0; v < DT_REDUCER_VECTORS; v++)
        dt_free(o->state[v]);
    for (int g = 0; o->error && g < x->spec.givers; g++)
        dt_free(o->error[g]);
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free(owned[i]);
}

/* ---- the optimizer's state ------------------------------------------------------------------ */

/* The vectors as an update of the chunk sees them: whole at the bank's group, else only the own floats
 * of the state, so placed that the chunk's are where they would be in the whole. */
static void vectors_of(const struct dt_reducer *x, const struct chunk *chunk,
                       float *out[DT_REDUCER_VECTORS])
{
    const struct dt__owners *o = x->owners;
    out[0] = x->vectors[0];
    for (int v = 1; v < x->spec.vectors; v++)
        out[v] = x->group_index ? o->state[v] + chunk->own_at - chunk->begin : x->vectors[v];
}

/* Likewise the error of a sum that the owners round. */
static float *error_of(const struct dt_reducer *x, const struct chunk *chunk, int giver)
{
    return x->group_index ? x->owners->error[giver] + chunk->own_at - chunk->begin
                          : x->error[giver];
}

/* n floats between the bank and another group's leader; the other leaders do nothing. */
static void move_floats(const struct dt_reducer *x, int group, bool to_bank, float *at, size_t n, int tag)
{
    const bool bank = x->group_index == 0;
    if (group == 0 || (!bank && x->group_index != group)) return;
    for (size_t done = 0, most = DT__MPI_CHUNK / sizeof(float), some; done < n; done += some) {
        MPI_Request request;
        some = n - done < most ? n - done : most;
        if (bank == to_bank)
            DT_MPI(MPI_Irecv(at + done, (int)some, MPI_FLOAT, bank ? group : 0, tag,
                             x->owners->comm, &request));
        else
            DT_MPI(MPI_Isend(at + done, (int)some, MPI_FLOAT, bank ? group : 0, tag,
                             x->owners->comm, &request));
        dt__request_finish(x->world, &request, "optimizer state");
    }
}

/* Between the bank and the owners, chunk by chunk; errors of rounded sums are whole where they are kept, or
 * the owners' too. The state of row-sparse ranges all groups have, from the bank. */
static void owners_move_state(struct dt_reducer *x, bool to_bank)
{
    const struct dt__owners *o = x->owners;
    for (int c = 0; c < o->chunks; c++) {
        const struct chunk *chunk = &o->chunk[c];
        const size_t n = chunk->end - chunk->begin;
        const bool here = x->group_index == 0 || chunk->owner == x->group_index;
        float *mine[DT_REDUCER_VECTORS];
        vectors_of(x, chunk, mine);
        for (int v = 1; v < x->spec.vectors && here; v++)
            move_floats(x, chunk->owner, to_bank, mine[v] + chunk->begin, n, chunk->tag);
        for (int g = 0; g < x->spec.givers && here && x->spec.wire; g++)
            if (!x->part[x->giver_part[g]].whole)
                move_floats(x, chunk->owner, to_bank, error_of(x, chunk, g) + chunk->begin, n,
                            chunk->tag);
    }
    for (int g = 0; g < x->spec.givers && x->spec.wire; g++) {
        const struct dt__part *part = &x->part[x->giver_part[g]];
        if (part->whole) move_floats(x, part->group, to_bank, x->error[g], x->spec.params, 0);
    }
    for (int i = 0; x->rows_exchange && !to_bank && i < x->spec.row_ranges; i++) {
        const struct dt_row_range *range = &x->spec.row_range[i];
        for (int v = 1; v < x->spec.vectors; v++)
            dt__leaders_bcast(x, x->vectors[v] + range->offset, range->rows * range->width,
                              "optimizer state");
    }
}

/* ---- a step --------------------------------------------------------------------------------- */

/* What will come is asked for from the first; nothing can come before this group has sent what it is
 * made of. */
static void owners_begin(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    o->done = o->started = o->summed = 0;
    o->ask_sent = false;
    o->asks_missing = x->groups;
    o->norm = x->spec.norm ? NORM_OPEN : NORM_KNOWN;
    o->rows_posted = !x->rows_exchange;
    if (x->rows_exchange) dt__rows_exchange_begin(x->rows_exchange);
    for (int c = 0; c < o->chunks; c++)
        o->chunk[c].missing = o->foreign + 1;
    for (int i = 0; i < o->requests; i++) {
        enum message_kind kind = o->message[i].kind;
        if (kind == PARTIAL_IN || kind == WEIGHTS_IN || kind == ASK_IN)
            DT_MPI(MPI_Start(&o->request[i]));
    }
}

/* dt__giver_fn: of an own chunk, with all partial sums there. */
static const float *owned_giver(struct dt_reducer *x, const void *arg, int giver, size_t at, size_t n,
                                float (*block)[DT__TREE_BLOCK])
{
    const struct chunk *chunk = arg;
    struct dt__owners *o = x->owners;
    const int first = x->giver_part[giver], end = x->giver_part[giver + 1];
    const size_t from = at - chunk->begin;
    if (x->part[first].whole && chunk->wire) { /* rounded by its group */
        if (x->part[first].group == x->group_index) return x->slot[x->part[first].first] + at;
        dt__wire_read(chunk->wire, at, n,
                      incoming(o, chunk, first) + dt__wire_bytes(chunk->wire, chunk->begin, from),
                      block[0]);
        return block[0];
    }
    for (int p = first; p < end; p++) {
        const struct dt__part *part = &x->part[p];
        bool mine = part->group == x->group_index;
        o->leaf[part->first] = mine ? x->slot[part->first] + chunk->begin
                                    : (const float *)(const void *)incoming(o, chunk, p);
        o->whole[part->first] = part->end;
    }
    const float *sum = dt__tree_sum(o->leaf, o->whole, dt__giver_begin(x, giver),
                                    dt__giver_begin(x, giver + 1), from, n, block);
    if (chunk->wire) /* of two parts and more: it stands in the block */
        dt__wire_round(chunk->wire, at, n, block[0], error_of(x, chunk, giver) + at, NULL);
    return sum;
}

/* Updates an own chunk and sends its weights, or, with a rounded wire, the update. */
static void update_chunk(struct dt_reducer *x, int c)
{
    struct dt__owners *o = x->owners;
    const struct chunk *chunk = &o->chunk[c];
    float *vectors[DT_REDUCER_VECTORS];
    vectors_of(x, chunk, vectors);
    double start = dt_clock_secs();
    for (size_t at = chunk->begin, n; at < chunk->end; at += n) {
        n = dt__block_length(at, chunk->end);
        const float *sum = o->sum ? o->sum + at : dt__givers_sum(x, owned_giver, chunk, at, n);
        float *out = chunk->wire ? x->fresh : vectors[0] + at;
        x->spec.update(x->spec.arg, &x->info, at, n, sum, vectors, out);
        if (chunk->wire)
            dt__wire_update(chunk->wire, at, n, out, vectors[x->spec.vectors - 1] + at,
                            vectors[0] + at,
                            chunk->update + dt__wire_bytes(chunk->wire, chunk->begin,
                                                           at - chunk->begin));
    }
    x->times.update += dt_clock_secs() - start;
    dt__event_post(&x->control->bucket[chunk->bucket].updated, 1);
    for (int i = 0; i < x->groups - 1; i++)
        DT_MPI(MPI_Start(&o->request[chunk->first_weight + i]));
}

/* Another group's update, or weights, of a chunk have come. */
static void take_weights(struct dt_reducer *x, const struct chunk *chunk)
{
    if (chunk->wire)
        dt__wire_add(chunk->wire, chunk->begin, chunk->end - chunk->begin, chunk->update,
                     x->vectors[0] + chunk->begin);
    dt__event_post(&x->control->bucket[chunk->bucket].updated, 1);
}

/* One more of the chunk's sums is there: the last one makes it whole. */
static void chunk_progress(struct dt_reducer *x, int c)
{
    struct dt__owners *o = x->owners;
    struct chunk *chunk = &o->chunk[c];
    if (--chunk->missing > 0) return;
    o->summed++;
    if (!o->sum) {
        update_chunk(x, c);
        return;
    }
    for (size_t at = chunk->begin, n; at < chunk->end; at += n) {
        n = dt__block_length(at, chunk->end);
        memcpy(o->sum + at, dt__givers_sum(x, owned_giver, chunk, at, n), n * sizeof(float));
    }
}

/* Partial sums of the buckets that the group has summed go out. */
static bool advance_buckets(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int before = o->started;
    for (; o->started < x->spec.buckets; o->started++) {
        int b = x->spec.buckets - 1 - o->started;
        if (!dt__event_reached(&x->control->bucket[b].summed, dt__group_all(x))) break;
        for (int c = o->bucket_chunks[b + 1]; c < o->bucket_chunks[b]; c++) {
            if (o->chunk[c].owner == x->group_index) {
                chunk_progress(x, c);
                continue;
            }
            for (int i = o->chunk[c].first_weight; o->message[i].kind == PARTIAL_OUT; i++)
                DT_MPI(MPI_Start(&o->request[i]));
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
        if (message->kind == PARTIAL_IN) chunk_progress(x, message->chunk);
        if (message->kind == WEIGHTS_IN) take_weights(x, &o->chunk[message->chunk]);
        if (message->kind == ASK_IN) o->asks_missing--;
    }
    return true;
}

/* The touched rows of all groups, and then the norm's blocks of all owners, and all updates. */
static bool advance_norm(struct dt_reducer *x)
{
    struct dt__owners *o = x->owners;
    int done;
    const bool rows_come = !x->rows_exchange || dt__rows_exchange_done(x->rows_exchange);
    if (o->norm == NORM_OPEN && o->summed == o->own_chunks && rows_come) {
        size_t begin, end;
        memset(o->norms, 0, x->norm_blocks * sizeof *o->norms);
        dt__slice(0, x->spec.params, x->group_index, x->groups, DT__TREE_BLOCK, &begin, &end);
        if (x->rows_exchange)
            dt__rows_norm(x, o->sum, o->norms, begin, end);
        else
            dt__norm_blocks(x, o->norms, o->sum, begin, end);
        DT_MPI(MPI_Iallreduce(MPI_IN_PLACE, o->norms, (int)x->norm_blocks, MPI_DOUBLE, MPI_SUM,
                              o->comm, &o->norm_request));
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
    const bool moved = dt__rows_exchange_advance(x, x->rows_exchange);
    if (o->norm != NORM_KNOWN || !dt__rows_exchange_done(x->rows_exchange)) return moved;
    x->control->norm2 = x->info.norm2;
    dt__event_post(&x->control->exchanged, 1);
    return o->rows_posted = true;
}

/* What the group asks for goes to all others once its workers have ended the step: straight, for a
 * tree's messages would each stand behind the gradients in its connection. */
static bool advance_ask(struct dt_reducer *x, int bank_ask)
{
    struct dt__owners *o = x->owners;
    if (!o->ask_sent && dt__event_reached(&x->control->ended, dt__group_all(x))) {
        o->asks[x->group_index] = bank_ask | atomic_exchange(&x->control->asks[x->tick & 1], 0);
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

static bool owners_advance(struct dt_reducer *x, int bank_ask)
{
    bool moved = advance_buckets(x);
    moved |= advance_messages(x);
    moved |= advance_rows(x);
    moved |= advance_norm(x);
    moved |= advance_ask(x, bank_ask);
    return moved;
}

static bool owners_done(const struct dt_reducer *x)
{
    const struct dt__owners *o = x->owners;
    return o->done == o->requests && o->rows_posted && o->norm == NORM_KNOWN;
}

const struct dt__reducer_strategy dt__reducer_owners = {
    .create = owners_create,
    .destroy = owners_destroy,
    .move_state = owners_move_state,
    .begin = owners_begin,
    .advance = owners_advance,
    .done = owners_done,
};
