/* Reading a run directory. Fails if curves go back in time, if a branch that a resume abandoned is
 * not dropped, if a best model never existed, or if incomplete lines are not skipped. */
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "report/history.h"
#include "state/state.h"
#include "unit/suite.h"

static char home[64];
static struct dt_history *history;

static void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
}

static void enter(const char *records)
{
    scratch_enter(home);
    put("metrics.jsonl", records);
}

static void read_run(void)
{
    EXPECT_OK(dt_history_read("./", &history));
}

static void leave(void)
{
    dt_history_free(history);
    scratch_leave(home);
}

#define START(step) "{\"kind\":\"start\",\"step\":" #step ",\"mode\":\"sync\"}\n"
#define TRAIN(step, loss) "{\"kind\":\"train\",\"step\":" #step ",\"loss\":" #loss "}\n"
#define EVAL(step, value)                                                                          \
    "{\"kind\":\"eval\",\"step\":" #step ",\"accuracy\":" #value ",\"confusion\":[[1,2],[3," #step \
    "]]}\n"
#define FINAL(step, status) "{\"kind\":\"final\",\"step\":" #step ",\"status\":\"" status "\"}\n"

START_TEST(the_last_record_of_a_kind_and_step_counts)
{
    size_t best;
    double value;
    enter(START(0) TRAIN(10, 1) EVAL(10, 0.5) TRAIN(20, 2) EVAL(20, 0.9) EVAL(20, 0.7) TRAIN(20, 3)
              TRAIN(15, 4) EVAL(30, 0.7) FINAL(30, "completed"));
    read_run();
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 3);
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, 1, "step"), 15);
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, 2, "loss"), 3);
    ck_assert_double_nan(dt_history_real(history, DT_RECORD_TRAIN, 2, "lr"));
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_EVAL), 3);
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_uint_eq(best, 1);
    ck_assert_double_eq(value, 0.7);
    ck_assert_str_eq(history->metric, "accuracy");
    ck_assert_str_eq(history->status, "completed");
    ck_assert_str_eq(dt_history_text(history, DT_RECORD_START, 0, "mode"), "sync");
    ck_assert_ptr_null(dt_history_text(history, DT_RECORD_START, 1, "mode"));
    leave();
}
END_TEST

/* Only the confusion matrices of the last and of the best evaluation are kept. */
START_TEST(two_confusion_matrices_are_kept)
{
    enter(EVAL(1, 0.1) EVAL(2, 0.9) EVAL(3, 0.2) EVAL(4, 0.95) EVAL(5, 0.5) EVAL(6, 0.6));
    read_run();
    const size_t sizes[] = {0, 0, 0, 2, 0, 2};
    for (size_t i = 0; i < 6; i++)
        ck_assert_uint_eq(json_array_size(json_object_get(
                              dt__history_record(history, DT_RECORD_EVAL, i), "confusion")),
                          sizes[i]);
    leave();
}
END_TEST

START_TEST(an_abandoned_branch_is_dropped)
{
    size_t best;
    double value;
    enter(START(0) TRAIN(10, 1) EVAL(10, 0.5) TRAIN(20, 2)
              EVAL(20, 0.9) "{\"kind\":\"change\",\"step\":10,\"train.lr\":\"1 -> 2\"}\n" START(10)
                  TRAIN(15, 5));
    read_run();
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 2);
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_double_eq(value, 0.5);
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_START), 2);
    ck_assert_str_eq(dt_history_text(history, DT_RECORD_CHANGE, 0, "train.lr"), "1 -> 2");
    ck_assert_str_eq(history->status, "interrupted");
    leave();
}
END_TEST

/* The status is that of the last start. The cases: a completed run that was resumed, and a process
 * that is alive, that has ended but was not yet waited for, or whose number another process has
 * now. */
START_TEST(the_status_is_that_of_the_last_start)
{
    char host[65] = "", lock[128];
    enter(START(0) TRAIN(10, 1) FINAL(10, "completed") START(10));
    read_run();
    ck_assert_str_eq(history->status, "interrupted");
    dt_history_free(history);
    gethostname(host, sizeof host - 1);
    snprintf(lock, sizeof lock, "pid %ld on %s\n", (long)getpid(), host);
    put("lock", lock);
    read_run();
    ck_assert_str_eq(history->status, "running");
    dt_history_free(history);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    snprintf(lock, sizeof lock, "pid %ld on %s\n", (long)child, host);
    put("lock", lock);
    read_run();
    ck_assert_str_eq(history->status, "interrupted");
    dt_history_free(history);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    /* another process has the number now, after a restart of the host or container */
    snprintf(lock, sizeof lock, "pid %ld on %s\nstart 1\n", (long)getpid(), host);
    put("lock", lock);
    read_run();
    ck_assert_str_eq(history->status, "interrupted");
    dt_history_free(history);
    int fd;
    EXPECT_OK(dt__lock_take(".", &fd));
    read_run();
    ck_assert_str_eq(history->status, "running");
    dt_history_free(history);
    dt__lock_drop(fd);
    put("lock", "pid 17 on another-host\n");
    read_run();
    ck_assert_str_eq(history->status, "running");
    leave();
}
END_TEST

START_TEST(incomplete_and_unknown_lines_are_skipped)
{
    enter("{\"kind\":\"train\",\"ste"
          "\n"
          "[1,2]\n7\n\n{}\n{\"kind\":3}\n{\"kind\":\"new\",\"step\":1}\n"
          "{\"kind\":\"train\",\"step\":-5,\"loss\":\"x\"}\n{\"kind\":\"eval\"}\n" TRAIN(
              3, 1) "{\"kind\":\"train\",\"step\":4,\"loss\":0.");
    read_run();
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 2);
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, 0, "step"), 0);
    ck_assert_double_nan(dt_history_real(history, DT_RECORD_TRAIN, 0, "loss"));
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, 1, "step"), 3);
    ck_assert_uint_eq(json_object_size(history->options), 0);
    ck_assert_str_eq(history->metric, "loss");
    leave();
}
END_TEST

START_TEST(the_configuration_is_read)
{
    enter(EVAL(1, 0.5));
    put("config.ini",
        "; written\n[run]\ndir = a b = c\nseed =\n\n[eval]\nmetric = rmse\nnew_key = 1\n");
    read_run();
    ck_assert_uint_eq(json_object_size(history->options), 4);
    ck_assert_str_eq(dt_history_option(history, "run.dir"), "a b = c");
    ck_assert_str_eq(dt_history_option(history, "run.seed"), "");
    ck_assert_str_eq(dt_history_option(history, "eval.new_key"), "1");
    ck_assert_ptr_null(dt_history_option(history, "dir"));
    ck_assert_str_eq(history->metric, "rmse");
    ck_assert(!history->more_is_better);
    leave();
}
END_TEST

/* The start record names the metric that training uses, also for a loss that has its own metric.
 * Fails if the best model in the report is not the exported one. */
START_TEST(the_start_names_the_metric)
{
    enter("{\"kind\":\"start\",\"step\":0,\"metric\":\"mae\"}\n"
          "{\"kind\":\"eval\",\"step\":1,\"loss\":1,\"rmse\":3,\"mae\":1}\n"
          "{\"kind\":\"eval\",\"step\":2,\"loss\":2,\"rmse\":2,\"mae\":2}\n");
    size_t best;
    double value;
    read_run();
    ck_assert_str_eq(history->metric, "mae");
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_uint_eq(best, 0);
    dt_history_free(history);
    FILE *out = fopen("metrics.jsonl", "a");
    ck_assert_ptr_nonnull(out);
    fputs("{\"kind\":\"start\",\"step\":2,\"metric\":\"rmse\"}\n", out);
    ck_assert_int_eq(fclose(out), 0);
    read_run();
    ck_assert_str_eq(history->metric, "rmse");
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_uint_eq(best, 1);
    leave();
}
END_TEST

/* After a start that holds out other rows, earlier evaluations no longer count, even after the next
 * start. Fails if an evaluation on other, easier rows remains the best. */
START_TEST(other_held_out_rows_start_a_new_best)
{
    static const char again[] =
        "{\"kind\":\"start\",\"step\":20,\"best_era\":1700000000}\n" EVAL(20, 0.3) EVAL(
            30, 0.4) "{\"kind\":\"start\",\"step\":30,\"best_era\":1700000000}\n" EVAL(40, 0.35);
    size_t best;
    double value;
    enter(START(0) EVAL(10, 0.9) EVAL(20, 0.8));
    read_run();
    FILE *out = fopen("metrics.jsonl", "a");
    ck_assert_ptr_nonnull(out);
    fputs(again, out);
    ck_assert_int_eq(fclose(out), 0);
    EXPECT_OK(dt_history_update(history));
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_EVAL), 4);
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_uint_eq(best, 2);
    ck_assert_double_eq(value, 0.4);
    leave();
}
END_TEST

/* Evaluations of named sets are listed by step and name, apart from those of the held-out rows.
 * Fails if a set counts as the best evaluation or replaces another set. */
START_TEST(named_sets_are_separate)
{
#define SET(name, step, value)                                                                     \
    "{\"kind\":\"eval\",\"set\":\"" name "\",\"step\":" #step ",\"accuracy\":" #value "}\n"
    size_t best;
    double value;
    enter(START(0) SET("b", 10, 0.95) SET("a", 10, 0.9) EVAL(10, 0.5) SET("a", 20, 0.99)
              EVAL(20, 0.6) SET("b", 10, 0.85) SET("a", 30, 1) START(20));
    read_run();
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_EVAL), 2);
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_SET), 3);
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_double_eq(value, 0.6);
    ck_assert_str_eq(dt_history_text(history, DT_RECORD_SET, 0, "set"), "a");
    ck_assert_str_eq(dt_history_text(history, DT_RECORD_SET, 1, "set"), "b");
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_SET, 1, "accuracy"), 0.85);
    leave();
}
END_TEST

static void append(const char *text)
{
    FILE *out = fopen("metrics.jsonl", "a");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

/* Fails if a line is read twice or lost, or if records of a replaced file remain. */
START_TEST(an_update_reads_only_new_lines)
{
    size_t best;
    double value;
    enter(START(0) TRAIN(10, 1) "{\"kind\":\"train\",\"st");
    read_run();
    ck_assert_str_eq(history->metric, "loss");
    append("ep\":20,\"loss\":2}\n" EVAL(20, 0.5));
    put("config.ini", "[train]\nlr = 0.1\n");
    put("status.json", "{\"step\":20,\"ranks\":[{\"rank\":0},{\"rank\":1}]}");
    EXPECT_OK(dt_history_update(history));
    EXPECT_OK(dt_history_update(history));
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_STATUS), 1);
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_RANK), 2);
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 2);
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, 1, "step"), 20);
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_START), 1);
    ck_assert_str_eq(dt_history_option(history, "train.lr"), "0.1");
    ck_assert_str_eq(history->metric, "accuracy");
    put("config.ini", "[eval]\nmetric = accuracy\n");
    for (int i = 0; i < 3; i++)
        EXPECT_OK(dt_history_update(history));
    ck_assert_str_eq(history->metric, "accuracy");
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_double_eq(value, 0.5);
    append(START(10) TRAIN(30, 3) EVAL(30, 0.4) FINAL(30, "completed"));
    EXPECT_OK(dt_history_update(history));
    ck_assert(dt_history_best(history, &best, &value));
    ck_assert_double_eq(value, 0.4);
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_EVAL), 1);
    ck_assert_str_eq(history->status, "completed");
    put("other", START(0) TRAIN(5, 5));
    ck_assert_int_eq(rename("other", "metrics.jsonl"), 0);
    EXPECT_OK(dt_history_update(history));
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 1);
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_START), 1);
    ck_assert(!dt_history_best(history, &best, &value));
    ck_assert(!history->ended);
    /* another run's records: longer, with the same inode */
    put("metrics.jsonl", START(0) TRAIN(7, 7) TRAIN(8, 8) FINAL(8, "completed"));
    EXPECT_OK(dt_history_update(history));
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 2);
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, 0, "step"), 7);
    ck_assert(history->ended);
    put("metrics.jsonl", ""); /* truncated */
    EXPECT_OK(dt_history_update(history));
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 0);
    ck_assert(!history->ended);
    leave();
}
END_TEST

/* The file is larger than one read; it has many short lines and one that is longer than a read.
 * Fails if lines at the end of a read are lost or read twice, or if a file of zeros takes all
 * memory. */
START_TEST(a_large_file_is_read_in_parts)
{
    enum { LONG = 5 << 19, LINES = 30000 };
    enter(START(0));
    FILE *out = fopen("metrics.jsonl", "a");
    ck_assert_ptr_nonnull(out);
    for (int i = 1; i <= LINES; i++) {
        fprintf(out, "{\"kind\":\"train\",\"step\":%d,\"loss\":%d.5}\n", i, i);
        if (i == LINES / 2) fprintf(out, "{\"kind\":\"other\",\"text\":\"%*s\"}\n", LONG, "");
    }
    fputs("{\"kind\":\"train\",\"step\":1000000", out);
    ck_assert_int_eq(fclose(out), 0);
    read_run();
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), LINES);
    for (size_t i = 0; i < LINES; i++)
        ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, i, "loss"), (double)i + 1.5);
    append(",\"loss\":7}\n");
    EXPECT_OK(dt_history_update(history));
    ck_assert_double_eq(dt_history_real(history, DT_RECORD_TRAIN, LINES, "loss"), 7);
    dt_history_free(history);
    ck_assert_int_eq(truncate("metrics.jsonl", INT64_C(1) << 40), 0);
    EXPECT_FAIL(dt_history_read(".", &history), DT_EFORMAT, "a line is longer than any record");
    history = NULL;
    leave();
}
END_TEST

START_TEST(no_run_is_an_error)
{
    history = NULL;
    scratch_enter(home);
    EXPECT_FAIL(dt_history_read("nothing", &history), DT_EIO,
                "nothing/metrics.jsonl: cannot open: No such file");
    ck_assert_ptr_null(history);
    leave();
}
END_TEST

/* Fails if a run that was killed before its last record counts as complete. */
START_TEST(a_run_has_ended_with_its_final_record)
{
    static const struct {
        const char *text;
        bool ended; /* for step 7 */
    } cases[] = {
        {"", false},
        {"{\"kind\":\"final\",\"status\":\"stopped\",\"step\":7}\n", false},
        {"{\"kind\":\"train\",\"step\":7}\n", false},
        {"{\"kind\":\"final\",\"status\":\"completed\",\"step\":7}\n", true},
        {"{\"kind\":\"final\",\"status\":\"completed\",\"step\":7}",
         false}, /* without a newline the line may be incomplete */
        {"{\"kind\":\"final\",\"status\":\"completed\",\"step\":6}\n", false},
        {"{\"kind\":\"train\",\"step\":7}\n{\"kind\":\"final\",\"status\":\"completed\",\"step\":7,"
         "\"loss\":null}\n",
         true},
        {"{\"kind\":\"final\",\"status\":\"completed\",\"step\":7}\n{\"kind\":\"start\",\"step\":7}"
         "\n",
         false},
        {"{\"kind\":\"final\",\"status\":\"completed\",\"step\":7}\n{\"kind\":\"st", true},
        {"{\"kind\":\"final\",\"status\":\"completed\",\"step\":7}\n"
         "{\"kind\":\"launch\",\"event\":\"restart\",\"step\":7}\n",
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_enter(home);
        put("metrics.jsonl", cases[i].text);
        ck_assert_msg(dt__history_has_ended(".", 7) == cases[i].ended, "%s", cases[i].text);
        scratch_leave(home);
    }
    ck_assert(!dt__history_has_ended("/none/such", 7));
}
END_TEST

/* Fails if reading a run directory of another user or program waits forever for its FIFOs. */
START_TEST(fifos_are_not_waited_for)
{
    enter(START(0) TRAIN(10, 1));
    ck_assert_int_eq(
        mkfifo("lock", 0600) | mkfifo("status.json", 0600) | mkfifo("config.ini", 0600), 0);
    read_run();
    ck_assert_uint_eq(dt_history_count(history, DT_RECORD_TRAIN), 1);
    ck_assert_str_eq(history->status, "interrupted");
    leave();
}
END_TEST

SUITE("history", the_last_record_of_a_kind_and_step_counts, two_confusion_matrices_are_kept,
      an_abandoned_branch_is_dropped, the_status_is_that_of_the_last_start,
      incomplete_and_unknown_lines_are_skipped, the_configuration_is_read,
      the_start_names_the_metric, other_held_out_rows_start_a_new_best, named_sets_are_separate,
      an_update_reads_only_new_lines, a_large_file_is_read_in_parts, no_run_is_an_error,
      a_run_has_ended_with_its_final_record, fifos_are_not_waited_for)
