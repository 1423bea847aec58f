/* Optimizers: any split at any alignment gives the same bits, in place or not; states and defaults.
 * test_golden holds the numbers. */
#include "dtrain/model.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5003, SHIFT = 16, ROOM = N + SHIFT };

static struct dt_optimizer make(int kind, double momentum)
{
    struct dt_config config;
    struct dt_optimizer optimizer;
    EXPECT_OK(dt_config_init(&config));
    config.train.optimizer = kind;
    config.train.momentum = momentum;
    config.train.weight_decay = 0.01;
    dt_optimizer_init(&optimizer, &config);
    dt_config_free(&config);
    return optimizer;
}

static void fill(float *values, uint64_t stream)
{
    struct dt_rng rng = dt_rng_make(3, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)dt_rng_normal(&rng, i);
}

/* One update from fixed values; everything lies `shift` floats off alignment, and is split into
 * pieces of `piece`. out: params and states behind it. */
static void update(const struct dt_optimizer *optimizer, size_t shift, size_t piece, bool in_place,
                   float out[3][N])
{
    static float memory[5][ROOM];
    float *grad = memory[0] + shift, *params = memory[1] + shift;
    float *to = in_place ? params : memory[2] + (shift * 7) % SHIFT;
    float *state[2] = {memory[3] + (shift * 3) % SHIFT, memory[4] + (shift * 5) % SHIFT};
    fill(grad, 1), fill(params, 2), fill(state[0], 3), fill(state[1], 4);
    for (size_t i = 0; i < N; i++)
        state[0][i] = fabsf(state[0][i]), state[1][i] = fabsf(state[1][i]);
    for (size_t at = 0; at < N; at += piece) {
        float *parts[2] = {state[0] + at, state[1] + at};
        size_t count = N - at < piece ? N - at : piece;
        dt_optimizer_apply(optimizer, 3, 0.05, 0.25, count, grad + at, params + at, to + at, parts);
    }
    memcpy(out[0], to, N * sizeof **out);
    for (int i = 0; i < 2; i++)
        memcpy(out[i + 1], state[i], N * sizeof **out);
}

/* The exchange updates slices on any rank: another split may not give other weights. */
static void check_splits(int variant)
{
    static float whole[3][N], part[3][N];
    const struct dt_optimizer optimizer = make(variant / 2, variant % 2 ? 0.9 : 0.0);
    update(&optimizer, 0, N, true, whole);
    static const size_t pieces[] = {N, 1, 7, 64, 1000};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        for (size_t shift = 0; shift < SHIFT; shift += 3) {
            update(&optimizer, shift, pieces[p], shift & 1, part);
            ck_assert(memcmp(whole, part, sizeof whole) == 0);
        }
    }
}

START_TEST(splits_give_the_same_bits)
{
    for (int i = 0; i < 12; i++)
        check_splits(i);
}
END_TEST

START_TEST(states_are_named)
{
    static const struct {
        int kind;
        double momentum;
        const char *name[2];
    } rows[] = {{DT_SGD, 0.0, {NULL}},
                {DT_SGD, 0.9, {"momentum"}},
                {DT_NESTEROV, 0.9, {"momentum"}},
                {DT_ADAGRAD, 0.9, {"square"}},
                {DT_RMSPROP, 0.0, {"square"}},
                {DT_RMSPROP, 0.9, {"square", "momentum"}},
                {DT_ADAM, 0.9, {"mean", "square"}},
                {DT_ADAMW, 0.9, {"mean", "square"}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_optimizer optimizer = make(rows[i].kind, rows[i].momentum);
        int nstate = 0;
        for (int s = 0; s < 2 && rows[i].name[s]; s++, nstate++)
            ck_assert_str_eq(optimizer.state_name[s], rows[i].name[s]);
        ck_assert_int_eq(optimizer.nstate, nstate);
        ck_assert(optimizer.epsilon == (rows[i].kind == DT_ADAGRAD ? 1e-10 : 1e-8));
    }
}
END_TEST

/* The floor of min_lr, the ramp, and the schedule that lasts the whole run. */
START_TEST(schedule_warms_up_and_ends)
{
    struct dt_config config;
    struct dt_schedule schedule;
    EXPECT_OK(dt_config_init(&config));
    config.train.lr = 2.0;
    config.train.min_lr = 0.5;
    config.train.warmup_steps = 4;
    config.train.schedule = DT_COSINE;
    dt_schedule_init(&schedule, &config, 14);
    ck_assert_double_eq(dt_schedule_lr(&schedule, 0), 0.5);
    ck_assert_double_eq(dt_schedule_lr(&schedule, 3), 2.0);
    ck_assert_double_eq(dt_schedule_lr(&schedule, 4), 2.0);
    ck_assert_double_eq_tol(dt_schedule_lr(&schedule, 9), 1.25, 1e-12);
    ck_assert_double_eq(dt_schedule_lr(&schedule, 14), 0.5);
    ck_assert_double_eq(dt_schedule_lr(&schedule, 1000), 0.5);
    config.train.schedule = DT_STEP;
    config.train.decay_steps = 3;
    dt_schedule_init(&schedule, &config, 14);
    ck_assert_double_eq(dt_schedule_lr(&schedule, 6), 2.0);
    ck_assert_double_eq(dt_schedule_lr(&schedule, 7), 0.5);
    dt_config_free(&config);
}
END_TEST

SUITE("optimizer", splits_give_the_same_bits, states_are_named, schedule_warms_up_and_ends)
