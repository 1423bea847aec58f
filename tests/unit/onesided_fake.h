/* A fake of MPI's one-sided memory, in one process under a seeded scheduler that is out for trouble.
 *
 * Actors are coroutines; every operation gives way to the others before and behind its effect. Puts
 * and gets happen word by word, in random order, until their flush. The bank's loads and stores go to
 * a private copy of its memory, which meets the public one word by word at random times, and wholly
 * only in `sync` (the separate memory model of MPI-3, section 11.4). One actor falls asleep now and
 * then, in the middle of any operation, while the others run on for long. */
#ifndef DT_TESTS_ONESIDED_FAKE_H
#define DT_TESTS_ONESIDED_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <ucontext.h>

#include "comm/onesided.h"
#include "dtrain/base.h"

enum { FAKE_ACTORS = 5, FAKE_WORDS = 64, FAKE_BYTES = 1 << 14, FAKE_PENDING = 1024 };
enum { FAKE_STACK = 1 << 16, FAKE_STEPS = 1000000 };

struct fake;
struct fake_port { /* an actor's end */
    struct dt__onesided remote;
    struct fake *fake;
    int actor;
};
struct fake_place { /* where the scheduler or an actor stands */
    ucontext_t context;
    jmp_buf jump;
    bool fresh; /* nowhere yet */
};
struct fake_copy { /* a word under way */
    unsigned char *to;
    const unsigned char *from;
    int actor;
};
struct fake {
    uint64_t random; /* state */
    struct fake_port port[FAKE_ACTORS];
    struct fake_place scheduler, place[FAKE_ACTORS];
    bool alive[FAKE_ACTORS];
    int actors, running; /* -1: none */
    uint64_t steps, asleep[FAKE_ACTORS]; /* steps so far; the step that the actor sleeps until */
    int sleeper;                         /* the actor that falls asleep now and then */
    uint64_t nap;                        /* most steps that this takes */
    uint64_t word[FAKE_WORDS];
    _Alignas(64) unsigned char private[FAKE_BYTES];
    _Alignas(64) unsigned char public[FAKE_BYTES];
    bool mapped; /* all load and store in the private memory: a shared-memory host */
    size_t written_begin, written_end, bytes; /* the part that the bank writes; the rest is put */
    struct fake_copy pending[FAKE_PENDING];
    int pendings;
    char failure[200];
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

/* The first failure of a run; the scheduler stops at it. */
static void fake_fail(struct fake *fake, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!fake->failure[0]) vsnprintf(fake->failure, sizeof fake->failure, format, args);
    va_end(args);
}

/* Jumps cost no system call; AddressSanitizer follows only contexts from stack to stack. */
static void fake_switch(struct fake_place *from, struct fake_place *to)
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
    fake_switch(&fake->place[fake->running], &fake->scheduler);
}

/* Gives way, at times for long. */
static void fake_linger(struct fake *fake)
{
    if (fake->running == fake->sleeper && fake_random(fake, 8) == 0)
        fake->asleep[fake->running] = fake->steps + fake_random(fake, fake->nap);
    for (uint64_t n = fake_random(fake, 3); n > 0; n--)
        fake_yield(fake);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void fake_land(struct fake *fake, int i)
{
    memcpy(fake->pending[i].to, fake->pending[i].from, 8);
    fake->pending[i] = fake->pending[--fake->pendings];
}

static void fake_launch(struct dt__onesided *remote, unsigned char *to, const unsigned char *from,
                        size_t length)
{
    struct fake_port *port = (struct fake_port *)remote;
    struct fake *fake = port->fake;
    fake_yield(fake);
    for (size_t at = 0; at < length; at += 8) {
        if (fake->pendings == FAKE_PENDING) fake_land(fake, 0);
        fake->pending[fake->pendings++] = (struct fake_copy){to + at, from + at, port->actor};
    }
    fake_yield(fake);
}

static void fake_put(struct dt__onesided *remote, size_t offset, const void *bytes, size_t length)
{
    fake_launch(remote, ((struct fake_port *)remote)->fake->public + offset, bytes, length);
}

static void fake_get(struct dt__onesided *remote, size_t offset, void *bytes, size_t length)
{
    memset(bytes, 0xEE, length); /* what is read before the flush is garbage */
    fake_launch(remote, bytes, ((struct fake_port *)remote)->fake->public + offset, length);
}

static void fake_flush(struct dt__onesided *remote)
{
    struct fake_port *port = (struct fake_port *)remote;
    fake_linger(port->fake);
    for (int i = port->fake->pendings - 1; i >= 0; i--)
        if (port->fake->pending[i].actor == port->actor) fake_land(port->fake, i);
    fake_yield(port->fake);
}

/* One word of the bank's private and public memory meets its copy. */
static void fake_meet(struct fake *fake, size_t at)
{
    bool written = at >= fake->written_begin && at < fake->written_end;
    if (written)
        memcpy(fake->public + at, fake->private + at, 8);
    else
        memcpy(fake->private + at, fake->public + at, 8);
}

static void fake_sync(struct dt__onesided *remote)
{
    struct fake *fake = ((struct fake_port *)remote)->fake;
    fake_linger(fake);
    if (fake->mapped) return;
    for (size_t at = 0; at < fake->bytes; at += 8)
        fake_meet(fake, at);
    fake_yield(fake);
}

/* ---- control words -------------------------------------------------------------------------- */

static uint64_t *fake_word(struct dt__onesided *remote, int word)
{
    struct fake *fake = ((struct fake_port *)remote)->fake;
    if (word >= FAKE_WORDS) fake_fail(fake, "control word %d", word);
    fake_linger(fake);
    return &fake->word[word % FAKE_WORDS];
}

static uint64_t fake_fetch(struct dt__onesided *remote, int word)
{
    uint64_t value = *fake_word(remote, word);
    fake_linger(((struct fake_port *)remote)->fake);
    return value;
}

static void fake_replace(struct dt__onesided *remote, int word, uint64_t value)
{
    *fake_word(remote, word) = value;
    fake_linger(((struct fake_port *)remote)->fake);
}

static uint64_t fake_add(struct dt__onesided *remote, int word, uint64_t delta)
{
    uint64_t *at = fake_word(remote, word), before = *at;
    *at += delta;
    fake_linger(((struct fake_port *)remote)->fake);
    return before;
}

static uint64_t fake_fetch_and(struct dt__onesided *remote, int word, enum dt__op op,
                               uint64_t value)
{
    if (op == DT__NO_OP) return fake_fetch(remote, word);
    if (op == DT__SUM) return fake_add(remote, word, value);
    fake_replace(remote, word, value);
    return 0;
}

static void fake_pause(struct dt__onesided *remote, const char *what)
{
    (void)what;
    fake_yield(((struct fake_port *)remote)->fake);
}

static void fake_wake(struct dt__onesided *remote)
{
    (void)remote;
}

static void fake_progress(struct dt__onesided *remote)
{
    (void)remote;
}

static void fake_notify(struct dt__onesided *remote, enum dt__end whom)
{
    (void)remote, (void)whom;
}

/* ---- scheduler ------------------------------------------------------------------------------ */

/* Memory of `bytes`, of which the bank (actor 0) writes [written_begin, written_end). */
static void fake_init(struct fake *fake, uint64_t seed, int actors, bool mapped, size_t bytes)
{
    static const struct dt__onesided_ops ops = {
        .put = fake_put,
        .get = fake_get,
        .flush = fake_flush,
        .fetch_and = fake_fetch_and,
        .sync = fake_sync,
        .pause = fake_pause,
        .wake = fake_wake,
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
    fake->bytes = bytes;
    for (int i = 0; i < actors; i++) {
        unsigned char *memory = mapped || i == 0 ? fake->private : NULL;
        fake->port[i] = (struct fake_port){.remote = {&ops, memory}, .fake = fake, .actor = i};
    }
}

/* Readies an actor: body runs in the next fake_run. */
static void fake_start(struct fake *fake, int actor, void (*body)(void))
{
    ucontext_t *context = &fake->place[actor].context;
    getcontext(context);
    context->uc_stack.ss_sp = fake->stack[actor];
    context->uc_stack.ss_size = FAKE_STACK;
    makecontext(context, body, 0);
    fake->place[actor].fresh = true;
    fake->alive[actor] = true;
}

/* Any actor that is awake, or at least alive. */
static int fake_pick(struct fake *fake)
{
    int actor = (int)fake_random(fake, (uint64_t)fake->actors);
    for (int tries = 0; tries < fake->actors; tries++, actor = (actor + 1) % fake->actors)
        if (fake->alive[actor] && fake->asleep[actor] <= fake->steps) return actor;
    while (!fake->alive[actor])
        actor = (actor + 1) % fake->actors;
    return actor;
}

static bool fake_anyone(const struct fake *fake)
{
    for (int i = 0; i < fake->actors; i++)
        if (fake->alive[i]) return true;
    return false;
}

/* Runs until every actor has ended or something failed. */
static void fake_run(struct fake *fake)
{
    uint64_t last = fake->steps + FAKE_STEPS;
    while (fake_anyone(fake) && !fake->failure[0]) {
        if (fake->steps++ == last) fake_fail(fake, "stuck");
        uint64_t dice = fake_random(fake, 16);
        if (dice < 4 && fake->pendings)
            fake_land(fake, (int)fake_random(fake, (uint64_t)fake->pendings));
        if (dice == 15 && !fake->mapped) fake_meet(fake, 8 * fake_random(fake, fake->bytes / 8));
        fake->running = fake_pick(fake);
        fake_switch(&fake->scheduler, &fake->place[fake->running]);
    }
    fake->running = -1;
}

/* An actor's last words. */
static void fake_end(struct fake *fake)
{
    fake->alive[fake->running] = false;
    fake_yield(fake);
}

#endif
