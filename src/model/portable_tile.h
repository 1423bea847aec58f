/* portable_tile: a tile of a product and the packing of its operands, for one instruction set.
 * portable.c includes it once for each set, with these macros:
 *
 *   ISA      the set's name for the compiler     LANES   floats in a vector
 *   NAME(x)  a function's name                   ROWS    rows of a tile; EACH(X) calls X for each
 *   SPREAD   one float to all lanes              FMA     a * b + c, rounded once
 *
 * A tile has ROWS rows and three vectors of columns. Panels of B are (depth, 3 * LANES); those of A
 * are (ROWS, DEPTH) or, where A is transposed, (depth, ROWS): no layout moves single floats of A. */
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
#define STORE(i, sum, at)                                                                          \
    *(NAME(floats) *)(c + (i)*ldc + (at)) = add ? LOAD(c + (i)*ldc + (at)) + (sum) : (sum);
#define END(i)                                                                                     \
    STORE(i, x##i, 0)                                                                              \
    if (vectors > 1) STORE(i, y##i, LANES)                                                         \
    if (vectors > 2) STORE(i, z##i, 2 * LANES)

/* C (ROWS, vectors * LANES) = A B, or += if `add`. Elements of A: a[i * row + l * step]. */
static inline __attribute__((always_inline, target(ISA))) void
NAME(tile_of)(int vectors, size_t row, size_t step, int depth, const float *a, const float *b,
              bool add, float *c, size_t ldc)
{
    EACH(BEGIN)
    for (int l = 0; l < depth; l++, a += step, b += NAME(WIDTH)) {
        const NAME(vector) p = LOAD(b), q = LOAD(b + (vectors > 1 ? LANES : 0)),
                           r = LOAD(b + (vectors > 2 ? 2 * LANES : 0));
        (void)q, (void)r;
        EACH(ACCUMULATE)
    }
    EACH(END)
}

static __attribute__((target(ISA))) void NAME(tile)(int vectors, bool rows, int depth,
                                                    const float *a, const float *b, bool add,
                                                    float *c, size_t ldc)
{
    if (vectors == 3 && rows)
        NAME(tile_of)(3, DEPTH, 1, depth, a, b, add, c, ldc);
    else if (vectors == 3)
        NAME(tile_of)(3, 1, ROWS, depth, a, b, add, c, ldc);
    else if (vectors == 2 && rows)
        NAME(tile_of)(2, DEPTH, 1, depth, a, b, add, c, ldc);
    else if (vectors == 2)
        NAME(tile_of)(2, 1, ROWS, depth, a, b, add, c, ldc);
    else if (rows)
        NAME(tile_of)(1, DEPTH, 1, depth, a, b, add, c, ldc);
    else
        NAME(tile_of)(1, 1, ROWS, depth, a, b, add, c, ldc);
}

/* Panels of whole width whose floats are contiguous: (depth, width) out of rows `step` apart. */
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
#undef ISA
#undef NAME
#undef LANES
#undef ROWS
#undef EACH
#undef SPREAD
#undef FMA
