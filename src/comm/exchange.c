/* Layout of groups and shared memory, and the steps' common part. */
#include "comm/exchange.h"

#include <string.h>
#include <sys/statvfs.h>

/* ---- helpers -------------------------------------------------------------------------------- */

void dt__slice(size_t from, size_t to, int index, int count, size_t grain, size_t *begin,
               size_t *end)
{
    size_t units = (to - from + grain - 1) / grain;
    size_t first = units * (size_t)index / (size_t)count;
    size_t last = units * ((size_t)index + 1) / (size_t)count;
    *begin = from + first * grain;
    *end = from + last * grain < to ? from + last * grain : to;
    if (*begin > *end) *begin = *end;
}

size_t dt__bucket_begin(const struct dt_exchange *x, int bucket)
{
    return bucket ? x->bucket_end[bucket - 1] : 0;
}

/* The bank is the crew's rank 0 and so the leader of group 0. */
bool dt__exchange_is_bank_group(const struct dt_exchange *x)
{
    return x->group_index == 0;
}

/* ---- groups --------------------------------------------------------------------------------- */

static void split_groups(struct dt_exchange *x)
{
    struct dt_world *world = x->world;
    if (x->grouped)
        DT_MPI(MPI_Comm_split_type(world->crew, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL,
                                   &x->group));
    else
        DT_MPI(MPI_Comm_split(world->crew, world->rank, 0, &x->group));
    DT_MPI(MPI_Comm_rank(x->group, &x->group_rank));
    DT_MPI(MPI_Comm_size(x->group, &x->group_size));
    DT_MPI(
        MPI_Comm_split(world->crew, x->group_rank ? MPI_UNDEFINED : 0, world->rank, &x->leaders));
    int place[2] = {0, 0}; /* groups, index */
    if (x->leaders != MPI_COMM_NULL) {
        DT_MPI(MPI_Comm_size(x->leaders, &place[0]));
        DT_MPI(MPI_Comm_rank(x->leaders, &place[1]));
    }
    DT_MPI(MPI_Bcast(place, 2, MPI_INT, 0, x->group));
    x->groups = place[0];
    x->group_index = place[1];
    bool has_bank = x->group_index == 0 && world->size > 1;
    x->group_workers = x->group_size - (has_bank ? 1 : 0);
    x->worker = x->group_rank - (has_bank ? 1 : 0);
}

static dt_status map_replicas(struct dt_exchange *x)
{
    struct dt_world *world = x->world;
    DT_TRY(dt_alloc((size_t)x->spec.replicas, sizeof(int), "replica table", &x->group_of_replica));
    DT_TRY(dt_alloc((size_t)x->spec.replicas, sizeof(float *), "gradient slots", &x->slot));
    int crew, *group_of;
    DT_MPI(MPI_Comm_size(world->crew, &crew));
    DT_TRY(dt_alloc((size_t)crew, sizeof(int), "group table", &group_of));
    DT_MPI(MPI_Allgather(&x->group_index, 1, MPI_INT, group_of, 1, MPI_INT, world->crew));
    for (int w = 0; w < world->workers; w++) {
        int first, count;
        dt_world_replicas(world, w, x->spec.replicas, &first, &count);
        for (int r = first; r < first + count; r++)
            x->group_of_replica[r] = group_of[dt_world_worker_rank(world, w)];
    }
    dt_free(group_of);
    return DT_OK;
}

/* ---- shared memory -------------------------------------------------------------------------- */

struct layout {
    size_t control, vector, norms, total; /* bytes; `vector` of one vector or slot */
    int vectors, slots;
};

static dt_status lay_out(struct dt_exchange *x, struct layout *layout)
{
    bool bank_group = dt__exchange_is_bank_group(x);
    layout->vectors = bank_group ? x->spec.vectors : 1;
    layout->slots = 0;
    for (int r = 0; r < x->spec.replicas; r++)
        layout->slots += x->group_of_replica[r] == x->group_index;
    layout->control = sizeof *x->control + (size_t)x->spec.buckets * sizeof x->control->bucket[0];
    x->norm_blocks = (x->spec.params + DT__NORM_BLOCK - 1) / DT__NORM_BLOCK;
    layout->norms = bank_group && x->spec.norm ? (x->norm_blocks * sizeof(double) + 63) & ~63UL : 0;
    size_t vectors;
    if (!dt_size_mul(x->spec.params, sizeof(float), &layout->vector) ||
        !dt_size_add(layout->vector, 63, &layout->vector) ||
        !dt_size_mul(layout->vector &= ~63UL, (size_t)(layout->vectors + layout->slots),
                     &vectors) ||
        !dt_size_add(vectors, layout->control + layout->norms + 64, &layout->total))
        return dt_fail(DT_EMEMORY, "%zu parameters and %d replicas: too large", x->spec.params,
                       x->spec.replicas);
    return DT_OK;
}

/* Asks before the allocation, for a shortage that shows later is a SIGBUS. */
static dt_status check_shared_space(const struct dt_exchange *x, const struct layout *layout)
{
    struct statvfs fs;
    if (x->group_size == 1 || statvfs("/dev/shm", &fs) != 0) return DT_OK;
    double have = (double)fs.f_bavail * (double)fs.f_frsize;
    if (have > 1.02 * (double)layout->total) return DT_OK;
    return dt_fail(DT_EMEMORY, "/dev/shm has %.0f MB free, the node exchange needs %.0f MB",
                   have / 1e6, (double)layout->total / 1e6);
}

/* The group's communicator returns errors: a setting may leave MPI without such memory. */
static dt_status share_memory(struct dt_exchange *x, size_t bytes, void **out)
{
    MPI_Aint size = x->group_rank ? 0 : (MPI_Aint)bytes;
    int unit, code = MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, x->group, out, &x->window);
    if (code == MPI_SUCCESS) {
        DT_MPI(MPI_Win_shared_query(x->window, 0, &size, &unit, out));
        return DT_OK;
    }
    char text[MPI_MAX_ERROR_STRING];
    x->window = MPI_WIN_NULL;
    return dt_fail(DT_ECOMM,
                   "MPI gives no memory that the ranks of a host share (%s): let Open MPI choose "
                   "its osc component: OMPI_MCA_osc=^ucx",
                   dt__mpi_text(code, text));
}

static dt_status map_memory(struct dt_exchange *x, const struct layout *layout)
{
    void *base;
    if (x->group_size == 1) {
        DT_TRY(dt_alloc(layout->total, 1, "weights and gradients", &x->memory));
        base = x->memory;
    } else {
        DT_TRY(share_memory(x, layout->total, &base));
    }
    char *at = (char *)(((uintptr_t)base + 63) & ~(uintptr_t)63);
    x->control = (struct dt__control *)at;
    if (x->group_rank == 0) memset(at, 0, layout->control);
    at += layout->control;
    if (layout->norms) x->norms = (double *)at;
    at += layout->norms;
    for (int v = 0; v < layout->vectors; v++, at += layout->vector)
        x->vectors[v] = (float *)at;
    for (int r = 0; r < x->spec.replicas; r++)
        if (x->group_of_replica[r] == x->group_index) {
            x->slot[r] = (float *)at;
            at += layout->vector;
        }
    return DT_OK;
}

static void unmap_memory(struct dt_exchange *x)
{
    if (x->window != MPI_WIN_NULL) DT_MPI(MPI_Win_free(&x->window));
    if (x->group != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->group));
    if (x->leaders != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&x->leaders));
    dt_free(x->memory);
    dt_free(x->slot);
    dt_free(x->group_of_replica);
    x->memory = NULL;
    x->slot = NULL;
    x->group_of_replica = NULL;
}

/* Groups, tables and memory for what x->grouped says. Fails on all ranks or on none. */
static dt_status form_groups(struct dt_exchange *x)
{
    split_groups(x);
    struct layout layout = {0};
    dt_status status = map_replicas(x);
    if (!status) status = lay_out(x, &layout);
    if (!status) status = check_shared_space(x, &layout);
    status = dt_world_agree_crew(x->world, status);
    if (!status) status = dt_world_agree_crew(x->world, map_memory(x, &layout));
    if (status) unmap_memory(x);
    return status;
}

/* ---- create --------------------------------------------------------------------------------- */

static dt_status choose_kind(struct dt_exchange *x)
{
    int kind = x->spec.kind;
    bool several_hosts = x->world->hosts > 1;
    if (x->spec.reproducible && kind == DT_REDUCE)
        return dt_fail(DT_EUSAGE, "run.reproducible=yes does not go with train.exchange=reduce: "
                                  "expected auto, node or ordered");
    if (kind == DT_EXCHANGE_AUTO) kind = DT_NODE;
    if (kind == DT_NODE && x->spec.reproducible && several_hosts) kind = DT_ORDERED;
    x->kind = kind;
    x->grouped = kind != DT_REDUCE;
    x->tree = kind == DT_ORDERED;
    return DT_OK;
}

static dt_status form_groups_or_fall_back(struct dt_exchange *x)
{
    dt_status status = form_groups(x);
    if (!status || x->spec.kind != DT_EXCHANGE_AUTO || !x->grouped) return status;
    if (dt_world_is_bank(x->world))
        dt_warn("%s; taking train.exchange=%s", dt_error_text(),
                x->spec.reproducible ? "ordered without shared memory" : "reduce");
    x->grouped = false;
    x->tree = x->spec.reproducible;
    x->kind = x->tree ? DT_ORDERED : DT_REDUCE;
    return form_groups(x);
}

static dt_status count_pieces(struct dt_exchange *x)
{
    size_t buckets = (size_t)x->spec.buckets;
    DT_TRY(dt_alloc(buckets, sizeof(uint32_t), "bucket table", &x->pieces));
    DT_TRY(dt_alloc(buckets, sizeof(uint32_t), "bucket table", &x->pieces_done));
    for (int b = 0; b < x->spec.buckets; b++)
        x->pieces[b] = (uint32_t)x->group_workers;
    return x->groups > 1 ? dt__stream_create(x) : DT_OK;
}

dt_status dt_exchange_create(struct dt_world *world, const struct dt_exchange_spec *spec,
                             struct dt_exchange **out)
{
    struct dt_exchange *x;
    DT_TRY(dt_alloc(1, sizeof *x, "exchange", &x));
    x->world = world;
    x->spec = *spec;
    x->window = MPI_WIN_NULL;
    x->group = x->leaders = MPI_COMM_NULL;
    dt_status status;
    DT_GUARD(choose_kind(x));
    DT_GUARD(dt_alloc((size_t)spec->buckets, sizeof(size_t), "bucket table", &x->bucket_end));
    memcpy(x->bucket_end, spec->bucket_end, (size_t)spec->buckets * sizeof(size_t));
    DT_GUARD(dt_alloc(1, sizeof *x->scratch, "sum scratch", &x->scratch));
    DT_GUARD(dt_alloc(DT__TREE_BLOCK, sizeof *x->fresh, "update scratch", &x->fresh));
    DT_GUARD(form_groups_or_fall_back(x));
    DT_GUARD(dt_world_agree_crew(world, count_pieces(x)));
    DT_GUARD(dt_world_crew_barrier(world));
    *out = x;
done:
    if (status) dt_exchange_destroy(x);
    return status;
}

void dt_exchange_destroy(struct dt_exchange *x)
{
    if (!x) return;
    dt__stream_destroy(x);
    unmap_memory(x);
    dt_free(x->bucket_end);
    dt_free(x->scratch);
    dt_free(x->fresh);
    dt_free(x->pieces);
    dt_free(x->pieces_done);
    dt_free(x);
}

int dt_exchange_kind(const struct dt_exchange *x)
{
    return x->kind;
}
float *const *dt_exchange_vectors(struct dt_exchange *x)
{
    return x->vectors;
}
const float *dt_exchange_weights(const struct dt_exchange *x)
{
    return x->vectors[0];
}
float *dt_exchange_grad(struct dt_exchange *x, int replica)
{
    return x->slot[replica];
}

dt_status dt_exchange_start(struct dt_exchange *x)
{
    if (x->leaders != MPI_COMM_NULL) {
        size_t left = x->spec.params, at = 0;
        for (; left; at += DT__CHUNK, left = x->spec.params > at ? x->spec.params - at : 0) {
            MPI_Request request;
            DT_MPI(MPI_Ibcast(x->vectors[0] + at, (int)(left < DT__CHUNK ? left : DT__CHUNK),
                              MPI_FLOAT, 0, x->leaders, &request));
            dt__request_finish(x->world, &request, "weights");
        }
    }
    return dt_world_crew_barrier(x->world);
}

/* ---- a step --------------------------------------------------------------------------------- */

void dt_exchange_begin(struct dt_exchange *x, uint64_t step)
{
    x->tick++;
    x->info = (struct dt_update_info){.step = step};
    dt_world_beat(x->world, "gradient", step);
}

void dt_exchange_need(struct dt_exchange *x, int bucket)
{
    struct dt__gate *gate = &x->control->bucket[bucket].updated;
    if (dt__gate_reached(gate, x->pieces_done[bucket])) return;
    double since = dt_clock_secs();
    dt__gate_wait(gate, x->pieces_done[bucket], x->world, "weights");
    x->times.wait += dt_clock_secs() - since;
}

void dt_exchange_ready(struct dt_exchange *x, int bucket)
{
    if (x->stream) dt__stream_ready(x, bucket);
}

int dt_exchange_end(struct dt_exchange *x, int ask)
{
    int verdict = x->stream ? dt__stream_end(x, ask) : dt__share_end(x, ask);
    if (!(verdict & DT_ASK_ERROR))
        for (int b = 0; b < x->spec.buckets; b++)
            x->pieces_done[b] += x->pieces[b];
    return verdict;
}

void dt_exchange_settle(struct dt_exchange *x)
{
    for (int b = 0; b < x->spec.buckets; b++)
        dt_exchange_need(x, b);
    dt__gate_post(&x->control->rested, 1);
}

int dt_exchange_serve(struct dt_exchange *x, uint64_t from, uint64_t until, dt_ask_fn *ask,
                      void *arg, uint64_t *out_step)
{
    x->legs++;
    return x->stream ? dt__stream_serve(x, from, until, ask, arg, out_step)
                     : dt__share_serve(x, from, ask, arg, out_step);
}

void dt_exchange_take_times(struct dt_exchange *x, struct dt_exchange_times *out)
{
    *out = x->times;
    x->times = (struct dt_exchange_times){0};
}
