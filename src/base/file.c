/* Paths, directories, and files written durably: temporary file in the same directory, write, sync,
 * verify, rename, sync of the directory. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/limits.h"

/* ---- paths ---------------------------------------------------------------------------------- */

bool dt__path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool dt__path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Makes a unique name in the same directory: PATH.tmp-<16 hex digits>. */
static dt_status temporary_name(const char *path, char **out)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return dt__fail_errno(path, "cannot get random bits");
    return dt__format(out, "%s.tmp-%016llx", path, (unsigned long long)random);
}

/* ---- directories ---------------------------------------------------------------------------- */

dt_status dt__dir_make(const char *path)
{
    char *copy;
    dt_status status = DT_OK;
    DT_TRY(dt__strdup(path, &copy));
    for (char *end = copy; end && !status;) {
        end = strchr(end + 1, '/');
        if (end) *end = '\0';
        int error = mkdir(copy, 0777) ? errno : 0;
        if (error && !dt__path_is_dir(copy))
            status = dt_fail(DT_EIO, "%s: cannot make the directory: %s", copy,
                             strerror(error == EEXIST ? ENOTDIR : error));
        if (end) *end = '/';
    }
    dt_free(copy);
    return status;
}

dt_status dt__path_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return dt__fail_errno(path, "cannot open");
    dt_status status = DT_OK;
    /* EINVAL: the file system does not support fsync on directories. */
    if (fsync(fd) && errno != EINVAL) status = dt__fail_errno(path, "cannot sync");
    if (close(fd) && !status) status = dt__fail_errno(path, "cannot close");
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Returns the process's umask from /proc, or 022 if that has none. umask(2) would have to set
 * another mask to return the current one, and other threads might create files with it. */
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

/* Starts the write-back of each range as soon as it is written, so that a later fsync has less to
 * do. */
dt_status dt__fd_write(int fd, const char *path, const void *from, size_t length)
{
    const char *bytes = from;
    for (off_t offset = lseek(fd, 0, SEEK_CUR); length > 0;) {
        ssize_t written = write(fd, bytes, length < DT__WRITE_BYTES ? length : DT__WRITE_BYTES);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return dt__fail_errno(path, "cannot write");
        sync_file_range(fd, offset, written, SYNC_FILE_RANGE_WRITE); /* only a hint */
        offset += written;
        bytes += written;
        length -= (size_t)written;
        dt__work_progress();
    }
    return DT_OK;
}

const char *dt__temporary_dir(void)
{
    const char *dir = getenv("TMPDIR");
    return dir && *dir ? dir : "/tmp";
}

dt_status dt__fd_temporary(const char *dir, int *out_fd)
{
    char *path;
    DT_TRY(dt__format(&path, "%s/dtrain-XXXXXX", dir));
    int fd = mkostemp(path, 02000000 /* O_CLOEXEC */);
    dt_status status = DT_OK;
    if (fd < 0)
        status = dt__fail_errno(dir, "cannot make a temporary file");
    else
        unlink(path);
    dt_free(path);
    if (!status) *out_fd = fd;
    return status;
}

dt_status dt__fd_write_at(int fd, const char *what, const void *bytes, size_t length,
                          uint64_t offset)
{
    const unsigned char *from = bytes;
    while (length) {
        const size_t part = length < DT__WRITE_BYTES ? length : DT__WRITE_BYTES;
        ssize_t put = pwrite(fd, from, part, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return dt_fail(DT_EIO, "%s: %s", what, strerror(errno));
        from += put;
        offset += (uint64_t)put;
        length -= (size_t)put;
    }
    return DT_OK;
}

static dt_status move_into_place(const char *temporary, const char *path)
{
    char *copy;
    if (rename(temporary, path)) return dt__fail_errno(path, "cannot rename into place");
    DT_TRY(dt__strdup(path, &copy));
    dt_status status = dt__path_sync(dirname(copy));
    dt_free(copy);
    return status;
}

dt_status dt__file_write_by(const char *path, dt_file_fill_fn *fill, void *fill_arg,
                            dt_file_verify_fn *verify, void *arg)
{
    char *temporary; /* errors name the final file */
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) /* rename would replace a device */
        return dt_fail(DT_EIO, "%s: not a plain file", path);
    DT_TRY(temporary_name(path, &temporary));
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    dt_status status = fd < 0 ? dt__fail_errno(path, "cannot create") : fill(fd, path, fill_arg);
    if (!status && fchmod(fd, 0666 & ~umask_of_process()))
        status = dt__fail_errno(path, "cannot set the mode");
    if (!status && fsync(fd)) status = dt__fail_errno(path, "cannot sync");
    if (fd >= 0 && close(fd) && !status) status = dt__fail_errno(path, "cannot close");
    if (!status && verify) status = verify(temporary, arg);
    if (!status) status = move_into_place(temporary, path);
    if (status) unlink(temporary);
    dt_free(temporary);
    return status;
}

struct content {
    const void *bytes;
    size_t length;
};

static dt_status fill_content(int fd, const char *path, void *arg)
{
    const struct content *content = arg;
    return dt__fd_write(fd, path, content->bytes, content->length);
}

dt_status dt__file_write(const char *path, const void *bytes, size_t length,
                         dt_file_verify_fn *verify, void *arg)
{
    struct content content = {bytes, length};
    return dt__file_write_by(path, fill_content, &content, verify, arg);
}

dt_status dt__file_link(const char *target, const char *link)
{
    char *temporary;
    DT_TRY(temporary_name(link, &temporary));
    dt_status status = DT_OK;
    if (symlink(target, temporary)) status = dt__fail_errno(link, "cannot make the link");
    if (!status) status = move_into_place(temporary, link);
    if (status) unlink(temporary);
    dt_free(temporary);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

dt_status dt__file_open(const char *path, int *out_fd, uint64_t *out_size)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return dt__fail_errno(path, "cannot open");
    dt_status status = DT_OK;
    if (fstat(fd, &info)) status = dt__fail_errno(path, "cannot be examined");
    if (!status && !S_ISREG(info.st_mode)) status = dt_fail(DT_EFORMAT, "%s: not a file", path);
    if (status) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    *out_size = (uint64_t)info.st_size;
    return DT_OK;
}

dt_status dt__fd_read(int fd, const char *path, void *to, size_t length, uint64_t offset)
{
    for (char *at = to; length > 0;) {
        ssize_t got =
            pread(fd, at, length < DT__READ_BYTES ? length : DT__READ_BYTES, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return dt__fail_errno(path, "cannot read");
        if (got == 0) return dt_fail(DT_EFORMAT, "%s: damaged: it ends too soon", path);
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
        dt__work_progress();
    }
    return DT_OK;
}

/* Reads until the end of the file, since a pipe has no known length. */
dt_status dt__file_read(const char *path, size_t limit, void *out_bytes, size_t *out_length)
{
    char block[DT__READ_TEXT_BYTES];
    struct dt_text text = {0};
    ssize_t got = 1;
    dt_status status = DT_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return dt__fail_errno(path, "cannot open");
    while (!status && got) {
        got = read(fd, block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            status = dt__fail_errno(path, "cannot read");
        else if ((size_t)got > limit - text.length)
            status = dt_fail(DT_EFORMAT, "%s: larger than %zu bytes", path, limit);
        else
            status = dt__text_append(&text, block, (size_t)got);
    }
    close(fd);
    if (status) {
        dt__text_free(&text);
        return status;
    }
    memcpy(out_bytes, &text.data, sizeof text.data);
    *out_length = text.length;
    return DT_OK;
}
