/* The slot protocol under the adversarial scheduler: gradients lost, applied twice or torn, weights
 * torn or overwritten while they are read or should rest, a journal that leaves something out, clocks
 * that run ahead, legs that do not end. Bugs planted into the protocol show that each of these would
 * be found. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static int planted; /* enum dt__plant: the bug that the protocol below has */
#define DT_PLANT planted
#define DT_READ_TRIES 1
#include "comm/slots_bank.c"
#include "comm/slots_worker.c"

#include "onesided_fake.h"

enum { MOST_WORKERS = FAKE_ACTORS - 1, MOST_STEPS = 40, VALUES = 4 /* words of payload */ };

/* One seed's run. */
static struct scene {
    struct fake fake;
    struct dt__slots_shape shape;
    struct dt__slots_bank bank[FAKE_ACTORS]; /* each actor's view; the bank's own is the first */
    struct dt__slots_worker worker[MOST_WORKERS];
    bool active[MOST_WORKERS];
    uint64_t until;
    bool closes;                                  /* the bank closes the leg at some time */
    uint64_t clock[MOST_STEPS + 1][MOST_WORKERS]; /* gradients of the leg in weights of a version */
    uint64_t applied[MOST_WORKERS], told[MOST_WORKERS]; /* gradients; in the journal */
    uint64_t step;                                      /* that the bank knows of */
} scene;

static uint64_t value_of(uint64_t kind, uint64_t a, uint64_t i)
{
    return kind << 48 | a << 16 | i;
}

/* Writes, or compares, one word after the other while the others run on. */
static void write_values(float *floats, uint64_t kind, uint64_t a)
{
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t value = value_of(kind, a, i);
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
        if (value != value_of(kind, a, i))
            fake_fail(&scene.fake, "%s: word %d is %llx, not %llx", what, (int)i,
                      (unsigned long long)value, (unsigned long long)value_of(kind, a, i));
        fake_yield(&scene.fake);
    }
}

enum { WEIGHTS = 1, GRADIENTS = 2 }; /* kinds; gradients of worker w: GRADIENTS + w */

/* ---- turns ---------------------------------------------------------------------------------- */

static void expect_gradient(const struct dt_gradient *gradient)
{
    const struct dt_note *note = gradient->note;
    int w = gradient->worker;
    uint64_t number = scene.applied[w]++;
    if (note->number != number || note->replica != w || note->rows != number + 1)
        fake_fail(&scene.fake, "worker %d: gradient %d came as %d", w, (int)number,
                  (int)note->number);
    if (scene.shape.staleness >= 0 && note->gap > (uint64_t)scene.shape.staleness)
        fake_fail(&scene.fake, "clock gap %d", (int)note->gap);
    uint64_t version = note->version;
    expect_values(gradient->grad, (uint64_t)(GRADIENTS + w), number, "gradient");
    if (gradient->seen) expect_values(gradient->seen, WEIGHTS, version, "weights seen");
}

static void apply(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients)
{
    uint64_t after = bank->state->step + (uint64_t)n;
    float *target = dt__slots_target(bank);
    for (int i = 0; i < n; i++)
        expect_gradient(&gradients[i]);
    expect_values(dt__slots_weights(bank), WEIGHTS, bank->state->step, "the bank's own weights");
    write_values(target, WEIGHTS, after);
    if (after > scene.until) fake_fail(&scene.fake, "more gradients than tickets");
    for (int w = 0; w < scene.shape.workers && after <= MOST_STEPS; w++)
        scene.clock[after][w] = bank->state->peer[w].applied;
    for (int i = 0; i < n && after <= MOST_STEPS; i++)
        scene.clock[after][gradients[i].worker]++;
    dt__slots_publish(bank, n, gradients);
}

static void take_turns(void *arg)
{
    struct dt__slots_bank *bank = arg;
    struct dt_gradient gradients[4];
    while (dt__slots_enter(bank)) {
        int n = dt__slots_take(bank, 1 + (int)fake_random(&scene.fake, 4), gradients);
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
        write_values(dt__slots_grad(worker), (uint64_t)(GRADIENTS + w), worker->sent);
        expect_values(weights, WEIGHTS, version, "weights, later");
        dt__slots_send(worker, &(struct dt_note){.replica = w, .rows = worker->sent + 1});
        if (worker->turn) worker->turn(worker->turn_arg);
    }
    fake_end(&scene.fake);
}

/* ---- bank ----------------------------------------------------------------------------------- */

static void read_journal(struct dt__slots_bank *bank)
{
    struct dt_applied applied[3];
    int n = dt__slots_journal(bank, 1 + (int)fake_random(&scene.fake, 3), applied);
    for (int i = 0; i < n; i++) {
        int w = applied[i].worker;
        if (applied[i].note.replica != w || applied[i].note.number != scene.told[w]++)
            fake_fail(&scene.fake, "the journal tells of %d of worker %d",
                      (int)applied[i].note.number, w);
    }
    scene.step += (uint64_t)n;
}

static void expect_rest(const struct dt__slots_bank *bank)
{
    if (bank->state->step != scene.step) fake_fail(&scene.fake, "rest at a step not known of");
    for (int i = 0; i < 3; i++)
        expect_values(dt__slots_weights(bank), WEIGHTS, scene.step, "weights at rest");
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
        if (!bank->shape->way.shared) take_turns(bank);
        read_journal(bank);
        if (dt__slots_rests(bank)) {
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
                                .journal = 1 + (int)(dt_rng_u64(&rng, 6) % 6)};
    struct dt_async_spec spec = {.params = 2 * VALUES,
                                 .staleness = (int64_t)(dt_rng_u64(&rng, 2) % 8) - 4,
                                 .keep_seen = dt_rng_u64(&rng, 3) % 4 == 0};
    if (spec.staleness < 0) spec.staleness = -1;
    ck_assert_int_eq(dt__slots_shape_init(&scene.shape, workers, way, &spec), DT_OK);
    ck_assert_uint_le(scene.shape.bytes, FAKE_BYTES);
    fake_init(&scene.fake, seed, workers + 1, mapped, scene.shape.bytes);
    scene.fake.written_begin = scene.shape.bank_at;
    scene.fake.written_end = scene.shape.slots_at;
    for (int i = 0; i <= workers; i++)
        if (mapped || i == 0)
            dt__slots_bank_init(&scene.bank[i], &scene.shape, &scene.fake.port[i].net);
    scene.step = 0;
    for (int w = 0; w < workers; w++) {
        dt__slots_worker_init(&scene.worker[w], &scene.shape, &scene.fake.port[w + 1].net, w);
        if (shared) scene.worker[w].turn = take_turns;
        scene.worker[w].turn_arg = &scene.bank[w + 1];
        scene.applied[w] = scene.told[w] = 0;
        scene.active[w] = w == 0 || dt_rng_u64(&rng, 8 + (uint64_t)w) % 8 != 0;
    }
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t value = value_of(WEIGHTS, 0, i);
        memcpy(dt__slots_weights(&scene.bank[0]) + 2 * i, &value, 8);
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
    if (scene.step != scene.until && !scene.closes) fake_fail(&scene.fake, "leg cut short");
}

static void run_leg(uint64_t updates, bool closes)
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
    for (int leg = 0; leg < 2 && !scene.fake.failure[0]; leg++)
        run_leg(fake_random(&scene.fake, MOST_STEPS / 2), fake_random(&scene.fake, 4) == 0);
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
    uint64_t first = one ? one : 1, last = one ? one : number_of("DTRAIN_SEEDS", 10000);
    planted = PLANT_NONE;
    for (uint64_t seed = first; seed <= last; seed++)
        ck_assert_msg(run_seed(seed), "seed %llu: %s", (unsigned long long)seed,
                      scene.fake.failure);
}
END_TEST

static const struct {
    int plant;
    const char *name;
} plants[] = {
    {PLANT_MISSING_FLUSH, "missing flush"}, {PLANT_EARLY_ACK, "early acknowledgement"},
    {PLANT_VERSION_WRAP, "version wrap"},   {PLANT_LOST_DOORBELL, "lost doorbell"},
    {PLANT_EARLY_PUBLISH, "early publish"}, {PLANT_LATE_PIN, "late pin"},
    {PLANT_DEAF_STOP, "deaf stop"},         {PLANT_STALE_FLOOR, "stale floor"},
    {PLANT_HELD, "hold without end"},       {PLANT_NO_LOCK, "two at once"},
    {PLANT_HASTY_REST, "hasty rest"},       {PLANT_EARLY_LEAVE, "early leave"},
};

START_TEST(finds_what_is_planted)
{
    planted = plants[_i].plant;
    uint64_t seed = 1;
    while (seed <= 10000 && run_seed(seed))
        seed++;
    ck_assert_msg(seed <= 10000, "no seed finds the %s", plants[_i].name);
    printf("%s: seed %llu: %s\n", plants[_i].name, (unsigned long long)seed, scene.fake.failure);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slots");
    TCase *cases = tcase_create("scheduler");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, keeps_every_promise);
    tcase_add_loop_test(cases, finds_what_is_planted, 0, (int)(sizeof plants / sizeof *plants));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
