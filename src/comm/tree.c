#include "comm/tree.h"

int dt__tree_split(int a, int b)
{
    int half = 1;
    while (2 * half < b - a)
        half *= 2;
    return a + half;
}

static const float *sum_node(const float *const *leaf, const int *whole, int a, int b,
                             size_t offset, size_t n, float (*block)[DT__TREE_BLOCK])
{
    if (b - a == 1 || (whole && whole[a] == b)) return leaf[a] + offset;
    int split = dt__tree_split(a, b);
    /* The left sum may rest in block[0] while the right one is made in the levels below. */
    const float *left = sum_node(leaf, whole, a, split, offset, n, block);
    const float *right = sum_node(leaf, whole, split, b, offset, n, block + 1);
    float *out = block[0];
    for (size_t i = 0; i < n; i++)
        out[i] = left[i] + right[i];
    return out;
}

const float *dt__tree_sum(const float *const *leaf, const int *whole, int a, int b, size_t offset,
                          size_t n, struct dt__tree_scratch *scratch)
{
    return sum_node(leaf, whole, a, b, offset, n, scratch->block);
}
