/* The files of a run directory.
 *
 * ckpt/ holds checkpoints such as step-000001200.h5, and latest.h5, a link to the newest verified
 * one. A resume loads that one or, if it is damaged, the next older valid one; retention counts in
 * the same order (list_steps). Only the process that holds the file `lock` writes. */
#include "state/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/internal.h"
#include "text/text.h"

#define LATEST "latest.h5"

/* ---- directories ---------------------------------------------------------------------------- */

struct dt__path dt__path(const char *format, ...)
{
    struct dt__path path;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(path.text, sizeof path.text, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof path.text) *path.text = '\0';
    return path;
}

/* Lists the names of all entries of a directory; a missing directory has none. */
static dt_status dir_list(const char *dir, struct dt__names *out)
{
    struct dirent *entry;
    dt_status status = DT_OK;
    DIR *stream = opendir(dir);
    if (!stream && errno == ENOENT) return DT_OK;
    while (stream && !status && (errno = 0, entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            status = dt__names_add(out, entry->d_name, strlen(entry->d_name));
    if (!status && errno) status = dt__fail_errno(dir, "cannot list");
    if (stream) closedir(stream);
    return status;
}

static int rising(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts by distance below `first`. For a number above `first` the difference wraps around, which
 * puts it after all others. */
dt_status dt__dir_numbers(const char *dir, dt__number_fn *parse, uint64_t first,
                          struct dt__numbers *out)
{
    struct dt__names names = {0};
    struct dt__numbers numbers = {0};
    dt_status status = dir_list(dir, &names);
    if (!status) status = dt__alloc(names.count, sizeof *numbers.items, "a list", &numbers.items);
    for (size_t i = 0; i < names.count && !status; i++)
        numbers.count += parse(names.items[i], &numbers.items[numbers.count]);
    dt__names_free(names.items, names.count);
    DT_TRY(status);
    for (size_t i = 0; i < numbers.count; i++)
        numbers.items[i] = first - numbers.items[i];
    qsort(numbers.items, numbers.count, sizeof *numbers.items, rising);
    for (size_t i = 0; i < numbers.count; i++)
        numbers.items[i] = first - numbers.items[i];
    *out = numbers;
    return DT_OK;
}

void dt__path_remove(const char *path)
{
    if (unlink(path) == 0 || errno == ENOENT) return;
    int error = errno;
    if (dt__path_is_dir(path)) {
        if (dt__dir_clear(path, NULL)) dt__warn("%s", dt_error_text());
        error = rmdir(path) ? errno : 0;
    }
    if (error) dt__warn("%s: cannot remove: %s", path, strerror(error));
}

dt_status dt__dir_clear(const char *dir, bool (*wanted)(const char *name))
{
    struct dt__names names = {0};
    dt_status status = dir_list(dir, &names);
    for (size_t i = 0; i < names.count && !status; i++)
        if (!wanted || wanted(names.items[i]))
            dt__path_remove(dt__path("%s/%s", dir, names.items[i]).text);
    dt__names_free(names.items, names.count);
    return status;
}

/* ---- names of checkpoints ------------------------------------------------------------------- */

const char *dt__checkpoint_name(uint64_t step, char name[DT_CHECKPOINT_NAME])
{
    snprintf(name, DT_CHECKPOINT_NAME, "step-%09llu.h5", (unsigned long long)step);
    return name;
}

struct dt__path dt__step_path(const char *dir, uint64_t step)
{
    char name[DT_CHECKPOINT_NAME];
    return dt__path("%s/%s", dir, dt__checkpoint_name(step, name));
}

/* Returns true if a name is exactly the file name for some step. */
static bool parse_name(const char *name, uint64_t *out)
{
    unsigned long long step;
    char again[DT_CHECKPOINT_NAME];
    if (sscanf(name, "step-%20llu.h5", &step) != 1) return false;
    if (strcmp(name, dt__checkpoint_name(step, again))) return false;
    *out = step;
    return true;
}

/* Returns true for a temporary file that a killed save left; see dt__file_write. */
static bool is_leftover(const char *name)
{
    return strstr(name, ".h5.tmp-") &&
           (!strncmp(name, "step-", 5) || !strncmp(name, LATEST, strlen(LATEST)));
}

/* Lists the steps of the checkpoints in `dir`, valid or not, in the order in which they are loaded
 * and kept: the one that latest.h5 names, older ones from the newest on, then later ones, which an
 * abandoned branch left (after a resume from an older checkpoint, or past damaged files). If
 * latest.h5 is missing or does not name a checkpoint in this directory, the order starts at the
 * highest step. */
static dt_status list_steps(const char *dir, struct dt__numbers *out)
{
    char target[64];
    uint64_t first = UINT64_MAX;
    ssize_t length = readlink(dt__path("%s/" LATEST, dir).text, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    (void)parse_name(target, &first);
    return dt__dir_numbers(dir, parse_name, first, out);
}

/* ---- saving --------------------------------------------------------------------------------- */

dt_status dt__checkpoint_retain(const char *dir, int64_t keep, const char *protected)
{
    struct dt__numbers steps;
    char name[DT_CHECKPOINT_NAME];
    if (keep <= 0) return DT_OK;
    DT_TRY(list_steps(dir, &steps));
    for (size_t i = keep < 2 ? 2 : (size_t)keep; i < steps.count; i++)
        if (!protected || strcmp(dt__checkpoint_name(steps.items[i], name), protected) != 0)
            dt__path_remove(dt__step_path(dir, steps.items[i]).text);
    dt_free(steps.items);
    return DT_OK;
}

dt_status dt__checkpoint_save(const char *dir, const struct dt_checkpoint *checkpoint)
{
    char name[DT_CHECKPOINT_NAME];
    uint64_t before;
    DT_TRY(dt__dir_make(dir));
    DT_TRY(dt__dir_clear(dir, is_leftover));
    /* The previous checkpoint will not be read again, so its page cache can serve the new one:
     * memory that a virtual machine must first request from its host takes 10 times as long to fill
     * (measured). */
    if (dt__checkpoint_newest(dir, &before)) {
        int fd =
            open(dt__step_path(dir, before).text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* only a hint; errors do not
                                                                    * matter */
        if (fd >= 0) close(fd);
    }
    DT_TRY(dt__file_save(dt__step_path(dir, checkpoint->step).text, checkpoint, true));
    return dt__file_link(dt__checkpoint_name(checkpoint->step, name),
                         dt__path("%s/" LATEST, dir).text);
}

/* ---- the newest ----------------------------------------------------------------------------- */

/* Skips damaged and missing checkpoints. Any other error of the system, such as a missing
 * permission, is returned: otherwise an older state would be taken for the newest. */
dt_status dt__checkpoint_load_latest(const char *dir, enum dt__wanted wanted,
                                     struct dt_checkpoint *out, char **out_path, bool *out_found)
{
    struct dt__numbers steps;
    struct dt__path path;
    dt_status status = DT_OK;
    bool passed = true;
    DT_TRY(list_steps(dir, &steps));
    for (size_t i = 0; passed && i < steps.count; i++) {
        path = dt__step_path(dir, steps.items[i]);
        status = dt__file_load(path.text, wanted, out, NULL);
        passed = status == DT_EFORMAT || (status == DT_EIO && !dt__path_exists(path.text));
        if (passed) dt__warn("passed over: %s", dt_error_text());
    }
    *out_path = NULL;
    *out_found = steps.count > 0;
    if (status && passed)
        status = dt_fail(DT_EFORMAT, "%s: none of its %zu checkpoints is good", dir, steps.count);
    else if (!status && steps.count && (status = dt__strdup(path.text, out_path)) != DT_OK)
        dt__checkpoint_free(out);
    dt_free(steps.items);
    return status;
}

dt_status dt__checkpoint_load_newest(const char *dir, struct dt_checkpoint *out, char **out_path,
                                     bool *out_found)
{
    return dt__checkpoint_load_latest(dir, DT__WANT_CHECKPOINT, out, out_path, out_found);
}

bool dt__checkpoint_newest(const char *dir, uint64_t *out_step)
{
    struct dt__numbers steps;
    if (list_steps(dir, &steps)) return false;
    const bool found = steps.count > 0;
    if (found) *out_step = steps.items[0];
    dt_free(steps.items);
    return found;
}

/* ---- lock ----------------------------------------------------------------------------------- */

/* Reads the first line of the lock file, which describes the holder. */
static void read_holder(int fd, char holder[DT_LOCK_HOLDER])
{
    ssize_t length = pread(fd, holder, DT_LOCK_HOLDER - 1, 0);
    holder[length > 0 ? length : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
}

dt_status dt__lock_take(const char *run_dir, int *out_fd)
{
    const struct dt__path path = dt__path("%s/lock", run_dir);
    char host[65] = "", text[DT_LOCK_HOLDER], cause[16], state;
    dt_status status = DT_OK;
    struct stat held, current;
    int fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return dt__fail_errno(path.text, "cannot open");
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR) continue;
        if (errno == EWOULDBLOCK) {
            read_holder(fd, text);
            DT_GUARD(dt_fail(DT_EIO, "%s%s: in use by another dtrain (%s)",
                             dt__cause_prefix(DT__CAUSE_IN_USE, cause), run_dir,
                             *text ? text : "which one is unknown"));
        }
        dt__warn("%s: this file system has no locks (%s): see to it that no other job uses it",
                 run_dir, strerror(errno));
        break;
    }
    /* If dt__run_unmake has unlinked the file in the meantime, its lock protects nothing: retry. */
    if (!fstat(fd, &held) && (stat(path.text, &current) || held.st_ino != current.st_ino)) {
        close(fd);
        return dt__lock_take(run_dir, out_fd);
    }
    /* The first line is for the message that another process prints, the second one for readers
     * that ask whether the run is still going on. The lock does not depend on either. The file is
     * synced so that other hosts can read it too. */
    gethostname(host, sizeof host - 1);
    const uint64_t start = dt__process_start(getpid(), &state);
    int length = snprintf(text, sizeof text, "pid %ld on %s\nstart %llu\n", (long)getpid(), host,
                          (unsigned long long)start);
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)length, 0) != length || fsync(fd))
        dt__debug("the lock file cannot be written: %s", strerror(errno));
    *out_fd = fd;
done:
    if (status) close(fd);
    return status;
}

void dt__lock_drop(int fd)
{
    if (fd < 0) return;
    if (ftruncate(fd, 0)) dt__debug("the lock file cannot be emptied: %s", strerror(errno));
    close(fd);
}

void dt__run_unmake(const char *run_dir)
{
    if (rmdir(dt__path("%s/ckpt", run_dir).text)) return;
    (void)unlink(dt__path("%s/lock", run_dir).text);
    (void)rmdir(run_dir);
}

dt_status dt__lock_seen(const char *run_dir, const char *holder, const char *host,
                        const char *holder_host)
{
    char read[DT_LOCK_HOLDER];
    if (*holder && !strcmp(dt__lock_holder(run_dir, read), holder)) return DT_OK;
    return dt_fail(DT_EIO,
                   "run.dir=%s: %s does not see the directory of %s; put it on a file system that "
                   "both share",
                   run_dir, host, holder_host);
}

const char *dt__lock_holder(const char *run_dir, char holder[DT_LOCK_HOLDER])
{
    int fd = open(dt__path("%s/lock", run_dir).text, O_RDONLY | O_CLOEXEC);
    read_holder(fd, holder);
    if (fd >= 0) close(fd);
    return holder;
}
