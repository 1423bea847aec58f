/* Text for a person's eyes: bounded, and without what could drive a terminal. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/* Formats into buffer (size >= 1), cut at a whole UTF-8 character; control characters become '?'.
 * Returns the length. */
size_t dt__text_format(char *buffer, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Letters to insert, delete or replace to get from one to the other (Levenshtein); of long texts
 * only the first bytes are looked at. */
size_t dt__edit_distance(const char *a, const char *b);

#endif
