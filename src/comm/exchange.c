/* The exchange as its callers see it: ranks and nodes, the memory that a node shares, spans and
 * steps. */
#include "comm/exchange.h"

#include <string.h>

/* How often a sleeping bank looks for signals and clocks. */
static const double BANK_NAP_SECS = 0.02;

/* An exchange with what its other files see as const. */
struct whole {
    struct dt_exchange x; /* first: a pointer to it is one to this */
    struct dt__topology topo;
    struct dt__layout layout;
    struct dt__node_memory memory;
};

static struct whole *whole_of(struct dt_exchange *x)
{
    return (struct whole *)(void *)x;
}

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

/* grouped: ranks that share memory are one node. */
static void split_nodes(struct dt_exchange *x, bool grouped)
{
    struct dt__topology *topo = &whole_of(x)->topo;
    const bool team = x->spec.team;
    int rank, ranks;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    DT_MPI(MPI_Comm_size(x->all.comm, &ranks));
    if (grouped)
        DT_MPI(MPI_Comm_split_type(x->all.comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL,
                                   &x->node_comm));
    else
        DT_MPI(MPI_Comm_split(x->all.comm, rank, 0, &x->node_comm));
    topo->nodes = dt__number_parts(x->all.comm, x->node_comm, topo->node_at);
    dt__topology_agents(topo, ranks, rank, x->world->size > 1 && !team);
    dt__topology_replicas(
        topo, &(struct dt__placement){.replicas = x->spec.replicas,
                                      .groups = x->spec.wire.groups,
                                      .workers = team ? x->spec.team : x->world->workers,
                                      .first_rank = team ? 0 : x->world->worker_rank,
                                      .worker_of = x->spec.worker_of});
    DT_MPI(MPI_Comm_split(x->all.comm, topo->agent == 0 ? 0 : MPI_UNDEFINED, topo->node,
                          &x->firsts.comm));
}

/* ---- memory --------------------------------------------------------------------------------- */

/* By plain MPI_Reduce: which needs other ranks. */
static bool reduces(const struct dt_exchange *x)
{
    return x->exchange == DT_EXCHANGE_REDUCE && x->topo->nodes > 1;
}

/* Bytes of a replica's factors; 0: gradients are whole. */
static size_t factor_bytes(const struct dt_exchange *x)
{
    if (!dt__tiled_matrices(x) || x->spec.norm.needed) return 0;
    const struct dt_factored *last = &x->factored[x->spec.matrices - 1];
    return last->place + last->bytes;
}

/* What the ranks of this node share. */
static void deal_memory(struct dt_exchange *x, struct dt__room *room)
{
    struct dt__node_memory *memory = &whole_of(x)->memory;
    const size_t params = x->spec.params, factors = factor_bytes(x);
    const size_t buckets = (size_t)x->spec.buckets * sizeof *memory->control->bucket;
    memory->control = dt__room_take(room, 1, sizeof *memory->control + buckets);
    if (x->spec.norm.needed)
        memory->norms = dt__room_take(room, memory->norm_count, sizeof(double));
    memory->all_norms = memory->norms;
    if (x->spec.norm.needed && x->topo->nodes > 1)
        memory->all_norms = dt__room_take(room, memory->norm_count, sizeof(double));
    for (int v = 0; v < (x->topo->node == 0 ? x->spec.vectors : 1); v++)
        memory->vectors[v] = dt__rows_vector(x, room, v ? DT__KEEP_NONE : DT__KEEP_PULLED);
    if (dt__tiled_matrices(x) && x->spec.copies)
        memory->copies = dt__room_take(room, x->spec.copies, 1);
    if (!x->dealt) room->filled = room->used;
    memory->sums = NULL;
    for (int r = 0; r < x->spec.replicas; r++) {
        if (x->topo->node_of[r] != x->topo->node) continue;
        memory->slot[r] = dt__rows_vector(x, room, DT__KEEP_TOUCHED);
        /* The sums of own chunks stand where this replica's gradient of them stood; other nodes'
         * chunks, whose sums are sent from slots, and rows have other floats of it. */
        if (!memory->sums && x->spec.norm.needed) memory->sums = memory->slot[r];
        if (x->touched) dt__rows_map(x, r, room);
        if (factors) memory->factors[r] = dt__room_take(room, factors, 1);
        if (!x->touched && !factors) room->filled = room->used;
    }
    if (x->dealt) dt__rows_map_needs(x, room);
    for (int g = 0; g < x->spec.wire.groups && x->spec.wire.kind && x->topo->node == 0; g++)
        x->error[g] = dt__room_take(room, params, sizeof(float));
    if (!memory->sums && x->spec.norm.needed && !reduces(x))
        memory->sums = dt__rows_vector(x, room, DT__KEEP_NONE);
}

static void dissolve_nodes(struct dt_exchange *x)
{
    dt__shared_free(&whole_of(x)->memory.shared);
    dt__shared_free(&whole_of(x)->memory.books_memory);
    if (x->node_comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->node_comm));
    if (x->firsts.comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->firsts.comm));
}

/* Nodes, tables and memory. Fails on all ranks or on none. */
static dt_status form_nodes(struct dt_exchange *x, bool grouped)
{
    const size_t vectors = (size_t)(x->spec.vectors + x->spec.replicas + x->spec.wire.groups + 1);
    struct dt__shared *shared = &whole_of(x)->memory.shared;
    struct dt__room room = {0};
    int node_rank;
    split_nodes(x, grouped);
    x->touched = x->rows && (x->topo->nodes == 1 || x->exchange != DT_EXCHANGE_REDUCE);
    x->dealt = x->touched && x->topo->nodes > 1;
    dt__layout_segments(x, &whole_of(x)->layout);
    dt_status status = dt__rows_deal(x, &whole_of(x)->memory.norm_count);
    if (!status && x->dealt)
        status = dt__alloc(vectors * (size_t)x->spec.row_ranges, sizeof *room.hole, "memory table",
                           &room.hole);
    status = dt__ranks_agree(&x->all, status);
    if (!status) {
        deal_memory(x, &room);
        status = dt__shared_create(x->node_comm, &room, "node exchange", &x->all, shared);
    }
    dt_free(room.hole);
    if (status) {
        dissolve_nodes(x);
        return status;
    }
    room = (struct dt__room){.memory = shared->memory};
    deal_memory(x, &room);
    DT_MPI(MPI_Comm_rank(x->node_comm, &node_rank));
    if (node_rank == 0) dt__shared_fill(shared, shared->memory, room.filled);
    return DT_OK;
}

static void deal_books(struct dt_exchange *x, struct dt__room *room)
{
    const bool parts = x->spec.behind || x->dealt;
    for (int v = 0; v < x->spec.vectors && x->topo->node == 0 && parts; v++)
        whole_of(x)->memory.books[v] =
            dt__room_take(room, x->spec.params + x->spec.behind, sizeof(float));
}

/* On the disk where they are large, or /dev/shm has no room. Fails on all ranks or on none. */
static dt_status create_books(struct dt_exchange *x)
{
    struct dt__shared *books = &whole_of(x)->memory.books_memory;
    struct dt__room room = {0};
    deal_books(x, &room);
    if (dt__is_backed(room.used) || !dt__shared_fits(x->node_comm, room.used, "bank's books"))
        room.dir = x->spec.books;
    DT_TRY(dt__shared_create(x->node_comm, &room, "bank's books", &x->all, books));
    room = (struct dt__room){.memory = books->memory};
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
    if (spec->wire.kind && spec->kind == DT_EXCHANGE_REDUCE)
        return dt_fail(DT_EUSAGE, "exchange: train.wire does not go with train.exchange=reduce");
    if (spec->wire.kind && (spec->wire.groups < 1 || spec->wire.groups > spec->replicas))
        return dt_fail(DT_EUSAGE, "exchange: %d groups of %d replicas", spec->wire.groups,
                       spec->replicas);
    return DT_OK;
}

/* What this rank does by itself. */
static dt_status allocate(struct dt_exchange *x)
{
    const size_t buckets = (size_t)x->spec.buckets, matrices = (size_t)x->spec.matrices;
    const size_t replicas = (size_t)x->spec.replicas, groups = (size_t)x->spec.wire.groups;
    struct dt__node_memory *memory = &whole_of(x)->memory;
    struct dt__layout *layout = &whole_of(x)->layout;
    struct dt__scratch *scratch = &x->scratch;
    size_t segments = buckets + 2 * (matrices + (size_t)x->spec.row_ranges), levels = 1;
    int all;
    DT_MPI(MPI_Comm_size(x->all.comm, &all));
    DT_TRY(dt__topology_allocate(&whole_of(x)->topo, &x->kept, all, x->spec.replicas,
                                 x->spec.wire.groups));
    for (size_t i = 0; i < matrices; i++) {
        const struct dt_factored *matrix = &x->spec.factored[i];
        const size_t tile = matrix->tile_rows * matrix->tile_columns;
        if (tile > scratch->most_tile) scratch->most_tile = tile;
    }
    for (size_t leaves = 1; leaves < replicas; leaves *= 2)
        levels++;
    const struct {
        void *table;
        size_t count, size;
    } tables[] = {{&memory->slot, replicas, sizeof *memory->slot},
                  {&memory->factors, replicas, sizeof *memory->factors},
                  {&layout->bucket, buckets + 1, sizeof *layout->bucket},
                  {&layout->segment, segments, sizeof *layout->segment},
                  {&x->error, groups, sizeof *x->error},
                  {&x->factored, matrices, sizeof *x->factored},
                  {&scratch->tiles, levels * scratch->most_tile, sizeof *scratch->tiles},
                  {&scratch->block, DT__TREE_DEPTH, sizeof *scratch->block},
                  {&scratch->fresh, DT__TREE_BLOCK, sizeof *scratch->fresh}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        DT_TRY(dt__keep(&x->kept, tables[i].count, tables[i].size, "exchange", tables[i].table));
    for (size_t b = 0, begin = 0; b < buckets; begin = layout->bucket[b++].at.end)
        layout->bucket[b].at = (struct dt__floats){begin, x->spec.bucket_end[b]};
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
        x->exchange = x->topo->nodes > 1 ? DT_EXCHANGE_ORDERED : DT_EXCHANGE_NODE;
    if (!status || kind != DT_EXCHANGE_AUTO) return status;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    if (rank == 0)
        dt__warn("%s; taking train.exchange=ordered without shared memory", dt_error_text());
    x->exchange = DT_EXCHANGE_ORDERED;
    return form_nodes(x, false);
}

static void choose_backend(struct dt_exchange *x)
{
    static const struct dt__backend *const ALL[] = {&dt__node_backend, &dt__owners_backend,
                                                    &dt__reduce_backend};
    int i = 0;
    while (!ALL[i]->applies(x))
        i++;
    x->backend = ALL[i];
}

/* Completes the layout, and allocates what depends on it. */
static dt_status prepare(struct dt_exchange *x)
{
    DT_TRY(x->backend->prepare(x, &whole_of(x)->layout));
    return dt__keep(&x->kept, (size_t)x->layout->chunks, sizeof *x->step.left, "chunk table",
                    &x->step.left);
}

dt_status dt__exchange_create(struct dt_world *world, const struct dt_exchange_spec *spec,
                              struct dt_exchange **out)
{
    struct whole *whole = NULL;
    struct dt_exchange *x = NULL;
    struct dt_ranks all = choose_ranks(world, spec);
    dt_status status = check_spec(spec);
    if (!status) status = dt__alloc(1, sizeof *whole, "exchange", &whole);
    if (whole) {
        x = &whole->x;
        *x = (struct dt_exchange){.world = world,
                                  .all = all,
                                  .spec = *spec,
                                  .node_comm = MPI_COMM_NULL,
                                  .firsts = {.world = world, .comm = MPI_COMM_NULL},
                                  .requests = {.world = world, .comm = all.comm},
                                  .topo = &whole->topo,
                                  .layout = &whole->layout,
                                  .memory = &whole->memory};
    }
    DT_GUARD(dt__ranks_agree(&all, status));
    if (!spec->norm.params || spec->norm.params > spec->params) x->spec.norm.params = spec->params;
    whole->memory.norm_blocks = (x->spec.norm.params + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK;
    whole->layout.grain = spec->wire.kind ? DT__WIRE_BLOCK : 16;
    if (!spec->wire.kind) x->spec.wire.groups = 1;
    if (!spec->wire.params) x->spec.wire.params = spec->params;
    DT_GUARD(dt__ranks_agree(&all, allocate(x)));
    DT_GUARD(choose_nodes(x));
    DT_GUARD(create_books(x));
    choose_backend(x);
    x->step.started = spec->buckets; /* no step is under way */
    x->step.norm = DT__NORM_KNOWN;
    DT_GUARD(dt__ranks_agree(&all, prepare(x)));
    x->step.summed = x->step.taken = x->layout->chunks;
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
    return x->memory->books[0] ? x->memory->books : x->memory->vectors;
}
double *dt__exchange_measured(struct dt_exchange *x)
{
    return x->memory->norms ? x->memory->norms + x->memory->norm_blocks : NULL;
}
struct dt_update_info dt__exchange_info(const struct dt_exchange *x)
{
    return x->step.info;
}
void *dt__exchange_copies(struct dt_exchange *x)
{
    return x->memory->copies;
}

float *dt__exchange_error(struct dt_exchange *x, int group)
{
    return x->spec.wire.kind && x->topo->node == 0 ? x->error[group] : NULL;
}
const float *dt__exchange_weights(const struct dt_exchange *x)
{
    return x->memory->vectors[0];
}

struct dt_slot dt__exchange_slot(const struct dt_exchange *x, int replica)
{
    return (struct dt_slot){.grad = x->memory->slot[replica],
                            .touched = dt__rows_touched(x, replica),
                            .factors = x->memory->factors[replica]};
}

/* ---- the optimizer's state ------------------------------------------------------------------ */

/* Between the bank and who keeps them on other nodes: the optimizer's state, at a chunk's owner,
 * and errors of its sums, at who rounds them. */
static void move_chunk(struct dt_exchange *x, const struct dt__chunk *chunk, bool to_bank)
{
    const int errors = x->spec.wire.kind ? x->spec.wire.groups : 0;
    int rank;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    for (int v = 1; v < x->spec.vectors + errors; v++) {
        const int group = v - x->spec.vectors;
        const int rounds = group < 0 ? -1 : x->topo->group[group].node;
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
    if (x->topo->nodes == 1 || reduces(x)) return;
    if (x->dealt) dt__rows_move(x, to_bank, x->spec.vectors - (x->spec.wire.kind != 0));
    for (int node = 0; node < x->topo->nodes; node++)
        for (int c = 0; c < x->layout->chunks; c++)
            if (x->layout->chunk[c].node == node) move_chunk(x, &x->layout->chunk[c], to_bank);
}

/* Bank: what its node has of so many vectors, between that and the books. */
static void copy_books(struct dt_exchange *x, bool to_books, int vectors)
{
    for (int s = 0; s < x->layout->bucket[x->spec.buckets].segment && x->world->is_bank; s++) {
        const struct dt__floats at = x->layout->segment[s].at;
        if (x->layout->segment[s].kind == DT__ROWS && x->dealt) continue;
        for (int v = 0; v < vectors && x->memory->books[v]; v++) {
            float *own = x->memory->vectors[v] + at.begin, *book = x->memory->books[v] + at.begin;
            memcpy(to_books ? book : own, to_books ? own : book, (at.end - at.begin) * sizeof *own);
        }
    }
}

/* The bank's weights to the other nodes, and what owners have to where they are. */
void dt__exchange_start(struct dt_exchange *x)
{
    copy_books(x, false, x->spec.vectors);
    dt__ranks_barrier(&x->all); /* the bank has filled its node's memory */
    for (int s = 0; s < x->layout->bucket[x->spec.buckets].segment && x->topo->agent == 0; s++) {
        const struct dt__floats at = x->layout->segment[s].at;
        x->firsts.what = "weights";
        if (!x->dealt || x->layout->segment[s].kind != DT__ROWS)
            dt__ranks_bcast(&x->firsts, x->memory->vectors[0] + at.begin,
                            (at.end - at.begin) * sizeof(float), 0);
    }
    move_state(x, false);
    dt__ranks_barrier(&x->all);
}

bool dt__exchange_is_shared(const struct dt_exchange *x)
{
    return x->topo->nodes <= x->world->hosts;
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
    x->step.all_done = ++x->step.tick * (uint32_t)x->topo->workers;
    x->step.started = x->step.summed = x->step.taken = 0;
    x->step.open = 1;
    x->step.norm = x->spec.norm.needed && !reduces(x) ? DT__NORM_OPEN : DT__NORM_KNOWN;
    x->step.info = (struct dt_update_info){.step = step};
    dt__world_heartbeat(x->world, "gradient", step);
    x->backend->begin(x);
}

void dt__exchange_need(struct dt_exchange *x, int bucket)
{
    if (x->rows_exchange) dt__rows_await(x);
    dt__exchange_wait(x, &x->memory->control->bucket[bucket].updated,
                      x->step.steps * x->layout->bucket[bucket].pieces, "weights");
}

void dt__exchange_ready(struct dt_exchange *x, int bucket)
{
    x->backend->ready(x, bucket);
}

void dt__exchange_work(struct dt_exchange *x)
{
    if (x->backend->advance) dt__exchange_advance(x);
}

int dt__exchange_end(struct dt_exchange *x, int ask)
{
    if (ask) atomic_fetch_or(&x->memory->control->asks[x->step.tick & 1], ask);
    return x->backend->end(x);
}

int dt__exchange_consult(struct dt_exchange *x, int ask)
{
    _Atomic int *asks = &x->memory->control->asks[x->step.tick & 1];
    return (ask ? atomic_fetch_or(asks, ask) | ask : atomic_load(asks)) |
           atomic_load(&x->memory->control->bank_ask);
}

void dt__exchange_settle(struct dt_exchange *x)
{
    for (int b = 0; b < x->spec.buckets; b++)
        dt__exchange_need(x, b);
    dt__event_post(&x->memory->control->settled, 1);
}

void dt__exchange_barrier(struct dt_exchange *x)
{
    dt__ranks_barrier(&x->all);
}

bool dt__exchange_is_first(const struct dt_exchange *x)
{
    return x->topo->agent == 0;
}

/* ---- the bank ------------------------------------------------------------------------------- */

/* The workers of its node do all: it sleeps, and tells them what it asks for. */
static int watch_workers(struct dt_exchange *x, uint64_t from, dt_ask_fn *ask, void *arg,
                         uint64_t *out_step)
{
    struct dt__control *control = x->memory->control;
    uint32_t all_settled = x->step.spans * (uint32_t)x->topo->workers;
    uint32_t before = x->step.tick; /* steps before this span */
    dt__world_heartbeat(x->world, "serving", from);
    dt__watchdog_wait(x->world, "the workers");
    while (!dt__event_wait_for(&control->settled, all_settled, BANK_NAP_SECS)) {
        atomic_store(&control->bank_ask, ask(arg));
        dt__heartbeat_exchange(x->world); /* hosts hear of each other through the bank */
    }
    dt__watchdog_progress(x->world);
    atomic_store(&control->bank_ask, 0);
    x->step.tick = atomic_load(&control->agreed.count);
    int asked = x->step.tick == before ? DT_ASK_NONE : control->agreed_ask[x->step.tick & 1];
    *out_step = from + (x->step.tick - before) - (asked & DT_ASK_VOID ? 1 : 0);
    return asked;
}

int dt__exchange_serve_span(struct dt_exchange *x, uint64_t from, uint64_t until, dt_ask_fn *ask,
                            void *arg, uint64_t *out_step)
{
    int asked = DT_ASK_NONE;
    x->step.spans++;
    if (x->topo->agent < 0) return watch_workers(x, from, ask, arg, out_step);
    while (from < until && !asked) {
        dt__exchange_begin(x, from);
        atomic_store(&x->memory->control->bank_ask, ask(arg));
        asked = dt__step_finish(x);
        from += !(asked & DT_ASK_VOID);
    }
    *out_step = from;
    return asked;
}

void dt__exchange_take_times(struct dt_exchange *x, struct dt_exchange_times *out)
{
    out->wait += x->step.times.wait;
    out->reduce += x->step.times.reduce;
    out->update += x->step.times.update;
    out->network += x->step.times.network;
    x->step.times = (struct dt_exchange_times){0};
}

double dt__exchange_waited(const struct dt_exchange *x)
{
    return x->step.times.wait + x->step.times.network;
}
