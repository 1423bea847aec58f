/* Sums of two vectors, and squares of a sum for the norm, block by block. */
#include <string.h>

#include "base/clones.h"
#include "base/internal.h"
#include "comm/exchange.h"

DT__CLONES
static void floats_add(size_t n, const float *left, const float *right, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = left[i] + right[i];
}

void dt__floats_add(size_t n, const float *left, const float *right, float *out)
{
    floats_add(n, left, right, out);
}

void dt__norm_close(struct dt__norm *norm)
{
    if (norm->open && !norm->shared) norm->norms[norm->block] = dt__lanes_sum(norm->lane);
    memset(norm->lane, 0, sizeof norm->lane);
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
            dt__norm_close(norm);
            norm->open = true;
            norm->block = at / DT__TREE_BLOCK;
            norm->shared = dt__edge_squares(norm, norm->block);
        }
        if (!norm->shared) dt__squares_add(norm->lane, sum + (at - offset), at, end - at);
        for (size_t i = at; norm->shared && i < end; i++)
            norm->shared[i % DT__TREE_BLOCK] = (double)sum[i - offset] * (double)sum[i - offset];
    }
}
