#include <string.h>

#include "config/option.h"

static bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

static bool needs_quotes(const char *value)
{
    size_t length = strlen(value);
    if (length == 0) return false;
    if (strchr(" \"", value[0]) || value[length - 1] == ' ' || strchr(value, ';')) return true;
    while (*value && !is_control(*value))
        value++;
    return *value;
}

dt_status dt__value_quote(struct dt_text *text, const char *value)
{
    if (!needs_quotes(value)) return dt_text_add(text, "%s", value);
    DT_TRY(dt_text_add(text, "\""));
    for (; *value; value++) {
        if (is_control(*value) || strchr("\"\\;", *value))
            DT_TRY(dt_text_add(text, "\\x%02x", (unsigned)*value));
        else
            DT_TRY(dt_text_append(text, value, 1));
    }
    return dt_text_add(text, "\"");
}

static int hex_digit(char c)
{
    const char *const digits = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* One character of a quoted value; *at moves behind it. -1: not well-formed. */
static int unescape(const char **at)
{
    const char *text = *at;
    *at += 1;
    if (text[0] != '\\') return (unsigned char)text[0];
    *at += 1;
    if (text[1] == '"' || text[1] == '\\') return text[1];
    int high = text[1] == 'x' ? hex_digit(text[2]) : -1;
    int low = high < 0 ? -1 : hex_digit(text[3]);
    *at += 2;
    return low < 0 || high + low == 0 ? -1 : high * 16 + low;
}

bool dt__value_unquote(char *value)
{
    if (value[0] != '"') return true;
    char *out = value;
    const char *at = value + 1;
    while (*at && *at != '"') {
        int c = unescape(&at);
        if (c < 0) return false;
        *out++ = (char)c;
    }
    if (at[0] != '"' || at[1]) return false;
    *out = '\0';
    return true;
}
