#include "dtrain/model.h"

#include <math.h>

/* What an update multiplies with, rounded to f32 where PyTorch rounds. */
struct factors {
    float scale; /* of the gradient */
    float decay; /* L2 penalty; adamw: 1 - lr * weight_decay */
    float rate;  /* learning rate; adam: over 1 - beta1^t */
    float epsilon;
    float keep1, add1; /* first state: momentum, beta1 or alpha, and 1 - that */
    float keep2, add2; /* second state: beta2, or rmsprop's momentum */
    float unbias;      /* adam: 1 / sqrt(1 - beta2^t) */
};

/* A rule makes parameter i, which is w, anew from its gradient sum g, and updates its states a[i] and
 * b[i]. No sum goes across elements: any split of the vector gives the same bits. */
#define UNUSED __attribute__((unused))
#define RULE(name)                                                                                 \
    static inline float name(const struct factors *f, float g, float w, UNUSED float *a,           \
                             UNUSED float *b, UNUSED size_t i)

static inline float penalized(const struct factors *f, float g, float w)
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

/* Adam's step with a gradient. Source: Kingma and Ba 2015, algorithm 1. */
static inline float adam_step(const struct factors *f, float gradient, float *a, float *b)
{
    *a = f->keep1 * *a + f->add1 * gradient;
    *b = f->keep2 * *b + f->add2 * gradient * gradient;
    return f->rate * *a / (sqrtf(*b) * f->unbias + f->epsilon);
}

RULE(adam)
{
    return w - adam_step(f, penalized(f, g, w), &a[i], &b[i]);
}

/* Source: Loshchilov and Hutter 2019, algorithm 2. */
RULE(adamw)
{
    return f->decay * w - adam_step(f, g * f->scale, &a[i], &b[i]);
}

/* A rule over n parameters, in place and from w to out: one pass over memory, with vectors. */
struct loops {
    void (*in_place)(const struct factors *f, size_t n, const float *restrict g, float *restrict w,
                     float *restrict a, float *restrict b);
    void (*across)(const struct factors *f, size_t n, const float *restrict g,
                   const float *restrict w, float *restrict out, float *restrict a,
                   float *restrict b);
};

#define LOOPS(rule)                                                                                \
    static void rule##_in_place(const struct factors *f, size_t n, const float *restrict g,        \
                                float *restrict w, float *restrict a, float *restrict b)           \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            w[i] = rule(f, g[i], w[i], a, b, i);                                                   \
    }                                                                                              \
    static void rule##_across(const struct factors *f, size_t n, const float *restrict g,          \
                              const float *restrict w, float *restrict out, float *restrict a,     \
                              float *restrict b)                                                   \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = rule(f, g[i], w[i], a, b, i);                                                 \
    }                                                                                              \
    static const struct loops rule##_loops = {rule##_in_place, rule##_across};
LOOPS(sgd)
LOOPS(heavy_ball)
LOOPS(nesterov)
LOOPS(adagrad)
LOOPS(rmsprop)
LOOPS(rmsprop_momentum)
LOOPS(adam)
LOOPS(adamw)

static bool has_momentum(const struct dt_optimizer *optimizer)
{
    return optimizer->momentum > 0.0;
}

static const struct loops *loops_of(const struct dt_optimizer *optimizer)
{
    switch (optimizer->kind) {
    case DT_NESTEROV:
        return has_momentum(optimizer) ? &nesterov_loops : &sgd_loops;
    case DT_ADAGRAD:
        return &adagrad_loops;
    case DT_RMSPROP:
        return has_momentum(optimizer) ? &rmsprop_momentum_loops : &rmsprop_loops;
    case DT_ADAM:
        return &adam_loops;
    case DT_ADAMW:
        return &adamw_loops;
    default:
        return has_momentum(optimizer) ? &heavy_ball_loops : &sgd_loops;
    }
}

static void add_state(struct dt_optimizer *optimizer, const char *name)
{
    optimizer->state_name[optimizer->nstate++] = name;
}

static void name_states(struct dt_optimizer *optimizer)
{
    const int kind = optimizer->kind;
    if (kind == DT_ADAM || kind == DT_ADAMW) {
        add_state(optimizer, "mean");
        add_state(optimizer, "square");
        return;
    }
    if (kind == DT_ADAGRAD || kind == DT_RMSPROP) add_state(optimizer, "square");
    if (kind != DT_ADAGRAD && has_momentum(optimizer)) add_state(optimizer, "momentum");
}

void dt_optimizer_init(struct dt_optimizer *optimizer, const struct dt_config *config)
{
    const double chosen = config->train.epsilon;
    const double usual = config->train.optimizer == DT_ADAGRAD ? 1e-10 : 1e-8;
    *optimizer = (struct dt_optimizer){.kind = config->train.optimizer,
                                       .momentum = config->train.momentum,
                                       .beta1 = config->train.beta1,
                                       .beta2 = config->train.beta2,
                                       .alpha = config->train.alpha,
                                       .epsilon = chosen < 0.0 ? usual : chosen,
                                       .weight_decay = config->train.weight_decay};
    name_states(optimizer);
}

static struct factors factors_of(const struct dt_optimizer *o, uint64_t step, double lr,
                                 double scale)
{
    struct factors f = {.scale = (float)scale,
                        .decay = (float)o->weight_decay,
                        .rate = (float)lr,
                        .epsilon = (float)o->epsilon,
                        .keep1 = (float)o->momentum};
    if (o->kind == DT_RMSPROP) {
        f.keep1 = (float)o->alpha, f.add1 = (float)(1.0 - o->alpha);
        f.keep2 = (float)o->momentum;
    }
    if (o->kind == DT_ADAM || o->kind == DT_ADAMW) {
        const double t = (double)step + 1.0;
        f.keep1 = (float)o->beta1, f.add1 = (float)(1.0 - o->beta1);
        f.keep2 = (float)o->beta2, f.add2 = (float)(1.0 - o->beta2);
        f.rate = (float)(lr / (1.0 - pow(o->beta1, t)));
        f.unbias = (float)(1.0 / sqrt(1.0 - pow(o->beta2, t)));
    }
    if (o->kind == DT_ADAMW) f.decay = (float)(1.0 - lr * o->weight_decay);
    return f;
}

void dt_optimizer_apply(const struct dt_optimizer *optimizer, uint64_t step, double lr,
                        double scale, size_t n, const float *grad, const float *params, float *out,
                        float *const *state)
{
    const struct factors factors = factors_of(optimizer, step, lr, scale);
    const struct loops *loops = loops_of(optimizer);
    float *a = optimizer->nstate > 0 ? state[0] : NULL;
    float *b = optimizer->nstate > 1 ? state[1] : NULL;
    if (out == params)
        loops->in_place(&factors, n, grad, out, a, b);
    else
        loops->across(&factors, n, grad, params, out, a, b);
}
