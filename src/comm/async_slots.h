/* slots: the protocol by which workers hand gradients to the bank, and read its weights, without
 * ever waiting for each other.
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
 *   LOCK       of shared memory: claims to act for the bank; the first is good, the others are
 *   taken back
 *   STEP       updates done; the last has written entry (STEP - 1) mod update log of the update log
 *   LIMIT      updates up to which gradients may be applied
 *   SEEN       updates that the bank has read of in the update log
 *   DOORBELL[w]    2 * gradients that worker w has put, over all spans, + the slot of the last
 *   ACK[w]     of those, how many slots the bank has done with
 *   HAZARD[w]     1 + the buffer that worker w reads
 *   REQUEST[w] of a rounded wire: how often worker w has asked for weights
 *   ANSWER[w]  of those, how many the bank has answered
 *   state      the bank's, and its view of each worker
 *   update log    what has been applied
 *   row log    of each range of touched rows, which rows were written
 *   weights    K buffers: version, P floats; the optimizer's state
 *   copies     of a rounded wire: the weights as each worker has them; then the answer to each
 *   slots      2 a worker: note, P floats, and P more where gradients bring the weights they saw;
 *   then the
 *              lists of touched rows. Of a rounded wire: note, parcel
 *
 * Gradients: worker w's next goes to the slot of the one before if that has been applied, while its
 * memory is warm, else to the other one, once ACK[w] shows that it is free. Put, flush, ring the
 * doorbell. The bank reads doorbells, then slots, and acknowledges when it has applied them: each
 * word has one writer, so nothing can be lost or come twice.
 *
 * Combining (Hendler et al., "Flat combining and the synchronization-parallelism tradeoff", SPAA
 * 2010): who sees a doorbell ahead of its ACK, and nothing that forbids to apply (HOLD, LIMIT, an
 * update log that is full), claims the lock, applies if it was free, takes the claim back, and
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
 * Touched rows (async_rows.c; shared memory only): of a range of rows a slot has those that the
 * batch touched, one behind the other from the range's place on, and their numbers in a list; pages
 * of shared memory that no batch reaches are never there. A buffer that is to be written lacks the
 * rows that were written since it was published last: the row log names them, they are copied from
 * the newest weights, and the gradients are applied to it in place. So readers see whole versions
 * as ever, no row of which moves while they have them, and what an update costs depends on the rows
 * touched, not on those there are.
 *
 * A rounded wire (async_wire.c; windows only): slots and answers hold parcels. The bank alone reads
 * versions of the weights while a span lasts, so two are enough, and none is pointed at; between
 * spans they rest, and workers get them whole.
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

/* What a transport settles. */
struct dt__slots_way {
    bool shared; /* workers reach the bank's memory, and act for it */
    int slack;
    int log_entries; /* entries */
};

/* Sizes and places; the same at every rank. */
struct dt__slots_shape {
    struct dt__slots_way way;
    int workers, buffers;
    int64_t staleness; /* -1: no bound */
    bool keep_seen;
    int wire;                         /* enum dt_wire */
    size_t params, rounded;           /* P; floats [0, rounded) are what the wire rounds */
    const struct dt_row_range *range; /* (ranges) of touched rows, borrowed */
    int ranges;                       /* 0: gradients are whole */
    size_t vector; /* bytes of P floats */
    size_t sent;   /* and of a gradient in its slot */
    size_t copies_at, answers_at;
    size_t bank_at, log_at, row_log_at, states_at, states_stride, weights_at, weights_stride;
    size_t slots_at, slot_stride, bytes;
    size_t lists_at; /* from a slot's begin */
};

/* DT_EMEMORY: the sizes overflow. DT_EUSAGE: more workers than a buffer's number has room for;
 * ranges of rows that do not rise; a rounded wire with gradients that bring what they saw. */
dt_status dt__slots_shape_init(struct dt__slots_shape *shape, int workers, struct dt__slots_way way,
                               const struct dt_async_spec *spec);
/* Control words. */
enum {
    WORD_TICKET,
    WORD_PUBLISHED,
    WORD_FLOOR,
    WORD_HOLD,
    WORD_LOCK,
    WORD_STEP,
    WORD_LIMIT,
    WORD_SEEN,
    WORD_WORKERS
};
enum { WORD_DOORBELL, WORD_ACK, WORD_HAZARD, WORD_REQUEST, WORD_ANSWER, WORDS_A_WORKER };
enum { DT__WORD_STRIDE = 64 };                            /* bytes */
int dt__slots_words(const struct dt__slots_shape *shape); /* how many */
int dt__slots_word(int word, int worker);                 /* WORD_DOORBELL and so on */
size_t dt__weights_at(const struct dt__slots_shape *shape, int buffer);
size_t dt__slot_at(const struct dt__slots_shape *shape, int worker, int slot);

/* DOORBELL as one word. */
struct dt__doorbell {
    uint64_t count;
    int slot;
};
uint64_t dt__doorbell_pack(struct dt__doorbell doorbell);
struct dt__doorbell dt__doorbell_unpack(uint64_t word);

/* PUBLISHED as one word. */
struct dt__published {
    uint64_t number;
    int buffer;
};
uint64_t dt__published_pack(struct dt__published published);
struct dt__published dt__published_unpack(uint64_t word);

/* async_rows.c. Bytes of the row log and of a slot's lists; what of them is where. */
size_t dt__row_log_bytes(const struct dt__slots_shape *shape);
size_t dt__row_lists_bytes(const struct dt__slots_shape *shape);
/* Where this rank sees every slot's lists: (workers, DT__SLOTS, ranges). */
void dt__row_lists_map(const struct dt__slots_shape *shape, unsigned char *memory,
                       struct dt_touched *out);

#define DT__SPAN_OVER UINT64_MAX /* as the floor */

/* A buffer of weights. */
struct dt__weights {
    _Alignas(64) uint64_t version; /* updates in them */
    uint64_t retired;              /* publication that took their place */
    _Alignas(64) float params[];
};
/* A gradient, behind it what it saw, and the lists of touched rows; or its parcel. */
struct dt__slot {
    _Alignas(64) struct dt_note note;
    _Alignas(64) float grad[];
};

/* ---- worker --------------------------------------------------------------------------------- */

struct dt__slots_worker {
    const struct dt__slots_shape *shape;
    struct dt__onesided *remote;
    int index;
    uint64_t until;                 /* end of the span */
    uint64_t sent;                  /* over all spans */
    int slot;                       /* of the last, or of the one that was begun */
    uint64_t started;               /* in this span */
    uint64_t gap;                   /* clock gap of the gradient that was begun */
    const struct dt__weights *read; /* what was read last */
    unsigned char *copy; /* weights, then a gradient, where the bank's memory is out of reach */
    bool under_way;      /* a gradient was begun, and is not sent */
    /* Of a rounded wire: what is put or got; the kept error; reads asked for. */
    struct dt__slot *parcel;
    float *error;
    uint64_t asked;
    void (*combine)(
        void *arg); /* applies for the bank what waits; called in waits. NULL: the bank does */
    void *combine_arg;
    const struct dt_touched *touched; /* every slot's lists; NULL: gradients are whole */
};

dt_status dt__slots_worker_init(struct dt__slots_worker *worker,
                                const struct dt__slots_shape *shape, struct dt__onesided *remote,
                                int index);
void dt__slots_worker_free(struct dt__slots_worker *worker);
void dt__slots_worker_open(struct dt__slots_worker *worker, uint64_t until);
/* As dt_async_begin, read, grad and send. */
bool dt__slots_begin(struct dt__slots_worker *worker);
const float *dt__slots_read(struct dt__slots_worker *worker);
float *dt__slots_grad(struct dt__slots_worker *worker);
const struct dt_touched *dt__slots_touched(const struct dt__slots_worker *worker);
void dt__slots_send(struct dt__slots_worker *worker, const struct dt_note *note);
/* async_wire.c. With a rounded wire: makes the gradient what the bank will read of it, before it is
 * sent. */
void dt__slots_round(struct dt__slots_worker *worker);
/* The newest weights, to the worker's copy. */
void dt__slots_read_difference(struct dt__slots_worker *worker);
/* Who acts for the bank leaves a span only when all its gradients are applied: the bank does
 * not. */
void dt__slots_settle(struct dt__slots_worker *worker);

/* ---- bank ----------------------------------------------------------------------------------- */

/* Of one worker. */
struct dt__slots_peer {
    bool active;
    int hazard;                   /* 1 + the buffer that it reads; 0: none */
    struct dt__doorbell doorbell; /* as of the last look */
    uint64_t served;              /* over all spans */
    uint64_t applied;             /* in this span */
    uint64_t answered;            /* reads of weights, over all spans */
};

/* In the bank's memory, for whoever acts for it. */
struct dt__slots_state {
    uint64_t step; /* updates done */
    uint64_t publication, floor;
    int current, target; /* buffers of the newest weights and of the next */
    int next;            /* worker that is served first */
    struct dt__slots_peer peer[];
};

/* A rank's view of it; and at the bank itself, what it alone knows. */
struct dt__slots_bank {
    const struct dt__slots_shape *shape;
    struct dt__onesided *remote;
    struct dt__slots_state *state;
    struct dt_applied *log;
    const struct dt_touched *touched; /* every slot's lists; NULL: gradients are whole */
    uint64_t last; /* updates at the end of the span */
    bool closed;   /* before its time */
};

void dt__slots_bank_init(struct dt__slots_bank *bank, const struct dt__slots_shape *shape,
                         struct dt__onesided *remote);

/* Of the bank itself.
 * open: nobody else may be in a span. active: (workers). allow, update log: the two halves of
 * dt_async_serve. */
void dt__slots_open(struct dt__slots_bank *bank, uint64_t from, uint64_t until, const bool *active);
void dt__slots_allow(struct dt__slots_bank *bank, uint64_t until);
int dt__slots_read_log(struct dt__slots_bank *bank, int limit, struct dt_applied *out);
bool dt__slots_quiescent(const struct dt__slots_bank *bank);
void dt__slots_close(struct dt__slots_bank *bank);
bool dt__slots_over(struct dt__slots_bank *bank);

/* async_wire.c. Of a rounded wire: answers who asks for weights. Bytes of a parcel; floats [at, at
 * + n) of one, at a multiple of DT__WIRE_BLOCK. */
void dt__slots_answer(struct dt__slots_bank *bank);
size_t dt__parcel_bytes(int wire, size_t rounded, size_t params);
void dt__parcel_read(const struct dt__slots_shape *shape, const unsigned char *parcel, size_t at,
                     size_t n, float *out);

/* For the bank. true: gradients wait, this rank has the lock, and it must leave. */
bool dt__slots_enter(struct dt__slots_bank *bank);
void dt__slots_leave(struct dt__slots_bank *bank);
/* With the lock. Gradients that wait to be applied, at most `limit`, in fair order, into out
 * (limit). */
int dt__slots_take(struct dt__slots_bank *bank, int limit, struct dt_gradient *out);
/* The newest weights, and the buffer to write the next ones to. */
float *dt__slots_weights(const struct dt__slots_bank *bank);
float *dt__slots_target(struct dt__slots_bank *bank);
/* Before the first span: gives all buffers the rows of touched ranges. */
void dt__slots_fill_rows(struct dt__slots_bank *bank);
/* Makes a range's rows in the target those of the newest weights. */
void dt__slots_copy_rows(struct dt__slots_bank *bank, int range);
/* The target's rows of a range have been written by applying these gradients to them. */
void dt__slots_log_rows(struct dt__slots_bank *bank, int range, int n,
                        const struct dt_gradient *gradients);
/* The target has been written by applying these gradients. */
void dt__slots_publish(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients);

#endif
