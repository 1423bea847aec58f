#include "dtrain/base.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- paths ---------------------------------------------------------------------------------- */

bool dt_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool dt_path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static dt_status fail_errno(const char *path, const char *doing)
{
    return dt_fail(DT_EIO, "%s: %s: %s", path, doing, strerror(errno));
}

/* A name beside `path` that nobody else has: path.tmp-<16 hex digits>. */
static dt_status temporary_name(const char *path, char **out)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return fail_errno(path, "cannot get random bits");
    return dt_format(out, "%s.tmp-%016llx", path, (unsigned long long)random);
}

static dt_status parent_of(const char *path, char **out)
{
    char *copy;
    DT_TRY(dt_strdup(path, &copy));
    dt_status status = dt_strdup(dirname(copy), out);
    dt_free(copy);
    return status;
}

/* ---- directories ---------------------------------------------------------------------------- */

static dt_status make_one(const char *path)
{
    if (mkdir(path, 0777) == 0) return DT_OK;
    int error = errno;
    if (dt_path_is_dir(path)) return DT_OK;
    return dt_fail(DT_EIO, "%s: cannot make the directory: %s", path,
                   strerror(error == EEXIST ? ENOTDIR : error));
}

dt_status dt_dir_make(const char *path)
{
    char *copy;
    dt_status status = DT_OK;
    DT_TRY(dt_strdup(path, &copy));
    for (char *slash = copy; !status && (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        status = make_one(copy);
        *slash = '/';
    }
    if (!status) status = make_one(copy);
    dt_free(copy);
    return status;
}

dt_status dt_dir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(path, "cannot open the directory");
    dt_status status = DT_OK;
    /* EINVAL: a file system whose directories know no fsync. */
    if (fsync(fd) && errno != EINVAL) status = fail_errno(path, "cannot sync the directory");
    if (close(fd) && !status) status = fail_errno(path, "cannot close the directory");
    return status;
}

static dt_status sync_parent(const char *path)
{
    char *parent;
    DT_TRY(parent_of(path, &parent));
    dt_status status = dt_dir_sync(parent);
    dt_free(parent);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The process's umask; umask(2) itself can only be read by changing it under other threads. */
static mode_t umask_of_process(void)
{
    unsigned mask = 022;
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    if (!status) return (mode_t)mask;
    while (fgets(line, sizeof line, status)) {
        if (sscanf(line, "Umask: %o", &mask) == 1) break;
    }
    fclose(status);
    return (mode_t)mask;
}

/* The disk works on each part while the next one is copied, so that fsync has little left to do. */
static dt_status write_all(int fd, const char *path, const char *bytes, size_t length)
{
    const size_t part = 8 << 20;
    for (off_t offset = 0; length > 0;) {
        ssize_t written = write(fd, bytes, length < part ? length : part);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail_errno(path, "cannot write");
        sync_file_range(fd, offset, written, SYNC_FILE_RANGE_WRITE); /* no more than a hint */
        offset += written;
        bytes += written;
        length -= (size_t)written;
        dt_work_gets_on();
    }
    return DT_OK;
}

static dt_status fill(int fd, const char *path, const void *bytes, size_t length)
{
    DT_TRY(write_all(fd, path, bytes, length));
    if (fchmod(fd, 0666 & ~umask_of_process())) return fail_errno(path, "cannot set the mode");
    if (fsync(fd)) return fail_errno(path, "cannot sync");
    return DT_OK;
}

static dt_status write_synced(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return fail_errno(path, "cannot create");
    dt_status status = fill(fd, path, bytes, length);
    if (close(fd) && !status) status = fail_errno(path, "cannot close");
    return status;
}

static dt_status move_into_place(const char *temporary, const char *path)
{
    if (rename(temporary, path)) return fail_errno(path, "cannot rename into place");
    return sync_parent(path);
}

dt_status dt_file_write(const char *path, const void *bytes, size_t length,
                        dt_file_verify_fn *verify, void *arg)
{
    char *temporary = NULL;
    dt_status status = temporary_name(path, &temporary);
    if (!status) status = write_synced(temporary, bytes, length);
    if (!status && verify) status = verify(temporary, arg);
    if (!status) status = move_into_place(temporary, path);
    if (status && temporary) unlink(temporary);
    dt_free(temporary);
    return status;
}

dt_status dt_file_link(const char *target, const char *link)
{
    char *temporary;
    DT_TRY(temporary_name(link, &temporary));
    dt_status status = DT_OK;
    if (symlink(target, temporary)) status = fail_errno(link, "cannot make the link");
    if (!status) status = move_into_place(temporary, link);
    if (status) unlink(temporary);
    dt_free(temporary);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Reads to the end, which a pipe only shows by ending. */
static dt_status read_all(int fd, const char *path, size_t limit, struct dt_text *text)
{
    char block[1 << 14];
    for (;;) {
        ssize_t got = read(fd, block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(path, "cannot read");
        if (got == 0) return dt_text_append(text, "", 0);
        if ((size_t)got > limit - text->length)
            return dt_fail(DT_EFORMAT, "%s: larger than %zu bytes", path, limit);
        DT_TRY(dt_text_append(text, block, (size_t)got));
    }
}

dt_status dt_file_read(const char *path, size_t limit, void *out_bytes, size_t *out_length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_errno(path, "cannot open");
    struct dt_text text = {0};
    dt_status status = read_all(fd, path, limit, &text);
    close(fd);
    if (status) {
        dt_text_free(&text);
        return status;
    }
    memcpy(out_bytes, &text.data, sizeof text.data);
    *out_length = text.length;
    return DT_OK;
}
