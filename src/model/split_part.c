/* A part of a split layer: the products of some of a dense layer's columns with the rows of a whole
 * batch, tile by tile.
 *
 * The weights of a block of inputs are contiguous, and so are the rows of a block. Each tile is
 * thus a product of three contiguous matrices. The largest of them, 512 x 256 for 16 parts of 4096
 * columns, stays in a core's cache until it is used. */
#include <string.h>

#include "model/activation.h"
#include "model/bf16_products.h"
#include "model/blas.h"

struct dt_split_part {
    size_t nin, columns, blocks;
    int max_rows;
    float *scratch; /* (max_rows, columns + inputs of a block) */
    /* (blocks) products in bf16; NULL: products are in f32 */
    struct dt__bf16 **bf16;
};

static size_t block_begin(const struct dt_split_part *part, size_t block)
{
    return dt__split_cut(part->nin, block, part->blocks);
}

static int block_depth(const struct dt_split_part *part, size_t block)
{
    return (int)(block_begin(part, block + 1) - block_begin(part, block));
}

/* Creates the bf16 products of each block. Parts of a layer share a block's rounded inputs with the
 * part `first`, and blocks of equal depth share the rounded gradient by the part's outputs. */
static dt_status create_products(struct dt_split_part *part, const struct dt_split_part *first,
                                 bool inputs)
{
    DT_TRY(dt__alloc(part->blocks, sizeof *part->bf16, "split layer", &part->bf16));
    for (size_t b = 0; b < part->blocks; b++) {
        const int depth = block_depth(part, b);
        DT_TRY(dt__bf16_create(depth, (int)part->columns, part->max_rows, !inputs, &part->bf16[b]));
        dt__bf16_share(part->bf16[b], first ? first->bf16[b] : NULL,
                       depth == block_depth(part, 0) ? part->bf16[0] : NULL);
    }
    return DT_OK;
}

dt_status dt__split_part_create(const struct dt_split_layer *layer, size_t columns, int max_rows,
                                int precision, const struct dt_split_part *first,
                                struct dt_split_part **out)
{
    struct dt_split_part *part;
    dt_status status;
    DT_TRY(dt__blas_need());
    DT_TRY(dt__gemm_transposed_need(DT_SPLIT_DEPTH, (int)columns));
    DT_TRY(dt__alloc(1, sizeof *part, "split layer", &part));
    part->nin = layer->nin;
    part->columns = columns;
    part->blocks = dt__split_blocks(layer->nin);
    part->max_rows = max_rows;
    DT_GUARD(dt__alloc((size_t)max_rows * (columns + DT_SPLIT_DEPTH), sizeof(float), "split layer",
                       &part->scratch));
    if (precision == DT_PRECISION_BF16) DT_GUARD(create_products(part, first, layer->inputs));
    *out = part;
    return DT_OK;
done:
    dt__split_part_destroy(part);
    return status;
}

void dt__split_part_destroy(struct dt_split_part *part)
{
    if (!part) return;
    for (size_t b = 0; b < part->blocks && part->bf16; b++)
        dt__bf16_destroy(part->bf16[b]);
    dt_free(part->bf16);
    dt_free(part->scratch);
    dt_free(part);
}

dt_status dt__split_part_forward(struct dt_split_part *part, int rows, const float *x,
                                 const float *weight, const float *bias, float *y)
{
    const size_t columns = part->columns, floats = (size_t)rows * columns;
    for (size_t r = 0; r < (size_t)rows; r++)
        memcpy(y + r * columns, bias, columns * sizeof *y);
    for (size_t b = 0; b < part->blocks; b++) {
        const size_t begin = block_begin(part, b);
        const float *x_block = x + (size_t)part->max_rows * begin, *tile = weight + begin * columns;
        if (part->bf16) {
            DT_TRY(dt__bf16_forward(part->bf16[b], rows, x_block, tile, NULL, part->scratch));
            for (size_t i = 0; i < floats; i++)
                y[i] += part->scratch[i];
            continue;
        }
        const struct dt__product product = {
            .m = rows, .n = (int)columns, .k = block_depth(part, b), .add = true};
        DT_TRY(dt__gemm(product, x_block, tile, y));
    }
    return DT_OK;
}

dt_status dt__split_part_backward(struct dt_split_part *part, size_t block, int rows,
                                  const float *x, const float *weight, const float *delta,
                                  float *grad, float *dx)
{
    const int depth = block_depth(part, block), columns = (int)part->columns;
    if (part->bf16) return dt__bf16_backward(part->bf16[block], rows, delta, false, grad, NULL, dx);
    DT_TRY(dt__gemm((struct dt__product){.m = depth, .n = columns, .k = rows, .ta = true}, x, delta,
                    grad));
    if (!dx) return DT_OK;
    return dt__gemm_transposed((struct dt__sizes){rows, depth, columns}, delta, weight,
                               part->scratch, dx);
}

void dt__split_part_bias(const struct dt_split_part *part, int rows, const float *delta,
                         float *bias_grad)
{
    memset(bias_grad, 0, part->columns * sizeof *bias_grad);
    for (size_t r = 0; r < (size_t)rows; r++)
        for (size_t c = 0; c < part->columns; c++)
            bias_grad[c] += delta[r * part->columns + c];
}
