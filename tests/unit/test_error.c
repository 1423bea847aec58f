/* Status codes, the error text, and lines of the log. */
#include "base/internal.h"
#include "unit/suite.h"

/* ---- error text ----------------------------------------------------------------------------- */

/* Scripts rely on the exit codes. */
START_TEST(statuses_have_their_exit_codes)
{
    ck_assert_int_eq(dt_status_exit_code(DT_OK), 0);
    ck_assert_int_eq(dt_status_exit_code(DT_EUSAGE), 2);
    ck_assert_int_eq(dt_status_exit_code(DT_EIO), 1);
    ck_assert_int_eq(dt_status_exit_code(DT_STOPPED), 75);
    ck_assert_int_eq(dt_status_exit_code((dt_status)4711), 1);
}
END_TEST

START_TEST(fail_sets_the_message_and_returns_the_status)
{
    ck_assert_str_eq(dt_error_text(), "");
    ck_assert_int_eq((int)dt_fail(DT_EIO, "%s:%d: %s", "a.csv", 3, "bad"), (int)DT_EIO);
    ck_assert_str_eq(dt_error_text(), "a.csv:3: bad");
    ck_assert_int_eq((int)dt_fail_prefix(DT_EFORMAT, "[rank %d] ", 2), (int)DT_EFORMAT);
    ck_assert_str_eq(dt_error_text(), "[rank 2] a.csv:3: bad");
}
END_TEST

/* The earlier message may be an argument of the next one. */
START_TEST(fail_may_quote_the_previous_message)
{
    dt_fail(DT_EIO, "inner");
    dt_fail(DT_EIO, "outer: %s", dt_error_text());
    ck_assert_str_eq(dt_error_text(), "outer: inner");
}
END_TEST

/* Bytes from a file must not control the terminal or fake a second line. */
START_TEST(control_characters_become_question_marks)
{
    dt_fail(DT_EIO, "a\nb\x1b[2J\tc\x7f"
                    "d");
    ck_assert_str_eq(dt_error_text(), "a?b?[2J?c?d");
    dt_fail(DT_EIO, "\xc2\x9b"
                    "31m caf\xc3\xa9 \xc2\xa0\xc2");
    ck_assert_str_eq(dt_error_text(), "??31m caf\xc3\xa9 \xc2\xa0\xc2");
}
END_TEST

START_TEST(long_messages_are_cut_between_characters)
{
    char text[2 * DT_ERROR_MAX];
    for (size_t i = 0; i + 3 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    dt_fail(DT_EIO, "%s", text);
    ck_assert_uint_eq(strlen(dt_error_text()), DT_ERROR_MAX - 2);
    dt_fail(DT_EIO, ".%s", text);
    ck_assert_uint_eq(strlen(dt_error_text()), DT_ERROR_MAX - 1);
    ck_assert_str_eq(dt_error_text() + DT_ERROR_MAX - 3, "\xc3\xa9");
}
END_TEST

static dt_status try_once(dt_status inner, int *reached)
{
    DT_TRY(inner);
    ++*reached;
    return DT_OK;
}

START_TEST(try_returns_the_failed_status)
{
    int reached = 0;
    ck_assert_int_eq((int)try_once(DT_ENUMERIC, &reached), (int)DT_ENUMERIC);
    ck_assert_int_eq(reached, 0);
    ck_assert_int_eq((int)try_once(DT_OK, &reached), (int)DT_OK);
    ck_assert_int_eq(reached, 1);
}
END_TEST

/* ---- log ------------------------------------------------------------------------------------ */

static int writes;
ssize_t __real_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    writes += fd == STDERR_FILENO;
    return __real_write(fd, bytes, length);
}

/* Stores in `buffer` what the function writes to stderr. */
static void catch_stderr(void (*function)(void), char *buffer, size_t size)
{
    int ends[2], old = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    function();
    dup2(old, STDERR_FILENO);
    close(old);
    ssize_t got = read(ends[0], buffer, size - 1);
    close(ends[0]);
    buffer[got > 0 ? got : 0] = '\0';
}

static void log_each(void)
{
    dt__error("e %d", 1);
    dt__warn("w\n");
    dt__info("i");
    dt__debug("d");
}

/* Ranks share one stderr: if a line took two writes, another rank's line could come between
 * them. */
START_TEST(a_log_line_is_one_write)
{
    char text[256];
    writes = 0;
    catch_stderr(log_each, text, sizeof text);
    ck_assert_str_eq(text, "dtrain: error: e 1\ndtrain: warning: w?\ndtrain: i\n");
    ck_assert_int_eq(writes, 3);
}
END_TEST

START_TEST(the_level_hides_all_but_errors)
{
    char text[256];
    dt_log_set_level(DT_LOG_ERROR);
    catch_stderr(log_each, text, sizeof text);
    ck_assert_str_eq(text, "dtrain: error: e 1\n");
    dt_log_set_level(DT_LOG_DEBUG);
    catch_stderr(log_each, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "dtrain: debug: d\n"));
}
END_TEST

static void log_over_progress(void)
{
    dt__log_progress("step 1");
    dt__log_progress("step 2");
    dt__info("line");
    dt__info("line");
    dt__log_progress(NULL);
}

/* The next log line, and only this one, clears the progress line. Mode 7 cuts a progress line at
 * the terminal's width: a wrapped line would not be cleared completely. */
START_TEST(a_log_line_clears_the_progress_line)
{
    char text[256];
    catch_stderr(log_over_progress, text, sizeof text);
    ck_assert_str_eq(text, "\r\033[K\033[?7lstep 1\033[?7h\r\033[K\033[?7lstep 2\033[?7h"
                           "\r\033[Kdtrain: line\ndtrain: line\n");
}
END_TEST

static struct {
    enum dt_log_level level;
    char lines[256];
} caught;

static void catch_line(void *arg, enum dt_log_level level, const char *line)
{
    ck_assert_ptr_eq(arg, &caught);
    caught.level = level;
    size_t used = strlen(caught.lines);
    snprintf(caught.lines + used, sizeof caught.lines - used, "%s|", line);
}

START_TEST(a_sink_gets_the_lines)
{
    char text[256];
    dt_log_set_sink(catch_line, &caught);
    catch_stderr(log_over_progress, text, sizeof text);
    catch_stderr(log_each, text, sizeof text);
    ck_assert_str_eq(text, "");
    ck_assert_str_eq(caught.lines, "line|line|e 1|w?|i|");
    ck_assert_int_eq(caught.level, DT_LOG_INFO);
    dt_log_set_sink(NULL, NULL);
    catch_stderr(log_each, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "dtrain: warning: w?\n"));
}
END_TEST

/* dtrain launch restarts a job after some of these causes. */
START_TEST(a_cause_is_the_first_word_of_a_message)
{
    char word[16];
    ck_assert_str_eq(dt__cause_prefix(DT__CAUSE_NONE, word), "");
    ck_assert_str_eq(dt__cause_prefix(DT__CAUSE_IN_USE, word), "in-use: ");
    ck_assert_int_eq(dt__cause_read("stall: no progress"), DT__CAUSE_STALL);
    ck_assert_int_eq(dt__cause_read("[rank 3 on node7] mpi: a.c:5: MPI_Send"), DT__CAUSE_MPI);
    ck_assert_int_eq(dt__cause_read("[rank 3 on node7] a.csv: lost: b"), DT__CAUSE_NONE);
    ck_assert_int_eq(dt__cause_read("[rank 3 on node7] stalled: b"), DT__CAUSE_NONE);
    ck_assert_int_eq(dt__cause_read("a.csv:3: lost [rank 1] lost: b"), DT__CAUSE_NONE);
    ck_assert_int_eq(dt__cause_read("lost"), DT__CAUSE_NONE);
    ck_assert_int_eq(dt__cause_read(""), DT__CAUSE_NONE);
}
END_TEST

SUITE("error", a_cause_is_the_first_word_of_a_message, statuses_have_their_exit_codes,
      fail_sets_the_message_and_returns_the_status, fail_may_quote_the_previous_message,
      control_characters_become_question_marks, long_messages_are_cut_between_characters,
      try_returns_the_failed_status, a_log_line_is_one_write, the_level_hides_all_but_errors,
      a_log_line_clears_the_progress_line, a_sink_gets_the_lines)
