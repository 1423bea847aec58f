/* A fake of MPI's one-sided memory: one process, with a seeded adversarial scheduler.
 *
 * Actors are coroutines; every operation yields before and after its effect. Puts and answers
 * arrive word by word, in random order. Nonblocking operations on control words take effect at any
 * time, but the operations of one actor on one memory keep their order.
 *
 * Some actors own memory. An owner's loads and stores go to a private copy, which is merged with
 * the public copy word by word at random times, and completely only in `sync` (the separate memory
 * model of MPI-3, section 11.4). From time to time one actor sleeps in the middle of an operation
 * while the others run for many steps. */
#ifndef DT_TESTS_ONESIDED_FAKE_H
#define DT_TESTS_ONESIDED_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <ucontext.h>

#include "base/base.h"
#include "comm/onesided.h"

enum { FAKE_ACTORS = 5, FAKE_WORDS = 64, FAKE_BYTES = 1 << 14, FAKE_PENDING = 1024 };
enum { FAKE_STACK = 1 << 16, FAKE_STEPS = 1000000 };

struct fake;
struct fake_memory { /* the memory of one owner */
    uint64_t word[FAKE_WORDS];
    _Alignas(64) unsigned char private[FAKE_BYTES];
    _Alignas(64) unsigned char public[FAKE_BYTES];
    size_t bytes;                      /* size of the memory */
    size_t written_begin, written_end; /* the range that the owner writes; other actors put only
                                        * outside it */
    struct fake_answer {               /* the answer to each worker */
        bool expected;
        int left;                           /* number of words in flight */
        struct dt__answer *sent, *received; /* the owner's answer, the worker's copy */
        void *body;
    } answer[FAKE_ACTORS];
};
struct fake_port { /* an actor's access to one memory */
    struct dt__onesided remote;
    struct fake *fake;
    struct fake_memory *memory;
    int actor;
};
struct fake_context { /* saved context of the scheduler or an actor */
    ucontext_t context;
    jmp_buf jump;
    bool fresh; /* has not run yet */
};
struct fake_copy { /* a word in flight */
    unsigned char *to;
    const unsigned char *from; /* NULL: the word is in `sent`, because the sender was then free to
                                * change its copy */
    unsigned char sent[8];
    int actor; /* sender; -1: the owner, with an answer */
    int *left; /* number of words of the operation in flight; for a put, only those that still need
                * their source */
    struct fake_answer *answer; /* NULL: the word belongs to a put */
    size_t bytes;
};
struct fake_op { /* operation on a control word, not yet done */
    struct fake_memory *memory;
    uint64_t *word;
    enum dt__op op;
    uint64_t value, *before;
    int *left, actor;
};
struct fake {
    uint64_t random;                                 /* state of the generator */
    struct fake_port port[FAKE_ACTORS][FAKE_ACTORS]; /* [memory][actor] */
    int memories;
    struct fake_context scheduler, actor_context[FAKE_ACTORS];
    bool alive[FAKE_ACTORS];
    int actors, running;                   /* -1: none */
    uint64_t steps, asleep[FAKE_ACTORS];   /* steps so far; the step until which the actor sleeps */
    int sleeper;                           /* the actor that falls asleep now and then */
    uint64_t nap;                          /* longest sleep in steps; fake_linger makes a few
                                          * longer */
    uint64_t news[2], looked[FAKE_ACTORS]; /* notifications sent at each end; how many each actor
                                            * has seen */
    bool mapped; /* all actors load and store in the private memory, as on a host with shared
                  * memory */
    struct fake_copy pending[FAKE_PENDING];
    struct fake_op op[FAKE_PENDING];
    int pendings, ops;
    char failure[200];
    struct fake_memory memory[FAKE_ACTORS];
    _Alignas(64) unsigned char stack[FAKE_ACTORS][FAKE_STACK];
};

/* Source: Steele et al., "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static uint64_t fake_random(struct fake *fake, uint64_t below)
{
    uint64_t mix = fake->random += UINT64_C(0x9E3779B97F4A7C15);
    mix = (mix ^ mix >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mix = (mix ^ mix >> 27) * UINT64_C(0x94D049BB133111EB);
    return (mix ^ mix >> 31) % below;
}

/* Records the first failure of a run; the scheduler stops at it. */
static void fake_fail(struct fake *fake, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!fake->failure[0]) vsnprintf(fake->failure, sizeof fake->failure, format, args);
    va_end(args);
}

/* Switches by jumps, which cost no system call, except under AddressSanitizer: that follows only
 * contexts from stack to stack. */
static void fake_switch(struct fake_context *from, struct fake_context *to)
{
#ifdef __SANITIZE_ADDRESS__
    swapcontext(&from->context, &to->context);
#else
    bool fresh = to->fresh;
    to->fresh = false;
    if (_setjmp(from->jump) != 0) return;
    if (fresh) setcontext(&to->context);
    _longjmp(to->jump, 1);
#endif
}

static void fake_yield(struct fake *fake)
{
    fake_switch(&fake->actor_context[fake->running], &fake->scheduler);
}

/* Yields 0 to 2 times. The sleeper falls asleep first in one of 8 calls, for up to `nap` steps, and
 * one of 64 sleeps may be 32 times as long. */
static void fake_linger(struct fake *fake)
{
    if (fake->running == fake->sleeper && fake_random(fake, 8) == 0) {
        const uint64_t nap = fake_random(fake, 64) ? fake->nap : 32 * fake->nap;
        fake->asleep[fake->running] = fake->steps + fake_random(fake, nap);
    }
    for (uint64_t n = fake_random(fake, 3); n > 0; n--)
        fake_yield(fake);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void fake_land(struct fake *fake, int i)
{
    const struct fake_copy *copy = &fake->pending[i];
    memcpy(copy->to, copy->from ? copy->from : copy->sent, copy->bytes);
    if (copy->left && --*copy->left == 0 && copy->answer)
        copy->answer->sent->left = copy->answer->received->left = 0;
    fake->pending[i] = fake->pending[--fake->pendings];
}

static void fake_launch(struct fake *fake, int actor, void *to, const void *from, size_t length,
                        int *left, struct fake_answer *answer)
{
    for (size_t at = 0; at < length; at += 8) {
        if (fake->pendings == FAKE_PENDING) fake_land(fake, 0);
        if (left) ++*left;
        fake->pending[fake->pendings++] =
            (struct fake_copy){.to = (unsigned char *)to + at,
                               .from = (const unsigned char *)from + at,
                               .actor = actor,
                               .left = left,
                               .answer = answer,
                               .bytes = length - at < 8 ? length - at : 8};
    }
}

/* Sends a copy of the data, which arrives at an arbitrary time. */
static void fake_put(struct dt__onesided *remote, int *left, size_t offset, const void *bytes,
                     size_t length)
{
    struct fake_port *port = (struct fake_port *)remote;
    struct fake *fake = port->fake;
    fake_yield(fake);
    fake_launch(fake, port->actor, port->memory->public + offset, bytes, length, left, NULL);
    fake_yield(fake);
}

/* Picks a random word in flight. If it belongs to a put of this actor, copies all words of the put
 * to `sent`, so that their source may change. */
static void fake_progress(struct dt__onesided *remote)
{
    struct fake_port *port = (struct fake_port *)remote;
    struct fake *fake = port->fake;
    if (!fake->pendings) return;
    const struct fake_copy *random_copy =
        &fake->pending[fake_random(fake, (uint64_t)fake->pendings)];
    int *left = random_copy->actor == port->actor ? random_copy->left : NULL;
    for (int i = 0; i < fake->pendings && left; i++) {
        struct fake_copy *copy = &fake->pending[i];
        if (copy->left != left) continue;
        memcpy(copy->sent, copy->from, copy->bytes);
        copy->from = NULL;
        copy->left = NULL;
    }
    if (left) *left = 0;
}

/* Does operation i, or an earlier pending one of the same actor on the same memory, so that these
 * keep their order. */
static void fake_land_op(struct fake *fake, int i)
{
    for (int k = 0; k < i; k++)
        if (fake->op[k].memory == fake->op[i].memory && fake->op[k].actor == fake->op[i].actor)
            i = k;
    const struct fake_op op = fake->op[i];
    if (op.before) *op.before = *op.word;
    if (op.left) --*op.left;
    if (op.op != DT__NO_OP) *op.word = op.value + (op.op == DT__SUM ? *op.word : 0);
    memmove(&fake->op[i], &fake->op[i + 1], (size_t)(--fake->ops - i) * sizeof op);
}

/* Merges one word of an owner's private and public memory: copies it from the side that is
 * written. */
static void fake_merge_word(struct fake_memory *memory, size_t at)
{
    bool written = at >= memory->written_begin && at < memory->written_end;
    if (written)
        memcpy(memory->public + at, memory->private + at, 8);
    else
        memcpy(memory->private + at, memory->public + at, 8);
}

static void fake_sync(struct dt__onesided *remote)
{
    struct fake_port *port = (struct fake_port *)remote;
    fake_linger(port->fake);
    if (port->fake->mapped) return;
    for (size_t at = 0; at < port->memory->bytes; at += 8)
        fake_merge_word(port->memory, at);
    fake_yield(port->fake);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void fake_send(struct dt__onesided *remote, int worker, struct dt__answer *answer,
                      const void *body, size_t length)
{
    struct fake_port *port = (struct fake_port *)remote;
    struct fake_answer *slot = &port->memory->answer[worker];
    if (!slot->expected || slot->left) fake_fail(port->fake, "an answer that no worker expects");
    slot->sent = answer;
    answer->left = 1;
    fake_launch(port->fake, -1, slot->body, body, length, &slot->left, slot);
    fake_launch(port->fake, -1, &slot->received->head, &answer->head, sizeof answer->head,
                &slot->left, slot);
    slot->expected = false;
    fake_yield(port->fake);
}

static void fake_expect(struct dt__onesided *remote, struct dt__answer *answer, void *body,
                        size_t length)
{
    struct fake_port *port = (struct fake_port *)remote;
    memset(body, 0xEE, length); /* poison: a read before the answer arrives gets garbage */
    answer->left = 1;
    port->memory->answer[port->actor - 1] =
        (struct fake_answer){.expected = true, .received = answer, .body = body};
}

/* ---- control words -------------------------------------------------------------------------- */

static uint64_t *fake_word(struct dt__onesided *remote, int word)
{
    struct fake_port *port = (struct fake_port *)remote;
    if (word >= FAKE_WORDS) fake_fail(port->fake, "control word %d", word);
    fake_linger(port->fake);
    return &port->memory->word[word % FAKE_WORDS];
}

static uint64_t fake_fetch_op(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value)
{
    uint64_t *at = fake_word(remote, word), before = *at;
    if (op != DT__NO_OP) *at = value + (op == DT__SUM ? before : 0);
    fake_linger(((struct fake_port *)remote)->fake);
    return before;
}

static void fake_begin(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value,
                       uint64_t *before, int *left)
{
    struct fake_port *port = (struct fake_port *)remote;
    struct fake *fake = port->fake;
    if (before) *before = fake_random(fake, 8);
    if (left) ++*left;
    fake->op[fake->ops++] = (struct fake_op){
        port->memory, &port->memory->word[word % FAKE_WORDS], op, value, before, left, port->actor};
    fake_linger(fake);
}

/* Yields; in shared memory until a notification arrives, so a missing wake-up hangs the actor. */
static void fake_pause(struct dt__onesided *remote, const char *what)
{
    struct fake_port *port = (struct fake_port *)remote;
    const uint64_t *news = &port->fake->news[port->actor ? DT__WORKERS : DT__BANK];
    (void)what;
    do
        fake_yield(port->fake);
    while (port->fake->mapped && *news == port->fake->looked[port->actor]);
    port->fake->looked[port->actor] = *news;
}

static void fake_notify(struct dt__onesided *remote, enum dt__end whom)
{
    ((struct fake_port *)remote)->fake->news[whom]++;
}

/* ---- scheduler ------------------------------------------------------------------------------ */

/* Initialises `memories` memories; actor m owns memory m, and the caller must set its size in
 * bytes. */
static void fake_init(struct fake *fake, uint64_t seed, int actors, bool mapped, int memories)
{
    static const struct dt__onesided_ops ops = {
        .put = fake_put,
        .begin = fake_begin,
        .send = fake_send,
        .expect = fake_expect,
        .fetch_op = fake_fetch_op,
        .sync = fake_sync,
        .pause = fake_pause,
        .notify = fake_notify,
        .progress = fake_progress,
    };
    memset(fake, 0, offsetof(struct fake, stack));
    fake->random = seed << 32;
    fake->actors = actors;
    fake->running = -1;
    fake->mapped = mapped;
    fake->sleeper = (int)fake_random(fake, (uint64_t)actors);
    fake->nap = UINT64_C(16) << fake_random(fake, 8);
    fake->memories = memories;
    for (int m = 0; m < memories; m++)
        for (int i = 0; i < actors; i++) {
            unsigned char *memory = mapped || i == m ? fake->memory[m].private : NULL;
            fake->port[m][i] = (struct fake_port){
                .remote = {&ops, memory}, .fake = fake, .memory = &fake->memory[m], .actor = i};
        }
}

/* Makes an actor ready: fake_run will start `body`. */
static void fake_start(struct fake *fake, int actor, void (*body)(void))
{
    ucontext_t *context = &fake->actor_context[actor].context;
    getcontext(context);
    context->uc_stack.ss_sp = fake->stack[actor];
    context->uc_stack.ss_size = FAKE_STACK;
    makecontext(context, body, 0);
    fake->actor_context[actor].fresh = true;
    fake->alive[actor] = true;
}

/* Picks a random actor that is awake or, if all sleep, any that is alive. */
static int fake_pick(struct fake *fake)
{
    int actor = (int)fake_random(fake, (uint64_t)fake->actors);
    for (int tries = 0; tries < fake->actors; tries++, actor = (actor + 1) % fake->actors)
        if (fake->alive[actor] && fake->asleep[actor] <= fake->steps) return actor;
    while (!fake->alive[actor])
        actor = (actor + 1) % fake->actors;
    return actor;
}

static bool fake_any_alive(const struct fake *fake)
{
    for (int i = 0; i < fake->actors; i++)
        if (fake->alive[i]) return true;
    return false;
}

/* Runs until every actor has ended or something failed. */
static void fake_run(struct fake *fake)
{
    uint64_t last = fake->steps + FAKE_STEPS;
    while (fake_any_alive(fake) && !fake->failure[0]) {
        if (fake->steps++ == last) fake_fail(fake, "stuck");
        uint64_t dice = fake_random(fake, 16);
        if (dice < 4 && fake->pendings) {
            const int i = (int)fake_random(fake, (uint64_t)fake->pendings);
            /* Let answers take long: their owner may be two versions further when they arrive. */
            if (fake->pending[i].actor >= 0 || fake_random(fake, 8) == 0) fake_land(fake, i);
        }
        if (dice > 13 && fake->ops) fake_land_op(fake, (int)fake_random(fake, (uint64_t)fake->ops));
        struct fake_memory *memory = &fake->memory[fake_random(fake, (uint64_t)fake->memories)];
        if (dice == 15 && !fake->mapped)
            fake_merge_word(memory, 8 * fake_random(fake, memory->bytes / 8));
        fake->running = fake_pick(fake);
        fake_switch(&fake->scheduler, &fake->actor_context[fake->running]);
    }
    fake->running = -1;
}

/* Ends the running actor; does not return. */
static void fake_end(struct fake *fake)
{
    fake->alive[fake->running] = false;
    fake_yield(fake);
}

#endif
