/* Lines of LIBSVM: fields, and which lines are rows.
 *
 * Source: C.-C. Chang and C.-J. Lin, LIBSVM, README, "svm-train usage". */
#include "text/libsvm_record.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* The greatest index, which may be a 64-bit hash. Another digit fits after any index up to a tenth
 * of it. */
static const uint64_t GREATEST = UINT64_MAX / 10 * 10 - 1;

bool dt__libsvm_field(char **text, char *end, struct dt__cell *out)
{
    char *p = *text;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p == end || *p == '#') return false;
    out->text = p;
    while (p < end && *p != ' ' && *p != '\t')
        p++;
    out->length = (size_t)(p - out->text);
    *text = p;
    return true;
}

dt_status dt__libsvm_pair(const struct dt__cell *field, uint64_t last, uint64_t *out_index,
                          float *out_value)
{
    const char *colon = memchr(field->text, ':', field->length), *p = field->text;
    uint64_t index = 0;
    for (; colon && p < colon && isdigit((unsigned char)*p) && index <= GREATEST / 10; p++)
        index = index * 10 + (uint64_t)(*p - '0');
    if (!colon || p < colon || !index)
        return dt_fail(DT_EFORMAT, "'%.*s' is not index:value with an index from 1 to %" PRIu64,
                       dt__shown(field->length), field->text, GREATEST);
    if (index <= last) return dt_fail(DT_EFORMAT, "index %" PRIu64 " does not rise", index);
    *out_index = index;
    const dt_status status =
        dt__number_read(colon + 1, field->length - (size_t)(colon + 1 - field->text), out_value);
    return status ? dt_fail_prefix(status, "index %" PRIu64 ": ", index) : DT_OK;
}

static bool field_is_pair(const struct dt__cell *field)
{
    size_t digits = 0;
    while (digits < field->length && isdigit((unsigned char)field->text[digits]))
        digits++;
    return digits && digits < field->length && field->text[digits] == ':';
}

enum dt__libsvm_line dt__libsvm_line(char *text, size_t length)
{
    char *const end = text + length;
    struct dt__cell field = {0};
    double value;
    if (!dt__libsvm_field(&text, end, &field)) return DT__LIBSVM_NOTHING;
    if (field_is_pair(&field)) return DT__LIBSVM_ROW;
    if (dt__number_parse(field.text, field.length, &value)) return DT__LIBSVM_NONE;
    if (!dt__libsvm_field(&text, end, &field)) return DT__LIBSVM_NUMBER;
    return field_is_pair(&field) ? DT__LIBSVM_ROW : DT__LIBSVM_NONE;
}

bool dt__libsvm_is(char *text, size_t length)
{
    char *const stop = text + length;
    enum dt__libsvm_line line = DT__LIBSVM_NOTHING;
    for (char *end; text < stop && line < DT__LIBSVM_ROW; text = end + 1) {
        char *newline = memchr(text, '\n', (size_t)(stop - text));
        end = newline ? newline : stop;
        line = dt__libsvm_line(text, (size_t)(end - text) - (end > text && end[-1] == '\r'));
    }
    return line == DT__LIBSVM_ROW;
}
