/* Weights in bf16, laid out for products. The updater of the weights writes them once per step, and
 * every worker reads them.
 *
 * As the matrix B (k, n) of a product A B, oneDNN reads blocks of 32 rows by 64 columns, in which
 * each value is next to the value below it: value (i, j) of a block has index (i / 2) 128 + 2 j + i
 * % 2. Blocks are ordered down, then across. With any other layout each product reorders the
 * weights: 128 rows through 4096-4096 then ran at 320 GFLOP/s rather than 440, and 64 rows through
 * 784-512 at 413 rather than 475 (measured, forward, Zen 5).
 *
 * A matrix has two copies: one for the forward product, and a transposed one for the gradient by
 * the inputs. */
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/bf16.h"
#include "base/clones.h"
#include "model/bf16_products.h"

enum { DEPTH = DT__PACK_DEPTH, WIDTH = DT__PACK_WIDTH, PAIRS = DEPTH / 2 };

struct block {
    uint16_t value[DEPTH][WIDTH];
};

static size_t blocks(size_t n, size_t size)
{
    return (n + size - 1) / size;
}

size_t dt__bf16_packed_bytes(size_t k, size_t n)
{
    return blocks(k, DEPTH) * blocks(n, WIDTH) * sizeof(struct block);
}

/* Writes whole cache lines. bypass: with stores that bypass the cache, because other cores read the
 * lines only in the next step. */
static inline void lines_write(const uint32_t *from, size_t words, bool bypass, uint32_t *to)
{
#ifdef __SSE2__
    enum { WORDS = sizeof(__m128i) / sizeof *from };
    for (size_t i = 0; bypass && i < words; i += WORDS)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_load_si128((const __m128i *)(const void *)(from + i)));
    if (bypass) return;
#endif
    memcpy(to, from, words * sizeof *from);
}

/* Orders the stores that bypassed the cache before all later stores. */
static inline void lines_end(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* Rounds a block of weights, which are `stride` floats from row to row; writes 0 where the block
 * extends beyond the matrix. */
DT__CLONES
static void block_round(const float *restrict weights, size_t stride, size_t rows, size_t columns,
                        struct block *restrict block)
{
    if (rows < DEPTH || columns < WIDTH) memset(block, 0, sizeof *block);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            block->value[r][c] = dt__bf16_of(weights[r * stride + c]);
}

/* Packs a block for the forward copy. */
DT__CLONES
static void block_write(const struct block *restrict block, bool bypass, uint32_t *restrict to)
{
    _Alignas(64) uint32_t line[WIDTH];
    for (size_t pair = 0; pair < PAIRS; pair++) {
        for (size_t c = 0; c < WIDTH; c++)
            line[c] = block->value[2 * pair][c] | (uint32_t)block->value[2 * pair + 1][c] << 16;
        lines_write(line, WIDTH, bypass, to + pair * WIDTH);
    }
}

/* Packs 32 columns of a block for the transposed copy: half the width of one of its blocks. */
DT__CLONES
static void block_write_transposed(const struct block *restrict block, size_t column, bool bypass,
                                   uint32_t *restrict to)
{
    _Alignas(64) uint32_t line[DEPTH];
    for (size_t pair = 0; pair < PAIRS; pair++) {
        for (size_t r = 0; r < DEPTH; r++)
            memcpy(&line[r], &block->value[r][column + 2 * pair], sizeof *line);
        lines_write(line, DEPTH, bypass, to + pair * WIDTH);
    }
}

static void pack(const struct dt_factored *matrix, struct dt_tile tile, const float *weights,
                 bool bypass, void *copies)
{
    const size_t rows = matrix->rows, columns = matrix->columns;
    const size_t down = blocks(rows, DEPTH), transposed_down = blocks(columns, DEPTH);
    struct block *const copy = (struct block *)(void *)((unsigned char *)copies + matrix->copy);
    struct block *const transposed = matrix->first ? NULL : copy + down * blocks(columns, WIDTH);
    for (size_t row = tile.row; row < tile.row + tile.rows; row += DEPTH) {
        for (size_t column = tile.column; column < tile.column + tile.columns; column += WIDTH) {
            const size_t below = rows - row, right = columns - column;
            struct block block;
            block_round(weights + matrix->offset + row * columns + column, columns,
                        below < DEPTH ? below : DEPTH, right < WIDTH ? right : WIDTH, &block);
            block_write(&block, bypass,
                        (uint32_t *)(void *)&copy[column / WIDTH * down + row / DEPTH]);
            for (size_t c = 0; c < WIDTH && c < right && transposed; c += DEPTH) {
                struct block *to =
                    &transposed[row / WIDTH * transposed_down + (column + c) / DEPTH];
                block_write_transposed(&block, c, bypass, (uint32_t *)(void *)to + row % WIDTH);
            }
        }
    }
}

void dt__bf16_pack(const struct dt_factored *matrix, struct dt_tile tile, const float *weights,
                   void *copies)
{
    pack(matrix, tile, weights, true, copies);
    lines_end();
}

void dt__bf16_pack_all(const struct dt_factored *matrix, int matrices, const float *weights,
                       void *copies)
{
    for (int i = 0; i < matrices; i++)
        for (size_t t = 0; t < dt__tiles(&matrix[i]); t++)
            pack(&matrix[i], dt__tile_at(&matrix[i], t), weights, false, copies);
}
