/* The arithmetic of training: updates, counts of steps and samples, local batches of async workers,
 * and what an evaluation means for early stopping. The expected numbers are tables that
 * tests/data/make_update.py prints.
 *
 * Fails if the last batch of an epoch is divided as if it were full, the norm is that of the sum
 * instead of the mean, the rate is that of another step, an outer momentum does not look ahead,
 * statistics move by the outer rate, a record that is due ends a round, epochs are rounded down, a
 * stale gradient counts more, a gradient has another replica's rows, or a checkpoint forgets a
 * draw. */
#include "data_files.h"
#include "model_text.h"
#include "train/replicas.h"

#include <limits.h>
#include <math.h>

static const float START[3] = {0.5f, -1.25f, 2.0f};
static const float SUMS[][3] = {{4, -8, 1}, {0.5f, 0.25f, -1}, {-6, 2, 3},
                                {1, 1, 1},  {3, 3, -5},        {2, -1, 0}};
enum { STEPS = COUNT(SUMS) };

/* Weights after each update. */
static const float SYNC_PATH[][3] = {
    {0.428333363f, -1.10416673f, 1.96333334f},  {0.323100059f, -0.948750117f, 1.93740001f},
    {0.620196254f, -0.932296549f, 1.66697093f}, {0.693452534f, -0.984035642f, 1.32000604f},
    {0.427845314f, -1.24504102f, 1.55121878f},  {-0.117449261f, -1.12674495f, 1.60432618f},
};
static const float OUTER_PATH[][3] = {
    {-4.82f, 9.39f, 0.67f},
    {-7.753f, 13.5935f, 1.433f},
    {-2.0977f, 14.87415f, -2.5003f},
    {-2.11793f, 15.956735f, -5.48027f},
    {-5.496137f, 13.5710615f, -0.882243f},
    {-9.3065233f, 14.6439553f, 0.1059813f},
};
static const float ASYNC_PATH[][3] = {
    {0.095f, -0.4375f, 1.88f},
    {-0.13345f, -0.039375f, 1.8512f},
    {-0.0463405f, 0.0934145833f, 1.718288f},
    {0.02973212f, 0.255257167f, 1.28373248f},
    {-0.0718443674f, 0.170612669f, 1.34941895f},
    {-0.148539517f, 0.162414723f, 1.35328938f},
};
static const float ASYNC_CLIPPED[][3] = {
    {0.428333341f, -1.10416668f, 1.96333334f}, {0.363216678f, -1.03270836f, 1.97536667f},
    {0.455597553f, -1.02950923f, 1.89734398f}, {0.522135401f, -1.08193062f, 1.56540485f},
    {0.408327155f, -1.19339735f, 1.65111197f}, {0.321240561f, -1.19242697f, 1.65761109f},
};
/* ---- a job of ten rows ---------------------------------------------------------------------- */

/* Two files of five rows: a, b and a target. With two replicas each has one file. */
static const char FIRST_ROWS[] = "1,2,1\n2,0,3\n0,1,-1\n4,1,2\n-1,2,0\n";
static const char SECOND_ROWS[] = "3,3,1\n5,1,2\n1,1,1\n-2,0,4\n0,7,1\n";

static struct dt_job make_job(int mode, int replicas)
{
    struct dt_job job = {.config = &config, .mode = mode, .replicas = replicas};
    put_text("a.csv", FIRST_ROWS);
    put_text("b.csv", SECOND_ROWS);
    set("data.train=a.csv,b.csv");
    set("data.header=no");
    set("model.task=regress");
    set("model.kind=linear");
    set("train.batch=4");
    set("train.lr=0.4");
    set("train.schedule=cosine");
    set("train.min_lr=0.05");
    set("train.warmup_steps=4");
    set("train.momentum=0.5");
    set("train.weight_decay=0.1");
    job.train = survey();
    EXPECT_OK(dt__plan_create(job.train, 1, replicas, config.train.batch, &job.plan));
    const struct dt_model_desc desc = desc_of("linear", 2, 1, DT_TASK_REGRESS);
    EXPECT_OK(dt__model_create(&desc, &job.model));
    job.last_step = 20;
    EXPECT_OK(dt__rules_init(&job));
    return job;
}

static void free_job(struct dt_job *job)
{
    dt__model_destroy(job->model);
    dt__plan_destroy(job->plan);
    dt__source_destroy(job->train);
    dt__arena_free(&job->arena);
}

static void expect_floats(const float *got, const float *want, size_t n, int step)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(got[i] - want[i]) < 2e-6f, "step %d: float %zu is %.9g, not %.9g", step,
                      i, (double)got[i], (double)want[i]);
}

/* ---- updates -------------------------------------------------------------------------------- */

START_TEST(test_sync_update)
{
    set("train.clip_norm=1.5");
    struct dt_job job = make_job(DT_MODE_SYNC, 1);
    struct dt_group all = {.job = &job, .count = job.replicas};
    float weights[3], momentum[3] = {0}, *vectors[] = {weights, momentum};
    memcpy(weights, START, sizeof weights);
    for (int step = 0; step < STEPS; step++) {
        struct dt_update_info info = {.step = (uint64_t)step, .norm2 = dt__norm2(SUMS[step], 3)};
        dt__update_sync(&all, &info, 0, 1, SUMS[step], vectors, weights);
        dt__update_sync(&all, &info, 1, 2, SUMS[step] + 1, vectors, weights + 1);
        expect_floats(weights, SYNC_PATH[step], 3, step);
    }
    free_job(&job);
}
END_TEST

/* ---- local steps ---------------------------------------------------------------------------- */

static double lamb_direction(int i, const float *weights)
{
    return (i % 3 ? 1 : -1) + config.train.weight_decay * (double)weights[i];
}

/* lamb's trust ratio is that of the whole tensor, even if its norms are measured in blocks. A step
 * is the rate, times the norm of the weights divided by that of the direction, times the direction:
 * at first 1 or -1, plus the decay of the weight. */
START_TEST(test_trust_ratio_is_that_of_whole_tensors)
{
    enum { INPUTS = 2 * DT_MEASURE_BLOCK + 100, PARAMS = INPUTS + 1 };
    static float weights[PARAMS], before[PARAMS], sum[PARAMS], first[PARAMS], second[PARAMS];
    float *vectors[] = {weights, first, second};
    set("train.optimizer=lamb");
    struct dt_job job = make_job(DT_MODE_SYNC, 1);
    set("train.schedule=constant"), set("train.warmup_steps=0"), set("train.weight_decay=0.1");
    const struct dt_model_desc desc = desc_of("linear", INPUTS, 1, DT_TASK_REGRESS);
    dt__model_destroy(job.model);
    EXPECT_OK(dt__model_create(&desc, &job.model));
    EXPECT_OK(dt__rules_init(&job));
    struct dt_group all = {.job = &job, .count = job.replicas};
    struct dt_update_info info = {.step = 0};
    double *measures, norm2 = 0, direction2 = 0;
    EXPECT_OK(dt__alloc(dt__measures(&job), sizeof *measures, "norms", &measures));
    for (int i = 0; i < PARAMS; i++) {
        before[i] = weights[i] = i < DT_MEASURE_BLOCK ? 1 : 3;
        sum[i] = i % 3 ? 2 : -5;
        norm2 += i < INPUTS ? (double)(weights[i] * weights[i]) : 0;
        direction2 += i < INPUTS ? pow(lamb_direction(i, before), 2) : 0;
    }
    for (size_t at = 0, n; at < PARAMS; at += n) {
        n = PARAMS - at < DT_MEASURE_BLOCK ? PARAMS - at : DT_MEASURE_BLOCK;
        dt__measure_sync(&all, &info, at, n, sum + at, vectors, measures);
    }
    info.measures = measures;
    dt__update_sync(&all, &info, 0, PARAMS, sum, vectors, weights);
    const double step = config.train.lr * sqrt(norm2 / direction2);
    for (int i = 0; i < INPUTS; i++)
        ck_assert_double_eq_tol((double)(before[i] - weights[i]), step * lamb_direction(i, before),
                                1e-3 * step);
    dt_free(measures);
    free_job(&job);
}
END_TEST

/* A bias that starts at the baseline gets no decay and no L1 under any rule, while the weights do;
 * lamb's trust ratio, which a zero gradient makes large, does not move it either. */
START_TEST(test_a_bias_at_the_baseline_does_not_decay)
{
    static const char *const rules[] = {"sgd",  "nesterov", "adam",    "adamw",
                                        "ftrl", "lamb",     "rmsprop", "adagrad"};
    const float tiny[3] = {1e-20f, 1e-20f, 1e-20f};
    /* baseline: 1 with the baseline, 2 with train.decay_matrices (not tested for lamb) */
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int baseline = 0; baseline < (strcmp(rules[i], "lamb") ? 3 : 2); baseline++) {
            char rule[40];
            (void)snprintf(rule, sizeof rule, "train.optimizer=%s", rules[i]);
            set(rule), set("train.l1=0.5");
            set(baseline == 1 ? "model.output_bias=baseline" : "model.output_bias=zero");
            set(baseline == 2 ? "train.decay_matrices=yes" : "train.decay_matrices=no");
            struct dt_job job = make_job(DT_MODE_SYNC, 1);
            struct dt_group all = {.job = &job, .count = job.replicas};
            float weights[3] = {0.5f, 0.5f, 2}, sum[3], a[3] = {0}, b[3] = {0};
            float *vectors[] = {weights, a, b};
            struct dt_update_info info = {.step = 0};
            double *measures = NULL;
            memcpy(sum, tiny, sizeof sum);
            if (dt__measures(&job)) {
                EXPECT_OK(dt__alloc(dt__measures(&job), sizeof *measures, "norms", &measures));
                dt__measure_sync(&all, &info, 0, 3, sum, vectors, measures);
                info.measures = measures;
            }
            dt__update_sync(&all, &info, 0, 3, sum, vectors, weights);
            ck_assert_msg(weights[0] < 0.499f, "%s: a weight is %g", rules[i], (double)weights[0]);
            if (baseline)
                ck_assert_float_eq_tol(weights[2], 2, 1e-6f);
            else
                ck_assert_msg(weights[2] < 1.999f, "%s: the bias is %g", rules[i],
                              (double)weights[2]);
            dt_free(measures);
            free_job(&job);
        }
    set("model.output_bias=auto"), set("train.l1=0");
}
END_TEST

START_TEST(test_outer_update)
{
    set("train.outer_lr=0.7");
    set("train.outer_momentum=0.9");
    struct dt_job job = make_job(DT_MODE_SYNC, 2);
    float weights[3], momentum[3] = {0}, out[3], *vectors[] = {weights, momentum};
    memcpy(weights, START, sizeof weights);
    for (int step = 0; step < STEPS; step++) {
        struct dt_update_info info = {.step = (uint64_t)step};
        dt__update_outer(&job, &info, 0, 1, SUMS[step], vectors, out);
        dt__update_outer(&job, &info, 1, 2, SUMS[step] + 1, vectors, out + 1);
        memcpy(weights, out, sizeof weights);
        expect_floats(weights, OUTER_PATH[step], 3, step);
    }
    free_job(&job);
}
END_TEST

/* The weights of train.overlap are ahead by what the next update takes from the momentum, from the
 * first exchange on, which has no differences; the last update takes this back and ends as
 * Nesterov's rule does. Fails if a momentum counts twice or not at all. */
START_TEST(test_outer_update_ahead)
{
    set("train.outer_lr=0.7");
    set("train.outer_momentum=0.9");
    set("train.local_steps=4");
    set("train.overlap=yes");
    struct dt_job job = make_job(DT_MODE_SYNC, 2);
    const float no_differences[3] = {0};
    float weights[3], momentum[3] = {0}, by_hand[3] = {0}, *vectors[] = {weights, momentum};
    memcpy(weights, START, sizeof weights);
    const struct dt_update_info info = {.step = 0};
    for (int step = 0; step < STEPS; step++) {
        /* as at the end of a run that is then continued: the momentum is kept, and its part is
         * subtracted again */
        if (step == 3) {
            memcpy(weights, OUTER_PATH[step - 1], sizeof weights);
            job.pending = false;
            dt__update_outer(&job, &info, 0, 3, no_differences, vectors, weights);
        }
        job.pending = true;
        job.step = step == STEPS - 1 ? job.last_step : 4;
        dt__update_outer(&job, &info, 0, 1, SUMS[step], vectors, weights);
        dt__update_outer(&job, &info, 1, 2, SUMS[step] + 1, vectors, weights + 1);
        for (int i = 0; i < 3; i++) {
            by_hand[i] = 0.9f * by_hand[i] + SUMS[step][i];
            const float ahead = step < STEPS - 1 ? 0.7f * 0.81f * by_hand[i] : 0;
            ck_assert_float_eq_tol(weights[i], OUTER_PATH[step][i] - ahead, 2e-5f);
        }
    }
    free_job(&job);
}
END_TEST

/* Tests the fraction of a group's difference with which the group starts its next round. */
START_TEST(test_own_difference_rate)
{
    struct dt_job job = make_job(DT_MODE_SYNC, 2);
    set("train.outer_lr=0.5");
    set("train.outer_momentum=0.5");
    ck_assert_double_eq_tol(dt__own_rate(&job), 0.75, 1e-12);
    set("train.outer_lr=0.7");
    set("train.outer_momentum=0.9");
    ck_assert_double_eq(dt__own_rate(&job), 1);
    free_job(&job);
}
END_TEST

/* Running statistics are averaged, whatever the outer rate; without outer momentum there is no
 * vector for it. */
START_TEST(test_outer_update_of_states)
{
    enum { MAX_PARAMS = 64 };
    set("train.outer_lr=0.5");
    set("train.outer_momentum=0");
    struct dt_job job = make_job(DT_MODE_SYNC, 2);
    const struct dt_model_desc desc = desc_of("dense 3, batchnorm relu", 2, 1, DT_TASK_REGRESS);
    dt__model_destroy(job.model);
    EXPECT_OK(dt__model_create(&desc, &job.model));
    size_t params = job.model->params, trained = job.model->trained;
    ck_assert(trained < params && params <= MAX_PARAMS);
    float weights[MAX_PARAMS], grad[MAX_PARAMS], out[MAX_PARAMS], *vectors[] = {weights};
    for (size_t i = 0; i < params; i++) {
        weights[i] = (float)i;
        grad[i] = 0.25f;
    }
    struct dt_update_info info = {.step = 0};
    dt__update_outer(&job, &info, 0, params, grad, vectors, out);
    for (size_t i = 0; i < params; i++)
        ck_assert_msg(out[i] == (float)i - (i < trained ? 0.125f : 0.25f), "float %zu is %g", i,
                      (double)out[i]);
    free_job(&job);
}
END_TEST

/* A group's mean counts only the group's rows: here half of all rows, with half of the sums. Its
 * first step starts from the common weights, and a step without rows does not change the
 * weights. */
START_TEST(test_group_update)
{
    struct dt_job job = make_job(DT_MODE_SYNC, 2);
    struct dt_group group = {.job = &job, .count = 1, .start = START},
                    all = {.job = &job, .count = 2};
    float weights[3] = {9, 9, 9}, momentum[3] = {0}, *vectors[] = {weights, momentum};
    float whole[3], whole_momentum[3] = {0}, *whole_vectors[] = {whole, whole_momentum};
    memcpy(whole, START, sizeof whole);
    /* rows per step as in sync: one in every third step, else two */
    for (int step = 0; step < STEPS; step++) {
        struct dt_update_info info = {.step = (uint64_t)step};
        const float half[3] = {SUMS[step][0] / 2, SUMS[step][1] / 2, SUMS[step][2] / 2};
        group.rows = step % 3 == 2 ? 1 : 2;
        dt__update_sync(&group, &info, 0, 2, half, vectors, weights);
        dt__update_sync(&group, &info, 2, 1, half + 2, vectors, weights + 2);
        dt__update_sync(&all, &info, 0, 3, SUMS[step], whole_vectors, whole);
        ck_assert_mem_eq(weights, whole, sizeof weights);
        group.start = NULL;
    }
    group.rows = 0;
    struct dt_update_info info = {.step = STEPS};
    dt__update_sync(&group, &info, 0, 3, SUMS[0], vectors, weights);
    ck_assert_mem_eq(weights, whole, sizeof weights);
    group.start = START;
    dt__update_sync(&group, &info, 0, 3, SUMS[0], vectors, weights);
    ck_assert_mem_eq(weights, START, sizeof weights);
    free_job(&job);
}
END_TEST

/* A group's part is the fraction of samples that its replicas have in a round: of ten rows and
 * three replicas, the first has three. */
START_TEST(test_group_part)
{
    struct dt_job job = make_job(DT_MODE_SYNC, 3);
    const uint64_t epoch = dt__plan_steps_per_epoch(job.plan);
    job.groups = 2;
    const struct dt_group first = {.job = &job, .first = 0, .count = 1},
                          second = {.job = &job, .first = 1, .count = 2};
    ck_assert_double_eq_tol(dt__group_part(&first, 0, epoch), 0.3, 1e-12);
    ck_assert_double_eq_tol(dt__group_part(&second, 0, epoch), 0.7, 1e-12);
    ck_assert_double_eq(dt__group_part(&first, 0, 0), 0);
    free_job(&job);
}
END_TEST

/* Rounds of 4 steps start after step 6, in a run of 20 steps. `passed`: the round that ended has a
 * multiple of 5. */
static const struct {
    uint64_t step, round_end, span_end;
    bool local, passed;
} ROUNDS[] = {
    {0, 1, 5, false, false},  {4, 5, 5, false, false},  {5, 6, 6, false, true},
    {6, 10, 10, true, false}, {10, 14, 18, true, true}, {14, 18, 18, true, false},
    {18, 20, 20, true, true}, {16, 18, 20, true, true},
};

START_TEST(test_rounds)
{
    struct dt_job job = make_job(DT_MODE_SYNC, 2);
    set("train.local_steps=4");
    set("train.local_after=6");
    set("run.log_steps=5");
    set("run.checkpoint_steps=0");
    job.step = ROUNDS[_i].step;
    ck_assert_int_eq(dt__is_local(&job), ROUNDS[_i].local);
    ck_assert_uint_eq(dt__round_end(&job, job.step), ROUNDS[_i].round_end);
    ck_assert_uint_eq(dt__span_end(&job), ROUNDS[_i].span_end);
    ck_assert_int_eq(dt__round_passed(&job, 5), ROUNDS[_i].passed);
    ck_assert_int_eq(dt__log_due(&job), ROUNDS[_i].passed);
    set("train.overlap=yes"); /* a round that leaves an exchange pending is a separate span */
    ck_assert_uint_eq(dt__span_end(&job),
                      job.step < 6 ? ROUNDS[_i].span_end : ROUNDS[_i].round_end);
    job.pending = true;
    ck_assert_uint_eq(dt__span_end(&job), ROUNDS[_i].span_end);
    free_job(&job);
}
END_TEST

static const struct {
    const char *clip;
    const float (*path)[3];
} ASYNC[] = {{"train.clip_norm=0", ASYNC_PATH}, {"train.clip_norm=1.5", ASYNC_CLIPPED}};

/* Applies a gradient as the exchange does: number `step`, of step + 1 rows, computed step % 3
 * updates ago. */
static void apply_async(struct dt_job *job, int step, float *weights, float *const *states)
{
    float grad[3];
    memcpy(grad, SUMS[step], sizeof grad);
    struct dt_gradient_info info = {.rows = (uint64_t)step + 1};
    struct dt_gradient gradient = {
        .info = &info, .grad = grad, .norm2 = dt__norm2(grad, 3), .staleness = (uint64_t)step % 3};
    dt__update_async(job, &gradient, (uint64_t)step, 0, 2, weights, weights, states);
    gradient.grad += 2;
    dt__update_async(job, &gradient, (uint64_t)step, 2, 1, weights + 2, weights + 2, states);
}

START_TEST(test_async_update)
{
    set(ASYNC[_i].clip);
    set("train.staleness_lr=yes");
    struct dt_job job = make_job(DT_MODE_ASYNC, 2);
    float weights[3], momentum[3] = {0}, *states[] = {momentum};
    memcpy(weights, START, sizeof weights);
    for (int step = 0; step < STEPS; step++) {
        apply_async(&job, step, weights, states);
        expect_floats(weights, ASYNC[_i].path[step], 3, step);
    }
    free_job(&job);
}
END_TEST

/* A gradient that touched the second of two rows gives the same norm and weights, to the bit, in
 * full and with only that row. Fails if rows are clipped by a value elsewhere in memory. */
START_TEST(test_async_update_of_rows)
{
    set(ASYNC[_i].clip);
    struct dt_job job = make_job(DT_MODE_ASYNC, 2);
    set("train.momentum=0");
    set("train.weight_decay=0");
    EXPECT_OK(dt__rules_init(&job));
    struct dt_row_range range = {.rows = 2, .width = 1, .touched_alone = true};
    const struct dt_steps steps = {.row_range = &range, .row_ranges = 1};
    job.steps = &steps;
    uint32_t row = 1, count = 1;
    const struct dt_touched touched = {&row, &count};
    float weights[2][3];
    memcpy(weights[0], START, sizeof START);
    memcpy(weights[1], START, sizeof START);
    for (int step = 0; step < STEPS; step++) {
        const float *sum = SUMS[step];
        float grad[3] = {0, sum[1], sum[2]}, grad_rows[3] = {sum[1], NAN, sum[2]};
        const struct dt_gradient_info info = {.rows = (uint64_t)step + 1};
        struct dt_gradient whole = {.info = &info, .grad = grad, .norm2 = dt__norm2(grad, 3)};
        struct dt_gradient rows = {.info = &info,
                                   .grad = grad_rows,
                                   .touched = &touched,
                                   .norm2 = dt__gradient_norm2(&job, &touched, grad_rows)};
        ck_assert_double_eq(rows.norm2, whole.norm2);
        dt__update_async(&job, &whole, (uint64_t)step, 0, 3, weights[0], weights[0], NULL);
        dt__update_rows_async(&job, &rows, (uint64_t)step, &range, &row, 1, weights[1], NULL);
        rows.grad += 2;
        dt__update_async(&job, &rows, (uint64_t)step, 2, 1, weights[1] + 2, weights[1] + 2, NULL);
        ck_assert_mem_eq(weights[1], weights[0], sizeof weights[0]);
    }
    ck_assert(weights[0][1] != START[1] && weights[0][0] == START[0]);
    free_job(&job);
}
END_TEST

START_TEST(test_failed_gradient_changes_nothing)
{
    struct dt_job job = make_job(DT_MODE_ASYNC, 2);
    float weights[3], out[3], grad[3] = {NAN, NAN, NAN}, momentum[3] = {0}, *states[] = {momentum};
    memcpy(weights, START, sizeof weights);
    struct dt_gradient_info info = {.rows = 4, .ask = DT_ASK_ERROR};
    struct dt_gradient gradient = {.info = &info, .grad = grad};
    dt__update_async(&job, &gradient, 3, 0, 3, weights, out, states);
    ck_assert_mem_eq(out, START, sizeof out);
    ck_assert(momentum[0] == 0);
    const struct dt_row_range range = {.rows = 2, .width = 1, .touched_alone = true};
    const uint32_t row = 1;
    dt__update_rows_async(&job, &gradient, 3, &range, &row, 1, weights, states);
    ck_assert_mem_eq(weights, START, sizeof weights);
    free_job(&job);
}
END_TEST

/* After the warm-up each drop multiplies the rate by decay_rate, down to min_lr. */
START_TEST(test_plateau_rate)
{
    struct dt_schedule schedule = {.kind = DT_SCHED_PLATEAU,
                                   .lr = 0.4,
                                   .min_lr = 0.05,
                                   .decay_rate = 0.5,
                                   .warmup_steps = 4,
                                   .decay_steps = 1};
    static const double RATES[] = {0.4, 0.2, 0.1, 0.05, 0.05};
    for (schedule.drops = 0; schedule.drops < 5; schedule.drops++)
        ck_assert_double_eq_tol(dt__schedule_lr(&schedule, 9), RATES[schedule.drops], 1e-15);
    ck_assert_double_eq_tol(dt__schedule_lr(&schedule, 1), 0.2, 1e-15);
}
END_TEST

/* ---- counts --------------------------------------------------------------------------------- */

static const struct {
    int mode;
    const char *epochs, *max_steps;
    uint64_t last;
} ENDS[] = {
    {DT_MODE_SYNC, "1", "-1", 3},
    {DT_MODE_SYNC, "1.5", "-1", 5},
    {DT_MODE_SYNC, "0.34", "-1", 2},
    {DT_MODE_SYNC, "2.34", "7", 7},
    {DT_MODE_SYNC, "2.34", "9", 8},
    {DT_MODE_SYNC, "0", "-1", 0},
    {DT_MODE_ASYNC, "1.5", "-1", 9},
    {DT_MODE_ASYNC, "1.4", "-1", 9},
    {DT_MODE_SYNC, "0.333333333333", "-1", 1},
};

START_TEST(test_fraction_of_an_epoch_is_rounded_up)
{
    struct dt_job job = make_job(ENDS[_i].mode, 2);
    char text[64];
    snprintf(text, sizeof text, "train.epochs=%s", ENDS[_i].epochs);
    set(text);
    snprintf(text, sizeof text, "train.max_steps=%s", ENDS[_i].max_steps);
    set(text);
    ck_assert_uint_eq(dt__last_step(&job), ENDS[_i].last);
    free_job(&job);
}
END_TEST

START_TEST(test_samples)
{
    static const uint64_t SAMPLES[] = {0, 4, 8, 10, 14, 18, 20};
    struct dt_job job = make_job(DT_MODE_SYNC, 2);
    for (uint64_t step = 0; step < COUNT(SAMPLES); step++)
        ck_assert_uint_eq(dt__samples_at(&job, step), SAMPLES[step]);
    job.mode = DT_MODE_ASYNC; /* a step is a gradient of one of two replicas */
    ck_assert_uint_eq(dt__samples_at(&job, 12), 20);
    free_job(&job);
}
END_TEST

/* If more samples were used than planned, the time left is 0, not that of 2^64 samples. */
START_TEST(test_time_left)
{
    struct dt_job job = make_job(DT_MODE_ASYNC, 2);
    job.last_step = 12;
    ck_assert_double_eq(dt__secs_left(&job, 10, 5), 2);
    ck_assert_double_eq(dt__secs_left(&job, 20, 5), 0);
    ck_assert_double_eq(dt__secs_left(&job, 21, 5), 0);
    ck_assert_double_eq(dt__secs_left(&job, 10, 0), 0);
    free_job(&job);
}
END_TEST

/* ---- a worker's gradients ------------------------------------------------------------------- */

struct fixture {
    struct dt_job job;
    struct dt_worker worker;
};

static struct fixture make_worker(int mode)
{
    static const struct dt_steps no_steps;
    struct fixture f = {.job = make_job(mode, 2)};
    f.job.steps = &no_steps;
    f.worker = (struct dt_worker){.first = 0, .count = 2, .readers = 1};
    EXPECT_OK(dt__network_create(f.job.model, 4, DT_PRECISION_F32, &f.worker.network));
    EXPECT_OK(dt__alloc(1, sizeof *f.worker.reader, "reader", &f.worker.reader));
    EXPECT_OK(dt__loader_create(&config, f.job.train, f.job.plan, 0, 2, 1, 4, 0,
                                &f.worker.reader->loader));
    EXPECT_OK(dt__alloc(2, sizeof(double), "losses", &f.worker.loss));
    EXPECT_OK(dt__alloc(2, sizeof(uint64_t), "draws", &f.worker.draws));
    return f;
}

static void free_worker(struct fixture *f)
{
    dt__loader_destroy(f->worker.reader->loader);
    dt_free(f->worker.reader);
    dt__network_destroy(f->worker.network);
    dt_free(f->worker.loss);
    dt_free(f->worker.draws);
    free_job(&f->job);
}

/* Weights 1, -1, bias 0.5: over an epoch, a replica's gradients are those of the replica's rows,
 * each once. By hand, errors e = a - b + 0.5 - y; loss e^2, gradient 2 e (a, b, 1):
 *   first  -1.5 -0.5 0.5 1.5 -2.5; second  -0.5 2.5 -0.5 -5.5 -7.5 */
START_TEST(test_async_local_batches)
{
    static const float WEIGHTS[3] = {1, -1, 0.5f};
    static const float FIRST_SUM[3] = {12, -12, -5}, SECOND_SUM[3] = {43, -104, -23};
    struct fixture f = make_worker(DT_MODE_ASYNC);
    float sum[2][3] = {{0}}, grad[3];
    uint64_t rows[2] = {0};
    double loss[2] = {0};
    for (int i = 0; i < 6; i++) {
        struct dt_gradient_info info = dt__async_gradient(
            &f.job, &f.worker, dt__next_replica(&f.job, &f.worker), WEIGHTS, grad, NULL);
        ck_assert_int_eq(info.replica, i % 2);
        ck_assert_uint_le(info.rows, 3);
        rows[info.replica] += info.rows;
        loss[info.replica] += info.loss;
        for (int j = 0; j < 3; j++)
            sum[info.replica][j] += grad[j];
    }
    int first = loss[0] < loss[1] ? 0 : 1;
    ck_assert_uint_eq(rows[0], 5);
    ck_assert_uint_eq(rows[1], 5);
    expect_floats(sum[first], FIRST_SUM, 3, 0);
    expect_floats(sum[1 - first], SECOND_SUM, 3, 0);
    ck_assert_double_eq_tol(loss[first], 11.25, 1e-5);
    ck_assert_double_eq_tol(loss[1 - first], 93.25, 1e-4);
    free_worker(&f);
}
END_TEST

/* The replica with the fewest draws is next, whatever the history and the number of replicas. */
START_TEST(test_next_replica)
{
    struct fixture f = make_worker(DT_MODE_ASYNC);
    ck_assert_int_eq(dt__next_replica(&f.job, &f.worker), 0);
    f.worker.draws[0] = 1;
    ck_assert_int_eq(dt__next_replica(&f.job, &f.worker), 1);
    f.worker.draws[0] = (uint64_t)INT_MAX + 1;
    f.worker.draws[1] = (uint64_t)INT_MAX + 2;
    ck_assert_int_eq(dt__next_replica(&f.job, &f.worker), 0);
    f.worker.draws[0] += 2;
    ck_assert_int_eq(dt__next_replica(&f.job, &f.worker), 1);
    free_worker(&f);
}
END_TEST

/* A checkpoint's counts of applied gradients: sums, and each replica's next draw. */
START_TEST(test_applied_gradients_are_counted)
{
    uint64_t draws[2] = {5, 7};
    double losses[2] = {0};
    struct dt_bank bank = {
        .state = {.step = 12, .samples = 100, .draws = draws, .loss_sums = losses}};
    const struct dt_checkpoint *state = &bank.state;
    const struct dt_staleness *staleness = &bank.log.staleness;
    struct dt_applied first = {{.replica = 1, .draw = 7, .rows = 3, .loss = 1.5}, 4, 0, 0};
    struct dt_applied second = {{.replica = 1, .draw = 9, .rows = 2, .loss = 1}, 1, 0, 0};
    struct dt_applied bad = {{.replica = 0, .draw = 5, .rows = 2, .ask = DT_ASK_ERROR}, 1, 0, 0};
    dt__log_applied(&bank, &first);
    ck_assert_uint_eq(draws[1], 8);
    dt__log_applied(&bank, &second);
    dt__log_applied(&bank, &bad);
    ck_assert_uint_eq(state->step, 15);
    ck_assert_uint_eq(state->samples, 105);
    ck_assert_double_eq(state->loss_rows, 5);
    ck_assert_double_eq(losses[1], 2.5);
    ck_assert_uint_eq(draws[0], 5);
    ck_assert_uint_eq(draws[1], 10);
    ck_assert_double_eq(staleness->sum, 5);
    ck_assert_uint_eq(staleness->max, 4);
    ck_assert_uint_eq(staleness->count, 2);
}
END_TEST

/* ---- evaluations ---------------------------------------------------------------------------- */

/* Evaluations in order: step, rmse, whether it is an extra one; then what is expected after it. */
static const struct {
    uint64_t step;
    double rmse;
    bool extra, better, stop;
    int64_t since, drops;
} EVALUATIONS[] = {
    {10, 3, false, true, false, 0, 0},    {20, 4, false, false, false, 1, 0},
    {20, 4, false, false, false, 1, 0}, /* evaluated again after a resume */
    {25, 3, true, false, false, 1, 0},    {30, 2, false, true, false, 0, 0},
    {30, 2, false, false, false, 0, 0},   {40, 2, false, false, false, 1, 0},
    {50, NAN, false, false, false, 2, 1}, {50, NAN, false, false, false, 2, 1},
    {60, 2.5, false, false, true, 3, 1},  {70, 2.5, false, false, true, 4, 2},
    {80, 1, false, true, false, 0, 2},
};

/* After a failed save, time ends no span until the next attempt is due. */
START_TEST(test_a_failed_save_waits)
{
    struct dt_job job = make_job(DT_MODE_SYNC, 1);
    const struct dt_steps no_steps = {0};
    job.steps = &no_steps;
    struct dt_bank bank = {.job = &job, .files.saved_at = dt__clock_secs() - 1};
    struct dt_writer_spec spec = {.dir = "ckpt"};
    set("run.checkpoint_secs=0.001");
    set("run.checkpoint_steps=1");
    EXPECT_OK(dt__writer_create(&spec, &bank.files.writer));
    ck_assert(dt__save_time_due(&bank) && dt__save_due(&bank));
    bank.files.retry_at = dt__clock_secs() + 100;
    ck_assert(!dt__save_time_due(&bank) && !dt__save_due(&bank));
    dt__writer_destroy(bank.files.writer);
    free_job(&job);
}
END_TEST

START_TEST(test_patience)
{
    struct dt_job job = make_job(DT_MODE_SYNC, 1);
    set("eval.patience=3");
    set("train.schedule=plateau");
    set("train.plateau_evals=2");
    const struct dt_best *best = &job.best;
    for (size_t i = 0; i < COUNT(EVALUATIONS); i++) {
        struct dt_evaluation result = {.step = EVALUATIONS[i].step, .extra = EVALUATIONS[i].extra};
        result.values.rmse = EVALUATIONS[i].rmse;
        bool better;
        EXPECT_OK(dt__evaluation_judge(&job, &result, &better));
        ck_assert_msg(better == EVALUATIONS[i].better && best->stop == EVALUATIONS[i].stop &&
                          best->since == EVALUATIONS[i].since &&
                          best->drops == EVALUATIONS[i].drops,
                      "evaluation %zu: better %d, since %lld, stop %d, drops %lld", i, better,
                      (long long)best->since, best->stop, (long long)best->drops);
    }
    ck_assert_uint_eq(best->step, 80);
    free_job(&job);
}
END_TEST

/* Patience counts only after 60 % of the steps if the rate falls with the steps. */
START_TEST(test_patience_waits_for_the_rate)
{
    static const struct {
        const char *schedule;
        int64_t since; /* after evaluations at 1 to 10 tenths of the run; the first is the best */
    } schedules[] = {
        {"train.schedule=cosine", 4}, {"train.schedule=linear", 4}, {"train.schedule=constant", 9}};
    for (size_t i = 0; i < COUNT(schedules); i++) {
        struct dt_job job = make_job(DT_MODE_SYNC, 1);
        bool better;
        job.last_step = 1000;
        set(schedules[i].schedule);
        EXPECT_OK(dt__rules_init(&job));
        for (uint64_t step = 100; step <= 1000; step += 100) {
            struct dt_evaluation result = {.step = step};
            result.values.rmse = (double)step;
            EXPECT_OK(dt__evaluation_judge(&job, &result, &better));
        }
        ck_assert_msg(job.best.since == schedules[i].since, "%s: %lld", schedules[i].schedule,
                      (long long)job.best.since);
        free_job(&job);
    }
}
END_TEST

/* The best of the evaluations with the same metric is the one with the lowest loss; patience is not
 * reset by it. */
START_TEST(test_ties)
{
    struct dt_job job = make_job(DT_MODE_SYNC, 1);
    static const struct {
        double loss;
        bool better;
    } ties[] = {{0.5, true}, {0.6, false}, {0.4, true}, {0.4, false}, {NAN, false}};
    const struct dt_best *best = &job.best;
    set("train.schedule=constant");
    EXPECT_OK(dt__rules_init(&job));
    for (size_t i = 0; i < COUNT(ties); i++) {
        struct dt_evaluation result = {.step = 10 + i};
        result.values.rmse = 2;
        result.values.loss = ties[i].loss;
        bool better;
        EXPECT_OK(dt__evaluation_judge(&job, &result, &better));
        ck_assert_msg(better == ties[i].better && best->since == (int64_t)i, "tie %zu: %d, %lld", i,
                      better, (long long)best->since);
    }
    ck_assert_uint_eq(best->step, 12);
    free_job(&job);
}
END_TEST

DATA_SUITE("train", {test_ties, 1}, {test_plateau_rate, 1}, {test_a_failed_save_waits, 1},
           {test_sync_update, 1}, {test_trust_ratio_is_that_of_whole_tensors, 1},
           {test_a_bias_at_the_baseline_does_not_decay, 1}, {test_outer_update, 1},
           {test_outer_update_of_states, 1}, {test_outer_update_ahead, 1},
           {test_own_difference_rate, 1}, {test_group_update, 1}, {test_group_part, 1},
           {test_rounds, COUNT(ROUNDS)}, {test_async_update, COUNT(ASYNC)},
           {test_async_update_of_rows, COUNT(ASYNC)}, {test_failed_gradient_changes_nothing, 1},
           {test_fraction_of_an_epoch_is_rounded_up, COUNT(ENDS)}, {test_samples, 1},
           {test_time_left, 1}, {test_async_local_batches, 1}, {test_next_replica, 1},
           {test_applied_gradients_are_counted, 1}, {test_patience, 1},
           {test_patience_waits_for_the_rate, 1})
