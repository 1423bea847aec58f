/* Durable files: the order of system calls, and the failure of each of them. */
#include "unit/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

/* ---- faults --------------------------------------------------------------------------------- */

/* While armed, each call appends its letter to `trace`, and call number `fail_at` fails with
 * EIO. */
static struct {
    bool armed;
    int calls, fail_at;
    size_t write_max; /* most bytes that one write takes; 0: all */
    int interrupted;  /* number of writes, from the first, that a signal interrupts */
    char trace[64];
} faults;

static void arm(int fail_at)
{
    memset(&faults, 0, sizeof faults);
    faults.armed = true;
    faults.fail_at = fail_at;
}

static bool disarm(void)
{
    faults.armed = false;
    return faults.fail_at > 0 && faults.calls >= faults.fail_at;
}

static bool fails(char letter)
{
    if (!faults.armed) return false;
    if (faults.calls < 63) faults.trace[faults.calls] = letter;
    errno = EIO;
    return ++faults.calls == faults.fail_at;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return fails('o') ? -1 : __real_open(path, flags, mode);
}

ssize_t __real_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    if (fails('w')) return -1;
    if (faults.armed && faults.interrupted-- > 0) return errno = EINTR, -1;
    if (faults.armed && faults.write_max > 0 && length > faults.write_max)
        length = faults.write_max;
    return __real_write(fd, bytes, length);
}

ssize_t __real_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    if (faults.armed && faults.interrupted-- > 0) return errno = EINTR, -1;
    if (faults.armed && length > faults.write_max) length = faults.write_max;
    return __real_pwrite(fd, bytes, length, offset);
}

#define WRAP(name, letter, parameters, ...)                                                        \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return fails(letter) ? -1 : __real_##name(__VA_ARGS__);                                    \
    }
WRAP(fchmod, 'm', (int fd, mode_t mode), fd, mode)
WRAP(fsync, 's', (int fd), fd)
WRAP(rename, 'r', (const char *from, const char *to), from, to)
WRAP(symlink, 'l', (const char *target, const char *path), target, path)

/* Closes the descriptor even if it reports a failure. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    bool failed = fails('c');
    int result = __real_close(fd);
    if (failed) errno = EIO;
    return failed ? -1 : result;
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails('a') ? NULL : __real_aligned_alloc(alignment, size);
}

/* ---- contents of the directory -------------------------------------------------------------- */

static char scratch[64];

static void enter(void)
{
    scratch_enter(scratch);
}

static void leave(void)
{
    scratch_leave(scratch);
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void expect_content(const char *path, const char *text)
{
    char *bytes;
    size_t length;
    EXPECT_OK(dt__file_read(path, 1000, &bytes, &length));
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_str_eq(bytes, text);
    dt_free(bytes);
}

/* ---- writing -------------------------------------------------------------------------------- */

START_TEST(a_file_is_written_and_replaced)
{
    enter();
    EXPECT_OK(dt__file_write("f", "old", 3, NULL, NULL));
    expect_content("f", "old");
    EXPECT_OK(dt__file_write("f", "longer", 6, NULL, NULL));
    expect_content("f", "longer");
    EXPECT_OK(dt__file_write("f", "", 0, NULL, NULL));
    expect_content("f", "");
    ck_assert_int_eq(entries("."), 1);
    leave();
}
END_TEST

/* Data before name, name before directory: in any other order a crash may lose the file. */
START_TEST(calls_are_in_order)
{
    enter();
    arm(0);
    EXPECT_OK(dt__file_write("f", "new", 3, NULL, NULL));
    disarm();
    char steps[64] = {0};
    for (int i = 0, count = 0; i < faults.calls; i++) {
        if (strchr("wsr", faults.trace[i])) steps[count++] = faults.trace[i];
    }
    ck_assert_str_eq(steps, "wsrs");
    leave();
}
END_TEST

START_TEST(the_mode_follows_the_umask)
{
    enter();
    const mode_t masks[] = {022, 077, 0};
    for (int i = 0; i < 3; i++) {
        umask(masks[i]);
        EXPECT_OK(dt__file_write("f", "x", 1, NULL, NULL));
        struct stat info;
        ck_assert_int_eq(stat("f", &info), 0);
        ck_assert_uint_eq(info.st_mode & 0777, 0666 & ~masks[i]);
    }
    leave();
}
END_TEST

START_TEST(short_writes_are_continued)
{
    enter();
    arm(0);
    faults.write_max = 2;
    faults.interrupted = 3;
    EXPECT_OK(dt__file_write("f", "seven..", 7, NULL, NULL));
    disarm();
    expect_content("f", "seven..");
    leave();
}
END_TEST

/* 2 of 7 bytes are written at a time: each part must go after the previous one. */
START_TEST(short_writes_in_place_are_continued)
{
    char back[16] = "";
    int fd;
    enter();
    EXPECT_OK(dt__fd_temporary(".", &fd));
    arm(0);
    faults.write_max = 2;
    faults.interrupted = 3;
    EXPECT_OK(dt__fd_write_at(fd, "f", "before.", 7, 0));
    EXPECT_OK(dt__fd_write_at(fd, "f", "seven..", 7, 5));
    disarm();
    ck_assert_int_eq(pread(fd, back, sizeof back, 0), 12);
    ck_assert_str_eq(back, "beforseven..");
    close(fd);
    leave();
}
END_TEST

/* The file has its old or its new content, no other file is left, and the error is returned. After
 * the rename only the directory's sync can fail: the file is then new. */
START_TEST(any_call_may_fail)
{
    enter();
    int fail_at = 1;
    for (bool failed = true; failed; fail_at++) {
        EXPECT_OK(dt__file_write("f", "old", 3, NULL, NULL));
        arm(fail_at);
        dt_status status = dt__file_write("f", "new!", 4, NULL, NULL);
        failed = disarm();
        ck_assert_msg(!!status == failed, "call %d of '%s': status %d", fail_at, faults.trace,
                      (int)status);
        bool renamed = strchr(faults.trace, 'r') && faults.trace[fail_at - 1] != 'r';
        expect_content("f", renamed ? "new!" : "old");
        ck_assert_int_eq(entries("."), 1);
    }
    ck_assert_int_gt(fail_at, 9); /* open, write, fchmod, fsync, close, rename, fsync, memory */
    leave();
}
END_TEST

static dt_status record_and_fail(const char *path, void *arg)
{
    expect_content(path, "new");
    ck_assert_str_ne(path, "f");
    *(int *)arg += 1;
    return dt_fail(DT_EFORMAT, "not good");
}

/* A file that does not verify never gets its name. */
START_TEST(a_file_that_does_not_verify_is_dropped)
{
    enter();
    int calls = 0;
    EXPECT_OK(dt__file_write("f", "old", 3, NULL, NULL));
    EXPECT_FAIL(dt__file_write("f", "new", 3, record_and_fail, &calls), DT_EFORMAT, "not good");
    ck_assert_int_eq(calls, 1);
    expect_content("f", "old");
    ck_assert_int_eq(entries("."), 1);
    leave();
}
END_TEST

START_TEST(errors_name_the_file)
{
    enter();
    EXPECT_FAIL(dt__file_write("none/f", "x", 1, NULL, NULL), DT_EIO, "none/f");
    EXPECT_FAIL(dt__file_link("x", "none/l"), DT_EIO, "none/l");
    EXPECT_FAIL(dt__fd_temporary("none", &(int){0}), DT_EIO,
                "none: cannot make a temporary file: No such");
    /* the FIFO is refused and kept, as /dev/null would be */
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    EXPECT_FAIL(dt__file_write("pipe", "x", 1, NULL, NULL), DT_EIO, "pipe: not a plain file");
    EXPECT_FAIL(dt__file_write(".", "x", 1, NULL, NULL), DT_EIO, ".: not a plain file");
    EXPECT_FAIL(dt__path_sync("none"), DT_EIO, "none");
    EXPECT_OK(dt__path_sync("pipe")); /* fails if this waits for a process to read the FIFO */
    leave();
}
END_TEST

/* ---- links ---------------------------------------------------------------------------------- */

static void expect_link(const char *path, const char *target)
{
    char buffer[64] = "";
    ck_assert_int_ge(readlink(path, buffer, sizeof buffer - 1), 0);
    ck_assert_str_eq(buffer, target);
}

START_TEST(a_link_is_replaced_whole)
{
    enter();
    EXPECT_OK(dt__file_link("one", "l"));
    expect_link("l", "one");
    int fail_at = 1;
    for (bool failed = true; failed; fail_at++) {
        EXPECT_OK(dt__file_link("one", "l"));
        arm(fail_at);
        dt_status status = dt__file_link("two", "l");
        failed = disarm();
        ck_assert_int_eq(!!status, failed);
        bool renamed = strchr(faults.trace, 'r') && faults.trace[fail_at - 1] != 'r';
        expect_link("l", renamed ? "two" : "one");
        ck_assert_int_eq(entries("."), 1);
    }
    ck_assert_int_gt(fail_at, 5);
    leave();
}
END_TEST

/* ---- reading -------------------------------------------------------------------------------- */

START_TEST(reading_is_bounded)
{
    enter();
    char *bytes = NULL;
    size_t length = 7;
    EXPECT_OK(dt__file_write("f", "12345", 5, NULL, NULL));
    EXPECT_OK(dt__file_read("f", 5, &bytes, &length));
    ck_assert_uint_eq(length, 5);
    ck_assert_str_eq(bytes, "12345");
    dt_free(bytes);
    EXPECT_FAIL(dt__file_read("f", 4, &bytes, &length), DT_EFORMAT, "f: larger than 4 bytes");
    EXPECT_FAIL(dt__file_read("none", 4, &bytes, &length), DT_EIO, "none: cannot open");
    EXPECT_FAIL(dt__file_read(".", 4, &bytes, &length), DT_EIO, "directory");
    leave();
}
END_TEST

START_TEST(large_files_are_read_completely)
{
    enter();
    enum { BYTES = 100000 };
    unsigned char *bytes, *back;
    size_t length;
    EXPECT_OK(dt__alloc(BYTES, 1, "bytes", &bytes));
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * i >> 3);
    EXPECT_OK(dt__file_write("f", bytes, BYTES, NULL, NULL));
    EXPECT_OK(dt__file_read("f", BYTES, &back, &length));
    ck_assert_uint_eq(length, BYTES);
    ck_assert_mem_eq(back, bytes, BYTES);
    dt_free(bytes);
    dt_free(back);
    leave();
}
END_TEST

/* ---- directories ---------------------------------------------------------------------------- */

START_TEST(directories_are_made_with_their_parents)
{
    enter();
    EXPECT_OK(dt__dir_make("a/b//c/"));
    EXPECT_OK(dt__dir_make("a/b"));
    ck_assert(dt__path_is_dir("a/b/c"));
    EXPECT_OK(dt__file_write("a/f", "x", 1, NULL, NULL));
    ck_assert(dt__path_exists("a/f") && !dt__path_is_dir("a/f") && !dt__path_exists("a/g"));
    EXPECT_FAIL(dt__dir_make("a/f"), DT_EIO, "a/f: cannot make the directory: Not a directory");
    EXPECT_FAIL(dt__dir_make("a/f/g/h"), DT_EIO, "a/f: cannot make the directory: Not a directory");
    EXPECT_FAIL(dt__dir_make(""), DT_EIO, "cannot make the directory");
    leave();
}
END_TEST

SUITE("file", a_file_is_written_and_replaced, calls_are_in_order, the_mode_follows_the_umask,
      short_writes_are_continued, any_call_may_fail, a_file_that_does_not_verify_is_dropped,
      short_writes_in_place_are_continued, errors_name_the_file, a_link_is_replaced_whole,
      reading_is_bounded, large_files_are_read_completely, directories_are_made_with_their_parents)
