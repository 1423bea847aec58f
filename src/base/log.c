/* The log: writes lines to stderr or to the program's sink, and a progress line to a terminal.
 *
 * Each line is one write(), so that the lines of ranks that share a terminal do not mix. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"

/* The log is one of the library's globals. */
static struct {
    enum dt_log_level level;
    volatile bool progress; /* the terminal shows a progress line, which the next log line
                             * replaces */
    dt_log_fn *sink;
    void *arg;
} logger = {.level = DT_LOG_INFO};

static const char CLEAR_LINE[] = "\r\033[K";

void dt_log_set_level(enum dt_log_level level)
{
    logger.level = level;
}

enum dt_log_level dt__log_get_level(void)
{
    return logger.level;
}

void dt_log_set_sink(dt_log_fn *sink, void *arg)
{
    logger.arg = arg;
    logger.sink = sink;
}

static void put(const char *text, size_t length)
{
    ssize_t written;
    do
        written = write(STDERR_FILENO, text, length);
    while (written < 0 && errno == EINTR);
}

static void put_line(enum dt_log_level level, const char *format, va_list args)
{
    static const char *const prefix[] = {"error: ", "warning: ", "", "debug: "};
    char line[DT_ERROR_MAX + 64];
    const char *clear = logger.progress ? CLEAR_LINE : "";
    if (level > logger.level) return;
    if (logger.sink) {
        dt__text_format(line, DT_ERROR_MAX, format, args);
        logger.sink(logger.arg, level, line);
        return;
    }
    logger.progress = false;
    size_t length = (size_t)snprintf(line, sizeof line, "%sdtrain: %s", clear, prefix[level]);
    length += dt__text_format(line + length, sizeof line - length - 1, format, args);
    line[length++] = '\n';
    put(line, length);
}

#define LOG(name, level)                                                                           \
    void name(const char *format, ...)                                                             \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        put_line(level, format, args);                                                             \
        va_end(args);                                                                              \
    }

LOG(dt__error, DT_LOG_ERROR)
LOG(dt__warn, DT_LOG_WARN)
LOG(dt__info, DT_LOG_INFO)
LOG(dt__debug, DT_LOG_DEBUG)

/* ---- progress line -------------------------------------------------------------------------- */

void dt__log_progress(const char *text)
{
    char line[256];
    if (logger.sink || (!text && !logger.progress)) return;
    /* The terminal cuts the line at its edge (?7l), because a wrapped line could not be cleared. */
    int length =
        snprintf(line, sizeof line, "%s\033[?7l%.200s\033[?7h", CLEAR_LINE, text ? text : "");
    logger.progress = text != NULL;
    put(line, (size_t)length);
}

/* mpirun reads the stderr of its ranks from a pipe and forwards the bytes unchanged, so its own
 * stderr counts. */
bool dt__log_is_terminal(void)
{
    char path[64];
    if (isatty(STDERR_FILENO)) return true;
    if (!getenv("OMPI_COMM_WORLD_RANK")) return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), STDERR_FILENO);
    int fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    bool terminal = isatty(fd);
    close(fd);
    return terminal;
}
