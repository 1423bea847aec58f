/* Optimizers: equal bits however the vector is split or aligned, in place or not; states, defaults
 * and schedules. test_golden.c compares the numbers with PyTorch. */
#include "model/model.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5003, SHIFT = 16, CAPACITY = N + SHIFT };

static struct dt_optimizer make(int kind, double momentum)
{
    struct dt_config config;
    struct dt_optimizer optimizer;
    EXPECT_OK(dt__config_init(&config));
    config.train.optimizer = kind;
    config.train.momentum = momentum;
    config.train.weight_decay = 0.01;
    dt__optimizer_init(&optimizer, &config, false);
    dt__config_free(&config);
    return optimizer;
}

static void fill(float *values, uint64_t stream)
{
    struct dt_rng rng = dt__rng_make(3, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)dt__rng_normal(&rng, i);
}

/* Applies one update to fixed values, which are `shift` floats off alignment and split into ranges
 * of `length`. out: parameters, then states. */
static void update(const struct dt_optimizer *optimizer, size_t shift, size_t length, bool in_place,
                   float out[3][N])
{
    static float memory[5][CAPACITY];
    float *grad = memory[0] + shift, *params = memory[1] + shift;
    float *to = in_place ? params : memory[2] + (shift * 7) % SHIFT;
    float *state[2] = {memory[3] + (shift * 3) % SHIFT, memory[4] + (shift * 5) % SHIFT};
    fill(grad, 1), fill(params, 2), fill(state[0], 3), fill(state[1], 4);
    for (size_t i = 0; i < N; i++)
        state[0][i] = fabsf(state[0][i]), state[1][i] = fabsf(state[1][i]);
    const struct dt_factors factors = dt__optimizer_factors(optimizer, 3, 0.05, 0.25);
    for (size_t at = 0; at < N; at += length) {
        float *parts[2] = {state[0] + at, state[1] + at};
        size_t count = N - at < length ? N - at : length;
        dt__optimizer_apply(optimizer, &factors, count, grad + at, params + at, to + at, parts);
    }
    memcpy(out[0], to, N * sizeof **out);
    for (int i = 0; i < 2; i++)
        memcpy(out[i + 1], state[i], N * sizeof **out);
}

/* Any rank may update any slice, so another split must not give other weights. */
static void check_splits(int variant)
{
    static float whole[3][N], part[3][N];
    const struct dt_optimizer optimizer = make(variant / 2, variant % 2 ? 0.9 : 0.0);
    update(&optimizer, 0, N, true, whole);
    static const size_t lengths[] = {N, 1, 7, 64, 1000};
    for (size_t p = 0; p < sizeof lengths / sizeof *lengths; p++) {
        for (size_t shift = 0; shift < SHIFT; shift += 3) {
            update(&optimizer, shift, lengths[p], shift & 1, part);
            ck_assert(memcmp(whole, part, sizeof whole) == 0);
        }
    }
}

START_TEST(splits_give_the_same_bits)
{
    for (int i = 0; i < 2 * (DT_OPT_LAMB + 1); i++)
        check_splits(i);
}
END_TEST

START_TEST(states_are_named)
{
    static const struct {
        int kind;
        double momentum;
        const char *name[2];
    } rows[] = {{DT_OPT_SGD, 0.0, {NULL}},
                {DT_OPT_SGD, 0.9, {"momentum"}},
                {DT_OPT_NESTEROV, 0.9, {"momentum"}},
                {DT_OPT_ADAGRAD, 0.9, {"square"}},
                {DT_OPT_RMSPROP, 0.0, {"square"}},
                {DT_OPT_RMSPROP, 0.9, {"square", "momentum"}},
                {DT_OPT_ADAM, 0.9, {"mean", "square"}},
                {DT_OPT_ADAMW, 0.9, {"mean", "square"}},
                {DT_OPT_FTRL, 0.9, {"z", "square"}},
                {DT_OPT_LAMB, 0.9, {"mean", "square"}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_optimizer optimizer = make(rows[i].kind, rows[i].momentum);
        int nstate = 0;
        for (int s = 0; s < 2 && rows[i].name[s]; s++, nstate++)
            ck_assert_str_eq(optimizer.state_name[s], rows[i].name[s]);
        ck_assert_int_eq(optimizer.nstate, nstate);
        static const double epsilons[DT_OPT_LAMB + 1] = {
            [DT_OPT_ADAGRAD] = 1e-10, [DT_OPT_FTRL] = 1, [DT_OPT_LAMB] = 1e-6};
        const double epsilon = epsilons[rows[i].kind];
        ck_assert(optimizer.epsilon == (epsilon > 0 ? epsilon : 1e-8));
    }
}
END_TEST

/* train.epsilon is for train.optimizer; another optimizer of the wide part has its own default. */
START_TEST(the_wide_part_has_its_own_epsilon)
{
    static const struct {
        int main_part, wide;
        double given, main_epsilon, wide_epsilon;
    } rows[] = {{DT_OPT_ADAM, DT_OPT_FTRL, -1, 1e-8, 1},
                {DT_OPT_ADAM, DT_OPT_FTRL, 0.5, 0.5, 1},
                {DT_OPT_ADAM, DT_OPT_ADAGRAD, 0.5, 0.5, 1e-10},
                {DT_OPT_ADAGRAD, DT_OPT_ADAGRAD, 0.5, 0.5, 0.5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_config config;
        struct dt_optimizer main_part, wide;
        EXPECT_OK(dt__config_init(&config));
        config.train.optimizer = rows[i].main_part;
        config.train.wide_optimizer = 1 + rows[i].wide;
        config.train.epsilon = rows[i].given;
        dt__optimizer_init(&main_part, &config, false);
        dt__optimizer_init(&wide, &config, true);
        ck_assert(main_part.epsilon == rows[i].main_epsilon &&
                  wide.epsilon == rows[i].wide_epsilon);
        dt__config_free(&config);
    }
}
END_TEST

/* Follows algorithm 1 of McMahan et al. 2013, line by line, in double. Fails if a weight is
 * computed from the old z, L1 has the wrong sign, the rate follows from the sum after instead of
 * before the gradient, an initial value other than 0 is lost, or a weight moves without a
 * gradient. */
START_TEST(ftrl_agrees_with_the_paper)
{
    enum { COUNT = 64, STEPS = 30, IDLE = 5 };
    const double alpha = 0.1, beta = 1, l1 = _i ? 0.4 : 0, l2 = 0.01, scale = 0.25;
    double z[COUNT], n[COUNT] = {0}, w[COUNT];
    float grad[COUNT], params[COUNT], a[COUNT] = {0}, b[COUNT] = {0}, *state[2] = {a, b};
    struct dt_optimizer optimizer = make(DT_OPT_FTRL, 0.9);
    struct dt_rng rng = dt__rng_make(8, DT_STREAM_TEST, (uint64_t)_i, 0);
    int zeros = 0;
    optimizer.l1 = l1;
    for (int i = 0; i < COUNT; i++) {
        w[i] = i % 2 ? 0.01 * i : 0; /* the initial z is the one that gives the weight w */
        params[i] = (float)w[i];
        z[i] = -w[i] * (beta / alpha + l2);
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            grad[i] = i < IDLE ? 0 : (float)dt__rng_normal(&rng, step * COUNT + (uint64_t)i);
        const struct dt_factors factors = dt__optimizer_factors(&optimizer, step, alpha, scale);
        dt__optimizer_apply(&optimizer, &factors, COUNT, grad, params, params, state);
        for (int i = IDLE; i < COUNT; i++) {
            double g = scale * (double)grad[i];
            double sigma = (sqrt(n[i] + g * g) - sqrt(n[i])) / alpha;
            z[i] += g - sigma * w[i];
            n[i] += g * g;
            w[i] = fabs(z[i]) <= l1
                       ? 0
                       : -(z[i] - (z[i] < 0 ? -l1 : l1)) / ((beta + sqrt(n[i])) / alpha + l2);
            zeros += w[i] == 0;
        }
        for (int i = 0; i < COUNT; i++)
            ck_assert_double_eq_tol((double)params[i], w[i], 2e-6);
    }
    for (int i = 0; i < IDLE; i++)
        ck_assert(params[i] == (float)(i % 2 ? 0.01 * i : 0) && a[i] == 0 && b[i] == 0);
    ck_assert(_i ? zeros > 100 : zeros == 0);
}
END_TEST

/* Fails if tensors read the state of the other optimizer under a wrong name, or if an optimizer
 * uses another vector than the one it was given. */
START_TEST(two_optimizers_share_their_vectors)
{
    static const struct {
        int first, second;
        double momentum;
        const char *name[DT_MAX_STATE]; /* names of the vectors; NULL after the last one */
        int vector[DT_MAX_STATE];       /* vectors that hold the second optimizer's states */
    } rows[] = {
        {DT_OPT_ADAGRAD, DT_OPT_FTRL, 0, {"square", "z"}, {1, 0}},
        {DT_OPT_SGD, DT_OPT_FTRL, 0, {"z", "square"}, {0, 1}},
        {DT_OPT_SGD, DT_OPT_ADAGRAD, 0.9, {"momentum", "square"}, {1, 0}},
        {DT_OPT_ADAM, DT_OPT_FTRL, 0, {"state0", "square"}, {0, 1}},
        {DT_OPT_FTRL, DT_OPT_SGD, 0, {"z", "square"}, {0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_optimizer first = make(rows[i].first, rows[i].momentum);
        struct dt_optimizer second = make(rows[i].second, 0), alone = second;
        float grad[3] = {0.5f, -1, 2}, w[3] = {1, 2, 3}, v[3] = {1, 2, 3};
        float a[3] = {0}, b[3] = {0}, c[3] = {0}, d[3] = {0};
        float *shared[] = {a, b}, *separate[] = {c, d};
        dt__optimizer_share(&first, &second);
        for (int s = 0; s < first.nstate; s++)
            ck_assert_str_eq(first.state_name[s], rows[i].name[s]);
        ck_assert_int_eq(first.nstate, (rows[i].name[0] != NULL) + (rows[i].name[1] != NULL));
        for (uint64_t step = 0; step < 3; step++) {
            const struct dt_factors factors = dt__optimizer_factors(&second, step, 0.1, 1);
            dt__optimizer_apply(&second, &factors, 3, grad, w, w, shared);
            dt__optimizer_apply(&alone, &factors, 3, grad, v, v, separate);
        }
        ck_assert_mem_eq(w, v, sizeof w);
        for (int s = 0; s < second.states; s++) {
            ck_assert_int_eq(second.vector[s], rows[i].vector[s]);
            ck_assert_mem_eq(shared[second.vector[s]], separate[s], sizeof a);
        }
    }
}
END_TEST

/* Tests the minimum min_lr, the warm-up, and a schedule over the whole run. */
START_TEST(schedule_warms_up_and_ends)
{
    struct dt_config config;
    struct dt_schedule schedule;
    EXPECT_OK(dt__config_init(&config));
    config.train.lr = 2.0;
    config.train.min_lr = 0.5;
    config.train.warmup_steps = 4;
    config.train.schedule = DT_SCHED_COSINE;
    dt__schedule_init(&schedule, &config, 14);
    ck_assert_double_eq(dt__schedule_lr(&schedule, 0), 0.5);
    ck_assert_double_eq(dt__schedule_lr(&schedule, 3), 2.0);
    ck_assert_double_eq(dt__schedule_lr(&schedule, 4), 2.0);
    ck_assert_double_eq_tol(dt__schedule_lr(&schedule, 9), 1.25, 1e-12);
    ck_assert_double_eq(dt__schedule_lr(&schedule, 14), 0.5);
    ck_assert_double_eq(dt__schedule_lr(&schedule, 1000), 0.5);
    config.train.schedule = DT_SCHED_STEP;
    config.train.decay_steps = 3;
    dt__schedule_init(&schedule, &config, 14);
    ck_assert_double_eq(dt__schedule_lr(&schedule, 6), 2.0);
    ck_assert_double_eq(dt__schedule_lr(&schedule, 7), 0.5);
    dt__config_free(&config);
}
END_TEST

int main(void)
{
    TCase *test_case = tcase_create("optimizer");
    tcase_add_test(test_case, splits_give_the_same_bits);
    tcase_add_test(test_case, states_are_named);
    tcase_add_test(test_case, the_wide_part_has_its_own_epsilon);
    tcase_add_loop_test(test_case, ftrl_agrees_with_the_paper, 0, 2);
    tcase_add_test(test_case, two_optimizers_share_their_vectors);
    tcase_add_test(test_case, schedule_warms_up_and_ends);
    return suite_run_case("optimizer", test_case);
}
