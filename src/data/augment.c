#include "data/augment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ----------------------------------------------------------------------------------- */

/* Parses one item, such as "shift 2". Returns false if the item is not valid. */
static bool augment_item(struct dt__augment *augment, const char *item)
{
    char name[16] = "", value[32] = "", end = '\0', *rest = value;
    const int words = sscanf(item, " %15s %31s %c", name, value, &end);
    const double number = dt__real_read(value, &rest);
    const bool good = words == 2 && !*rest;
    const bool whole = good && number >= 1 && number <= 4096 && number == (int)number;
    if (words == 1 && !strcmp(name, "flip"))
        augment->flip = true;
    else if (whole && !strcmp(name, "shift"))
        augment->shift = (int)number;
    else if (whole && !strcmp(name, "cutout"))
        augment->cutout = (int)number;
    else if (good && number > 0 && number < 1e6 && !strcmp(name, "noise"))
        augment->noise = number;
    else
        return false;
    return true;
}

dt_status dt__augment_parse(const char *text, struct dt__augment *out)
{
    struct dt__augment augment = {0};
    char item[64];
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        bool fits = length < sizeof item;
        (void)snprintf(item, sizeof item, "%.*s", (int)(fits ? length : 0), at);
        if (!fits || !augment_item(&augment, item))
            return dt_fail(DT_EUSAGE,
                           "data.augment = %.200s: '%.*s'; expected shift N, flip, cutout N or "
                           "noise DEVIATION",
                           text, (int)(length < 60 ? length : 60), at);
        at += length + (at[length] == ',');
    }
    *out = augment;
    return DT_OK;
}

/* ---- one picture ---------------------------------------------------------------------------- */

/* If `flip`, mirrors a picture left to right; then moves it down by dy points and right by dx. */
static void picture_move(const struct dt__augment *augment, int dy, int dx, bool flip, float *x)
{
    const int h = augment->shape[0], w = augment->shape[1];
    const size_t c = (size_t)augment->shape[2], floats = (size_t)h * (size_t)w * c;
    float *const before = augment->picture;
    memcpy(before, x, floats * sizeof *x);
    for (int row = 0; row < h; row++)
        for (int column = 0; column < w; column++, x += c) {
            const int from_row = row - dy, across = column - dx;
            const int from_column = flip ? w - 1 - across : across;
            if (from_row < 0 || from_row >= h || across < 0 || across >= w)
                memset(x, 0, c * sizeof *x);
            else
                memcpy(x, before + ((size_t)from_row * (size_t)w + (size_t)from_column) * c,
                       c * sizeof *x);
        }
}

/* Sets a square to 0. Its side is `side`, its middle the point (middle_y, middle_x) of the picture;
 * it is clipped at the edges. Source: DeVries and Taylor 2017. */
static void picture_cut(const int shape[3], int side, int middle_y, int middle_x, float *x)
{
    const size_t c = (size_t)shape[2];
    const int top = middle_y - side / 2, left = middle_x - side / 2;
    for (int row = top < 0 ? 0 : top; row < top + side && row < shape[0]; row++)
        for (int column = left < 0 ? 0 : left; column < left + side && column < shape[1]; column++)
            memset(x + ((size_t)row * (size_t)shape[1] + (size_t)column) * c, 0, c * sizeof *x);
}

/* The positions of a sample's random numbers: one number for each of these choices; from MOVES on,
 * two numbers for the noise of each value. */
enum { MOVE_Y, MOVE_X, MIRROR, CUT_Y, CUT_X, MOVES = 8 };

/* Returns a random number in [0, choices). */
static int choose(const struct dt_rng *rng, uint64_t number, int choices)
{
    return (int)(dt__rng_uniform(rng, number) * choices);
}

void dt__augment_rows(const struct dt__augment *augment, const struct dt_rng *key, uint64_t first,
                      int rows, float *x)
{
    const int *const shape = augment->shape;
    const uint64_t values = (uint64_t)shape[0] * (uint64_t)shape[1] * (uint64_t)shape[2];
    const int range = 2 * augment->shift + 1;
    for (int row = 0; row < rows; row++, x += values) {
        const uint64_t number = (first + (uint64_t)row) * (MOVES + 2 * values);
        const int dy = choose(key, number + MOVE_Y, range) - augment->shift;
        const int dx = choose(key, number + MOVE_X, range) - augment->shift;
        const bool flip = augment->flip && choose(key, number + MIRROR, 2);
        if (dy || dx || flip) picture_move(augment, dy, dx, flip, x);
        if (augment->noise > 0)
            for (uint64_t i = 0; i < values; i++)
                x[i] += (float)(augment->noise * dt__rng_normal(key, number / 2 + MOVES / 2 + i));
        if (augment->cutout)
            picture_cut(shape, augment->cutout, choose(key, number + CUT_Y, shape[0]),
                        choose(key, number + CUT_X, shape[1]), x);
    }
}
