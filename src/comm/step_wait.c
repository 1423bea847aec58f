/* Progress of a step: messages, what the backend can do, and what ranks ask for, until a wait is
 * over. */
#include "comm/exchange.h"

void dt__asks_publish(struct dt_exchange *x, int asked)
{
    x->memory->control->agreed_ask[x->step.tick & 1] = asked;
    dt__event_post(&x->memory->control->agreed, 1);
}

int dt__asks_of_node(struct dt_exchange *x)
{
    return atomic_exchange(&x->memory->control->asks[x->step.tick & 1], 0) |
           atomic_load(&x->memory->control->bank_ask);
}

/* First agent: once the node's workers have ended the step, goes round by round. */
static bool advance_asks(struct dt_exchange *x)
{
    struct dt__asks *asks = &x->step.asks;
    if (asks->left || dt__event_reached(&x->memory->control->agreed, x->step.tick)) return false;
    if (!asks->stride) {
        if (!dt__event_reached(&x->memory->control->ended, x->step.all_done)) return false;
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
        dt__message_begin(
            &x->requests, &asks->left, &asks->out, sizeof asks->out,
            (struct dt__envelope){true, dt__agent_rank(x->topo, to, 0), DT__TAG_ASKS});
        dt__message_begin(
            &x->requests, &asks->left, &asks->in[asks->come++], sizeof *asks->in,
            (struct dt__envelope){false, dt__agent_rank(x->topo, from, 0), DT__TAG_ASKS});
    }
    asks->stride = asks->come ? stride * DT__ASKS_RADIX : 0;
    if (!asks->stride) dt__asks_publish(x, asks->out);
    return true;
}

bool dt__exchange_advance(struct dt_exchange *x)
{
    bool moved = dt__requests_advance(&x->requests);
    moved |= x->backend->advance(x);
    if (x->topo->agent == 0) moved |= advance_asks(x);
    x->step.open &=
        !dt__event_reached(&x->memory->control->agreed, x->step.tick) || !x->backend->done(x);
    return moved;
}

void dt__exchange_wait(struct dt_exchange *x, struct dt__event_count *event, uint32_t target,
                       const char *what)
{
    if (dt__event_reached(event, target)) return;
    const double since = dt__clock_secs();
    dt__event_wait(event, target, x->world, what);
    x->step.times.wait += dt__clock_secs() - since;
}

void dt__exchange_finish(struct dt_exchange *x, const int *left, const char *what)
{
    const double start = dt__clock_secs(), busy = x->step.times.reduce + x->step.times.update;
    struct dt__wait wait = {.world = x->world, .what = what};
    if (!x->backend->advance) return; /* no message, so nothing is left */
    for (;;) {
        const bool moved = dt__exchange_advance(x);
        if (!*left) break;
        if (moved)
            dt__wait_progress(&wait);
        else
            dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
    x->step.times.network +=
        dt__clock_secs() - start - (x->step.times.reduce + x->step.times.update - busy);
}
