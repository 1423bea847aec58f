#include "dtrain/base.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static enum dt_log_level log_level = DT_LOG_INFO;

void dt_log_set_level(enum dt_log_level level)
{
    log_level = level;
}

enum dt_log_level dt_log_get_level(void)
{
    return log_level;
}

static void log_line(enum dt_log_level level, const char *prefix, const char *format, va_list args)
{
    if (level > log_level) return;
    char line[DT_ERROR_MAX + 64];
    size_t length = (size_t)snprintf(line, sizeof line, "dtrain: %s", prefix);
    length += dt__text_format(line + length, sizeof line - length - 1, format, args);
    line[length++] = '\n';
    ssize_t written;
    do written = write(STDERR_FILENO, line, length);
    while (written < 0 && errno == EINTR);
}

#define LOG(level, prefix)                                                                         \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        log_line(level, prefix, format, args);                                                     \
        va_end(args);                                                                              \
    } while (0)

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
