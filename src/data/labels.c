/* Class labels: learned from the training data, looked up in what was learned. */
#include "data/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/text.h"

enum { MOST_UNASKED = 1000 };

/* Whole number of a label text. *is_number: it is a number at all. */
static bool text_whole_number(const char *text, size_t length, int64_t *out, bool *is_number)
{
    double value;
    const enum dt__number kind = dt__number_parse(text, length, &value);
    *is_number = kind != DT__NUMBER_BAD;
    if (kind || value != rint(value) || fabs(value) > 9e15) return false;
    *out = (int64_t)value;
    return true;
}

/* ---- look-up -------------------------------------------------------------------------------- */

static bool schema_has_signs(const struct dt_schema *schema)
{
    return schema->classes == 2 && schema->label_names && !strcmp(schema->label_names[0], "-1") &&
           !strcmp(schema->label_names[1], "1");
}

void dt__labels_to_classes(const struct dt_schema *schema, unsigned char *labels, size_t count)
{
    if (schema->targets || !schema_has_signs(schema)) return;
    for (size_t i = 0; i < count; i++) {
        int32_t label;
        memcpy(&label, labels + i * sizeof label, sizeof label);
        if (label == 0) label = -2; /* neither */
        label = label == -1 ? 0 : label;
        memcpy(labels + i * sizeof label, &label, sizeof label);
    }
}

dt_status dt__target_check(const struct dt_targets *of, double value)
{
    if (!of->expected || (value >= of->least && value <= of->greatest)) return DT_OK;
    return dt_fail(DT_EFORMAT, "a target is %g, expected %s", value, of->expected);
}

dt_status dt__label_of_number(const struct dt_schema *schema, int64_t value, int32_t *out)
{
    if (value < 0 || value >= schema->classes)
        return dt_fail(DT_EFORMAT, "label %" PRId64 " is out of range: classes are 0..%d", value,
                       schema->classes - 1);
    *out = (int32_t)value;
    return DT_OK;
}

/* The class that has a name. "+1" and "1.0" are the class named "1". */
static bool class_find(const struct dt__dict *names, const char *text, size_t length, int32_t *out)
{
    int64_t value;
    bool is_number;
    uint32_t class;
    bool found = dt__dict_find_blank(names, text, length, &class);
    if (!found && text_whole_number(text, length, &value, &is_number)) {
        char name[24];
        int digits = snprintf(name, sizeof name, "%" PRId64, value);
        found = dt__dict_find(names, name, (size_t)digits, &class);
    }
    if (found) *out = (int32_t) class;
    return found;
}

dt_status dt__label_of_text(const struct dt_schema *schema, const struct dt__dict *names,
                            bool numbered, const char *text, size_t length, int32_t *out)
{
    int64_t value;
    bool is_number, whole = text_whole_number(text, length, &value, &is_number);
    if (whole && (numbered || !schema->label_names)) return dt__label_of_number(schema, value, out);
    if (class_find(names, text, length, out)) return DT_OK;
    return dt_fail(DT_EFORMAT,
                   schema->label_names ? "label '%.*s' was never seen in training"
                                       : "label '%.*s' is not a class number",
                   dt__shown(length), text);
}

/* ---- learning ------------------------------------------------------------------------------- */

/* The names that data.class_names lists, or has in a file. A name that is missing would give its
 * class the next one's, and a number would be the name of one class and the label of another. */
static dt_status labels_read_names(struct dt__labels *labels, const char *key)
{
    enum { MOST_BYTES = 1 << 26 };
    const bool file = dt_path_exists(key);
    struct dt__names names = {0};
    char *text = NULL, *rest;
    size_t length;
    dt_status status;
    if (!file && !strchr(key, ','))
        return dt_fail(DT_EUSAGE,
                       "data.class_names=%s: there is no such file; expected names, "
                       "comma-separated, or a file with one a line",
                       key);
    DT_GUARD(file ? dt_file_read(key, MOST_BYTES, &text, &length) : dt_strdup(key, &text));
    if (file && strlen(text) != length)
        DT_GUARD(dt_fail(DT_EFORMAT, "data.class_names=%s: a byte of zero in the file", key));
    rest = text + (strncmp(text, "\xEF\xBB\xBF", 3) ? 0 : 3); /* behind a byte order mark */
    for (const char *name; (name = file ? strsep(&rest, "\n") : dt__list_next(&rest));) {
        length = strcspn(name, "\r");
        dt__text_trim(&name, &length);
        if (!length && !rest && file) break; /* behind the last line's end */
        if (!length || dt__text_is_number(name, length))
            DT_GUARD(dt_fail(DT_EFORMAT, "data.class_names: '%.*s' is no name for class %zu",
                             dt__shown(length), name, names.count));
        DT_GUARD(dt__names_add(&names, name, length));
    }
    status = dt__labels_add_names(labels, names.items, names.count);
    if (status) dt_fail_prefix(status, "data.class_names: ");
done:
    dt_free(text);
    dt__names_free(names.items, names.count);
    return status;
}

dt_status dt__labels_init(struct dt__labels *labels, const struct dt_schema *known,
                          const struct dt_config *config)
{
    const char *names = config->data.class_names;
    *labels = (struct dt__labels){.known = known,
                                  .task_given = dt_config_is_given(config, "model.task"),
                                  .numbered = *names,
                                  .min = INT64_MAX,
                                  .max = -1};
    if (!known) return *names ? labels_read_names(labels, names) : DT_OK;
    return dt__dict_add_names(&labels->texts, known->label_names, (size_t)known->classes);
}

void dt__labels_free(struct dt__labels *labels)
{
    dt_free(labels->negative);
    dt__dict_free(&labels->texts);
    *labels = (struct dt__labels){0};
}

static dt_status labels_learn_number(struct dt__labels *labels, int64_t value)
{
    if (value >= DT__MAX_CLASSES)
        return dt_fail(DT_EFORMAT, "label %" PRId64 " is out of range: at most %d classes", value,
                       DT__MAX_CLASSES);
    if (value < 0 && !labels->negative)
        DT_TRY(labels->line ? dt_format(&labels->negative, "%s:%" PRIu64 ": label %" PRId64,
                                        labels->path, labels->line, value)
                            : dt_format(&labels->negative, "%s: label %" PRId64,
                                        labels->path ? labels->path : "data", value));
    labels->zero |= value == 0;
    if (value > labels->max) labels->max = value;
    if (value < labels->min) labels->min = value;
    return DT_OK;
}

/* A number but for signs and marks is hardly the name of a class. */
static dt_status first_text_check(const char *text, size_t length)
{
    const enum dt__text_kind kind = dt__text_kind(text, length);
    float value;
    if (kind == DT__TEXT_PLAIN || kind == DT__TEXT_DATE || !dt__number_read(text, length, &value))
        return DT_OK;
    return dt_fail(DT_EFORMAT,
                   "label %s; model.task=classify takes such labels as names of classes",
                   dt_error_text());
}

dt_status dt__labels_add_text(struct dt__labels *labels, const char *text, size_t length,
                              int32_t *out_code)
{
    uint32_t number;
    int64_t value = 0;
    bool is_number;
    if (!length)
        return dt_fail(DT_EFORMAT,
                       "the label is empty (data.unlabelled=skip leaves such rows of CSV out)");
    if (memchr(text, 0, length)) return dt_fail(DT_EFORMAT, "a byte of zero in the label");
    if (labels->known)
        return dt__label_of_text(labels->known, &labels->texts, labels->numbered, text, length,
                                 out_code);
    const bool whole = text_whole_number(text, length, &value, &is_number);
    if (!whole && dt__text_is_missing(text, length))
        return dt_fail(DT_EFORMAT,
                       "label '%.*s' is a missing value, not a class (data.unlabelled=skip leaves "
                       "such rows of CSV out)",
                       dt__shown(length), text);
    if (is_number && !whole)
        return dt_fail(DT_EFORMAT,
                       "label '%.*s' is not a class number; model.task=regress learns such values",
                       dt__shown(length), text);
    *out_code = (int32_t)value;
    if (labels->kind == DT__LABELS_NAMED) {
        const size_t count = labels->texts.count;
        if (labels->numbered && whole && (uint64_t)value < count) return DT_OK;
        if (class_find(&labels->texts, text, length, out_code)) return DT_OK;
        return dt_fail(DT_EFORMAT, "label '%.*s' is none of the %zu classes that %s names",
                       dt__shown(length), text, count,
                       labels->numbered ? "data.class_names" : "a file before");
    }
    if (!labels->kind && !labels->task_given && !is_number) DT_TRY(first_text_check(text, length));
    if (!labels->kind) labels->kind = is_number ? DT__LABELS_NUMBERS : DT__LABELS_TEXTS;
    if (is_number != (labels->kind == DT__LABELS_NUMBERS))
        return dt_fail(DT_EFORMAT,
                       "label '%.*s' is %s, unlike the labels before it: write all as numbers, or "
                       "all as texts, such as c1",
                       dt__shown(length), text, is_number ? "a number" : "not a number");
    if (is_number) return labels_learn_number(labels, value);
    DT_TRY(dt__dict_add(&labels->texts, text, length, &number));
    *out_code = (int32_t)number;
    const int most = labels->task_given ? DT__MAX_CLASSES : DT__MAX_TEXT_CLASSES;
    if (labels->texts.count <= (size_t)most) return DT_OK;
    return dt_fail(DT_EFORMAT, "label '%.*s': more than %d distinct labels%s", dt__shown(length),
                   text, most,
                   labels->task_given ? "" : ": set model.task=classify if they are classes");
}

dt_status dt__labels_add_number(struct dt__labels *labels, int64_t value)
{
    int32_t class;
    if (labels->known && !labels->named_here && schema_has_signs(labels->known))
        return value == -1 || value == 1
                   ? DT_OK
                   : dt_fail(DT_EFORMAT, "label %" PRId64 " was never seen in training", value);
    if (labels->known) return dt__label_of_number(labels->known, value, &class);
    if (labels->kind == DT__LABELS_NAMED)
        return (uint64_t)value < labels->texts.count
                   ? DT_OK
                   : dt_fail(DT_EFORMAT,
                             "label %" PRId64 " is out of range: %zu classes have names", value,
                             labels->texts.count);
    if (labels->kind == DT__LABELS_TEXTS)
        return dt_fail(DT_EFORMAT, "labels are numbers, those of the files before are texts");
    labels->kind = DT__LABELS_NUMBERS;
    return labels_learn_number(labels, value);
}

dt_status dt__labels_add_names(struct dt__labels *labels, char *const *names, size_t count)
{
    const struct dt_schema *known = labels->known;
    bool same = labels->texts.count == count;
    labels->named_here = true;
    for (size_t i = 0; same && i < count; i++)
        same = !strcmp(dt__dict_text(&labels->texts, i), names[i]);
    if (known && known->label_names && !same)
        return dt_fail(DT_EMISMATCH, "its classes are named unlike those of the training data");
    if (labels->kind == DT__LABELS_NAMED && !same)
        return dt_fail(DT_EMISMATCH, "its classes are named unlike those of the files before");
    if (known || labels->kind == DT__LABELS_NAMED) return DT_OK;
    if (labels->kind) return dt_fail(DT_EMISMATCH, "it names its classes, the files before do not");
    for (size_t i = 0; i < count; i++) {
        uint32_t number;
        DT_TRY(dt__dict_add(&labels->texts, names[i], strlen(names[i]), &number));
        if (number != i) return dt_fail(DT_EFORMAT, "two classes are named '%s'", names[i]);
    }
    labels->kind = DT__LABELS_NAMED;
    return DT_OK;
}

/* Says, once each, that two texts are the same but for blanks around them, or but for the case of
 * letters. */
static void warn_of_twins(const struct dt__dict *texts)
{
    enum { MOST = 100 }; /* classes of which all pairs are looked at */
    for (size_t i = 1; i < texts->count && texts->count <= MOST; i++) {
        size_t j = 0;
        while (j < i && strcasecmp(dt__dict_text(texts, i), dt__dict_text(texts, j)))
            j++;
        if (j == i) continue;
        dt_warn("'%.40s' and '%.40s' are two classes: labels are told apart by the case of "
                "letters, too",
                dt__dict_text(texts, j), dt__dict_text(texts, i));
        break;
    }
    for (size_t i = 0; i < texts->count; i++) {
        const char *whole = dt__dict_text(texts, i), *text = whole;
        size_t length = texts->entries[i].length;
        uint32_t other;
        dt__text_trim(&text, &length);
        if (!dt__dict_find(texts, text, length, &other) || other == i) continue;
        dt_warn("'%.40s' and '%.40s' are two classes: labels are told apart by the blanks around "
                "them, too",
                whole, dt__dict_text(texts, other));
        return;
    }
}

dt_status dt__labels_finish(struct dt__labels *labels, struct dt_schema *schema)
{
    struct dt__names names = {0};
    dt_status status = DT_OK;
    if (labels->kind == DT__LABELS_NUMBERS) {
        const bool signs = labels->min == -1 && labels->max == 1 && !labels->zero;
        if (labels->min == labels->max)
            return dt_fail(DT_EMISMATCH,
                           "every label is %" PRId64 ": a classifier needs two classes",
                           labels->max);
        if (labels->max >= MOST_UNASKED && !labels->task_given)
            return dt_fail(DT_EFORMAT,
                           "%s: labels are numbers up to %" PRId64 ": set model.task=regress to "
                           "learn them as values, or model.task=classify if they are classes",
                           labels->path ? labels->path : "data", labels->max);
        if (labels->negative && !signs)
            return dt_fail(DT_EFORMAT,
                           "%s is out of range: classes are 0..max, or -1 and 1, or texts; "
                           "model.task=regress learns amounts",
                           labels->negative);
        if (labels->min > 0)
            dt_warn("the labels are %" PRId64 " to %" PRId64 ": classes are counted from 0, and "
                    "none is class 0: write 0 to %" PRId64 ", or texts",
                    labels->min, labels->max, labels->max - labels->min);
        schema->classes = (int)labels->max + 1;
        if (!labels->negative) return DT_OK;
        DT_TRY(dt__dict_add_names(&labels->texts, (char *[]){"-1", "1"}, 2));
    }
    for (size_t i = 0; i < labels->texts.count && !status; i++)
        status = dt__names_add(&names, dt__dict_text(&labels->texts, i),
                               labels->texts.entries[i].length);
    if (labels->kind == DT__LABELS_TEXTS) {
        warn_of_twins(&labels->texts);
        dt__names_sort(names.items, names.count);
    }
    schema->label_names = names.items;
    schema->classes = (int)names.count;
    if (!status && names.count == 1)
        status = dt_fail(DT_EMISMATCH, "every label is '%s': a classifier needs two classes",
                         names.items[0]);
    return status;
}
