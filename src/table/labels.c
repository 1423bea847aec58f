/* Class labels: learned from the training data, then looked up. */
#include "table/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

enum { MOST_UNASKED = 1000 };
static const double MOST_NUMBER = 9e15; /* a double holds all whole numbers up to 2^53 = 9.007e15 */

/* Reads a label as a whole number; returns false if it is not one. Sets *is_number if it is a
 * number of any kind. */
static bool text_whole_number(const char *text, size_t length, int64_t *out, bool *is_number)
{
    double value;
    const enum dt__number kind = dt__number_parse(text, length, &value);
    *is_number = kind != DT__NUMBER_BAD;
    if (kind || value != rint(value) || fabs(value) > MOST_NUMBER) return false;
    *out = (int64_t)value;
    return true;
}

/* ---- numbers as keys ------------------------------------------------------------------------ */

static dt_status numbers_add(struct dt__dict *numbers, int64_t value, uint32_t *out)
{
    return dt__dict_add(numbers, (const char *)&value, sizeof value, out);
}

static bool numbers_find(const struct dt__dict *numbers, int64_t value, int32_t *out)
{
    uint32_t number;
    const bool found = dt__dict_find(numbers, (const char *)&value, sizeof value, &number);
    if (found) *out = (int32_t)number;
    return found;
}

static int64_t numbers_at(const struct dt__dict *numbers, size_t i)
{
    int64_t value;
    memcpy(&value, dt__dict_text(numbers, i), sizeof value);
    return value;
}

static int number_order(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Reads each name as a number, in the order of the names. */
static dt_status names_numbers(const struct dt__dict *names, int64_t **out)
{
    bool is_number;
    DT_TRY(dt__alloc(names->count, sizeof **out, "labels", out));
    for (size_t i = 0; i < names->count; i++)
        (void)text_whole_number(dt__dict_text(names, i), names->entries[i].length, *out + i,
                                &is_number);
    return DT_OK;
}

/* Makes a sorted array of the numbers. Its capacity is `most` if there are fewer numbers. */
static dt_status numbers_sorted(const struct dt__dict *numbers, size_t most, int64_t **out)
{
    DT_TRY(dt__alloc(numbers->count > most ? numbers->count : most, sizeof **out, "labels", out));
    for (size_t i = 0; i < numbers->count; i++)
        (*out)[i] = numbers_at(numbers, i);
    qsort(*out, numbers->count, sizeof **out, number_order);
    return DT_OK;
}

/* ---- look-up -------------------------------------------------------------------------------- */

#define DECLARE "; train with data.class_names to declare classes that no row has"

/* Returns true if the classes are named -1 and 1. Models of early versions have these names without
 * label numbers. */
static bool schema_has_signs(const struct dt_schema *schema)
{
    return schema->classes == 2 && schema->label_names && !strcmp(schema->label_names[0], "-1") &&
           !strcmp(schema->label_names[1], "1");
}

dt_status dt__classes_init(struct dt__classes *classes, const struct dt_schema *schema,
                           bool numbered)
{
    static const int64_t signs[2] = {-1, 1};
    const int64_t *labels = schema->label_numbers;
    uint32_t number;
    *classes = (struct dt__classes){
        .count = schema->classes, .named = schema->label_names, .numbered = numbered};
    if (!labels && schema_has_signs(schema)) labels = signs;
    for (int c = 0; labels && c < schema->classes; c++)
        DT_TRY(numbers_add(&classes->numbers, labels[c], &number));
    return dt__dict_add_names(&classes->names, schema->label_names, (size_t)schema->classes);
}

void dt__classes_free(struct dt__classes *classes)
{
    dt__dict_free(&classes->names);
    dt__dict_free(&classes->numbers);
}

dt_status dt__class_check(int classes, int64_t position)
{
    if (position >= 0 && position < classes) return DT_OK;
    return dt_fail(DT_EFORMAT, "label %" PRId64 " is out of range: classes are 0..%d" DECLARE,
                   position, classes - 1);
}

dt_status dt__class_of_number(const struct dt__classes *classes, int64_t value, int32_t *out)
{
    if (classes->numbers.count) {
        if (numbers_find(&classes->numbers, value, out)) return DT_OK;
        return dt_fail(DT_EFORMAT, "label %" PRId64 " was never seen in training" DECLARE, value);
    }
    DT_TRY(dt__class_check(classes->count, value));
    *out = (int32_t)value;
    return DT_OK;
}

/* Finds a class by its name. "+1" and "1.0" find the class named "1". */
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

dt_status dt__class_of_text(const struct dt__classes *classes, const char *text, size_t length,
                            int32_t *out)
{
    int64_t value;
    bool is_number;
    const bool named = classes->named && !classes->numbered && !classes->numbers.count;
    if (!named && text_whole_number(text, length, &value, &is_number))
        return dt__class_of_number(classes, value, out);
    if (class_find(&classes->names, text, length, out)) return DT_OK;
    return dt_fail(DT_EFORMAT,
                   classes->named ? "label '%.*s' was never seen in training" DECLARE
                                  : "label '%.*s' is not a class number",
                   dt__shown(length), text);
}

void dt__classes_of_labels(const struct dt__classes *classes, unsigned char *labels, size_t count)
{
    for (size_t i = 0; i < count && classes->numbers.count; i++) {
        int32_t label, class = -1;
        memcpy(&label, labels + i * sizeof label, sizeof label);
        (void)numbers_find(&classes->numbers, label, &class);
        memcpy(labels + i * sizeof class, &class, sizeof class);
    }
}

dt_status dt__target_check(const struct dt_targets *targets, double value)
{
    if (!targets->expected || (value >= targets->least && value <= targets->greatest)) return DT_OK;
    return dt_fail(DT_EFORMAT, "a target is %g, expected %s", value, targets->expected);
}

/* ---- learning ------------------------------------------------------------------------------- */

/* Adds a name of data.class_names. */
static dt_status class_name_add(struct dt__labels *labels, struct dt__names *names,
                                const char *name, size_t length)
{
    int64_t value;
    bool is_number = false;
    char digits[24];
    const bool whole = length && text_whole_number(name, length, &value, &is_number);
    if (!names->count) labels->numeric = whole;
    /* A missing name would shift the names of all later classes. If only some names were numbers, a
     * label such as 2 could be the name of one class and the number of another. */
    if (!length || is_number != labels->numeric || whole != is_number)
        return dt_fail(DT_EFORMAT,
                       "data.class_names: '%.*s' cannot name class %zu: expected all texts or all "
                       "whole numbers, and none empty",
                       dt__shown(length), name, names->count);
    if (!whole) return dt__names_add(names, name, length);
    length = (size_t)snprintf(digits, sizeof digits, "%" PRId64, value);
    return dt__names_add(names, digits, length);
}

/* Reads the names of data.class_names: the value is a list, or a file with one name a line. */
static dt_status labels_read_names(struct dt__labels *labels, const char *key)
{
    enum { MOST_BYTES = 1 << 26 };
    const bool file = dt__path_exists(key);
    struct dt__names names = {0};
    char *text = NULL, *rest;
    size_t length;
    dt_status status;
    if (!file && !strchr(key, ','))
        return dt_fail(DT_EUSAGE,
                       "data.class_names=%s: there is no such file; expected names, "
                       "comma-separated, or a file with one a line",
                       key);
    DT_GUARD(file ? dt__file_read(key, MOST_BYTES, &text, &length) : dt__strdup(key, &text));
    if (file && strlen(text) != length)
        DT_GUARD(dt_fail(DT_EFORMAT, "data.class_names=%s: a zero byte in the file", key));
    rest = text + (strncmp(text, "\xEF\xBB\xBF", 3) ? 0 : 3); /* skips a byte order mark */
    for (const char *name; (name = file ? strsep(&rest, "\n") : dt__list_next(&rest));) {
        length = strcspn(name, "\r");
        dt__text_trim(&name, &length);
        if (!length && !rest && file) break; /* the file ends with a line break */
        DT_GUARD(class_name_add(labels, &names, name, length));
    }
    status = dt__labels_add_names(labels, names.items, names.count);
    if (status) dt_fail_prefix(status, "data.class_names: ");
    labels->named_by_file = false;
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
                                  .task_given = dt__config_is_given(config, "model.task"),
                                  .numbered = *names};
    if (!known) return *names ? labels_read_names(labels, names) : DT_OK;
    DT_TRY(dt__classes_init(&labels->classes, known, labels->numbered));
    return dt__dict_add_names(&labels->texts, known->label_names, (size_t)known->classes);
}

void dt__labels_free(struct dt__labels *labels)
{
    dt_free(labels->codes);
    dt_free(labels->negative);
    dt__classes_free(&labels->classes);
    dt__dict_free(&labels->numbers);
    dt__dict_free(&labels->texts);
    *labels = (struct dt__labels){0};
}

void dt__labels_enter(struct dt__labels *labels, const char *path)
{
    labels->path = path;
    labels->line = 0;
    labels->named_by_file = false;
}

/* Fails if more than `most` distinct labels were seen; the message shows the last one. */
static dt_status count_check(const struct dt__labels *labels, const struct dt__dict *seen, int most,
                             const char *text, size_t length)
{
    if (seen->count <= (size_t)most) return DT_OK;
    const bool numbers = seen == &labels->numbers;
    return dt_fail(DT_EFORMAT, "label '%.*s': more than %d distinct labels%s", dt__shown(length),
                   text, most,
                   labels->task_given ? ""
                   : numbers          ? ": set model.task=regress to learn them as values"
                                      : ": set model.task=classify if they are classes");
}

static dt_status labels_learn_number(struct dt__labels *labels, int64_t value, uint32_t *out)
{
    char text[24];
    if (value < 0 && !labels->negative)
        DT_TRY(labels->line ? dt__format(&labels->negative, "%s:%" PRIu64 ": label %" PRId64,
                                         labels->path, labels->line, value)
                            : dt__format(&labels->negative, "%s: label %" PRId64,
                                         labels->path ? labels->path : "data", value));
    DT_TRY(numbers_add(&labels->numbers, value, out));
    if (labels->numbers.count <= DT__MAX_CLASSES) return DT_OK;
    const int digits = snprintf(text, sizeof text, "%" PRId64, value);
    return count_check(labels, &labels->numbers, DT__MAX_CLASSES, text, (size_t)digits);
}

/* Rejects a first label that resembles a number but is none, such as "1,5" or "$3": it is hardly a
 * class name. */
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

/* Returns true if a label may be a whole number as well as a name of data.class_names. */
static bool names_have_numbers(const struct dt__labels *labels)
{
    return labels->numbered && !labels->numeric;
}

static dt_status labels_find_named(struct dt__labels *labels, const char *text, size_t length,
                                   int32_t *out_code)
{
    const size_t count = labels->texts.count;
    int64_t value;
    bool is_number;
    uint32_t number;
    if (names_have_numbers(labels) && text_whole_number(text, length, &value, &is_number)) {
        DT_TRY(labels_learn_number(labels, value, &number));
        *out_code = (int32_t)(count + number);
        return DT_OK;
    }
    if (class_find(&labels->texts, text, length, out_code)) return DT_OK;
    return dt_fail(DT_EFORMAT, "label '%.*s' is none of the %zu classes that %s names",
                   dt__shown(length), text, count,
                   labels->numbered ? "data.class_names" : "an earlier file");
}

/* Turns a failure to find a label into class -1 if unknown labels are accepted. */
static dt_status unknown_take(struct dt__labels *labels, dt_status status, int32_t *out)
{
    if (!status || !labels->takes_unknown) return status;
    labels->unknown++;
    *out = -1;
    return DT_OK;
}

static dt_status labels_add_text(struct dt__labels *labels, const char *text, size_t length,
                                 int32_t *out_code)
{
    const char *const whole_text = text;
    const size_t whole_length = length;
    uint32_t number;
    int64_t value = 0;
    bool is_number;
    dt__text_trim(&text, &length);
    if (!length)
        return dt_fail(DT_EFORMAT, "the label is empty (data.unlabelled=skip skips such rows of "
                                   "CSV and JSON lines files)");
    if (memchr(text, 0, length)) return dt_fail(DT_EFORMAT, "a zero byte in the label");
    if (labels->known)
        return unknown_take(labels,
                            dt__class_of_text(&labels->classes, whole_text, whole_length, out_code),
                            out_code);
    const bool whole = text_whole_number(text, length, &value, &is_number);
    if (!whole && dt__text_is_missing(text, length))
        return dt_fail(DT_EFORMAT,
                       "label '%.*s' is a missing value, not a class (data.unlabelled=skip skips "
                       "such rows of CSV and JSON lines files)",
                       dt__shown(length), text);
    if (is_number && !whole)
        return dt_fail(DT_EFORMAT,
                       "label '%.*s' is not a class number; model.task=regress learns such values",
                       dt__shown(length), text);
    if (labels->kind == DT__LABELS_NAMED) return labels_find_named(labels, text, length, out_code);
    if (!labels->kind && !labels->task_given && !is_number) DT_TRY(first_text_check(text, length));
    if (!labels->kind) labels->kind = is_number ? DT__LABELS_NUMBERS : DT__LABELS_TEXTS;
    if (is_number != (labels->kind == DT__LABELS_NUMBERS))
        return dt_fail(DT_EFORMAT,
                       "label '%.*s' is %s, unlike the labels before it: write all as numbers, or "
                       "all as texts, such as c1",
                       dt__shown(length), text, is_number ? "a number" : "not a number");
    DT_TRY(is_number ? labels_learn_number(labels, value, &number)
                     : dt__dict_add(&labels->texts, text, length, &number));
    *out_code = (int32_t)number;
    const int most = labels->task_given ? DT__MAX_CLASSES : DT__MAX_TEXT_CLASSES;
    return is_number ? DT_OK : count_check(labels, &labels->texts, most, text, length);
}

static dt_status labels_add_number(struct dt__labels *labels, int64_t value, int32_t *out_code)
{
    char text[24];
    uint32_t number;
    const bool named = labels->kind == DT__LABELS_NAMED && !labels->numbered;
    const int count = labels->known ? labels->known->classes : (int)labels->texts.count;
    *out_code = (int32_t)value;
    if (named || labels->named_by_file)
        return unknown_take(labels, dt__class_check(count, value), out_code);
    if (labels->known)
        return unknown_take(labels, dt__class_of_number(&labels->classes, value, out_code),
                            out_code);
    if (labels->kind == DT__LABELS_TEXTS)
        return dt_fail(DT_EFORMAT, "labels are numbers, those of the earlier files are texts");
    if (labels->kind == DT__LABELS_NAMED) {
        const int digits = snprintf(text, sizeof text, "%" PRId64, value);
        return labels_find_named(labels, text, (size_t)digits, out_code);
    }
    labels->kind = DT__LABELS_NUMBERS;
    DT_TRY(labels_learn_number(labels, value, &number));
    *out_code = (int32_t)number;
    return DT_OK;
}

static dt_status code_keep(struct dt__labels *labels, int32_t code)
{
    if (!labels->keep_codes) return DT_OK;
    DT_TRY(dt__grow(&labels->codes, &labels->codes_capacity, labels->ncodes + 1, sizeof code,
                    "classes of rows"));
    labels->codes[labels->ncodes++] = code;
    return DT_OK;
}

dt_status dt__labels_add_text(struct dt__labels *labels, const char *text, size_t length,
                              int32_t *out_code)
{
    DT_TRY(labels_add_text(labels, text, length, out_code));
    return code_keep(labels, *out_code);
}

dt_status dt__labels_add_number(struct dt__labels *labels, int64_t value)
{
    int32_t code;
    DT_TRY(labels_add_number(labels, value, &code));
    return code_keep(labels, code);
}

dt_status dt__labels_add_width(struct dt__labels *labels, size_t width)
{
    if (labels->known) return dt__class_check(labels->known->classes, (int64_t)width - 1);
    if (labels->one_hot && (size_t)labels->one_hot != width)
        return dt_fail(DT_EMISMATCH, "one-hot rows of %zu classes, the earlier files have %d",
                       width, labels->one_hot);
    if (labels->kind == DT__LABELS_TEXTS)
        return dt_fail(DT_EFORMAT, "labels are numbers, those of the earlier files are texts");
    if (!labels->kind) labels->kind = DT__LABELS_NUMBERS;
    labels->one_hot = (int)width;
    return DT_OK;
}

dt_status dt__labels_add_names(struct dt__labels *labels, char *const *names, size_t count)
{
    const struct dt_schema *known = labels->known;
    const bool first = !known && labels->kind == DT__LABELS_NONE;
    bool same = labels->texts.count == count;
    labels->named_by_file = true;
    for (size_t i = 0; i < count; i++) {
        const char *name = names[i];
        size_t length = strlen(name);
        uint32_t number;
        const bool found = dt__dict_find_blank(&labels->texts, name, length, &number);
        same &= found && number == i;
        if (!first) continue;
        dt__text_trim(&name, &length);
        DT_TRY(dt__dict_add(&labels->texts, name, length, &number));
        if (number != i) return dt_fail(DT_EFORMAT, "two classes are named '%s'", names[i]);
    }
    if (known && known->label_names && !same)
        return dt_fail(DT_EMISMATCH, "its class names differ from those of the training data");
    if (labels->kind == DT__LABELS_NAMED && !same)
        return dt_fail(DT_EMISMATCH, "its class names differ from those of the earlier files");
    if (labels->kind && labels->kind != DT__LABELS_NAMED)
        return dt_fail(DT_EMISMATCH, "it names its classes, but the earlier files do not");
    if (first) labels->kind = DT__LABELS_NAMED;
    return DT_OK;
}

/* ---- what was learned ----------------------------------------------------------------------- */

/* Warns, at most once, if two texts differ only in upper and lower case. */
static void warn_of_twins(const struct dt__dict *texts)
{
    enum { MOST = 100 }; /* with more classes, pairs are not compared */
    for (size_t i = 1; i < texts->count && texts->count <= MOST; i++) {
        size_t j = 0;
        while (j < i && strcasecmp(dt__dict_text(texts, i), dt__dict_text(texts, j)))
            j++;
        if (j == i) continue;
        dt__warn("'%.40s' and '%.40s' are two classes: labels differ only in the case of letters",
                 dt__dict_text(texts, j), dt__dict_text(texts, i));
        break;
    }
}

/* Rejects numbers that may be amounts rather than classes, unless model.task is given. */
static dt_status amounts_check(const struct dt__labels *labels, const int64_t *sorted, size_t n)
{
    const bool signs = n == 2 && sorted[0] == -1 && sorted[1] == 1;
    if (labels->task_given || signs) return DT_OK;
    if (labels->negative)
        return dt_fail(DT_EFORMAT,
                       "%s: set model.task=regress to learn the labels as values, or "
                       "model.task=classify if they are classes",
                       labels->negative);
    if (sorted[n - 1] < MOST_UNASKED) return DT_OK;
    return dt_fail(DT_EFORMAT,
                   "%s: labels are numbers up to %" PRId64 ": set model.task=regress to "
                   "learn them as values, or model.task=classify if they are classes",
                   labels->path ? labels->path : "data", sorted[n - 1]);
}

/* Returns true if all of the ascending numbers are in 0..limit - 1. */
static bool numbers_below(const int64_t *sorted, size_t n, size_t limit)
{
    return !n || (sorted[0] >= 0 && (uint64_t)sorted[n - 1] < limit);
}

/* Makes the sorted numbers the names of the classes. */
static dt_status numbers_name(struct dt__labels *labels, const int64_t *sorted, size_t n)
{
    char text[24];
    uint32_t number;
    for (size_t i = 0; i < n; i++) {
        const int digits = snprintf(text, sizeof text, "%" PRId64, sorted[i]);
        DT_TRY(dt__dict_add(&labels->texts, text, (size_t)digits, &number));
    }
    return DT_OK;
}

/* Makes classes of labels that are numbers. Sets *out_names if the numbers become names. */
static dt_status finish_numbers(struct dt__labels *labels, const int64_t *sorted, size_t n,
                                struct dt_schema *schema, bool *out_names)
{
    const size_t declared = (size_t)labels->one_hot;
    if (declared && !numbers_below(sorted, n, declared))
        return dt_fail(DT_EFORMAT,
                       "label %" PRId64 " is out of range: the one-hot rows are %zu wide, so "
                       "classes are 0..%zu",
                       sorted[0] < 0 ? sorted[0] : sorted[n - 1], declared, declared - 1);
    if (!declared && n == 1)
        return dt_fail(DT_EMISMATCH, "every label is %" PRId64 ": a classifier needs two classes",
                       sorted[0]);
    if (!declared) DT_TRY(amounts_check(labels, sorted, n));
    *out_names = !declared && !numbers_below(sorted, n, n);
    if (*out_names) return numbers_name(labels, sorted, n);
    schema->classes = (int)(declared ? declared : n);
    return DT_OK;
}

/* Matches n > 0 label numbers to the names of data.class_names: the numbers are either positions in
 * the list, or one for each name, in numeric order. Sets sorted[i] to the number of name i. */
static dt_status finish_class_names(const struct dt__labels *labels, int64_t *sorted, size_t n)
{
    const size_t names = labels->texts.count;
    const bool below = numbers_below(sorted, n, names);
    if (labels->one_hot && ((size_t)labels->one_hot != names || !below))
        return dt_fail(DT_EFORMAT,
                       "one-hot rows have %d classes, but data.class_names has %zu names",
                       labels->one_hot, names);
    if (!labels->one_hot && sorted[0] > 0 && (uint64_t)sorted[n - 1] + 1 == names)
        return dt_fail(DT_EFORMAT,
                       "data.class_names has %zu names, but no label is 0: the labels are %zu "
                       "different numbers, %" PRId64 " to %" PRId64
                       ": expected one name for each number, in numeric order, and no name ('%s') "
                       "for class 0. If there is a class 0 that no row has, use the numbers "
                       "0,1,... as names",
                       names, n, sorted[0], sorted[n - 1], dt__dict_text(&labels->texts, 0));
    for (size_t i = 0; i < names && below; i++)
        sorted[i] = (int64_t)i;
    if (below || n == names) return DT_OK;
    return dt_fail(
        DT_EFORMAT,
        "data.class_names has %zu names, but the labels are %zu different numbers, %" PRId64
        " to %" PRId64 ": expected one name for each number, in numeric order",
        names, n, sorted[0], sorted[n - 1]);
}

/* Writes the names and number of classes to the schema. */
static dt_status finish_names(const struct dt__labels *labels, struct dt_schema *schema)
{
    struct dt__names names = {0};
    dt_status status = DT_OK;
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

dt_status dt__labels_finish(struct dt__labels *labels, struct dt_schema *schema)
{
    const size_t n = labels->numbers.count;
    int64_t *sorted;
    bool has_names = labels->kind != DT__LABELS_NUMBERS, has_numbers = labels->numeric;
    dt_status status;
    DT_TRY(labels->numeric ? names_numbers(&labels->texts, &sorted)
                           : numbers_sorted(&labels->numbers, labels->texts.count, &sorted));
    if (!has_names) {
        DT_GUARD(finish_numbers(labels, sorted, n, schema, &has_names));
        has_numbers = has_names;
    } else if (n) {
        DT_GUARD(finish_class_names(labels, sorted, n));
        has_numbers = true;
    }
    if (has_names) DT_GUARD(finish_names(labels, schema));
    if (!has_numbers) goto done;
    dt_free(schema->label_numbers); /* frees the numbers that a shard stored */
    schema->label_numbers = sorted;
    return DT_OK;
done:
    dt_free(sorted);
    return status;
}

size_t dt__labels_codes(const struct dt__labels *labels)
{
    const bool named = labels->kind == DT__LABELS_TEXTS || labels->kind == DT__LABELS_NAMED;
    return (named ? labels->texts.count : 0) + labels->numbers.count;
}

dt_status dt__labels_class(const struct dt__labels *labels, const struct dt__classes *classes,
                           size_t code, int32_t *out)
{
    const size_t texts = dt__labels_codes(labels) - labels->numbers.count;
    const char *text = code < texts ? dt__dict_text(&labels->texts, code) : NULL;
    if (!text) return dt__class_of_number(classes, numbers_at(&labels->numbers, code - texts), out);
    if (class_find(&classes->names, text, strlen(text), out)) return DT_OK;
    return dt_fail(DT_EBUG, "label '%s' has no class", text);
}

dt_status dt__target_read(const struct dt_targets *targets, const struct dt__cell *label,
                          float *out)
{
    if (dt__text_is_missing(label->text, label->length))
        return dt_fail(DT_EFORMAT,
                       "label: '%.*s' is a missing value: data.unlabelled=skip skips such "
                       "rows of CSV and JSON lines files",
                       (int)label->length, label->text);
    dt_status status = dt__number_read(label->text, label->length, out);
    if (!status) status = dt__target_check(targets, (double)*out);
    return status ? dt_fail_prefix(status, "label: ") : DT_OK;
}
