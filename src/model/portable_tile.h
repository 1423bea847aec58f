/* portable_tile: computes a tile of a product and packs its operands, for one instruction set.
 * portable.c includes this file once for each set, with these macros:
 *
 *   ISA      the set's name for the compiler     LANES   floats in a vector
 *   NAME(x)  a function's name                   ROWS    rows of a tile; EACH(X) calls X for each
 *   SPREAD   one float to all elements           FMA     a * b + c, rounded once
 *
 * A tile has ROWS rows and three vectors of columns. Panels of B are (depth, 3 * LANES). Panels of
 * A are (ROWS, DEPTH) or, if A is transposed, (depth, ROWS); so packing A never moves single
 * floats. */
enum { NAME(WIDTH) = 3 * LANES };
typedef float NAME(vector) __attribute__((vector_size(4 * LANES)));
typedef float NAME(floats) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define LOAD(from) ((NAME(vector)) * (const NAME(floats) *)(from))
#define BEGIN(i) NAME(vector) x##i = {0}, y##i = {0}, z##i = {0};
#define ACCUMULATE(i)                                                                              \
    {                                                                                              \
        const NAME(vector) s = SPREAD(a[(i)*row]);                                                 \
        x##i = FMA(s, p, x##i);                                                                    \
        if (vectors > 1) y##i = FMA(s, q, y##i);                                                   \
        if (vectors > 2) z##i = FMA(s, r, z##i);                                                   \
    }
#define STORE(sum, to) *(NAME(floats) *)(to) = t->add ? LOAD(to) + (sum) : (sum);
#define END(i)                                                                                     \
    {                                                                                              \
        float *to = t->c + (i)*t->ldc;                                                             \
        STORE(x##i, to)                                                                            \
        if (vectors > 1) STORE(y##i, to + LANES)                                                   \
        if (vectors > 2) STORE(z##i, to + 2 * LANES)                                               \
    }

/* Computes C (ROWS, vectors * LANES) = A B, or C += A B if t->add. Element (i, l) of A is a[i * row
 * + l * step]. */
static inline __attribute__((always_inline, target(ISA))) void
NAME(tile_of)(const struct tile *t, int vectors, size_t row, size_t step)
{
    const float *a = t->a, *b = t->b;
    EACH(BEGIN)
    for (int l = 0; l < t->depth; l++, a += step, b += t->ldb) {
        const NAME(vector) p = LOAD(b), q = LOAD(b + (vectors > 1 ? LANES : 0)),
                           r = LOAD(b + (vectors > 2 ? 2 * LANES : 0));
        (void)q, (void)r;
        EACH(ACCUMULATE)
    }
    EACH(END)
}

#define TILE_OF(vectors)                                                                           \
    if (!t->rows)                                                                                  \
        NAME(tile_of)(t, vectors, 1, ROWS);                                                        \
    else                                                                                           \
        NAME(tile_of)(t, vectors, DEPTH, 1);

static __attribute__((target(ISA))) void NAME(tile)(const struct tile *t)
{
    if (t->vectors == 3) {
        TILE_OF(3)
    } else if (t->vectors == 2) {
        TILE_OF(2)
    } else {
        TILE_OF(1)
    }
}

/* Computes sums (n) += a (depth) B (depth, n); rows of B are `ldb` floats apart. */
static __attribute__((target(ISA))) void NAME(row)(int n, int depth, const float *a, const float *b,
                                                   size_t ldb, float *restrict sums)
{
    int l = 0;
    for (; l + 4 <= depth; l += 4, a += 4, b += 4 * ldb)
        for (int j = 0; j < n; j++) {
            const float *at = b + j;
            float sum = __builtin_fmaf(a[0], at[0], sums[j]);
            sum = __builtin_fmaf(a[1], at[ldb], sum);
            sum = __builtin_fmaf(a[2], at[2 * ldb], sum);
            sums[j] = __builtin_fmaf(a[3], at[3 * ldb], sum);
        }
    for (; l < depth; l++, a++, b += ldb)
        for (int j = 0; j < n; j++)
            sums[j] = __builtin_fmaf(a[0], b[j], sums[j]);
}

/* Packs a panel of full width from `depth` rows of contiguous floats, `step` floats apart. */
static __attribute__((target(ISA))) void NAME(copy)(bool of_a, int depth, const float *from,
                                                    size_t step, float *to)
{
    if (of_a)
        for (int l = 0; l < depth; l++, from += step, to += ROWS)
            memcpy(to, from, ROWS * sizeof *to);
    else
        for (int l = 0; l < depth; l++, from += step, to += NAME(WIDTH))
            memcpy(to, from, NAME(WIDTH) * sizeof *to);
}

#undef LOAD
#undef BEGIN
#undef ACCUMULATE
#undef STORE
#undef END
#undef TILE_OF
#undef ISA
#undef NAME
#undef LANES
#undef ROWS
#undef EACH
#undef SPREAD
#undef FMA
