/* Reducers: groups of ranks, the memory that they share, and what all strategies have in common. */
#include "base/clones.h"
#include "comm/reducer.h"

#include <string.h>

/* ---- the fixed tree ------------------------------------------------------------------------- */

int dt__tree_split(int a, int b)
{
    int half = 1;
    while (2 * half < b - a)
        half *= 2;
    return a + half;
}

DT__CLONES
void dt__tree_add(size_t n, const float *left, const float *right, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = left[i] + right[i];
}

static const float *sum_node(const float *const *leaf, const int *whole, int a, int b,
                             size_t offset, size_t n, float (*block)[DT__TREE_BLOCK])
{
    if (b - a == 1 || (whole && whole[a] == b)) return leaf[a] + offset;
    int split = dt__tree_split(a, b);
    /* The left sum may rest in block[0] while the right one is made in the levels below. */
    const float *left = sum_node(leaf, whole, a, split, offset, n, block);
    const float *right = sum_node(leaf, whole, split, b, offset, n, block + 1);
    dt__tree_add(n, left, right, block[0]);
    return block[0];
}

const float *dt__tree_sum(const float *const *leaf, const int *whole, int a, int b, size_t offset,
                          size_t n, float (*block)[DT__TREE_BLOCK])
{
    return sum_node(leaf, whole, a, b, offset, n, block);
}

/* ---- givers --------------------------------------------------------------------------------- */

int dt__wire_at(const struct dt_reducer *x, size_t at)
{
    return at < x->spec.wire_params ? x->spec.wire : DT_WIRE_F32;
}

int dt__giver_begin(const struct dt_reducer *x, int giver)
{
    return (int)((int64_t)x->spec.replicas * giver / x->spec.givers);
}

/* What a sum over givers asks of its leaves. */
struct giver_call {
    dt__giver_fn *giver;
    const void *arg;
    size_t at, n;
};

static const float *givers_node(struct dt_reducer *x, const struct giver_call *call, int a, int b,
                                float (*block)[DT__TREE_BLOCK])
{
    if (b - a == 1) return call->giver(x, call->arg, a, call->at, call->n, block);
    int split = dt__tree_split(a, b);
    const float *left = givers_node(x, call, a, split, block);
    const float *right = givers_node(x, call, split, b, block + 1);
    dt__tree_add(call->n, left, right, block[0]);
    return block[0];
}

const float *dt__givers_sum(struct dt_reducer *x, dt__giver_fn *giver, const void *arg, size_t at,
                            size_t n)
{
    const struct giver_call call = {giver, arg, at, n};
    return givers_node(x, &call, 0, x->spec.givers, x->scratch->block);
}

/* ---- norm ----------------------------------------------------------------------------------- */

DT__CLONES
void dt__norm_blocks(const struct dt_reducer *x, double *norms, const float *sum, size_t begin,
                     size_t end)
{
    end = end < x->spec.norm_params ? end : x->spec.norm_params;
    for (size_t at = begin; at < end; at += DT__TREE_BLOCK) {
        size_t last = at + DT__TREE_BLOCK < end ? at + DT__TREE_BLOCK : end;
        double lane[8] = {0};
        for (size_t i = at; i < last; i++)
            lane[(i - at) & 7] += (double)sum[i] * (double)sum[i];
        norms[at / DT__TREE_BLOCK] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                                     ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
}

double dt__norm_total(const struct dt_reducer *x, const double *norms)
{
    double total = 0;
    for (size_t b = 0; b < x->norm_blocks; b++)
        total += norms[b];
    return total;
}

static void find_parts(struct dt_reducer *x, int first, int end)
{
    int r = first;
    while (r < end && x->group_of_replica[r] == x->group_of_replica[first])
        r++;
    if (r == end) {
        x->part[x->parts++] =
            (struct dt__part){.first = first, .end = end, .group = x->group_of_replica[first]};
        return;
    }
    int split = dt__tree_split(first, end);
    find_parts(x, first, split);
    find_parts(x, split, end);
}

static void find_givers(struct dt_reducer *x)
{
    x->parts = 0;
    for (int g = 0; g < x->spec.givers; g++) {
        int first = x->giver_part[g] = x->parts;
        find_parts(x, dt__giver_begin(x, g), dt__giver_begin(x, g + 1));
        for (int p = first; p < x->parts; p++) {
            x->part[p].giver = g;
            x->part[p].whole = x->parts == first + 1;
        }
    }
    x->giver_part[x->spec.givers] = x->parts;
}

/* ---- slices --------------------------------------------------------------------------------- */

void dt__slice(size_t from, size_t to, int index, int count, size_t grain, size_t *begin,
               size_t *end)
{
    size_t base = from - from % grain, units = (to - base + grain - 1) / grain;
    size_t first = base + units * (size_t)index / (size_t)count * grain;
    size_t last = base + units * ((size_t)index + 1) / (size_t)count * grain;
    *begin = first > from ? first : from;
    *end = last < to ? last : to;
    if (*begin > *end) *begin = *end;
}

size_t dt__grain(const struct dt_reducer *x)
{
    return x->spec.wire ? DT__WIRE_BLOCK : 16;
}

size_t dt__block_length(size_t at, size_t end)
{
    size_t n = DT__TREE_BLOCK - at % DT__TREE_BLOCK;
    return n < end - at ? n : end - at;
}

size_t dt__bucket_begin(const struct dt_reducer *x, int bucket)
{
    return bucket ? x->bucket_end[bucket - 1] : 0;
}

bool dt__stretch_next(const struct dt_reducer *x, int bucket, size_t *begin, size_t *end)
{
    size_t at = *end, last = x->bucket_end[bucket];
    for (int i = 0; dt__rows_are_touched(x) && i < x->spec.row_ranges; i++) {
        const struct dt_row_range *range = &x->spec.row_range[i];
        const size_t behind = range->offset + range->rows * range->width;
        if (behind <= at) continue;
        if (range->offset > at) {
            last = range->offset < last ? range->offset : last;
            break;
        }
        at = behind;
    }
    if (at >= last) return false;
    *begin = at;
    *end = last;
    return true;
}

/* ---- groups --------------------------------------------------------------------------------- */

/* The ranks that take part: the trainers, or a team of workers. */
static MPI_Comm choose_ranks(const struct dt_world *world, const struct dt_reducer_spec *spec)
{
    MPI_Comm all = world->trainers;
    MPI_Group trainers, team;
    if (!spec->team) return all;
    int first = dt_world_worker_rank(world, spec->first_worker);
    int range[1][3] = {{first, first + spec->team - 1, 1}};
    DT_MPI(MPI_Comm_group(world->trainers, &trainers));
    DT_MPI(MPI_Group_range_incl(trainers, 1, range, &team));
    DT_MPI(MPI_Comm_create_group(world->trainers, team, 0, &all));
    DT_MPI(MPI_Group_free(&team));
    DT_MPI(MPI_Group_free(&trainers));
    return all;
}

static void split_groups(struct dt_reducer *x)
{
    struct dt_world *world = x->world;
    if (x->grouped)
        DT_MPI(MPI_Comm_split_type(x->all, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL,
                                   &x->group));
    else
        DT_MPI(MPI_Comm_split(x->all, world->rank, 0, &x->group));
    DT_MPI(MPI_Comm_rank(x->group, &x->group_rank));
    DT_MPI(MPI_Comm_size(x->group, &x->group_size));
    DT_MPI(MPI_Comm_split(x->all, x->group_rank ? MPI_UNDEFINED : 0, world->rank, &x->leaders));
    int place[2] = {0, 0}; /* groups, index; the bank leads the first */
    if (x->leaders != MPI_COMM_NULL) {
        DT_MPI(MPI_Comm_size(x->leaders, &place[0]));
        DT_MPI(MPI_Comm_rank(x->leaders, &place[1]));
    }
    DT_MPI(MPI_Bcast(place, 2, MPI_INT, 0, x->group));
    x->groups = place[0];
    x->group_index = place[1];
    bool has_bank = x->group_index == 0 && world->size > 1 && !x->spec.team;
    x->group_workers = x->group_size - (has_bank ? 1 : 0);
    x->worker = x->group_rank - (has_bank ? 1 : 0);
}

/* The rank in x->all of one of its workers. */
static int rank_of_worker(const struct dt_reducer *x, int worker)
{
    return x->spec.team ? worker : dt_world_worker_rank(x->world, worker);
}

static dt_status map_replicas(struct dt_reducer *x)
{
    size_t replicas = (size_t)x->spec.replicas, givers = (size_t)x->spec.givers;
    int ranks, *group_of = NULL;
    DT_MPI(MPI_Comm_size(x->all, &ranks));
    dt_status status = dt_alloc(replicas, sizeof(int), "replica table", &x->group_of_replica);
    if (!status) status = dt_alloc(replicas, sizeof(float *), "gradient slots", &x->slot);
    if (!status) status = dt_alloc(replicas, sizeof *x->part, "subtree table", &x->part);
    if (!status) status = dt_alloc(givers + 1, sizeof(int), "subtree table", &x->giver_part);
    if (!status) status = dt_alloc(givers, sizeof *x->error, "rounding errors", &x->error);
    if (!status) status = dt_alloc(givers, sizeof *x->given, "rounded sums", &x->given);
    if (!status) status = dt_alloc((size_t)ranks, sizeof(int), "group table", &group_of);
    DT_GUARD(dt__agree_among(x->world, x->all, status));
    DT_MPI(MPI_Allgather(&x->group_index, 1, MPI_INT, group_of, 1, MPI_INT, x->all));
    const int *worker_of = x->spec.worker_of;
    int workers = x->spec.team ? x->spec.team : x->world->workers;
    for (int w = 0; w < workers && !worker_of; w++) {
        int first, count;
        dt_deal_replicas(workers, w, x->spec.replicas, &first, &count);
        for (int r = first; r < first + count; r++)
            x->group_of_replica[r] = group_of[rank_of_worker(x, w)];
    }
    for (int r = 0; r < x->spec.replicas && worker_of; r++)
        x->group_of_replica[r] = group_of[rank_of_worker(x, worker_of[r])];
    find_givers(x);
done:
    dt_free(group_of);
    return status;
}

/* ---- shared memory -------------------------------------------------------------------------- */

struct layout {
    /* Bytes; `vector` of one vector, slot, error or part's rows, `lists` and `factors` of a slot, `part_lists` of a
     * part's rows, `given` of a rounded sum. */
    size_t control, vector, norms, lists, factors, part_lists, given, total;
    int vectors, slots, errors, parts, sums;
};

/* Whether this group rounds the giver's sum. */
static bool rounds(const struct dt_reducer *x, int giver)
{
    const struct dt__part *part = &x->part[x->giver_part[giver]];
    return x->spec.wire && part->whole && part->group == x->group_index;
}

/* Bytes of a replica's factors; 0: gradients are whole. */
static size_t factor_bytes(const struct dt_reducer *x)
{
    if (!x->spec.matrices || x->groups > 1 || x->spec.norm || x->spec.wire) return 0;
    const struct dt_factored *last = &x->factored[x->spec.matrices - 1];
    return last->place + last->bytes;
}

static dt_status lay_out(struct dt_reducer *x, struct layout *layout)
{
    bool bank_group = x->group_index == 0;
    layout->vectors = bank_group || dt__rows_bytes(x) ? x->spec.vectors : 1;
    layout->slots = 0;
    for (int r = 0; r < x->spec.replicas; r++)
        layout->slots += x->group_of_replica[r] == x->group_index;
    layout->control = sizeof *x->control + (size_t)x->spec.buckets * sizeof x->control->bucket[0];
    x->norm_blocks = (x->spec.norm_params + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK;
    layout->norms = bank_group && x->spec.norm ? (x->norm_blocks * sizeof(double) + 63) & ~63UL : 0;
    layout->lists = dt__rows_bytes(x);
    layout->part_lists = dt__rows_part_bytes(x);
    for (int p = 0; p < x->parts; p++)
        layout->parts += dt__rows_part_has_room(x, p);
    layout->factors = factor_bytes(x);
    for (int g = 0; g < x->spec.givers; g++) {
        layout->errors += x->spec.wire && (bank_group || rounds(x, g));
        layout->sums += x->groups > 1 && rounds(x, g);
    }
    layout->given = x->given_place[x->spec.buckets];
    size_t vectors, lists, factors, part_lists, sums;
    if (!dt_size_mul(x->spec.params, sizeof(float), &layout->vector) ||
        !dt_size_add(layout->vector, 63, &layout->vector) ||
        !dt_size_mul(layout->vector &= ~63UL,
                     (size_t)(layout->vectors + layout->slots + layout->errors + layout->parts),
                     &vectors) ||
        !dt_size_mul(layout->given, (size_t)layout->sums, &sums) ||
        !dt_size_add(vectors, sums, &vectors) ||
        !dt_size_mul(layout->lists, (size_t)layout->slots, &lists) ||
        !dt_size_mul(layout->factors, (size_t)layout->slots, &factors) ||
        !dt_size_mul(layout->part_lists, (size_t)layout->parts, &part_lists) ||
        !dt_size_add(vectors, lists, &vectors) || !dt_size_add(vectors, factors, &vectors) ||
        !dt_size_add(vectors, part_lists, &vectors) ||
        !dt_size_add(vectors, layout->control + layout->norms, &layout->total))
        return dt_fail(DT_EMEMORY, "%zu parameters and %d replicas: too large", x->spec.params,
                       x->spec.replicas);
    return DT_OK;
}

static dt_status map_memory(struct dt_reducer *x, const struct layout *layout)
{
    DT_TRY(dt__shared_create(x->world, x->group, layout->total, "node exchange", x->all,
                             &x->shared));
    unsigned char *at = x->shared.memory;
    x->control = (struct dt__control *)(void *)at;
    if (x->group_rank == 0) memset(at, 0, layout->control);
    at += layout->control;
    if (layout->norms) x->norms = (double *)(void *)at;
    at += layout->norms;
    for (int v = 0; v < layout->vectors; v++, at += layout->vector)
        x->vectors[v] = (float *)(void *)at;
    for (int r = 0; r < x->spec.replicas; r++)
        if (x->group_of_replica[r] == x->group_index) {
            x->slot[r] = (float *)(void *)at;
            at += layout->vector;
            dt__rows_map(x, r, at);
            at += layout->lists;
            if (layout->factors) x->factors[r] = at;
            at += layout->factors;
        }
    for (int p = 0; p < x->parts; p++) {
        const bool room = dt__rows_part_has_room(x, p);
        dt__rows_map_part(x, p, room ? (float *)(void *)at : NULL, at + layout->vector);
        if (room) at += layout->vector + layout->part_lists;
    }
    for (int g = 0; g < x->spec.givers; g++) {
        if (x->spec.wire && (x->group_index == 0 || rounds(x, g))) {
            x->error[g] = (float *)(void *)at;
            at += layout->vector;
        }
        if (x->groups == 1 || !rounds(x, g)) continue;
        x->given[g] = at;
        at += layout->given;
    }
    return DT_OK;
}

static void dissolve_groups(struct dt_reducer *x)
{
    dt__shared_free(&x->shared);
    if (x->group != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->group));
    if (x->leaders != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->leaders));
    dt_free(x->slot);
    dt_free(x->part);
    dt_free(x->giver_part);
    dt_free(x->error);
    dt_free(x->given);
    dt_free(x->group_of_replica);
    x->slot = x->error = NULL;
    x->given = NULL;
    x->part = NULL;
    x->group_of_replica = x->giver_part = NULL;
}

/* Groups, tables and memory for what x->grouped says. Fails on all ranks or on none. */
static dt_status form_groups(struct dt_reducer *x)
{
    struct layout layout = {0};
    split_groups(x);
    dt_status status = map_replicas(x);
    if (!status) status = dt__agree_among(x->world, x->all, lay_out(x, &layout));
    if (!status) status = map_memory(x, &layout);
    if (status) dissolve_groups(x);
    return status;
}

/* ---- create --------------------------------------------------------------------------------- */

static dt_status check_spec(const struct dt_reducer_spec *spec)
{
    if (spec->vectors < 1 || spec->vectors > DT_REDUCER_VECTORS)
        return dt_fail(DT_EUSAGE, "reducer: %d vectors, expected 1 to %d", spec->vectors,
                       DT_REDUCER_VECTORS);
    if (spec->replicas < 1 || spec->replicas > DT_REDUCER_REPLICAS)
        return dt_fail(DT_EUSAGE, "reducer: %d replicas, expected 1 to %d", spec->replicas,
                       DT_REDUCER_REPLICAS);
    if (spec->buckets < 1 || spec->bucket_end[spec->buckets - 1] != spec->params)
        return dt_fail(DT_EUSAGE, "reducer: the buckets do not end with the parameters");
    if (spec->reproducible && spec->kind == DT_REDUCER_REDUCE)
        return dt_fail(DT_EUSAGE, "run.reproducible=yes does not go with train.exchange=reduce: "
                                  "expected auto, node or ordered");
    if (spec->wire && (spec->kind == DT_REDUCER_REDUCE || spec->row_ranges))
        return dt_fail(DT_EUSAGE, "reducer: train.wire goes neither with train.exchange=reduce nor with "
                                  "gradients of touched rows");
    if (spec->wire && (spec->givers < 1 || spec->givers > spec->replicas))
        return dt_fail(DT_EUSAGE, "reducer: %d groups of %d replicas", spec->givers, spec->replicas);
    return DT_OK;
}

static dt_status factors_create(struct dt_reducer *x)
{
    const size_t matrices = (size_t)x->spec.matrices;
    size_t levels = 1;
    if (!matrices) return DT_OK;
    DT_TRY(dt_alloc(matrices, sizeof *x->factored, "factored gradients", &x->factored));
    memcpy(x->factored, x->spec.factored, matrices * sizeof *x->factored);
    for (size_t i = 0; i < matrices; i++) {
        const size_t tile = x->factored[i].tile_rows * x->factored[i].tile_columns;
        if (tile > x->most_tile) x->most_tile = tile;
    }
    for (int replicas = 1; replicas < x->spec.replicas; replicas *= 2)
        levels++;
    DT_TRY(dt_alloc(levels * x->most_tile, sizeof(float), "tiles of gradients", &x->tiles));
    return dt_alloc((size_t)x->spec.replicas, sizeof(void *), "factored gradients", &x->factors);
}

/* What this rank does by itself. */
static dt_status allocate(struct dt_reducer *x)
{
    size_t buckets = (size_t)x->spec.buckets;
    DT_TRY(dt_alloc(buckets, sizeof(size_t), "bucket table", &x->bucket_end));
    memcpy(x->bucket_end, x->spec.bucket_end, buckets * sizeof(size_t));
    DT_TRY(dt_alloc(buckets + 1, sizeof(size_t), "bucket table", &x->given_place));
    for (int b = 0; b < x->spec.buckets; b++) {
        size_t begin = dt__bucket_begin(x, b), n = x->bucket_end[b] - begin;
        size_t bytes = dt__wire_bytes(dt__wire_at(x, begin), begin, n);
        x->given_place[b + 1] = x->given_place[b] + ((bytes + 63) & ~63UL);
    }
    DT_TRY(dt_alloc(1, sizeof *x->scratch, "sum scratch", &x->scratch));
    DT_TRY(dt__rows_create(x));
    DT_TRY(factors_create(x));
    DT_TRY(dt_alloc(DT__TREE_BLOCK, sizeof *x->fresh, "update scratch", &x->fresh));
    DT_TRY(dt_alloc(buckets, sizeof(uint32_t), "bucket table", &x->pieces));
    return dt_alloc(buckets, sizeof(uint32_t), "bucket table", &x->pieces_done);
}

static int count_hosts(const struct dt_reducer *x)
{
    if (!x->spec.team) return x->world->hosts;
    int hosts = 1; /* ranks of a host may stand apart: at least so many */
    int first = dt_world_worker_rank(x->world, x->spec.first_worker);
    for (int rank = first + 1; rank < first + x->spec.team; rank++)
        hosts += x->world->host_of[rank] != x->world->host_of[rank - 1];
    return hosts;
}

/* Where memory that a host shares is wanting, each rank is a group of its own. */
static dt_status choose_groups(struct dt_reducer *x)
{
    bool several = count_hosts(x) > 1, any = x->spec.kind == DT_REDUCER_AUTO;
    bool tree = x->spec.reproducible || x->spec.wire;
    x->exchange = x->spec.kind;
    if (any || (x->exchange == DT_REDUCER_NODE && tree))
        x->exchange = several ? DT_REDUCER_ORDERED : DT_REDUCER_NODE;
    x->grouped = x->exchange != DT_REDUCER_REDUCE;
    dt_status status = form_groups(x);
    if (status && factor_bytes(x)) { /* factors save time, but need room beside whole gradients' */
        x->spec.matrices = 0;
        status = form_groups(x);
    }
    if (!status || !any) return status;
    int rank;
    DT_MPI(MPI_Comm_rank(x->all, &rank));
    if (rank == 0)
        dt_warn("%s; taking train.exchange=%s", dt_error_text(),
                tree ? "ordered without shared memory" : "reduce");
    x->grouped = false;
    x->exchange = tree ? DT_REDUCER_ORDERED : DT_REDUCER_REDUCE;
    return form_groups(x);
}

dt_status dt_reducer_create(struct dt_world *world, const struct dt_reducer_spec *spec,
                            struct dt_reducer **out)
{
    struct dt_reducer *x = NULL;
    MPI_Comm all = choose_ranks(world, spec);
    dt_status status = check_spec(spec);
    if (!status) status = dt_alloc(1, sizeof *x, "reducer", &x);
    if (x)
        *x = (struct dt_reducer){.world = world,
                                 .all = all,
                                 .spec = *spec,
                                 .shared.win = MPI_WIN_NULL,
                                 .group = MPI_COMM_NULL,
                                 .leaders = MPI_COMM_NULL};
    DT_GUARD(dt__agree_among(world, all, status));
    if (!spec->norm_params || spec->norm_params > spec->params) x->spec.norm_params = spec->params;
    if (!spec->wire) x->spec.givers = 1;
    if (!spec->wire_params) x->spec.wire_params = spec->params;
    DT_GUARD(dt__agree_among(world, all, allocate(x)));
    DT_GUARD(choose_groups(x));
    x->strategy = x->groups == 1                      ? &dt__reducer_shared
              : x->exchange == DT_REDUCER_ORDERED ? &dt__reducer_owners
                                                  : &dt__reducer_stream;
    x->one_sum = x->exchange != DT_REDUCER_ORDERED;
    for (int b = 0; b < spec->buckets; b++)
        x->pieces[b] = (uint32_t)x->group_workers;
    if (x->strategy->create) DT_GUARD(x->strategy->create(x));
    dt__barrier_among(world, all);
    *out = x;
done:
    if (!x && spec->team) DT_MPI(MPI_Comm_free(&all));
    if (status) dt_reducer_destroy(x);
    return status;
}

void dt_reducer_destroy(struct dt_reducer *x)
{
    if (!x) return;
    if (x->strategy && x->strategy->destroy) x->strategy->destroy(x);
    if (x->world) dissolve_groups(x);
    dt__rows_destroy(x);
    if (x->spec.team) DT_MPI(MPI_Comm_free(&x->all));
    dt_free(x->factored);
    dt_free(x->factors);
    dt_free(x->tiles);
    dt_free(x->bucket_end);
    dt_free(x->given_place);
    dt_free(x->scratch);
    dt_free(x->fresh);
    dt_free(x->pieces);
    dt_free(x->pieces_done);
    dt_free(x);
}

int dt_reducer_kind(const struct dt_reducer *x)
{
    return x->exchange;
}
float *const *dt_reducer_vectors(struct dt_reducer *x)
{
    return x->vectors;
}
float *dt_reducer_error(struct dt_reducer *x, int giver)
{
    return x->spec.wire ? x->error[giver] : NULL;
}
const float *dt_reducer_weights(const struct dt_reducer *x)
{
    return x->vectors[0];
}
float *dt_reducer_grad(struct dt_reducer *x, int replica)
{
    return x->slot[replica];
}

void *dt_reducer_factors(const struct dt_reducer *x, int replica)
{
    return x->factors ? x->factors[replica] : NULL;
}

static void leaders_bcast(struct dt_reducer *x, float *floats, size_t n, const char *what)
{
    MPI_Request request;
    DT_MPI(MPI_Ibcast(floats, (int)n, MPI_FLOAT, 0, x->leaders, &request));
    dt__request_finish(x->world, &request, what);
}

void dt__leaders_bcast(struct dt_reducer *x, float *floats, size_t n, const char *what)
{
    const size_t most = DT__MPI_CHUNK / sizeof(float);
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < most ? n - at : most;
        /* All are the same: of a new run's state, gigabytes that need not travel. */
        const unsigned char *bytes = (const unsigned char *)(floats + at);
        float same = x->group_index == 0 &&
                     memcmp(bytes, bytes + sizeof *floats, (some - 1) * sizeof *floats) == 0;
        leaders_bcast(x, &same, 1, what);
        leaders_bcast(x, floats + at, same > 0 ? 1 : some, what);
        for (size_t i = 1; x->group_index > 0 && i < some && same > 0; i++)
            floats[at + i] = floats[at];
    }
}

/* The bank's weights to the other groups' leaders. */
void dt_reducer_start(struct dt_reducer *x)
{
    if (x->leaders != MPI_COMM_NULL) dt__leaders_bcast(x, x->vectors[0], x->spec.params, "weights");
    if (x->strategy->move_state && x->leaders != MPI_COMM_NULL) x->strategy->move_state(x, false);
    dt__barrier_among(x->world, x->all);
}

bool dt_reducer_is_spread(const struct dt_reducer *x)
{
    return x->strategy->move_state != NULL;
}

void dt_reducer_gather(struct dt_reducer *x)
{
    if (x->strategy->move_state && x->leaders != MPI_COMM_NULL) x->strategy->move_state(x, true);
}

/* ---- a step --------------------------------------------------------------------------------- */

void dt_reducer_begin(struct dt_reducer *x, uint64_t step)
{
    x->tick++;
    x->buckets_summed = 0;
    x->agreed = false;
    x->info = (struct dt_update_info){.step = step};
    dt_world_heartbeat(x->world, "gradient", step);
    if (x->strategy->begin && x->leaders != MPI_COMM_NULL) x->strategy->begin(x);
}

void dt_reducer_need(struct dt_reducer *x, int bucket)
{
    struct dt__event_count *updated = &x->control->bucket[bucket].updated;
    if (dt__event_reached(updated, x->pieces_done[bucket])) return;
    double since = dt_clock_secs();
    dt__event_wait(updated, x->pieces_done[bucket], x->world, "weights");
    x->times.wait += dt_clock_secs() - since;
}

void dt_reducer_ready(struct dt_reducer *x, int bucket)
{
    if (!x->strategy->advance) return;
    dt__group_ready(x, bucket);
    if (x->group_rank == 0) x->strategy->advance(x, DT_ASK_NONE);
}

void dt_reducer_advance(struct dt_reducer *x)
{
    if (!x->strategy->advance) return;
    while (dt__group_sum(x))
        continue;
    if (x->group_rank == 0) x->strategy->advance(x, DT_ASK_NONE);
}

/* Leader: carries the step through to its end. Returns what all ranks ask for. */
static int lead_step(struct dt_reducer *x, int bank_ask)
{
    double start = dt_clock_secs();
    struct dt__wait wait;
    dt__wait_init(&wait, x->world, "the other hosts");
    while (!x->agreed || !x->strategy->done(x)) {
        bool moved = dt__group_sum(x);
        moved |= x->strategy->advance(x, bank_ask);
        if (moved)
            dt__wait_progress(&wait);
        else
            dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
    x->times.network += dt_clock_secs() - start;
    return x->control->agreed_ask[x->tick & 1];
}

/* Several groups: when the touched rows of all have come, their update. */
static void update_rows(struct dt_reducer *x)
{
    const double start = dt_clock_secs();
    dt__event_wait(&x->control->exchanged, x->tick, x->world, "the other hosts' gradients");
    const double met = dt_clock_secs();
    x->info.norm2 = x->control->norm2;
    dt__rows_update_in_step(x);
    x->times.network += met - start;
    x->times.update += dt_clock_secs() - met;
}

int dt_reducer_end(struct dt_reducer *x, int ask)
{
    int asked;
    if (x->strategy->end) {
        asked = x->strategy->end(x, ask);
    } else if (x->group_rank > 0) {
        asked = dt__group_follow(x, ask);
    } else {
        dt__group_arrive(x, ask);
        asked = lead_step(x, DT_ASK_NONE);
    }
    if (x->groups > 1 && dt__rows_are_touched(x) && !(asked & DT_ASK_VOID)) update_rows(x);
    for (int b = 0; b < x->spec.buckets && !(asked & DT_ASK_VOID); b++)
        x->pieces_done[b] += x->pieces[b];
    return asked;
}

int dt_reducer_consult(struct dt_reducer *x, int ask)
{
    _Atomic int *asks = &x->control->asks[x->tick & 1];
    return (ask ? atomic_fetch_or(asks, ask) | ask : atomic_load(asks)) |
           atomic_load(&x->control->bank_ask);
}

void dt_reducer_settle(struct dt_reducer *x)
{
    for (int b = 0; b < x->spec.buckets; b++)
        dt_reducer_need(x, b);
    dt__event_post(&x->control->settled, 1);
}

void dt_reducer_barrier(struct dt_reducer *x)
{
    const uint32_t all = ++x->barriers * (uint32_t)x->group_workers;
    dt__event_post(&x->control->met, 1);
    dt__event_wait(&x->control->met, all, x->world, "the other workers");
}

bool dt_reducer_is_first(const struct dt_reducer *x)
{
    return x->group_rank == 0;
}

int dt_reducer_serve(struct dt_reducer *x, uint64_t from, uint64_t until, dt_ask_fn *ask, void *arg,
                     uint64_t *out_step)
{
    int asked = DT_ASK_NONE;
    x->spans++;
    if (x->strategy->serve) return x->strategy->serve(x, from, until, ask, arg, out_step);
    while (from < until && !asked) {
        dt_reducer_begin(x, from);
        asked = lead_step(x, ask(arg));
        if (asked & DT_ASK_VOID) break;
        if (!x->group_workers && dt__rows_are_touched(x)) update_rows(x);
        for (int b = 0; b < x->spec.buckets; b++)
            x->pieces_done[b] += x->pieces[b];
        from++;
    }
    for (int b = 0; b < x->spec.buckets; b++) /* its group's workers update rows by themselves */
        dt__event_wait(&x->control->bucket[b].updated, x->pieces_done[b], x->world, "weights");
    *out_step = from;
    return asked;
}

double dt_reducer_waited(const struct dt_reducer *x)
{
    return x->times.wait + x->times.network;
}

void dt_reducer_take_times(struct dt_reducer *x, struct dt_reducer_times *out)
{
    *out = x->times;
    x->times = (struct dt_reducer_times){0};
}
