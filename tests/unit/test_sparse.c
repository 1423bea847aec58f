/* Sparse rows: from the file to the batch, in memory and streamed, and through the first layer,
 * whose products equal those of the same rows written out. */
#include "data/source.h"
#include "text/text.h"
#include "data_files.h"
#include "model/entries.h"
#include "model_text.h"

#include <math.h>

enum { ROWS = 9, NIN = 40, DENSE = 3, NOUT = 5 };

/* The same rows in two forms: x with all columns, and x of the first columns with entries for the
 * others. */
static float whole_x[ROWS * NIN], dense_x[ROWS * NIN], value[ROWS * NIN];
static uint64_t offsets[ROWS + 1];
static uint32_t index_of[ROWS * NIN];
static int32_t label[ROWS];

static void make_rows(int dense, bool ones)
{
    struct dt_rng rng = dt__rng_make(6, DT_STREAM_TEST, 0, 0);
    uint64_t draws = 0, count = 0;
    for (int r = 0; r < ROWS; r++) {
        for (int f = 0; f < NIN; f++) {
            bool present = f < dense || dt__rng_u64(&rng, draws++) % 7 == 0;
            float x = present ? (float)(dt__rng_u64(&rng, draws++) % 100) / 50 - 1 : 0;
            if (present && f >= dense && ones) x = 1;
            whole_x[r * NIN + f] = x;
            if (f < dense) dense_x[r * dense + f] = x;
            if (f < dense || !present) continue;
            index_of[count] = (uint32_t)f;
            value[count++] = x;
        }
        offsets[r + 1] = count;
        label[r] = r % NOUT;
    }
}

/* Fails if an entry gets another input's weights, a dense part is dropped, or parts of a batch do
 * not add up. `ones`: entries are 1 and have no values. */
START_TEST(products_equal_those_of_dense_rows)
{
    static const struct {
        int dense;
        bool ones;
        const char *layers;
    } cases[] = {{0, false, "dense 6 tanh"},       {DENSE, false, "dense 6 tanh"},
                 {DENSE, true, "dense 6 tanh"},    {0, true, "linear"},
                 {0, false, "dense 6 tanh, wide"}, {DENSE, true, "dense 6 tanh, wide"}};
    struct dt_model_desc desc = desc_of(cases[_i].layers, NIN, NOUT, DT_TASK_CLASSIFY);
    struct dt_model *model;
    struct dt_network *network;
    double whole_loss, loss, part;
    make_rows(cases[_i].dense, cases[_i].ones);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    size_t count = model->params;
    float *params = randoms(count, 1), *whole = randoms(count, 2), *grad = randoms(count, 3);
    float a[ROWS * NOUT], b[ROWS * NOUT];
    struct dt_batch full = {.rows = ROWS, .ndense = NIN, .x = whole_x, .label = label};
    struct dt_batch sparse = {.rows = ROWS,
                              .ndense = cases[_i].dense,
                              .x = dense_x,
                              .offsets = offsets,
                              .index = index_of,
                              .value = cases[_i].ones ? NULL : value,
                              .label = label};
    EXPECT_OK(dt__network_forward(network, params, &full, a));
    EXPECT_OK(dt__network_forward(network, params, &sparse, b));
    for (int i = 0; i < ROWS * NOUT; i++)
        ck_assert_float_eq_tol(a[i], b[i], 1e-5f);
    EXPECT_OK(dt__network_gradient(network, params, &full, NULL, false,
                                   (struct dt_slot){.grad = whole}, &whole_loss, NULL));
    EXPECT_OK(dt__network_gradient(network, params, &sparse, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    ck_assert_double_eq_tol(loss, whole_loss, 1e-5);
    for (size_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(grad[i], whole[i], 1e-5f);
    struct dt_batch first = sparse, rest = sparse;
    first.rows = 4, rest.rows = ROWS - 4, rest.x += 4 * cases[_i].dense, rest.offsets += 4,
    rest.label += 4;
    EXPECT_OK(dt__network_gradient(network, params, &first, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    EXPECT_OK(dt__network_gradient(network, params, &rest, NULL, true,
                                   (struct dt_slot){.grad = grad}, &part, NULL));
    for (size_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(grad[i], whole[i], 1e-5f);
    dt_free(params), dt_free(whole), dt_free(grad);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* Checks a batch at once and in two parts, with dense inputs too, whose rows are always touched.
 * Fails if a touched row is missing, occurs twice or has other bits than in the whole gradient. The
 * lists start with rows of an earlier gradient. */
START_TEST(touched_rows_equal_those_of_a_whole_gradient)
{
    const int dense = _i ? DENSE : 0;
    struct dt_model_desc desc = desc_of("dense 6 tanh", NIN, NOUT, DT_TASK_CLASSIFY);
    struct dt_model *model;
    struct dt_network *network;
    double loss;
    make_rows(dense, false);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    ck_assert_uint_eq(model->row_sparse, 1);
    const struct dt_tensor *weight = dt__model_row_sparse_tensor(model, 0);
    ck_assert_str_eq(weight->name, "layers/0/weight");
    size_t count = model->params, width = weight->count / NIN;
    float *params = randoms(count, 1), *whole = randoms(count, 2), *grad = randoms(count, 3);
    uint32_t row[NIN] = {7, 8, 9}, listed = 3;
    const struct dt_touched touched = {row, &listed};
    for (int cut = 0; cut < ROWS; cut++) {
        struct dt_batch first = {.rows = cut ? cut : ROWS,
                                 .ndense = dense,
                                 .x = dense_x,
                                 .offsets = offsets,
                                 .index = index_of,
                                 .value = value,
                                 .label = label};
        struct dt_batch rest = first;
        rest.rows = ROWS - cut, rest.x += cut * dense, rest.offsets += cut, rest.label += cut;
        for (int lists = 0; lists < 2; lists++) {
            const struct dt_slot out = {.grad = lists ? grad : whole,
                                        .touched = lists ? &touched : NULL};
            EXPECT_OK(dt__network_gradient(network, params, &first, NULL, false, out, &loss, NULL));
            if (!cut) continue;
            EXPECT_OK(dt__network_gradient(network, params, &rest, NULL, true, out, &loss, NULL));
        }
        const float zeros[6] = {0};
        uint32_t at = 0;
        for (uint32_t i = 0; i < NIN; i++) {
            bool present = at < listed && row[at] == i;
            ck_assert(present || i >= (uint32_t)dense);
            ck_assert_mem_eq(whole + weight->offset + i * width,
                             present ? grad + weight->offset + at * width : zeros,
                             width * sizeof(float));
            at += present;
        }
        ck_assert_uint_eq(at, listed);
        ck_assert_uint_lt(listed, NIN);
        size_t end = weight->offset + weight->count;
        ck_assert_mem_eq(whole + end, grad + end, (count - end) * sizeof *grad);
    }
    struct dt_batch none = {.rows = 0};
    const struct dt_slot slot = {.grad = grad, .touched = &touched};
    EXPECT_OK(dt__network_gradient(network, params, &none, NULL, false, slot, &loss, NULL));
    ck_assert_uint_eq(listed, 0);
    dt_free(params), dt_free(whole), dt_free(grad);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* ---- embedding ------------------------------------------------------------------------------ */

enum { COLUMNS = 4, WIDTH = 5, TABLE = NIN - DENSE, EMBEDDED = DENSE + COLUMNS * WIDTH };

/* Makes one category per column, anywhere in the table as with hashing: a row may have one
 * twice. */
static struct dt_batch make_categories(int dense)
{
    struct dt_rng rng = dt__rng_make(8, DT_STREAM_TEST, 0, 0);
    uint64_t draws = 0;
    for (int r = 0; r < ROWS; r++) {
        for (int f = 0; f < dense; f++)
            dense_x[r * dense + f] = 0.25f + (float)dt__rng_uniform(&rng, draws++);
        for (int c = 0; c < COLUMNS; c++)
            index_of[r * COLUMNS + c] =
                (uint32_t)dense + (uint32_t)(dt__rng_u64(&rng, draws++) % 11);
        offsets[r + 1] = (uint64_t)(r + 1) * COLUMNS;
        label[r] = r % NOUT;
    }
    return (struct dt_batch){.rows = ROWS,
                             .ndense = dense,
                             .x = dense_x,
                             .offsets = offsets,
                             .index = index_of,
                             .label = label};
}

/* Computes outputs and gradients by a dense network whose inputs are the looked-up vectors. A layer
 * of factors (scale, all 1) before it has the gradients by the inputs, if it runs one row at a
 * time. */
static void write_out(const struct dt_batch *batch, const float *table, const float *rest,
                      float *logits, float *table_grad)
{
    struct dt_model_desc desc = desc_of("scale, dense 6 tanh", EMBEDDED, NOUT, DT_TASK_CLASSIFY);
    struct dt_model *model;
    struct dt_network *network;
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, 1, DT_PRECISION_F32, &network));
    size_t count = model->params;
    float *params = randoms(count, 1), *grad = randoms(count, 2), x[EMBEDDED];
    for (int i = 0; i < EMBEDDED; i++)
        params[i] = 1;
    memcpy(params + EMBEDDED, rest, (count - EMBEDDED) * sizeof *params);
    memset(table_grad, 0, TABLE * WIDTH * sizeof *table_grad);
    for (int r = 0; r < ROWS; r++) {
        double loss;
        memcpy(x, batch->x + r * DENSE, DENSE * sizeof *x);
        for (int c = 0; c < COLUMNS; c++)
            memcpy(x + DENSE + c * WIDTH, table + (index_of[r * COLUMNS + c] - DENSE) * WIDTH,
                   WIDTH * sizeof *x);
        const struct dt_batch row = {.rows = 1, .ndense = EMBEDDED, .x = x, .label = label + r};
        EXPECT_OK(dt__network_forward(network, params, &row, logits + r * NOUT));
        EXPECT_OK(dt__network_gradient(network, params, &row, NULL, false,
                                       (struct dt_slot){.grad = grad}, &loss, NULL));
        for (int i = DENSE; i < EMBEDDED; i++) {
            const uint32_t at = index_of[r * COLUMNS + (i - DENSE) / WIDTH] - DENSE;
            table_grad[at * WIDTH + (uint32_t)((i - DENSE) % WIDTH)] += grad[i] / x[i];
        }
    }
    dt_free(params), dt_free(grad);
    dt__network_destroy(network), dt__model_destroy(model);
}

/* Fails if a vector of another category or column is taken, or if a vector that occurs twice in a
 * row counts once. */
START_TEST(embeddings_equal_vectors_written_out)
{
    struct dt_model_desc desc = desc_of("embedding 5, dense 6 tanh", NIN, NOUT, DT_TASK_CLASSIFY);
    struct dt_model *model;
    struct dt_network *network;
    float a[ROWS * NOUT], b[ROWS * NOUT], table_grad[TABLE * WIDTH];
    double loss;
    desc.dense = DENSE, desc.categories = COLUMNS;
    const struct dt_batch batch = make_categories(DENSE);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    size_t count = model->params;
    float *params = randoms(count, 1), *grad = randoms(count, 2);
    ck_assert_uint_eq(model->tensor[0].count, TABLE * WIDTH);
    EXPECT_OK(dt__network_forward(network, params, &batch, a));
    EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    write_out(&batch, params, params + TABLE * WIDTH, b, table_grad);
    for (int i = 0; i < ROWS * NOUT; i++)
        ck_assert_float_eq_tol(a[i], b[i], 1e-5f);
    for (int i = 0; i < TABLE * WIDTH; i++)
        ck_assert_float_eq_tol(grad[i], table_grad[i], 2e-5f);
    dt_free(params), dt_free(grad);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* Compares gradients of both paths with finite differences; those of touched rows equal the whole
 * gradient's, for a batch in two parts. Rows of dense inputs exist only in the linear path. */
START_TEST(wide_and_deep_gradients_agree_with_differences)
{
    const int dense = _i ? DENSE : 0;
    struct dt_model_desc desc =
        desc_of("embedding 5, dense 6 tanh, wide", NIN, NOUT, DT_TASK_CLASSIFY);
    struct dt_model *model;
    struct dt_network *network;
    double loss, up, down;
    desc.dense = dense, desc.categories = COLUMNS;
    const struct dt_batch batch = make_categories(dense);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    size_t count = model->params;
    float *params = randoms(count, 1), *grad = randoms(count, 2), *touched_grad = randoms(count, 3);
    for (size_t i = 0; i < count; i++)
        params[i] *= 0.5f;
    EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    for (size_t i = 0; i < count; i += 3) {
        const float saved = params[i], h = 4e-3f;
        params[i] = saved + h;
        EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                       (struct dt_slot){.grad = touched_grad}, &up, NULL));
        params[i] = saved - h;
        EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                       (struct dt_slot){.grad = touched_grad}, &down, NULL));
        params[i] = saved;
        ck_assert_double_eq_tol((up - down) / (2 * (double)h), (double)grad[i], 3e-3);
    }
    uint32_t row[2][NIN], listed[2] = {0};
    const struct dt_touched touched[] = {{row[0], &listed[0]}, {row[1], &listed[1]}};
    struct dt_batch first = batch, rest = batch;
    first.rows = 4, rest.rows -= 4, rest.x += 4 * dense, rest.offsets += 4, rest.label += 4;
    EXPECT_OK(dt__network_gradient(network, params, &first, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    EXPECT_OK(dt__network_gradient(network, params, &rest, NULL, true,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    const struct dt_slot slot = {.grad = touched_grad, .touched = touched};
    EXPECT_OK(dt__network_gradient(network, params, &first, NULL, false, slot, &loss, NULL));
    EXPECT_OK(dt__network_gradient(network, params, &rest, NULL, true, slot, &loss, NULL));
    ck_assert_uint_eq(model->row_sparse, 2);
    for (size_t t = 0; t < 2; t++) {
        const struct dt_tensor *tensor = dt__model_row_sparse_tensor(model, t);
        const size_t width = tensor->shape[1];
        ck_assert_uint_eq(listed[t], 10 + (t ? (uint32_t)dense : 0)); /* of 11 categories */
        for (size_t i = 0; i < listed[t]; i++)
            ck_assert_mem_eq(grad + tensor->offset + row[t][i] * width,
                             touched_grad + tensor->offset + i * width, width * sizeof *grad);
    }
    dt_free(params), dt_free(grad), dt_free(touched_grad);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* A row that lacks a category, and rows without any, are errors. */
START_TEST(rows_that_do_not_fit_an_embedding_are_refused)
{
    struct dt_model_desc desc = desc_of("embedding 5", NIN, NOUT, DT_TASK_CLASSIFY);
    struct dt_model *model;
    struct dt_network *network;
    float out[ROWS * NOUT];
    desc.dense = DENSE, desc.categories = COLUMNS;
    struct dt_batch batch = make_categories(DENSE);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    float *params = randoms(model->params, 1);
    EXPECT_OK(dt__network_forward(network, params, &batch, out));
    offsets[ROWS]--;
    EXPECT_FAIL(dt__network_forward(network, params, &batch, out), DT_EMISMATCH,
                "embedding 5: a row of 3 categories, expected 4");
    batch.offsets = NULL;
    EXPECT_FAIL(dt__network_forward(network, params, &batch, out), DT_EMISMATCH,
                "without categories");
    dt_free(params);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* Fails if a pass of the sort skips a digit or is not stable. */
START_TEST(entries_are_sorted_by_input_and_row)
{
    static const size_t inputs[] = {2, 40, 2048, 2049, 70000, 1 << 24, (size_t)INT32_MAX};
    enum { ENTRIES = 500, BATCH = 50 };
    struct dt_rng rng = dt__rng_make(7, DT_STREAM_TEST, (uint64_t)_i, 0);
    struct dt__entries entries = {0};
    uint64_t begin[BATCH + 1];
    uint32_t index[ENTRIES];
    for (uint64_t e = 0; e < ENTRIES; e++)
        index[e] = (uint32_t)(dt__rng_u64(&rng, e) % inputs[_i]) & (e % 3 ? ~0U : 7U);
    for (uint64_t r = 0; r <= BATCH; r++)
        begin[r] = r * (ENTRIES / BATCH);
    const struct dt_batch batch = {.rows = BATCH, .offsets = begin, .index = index};
    EXPECT_OK(dt__entries_sort(&entries, &batch, inputs[_i]));
    ck_assert_uint_eq(entries.count, ENTRIES);
    for (size_t e = 1; e < ENTRIES; e++) {
        const struct dt__entry *a = &entries.entry[e - 1], *b = a + 1;
        ck_assert(a->input < b->input || (a->input == b->input && a->row <= b->row));
    }
    dt__entries_free(&entries);
}
END_TEST

/* ---- from the file to the batch ------------------------------------------------------------- */

enum { FILE_ROWS = 30000, FEATURES = 3000, SET = 6 };

static uint32_t entry_at(int row, int i)
{
    return (uint32_t)(row * 7919 % 400 + i * 431) % FEATURES;
}

static float value_at(int row, int i)
{
    return (float)(row + i) / 4 + 1;
}

static void put_file(void)
{
    FILE *out = fopen("a.svm", "w");
    for (int r = 0; r < FILE_ROWS; r++) {
        fprintf(out, "%d", r % 3);
        for (int i = 0; i < SET; i++)
            fprintf(out, " %u:%g", entry_at(r, i) + 1, (double)value_at(r, i));
        fprintf(out, "\n");
    }
    fclose(out);
    set("data.train=a.svm"), set("data.features=3000");
}

/* The rows take 2.0 MiB as entries. In memory and streamed, each row has its entries and occurs
 * once per epoch, also on a rank that has not surveyed; features without names take no memory there
 * (16 million took 2 GB). */
START_TEST(rows_are_read_as_entries)
{
    put_file();
    set("data.scale=2"), set(_i ? "data.memory_mb=1" : "data.memory_mb=64");
    struct dt_source *surveyed = survey(), *source;
    unsigned char *bytes;
    size_t length;
    EXPECT_OK(dt__source_pack(surveyed, &bytes, &length));
    EXPECT_OK(dt__source_unpack(bytes, length, &source));
    dt_free(bytes), dt__source_destroy(surveyed);
    ck_assert_int_eq(dt__source_schema(source)->dense, 0);
    ck_assert_ptr_null(source->columns.items);
    struct dt_plan *plan;
    struct dt_loader *loader;
    static bool seen[FILE_ROWS];
    memset(seen, 0, sizeof seen);
    int before = threads();
    EXPECT_OK(dt__plan_create(source, 1, 2, 100, &plan));
    EXPECT_OK(dt__loader_create(&config, source, plan, 0, 2, 1, 100, 0, &loader));
    ck_assert_int_eq(threads() - before, _i);
    for (uint64_t step = 0; step < dt__plan_steps_per_epoch(plan); step++)
        for (int replica = 0; replica < 2; replica++) {
            struct dt_local_batch local = dt__plan_local_batch(plan, step, replica);
            struct dt_batch batch;
            EXPECT_OK(dt__loader_read(loader, replica, 0, local.begin, (int)local.count, &batch));
            ck_assert_int_eq(batch.ndense, 0);
            for (int r = 0; r < batch.rows; r++) {
                int row = (int)(2 * batch.value[batch.offsets[r]]) - 4;
                ck_assert(!seen[row]);
                seen[row] = true;
                ck_assert_int_eq(batch.label[r], row % 3);
                ck_assert_uint_eq(batch.offsets[r + 1] - batch.offsets[r], SET);
                for (int i = 0; i < SET; i++) {
                    EXPECT(batch.index[batch.offsets[r] + (uint64_t)i] == entry_at(row, i));
                    EXPECT(batch.value[batch.offsets[r] + (uint64_t)i] == 2 * value_at(row, i));
                }
            }
        }
    for (int r = 0; r < FILE_ROWS; r++)
        ck_assert(seen[r]);
    dt__loader_destroy(loader), dt__plan_destroy(plan), dt__source_destroy(source);
}
END_TEST

/* Text rows that data.shape makes pictures of become dense, and can be augmented: all values of a
 * row come back at their place or mirrored. Rows that are sparse in the checkpoint cannot be
 * augmented. */
START_TEST(pictures_are_dense)
{
    enum { H = 40, W = 75 };
    put_file();
    set("data.shape=40x75x1"), set("data.augment=flip");
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->dense, FEATURES);
    struct dt_plan *plan;
    struct dt_loader *loader;
    struct dt_batch batch;
    int mirrored = 0;
    EXPECT_OK(dt__plan_create(source, 1, 1, 100, &plan));
    EXPECT_OK(dt__loader_create(&config, source, plan, 0, 1, 1, 100, 0, &loader));
    EXPECT_OK(dt__loader_read(loader, 0, 0, 0, 100, &batch));
    ck_assert_int_eq(batch.ndense, FEATURES);
    ck_assert_ptr_null(batch.offsets);
    for (const float *x = batch.x; x < batch.x + 100 * FEATURES; x += FEATURES) {
        float least = INFINITY;
        int set_values = 0, unchanged = 0, flipped = 0;
        for (int f = 0; f < FEATURES; f++) {
            set_values += x[f] != 0;
            if (x[f] != 0 && x[f] < least) least = x[f];
        }
        const int row = (int)(4 * least) - 4;
        for (int i = 0; i < SET; i++) {
            const uint32_t at = entry_at(row, i);
            unchanged += x[at] == value_at(row, i);
            flipped += x[at / W * W + W - 1 - at % W] == value_at(row, i);
        }
        ck_assert_int_eq(set_values, SET);
        ck_assert(unchanged == SET || flipped == SET);
        mirrored += flipped == SET;
    }
    ck_assert(mirrored > 20 && mirrored < 80);
    dt__loader_destroy(loader), dt__plan_destroy(plan);
    struct dt_schema known;
    struct dt_source *sparse;
    EXPECT_OK(dt__schema_copy(dt__source_schema(source), &known));
    known.dense = 0;
    EXPECT_OK(dt__source_survey(&config, DT_PART_TRAIN, &known, &sparse));
    EXPECT_OK(dt__plan_create(sparse, 1, 1, 100, &plan));
    EXPECT_FAIL(dt__loader_create(&config, sparse, plan, 0, 1, 1, 100, 0, &loader), DT_EMISMATCH,
                "data.augment = flip: the rows are sparse in the checkpoint");
    dt__plan_destroy(plan), dt__schema_free(&known);
    dt__source_destroy(sparse), dt__source_destroy(source);
}
END_TEST

/* data.normalize=standard keeps the zeros of sparse inputs, and only divides by their deviation. */
START_TEST(sparse_rows_are_scaled_and_not_shifted)
{
    FILE *out = fopen("a.svm", "w");
    for (int r = 0; r < 40; r++)
        fprintf(out, r % 4 ? "1 2000:1\n" : "0 7:3\n");
    fclose(out);
    set("data.train=a.svm"), set("data.normalize=standard");
    struct dt_source *source = survey();
    const struct dt_schema *schema = dt__source_schema(source);
    ck_assert_int_eq(schema->dense, 0);
    ck_assert_float_eq(schema->mean[6], 0);
    ck_assert_float_eq_tol(schema->inv_std[6], 1 / (3 * 0.4330127f), 1e-5f);
    struct dt_table *table = open_table(source);
    struct dt_batch batch = read_row(table, 0);
    ck_assert_uint_eq(batch.index[0], 6);
    ck_assert_float_eq_tol(batch.value[0], 1 / 0.4330127f, 1e-5f);
    dt__table_destroy(table), dt__source_destroy(source);
}
END_TEST

/* data.normalize=robust turns a misprint among sparse inputs into 5 deviations of the others; it
 * does not change their scale. */
START_TEST(sparse_rows_are_scaled_robustly)
{
    for (int misprint = 0; misprint < 2; misprint++) {
        FILE *out = fopen("a.svm", "w");
        for (int r = 0; r < 4000; r++)
            fprintf(out, r % 4 ? "1 2000:1\n" : "0 7:%s\n",
                    misprint && r == 400 ? "-1e30"
                    : r % 8              ? "2"
                                         : "3");
        fclose(out);
        set("data.train=a.svm"), set("data.normalize=robust");
        struct dt_source *source = survey();
        const struct dt_schema *schema = dt__source_schema(source);
        ck_assert_int_eq(schema->dense, 0);
        ck_assert_float_eq(schema->mean[6], 0);
        ck_assert_float_eq_tol(schema->inv_std[6], 1 / 1.11102f, 0.01f);
        ck_assert_float_eq_tol(schema->inv_std[1999], 1 / 0.4330127f, 1e-5f);
        struct dt_table *table = open_table(source);
        ck_assert_float_eq(read_row(table, 400).value[0], misprint ? -5 : 3 * schema->inv_std[6]);
        dt__table_destroy(table), dt__source_destroy(source);
    }
}
END_TEST

/* Categories with many texts are entries without values after the dense numbers, hashed or not. */
START_TEST(categories_are_entries)
{
    FILE *out = fopen("a.csv", "w");
    fprintf(out, "word,p,y\n");
    for (int r = 0; r < 6000; r++)
        fprintf(out, "w%d,%d.5,%d\n", r % 1500, r, r % 2);
    fclose(out);
    set("data.train=a.csv"), set("data.categories=word");
    if (_i) set("data.hash_bits=12");
    struct dt_source *source = survey();
    const struct dt_schema *schema = dt__source_schema(source);
    ck_assert_int_eq(schema->dense, 1);
    ck_assert_int_eq(schema->features, _i ? 1 + 4096 : 1 + 1501);
    struct dt_table *table = open_table(source);
    uint32_t first = read_row(table, 3).index[0];
    for (uint64_t r = 3; r < 6000; r += 1500) {
        struct dt_batch batch = read_row(table, r);
        ck_assert_float_eq(batch.x[0], (float)r + 0.5f);
        ck_assert_uint_eq(batch.offsets[1] - batch.offsets[0], 1);
        ck_assert_uint_eq(batch.index[batch.offsets[0]], first);
        ck_assert_ptr_null(batch.value);
    }
    dt__table_destroy(table), dt__source_destroy(source);
}
END_TEST

/* Models store the numbers of hashed texts: with another hash they would read other rows. */
START_TEST(hashes_never_change)
{
    ck_assert_uint_eq(dt__text_hash("Ideal", 5, 1), UINT64_C(0x7a86429926739667));
    ck_assert_uint_eq(dt__text_hash("", 0, 3), UINT64_C(0x4a0b22afa4417639));
}
END_TEST

/* Shards store sparse rows with all columns, so that nothing is lost. */
START_TEST(shards_store_rows_as_dense)
{
    FILE *out = fopen("a.svm", "w");
    for (int r = 0; r < 40; r++)
        fprintf(out, "%d %d:0.5 2000:%d\n", r % 2, r + 1, r + 1);
    fclose(out);
    set("data.train=a.svm");
    EXPECT_OK(dt__shard_write(&config, "out", 2));
    set("data.train=out/*.h5");
    struct dt_source *source = survey();
    ck_assert_uint_eq(dt__source_rows(source), 40);
    struct dt_table *table = open_table(source);
    for (uint64_t r = 0; r < 40; r++) {
        struct dt_batch batch = read_row(table, r);
        int row = (int)batch.x[1999] - 1;
        ck_assert_int_eq(batch.label[0], row % 2);
        ck_assert_float_eq(batch.x[row], 0.5f);
    }
    dt__table_destroy(table), dt__source_destroy(source);
}
END_TEST

/* A row of weight 2 counts as two rows, a row of weight 0 as none. */
START_TEST(weights_count_as_repetitions)
{
    struct dt_model_desc desc =
        desc_of("dense 6 tanh", NIN, NOUT, _i ? DT_TASK_REGRESS : DT_TASK_CLASSIFY);
    struct dt_model *model;
    struct dt_network *network;
    double loss, again;
    make_rows(NIN, false);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    size_t count = model->params;
    float *params = randoms(count, 1), *grad = randoms(count, 2), *other = randoms(count, 3);
    float *target = randoms(ROWS * NOUT, 4), weight[] = {2, 1, 0};
    struct dt_batch weighted = {
        .rows = 3, .ndense = NIN, .x = whole_x, .label = label, .target = target, .weight = weight};
    struct dt_batch first = {
        .rows = 2, .ndense = NIN, .x = whole_x, .label = label, .target = target};
    EXPECT_OK(dt__network_gradient(network, params, &weighted, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    EXPECT_OK(dt__network_gradient(network, params, &first, NULL, false,
                                   (struct dt_slot){.grad = other}, &again, NULL));
    double sum = again;
    first.rows = 1;
    EXPECT_OK(dt__network_gradient(network, params, &first, NULL, true,
                                   (struct dt_slot){.grad = other}, &again, NULL));
    ck_assert_double_eq_tol(loss, sum + again, 1e-5);
    for (size_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(grad[i], other[i], 1e-5f);
    dt_free(params), dt_free(grad), dt_free(other), dt_free(target);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* Rows with many features are sparse if fewer than one value in eight is set. */
START_TEST(full_rows_are_dense)
{
    enum { MANY = 1200 };
    static const int set_in_a_row[] = {MANY / 8 - 1, MANY / 8 + 1};
    for (size_t i = 0; i < COUNT(set_in_a_row); i++) {
        FILE *out = fopen("a.svm", "w");
        ck_assert_ptr_nonnull(out);
        for (int r = 0; r < 4; r++) {
            fprintf(out, "%d", r % 2);
            for (int f = 1; f < set_in_a_row[i]; f++)
                fprintf(out, " %d:1", f);
            fprintf(out, " %d:1\n", MANY);
        }
        ck_assert_int_eq(fclose(out), 0);
        set("data.train=a.svm");
        struct dt_source *source = survey();
        ck_assert_int_eq(dt__source_schema(source)->dense, i ? MANY : 0);
        dt__source_destroy(source);
    }
}
END_TEST

DATA_SUITE("sparse", {products_equal_those_of_dense_rows, 6}, {weights_count_as_repetitions, 2},
           {shards_store_rows_as_dense, 1}, {rows_are_read_as_entries, 2}, {full_rows_are_dense, 1},
           {pictures_are_dense, 1}, {hashes_never_change, 1},
           {touched_rows_equal_those_of_a_whole_gradient, 2},
           {entries_are_sorted_by_input_and_row, 7}, {embeddings_equal_vectors_written_out, 1},
           {wide_and_deep_gradients_agree_with_differences, 2},
           {rows_that_do_not_fit_an_embedding_are_refused, 1},
           {sparse_rows_are_scaled_and_not_shifted, 1}, {sparse_rows_are_scaled_robustly, 1},
           {categories_are_entries, 2})
