/* The fixed binary tree over replicas: the one order in which gradients are summed.
 *
 * Node [a, b) of two or more replicas splits at a plus the largest power of two below b - a, so the
 * tree is a function of R alone. */
#ifndef DT_COMM_TREE_H
#define DT_COMM_TREE_H

#include <stddef.h>

enum { DT__TREE_BLOCK = 2048, DT__TREE_DEPTH = 17 }; /* floats a block; log2 of most replicas + 1 */

/* Scratch of one thread: a block a level. */
struct dt__tree_scratch {
    _Alignas(64) float block[DT__TREE_DEPTH][DT__TREE_BLOCK];
};

/* Where node [a, b) splits; b - a >= 2. */
int dt__tree_split(int a, int b);

/* Sum over node [a, b) of floats [offset, offset + n), n <= DT__TREE_BLOCK.
 * leaf: (R) whole vectors; an inner node whose sum is known already stands at leaf[a] with
 * whole[a] = b (NULL: none is known). Returns where the n sums stand: scratch, or a leaf itself. */
const float *dt__tree_sum(const float *const *leaf, const int *whole, int a, int b, size_t offset,
                          size_t n, struct dt__tree_scratch *scratch);

#endif
