#include "dtrain/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* One of the library's two globals. */
static struct {
    enum dt_log_level level;
    volatile bool progress; /* a line stands on the terminal that the next one replaces */
} logger = {.level = DT_LOG_INFO};

static const char CLEAR_LINE[] = "\r\033[K";

void dt_log_set_level(enum dt_log_level level)
{
    logger.level = level;
}

enum dt_log_level dt_log_get_level(void)
{
    return logger.level;
}

static void put(const char *text, size_t length)
{
    ssize_t written;
    do
        written = write(STDERR_FILENO, text, length);
    while (written < 0 && errno == EINTR);
}

static void put_line(const char *prefix, const char *format, va_list args)
{
    char line[DT_ERROR_MAX + 64];
    const char *clear = logger.progress ? CLEAR_LINE : "";
    logger.progress = false;
    size_t length = (size_t)snprintf(line, sizeof line, "%sdtrain: %s", clear, prefix);
    length += dt__text_format(line + length, sizeof line - length - 1, format, args);
    line[length++] = '\n';
    put(line, length);
}

#define LOG(least_level, prefix)                                                                   \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        if (logger.level >= (least_level)) put_line(prefix, format, args);                         \
        va_end(args);                                                                              \
    } while (0)

void dt_error(const char *format, ...)
{
    LOG(DT_LOG_QUIET, "error: ");
}

void dt_warn(const char *format, ...)
{
    LOG(DT_LOG_WARN, "warning: ");
}

void dt_info(const char *format, ...)
{
    LOG(DT_LOG_INFO, "");
}

void dt_debug(const char *format, ...)
{
    LOG(DT_LOG_DEBUG, "debug: ");
}

/* ---- progress line -------------------------------------------------------------------------- */

void dt_log_progress(const char *text)
{
    char line[256];
    if (!text && !logger.progress) return;
    int length = snprintf(line, sizeof line, "%s%.200s", CLEAR_LINE, text ? text : "");
    logger.progress = text != NULL;
    put(line, (size_t)length);
}

/* mpirun reads its ranks' stderr through a pipe, and hands the bytes on as they are. */
static bool mpirun_has_terminal(void)
{
    char path[64];
    if (!getenv("OMPI_COMM_WORLD_RANK")) return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), STDERR_FILENO);
    int fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    bool terminal = isatty(fd);
    close(fd);
    return terminal;
}

bool dt_log_is_terminal(void)
{
    return isatty(STDERR_FILENO) || mpirun_has_terminal();
}
