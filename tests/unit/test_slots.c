/* The slot protocol under the adversarial scheduler, in shared memory and over several slices whose
 * owners are workers. Fails if gradients are lost, applied twice or torn; if weights are torn,
 * overwritten while they are read, or changed after a span; if a version lacks rows or has them too
 * early; if the update log has gaps; if clocks run ahead; or if a span does not end. Planted
 * faults, which change an operation as a bug in the protocol would, prove that each of these is
 * found. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "onesided_fake.h"

/* The protocol's files copy vectors and rows word by word, while the other actors run. */
static void *slow_memcpy(void *to, const void *from, size_t bytes);
#define memcpy slow_memcpy
#include "comm/async_rows.c"
static void faulty_rows_copy(struct dt__slice *slice, int range);
static void faulty_rows_log(struct dt__slice *slice, int range, int n,
                            const struct dt_gradient *gradients);
#define dt__row_log_copy faulty_rows_copy
#define dt__row_log_append faulty_rows_log
static uint32_t faulty_checksum(const struct dt__slice *slice, const struct dt_gradient_info *info,
                                const float *gradient);
#define dt__slot_checksum faulty_checksum
#include "comm/async_owner.c"
#undef dt__slot_checksum
#undef dt__row_log_copy
#undef dt__row_log_append
#include "comm/async_worker.c"
#undef memcpy

enum { MAX_WORKERS = FAKE_ACTORS - 1, MAX_STEPS = 40 };
enum { VALUES = 4, FLOATS = 2 * VALUES /* floats of a slice that has floats; a value takes two */ };

/* Rows, of one value each, come after these floats; a gradient touches only some rows. */
enum { RANGES = 2, MAX_ROWS = 20 };
static const struct dt_row_range RANGE[RANGES] = {
    {.offset = 2 * VALUES, .rows = MAX_ROWS, .width = 2, .touched_alone = true},
    {.offset = 2 * (VALUES + MAX_ROWS), .rows = 5, .width = 2, .touched_alone = true}};

/* State of one seed's run. Indices: actor (0 is the bank), slice, worker, version. */
static struct scene {
    struct fake fake;
    struct dt_async end[FAKE_ACTORS];                 /* [actor] */
    struct dt__slice slice[FAKE_ACTORS][FAKE_ACTORS]; /* [actor][slice] */
    int workers, slices, left;                        /* left: actors that have left the span */
    bool active[MAX_WORKERS], leaves[MAX_WORKERS];
    uint64_t until;
    bool closes; /* the bank closes the span early, at a random time */
    /* number of the worker's gradients of this span in a version of the slice's weights */
    uint64_t clock[FAKE_ACTORS][MAX_STEPS + 1][MAX_WORKERS];
    /* version from which a worker's gradient was computed, [slice][worker][gradient] */
    uint64_t read[FAKE_ACTORS][MAX_WORKERS][MAX_STEPS];
    uint64_t applied[FAKE_ACTORS][MAX_WORKERS]; /* number of gradients applied, [slice][worker] */
    uint64_t logged[MAX_WORKERS];               /* number of gradients in the update log */
    uint64_t step;                              /* updates that the bank knows of */
    uint64_t row[MAX_STEPS + 1][RANGES][MAX_ROWS]; /* update that wrote a row of a version */
} scene;

static void *slow_memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < 8 ? bytes - at : 8;
        memcpy((char *)to + at, (const char *)from + at, n);
        if (scene.fake.running >= 0 && fake_random(&scene.fake, 2)) fake_yield(&scene.fake);
    }
    return to;
}

static uint64_t value_of(uint64_t kind, uint64_t a, uint64_t i)
{
    return kind << 48 | a << 16 | i;
}

/* Kinds of values; GRADIENTS + w: gradients of worker w; ROWS + i: rows of range i. */
enum { WEIGHTS = 1, GRADIENTS = 2, ROWS = 16 };

/* Writes the values of a slice, or compares them, one by one while the other actors run; `floats`
 * are those of the slice. */
static void write_values(float *floats, int slice, uint64_t kind, uint64_t a)
{
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t value = value_of(kind, a, (uint64_t)slice * VALUES + i);
        memcpy(floats + 2 * i, &value, 8);
        for (int slow = 0; slow < 4; slow++)
            fake_yield(&scene.fake);
    }
}

static void expect_values(const float *floats, int slice, uint64_t kind, uint64_t a,
                          const char *what)
{
    for (uint64_t i = 0; i < VALUES && scene.end[0].slice[slice].params; i++) {
        uint64_t value, expected = value_of(kind, a, (uint64_t)slice * VALUES + i);
        memcpy(&value, floats + 2 * i, 8);
        if (value != expected)
            fake_fail(&scene.fake, "slice %d: %s: word %d is %llx, not %llx", slice, what, (int)i,
                      (unsigned long long)value, (unsigned long long)expected);
        fake_yield(&scene.fake);
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void expect_word(const float *at, uint64_t expected, const char *what)
{
    uint64_t value;
    memcpy(&value, at, 8);
    if (value != expected)
        fake_fail(&scene.fake, "%s: %llx, not %llx", what, (unsigned long long)value,
                  (unsigned long long)expected);
}

/* Chooses 0 to 2 touched rows, in rising order; with so few the row log is overrun in some runs,
 * and in some not. Returns their number. */
static uint32_t rows_of(uint64_t worker, uint64_t number, int range, uint32_t rows[2])
{
    struct dt_rng rng = dt__rng_make(worker, DT_STREAM_TEST, number, (uint64_t)range);
    const uint64_t half = RANGE[range].rows / 2;
    const uint32_t count = (uint32_t)(dt__rng_u64(&rng, 0) % 3);
    rows[0] = (uint32_t)(dt__rng_u64(&rng, 1) % half);
    rows[1] = (uint32_t)(half + dt__rng_u64(&rng, 2) % (RANGE[range].rows - half));
    return count;
}

static void write_gradient_rows(const struct dt_async *worker, float *grad)
{
    const struct dt_touched *touched = dt__async_touched(worker);
    const uint64_t w = (uint64_t)worker->worker;
    for (int i = 0; i < worker->spec.row_ranges; i++) {
        *touched[i].count = rows_of(w, worker->own.sent, i, touched[i].row);
        fake_yield(&scene.fake);
        for (uint64_t k = 0; k < *touched[i].count; k++) {
            const uint64_t value =
                value_of(GRADIENTS + w, worker->own.sent, VALUES + touched[i].row[k]);
            memcpy(grad + RANGE[i].offset + 2 * k, &value, 8);
            fake_yield(&scene.fake);
        }
    }
}

/* Checks the rows of a gradient; part->grad begins at those of the range. */
static void expect_gradient_rows(const struct dt_gradient *part, int range)
{
    const uint64_t w = (uint64_t)part->worker, number = part->info->number;
    const struct dt_touched *touched = &part->touched[range];
    uint32_t rows[2];
    if (*touched->count != rows_of(w, number, range, rows))
        fake_fail(&scene.fake, "%d touched rows", (int)*touched->count);
    for (uint64_t k = 0; k < *touched->count && k < 2; k++) {
        if (touched->row[k] != rows[k]) fake_fail(&scene.fake, "row %d", (int)touched->row[k]);
        expect_word(part->grad + 2 * k, value_of(GRADIENTS + w, number, VALUES + rows[k]),
                    "row of a gradient");
    }
}

static void expect_rows(const float *weights, uint64_t version, const char *what)
{
    for (int i = 0; i < scene.end[0].spec.row_ranges && version <= MAX_STEPS; i++)
        for (uint64_t r = 0; r < RANGE[i].rows; r++) {
            expect_word(weights + RANGE[i].offset + 2 * r,
                        value_of((uint64_t)(ROWS + i), scene.row[version][i][r], r), what);
            if (r % 4 == 0) fake_yield(&scene.fake);
        }
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Planted faults: what a bug would make of an operation between the protocol and the fake. */
static enum fault {
    NO_FAULT,
    TORN,          /* an owner takes a gradient that has not arrived completely */
    EARLY_ACK,     /* a slot is released before its gradient was read */
    LOST_DOORBELL, /* the bank acknowledges gradients that it has not seen */
    EARLY_PUBLISH, /* a version is published before its weights are written */
    LATE_PIN,      /* a reader pins a buffer and does not check again that it is the newest */
    EARLY_STOP,    /* the span ends without gradients that are in flight */
    STALE_FLOOR,   /* the clock's floor is raised before the weights are published */
    NO_LOCK,       /* two ranks act for the owner at once */
    EARLY_LEAVE,   /* a worker leaves while its gradients wait */
    UNCOPIED_ROWS, /* a buffer lacks rows that were written while it was not in use */
    UNLOGGED_ROWS, /* rows are written that the row log does not list */
    EARLY_ANSWER,  /* a worker uses an answer that is still in flight */
    UNPINNED,      /* an owner writes to weights that it is sending */
    CLOCKLESS,     /* an owner answers a request before its clock allows */
    EARLY_END,     /* an owner leaves the span while gradients wait */
} fault;

static struct {
    bool leaving;
    uint64_t published; /* WORD_PUBLISHED as fetched before the pin */
    bool pinned;
} actor_state[FAKE_ACTORS];

static int memory_of(const struct dt__onesided *remote)
{
    const struct fake_port *port = (const struct fake_port *)remote;
    return (int)(port->memory - port->fake->memory);
}

/* Returns the slice as its owner sees it. */
static struct dt__slice *slice_of(const struct dt__onesided *remote)
{
    const int memory = memory_of(remote);
    return &scene.slice[memory][memory];
}

static int actor_of(struct dt__onesided *remote)
{
    return ((struct fake_port *)remote)->actor;
}

static uint32_t faulty_checksum(const struct dt__slice *slice, const struct dt_gradient_info *info,
                                const float *gradient)
{
    const struct dt__slot_head *head = (const struct dt__slot_head *)info;
    return fault == TORN ? head->checksum : dt__slot_checksum(slice, info, gradient);
}

static void faulty_expect(struct dt__onesided *remote, struct dt__answer *answer, void *body,
                          size_t length)
{
    fake_expect(remote, answer, body, length);
    if (fault == EARLY_ANSWER) answer->left = 0;
}

static uint64_t doorbells(const struct dt__onesided *remote, int worker)
{
    return ((const struct fake_port *)remote)->memory->word[dt__word(WORD_DOORBELL, worker)] /
           DT__SLOTS;
}

static uint64_t faulty_fetch(struct dt__onesided *remote, int word)
{
    int actor = actor_of(remote);
    uint64_t value = fake_fetch_op(remote, word, DT__NO_OP, 0);
    if (actor > 0 && actor_state[actor].leaving && fault == EARLY_LEAVE &&
        word == dt__word(WORD_ACK, actor - 1))
        return doorbells(remote, actor - 1);
    for (int w = 0; w < scene.workers && fault == CLOCKLESS; w++)
        if (word == dt__word(WORD_REQUEST, w)) return value | 1;
    if (word != WORD_PUBLISHED) return value;
    bool again = actor_state[actor].pinned;
    actor_state[actor].pinned = false;
    if (again && fault == LATE_PIN) return actor_state[actor].published;
    actor_state[actor].published = value;
    return value;
}

static void faulty_replace(struct dt__onesided *remote, int word, uint64_t value)
{
    int actor = actor_of(remote);
    struct dt__slice *slice = slice_of(remote);
    if (fault == STALE_FLOOR && word == WORD_PUBLISHED)
        fake_fetch_op(remote, WORD_FLOOR, DT__REPLACE, owner_lowest_clock(slice));
    for (int w = 0; w < scene.workers && fault == LOST_DOORBELL; w++)
        if (word == dt__word(WORD_ACK, w))
            value = slice->state->peer[w].served = doorbells(remote, w);
    for (int w = 0; w < scene.workers && fault == UNPINNED && !scene.end[0].shared; w++)
        if (word == dt__word(WORD_HAZARD, w)) value = 0;
    if (actor > 0 && word == dt__word(WORD_HAZARD, actor - 1))
        actor_state[actor].pinned = value > 0;
    fake_fetch_op(remote, word, DT__REPLACE, value);
}

static uint64_t faulty_add(struct dt__onesided *remote, int word, uint64_t delta)
{
    if (word == WORD_LOCK && delta == 1 && fault == NO_LOCK) return 0;
    if (word == WORD_LOCK && delta == (uint64_t)-1 && fault == NO_LOCK) return 1;
    uint64_t before = fake_fetch_op(remote, word, DT__SUM, delta);
    if (word != WORD_TICKET) return before;
    if (delta > 1 && fault == EARLY_STOP) return fake_fetch_op(remote, WORD_STEP, DT__NO_OP, 0);
    if (delta == 1) actor_state[actor_of(remote)].leaving = before >= scene.until;
    return before;
}

static uint64_t faulty_fetch_op(struct dt__onesided *remote, int word, enum dt__op op,
                                uint64_t value)
{
    if (op == DT__NO_OP) return faulty_fetch(remote, word);
    if (op == DT__SUM) return faulty_add(remote, word, value);
    faulty_replace(remote, word, value);
    return 0;
}

static void wrap_operations(struct fake *fake)
{
    static struct dt__onesided_ops ops;
    ops = *fake->port[0][0].remote.ops;
    ops.fetch_op = faulty_fetch_op;
    ops.expect = faulty_expect;
    memset(actor_state, 0, sizeof actor_state);
    for (int m = 0; m < fake->memories; m++)
        for (int i = 0; i < fake->actors; i++)
            fake->port[m][i].remote.ops = &ops;
}

/* ---- turns ---------------------------------------------------------------------------------- */

enum { MAX_STALENESS = 3 };
static bool in_first_span;
/* Greatest clock gap, [windows, shared memory], of gradients with numbers above MAX_STALENESS;
 * earlier gradients cannot have that gap. */
static uint64_t greatest_gap[2];

static void expect_gradient(const struct dt_gradient *gradient, int slice)
{
    const struct dt_gradient_info *info = gradient->info;
    int w = gradient->worker;
    uint64_t updates = 0; /* before this gradient */
    for (int i = 0; i < scene.workers; i++)
        updates += scene.applied[slice][i];
    if (gradient->staleness != updates - info->version)
        fake_fail(&scene.fake, "staleness %d of %d updates", (int)gradient->staleness,
                  (int)updates);
    uint64_t number = scene.applied[slice][w]++;
    if (info->number != number || info->replica != w || info->rows != number + 1)
        fake_fail(&scene.fake, "slice %d: worker %d: gradient %d arrived as %d", slice, w,
                  (int)number, (int)info->number);
    if (scene.end[0].slice[slice].params &&
        info->version != scene.read[slice][w][number % MAX_STEPS])
        fake_fail(&scene.fake, "slice %d: computed from version %d, and reports %d", slice,
                  (int)scene.read[slice][w][number % MAX_STEPS], (int)info->version);
    if (scene.end[0].spec.staleness >= 0 && info->gap > (uint64_t)scene.end[0].spec.staleness)
        fake_fail(&scene.fake, "clock gap %d", (int)info->gap);
    uint64_t *greatest = &greatest_gap[scene.end[0].shared];
    const bool counts = in_first_span && number > MAX_STALENESS; /* clocks restart with each span */
    if (scene.end[0].spec.staleness > 0 && counts && info->gap > *greatest) *greatest = info->gap;
    expect_values(gradient->grad, slice, (uint64_t)(GRADIENTS + w), number, "gradient");
}

/* Updates all floats of a slice that are not rows, with one gradient; the running actor acts for
 * the owner. */
static void update(void *arg, const struct dt_gradient *part, uint64_t before, size_t offset,
                   size_t n, const float *weights, float *out, float *const *states)
{
    const uint64_t after = before + 1;
    int slice = 0;
    (void)arg, (void)states;
    while (scene.end[0].slice[slice].offset + scene.end[0].slice[slice].params <= offset)
        slice++;
    if (offset % FLOATS || n != FLOATS) fake_fail(&scene.fake, "floats at %zu", offset);
    if (fault == EARLY_ACK)
        fake_fetch_op(&scene.fake.port[slice][scene.fake.running].remote,
                      dt__word(WORD_ACK, part->worker), DT__REPLACE, part->info->number + 1);
    const struct dt__slots_state *state = scene.slice[slice][slice].state;
    if (fault == EARLY_PUBLISH)
        fake_fetch_op(&scene.fake.port[slice][scene.fake.running].remote, WORD_PUBLISHED,
                      DT__REPLACE,
                      (state->publication + 1) * DT__MOST_BUFFERS + (uint64_t)state->target);
    expect_gradient(part, slice);
    expect_values(weights, slice, WEIGHTS, before, "the owner's own weights");
    write_values(out, slice, WEIGHTS, after);
    if (after > scene.until) fake_fail(&scene.fake, "more gradients than tickets");
    if (after > MAX_STEPS) return;
    memcpy(scene.clock[slice][after], scene.clock[slice][before], sizeof scene.clock[slice][after]);
    scene.clock[slice][after][part->worker]++;
    memcpy(scene.row[after], scene.row[before], sizeof scene.row[after]);
    for (int i = 0; i < scene.end[0].spec.row_ranges; i++) {
        uint32_t rows[2];
        for (uint32_t k = 0; k < *part->touched[i].count && k < 2; k++) {
            rows[k] = part->touched[i].row[k];
            if (rows[k] < MAX_ROWS) scene.row[after][i][rows[k]] = after;
        }
    }
}

/* Writes to each row that a gradient touched, while the other actors run. */
static void update_rows(void *arg, const struct dt_gradient *part, uint64_t before,
                        const struct dt_row_range *range, const uint32_t *row, size_t count,
                        float *weights, float *const *states)
{
    const int index = (int)(range - scene.end[scene.fake.running].spec.row_range);
    (void)arg, (void)states;
    expect_gradient_rows(part, index);
    for (size_t k = 0; k < count; k++) {
        const uint64_t value = value_of((uint64_t)(ROWS + index), before + 1, row[k]);
        memcpy(weights + range->offset + 2 * row[k], &value, 8);
        fake_yield(&scene.fake);
    }
}

static void faulty_rows_copy(struct dt__slice *slice, int range)
{
    if (fault != UNCOPIED_ROWS) dt__row_log_copy(slice, range);
}

static void faulty_rows_log(struct dt__slice *slice, int range, int n,
                            const struct dt_gradient *gradients)
{
    dt__row_log_append(slice, range, fault == UNLOGGED_ROWS ? n - 1 : n, gradients);
}

void __wrap_dt__world_heartbeat(struct dt_world *world, const char *phase, uint64_t step);
void __wrap_dt__world_heartbeat(struct dt_world *world, const char *phase, uint64_t step)
{
    (void)world, (void)phase, (void)step;
}

void __wrap_dt__world_abort(struct dt_world *world, dt_status status);
void __wrap_dt__world_abort(struct dt_world *world, dt_status status)
{
    (void)world, (void)status;
    fake_fail(&scene.fake, "%s", dt_error_text());
    for (;;)
        fake_yield(&scene.fake);
}

/* ---- worker --------------------------------------------------------------------------------- */

/* Checks that a slice's weights have all updates up to clock started - 1 - staleness or, of a
 * worker that starts no more gradients, all its updates. */
static void expect_fresh(const struct dt_async *worker, int slice, uint64_t version,
                         uint64_t before)
{
    if (version < before) fake_fail(&scene.fake, "the weights' version went back");
    if (version > MAX_STEPS || scene.end[0].spec.staleness < 0) return;
    for (int w = 0; w < scene.workers; w++) {
        const struct dt_async *other = &scene.end[w + 1];
        const uint64_t clock = scene.clock[slice][version][w];
        if (!scene.active[w] || (scene.leaves[w] && clock == other->own.started)) continue;
        if (clock + (uint64_t)scene.end[0].spec.staleness + 1 < worker->own.started)
            fake_fail(&scene.fake, "weights lack updates that the clock promises");
    }
}

/* Ends a span; in shared memory all actors wait for each other. */
static void end_span(struct dt_async *async)
{
    scene.left++;
    while (async->shared && scene.left <= scene.workers)
        fake_yield(&scene.fake);
    if (fault != EARLY_END) dt__async_drain(async);
}

static uint64_t version_of(const struct dt_async *worker, int slice)
{
    return worker->shared ? worker->own.read->version : worker->slice[slice].answer.head.version;
}

static void worker_body(void)
{
    int w = scene.fake.running - 1;
    struct dt_async *worker = &scene.end[w + 1];
    uint64_t before[FAKE_ACTORS] = {0};
    while (dt__async_begin(worker)) {
        const float *weights = dt__async_read(worker);
        for (int i = 0; i < scene.slices; i++) {
            const struct dt__slice *slice = &worker->slice[i];
            uint64_t version = version_of(worker, i);
            if (slice->params) expect_fresh(worker, i, version, before[i]);
            before[i] = scene.read[i][w][worker->own.sent % MAX_STEPS] = version;
            expect_values(weights + slice->offset, i, WEIGHTS, version, "weights");
            expect_rows(weights, version, "row");
            if (slice->params)
                write_values(dt__async_grad(worker) + slice->offset, i, (uint64_t)(GRADIENTS + w),
                             worker->own.sent);
            dt__async_progress(worker);
        }
        write_gradient_rows(worker, dt__async_grad(worker));
        for (int i = 0; i < scene.slices; i++)
            expect_values(weights + worker->slice[i].offset, i, WEIGHTS, before[i],
                          "weights, later");
        expect_rows(weights, before[0], "row, later");
        dt__async_send(worker,
                       &(struct dt_gradient_info){.replica = w, .rows = worker->own.sent + 1});
    }
    scene.leaves[w] = true;
    dt__async_leave(worker);
    end_span(worker);
    fake_end(&scene.fake);
}

/* ---- bank ----------------------------------------------------------------------------------- */

static void serve(struct dt_async *bank)
{
    struct dt_applied applied[3];
    int n = dt__async_serve(bank, 1 + (int)fake_random(&scene.fake, 3), applied);
    for (int i = 0; i < n; i++) {
        int w = applied[i].worker;
        if (applied[i].info.replica != w || applied[i].info.number != scene.logged[w]++)
            fake_fail(&scene.fake, "the update log has %d of worker %d",
                      (int)applied[i].info.number, w);
    }
    scene.step += (uint64_t)n;
}

static void expect_final_slice(int slice)
{
    const struct dt__slice *owners = &scene.slice[slice][slice];
    if (owners->state->step != scene.step)
        fake_fail(&scene.fake, "slice %d ended at %d of %d", slice, (int)owners->state->step,
                  (int)scene.step);
    expect_values(dt__newest(owners), slice, WEIGHTS, scene.step, "weights after the span");
    expect_rows(dt__newest(owners), scene.step, "row after the span");
}

static void bank_body(void)
{
    struct dt_async *bank = &scene.end[0];
    while (!dt__async_over(bank)) {
        if (scene.closes && fake_random(&scene.fake, 32) == 0)
            dt__async_close(bank);
        else
            serve(bank);
        fake_yield(&scene.fake);
    }
    end_span(bank);
    fake_end(&scene.fake);
}

static void open_body(void)
{
    dt__async_open_span(&scene.end[scene.fake.running], scene.step);
    fake_end(&scene.fake);
}

static void final_body(void)
{
    for (int i = 0; i < scene.slices; i++)
        expect_final_slice(i);
    fake_end(&scene.fake);
}

/* ---- a seed --------------------------------------------------------------------------------- */

/* Makes one slice in shared memory; with windows, one for the bank, sometimes without floats, and
 * one for each of some workers. */
static void slices_init(struct dt_async *async, int actor, bool bank_has_floats)
{
    size_t next_offset = 0;
    async->slice = scene.slice[actor];
    async->slices = scene.slices;
    for (int i = 0; i < scene.slices; i++) {
        const bool floats = i || bank_has_floats;
        async->slice[i] = (struct dt__slice){.async = async,
                                             .index = i,
                                             .owner = i,
                                             .mine = async->shared || i == actor,
                                             .offset = next_offset,
                                             .params = floats ? FLOATS : 0,
                                             .log_entries = i ? 0 : async->slice[0].log_entries};
        if (async->shared) async->slice[i].params = async->spec.params;
        async->slice[i].remote = &scene.fake.port[i][actor].remote;
        next_offset += async->slice[i].params;
    }
}

static void weights_init(int slice)
{
    float *weights = dt__newest(&scene.slice[slice][slice]);
    for (uint64_t i = 0; i < VALUES && scene.end[0].slice[slice].params; i++) {
        uint64_t value = value_of(WEIGHTS, 0, (uint64_t)slice * VALUES + i);
        memcpy(weights + 2 * i, &value, 8);
    }
    for (int i = 0; i < scene.end[0].spec.row_ranges; i++)
        for (uint64_t r = 0; r < RANGE[i].rows; r++) {
            uint64_t value = value_of((uint64_t)(ROWS + i), 0, r);
            memcpy(weights + RANGE[i].offset + 2 * r, &value, 8);
        }
}

static void scene_init(uint64_t seed)
{
    struct dt_rng rng = dt__rng_make(seed, DT_STREAM_TEST, 0, 0);
    const int workers = 1 + (int)(dt__rng_u64(&rng, 0) % MAX_WORKERS);
    const bool shared = dt__rng_u64(&rng, 4) % 2 == 0;
    const bool rows = shared && dt__rng_u64(&rng, 7) % 2 == 0;
    const bool bank_has_floats = shared || dt__rng_u64(&rng, 5) % 2 == 0;
    const uint64_t entries = 1 + dt__rng_u64(&rng, 6) % 6;
    scene.workers = workers;
    scene.slices = shared ? 1 : 1 + (int)(dt__rng_u64(&rng, 1) % (uint64_t)(workers + 1));
    if (scene.slices == 1 && !bank_has_floats) scene.slices = 2;
    struct dt_async_spec spec = {.params = FLOATS * (size_t)(scene.slices - !bank_has_floats) +
                                           2 * (size_t)(rows ? MAX_ROWS + 5 : 0),
                                 .update = update,
                                 .update_rows = update_rows,
                                 .row_range = RANGE,
                                 .row_ranges = rows ? RANGES : 0,
                                 .staleness = (int64_t)(dt__rng_u64(&rng, 2) % 8) - 4};
    if (spec.staleness < 0) spec.staleness = -1;
    scene.step = 0;
    memset(scene.applied, 0, sizeof scene.applied);
    memset(scene.logged, 0, sizeof scene.logged);
    for (int w = 0; w < workers; w++)
        scene.active[w] = w == 0 || dt__rng_u64(&rng, 8 + (uint64_t)w) % 8 != 0;
    fake_init(&scene.fake, seed, workers + 1, shared, scene.slices);
    wrap_operations(&scene.fake);
    for (int i = 0; i <= workers; i++) {
        struct dt_async *end = &scene.end[i];
        *end = (struct dt_async){.spec = spec,
                                 .workers = workers,
                                 .worker = i - 1,
                                 .shared = shared,
                                 .at_once = 1 + (int)(dt__rng_u64(&rng, 16) % 4),
                                 .active = scene.active};
        if (end->at_once > DT__ASYNC_AT_ONCE) end->at_once = DT__ASYNC_AT_ONCE;
        scene.slice[i][0].log_entries = entries;
        slices_init(end, i, bank_has_floats);
        for (int k = 0; k < scene.slices; k++) {
            const struct dt__places *at = &end->slice[k].at;
            struct fake_memory *memory = &scene.fake.memory[k];
            ck_assert_int_eq(dt__slice_lay_out(&end->slice[k]), DT_OK);
            ck_assert_uint_le(at->end, FAKE_BYTES);
            memory->bytes = at->end;
            memory->written_begin = at->state;
            memory->written_end = at->slots;
        }
        ck_assert_int_eq(dt__async_allocate(end), DT_OK);
    }
    memset(scene.row[0], 0, sizeof scene.row[0]);
    for (int i = 0; i < scene.slices; i++)
        weights_init(i);
}

static void scene_free(void)
{
    for (int i = 0; i <= scene.workers; i++)
        dt__arena_free(&scene.end[i].arena);
}

static void expect_counts(void)
{
    for (int w = 0; w < scene.workers; w++) {
        const int sent = (int)scene.end[w + 1].own.sent;
        if (sent != (int)scene.logged[w])
            fake_fail(&scene.fake, "worker %d sent %d gradients, %d are recorded", w, sent,
                      (int)scene.logged[w]);
        for (int i = 0; i < scene.slices; i++)
            if (scene.end[0].slice[i].params && sent != (int)scene.applied[i][w])
                fake_fail(&scene.fake, "slice %d: worker %d sent %d gradients, %d were applied", i,
                          w, sent, (int)scene.applied[i][w]);
    }
    if (scene.step != scene.until && !scene.closes) fake_fail(&scene.fake, "span cut short");
}

/* Gives all ranks the newest weights, as after a span. */
static void share_weights(void)
{
    for (int i = 0; i <= scene.workers && !scene.end[0].shared; i++)
        for (int k = 0; k < scene.slices; k++)
            memcpy(scene.end[i].weights + scene.slice[i][k].offset, dt__newest(&scene.slice[k][k]),
                   scene.slice[k][k].at.vector);
}

static void run_span(uint64_t updates, bool closes)
{
    struct fake *fake = &scene.fake;
    in_first_span = scene.step == 0;
    scene.until = scene.step + updates;
    scene.closes = closes;
    scene.left = 0;
    memset(scene.leaves, 0, sizeof scene.leaves);
    share_weights();
    for (int i = 0; i < scene.slices; i++)
        memset(scene.clock[i][scene.step], 0, sizeof scene.clock[i][scene.step]);
    for (int i = 0; i <= scene.workers; i++) {
        scene.end[i].until = scene.until;
        scene.end[i].closed = false;
        scene.end[i].own.started = scene.end[i].own.asked = 0;
        if (i == 0 || !scene.end[i].shared) fake_start(fake, i, open_body);
    }
    fake_run(fake);
    fake_start(fake, 0, bank_body);
    for (int w = 0; w < scene.workers; w++)
        fake_start(fake, w + 1, worker_body);
    fake_run(fake);
    fake_start(fake, 0, final_body);
    fake_run(fake);
    if (!fake->failure[0]) expect_counts();
}

/* Returns false if the seed finds a fault; scene.fake.failure is then its text. */
static bool run_seed(uint64_t seed)
{
    scene_init(seed);
    for (int span = 0; span < 2 && !scene.fake.failure[0]; span++)
        run_span(fake_random(&scene.fake, MAX_STEPS / 2), fake_random(&scene.fake, 4) == 0);
    scene_free();
    return !scene.fake.failure[0];
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Returns the number in an environment variable. DTRAIN_SEED: run only this seed; DTRAIN_SEEDS:
 * number of seeds. */
static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(protocol_keeps_its_promises)
{
    uint64_t only_seed = number_of("DTRAIN_SEED", 0);
    uint64_t first = only_seed ? only_seed : 1,
             last = only_seed ? only_seed : number_of("DTRAIN_SEEDS", 400);
    fault = NO_FAULT;
    for (uint64_t seed = first; seed <= last; seed++)
        ck_assert_msg(run_seed(seed), "seed %llu: %s", (unsigned long long)seed,
                      scene.fake.failure);
    /* A worker waits forever with this seed if a worker that has left still counts. */
    ck_assert_msg(only_seed || run_seed(1222), "seed 1222: %s", scene.fake.failure);
    /* A worker must not wait longer than the bound requires. */
    for (int shared = 0; shared < 2 && last - first > 300; shared++)
        ck_assert_uint_eq(greatest_gap[shared], MAX_STALENESS);
}
END_TEST

/* seed: first seed of the search; 0 means 1. Few seeds find a rare fault, so its search starts
 * shortly before one of them. */
static const struct {
    enum fault fault;
    const char *name;
    uint64_t seed;
} faults[] = {
    {TORN, "torn gradient", 0},          {EARLY_ACK, "early acknowledgement", 0},
    {LOST_DOORBELL, "lost doorbell", 0}, {EARLY_PUBLISH, "early publish", 0},
    {LATE_PIN, "late pin", 140},         {EARLY_STOP, "early stop", 0},
    {STALE_FLOOR, "stale floor", 5000},  {NO_LOCK, "two at once", 0},
    {EARLY_LEAVE, "early leave", 0},     {UNCOPIED_ROWS, "uncopied rows", 0},
    {UNLOGGED_ROWS, "unlogged rows", 0}, {EARLY_ANSWER, "early answer", 0},
    {UNPINNED, "unpinned weights", 0},   {CLOCKLESS, "no clock", 0},
    {EARLY_END, "early end", 0},
};

START_TEST(every_fault_is_found)
{
    fault = faults[_i].fault;
    const uint64_t first = faults[_i].seed ? faults[_i].seed : 1;
    uint64_t seed = first;
    while (seed < first + 10000 && run_seed(seed))
        seed++;
    ck_assert_msg(seed < first + 10000, "no seed finds the %s", faults[_i].name);
    printf("%s: seed %llu: %s\n", faults[_i].name, (unsigned long long)seed, scene.fake.failure);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slots");
    TCase *cases = tcase_create("scheduler");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, protocol_keeps_its_promises);
    tcase_add_loop_test(cases, every_fault_is_found, 0, (int)(sizeof faults / sizeof *faults));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
