/* Shards: together they have every row once, in a random order, with labels and names; nothing else
 * is left in the directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "data_files.h"
#include "hdf5/read.h"
#include "hdf5/write.h"

enum { ROWS = 60000, FEATURES = 20 };

/* Writes rows whose number can be computed from their values; they take 1.4 MiB as bytes, so that
 * several buckets are needed at 1 MiB. */
static void put_rows(void)
{
    FILE *out = fopen("in.csv", "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "a,b,c");
    for (int f = 3; f < FEATURES; f++)
        fprintf(out, ",f%d", f);
    fprintf(out, ",kind\n");
    for (int r = 0; r < ROWS; r++) {
        fprintf(out, "%d,%d,%d", r & 255, r >> 8, r % 251);
        for (int f = 3; f < FEATURES; f++)
            fprintf(out, ",7");
        fprintf(out, ",\"class %d\"\n", r % 3);
    }
    fclose(out);
}

static struct dt_source *open_shards(void)
{
    set("data.train=out/*.h5");
    return survey();
}

/* Reads the order of the rows over all shards; each row must occur once, with its label. */
static void read_order(const struct dt_source *source, int *order)
{
    static bool seen[ROWS];
    struct dt_table *table = open_table(source);
    memset(seen, 0, sizeof seen);
    ck_assert_uint_eq(dt__source_rows(source), ROWS);
    for (int i = 0; i < ROWS; i++) {
        struct dt_batch batch = read_row(table, (uint64_t)i);
        int row = (int)batch.x[0] | (int)batch.x[1] << 8;
        EXPECT(row < ROWS && !seen[row]);
        seen[row] = true;
        EXPECT(batch.x[2] == (float)(row % 251) && batch.label[0] == row % 3);
        order[i] = row;
    }
    dt__table_destroy(table);
}

/* Returns how far rows are from their old place, as a mean over all rows and a fraction of their
 * number: 1/3 in a random order, less if only blocks were shuffled. */
static double mean_distance(const int *order)
{
    double sum = 0;
    for (int i = 0; i < ROWS; i++)
        sum += abs(order[i] - i);
    return sum / ROWS / ROWS;
}

START_TEST(shards_have_every_row)
{
    static int order[ROWS], same[ROWS];
    put_rows();
    set("data.train=in.csv"), set(_i ? "data.memory_mb=1" : "data.memory_mb=64");
    EXPECT_OK(dt__shard_write(&config, "out", 7));
    ck_assert(dt__path_exists("out/shard-00000-of-00007.h5"));
    ck_assert(dt__path_exists("out/shard-00006-of-00007.h5"));
    set("data.memory_mb=64");
    struct dt_source *source = open_shards();
    const struct dt_schema *schema = dt__source_schema(source);
    ck_assert_str_eq(schema->label_names[2], "class 2");
    ck_assert_str_eq(schema->feature_names[1], "b");
    read_order(source, order);
    ck_assert_double_gt(mean_distance(order), 0.325);
    ck_assert_double_lt(mean_distance(order), 0.342);
    int neighbours = 0;
    for (int i = 1; i < ROWS; i++)
        neighbours += order[i] == order[i - 1] + 1;
    ck_assert_int_lt(neighbours, 20); /* 1 expected */
    dt__source_destroy(source);
    set("data.train=in.csv"), set(_i ? "data.memory_mb=1" : "data.memory_mb=64");
    ck_assert_int_eq(rename("out", "before"), 0);
    EXPECT_OK(dt__shard_write(&config, "out", 1));
    set("data.memory_mb=64");
    source = open_shards();
    read_order(source, same);
    ck_assert_mem_eq(order, same, sizeof order); /* the same seed gives the same order */
    dt__source_destroy(source);
}
END_TEST

/* Floats and several targets keep their values. */
START_TEST(floats_and_targets_keep_their_values)
{
    const float x[] = {0.5f, -1, 2, 3e5f};
    put_text("in.csv", "0.5,-1,0.25\n2,3e5,0.75\n");
    set("data.train=in.csv"), set("model.task=regress"), set("data.eval_fraction=0.5");
    set("data.normalize=standard");
    EXPECT_OK(dt__shard_write(&config, "out", 1));
    set("data.eval_fraction=0"), set("data.normalize=none"), set("data.train=out/*");
    struct dt_source *source = survey();
    struct dt_table *table = open_table(source);
    for (uint64_t r = 0; r < 2; r++) {
        struct dt_batch batch = read_row(table, r);
        int from = batch.target[0] == 0.25f ? 0 : 2;
        ck_assert_float_eq(batch.x[0], x[from]);
        ck_assert_float_eq(batch.x[1], x[from + 1]);
    }
    dt__table_destroy(table);
    dt__source_destroy(source);
}
END_TEST

/* A table with a text, a number, a date and a weight. */
static const char TABLE[] =
    "kind,n,when,w,y\nred,1.5,2021-03-04,1,0\nblue,2.5,2021-03-05,2,1\nred,,2021-03-06,3,1\n";

static void put_shard(void)
{
    put_text("in.csv", TABLE);
    set("data.train=in.csv"), set("data.missing=flag"), set("data.weight=w");
    EXPECT_OK(dt__shard_write(&config, "out", 1));
    dt__config_free(&config);
    EXPECT_OK(dt__config_init(&config));
}

/* Writes 4 bytes over value `at` of a data set. */
static void patch(const char *path, const char *array, size_t at, const void *bytes)
{
    struct dt__h5_file *file;
    const struct dt__h5_item *item;
    EXPECT_OK(dt__h5_open(path, &file));
    EXPECT_OK(dt__h5_array(file, array, &item));
    ck_assert_uint_ne(item->offset, UINT64_MAX);
    const int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, bytes, 4, (off_t)(item->offset + 4 * at)), 4);
    close(fd);
    dt__h5_close(file);
}

static const char SHARD_PATH[] = "out/shard-00000-of-00001.h5";

/* The shard stores words: for texts their codes by falling count, so red is 0 and blue is 1. */
START_TEST(tables_are_stored_as_words)
{
    struct dt__h5_file *file;
    const struct dt__h5_item *item;
    uint32_t words[9];
    float weights[3];
    put_shard();
    EXPECT_OK(dt__h5_open(SHARD_PATH, &file));
    EXPECT_OK(dt__h5_array(file, "/dtrain/rows", &item));
    EXPECT_OK(dt__h5_read(file, item, 0, 3, DT__H5_U32, words));
    EXPECT_OK(dt__h5_array(file, "/dtrain/weight", &item));
    EXPECT_OK(dt__h5_read(file, item, 0, 3, DT__H5_F32, weights));
    for (int r = 0; r < 3; r++) {
        float number;
        memcpy(&number, &words[3 * r + 1], sizeof number);
        const int line = (int)weights[r];
        ck_assert_uint_eq(words[3 * r], line == 2);
        if (line == 3)
            ck_assert_uint_eq(words[3 * r + 1], UINT32_MAX);
        else
            ck_assert_float_eq(number, (float)line + 0.5F);
    }
    ck_assert(!dt__h5_has_array(file, "/x") && !dt__h5_has_array(file, "/feature_names"));
    dt__h5_close(file);
    set("data.train=out/*.h5");
    struct dt_source *source = survey();
    const struct dt_schema *schema = dt__source_schema(source);
    /* n, days, year, month, weekday, "n is missing", red, blue, other texts */
    ck_assert_int_eq(schema->features, 9);
    dt__source_destroy(source);
}
END_TEST

/* A shard may come from another program: its words are checked when they are read. */
START_TEST(wrong_values_are_refused)
{
    static const struct {
        const char *array;
        size_t column;
        uint32_t word;
        const char *message;
    } wrong[] = {{"/dtrain/rows", 0, 3, "row 1: column 0: 00000003 is no value of it"},
                 {"/dtrain/rows", 0, UINT32_MAX, "row 1: column 0: ffffffff is no value"},
                 {"/dtrain/rows", 1, 0x7f800000, "row 1: column 1: 7f800000 is no value"},
                 {"/dtrain/rows", 1, 0x7fc00000, "row 1: column 1: 7fc00000 is no value"},
                 {"/dtrain/rows", 2, 0, "row 1: column 2: 00000000 is no value"},
                 {"/dtrain/rows", 2, UINT32_MAX - 1, "row 1: column 2: fffffffe is no value"},
                 {"/dtrain/weight", 0, 0xbf800000, "row 1: the weight is -1; expected 0 or more"},
                 {"/dtrain/weight", 0, 0x7fc00000, "row 1: the weight is nan; expected 0 or more"}};
    put_shard();
    patch(SHARD_PATH, wrong[_i].array, wrong[_i].array[8] == 'r' ? 3 + wrong[_i].column : 1,
          &wrong[_i].word);
    set("data.train=out/*.h5");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, wrong[_i].message);
}
END_TEST

/* ---- shards by hand ------------------------------------------------------------------------- */

static dt_status write_part(void *arg, const void *bytes, size_t length)
{
    static const char zeros[1 << 20];
    ck_assert_uint_eq(fwrite(bytes ? bytes : zeros, 1, length, arg), length);
    return DT_OK;
}

/* Writes a shard with one column, of the texts red and blue or of a number, and with the given
 * items. */
static void put_by_hand(const char *path, const char *form, const struct dt__h5_item *items,
                        size_t count)
{
    char *columns[] = {*form == '0' ? "1 0 1" : "0 0 1", (char *)(uintptr_t)form},
         *texts[] = {"red", "blue"};
    struct dt__h5_layout *layout;
    FILE *out = fopen(path, "w");
    EXPECT_OK(dt__h5_layout_create(path, 0, &layout));
    dt__h5_put_names(layout, "/dtrain/columns", columns, 2);
    dt__h5_put_names(layout, "/dtrain/categories", texts, 2);
    for (size_t i = 0; i < count; i++)
        dt__h5_put(layout, &items[i], NULL);
    EXPECT_OK(dt__h5_stream(layout, write_part, out));
    ck_assert_int_eq(fclose(out), 0);
    dt__h5_layout_free(layout);
}

#define KIND "1 0 0 nan 2 kind"

/* Older shards have features, here a byte for each text, instead of words. */
START_TEST(old_shards_are_read)
{
    static const unsigned char x[] = {1, 0, 0, 0, 1, 0};
    static const float expected[] = {1, 0, 0, 0, 1, 0};
    static const int32_t y[] = {0, 1};
    static const uint32_t words[] = {0, 1};
    const struct dt__h5_item items[] = {
        {.path = "/y", .type = DT__H5_I32, .rank = 1, .dims = {2}, .data = y},
        {.path = "/x", .type = DT__H5_U8, .rank = 2, .dims = {2, 3}, .data = x},
        {.path = "/dtrain/rows", .type = DT__H5_U32, .rank = 2, .dims = {2, 1}, .data = words}};
    put_by_hand("old.h5", KIND, items, 2);
    struct dt__h5_item new[] = {items[0], items[2]};
    put_by_hand("new.h5", KIND, new, 2);
    set("data.train=old.h5");
    expect_rows(expected, y, 2, 3);
    set("data.train=new.h5");
    expect_rows(expected, y, 2, 3);
    set("data.train=new.h5,old.h5");
    ck_assert_int_eq(try_survey(), DT_OK);
}
END_TEST

/* Malformed shards are refused before memory is allocated for them. */
START_TEST(malformed_shards_are_refused)
{
    static const uint32_t words[12] = {0, 1}, large[] = {4, 1};
    static const float half = 0.5F;
    static const int32_t y[3] = {0, 1}, yes = 1;
    static const struct {
        const char *form;
        struct dt__h5_item rows, other;
        const char *message;
    } wrong[] = {
        {KIND, {.rank = 2, .dims = {2, 2}}, {0}, "/dtrain/rows does not fit /dtrain/columns"},
        {KIND, {.rank = 1, .dims = {1}}, {0}, "/dtrain/rows has 1 rows, /y has 2"},
        {KIND,
         {.rank = 2, .type = DT__H5_F32, .dims = {2, 1}},
         {0},
         "does not fit /dtrain/columns"},
        {"1 1 0 nan 2 kind", {.rank = 2, .dims = {2, 1}}, {0}, "/dtrain/columns do not fit it"},
        {"1 0 0 nan 9 kind", {.rank = 2, .dims = {2, 1}}, {0}, "column 0 is malformed"},
        {KIND,
         {.rank = 2, .dims = {2, 1}, .data = large},
         {0},
         "row 0: column 0: 00000004 is no value"},
        {KIND,
         {.rank = 2, .dims = {2, 1}},
         {.path = "/dtrain/weight", .type = DT__H5_F32, .rank = 1, .dims = {1}, .data = &half},
         "/dtrain/weight: expected the weights of 2 rows"},
        {KIND,
         {.rank = 2, .dims = {2, 1}},
         {.path = "/dtrain/weight", .type = DT__H5_I32, .rank = 1, .dims = {2}, .data = y},
         "/dtrain/weight: expected the weights of 2 rows"},
        {"0 0 0 nan 0 n",
         {.rank = 2, .dims = {2, 1}, .data = large},
         {.path = "/dtrain@bytes", .type = DT__H5_I32, .data = &yes},
         "row 0: column 0: 00000004 is no value"}};
    struct dt__h5_item items[] = {
        {.path = "/y", .type = DT__H5_I32, .rank = 1, .dims = {2}, .data = y},
        wrong[_i].rows,
        wrong[_i].other};
    items[1].path = "/dtrain/rows";
    if (!items[1].type) items[1].type = DT__H5_U32;
    if (!items[1].data) items[1].data = words;
    put_by_hand("in.h5", wrong[_i].form, items, items[2].path ? 3 : 2);
    set("data.train=in.h5"), set("data.normalize=standard");
    EXPECT_FAIL(try_survey(), _i == 1 ? DT_EMISMATCH : DT_EFORMAT, wrong[_i].message);
}
END_TEST

/* Pictures keep their shape. */
START_TEST(shapes_are_kept)
{
    static const struct {
        const char *option;
        int shape[3];
    } shapes[] = {{"data.shape=3x2", {3, 2, 1}}, {"data.shape=1x3x2", {1, 3, 2}}};
    put_text("in.csv", "0,1,2,3,4,5,0\n6,7,8,9,10,11,1\n");
    set("data.train=in.csv"), set(shapes[_i].option);
    EXPECT_OK(dt__shard_write(&config, "out", 1));
    set("data.shape=");
    struct dt_source *source = open_shards();
    ck_assert_mem_eq(dt__source_schema(source)->shape, shapes[_i].shape, sizeof shapes->shape);
    struct dt_table *table = open_table(source);
    for (uint64_t r = 0; r < 2; r++) {
        const struct dt_batch batch = read_row(table, r);
        for (int i = 0; i < 6; i++)
            ck_assert_float_eq(batch.x[i], (float)(6 * batch.label[0] + i));
    }
    dt__table_destroy(table);
    dt__source_destroy(source);
}
END_TEST

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir) closedir(dir);
    return count;
}

/* A kill during the renames leaves some shards without their name: using the rest must be an error,
 * with a glob and with a list. */
START_TEST(some_of_the_shards_are_not_enough)
{
    static const char *const names[] = {"data.train=half/*.h5",
                                        "data.train=in.csv,half/shard-00000-of-00002.h5"};
    struct dt_source *source;
    put_text("in.csv", "1,0\n2,1\n");
    set("data.train=in.csv");
    EXPECT_OK(dt__shard_write(&config, "half", 2));
    ck_assert_int_eq(rename("half/shard-00001-of-00002.h5", "half/shard-00001-of-00002.h5.part"),
                     0);
    set(names[_i]);
    EXPECT_FAIL(dt__source_survey(&config, DT_PART_TRAIN, NULL, &source), DT_EIO,
                "half/shard-00001-of-00002.h5.part: the set of shards is incomplete");
}
END_TEST

static char logged[1000];

static void catch_log(void *arg, enum dt_log_level level, const char *line)
{
    const size_t length = strlen(logged);
    (void)arg, (void)level;
    snprintf(logged + length, sizeof logged - length, "%s|", line);
}

static void expect_log(const char *train, const char *eval, const char *expected)
{
    struct dt_source *source, *held_out;
    set(train), set(eval);
    *logged = '\0';
    EXPECT_OK(dt__source_survey(&config, DT_PART_TRAIN, NULL, &source));
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &held_out));
    dt__source_destroy(held_out);
    dt__source_destroy(source);
    ck_assert_str_eq(logged, expected);
}

/* A warning names shards of a set that are not read, unless data.eval holds them out. */
START_TEST(shards_that_are_not_read_give_a_warning)
{
    put_text("in.csv", "1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n");
    set("data.train=in.csv");
    EXPECT_OK(dt__shard_write(&config, "o[1]", 4));
    EXPECT_OK(dt__shard_write(&config, "b", 2));
    ck_assert_int_eq(rename("b/shard-00001-of-00002.h5", "shard-00001-of-00002.h5"), 0);
    dt_log_set_sink(catch_log, NULL);
    expect_log("data.train=o[[]1]/*.h5", "data.eval=in.csv", "");
    expect_log("data.train=o[[]1]/*[01]-of*",
               "data.eval=o[1]/shard-00003-of-00004.h5,o[1]/shard-00002-of-00004.h5", "");
    expect_log("data.train=o[[]1]/*[01]-of*", "data.eval=o[1]/shard-00003-of-00004.h5",
               "data.train: o[1]/shard-*-of-00004.h5: reading only 3 of 4 shards (4 exist)|");
    expect_log("data.train=in.csv", "data.eval=b/*.h5,shard-00001-of-00002.h5",
               "data.eval: b/shard-*-of-00002.h5: reading only 1 of 2 shards (1 exist)|"
               "data.eval: shard-*-of-00002.h5: reading only 1 of 2 shards (1 exist)|");
    ck_assert_int_eq(rename("b/shard-00000-of-00002.h5", "b/copy-shard-00000-of-00002.h5"), 0);
    expect_log("data.train=b/*.h5", "data.eval=in.csv", "");
    dt_log_set_sink(NULL, NULL);
}
END_TEST

START_TEST(mistakes_give_their_message)
{
    put_text("in.csv", "1,0\n2,1\n");
    set("data.train=in.csv");
    EXPECT_FAIL(dt__shard_write(&config, "out", 3), DT_EUSAGE,
                "3 shards of 2 rows; expected 1 to 2 shards");
    put_text("out/shard-00000-of-00002.h5.part", "of a run that was killed");
    EXPECT_OK(dt__shard_write(&config, "out", 1));
    ck_assert_int_eq(count_entries("out"), 1);
    EXPECT_FAIL(dt__shard_write(&config, "out", 1), DT_EIO,
                "out: the directory already has shards");
    const int lock_fd = (mkdir("new", 0777), open("new", O_RDONLY | O_DIRECTORY));
    ck_assert_int_eq(flock(lock_fd, LOCK_EX), 0);
    EXPECT_FAIL(dt__shard_write(&config, "new", 1), DT_EIO,
                "new: another dtrain shard is writing to it");
    close(lock_fd);
    EXPECT_FAIL(dt__shard_write(&config, "in.csv/out", 1), DT_EIO, "in.csv");
    EXPECT_OK(dt__shard_write(&config, "out[1]", 1));
    EXPECT_FAIL(dt__shard_write(&config, "out[1]", 1), DT_EIO, "the directory already has shards");
    put_text("in.csv", "1,0\nx,1\n");
    EXPECT_FAIL(dt__shard_write(&config, "new", 1), DT_EFORMAT, "in.csv:2: column 0");
    ck_assert_int_eq(count_entries("new"), 0);
}
END_TEST

/* ---- a full disk ---------------------------------------------------------------------------- */

static int writes_left = -1; /* number of writes until one fails; negative: none fails */

ssize_t __real_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    if (writes_left >= 0 && writes_left-- == 0) {
        errno = ENOSPC;
        return -1;
    }
    return __real_pwrite(fd, bytes, length, offset);
}

/* Each write fails in turn, once: there is one error, and no file is left. */
START_TEST(a_full_disk_leaves_no_files)
{
    int nth = 0;
    put_text("in.csv", "1,0\n2,1\n3,1\n");
    set("data.train=in.csv");
    for (;; nth++) {
        writes_left = nth;
        dt_status status = dt__shard_write(&config, "out", 2);
        if (!status && writes_left >= 0) break; /* there are fewer writes */
        EXPECT_FAIL(status, DT_EIO, "No space left on device");
        /* no complete shard either: nothing would show that the others are missing */
        ck_assert_int_eq(count_entries("out"), 0);
    }
    ck_assert_int_ge(nth, 3);
}
END_TEST

/* ---- a disk that is nearly full -------------------------------------------------------------- */

static unsigned long long disk_left; /* free bytes that the disk reports; 0: the real number */

int __real_statvfs(const char *path, struct statvfs *out);
int __wrap_statvfs(const char *path, struct statvfs *out);

int __wrap_statvfs(const char *path, struct statvfs *out)
{
    const int code = __real_statvfs(path, out);
    if (disk_left) out->f_frsize = 1, out->f_bavail = disk_left;
    return code;
}

/* The disk must have space for the shards and the temporary file: four rows of four bytes and a
 * class, twice. */
START_TEST(a_disk_without_space_is_reported_first)
{
    put_text("in.csv", "1,2,3,4,0\n2,3,4,5,1\n3,4,5,6,1\n4,5,6,7,0\n");
    set("data.train=in.csv");
    disk_left = 63;
    EXPECT_FAIL(dt__shard_write(&config, "out", 1), DT_EIO,
                "out: the disk has 0 MiB left; shuffling takes 1");
    ck_assert_int_eq(count_entries("out"), 0);
    disk_left = 64;
    EXPECT_OK(dt__shard_write(&config, "out", 1));
}
END_TEST

DATA_SUITE("shard", {shards_have_every_row, 2}, {floats_and_targets_keep_their_values, 1},
           {shapes_are_kept, 2}, {tables_are_stored_as_words, 1}, {wrong_values_are_refused, 8},
           {old_shards_are_read, 1}, {malformed_shards_are_refused, 9},
           {some_of_the_shards_are_not_enough, 2}, {shards_that_are_not_read_give_a_warning, 1},
           {mistakes_give_their_message, 1}, {a_full_disk_leaves_no_files, 1},
           {a_disk_without_space_is_reported_first, 1})
