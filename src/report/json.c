#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtrain/report.h"

/* ---- values --------------------------------------------------------------------------------- */

static int append(const char *bytes, size_t length, void *text)
{
    return dt_text_append(text, bytes, length) ? -1 : 0;
}

/* NULL: no memory. */
static json_t *string_of(const char *value)
{
    json_t *string = json_string(value);
    char *ascii;
    if (string || dt_strdup(value, &ascii)) return string;
    for (char *at = ascii; *at; at++) {
        if ((unsigned char)*at >= 0x80) *at = '?';
    }
    string = json_string(ascii);
    dt_free(ascii);
    return string;
}

static dt_status add_string(struct dt_text *text, const char *value)
{
    json_t *string = string_of(value);
    int failed = !string || json_dump_callback(string, append, text, JSON_ENCODE_ANY);
    json_decref(string);
    return failed ? dt_fail(DT_EMEMORY, "out of memory for a JSON string") : DT_OK;
}

static dt_status add_real(struct dt_text *text, double value)
{
    char buffer[DT_REAL_TEXT];
    return dt_text_add(text, "%s", isfinite(value) ? dt_real_text(value, buffer) : "null");
}

static dt_status add_float(struct dt_text *text, float value)
{
    char buffer[DT_REAL_TEXT];
    if (!isfinite(value)) return dt_text_add(text, "null");
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(buffer, sizeof buffer, "%.*g", digits, (double)value);
        if (strtof(buffer, NULL) == value) break;
    }
    return dt_text_add(text, "%s", buffer);
}

static dt_status add_counts(struct dt_text *text, const uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        DT_TRY(dt_text_add(text, "%s%llu", i ? "," : "[", (unsigned long long)values[i]));
    return dt_text_add(text, n ? "]" : "[]");
}

static dt_status add_floats(struct dt_text *text, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        DT_TRY(dt_text_add(text, i ? "," : "["));
        DT_TRY(add_float(text, values[i]));
    }
    return dt_text_add(text, n ? "]" : "[]");
}

static dt_status add_matrix(struct dt_text *text, const uint64_t *values, size_t rows,
                            size_t columns)
{
    for (size_t i = 0; i < rows; i++) {
        DT_TRY(dt_text_add(text, i ? "," : "["));
        DT_TRY(add_counts(text, values + i * columns, columns));
    }
    return dt_text_add(text, rows ? "]" : "[]");
}

/* ---- fields --------------------------------------------------------------------------------- */

static void keep(struct dt_json *json, dt_status status)
{
    if (!json->status) json->status = status;
}

static void add_key(struct dt_json *json, const char *key)
{
    if (json->text.length > 1) keep(json, dt_text_add(&json->text, ","));
    keep(json, add_string(&json->text, key));
    keep(json, dt_text_add(&json->text, ":"));
}

void dt_json_begin(struct dt_json *json)
{
    json->text.length = 0;
    json->status = dt_text_add(&json->text, "{");
}

void dt_json_int(struct dt_json *json, const char *key, int64_t value)
{
    add_key(json, key);
    keep(json, dt_text_add(&json->text, "%lld", (long long)value));
}

void dt_json_real(struct dt_json *json, const char *key, double value)
{
    add_key(json, key);
    keep(json, add_real(&json->text, value));
}

void dt_json_float(struct dt_json *json, const char *key, float value)
{
    add_key(json, key);
    keep(json, add_float(&json->text, value));
}

void dt_json_text(struct dt_json *json, const char *key, const char *value)
{
    add_key(json, key);
    keep(json, add_string(&json->text, value));
}

void dt_json_counts(struct dt_json *json, const char *key, const uint64_t *values, size_t n)
{
    add_key(json, key);
    keep(json, add_counts(&json->text, values, n));
}

void dt_json_floats(struct dt_json *json, const char *key, const float *values, size_t n)
{
    add_key(json, key);
    keep(json, add_floats(&json->text, values, n));
}

void dt_json_confusion(struct dt_json *json, const uint64_t *confusion, int classes)
{
    add_key(json, "confusion");
    keep(json, add_matrix(&json->text, confusion, (size_t)classes, (size_t)classes));
}

void dt_json_metrics(struct dt_json *json, const struct dt_metric_values *values)
{
    const struct {
        const char *key;
        double value;
    } fields[] = {
        {"accuracy", values->accuracy}, {"top5", values->top5},
        {"auc", values->auc},           {"precision", values->precision},
        {"recall", values->recall},     {"rmse", values->rmse},
        {"mae", values->mae},           {"r2", values->r2},
    };
    dt_json_int(json, "rows", (int64_t)values->rows);
    dt_json_real(json, "loss", values->loss);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!isnan(fields[i].value)) dt_json_real(json, fields[i].key, fields[i].value);
    }
}

dt_status dt_json_end(struct dt_json *json)
{
    keep(json, dt_text_add(&json->text, "}"));
    return json->status;
}

void dt_json_free(struct dt_json *json)
{
    dt_text_free(&json->text);
    *json = (struct dt_json){0};
}

dt_status dt_metrics_json(const struct dt_metric_values *values, const uint64_t *confusion,
                          int classes, uint64_t step, char **out)
{
    struct dt_json json = {0};
    dt_json_begin(&json);
    dt_json_int(&json, "step", (int64_t)step);
    dt_json_metrics(&json, values);
    if (confusion) dt_json_confusion(&json, confusion, classes);
    dt_status status = dt_json_end(&json);
    if (status)
        dt_json_free(&json);
    else
        *out = json.text.data;
    return status;
}
