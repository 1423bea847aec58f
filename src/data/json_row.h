/* Rows of JSON: arrays of numbers. */
#ifndef DATA_JSON_ROW_H
#define DATA_JSON_ROW_H

#include <jansson.h>

#include "dtrain/base.h"

/* Reads a plain array of n short numbers, "[1, 2.5, -3]", without building it. False: it is
 * something else, which jansson must judge; x may be half written. */
bool dt__json_scan(const char *text, size_t length, size_t n, float *x);

/* Parses any JSON text. DT_EFORMAT: "column 7: ..." in jansson's words. */
dt_status dt__json_load(const char *text, size_t length, json_t **out);

/* Numbers of an array of n. DT_EFORMAT: not an array, another length, not numbers. */
dt_status dt__json_array(const json_t *value, size_t n, float *x);

#endif
