/* The exchange as each rank sees it, with all ranks in one process and no messages: topology,
 * layout and memory are real, and the test moves the bytes. Rank r is agent r % agents of node r /
 * agents. */
#ifndef DT_TEST_VIEWS_H
#define DT_TEST_VIEWS_H

#include "comm/exchange.h"
#include "suite.h"

enum { MAX_RANKS = 16, MAX_BUCKETS = 4 };

struct setup {
    int nodes, agents, replicas, groups; /* agents: per node */
    int wire;                            /* enum dt_wire */
    bool norm;
    size_t params, bucket_end[MAX_BUCKETS]; /* ends of the buckets; 0 after the last */
};

struct view {
    struct dt_exchange x;
    struct dt__topology topo;
    struct dt__layout layout;
    struct dt__node_memory memory;
    struct dt__step step;
    struct dt_exchange_times times;
};
static struct view view[MAX_RANKS];
static struct dt__arena *views_arena;

static void *views_take(size_t count, size_t size)
{
    void *out;
    EXPECT_OK(dt__arena_alloc(&views_arena, count, size, "test", &out));
    return out;
}

/* Maps the memory of a node: its first agent allocates it, the other agents share it. */
static void view_map(struct view *v, const struct setup *setup)
{
    const struct view *first = v - v->topo.agent;
    v->memory = first->memory;
    v->x.error = views_take((size_t)setup->groups, sizeof *v->x.error);
    for (int g = 0; g < v->x.errors && v->topo.node == 0; g++)
        v->x.error[g] = v == first ? views_take(setup->params, sizeof(float)) : first->x.error[g];
    if (v != first) return;
    v->memory.slot = views_take((size_t)setup->replicas, sizeof *v->memory.slot);
    for (int i = 0; i < (v->topo.node ? 1 : v->x.spec.vectors); i++)
        v->memory.vectors[i] = views_take(setup->params, sizeof(float));
    for (int r = 0; r < setup->replicas; r++)
        if (v->topo.node_of[r] == v->topo.node)
            v->memory.slot[r] = views_take(setup->params, sizeof(float));
}

static void view_make(struct view *v, const struct setup *setup, dt_update_fn *update)
{
    const int ranks = setup->nodes * setup->agents, rank = (int)(v - view);
    const struct dt__placement placement = {setup->replicas, setup->groups, ranks, 0, NULL};
    static const struct dt__kind *kinds[] = {&dt__whole_kind, NULL};
    struct dt_exchange *x = &v->x;
    *v = (struct view){.x = {.topo = &v->topo,
                             .layout = &v->layout,
                             .memory = &v->memory,
                             .step = &v->step,
                             .errors = setup->wire ? setup->groups : 0,
                             .backend = setup->nodes > 1 ? &dt__owners_backend : &dt__node_backend,
                             .kind = kinds}};
    x->spec = (struct dt_exchange_spec){.params = setup->params,
                                        .times = &v->times,
                                        .bucket_end = setup->bucket_end,
                                        .replicas = setup->replicas,
                                        .wire = {setup->wire, setup->groups, setup->params},
                                        .vectors = setup->wire ? 2 : 1,
                                        .norm = {.needed = setup->norm, .params = setup->params},
                                        .update = update};
    while (x->spec.buckets < MAX_BUCKETS && setup->bucket_end[x->spec.buckets])
        x->spec.buckets++;
    EXPECT_OK(dt__topology_allocate(&v->topo, &x->arena, ranks, setup->replicas, setup->groups));
    v->topo.nodes = setup->nodes;
    for (int r = 0; r < ranks; r++)
        v->topo.node_at[r] = r / setup->agents;
    dt__topology_agents(&v->topo, ranks, rank, false);
    dt__topology_replicas(&v->topo, &placement);
    view_map(v, setup);
    x->scratch.block = views_take(DT__TREE_DEPTH, sizeof *x->scratch.block);
    x->scratch.fresh = views_take(DT__TREE_BLOCK, sizeof(float));
    v->layout.bucket = views_take((size_t)x->spec.buckets + 1, sizeof *v->layout.bucket);
    v->layout.range = views_take((size_t)x->spec.buckets, sizeof *v->layout.range);
    v->layout.grain = setup->norm ? DT__TREE_BLOCK : setup->wire ? DT__WIRE_BLOCK : 16;
    v->layout.is_one_cut = setup->norm;
    for (int b = 0; b < x->spec.buckets; b++) {
        const size_t begin = b ? setup->bucket_end[b - 1] : 0;
        v->layout.bucket[b].at = (struct dt__floats){begin, setup->bucket_end[b]};
    }
    dt__layout_ranges(x, &v->layout);
    EXPECT_OK(x->backend->prepare(x, &v->layout));
}

/* Makes the views of all ranks; returns their number. */
static int views_make(const struct setup *setup, dt_update_fn *update)
{
    const int ranks = setup->nodes * setup->agents;
    for (int r = 0; r < ranks; r++)
        view_make(&view[r], setup, update);
    return ranks;
}

static void views_free(int ranks)
{
    for (int r = 0; r < ranks; r++)
        dt__arena_free(&view[r].x.arena);
    dt__arena_free(&views_arena);
}

/* Returns the chunk that begins at float `begin`, as this rank sees it. */
static const struct dt__chunk *view_chunk(const struct view *v, size_t begin)
{
    for (int c = 0; c < v->layout.chunks; c++)
        if (v->layout.chunk[c].at.begin == begin) return &v->layout.chunk[c];
    ck_abort_msg("no chunk begins at float %zu", begin);
}

#endif
