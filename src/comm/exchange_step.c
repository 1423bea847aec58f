/* A step, as trainers call it: its state, the agreement on what ranks ask for, and waits in which
 * the backend advances. */
#include "comm/exchange.h"

/* Interval at which a sleeping bank checks signals and clocks. */
static const double BANK_NAP_SECS = 0.02;

/* Returns the step's state, which is const in all other files. */
static struct dt__step *step_of(struct dt_exchange *x)
{
    return (struct dt__step *)(uintptr_t)x->step;
}

void dt__step_publish(struct dt_exchange *x, double norm2, const double *measures)
{
    step_of(x)->info.norm2 = norm2;
    step_of(x)->info.measures = measures;
}

int dt__step_close(struct dt_exchange *x)
{
    const int asked = x->memory->control->agreed_asks[x->step->tick & 1];
    step_of(x)->steps += !(asked & DT_ASK_VOID);
    return asked;
}

/* ---- what ranks ask for --------------------------------------------------------------------- */

void dt__asks_publish(struct dt_exchange *x, int asked)
{
    x->memory->control->agreed_asks[x->step->tick & 1] = asked;
    dt__event_post(&x->memory->control->agreed, 1);
}

int dt__asks_of_node(struct dt_exchange *x)
{
    return atomic_exchange(&x->memory->control->asks[x->step->tick & 1], 0) |
           atomic_load(&x->memory->control->bank_asks);
}

/* Advances the stages of the agreement, once the node's workers have ended the step. Only for a
 * first agent. */
static bool advance_asks(struct dt_exchange *x)
{
    struct dt__asks *asks = &step_of(x)->asks;
    if (asks->left || dt__event_reached(&x->memory->control->agreed, x->step->tick)) return false;
    if (!asks->stride) {
        if (!dt__event_reached(&x->memory->control->ended, x->step->all_done)) return false;
        asks->out = dt__asks_of_node(x);
        asks->stride = 1;
    }
    for (; asks->come; asks->come--)
        asks->out |= asks->in[asks->come - 1];
    const int64_t stride = asks->stride;
    for (int64_t far = stride; far < x->topo->nodes && far < DT__ASKS_RADIX * stride;
         far += stride) {
        const int to = (int)((x->topo->node + far) % x->topo->nodes);
        const int from = (int)((x->topo->node + x->topo->nodes - far) % x->topo->nodes);
        dt__message_begin(&x->requests, &asks->left, &asks->out, sizeof asks->out,
                          (struct dt__envelope){true, dt__agent_rank(x->topo, to, 0), DT__TAG_ASKS,
                                                DT__MPI_CHUNK});
        dt__message_begin(&x->requests, &asks->left, &asks->in[asks->come++], sizeof *asks->in,
                          (struct dt__envelope){false, dt__agent_rank(x->topo, from, 0),
                                                DT__TAG_ASKS, DT__MPI_CHUNK});
    }
    asks->stride = asks->come ? stride * DT__ASKS_RADIX : 0;
    if (!asks->stride) dt__asks_publish(x, asks->out);
    return true;
}

/* ---- waits ---------------------------------------------------------------------------------- */

bool dt__exchange_advance(struct dt_exchange *x)
{
    if (!x->backend->advance) return false;
    bool moved = dt__requests_advance(&x->requests);
    moved |= x->backend->advance(x);
    if (x->topo->agent == 0) moved |= advance_asks(x);
    step_of(x)->open &=
        !dt__event_reached(&x->memory->control->agreed, x->step->tick) || !x->backend->done(x);
    return moved;
}

void dt__exchange_wait(struct dt_exchange *x, struct dt__event_count *event, uint32_t target,
                       const char *what)
{
    if (dt__event_reached(event, target)) return;
    const double since = dt__clock_secs();
    dt__event_wait(event, target, x->world, what);
    x->spec.times->wait += dt__clock_secs() - since;
}

void dt__exchange_finish(struct dt_exchange *x, const int *left, const char *what)
{
    struct dt_exchange_times *times = x->spec.times;
    const double start = dt__clock_secs(), busy = times->reduce + times->update;
    struct dt__wait wait = {.world = x->world, .what = what};
    if (!x->backend->advance) return; /* there are no messages to wait for */
    for (;;) {
        const bool moved = dt__exchange_advance(x);
        if (!*left) break;
        if (moved)
            dt__wait_progress(&wait);
        else
            dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
    times->network += dt__clock_secs() - start - (times->reduce + times->update - busy);
}

static int step_finish(struct dt_exchange *x)
{
    dt__exchange_finish(x, &x->step->open, "the other hosts");
    return dt__step_close(x);
}

int dt__step_end(struct dt_exchange *x)
{
    dt__event_post(&x->memory->control->listed, 1);
    dt__event_post(&x->memory->control->ended, 1);
    return step_finish(x);
}

/* ---- workers -------------------------------------------------------------------------------- */

void dt__exchange_begin(struct dt_exchange *x, uint64_t number)
{
    struct dt__step *step = step_of(x);
    step->all_done = ++step->tick * (uint32_t)x->topo->workers;
    step->open = 1;
    step->info = (struct dt_update_info){.step = number};
    dt__world_heartbeat(x->world, "gradient", number);
    if (x->backend->begin) x->backend->begin(x);
}

void dt__exchange_need(struct dt_exchange *x, int bucket)
{
    dt__exchange_wait(x, &x->memory->control->bucket[bucket].updated,
                      x->step->steps * x->layout->bucket[bucket].increment, "weights");
}

void dt__exchange_ready(struct dt_exchange *x, int bucket)
{
    if (!x->backend->advance) return;
    dt__event_post(&x->memory->control->bucket[bucket].ready, 1);
    dt__exchange_advance(x);
}

int dt__exchange_end(struct dt_exchange *x, int ask)
{
    if (ask) atomic_fetch_or(&x->memory->control->asks[x->step->tick & 1], ask);
    return x->backend->end(x);
}

int dt__exchange_consult(struct dt_exchange *x, int ask)
{
    _Atomic int *asks = &x->memory->control->asks[x->step->tick & 1];
    return (ask ? atomic_fetch_or(asks, ask) | ask : atomic_load(asks)) |
           atomic_load(&x->memory->control->bank_asks);
}

void dt__exchange_settle(struct dt_exchange *x)
{
    for (int b = 0; b < x->spec.buckets; b++)
        dt__exchange_need(x, b);
    dt__event_post(&x->memory->control->settled, 1);
}

struct dt_update_info dt__exchange_info(const struct dt_exchange *x)
{
    return x->step->info;
}

/* ---- the bank ------------------------------------------------------------------------------- */

/* Serves a span on a bank whose node's workers do all the work: the bank sleeps, and passes on what
 * `ask` returns. */
static int watch_workers(struct dt_exchange *x, uint64_t from, dt_ask_fn *ask, void *arg,
                         uint64_t *out_step)
{
    struct dt__control *control = x->memory->control;
    uint32_t all_settled = x->step->spans * (uint32_t)x->topo->workers;
    uint32_t before = x->step->tick; /* steps before this span */
    dt__world_heartbeat(x->world, "serving", from);
    dt__watchdog_wait(x->world, "the workers");
    while (!dt__event_wait_for(&control->settled, all_settled, BANK_NAP_SECS)) {
        atomic_store(&control->bank_asks, ask(arg));
        dt__heartbeat_exchange(x->world); /* hosts hear of each other through the bank */
    }
    dt__watchdog_progress(x->world);
    atomic_store(&control->bank_asks, 0);
    const uint32_t tick = step_of(x)->tick = atomic_load(&control->agreed.count);
    int asked = tick == before ? DT_ASK_NONE : control->agreed_asks[tick & 1];
    *out_step = from + (tick - before) - (asked & DT_ASK_VOID ? 1 : 0);
    return asked;
}

int dt__exchange_serve_span(struct dt_exchange *x, uint64_t from, uint64_t until, dt_ask_fn *ask,
                            void *arg, uint64_t *out_step)
{
    int asked = DT_ASK_NONE;
    step_of(x)->spans++;
    if (x->topo->agent < 0) return watch_workers(x, from, ask, arg, out_step);
    while (from < until && !asked) {
        dt__exchange_begin(x, from);
        atomic_store(&x->memory->control->bank_asks, ask(arg));
        asked = step_finish(x);
        from += !(asked & DT_ASK_VOID);
    }
    *out_step = from;
    return asked;
}
