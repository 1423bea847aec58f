/* The plan: Webster's order against brute force, full batches, each sample once per epoch, and the
 * assignment of shards. */
#include "data/order.h"
#include "data_files.h"

enum { MAX_FILES = 16, MAX_REPLICAS = 8 };

/* A case: the rows of each CSV file, the replicas and the batch. */
static const struct {
    int rows[MAX_FILES];
    int replicas, batch;
} CASES[] = {
    {{60}, 1, 7},
    {{60}, 3, 10},
    {{61}, 2, 128},
    {{61}, 4, 0},
    {{5, 900, 1, 33, 2, 17, 42}, 3, 100},
    {{10, 10, 10, 10}, 2, 6},
    {{10, 10, 10, 11, 10}, 5, 8},
    {{100, 100, 1}, 2, 16},
    {{3}, 8, 2},
    {{1, 1, 1}, 3, 1},
    {{97, 89, 101, 83, 79, 103, 107, 73}, 8, 64},
};

static struct dt_source *make_source(const int *rows)
{
    struct dt_text list = {0};
    for (int i = 0; i < MAX_FILES && rows[i]; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%02d.csv", i);
        FILE *out = fopen(name, "w");
        ck_assert_ptr_nonnull(out);
        for (int r = 0; r < rows[i]; r++)
            fprintf(out, "%d,%d\n", i * 1000 + r, (i + r) % 2);
        fclose(out);
        EXPECT_OK(dt__text_add(&list, "%s%s", i ? "," : "data.train=", name));
    }
    set(list.data);
    dt__text_free(&list);
    return survey();
}

static struct dt_plan *make_plan(const struct dt_source *source, int replicas, int64_t batch)
{
    struct dt_plan *plan;
    EXPECT_OK(dt__plan_create(source, 1, replicas, batch, &plan));
    return plan;
}

/* Returns true if sample j of replica r comes before sample k of replica q: a sample's key is
 * (2j+1) / (2 rows), and of equal keys the lower replica is first. */
static bool before(const struct dt_plan *plan, int r, uint64_t j, int q, uint64_t k)
{
    uint64_t left = (2 * j + 1) * dt__plan_replica_rows(plan, q);
    uint64_t right = (2 * k + 1) * dt__plan_replica_rows(plan, r);
    return left < right || (left == right && r < q);
}

/* Sets the owner of each position by always choosing the lowest key that is left. */
static void brute_force(const struct dt_plan *plan, int replicas, int *owner)
{
    uint64_t next[MAX_REPLICAS] = {0};
    for (uint64_t p = 0; p < dt__plan_samples(plan); p++) {
        int lowest = -1;
        for (int r = 0; r < replicas; r++) {
            if (next[r] == dt__plan_replica_rows(plan, r)) continue;
            if (lowest < 0 || before(plan, r, next[r], lowest, next[lowest])) lowest = r;
        }
        owner[p] = lowest;
        next[lowest]++;
    }
}

/* Fails if a comparison, a tie or a boundary is wrong, or if a step has samples of two epochs. */
START_TEST(local_batches_follow_websters_order)
{
    int replicas = CASES[_i].replicas, *owner;
    struct dt_source *source = make_source(CASES[_i].rows);
    struct dt_plan *plan = make_plan(source, replicas, CASES[_i].batch);
    uint64_t samples = dt__plan_samples(plan), steps = dt__plan_steps_per_epoch(plan);
    uint64_t batch = dt__plan_batch(plan), drawn[MAX_REPLICAS] = {0};
    ck_assert_uint_eq(samples, dt__source_rows(source));
    ck_assert_uint_eq(steps, (samples + batch - 1) / batch);
    EXPECT_OK(dt__alloc(samples, sizeof *owner, "owners", &owner));
    brute_force(plan, replicas, owner);
    for (uint64_t step = 0; step < 2 * steps; step++) {
        uint64_t begin = step % steps * batch, total = 0, end = begin + batch;
        if (end > samples) end = samples;
        ck_assert_uint_eq(dt__plan_step_rows(plan, step), end - begin);
        for (int r = 0; r < replicas; r++) {
            uint64_t expected = 0;
            for (uint64_t p = begin; p < end; p++)
                expected += owner[p] == r;
            struct dt_local_batch local = dt__plan_local_batch(plan, step, r);
            ck_assert_uint_eq(local.epoch, step / steps);
            ck_assert_uint_eq(local.begin, drawn[r]);
            ck_assert_uint_eq(local.count, expected);
            ck_assert_uint_le(local.count, dt__plan_max_local_batch(plan));
            drawn[r] += local.count;
            total += local.count;
        }
        ck_assert_uint_eq(total, end - begin);
        for (int r = 0; r < replicas && (step + 1) % steps == 0; r++) {
            ck_assert_uint_eq(drawn[r], dt__plan_replica_rows(plan, r));
            drawn[r] = 0;
        }
    }
    dt_free(owner);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* Every row of the source belongs to one replica; shards are whole files, or as equal as
 * possible. */
START_TEST(shards_cover_the_source)
{
    int replicas = CASES[_i].replicas, *seen;
    struct dt_source *source = make_source(CASES[_i].rows);
    struct dt_plan *plan = make_plan(source, replicas, CASES[_i].batch);
    uint64_t samples = dt__plan_samples(plan), most_rows = 0, least_rows = samples;
    EXPECT_OK(dt__alloc(samples, sizeof *seen, "rows", &seen));
    for (int r = 0; r < replicas; r++) {
        const struct dt__shard *shard = &plan->shards[r];
        most_rows = shard->rows > most_rows ? shard->rows : most_rows;
        least_rows = shard->rows < least_rows ? shard->rows : least_rows;
        for (uint64_t i = 0; i < shard->rows; i++)
            seen[dt__shard_run(shard, i).row]++;
    }
    for (uint64_t i = 0; i < samples; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert(most_rows - least_rows <= 1 || most_rows * (uint64_t)replicas * 10 <= samples * 11);
    dt_free(seen);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* Files of almost equal length are not cut, so a shard has one range per file; others are cut. */
START_TEST(files_of_equal_length_are_not_cut)
{
    const int even[MAX_FILES] = {100, 101, 99, 100}, uneven[MAX_FILES] = {100, 300};
    struct dt_source *source = make_source(even);
    struct dt_plan *plan = make_plan(source, 2, 10);
    for (int r = 0; r < 2; r++) {
        const struct dt__shard *shard = &plan->shards[r];
        ck_assert_uint_eq(shard->nruns, 2);
        for (size_t s = 0; s < 2; s++)
            ck_assert_uint_ge(shard->runs[s].count, 99);
    }
    dt__plan_destroy(plan);
    dt__source_destroy(source);
    source = make_source(uneven);
    plan = make_plan(source, 2, 10);
    ck_assert_uint_eq(dt__plan_replica_rows(plan, 0), 200);
    ck_assert_uint_eq(dt__plan_replica_rows(plan, 1), 200);
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

/* The seed decides which replica gets which of ten files. */
START_TEST(the_seed_assigns_the_files)
{
    const int rows[MAX_FILES] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    struct dt_source *source = make_source(rows);
    struct dt_plan *a, *b, *c;
    EXPECT_OK(dt__plan_create(source, 1, 5, 10, &a));
    EXPECT_OK(dt__plan_create(source, 1, 5, 10, &b));
    EXPECT_OK(dt__plan_create(source, 2, 5, 10, &c));
    bool differ = false;
    for (int r = 0; r < 5; r++) {
        uint64_t first = a->shards[r].runs[0].row;
        ck_assert_uint_eq(first, b->shards[r].runs[0].row);
        differ |= first != c->shards[r].runs[0].row;
    }
    ck_assert(differ);
    dt__plan_destroy(a), dt__plan_destroy(b), dt__plan_destroy(c);
    dt__source_destroy(source);
}
END_TEST

/* Takes minutes if the cost of a local batch grows with the number of replicas, because each
 * replica then computes the whole step. */
START_TEST(local_batches_of_many_replicas_are_fast)
{
    enum { REPLICAS = 1 << 16 };
    const int rows[MAX_FILES] = {40000, 30001};
    struct dt_source *source = make_source(rows);
    struct dt_plan *plan = make_plan(source, REPLICAS, 50000);
    for (uint64_t step = 0; step < 2; step++) {
        uint64_t total = 0;
        for (int r = 0; r < REPLICAS; r++)
            total += dt__plan_local_batch(plan, step, r).count;
        ck_assert_uint_eq(total, dt__plan_step_rows(plan, step));
    }
    dt__plan_destroy(plan);
    dt__source_destroy(source);
}
END_TEST

DATA_SUITE("plan", {local_batches_follow_websters_order, COUNT(CASES)},
           {shards_cover_the_source, COUNT(CASES)}, {files_of_equal_length_are_not_cut, 1},
           {the_seed_assigns_the_files, 1}, {local_batches_of_many_replicas_are_fast, 1})
