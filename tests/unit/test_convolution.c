/* Products of a convolution against plain loops that follow its definition. */
#include "model/convolution.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

#include "unit/suite.h"

struct problem {
    struct dt__convolution_shape s;
    int rows;
    float *x, *weight, *y, *dy, *dx, *dweight; /* all but dy: the expected results */
};

static float *random_floats(size_t n, uint64_t key)
{
    struct dt_rng rng = dt__rng_make(7, DT_STREAM_TEST, key, 0);
    float *floats;
    ck_assert_int_eq(dt__alloc(n, sizeof *floats, "test", &floats), DT_OK);
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)dt__rng_normal(&rng, i);
    return floats;
}

static float *zero_floats(size_t n)
{
    float *floats;
    ck_assert_int_eq(dt__alloc(n, sizeof *floats, "test", &floats), DT_OK);
    return floats;
}

static size_t x_size(const struct problem *p)
{
    return (size_t)(p->rows * p->s.in.h * p->s.in.w * p->s.in.c);
}

static size_t y_size(const struct problem *p)
{
    return (size_t)(p->rows * p->s.out.h * p->s.out.w * p->s.out.c);
}

static size_t weight_size(const struct problem *p)
{
    return (size_t)(p->s.kernel[0] * p->s.kernel[1] * p->s.in.c / p->s.groups * p->s.out.c);
}

/* Adds the terms of one row, one position of the output and one position of the kernel. */
static void add_terms(struct problem *p, int row, int oy, int ox, int ky, int kx)
{
    const struct dt__convolution_shape *s = &p->s;
    int iy = oy * s->stride[0] + ky - s->before[0], ix = ox * s->stride[1] + kx - s->before[1];
    if (iy < 0 || iy >= s->in.h || ix < 0 || ix >= s->in.w) return;
    int per_group = s->in.c / s->groups;
    for (int f = 0; f < s->out.c; f++)
        for (int c = 0; c < per_group; c++) {
            int group = f / (s->out.c / s->groups), channel = group * per_group + c;
            int x = ((row * s->in.h + iy) * s->in.w + ix) * s->in.c + channel;
            int y = ((row * s->out.h + oy) * s->out.w + ox) * s->out.c + f;
            int w = ((ky * s->kernel[1] + kx) * per_group + c) * s->out.c + f;
            p->y[y] += p->x[x] * p->weight[w];
            p->dx[x] += p->dy[y] * p->weight[w];
            p->dweight[w] += p->dy[y] * p->x[x];
        }
}

static void problem_make(struct problem *p, const struct dt__convolution_shape *shape, int rows)
{
    *p = (struct problem){.s = *shape, .rows = rows};
    p->x = random_floats(x_size(p), 1);
    p->weight = random_floats(weight_size(p), 2);
    p->dy = random_floats(y_size(p), 3);
    p->y = zero_floats(y_size(p));
    p->dx = zero_floats(x_size(p));
    p->dweight = zero_floats(weight_size(p));
    for (int row = 0; row < rows; row++)
        for (int oy = 0; oy < shape->out.h; oy++)
            for (int ox = 0; ox < shape->out.w; ox++)
                for (int k = 0; k < shape->kernel[0] * shape->kernel[1]; k++)
                    add_terms(p, row, oy, ox, k / shape->kernel[1], k % shape->kernel[1]);
}

static void problem_free(struct problem *p)
{
    float *all[] = {p->x, p->weight, p->y, p->dy, p->dx, p->dweight};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        dt_free(all[i]);
}

/* Compares with an error bound relative to the largest expected value. */
static void compare(const char *what, const float *got, const float *expected, size_t n,
                    double bound)
{
    double norm = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        norm = fmax(norm, fabs((double)expected[i]));
        worst = fmax(worst, fabs((double)got[i] - (double)expected[i]));
    }
    ck_assert_msg(worst <= bound * norm, "%s: off by %g of %g", what, worst, norm);
}

static void products_agree(const struct dt__convolution_shape *shape, int rows, bool bf16)
{
    const double bound = bf16 ? 0.02 : 4e-6;
    struct problem p;
    struct dt__convolution *c;
    problem_make(&p, shape, rows);
    float *y = random_floats(y_size(&p), 4), *dx = random_floats(x_size(&p), 5);
    float *dweight = random_floats(weight_size(&p), 6);
    ck_assert_msg(dt__convolution_create(shape, true, bf16, &c) == DT_OK, "%s", dt_error_text());
    ck_assert_int_eq(dt__convolution_pack(c, p.weight), DT_OK);
    ck_assert_int_eq(dt__convolution_forward(c, rows, p.x, y), DT_OK);
    compare("y", y, p.y, y_size(&p), bound);
    ck_assert_int_eq(dt__convolution_input_gradient(c, rows, p.dy, dx), DT_OK);
    compare("dx", dx, p.dx, x_size(&p), bound);
    ck_assert_int_eq(dt__convolution_weight_gradient(c, rows, p.x, p.dy, false, dweight), DT_OK);
    compare("dweight", dweight, p.dweight, weight_size(&p), bound);
    ck_assert_int_eq(dt__convolution_weight_gradient(c, rows, p.x, p.dy, true, dweight), DT_OK);
    for (size_t i = 0; i < weight_size(&p); i++)
        p.dweight[i] *= 2;
    compare("dweight added", dweight, p.dweight, weight_size(&p), bound);
    dt__convolution_destroy(c);
    dt_free(y);
    dt_free(dx);
    dt_free(dweight);
    problem_free(&p);
}

/* in, out, kernel, stride, padding before, padding after, groups */
static const struct dt__convolution_shape SHAPES[] = {
    {{7, 5, 1}, {7, 5, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},     /* same */
    {{8, 8, 4}, {6, 6, 16}, {3, 3}, {1, 1}, {0, 0}, {0, 0}, 1},    /* valid */
    {{9, 11, 3}, {4, 5, 5}, {3, 2}, {2, 2}, {0, 0}, {0, 0}, 1},    /* odd strides and kernel */
    {{6, 6, 8}, {6, 6, 12}, {4, 4}, {1, 1}, {1, 1}, {2, 2}, 1},    /* even kernel, uneven padding */
    {{6, 6, 32}, {6, 6, 64}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},   /* a common shape */
    {{5, 5, 6}, {5, 5, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},     /* two groups */
    {{5, 5, 8}, {5, 5, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},     /* as many groups as channels */
    {{1, 50, 3}, {1, 25, 7}, {1, 5}, {1, 2}, {0, 2}, {0, 2}, 1},   /* one-dimensional */
    {{4, 4, 5}, {1, 1, 2}, {4, 4}, {4, 4}, {0, 0}, {0, 0}, 1},     /* kernel as large as the
                                                                    * picture */
    {{9, 7, 2}, {3, 4, 5}, {1, 1}, {3, 2}, {0, 0}, {0, 0}, 1},     /* 1 x 1 kernel with strides */
    {{64, 64, 3}, {32, 32, 8}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, 1}, /* a size at which oneDNN 2.6.3
                                                                    * itself fails */
    {{4, 1, 16}, {4, 1, 16}, {3, 3}, {1, 2}, {1, 1}, {1, 1}, 1},   /* width below the stride */
    {{31, 28, 29}, {16, 7, 8}, {1, 5}, {2, 4}, {0, 2}, {0, 2}, 1}, /* stride larger than the
                                                                    * kernel */
};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof *SHAPES };

START_TEST(test_products)
{
    products_agree(&SHAPES[_i], 19, false);
}
END_TEST

START_TEST(test_products_of_one_row)
{
    products_agree(&SHAPES[_i], 1, false);
}
END_TEST

START_TEST(test_portable_products)
{
    if (!dt__blas_select("portable")) products_agree(&SHAPES[_i], 1 + 18 * (_i % 2), false);
}
END_TEST

START_TEST(test_products_in_bf16)
{
    bool native;
    ck_assert_int_eq(dt__bf16_select("auto", &native), DT_OK);
    if (native) products_agree(&SHAPES[_i], 1 + 18 * (_i % 2), true);
}
END_TEST

/* A row's result does not depend on the other rows or on the size of the batch. */
START_TEST(test_rows_are_independent)
{
    const struct dt__convolution_shape *shape = &SHAPES[4];
    struct problem p;
    struct dt__convolution *c;
    problem_make(&p, shape, 19);
    size_t row = y_size(&p) / 19;
    float *y = zero_floats(y_size(&p)), *again = zero_floats(y_size(&p));
    ck_assert_int_eq(dt__convolution_create(shape, false, false, &c), DT_OK);
    ck_assert_int_eq(dt__convolution_pack(c, p.weight), DT_OK);
    ck_assert_int_eq(dt__convolution_forward(c, 19, p.x, y), DT_OK);
    ck_assert_int_eq(dt__convolution_forward(c, 16, p.x, again), DT_OK);
    ck_assert_mem_eq(y, again, 16 * row * sizeof *y);
    dt__convolution_destroy(c);
    dt_free(y);
    dt_free(again);
    problem_free(&p);
}
END_TEST

int main(void)
{
    TCase *test_case = tcase_create("convolution");
    tcase_add_loop_test(test_case, test_products, 0, SHAPE_COUNT);
    tcase_add_loop_test(test_case, test_products_of_one_row, 0, SHAPE_COUNT);
    tcase_add_loop_test(test_case, test_portable_products, 0, SHAPE_COUNT);
    tcase_add_loop_test(test_case, test_products_in_bf16, 0, SHAPE_COUNT);
    tcase_add_test(test_case, test_rows_are_independent);
    return suite_run_case("convolution", test_case);
}
