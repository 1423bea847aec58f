/* Class labels. */
#include "data/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/number.h"

enum { SHOWN = 40 };

static int shown(size_t length)
{
    return length < SHOWN ? (int)length : SHOWN;
}

/* Whole number of a label text. *is_number: it is a number at all. */
static bool whole_number(const char *text, size_t length, int64_t *out, bool *is_number)
{
    double value;
    *is_number = dt__number_parse(text, length, &value) != DT__NUMBER_BAD;
    if (dt__number_parse(text, length, &value) || value != rint(value) || fabs(value) > 9e15)
        return false;
    *out = (int64_t)value;
    return true;
}

/* ---- look-up -------------------------------------------------------------------------------- */

dt_status dt__label_of_number(const struct dt_schema *schema, int64_t value, int32_t *out)
{
    if (value < 0 || value >= schema->classes)
        return dt_fail(DT_EFORMAT, "label %" PRId64 " is out of range: classes are 0..%d", value,
                       schema->classes - 1);
    *out = (int32_t)value;
    return DT_OK;
}

static bool find_name(const struct dt_schema *schema, const char *text, size_t length, int32_t *out)
{
    bool found;
    size_t at =
        dt__names_search(schema->label_names, (size_t)schema->classes, text, length, &found);
    if (found) *out = (int32_t)at;
    return found;
}

/* "+1" and "1.0" are the class that is named "1". */
static bool find_number_name(const struct dt_schema *schema, int64_t value, int32_t *out)
{
    char name[24];
    int length = snprintf(name, sizeof name, "%" PRId64, value);
    return find_name(schema, name, (size_t)length, out);
}

dt_status dt__label_of_text(const struct dt_schema *schema, const char *text, size_t length,
                            int32_t *out)
{
    int64_t value;
    bool is_number;
    if (schema->label_names && find_name(schema, text, length, out)) return DT_OK;
    bool whole = whole_number(text, length, &value, &is_number);
    if (whole && schema->label_names && find_number_name(schema, value, out)) return DT_OK;
    if (schema->label_names)
        return dt_fail(DT_EFORMAT, "label '%.*s' was never seen in training", shown(length), text);
    if (whole) return dt__label_of_number(schema, value, out);
    return dt_fail(DT_EFORMAT, "label '%.*s' is not a class number", shown(length), text);
}

/* ---- learning ------------------------------------------------------------------------------- */

void dt__labels_free(struct dt__labels *labels)
{
    dt_free(labels->negative);
    dt__names_free(labels->texts.items, labels->texts.count);
    *labels = (struct dt__labels){0};
}

static dt_status add_number(struct dt__labels *labels, int64_t value)
{
    if (value >= DT__MAX_CLASSES)
        return dt_fail(DT_EFORMAT, "label %" PRId64 " is out of range: at most %d classes", value,
                       DT__MAX_CLASSES);
    if (value < 0 && !labels->negative)
        DT_TRY(dt_format(&labels->negative, "%s:%" PRIu64 ": label %" PRId64, labels->path,
                         labels->line, value));
    if (value >= -1 && value <= 1)
        labels->seen[value + 1] = true;
    else
        labels->beyond = true;
    if (value > labels->max) labels->max = value;
    return DT_OK;
}

static dt_status add_text(struct dt__labels *labels, const char *text, size_t length)
{
    bool found;
    size_t at = dt__names_search(labels->texts.items, labels->texts.count, text, length, &found);
    if (found) return DT_OK;
    if (labels->texts.count == DT__MAX_TEXT_CLASSES)
        return dt_fail(DT_EFORMAT, "label '%.*s': more than %d distinct labels", shown(length),
                       text, DT__MAX_TEXT_CLASSES);
    return dt__names_insert(&labels->texts, at, text, length);
}

dt_status dt__labels_add_text(struct dt__labels *labels, const char *text, size_t length)
{
    int32_t class;
    int64_t value = 0;
    bool is_number, whole = whole_number(text, length, &value, &is_number);
    if (!length || memchr(text, 0, length)) return dt_fail(DT_EFORMAT, "the label is empty");
    if (labels->known) return dt__label_of_text(labels->known, text, length, &class);
    if (is_number && !whole)
        return dt_fail(DT_EFORMAT, "label '%.*s' is not a class number", shown(length), text);
    if (!labels->kind) labels->kind = is_number ? DT__LABELS_NUMBERS : DT__LABELS_TEXTS;
    if (is_number != (labels->kind == DT__LABELS_NUMBERS))
        return dt_fail(DT_EFORMAT, "label '%.*s' is %s, unlike the labels before it", shown(length),
                       text, is_number ? "a number" : "not a number");
    return is_number ? add_number(labels, value) : add_text(labels, text, length);
}

dt_status dt__labels_add_number(struct dt__labels *labels, int64_t value)
{
    int32_t class;
    if (labels->known) return dt__label_of_number(labels->known, value, &class);
    if (value < 0)
        return dt_fail(DT_EFORMAT, "label %" PRId64 " is out of range: classes count from 0",
                       value);
    if (labels->kind == DT__LABELS_NAMED && (uint64_t)value >= labels->texts.count)
        return dt_fail(DT_EFORMAT, "label %" PRId64 " is out of range: %zu classes have names",
                       value, labels->texts.count);
    if (labels->kind == DT__LABELS_TEXTS)
        return dt_fail(DT_EFORMAT, "labels are numbers, those of the files before are texts");
    if (!labels->kind) labels->kind = DT__LABELS_NUMBERS;
    return add_number(labels, value);
}

dt_status dt__labels_add_names(struct dt__labels *labels, char *const *names, size_t count)
{
    const struct dt_schema *known = labels->known;
    if (known && known->label_names &&
        (count != (size_t)known->classes || !dt__names_equal(names, known->label_names, count)))
        return dt_fail(DT_EMISMATCH, "its classes are named unlike those of the training data");
    if (known) return DT_OK;
    if (labels->kind == DT__LABELS_NAMED) {
        if (count != labels->texts.count || !dt__names_equal(names, labels->texts.items, count))
            return dt_fail(DT_EMISMATCH, "its classes are named unlike those of the files before");
        return DT_OK;
    }
    if (labels->kind) return dt_fail(DT_EMISMATCH, "it names its classes, the files before do not");
    for (size_t i = 0; i < count; i++)
        DT_TRY(dt__names_add(&labels->texts, names[i], strlen(names[i])));
    labels->kind = DT__LABELS_NAMED;
    return DT_OK;
}

static dt_status finish_numbers(struct dt__labels *labels, struct dt_schema *schema)
{
    bool signs = labels->seen[0] && labels->seen[2] && !labels->seen[1] && !labels->beyond;
    schema->classes = labels->max < 1 ? 2 : (int)labels->max + 1;
    if (!labels->negative) return DT_OK;
    if (!signs)
        return dt_fail(DT_EFORMAT, "%s is out of range: classes are 0..max, or -1 and 1",
                       labels->negative);
    DT_TRY(dt__names_add(&labels->texts, "-1", 2));
    return dt__names_add(&labels->texts, "1", 1);
}

dt_status dt__labels_finish(struct dt__labels *labels, struct dt_schema *schema)
{
    if (labels->kind == DT__LABELS_NUMBERS) DT_TRY(finish_numbers(labels, schema));
    if (!labels->texts.count) return DT_OK;
    if (labels->texts.count == 1)
        return dt_fail(DT_EMISMATCH, "every label is '%s': a classifier needs two classes",
                       labels->texts.items[0]);
    schema->classes = (int)labels->texts.count;
    schema->label_names = labels->texts.items;
    labels->texts = (struct dt__names){0};
    return DT_OK;
}
