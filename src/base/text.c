#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtrain/base.h"

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Length of the text without a character that the cut went through. */
static size_t whole_characters(const char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 3 && is_continuation(text[start - 1]))
        start--;
    if (start == 0) return length;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return length - (start - 1) < size ? start - 1 : length;
}

size_t dt__text_format(char *buffer, size_t size, const char *format, va_list args)
{
    int wanted = vsnprintf(buffer, size, format, args);
    if (wanted < 0) buffer[0] = '\0';
    size_t length = strlen(buffer);
    if (wanted >= (int)size) length = whole_characters(buffer, length);
    buffer[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (is_control(buffer[i])) buffer[i] = '?';
    }
    return length;
}

static dt_status text_reserve(struct dt_text *text, size_t more)
{
    size_t need;
    if (!dt_size_add(text->length, more, &need) || !dt_size_add(need, 1, &need))
        return dt_fail(DT_EMEMORY, "out of memory for text");
    return dt_grow(&text->data, &text->capacity, need, 1, "text");
}

dt_status dt_text_append(struct dt_text *text, const void *bytes, size_t length)
{
    DT_TRY(text_reserve(text, length));
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
    return DT_OK;
}

static dt_status text_add_args(struct dt_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    dt_status status = DT_OK;
    if (length < 0)
        status = dt_fail(DT_EBUG, "cannot format text");
    else
        status = text_reserve(text, (size_t)length);
    if (!status) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    return status;
}

dt_status dt_text_add(struct dt_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dt_status status = text_add_args(text, format, args);
    va_end(args);
    return status;
}

void dt_text_free(struct dt_text *text)
{
    dt_free(text->data);
    *text = (struct dt_text){0};
}

dt_status dt_strdup(const char *text, char **out)
{
    return dt_format(out, "%s", text);
}

dt_status dt_format(char **out, const char *format, ...)
{
    struct dt_text text = {0};
    va_list args;
    va_start(args, format);
    dt_status status = text_add_args(&text, format, args);
    va_end(args);
    if (!status) *out = text.data;
    return status;
}

/* 15 digits give the shortest form back if it has no more than that; 17 always read back. */
const char *dt_real_text(double value, char buffer[DT_REAL_TEXT])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, DT_REAL_TEXT, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value) break;
    }
    return buffer;
}

static size_t least_of(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

size_t dt__edit_distance(const char *a, const char *b)
{
    enum { MOST = 63 };
    size_t row[MOST + 1]; /* distances from a[0..i) to every beginning of b */
    size_t length_a = strnlen(a, MOST), length_b = strnlen(b, MOST);
    for (size_t j = 0; j <= length_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t above = row[j];
            row[j] = least_of(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length_b];
}
