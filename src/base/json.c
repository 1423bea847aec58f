/* JSON objects, written value by value. jansson writes the strings. A real number is written as the
 * shortest decimal that reads back as the same value. */
#include "base/json.h"

#include <math.h>
#include <string.h>

/* ---- values --------------------------------------------------------------------------------- */

static int append(const char *bytes, size_t length, void *text)
{
    return dt__text_append(text, bytes, length) ? -1 : 0;
}

bool dt__json_add(struct dt_text *text, const json_t *value, size_t flags)
{
    return value && json_dump_callback(value, append, text, flags | JSON_ENCODE_ANY) == 0;
}

json_t *dt__json_string(const char *value)
{
    json_t *string = json_string(value);
    struct dt_text ascii = {0};
    if (string) return string;
    for (; *value; value++) /* the text is not UTF-8 */
        if (*value & 0x80)
            dt__text_add(&ascii, "\\x%02X", (unsigned char)*value);
        else
            dt__text_append(&ascii, value, 1);
    if (!ascii.status) string = json_string(ascii.data);
    dt__text_free(&ascii);
    return string;
}

dt_status dt__json_add_string(struct dt_text *text, const char *value)
{
    json_t *string = dt__json_string(value);
    if (!dt__json_add(text, string, 0))
        text->status = dt_fail(DT_EMEMORY, "out of memory for a JSON string");
    json_decref(string);
    return text->status;
}

static dt_status add_real(struct dt_text *text, double value)
{
    char buffer[DT_REAL_TEXT];
    return dt__text_add(text, "%s", isfinite(value) ? dt__real_text(value, buffer) : "null");
}

dt_status dt__json_add_float(struct dt_text *text, float value)
{
    char buffer[DT_REAL_TEXT];
    if (!isfinite(value)) return dt__text_add(text, "null");
    dt__float_text(value, buffer);
    return dt__text_append(text, buffer, strlen(buffer));
}

static dt_status add_counts(struct dt_text *text, const uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dt__text_add(text, "%s%llu", i ? "," : "[", (unsigned long long)values[i]);
    return dt__text_add(text, n ? "]" : "[]");
}

dt_status dt__json_add_floats(struct dt_text *text, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dt__text_append(text, i ? "," : "[", 1);
        dt__json_add_float(text, values[i]);
    }
    return dt__text_add(text, n ? "]" : "[]");
}

/* ---- fields --------------------------------------------------------------------------------- */

static void add_key(struct dt_json *json, const char *key)
{
    if (json->text.data && json->text.data[json->text.length - 1] != '{')
        dt__text_add(&json->text, ",");
    dt__json_add_string(&json->text, key);
    dt__text_add(&json->text, ":");
}

void dt__json_start(struct dt_json *json)
{
    dt__text_clear(&json->text);
    dt__text_add(&json->text, "{");
}

void dt__json_open(struct dt_json *json, const char *key)
{
    add_key(json, key);
    dt__text_add(&json->text, "{");
}

void dt__json_close(struct dt_json *json)
{
    dt__text_add(&json->text, "}");
}

void dt__json_int(struct dt_json *json, const char *key, int64_t value)
{
    add_key(json, key);
    dt__text_add(&json->text, "%lld", (long long)value);
}

void dt__json_real(struct dt_json *json, const char *key, double value)
{
    add_key(json, key);
    add_real(&json->text, value);
}

void dt__json_float(struct dt_json *json, const char *key, float value)
{
    add_key(json, key);
    dt__json_add_float(&json->text, value);
}

void dt__json_text(struct dt_json *json, const char *key, const char *value)
{
    add_key(json, key);
    dt__json_add_string(&json->text, value);
}

void dt__json_counts(struct dt_json *json, const char *key, const uint64_t *values, size_t n)
{
    add_key(json, key);
    add_counts(&json->text, values, n);
}

void dt__json_floats(struct dt_json *json, const char *key, const float *values, size_t n)
{
    add_key(json, key);
    dt__json_add_floats(&json->text, values, n);
}

void dt__json_reals(struct dt_json *json, const char *key, const double *values, size_t n)
{
    add_key(json, key);
    for (size_t i = 0; i < n; i++) {
        dt__text_add(&json->text, i ? "," : "[");
        add_real(&json->text, values[i]);
    }
    dt__text_add(&json->text, n ? "]" : "[]");
}

void dt__json_texts(struct dt_json *json, const char *key, char *const *values, size_t n)
{
    add_key(json, key);
    for (size_t i = 0; i < n; i++) {
        dt__text_add(&json->text, i ? "," : "[");
        dt__json_add_string(&json->text, values[i]);
    }
    dt__text_add(&json->text, n ? "]" : "[]");
}

void dt__json_confusion(struct dt_json *json, const uint64_t *confusion, int classes)
{
    const size_t n = (size_t)classes;
    add_key(json, "confusion");
    for (size_t i = 0; i < n; i++) {
        dt__text_add(&json->text, i ? "," : "[");
        add_counts(&json->text, confusion + i * n, n);
    }
    dt__text_add(&json->text, n ? "]" : "[]");
}

dt_status dt__json_end(struct dt_json *json)
{
    return dt__text_add(&json->text, "}");
}

void dt__json_free(struct dt_json *json)
{
    dt__text_free(&json->text);
}
