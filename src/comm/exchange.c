/* Creates an exchange: its ranks and nodes, the memory that a node shares, its kinds of ranges and
 * its backend. Also moves the optimizer state between the bank and the owners. */
#include "comm/exchange.h"

#include <string.h>

/* An exchange with the structs that are const in all other files. */
struct storage {
    struct dt_exchange x; /* first, so that a pointer to it is a pointer to the storage */
    struct dt__topology topo;
    struct dt__layout layout;
    struct dt__node_memory memory;
    struct dt__step step;
};

static struct storage *storage_of(struct dt_exchange *x)
{
    return (struct storage *)(void *)x;
}

/* ---- ranks and nodes ------------------------------------------------------------------------ */

/* Returns the ranks that take part: the trainers, or spec.workers workers. */
static struct dt_ranks choose_ranks(const struct dt_world *world,
                                    const struct dt_exchange_spec *spec)
{
    struct dt_ranks all = *world->trainers;
    const MPI_Comm from = all.comm;
    MPI_Group trainers, members;
    if (!spec->workers) return all;
    int first = world->worker_rank + spec->first_worker;
    int range[1][3] = {{first, first + spec->workers - 1, 1}};
    DT_MPI(MPI_Comm_group(from, &trainers));
    DT_MPI(MPI_Group_range_incl(trainers, 1, range, &members));
    DT_MPI(MPI_Comm_create_group(from, members, 0, &all.comm));
    DT_MPI(MPI_Group_free(&members));
    DT_MPI(MPI_Group_free(&trainers));
    return all;
}

/* Assigns ranks to nodes. grouped: ranks that share memory form one node. */
static void split_nodes(struct dt_exchange *x, bool grouped)
{
    struct dt__topology *topo = &storage_of(x)->topo;
    const bool alone = x->spec.workers;
    int rank, ranks;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    DT_MPI(MPI_Comm_size(x->all.comm, &ranks));
    if (grouped)
        DT_MPI(MPI_Comm_split_type(x->all.comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL,
                                   &x->node_comm));
    else
        DT_MPI(MPI_Comm_split(x->all.comm, rank, 0, &x->node_comm));
    topo->nodes = dt__number_parts(x->all.comm, x->node_comm, topo->node_at);
    dt__topology_agents(topo, ranks, rank, x->world->size > 1 && !alone);
    dt__topology_replicas(
        topo, &(struct dt__placement){.replicas = x->spec.replicas,
                                      .groups = x->spec.wire.groups,
                                      .workers = alone ? x->spec.workers : x->world->workers,
                                      .first_rank = alone ? 0 : x->world->worker_rank,
                                      .worker_of = x->spec.worker_of});
    DT_MPI(MPI_Comm_split(x->all.comm, topo->agent == 0 ? 0 : MPI_UNDEFINED, topo->node,
                          &x->firsts.comm));
}

/* ---- kinds and backends --------------------------------------------------------------------- */

/* Chooses the first backend that applies, and those of its kinds that have ranges. DT_EMEMORY. */
static dt_status choose_backend(struct dt_exchange *x)
{
    static const struct dt__backend *const ALL[] = {&dt__node_backend, &dt__reduce_backend,
                                                    &dt__owners_backend};
    struct dt__floats first;
    size_t i = 0, kinds = 0;
    while (ALL[i]->applies && !ALL[i]->applies(x))
        i++;
    x->backend = ALL[i];
    while (x->backend->kinds[kinds])
        kinds++;
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "exchange", DT__TABLE(x->kind, kinds + 1)));
    kinds = 0;
    for (const struct dt__kind *const *kind = x->backend->kinds; *kind; kind++)
        if (!(*kind)->range || (*kind)->range(x, 0, &first)) x->kind[kinds++] = *kind;
    return DT_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Takes memory for a vector of all parameters. Of some kinds of ranges only some bytes need
 * pages. */
static float *take_vector(const struct dt_exchange *x, struct dt__shm *shm, enum dt__use use)
{
    const size_t base = shm->used;
    float *vector = dt__shm_take(shm, x->spec.params, sizeof *vector);
    for (int s = 0; s < dt__ranges(x) && shm->hole; s++) {
        const struct dt__range *range = &x->layout->range[s];
        if (!range->kind->bytes) continue;
        const size_t begin = range->at.begin * sizeof *vector + range->kind->bytes(x, range, use);
        const size_t end = range->at.end * sizeof *vector;
        if (begin < end) shm->hole[shm->holes++] = (struct dt__hole){base + begin, base + end};
    }
    return vector;
}

/* Takes memory for what replica r writes: a slot for its gradient, and what kinds use in place of
 * parts of it. */
static void take_slot(struct dt_exchange *x, int r, struct dt__shm *shm)
{
    struct dt__node_memory *memory = &storage_of(x)->memory;
    bool is_filled = true;
    memory->slot[r] = take_vector(x, shm, DT__GRADIENT);
    for (int k = 0; x->kind[k]; k++) {
        if (!x->kind[k]->map_replica) continue;
        x->kind[k]->map_replica(x, memory, r, shm);
        is_filled = false;
    }
    if (is_filled) shm->filled = shm->used;
}

/* Takes the memory that the ranks of this node share. */
static void take_memory(struct dt_exchange *x, struct dt__shm *shm)
{
    struct dt__node_memory *memory = &storage_of(x)->memory;
    const size_t buckets = (size_t)x->spec.buckets * sizeof *memory->control->bucket;
    int first = -1; /* first replica of this node */
    memory->control = dt__shm_take(shm, 1, sizeof *memory->control + buckets);
    dt__norm_map(x, memory, shm);
    for (int v = 0; v < (x->topo->node == 0 ? x->spec.vectors : 1); v++)
        memory->vectors[v] = take_vector(x, shm, v ? DT__STATE : DT__WEIGHTS);
    for (int k = 0; x->kind[k]; k++)
        if (x->kind[k]->map) x->kind[k]->map(x, memory, shm);
    if (!shm->holes) shm->filled = shm->used;
    for (int r = 0; r < x->spec.replicas; r++) {
        if (x->topo->node_of[r] != x->topo->node) continue;
        take_slot(x, r, shm);
        if (first < 0) first = r;
    }
    for (int g = 0; g < x->errors && x->topo->node == 0; g++)
        x->error[g] = dt__shm_take(shm, x->spec.params, sizeof(float));
    /* Sums use the first replica's slot. The sums of owned chunks overwrite its gradient of these
     * chunks; other nodes' chunks, whose sums are sent from slots, and rows use other floats of the
     * slot. */
    if (!x->spec.norm.needed)
        memory->sums = NULL;
    else if (first >= 0)
        memory->sums = memory->slot[first];
    else
        memory->sums = take_vector(x, shm, DT__STATE);
}

static void dissolve_nodes(struct dt_exchange *x)
{
    dt__shared_free(&storage_of(x)->memory.shared);
    dt__shared_free(&storage_of(x)->memory.books_memory);
    if (x->node_comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->node_comm));
    if (x->firsts.comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->firsts.comm));
}

/* Allocates what this rank needs to know before memory is taken. DT_EMEMORY. */
static dt_status plan_memory(struct dt_exchange *x, struct dt__shm *shm)
{
    const size_t vectors = (size_t)(x->spec.vectors + x->spec.replicas + x->spec.wire.groups + 1);
    DT_TRY(choose_backend(x));
    dt__layout_ranges(x, &storage_of(x)->layout);
    for (int k = 0; x->kind[k]; k++)
        if (x->kind[k]->reserve) DT_TRY(x->kind[k]->reserve(x, &storage_of(x)->layout));
    return DT__ARENA_ALLOC(&x->arena, "memory table",
                           DT__TABLE(shm->hole, vectors * (size_t)x->spec.row_ranges));
}

/* Creates the nodes, and what depends on them: backend, tables and memory. Fails on all ranks or on
 * none. */
static dt_status form_nodes(struct dt_exchange *x, bool grouped)
{
    struct dt__shared *shared = &storage_of(x)->memory.shared;
    struct dt__shm shm = {0};
    int node_rank;
    split_nodes(x, grouped);
    dt_status status = dt__ranks_agree(&x->all, plan_memory(x, &shm));
    if (!status) {
        take_memory(x, &shm);
        status = dt__shared_create(x->node_comm, &shm, "node exchange", &x->all, shared);
    }
    if (status) {
        dissolve_nodes(x);
        return status;
    }
    shm = (struct dt__shm){.memory = shared->memory, .holes = shm.holes};
    take_memory(x, &shm);
    DT_MPI(MPI_Comm_rank(x->node_comm, &node_rank));
    if (node_rank == 0) dt__shared_fill(shared, shared->memory, shm.filled);
    return DT_OK;
}

/* Takes memory for the bank's books, if its node's memory has less than whole vectors. */
static void take_books(struct dt_exchange *x, struct dt__shm *shm)
{
    bool is_apart = x->spec.tail;
    for (int k = 0; x->kind[k]; k++)
        is_apart |= x->kind[k]->is_apart;
    for (int v = 0; v < x->spec.vectors && x->topo->node == 0 && is_apart; v++)
        storage_of(x)->memory.books[v] =
            dt__shm_take(shm, x->spec.params + x->spec.tail, sizeof(float));
}

/* Creates the bank's books, on the disk if they are large or /dev/shm has too little space. Fails
 * on all ranks or on none. */
static dt_status create_books(struct dt_exchange *x)
{
    struct dt__shared *books = &storage_of(x)->memory.books_memory;
    struct dt__shm shm = {0};
    take_books(x, &shm);
    if (dt__is_backed(shm.used) || !dt__shared_fits(x->node_comm, shm.used, "bank's books"))
        shm.dir = x->spec.books;
    DT_TRY(dt__shared_create(x->node_comm, &shm, "bank's books", &x->all, books));
    shm = (struct dt__shm){.memory = books->memory};
    take_books(x, &shm);
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
    return dt__rows_check(spec->row_range, spec->row_ranges, spec->params);
}

/* Allocates what does not depend on other ranks. */
static dt_status allocate(struct dt_exchange *x)
{
    const size_t buckets = (size_t)x->spec.buckets, matrices = (size_t)x->spec.matrices;
    const size_t replicas = (size_t)x->spec.replicas, groups = (size_t)x->spec.wire.groups;
    struct dt__node_memory *memory = &storage_of(x)->memory;
    struct dt__layout *layout = &storage_of(x)->layout;
    struct dt__scratch *scratch = &x->scratch;
    size_t ranges = buckets + 2 * (matrices + (size_t)x->spec.row_ranges);
    int all;
    DT_MPI(MPI_Comm_size(x->all.comm, &all));
    DT_TRY(dt__topology_allocate(&storage_of(x)->topo, &x->arena, all, x->spec.replicas,
                                 x->spec.wire.groups));
    for (size_t i = 0; i < matrices; i++) {
        const struct dt_factored *matrix = &x->spec.factored[i];
        const size_t tile = matrix->tile_rows * matrix->tile_columns;
        if (tile > scratch->most_tile) scratch->most_tile = tile;
    }
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "exchange", DT__TABLE(memory->slot, replicas),
                           DT__TABLE(memory->factors, replicas),
                           DT__TABLE(layout->bucket, buckets + 1), DT__TABLE(layout->range, ranges),
                           DT__TABLE(x->error, groups),
                           DT__TABLE(scratch->tiles, DT__TREE_DEPTH * scratch->most_tile),
                           DT__TABLE(scratch->block, DT__TREE_DEPTH)));
    for (size_t b = 0, begin = 0; b < buckets; begin = layout->bucket[b++].at.end)
        layout->bucket[b].at = (struct dt__floats){begin, x->spec.bucket_end[b]};
    return DT_OK;
}

/* Forms the nodes of ranks that share memory; if a host has too little memory to share, makes each
 * rank a separate node. */
static dt_status choose_nodes(struct dt_exchange *x)
{
    const int kind = x->spec.kind;
    dt_status status = form_nodes(x, kind != DT_EXCHANGE_REDUCE);
    /* factors and copies save time, but take memory that whole gradients do not need */
    if (status && x->spec.matrices) {
        x->spec.matrices = 0;
        status = form_nodes(x, kind != DT_EXCHANGE_REDUCE);
    }
    if (!status && (kind == DT_EXCHANGE_AUTO || kind == DT_EXCHANGE_NODE))
        x->spec.kind = x->topo->nodes > 1 ? DT_EXCHANGE_ORDERED : DT_EXCHANGE_NODE;
    if (!status || kind != DT_EXCHANGE_AUTO) return status;
    if (x->topo->rank == 0)
        dt__warn("%s; taking train.exchange=ordered without shared memory", dt_error_text());
    x->spec.kind = DT_EXCHANGE_ORDERED;
    return form_nodes(x, false);
}

/* Completes the layout, and allocates what depends on it. If one agent updates all of a node's
 * weights and nothing is rounded, updates are in place. */
static dt_status prepare(struct dt_exchange *x)
{
    if (x->errors || x->topo->agents > 1)
        DT_TRY(DT__ARENA_ALLOC(&x->arena, "exchange", DT__TABLE(x->scratch.fresh, DT__TREE_BLOCK)));
    return x->backend->prepare(x, &storage_of(x)->layout);
}

static size_t or_all(size_t params, size_t all)
{
    return params && params < all ? params : all;
}

/* Sets the members of spec that do not depend on the nodes. */
static void complete_spec(struct dt_exchange *x)
{
    struct dt__layout *layout = &storage_of(x)->layout;
    struct dt_norm_spec *norm = &x->spec.norm;
    struct dt_wire_spec *wire = &x->spec.wire;
    norm->params = or_all(norm->params, x->spec.params);
    wire->params = or_all(wire->params, x->spec.params);
    if (!wire->kind) wire->groups = 1;
    x->errors = wire->kind ? wire->groups : 0;
    layout->is_one_cut = norm->needed;
    layout->grain = norm->needed ? DT__TREE_BLOCK : wire->kind ? DT__WIRE_BLOCK : 16;
}

dt_status dt__exchange_create(struct dt_world *world, const struct dt_exchange_spec *spec,
                              struct dt_exchange **out)
{
    struct storage *storage = NULL;
    struct dt_exchange *x = NULL;
    struct dt_ranks all = choose_ranks(world, spec);
    dt_status status = check_spec(spec);
    if (!status) status = dt__alloc(1, sizeof *storage, "exchange", &storage);
    if (storage) {
        x = &storage->x;
        *x = (struct dt_exchange){.world = world,
                                  .all = all,
                                  .spec = *spec,
                                  .node_comm = MPI_COMM_NULL,
                                  .firsts = {.world = world, .comm = MPI_COMM_NULL},
                                  .requests = {.world = world, .comm = all.comm},
                                  .topo = &storage->topo,
                                  .layout = &storage->layout,
                                  .memory = &storage->memory,
                                  .step = &storage->step};
    }
    DT_GUARD(dt__ranks_agree(&all, status));
    complete_spec(x);
    DT_GUARD(dt__ranks_agree(&all, allocate(x)));
    DT_GUARD(choose_nodes(x));
    DT_GUARD(create_books(x));
    DT_GUARD(dt__ranks_agree(&all, prepare(x)));
    *out = x;
done:
    if (!x && spec->workers) DT_MPI(MPI_Comm_free(&all.comm));
    if (status) dt__exchange_destroy(x);
    return status;
}

void dt__exchange_destroy(struct dt_exchange *x)
{
    if (!x) return;
    if (x->world) dissolve_nodes(x);
    dt__requests_free(&x->requests);
    if (x->spec.workers) DT_MPI(MPI_Comm_free(&x->all.comm));
    dt__arena_free(&x->arena);
    dt_free(x);
}

int dt__exchange_which(const struct dt_exchange *x)
{
    return x->spec.kind;
}
float *const *dt__exchange_vectors(struct dt_exchange *x)
{
    return x->memory->books[0] ? x->memory->books : x->memory->vectors;
}
void *dt__exchange_copies(struct dt_exchange *x)
{
    return x->memory->copies;
}

float *dt__exchange_error(struct dt_exchange *x, int group)
{
    return x->error[group];
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

bool dt__exchange_is_shared(const struct dt_exchange *x)
{
    return x->topo->nodes <= x->world->hosts;
}

void dt__exchange_barrier(struct dt_exchange *x)
{
    dt__ranks_barrier(&x->all);
}

bool dt__exchange_is_first(const struct dt_exchange *x)
{
    return x->topo->agent == 0;
}

/* ---- the optimizer's state ------------------------------------------------------------------ */

static void move_vectors(struct dt_exchange *x, bool to_bank, int vectors)
{
    for (int s = 0; s < dt__ranges(x); s++)
        x->layout->range[s].kind->move(x, &x->layout->range[s], to_bank, vectors);
}

void dt__exchange_start(struct dt_exchange *x)
{
    move_vectors(x, false, x->spec.vectors + x->errors);
    dt__ranks_barrier(&x->all);
}

void dt__exchange_gather(struct dt_exchange *x, bool all)
{
    move_vectors(x, true, all ? x->spec.vectors + x->errors : 1);
}
