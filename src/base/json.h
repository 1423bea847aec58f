/* json: adds jansson values to a struct dt_text. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/base.h"

/* Makes a JSON string. If the text is not UTF-8, each byte above 127 becomes a text such as \xE9.
 * NULL: no memory. */
json_t *dt__json_string(const char *value);

/* Adds a jansson value to a text. flags: JSON_COMPACT etc. Returns false if there is no memory, if
 * `value` is NULL, or if it has a text that is not UTF-8. */
bool dt__json_add(struct dt_text *text, const json_t *value, size_t flags);

#endif
