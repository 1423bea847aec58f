/* Fails if a save and a load lose or change a member, or if a damaged, truncated, foreign, newer or
 * hostile file loads as a good one or crashes the process. */
#include "state_sample.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>

#include "state/saved_file.h"

static struct dt_rng rng_of_test(uint64_t which)
{
    return dt__rng_make(20240229, DT_STREAM_TEST, which, 0);
}

/* ---- round trip ----------------------------------------------------------------------------- */

/* Saves, loads and compares the checkpoint, and frees it. */
static void assert_round_trip(struct dt_checkpoint *checkpoint)
{
    char *file;
    struct dt_checkpoint again;
    assert_ok(save_checkpoint(test_dir, checkpoint, 0, NULL, &file));
    assert_ok(dt__checkpoint_load(in_dir(file), &again));
    assert_same_checkpoint(checkpoint, &again);
    dt__checkpoint_free(&again);
    dt__checkpoint_free(checkpoint);
    dt_free(file);
}

/* Returns the bytes of a checkpoint's file. */
static void pack(const struct dt_checkpoint *checkpoint, unsigned char **out_bytes,
                 size_t *out_length)
{
    char *file;
    assert_ok(save_checkpoint(test_dir, checkpoint, 0, NULL, &file));
    assert_ok(dt__file_read(in_dir(file), 1 << 24, out_bytes, out_length));
    dt_free(file);
}

START_TEST(every_member_survives)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(1200, 5, 4);
    assert_round_trip(&checkpoint);
    ck_assert(dt__path_exists(in_dir("step-000001200.h5")));
}
END_TEST

START_TEST(special_floats_keep_their_bits)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(0, 5, 4);
    const uint32_t special[] = {0x7fc00001, 0xffc12345, 0x7f800000,
                                0x80000000, 0x00000001, 0x807fffff};
    memcpy(checkpoint.params, special, sizeof special);
    checkpoint.best.value = -0.0;
    checkpoint.samples = UINT64_MAX;
    checkpoint.seed = UINT64_MAX - 1;
    assert_round_trip(&checkpoint);
}
END_TEST

START_TEST(a_linear_regression_without_state_survives)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(7, 5, 4);
    dt__schema_free(&checkpoint.schema);
    checkpoint.schema =
        (struct dt_schema){.task = DT_TASK_REGRESS, .features = 5, .targets = 2, .scale = 1};
    dt__model_desc_free(&checkpoint.desc);
    checkpoint.desc = (struct dt_model_desc){
        .layers = sample_text("linear"), .shape = {1, 1, 5}, .nout = 2, .task = DT_TASK_REGRESS};
    checkpoint.params_count = sample_params(&checkpoint.desc);
    for (int i = 0; i < 2; i++) {
        dt_free((void *)checkpoint.state_name[i]);
        dt__free_backed(checkpoint.state[i]);
        checkpoint.state_name[i] = NULL;
        checkpoint.state[i] = NULL;
    }
    checkpoint.nstate = 0;
    checkpoint.best = (struct dt_best){0};
    assert_round_trip(&checkpoint);
}
END_TEST

START_TEST(a_deep_network_with_names_survives)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(7, 5, 4);
    struct dt_text layers = {0};
    for (int i = 0; i < 60; i++)
        assert_ok(dt__text_add(&layers, "%sdense %d tanh", i ? ", " : "", 2 + i % 3));
    dt_free(checkpoint.desc.layers);
    checkpoint.desc.layers = layers.data;
    checkpoint.params_count = sample_params(&checkpoint.desc);
    dt__free_backed(checkpoint.params);
    checkpoint.params = sample_vector(checkpoint.params_count, 3);
    for (int i = 0; i < 2; i++) {
        dt__free_backed(checkpoint.state[i]);
        checkpoint.state[i] = sample_vector(checkpoint.params_count, (float)i);
    }
    assert_ok(dt__alloc(5, sizeof(char *), "names", &checkpoint.schema.feature_names));
    const char *names[] = {"a", "b c", "\"quoted\", with comma", "", "\xf0\x9f\x8c\x8a"};
    for (int i = 0; i < 5; i++)
        checkpoint.schema.feature_names[i] = sample_text(names[i]);
    assert_round_trip(&checkpoint);
}
END_TEST

/* State tensors are last in the flat vector, away from their layers, and the optimizer has no state
 * for them. */
START_TEST(state_tensors_survive)
{
    struct dt_model *model;
    struct dt_checkpoint checkpoint = sample_checkpoint(7, 5, 4);
    dt_free(checkpoint.desc.layers);
    checkpoint.desc.layers = sample_text("dense 4, batchnorm relu, dense 3, batchnorm tanh");
    checkpoint.params_count = sample_params(&checkpoint.desc);
    assert_ok(dt__model_create(&checkpoint.desc, &model));
    size_t trained = model->trained;
    dt__model_destroy(model);
    ck_assert_uint_lt(trained, checkpoint.params_count);
    dt__free_backed(checkpoint.params);
    checkpoint.params = sample_vector(checkpoint.params_count, 3);
    for (int i = 0; i < 2; i++) {
        dt__free_backed(checkpoint.state[i]);
        checkpoint.state[i] = sample_vector(checkpoint.params_count, (float)i);
        memset(checkpoint.state[i] + trained, 0,
               (checkpoint.params_count - trained) * sizeof(float));
    }
    assert_round_trip(&checkpoint);
}
END_TEST

/* Returns a checkpoint of four features, two of them with quantiles and an encoding. */
static struct dt_checkpoint with_encoding(void)
{
    struct dt_checkpoint c = sample_checkpoint(7, 4, 3);
    c.desc.dense = c.schema.dense = 4;
    c.desc.encode = DT_ENCODE_PLE;
    c.desc.encode_columns = c.schema.encoded = 2;
    c.desc.encode_width = 2;
    c.desc.encode_count = 6;
    c.desc.encode_table = sample_array(6, -1);
    assert_ok(dt__alloc(2, sizeof(int64_t), "features", &c.schema.encoded_feature));
    c.schema.encoded_feature[0] = 1;
    c.schema.encoded_feature[1] = 3;
    c.schema.quantiles = 8;
    c.schema.quantile = sample_array(8, 5);
    c.params_count = sample_params(&c.desc);
    float **const vectors[] = {&c.params, &c.state[0], &c.state[1]};
    for (int i = 0; i < 3; i++) {
        dt__free_backed(*vectors[i]);
        *vectors[i] = sample_vector(c.params_count, (float)i);
    }
    return c;
}

START_TEST(an_encoding_survives)
{
    struct dt_checkpoint checkpoint = with_encoding();
    assert_round_trip(&checkpoint);
}
END_TEST

/* Fails if the loader accepts quantiles that are not sorted or not finite, a feature that no row
 * has, a bin of width 0, or numbers whose counts disagree. */
START_TEST(a_wrong_encoding_is_refused)
{
    for (int wrong = 0; wrong < 8; wrong++) {
        struct dt_checkpoint c = with_encoding(), out;
        char *file;
        if (wrong == 0) c.schema.quantile[1] = c.schema.quantile[0] - 1;
        if (wrong == 1) c.schema.quantile[7] = INFINITY;
        if (wrong == 2) c.schema.encoded_feature[1] = 4;
        if (wrong == 3) c.schema.encoded_feature[0] = 3;
        if (wrong == 4) c.schema.encoded_feature[0] = -1;
        if (wrong == 5) c.schema.quantiles = 7;
        if (wrong == 6) c.desc.encode_table[4] = c.desc.encode_table[3];
        if (wrong == 7) c.desc.dense = 3;
        assert_ok(save_checkpoint(test_dir, &c, 0, NULL, &file));
        EXPECT_FAIL(dt__checkpoint_load(in_dir(file), &out), DT_EFORMAT,
                    wrong < 6    ? "quantiles are not as expected"
                    : wrong == 6 ? "its encoding of numbers is malformed"
                                 : "its numbers are others");
        dt__checkpoint_free(&c), dt_free(file);
    }
}
END_TEST

static struct dt_checkpoint with_config(size_t length)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(7, 5, 4);
    dt_free(checkpoint.config);
    assert_ok(dt__alloc(length + 1, 1, "a config", &checkpoint.config));
    for (size_t i = 0; i < length; i++)
        checkpoint.config[i] = (char)('a' + i % 23);
    return checkpoint;
}

/* An attribute holds less than 64 KiB: a longer text is stored in several. */
START_TEST(a_long_config_survives)
{
    const size_t lengths[] = {0, 1, 59999, 60000, 60001, 120000, 300000, 1 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct dt_checkpoint checkpoint = with_config(lengths[i]);
        assert_round_trip(&checkpoint);
    }
    char *file;
    struct dt_checkpoint checkpoint = with_config((1 << 20) + 1);
    ck_assert_int_eq(save_checkpoint(test_dir, &checkpoint, 0, NULL, &file), DT_EFORMAT);
    dt__checkpoint_free(&checkpoint);
}
END_TEST

START_TEST(the_same_state_gives_the_same_bytes)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(1200, 5, 4);
    unsigned char *bytes[2];
    size_t length[2];
    for (int i = 0; i < 2; i++) {
        pack(&checkpoint, &bytes[i], &length[i]);
        if (i == 0) sleep(1);
    }
    ck_assert_uint_eq(length[0], length[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], length[0]);
    for (int i = 0; i < 2; i++)
        dt_free(bytes[i]);
    dt__checkpoint_free(&checkpoint);
}
END_TEST

/* ---- other programs ------------------------------------------------------------------------- */

START_TEST(the_first_line_names_format_and_checksum)
{
    unsigned char *bytes;
    size_t length;
    char expected[128];
    struct dt_checkpoint checkpoint = sample_checkpoint(1200, 5, 4);
    pack(&checkpoint, &bytes, &length);
    snprintf(expected, sizeof expected, "dtrain checkpoint 1 crc32c=%08x bytes=%zu\n",
             dt__crc32c(0, bytes + 512, length - 512), length - 512);
    ck_assert_str_eq((char *)bytes, expected);
    dt_free(bytes);
    dt__checkpoint_free(&checkpoint);
}
END_TEST

/* HDF5's standard file driver, which h5dump and h5py use, finds everything under its documented
 * name. */
START_TEST(hdf5_reads_the_file)
{
    char *file;
    float weight[5][4];
    uint64_t step;
    struct dt_checkpoint checkpoint = sample_checkpoint(1200, 5, 4);
    assert_ok(save_checkpoint(test_dir, &checkpoint, 0, NULL, &file));
    hid_t id = H5Fopen(in_dir("latest.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert(id >= 0);
    hid_t dataset = H5Dopen2(id, "/model/layers/0/weight", H5P_DEFAULT);
    ck_assert(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, weight) >= 0);
    ck_assert_mem_eq(weight, checkpoint.params, sizeof weight);
    hid_t attribute = H5Aopen(id, "step", H5P_DEFAULT);
    ck_assert(H5Aread(attribute, H5T_NATIVE_UINT64, &step) >= 0);
    ck_assert_uint_eq(step, 1200);
    ck_assert(H5Lexists(id, "/optimizer/second/layers/1/bias", H5P_DEFAULT) > 0);
    const char *const names[] = {"format_version", "seed", "replicas", "config", "best_value"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert(H5Aexists(id, names[i]) > 0);
    H5Aclose(attribute);
    H5Dclose(dataset);
    H5Fclose(id);
    dt__checkpoint_free(&checkpoint);
    dt_free(file);
}
END_TEST

/* ---- damage --------------------------------------------------------------------------------- */

static void write_bytes(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

static void assert_refused(const char *path, dt_status expected, const char *word)
{
    struct dt_checkpoint out;
    dt_status status = dt__checkpoint_load(path, &out);
    ck_assert_msg(status == expected, "status %d: %s", status, dt_error_text());
    ck_assert_msg(strstr(dt_error_text(), word), "no '%s' in: %s", word, dt_error_text());
}

static void pack_sample(unsigned char **out_bytes, size_t *out_length)
{
    struct dt_checkpoint checkpoint = sample_checkpoint(1200, 60, 40);
    pack(&checkpoint, out_bytes, out_length);
    dt__checkpoint_free(&checkpoint);
}

/* tests/data/checkpoint-0.1.h5 was written by version 0.1 after 7 steps of penguins.ini. */
START_TEST(a_file_of_version_0_1_is_refused)
{
    assert_refused(
        "tests/data/checkpoint-0.1.h5", DT_EFORMAT,
        "checkpoint-0.1.h5: written by dtrain 0.1, whose files this version does not load");
}
END_TEST

START_TEST(a_truncated_file_is_refused)
{
    unsigned char *bytes;
    size_t length, cuts = 0;
    pack_sample(&bytes, &length);
    for (size_t cut = 0; cut < length; cut += 512, cuts++) {
        write_bytes(in_dir("cut.h5"), bytes, cut);
        assert_refused(in_dir("cut.h5"), DT_EFORMAT, "cut.h5: ");
    }
    write_bytes(in_dir("cut.h5"), bytes, length - 1);
    assert_refused(in_dir("cut.h5"), DT_EFORMAT, "damaged");
    ck_assert_uint_ge(cuts, 50);
    dt_free(bytes);
}
END_TEST

START_TEST(a_longer_file_is_refused)
{
    unsigned char *bytes;
    size_t length;
    pack_sample(&bytes, &length);
    write_bytes(in_dir("long.h5"), bytes, length);
    ck_assert_int_eq(truncate(in_dir("long.h5"), (off_t)length + 1), 0);
    assert_refused(in_dir("long.h5"), DT_EFORMAT, "damaged");
    dt_free(bytes);
}
END_TEST

static void flip_in_file(int fd, const unsigned char *bytes, size_t bit)
{
    unsigned char byte = bytes[bit / 8] ^ (unsigned char)(1u << bit % 8);
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
}

/* Flips `count` bits one at a time, at random positions or from the start, and restores each. */
static void assert_flips_refused(const unsigned char *bytes, size_t length, size_t count,
                                 bool random)
{
    struct dt_rng rng = rng_of_test(1);
    write_bytes(in_dir("flip.h5"), bytes, length);
    int fd = open(in_dir("flip.h5"), O_WRONLY);
    for (size_t i = 0; i < count; i++) {
        size_t bit = random ? dt__rng_u64(&rng, i) % (length * 8) : i;
        flip_in_file(fd, bytes, bit);
        assert_refused(in_dir("flip.h5"), DT_EFORMAT, "flip.h5: ");
        ck_assert_int_eq(pwrite(fd, bytes + bit / 8, 1, (off_t)(bit / 8)), 1);
    }
    close(fd);
    struct dt_checkpoint whole;
    assert_ok(dt__checkpoint_load(in_dir("flip.h5"), &whole)); /* every flipped bit was restored */
    dt__checkpoint_free(&whole);
}

START_TEST(a_flipped_bit_is_refused)
{
    unsigned char *bytes;
    size_t length;
    pack_sample(&bytes, &length);
    assert_flips_refused(bytes, length, 2000, true);
    assert_flips_refused(bytes, length, (size_t)DT__USER_BLOCK * 8, false);
    dt_free(bytes);
}
END_TEST

START_TEST(other_files_are_refused)
{
    write_bytes(in_dir("empty"), "", 0);
    assert_refused(in_dir("empty"), DT_EFORMAT, "0 bytes");
    assert_refused(in_dir("missing"), DT_EIO, "No such file");
    assert_refused(test_dir, DT_EFORMAT, "not a file");
    ck_assert_int_eq(mkfifo(in_dir("pipe"), 0600), 0);
    assert_refused(in_dir("pipe"), DT_EFORMAT, "not a file");
    assert_refused("/bin/ls", DT_EFORMAT, "not a dtrain checkpoint");
}
END_TEST

START_TEST(a_newer_version_is_refused_by_name)
{
    unsigned char *bytes;
    size_t length;
    pack_sample(&bytes, &length);
    unsigned char *version = (unsigned char *)strstr((char *)bytes, " 1 crc32c") + 1;
    *version = '2';
    write_bytes(in_dir("newer.h5"), bytes, length);
    assert_refused(in_dir("newer.h5"), DT_EFORMAT, "newer dtrain (format 2; this one reads 1)");
    dt_free(bytes);
}
END_TEST

/* ---- hostile files, whose checksum is right -------------------------------------------------- */

/* Writes the user block (512 bytes, with length and checksum) for the bytes after it. */
static void seal(unsigned char *bytes, size_t length)
{
    memset(bytes, 0, DT__USER_BLOCK);
    snprintf((char *)bytes, DT__USER_BLOCK, "dtrain checkpoint 1 crc32c=%08x bytes=%zu\n",
             dt__crc32c(0, bytes + DT__USER_BLOCK, length - DT__USER_BLOCK),
             length - DT__USER_BLOCK);
}

static void seal_file(const char *path)
{
    unsigned char *bytes;
    size_t length;
    assert_ok(dt__file_read(path, 1 << 24, &bytes, &length));
    seal(bytes, length);
    write_bytes(path, bytes, length);
    dt_free(bytes);
}

/* Most flips change a value, and the file loads; flips in the structure are refused. No flip may
 * crash the process. */
START_TEST(flips_under_a_right_checksum_do_not_crash)
{
    unsigned char *bytes;
    size_t length, refused = 0;
    struct dt_rng rng = rng_of_test(2);
    pack_sample(&bytes, &length);
    for (size_t i = 0; i < 300; i++) {
        size_t bit = DT__USER_BLOCK * 8 + dt__rng_u64(&rng, i) % ((length - DT__USER_BLOCK) * 8);
        struct dt_checkpoint out;
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        seal(bytes, length);
        write_bytes(in_dir("flipped.h5"), bytes, length);
        if (dt__checkpoint_load(in_dir("flipped.h5"), &out))
            refused++;
        else
            dt__checkpoint_free(&out);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    ck_assert_uint_ge(refused, 10);
    dt_free(bytes);
}
END_TEST

typedef void tamper_fn(hid_t file);

/* Replaces the first weight by a data set of (rows, columns). It gets values, all 0, only if it has
 * 60 x 40 of them and `plist` is the default. */
static void put_weight(hid_t file, hid_t type, hsize_t rows, hsize_t columns, hid_t plist)
{
    static const float values[60 * 40];
    hsize_t dims[2] = {rows, columns};
    ck_assert(H5Ldelete(file, "/model/layers/0/weight", H5P_DEFAULT) >= 0);
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t dataset =
        H5Dcreate2(file, "/model/layers/0/weight", type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    ck_assert(dataset >= 0);
    if (rows * columns == 60 * 40 && plist == H5P_DEFAULT)
        ck_assert(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void put_int(hid_t file, const char *group, const char *name, int value)
{
    hid_t object = H5Oopen(file, group, H5P_DEFAULT);
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    ck_assert(H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0);
    H5Aclose(attribute);
    H5Oclose(object);
}

static void link_outside(hid_t file)
{
    H5Ldelete(file, "/model/layers/0/weight", H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/x", file, "/model/layers/0/weight", H5P_DEFAULT,
                       H5P_DEFAULT);
}

static void link_soft(hid_t file)
{
    H5Lmove(file, "/model/layers/0", file, "/model/elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/model/elsewhere", file, "/model/layers/0", H5P_DEFAULT, H5P_DEFAULT);
}

static void store_outside(hid_t file)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(plist, "/etc/passwd", 0, 60 * 40 * sizeof(float));
    put_weight(file, H5T_IEEE_F32LE, 60, 40, plist);
    H5Pclose(plist);
}

static void remove_weight(hid_t file)
{
    H5Ldelete(file, "/model/layers/0/weight", H5P_DEFAULT);
}

static void change_type(hid_t file)
{
    put_weight(file, H5T_IEEE_F64LE, 60, 40, H5P_DEFAULT);
}

static void change_shape(hid_t file)
{
    put_weight(file, H5T_IEEE_F32LE, 40, 60, H5P_DEFAULT);
}

/* Claims far more values than the file has. */
static void claim_many_values(hid_t file)
{
    put_weight(file, H5T_IEEE_F32LE, 60, 1u << 20, H5P_DEFAULT);
}

static void leave_unwritten(hid_t file)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    put_weight(file, H5T_IEEE_F32LE, 60, 40, plist);
    H5Pclose(plist);
}

static void store_chunked(hid_t file)
{
    hsize_t dims[2] = {60, 40};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 2, dims);
    put_weight(file, H5T_IEEE_F32LE, 60, 40, plist);
    H5Pclose(plist);
}

static void claim_other_channels(hid_t file)
{
    put_int(file, "/model", "channels", 61);
}

static void negate_channels(hid_t file)
{
    put_int(file, "/model", "channels", -60);
}

static void claim_replicas(hid_t file)
{
    put_int(file, "/", "replicas", 2000000000);
}

static void claim_classes(hid_t file)
{
    put_int(file, "/schema", "classes", 2000000000);
}

static void negate_targets(hid_t file)
{
    put_int(file, "/schema", "targets", -1);
}

static void put_text(hid_t file, const char *group, const char *name, hid_t type, const void *text)
{
    hid_t object = H5Oopen(file, group, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    H5Adelete(object, name);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(attribute >= 0 && H5Awrite(attribute, type, text) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Oclose(object);
}

static void put_layers(hid_t file, const char *layers)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(layers) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    put_text(file, "/model", "layers", type, layers);
    H5Tclose(type);
}

static void claim_layers(hid_t file)
{
    put_layers(file, "dense 1048576, dense 1048576, dense 1048576");
}

static void name_unknown_layer(hid_t file)
{
    put_layers(file, "tree 3");
}

static void name_state(hid_t file, const char *name)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(name) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    put_text(file, "/optimizer", "state0", type, name);
    H5Tclose(type);
}

static void name_state_outside(hid_t file)
{
    name_state(file, "../model");
}

static void name_state_empty(hid_t file)
{
    name_state(file, "");
}

static void number_for_text(hid_t file)
{
    int number = 7;
    put_text(file, "/", "config", H5T_STD_I32LE, &number);
}

static void remove_seed(hid_t file)
{
    H5Adelete(file, "seed");
}

static void array_for_seed(hid_t file)
{
    const hsize_t two = 2;
    hid_t space = H5Screate_simple(1, &two, NULL);
    H5Adelete(file, "seed");
    H5Aclose(H5Acreate2(file, "seed", H5T_STD_U64LE, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
}

static void invalid_bool(hid_t file)
{
    const uint8_t byte = 7;
    hid_t attribute = H5Aopen(file, "best_known", H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_UINT8, &byte);
    H5Aclose(attribute);
}

static void nan_in_mean(hid_t file)
{
    float mean[60];
    hid_t set = H5Dopen2(file, "/schema/mean", H5P_DEFAULT);
    ck_assert(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, mean) >= 0);
    mean[7] = NAN;
    ck_assert(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, mean) >= 0);
    H5Dclose(set);
}

static const struct {
    tamper_fn *change;
    const char *word; /* a part of the expected message */
} TAMPERINGS[] = {
    {link_outside, "/model/layers/0/weight is missing"},
    {link_soft, "/model/layers/0/weight is missing"},
    {store_outside, "/model/layers/0/weight is not stored plainly in the file itself"},
    {remove_weight, "/model/layers/0/weight is missing"},
    {change_type, "weight has not the type"},
    {change_shape, "weight has not the shape"},
    {claim_many_values, "weight is not all in the file"},
    {leave_unwritten, "weight is not all in the file"},
    {store_chunked, "weight is not all in the file"},
    {claim_other_channels, "does not fit"},
    {negate_channels, "-60"},
    {claim_layers, "has not the shape"},
    {claim_replicas, "2000000000 replicas"},
    {claim_classes, "does not fit"},
    {negate_targets, "does not fit"},
    {name_unknown_layer, "'tree' is no layer"},
    {name_state_outside, "'../model' is no name"},
    {name_state_empty, "'' is no name"},
    {number_for_text, "config"},
    {remove_seed, "seed"},
    {array_for_seed, "seed"},
    {invalid_bool, "best_known"},
    {nan_in_mean, "mean and inv_std are not as expected"},
};

START_TEST(a_hostile_file_is_refused)
{
    unsigned char *bytes;
    size_t length;
    pack_sample(&bytes, &length);
    for (size_t i = 0; i < sizeof TAMPERINGS / sizeof *TAMPERINGS; i++) {
        const char *path = in_dir("hostile.h5");
        write_bytes(path, bytes, length);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        ck_assert(file >= 0);
        TAMPERINGS[i].change(file);
        ck_assert(H5Fclose(file) >= 0);
        seal_file(path);
        assert_refused(path, DT_EFORMAT, TAMPERINGS[i].word);
    }
    dt_free(bytes);
}
END_TEST

/* A layout that the HDF5 library never writes: its number of bytes differs from that of its
 * values. */
START_TEST(a_layout_of_a_wrong_size_is_refused)
{
    unsigned char *bytes, *at;
    size_t length;
    const unsigned char size[8] = {60 * 40 * 4 & 255, 60 * 40 * 4 >> 8};
    pack_sample(&bytes, &length);
    ck_assert_ptr_nonnull(at = memmem(bytes, length, size, sizeof size));
    /* before the size: version 4, contiguous layout, 8 bytes of address */
    ck_assert(at[-10] == 4 && at[-9] == 1);
    at[0]++;
    seal(bytes, length);
    write_bytes(in_dir("layout.h5"), bytes, length);
    assert_refused(in_dir("layout.h5"), DT_EFORMAT, "weight cannot be opened");
    dt_free(bytes);
}
END_TEST

/* Fails if a file is refused only because another program rewrote and sealed it: then the tests
 * above would prove nothing. */
START_TEST(a_resealed_file_loads)
{
    unsigned char *bytes;
    size_t length;
    struct dt_checkpoint out;
    pack_sample(&bytes, &length);
    write_bytes(in_dir("resealed.h5"), bytes, length);
    hid_t file = H5Fopen(in_dir("resealed.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    put_int(file, "/model", "channels", 60);
    put_weight(file, H5T_IEEE_F32LE, 60, 40, H5P_DEFAULT);
    H5Fclose(file);
    seal_file(in_dir("resealed.h5"));
    assert_ok(dt__checkpoint_load(in_dir("resealed.h5"), &out));
    for (int i = 0; i < 60 * 40; i++)
        ck_assert(out.params[i] == 0);
    dt__checkpoint_free(&out);
    dt_free(bytes);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_member_survives,
        special_floats_keep_their_bits,
        a_linear_regression_without_state_survives,
        a_deep_network_with_names_survives,
        state_tensors_survive,
        an_encoding_survives,
        a_wrong_encoding_is_refused,
        a_long_config_survives,
        the_same_state_gives_the_same_bytes,
        the_first_line_names_format_and_checksum,
        hdf5_reads_the_file,
        a_file_of_version_0_1_is_refused,
        a_truncated_file_is_refused,
        a_longer_file_is_refused,
        a_flipped_bit_is_refused,
        other_files_are_refused,
        a_newer_version_is_refused_by_name,
        flips_under_a_right_checksum_do_not_crash,
        a_hostile_file_is_refused,
        a_layout_of_a_wrong_size_is_refused,
        a_resealed_file_loads,
    };
    return run_tests("checkpoint", (int)(sizeof tests / sizeof *tests), tests);
}
