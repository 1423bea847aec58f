/* The norm, a stage between sums and updates: the squares of the summed gradient, block by block,
 * and a rule's measures of it, which all owners must know before the first update.
 *
 * A block of the norm is DT__TREE_BLOCK floats, summed in eight accumulators. The blocks are added
 * in their order, so the norm does not depend on which agents computed them. On several nodes the
 * agents of a node write their blocks to its memory, the nodes' first agents add the blocks of all
 * nodes, and each node's agents wait until its first agent has the result. Costs: a double a block;
 * one MPI_Iallreduce. */
#include <string.h>

#include "base/internal.h"
#include "comm/exchange.h"

/* ---- squares -------------------------------------------------------------------------------- */

static void block_close(struct dt__norm *norm)
{
    if (norm->open && !norm->shared) norm->norms[norm->block] = dt__partials_sum(norm->partial);
    memset(norm->partial, 0, sizeof norm->partial);
    norm->open = false;
}

double *dt__edge_squares(const struct dt__norm *norm, size_t block)
{
    if (!norm->edge) return NULL;
    const size_t i = dt__touched_below(norm->edge, (uint32_t)block);
    const bool is_edge = i < *norm->edge->count && norm->edge->row[i] == block;
    return is_edge ? norm->squares + i * DT__TREE_BLOCK : NULL;
}

void dt__norm_add(struct dt__norm *norm, const float *sum, size_t offset, size_t n)
{
    const struct dt__floats add = dt__clip((struct dt__floats){offset, offset + n}, norm->at);
    for (size_t at = add.begin, end; at < add.end; at = end) {
        end = at + dt__block_length(at, add.end);
        if (!norm->open || at / DT__TREE_BLOCK != norm->block) {
            block_close(norm);
            norm->open = true;
            norm->block = at / DT__TREE_BLOCK;
            norm->shared = dt__edge_squares(norm, norm->block);
        }
        if (!norm->shared) dt__squares_add(norm->partial, sum + (at - offset), at, end - at);
        for (size_t i = at; norm->shared && i < end; i++)
            norm->shared[i % DT__TREE_BLOCK] = (double)sum[i - offset] * (double)sum[i - offset];
    }
}

/* ---- doubles of a node ---------------------------------------------------------------------- */

static size_t blocks_of(const struct dt_exchange *x)
{
    return (x->spec.norm.params + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK;
}

/* Returns the index of the squares of shared blocks, which follow the blocks, the measures and the
 * caller's squares. */
static size_t edges_at(const struct dt_exchange *x)
{
    return blocks_of(x) + x->spec.norm.measures + x->spec.norm.squares;
}

void dt__norm_map(const struct dt_exchange *x, struct dt__node_memory *memory, struct dt__shm *shm)
{
    const struct dt_touched *edge = x->layout->edge;
    if (!x->spec.norm.needed) return;
    memory->norm_count = edges_at(x) + (edge ? *edge->count * DT__TREE_BLOCK : 0);
    memory->norms = dt__shm_take(shm, memory->norm_count, sizeof(double));
    memory->all_norms = dt__shm_take(shm, memory->norm_count, sizeof(double));
}

double *dt__exchange_measured(struct dt_exchange *x)
{
    return x->memory->norms ? x->memory->norms + blocks_of(x) : NULL;
}

void dt__norm_blocks(struct dt_exchange *x, const float *sum, struct dt__floats at)
{
    struct dt__norm norm = {.sum = sum,
                            .norms = x->memory->norms,
                            .squares = x->memory->norms + edges_at(x),
                            .edge = x->layout->edge};
    for (int s = 0; s < dt__ranges(x); s++) {
        const struct dt__range *range = &x->layout->range[s];
        norm.at = (struct dt__floats){0, x->spec.norm.params};
        range->kind->squares(x, range, at, &norm);
    }
    block_close(&norm);
}

void dt__norm_publish(struct dt_exchange *x, const double *norms)
{
    const double *squares = norms + edges_at(x);
    const struct dt_touched *edge = x->layout->edge;
    const size_t edges = edge ? *edge->count : 0;
    size_t e = 0;
    double total = 0;
    for (size_t b = 0; b < blocks_of(x); b++) {
        double partial[8] = {0};
        const bool is_edge = e < edges && edge->row[e] == b;
        for (size_t i = 0; is_edge && i < DT__TREE_BLOCK; i++)
            partial[i & 7] += squares[e * DT__TREE_BLOCK + i];
        e += is_edge;
        total += is_edge ? dt__partials_sum(partial) : norms[b];
    }
    for (size_t i = edges_at(x) - x->spec.norm.squares; i < edges_at(x); i++)
        total += norms[i];
    dt__step_publish(x, total, x->spec.norm.measure ? norms + blocks_of(x) : NULL);
}

void dt__floats_measure(struct dt_exchange *x, struct dt__floats floats, float *sum,
                        float *const *vectors)
{
    for (size_t at = floats.begin, n; x->spec.norm.measure && at < floats.end; at += n) {
        n = dt__block_length(at, floats.end);
        x->spec.norm.measure(x->spec.arg, &x->step->info, at, n, sum + at, vectors,
                             dt__exchange_measured(x));
    }
}

void dt__norm_sum(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    const double start = dt__clock_secs();
    float *vectors[DT_EXCHANGE_VECTORS];
    if (!x->memory->sums) return;
    dt__chunk_sum(x, chunk);
    dt__chunk_vectors(x, chunk, vectors);
    dt__floats_measure(x, chunk->at, x->memory->sums, vectors);
    x->spec.times->reduce += dt__clock_secs() - start;
}

/* ---- several nodes: the phases of a step ----------------------------------------------------- */

/* The phases of a step. Each function returns whether its phase is complete. */

/* Computes the blocks of this agent's slice, once all its sums are complete. */
static bool norm_make(struct dt_exchange *x)
{
    for (int k = 0; x->kind[k]; k++)
        if (!x->kind[k]->summed(x)) return false;
    dt__norm_blocks(x, x->memory->sums, dt__norm_slice(x));
    dt__event_post(&x->memory->control->normed, 1);
    return true;
}

/* Starts to add the blocks of all nodes, once this node's blocks are complete. Only for a first
 * agent. */
static bool norm_gather(struct dt_exchange *x)
{
    const uint32_t all = x->step->tick * (uint32_t)x->topo->agents;
    if (x->topo->agent) return true;
    if (!dt__event_reached(&x->memory->control->normed, all)) return false;
    DT_MPI(MPI_Iallreduce(x->memory->norms, x->memory->all_norms, (int)x->memory->norm_count,
                          MPI_DOUBLE, MPI_SUM, x->firsts.comm,
                          dt__request_add(&x->requests, &x->norm.left)));
    return true;
}

static bool norm_publish(struct dt_exchange *x)
{
    if (x->topo->agent == 0 && !x->norm.left) dt__event_post(&x->memory->control->norm_known, 1);
    return !x->norm.left;
}

static bool norm_take(struct dt_exchange *x)
{
    if (!dt__event_reached(&x->memory->control->norm_known, x->step->tick)) return false;
    dt__norm_publish(x, x->memory->all_norms);
    return true;
}

typedef bool norm_phase(struct dt_exchange *x);
static norm_phase *const PHASES[] = {norm_make, norm_gather, norm_publish, norm_take};
enum { ALL_PHASES = sizeof PHASES / sizeof *PHASES };

void dt__norm_begin(struct dt_exchange *x)
{
    x->norm.phases = x->memory->sums ? ALL_PHASES : 0;
}

bool dt__norm_advance(struct dt_exchange *x)
{
    const int before = x->norm.phases;
    while (x->norm.phases && PHASES[ALL_PHASES - x->norm.phases](x))
        x->norm.phases--;
    return x->norm.phases != before;
}
