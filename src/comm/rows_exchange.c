/* Messages of touched rows between a node and the owners on other nodes (rows.h has the figure).
 *
 * In a trip each node sends one message to each owner on another node, and gets one answer:
 *
 *   length    of the message, in bytes
 *   lists     for each of the node's partial sums and each range: number of rows, their numbers
 *             and sums
 *   inputs    number of inputs, and those whose weights the node's workers will read next
 *
 *   answer    the weights of these inputs, range by range, received where they are read
 *
 * A message is cut into chunks of DT__CHUNK floats, since for longer messages MPI would first ask
 * the receiver whether it is ready. The first chunk starts with the length, from which the receiver
 * knows how many chunks follow. The rows of this step travel with the inputs of the next one, so a
 * step waits for two latencies, as for dense floats. A trip at the start of a span or in an
 * evaluation has no rows to sum, and only pulls weights. */
#include <string.h>

#include "comm/exchange.h"

struct message {
    uint64_t length; /* of the whole message */
    unsigned char lists[];
};

/* A link between a node and an owner on another node, with the message between them. On the node,
 * the agent that acts for this owner has the link; at the other end, the owner does. */
struct link {
    int node, owner; /* the sending node, and the owner's number among all owners */
    int rank;        /* the rank at the other end */
    struct message *message;
    size_t capacity; /* of the message, in bytes */
    /* Used by the owner: */
    size_t asked;             /* bytes of the message whose receives were started */
    int left;                 /* chunks of these bytes that have not arrived */
    bool arrived;             /* the whole message has arrived */
    struct dt_touched inputs; /* inputs whose weights the node needs */
    float *answer;
};

struct dt__rows_exchange {
    struct link *out, *in; /* links to owners; links from nodes */
    int outs, ins;

    /* The pending trip. */
    uint32_t trips;     /* trips started */
    uint32_t pulls;     /* trips without rows to sum */
    bool step;          /* there are rows to sum */
    bool sent, updated; /* this node's rows were sent; this agent's own rows were updated */
    int missing;        /* nodes whose rows have not all arrived */
    int left;           /* other messages in flight */
    int open;           /* 1: the trip is pending; 0: it is complete, and the node's workers know */
};

/* ---- the message ---------------------------------------------------------------------------- */

/* Sets the addresses of the lists and inputs in a message. */
static void message_map(struct dt_exchange *x, struct link *link)
{
    unsigned char *at = link->message->lists;
    for (int s = 0; s < x->topo->partials; s++)
        for (int i = 0; i < x->spec.row_ranges && x->topo->partial[s].node == link->node; i++)
            at = dt__rows_map_packed(x, s, i, at);
    uint32_t *count = (uint32_t *)(void *)at;
    link->inputs = (struct dt_touched){count + 1, count};
}

/* ---- create --------------------------------------------------------------------------------- */

/* Allocates a link, with memory for its largest message and answer. */
static dt_status add_link(struct dt_exchange *x, struct link *link, int node, int owner)
{
    const size_t inputs = dt__rows_first_input(x, owner + 1) - dt__rows_first_input(x, owner);
    const size_t most = dt__rows_most_pulled(x, node), asked = most < inputs ? most : inputs;
    const bool out = node == x->topo->node;
    size_t answer = 0;
    link->node = node;
    link->owner = owner;
    link->rank = out ? x->topo->agent_rank[owner] : dt__agent_rank(x->topo, node, owner);
    link->capacity = sizeof *link->message + sizeof(uint32_t) + asked * sizeof(uint32_t);
    for (int i = 0; i < x->spec.row_ranges; i++) {
        const struct dt_row_range *range = &x->spec.row_range[i];
        const struct dt__indices own = dt__rows_of_owner(x, owner, i);
        const size_t owned = own.end - own.begin;
        answer += (asked < owned ? asked : owned) * range->width;
        for (int s = 0; s < x->topo->partials; s++) {
            size_t rows =
                range->most * (size_t)(x->topo->partial[s].end - x->topo->partial[s].first);
            if (x->topo->partial[s].node != node) continue;
            if (rows > owned) rows = owned;
            link->capacity +=
                sizeof(uint32_t) + rows * (sizeof(uint32_t) + range->width * sizeof(float));
        }
    }
    if (!out) DT_TRY(DT__ARENA_ALLOC(&x->arena, "rows", DT__TABLE(link->answer, answer)));
    return dt__arena_alloc(&x->arena, link->capacity, 1, "rows of other hosts", &link->message);
}

static dt_status rows_create(struct dt_exchange *x)
{
    const int me = x->topo->node;
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "rows", DT__TABLE(x->rows_exchange, 1)));
    struct dt__rows_exchange *e = x->rows_exchange;
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "rows", DT__TABLE(e->out, (size_t)x->topo->owners),
                           DT__TABLE(e->in, (size_t)x->topo->nodes)));
    /* Each node starts with the nodes after it, so that not all send to the same node first. */
    for (int i = 0; i < x->topo->owners; i++) {
        const int owner = (x->topo->agents_of[me] + i) % x->topo->owners;
        const int node = x->topo->node_at[x->topo->agent_rank[owner]];
        if (node != me && owner % x->topo->agents == x->topo->agent)
            DT_TRY(add_link(x, &e->out[e->outs++], me, owner));
    }
    for (int node = 0; node < x->topo->nodes; node++)
        if (node != me) DT_TRY(add_link(x, &e->in[e->ins++], node, x->topo->owner));
    return dt__rows_own_tables(x);
}

/* ---- a trip --------------------------------------------------------------------------------- */

/* Moves n bytes between this rank and the rank at the other end in eager messages: rows from the
 * node, weights from the owner. */
static void move_eager(struct dt_exchange *x, const struct link *link, int tag, void *bytes,
                       size_t n, int *left)
{
    const bool sends = (link->node == x->topo->node) == (tag == DT__TAG_ROWS);
    dt__message_begin(&x->requests, left, bytes, n,
                      (struct dt__envelope){sends, link->rank, tag, DT__EAGER});
}

/* Starts to receive the message up to byte `bytes`. Only for the owner. */
static void ask_rows(struct dt_exchange *x, struct link *link, size_t bytes)
{
    move_eager(x, link, DT__TAG_ROWS, (unsigned char *)link->message + link->asked,
               bytes - link->asked, &link->left);
    link->asked = bytes;
}

static void trip_begin(struct dt_exchange *x, bool step)
{
    struct dt__rows_exchange *e = x->rows_exchange;
    e->trips++;
    e->pulls += !step;
    e->step = step;
    e->sent = e->updated = false;
    e->open = 1;
    e->missing = e->ins;
    for (int l = 0; l < e->ins; l++) {
        struct link *link = &e->in[l];
        link->arrived = false;
        link->asked = 0;
        ask_rows(x, link, link->capacity < DT__EAGER ? link->capacity : DT__EAGER);
    }
}

/* Sends the node's sums and inputs to an owner on another node, and starts to receive the
 * answer. */
static void send_rows(struct dt_exchange *x, struct link *link)
{
    const struct dt__indices inputs = dt__rows_pulled_of(x, link->owner);
    unsigned char *at = link->message->lists;
    for (int s = 0; s < x->topo->partials; s++)
        for (int i = 0; i < x->spec.row_ranges && x->topo->partial[s].node == x->topo->node; i++) {
            struct dt__indices of = dt__rows_of_owner(x, link->owner, i);
            if (!x->rows_exchange->step) of.end = of.begin;
            at = dt__rows_pack(x, s, i, of, at);
        }
    uint32_t *count = (uint32_t *)(void *)at;
    *count = inputs.end - inputs.begin;
    memcpy(count + 1, dt__exchange_inputs(x)->row + inputs.begin, *count * sizeof *count);
    link->message->length =
        (uint64_t)((unsigned char *)(count + 1 + *count) - (unsigned char *)link->message);
    move_eager(x, link, DT__TAG_ROWS, link->message, link->message->length,
               &x->rows_exchange->left);
    for (int i = 0; i < x->spec.row_ranges; i++) {
        size_t floats;
        float *place = dt__rows_pulled_at(x, i, inputs, &floats);
        move_eager(x, link, DT__TAG_ROW_WEIGHTS, place, floats * sizeof *place,
                   &x->rows_exchange->left);
    }
}

/* Sends a node the weights of the inputs in its message. */
static void answer_node(struct dt_exchange *x, struct link *link)
{
    float *at = link->answer;
    for (int i = 0; i < x->spec.row_ranges; i++) {
        const size_t floats =
            dt__rows_read_weights(x, i, link->inputs.row, *link->inputs.count, at);
        move_eager(x, link, DT__TAG_ROW_WEIGHTS, at, floats * sizeof *at, &x->rows_exchange->left);
        at += floats;
    }
}

/* Copies the weights that this node's workers will read to the node's memory. */
static void answer_own_node(struct dt_exchange *x)
{
    const struct dt__indices inputs = dt__rows_pulled_of(x, x->topo->owner);
    const uint32_t *first = dt__exchange_inputs(x)->row + inputs.begin;
    for (int i = 0; i < x->spec.row_ranges; i++) {
        size_t floats;
        float *place = dt__rows_pulled_at(x, i, inputs, &floats);
        if (floats) dt__rows_read_weights(x, i, first, inputs.end - inputs.begin, place);
    }
}

/* Processes a message whose requested chunks have all arrived. After the first chunk, requests the
 * remaining ones. */
static void take_rows(struct dt_exchange *x, struct link *link)
{
    if (link->asked < link->message->length) {
        ask_rows(x, link, link->message->length);
        return;
    }
    message_map(x, link);
    link->arrived = true;
    x->rows_exchange->missing--;
}

/* Updates this agent's rows of a range. The vectors are shifted so that these rows are at their
 * offsets. */
static void update_range(struct dt_exchange *x, int i)
{
    float *vectors[DT_EXCHANGE_VECTORS] = {NULL};
    for (int v = 0; v < dt__rows_vectors(x); v++)
        vectors[v] = dt__rows_table(x, i, v) - dt__rows_own(x, i).begin;
    dt__rows_update(x, i, dt__rows_of_owner(x, x->topo->owner, i), vectors);
}

/* Updates this agent's rows, and sends weights to the nodes that wait for them. */
static void update_rows(struct dt_exchange *x)
{
    struct dt__rows_exchange *e = x->rows_exchange;
    const double start = dt__clock_secs();
    for (int i = 0; i < x->spec.row_ranges && e->step; i++)
        update_range(x, i);
    for (int l = 0; l < e->ins; l++)
        answer_node(x, &e->in[l]);
    answer_own_node(x);
    x->spec.times->update += dt__clock_secs() - start;
    e->updated = true;
}

/* Publishes the rows of their inputs to the node's workers. */
static void trip_publish(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    const struct dt__range *range = x->layout->range, *end = range + dt__ranges(x);
    if (!x->rows_exchange->step) dt__event_post(&control->pulled, 1);
    for (; x->rows_exchange->step && range < end; range++)
        if (range->kind == &dt__distributed_kind)
            dt__event_post(&control->bucket[range->bucket].updated, 1);
}

static bool rows_summed(const struct dt_exchange *x)
{
    return x->rows_exchange->sent && !x->rows_exchange->missing;
}

static bool rows_advance(struct dt_exchange *x)
{
    struct dt__rows_exchange *e = x->rows_exchange;
    bool moved = false;
    const double start = dt__clock_secs();
    if (!e->sent &&
        dt__event_reached(&x->memory->control->listed, e->trips * (uint32_t)x->topo->workers)) {
        dt__rows_merge_needs(x);
        for (int l = 0; l < e->outs; l++)
            send_rows(x, &e->out[l]);
        moved = e->sent = true;
        x->spec.times->reduce += dt__clock_secs() - start;
    }
    for (int l = 0; l < e->ins; l++)
        if (!e->in[l].arrived && !e->in[l].left) take_rows(x, &e->in[l]);
    if (!e->updated && rows_summed(x) && (!e->step || !x->norm.phases)) {
        update_rows(x);
        moved = true;
    }
    if (e->open && e->updated && !e->left) {
        trip_publish(x);
        e->open = 0;
    }
    return moved;
}

static bool rows_done(const struct dt_exchange *x)
{
    return !x->rows_exchange->open;
}

static void rows_begin(struct dt_exchange *x)
{
    trip_begin(x, true);
}

void dt__exchange_pull(struct dt_exchange *x)
{
    struct dt__control *control = x->memory->control;
    if (!x->rows_exchange) return;
    trip_begin(x, false);
    if (x->topo->workers) dt__event_post(&control->listed, 1);
    dt__exchange_finish(x, &x->rows_exchange->open, "rows of the other hosts");
    dt__exchange_wait(x, &control->pulled, x->rows_exchange->pulls * (uint32_t)x->topo->agents,
                      "rows");
}

/* ---- the norm, and the bank's books --------------------------------------------------------- */

static void rows_squares(struct dt_exchange *x, const struct dt__range *range, struct dt__floats at,
                         struct dt__norm *norm)
{
    (void)at; /* an owner's rows may be at any position */
    dt__rows_squares(x, range, dt__rows_own(x, range->index), norm);
}

static void rows_move(struct dt_exchange *x, const struct dt__range *range, bool to_bank,
                      int vectors)
{
    const size_t width = x->spec.row_range[range->index].width;
    const int me = x->topo->rank;
    for (int owner = 0; owner < x->topo->owners; owner++) {
        const int rank = x->topo->agent_rank[owner];
        const struct dt__indices own = dt__rows_of_owner(x, owner, range->index);
        for (int v = 0; v < vectors && v < dt__rows_vectors(x) && (me == 0 || me == rank); v++) {
            float *book =
                me == 0 ? x->memory->books[v] + range->at.begin + own.begin * width : NULL;
            dt__ranks_move(&x->all, rank, to_bank,
                           me == rank ? dt__rows_table(x, range->index, v) : NULL, book,
                           (own.end - own.begin) * width);
        }
    }
}

const struct dt__kind dt__distributed_kind = {
    .range = dt__rows_range,
    .by_agents = true,
    .is_apart = true,
    .reserve = dt__rows_distribute,
    .bytes = dt__rows_bytes,
    .map = dt__rows_map_needs,
    .map_replica = dt__rows_map,
    .create = rows_create,
    .begin = rows_begin,
    .advance = rows_advance,
    .summed = rows_summed,
    .done = rows_done,
    .move = rows_move,
    .squares = rows_squares,
};
