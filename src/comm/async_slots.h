/* slots: the protocol by which workers hand gradients to the bank, and read its weights, without
 * ever waiting for each other.
 *
 *      worker w                       the bank's memory                 who acts for the bank
 *
 *   begin   ---- add 1 ------------>  TICKET
 *   read    <--- buffer number -----  PUBLISHED   <-------- publish --  next version, behind all
 *           ---- buffer number ---->  HAZARD[w]                         its stores
 *           <--- P floats ----------  weights     <--- P floats ------  apply: the rule on the
 *   compute                                                             newest version, into a
 *   send    ---- note, gradient --->  slot of w   ---- gradient ----->  buffer out of use
 *           ---- count, slot ------>  DOORBELL[w] ---- what waits --->  take
 *   begin   <--- slots free --------  ACK[w]      <--- applied -------  publish
 *           <--- slowest clock -----  FLOOR       <--- applied -------  publish
 *
 *   order of files: onesided.h (transport), this, async_codec.c (what a slot holds), async_rows.c
 *   (rows that a version lacks), async_bank.c, async_worker.c (the two ends), async.c (memory,
 *   spans, counts).
 *
 * Gradients are applied by whoever acts for the bank: the bank itself, or where its memory is
 * shared a worker that has just handed in a gradient, under a lock.
 *
 * The bank's memory, control words on cache lines of their own:
 *
 *   TICKET     gradients begun in the job; a worker adds 1 and owns the number it got
 *   PUBLISHED  (publication << 16) | buffer of the newest weights
 *   FLOOR      fewest gradients of this span applied of any active worker; all ones: the span is
 *   over
 *   HOLD       readers that ask the bank to publish no more until they have their weights
 *   LOCK       claims to act for the bank; the first is good, the others are taken back
 *   STEP       updates done; the last has written entry (STEP - 1) mod entries of the update log
 *   SEEN       updates that the bank has read of in the update log
 *   DOORBELL[w]    2 * gradients that worker w has put, over all spans, + the slot of the last
 *   ACK[w]     of those, how many slots the bank has done with
 *   HAZARD[w]     1 + the buffer that worker w reads
 *   REQUEST[w] of a rounded wire: how often worker w has asked for weights
 *   ANSWER[w]  of those, how many the bank has answered
 *   state      the bank's, and its view of each worker
 *   update log    what has been applied
 *   row log    of each range of touched rows, which rows were written
 *   states     the optimizer's
 *   weights    K buffers: version, P floats
 *   copies     of a rounded wire: the weights as each worker has them; then the answer to each
 *   slots      2 a worker: note, gradient as async_codec.c has it, and P floats more where
 *              gradients bring the weights they saw
 *
 * Gradients: worker w's next goes to the slot of the one before if that has been applied, while its
 * memory is warm, else to the other one, once ACK[w] shows that it is free. Put, flush, ring the
 * doorbell. The bank reads doorbells, then slots, and acknowledges when it has applied them: each
 * word has one writer, so nothing can be lost or come twice.
 *
 * Combining (Hendler et al., "Flat combining and the synchronization-parallelism tradeoff", SPAA
 * 2010): who sees a doorbell ahead of its ACK, and nothing that forbids to apply (HOLD, an update
 * log that is full), claims the lock, applies if it was free, takes the claim back, and
 * looks again if it was the last one: so no gradient is left lying between two who thought that the
 * other has it. Who waits combines as well, and a worker leaves a span when all its gradients are
 * applied; so there is always somebody.
 *
 * Weights (hazard pointers: Michael, IEEE TPDS 2004): the bank writes the buffer that has been out
 * of use the longest among those that no hazard pointer names, and publishes it. A reader fetches
 * PUBLISHED, points at that buffer, and fetches PUBLISHED again. If the bank looked for a buffer
 * before the pointer was there, it may be writing that one; but it passes over at most `workers`
 * such buffers and has K - 1 - workers others to use up first, so not before K - workers - 2 =
 * slack further publications: a reader that sees at most `slack` of them has its buffer for good,
 * for as long as it likes, and the bank always finds another. A reader that was overtaken again and
 * again asks the bank to hold: it publishes once more at most.
 * In shared memory slack is 0: a reader that sees no publication has the current buffer, and any
 * other one that is not pointed at may be written; it is the one that was given up last, whose
 * memory is warm. A worker that acts for the bank has let go of its own pointer: one buffer less
 * will do.
 *
 * A rounded wire, of windows: the bank has a copy of the weights as each worker has them. A worker
 * asks (REQUEST); the bank puts the rounded difference of the newest from the copy into the
 * worker's answer and into the copy, and says so (ANSWER); the worker gets the answer and adds the
 * same. The first answer is the copy itself. Bank and worker write to answer and copy by turns, as
 * REQUEST and ANSWER say. The bank alone reads versions of the weights while a span lasts, so two
 * are enough, and none is pointed at; between spans they rest, and workers get them whole.
 *
 * Clocks: a worker begins its gradient number c of the span (from 0) when c <= FLOOR + staleness.
 * The floor is raised behind the publication, so that it has all updates up to clock c - staleness.
 * Source: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
 * server", NIPS 2013, section 2. */
#ifndef DT_COMM_SLOTS_H
#define DT_COMM_SLOTS_H

#include "comm/onesided.h"
#include "dtrain/async.h"

enum { DT__SLOTS = 2 }; /* a worker; a doorbell has one bit for them */
enum { DT__MOST_BUFFERS = 1 << 16 };

/* Control words; behind those of all, each worker's. */
enum {
    WORD_TICKET,
    WORD_PUBLISHED,
    WORD_FLOOR,
    WORD_HOLD,
    WORD_LOCK,
    WORD_STEP,
    WORD_SEEN,
    WORD_WORKERS
};
enum { WORD_DOORBELL, WORD_ACK, WORD_HAZARD, WORD_REQUEST, WORD_ANSWER, WORDS_A_WORKER };

static inline int dt__word(int word, int worker)
{
    return WORD_WORKERS + worker * WORDS_A_WORKER + word;
}

#define DT__SPAN_OVER UINT64_MAX /* as the floor */

/* A buffer of weights. */
struct dt__weights {
    _Alignas(64) uint64_t version; /* updates in them */
    uint64_t retired;              /* publication that took their place */
    uint64_t pinned;               /* publication that a hazard pointer kept it out of, last */
    _Alignas(64) float params[];
};
/* A gradient, as async_codec.c has it. */
struct dt__slot {
    _Alignas(64) struct dt_note note;
    _Alignas(64) float grad[];
};

/* Places in the bank's memory, in bytes. */
struct dt__places {
    size_t bank, log, row_log, states, weights, copies, answers, slots, end;
    size_t vector; /* of P floats, without what fills a cache line */
    size_t weights_each, slot_each;
    size_t grad, seen, lists; /* of the gradient in a slot; from a slot's begin */
};

/* Of one worker, as who acts for the bank sees it. */
struct dt__slots_peer {
    bool active;
    int slot;          /* of its last gradient, as of the last look at its doorbell, */
    uint64_t rung;     /* and how many it had put, over all spans */
    uint64_t served;   /* over all spans */
    uint64_t applied;  /* in this span */
    uint64_t answered; /* reads of weights, over all spans */
};

/* In the bank's memory, for whoever acts for it. */
struct dt__slots_state {
    uint64_t step; /* updates done */
    uint64_t publication, floor;
    int current, target; /* buffers of the newest weights and of the next */
    int next;            /* worker that is served first */
    struct dt__slots_peer peer[];
};

/* A rank's own counts. */
struct dt__own_counts {
    uint64_t sent, wait_ms;
    double busy_secs;
};

struct dt_async {
    /* From before dt__async_lay_out on. */
    struct dt_world *world;
    struct dt_async_spec spec; /* no wire in shared memory, no ranges of rows in windows */
    int workers, worker;       /* this rank's number among them; the bank: -1 */
    bool shared;               /* workers reach the bank's memory, and act for it */
    int slack;                 /* publications that a reader may miss between its two looks */
    uint64_t log_entries;
    int at_once; /* gradients applied in one pass, at most */

    int buffers; /* K */
    struct dt__places at;
    struct dt__onesided *remote; /* the bank's memory */
    bool *active;                /* (workers) in this span */
    uint64_t until;              /* of the span; of the bank once closed: the last ticket */
    bool closed;                 /* the bank: the span ends before its time */

    /* Where the bank's memory is in reach. */
    struct dt__slots_state *state;
    struct dt_applied *log;
    float *states[DT_ASYNC_STATES];
    struct dt_touched *touched; /* (workers, slots, ranges) lists; NULL: gradients are whole */
    size_t block;               /* floats of those below: DT__ASYNC_BLOCK, or the widest row */
    float *fresh;               /* new weights of a block, before the others see them */
    float *grad, *seen;         /* a block of a gradient that is not whole in its slot */

    /* A worker's. */
    uint64_t sent;                  /* over all spans */
    uint64_t started;               /* in this span */
    uint64_t gap;                   /* clock gap of the gradient that was begun */
    int slot;                       /* of the last, or of the one that was begun */
    bool under_way;                 /* a gradient was begun, and is not sent */
    const struct dt__weights *read; /* what was read last */
    unsigned char *copy; /* weights, then a gradient, where the bank's memory is out of reach */
    struct dt__slot *encoded; /* of a rounded wire: what is put or got; */
    float *error;             /* (P) what rounding has kept; */
    uint64_t asked;           /* reads asked for */

    double wait_secs, busy_secs; /* this rank's: waited, applied */
    struct dt_async_counts counts;
    struct dt__own_counts *gathered; /* bank: (ranks) */
};

static inline uint64_t dt__fetch(const struct dt_async *async, int word)
{
    return async->remote->ops->fetch_and(async->remote, word, DT__NO_OP, 0);
}
static inline void dt__replace(struct dt_async *async, int word, uint64_t value)
{
    async->remote->ops->fetch_and(async->remote, word, DT__REPLACE, value);
}
static inline uint64_t dt__add(struct dt_async *async, int word, uint64_t delta)
{
    return async->remote->ops->fetch_and(async->remote, word, DT__SUM, delta);
}
static inline void dt__sync(struct dt_async *async)
{
    async->remote->ops->sync(async->remote);
}
static inline size_t dt__weights_at(const struct dt_async *async, int buffer)
{
    return async->at.weights + (size_t)buffer * async->at.weights_each;
}
static inline size_t dt__slot_at(const struct dt_async *async, int worker, int slot)
{
    return async->at.slots + (size_t)(worker * DT__SLOTS + slot) * async->at.slot_each;
}
/* Where the bank's memory is in reach. */
static inline struct dt__weights *dt__weights_in(const struct dt_async *async, int buffer)
{
    return (struct dt__weights *)(async->remote->memory + dt__weights_at(async, buffer));
}
/* The newest weights there. */
static inline float *dt__newest(const struct dt_async *async)
{
    return dt__weights_in(async, async->state->current)->params;
}
static inline size_t dt__copy_at(const struct dt_async *async, int worker)
{
    return async->at.copies + (size_t)worker * async->at.weights_each;
}
static inline size_t dt__answer_at(const struct dt_async *async, int worker)
{
    return async->at.answers + (size_t)worker * async->at.slot_each;
}

/* async.c. Places, from the spec and what stands before it in the struct.
 * DT_EMEMORY: the sizes overflow. DT_EUSAGE: more workers than a buffer's number has room for;
 * ranges of rows that do not rise; a rounded wire with gradients that bring what they saw. */
dt_status dt__async_lay_out(struct dt_async *async);
/* What this rank needs by itself, `remote` being open; and gives it back. */
dt_status dt__async_open_end(struct dt_async *async);
void dt__async_close_end(struct dt_async *async);

/* async_bank.c. The span's words; nobody else may be in one. from: updates done. */
void dt__async_open_span(struct dt_async *async, uint64_t from);
/* Applies what waits, unless another is at it. */
void dt__async_combine(struct dt_async *async);

/* async_codec.c. Bytes of a gradient in its slot, without note; of the lists behind it. */
size_t dt__codec_bytes(const struct dt_async *async);
size_t dt__lists_bytes(const struct dt_async *async);
/* Where this rank sees every slot's lists, into async->touched. */
void dt__lists_map(struct dt_async *async);
/* Worker, rounded wire: the gradient under way (P) to async->encoded; grad is what the bank will
 * read of it. */
void dt__gradient_encode(struct dt_async *async, float *grad);
/* Worker: the weights that the gradient under way saw, as it has its rows. */
void dt__seen_copy(const struct dt_async *async, const struct dt_touched *touched, float *to);
/* Floats [at, at + n) of a gradient, of a range (NULL: of none) whole rows; until the next call. */
struct dt_gradient dt__gradient_block(struct dt_async *async, const struct dt_gradient *gradient,
                                      const struct dt_row_range *range, size_t at, size_t n);
/* Rounded wire. What the newest weights have beyond a worker's copy, to the answer, and as it is
 * rounded to the copy; and from the answer to the worker's weights. */
void dt__difference_encode(const struct dt_async *async, float *copy, float *answer);
void dt__difference_add(const struct dt_async *async, const float *answer, float *weights);

/* async_rows.c. Of ranges whose touched rows change alone. Bytes of the row log. */
size_t dt__row_log_bytes(const struct dt_async *async);
/* Before the first span: gives all buffers the rows of the newest weights. */
void dt__rows_fill(struct dt_async *async);
/* Makes a range's rows in the target those of the newest weights. */
void dt__rows_copy(struct dt_async *async, int range);
/* The target's rows of a range have been written by applying these gradients to them. */
void dt__rows_log(struct dt_async *async, int range, int n, const struct dt_gradient *gradients);

#endif
