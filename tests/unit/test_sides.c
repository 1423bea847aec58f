/* The sides of a split in every format: a row's side follows from its class, group and time. Fails
 * if formats, or a resume, split the same rows differently, if groups become features, if missing
 * keys are no error, or if shards lose groups and times. */
#include <time.h>

#include "data_files.h"
#include "hdf5/write.h"

enum { ROWS = 240, FORMATS = 6 };

/* Returns the label of a row; the first label is not the first class. */
static int32_t label_of(int row)
{
    return row % 10 == 3 ? 2 : 1 - row % 2;
}

static int group_of(int row)
{
    return row * 37 % 251 % 24;
}

static int time_of(int row) /* in days */
{
    return row * 101 % ROWS / 2;
}

static dt_status write_part(void *arg, const void *bytes, size_t length)
{
    static const char zeros[1 << 16];
    ck_assert_uint_eq(fwrite(bytes ? bytes : zeros, 1, length, arg), length);
    return DT_OK;
}

static void put_hdf5(void)
{
    static unsigned char x[ROWS];
    static int32_t y[ROWS];
    static double time[ROWS];
    char *group[ROWS], text[ROWS][16];
    const struct dt__h5_item items[] = {
        {.path = "/x", .type = DT__H5_U8, .rank = 2, .dims = {ROWS, 1}, .data = x},
        {.path = "/y", .type = DT__H5_I32, .rank = 1, .dims = {ROWS}, .data = y},
        {.path = "/t", .type = DT__H5_F64, .rank = 1, .dims = {ROWS}, .data = time}};
    struct dt__h5_layout *layout;
    FILE *out = fopen("a.h5", "w");
    for (int row = 0; row < ROWS; row++) {
        x[row] = (unsigned char)row, y[row] = label_of(row), time[row] = time_of(row) * 86400;
        snprintf(text[row], sizeof text[row], "g%d", group_of(row));
        group[row] = text[row];
    }
    EXPECT_OK(dt__h5_layout_create("a.h5", 0, &layout));
    dt__h5_put_names(layout, "/g", group, ROWS);
    for (size_t i = 0; i < COUNT(items); i++)
        dt__h5_put(layout, &items[i], NULL);
    EXPECT_OK(dt__h5_stream(layout, write_part, out));
    ck_assert_int_eq(fclose(out), 0);
    dt__h5_layout_free(layout);
}

/* Writes the same table in all formats; x is the number of the row, and dates are in 1970. */
static void put_files(void)
{
    static unsigned char x[16 + ROWS] = {0, 0, 8, 2, 0, 0, 0, ROWS, 0, 0, 0, 1};
    static unsigned char y[8 + ROWS] = {0, 0, 8, 1, 0, 0, 0, ROWS};
    FILE *csv = fopen("a.csv", "w"), *json = fopen("a.jsonl", "w"), *svm = fopen("a.svm", "w");
    FILE *group = fopen("group.txt", "w"), *time = fopen("time.txt", "w");
    fprintf(csv, "x,g,t,y\n");
    for (int row = 0; row < ROWS; row++) {
        const int label = label_of(row), g = group_of(row), days = time_of(row);
        const time_t secs = (time_t)days * 86400;
        char date[16];
        strftime(date, sizeof date, "%d.%m.%Y", gmtime(&secs));
        fprintf(csv, "%d,\"g%d\",%s,%d\n", row, g, date, label);
        fprintf(json, "{\"x\":%d,\"g\":\"g%d\",\"t\":%d,\"y\":%d}\n", row, g, days * 86400, label);
        fprintf(svm, "%d 1:%d\n", label, row);
        fprintf(group, "g%d\n", g);
        fprintf(time, "%d\n", days * 86400);
        x[12 + row] = (unsigned char)row, y[8 + row] = (unsigned char)label;
    }
    fclose(csv), fclose(json), fclose(svm), fclose(group), fclose(time);
    put_bytes("a.x", x, 12 + ROWS), put_bytes("a.y", y, 8 + ROWS);
    put_hdf5();
}

/* Marks the rows of a source; no row may be marked already. */
static void sides_mark(struct dt_source *source, char mark, char sides[ROWS + 1])
{
    struct dt_table *table = open_table(source);
    for (uint64_t r = 0; r < dt__source_rows(source); r++) {
        const int row = (int)read_row(table, r).x[0];
        ck_assert_int_eq(sides[row], '-');
        sides[row] = mark;
    }
    dt__table_destroy(table);
}

/* Sets the side of each row: t for training, h for held out, e for test, - for left out. */
static void sides_read(struct dt_source *train, char sides[ROWS + 1])
{
    static const char marks[] = {[DT__TRAIN] = 't', [DT__HELD_OUT] = 'h', [DT__TEST] = 'e'};
    memset(sides, '-', ROWS);
    sides[ROWS] = 0;
    sides_mark(train, 't', sides);
    for (int side = DT__HELD_OUT; side <= DT__TEST; side++) {
        struct dt_source *source;
        EXPECT_OK(dt__source_side(train, (enum dt__side)side, &source));
        if (source) sides_mark(source, marks[side], sides);
        dt__source_destroy(source);
    }
}

/* data.train, data.group and data.time in each format. */
static const struct {
    const char *train, *group, *time;
} FILES[FORMATS - 1] = {{"a.csv", "g", "t"},
                        {"a.jsonl", "g", "t"},
                        {"a.svm", "group.txt", "time.txt"},
                        {"a.x", "group.txt", "time.txt"},
                        {"a.h5", "g", "/t"}};

static void set_key(const char *key, const char *value)
{
    char text[64];
    snprintf(text, sizeof text, "%s=%s", key, value);
    set(text);
}

static struct dt_source *survey_format(int format, bool group, bool time)
{
    set("data.train_labels=");
    if (format == FORMATS - 1) {
        static float x[ROWS];
        static int32_t y[ROWS];
        static int64_t g[ROWS];
        static double t[ROWS];
        for (int row = 0; row < ROWS; row++)
            x[row] = (float)row, y[row] = label_of(row), g[row] = group_of(row),
            t[row] = time_of(row) * 86400;
        const struct dt_arrays arrays = {.rows = ROWS,
                                         .features = 1,
                                         .x = x,
                                         .label = y,
                                         .group = group ? g : NULL,
                                         .time = time ? t : NULL};
        struct dt_source *source;
        EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &source));
        return source;
    }
    set_key("data.train", FILES[format].train);
    set_key("data.train_labels", format == 3 ? "a.y" : "");
    set_key("data.group", group ? FILES[format].group : "");
    set_key("data.time", time ? FILES[format].time : "");
    set_key("data.ignore", format > 1 ? "" : group ? "t" : "g,t");
    struct dt_source *source = survey();
    ck_assert_int_eq(dt__source_schema(source)->features, 1);
    return source;
}

/* Kinds of splits: at random, by class, by group, by time, by group and time. */
START_TEST(all_formats_have_the_same_sides)
{
    static const struct {
        const char *stratify, *gap;
        bool group, time;
    } kinds[] = {{"no", "0", 0, 0},
                 {"yes", "0", 0, 0},
                 {"yes", "0", 1, 0},
                 {"yes", "3d", 0, 1},
                 {"no", "7", 1, 1}};
    const int kind = _i;
    char first[ROWS + 1], sides[ROWS + 1];
    put_files();
    set("data.eval_fraction=0.2"), set("data.test_fraction=0.1");
    set_key("data.stratify", kinds[kind].stratify);
    set_key("data.gap", kinds[kind].gap);
    for (int format = 0; format < FORMATS; format++) {
        struct dt_source *source = survey_format(format, kinds[kind].group, kinds[kind].time);
        struct dt_source *again, *held_out, *test;
        sides_read(source, format ? sides : first);
        if (format) ck_assert_str_eq(sides, first);
        const struct dt_schema *schema = dt__source_schema(source);
        if (format < FORMATS - 1) { /* surveys as a resume and `dtrain eval` do */
            EXPECT_OK(dt__source_survey(&config, DT_PART_TRAIN, schema, &again));
            sides_read(again, sides);
            ck_assert_str_eq(sides, first);
            ck_assert_uint_eq(dt__source_crc(again), dt__source_crc(source));
            EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, schema, &held_out));
            EXPECT_OK(dt__source_survey(&config, DT_PART_TEST, schema, &test));
            memset(sides, '-', ROWS);
            sides_mark(held_out, 'h', sides), sides_mark(test, 'e', sides);
            for (int row = 0; row < ROWS; row++)
                ck_assert_int_eq(sides[row], first[row] == 't' ? '-' : first[row]);
            dt__source_destroy(again), dt__source_destroy(held_out), dt__source_destroy(test);
        }
        dt__source_destroy(source);
    }
    int side_of[24] = {0}, count[128] = {0};
    for (int row = 0; row < ROWS; row++) {
        const int group = group_of(row), side = first[row];
        count[side]++;
        if (!kinds[kind].group || side == '-') continue;
        ck_assert(!side_of[group] || side_of[group] == side);
        side_of[group] = side;
    }
    ck_assert_int_eq(count['-'] > 0, kinds[kind].time);
    if (!kinds[kind].group) ck_assert_int_eq(count['e'], 24);
    if (kind == 1) ck_assert_int_eq(count['h'], 43);
}
END_TEST

/* Shards, and shards of these shards, are split by the groups and times of their rows. */
START_TEST(shards_keep_groups_and_times)
{
    char sides[ROWS + 1];
    put_files();
    set("data.train=a.csv"), set("data.group=g"), set("data.time=t"), set("data.ignore=t");
    EXPECT_OK(dt__shard_write(&config, "shards", 3));
    set("data.train=shards/*.h5"), set("data.group="), set("data.time="), set("data.ignore=");
    EXPECT_OK(dt__shard_write(&config, "again", 1));
    set("data.eval_fraction=0.3"), set("data.group=other");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "data.group=other: expected no value");
    set("data.group=");
    for (int again = 0; again < 2; again++) {
        if (again) set("data.train=again/*.h5");
        struct dt_source *source = survey();
        double latest = 0, least = 1e9;
        int side_of[24] = {0};
        sides_read(source, sides);
        for (int row = 0; row < ROWS; row++) {
            const int group = group_of(row), side = sides[row];
            ck_assert(!side_of[group] || side_of[group] == side);
            side_of[group] = side;
        }
        for (int group = 0; group < 24; group++) {
            double last = 0;
            for (int row = 0; row < ROWS; row++)
                if (group_of(row) == group && time_of(row) > last) last = time_of(row);
            if (side_of[group] == 't' && last > latest) latest = last;
            if (side_of[group] == 'h' && last < least) least = last;
        }
        ck_assert_double_le(latest, least);
        dt__source_destroy(source);
    }
}
END_TEST

START_TEST(missing_keys_are_errors_with_their_line)
{
    set("data.eval_fraction=0.5"), set("data.label=y"), set("data.train=a.csv");
    set("model.task=classify");
    put_text("a.csv", "g,t,x,y\nu,1,1,0\n ,2,2,1\nv,3,3,1\n");
    set("data.group=g");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "a.csv:3: data.group: the group is missing");
    set("data.group="), set("data.time=t"), set("data.ignore=g,t");
    EXPECT_OK(try_survey());
    put_text("a.csv", "g,t,x,y\nu,1,1,0\nu,NA,2,1\nv,3,3,1\n");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "a.csv:3: data.time: the time is missing ('NA')");
    put_text("a.csv", "g,t,x,y\nu,1,1,0\nu,2.1.2021,2,1\nv,3,3,1\n");
    EXPECT_FAIL(try_survey(), DT_EFORMAT,
                "a.csv:3: data.time: '2.1.2021' is not a number, unlike the times before it");
    put_text("a.csv", "g,t,x,y\nu,1/2/2021,1,0\nu,2/1/2021,2,1\nv,3/3/2021,3,1\n");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "data.time: no row shows whether the day or the month");
    put_text("a.jsonl", "{\"x\":1,\"t\":5,\"y\":0}\n{\"x\":2,\"t\":null,\"y\":1}\n");
    set("data.train=a.jsonl"), set("data.ignore=");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "a.jsonl:2: ");
    put_text("a.svm", "1 1:1\n0 1:2\n1 1:3\n"), put_text("t.txt", "1\n\n3\n");
    set("data.train=a.svm"), set("data.time=t.txt"), set("data.label=-1");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "t.txt:2: data.time: the time is missing");
    put_text("t.txt", "1\n2\n");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "t.txt: 2 lines for 3 rows of data");
    set("data.time=t.txt,t.txt");
    EXPECT_FAIL(try_survey(), DT_EMISMATCH, "data.time: 2 files for 1 data files");
    set("data.time="), set("data.gap=3");
    EXPECT_FAIL(try_survey(), DT_EUSAGE, "data.gap=3: expected data.time as well");
    set("data.gap=0"), set("data.time=/t"), set("data.train=a.h5");
    put_files();
    set("data.group=nowhere");
    EXPECT_FAIL(try_survey(), DT_EFORMAT, "/nowhere is missing");
}
END_TEST

/* The columns of keys may be at other places in a second file, and may be missing in data.eval. */
START_TEST(columns_of_keys_are_matched_by_name)
{
    struct dt_source *source, *eval;
    put_text("a.csv", "g,x,t,y\nu,1,5,0\nu,2,4,1\n");
    put_text("b.csv", "x,y,t,g\n3,0,1,v\n4,1,2,w\n");
    put_text("e.csv", "x,y,t\n3,0,1\n");
    set("data.train=a.csv,b.csv"), set("data.label=-1"), set("data.group=0"), set("data.time=2");
    set("data.test_fraction=0.5"), set("data.eval=e.csv");
    source = survey();
    ck_assert_int_eq(dt__source_schema(source)->features, 2);
    ck_assert_uint_eq(dt__source_rows(source), 2);
    EXPECT_OK(dt__source_survey(&config, DT_PART_EVAL, dt__source_schema(source), &eval));
    ck_assert_uint_eq(dt__source_rows(eval), 1);
    dt__source_destroy(eval);
    EXPECT_OK(dt__source_survey(&config, DT_PART_TEST, dt__source_schema(source), &eval));
    struct dt_table *table = open_table(eval);
    /* a row of group u, whose times are the latest */
    ck_assert_float_eq(read_row(table, 0).x[0], 1);
    ck_assert_float_eq(read_row(table, 1).x[0], 2);
    dt__table_destroy(table);
    dt__source_destroy(eval), dt__source_destroy(source);
}
END_TEST

DATA_SUITE("sides", {all_formats_have_the_same_sides, 5}, {shards_keep_groups_and_times, 1},
           {missing_keys_are_errors_with_their_line, 1}, {columns_of_keys_are_matched_by_name, 1})
