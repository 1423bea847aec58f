/* TensorBoard event files, Prometheus gauges and traces, read by independent parsers. Fails if a
 * checksum, length or field is wrong, if a value has another name, or if a collector would refuse
 * the file. */
#include "unit/suite.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>

#include "report/report.h"

static char scratch[64];
static struct dt_report *report;

static void set_up(void)
{
    scratch_enter(scratch);
    EXPECT_OK(dt__report_open(".", &report));
}

static void write_train(int step, double loss)
{
    struct dt_json *record = dt__record_begin(report, "train");
    dt__json_int(record, "step", step);
    dt__json_real(record, "loss", loss);
    dt__json_real(record, "lr", 0.125);
    dt__json_real(record, "samples_per_sec", 1000);
    dt__json_text(record, "note", "no number");
    EXPECT_OK(dt__record_end(report));
}

/* ---- TensorBoard ---------------------------------------------------------------------------- */

/* Returns the CRC-32C, computed bit by bit (RFC 3720, B.4), masked as in TensorFlow's
 * record_writer.cc. */
static uint32_t masked(const unsigned char *bytes, size_t length)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

struct bytes {
    const unsigned char *at, *end;
};

static uint64_t take_varint(struct bytes *from)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        ck_assert(from->at < from->end && shift < 64);
        value |= (uint64_t)(*from->at & 127) << shift;
        if (!(*from->at++ & 128)) return value;
    }
}

static struct bytes take(struct bytes *from, size_t length)
{
    ck_assert(length <= (size_t)(from->end - from->at));
    struct bytes taken = {from->at, from->at + length};
    from->at += length;
    return taken;
}

struct field {
    int number;
    uint64_t varint;
    struct bytes bytes;
};

static bool next_field(struct bytes *from, struct field *out)
{
    if (from->at == from->end) return false;
    uint64_t key = take_varint(from);
    *out = (struct field){.number = (int)(key >> 3)};
    switch (key & 7) {
    case 0:
        out->varint = take_varint(from);
        break;
    case 1:
        out->bytes = take(from, 8);
        break;
    case 2:
        out->bytes = take(from, take_varint(from));
        break;
    case 5:
        out->bytes = take(from, 4);
        break;
    default:
        ck_abort_msg("wire type %d", (int)(key & 7));
    }
    return true;
}

/* Adds the event as a line, such as "step 5 train/loss=0.5 train/lr=0.125". */
static void add_event(struct bytes event, struct dt_text *out)
{
    struct field field, part, inner;
    uint64_t step = 0;
    struct dt_text rest = {0};
    while (next_field(&event, &field)) {
        if (field.number == 1) ck_assert_int_eq(field.bytes.end - field.bytes.at, 8);
        if (field.number == 2) step = field.varint;
        if (field.number == 3)
            EXPECT_OK(dt__text_add(&rest, " version %.*s", (int)(field.bytes.end - field.bytes.at),
                                   field.bytes.at));
        if (field.number == 7) {
            ck_assert(next_field(&field.bytes, &part) && part.number == 1 && part.varint == 1);
            EXPECT_OK(dt__text_add(&rest, " start"));
        }
        if (field.number != 5) continue;
        while (next_field(&field.bytes, &part)) {
            ck_assert_int_eq(part.number, 1);
            while (next_field(&part.bytes, &inner)) {
                float value;
                if (inner.number == 1)
                    EXPECT_OK(dt__text_add(&rest, " %.*s", (int)(inner.bytes.end - inner.bytes.at),
                                           inner.bytes.at));
                if (inner.number != 2) continue;
                memcpy(&value, inner.bytes.at, sizeof value);
                EXPECT_OK(dt__text_add(&rest, "=%g", (double)value));
            }
        }
    }
    EXPECT_OK(dt__text_add(out, "step %d%s\n", (int)step, rest.data ? rest.data : ""));
    dt__text_free(&rest);
}

static void expect_events(const char *expected)
{
    char path[512] = "";
    struct dirent *entry;
    DIR *dir = opendir("tensorboard");
    while (dir && (entry = readdir(dir)))
        if (!strncmp(entry->d_name, "events.out.tfevents.", 20))
            snprintf(path, sizeof path, "tensorboard/%s", entry->d_name);
    closedir(dir);
    unsigned char *file;
    size_t length;
    struct dt_text found = {0};
    EXPECT_OK(dt__file_read(path, 1 << 20, &file, &length));
    struct bytes left = {file, file + length};
    while (left.at < left.end) {
        uint64_t size;
        uint32_t crc;
        struct bytes head = take(&left, 8);
        memcpy(&size, head.at, 8);
        memcpy(&crc, take(&left, 4).at, 4);
        ck_assert_uint_eq(crc, masked(head.at, 8));
        struct bytes event = take(&left, size);
        memcpy(&crc, take(&left, 4).at, 4);
        ck_assert_uint_eq(crc, masked(event.at, size));
        add_event(event, &found);
    }
    ck_assert_str_eq(found.data, expected);
    dt__text_free(&found);
    dt_free(file);
}

START_TEST(records_are_scalars)
{
    set_up();
    EXPECT_OK(dt__report_tensorboard(report, "."));
    write_train(5, 0.5);
    write_train(300, NAN); /* null in the record, and no scalar */
    EXPECT_OK(dt__report_close(report));
    expect_events("step 0 version brain.Event:2\n"
                  "step 5 start\n"
                  "step 5 train/loss=0.5 train/lr=0.125 train/samples_per_sec=1000\n"
                  "step 300 train/lr=0.125 train/samples_per_sec=1000\n");
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_place_that_cannot_be_made_is_an_error)
{
    set_up();
    fclose(fopen("tensorboard", "w"));
    EXPECT_FAIL(dt__report_tensorboard(report, "."), DT_EIO, "tensorboard");
    EXPECT_OK(dt__report_close(report));
    scratch_leave(scratch);
}
END_TEST

/* ---- Prometheus ----------------------------------------------------------------------------- */

static void expect_line(const char *text, const char *line)
{
    char *at = strstr(text, line);
    ck_assert_msg(at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n',
                  "no line '%s' in:\n%s", line, text);
}

START_TEST(records_are_gauges)
{
    char *text;
    size_t length;
    set_up();
    EXPECT_OK(dt__report_prometheus(report, "x.prom", "runs/a \"b\"\\c"));
    write_train(5, 0.5);
    write_train(6, 0.25);
    EXPECT_OK(dt__file_read("x.prom", 1 << 20, &text, &length));
    expect_line(text, "dtrain_running{run=\"runs/a \\\"b\\\"\\\\c\"} 1");
    expect_line(text, "# TYPE dtrain_train_loss gauge");
    expect_line(text, "dtrain_train_loss{run=\"runs/a \\\"b\\\"\\\\c\"} 0.25");
    expect_line(text, "dtrain_train_step{run=\"runs/a \\\"b\\\"\\\\c\"} 6");
    expect_line(text, "dtrain_train_samples_per_second{run=\"runs/a \\\"b\\\"\\\\c\"} 1000");
    ck_assert_ptr_null(strstr(text, "note"));
    dt_free(text);
    dt__record_begin(report, "final");
    EXPECT_OK(dt__record_end(report));
    EXPECT_OK(dt__file_read("x.prom", 1 << 20, &text, &length));
    expect_line(text, "dtrain_running{run=\"runs/a \\\"b\\\"\\\\c\"} 0");
    dt_free(text);
    EXPECT_OK(dt__report_close(report));
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_name_that_no_collector_reads_is_refused)
{
    set_up();
    EXPECT_FAIL(dt__report_prometheus(report, "x.txt", "r"), DT_EUSAGE, "end in .prom");
    EXPECT_OK(dt__report_close(report));
    scratch_leave(scratch);
}
END_TEST

/* The run continues without the file, and prints one warning. */
START_TEST(a_format_that_fails_does_not_end_the_run)
{
    dt_log_set_level(DT_LOG_ERROR);
    set_up();
    EXPECT_OK(dt__report_prometheus(report, "/none/such/x.prom", "r"));
    write_train(5, 0.5);
    write_train(6, 0.5);
    EXPECT_OK(dt__report_close(report));
    scratch_leave(scratch);
}
END_TEST

/* ---- trace ---------------------------------------------------------------------------------- */

static double now = 1000;
double __wrap_dt__clock_secs(void);
double __wrap_dt__clock_secs(void)
{
    return now;
}

static void pass(struct dt_trace *trace, double secs, enum dt_phase next, uint64_t step)
{
    now += secs;
    dt__trace_phase(trace, next, step);
}

/* Adds a rank's events as a line: "[name] phase@start+duration/step", in microseconds. */
static void add_trace(json_t *file, int rank, struct dt_text *out)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(file, "traceEvents"), i, event)
    {
        if (json_integer_value(json_object_get(event, "pid")) != rank) continue;
        json_t *args = json_object_get(event, "args");
        if (!strcmp(json_string_value(json_object_get(event, "ph")), "M"))
            EXPECT_OK(dt__text_add(out, "[%s]", json_string_value(json_object_get(args, "name"))));
        else
            EXPECT_OK(dt__text_add(out, " %s@%g+%g/%d",
                                   json_string_value(json_object_get(event, "name")),
                                   json_number_value(json_object_get(event, "ts")),
                                   json_number_value(json_object_get(event, "dur")),
                                   (int)json_integer_value(json_object_get(args, "step"))));
    }
}

START_TEST(phases_are_events)
{
    size_t length;
    char *text;
    struct dt_text found = {0};
    struct dt_trace *trace, *other;
    scratch_enter(scratch);
    dt__trace_phase(NULL, DT_PHASE_DATA, 1);
    EXPECT_OK(dt__trace_create("rank 0 bank \"a\"", &trace));
    EXPECT_OK(dt__trace_create("rank 1 worker b", &other));
    pass(trace, 1, DT_PHASE_DATA, 7); /* idle until now: not in the trace */
    pass(trace, 0.25, DT_PHASE_COMPUTE, 7);
    pass(trace, 0.5, DT_PHASE_WAIT, 7); /* too short for an event: the phase compute continues */
    pass(trace, 1e-7, DT_PHASE_COMPUTE, 7);
    pass(trace, 0.5, DT_PHASE_COMPUTE, 7); /* the phase does not change */
    pass(trace, 0.5, DT_PHASE_EXCHANGE, 7);
    dt__trace_phase(other, DT_PHASE_SERVE, 7);
    now += 0.125;
    const char *bytes = dt__trace_bytes(trace, &length);
    char *both = malloc(2 * length);
    memcpy(both, bytes, length);
    memcpy(both + length, dt__trace_bytes(other, &length), length);
    EXPECT_OK(dt__trace_write("trace.json", both, 2));
    EXPECT_OK(dt__file_read("trace.json", 1 << 20, &text, &length));
    json_t *file = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(file);
    add_trace(file, 0, &found);
    add_trace(file, 1, &found);
    ck_assert_str_eq(found.data,
                     "[rank 0 bank \"a\"] data@1e+06+250000/7 compute@1.25e+06+1.5e+06/7 "
                     "exchange and update@2.75e+06+125000/7"
                     "[rank 1 worker b] serve@2.75e+06+125000/7");
    json_decref(file);
    dt_free(text), dt__text_free(&found), free(both);
    dt__trace_destroy(trace), dt__trace_destroy(other);
    scratch_leave(scratch);
}
END_TEST

/* A long trace keeps only its end. */
START_TEST(a_trace_is_bounded)
{
    size_t before, after;
    struct dt_trace *trace;
    EXPECT_OK(dt__trace_create("rank 0 bank a", &trace));
    dt__trace_bytes(trace, &before);
    for (uint64_t step = 1; step < 100000; step++)
        pass(trace, 0.001, step % 2 ? DT_PHASE_COMPUTE : DT_PHASE_EXCHANGE, step);
    dt__trace_bytes(trace, &after);
    ck_assert_uint_eq(before, after);
    dt__trace_destroy(trace);
}
END_TEST

SUITE("formats", phases_are_events, a_trace_is_bounded, records_are_scalars,
      a_place_that_cannot_be_made_is_an_error, records_are_gauges,
      a_name_that_no_collector_reads_is_refused, a_format_that_fails_does_not_end_the_run)
