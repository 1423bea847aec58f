/* Reducers: groups of ranks, the memory that they share, and the steps that all strategies have in
 * common. */
#include "comm/reducer.h"

#include <string.h>

/* ---- groups --------------------------------------------------------------------------------- */

/* The ranks that take part: the trainers, or a team of workers. */
static struct dt_ranks choose_ranks(const struct dt_world *world,
                                    const struct dt_reducer_spec *spec)
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

static void split_groups(struct dt_reducer *x)
{
    struct dt_world *world = x->world;
    int rank;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
    if (x->grouped)
        DT_MPI(MPI_Comm_split_type(x->all.comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL,
                                   &x->group));
    else
        DT_MPI(MPI_Comm_split(x->all.comm, rank, 0, &x->group));
    DT_MPI(MPI_Comm_rank(x->group, &x->group_rank));
    DT_MPI(MPI_Comm_size(x->group, &x->group_size));
    DT_MPI(MPI_Comm_split(x->all.comm, x->group_rank ? MPI_UNDEFINED : 0, rank, &x->leaders.comm));
    int place[2] = {0, 0}; /* groups, index; the bank leads the first */
    if (x->group_rank == 0) {
        DT_MPI(MPI_Comm_size(x->leaders.comm, &place[0]));
        DT_MPI(MPI_Comm_rank(x->leaders.comm, &place[1]));
    }
    DT_MPI(MPI_Bcast(place, 2, MPI_INT, 0, x->group));
    x->groups = place[0];
    x->group_index = place[1];
    bool has_bank = x->group_index == 0 && world->size > 1 && !x->spec.team;
    x->group_workers = x->group_size - (has_bank ? 1 : 0);
    x->worker = x->group_rank - (has_bank ? 1 : 0);
}

static void find_parts(struct dt_reducer *x, int giver, int first, int end)
{
    int r = first;
    while (r < end && x->group_of_replica[r] == x->group_of_replica[first])
        r++;
    if (r == end) {
        x->part[x->parts++] = (struct dt__part){first, end, x->group_of_replica[first], giver};
        return;
    }
    int split = dt__tree_split(first, end);
    find_parts(x, giver, first, split);
    find_parts(x, giver, split, end);
}

/* Which group has each replica, and what that makes of the trees. */
static dt_status map_replicas(struct dt_reducer *x)
{
    const int givers = x->spec.givers, replicas = x->spec.replicas;
    const int workers = x->spec.team ? x->spec.team : x->world->workers;
    int ranks, *group_of = NULL; /* of each rank */
    DT_MPI(MPI_Comm_size(x->all.comm, &ranks));
    dt_status status =
        dt_alloc((size_t)replicas, sizeof(int), "replica table", &x->group_of_replica);
    if (!status) status = dt_alloc((size_t)replicas, sizeof(float *), "gradient slots", &x->slot);
    if (!status) status = dt_alloc((size_t)replicas, sizeof *x->part, "subtree table", &x->part);
    if (!status)
        status = dt_alloc((size_t)givers + 1, sizeof *x->giver, "subtree table", &x->giver);
    if (!status) status = dt_alloc((size_t)ranks, sizeof(int), "group table", &group_of);
    DT_GUARD(dt_ranks_agree(&x->all, status));
    DT_MPI(MPI_Allgather(&x->group_index, 1, MPI_INT, group_of, 1, MPI_INT, x->all.comm));
    for (int r = 0, w = -1, end = 0; r < replicas; r++) {
        for (int first, count; r == end && !x->spec.worker_of; end = first + count)
            dt_deal_replicas(workers, ++w, replicas, &first, &count);
        const int worker = x->spec.worker_of ? x->spec.worker_of[r] : w;
        x->group_of_replica[r] =
            group_of[x->spec.team ? worker : x->world->worker_rank + worker];
    }
    x->parts = 0;
    for (int g = 0; g <= givers; g++) {
        struct dt__giver *giver = &x->giver[g];
        giver->first = (int)((int64_t)replicas * g / givers);
        giver->part = x->parts;
        if (g == givers) break;
        find_parts(x, g, giver->first, (int)((int64_t)replicas * (g + 1) / givers));
        giver->group = x->parts == giver->part + 1 ? x->part[giver->part].group : -1;
    }
done:
    dt_free(group_of);
    return status;
}

/* ---- shared memory -------------------------------------------------------------------------- */

void *dt__room_take(struct dt__room *room, size_t count, size_t size)
{
    void *at = room->memory ? room->memory + room->used : NULL;
    size_t bytes;
    if (!dt_size_mul(count, size, &bytes) || !dt_size_add(bytes, 63, &bytes) ||
        !dt_size_add(room->used, bytes & ~63UL, &room->used))
        room->used = SIZE_MAX;
    return at;
}

/* The matrices that are updated tile by tile. */
static int tiled_matrices(const struct dt_reducer *x)
{
    return x->groups > 1 || x->spec.wire ? 0 : x->spec.matrices;
}

/* Bytes of a replica's factors; 0: gradients are whole. */
static size_t factor_bytes(const struct dt_reducer *x)
{
    if (!tiled_matrices(x) || x->spec.norm) return 0;
    const struct dt_factored *last = &x->factored[x->spec.matrices - 1];
    return last->place + last->bytes;
}

static void cut_segments(struct dt_reducer *x)
{
    const int ranges = dt__rows_are_touched(x) ? x->spec.row_ranges : 0;
    const int matrices = tiled_matrices(x);
    struct dt__segment *segment = x->segment;
    x->given = 0;
    for (int b = 0, i = 0; b < x->spec.buckets; b++) {
        struct dt__bucket *bucket = &x->bucket[b];
        bucket->has_rows = false;
        bucket->pieces = (uint32_t)x->group_workers;
        for (size_t at = bucket->at.begin; at < bucket->at.end; at = segment++->at.end) {
            struct dt__segment next = {.at = {bucket->at.end, bucket->at.end}};
            if (i < ranges) {
                const struct dt_row_range *range = &x->spec.row_range[i];
                const size_t end = range->offset + range->rows * range->width;
                next = (struct dt__segment){DT__ROWS, i, {range->offset, end}, 0};
            } else if (i < matrices) {
                const struct dt_factored *matrix = &x->factored[i];
                const size_t end = matrix->offset + matrix->rows * matrix->columns;
                next = (struct dt__segment){DT__TILED, i, {matrix->offset, end}, 0};
            }
            if (next.at.begin > at) {
                const size_t end = next.at.begin < bucket->at.end ? next.at.begin : bucket->at.end;
                const size_t bytes = dt__wire_bytes(dt__wire_at(x, at), at, end - at);
                next = (struct dt__segment){DT__WHOLE, 0, {at, end}, x->given};
                x->given += dt__cache_lines(bytes);
            } else {
                bucket->has_rows |= next.kind == DT__ROWS;
                i++;
            }
            *segment = next;
        }
        x->bucket[b + 1].segment = (int)(segment - x->segment);
    }
}

/* What the ranks of this group share. */
static void deal_memory(struct dt_reducer *x, struct dt__room *room)
{
    const bool bank_group = x->group_index == 0, touched = dt__rows_are_touched(x);
    const size_t params = x->spec.params, factors = factor_bytes(x);
    x->control = dt__room_take(room, 1, sizeof *x->control + (size_t)x->spec.buckets *
                                                                 sizeof x->control->bucket[0]);
    if (bank_group && x->spec.norm) x->norms = dt__room_take(room, x->norm_blocks, sizeof(double));
    for (int v = 0; v < (bank_group || touched ? x->spec.vectors : 1); v++)
        x->vectors[v] = dt__room_take(room, params, sizeof(float));
    if (tiled_matrices(x) && x->spec.copies) x->copies = dt__room_take(room, x->spec.copies, 1);
    room->filled = room->used;
    for (int r = 0; r < x->spec.replicas; r++) {
        if (x->group_of_replica[r] != x->group_index) continue;
        x->slot[r] = dt__room_take(room, params, sizeof(float));
        if (touched) dt__rows_map(x, r, room);
        if (factors) x->factors[r] = dt__room_take(room, factors, 1);
        if (!touched && !factors) room->filled = room->used;
    }
    for (int p = 0; p < x->parts && touched && x->groups > 1; p++)
        dt__rows_map_part(x, p, room);
    for (int g = 0; g < x->spec.givers && x->spec.wire; g++) {
        struct dt__giver *giver = &x->giver[g];
        const bool rounds = giver->group == x->group_index;
        if (bank_group || rounds) giver->error = dt__room_take(room, params, sizeof(float));
        if (x->groups > 1 && rounds)
            giver->given = dt__room_take(room, x->given, 1);
    }
}

static void dissolve_groups(struct dt_reducer *x)
{
    dt__shared_free(&x->shared);
    if (x->group != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->group));
    if (x->leaders.comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->leaders.comm));
    dt_free(x->slot);
    dt_free(x->part);
    dt_free(x->giver);
    dt_free(x->group_of_replica);
    x->slot = NULL;
    x->part = NULL;
    x->giver = NULL;
    x->group_of_replica = NULL;
}

/* Groups, tables and memory for what x->grouped says. Fails on all ranks or on none. */
static dt_status form_groups(struct dt_reducer *x)
{
    struct dt__room room = {0};
    split_groups(x);
    dt_status status = map_replicas(x);
    if (!status) {
        cut_segments(x);
        deal_memory(x, &room);
        status = dt__shared_create(x->group, room.used, "node exchange", &x->all, &x->shared);
    }
    if (status) {
        dissolve_groups(x);
        return status;
    }
    room = (struct dt__room){.memory = x->shared.memory};
    deal_memory(x, &room);
    if (x->group_rank != 0) return DT_OK;
    dt__shared_fill(&x->shared, x->shared.memory, room.filled);
    memset(x->control, 0,
           sizeof *x->control + (size_t)x->spec.buckets * sizeof x->control->bucket[0]);
    return DT_OK;
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
    if (spec->wire && spec->kind == DT_REDUCER_REDUCE)
        return dt_fail(DT_EUSAGE, "reducer: train.wire does not go with train.exchange=reduce");
    if (spec->wire && (spec->givers < 1 || spec->givers > spec->replicas))
        return dt_fail(DT_EUSAGE, "reducer: %d groups of %d replicas", spec->givers,
                       spec->replicas);
    return DT_OK;
}

/* What this rank does by itself. */
static dt_status allocate(struct dt_reducer *x)
{
    const size_t buckets = (size_t)x->spec.buckets, matrices = (size_t)x->spec.matrices;
    size_t segments = buckets + 2 * (matrices + (size_t)x->spec.row_ranges), levels = 1;
    DT_TRY(dt_alloc(buckets + 1, sizeof *x->bucket, "bucket table", &x->bucket));
    for (size_t b = 0, begin = 0; b < buckets; begin = x->bucket[b++].at.end)
        x->bucket[b].at = (struct dt__floats){begin, x->spec.bucket_end[b]};
    DT_TRY(dt_alloc(segments, sizeof *x->segment, "bucket table", &x->segment));
    DT_TRY(dt_alloc(DT__TREE_DEPTH, sizeof *x->block, "sum scratch", &x->block));
    DT_TRY(dt_alloc(DT__TREE_BLOCK, sizeof *x->fresh, "update scratch", &x->fresh));
    DT_TRY(dt__rows_create(x));
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

/* Where memory that a host shares is wanting, each rank is a group of its own. */
static dt_status choose_groups(struct dt_reducer *x)
{
    const bool any = x->spec.kind == DT_REDUCER_AUTO, tree = x->spec.reproducible || x->spec.wire;
    const int *rank_of = x->world->rank_of, *host_of = x->world->host_of,
              first = x->spec.first_worker;
    int rank, hosts = x->spec.team ? 1 : x->world->hosts;
    for (int w = first + 1; w < first + x->spec.team; w++)
        hosts += host_of[rank_of[w]] != host_of[rank_of[w - 1]];
    x->exchange = x->spec.kind;
    if (any || (x->exchange == DT_REDUCER_NODE && tree))
        x->exchange = hosts > 1 ? DT_REDUCER_ORDERED : DT_REDUCER_NODE;
    x->grouped = x->exchange != DT_REDUCER_REDUCE;
    dt_status status = form_groups(x);
    /* factors and copies save time, but need room beside whole gradients' */
    if (status && tiled_matrices(x)) {
        x->spec.matrices = 0;
        status = form_groups(x);
    }
    if (!status || !any) return status;
    DT_MPI(MPI_Comm_rank(x->all.comm, &rank));
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
    struct dt_ranks all = choose_ranks(world, spec);
    dt_status status = check_spec(spec);
    if (!status) status = dt_alloc(1, sizeof *x, "reducer", &x);
    if (x)
        *x = (struct dt_reducer){.world = world,
                                 .all = all,
                                 .spec = *spec,
                                 .group = MPI_COMM_NULL,
                                 .leaders = {.world = world, .comm = MPI_COMM_NULL}};
    DT_GUARD(dt_ranks_agree(&all, status));
    if (!spec->norm_params || spec->norm_params > spec->params) x->spec.norm_params = spec->params;
    x->norm_blocks = (x->spec.norm_params + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK;
    x->grain = spec->wire ? DT__WIRE_BLOCK : 16;
    if (!spec->wire) x->spec.givers = 1;
    if (!spec->wire_params) x->spec.wire_params = spec->params;
    DT_GUARD(dt_ranks_agree(&all, allocate(x)));
    DT_GUARD(choose_groups(x));
    x->strategy = x->groups == 1                      ? &dt__reducer_shared
              : x->exchange == DT_REDUCER_ORDERED ? &dt__reducer_owners
                                                  : &dt__reducer_stream;
    x->one_sum = x->exchange != DT_REDUCER_ORDERED;
    if (x->strategy->prepare) DT_GUARD(dt_ranks_agree(&all, x->strategy->prepare(x)));
    if (x->strategy->connect && x->group_rank == 0) x->strategy->connect(x);
    dt_ranks_barrier(&all);
    *out = x;
done:
    if (!x && spec->team) DT_MPI(MPI_Comm_free(&all.comm));
    if (status) dt_reducer_destroy(x);
    return status;
}

void dt_reducer_destroy(struct dt_reducer *x)
{
    if (!x) return;
    if (x->strategy && x->strategy->destroy) x->strategy->destroy(x);
    if (x->world) dissolve_groups(x);
    dt__rows_destroy(x);
    if (x->spec.team) DT_MPI(MPI_Comm_free(&x->all.comm));
    dt_free(x->factored);
    dt_free(x->factors);
    dt_free(x->tiles);
    dt_free(x->bucket);
    dt_free(x->segment);
    dt_free(x->block);
    dt_free(x->fresh);
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
void *dt_reducer_copies(struct dt_reducer *x)
{
    return x->copies;
}

float *dt_reducer_error(struct dt_reducer *x, int giver)
{
    return x->spec.wire ? x->giver[giver].error : NULL;
}
const float *dt_reducer_weights(const struct dt_reducer *x)
{
    return x->vectors[0];
}

struct dt_slot dt_reducer_slot(const struct dt_reducer *x, int replica)
{
    return (struct dt_slot){.grad = x->slot[replica],
                            .touched =
                                dt__rows_are_touched(x) ? dt__rows_touched(x, replica) : NULL,
                            .factors = x->factors ? x->factors[replica] : NULL};
}

void dt__leaders_bcast(struct dt_reducer *x, float *floats, size_t n)
{
    const size_t most = DT__MPI_CHUNK / sizeof(float);
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < most ? n - at : most;
        /* All are the same: of a new run's state, gigabytes that need not travel. */
        const unsigned char *bytes = (const unsigned char *)(floats + at);
        float same = x->group_index == 0 &&
                     memcmp(bytes, bytes + sizeof *floats, (some - 1) * sizeof *floats) == 0;
        dt_ranks_bcast(&x->leaders, &same, sizeof same, 0);
        dt_ranks_bcast(&x->leaders, floats + at, (same > 0 ? 1 : some) * sizeof *floats, 0);
        for (size_t i = 1; x->group_index > 0 && i < some && same > 0; i++)
            floats[at + i] = floats[at];
    }
}

/* The bank's weights to the other groups' leaders. */
void dt_reducer_start(struct dt_reducer *x)
{
    if (x->group_rank == 0) {
        x->leaders.what = "weights";
        dt__leaders_bcast(x, x->vectors[0], x->spec.params);
        x->leaders.what = "optimizer state";
        if (x->strategy->move_state) x->strategy->move_state(x, false);
    }
    dt_ranks_barrier(&x->all);
}

bool dt_reducer_is_spread(const struct dt_reducer *x)
{
    return x->strategy->move_state != NULL;
}

void dt_reducer_gather(struct dt_reducer *x)
{
    if (x->strategy->move_state && x->group_rank == 0) x->strategy->move_state(x, true);
}

/* ---- a step --------------------------------------------------------------------------------- */

void dt_reducer_begin(struct dt_reducer *x, uint64_t step)
{
    x->group_done = ++x->tick * (uint32_t)x->group_workers;
    x->buckets_summed = 0;
    x->agreed = false;
    x->bank_ask = DT_ASK_NONE;
    x->info = (struct dt_update_info){.step = step};
    dt_world_heartbeat(x->world, "gradient", step);
    if (x->strategy->begin && x->group_rank == 0) x->strategy->begin(x);
}

void dt_reducer_need(struct dt_reducer *x, int bucket)
{
    struct dt__event_count *updated = &x->control->bucket[bucket].updated;
    const uint32_t pieces = x->bucket[bucket].pieces_done;
    if (dt__event_reached(updated, pieces)) return;
    double since = dt_clock_secs();
    dt__event_wait(updated, pieces, x->world, "weights");
    x->times.wait += dt_clock_secs() - since;
}

void dt_reducer_ready(struct dt_reducer *x, int bucket)
{
    if (x->groups == 1) return;
    dt__event_post(&x->control->bucket[bucket].ready, 1);
    dt_reducer_advance(x);
}

/* Leader: what can be done now; true if there was something. */
static bool lead(struct dt_reducer *x)
{
    bool moved = false;
    for (int i = 0; i < DT__ADVANCES && x->strategy->advance[i]; i++)
        moved |= x->strategy->advance[i](x);
    return moved;
}

void dt_reducer_advance(struct dt_reducer *x)
{
    if (x->groups == 1) return;
    while (dt__group_sum(x))
        continue;
    if (x->group_rank == 0) lead(x);
}

/* Leader: carries the step through to its end. Returns what all ranks ask for. */
static int lead_step(struct dt_reducer *x, int bank_ask)
{
    double start = dt_clock_secs();
    struct dt__wait wait = {.world = x->world, .what = "the other hosts"};
    x->bank_ask = bank_ask;
    while (!x->agreed || !x->strategy->done(x)) {
        bool moved = dt__group_sum(x);
        moved |= lead(x);
        if (moved)
            dt__wait_progress(&wait);
        else
            dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
    x->times.network += dt_clock_secs() - start;
    return x->control->agreed_ask[x->tick & 1];
}

/* The step's updates are made, but for touched rows of several groups: when those of all have come,
 * this rank's. */
static void complete_step(struct dt_reducer *x, bool updates_rows)
{
    const bool rows = updates_rows && x->groups > 1 && dt__rows_are_touched(x);
    const double start = dt_clock_secs();
    if (rows)
        dt__event_wait(&x->control->exchanged, x->tick, x->world, "the other hosts' gradients");
    const double met = dt_clock_secs();
    if (rows) x->info.norm2 = x->control->norm2;
    for (int b = 0; b < x->spec.buckets; b++) {
        const struct dt__bucket *bucket = &x->bucket[b];
        x->bucket[b].pieces_done += bucket->pieces;
        if (!rows || !bucket->has_rows) continue;
        for (int s = bucket->segment; s < bucket[1].segment; s++)
            if (x->segment[s].kind == DT__ROWS) dt__rows_update(x, x->segment[s].index);
        dt__event_post(&x->control->bucket[b].updated, 1);
    }
    if (!rows) return;
    x->times.network += met - start;
    x->times.update += dt_clock_secs() - met;
}

int dt_reducer_end(struct dt_reducer *x, int ask)
{
    const double start = dt_clock_secs();
    int asked;
    if (x->strategy->end) {
        asked = x->strategy->end(x, ask);
    } else if (x->group_rank == 0) {
        dt__group_arrive(x, ask);
        asked = lead_step(x, DT_ASK_NONE);
    } else {
        dt__group_arrive(x, ask);
        for (int b = x->spec.buckets - 1 - x->buckets_summed; b >= 0; b--) {
            dt__event_wait(&x->control->bucket[b].ready, x->group_done, x->world,
                           "the other workers' gradients");
            dt__group_sum(x);
        }
        dt__event_wait(&x->control->agreed, x->tick, x->world, "the other hosts' gradients");
        x->times.network += dt_clock_secs() - start;
        asked = x->control->agreed_ask[x->tick & 1];
    }
    if (!(asked & DT_ASK_VOID)) complete_step(x, true);
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
        complete_step(x, !x->group_workers); /* else its workers update rows by themselves */
        from++;
    }
    for (int b = 0; b < x->spec.buckets; b++)
        dt__event_wait(&x->control->bucket[b].updated, x->bucket[b].pieces_done, x->world,
                       "weights");
    *out_step = from;
    return asked;
}

void dt_reducer_take_times(struct dt_reducer *x, struct dt_reducer_times *out)
{
    out->wait += x->times.wait;
    out->reduce += x->times.reduce;
    out->update += x->times.update;
    out->network += x->times.network;
    x->times = (struct dt_reducer_times){0};
}

double dt_reducer_waited(const struct dt_reducer *x)
{
    return x->times.wait + x->times.network;
}
