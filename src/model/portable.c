/* Products by packed panels and register tiles (Goto and van de Geijn 2008; Van Zee and van de
 * Geijn 2015). For each block of k, a block of rows of A is packed once, and then the panels of B
 * one after another; a panel of B stays in the first-level cache while all rows of the block use
 * it:
 *
 *   for each block of k (DEPTH)            the order of sums: it is part of the bits
 *     for each block of rows (MOST_ROWS)   packs A: second-level cache
 *       for each panel of columns          packs B: first-level cache
 *         for each panel of rows           a tile in registers */
#include "model/portable.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

void GOMP_parallel(void (*body)(void *arg), void *arg, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

enum {
    DEPTH = 256, /* fixed: the bits depend on it */
    MOST_ROWS = 256,
    MOST_WIDTH = 48,
    TILE_ROWS = 8, /* upper bound over the instruction sets */
    ALIGN = 64
};

/* A tile of C and the panels that it is computed from (portable_tile.h). */
struct tile {
    int vectors, count; /* number of vectors of columns; number of rows */
    bool rows, add;     /* rows: A's panel is (rows, DEPTH) rather than (depth, rows) */
    int depth;
    const float *a, *b;
    size_t ldb;
    float *c;
    size_t ldc;
};

/* Size of a tile and functions for one instruction set. */
struct set {
    int rows, lanes;
    void (*tile)(const struct tile *tile);
    void (*row)(int n, int depth, const float *a, const float *b, size_t ldb, float *sums);
    void (*copy)(bool of_a, int depth, const float *from, size_t step, float *to);
};

static struct {
    const struct set *set;
    int threads;
} portable = {.threads = 1};

#if defined(__x86_64__)

#define ISA "avx2,fma"
#define NAME(x) avx2_##x
#define LANES 8
#define ROWS 4
#define EACH(X) X(0) X(1) X(2) X(3)
#define SPREAD(value) (avx2_vector) _mm256_set1_ps(value)
#define FMA(a, b, c) (avx2_vector) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#include "model/portable_tile.h"

#define ISA "avx512f,avx2,fma"
#define NAME(x) avx512_##x
#define LANES 16
#define ROWS 8
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define SPREAD(value) (avx512_vector) _mm512_set1_ps(value)
#define FMA(a, b, c) (avx512_vector) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#include "model/portable_tile.h"

static const struct set AVX2 = {4, 8, avx2_tile, avx2_row, avx2_copy};
static const struct set AVX512 = {8, 16, avx512_tile, avx512_row, avx512_copy};

bool dt__portable_choose(const char *kernel)
{
    const bool best = !strcasecmp(kernel, DT__PORTABLE);
    if (!best && strcasecmp(kernel, DT__PORTABLE "-avx2")) return false;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
    portable.set = best && __builtin_cpu_supports("avx512f") ? &AVX512 : &AVX2;
    return true;
}

/* Writes the transpose of `from` (8, 8) to `to` (8, 8). */
static __attribute__((target("avx2"))) void transpose_8x8(const float *from, size_t from_row,
                                                          float *to, size_t to_row)
{
    __m256 a[8], b[8];
    for (size_t i = 0; i < 8; i++)
        a[i] = _mm256_loadu_ps(from + i * from_row);
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
    for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

#else

bool dt__portable_choose(const char *kernel)
{
    (void)kernel;
    return false;
}

static void transpose_8x8(const float *from, size_t from_row, float *to, size_t to_row)
{
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < 8; j++)
            to[j * to_row + i] = from[i * from_row + j];
}

#endif

bool dt__portable_need(void)
{
    return portable.set || dt__portable_choose(DT__PORTABLE);
}

void dt__portable_set_threads(int threads)
{
    portable.threads = threads;
}

/* ---- panels --------------------------------------------------------------------------------- */

/* Packs `count` vectors of `depth` floats, which are `row` floats apart, as the columns of a panel
 * (depth, width). */
static void panel_transpose(int count, int width, int depth, const float *from, size_t row,
                            float *to)
{
    const int whole = depth / 8 * 8;
    for (int i = 0; i < count; i += 8) {
        const int part = count - i < 8 ? count - i : 8;
        const float *at = from + (size_t)i * row;
        for (int l = 0; part == 8 && l < whole; l += 8)
            transpose_8x8(at + l, row, to + l * width + i, (size_t)width);
        for (int j = 0; j < part; j++)
            for (int l = part == 8 ? whole : 0; l < depth; l++)
                to[l * width + i + j] = at[(size_t)j * row + (size_t)l];
    }
}

/* Packs a panel of B: columns [0, count) of b, rows [0, depth). The panel's other columns are 0. */
static void panel_b_pack(const struct set *set, int count, int depth, struct dt__strided b,
                         float *to)
{
    const int width = 3 * set->lanes;
    if (b.column == 1 && count == width) {
        set->copy(false, depth, b.at, b.row, to);
        return;
    }
    if (count < width) memset(to, 0, (size_t)(depth * width) * sizeof *to);
    if (b.column != 1) {
        panel_transpose(count, width, depth, b.at, b.column, to);
        return;
    }
    for (int l = 0; l < depth; l++)
        memcpy(to + l * width, b.at + (size_t)l * b.row, (size_t)count * sizeof *to);
}

/* Packs a panel of A, as (rows, DEPTH) if the rows of A are contiguous, else as (depth, rows). */
static void panel_a_pack(const struct set *set, int count, int depth, struct dt__strided a,
                         float *to)
{
    if (a.column != 1 && count == set->rows) {
        set->copy(true, depth, a.at, a.column, to);
        return;
    }
    if (count < set->rows) memset(to, 0, (size_t)(set->rows * DEPTH) * sizeof *to);
    for (int i = 0; a.column == 1 && i < count; i++)
        memcpy(to + i * DEPTH, a.at + (size_t)i * a.row, (size_t)depth * sizeof *to);
    for (int l = 0; a.column != 1 && l < depth; l++)
        memcpy(to + l * set->rows, a.at + (size_t)l * a.column, (size_t)count * sizeof *to);
}

/* ---- products ------------------------------------------------------------------------------- */

struct product {
    const struct set *set;
    struct dt__sizes size;
    struct dt__strided a, b;
    bool add;
    float *c;
    size_t ldc;
};

/* A thread's scratch memory: the panels of A, and one panel of B. */
struct scratch {
    float a[MOST_ROWS * DEPTH], b[DEPTH * MOST_WIDTH];
};

static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key;

static void scratch_key_create(void)
{
    pthread_key_create(&scratch_key, free);
}

static struct scratch *scratch_of_thread(void)
{
    pthread_once(&scratch_once, scratch_key_create);
    struct scratch *scratch = pthread_getspecific(scratch_key);
    if (scratch) return scratch;
    scratch = aligned_alloc(ALIGN, sizeof *scratch);
    pthread_setspecific(scratch_key, scratch);
    return scratch;
}

/* Computes a tile at the edge of C, without writing outside C. */
static void edge_tile(const struct set *set, const struct tile *t, int columns)
{
    float sums[TILE_ROWS * MOST_WIDTH];
    struct tile whole = *t;
    whole.add = false;
    whole.c = sums;
    whole.ldc = MOST_WIDTH;
    set->tile(&whole);
    for (int i = 0; i < t->count; i++) {
        float *restrict to = t->c + (size_t)i * t->ldc;
        const float *restrict from = sums + i * MOST_WIDTH;
        for (int j = 0; j < columns; j++)
            to[j] = t->add ? to[j] + from[j] : from[j];
    }
}

/* Computes `rows` rows of C in the columns of one panel, from packed panels. first: the tile of the
 * first rows. */
static void panel_product(const struct set *set, const struct tile *first, int rows, int columns)
{
    struct tile t = *first;
    t.vectors = (columns + set->lanes - 1) / set->lanes;
    for (int i = 0; i < rows; i += set->rows) {
        t.count = rows - i < set->rows ? rows - i : set->rows;
        if (columns % set->lanes || t.count < set->rows)
            edge_tile(set, &t, columns);
        else
            set->tile(&t);
        t.a += set->rows * DEPTH;
        t.c += (size_t)set->rows * t.ldc;
    }
}

/* Adds the product over one block of k to rows [begin, begin + rows) of C. The first block
 * overwrites them unless p->add. */
static void block_product(const struct product *p, struct scratch *scratch, int begin, int rows,
                          int from, int depth)
{
    const struct set *set = p->set;
    const int width = 3 * set->lanes;
    const bool add = p->add || from > 0;
    const float *a = p->a.at + (size_t)begin * p->a.row + (size_t)from * p->a.column;
    for (int i = 0; i < rows; i += set->rows)
        panel_a_pack(set, rows - i < set->rows ? rows - i : set->rows, depth,
                     (struct dt__strided){a + (size_t)i * p->a.row, p->a.row, p->a.column},
                     scratch->a + i * DEPTH);
    for (int j = 0; j < p->size.n; j += width) {
        const int columns = p->size.n - j < width ? p->size.n - j : width;
        const float *b = p->b.at + (size_t)from * p->b.row + (size_t)j * p->b.column;
        /* with few rows, packing B is not worth it */
        const bool direct =
            p->size.m <= 4 * set->rows && p->b.column == 1 && columns % set->lanes == 0;
        const struct tile first = {.rows = p->a.column == 1,
                                   .add = add,
                                   .depth = depth,
                                   .a = scratch->a,
                                   .b = direct ? b : scratch->b,
                                   .ldb = direct ? p->b.row : (size_t)width,
                                   .c = p->c + (size_t)begin * p->ldc + j,
                                   .ldc = p->ldc};
        if (!direct)
            panel_b_pack(set, columns, depth, (struct dt__strided){b, p->b.row, p->b.column},
                         scratch->b);
        panel_product(set, &first, rows, columns);
    }
}

/* Computes C of a single row, from a B whose rows are contiguous; each is read once, without
 * packing. */
static void row_product(const struct product *p, struct scratch *scratch)
{
    const int most = DEPTH * MOST_WIDTH;
    float *restrict sums = scratch->b;
    for (int j = 0; j < p->size.n; j += most)
        for (int from = 0; from < p->size.k; from += DEPTH) {
            const int columns = p->size.n - j < most ? p->size.n - j : most;
            const int depth = p->size.k - from < DEPTH ? p->size.k - from : DEPTH;
            const bool add = p->add || from > 0;
            float *restrict c = p->c + j;
            memset(sums, 0, (size_t)columns * sizeof *sums);
            p->set->row(columns, depth, p->a.at + from, p->b.at + (size_t)from * p->b.row + j,
                        p->b.row, sums);
            for (int i = 0; i < columns; i++)
                c[i] = add ? c[i] + sums[i] : sums[i];
        }
}

static void product_run(const struct product *p, struct scratch *scratch)
{
    if (p->size.m == 1 && p->a.column == 1 && p->b.column == 1) {
        row_product(p, scratch);
        return;
    }
    for (int from = 0; from < p->size.k; from += DEPTH)
        for (int begin = 0; begin < p->size.m; begin += MOST_ROWS)
            block_product(p, scratch, begin,
                          p->size.m - begin < MOST_ROWS ? p->size.m - begin : MOST_ROWS, from,
                          p->size.k - from < DEPTH ? p->size.k - from : DEPTH);
}

/* Number of multiply-adds from which threads save more than they cost. */
enum { WORTH_THREADS = 1 << 20 };

struct threads {
    struct product product;
    bool failed; /* a thread had no memory */
};

/* Computes the part of C of one thread: some of its columns, or some rows if C has more rows than
 * columns. */
static void thread_run(void *arg)
{
    struct threads *all = arg;
    struct product p = all->product;
    struct scratch *scratch = scratch_of_thread();
    const int threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const bool by_rows = p.size.m > p.size.n;
    const int unit = by_rows ? p.set->rows : p.set->lanes;
    const int units = ((by_rows ? p.size.m : p.size.n) + unit - 1) / unit;
    const int begin = (int)((long long)units * thread / threads) * unit;
    int end = (int)((long long)units * (thread + 1) / threads) * unit;
    if (end > (by_rows ? p.size.m : p.size.n)) end = by_rows ? p.size.m : p.size.n;
    if (by_rows)
        p.size.m = end - begin, p.a.at += (size_t)begin * p.a.row, p.c += (size_t)begin * p.ldc;
    else
        p.size.n = end - begin, p.b.at += (size_t)begin * p.b.column, p.c += begin;
    if (scratch)
        product_run(&p, scratch);
    else
        all->failed = true;
}

dt_status dt__portable_gemm(struct dt__sizes size, struct dt__strided a, struct dt__strided b,
                            bool add, float *c, size_t ldc)
{
    struct threads all = {.product = {portable.set, size, a, b, add, c, ldc}};
    struct scratch *scratch = scratch_of_thread();
    if (!scratch)
        all.failed = true;
    else if (portable.threads > 1 && (double)size.m * size.n * size.k >= WORTH_THREADS)
        GOMP_parallel(thread_run, &all, (unsigned)portable.threads, 0);
    else
        product_run(&all.product, scratch);
    return all.failed ? dt_fail(DT_EMEMORY, "out of memory for matrix products") : DT_OK;
}
