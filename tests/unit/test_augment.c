/* Changes to pictures. Each change does what its name says and depends only on its key. */
#include "data/augment.h"

#include <math.h>

#include "suite.h"

enum { H = 6, W = 9, C = 2, SIZE = H * W * C, ROWS = 200 };
static const int SHAPE[3] = {H, W, C};

static float pictures[ROWS * SIZE], scratch[SIZE];

/* Sets value i of each row to 1 + i, so that a value shows where it comes from. */
static void fill(void)
{
    for (int i = 0; i < ROWS * SIZE; i++)
        pictures[i] = (float)(1 + i % SIZE);
}

static void change(const char *text, uint64_t first, int rows, float *x)
{
    struct dt__augment augment;
    const struct dt_rng key = dt__rng_make(7, DT_STREAM_AUGMENT, 3, 2);
    EXPECT_OK(dt__augment_parse(text, &augment));
    memcpy(augment.shape, SHAPE, sizeof SHAPE);
    augment.picture = scratch;
    dt__augment_rows(&augment, &key, first, rows, x);
}

static float at(const float *x, int y, int column, int c)
{
    return x[(y * W + column) * C + c];
}

/* Returns whether the picture is the original moved by (dy, dx), and mirrored if `flip`. */
static bool is_moved(const float *x, int dy, int dx, bool flip)
{
    for (int y = 0; y < H; y++)
        for (int column = 0; column < W; column++)
            for (int c = 0; c < C; c++) {
                int from_y = y - dy, from = column - dx;
                bool inside = from_y >= 0 && from_y < H && from >= 0 && from < W;
                if (flip) from = W - 1 - from;
                float expected = inside ? (float)(1 + (from_y * W + from) * C + c) : 0.0f;
                if (at(x, y, column, c) != expected) return false;
            }
    return true;
}

START_TEST(shift_moves_by_at_most_its_number)
{
    int seen[3][3] = {{0}};
    fill();
    change("shift 1", 0, ROWS, pictures);
    for (int r = 0; r < ROWS; r++) {
        int found = 0;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                if (is_moved(pictures + r * SIZE, dy, dx, false)) found++, seen[dy + 1][dx + 1]++;
        ck_assert_int_eq(found, 1);
    }
    for (int i = 0; i < 9; i++)
        ck_assert_int_gt(seen[i / 3][i % 3], ROWS / 40);
}
END_TEST

START_TEST(flip_mirrors_half_of_the_pictures)
{
    int mirrored = 0;
    fill();
    change("flip", 0, ROWS, pictures);
    for (int r = 0; r < ROWS; r++) {
        bool flip = is_moved(pictures + r * SIZE, 0, 0, true);
        ck_assert(flip || is_moved(pictures + r * SIZE, 0, 0, false));
        mirrored += flip;
    }
    ck_assert_int_gt(mirrored, ROWS / 3);
    ck_assert_int_lt(mirrored, 2 * ROWS / 3);
}
END_TEST

START_TEST(cutout_cuts_a_square)
{
    int largest = 0;
    fill();
    change("cutout 2", 0, ROWS, pictures);
    for (int r = 0; r < ROWS; r++) {
        int zeros = 0;
        for (int i = 0; i < SIZE; i++)
            zeros += pictures[r * SIZE + i] == 0.0f;
        ck_assert_int_le(zeros, 4 * C);
        ck_assert_int_ge(zeros, C);
        if (zeros > largest) largest = zeros;
    }
    ck_assert_int_eq(largest, 4 * C);
}
END_TEST

/* Cutout 3 zeroes a rectangle of at most 3 x 3, clipped at the edges, in a picture that is not
 * square. Over all pictures it reaches each corner. */
START_TEST(cutout_reaches_every_edge)
{
    int corners[4] = {0};
    fill();
    change("cutout 3", 0, ROWS, pictures);
    for (const float *x = pictures; x < pictures + ROWS * SIZE; x += SIZE) {
        int top = H, bottom = -1, left = W, right = -1, zeros = 0;
        for (int i = 0; i < H * W; i++) {
            if (at(x, i / W, i % W, 0) != 0) continue;
            zeros++;
            if (i / W < top) top = i / W;
            if (i / W > bottom) bottom = i / W;
            if (i % W < left) left = i % W;
            if (i % W > right) right = i % W;
        }
        ck_assert_int_lt(bottom - top, 3);
        ck_assert_int_lt(right - left, 3);
        ck_assert_int_eq(zeros, (bottom - top + 1) * (right - left + 1));
        corners[0] += !top && !left, corners[1] += !top && right == W - 1;
        corners[2] += bottom == H - 1 && !left, corners[3] += bottom == H - 1 && right == W - 1;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_gt(corners[i], 0);
}
END_TEST

START_TEST(noise_has_the_given_deviation)
{
    double sum = 0, squares = 0;
    fill();
    change("noise 0.5", 0, ROWS, pictures);
    for (int i = 0; i < ROWS * SIZE; i++) {
        double noise = (double)pictures[i] - (1 + i % SIZE);
        sum += noise;
        squares += noise * noise;
    }
    ck_assert_double_lt(fabs(sum / (ROWS * SIZE)), 0.02);
    ck_assert_double_eq_tol(sqrt(squares / (ROWS * SIZE)), 0.5, 0.02);
    /* Replica and epoch (in the key) choose the random numbers; the first 8 are reserved for
     * moves. */
    struct dt__augment augment;
    const struct dt_rng rng = dt__rng_make(7, DT_STREAM_AUGMENT, 3, 5);
    float x = 1;
    EXPECT_OK(dt__augment_parse("noise 0.5", &augment));
    memcpy(augment.shape, (int[]){1, 1, 1}, sizeof augment.shape);
    dt__augment_rows(&augment, &rng, 0, 1, &x);
    ck_assert_float_eq(x, 1 + (float)(0.5 * dt__rng_normal(&rng, 4)));
}
END_TEST

/* A row gets the same changes whether rows are changed one by one, in another order, or at once. */
START_TEST(changes_do_not_depend_on_the_batch)
{
    static float again[ROWS * SIZE];
    const char *all = "shift 2, flip, cutout 3, noise 0.1";
    fill();
    memcpy(again, pictures, sizeof again);
    change(all, 10, ROWS, pictures);
    for (int r = ROWS - 1; r >= 0; r--)
        change(all, 10 + (uint64_t)r, 1, again + r * SIZE);
    ck_assert_mem_eq(again, pictures, sizeof again);
}
END_TEST

START_TEST(wrong_texts_are_refused)
{
    static const char *const wrong[] = {"shift",      "shift 0",     "shift 1.5", "flip 2",
                                        "turn 3",     "noise -1",    "noise 0",   "cutout x",
                                        "flip,,flip", "shift 2 flip"};
    struct dt__augment augment;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        EXPECT_FAIL(dt__augment_parse(wrong[i], &augment), DT_EUSAGE, "expected shift N");
    EXPECT_OK(dt__augment_parse("", &augment));
    ck_assert(!dt__augment_any(&augment));
}
END_TEST

SUITE("augment", shift_moves_by_at_most_its_number, flip_mirrors_half_of_the_pictures,
      cutout_cuts_a_square, cutout_reaches_every_edge, noise_has_the_given_deviation,
      changes_do_not_depend_on_the_batch, wrong_texts_are_refused)
