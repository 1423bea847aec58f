/* The slot protocol under the adversarial scheduler: gradients lost, applied twice or torn, weights
 * torn or overwritten while they are read or should rest, rows that a version lacks or has too early, an update
 * log that leaves something out, clocks that run ahead, spans that do not end, and over a rounded wire copies of the
 * weights that part. Operations that go wrong as a bug of the protocol would have
 * them show that each of these would be found. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define DT_READ_TRIES 1
#include "comm/async_bank.c"
#include "comm/async_rows.c"
#include "comm/async_wire.c"
#include "comm/async_worker.c"

#include "onesided_fake.h"

enum { MOST_WORKERS = FAKE_ACTORS - 1, MOST_STEPS = 40, VALUES = 4 /* words of payload */ };

/* Behind them rows of a word each, of which gradients have touched ones alone. */
enum { RANGES = 2, MOST_ROWS = 20 };
static const struct dt_row_range RANGE[RANGES] = {
    {.offset = 2 * VALUES, .rows = MOST_ROWS, .width = 2, .touched_alone = true},
    {.offset = 2 * (VALUES + MOST_ROWS), .rows = 5, .width = 2, .touched_alone = true}};

/* One seed's run. */
static struct scene {
    struct fake fake;
    struct dt__slots_shape shape;
    struct dt__slots_bank bank[FAKE_ACTORS]; /* each actor's view; the bank's own is the first */
    struct dt__slots_worker worker[MOST_WORKERS];
    bool active[MOST_WORKERS];
    uint64_t until;
    bool closes; /* the bank closes the span at some time */
    uint64_t clock[MOST_STEPS + 1]
                  [MOST_WORKERS]; /* gradients of the span in weights of a version */
    uint64_t applied[MOST_WORKERS], told[MOST_WORKERS]; /* gradients; in the update log */
    uint64_t step;                                      /* that the bank knows of */
    uint64_t row[MOST_STEPS + 1][RANGES][MOST_ROWS]; /* the update that wrote each in a version */
    struct dt_touched touched[MOST_WORKERS * DT__SLOTS * RANGES];
} scene;

static uint64_t value_of(uint64_t kind, uint64_t a, uint64_t i)
{
    return kind << 48 | a << 16 | i;
}

/* Kinds; gradients of worker w: GRADIENTS + w; rows of range i: ROWS + i. */
enum { WEIGHTS = 1, GRADIENTS = 2, ROWS = 16 };

/* Floats that a rounded wire lets through: differences of weights are multiples of what is greatest in a block, or
 * short. */
static float float_of(uint64_t kind, uint64_t a, uint64_t j)
{
    const float scale = (float)(1 << a % 4);
    if (kind == WEIGHTS) return scene.shape.wire == DT_WIRE_Q8 ? 127 * (float)a : (float)a;
    return scale * (j ? (float)((kind * 37 + a * 11 + j * 5) % 255) - 127 : 127);
}

/* Word i of the payload. */
static uint64_t payload_of(uint64_t kind, uint64_t a, uint64_t i)
{
    const float floats[2] = {float_of(kind, a, 2 * i), float_of(kind, a, 2 * i + 1)};
    uint64_t value;
    memcpy(&value, floats, sizeof value);
    return scene.shape.wire ? value : value_of(kind, a, i);
}

/* Writes, or compares, one word after the other while the others run on. */
static void write_values(float *floats, uint64_t kind, uint64_t a)
{
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t value = payload_of(kind, a, i);
        memcpy(floats + 2 * i, &value, 8);
        for (int slow = 0; slow < 4; slow++)
            fake_yield(&scene.fake);
    }
}

static void expect_values(const float *floats, uint64_t kind, uint64_t a, const char *what)
{
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t value;
        memcpy(&value, floats + 2 * i, 8);
        if (value != payload_of(kind, a, i))
            fake_fail(&scene.fake, "%s: word %d is %llx, not %llx", what, (int)i,
                      (unsigned long long)value, (unsigned long long)payload_of(kind, a, i));
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

/* Rising; few or none, so that the row log is overrun at times, and at times not. */
static uint32_t rows_of(uint64_t worker, uint64_t number, int range, uint32_t rows[2])
{
    struct dt_rng rng = dt_rng_make(worker, DT_STREAM_TEST, number, (uint64_t)range);
    const uint64_t half = RANGE[range].rows / 2;
    const uint32_t count = (uint32_t)(dt_rng_u64(&rng, 0) % 3);
    rows[0] = (uint32_t)(dt_rng_u64(&rng, 1) % half);
    rows[1] = (uint32_t)(half + dt_rng_u64(&rng, 2) % (RANGE[range].rows - half));
    return count;
}

static void write_gradient_rows(const struct dt__slots_worker *worker, float *grad)
{
    const struct dt_touched *touched = dt__slots_touched(worker);
    const uint64_t w = (uint64_t)worker->index;
    for (int i = 0; i < worker->shape->ranges; i++) {
        *touched[i].count = rows_of(w, worker->sent, i, touched[i].row);
        fake_yield(&scene.fake);
        for (uint64_t k = 0; k < *touched[i].count; k++) {
            const uint64_t value =
                value_of(GRADIENTS + w, worker->sent, VALUES + touched[i].row[k]);
            memcpy(grad + RANGE[i].offset + 2 * k, &value, 8);
            fake_yield(&scene.fake);
        }
    }
}

static void expect_gradient_rows(const struct dt_gradient *gradient)
{
    const uint64_t w = (uint64_t)gradient->worker, number = gradient->note->number;
    const uint64_t version = gradient->note->version;
    for (int i = 0; i < scene.shape.ranges; i++) {
        const struct dt_touched *touched = &gradient->touched[i];
        const size_t at = RANGE[i].offset;
        uint32_t rows[2];
        if (*touched->count != rows_of(w, number, i, rows))
            fake_fail(&scene.fake, "%d touched rows", (int)*touched->count);
        for (uint64_t k = 0; k < *touched->count && k < 2; k++) {
            if (touched->row[k] != rows[k]) fake_fail(&scene.fake, "row %d", (int)touched->row[k]);
            expect_word(gradient->grad + at + 2 * k,
                        value_of(GRADIENTS + w, number, VALUES + rows[k]), "row of a gradient");
            if (gradient->seen && version <= MOST_STEPS)
                expect_word(gradient->seen + at + 2 * k,
                            value_of((uint64_t)(ROWS + i), scene.row[version][i][rows[k]], rows[k]),
                            "row seen");
        }
    }
}

static void expect_rows(const float *weights, uint64_t version, const char *what)
{
    for (int i = 0; i < scene.shape.ranges && version <= MOST_STEPS; i++)
        for (uint64_t r = 0; r < RANGE[i].rows; r++) {
            expect_word(weights + RANGE[i].offset + 2 * r,
                        value_of((uint64_t)(ROWS + i), scene.row[version][i][r], r), what);
            if (r % 4 == 0) fake_yield(&scene.fake);
        }
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Between the protocol and the fake: what a bug would make of an operation. */
static enum fault {
    NO_FAULT,
    MISSING_FLUSH, /* the doorbell rings while the payload is under way */
    EARLY_ACK,     /* a slot is given back before its gradient was read */
    VERSION_WRAP,  /* the reader compares numbers that have wrapped round */
    LOST_DOORBELL, /* the bank acknowledges what it has not seen */
    EARLY_PUBLISH, /* the number is out before the weights are */
    LATE_PIN,      /* the reader pins what it has checked, not what it will check */
    DEAF_STOP,     /* the span ends without those that were under way */
    STALE_FLOOR,   /* the clock's floor is raised before the weights are out */
    HELD,          /* a reader forgets to let go of the bank */
    NO_LOCK,       /* two act for the bank at once */
    HASTY_REST,    /* the bank does not wait for the one who is at it */
    EARLY_LEAVE,   /* a worker leaves while its gradients wait */
    UNCOPIED_ROWS, /* a buffer lacks rows that were written while it was out of use */
    UNLOGGED_ROWS, /* rows are written that the row log does not name */
    EARLY_ANSWER,  /* a worker is told of an answer that is not out yet */
} fault;

static struct {
    bool put, publishing, leaving;
    uint64_t published; /* as last fetched before the pin */
    bool pinned;
} did[FAKE_ACTORS];

static int actor_of(struct dt__onesided *remote)
{
    return ((struct fake_port *)remote)->actor;
}

static void faulty_put(struct dt__onesided *remote, size_t offset, const void *bytes, size_t length)
{
    did[actor_of(remote)].put = true;
    fake_put(remote, offset, bytes, length);
}

static void faulty_flush(struct dt__onesided *remote)
{
    bool put = did[actor_of(remote)].put;
    did[actor_of(remote)].put = false;
    if (!put || fault != MISSING_FLUSH) fake_flush(remote);
}

static void faulty_sync(struct dt__onesided *remote)
{
    const struct dt__slots_state *state = scene.bank[0].state;
    for (int w = 0; w < scene.shape.workers && fault == EARLY_ANSWER; w++)
        if (actor_of(remote) == 0)
            fake_replace(remote, dt__slots_word(WORD_ANSWER, w), state->peer[w].answered);
    if (fault == EARLY_PUBLISH && did[actor_of(remote)].publishing)
        fake_replace(remote, WORD_PUBLISHED,
                     dt__published_pack((struct dt__published){state->publication, state->target}));
    fake_sync(remote);
}

static uint64_t doorbells(const struct dt__onesided *remote, int worker)
{
    const struct fake *fake = ((const struct fake_port *)remote)->fake;
    return dt__doorbell_unpack(fake->word[dt__slots_word(WORD_DOORBELL, worker)]).count;
}

static uint64_t faulty_fetch(struct dt__onesided *remote, int word)
{
    int actor = actor_of(remote);
    uint64_t value = fake_fetch(remote, word);
    if (word == WORD_LOCK && fault == HASTY_REST && actor == 0) return BANKS_CLAIM;
    if (actor > 0 && did[actor].leaving && fault == EARLY_LEAVE &&
        word == dt__slots_word(WORD_ACK, actor - 1))
        return doorbells(remote, actor - 1);
    if (word != WORD_PUBLISHED) return value;
    bool again = did[actor].pinned;
    did[actor].pinned = false;
    if (again && fault == LATE_PIN) return did[actor].published;
    if (again && fault == VERSION_WRAP) {
        struct dt__published now = dt__published_unpack(value);
        uint64_t before = dt__published_unpack(did[actor].published).number;
        now.number = before + (now.number - before) % 2;
        return dt__published_pack(now);
    }
    did[actor].published = value;
    return value;
}

static void faulty_replace(struct dt__onesided *remote, int word, uint64_t value)
{
    int actor = actor_of(remote);
    struct dt__slots_state *state = scene.bank[0].state;
    if (fault == STALE_FLOOR && word == WORD_PUBLISHED)
        fake_replace(remote, WORD_FLOOR, bank_lowest_clock(&scene.bank[0]));
    for (int w = 0; w < scene.shape.workers && fault == LOST_DOORBELL; w++)
        if (word == dt__slots_word(WORD_ACK, w))
            value = state->peer[w].served = doorbells(remote, w);
    if (actor > 0 && word == dt__slots_word(WORD_HAZARD, actor - 1)) did[actor].pinned = value > 0;
    fake_replace(remote, word, value);
}

static uint64_t faulty_add(struct dt__onesided *remote, int word, uint64_t delta)
{
    if (word == WORD_HOLD && delta != 1 && fault == HELD) return 0;
    if (word == WORD_LOCK && delta == 1 && fault == NO_LOCK) return 0;
    if (word == WORD_LOCK && delta == (uint64_t)-1 && fault == NO_LOCK) return 1;
    if (word == WORD_LOCK && actor_of(remote) == 0 && fault == HASTY_REST) return 0;
    uint64_t before = fake_add(remote, word, delta);
    if (word != WORD_TICKET) return before;
    if (delta > 1 && fault == DEAF_STOP) return fake_fetch(remote, WORD_STEP);
    if (delta == 1) did[actor_of(remote)].leaving = before >= scene.until;
    return before;
}

static void wrap_operations(struct fake *fake)
{
    static struct dt__onesided_ops ops;
    ops = *fake->port[0].remote.ops;
    ops.put = faulty_put;
    ops.flush = faulty_flush;
    ops.sync = faulty_sync;
    ops.fetch = faulty_fetch;
    ops.replace = faulty_replace;
    ops.add = faulty_add;
    memset(did, 0, sizeof did);
    for (int i = 0; i < fake->actors; i++)
        fake->port[i].remote.ops = &ops;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void expect_gradient(const struct dt_gradient *gradient)
{
    const struct dt_note *note = gradient->note;
    int w = gradient->worker;
    uint64_t updates = 0; /* before this one */
    for (int i = 0; i < scene.shape.workers; i++)
        updates += scene.applied[i];
    if (gradient->staleness != updates - note->version)
        fake_fail(&scene.fake, "staleness %d of %d updates", (int)gradient->staleness, (int)updates);
    uint64_t number = scene.applied[w]++;
    if (note->number != number || note->replica != w || note->rows != number + 1)
        fake_fail(&scene.fake, "worker %d: gradient %d came as %d", w, (int)number,
                  (int)note->number);
    if (scene.shape.staleness >= 0 && note->gap > (uint64_t)scene.shape.staleness)
        fake_fail(&scene.fake, "clock gap %d", (int)note->gap);
    uint64_t version = note->version;
    float rounded[2 * VALUES];
    if (gradient->parcel) dt__parcel_read(&scene.shape, gradient->parcel, 0, 2 * VALUES, rounded);
    expect_values(gradient->parcel ? rounded : gradient->grad, (uint64_t)(GRADIENTS + w), number,
                  "gradient");
    if (gradient->seen) expect_values(gradient->seen, WEIGHTS, version, "weights seen");
    expect_gradient_rows(gradient);
}

/* Writes to each row that a gradient touched, while the others run on. */
static void apply_rows(struct dt__slots_bank *bank, float *target, int n,
                       const struct dt_gradient *gradients)
{
    const uint64_t before = bank->state->step, after = before + (uint64_t)n;
    if (after > MOST_STEPS) return;
    memcpy(scene.row[after], scene.row[before], sizeof scene.row[after]);
    for (int i = 0; i < bank->shape->ranges; i++) {
        if (fault != UNCOPIED_ROWS) dt__slots_copy_rows(bank, i);
        for (int g = 0; g < n; g++)
            for (uint32_t k = 0; k < *gradients[g].touched[i].count; k++) {
                const uint32_t row = gradients[g].touched[i].row[k];
                const uint64_t value = value_of((uint64_t)(ROWS + i), after, row);
                scene.row[after][i][row] = after;
                memcpy(target + RANGE[i].offset + 2 * row, &value, 8);
                fake_yield(&scene.fake);
            }
        dt__slots_log_rows(bank, i, fault == UNLOGGED_ROWS ? n - 1 : n, gradients);
    }
}

static void apply(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients)
{
    uint64_t after = bank->state->step + (uint64_t)n;
    float *target = dt__slots_target(bank);
    for (int i = 0; i < n; i++)
        expect_gradient(&gradients[i]);
    expect_values(dt__slots_weights(bank), WEIGHTS, bank->state->step, "the bank's own weights");
    write_values(target, WEIGHTS, after);
    apply_rows(bank, target, n, gradients);
    if (after > scene.until) fake_fail(&scene.fake, "more gradients than tickets");
    for (int w = 0; w < scene.shape.workers && after <= MOST_STEPS; w++)
        scene.clock[after][w] = bank->state->peer[w].applied;
    for (int i = 0; i < n && after <= MOST_STEPS; i++)
        scene.clock[after][gradients[i].worker]++;
    bool *publishing = &did[actor_of(bank->remote)].publishing;
    *publishing = true;
    dt__slots_publish(bank, n, gradients);
    *publishing = false;
}

static void combine(void *arg)
{
    struct dt__slots_bank *bank = arg;
    struct dt_gradient gradients[4];
    while (dt__slots_enter(bank)) {
        int n = dt__slots_take(bank, 1 + (int)fake_random(&scene.fake, 4), gradients);
        for (int i = 0; i < n && fault == EARLY_ACK; i++)
            fake_replace(bank->remote, dt__slots_word(WORD_ACK, gradients[i].worker),
                         gradients[i].note->number + 1);
        if (n > 0) apply(bank, n, gradients);
        dt__slots_leave(bank);
    }
}

/* ---- worker --------------------------------------------------------------------------------- */

/* Weights must hold every update up to clock started - 1 - staleness. */
static void expect_fresh(const struct dt__slots_worker *worker, uint64_t version, uint64_t before)
{
    if (version < before) fake_fail(&scene.fake, "weights went back");
    if (version > MOST_STEPS || scene.shape.staleness < 0) return;
    for (int w = 0; w < scene.shape.workers; w++)
        if (scene.active[w] &&
            scene.clock[version][w] + (uint64_t)scene.shape.staleness + 1 < worker->started)
            fake_fail(&scene.fake, "weights lack updates that the clock promises");
}

static void worker_body(void)
{
    int w = scene.fake.running - 1;
    struct dt__slots_worker *worker = &scene.worker[w];
    uint64_t before = 0;
    while (scene.active[w] && dt__slots_begin(worker)) {
        const float *weights = dt__slots_read(worker);
        uint64_t version = worker->read->version;
        expect_fresh(worker, version, before);
        before = version;
        expect_values(weights, WEIGHTS, version, "weights");
        expect_rows(weights, version, "row");
        write_values(dt__slots_grad(worker), (uint64_t)(GRADIENTS + w), worker->sent);
        write_gradient_rows(worker, dt__slots_grad(worker));
        expect_values(weights, WEIGHTS, version, "weights, later");
        expect_rows(weights, version, "row, later");
        dt__slots_round(worker);
        dt__slots_send(worker, &(struct dt_note){.replica = w, .rows = worker->sent + 1});
        if (worker->combine) worker->combine(worker->combine_arg);
    }
    fake_end(&scene.fake);
}

/* ---- bank ----------------------------------------------------------------------------------- */

static void read_log(struct dt__slots_bank *bank)
{
    struct dt_applied applied[3];
    int n = dt__slots_read_log(bank, 1 + (int)fake_random(&scene.fake, 3), applied);
    for (int i = 0; i < n; i++) {
        int w = applied[i].worker;
        if (applied[i].note.replica != w || applied[i].note.number != scene.told[w]++)
            fake_fail(&scene.fake, "the update log tells of %d of worker %d",
                      (int)applied[i].note.number, w);
    }
    scene.step += (uint64_t)n;
}

static void expect_rest(const struct dt__slots_bank *bank)
{
    if (bank->state->step != scene.step) fake_fail(&scene.fake, "rest at a step not known of");
    for (int i = 0; i < 3; i++)
        expect_values(dt__slots_weights(bank), WEIGHTS, scene.step, "weights at rest");
    expect_rows(dt__slots_weights(bank), scene.step, "row at rest");
}

/* Now and then the bank wants a rest, at once or at some step. */
static void bank_body(void)
{
    struct dt__slots_bank *bank = &scene.bank[0];
    uint64_t until = UINT64_MAX;
    while (!dt__slots_over(bank)) {
        if (scene.closes && fake_random(&scene.fake, 32) == 0) dt__slots_close(bank);
        if (fake_random(&scene.fake, 4) == 0) until = scene.step + fake_random(&scene.fake, 8);
        dt__slots_allow(bank, until);
        if (!bank->shape->way.shared) combine(bank);
        dt__slots_answer(bank);
        read_log(bank);
        if (dt__slots_quiescent(bank)) {
            expect_rest(bank);
            until = UINT64_MAX;
        }
        fake_yield(&scene.fake);
    }
    fake_end(&scene.fake);
}

static void open_body(void)
{
    uint64_t from = scene.step;
    memset(scene.clock[from], 0, sizeof scene.clock[from]);
    dt__slots_open(&scene.bank[0], from, scene.until, scene.active);
    fake_end(&scene.fake);
}

/* ---- a seed --------------------------------------------------------------------------------- */

static void scene_init(uint64_t seed)
{
    struct dt_rng rng = dt_rng_make(seed, DT_STREAM_TEST, 0, 0);
    int workers = 1 + (int)(dt_rng_u64(&rng, 0) % MOST_WORKERS);
    bool mapped = dt_rng_u64(&rng, 4) % 2 == 0, shared = mapped && dt_rng_u64(&rng, 5) % 4 != 0;
    struct dt__slots_way way = {.shared = shared,
                                .slack = shared ? 0 : (int)(dt_rng_u64(&rng, 1) % 5) / 2,
                                .log_entries = 1 + (int)(dt_rng_u64(&rng, 6) % 6)};
    const bool rows = dt_rng_u64(&rng, 7) % 2 == 0;
    struct dt_async_spec spec = {.params = 2 * (size_t)(VALUES + (rows ? MOST_ROWS + 5 : 0)),
                                 .row_range = RANGE,
                                 .row_ranges = rows ? RANGES : 0,
                                 .staleness = (int64_t)(dt_rng_u64(&rng, 2) % 8) - 4,
                                 .keep_seen = dt_rng_u64(&rng, 3) % 4 == 0,
                                 .wire_params = 2 * VALUES - 3};
    if (spec.staleness < 0) spec.staleness = -1;
    const uint64_t kind = dt_rng_u64(&rng, 15) % 6; /* half of them whole */
    if (!mapped && !spec.keep_seen && kind <= DT_WIRE_Q8) spec.wire = (int)kind;
    ck_assert_int_eq(dt__slots_shape_init(&scene.shape, workers, way, &spec), DT_OK);
    ck_assert_uint_le(scene.shape.bytes, FAKE_BYTES);
    fake_init(&scene.fake, seed, workers + 1, mapped, scene.shape.bytes);
    wrap_operations(&scene.fake);
    scene.fake.written_begin = scene.shape.bank_at;
    scene.fake.written_end = scene.shape.slots_at;
    for (int i = 0; i <= workers; i++)
        if (mapped || i == 0)
            dt__slots_bank_init(&scene.bank[i], &scene.shape, &scene.fake.port[i].remote);
    dt__row_lists_map(&scene.shape, scene.fake.private, scene.touched);
    for (int i = 0; i <= workers; i++)
        scene.bank[i].touched = scene.shape.ranges ? scene.touched : NULL;
    scene.step = 0;
    for (int w = 0; w < workers; w++) {
        dt__slots_worker_init(&scene.worker[w], &scene.shape, &scene.fake.port[w + 1].remote, w);
        if (shared) scene.worker[w].combine = combine;
        scene.worker[w].combine_arg = &scene.bank[w + 1];
        scene.worker[w].touched = scene.bank[w + 1].touched;
        scene.applied[w] = scene.told[w] = 0;
        scene.active[w] = w == 0 || dt_rng_u64(&rng, 8 + (uint64_t)w) % 8 != 0;
    }
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t value = payload_of(WEIGHTS, 0, i);
        memcpy(dt__slots_weights(&scene.bank[0]) + 2 * i, &value, 8);
    }
    memset(scene.row[0], 0, sizeof scene.row[0]);
    for (int i = 0; i < scene.shape.ranges; i++)
        for (uint64_t r = 0; r < RANGE[i].rows; r++) {
            uint64_t value = value_of((uint64_t)(ROWS + i), 0, r);
            memcpy(dt__slots_weights(&scene.bank[0]) + RANGE[i].offset + 2 * r, &value, 8);
        }
}

static void scene_free(void)
{
    for (int w = 0; w < scene.shape.workers; w++)
        dt__slots_worker_free(&scene.worker[w]);
}

static void expect_accounts(void)
{
    for (int w = 0; w < scene.shape.workers; w++)
        if (scene.worker[w].sent != scene.applied[w] || scene.worker[w].sent != scene.told[w])
            fake_fail(&scene.fake, "worker %d sent %d gradients, %d were applied, %d told of", w,
                      (int)scene.worker[w].sent, (int)scene.applied[w], (int)scene.told[w]);
    if (scene.step != scene.until && !scene.closes) fake_fail(&scene.fake, "span cut short");
}

static void run_span(uint64_t updates, bool closes)
{
    struct fake *fake = &scene.fake;
    scene.until = scene.step + updates;
    scene.closes = closes;
    fake_start(fake, 0, open_body);
    fake_run(fake);
    fake_start(fake, 0, bank_body);
    for (int w = 0; w < scene.shape.workers; w++) {
        dt__slots_worker_open(&scene.worker[w], scene.until);
        fake_start(fake, w + 1, worker_body);
    }
    fake_run(fake);
    if (!fake->failure[0]) expect_accounts();
}

/* False, with the failure's text in scene.fake.failure, if the seed finds something. */
static bool run_seed(uint64_t seed)
{
    scene_init(seed);
    for (int span = 0; span < 2 && !scene.fake.failure[0]; span++)
        run_span(fake_random(&scene.fake, MOST_STEPS / 2), fake_random(&scene.fake, 4) == 0);
    scene_free();
    return !scene.fake.failure[0];
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* DTRAIN_SEED: this seed alone. DTRAIN_SEEDS: how many. */
static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(keeps_every_promise)
{
    uint64_t one = number_of("DTRAIN_SEED", 0);
    uint64_t first = one ? one : 1, last = one ? one : number_of("DTRAIN_SEEDS", 4000);
    fault = NO_FAULT;
    for (uint64_t seed = first; seed <= last; seed++)
        ck_assert_msg(run_seed(seed), "seed %llu: %s", (unsigned long long)seed,
                      scene.fake.failure);
}
END_TEST

static const struct {
    enum fault fault;
    const char *name;
} faults[] = {
    {MISSING_FLUSH, "missing flush"}, {EARLY_ACK, "early acknowledgement"},
    {VERSION_WRAP, "version wrap"},   {LOST_DOORBELL, "lost doorbell"},
    {EARLY_PUBLISH, "early publish"}, {LATE_PIN, "late pin"},
    {DEAF_STOP, "deaf stop"},         {STALE_FLOOR, "stale floor"},
    {HELD, "hold without end"},       {NO_LOCK, "two at once"},
    {HASTY_REST, "hasty rest"},       {EARLY_LEAVE, "early leave"},
    {UNCOPIED_ROWS, "uncopied rows"}, {UNLOGGED_ROWS, "unlogged rows"},
    {EARLY_ANSWER, "early answer"},
};

START_TEST(finds_every_fault)
{
    fault = faults[_i].fault;
    uint64_t seed = 1;
    while (seed <= 10000 && run_seed(seed))
        seed++;
    ck_assert_msg(seed <= 10000, "no seed finds the %s", faults[_i].name);
    printf("%s: seed %llu: %s\n", faults[_i].name, (unsigned long long)seed, scene.fake.failure);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slots");
    TCase *cases = tcase_create("scheduler");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, keeps_every_promise);
    tcase_add_loop_test(cases, finds_every_fault, 0, (int)(sizeof faults / sizeof *faults));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
