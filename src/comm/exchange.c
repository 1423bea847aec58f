/* The exchange as its callers see it: ranks and nodes, the memory that a node shares, spans and
 * steps. */
#include "comm/exchange.h"

#include <string.h>

/* How often a sleeping bank looks for signals and clocks. */
static const double BANK_NAP_SECS = 0.02;

/* ---- ranks and nodes ------------------------------------------------------------------------ */

/* The ranks that take part: the trainers, or a team of workers. */
static struct dt_ranks choose_ranks(const struct dt_world *world,
                                    const struct dt_exchange_spec *spec)
{
    struct dt_ranks all = *world->trainers;
    const MPI_Comm from = all.comm;
    MPI_Group trainers, team;
    if (!spec->team) return all;
    int first = world->worker_rank + spec->first_worker;
    int range[1][3] = {{first, first + spec->team - 1, 1}};
    DT_MPI(MPI_Comm_group(from, &trainers));
    DT_MPI(MPI_Group_range_incl(trainers, 1, range, &team));
    DT_MPI(MPI_Comm_create_group(from, team, 0, &all.comm));
    DT_MPI(MPI_Group_free(&team));
    DT_MPI(MPI_Group_free(&trainers));
    return all;
}

/* Numbers agents by their ranks, node by node. */
static void number_agents(struct dt_exchange *x, int ranks, int rank)
{
    const bool has_bank = x->world->size > 1 && !x->spec.team; /* which does no gradients */
    int agents = 0;
    for (int n = 0; n < x->nodes; n++) {
        x->agents_of[n] = agents;
        for (int r = has_bank; r < ranks; r++)
            if (x->node_at[r] == n) x->agent_rank[agents++] = r;
        if (agents == x->agents_of[n]) x->agent_rank[agents++] = 0; /* a bank alone, for itself */
    }
    x->agents_of[x->nodes] = x->owners = agents;
    x->node = x->node_at[rank];
    x->agents = dt__agents(x, x->node);
    x->workers = has_bank && dt__agent_rank(x, x->node, 0) == 0 ? 0 : x->agents;
    x->agent = -1;
    for (int a = 0; a < x->agents; a++)
        if (dt__agent_rank(x, x->node, a) == rank) x->agent = a;
    x->owner = x->agents_of[x->node] + x->agent;
}

/* grouped: ranks that share memory are one node. */
static void split_nodes(struct dt_exchange *x, bool grouped)
{
    int rank, ranks;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    DT_MPI(MPI_Comm_size(x->all.comm, &ranks));
    if (grouped)
        DT_MPI(MPI_Comm_split_type(x->all.comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL,
                                   &x->node_comm));
    else
        DT_MPI(MPI_Comm_split(x->all.comm, rank, 0, &x->node_comm));
    x->nodes = dt__number_parts(x->all.comm, x->node_comm, x->node_at);
    number_agents(x, ranks, rank);
    DT_MPI(
        MPI_Comm_split(x->all.comm, x->agent == 0 ? 0 : MPI_UNDEFINED, x->node, &x->firsts.comm));
}

/* ---- memory --------------------------------------------------------------------------------- */

/* By plain MPI_Reduce: which needs other ranks. */
static bool reduces(const struct dt_exchange *x)
{
    return x->exchange == DT_EXCHANGE_REDUCE && x->nodes > 1;
}

/* Bytes of a replica's factors; 0: gradients are whole. */
static size_t factor_bytes(const struct dt_exchange *x)
{
    if (!dt__tiled_matrices(x) || x->spec.norm) return 0;
    const struct dt_factored *last = &x->factored[x->spec.matrices - 1];
    return last->place + last->bytes;
}

/* What the ranks of this node share. */
static void deal_memory(struct dt_exchange *x, struct dt__room *room)
{
    const size_t params = x->spec.params, factors = factor_bytes(x);
    const size_t buckets = (size_t)x->spec.buckets * sizeof *x->control->bucket;
    x->control = dt__room_take(room, 1, sizeof *x->control + buckets);
    if (x->spec.norm) x->norms = dt__room_take(room, x->norm_count, sizeof(double));
    x->all_norms = x->norms;
    if (x->spec.norm && x->nodes > 1)
        x->all_norms = dt__room_take(room, x->norm_count, sizeof(double));
    for (int v = 0; v < (x->node == 0 ? x->spec.vectors : 1); v++)
        x->vectors[v] = dt__rows_vector(x, room, v ? DT__KEEP_NONE : DT__KEEP_PULLED);
    if (dt__tiled_matrices(x) && x->spec.copies) x->copies = dt__room_take(room, x->spec.copies, 1);
    if (!x->dealt) room->filled = room->used;
    x->sums = NULL;
    for (int r = 0; r < x->spec.replicas; r++) {
        if (x->node_of[r] != x->node) continue;
        x->slot[r] = dt__rows_vector(x, room, DT__KEEP_TOUCHED);
        /* The sums of own chunks stand where this replica's gradient of them stood; other nodes'
         * chunks, whose sums are sent from slots, and rows have other floats of it. */
        if (!x->sums && x->spec.norm) x->sums = x->slot[r];
        if (x->touched) dt__rows_map(x, r, room);
        if (factors) x->factors[r] = dt__room_take(room, factors, 1);
        if (!x->touched && !factors) room->filled = room->used;
    }
    if (x->dealt) dt__rows_map_needs(x, room);
    for (int g = 0; g < x->spec.groups && x->spec.wire && x->node == 0; g++)
        x->error[g] = dt__room_take(room, params, sizeof(float));
    if (!x->sums && x->spec.norm && !reduces(x)) x->sums = dt__rows_vector(x, room, DT__KEEP_NONE);
}

static void dissolve_nodes(struct dt_exchange *x)
{
    dt__shared_free(&x->shared);
    dt__shared_free(&x->books_memory);
    if (x->node_comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->node_comm));
    if (x->firsts.comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->firsts.comm));
}

/* Nodes, tables and memory. Fails on all ranks or on none. */
static dt_status form_nodes(struct dt_exchange *x, bool grouped)
{
    const size_t vectors = (size_t)(x->spec.vectors + x->spec.replicas + x->spec.groups + 1);
    struct dt__room room = {0};
    int node_rank;
    split_nodes(x, grouped);
    x->touched = x->rows && (x->nodes == 1 || x->exchange != DT_EXCHANGE_REDUCE);
    x->dealt = x->touched && x->nodes > 1;
    dt__layout_replicas(x);
    dt__layout_segments(x);
    dt_status status = dt__rows_deal(x);
    if (!status && x->dealt)
        status = dt__alloc(vectors * (size_t)x->spec.row_ranges, sizeof *room.hole, "memory table",
                           &room.hole);
    status = dt__ranks_agree(&x->all, status);
    if (!status) {
        deal_memory(x, &room);
        status = dt__shared_create(x->node_comm, &room, "node exchange", &x->all, &x->shared);
    }
    dt_free(room.hole);
    if (status) {
        dissolve_nodes(x);
        return status;
    }
    room = (struct dt__room){.memory = x->shared.memory};
    deal_memory(x, &room);
    DT_MPI(MPI_Comm_rank(x->node_comm, &node_rank));
    if (node_rank == 0) dt__shared_fill(&x->shared, x->shared.memory, room.filled);
    return DT_OK;
}

static void deal_books(struct dt_exchange *x, struct dt__room *room)
{
    const bool parts = x->spec.behind || x->dealt;
    for (int v = 0; v < x->spec.vectors && x->node == 0 && parts; v++)
        x->books[v] = dt__room_take(room, x->spec.params + x->spec.behind, sizeof(float));
}

/* On the disk where they are large, or /dev/shm has no room. Fails on all ranks or on none. */
static dt_status create_books(struct dt_exchange *x)
{
    struct dt__room room = {0};
    deal_books(x, &room);
    if (dt__is_backed(room.used) || !dt__shared_fits(x->node_comm, room.used, "bank's books"))
        room.dir = x->spec.books;
    DT_TRY(dt__shared_create(x->node_comm, &room, "bank's books", &x->all, &x->books_memory));
    room = (struct dt__room){.memory = x->books_memory.memory};
    deal_books(x, &room);
    return DT_OK;
}

/* ---- create --------------------------------------------------------------------------------- */

static dt_status check_spec(const struct dt_exchange_spec *spec)
{
    if (spec->vectors < 1 || spec->vectors > DT_EXCHANGE_VECTORS)
        return dt_fail(DT_EUSAGE, "exchange: %d vectors, expected 1 to %d", spec->vectors,
                       DT_EXCHANGE_VECTORS);
    if (spec->replicas < 1 || spec->replicas > DT_EXCHANGE_REPLICAS)
        return dt_fail(DT_EUSAGE, "exchange: %d replicas, expected 1 to %d", spec->replicas,
                       DT_EXCHANGE_REPLICAS);
    if (spec->buckets < 1 || spec->bucket_end[spec->buckets - 1] != spec->params)
        return dt_fail(DT_EUSAGE, "exchange: the buckets do not end with the parameters");
    if (spec->wire && spec->kind == DT_EXCHANGE_REDUCE)
        return dt_fail(DT_EUSAGE, "exchange: train.wire does not go with train.exchange=reduce");
    if (spec->wire && (spec->groups < 1 || spec->groups > spec->replicas))
        return dt_fail(DT_EUSAGE, "exchange: %d groups of %d replicas", spec->groups,
                       spec->replicas);
    return DT_OK;
}

/* What this rank does by itself. */
static dt_status allocate(struct dt_exchange *x)
{
    const size_t buckets = (size_t)x->spec.buckets, matrices = (size_t)x->spec.matrices;
    const size_t replicas = (size_t)x->spec.replicas, groups = (size_t)x->spec.groups;
    size_t segments = buckets + 2 * (matrices + (size_t)x->spec.row_ranges), levels = 1;
    int all;
    DT_MPI(MPI_Comm_size(x->all.comm, &all));
    const size_t ranks = (size_t)all;
    for (size_t i = 0; i < matrices; i++) {
        const struct dt_factored *matrix = &x->spec.factored[i];
        const size_t tile = matrix->tile_rows * matrix->tile_columns;
        if (tile > x->most_tile) x->most_tile = tile;
    }
    for (size_t leaves = 1; leaves < replicas; leaves *= 2)
        levels++;
    const struct {
        void *table;
        size_t count, size;
    } tables[] = {{&x->node_at, ranks, sizeof *x->node_at},
                  {&x->agents_of, ranks + 1, sizeof *x->agents_of},
                  {&x->agent_rank, ranks, sizeof *x->agent_rank},
                  {&x->subtrees_of, ranks, sizeof *x->subtrees_of},
                  {&x->cut, ranks + 1, sizeof *x->cut},
                  {&x->node_of, replicas, sizeof *x->node_of},
                  {&x->subtree_at, replicas, sizeof *x->subtree_at},
                  {&x->subtree, replicas, sizeof *x->subtree},
                  {&x->slot, replicas, sizeof *x->slot},
                  {&x->factors, replicas, sizeof *x->factors},
                  {&x->group, groups + 1, sizeof *x->group},
                  {&x->group_of, replicas, sizeof *x->group_of},
                  {&x->error, groups, sizeof *x->error},
                  {&x->bucket, buckets + 1, sizeof *x->bucket},
                  {&x->segment, segments, sizeof *x->segment},
                  {&x->factored, matrices, sizeof *x->factored},
                  {&x->tiles, levels * x->most_tile, sizeof *x->tiles},
                  {&x->block, DT__TREE_DEPTH, sizeof *x->block},
                  {&x->fresh, DT__TREE_BLOCK, sizeof *x->fresh}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        DT_TRY(dt__keep(&x->kept, tables[i].count, tables[i].size, "exchange", tables[i].table));
    for (size_t b = 0, begin = 0; b < buckets; begin = x->bucket[b++].at.end)
        x->bucket[b].at = (struct dt__floats){begin, x->spec.bucket_end[b]};
    if (matrices) memcpy(x->factored, x->spec.factored, matrices * sizeof *x->factored);
    return dt__rows_create(x);
}

/* Where memory that a host shares is wanting, each rank is a node of its own. */
static dt_status choose_nodes(struct dt_exchange *x)
{
    const int kind = x->spec.kind;
    int rank;
    x->exchange = kind;
    dt_status status = form_nodes(x, kind != DT_EXCHANGE_REDUCE);
    /* factors and copies save time, but need room beside whole gradients' */
    if (status && dt__tiled_matrices(x)) {
        x->spec.matrices = 0;
        status = form_nodes(x, kind != DT_EXCHANGE_REDUCE);
    }
    if (!status && (kind == DT_EXCHANGE_AUTO || kind == DT_EXCHANGE_NODE))
        x->exchange = x->nodes > 1 ? DT_EXCHANGE_ORDERED : DT_EXCHANGE_NODE;
    if (!status || kind != DT_EXCHANGE_AUTO) return status;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    if (rank == 0)
        dt__warn("%s; taking train.exchange=ordered without shared memory", dt_error_text());
    x->exchange = DT_EXCHANGE_ORDERED;
    return form_nodes(x, false);
}

dt_status dt__exchange_create(struct dt_world *world, const struct dt_exchange_spec *spec,
                              struct dt_exchange **out)
{
    struct dt_exchange *x = NULL;
    struct dt_ranks all = choose_ranks(world, spec);
    dt_status status = check_spec(spec);
    if (!status) status = dt__alloc(1, sizeof *x, "exchange", &x);
    if (x)
        *x = (struct dt_exchange){.world = world,
                                  .all = all,
                                  .spec = *spec,
                                  .node_comm = MPI_COMM_NULL,
                                  .firsts = {.world = world, .comm = MPI_COMM_NULL},
                                  .requests = {.world = world, .comm = all.comm}};
    DT_GUARD(dt__ranks_agree(&all, status));
    if (!spec->norm_params || spec->norm_params > spec->params) x->spec.norm_params = spec->params;
    x->norm_blocks = (x->spec.norm_params + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK;
    x->grain = spec->wire ? DT__WIRE_BLOCK : 16;
    if (!spec->wire) x->spec.groups = 1;
    if (!spec->wire_params) x->spec.wire_params = spec->params;
    DT_GUARD(dt__ranks_agree(&all, allocate(x)));
    DT_GUARD(choose_nodes(x));
    DT_GUARD(create_books(x));
    x->way = reduces(x) ? &dt__way_reduce : &dt__way_owners;
    x->started = spec->buckets; /* no step is under way */
    x->norm = DT__NORM_KNOWN;
    DT_GUARD(dt__ranks_agree(&all, x->way->prepare(x)));
    x->summed = x->taken = x->chunks;
    *out = x;
done:
    if (!x && spec->team) DT_MPI(MPI_Comm_free(&all.comm));
    if (status) dt__exchange_destroy(x);
    return status;
}

void dt__exchange_destroy(struct dt_exchange *x)
{
    if (!x) return;
    if (x->world) dissolve_nodes(x);
    dt__requests_free(&x->requests);
    if (x->spec.team) DT_MPI(MPI_Comm_free(&x->all.comm));
    dt__kept_free(&x->kept);
    dt_free(x);
}

int dt__exchange_which(const struct dt_exchange *x)
{
    return x->exchange;
}
float *const *dt__exchange_vectors(struct dt_exchange *x)
{
    return x->books[0] ? x->books : x->vectors;
}
double *dt__exchange_measured(struct dt_exchange *x)
{
    return x->norms ? x->norms + x->norm_blocks : NULL;
}
struct dt_update_info dt__exchange_info(const struct dt_exchange *x)
{
    return x->info;
}
void *dt__exchange_copies(struct dt_exchange *x)
{
    return x->copies;
}

float *dt__exchange_error(struct dt_exchange *x, int group)
{
    return x->spec.wire && x->node == 0 ? x->error[group] : NULL;
}
const float *dt__exchange_weights(const struct dt_exchange *x)
{
    return x->vectors[0];
}

struct dt_slot dt__exchange_slot(const struct dt_exchange *x, int replica)
{
    return (struct dt_slot){.grad = x->slot[replica],
                            .touched = dt__rows_touched(x, replica),
                            .factors = x->factors[replica]};
}

/* ---- the optimizer's state ------------------------------------------------------------------ */

/* Between the bank and who keeps them on other nodes: the optimizer's state, at a chunk's owner,
 * and errors of its sums, at who rounds them. */
static void move_chunk(struct dt_exchange *x, const struct dt__chunk *chunk, bool to_bank)
{
    const int errors = x->spec.wire ? x->spec.groups : 0;
    int rank;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    for (int v = 1; v < x->spec.vectors + errors; v++) {
        const int group = v - x->spec.vectors;
        const int rounds = group < 0 ? -1 : x->group[group].node;
        const int node = rounds < 0 ? chunk->node : rounds;
        const int keeper = dt__chunk_rank(x, chunk, node);
        float *vectors[DT_EXCHANGE_VECTORS];
        if (node == 0 || (rank && rank != keeper)) continue;
        dt__chunk_vectors(x, chunk, vectors);
        float *floats = group < 0 ? vectors[v] : dt__chunk_error(x, chunk, group);
        floats += chunk->at.begin;
        dt__ranks_move(&x->all, keeper, to_bank, floats, floats, chunk->at.end - chunk->at.begin);
    }
}

/* All that others than the bank's node keep. Each node has the owners in another order: here they
 * come in one. */
static void move_state(struct dt_exchange *x, bool to_bank)
{
    if (x->nodes == 1 || reduces(x)) return;
    if (x->dealt) dt__rows_move(x, to_bank, x->spec.vectors - (x->spec.wire != 0));
    for (int node = 0; node < x->nodes; node++)
        for (int c = 0; c < x->chunks; c++)
            if (x->chunk[c].node == node) move_chunk(x, &x->chunk[c], to_bank);
}

/* Bank: what its node has of so many vectors, between that and the books. */
static void copy_books(struct dt_exchange *x, bool to_books, int vectors)
{
    for (int s = 0; s < x->bucket[x->spec.buckets].segment && x->world->is_bank; s++) {
        const struct dt__floats at = x->segment[s].at;
        if (x->segment[s].kind == DT__ROWS && x->dealt) continue;
        for (int v = 0; v < vectors && x->books[v]; v++) {
            float *own = x->vectors[v] + at.begin, *book = x->books[v] + at.begin;
            memcpy(to_books ? book : own, to_books ? own : book, (at.end - at.begin) * sizeof *own);
        }
    }
}

/* The bank's weights to the other nodes, and what owners have to where they are. */
void dt__exchange_start(struct dt_exchange *x)
{
    copy_books(x, false, x->spec.vectors);
    dt__ranks_barrier(&x->all); /* the bank has filled its node's memory */
    for (int s = 0; s < x->bucket[x->spec.buckets].segment && x->agent == 0; s++) {
        const struct dt__floats at = x->segment[s].at;
        x->firsts.what = "weights";
        if (!x->dealt || x->segment[s].kind != DT__ROWS)
            dt__ranks_bcast(&x->firsts, x->vectors[0] + at.begin,
                            (at.end - at.begin) * sizeof(float), 0);
    }
    move_state(x, false);
    dt__ranks_barrier(&x->all);
}

bool dt__exchange_is_shared(const struct dt_exchange *x)
{
    return x->nodes <= x->world->hosts;
}

void dt__exchange_gather_weights(struct dt_exchange *x)
{
    if (x->dealt) dt__rows_move(x, true, 1);
    copy_books(x, true, 1);
}

void dt__exchange_gather(struct dt_exchange *x)
{
    move_state(x, true);
    copy_books(x, true, x->spec.vectors);
}

/* ---- a step --------------------------------------------------------------------------------- */

void dt__exchange_begin(struct dt_exchange *x, uint64_t step)
{
    x->all_done = ++x->tick * (uint32_t)x->workers;
    x->started = x->summed = x->taken = 0;
    x->open = 1;
    x->norm = x->spec.norm && !reduces(x) ? DT__NORM_OPEN : DT__NORM_KNOWN;
    x->info = (struct dt_update_info){.step = step};
    dt__world_heartbeat(x->world, "gradient", step);
    x->way->begin(x);
}

void dt__exchange_need(struct dt_exchange *x, int bucket)
{
    if (x->rows_exchange) dt__rows_await(x);
    dt__exchange_wait(x, &x->control->bucket[bucket].updated, x->steps * x->bucket[bucket].pieces,
                      "weights");
}

void dt__exchange_ready(struct dt_exchange *x, int bucket)
{
    if (x->nodes == 1) return;
    dt__event_post(&x->control->bucket[bucket].ready, 1);
    dt__exchange_work(x);
}

void dt__exchange_work(struct dt_exchange *x)
{
    if (x->nodes > 1) dt__exchange_advance(x);
}

/* Does what is left of the step. Returns what all ask for. */
static int finish_step(struct dt_exchange *x)
{
    dt__exchange_finish(x, &x->open, "the other hosts");
    if (x->rows_exchange) dt__rows_end(x);
    const int asked = x->control->agreed_ask[x->tick & 1];
    x->steps += !(asked & DT_ASK_VOID);
    return asked;
}

/* On one node the last to arrive speaks for all: what was asked by then ends the span behind this
 * step. */
int dt__exchange_end(struct dt_exchange *x, int ask)
{
    struct dt__control *control = x->control;
    if (ask) atomic_fetch_or(&control->asks[x->tick & 1], ask);
    if (x->rows_exchange) dt__event_post(&control->listed, 1);
    const bool last = dt__event_post(&control->ended, 1) == x->all_done;
    if (x->nodes > 1) return finish_step(x);
    if (last) dt__asks_publish(x, dt__asks_of_node(x));
    dt__exchange_wait(x, &control->agreed, x->tick, "the other workers' gradients");
    const int asked = control->agreed_ask[x->tick & 1];
    return asked & DT_ASK_VOID ? asked : finish_step(x);
}

int dt__exchange_consult(struct dt_exchange *x, int ask)
{
    _Atomic int *asks = &x->control->asks[x->tick & 1];
    return (ask ? atomic_fetch_or(asks, ask) | ask : atomic_load(asks)) |
           atomic_load(&x->control->bank_ask);
}

void dt__exchange_settle(struct dt_exchange *x)
{
    for (int b = 0; b < x->spec.buckets; b++)
        dt__exchange_need(x, b);
    dt__event_post(&x->control->settled, 1);
}

void dt__exchange_barrier(struct dt_exchange *x)
{
    dt__ranks_barrier(&x->all);
}

bool dt__exchange_is_first(const struct dt_exchange *x)
{
    return x->agent == 0;
}

/* ---- the bank ------------------------------------------------------------------------------- */

/* The workers of its node do all: it sleeps, and tells them what it asks for. */
static int watch_workers(struct dt_exchange *x, uint64_t from, dt_ask_fn *ask, void *arg,
                         uint64_t *out_step)
{
    struct dt__control *control = x->control;
    uint32_t all_settled = x->spans * (uint32_t)x->workers;
    uint32_t before = x->tick; /* steps before this span */
    dt__world_heartbeat(x->world, "serving", from);
    dt__watchdog_wait(x->world, "the workers");
    while (!dt__event_wait_for(&control->settled, all_settled, BANK_NAP_SECS)) {
        atomic_store(&control->bank_ask, ask(arg));
        dt__heartbeat_exchange(x->world); /* hosts hear of each other through the bank */
    }
    dt__watchdog_progress(x->world);
    atomic_store(&control->bank_ask, 0);
    x->tick = atomic_load(&control->agreed.count);
    int asked = x->tick == before ? DT_ASK_NONE : control->agreed_ask[x->tick & 1];
    *out_step = from + (x->tick - before) - (asked & DT_ASK_VOID ? 1 : 0);
    return asked;
}

int dt__exchange_serve_span(struct dt_exchange *x, uint64_t from, uint64_t until, dt_ask_fn *ask,
                            void *arg, uint64_t *out_step)
{
    int asked = DT_ASK_NONE;
    x->spans++;
    if (x->agent < 0) return watch_workers(x, from, ask, arg, out_step);
    while (from < until && !asked) {
        dt__exchange_begin(x, from);
        atomic_store(&x->control->bank_ask, ask(arg));
        asked = finish_step(x);
        from += !(asked & DT_ASK_VOID);
    }
    *out_step = from;
    return asked;
}

void dt__exchange_take_times(struct dt_exchange *x, struct dt_exchange_times *out)
{
    out->wait += x->times.wait;
    out->reduce += x->times.reduce;
    out->update += x->times.update;
    out->network += x->times.network;
    x->times = (struct dt_exchange_times){0};
}

double dt__exchange_waited(const struct dt_exchange *x)
{
    return x->times.wait + x->times.network;
}
