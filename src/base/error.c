#include "dtrain/base.h"

#include <string.h>

#include "base/text.h"

static _Thread_local char error_text[DT_ERROR_MAX];

int dt_status_exit_code(dt_status status)
{
    switch (status) {
#define EXIT_CODE(name, code, text)                                                                \
    case name:                                                                                     \
        return code;
        DT_STATUS_LIST(EXIT_CODE)
#undef EXIT_CODE
    }
    return 1;
}

const char *dt_status_text(dt_status status)
{
    switch (status) {
#define STATUS_TEXT(name, code, text)                                                              \
    case name:                                                                                     \
        return text;
        DT_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

/* The arguments may point into error_text, so the message grows in a buffer of its own. */
void dt__error_set(const char *format, ...)
{
    char message[DT_ERROR_MAX];
    va_list args;
    va_start(args, format);
    dt__text_format(message, sizeof message, format, args);
    va_end(args);
    memcpy(error_text, message, sizeof message);
}

void dt__error_prefix(const char *format, ...)
{
    char prefix[DT_ERROR_MAX];
    va_list args;
    va_start(args, format);
    dt__text_format(prefix, sizeof prefix, format, args);
    va_end(args);
    dt__error_set("%s%s", prefix, error_text);
}

const char *dt_error_text(void)
{
    return error_text;
}
