/* Optimizers: each is a row of the table below. A rule computes the new value of one parameter from
 * its gradient. No sum runs over elements, so any split of the vector gives the same bits. An
 * optimizer over whole tensors (LAMB) has two rules: the first turns gradients into directions; the
 * second moves weights along the directions, at a rate that depends on the norms of the tensor's
 * weights and directions. The results are PyTorch's where it has the optimizer. Schedules define
 * the rate of each step. */
#include "base/clones.h"
#include "base/elementary.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* Defines a rule, which returns the new value of parameter i from its value w and its gradient sum
 * g, and updates the parameter's states a[i] and b[i]. */
#define UNUSED __attribute__((unused))
#define RULE(name)                                                                                 \
    static inline float name(const struct dt_factors *f, float g, float w, UNUSED float *a,        \
                             UNUSED float *b, UNUSED size_t i)

static inline float penalized(const struct dt_factors *f, float g, float w)
{
    return g * f->scale + f->decay * w;
}

RULE(sgd)
{
    return w - f->rate * penalized(f, g, w);
}

RULE(heavy_ball)
{
    a[i] = f->keep1 * a[i] + penalized(f, g, w);
    return w - f->rate * a[i];
}

/* Source: Sutskever et al. 2013, as PyTorch rewrites it. */
RULE(nesterov)
{
    float gradient = penalized(f, g, w);
    a[i] = f->keep1 * a[i] + gradient;
    return w - f->rate * (gradient + f->keep1 * a[i]);
}

/* Source: Duchi et al. 2011. */
RULE(adagrad)
{
    float gradient = penalized(f, g, w);
    a[i] += gradient * gradient;
    return w - f->rate * gradient / (sqrtf(a[i]) + f->epsilon);
}

/* Source: Hinton's lecture 6e, 2012. */
RULE(rmsprop)
{
    float gradient = penalized(f, g, w);
    a[i] = f->keep1 * a[i] + f->add1 * gradient * gradient;
    return w - f->rate * gradient / (sqrtf(a[i]) + f->epsilon);
}

RULE(rmsprop_momentum)
{
    float gradient = penalized(f, g, w);
    a[i] = f->keep1 * a[i] + f->add1 * gradient * gradient;
    b[i] = f->keep2 * b[i] + gradient / (sqrtf(a[i]) + f->epsilon);
    return w - f->rate * b[i];
}

/* Returns Adam's step for a gradient and a rate. Source: Kingma and Ba 2015, algorithm 1. */
static inline float adam_step(const struct dt_factors *f, float rate, float gradient, float *a,
                              float *b)
{
    *a = f->keep1 * *a + f->add1 * gradient;
    *b = f->keep2 * *b + f->add2 * gradient * gradient;
    return rate * *a / (sqrtf(*b) * f->unbias + f->epsilon);
}

RULE(adam)
{
    return w - adam_step(f, f->rate, penalized(f, g, w), &a[i], &b[i]);
}

/* Source: Loshchilov and Hutter 2019, algorithm 2. */
RULE(adamw)
{
    return f->decay * w - adam_step(f, f->rate, g * f->scale, &a[i], &b[i]);
}

/* FTRL-Proximal. In the paper's names, alpha is the rate, beta is epsilon, z is a[i] and n is b[i].
 * A weight without a nonzero gradient so far stays unchanged, as in the paper. If a weight's
 * initial value is not 0, its first z is the one that would yield this value without L1. So from
 * the first gradient on, L1 draws the weight to 0. Source: McMahan et al. 2013, "Ad click
 * prediction: a view from the trenches", algorithm 1. */
RULE(ftrl)
{
    const float gradient = g * f->scale, before = b[i], n = before + gradient * gradient;
    const float start = -w * (f->epsilon / f->rate + f->decay);
    const float sigma = (sqrtf(n) - sqrtf(before)) / f->rate;
    const float z = (before == 0.0f && a[i] == 0.0f ? start : a[i]) + (gradient - sigma * w);
    const float excess = z - copysignf(f->l1, z);
    const float fresh = -excess / ((f->epsilon + sqrtf(n)) / f->rate + f->decay);
    a[i] = gradient == 0.0f ? a[i] : z;
    b[i] = n;
    return gradient == 0.0f ? w : fabsf(z) <= f->l1 ? 0.0f : fresh;
}

/* Returns Adam's direction plus weight decay. Source: You et al. 2020, algorithm 2. */
RULE(lamb_direction)
{
    return adam_step(f, f->unbias1, g * f->scale, &a[i], &b[i]) + f->decay * w;
}

RULE(lamb)
{
    return w - f->rate * g;
}

/* Loops of a rule over n parameters, vectorised, in one pass over memory: in_place updates w, and
 * across writes to out. */
struct loops {
    void (*in_place)(const struct dt_factors *f, size_t n, const float *restrict g,
                     float *restrict w, float *restrict a, float *restrict b);
    void (*across)(const struct dt_factors *f, size_t n, const float *restrict g,
                   const float *restrict w, float *restrict out, float *restrict a,
                   float *restrict b);
    /* rules over whole tensors: the loops that compute directions; else NULL */
    const struct loops *direction;
};

#define LOOPS(rule) LOOPS_DIRECTED(rule, NULL)
#define LOOPS_DIRECTED(rule, direction)                                                            \
    DT__CLONES static void rule##_in_place(const struct dt_factors *f, size_t n,                   \
                                           const float *restrict g, float *restrict w,             \
                                           float *restrict a, float *restrict b)                   \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            w[i] = rule(f, g[i], w[i], a, b, i);                                                   \
    }                                                                                              \
    DT__CLONES static void rule##_across(                                                          \
        const struct dt_factors *f, size_t n, const float *restrict g, const float *restrict w,    \
        float *restrict out, float *restrict a, float *restrict b)                                 \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = rule(f, g[i], w[i], a, b, i);                                                 \
    }                                                                                              \
    static const struct loops rule##_loops = {rule##_in_place, rule##_across, direction};
LOOPS(sgd)
LOOPS(heavy_ball)
LOOPS(nesterov)
LOOPS(adagrad)
LOOPS(rmsprop)
LOOPS(rmsprop_momentum)
LOOPS(adam)
LOOPS(adamw)
LOOPS(ftrl)
LOOPS(lamb_direction)
LOOPS_DIRECTED(lamb, &lamb_direction_loops)

/* ---- factors -------------------------------------------------------------------------------- */

static void rmsprop_factors(const struct dt_optimizer *o, uint64_t step, double lr,
                            struct dt_factors *f)
{
    (void)step, (void)lr;
    f->keep1 = (float)o->alpha, f->add1 = (float)(1.0 - o->alpha);
    f->keep2 = (float)o->momentum;
}

static void adam_factors(const struct dt_optimizer *o, uint64_t step, double lr,
                         struct dt_factors *f)
{
    const double t = (double)step + 1.0;
    f->keep1 = (float)o->beta1, f->add1 = (float)(1.0 - o->beta1);
    f->keep2 = (float)o->beta2, f->add2 = (float)(1.0 - o->beta2);
    f->rate = (float)(lr / (1.0 - dt__elementary->pow(o->beta1, t)));
    f->unbias = (float)(1.0 / sqrt(1.0 - dt__elementary->pow(o->beta2, t)));
}

static void lamb_factors(const struct dt_optimizer *o, uint64_t step, double lr,
                         struct dt_factors *f)
{
    adam_factors(o, step, lr, f);
    f->rate = (float)lr;
    f->unbias1 = (float)(1.0 / (1.0 - dt__elementary->pow(o->beta1, (double)step + 1.0)));
}

static void adamw_factors(const struct dt_optimizer *o, uint64_t step, double lr,
                          struct dt_factors *f)
{
    adam_factors(o, step, lr, f);
    f->decay = (float)(1.0 - lr * o->weight_decay);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* A rule of an optimizer: the one for momentum 0, or the one for momentum above 0. */
struct variant {
    const struct loops *loops;
    const char *state[DT_MAX_STATE]; /* names, NULL after the last */
    /* when a gradient of 0 changes neither the weight nor its states: never, if there is no weight
     * decay, or always */
    enum sparse { SPARSE_NEVER, SPARSE_WITHOUT_DECAY, SPARSE } sparse;
};

static const struct row {
    double epsilon; /* default of train.epsilon */
    /* Sets the factors that not all rules have. Those of all rules (scale, decay, rate, epsilon,
     * l1, and keep1 = momentum) are set before; the function may replace them. NULL: there are no
     * others. */
    void (*factors)(const struct dt_optimizer *o, uint64_t step, double lr, struct dt_factors *f);
    struct variant plain, momentum; /* momentum.loops NULL: momentum is ignored */
    bool own_rates;
} ROWS[] = {
    [DT_OPT_SGD] = {1e-8, .plain = {&sgd_loops, {0}, SPARSE_WITHOUT_DECAY},
                    .momentum = {&heavy_ball_loops, {"momentum"}, SPARSE_NEVER}},
    [DT_OPT_NESTEROV] = {1e-8, .plain = {&sgd_loops, {0}, SPARSE_WITHOUT_DECAY},
                         .momentum = {&nesterov_loops, {"momentum"}, SPARSE_NEVER}},
    [DT_OPT_ADAGRAD] = {1e-10, .plain = {&adagrad_loops, {"square"}, SPARSE_WITHOUT_DECAY}},
    [DT_OPT_RMSPROP] = {1e-8, rmsprop_factors, .plain = {&rmsprop_loops, {"square"}, SPARSE_NEVER},
                        .momentum = {&rmsprop_momentum_loops,
                                     {"square", "momentum"},
                                     SPARSE_NEVER}},
    [DT_OPT_ADAM] = {1e-8, adam_factors, .plain = {&adam_loops, {"mean", "square"}, SPARSE_NEVER}},
    [DT_OPT_ADAMW] = {1e-8, adamw_factors,
                      .plain = {&adamw_loops, {"mean", "square"}, SPARSE_NEVER}},
    [DT_OPT_FTRL] = {1, .plain = {&ftrl_loops, {"z", "square"}, SPARSE}, .own_rates = true},
    [DT_OPT_LAMB] = {1e-6, lamb_factors, .plain = {&lamb_loops, {"mean", "square"}, SPARSE_NEVER}},
};

static const struct variant *variant_of(const struct dt_optimizer *optimizer)
{
    const struct row *row = &ROWS[optimizer->kind];
    return optimizer->momentum > 0.0 && row->momentum.loops ? &row->momentum : &row->plain;
}

void dt__optimizer_init(struct dt_optimizer *optimizer, const struct dt_config *config, bool wide)
{
    /* train.wide_optimizer: 0: the same optimizer; else 1 + its kind */
    const int usual = config->train.optimizer, chosen = config->train.wide_optimizer;
    const int kind = wide && chosen ? chosen - 1 : usual;
    const double epsilon = kind == usual ? config->train.epsilon : -1;
    *optimizer = (struct dt_optimizer){.kind = kind,
                                       .momentum = config->train.momentum,
                                       .beta1 = config->train.beta1,
                                       .beta2 = config->train.beta2,
                                       .alpha = config->train.alpha,
                                       .epsilon = epsilon < 0.0 ? ROWS[kind].epsilon : epsilon,
                                       .weight_decay = config->train.weight_decay,
                                       .l1 = config->train.l1,
                                       .own_rates = ROWS[kind].own_rates};
    const struct variant *variant = variant_of(optimizer);
    for (int i = 0; i < DT_MAX_STATE && variant->state[i]; i++) {
        optimizer->state_name[optimizer->nstate++] = variant->state[i];
        optimizer->vector[i] = i;
    }
    optimizer->states = optimizer->nstate;
}

/* Returns a vector that is not taken, for a state called `wanted`: one with this name, else one
 * without a name, else any. */
static int vector_find(const char *const name[DT_MAX_STATE], const bool taken[DT_MAX_STATE],
                       const char *wanted)
{
    int found = -1, open = -1, left = -1;
    for (int v = DT_MAX_STATE - 1; v >= 0; v--) {
        if (taken[v]) continue;
        left = v;
        if (!name[v]) open = v;
        if (name[v] && !strcmp(name[v], wanted)) found = v;
    }
    return found >= 0 ? found : open >= 0 ? open : left;
}

void dt__optimizer_share(struct dt_optimizer *optimizer, struct dt_optimizer *wide)
{
    static const char *const numbers[DT_MAX_STATE] = {"state0", "state1"};
    const char *name[DT_MAX_STATE] = {NULL}; /* names of the vectors */
    bool taken[DT_MAX_STATE] = {false};      /* vectors that a state of wide already has */
    for (int i = 0; i < optimizer->states; i++)
        name[i] = optimizer->state_name[i];
    for (int s = 0; s < wide->states; s++) {
        const char *own = wide->state_name[s];
        const int v = wide->vector[s] = vector_find(name, taken, own);
        taken[v] = true;
        name[v] = name[v] && strcmp(name[v], own) ? numbers[v] : own;
    }
    optimizer->nstate = 0;
    while (optimizer->nstate < DT_MAX_STATE && name[optimizer->nstate])
        optimizer->nstate++;
    memcpy(optimizer->state_name, name, sizeof name);
}

struct dt_factors dt__optimizer_factors(const struct dt_optimizer *optimizer, uint64_t step,
                                        double lr, double scale)
{
    struct dt_factors factors = {.scale = (float)scale,
                                 .decay = (float)optimizer->weight_decay,
                                 .rate = (float)lr,
                                 .epsilon = (float)optimizer->epsilon,
                                 .keep1 = (float)optimizer->momentum,
                                 .l1 = (float)optimizer->l1};
    const struct row *row = &ROWS[optimizer->kind];
    if (row->factors) row->factors(optimizer, step, lr, &factors);
    return factors;
}

bool dt__optimizer_is_whole(const struct dt_optimizer *optimizer)
{
    return variant_of(optimizer)->loops->direction;
}

void dt__optimizer_direct(const struct dt_optimizer *optimizer, const struct dt_factors *factors,
                          size_t n, const float *grad, const float *params, float *out,
                          float *const *state)
{
    variant_of(optimizer)->loops->direction->across(
        factors, n, grad, params, out, state[optimizer->vector[0]], state[optimizer->vector[1]]);
}

/* Source: You et al. 2020, section 3, with phi(z) = z. */
float dt__optimizer_trust(double weights2, double directions2)
{
    return weights2 > 0.0 && directions2 > 0.0 ? (float)sqrt(weights2 / directions2) : 1.0f;
}

void dt__optimizer_apply(const struct dt_optimizer *optimizer, const struct dt_factors *factors,
                         size_t n, const float *grad, const float *params, float *out,
                         float *const *state)
{
    const struct loops *loops = variant_of(optimizer)->loops;
    float *a = optimizer->states > 0 ? state[optimizer->vector[0]] : NULL;
    float *b = optimizer->states > 1 ? state[optimizer->vector[1]] : NULL;
    if (out == params)
        loops->in_place(factors, n, grad, out, a, b);
    else
        loops->across(factors, n, grad, params, out, a, b);
}

/* Prefetches the first cache lines of a row; the rows of an update are scattered in memory. */
static inline void row_prefetch(const float *values, size_t width)
{
    enum { LINE = 16, MOST = 64 };
    for (size_t i = 0; i < width && i < MOST; i += LINE)
        __builtin_prefetch(values + i, 1);
}

void dt__optimizer_apply_rows(const struct dt_optimizer *optimizer,
                              const struct dt_factors *factors, size_t width, size_t count,
                              const uint32_t *row, const float *grad, float *params,
                              float *const *state)
{
    enum { AHEAD = 16 };
    const struct loops *loops = variant_of(optimizer)->loops;
    for (size_t i = 0; i < count; i++) {
        const size_t at = row[i] * width, next = row[i + AHEAD < count ? i + AHEAD : i] * width;
        float *own[DT_MAX_STATE] = {NULL};
        row_prefetch(params + next, width);
        for (int s = 0; s < optimizer->states; s++) {
            row_prefetch(state[optimizer->vector[s]] + next, width);
            own[s] = state[optimizer->vector[s]] + at;
        }
        loops->in_place(factors, width, grad + i * width, params + at, own[0], own[1]);
    }
}

bool dt__optimizer_is_sparse(const struct dt_optimizer *optimizer)
{
    const enum sparse sparse = variant_of(optimizer)->sparse;
    return sparse == SPARSE || (sparse == SPARSE_WITHOUT_DECAY && optimizer->weight_decay == 0.0);
}

/* ---- schedules ------------------------------------------------------------------------------ */

/* The rates as functions of t, the number of steps after the warm-up divided by decay_steps. Linear
 * and cosine reach min_lr at t = 1; exponential multiplies by decay_rate per unit of t. */

static double rate_constant(const struct dt_schedule *schedule, double t)
{
    (void)t;
    return schedule->lr;
}

static double rate_linear(const struct dt_schedule *schedule, double t)
{
    return schedule->lr + (schedule->min_lr - schedule->lr) * fmin(t, 1.0);
}

/* Source: Loshchilov and Hutter 2017, eq. 5. */
static double rate_cosine(const struct dt_schedule *schedule, double t)
{
    const double pi = 3.14159265358979323846, low = schedule->min_lr;
    return low + 0.5 * (schedule->lr - low) * (1.0 + dt__elementary->cos(pi * fmin(t, 1.0)));
}

static double rate_exponential(const struct dt_schedule *schedule, double t)
{
    return fmax(schedule->min_lr, schedule->lr * dt__elementary->pow(schedule->decay_rate, t));
}

static double rate_step(const struct dt_schedule *schedule, double t)
{
    return rate_exponential(schedule, floor(t));
}

static double rate_plateau(const struct dt_schedule *schedule, double t)
{
    (void)t;
    return rate_exponential(schedule, (double)schedule->drops);
}

static double (*const RATES[])(const struct dt_schedule *schedule, double t) = {
    [DT_SCHED_CONSTANT] = rate_constant, [DT_SCHED_LINEAR] = rate_linear,
    [DT_SCHED_COSINE] = rate_cosine,     [DT_SCHED_EXPONENTIAL] = rate_exponential,
    [DT_SCHED_STEP] = rate_step,         [DT_SCHED_PLATEAU] = rate_plateau,
};

void dt__schedule_init(struct dt_schedule *schedule, const struct dt_config *config,
                       uint64_t total_steps)
{
    const uint64_t warmup = (uint64_t)config->train.warmup_steps;
    uint64_t decay = (uint64_t)config->train.decay_steps;
    if (!decay) decay = total_steps > warmup ? total_steps - warmup : 1;
    *schedule = (struct dt_schedule){.kind = config->train.schedule,
                                     .lr = config->train.lr,
                                     .min_lr = config->train.min_lr,
                                     .decay_rate = config->train.decay_rate,
                                     .warmup_steps = warmup,
                                     .decay_steps = decay};
}

double dt__schedule_lr(const struct dt_schedule *schedule, uint64_t done)
{
    const uint64_t warmup = schedule->warmup_steps;
    if (done < warmup) return schedule->lr * (double)(done + 1) / (double)warmup;
    return RATES[schedule->kind](schedule, (double)(done - warmup) / (double)schedule->decay_steps);
}
