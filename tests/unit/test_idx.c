/* IDX: plain and gzip, every element type, and wrong headers. */
#include <zlib.h>

#include "data_files.h"

/* An IDX file in memory. */
struct idx {
    unsigned char bytes[4096];
    size_t length;
};

static void put_32(struct idx *file, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        file->bytes[file->length++] = (unsigned char)(word >> shift);
}

static struct idx make_head(int type, int ndims, const uint32_t *dims)
{
    struct idx file = {{0, 0, (unsigned char)type, (unsigned char)ndims}, 4};
    for (int i = 0; i < ndims; i++)
        put_32(&file, dims[i]);
    return file;
}

static struct idx make_bytes(uint32_t rows, uint32_t a, uint32_t b)
{
    const uint32_t dims[] = {rows, a, b};
    struct idx file = make_head(0x08, 3, dims);
    for (uint32_t i = 0; i < rows * a * b; i++)
        file.bytes[file.length++] = (unsigned char)(i * 37);
    return file;
}

static struct idx make_labels(uint32_t rows, int classes)
{
    struct idx file = make_head(0x08, 1, &rows);
    for (uint32_t i = 0; i < rows; i++)
        file.bytes[file.length++] = (unsigned char)((int)i % classes);
    return file;
}

static void put_gzip(const char *path, const void *bytes, size_t length, const char *mode)
{
    gzFile out = gzopen(path, mode);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(gzwrite(out, bytes, (unsigned)length), (int)length);
    ck_assert_int_eq(gzclose(out), Z_OK);
}

static void set_files(const char *x, const char *y)
{
    char assignment[128];
    snprintf(assignment, sizeof assignment, "data.train=%s", x), set(assignment);
    snprintf(assignment, sizeof assignment, "data.train_labels=%s", y), set(assignment);
}

enum { ROWS = 20, FEATURES = 12 };

static void expect_bytes(void)
{
    float x[ROWS * FEATURES];
    int32_t labels[ROWS];
    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = (float)(unsigned char)(i * 37);
    for (int i = 0; i < ROWS; i++)
        labels[i] = i % 7;
    expect_rows(x, labels, ROWS, FEATURES);
}

/* Reads the same file plain, packed by gzip, and as two gzip members; the trailer covers only the
 * last of these. */
START_TEST(plain_and_gzip_are_the_same)
{
    struct idx x = make_bytes(ROWS, 3, 4), y = make_labels(ROWS, 7);
    put_bytes("x.idx", x.bytes, x.length);
    put_bytes("y.idx", y.bytes, y.length);
    set_files("x.idx", "y.idx");
    expect_bytes();
    put_gzip("x.gz", x.bytes, x.length, "wb");
    put_gzip("y.gz", y.bytes, y.length, "wb");
    set_files("x.gz", "y.gz");
    expect_bytes();
    put_gzip("z.gz", x.bytes, 100, "wb");
    put_gzip("z.gz", x.bytes + 100, x.length - 100, "ab");
    set_files("z.gz", "y.gz");
    expect_bytes();
}
END_TEST

/* Signed, wide and floating-point elements are big-endian. */
START_TEST(element_types_are_read)
{
    static const struct {
        int type;
        unsigned char bytes[16];
        size_t length;
        float x[2];
    } types[] = {
        {0x09, {0xFF, 0x7F}, 2, {-1, 127}},
        {0x0B, {0xFF, 0xFE, 0x01, 0x00}, 4, {-2, 256}},
        {0x0C, {0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x01, 0x00, 0x00}, 8, {-1, 65536}},
        {0x0D, {0x3F, 0xC0, 0, 0, 0xC0, 0, 0, 0}, 8, {1.5f, -2}},
        {0x0E, {0x3F, 0xF8, 0, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0}, 16, {1.5f, -2}},
    };
    const uint32_t dims[] = {2};
    const int32_t labels[] = {0, 1};
    struct idx y = make_labels(2, 2);
    put_bytes("y", y.bytes, y.length);
    set_files("x", "y");
    for (size_t i = 0; i < COUNT(types); i++) {
        struct idx x = make_head(types[i].type, 1, dims);
        memcpy(x.bytes + x.length, types[i].bytes, types[i].length);
        put_bytes("x", x.bytes, x.length + types[i].length);
        expect_rows(types[i].x, labels, 2, 1);
    }
}
END_TEST

/* Each wrong file is made by one change to a correct pair of files. */
START_TEST(wrong_headers_give_their_message)
{
    struct idx x = make_bytes(ROWS, 3, 4), y = make_labels(ROWS, 7), bad;
    set_files("x", "y");
    put_bytes("x", x.bytes, x.length - 1), put_bytes("y", y.bytes, y.length);
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "x: expected 256 bytes, by the header, but the file has 255");
    put_bytes("x", x.bytes, x.length + 1);
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "x: expected 256 bytes, by the header, but the file has 257");
    put_bytes("x", x.bytes, 7);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: the file is truncated");
    bad = x, bad.bytes[2] = 0x0A;
    put_bytes("x", bad.bytes, bad.length), set("data.format=idx");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: not an IDX file: the first bytes are 00 00 0a 03");
    bad = x, bad.bytes[2] = 0x0F; /* above the last type */
    put_bytes("x", bad.bytes, bad.length);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: not an IDX file: the first bytes are 00 00 0f 03");
    bad = x, memset(bad.bytes + 4, 0xFF, 12);
    put_bytes("x", bad.bytes, bad.length);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: the dimensions in the header are too large");
    bad = x, memset(bad.bytes + 4, 0, 4);
    put_bytes("x", bad.bytes, bad.length);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: according to its header, the file has no numbers");
    bad = x, bad.bytes[8] = 0x10;
    put_gzip("x", bad.bytes, bad.length, "wb");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: the file is truncated");
    put_gzip("x", x.bytes, x.length - 1, "wb");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: the file is truncated");
    put_gzip("x", x.bytes, x.length + 1, "wb");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: the file has more data than its header says");
    put_bytes("x", x.bytes, x.length);
    bad = make_labels(ROWS - 1, 7);
    put_bytes("y", bad.bytes, bad.length);
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "y: 19 labels for 20 rows of data");
    put_bytes("y", x.bytes, x.length);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "y: expected class labels: one whole number a row");
    put_bytes("y", "", 0);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "y: ");
    set("data.train_labels=");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "x: IDX data has its labels in separate files");
    set("data.train_labels=nowhere");
    EXPECT_FAIL(try_survey(), DT_EIO, "nowhere: No such file or directory");
}
END_TEST

/* Surveys the data and reads all rows. */
static dt_status try_rows(void)
{
    struct dt_source *source;
    struct dt_table *table;
    DT_TRY(dt__source_survey(&config, DT_PART_TRAIN, NULL, &source));
    dt_status status = dt__table_create(&config, source, 0, dt__source_rows(source), &table);
    if (!status) dt__table_destroy(table);
    dt__source_destroy(source);
    return status;
}

/* A gzip file is cut at every byte: the survey or reading the rows must fail, and never crash or
 * succeed. */
START_TEST(truncated_gzip_is_an_error)
{
    struct idx x = make_bytes(ROWS, 3, 4), y = make_labels(ROWS, 7);
    static unsigned char packed[4096];
    put_bytes("y", y.bytes, y.length);
    put_gzip("whole", x.bytes, x.length, "wb");
    FILE *in = fopen("whole", "r");
    ck_assert_ptr_nonnull(in);
    size_t length = fread(packed, 1, sizeof packed, in);
    fclose(in);
    set_files("x", "y");
    for (size_t cut = 3; cut < length; cut++) {
        put_bytes("x", packed, cut);
        dt_status status = try_rows();
        ck_assert_msg(status == DT_EFORMAT || status == DT_EIO, "cut at %zu is accepted", cut);
        ck_assert_msg(strstr(dt_error_text(), "x: ") == dt_error_text(), "%s", dt_error_text());
    }
}
END_TEST

/* The checksum comes after the last row: a flipped bit in it must be found, past 1 MB of noise. */
START_TEST(damaged_gzip_is_an_error)
{
    enum { NOISE = 1 << 20 };
    static unsigned char bytes[2 * NOISE];
    const uint32_t dims[] = {ROWS, NOISE / ROWS};
    struct idx head = make_head(0x08, 2, dims), y = make_labels(ROWS, 7);
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, 0, 0);
    memcpy(bytes, head.bytes, head.length);
    for (size_t i = 0; i < NOISE; i++)
        bytes[head.length + i] = (unsigned char)dt__rng_u64(&rng, i);
    put_bytes("y", y.bytes, y.length);
    put_gzip("x", bytes, head.length + NOISE / ROWS * ROWS, "wb");
    set_files("x", "y");
    EXPECT_OK(try_rows());
    FILE *in = fopen("x", "r");
    ck_assert_ptr_nonnull(in);
    size_t length = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    bytes[length - 6] ^= 1; /* a bit of the checksum */
    put_bytes("x", bytes, length);
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: damaged");
}
END_TEST

/* Evaluation labels may be only those of the training data. */
START_TEST(labels_out_of_range)
{
    struct idx x = make_bytes(ROWS, 3, 4), y = make_labels(ROWS, 7), more = make_labels(ROWS, 9);
    put_bytes("x", x.bytes, x.length), put_bytes("y", y.bytes, y.length);
    put_bytes("z", more.bytes, more.length);
    set_files("x", "y"), set("data.eval=x"), set("data.eval_labels=z");
    struct dt_source *source = survey(), *eval;
    EXPECT_FAIL(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval),
                DT_EFORMAT, "z: row 7: label 7 is out of range: classes are 0..6");
    dt__source_destroy(source);
}
END_TEST

/* Pictures without labels can be predicted, but not evaluated. */
START_TEST(labels_may_be_missing)
{
    struct idx x = make_bytes(ROWS, 3, 4), y = make_labels(ROWS, 7);
    put_bytes("x", x.bytes, x.length), put_bytes("y", y.bytes, y.length);
    set_files("x", "y"), set("data.eval=x");
    struct dt_source *source = survey(), *rows;
    EXPECT_FAIL(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &rows),
                DT_EMISMATCH, "x: IDX data has its labels in separate files: set data.eval_labels");
    EXPECT_OK(dt__source_survey(&config, DT_PART_PREDICT, dt__source_schema(source), &rows));
    ck_assert_uint_eq(dt__source_rows(rows), ROWS);
    struct dt_table *table = open_table(rows);
    ck_assert_float_eq(read_row(table, ROWS - 1).x[FEATURES - 1], x.bytes[x.length - 1]);
    dt__table_destroy(table), dt__source_destroy(rows), dt__source_destroy(source);
}
END_TEST

/* Reads the targets of a regression; one that is not finite is an error. */
START_TEST(targets_are_read)
{
    const uint32_t dims[] = {2, 2};
    struct idx x = make_bytes(2, 1, 3), y = make_head(0x0D, 2, dims);
    put_32(&y, 0x3FC00000), put_32(&y, 0), put_32(&y, 0xC0000000), put_32(&y, 0x7F800000);
    put_bytes("x", x.bytes, x.length), put_bytes("y", y.bytes, y.length);
    set_files("x", "y"), set("model.task=regress");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "x: row 1: target 1 is not a finite number");
    set("data.normalize_target=no"); /* then the survey does not read the targets */
    struct dt_source *source = survey();
    struct dt_table *table;
    ck_assert_int_eq(dt__source_schema(source)->targets, 2);
    EXPECT_OK(dt__table_create(&config, source, 0, 1, &table));
    struct dt_batch batch = read_row(table, 0);
    ck_assert_float_eq(batch.target[0], 1.5f);
    ck_assert_float_eq(batch.target[1], 0);
    dt__table_destroy(table);
    EXPECT_FAIL(dt__table_create(&config, source, 0, 2, &table), DT_EFORMAT,
                "x: row 1: target 1 is not a finite number");
    dt__source_destroy(source);
}
END_TEST

DATA_SUITE("idx", {plain_and_gzip_are_the_same, 1}, {element_types_are_read, 1},
           {wrong_headers_give_their_message, 1}, {truncated_gzip_is_an_error, 1},
           {damaged_gzip_is_an_error, 1}, {labels_out_of_range, 1}, {labels_may_be_missing, 1},
           {targets_are_read, 1})
