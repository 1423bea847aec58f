/* Fails if a save that fails or is killed loses the older checkpoint, leaves other files, removes
 * too much, or lets latest.h5 point to a file that was not verified. */
#include "state_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- failing calls -------------------------------------------------------------------------- */

/* Counts every library call that may fail. Call number `fail_at` fails with ENOSPC or EIO; with
 * `fail_later` all calls after it fail too. */
static int calls, fail_at;
static bool fail_later;
static bool writes_half; /* a write that fails writes a half instead */
static bool
    disk_changes_bits; /* writes after the first 512 bytes change a bit and report success */

static bool kills; /* call number `fail_at` kills the process instead of failing */

static bool fails_now(void)
{
    if (fail_at == 0) return false;
    calls++;
    if (kills && calls == fail_at) kill(getpid(), SIGKILL);
    if (kills) return false;
    bool now = fail_later ? calls >= fail_at : calls == fail_at;
    if (now) errno = calls % 2 ? ENOSPC : EIO;
    return now;
}

ssize_t __real_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    static unsigned char changed[1 << 16];
    if (fails_now()) return writes_half && length > 1 ? __real_write(fd, bytes, length / 2) : -1;
    if (!disk_changes_bits || lseek(fd, 0, SEEK_CUR) < 512 || length > sizeof changed)
        return __real_write(fd, bytes, length);
    memcpy(changed, bytes, length);
    changed[length / 2] ^= 4;
    return __real_write(fd, changed, length);
}

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails_now() ? -1 : __real_##name arguments;                                         \
    }
/* Skips the flush, which takes most of the time: a kill loses nothing that the kernel has. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    return fails_now() ? -1 : 0;
}

WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, symlink, (const char *target, const char *link), (target, link))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(ssize_t, pread, (int fd, void *bytes, size_t length, off_t at), (fd, bytes, length, at))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (flags & O_NOFOLLOW) return __real_open(path, flags); /* only a hint uses O_NOFOLLOW */
    return fails_now() ? -1 : __real_open(path, flags, 0600);
}

/* A close that fails has still closed the file; it can fail only if the file was written. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    bool now = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY && fails_now();
    int result = __real_close(fd);
    if (now) errno = EIO;
    return now ? -1 : result;
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
static int allocs, fail_alloc_at;
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (fail_alloc_at && ++allocs == fail_alloc_at) return NULL;
    return __real_aligned_alloc(alignment, size);
}

/* ---- helpers -------------------------------------------------------------------------------- */

static dt_status try_save(uint64_t step, int64_t keep, const char *protected)
{
    char *file;
    struct dt_checkpoint checkpoint = sample_checkpoint(step, 20, 10);
    dt_status status = save_checkpoint(test_dir, &checkpoint, keep, protected, &file);
    dt__checkpoint_free(&checkpoint);
    if (!status) dt_free(file);
    return status;
}

static void save_steps(uint64_t first, uint64_t last, int64_t keep)
{
    for (uint64_t step = first; step <= last; step++)
        assert_ok(try_save(step, keep, NULL));
}

/* Returns the step of the newest good checkpoint, after comparing its content with what was
 * saved. */
static uint64_t load_step(void)
{
    char *path;
    bool found = false;
    struct dt_checkpoint loaded;
    assert_ok(dt__checkpoint_load_newest(test_dir, &loaded, &path, &found));
    ck_assert(found);
    struct dt_checkpoint saved = sample_checkpoint(loaded.step, 20, 10);
    assert_same_checkpoint(&loaded, &saved);
    uint64_t step = loaded.step;
    dt__checkpoint_free(&loaded);
    dt__checkpoint_free(&saved);
    dt_free(path);
    return step;
}

static const char *step_file(uint64_t step)
{
    char name[64];
    snprintf(name, sizeof name, "step-%09llu.h5", (unsigned long long)step);
    return in_dir(name);
}

static void damage(uint64_t step)
{
    int fd = open(step_file(step), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 3000), 1);
    close(fd);
}

static bool has_step(uint64_t step)
{
    return dt__path_exists(step_file(step));
}

static void quiet(void)
{
    dt_log_set_level(DT_LOG_ERROR);
}

/* ---- latest and fallback -------------------------------------------------------------------- */

START_TEST(latest_links_to_the_newest)
{
    char target[64] = "";
    uint64_t step;
    ck_assert(!dt__checkpoint_newest(test_dir, &step));
    save_steps(1, 3, 0);
    ck_assert_int_gt(readlink(in_dir("latest.h5"), target, sizeof target - 1), 0);
    ck_assert_str_eq(target, "step-000000003.h5");
    ck_assert_uint_eq(load_step(), 3);
    ck_assert(dt__checkpoint_newest(test_dir, &step));
    ck_assert_uint_eq(step, 3);
}
END_TEST

START_TEST(no_checkpoint_is_no_error)
{
    char *path;
    bool found = true;
    struct dt_checkpoint loaded;
    assert_ok(dt__checkpoint_load_newest(test_dir, &loaded, &path, &found));
    ck_assert(!found);
    assert_ok(dt__checkpoint_load_newest(in_dir("nowhere"), &loaded, &path, &found));
    ck_assert(!found);
}
END_TEST

START_TEST(load_falls_back_to_older_ones)
{
    char *path;
    bool found;
    struct dt_checkpoint loaded;
    quiet();
    save_steps(1, 3, 0);
    damage(3);
    ck_assert_uint_eq(load_step(), 2);
    ck_assert_int_eq(truncate(step_file(2), 100), 0);
    ck_assert_uint_eq(load_step(), 1);
    damage(1);
    ck_assert_int_eq(dt__checkpoint_load_newest(test_dir, &loaded, &path, &found), DT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "none of its 3 checkpoints is good"));
}
END_TEST

/* The warning names the file and the reason. */
START_TEST(a_fallback_gives_a_warning)
{
    char text[1024] = "";
    dt_log_set_level(DT_LOG_WARN);
    save_steps(1, 2, 0);
    damage(2);
    int error = dup(2), fd = open(in_dir("stderr"), O_RDWR | O_CREAT, 0600);
    dup2(fd, 2);
    uint64_t step = load_step();
    dup2(error, 2);
    ck_assert_uint_eq(step, 1);
    ck_assert_int_gt(pread(fd, text, sizeof text - 1, 0), 0);
    ck_assert_msg(strstr(text, "step-000000002.h5: damaged: checksum"), "%s", text);
    close(fd);
}
END_TEST

/* latest.h5 counts only if it is a link to a checkpoint in the same directory. */
START_TEST(an_invalid_latest_is_ignored)
{
    const char *const targets[] = {"step-000000009.h5", "/etc/passwd", "../x", "step-1.h5", ""};
    quiet();
    save_steps(1, 2, 0);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        unlink(in_dir("latest.h5"));
        if (*targets[i]) ck_assert_int_eq(symlink(targets[i], in_dir("latest.h5")), 0);
        ck_assert_uint_eq(load_step(), 2);
    }
}
END_TEST

START_TEST(long_step_numbers_are_sorted)
{
    assert_ok(try_save(999999999, 0, NULL));
    assert_ok(try_save(1000000000, 0, NULL));
    unlink(in_dir("latest.h5"));
    ck_assert_uint_eq(load_step(), 1000000000);
}
END_TEST

/* Fails if a resume loads an abandoned branch although its own branch still has an older
 * checkpoint. */
START_TEST(an_abandoned_branch_is_loaded_last)
{
    quiet();
    save_steps(10, 14, 0);
    unlink(in_dir("latest.h5"));
    ck_assert_int_eq(symlink("step-000000012.h5", in_dir("latest.h5")), 0);
    ck_assert_uint_eq(load_step(), 12);
    damage(12);
    ck_assert_uint_eq(load_step(), 11);
    ck_assert_int_eq(unlink(step_file(12)), 0);
    ck_assert_uint_eq(load_step(), 11);
    damage(11);
    damage(10);
    ck_assert_uint_eq(load_step(), 14);
}
END_TEST

/* ---- retention ------------------------------------------------------------------------------ */

START_TEST(the_oldest_are_removed)
{
    save_steps(1, 6, 3);
    for (uint64_t step = 1; step <= 6; step++)
        ck_assert_int_eq(has_step(step), step > 3);
    save_steps(7, 8, 0);
    ck_assert(has_step(4));
}
END_TEST

START_TEST(at_least_two_are_kept)
{
    save_steps(1, 4, 1);
    for (uint64_t step = 1; step <= 4; step++)
        ck_assert_int_eq(has_step(step), step > 2);
}
END_TEST

START_TEST(the_protected_one_is_kept)
{
    save_steps(1, 2, 2);
    for (uint64_t step = 3; step <= 5; step++)
        assert_ok(try_save(step, 2, "step-000000001.h5"));
    for (uint64_t step = 1; step <= 5; step++)
        ck_assert_int_eq(has_step(step), step == 1 || step > 3);
}
END_TEST

/* After a fallback, later steps belong to an abandoned branch: they are removed before the good
 * ones. */
START_TEST(an_abandoned_branch_is_removed_first)
{
    save_steps(10, 14, 0);
    unlink(in_dir("latest.h5"));
    ck_assert_int_eq(symlink("step-000000011.h5", in_dir("latest.h5")), 0);
    assert_ok(try_save(12, 3, NULL));
    ck_assert(has_step(10) && has_step(11) && has_step(12) && !has_step(13) && !has_step(14));
}
END_TEST

START_TEST(other_files_are_kept)
{
    const char *const names[] = {"notes.txt", "step-5.h5", "step-000000001.h5.bak",
                                 "best.h5.tmp-1"};
    for (int i = 0; i < 4; i++)
        close(open(in_dir(names[i]), O_CREAT | O_WRONLY, 0600));
    save_steps(1, 5, 2);
    for (int i = 0; i < 4; i++)
        ck_assert(dt__path_exists(in_dir(names[i])));
}
END_TEST

START_TEST(leftovers_of_a_killed_save_are_removed)
{
    const char *const names[] = {"step-000000001.h5.tmp-0123456789abcdef", "latest.h5.tmp-00"};
    for (int i = 0; i < 2; i++)
        close(open(in_dir(names[i]), O_CREAT | O_WRONLY, 0600));
    save_steps(1, 1, 2);
    ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
}
END_TEST

/* ---- failures ------------------------------------------------------------------------------- */

/* Saves step 2 over a good step 1 with each call failing in turn, until no call fails; returns the
 * number of that attempt. */
static int fail_each_call(void)
{
    quiet();
    assert_ok(try_save(1, 0, NULL));
    for (int at = 1;; at++) {
        calls = 0;
        fail_at = at;
        dt_status status = try_save(2, 0, NULL);
        bool reached = calls >= at;
        fail_at = 0;
        ck_assert_msg(!reached || status || writes_half, "the failure of call %d is not returned",
                      at);
        uint64_t step = load_step();
        ck_assert_msg(step == 2 || (status && step == 1), "call %d: step %d", at, (int)step);
        ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
        if (!reached) return at;
        unlink(step_file(2));
        save_steps(1, 1, 0);
    }
}

/* Each call of a load fails in turn: the message must name the file exactly once. */
START_TEST(a_failed_load_names_the_file_once)
{
    struct dt_checkpoint loaded;
    const char *path = step_file(1);
    bool reached = true;
    int failed = 0;
    save_steps(1, 1, 0);
    ck_assert_uint_eq(load_step(), 1); /* starts the fork server before calls may fail */
    for (int at = 1; reached; at++) {
        calls = 0;
        fail_at = at;
        dt_status status = dt__checkpoint_load(path, &loaded);
        reached = calls >= at;
        fail_at = 0;
        failed += status != DT_OK;
        if (!status) dt__checkpoint_free(&loaded); /* closing a reader's socket may fail */
        if (!status) continue;
        const char *named = strstr(dt_error_text(), path);
        ck_assert_msg(named == dt_error_text() && !strstr(named + 1, path), "call %d: %s", at,
                      dt_error_text());
    }
    ck_assert_int_gt(failed, 10);
}
END_TEST

START_TEST(any_call_may_fail)
{
    int count = fail_each_call();
    ck_assert_int_gt(count, 15);
}
END_TEST

START_TEST(any_write_may_be_incomplete)
{
    writes_half = true;
    fail_each_call();
    writes_half = false;
}
END_TEST

START_TEST(all_later_calls_may_fail)
{
    fail_later = true;
    fail_each_call();
    fail_later = false;
}
END_TEST

START_TEST(silent_damage_by_the_disk_is_found)
{
    quiet();
    save_steps(1, 1, 0);
    disk_changes_bits = true;
    ck_assert_int_eq(try_save(2, 0, NULL), DT_EFORMAT);
    disk_changes_bits = false;
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "damaged: checksum"));
    ck_assert(!has_step(2));
    ck_assert_uint_eq(load_step(), 1);
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    quiet();
    save_steps(1, 1, 0);
    dt_status status;
    bool reached = true;
    for (int at = 1; reached; at++) {
        struct dt_checkpoint checkpoint = sample_checkpoint(2, 20, 10);
        char *file, *path;
        bool found;
        allocs = 0;
        fail_alloc_at = at;
        status = save_checkpoint(test_dir, &checkpoint, 2, NULL, &file);
        fail_alloc_at = 0;
        reached = allocs >= at;
        ck_assert_msg(status == DT_OK || status == DT_EMEMORY || status == DT_EIO, "%d", status);
        ck_assert_msg(!status || reached, "%d", status);
        if (!status) dt_free(file);
        dt__checkpoint_free(&checkpoint);
        ck_assert_uint_ge(load_step(), 1);
        allocs = 0;
        fail_alloc_at = at;
        if (!dt__checkpoint_load_newest(test_dir, &checkpoint, &path, &found)) {
            dt__checkpoint_free(&checkpoint);
            dt_free(path);
        }
        fail_alloc_at = 0;
    }
}
END_TEST

/* A limit on the size of files acts as a full disk on machines that do not let the test mount
 * one. */
START_TEST(a_file_size_limit_is_like_a_full_disk)
{
    struct rlimit before, small;
    quiet();
    save_steps(1, 1, 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    for (rlim_t limit = 0; limit < 12000; limit += 1000) {
        small = before;
        small.rlim_cur = limit;
        setrlimit(RLIMIT_FSIZE, &small);
        dt_status status = try_save(2, 0, NULL);
        setrlimit(RLIMIT_FSIZE, &before);
        if (status == DT_OK) break;
        ck_assert_int_eq(status, DT_EIO);
        ck_assert_ptr_nonnull(strstr(dt_error_text(), "File too large"));
        ck_assert_uint_eq(load_step(), 1);
        ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
    }
    save_steps(2, 2, 0);
}
END_TEST

START_TEST(a_full_disk_keeps_the_older_one)
{
    quiet();
    if (mount("tmpfs", test_dir, "tmpfs", 0, "size=64k")) {
        fprintf(stderr, "skipped: a tiny tmpfs cannot be mounted: %s\n", strerror(errno));
        return;
    }
    dt_status status = DT_OK;
    uint64_t step = 0;
    while (!status && step < 100)
        status = try_save(++step, 0, NULL);
    ck_assert_int_eq(status, DT_EIO);
    ck_assert_ptr_nonnull(strstr(dt_error_text(), "No space left"));
    ck_assert_uint_eq(load_step(), step - 1);
    ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
    ck_assert_int_eq(unlink(step_file(1)), 0);
    assert_ok(try_save(step, 0, NULL)); /* saving works again when there is space */
    umount2(test_dir, MNT_DETACH);
}
END_TEST

/* ---- kills ---------------------------------------------------------------------------------- */

static void save_forever(uint64_t step)
{
    for (;; step++) {
        if (try_save(step, 2, NULL)) _exit(1);
    }
}

/* Lets a child save step 2 and kills it before call `at`; returns false if there are fewer
 * calls. */
static bool kill_at_call(int at)
{
    int ended = 0;
    pid_t child = fork();
    if (child == 0) {
        kills = true;
        calls = 0;
        fail_at = at;
        _exit(try_save(2, 0, NULL) != DT_OK);
    }
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    if (WIFSIGNALED(ended)) return true;
    ck_assert_int_eq(WEXITSTATUS(ended), 0);
    return false;
}

START_TEST(a_kill_at_each_call_leaves_the_older_one_good)
{
    int at = 1;
    quiet();
    assert_ok(try_save(1, 0, NULL));
    for (; kill_at_call(at); at++) {
        ck_assert_uint_ge(load_step(), 1);
        unlink(step_file(2));
        assert_ok(try_save(1, 0, NULL)); /* also removes what the killed save left */
        ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
    }
    ck_assert_uint_eq(load_step(), 2);
    ck_assert_int_gt(at, 15);
}
END_TEST

/* Returns true if the directory shows a save in progress. */
static bool was_saving(void)
{
    return count_names(test_dir, ".tmp-") > 0;
}

START_TEST(a_kill_at_any_moment_leaves_the_newest_good)
{
    struct dt_rng rng = dt__rng_make((uint64_t)dt__clock_unix(), DT_STREAM_TEST, 3, 0);
    int rounds = 0;
    int inside = 0;
    quiet();
    double begin = dt__clock_secs();
    save_steps(1, 1, 0);
    double longest = 3 * (dt__clock_secs() - begin); /* three times as long as a save takes here */
    for (; rounds < 30 || (inside == 0 && rounds < 300); rounds++) {
        uint64_t before = load_step();
        pid_t child = fork();
        if (child == 0) save_forever(before + 1);
        dt__sleep_secs(0.001 + longest * dt__rng_uniform(&rng, (uint64_t)rounds));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        inside += was_saving();
        ck_assert_uint_ge(load_step(), before);
    }
    ck_assert_msg(inside >= 1, "no kill inside a save: the test proves nothing");
    printf("kills inside a save: %d of %d, steps reached: %d\n", inside, rounds, (int)load_step());
    assert_ok(try_save(1000000, 2, NULL));
    ck_assert_int_eq(count_names(test_dir, ".tmp-"), 0);
    ck_assert_int_eq(count_names(test_dir, "step-"), 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        latest_links_to_the_newest,
        no_checkpoint_is_no_error,
        load_falls_back_to_older_ones,
        a_fallback_gives_a_warning,
        an_invalid_latest_is_ignored,
        long_step_numbers_are_sorted,
        the_oldest_are_removed,
        at_least_two_are_kept,
        the_protected_one_is_kept,
        an_abandoned_branch_is_removed_first,
        an_abandoned_branch_is_loaded_last,
        other_files_are_kept,
        leftovers_of_a_killed_save_are_removed,
        a_failed_load_names_the_file_once,
        any_call_may_fail,
        any_write_may_be_incomplete,
        all_later_calls_may_fail,
        silent_damage_by_the_disk_is_found,
        any_allocation_may_fail,
        a_file_size_limit_is_like_a_full_disk,
        a_full_disk_keeps_the_older_one,
        a_kill_at_each_call_leaves_the_older_one_good,
        a_kill_at_any_moment_leaves_the_newest_good,
    };
    return run_tests("save", (int)(sizeof tests / sizeof *tests), tests);
}
