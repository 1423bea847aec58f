/* slots: the protocol by which workers hand gradients to the bank, and read its weights, without ever
 * waiting for each other.
 *
 * The bank's memory, control words on cache lines of their own:
 *
 *   TICKET     gradients begun in the job; a worker adds 1 and owns the number it got
 *   PUBLISHED  (publication << 16) | buffer of the newest weights
 *   FLOOR      fewest gradients of this leg applied of any active worker; all ones: the leg is over
 *   HOLD       readers that ask the bank to publish no more until they have their weights
 *   BELL[w]    gradients that worker w has put, over all legs
 *   ACK[w]     of those, how many slots the bank has done with
 *   PIN[w]     1 + the buffer that worker w reads
 *   weights    K = workers + 2 + slack buffers: version, P floats
 *   slots      2 a worker: note, P floats, and P more where gradients bring the weights they saw
 *
 * Gradients: worker w's gradient n goes to slot n mod 2, once ACK[w] > n - 2. Put, flush, BELL = n + 1.
 * The bank reads bells, then slots, and acknowledges when it has applied them: each word has one
 * writer, so nothing can be lost or come twice.
 *
 * Weights: the bank writes the buffer that has been out of use the longest among those not pinned, and
 * publishes it. A reader fetches PUBLISHED, pins that buffer, and fetches PUBLISHED again. If the bank
 * looked for a buffer before the pin was there, it may be writing the pinned one; but it passes over at
 * most `workers` pinned buffers and has K - 1 - workers others to use up first, so not before
 * K - workers - 2 = slack further publications: a reader that sees at most `slack` of them has its
 * buffer for good, for as long as it likes, and the bank always finds another. A reader that was
 * overtaken again and again asks the bank to hold: it publishes once more at most.
 *
 * Clocks: a worker begins its gradient number c of the leg (from 0) when c <= FLOOR + staleness. The
 * floor is raised behind the publication, so that it has all updates up to clock c - staleness.
 * Source: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
 * server", NIPS 2013, section 2. */
#ifndef DT_COMM_SLOTS_H
#define DT_COMM_SLOTS_H

#include "comm/onesided.h"
#include "dtrain/async.h"

enum { DT__SLOTS = 2 }; /* a worker */

/* Sizes and places; the same at every rank. */
struct dt__slots_shape {
    int workers, buffers, slack;
    int64_t staleness; /* -1: no bound */
    bool keep_seen;
    size_t vector; /* bytes of P floats */
    size_t weights_at, weights_stride, slots_at, slot_stride, bytes;
};

/* DT_EMEMORY: the sizes overflow. DT_EUSAGE: more workers than a buffer's number has room for. */
dt_status dt__slots_shape_init(struct dt__slots_shape *shape, int workers, int slack,
                               const struct dt_async_spec *spec);
/* Control words. */
enum { WORD_TICKET, WORD_PUBLISHED, WORD_FLOOR, WORD_HOLD, WORD_WORKERS };
enum { WORD_BELL, WORD_ACK, WORD_PIN, WORDS_A_WORKER };
enum { DT__WORD_STRIDE = 64 };                            /* bytes */
int dt__slots_words(const struct dt__slots_shape *shape); /* how many */
int dt__slots_word(int word, int worker);                 /* WORD_BELL and so on */
size_t dt__weights_at(const struct dt__slots_shape *shape, int buffer);
size_t dt__slot_at(const struct dt__slots_shape *shape, int worker, uint64_t number);

/* PUBLISHED as one word. */
struct dt__published {
    uint64_t number;
    int buffer;
};
uint64_t dt__published_pack(struct dt__published published);
struct dt__published dt__published_unpack(uint64_t word);

#define DT__LEG_OVER UINT64_MAX /* as the floor */

/* A buffer of weights. */
struct dt__weights {
    _Alignas(64) uint64_t version; /* updates in them */
    _Alignas(64) float params[];
};
/* A gradient, and behind it what it saw. */
struct dt__slot {
    _Alignas(64) struct dt_note note;
    _Alignas(64) float grad[];
};

/* ---- worker --------------------------------------------------------------------------------- */

struct dt__slots_worker {
    const struct dt__slots_shape *shape;
    struct dt__onesided *net;
    int index;
    uint64_t until;                 /* end of the leg */
    uint64_t sent;                  /* over all legs */
    uint64_t started;               /* in this leg */
    uint64_t gap;                   /* clock gap of the gradient that was begun */
    const struct dt__weights *read; /* what was read last */
    unsigned char *copy; /* weights, then a gradient, where the bank's memory is out of reach */
};

dt_status dt__slots_worker_init(struct dt__slots_worker *worker,
                                const struct dt__slots_shape *shape, struct dt__onesided *net,
                                int index);
void dt__slots_worker_free(struct dt__slots_worker *worker);
void dt__slots_worker_open(struct dt__slots_worker *worker, uint64_t until);
/* As dt_async_begin, read, grad and send. */
bool dt__slots_begin(struct dt__slots_worker *worker);
const float *dt__slots_read(struct dt__slots_worker *worker);
float *dt__slots_grad(struct dt__slots_worker *worker);
void dt__slots_send(struct dt__slots_worker *worker, const struct dt_note *note);

/* ---- bank ----------------------------------------------------------------------------------- */

/* The bank's view of one worker. */
struct dt__slots_peer {
    bool active;
    int pinned;            /* 1 + the buffer that it reads; 0: none */
    uint64_t rung, served; /* over all legs */
    uint64_t applied;      /* in this leg */
};

struct dt__slots_bank {
    const struct dt__slots_shape *shape;
    struct dt__onesided *net;
    uint64_t last; /* updates at the end of the leg */
    bool closed;   /* before its time */
    uint64_t step; /* updates done */
    uint64_t publication, floor;
    int current, target;         /* buffers of the newest weights and of the next */
    int *retired;                /* (buffers - 1) the others, longest out of use first */
    int next;                    /* worker whose turn it is */
    struct dt__slots_peer *peer; /* (workers) */
};

dt_status dt__slots_bank_init(struct dt__slots_bank *bank, const struct dt__slots_shape *shape,
                              struct dt__onesided *net);
void dt__slots_bank_free(struct dt__slots_bank *bank);
/* Nobody else may be in a leg. active: (workers). */
void dt__slots_bank_open(struct dt__slots_bank *bank, uint64_t from, uint64_t until,
                         const bool *active);
/* As dt_async_take, but that it never waits. */
int dt__slots_take(struct dt__slots_bank *bank, int limit, struct dt_gradient *out);
/* The newest weights, and the buffer to write the next ones to. */
float *dt__slots_weights(const struct dt__slots_bank *bank);
float *dt__slots_target(struct dt__slots_bank *bank);
/* The target has been written by applying these gradients. */
void dt__slots_publish(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients);
void dt__slots_close(struct dt__slots_bank *bank);
bool dt__slots_over(struct dt__slots_bank *bank);

#endif
