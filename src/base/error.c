/* Statuses and the error message.
 *
 * A function that fails sets the message of its thread and returns a status. Its caller may put
 * before the message what only the caller knows. The message is one line without control
 * characters, whatever bytes from a file or a user it quotes. */
#include "base/base.h"

#include <string.h>

#include "base/internal.h"

/* ---- status ---------------------------------------------------------------------------------- */

int dt_status_exit_code(dt_status status)
{
    static const int CODES[] = {
#define STATUS_ROW(name, code) [name] = code,
        DT_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
    };
    return (unsigned)status < sizeof CODES / sizeof *CODES ? CODES[status] : 1;
}

/* ---- causes ---------------------------------------------------------------------------------- */

static const char *const CAUSES[] = {
#define CAUSE_WORD(name, text) text,
    DT__CAUSES(CAUSE_WORD)
#undef CAUSE_WORD
};

const char *dt__cause_prefix(enum dt__cause cause, char buffer[16])
{
    snprintf(buffer, 16, "%s%s", CAUSES[cause], cause ? ": " : "");
    return buffer;
}

enum dt__cause dt__cause_read(const char *message)
{
    const char *mark = strncmp(message, "[rank ", 6) ? NULL : strstr(message, "] ");
    const char *text = mark ? mark + 2 : message;
    const size_t length = strcspn(text, ":");
    for (int cause = 1; text[length] && cause < (int)(sizeof CAUSES / sizeof *CAUSES); cause++)
        if (strlen(CAUSES[cause]) == length && !strncmp(text, CAUSES[cause], length))
            return (enum dt__cause)cause;
    return DT__CAUSE_NONE;
}

/* ---- clean text ------------------------------------------------------------------------------ */

size_t dt__text_format(char *buffer, size_t size, const char *format, va_list args)
{
    const locale_t before = dt__point_begin();
    int wanted = vsnprintf(buffer, size, format, args);
    dt__point_end(before);
    if (wanted < 0) buffer[0] = '\0';
    size_t length = strlen(buffer);
    if (wanted >= (int)size) { /* drop a UTF-8 character that was cut in the middle */
        size_t start = length;
        while (start > 0 && length - start < 3 && (buffer[start - 1] & 0xc0) == 0x80)
            start--;
        unsigned char lead = start > 0 ? (unsigned char)buffer[start - 1] : 0;
        size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
        if (start > 0 && length - (start - 1) < bytes) length = start - 1;
    }
    buffer[length] = '\0';
    for (char *at = buffer; *at; at++) {
        if (!dt__is_obeyed(at)) continue;
        if (!dt__is_control(*at)) *at++ = '?'; /* U+0080 to U+009F: two bytes */
        *at = '?';
    }
    return length;
}

void dt__text_print(FILE *out, const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    const size_t length = dt__text_format(text, sizeof text, format, args);
    va_end(args);
    if (length && format[strlen(format) - 1] == '\n') text[length - 1] = '\n';
    fputs(text, out);
}

/* ---- edit distance ------------------------------------------------------------------------- */

size_t dt__edit_distance(const char *a, const char *b)
{
    enum { MOST = 63 };
    size_t row[MOST + 1]; /* row[j]: distance between the first i bytes of a and the first j bytes
                           * of b */
    size_t length_a = strnlen(a, MOST), length_b = strnlen(b, MOST);
    for (size_t j = 0; j <= length_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t above = row[j];
            size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            size_t longer = (above < row[j - 1] ? above : row[j - 1]) + 1;
            row[j] = changed < longer ? changed : longer;
            diagonal = above;
        }
    }
    return row[length_b];
}

/* ---- the message ----------------------------------------------------------------------------- */

static _Thread_local char error_text[DT_ERROR_MAX];

/* The arguments may point into error_text, so the message is built in a separate buffer. */
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

dt_status dt__fail_path(dt_status status, const char *path)
{
    const size_t length = strlen(path);
    if (!status || (!strncmp(error_text, path, length) && error_text[length] == ':')) return status;
    return dt_fail_prefix(status, "%s: ", path);
}

const char *dt_error_text(void)
{
    return error_text;
}
