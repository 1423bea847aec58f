/* HDF5: the types and shapes that can be read, and files that must not be trusted. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <hdf5.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/limits.h"
#include "data/cursor.h"
#include "data_files.h"
#include "hdf5/guard.h"
#include "hdf5/read.h"
#include "hdf5/write.h"

static hid_t file;

/* Faults of the library in the reader process; a malformed file could cause each of them. */
static enum fault {
    SOUND,
    CRASH_ON_OPEN,
    CRASH_ON_READ,
    STACK_GONE,
    MEMORY_GONE,
    KILLED_ON_OPEN, /* killed once, as with KILLED_ON_READ: the file "killed" then exists */
    KILLED_ON_READ
} library;

static void killed_once(enum fault where)
{
    if (library != where || access("killed", F_OK) == 0) return;
    fclose(fopen("killed", "w"));
    raise(SIGKILL);
}

/* A malformed file could make the library compute without end, even when it is opened: each request
 * must set a limit of CPU seconds. */
static bool is_limited;
int __real_setrlimit(__rlimit_resource_t what, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t what, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
    is_limited |= what == RLIMIT_CPU;
    return __real_setrlimit(what, limit);
}

static int take_stack(int depth)
{
    volatile char page[1 << 16];
    page[depth % 100] = 1;
    return depth < 1 << 20 ? take_stack(depth + page[depth % 100]) + page[depth % 100] : 0;
}

static hid_t readers_open(const char *path, unsigned flags, hid_t plist)
{
    if (library == CRASH_ON_OPEN || !is_limited) abort();
    if (library == MEMORY_GONE) raise(SIGKILL);
    if (library == STACK_GONE) take_stack(1);
    is_limited = false;
    killed_once(KILLED_ON_OPEN);
    return H5Fopen(path, flags, plist);
}

dt_status __real_dt__h5_inside_read(struct dt__h5_inside *inside,
                                    const struct dt__h5_request *request, struct dt_text *out);
dt_status __wrap_dt__h5_inside_read(struct dt__h5_inside *inside,
                                    const struct dt__h5_request *request, struct dt_text *out);
dt_status __wrap_dt__h5_inside_read(struct dt__h5_inside *inside,
                                    const struct dt__h5_request *request, struct dt_text *out)
{
    if (!is_limited) abort();
    is_limited = false;
    return __real_dt__h5_inside_read(inside, request, out);
}

/* The reader may crash before the program sends its first request. */
static bool ask_late;
dt_status __real_dt__h5_guard_open(int fd, int *out_socket);
dt_status __wrap_dt__h5_guard_open(int fd, int *out_socket);
dt_status __wrap_dt__h5_guard_open(int fd, int *out_socket)
{
    const dt_status status = __real_dt__h5_guard_open(fd, out_socket);
    struct pollfd reader = {.fd = *out_socket};
    if (!status && ask_late) ck_assert_int_eq(poll(&reader, 1, -1), 1);
    return status;
}

/* Bytes that a reader may allocate after its first read; 0: no limit. (Sanitizers do not count
 * them.) */
static size_t held_limit, held_first;
static size_t held_bytes(void)
{
    const struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

static herr_t readers_read(hid_t set, hid_t type, hid_t memory, hid_t space, hid_t plist, void *out)
{
    if (library == CRASH_ON_READ) abort();
    killed_once(KILLED_ON_READ);
    const size_t before = held_bytes();
    if (!held_first) held_first = before;
    const herr_t result = H5Dread(set, type, memory, space, plist, out);
    return held_limit && held_bytes() > held_first + held_limit ? -1 : result;
}

/* Redirects the library's functions for the readers; the tests call the library itself. */
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name)
{
    void *function = __real_dlsym(handle, name);
    hid_t (*const open_function)(const char *, unsigned, hid_t) = readers_open;
    herr_t (*const read_function)(hid_t, hid_t, hid_t, hid_t, hid_t, void *) = readers_read;
    if (!strcmp(name, "H5Fopen")) memcpy(&function, &open_function, sizeof function);
    if (!strcmp(name, "H5Dread")) memcpy(&function, &read_function, sizeof function);
    return function;
}

static void create(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
}

/* Creates a data set of type `stored` from values of type `held`; plist: H5P_DEFAULT, or how to
 * store it. */
static void put(const char *name, hid_t stored, hid_t held, int rank, const hsize_t *dims,
                hid_t plist, const void *data)
{
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t set_id = H5Dcreate2(file, name, stored, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    ck_assert_int_ge(set_id, 0);
    if (data) ck_assert_int_ge(H5Dwrite(set_id, held, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0);
    H5Dclose(set_id);
    H5Sclose(space);
}

enum { ROWS = 6, FEATURES = 4 };
static const float X[ROWS * FEATURES] = {0,  1,  2,  3,  255, 5,  6,  7,  8,  9,  10, 11,
                                         12, 13, 14, 15, 16,  17, 18, 19, 20, 21, 22, 23};
static const int32_t Y[ROWS] = {0, 1, 2, 3, 0, 1};

static void put_x(hid_t type, hid_t plist)
{
    const hsize_t dims[] = {ROWS, 2, 2};
    put("x", type, H5T_NATIVE_FLOAT, 3, dims, plist, X);
}

static void put_y(hid_t type)
{
    const hsize_t dims[] = {ROWS};
    put("y", type, H5T_NATIVE_INT32, 1, dims, H5P_DEFAULT, Y);
}

static void finish(void)
{
    ck_assert_int_ge(H5Fclose(file), 0);
    set("data.train=a.h5");
}

/* Any integer or floating-point type, of either byte order, gives the same numbers. */
START_TEST(types_are_read)
{
    const hid_t types[] = {H5T_STD_U8LE,  H5T_STD_I16BE,  H5T_STD_U32LE,
                           H5T_STD_I64LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE};
    const hid_t labels[] = {H5T_STD_U8LE, H5T_STD_I64BE, H5T_STD_I8LE};
    for (size_t i = 0; i < COUNT(types); i++) {
        create("a.h5");
        put_x(types[i], H5P_DEFAULT);
        put_y(labels[i % 3]);
        finish();
        expect_rows(X, Y, ROWS, FEATURES);
    }
}
END_TEST

/* Half precision is numpy's float16. */
START_TEST(half_precision_is_read)
{
    hid_t half = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    create("a.h5");
    put_x(half, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
    finish();
    H5Tclose(half);
    expect_rows(X, Y, ROWS, FEATURES);
}
END_TEST

/* Denormals are read even if the process that forks the readers flushes them to zero. */
START_TEST(denormals_are_read)
{
    const hsize_t one_dim[] = {1};
    const double tiny = 1e-40;
    struct dt__h5_file *opened;
    const struct dt__h5_item *item;
    uint32_t bits;
    create("a.h5");
    put("/tiny", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, one_dim, H5P_DEFAULT, &tiny);
    finish();
    dt__denormals_flush();
    EXPECT_OK(dt__h5_open("a.h5", &opened));
    EXPECT_OK(dt__h5_array(opened, "/tiny", &item));
    EXPECT_OK(dt__h5_read(opened, item, 0, 1, DT__H5_F32, &bits));
    ck_assert_uint_eq(bits, 71362); /* 1e-40 in units of 2^-149 */
    dt__h5_close(opened);
}
END_TEST

/* Signed numbers of each type keep their sign when they are widened. */
START_TEST(negative_numbers_are_read)
{
    const hid_t types[] = {H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE,
                           H5T_IEEE_F32LE};
    const hsize_t one_dim[] = {1};
    for (size_t i = 0; i < COUNT(types); i++) {
        double number = -3;
        struct dt__h5_file *opened;
        const struct dt__h5_item *item;
        create("a.h5");
        put("/number", types[i], H5T_NATIVE_DOUBLE, 1, one_dim, H5P_DEFAULT, &number);
        finish();
        number = 0;
        EXPECT_OK(dt__h5_open("a.h5", &opened));
        EXPECT_OK(dt__h5_array(opened, "/number", &item));
        EXPECT_OK(dt__h5_read(opened, item, 0, 1, DT__H5_F64, &number));
        ck_assert_double_eq(number, -3);
        dt__h5_close(opened);
    }
}
END_TEST

/* Storage may be chunked, packed and checksummed. */
START_TEST(packed_storage_is_read)
{
    const hsize_t chunk[] = {4, 2, 1};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 3, chunk);
    create("a.h5");
    put_x(H5T_STD_U8LE, plist);
    put_y(H5T_STD_I32LE);
    finish();
    expect_rows(X, Y, ROWS, FEATURES);
    H5Pset_shuffle(plist);
    H5Pset_deflate(plist, 5);
    H5Pset_fletcher32(plist);
    create("a.h5");
    put_x(H5T_IEEE_F64LE, plist);
    put_y(H5T_STD_I32LE);
    finish();
    H5Pclose(plist);
    expect_rows(X, Y, ROWS, FEATURES);
}
END_TEST

/* Times out if the chunk that has all labels is unpacked again for every few of them. */
START_TEST(large_chunks_are_unpacked_once)
{
    enum { LABELS = DT__LIMIT(1 << 22, 1 << 10) };
    const hsize_t rows[] = {LABELS};
    int64_t *labels = malloc(LABELS * sizeof *labels);
    unsigned char *x = calloc(LABELS, 1);
    ck_assert(labels && x);
    for (uint32_t i = 0; i < LABELS; i++)
        labels[i] = i % 3;
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 1, rows);
    H5Pset_deflate(plist, 1);
    create("a.h5");
    put("x", H5T_STD_U8LE, H5T_NATIVE_UCHAR, 1, rows, H5P_DEFAULT, x);
    put("y", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, rows, plist, labels);
    finish();
    H5Pclose(plist);
    free(labels);
    free(x);
    EXPECT_OK(try_survey());
}
END_TEST

/* Chunks may be read in part, as by a rank that has some of the rows. A packed chunk then stays in
 * memory until another one is read; of a chunk that is not packed, only the rows that were read
 * stay. */
START_TEST(chunks_read_in_part_are_not_all_in_memory)
{
    enum { CHUNK = 5 << 20, CHUNKS = 12 };
    const hsize_t chunk[] = {CHUNK}, rows[] = {(hsize_t)CHUNK * CHUNKS};
    const bool packs = _i == 0;
    unsigned char *values = calloc(CHUNK, 1), *bytes = malloc(compressBound(CHUNK)), first;
    uLongf length = compressBound(CHUNK);
    struct dt__h5_file *opened;
    const struct dt__h5_item *x;
    ck_assert(values && bytes && compress2(bytes, &length, values, CHUNK, 1) == Z_OK);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, rows, NULL);
    H5Pset_chunk(plist, 1, chunk);
    if (packs) H5Pset_deflate(plist, 1);
    create("a.h5");
    hid_t set_id = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    for (hsize_t i = 0; i < CHUNKS; i++) {
        const hsize_t at[] = {i * CHUNK};
        ck_assert_int_ge(H5Dwrite_chunk(set_id, H5P_DEFAULT, 0, at, packs ? length : CHUNK,
                                        packs ? bytes : values),
                         0);
    }
    H5Dclose(set_id), H5Sclose(space), H5Pclose(plist);
    finish();
    free(values), free(bytes);
    held_limit = packs ? 3 * CHUNK : CHUNK / 2;
    EXPECT_OK(dt__h5_open("a.h5", &opened));
    EXPECT_OK(dt__h5_array(opened, "/x", &x));
    for (uint64_t i = 0; i < CHUNKS; i++)
        EXPECT_OK(dt__h5_read(opened, x, i * CHUNK, 1, DT__H5_U8, &first));
    dt__h5_close(opened);
}
END_TEST

/* Counts open sockets: one to the fork server and one to each reader process. */
static int sockets(void)
{
    int count = 0;
    DIR *fds = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(fds);
    for (const struct dirent *fd; (fd = readdir(fds));) {
        struct stat info;
        count += !fstatat(dirfd(fds), fd->d_name, &info, 0) && S_ISSOCK(info.st_mode);
    }
    closedir(fds);
    return count;
}

/* Each file is one packed chunk of 5 MiB: together the chunks in memory must fit in
 * data.memory_mb. */
START_TEST(chunks_of_all_files_fit_in_memory)
{
    enum { FILES = 4, WIDTH = 5 << 19 };
    static const char *const memory[] = {"data.memory_mb=1", "data.memory_mb=11",
                                         "data.memory_mb=64"};
    static const int open_limit[] = {1, 2, FILES};
    const hsize_t rows[] = {2, WIDTH};
    const int32_t labels[] = {0, 1};
    unsigned char *x = calloc(2, WIDTH);
    struct dt__block block;
    struct dt__cursor *cursor;
    char path[] = "a0.h5";
    ck_assert_ptr_nonnull(x);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 2, rows);
    H5Pset_deflate(plist, 1);
    for (int f = 0; f < FILES; f++, path[1]++) {
        x[WIDTH] = (unsigned char)(1 + f);
        create(path);
        put("x", H5T_STD_U8LE, H5T_NATIVE_UCHAR, 2, rows, plist, x);
        put("y", H5T_STD_I32LE, H5T_NATIVE_INT, 1, rows, H5P_DEFAULT, labels);
        finish();
    }
    H5Pclose(plist);
    free(x);
    set("data.train=a?.h5"), set(memory[_i]);
    struct dt_source *source = survey();
    EXPECT_OK(dt__block_alloc(&source->layout, 1, 0, &block));
    EXPECT_OK(dt__cursor_open(source, false, &cursor));
    for (uint64_t row = 1; row < 4 * FILES; row += 2) { /* reads the files in turn, twice */
        block.rows = 0;
        EXPECT_OK(dt__cursor_read(cursor, row % (2 * FILES), 1, &block));
        ck_assert_uint_eq(block.x[0], 1 + row % (2 * FILES) / 2);
    }
    const int open = open_limit[_i] < DT__OPEN_FILES ? open_limit[_i] : DT__OPEN_FILES;
    ck_assert_int_eq(sockets(), 1 + open);
    dt__cursor_close(cursor);
    dt__block_free(&block);
    dt__source_destroy(source);
}
END_TEST

/* Targets may have the shape (S) or (S, k). */
START_TEST(targets_are_read)
{
    const hsize_t one_dim[] = {ROWS}, two_dims[] = {ROWS, 2};
    set("model.task=regress");
    for (int rank = 1; rank <= 2; rank++) {
        create("a.h5");
        put_x(H5T_STD_U8LE, H5P_DEFAULT);
        put("y", H5T_IEEE_F64LE, H5T_NATIVE_FLOAT, rank, rank == 1 ? one_dim : two_dims,
            H5P_DEFAULT, X);
        finish();
        struct dt_source *source = survey();
        ck_assert_int_eq(dt__source_schema(source)->targets, rank);
        struct dt_table *table = open_table(source);
        ck_assert_float_eq(read_row(table, 2).target[0], rank == 1 ? 2.0f : 255.0f);
        dt__table_destroy(table);
        dt__source_destroy(source);
    }
}
END_TEST

/* A row has the shape of the file, or that of data.shape. */
START_TEST(rows_have_a_shape)
{
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
    finish();
    static const struct {
        const char *option;
        int shape[3];
    } cases[] = {
        {"data.shape=", {2, 2, 1}}, {"data.shape=1x4", {1, 4, 1}}, {"data.shape=2x1x2", {2, 1, 2}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        set(cases[i].option);
        struct dt_source *source = survey();
        ck_assert_mem_eq(dt__source_schema(source)->shape, cases[i].shape, sizeof cases[i].shape);
        dt__source_destroy(source);
    }
    set("data.shape=3x1");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "data.shape=3x1: a row has 4 features");
    static const char *const none[] = {"2by2",           "4294967298x2", "2x4294967298",
                                       "2x2x4294967297", "+2x 2",        "2x2x"};
    for (size_t i = 0; i < COUNT(none); i++) {
        char option[64], message[96];
        snprintf(option, sizeof option, "data.shape=%s", none[i]);
        snprintf(message, sizeof message, "%s: expected HEIGHTxWIDTH", option);
        set(option);
        EXPECT_FAIL(try_survey(), DT_EUSAGE, message);
    }
}
END_TEST

static void put_pictures(const char *path, int rank, const hsize_t *dims, const float *x)
{
    create(path);
    put("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, H5P_DEFAULT, x);
    put("y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, dims, H5P_DEFAULT, Y);
    finish();
}

/* Fails if held-out pictures of another shape are accepted: their evaluation would give wrong
 * figures. */
START_TEST(held_out_rows_have_the_shape_of_the_model)
{
    static const float x[2 * 12];
    static const struct {
        const char *option;
        int rank;
        hsize_t dims[4];
        bool fits;
    } cases[] = {{"data.shape=", 4, {2, 2, 2, 3}, true},
                 {"data.shape=", 2, {2, 12}, true},
                 {"data.shape=", 4, {2, 3, 2, 2}, false},
                 {"data.shape=", 3, {2, 3, 4}, false},
                 {"data.shape=2x2x3", 4, {2, 3, 2, 2}, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_source *source, *eval;
        put_pictures("a.h5", 4, cases[0].dims, x);
        put_pictures("b.h5", cases[i].rank, cases[i].dims, x);
        set(cases[i].option);
        set("data.eval=b.h5");
        source = survey();
        const struct dt_schema *schema = dt__source_schema(source);
        if (cases[i].fits) {
            EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, schema, &eval));
            dt__source_destroy(eval);
        } else {
            EXPECT_FAIL(dt__source_survey(&config, DT_PART_EVAL, schema, &eval), DT_EMISMATCH,
                        "the model has 2 x 2 x 3");
        }
        dt__source_destroy(source);
    }
}
END_TEST

static int warnings_seen;

static void count_channels(void *arg, enum dt_log_level level, const char *line)
{
    (void)arg, (void)level;
    warnings_seen += strstr(line, "height x width x channels") != NULL;
}

/* A picture of channels x height x width would be convolved as if its channels were rows: the user
 * is warned. */
START_TEST(channels_first_give_a_warning)
{
    static const float x[2 * 3 * 4 * 4];
    static const struct {
        hsize_t dims[4];
        const char *layers;
        int warnings_seen;
    } cases[] = {{{2, 3, 4, 4}, "conv 2 3x3", 1},  {{2, 3, 4, 4}, "dense 2", 0},
                 {{2, 3, 4, 4}, "avgpool 2", 1},   {{2, 4, 4, 3}, "conv 2 3x3", 0},
                 {{2, 1, 4, 12}, "conv 2 1x3", 0}, {{2, 3, 3, 3}, "conv 2 3x3", 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char layers[64];
        const hsize_t rows[] = {2};
        create("a.h5");
        put("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 4, cases[i].dims, H5P_DEFAULT, x);
        put("y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, rows, H5P_DEFAULT, Y);
        finish();
        snprintf(layers, sizeof layers, "model.layers=%s", cases[i].layers);
        set(layers);
        warnings_seen = 0;
        dt_log_set_sink(count_channels, NULL);
        dt__source_destroy(survey());
        dt_log_set_sink(NULL, NULL);
        ck_assert_int_eq(warnings_seen, cases[i].warnings_seen);
    }
}
END_TEST

/* ---- names of classes ----------------------------------------------------------------------- */

enum { NAME = 8 };
static const char NAMES[4][NAME] = {"zebra", "cat", "dog", "ant"};

static void put_names(size_t count)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    const hsize_t dims[] = {count};
    H5Tset_size(type, NAME);
    put("label_names", type, type, 1, dims, H5P_DEFAULT, NAMES);
    H5Tclose(type);
}

/* Class names keep the file's order: texts in a CSV get the numbers of these names, in a second
 * training file and in evaluation data. */
START_TEST(class_names_keep_their_numbers)
{
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
    put_names(4);
    finish();
    put_text("b.csv", "0,1,2,3,zebra\n0,1,2,3,ant\n0,1,2,3,cat\n0,1,2,3,dog\n");
    const int32_t labels[] = {0, 3, 1, 2};
    struct dt_source *source = survey(), *eval;
    set("data.eval=b.csv");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
    struct dt_table *table = open_table(eval);
    for (uint64_t r = 0; r < 4; r++)
        ck_assert_int_eq(read_row(table, r).label[0], labels[r]);
    dt__table_destroy(table), dt__source_destroy(eval), dt__source_destroy(source);
    set("data.eval="), set("data.train=a.h5,b.csv");
    source = survey();
    ck_assert_int_eq(dt__source_schema(source)->classes, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(dt__source_schema(source)->label_names[i], NAMES[i]);
    table = open_table(source);
    for (uint64_t r = 0; r < ROWS + 4; r++)
        ck_assert_int_eq(read_row(table, r).label[0], r < ROWS ? Y[r] : labels[r - ROWS]);
    dt__table_destroy(table), dt__source_destroy(source);
    put_text("b.csv", "0,1,2,3,cow\n");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "b.csv:1: label 'cow' is none of the 4 classes");
}
END_TEST

START_TEST(class_names_are_distinct)
{
    char names[3][NAME] = {"b", "a", "b"};
    hid_t type = H5Tcopy(H5T_C_S1);
    const hsize_t dims[] = {3};
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
    H5Tset_size(type, NAME);
    put("label_names", type, type, 1, dims, H5P_DEFAULT, names);
    H5Tclose(type);
    finish();
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "a.h5: two classes are named 'b'");
}
END_TEST

/* ---- forms of labels ------------------------------------------------------------------------ */

/* Labels that are numbers, but stored as texts, are named by data.class_names, as in CSV. */
START_TEST(texts_may_be_class_numbers)
{
    const char *values[ROWS] = {"1", "0", "dog", "1", "cat", "0"};
    const int32_t labels[ROWS] = {1, 0, 1, 1, 0, 0};
    const hsize_t dims[] = {ROWS};
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", type, type, 1, dims, H5P_DEFAULT, values);
    finish();
    H5Tclose(type);
    set("data.class_names=cat,dog");
    expect_rows(X, labels, ROWS, FEATURES);
    struct dt_source *source = survey(), *eval;
    set("data.eval=b.h5");
    ck_assert_int_eq(system("cp a.h5 b.h5"), 0);
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
    struct dt_table *table = open_table(eval);
    for (uint64_t r = 0; r < ROWS; r++)
        ck_assert_int_eq(read_row(table, r).label[0], labels[r]);
    dt__table_destroy(table), dt__source_destroy(eval), dt__source_destroy(source);
}
END_TEST

/* The width of one-hot rows declares classes, even classes that no row has; a label above them is
 * an error. */
START_TEST(one_hot_rows_declare_classes)
{
    const float values[ROWS * 4] = {[2] = 1, [5] = 1, [10] = 1, [14] = 1, [18] = 1, [21] = 1};
    const hsize_t dims[] = {ROWS, 4};
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_STD_U8LE, H5T_NATIVE_FLOAT, 2, dims, H5P_DEFAULT, values);
    finish();
    expect_rows(X, (const int32_t[]){2, 1, 2, 2, 2, 1}, ROWS, FEATURES);
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->classes, 4);
    dt__source_destroy(source);
    put_text("b.csv", "0,1,2,3,4\n");
    set("data.train=a.h5,b.csv");
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "label 4 is out of range: the one-hot rows are 4 wide, so classes are 0..3");
}
END_TEST

static const int32_t BINARY[ROWS] = {1, 0, 0, 1, 1, 0};

static void bool_y(void)
{
    const signed char no = 0, yes = 1, values[ROWS] = {1, 0, 0, 1, 1, 0};
    const hsize_t dims[] = {ROWS};
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    put("y", type, type, 1, dims, H5P_DEFAULT, values);
    H5Tclose(type);
}

static void whole_float_y(void)
{
    const double values[ROWS] = {1, 0, 0, 1, 1, 0};
    const hsize_t dims[] = {ROWS, 1};
    put("y", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, dims, H5P_DEFAULT, values);
}

static void sign_y(void)
{
    const int32_t values[ROWS] = {1, -1, -1, 1, 1, -1};
    const hsize_t dims[] = {ROWS};
    put("y", H5T_STD_I8LE, H5T_NATIVE_INT32, 1, dims, H5P_DEFAULT, values);
}

static void one_hot_y(void)
{
    const float values[ROWS * 2] = {0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0};
    const hsize_t dims[] = {ROWS, 2};
    put("y", H5T_STD_U8LE, H5T_NATIVE_FLOAT, 2, dims, H5P_DEFAULT, values);
}

static void number_y(void)
{
    const int64_t values[ROWS] = {5000000000, 2, 2, 5000000000, 5000000000, 2};
    const hsize_t dims[] = {ROWS};
    put("y", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, dims, H5P_DEFAULT, values);
}

static void text_y(void)
{
    const char *values[ROWS] = {"no", "maybe", "maybe", "no", "no", "maybe"};
    const hsize_t dims[] = {ROWS};
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    put("y", type, type, 1, dims, H5P_DEFAULT, values);
    H5Tclose(type);
}

/* Booleans, floats, -1 and 1, one-hot rows, large numbers and texts of any length are the same two
 * classes, in training and in evaluation data. */
START_TEST(labels_have_many_forms)
{
    static void (*const forms[])(void) = {bool_y,    whole_float_y, sign_y,
                                          one_hot_y, text_y,        number_y};
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    forms[_i]();
    finish();
    if (forms[_i] == number_y) set("model.task=classify");
    expect_rows(X, BINARY, ROWS, FEATURES);
    struct dt_source *source = survey(), *eval;
    ck_assert_int_eq(dt__source_schema(source)->classes, 2);
    ck_assert_int_eq(system("cp a.h5 b.h5"), 0);
    set("data.eval=b.h5");
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
    struct dt_table *table = open_table(eval);
    ck_assert_int_eq(read_row(table, 3).label[0], 1);
    ck_assert_int_eq(read_row(table, 5).label[0], 0);
    dt__table_destroy(table), dt__source_destroy(eval), dt__source_destroy(source);
}
END_TEST

/* Rows to predict need no labels. */
START_TEST(labels_may_be_missing)
{
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    bool_y();
    finish();
    create("b.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    finish();
    struct dt_source *source = survey(), *rows;
    set("data.eval=b.h5");
    EXPECT_FAIL(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &rows),
                DT_EFORMAT, "/y is missing");
    EXPECT_OK(dt__source_survey(&config, DT_PART_PREDICT, dt__source_schema(source), &rows));
    struct dt_table *table = open_table(rows);
    for (uint64_t r = 0; r < ROWS; r++)
        ck_assert_mem_eq(read_row(table, r).x, X + r * FEATURES, FEATURES * sizeof *X);
    dt__table_destroy(table), dt__source_destroy(rows), dt__source_destroy(source);
}
END_TEST

static void stop_in_labels(void)
{
    static int reads_left = 3;
    if (--reads_left == 0) dt_stop_request();
}

/* Sizes that take several reads: one-hot labels, more than one read takes, and values that the
 * reader process converts, more than it sends at once. A stop ends the reading of labels, and each
 * part counts as progress for the watchdog. */
START_TEST(files_take_several_reads)
{
    enum { MANY = 2500, WIDE = 900, CLASSES = 3 };
    const hsize_t dims[] = {MANY, WIDE}, y_dims[] = {MANY, CLASSES};
    double *x = calloc(MANY * WIDE, sizeof *x);
    float *y = calloc(MANY * CLASSES, sizeof *y), *read = calloc(MANY * WIDE, sizeof *read);
    for (size_t i = 0; i < MANY * WIDE; i++)
        x[i] = (double)i;
    for (size_t r = 0; r < MANY; r++)
        y[r * CLASSES + r * r % CLASSES] = 1;
    create("a.h5");
    put("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, dims, H5P_DEFAULT, x);
    put("y", H5T_STD_U8LE, H5T_NATIVE_FLOAT, 2, y_dims, H5P_DEFAULT, y);
    put("plain", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, 2, dims, H5P_DEFAULT, x);
    finish();
    struct dt__h5_file *opened;
    const struct dt__h5_item *item;
    EXPECT_OK(dt__h5_open("a.h5", &opened));
    EXPECT_OK(dt__h5_array(opened, "/x", &item));
    ck_assert_uint_gt(MANY * WIDE * sizeof *read, DT__H5_READ_BYTES);
    EXPECT_OK(dt__h5_read(opened, item, 0, MANY, DT__H5_F32, read));
    for (size_t i = 0; i < MANY * WIDE; i++)
        EXPECT((double)read[i] == x[i]);
    for (int i = 0; i < 2; i++) { /* read from the file directly, and by the reader process */
        EXPECT_OK(dt__h5_array(opened, i ? "/x" : "/plain", &item));
        EXPECT_OK(dt__h5_read(opened, item, 7, 2, DT__H5_F32, read));
        ck_assert(read[0] == 7 * WIDE && read[2 * WIDE - 1] == 9 * WIDE - 1);
    }
    dt__h5_close(opened);
    struct dt_source *source = survey();
    struct dt_table *table = open_table(source);
    ck_assert_int_gt(MANY, DT__H5_LABELS);
    for (size_t r = 0; r < MANY; r++)
        ck_assert_int_eq(read_row(table, r).label[0], (int)(r * r % CLASSES));
    dt__table_destroy(table), dt__source_destroy(source);
    y[2400 * CLASSES] = y[2400 * CLASSES + 1] = 1;
    create("a.h5");
    put("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, dims, H5P_DEFAULT, x);
    put("y", H5T_STD_U8LE, H5T_NATIVE_FLOAT, 2, y_dims, H5P_DEFAULT, y);
    finish();
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "/y: row 2400: expected class labels: one whole number a row");
    dt__work_watch(stop_in_labels);
    EXPECT_FAIL(try_survey(), DT_STOPPED, "stopped on request");
    dt__work_watch(NULL), dt__stop_clear();
    free(read), free(y), free(x);
}
END_TEST

static dt_status write_part(void *arg, const void *bytes, size_t length)
{
    return dt__fd_write(*(int *)arg, "many.h5", bytes, length);
}

static const char *path_of_many(int i)
{
    static char path[32];
    snprintf(path, sizeof path, "/%d/%d@%d", i / 60 / 60, i / 60 % 60, i % 60);
    return path;
}

/* A checkpoint of many groups with many layers has this many items. Fails if the reader has a limit
 * that the writer lacks; times out if each look-up searches all items. */
START_TEST(a_file_may_have_many_items)
{
    enum { MANY = 20 * 60 * 60 };
    struct dt__h5_layout *layout;
    struct dt__h5_file *opened;
    int fd = open("many.h5", O_WRONLY | O_CREAT, 0600);
    EXPECT_OK(dt__h5_layout_create("many.h5", 0, &layout));
    for (int32_t i = 0; i < MANY; i++)
        dt__h5_put(layout,
                   &(struct dt__h5_item){.path = path_of_many(i), .type = DT__H5_I32, .data = &i},
                   NULL);
    EXPECT_OK(dt__h5_stream(layout, write_part, &fd));
    dt__h5_layout_free(layout);
    close(fd);
    EXPECT_OK(dt__h5_open("many.h5", &opened));
    for (int32_t i = 0; i < MANY; i++) {
        const struct dt__h5_item *item = dt__h5_find(opened, DT__H5_ATTRIBUTE, path_of_many(i));
        EXPECT(item && !memcmp(item->data, &i, sizeof i));
    }
    ck_assert_ptr_null(dt__h5_find(opened, DT__H5_ARRAY, path_of_many(0)));
    dt__h5_close(opened);
}
END_TEST

/* data.x and data.y name data sets, which may be in groups. */
START_TEST(data_sets_may_have_other_names)
{
    create("a.h5");
    const hsize_t dims[] = {ROWS, FEATURES}, one_dim[] = {ROWS};
    H5Gclose(H5Gcreate2(file, "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    put("train/images", H5T_STD_U8LE, H5T_NATIVE_FLOAT, 2, dims, H5P_DEFAULT, X);
    put("labels", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, one_dim, H5P_DEFAULT, Y);
    finish();
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "a.h5: /x is missing; the file has");
    ck_assert(strstr(dt_error_text(), "/train/images 6x4") && strstr(dt_error_text(), "/labels 6"));
    set("data.x=train/images"), set("data.y=/labels");
    expect_rows(X, Y, ROWS, FEATURES);
}
END_TEST

/* ---- what must be refused ------------------------------------------------------------------- */

static void missing_y(void)
{
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
}

static void short_y(void)
{
    const hsize_t dims[] = {ROWS - 1};
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, dims, H5P_DEFAULT, Y);
}

/* Makes 4 rows of 6 numbers as R and MATLAB write them: transposed. */
static void transposed_x(void)
{
    const hsize_t dims[] = {4};
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, dims, H5P_DEFAULT, Y);
}

static void transposed_x_and_y(void)
{
    const hsize_t dims[] = {1, 4};
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, dims, H5P_DEFAULT, Y);
}

static void float_y(void)
{
    const float labels[ROWS] = {0, 1, 0.5f, 1, 0, 1};
    const hsize_t dims[] = {ROWS};
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, dims, H5P_DEFAULT, labels);
}

static void nan_y(void)
{
    const float labels[ROWS] = {0, 1, 0, NAN, 0, 1};
    const hsize_t dims[] = {ROWS};
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, dims, H5P_DEFAULT, labels);
}

static void wide_y(void)
{
    const hsize_t dims[] = {ROWS, 2};
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_STD_I32LE, H5T_NATIVE_FLOAT, 2, dims, H5P_DEFAULT, X);
}

static void negative_y(void)
{
    const int32_t labels[ROWS] = {0, 1, 0, -1, 0, 1};
    const hsize_t dims[] = {ROWS};
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put("y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, dims, H5P_DEFAULT, labels);
}

static void group_x(void)
{
    H5Gclose(H5Gcreate2(file, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    put_y(H5T_STD_I32LE);
}

static void empty_x(void)
{
    const hsize_t dims[] = {0, 4};
    put("x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, dims, H5P_DEFAULT, NULL);
    put_y(H5T_STD_I32LE);
}

static void scalar_x(void)
{
    hid_t space = H5Screate(H5S_SCALAR);
    H5Dclose(H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    put_y(H5T_STD_I32LE);
}

static void compound_x(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, 8);
    const hsize_t dims[] = {ROWS};
    H5Tinsert(type, "a", 0, H5T_STD_I32LE);
    put("x", type, type, 1, dims, H5P_DEFAULT, NULL);
    H5Tclose(type);
    put_y(H5T_STD_I32LE);
}

static void vlen_x(void)
{
    hid_t type = H5Tvlen_create(H5T_NATIVE_FLOAT);
    const hsize_t dims[] = {ROWS};
    put("x", type, type, 1, dims, H5P_DEFAULT, NULL);
    H5Tclose(type);
    put_y(H5T_STD_I32LE);
}

/* Makes numbers whose bits reach beyond their size: HDF5 1.10.8 crashes when it converts them. */
static void wrong_precision_x(void)
{
    hid_t type = H5Tcopy(H5T_STD_I32LE);
    const hsize_t dims[] = {ROWS};
    H5Tset_precision(type, 20);
    H5Tset_offset(type, 3);
    put("x", type, H5T_NATIVE_FLOAT, 1, dims, H5P_DEFAULT, X);
    H5Tclose(type);
    put_y(H5T_STD_I32LE);
}

static void text_x(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    const hsize_t dims[] = {ROWS};
    H5Tset_size(type, 4);
    put("x", type, type, 1, dims, H5P_DEFAULT, X);
    H5Tclose(type);
    put_y(H5T_STD_I32LE);
}

static void external_link(void)
{
    H5Lcreate_external("other.h5", "/x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
}

static void soft_link(void)
{
    H5Lcreate_soft("/y", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
}

static void external_storage(void)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    put_bytes("raw", X, sizeof X);
    H5Pset_external(plist, "raw", 0, ROWS * FEATURES);
    put_x(H5T_STD_U8LE, plist);
    H5Pclose(plist);
    put_y(H5T_STD_I32LE);
}

static void virtual_x(void)
{
    const hsize_t dims[] = {ROWS, FEATURES};
    hid_t space = H5Screate_simple(2, dims, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(plist, space, "other.h5", "/x", space);
    put("x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, dims, plist, NULL);
    H5Pclose(plist);
    H5Sclose(space);
    put_y(H5T_STD_I32LE);
}

/* Declares 10^12 rows and stores none. */
static void unstored_x(void)
{
    const hsize_t dims[] = {1000000000000, 100}, chunk[] = {1000, 100};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 2, chunk);
    put("x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, dims, plist, NULL);
    H5Pclose(plist);
    put_y(H5T_STD_I32LE);
}

static size_t pass(unsigned flags, size_t count, const unsigned *values, size_t n, size_t *room,
                   void **bytes)
{
    (void)flags, (void)count, (void)values, (void)room, (void)bytes;
    return n;
}

static void filtered_x(H5Z_filter_t number)
{
    const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, number, 1, 1, "filter", NULL, NULL, pass};
    ck_assert_int_ge(H5Zregister(&filter), 0);
    const hsize_t chunk[] = {ROWS, 2, 2};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 3, chunk);
    H5Pset_filter(plist, number, H5Z_FLAG_OPTIONAL, 0, NULL);
    put_x(H5T_STD_U8LE, plist);
    H5Pclose(plist);
    put_y(H5T_STD_I32LE);
}

/* lzf: a filter of h5py. */
static void lzf_x(void)
{
    filtered_x(32000);
}

/* Bitshuffle: a plugin. */
static void plugin_x(void)
{
    filtered_x(32008);
}

/* Declares a chunk of 1 GiB, which packs to almost nothing, for six rows. */
static void vast_chunk(void)
{
    const hsize_t dims[] = {ROWS, FEATURES}, open_limit[] = {H5S_UNLIMITED, FEATURES};
    const hsize_t chunk[] = {1 << 28, FEATURES}, at[] = {0, 0};
    static const unsigned char packed_bytes[64];
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, dims, open_limit);
    H5Pset_chunk(plist, 2, chunk);
    H5Pset_deflate(plist, 9);
    hid_t x = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    ck_assert_int_ge(H5Dwrite_chunk(x, H5P_DEFAULT, 0, at, sizeof packed_bytes, packed_bytes), 0);
    H5Dclose(x), H5Pclose(plist), H5Sclose(space);
    put_y(H5T_STD_I32LE);
}

/* Links each group twice into the next one: x has a million paths. */
static void linked_often(void)
{
    char above[16], below[16] = "";
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    for (int i = 0; i < 20; i++) {
        snprintf(above, sizeof above, "/g%d", i);
        hid_t group = H5Gcreate2(file, above, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        ck_assert_int_ge(
            H5Lcreate_hard(file, i ? below : "/x", group, "a", H5P_DEFAULT, H5P_DEFAULT), 0);
        ck_assert_int_ge(
            H5Lcreate_hard(file, i ? below : "/x", group, "b", H5P_DEFAULT, H5P_DEFAULT), 0);
        H5Gclose(group);
        memcpy(below, above, sizeof below);
    }
}

static const struct {
    void (*make)(void);
    const char *message;
} HOSTILE[] = {
    {missing_y, "a.h5: /y is missing; the file has /x 6x2x2 (see data.y)"},
    {short_y, "a.h5: /x has 6 rows, /y has 5"},
    {transposed_x, "a.h5: /x has 6 rows, /y has 4: write both transposed, as MATLAB and R"},
    {transposed_x_and_y, "a.h5: /x has 6 rows, /y has 1: write both transposed"},
    {nan_y, "a.h5: /y: row 3: label nan is not a finite number"},
    {float_y, "a.h5: /y: row 2: label 0.5 is not a class number"},
    {wide_y,
     "a.h5: /y: row 1: expected class labels: one whole number a row, or a row with a single 1"},
    {negative_y, "a.h5: label -1: set model.task=regress"},
    {group_x, "a.h5: /x is not a data set"},
    {empty_x, "a.h5: /x is empty"},
    {scalar_x, "a.h5: /x has no proper dimensions"},
    {compound_x, "a.h5: /x holds neither plain numbers nor texts"},
    {vlen_x, "a.h5: /x holds neither plain numbers nor texts"},
    {wrong_precision_x, "a.h5: /x holds neither plain numbers nor texts"},
    {text_x, "a.h5: /x holds texts, not numbers"},
    {external_link, "a.h5: /x is missing"},
    {soft_link, "a.h5: /x is missing"},
    {external_storage, "a.h5: /x is not stored plainly in the file itself"},
    {virtual_x, "a.h5: /x is not stored plainly in the file itself"},
    {lzf_x, "a.h5: /x is packed by lzf, which h5py alone reads: expected gzip"},
    {plugin_x, "a.h5: /x is packed by a filter that is not known: expected gzip"},
    {unstored_x, "a.h5: /x is not all in the file"},
    {vast_chunk, "a.h5: /x has chunks of more than 256 MiB: expected smaller ones"},
    {linked_often, "a.h5: holds too many things"},
};

START_TEST(hostile_files_are_refused)
{
    create("other.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    H5Fclose(file);
    create("a.h5");
    HOSTILE[_i].make();
    finish();
    dt_status status = try_survey();
    ck_assert_int_eq(dt_status_exit_code(status), 1);
    ck_assert_msg(strstr(dt_error_text(), HOSTILE[_i].message), "message is '%s'", dt_error_text());
}
END_TEST

/* A file that is cut or changed anywhere in its first kilobytes is refused or read, and never
 * crashes the program. */
START_TEST(damaged_files_never_crash)
{
    static unsigned char whole[1 << 16], damaged[1 << 16];
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
    finish();
    FILE *in = fopen("a.h5", "r");
    ck_assert_ptr_nonnull(in);
    size_t length = fread(whole, 1, sizeof whole, in), refused = 0;
    fclose(in);
    for (size_t at = 0; at < length; at += 11) {
        memcpy(damaged, whole, length);
        damaged[at] ^= 0xFF;
        put_bytes("a.h5", damaged, at % 2 ? at : length);
        struct dt_source *source;
        struct dt_table *table;
        dt_status status = dt__source_survey(&config, DT_PART_TRAIN, NULL, &source);
        refused += status != DT_OK;
        if (status) continue;
        if (!dt__table_create(&config, source, 0, dt__source_rows(source), &table))
            dt__table_destroy(table);
        dt__source_destroy(source);
    }
    ck_assert_uint_gt(refused, length / 11 / 2); /* half of the files are cut */
}
END_TEST

/* The library crashes in a separate process, and the message names the file. If the reader was
 * killed, the file may be good: the status must not be DT_EFORMAT, or an older checkpoint would be
 * used instead. */
START_TEST(a_crash_of_the_library_gives_a_message)
{
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I64BE); /* a type that only the library reads */
    finish();
    const enum fault fault_cases[] = {CRASH_ON_OPEN, CRASH_ON_READ, STACK_GONE, MEMORY_GONE,
                                      STACK_GONE};
    library = fault_cases[_i];
    ask_late = (size_t)_i == COUNT(fault_cases) - 1;
    if (library == MEMORY_GONE)
        EXPECT_FAIL(try_survey(), DT_EIO, "a.h5: the process that reads it was killed, twice");
    else
        EXPECT_FAIL(try_survey(), DT_EFORMAT, "malformed: HDF5's library crashes on it");
}
END_TEST

/* Reads state and parent of a process from /proc/PID/stat; returns whether it is a live process of
 * HDF5. */
static bool process_is(pid_t pid, char *state, pid_t *parent)
{
    char path[64], name[64] = "";
    int above = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *stat = fopen(path, "r");
    if (!stat) return false;
    bool known = fscanf(stat, "%*d (%63[^)]) %c %d", name, state, &above) == 3;
    fclose(stat);
    *parent = above;
    return known && *state != 'Z' && *state != 'X' && !strcmp(name, "dtrain-hdf5");
}

/* Returns the HDF5 process that `parent` has started, or 0. */
static pid_t process_of(pid_t parent)
{
    pid_t found = 0, above;
    char state;
    DIR *dir = opendir("/proc");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid && process_is(pid, &state, &above) && above == parent) found = pid;
    }
    closedir(dir);
    return found;
}

static void end_process(pid_t pid)
{
    pid_t parent;
    char state;
    ck_assert_int_gt(pid, 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    while (process_is(pid, &state, &parent))
        usleep(1000);
}

static void survey_once(void)
{
    struct dt_source *source = survey();
    ck_assert_uint_eq(dt__source_rows(source), ROWS);
    dt__source_destroy(source);
}

/* If the process that starts readers is killed, one new process replaces it for all later files. */
START_TEST(a_killed_fork_server_is_replaced)
{
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I64BE);
    finish();
    survey_once();
    pid_t server = process_of(getpid());
    end_process(server);
    survey_once();
    server = process_of(getpid());
    survey_once();
    ck_assert_int_eq(process_of(getpid()), server);
}
END_TEST

/* If a reader is killed from outside, its file may be good: another reader takes its place. */
START_TEST(a_killed_reader_is_replaced)
{
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I64BE); /* a type that only the library reads */
    finish();
    library = _i ? KILLED_ON_READ : KILLED_ON_OPEN;
    survey_once();
    ck_assert_int_eq(access("killed", F_OK), 0);
}
END_TEST

static long oom_score(pid_t pid)
{
    char path[64];
    long score = 0;
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
    FILE *in = fopen(path, "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fscanf(in, "%ld", &score), 1);
    fclose(in);
    return score;
}

/* If memory runs out, a reader should be killed before the process that starts readers. */
START_TEST(the_fork_server_is_not_killed_first)
{
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I64BE);
    finish();
    survey_once();
    ck_assert_int_eq(oom_score(process_of(getpid())), oom_score(getpid()));
}
END_TEST

START_TEST(names_of_any_length_are_read)
{
    const char *const names[] = {"zebra", "cat, a longer one than the others", "dog", ""};
    const hsize_t dims[] = {4};
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    create("a.h5");
    put_x(H5T_STD_U8LE, H5P_DEFAULT);
    put_y(H5T_STD_I32LE);
    put("label_names", type, type, 1, dims, H5P_DEFAULT, names);
    H5Tclose(type);
    finish();
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->classes, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(dt__source_schema(source)->label_names[i], names[i]);
    dt__source_destroy(source);
}
END_TEST

START_TEST(other_formats_are_refused)
{
    put_text("a.h5", "no HDF5 at all");
    set("data.train=a.h5");
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "a.h5: cannot be opened as HDF5: HDF5: file signature not found");
}
END_TEST

DATA_SUITE("hdf5", {types_are_read, 1}, {half_precision_is_read, 1}, {denormals_are_read, 1},
           {negative_numbers_are_read, 1}, {packed_storage_is_read, 1},
           {large_chunks_are_unpacked_once, 1}, {chunks_read_in_part_are_not_all_in_memory, 2},
           {chunks_of_all_files_fit_in_memory, 3}, {targets_are_read, 1},
           {class_names_keep_their_numbers, 1}, {class_names_are_distinct, 1},
           {texts_may_be_class_numbers, 1}, {labels_have_many_forms, 6},
           {one_hot_rows_declare_classes, 1}, {labels_may_be_missing, 1},
           {data_sets_may_have_other_names, 1}, {files_take_several_reads, 1},
           {a_file_may_have_many_items, 1}, {rows_have_a_shape, 1},
           {held_out_rows_have_the_shape_of_the_model, 1}, {channels_first_give_a_warning, 1},
           {hostile_files_are_refused, COUNT(HOSTILE)}, {damaged_files_never_crash, 1},
           {a_crash_of_the_library_gives_a_message, 5}, {a_killed_fork_server_is_replaced, 1},
           {a_killed_reader_is_replaced, 2}, {the_fork_server_is_not_killed_first, 1},
           {names_of_any_length_are_read, 1}, {other_formats_are_refused, 1})
