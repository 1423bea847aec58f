/* Whole reads and writes. */
#include "data/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

dt_status dt__fd_temporary(const char *dir, int *out_fd)
{
    char *path;
    DT_TRY(dt_format(&path, "%s/dtrain-XXXXXX", dir));
    int fd = mkostemp(path, 02000000 /* O_CLOEXEC */);
    dt_status status = DT_OK;
    if (fd < 0)
        status = dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    else
        unlink(path);
    dt_free(path);
    if (!status) *out_fd = fd;
    return status;
}

dt_status dt__fd_write(int fd, const char *what, const void *bytes, size_t length, uint64_t offset)
{
    const unsigned char *from = bytes;
    while (length) {
        ssize_t put = pwrite(fd, from, length, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return dt_fail(DT_EIO, "%s: %s", what, strerror(errno));
        from += put;
        offset += (uint64_t)put;
        length -= (size_t)put;
    }
    return DT_OK;
}

dt_status dt__fd_read(int fd, const char *what, void *bytes, size_t length, uint64_t offset)
{
    unsigned char *to = bytes;
    while (length) {
        ssize_t got = pread(fd, to, length, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return dt_fail(DT_EIO, "%s: %s", what, got ? strerror(errno) : "too short");
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return DT_OK;
}
