#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "dtrain/state.h"

/* Who holds the lock, as it wrote into it. */
static void read_holder(int fd, char holder[DT_LOCK_HOLDER])
{
    ssize_t length = pread(fd, holder, DT_LOCK_HOLDER - 1, 0);
    holder[length > 0 ? length : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
}

static dt_status fail_held(int fd, const char *run_dir)
{
    char holder[DT_LOCK_HOLDER];
    read_holder(fd, holder);
    return dt_fail(DT_EIO, "%s: in use by another dtrain (%s)", run_dir,
                   *holder ? holder : "which has not said its name");
}

/* For the message of the one that comes second; the lock holds without it. Synced, so that other
 * hosts read it too. */
static void write_holder(int fd)
{
    char host[65] = "", text[DT_LOCK_HOLDER];
    gethostname(host, sizeof host - 1);
    int length = snprintf(text, sizeof text, "pid %ld on %s\n", (long)getpid(), host);
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)length, 0) != length || fsync(fd))
        dt_debug("the lock file cannot be written: %s", strerror(errno));
}

static dt_status take(int fd, const char *run_dir)
{
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR) continue;
        if (errno == EWOULDBLOCK) return fail_held(fd, run_dir);
        dt_warn("%s: this file system has no locks (%s): see to it that no other job uses it",
                run_dir, strerror(errno));
        break;
    }
    write_holder(fd);
    return DT_OK;
}

dt_status dt_lock_take(const char *run_dir, int *out_fd)
{
    char *path;
    DT_TRY(dt_format(&path, "%s/lock", run_dir));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    dt_status status =
        fd < 0 ? dt_fail(DT_EIO, "%s: cannot open: %s", path, strerror(errno)) : take(fd, run_dir);
    dt_free(path);
    if (!status)
        *out_fd = fd;
    else if (fd >= 0)
        close(fd);
    return status;
}

void dt_lock_drop(int fd)
{
    if (fd < 0) return;
    if (ftruncate(fd, 0)) dt_debug("the lock file cannot be emptied: %s", strerror(errno));
    close(fd);
}

const char *dt_lock_holder(const char *run_dir, char holder[DT_LOCK_HOLDER])
{
    char *path;
    holder[0] = '\0';
    if (dt_format(&path, "%s/lock", run_dir)) return holder;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    dt_free(path);
    if (fd < 0) return holder;
    read_holder(fd, holder);
    close(fd);
    return holder;
}
