/* Records as JSON lines, incomplete lines, a full disk, the progress line, and status.json. */
#include "unit/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "report/report.h"

/* ---- counted and failing calls -------------------------------------------------------------- */

static int writes;           /* number of writes, except to stderr */
static long disk_bytes = -1; /* bytes left on the disk; -1: no limit */
static bool interrupted;     /* a signal interrupts the next write */
static bool fsync_fails, close_fails;
ssize_t __real_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    if (fd == STDERR_FILENO) return __real_write(fd, bytes, length);
    writes++;
    if (interrupted) {
        interrupted = false;
        errno = EINTR;
        return -1;
    }
    if (disk_bytes < 0) return __real_write(fd, bytes, length);
    errno = ENOSPC;
    if (disk_bytes == 0) return -1;
    if ((size_t)disk_bytes < length) length = (size_t)disk_bytes;
    disk_bytes -= (long)length;
    return __real_write(fd, bytes, length);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    errno = EIO;
    return fsync_fails ? -1 : __real_fsync(fd);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int result = __real_close(fd);
    errno = EIO;
    return close_fails ? -1 : result;
}

static double clock_ahead; /* seconds that the clock is ahead */
double __real_dt__clock_secs(void);
double __wrap_dt__clock_secs(void);
double __wrap_dt__clock_secs(void)
{
    return __real_dt__clock_secs() + clock_ahead;
}

static bool other_appends; /* another process appends a line after the next read of the file */
static const char OTHER_LINE[] = "{\"kind\":\"final\",\"step\":9}\n";
ssize_t __real_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset)
{
    const ssize_t got = __real_pread(fd, bytes, length, offset);
    if (other_appends) ck_assert_int_gt(__real_write(fd, OTHER_LINE, strlen(OTHER_LINE)), 0);
    other_appends = false;
    return got;
}

/* ---- helpers -------------------------------------------------------------------------------- */

static char scratch[64];
static struct dt_report *report;

static void set_up(const char *content)
{
    scratch_enter(scratch);
    if (content) EXPECT_OK(dt__file_write("metrics.jsonl", content, strlen(content), NULL, NULL));
    EXPECT_OK(dt__report_open(".", &report));
}

static void tear_down(void)
{
    EXPECT_OK(dt__report_close(report));
    scratch_leave(scratch);
}

static void expect_file(const char *text)
{
    char *bytes;
    size_t length;
    EXPECT_OK(dt__file_read("metrics.jsonl", 1 << 20, &bytes, &length));
    ck_assert_str_eq(bytes, text);
    dt_free(bytes);
}

static void write_record(int step)
{
    struct dt_json *record = dt__record_begin(report, "train");
    dt__json_int(record, "step", step);
    EXPECT_OK(dt__record_end(report));
}

/* ---- records -------------------------------------------------------------------------------- */

START_TEST(a_record_is_one_line_in_one_write)
{
    set_up(NULL);
    const uint64_t counts[] = {1, UINT64_MAX};
    writes = 0;
    struct dt_json *record = dt__record_begin(report, "final");
    dt__json_int(record, "step", INT64_MIN);
    dt__json_real(record, "loss", 0.1 + 0.2);
    dt__json_real(record, "lr", 0.1);
    dt__json_real(record, "nan", NAN);
    dt__json_real(record, "inf", -INFINITY);
    dt__json_text(record, "status", "completed");
    dt__json_counts(record, "histogram", counts, 2);
    dt__json_counts(record, "empty", NULL, 0);
    EXPECT_OK(dt__record_end(report));
    ck_assert_int_eq(writes, 1);
    expect_file("{\"kind\":\"final\",\"step\":-9223372036854775808,\"loss\":0.30000000000000004,"
                "\"lr\":0.1,\"nan\":null,\"inf\":null,\"status\":\"completed\","
                "\"histogram\":[1,18446744073709551615],\"empty\":[]}\n");
    tear_down();
}
END_TEST

/* Any string makes a line that a JSON parser accepts, and valid UTF-8 comes back unchanged. */
START_TEST(strings_are_escaped)
{
    const char *const values[] = {"",
                                  "a\"b\\c/d",
                                  "line\nline\r\t\x01\x7f",
                                  "caf\xc3\xa9 \xf0\x9f\x98\x80",
                                  "bad \xff\xc3 utf-8",
                                  "\xed\xa0\x80"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct dt_json json = {0};
        dt__json_start(&json);
        dt__json_text(&json, "text", values[i]);
        EXPECT_OK(dt__json_end(&json));
        ck_assert_ptr_null(strchr(json.text.data, '\n'));
        json_t *parsed = json_loads(json.text.data, 0, NULL);
        ck_assert_msg(parsed != NULL, "not JSON: %s", json.text.data);
        const char *back = json_string_value(json_object_get(parsed, "text"));
        if (i < 4) ck_assert_str_eq(back, values[i]);
        if (i == 4) ck_assert_str_eq(back, "bad \\xFF\\xC3 utf-8");
        if (i == 5) ck_assert_str_eq(back, "\\xED\\xA0\\x80");
        json_decref(parsed);
        dt__json_free(&json);
    }
}
END_TEST

/* Probabilities are the shortest texts that are read back as the same floats. */
START_TEST(floats_read_back)
{
    enum { COUNT = 1000 };
    float values[COUNT];
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < COUNT; i++)
        values[i] = (float)exp(-30 * dt__rng_uniform(&rng, i));
    values[0] = 0.1f;
    values[1] = NAN;
    struct dt_json json = {0};
    dt__json_start(&json);
    dt__json_floats(&json, "p", values, COUNT);
    EXPECT_OK(dt__json_end(&json));
    ck_assert_int_eq(strncmp(json.text.data, "{\"p\":[0.1,null,", 15), 0);
    json_t *parsed = json_loads(json.text.data, 0, NULL);
    json_t *array = json_object_get(parsed, "p");
    ck_assert_uint_eq(json_array_size(array), COUNT);
    for (size_t i = 2; i < COUNT; i++)
        ck_assert(values[i] == (float)json_number_value(json_array_get(array, i)));
    json_decref(parsed);
    dt__json_free(&json);
}
END_TEST

START_TEST(metrics_omit_what_does_not_apply)
{
    struct dt_metric_values values = {.rows = 10,
                                      .loss = 0.5,
                                      .accuracy = 0.75,
                                      .top5 = NAN,
                                      .auc = 0.5,
                                      .precision = NAN,
                                      .recall = NAN,
                                      .rmse = NAN,
                                      .mae = NAN,
                                      .r2 = NAN,
                                      .f1 = NAN,
                                      .balanced_accuracy = NAN,
                                      .average_precision = NAN,
                                      .brier = NAN,
                                      .ece = NAN,
                                      .mape = NAN};
    const uint64_t confusion[] = {1, 2, 3, 4};
    const double reals[] = {0.5, NAN};
    char *texts[] = {"a\"b", "c"};
    struct dt_json json = {0};
    dt__json_start(&json);
    dt__json_metrics(&json, &values);
    dt__json_confusion(&json, confusion, 2);
    dt__json_reals(&json, "reals", reals, 2);
    dt__json_texts(&json, "texts", texts, 2);
    dt__json_texts(&json, "none", NULL, 0);
    EXPECT_OK(dt__json_end(&json));
    ck_assert_str_eq(
        json.text.data,
        "{\"rows\":10,\"loss\":0.5,\"accuracy\":0.75,\"auc\":0.5,\"confusion\":[[1,2],[3,4]],"
        "\"reals\":[0.5,null],\"texts\":[\"a\\\"b\",\"c\"],\"none\":[]}");
    values = (struct dt_metric_values){.rows = 1,
                                       .loss = NAN,
                                       .accuracy = NAN,
                                       .top5 = NAN,
                                       .auc = NAN,
                                       .precision = NAN,
                                       .recall = NAN,
                                       .rmse = 1,
                                       .mae = 2,
                                       .r2 = -3,
                                       .f1 = NAN,
                                       .balanced_accuracy = NAN,
                                       .average_precision = NAN,
                                       .brier = NAN,
                                       .ece = NAN,
                                       .mape = NAN};
    dt__json_start(&json);
    dt__json_metrics(&json, &values);
    EXPECT_OK(dt__json_end(&json));
    ck_assert_str_eq(json.text.data, "{\"rows\":1,\"loss\":null,\"rmse\":1,\"mae\":2,\"r2\":-3}");
    dt__json_free(&json);
}
END_TEST

/* ---- incomplete and missing files ----------------------------------------------------------- */

START_TEST(records_are_appended)
{
    set_up("{\"a\":1}\n");
    write_record(1);
    expect_file("{\"a\":1}\n{\"kind\":\"train\",\"step\":1}\n");
    tear_down();
}
END_TEST

/* The bank may live a moment longer than its mpirun. Fails if the launcher then cuts off a line of
 * the bank. */
START_TEST(appending_cuts_no_other_line)
{
    set_up("{\"a\":1}\n");
    other_appends = true;
    EXPECT_OK(dt__report_append(".", "{\"b\":1}\n"));
    expect_file("{\"a\":1}\n{\"kind\":\"final\",\"step\":9}\n{\"b\":1}\n");
    tear_down();
}
END_TEST

/* A kill during a write leaves half a line; the next record must not be appended to it. */
START_TEST(an_incomplete_last_line_is_cut)
{
    const char *const incomplete[] = {"{\"a\":1}\n{\"b", "{\"b", "", "{\"a\":1}\n",
                                      "{\"a\":1}\n\n"};
    const char *const whole[] = {"{\"a\":1}\n", "", "", "{\"a\":1}\n", "{\"a\":1}\n\n"};
    for (int i = 0; i < 5; i++) {
        set_up(incomplete[i]);
        expect_file(whole[i]);
        tear_down();
    }
}
END_TEST

/* The incomplete line is longer than one read of the file's end. */
START_TEST(a_long_incomplete_line_is_cut)
{
    for (size_t length = 4080; length < 4105; length++) {
        char text[5000] = "{\"a\":1}\n";
        memset(text + 8, 'x', length);
        set_up(text);
        expect_file("{\"a\":1}\n");
        tear_down();
    }
}
END_TEST

/* Lines that do not fit on the disk wait for the next record; the file never has a part of a
 * line. */
START_TEST(a_full_disk_leaves_whole_lines)
{
    dt_log_set_level(DT_LOG_ERROR);
    for (long bytes = 0; bytes < 26; bytes++) {
        set_up(NULL);
        write_record(1);
        disk_bytes = bytes;
        write_record(2);
        write_record(3);
        disk_bytes = -1;
        expect_file("{\"kind\":\"train\",\"step\":1}\n");
        write_record(4);
        expect_file("{\"kind\":\"train\",\"step\":1}\n{\"kind\":\"train\",\"step\":2}\n"
                    "{\"kind\":\"train\",\"step\":3}\n{\"kind\":\"train\",\"step\":4}\n");
        tear_down();
    }
}
END_TEST

/* Lines that still wait are written at the close, which fails if they do not fit. */
START_TEST(a_disk_that_stays_full_is_an_error)
{
    dt_log_set_level(DT_LOG_ERROR);
    for (long bytes = 0; bytes < 60; bytes += 59) {
        set_up(NULL);
        disk_bytes = 0;
        write_record(1);
        write_record(2);
        disk_bytes = bytes;
        const dt_status status = dt__report_close(report);
        disk_bytes = -1;
        ck_assert_int_eq(status, bytes ? DT_OK : DT_EIO);
        if (status) ck_assert_ptr_nonnull(strstr(dt_error_text(), "cannot write: No space left"));
        expect_file(status ? ""
                           : "{\"kind\":\"train\",\"step\":1}\n{\"kind\":\"train\",\"step\":2}\n");
        scratch_leave(scratch);
    }
}
END_TEST

/* The memory of the lines that wait has a limit. */
START_TEST(waiting_records_have_a_limit)
{
    enum { LONG = 1 << 20 };
    char *line;
    int accepted = 0;
    dt_log_set_level(DT_LOG_ERROR);
    set_up(NULL);
    ck_assert_ptr_nonnull(line = calloc(1, LONG));
    memset(line, ' ', LONG - 1);
    memcpy(line, "{}", 2);
    disk_bytes = 0;
    while (accepted < 100 && !dt__record_line(report, line))
        accepted++;
    ck_assert_int_eq(accepted, 16);
    free(line);
    disk_bytes = -1;
    tear_down();
}
END_TEST

START_TEST(an_interrupted_write_is_continued)
{
    set_up(NULL);
    interrupted = true;
    write_record(1);
    expect_file("{\"kind\":\"train\",\"step\":1}\n");
    tear_down();
}
END_TEST

/* If the file is deleted during the run, the next record, or the close, writes all records
 * again. */
START_TEST(deleted_records_are_restored)
{
    dt_log_set_level(DT_LOG_ERROR);
    set_up("{\"a\":1}\n");
    write_record(1);
    ck_assert_int_eq(unlink("metrics.jsonl"), 0);
    write_record(2);
    expect_file("{\"a\":1}\n{\"kind\":\"train\",\"step\":1}\n{\"kind\":\"train\",\"step\":2}\n");
    ck_assert_int_eq(unlink("metrics.jsonl"), 0);
    EXPECT_OK(dt__report_close(report));
    expect_file("{\"a\":1}\n{\"kind\":\"train\",\"step\":1}\n{\"kind\":\"train\",\"step\":2}\n");
    scratch_leave(scratch);
}
END_TEST

START_TEST(records_that_cannot_be_restored_are_an_error)
{
    dt_log_set_level(DT_LOG_ERROR);
    set_up(NULL);
    write_record(1);
    ck_assert_int_eq(unlink("metrics.jsonl"), 0);
    ck_assert_int_eq(mkdir("metrics.jsonl", 0777), 0);
    EXPECT_FAIL(dt__report_close(report), DT_EIO, "metrics.jsonl");
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_replaced_file_is_appended_to)
{
    dt_log_set_level(DT_LOG_ERROR);
    set_up("{\"a\":1}\n");
    EXPECT_OK(dt__file_write("metrics.jsonl", "{\"b\":2}\n", 8, NULL, NULL));
    write_record(1);
    expect_file("{\"b\":2}\n{\"kind\":\"train\",\"step\":1}\n");
    tear_down();
}
END_TEST

START_TEST(a_failed_last_sync_or_close_is_an_error)
{
    set_up(NULL);
    fsync_fails = true;
    EXPECT_FAIL(dt__report_close(report), DT_EIO, "cannot sync");
    fsync_fails = false;
    EXPECT_OK(dt__report_open(".", &report));
    close_fails = true;
    EXPECT_FAIL(dt__report_close(report), DT_EIO, "cannot close");
    close_fails = false;
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_missing_directory_is_an_error)
{
    EXPECT_FAIL(dt__report_open("/none/such", &report), DT_EIO,
                "/none/such/metrics.jsonl: cannot open: No such file");
    EXPECT_OK(dt__report_close(NULL));
}
END_TEST

/* ---- progress ------------------------------------------------------------------------------- */

/* Redirects stderr to a file, which is not a terminal. */
static void redirect_stderr(void)
{
    int fd = open("stderr", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static void expect_stderr(const char *text)
{
    char *bytes;
    size_t length;
    EXPECT_OK(dt__file_read("stderr", 1 << 20, &bytes, &length));
    ck_assert_str_eq(bytes, text);
    dt_free(bytes);
}

/* A file gets a plain progress line at once, and then one every ten seconds. */
START_TEST(progress_in_a_file_is_sparse)
{
    unsetenv("OMPI_COMM_WORLD_RANK");
    scratch_enter(scratch);
    redirect_stderr();
    EXPECT_OK(dt__report_open(".", &report));
    struct dt_progress progress = {1, 100, 0.25, 0.5, 0.1, 1234, 5, 3723, "  best rmse 2"};
    dt__progress_show(report, &progress, false);
    progress.step = 2;
    clock_ahead = 9;
    dt__progress_show(report, &progress, false);
    progress.step = 3;
    progress.secs_left = 59.9;
    clock_ahead = 10.5;
    dt__progress_show(report, &progress, false);
    progress.step = 4;
    progress.secs_left = NAN;
    dt__progress_show(report, &progress, true);
    expect_stderr(
        "dtrain: step 1/100  epoch 0.25  loss 0.5  best rmse 2  1234 samples/s  1:02:03 left\n"
        "dtrain: step 3/100  epoch 0.25  loss 0.5  best rmse 2  1234 samples/s  0:59 left\n"
        "dtrain: step 4/100  epoch 0.25  loss 0.5  best rmse 2  1234 samples/s  time left "
        "unknown\n");
    tear_down();
}
END_TEST

/* ---- status --------------------------------------------------------------------------------- */

static int warnings;

static void count_warnings(void *arg, enum dt_log_level level, const char *line)
{
    (void)arg, (void)line;
    warnings += level == DT_LOG_WARN;
}

/* status.json exists while the report is open. Fails if a full disk is reported every two
 * seconds. */
START_TEST(a_failed_status_is_reported_once)
{
    const struct dt_progress progress = {.last_step = 100};
    set_up(NULL);
    dt_log_set_sink(count_warnings, NULL);
    dt__run_status_write(report, &progress, 0, NULL);
    ck_assert_int_eq(access("status.json", F_OK), 0);
    disk_bytes = 0;
    for (int i = 0; i < 3; i++)
        dt__run_status_write(report, &progress, 0, NULL);
    dt_log_set_sink(NULL, NULL);
    disk_bytes = -1;
    ck_assert_int_eq(warnings, 1);
    tear_down();
}
END_TEST

SUITE("report", a_record_is_one_line_in_one_write, strings_are_escaped, floats_read_back,
      metrics_omit_what_does_not_apply, records_are_appended, appending_cuts_no_other_line,
      an_incomplete_last_line_is_cut, a_long_incomplete_line_is_cut, a_full_disk_leaves_whole_lines,
      a_disk_that_stays_full_is_an_error, waiting_records_have_a_limit,
      an_interrupted_write_is_continued, deleted_records_are_restored,
      records_that_cannot_be_restored_are_an_error, a_replaced_file_is_appended_to,
      a_failed_last_sync_or_close_is_an_error, a_missing_directory_is_an_error,
      progress_in_a_file_is_sparse, a_failed_status_is_reported_once)
