/* Progress of a step: messages, what the backend can do, and what ranks ask for, until a wait is
 * over. */
#include "comm/exchange.h"

void dt__asks_publish(struct dt_exchange *x, int asked)
{
    x->control->agreed_ask[x->tick & 1] = asked;
    dt__event_post(&x->control->agreed, 1);
}

int dt__asks_of_node(struct dt_exchange *x)
{
    return atomic_exchange(&x->control->asks[x->tick & 1], 0) | atomic_load(&x->control->bank_ask);
}

/* First agent, several nodes: once the node's workers have ended the step, goes round by round. */
static bool advance_asks(struct dt_exchange *x)
{
    struct dt__asks *asks = &x->asks;
    if (asks->left || dt__event_reached(&x->control->agreed, x->tick)) return false;
    if (!asks->stride) {
        if (!dt__event_reached(&x->control->ended, x->all_done)) return false;
        asks->out = dt__asks_of_node(x);
        asks->stride = 1;
    }
    for (; asks->come; asks->come--)
        asks->out |= asks->in[asks->come - 1];
    const int64_t stride = asks->stride;
    for (int64_t far = stride; far < x->nodes && far < DT__ASKS_RADIX * stride; far += stride) {
        const int to = (int)((x->node + far) % x->nodes);
        const int from = (int)((x->node + x->nodes - far) % x->nodes);
        dt__message_begin(&x->requests, &asks->left, &asks->out, sizeof asks->out,
                          (struct dt__envelope){true, dt__agent_rank(x, to, 0), DT__TAG_ASKS});
        dt__message_begin(&x->requests, &asks->left, &asks->in[asks->come++], sizeof *asks->in,
                          (struct dt__envelope){false, dt__agent_rank(x, from, 0), DT__TAG_ASKS});
    }
    asks->stride = asks->come ? stride * DT__ASKS_RADIX : 0;
    if (!asks->stride) dt__asks_publish(x, asks->out);
    return true;
}

bool dt__exchange_advance(struct dt_exchange *x)
{
    bool moved = dt__requests_advance(&x->requests);
    moved |= x->way->advance(x);
    if (x->nodes > 1 && x->agent == 0) moved |= advance_asks(x);
    x->open &= !dt__event_reached(&x->control->agreed, x->tick) || !x->way->done(x);
    return moved;
}

void dt__exchange_wait(struct dt_exchange *x, struct dt__event_count *event, uint32_t target,
                       const char *what)
{
    if (dt__event_reached(event, target)) return;
    const double since = dt__clock_secs();
    dt__event_wait(event, target, x->world, what);
    x->times.wait += dt__clock_secs() - since;
}

void dt__exchange_finish(struct dt_exchange *x, const int *left, const char *what)
{
    const double start = dt__clock_secs(), busy = x->times.reduce + x->times.update;
    struct dt__wait wait = {.world = x->world, .what = what};
    for (;;) {
        const bool moved = dt__exchange_advance(x);
        if (!*left) break;
        if (moved)
            dt__wait_progress(&wait);
        else if (x->nodes > 1)
            dt__wait_pause(&wait);
        else
            dt__event_wait(&x->control->norm_known, x->tick, x->world, "sums");
    }
    dt__wait_done(&wait);
    *(x->nodes == 1 ? &x->times.wait : &x->times.network) +=
        dt__clock_secs() - start - (x->times.reduce + x->times.update - busy);
}
