/* json: adds jansson values to a struct dt_text. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/base.h"

/* Makes a JSON string of the text; if it is not UTF-8, each byte beyond ASCII becomes a text such
 * as \xE9. NULL: no memory. */
json_t *dt__json_string(const char *value);

/* Adds a jansson value, with its flags (JSON_COMPACT etc.). Returns false if there is no memory, no
 * value, or a text that is not UTF-8. */
bool dt__json_add(struct dt_text *text, const json_t *value, size_t flags);

#endif
