/* A step on several hosts, as an agent does it: each kind of range sends its sums to the owners,
 * which update them, and the new weights to all nodes (whole.c, rows_exchange.c).
 *
 * Work on a bucket starts when all workers of the node have written its gradients and no longer
 * read its weights; meanwhile they compute the gradients of earlier layers.
 *
 * The owner updates without waiting for the agreement on what ranks ask for: if the step turns out
 * to have failed, the run ends, and its weights are never saved. */
#include "comm/exchange.h"

static dt_status owners_prepare(struct dt_exchange *x, struct dt__layout *layout)
{
    DT_TRY(dt__layout_chunks(x, layout));
    if (x->topo->agent < 0) return DT_OK;
    DT_TRY(dt__arena_alloc(&x->arena, layout->byte_count, 1, "sums and updates", &x->bytes));
    for (int v = 1; v < x->spec.vectors && x->topo->node > 0; v++)
        DT_TRY(DT__ARENA_ALLOC(&x->arena, "optimizer state", DT__TABLE(x->state[v], layout->own)));
    for (int g = 0; g < x->errors && x->topo->node > 0; g++) {
        const int node = x->topo->group[g].node;
        if (node >= 0 && node != x->topo->node) continue;
        const size_t floats = node < 0 ? layout->own : layout->acted;
        DT_TRY(DT__ARENA_ALLOC(&x->arena, "rounding errors", DT__TABLE(x->error[g], floats)));
    }
    for (int k = 0; x->kind[k]; k++)
        DT_TRY(x->kind[k]->create(x));
    return DT_OK;
}

static void owners_begin(struct dt_exchange *x)
{
    dt__norm_begin(x);
    for (int k = 0; x->kind[k]; k++)
        x->kind[k]->begin(x);
}

static bool owners_advance(struct dt_exchange *x)
{
    bool moved = false;
    for (int k = 0; x->kind[k]; k++)
        moved |= x->kind[k]->advance(x);
    return dt__norm_advance(x) || moved;
}

static bool owners_done(const struct dt_exchange *x)
{
    bool done = !x->norm.phases;
    for (int k = 0; x->kind[k]; k++)
        done &= x->kind[k]->done(x);
    return done;
}

static const struct dt__kind *const KINDS[] = {&dt__whole_kind, &dt__distributed_kind, NULL};
const struct dt__backend dt__owners_backend = {
    .kinds = KINDS,
    .prepare = owners_prepare,
    .begin = owners_begin,
    .advance = owners_advance,
    .done = owners_done,
    .end = dt__step_end,
};
