/* Helpers for the tests of saved state: a small checkpoint with values in nearly all members,
 * assertions that compare two checkpoints, and a directory for each test. */
#ifndef STATE_SAMPLE_H
#define STATE_SAMPLE_H

#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/directory.h"
#include "state/state.h"
#include "suite.h"

#define assert_ok(call) ck_assert_msg((call) == DT_OK, "%s: %s", #call, dt_error_text())

/* Saves as the writer's thread does. Sets *out_file to the base name; the caller frees it. */
static inline dt_status save_checkpoint(const char *dir, const struct dt_checkpoint *checkpoint,
                                        int64_t keep, const char *protected, char **out_file)
{
    char name[DT_CHECKPOINT_NAME];
    DT_TRY(dt__checkpoint_save(dir, checkpoint));
    DT_TRY(dt__checkpoint_retain(dir, keep, protected));
    return dt__strdup(dt__checkpoint_name(checkpoint->step, name), out_file);
}

/* ---- a directory ---------------------------------------------------------------------------- */

static char test_dir[64];

static inline void make_test_dir(void)
{
    scratch_make(test_dir);
}

static inline void remove_test_dir(void)
{
    scratch_clear(test_dir);
}

/* Returns the path of `name` in the test's directory; at most the last four paths are valid. */
static inline const char *in_dir(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", test_dir, name);
    return path;
}

/* Counts the names in `dir` that contain `part`. */
static inline int count_names(const char *dir, const char *part)
{
    int count = 0;
    DIR *stream = opendir(dir);
    struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        count += !!strstr(entry->d_name, part);
    if (stream) closedir(stream);
    return count;
}

/* ---- a checkpoint --------------------------------------------------------------------------- */

enum { SAMPLE_REPLICAS = 3 };

static inline float *sample_fill(float *floats, size_t n, float first)
{
    for (size_t i = 0; i < n; i++)
        floats[i] = first + (float)i / 7.0f;
    return floats;
}

/* Returns an array for a schema; free with dt_free. */
static inline float *sample_array(size_t n, float first)
{
    float *array;
    assert_ok(dt__alloc(n, sizeof *array, "a sample", &array));
    return sample_fill(array, n, first);
}

/* Returns a vector for a checkpoint; free with dt__free_backed. */
static inline float *sample_vector(size_t n, float first)
{
    float *vector;
    assert_ok(dt__alloc_backed(NULL, n, sizeof *vector, "a sample", &vector));
    return sample_fill(vector, n, first);
}

static inline char *sample_text(const char *text)
{
    char *copy;
    assert_ok(dt__strdup(text, &copy));
    return copy;
}

static inline struct dt_schema sample_schema(int features)
{
    struct dt_schema schema = {
        .task = DT_TASK_CLASSIFY, .features = features, .classes = 3, .scale = 0.5};
    schema.mean = sample_array((size_t)features, 1);
    schema.inv_std = sample_array((size_t)features, 2);
    schema.label_column = sample_text("kind");
    assert_ok(dt__alloc(3, sizeof(char *), "names", &schema.label_names));
    schema.label_names[0] = sample_text("T-shirt");
    schema.label_names[1] = sample_text("");
    schema.label_names[2] = sample_text("Stra\xc3\x9f"
                                        "e");
    return schema;
}

static inline size_t sample_params(const struct dt_model_desc *desc)
{
    struct dt_model *model;
    assert_ok(dt__model_create(desc, &model));
    size_t params = model->params;
    dt__model_destroy(model);
    return params;
}

static inline void sample_replicas(struct dt_checkpoint *checkpoint)
{
    checkpoint->replicas = SAMPLE_REPLICAS;
    assert_ok(dt__alloc(SAMPLE_REPLICAS, sizeof(uint64_t), "draws", &checkpoint->draws));
    assert_ok(dt__alloc(SAMPLE_REPLICAS, sizeof(double), "sums", &checkpoint->loss_sums));
    for (int i = 0; i < SAMPLE_REPLICAS; i++) {
        checkpoint->draws[i] = 1000000000000u + (uint64_t)i;
        checkpoint->loss_sums[i] = 1.0 / (i + 3);
    }
}

/* Returns a checkpoint of an MLP features-hidden-3 under adam; free with dt__checkpoint_free. */
static inline struct dt_checkpoint sample_checkpoint(uint64_t step, int features, int hidden)
{
    struct dt_checkpoint c = {.step = step,
                              .mode = DT_MODE_ASYNC,
                              .seed = 77,
                              .samples = step * 128,
                              .wall_secs = 12.25,
                              .train_secs = 11.5,
                              .loss_rows = 384,
                              .data_crc = 0xfeedbeef};
    c.best = (struct dt_best){true,     0.875, 0.4, "accuracy", step / 2,  2,
                              step + 1, true,  1,   3,          1700000000};
    c.config = sample_text("[run]\ndir = x\n");
    c.kernel = sample_text("Haswell");
    c.desc = (struct dt_model_desc){.shape = {1, 1, features}, .nout = 3, .task = DT_TASK_CLASSIFY};
    assert_ok(dt__format(&c.desc.layers, "dense %d gelu, dropout 0.25", hidden));
    c.schema = sample_schema(features);
    sample_replicas(&c);
    c.params_count = sample_params(&c.desc);
    c.params = sample_vector(c.params_count, (float)step);
    c.nstate = 2;
    c.state_name[0] = sample_text("first");
    c.state_name[1] = sample_text("second");
    c.state[0] = sample_vector(c.params_count, 0.5f);
    c.state[1] = sample_vector(c.params_count, -0.5f);
    return c;
}

/* ---- comparing ------------------------------------------------------------------------------ */

static inline void assert_same_text(const char *a, const char *b)
{
    if (!a || !b)
        ck_assert_ptr_eq(a, b);
    else
        ck_assert_str_eq(a, b);
}

static inline void assert_same_floats(const float *a, const float *b, size_t count)
{
    ck_assert_int_eq(!a, !b);
    if (a) ck_assert_int_eq(memcmp(a, b, count * sizeof *a), 0);
}

static inline void assert_same_desc(const struct dt_model_desc *a, const struct dt_model_desc *b)
{
    ck_assert_str_eq(a->layers, b->layers);
    ck_assert_mem_eq(a->shape, b->shape, sizeof a->shape);
    ck_assert_int_eq(a->nout, b->nout);
    ck_assert_int_eq(a->task, b->task);
    ck_assert_int_eq(a->dense, b->dense);
    ck_assert_int_eq(a->encode, b->encode);
    ck_assert_int_eq(a->encode_columns, b->encode_columns);
    ck_assert_int_eq(a->encode_width, b->encode_width);
    ck_assert_int_eq(a->encode_count, b->encode_count);
    assert_same_floats(a->encode_table, b->encode_table, (size_t)a->encode_count);
}

static inline void assert_same_names(char **a, char **b, int count)
{
    ck_assert_int_eq(!a, !b);
    for (int i = 0; a && i < count; i++)
        ck_assert_str_eq(a[i], b[i]);
}

static inline void assert_same_schema(const struct dt_schema *a, const struct dt_schema *b)
{
    ck_assert_int_eq(a->task, b->task);
    ck_assert_int_eq(a->features, b->features);
    ck_assert_int_eq(a->classes, b->classes);
    ck_assert_int_eq(a->targets, b->targets);
    ck_assert(a->scale == b->scale);
    assert_same_floats(a->mean, b->mean, (size_t)a->features);
    assert_same_floats(a->inv_std, b->inv_std, (size_t)a->features);
    ck_assert_int_eq(a->encoded, b->encoded);
    ck_assert_int_eq(a->quantiles, b->quantiles);
    if (a->encoded)
        ck_assert_mem_eq(a->encoded_feature, b->encoded_feature,
                         (size_t)a->encoded * sizeof *a->encoded_feature);
    assert_same_floats(a->quantile, b->quantile, (size_t)a->quantiles);
    assert_same_names(a->feature_names, b->feature_names, a->features);
    assert_same_names(a->label_names, b->label_names, a->classes);
    assert_same_text(a->label_column, b->label_column);
}

static inline void assert_same_best(const struct dt_best *a, const struct dt_best *b)
{
    ck_assert_int_eq(a->known, b->known);
    ck_assert(a->value == b->value);
    ck_assert_str_eq(a->metric, b->metric);
    ck_assert_uint_eq(a->step, b->step);
    ck_assert_int_eq(a->since, b->since);
    ck_assert_uint_eq(a->seen, b->seen);
    ck_assert_int_eq(a->stop, b->stop);
    ck_assert_int_eq(a->plateau, b->plateau);
    ck_assert_int_eq(a->drops, b->drops);
    ck_assert_int_eq(a->era, b->era);
}

static inline void assert_same_counters(const struct dt_checkpoint *a,
                                        const struct dt_checkpoint *b)
{
    ck_assert_uint_eq(a->step, b->step);
    ck_assert_int_eq(a->mode, b->mode);
    ck_assert_uint_eq(a->seed, b->seed);
    ck_assert_int_eq(a->replicas, b->replicas);
    ck_assert_uint_eq(a->samples, b->samples);
    ck_assert(a->wall_secs == b->wall_secs && a->train_secs == b->train_secs);
    ck_assert(a->loss_rows == b->loss_rows);
    ck_assert_mem_eq(a->draws, b->draws, (size_t)a->replicas * sizeof *a->draws);
    ck_assert_mem_eq(a->loss_sums, b->loss_sums, (size_t)a->replicas * sizeof *a->loss_sums);
    ck_assert_uint_eq(a->data_crc, b->data_crc);
}

static inline void assert_same_checkpoint(const struct dt_checkpoint *a,
                                          const struct dt_checkpoint *b)
{
    assert_same_counters(a, b);
    assert_same_best(&a->best, &b->best);
    assert_same_text(a->config, b->config);
    assert_same_text(a->kernel, b->kernel);
    assert_same_desc(&a->desc, &b->desc);
    assert_same_schema(&a->schema, &b->schema);
    ck_assert_uint_eq(a->params_count, b->params_count);
    assert_same_floats(a->params, b->params, a->params_count);
    ck_assert_int_eq(a->nstate, b->nstate);
    for (int i = 0; i < a->nstate; i++) {
        ck_assert_str_eq(a->state_name[i], b->state_name[i]);
        assert_same_floats(a->state[i], b->state[i], a->params_count);
    }
}

/* ---- running -------------------------------------------------------------------------------- */

/* Runs the tests of a program, each in a separate process and directory. */
static inline int run_tests(const char *name, int count, const TTest *const tests[])
{
    TCase *all = tcase_create(name);
    tcase_add_checked_fixture(all, make_test_dir, remove_test_dir);
    for (int i = 0; i < count; i++)
        tcase_add_test(all, tests[i]);
    return suite_run_case(name, all);
}

#endif
