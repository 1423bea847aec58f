/* json: values of jansson's in the texts that base writes. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/base.h"

/* The text as a JSON string; in one that is not UTF-8 each byte beyond ASCII becomes a text such as
 * \xE9. NULL: no memory. */
json_t *dt__json_string(const char *value);

/* Adds a value of jansson's, with its flags (JSON_COMPACT and the like). False: no memory, no
 * value, or a text that is not UTF-8. */
bool dt__json_add(struct dt_text *text, const json_t *value, size_t flags);

#endif
