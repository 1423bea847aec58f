#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/option.h"

/* ---- text to value -------------------------------------------------------------------------- */

/* A decimal number and nothing else: no hexadecimal, no nan, no space around it. Too great a one is
 * infinite, and so out of any range. */
static bool parse_real(const char *text, double *out)
{
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) return false;
    char *end;
    double value = strtod(text, &end);
    if (*end) return false;
    *out = value;
    return true;
}

/* Integers may be written 1e6 too; a double holds every integer of the table's ranges exactly. */
static bool parse_int(const char *text, double *out)
{
    double value;
    if (!parse_real(text, &value) || value != floor(value)) return false;
    *out = value;
    return true;
}

static bool parse_bool(const char *text, bool *out)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i]) != 0) continue;
        *out = i % 2;
        return true;
    }
    return false;
}

static bool parse_word(const char *words, const char *text, int *out)
{
    size_t length = strlen(text);
    int index = 0;
    for (const char *word = words; *word; index++) {
        size_t size = strcspn(word, "|");
        if (size == length && !memcmp(word, text, length)) {
            *out = index;
            return true;
        }
        word += size + (word[size] == '|');
    }
    return false;
}

static bool in_range(const struct dt__option *option, double value)
{
    return value >= option->min && value <= option->max;
}

/* Fields are written only with a value that is right. */
static bool assign(const struct dt__option *option, void *field, const char *text)
{
    double number;
    switch (option->type) {
    case DT__INT:
        if (!parse_int(text, &number) || !in_range(option, number)) return false;
        *(int64_t *)field = (int64_t)number;
        return true;
    case DT__REAL:
        if (!parse_real(text, &number) || !in_range(option, number)) return false;
        *(double *)field = number == 0 ? 0 : number; /* no negative zero */
        return true;
    case DT__BOOL:
        return parse_bool(text, field);
    case DT__WORD:
        return parse_word(option->words, text, field);
    case DT__TEXT:
        break;
    }
    return false;
}

static dt_status assign_text(char **field, const char *text)
{
    char *copy;
    DT_TRY(dt_strdup(text, &copy));
    dt_free(*field);
    *field = copy;
    return DT_OK;
}

static dt_status fail_expected(const struct dt__option *option, const char *value)
{
    char *expectation;
    DT_TRY(dt__option_expectation(option, &expectation));
    dt_fail(DT_EUSAGE, "%s=%.200s: expected %s", option->name, value, expectation);
    dt_free(expectation);
    return DT_EUSAGE;
}

dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value)
{
    void *field = (char *)config + option->offset;
    if (option->type == DT__TEXT) return assign_text(field, value);
    return assign(option, field, value) ? DT_OK : fail_expected(option, value);
}

/* ---- value to text -------------------------------------------------------------------------- */

dt_status dt__option_text(const struct dt_config *config, const struct dt__option *option,
                          char **out)
{
    const void *field = (const char *)config + option->offset;
    char buffer[DT_REAL_TEXT];
    switch (option->type) {
    case DT__INT:
        return dt_format(out, "%lld", (long long)*(const int64_t *)field);
    case DT__REAL:
        return dt_strdup(dt_real_text(*(const double *)field, buffer), out);
    case DT__BOOL:
        return dt_strdup(*(const bool *)field ? "yes" : "no", out);
    case DT__TEXT:
        return dt_strdup(*(char *const *)field, out);
    case DT__WORD:
        return dt_strdup(dt_config_word(option->words, *(const int *)field, buffer), out);
    }
    return dt_fail(DT_EBUG, "%s: unknown type", option->name);
}

const char *dt_config_word(const char *words, int value, char buffer[16])
{
    for (; value > 0 && *words; value--) {
        words += strcspn(words, "|");
        words += *words == '|';
    }
    snprintf(buffer, 16, "%.*s", (int)strcspn(words, "|"), words);
    return buffer;
}

static dt_status expect_word(const char *words, char **out)
{
    struct dt_text text = {0};
    dt_status status = dt_text_add(&text, "one of ");
    for (; !status && *words; words++) {
        if (*words == '|')
            status = dt_text_add(&text, ", ");
        else
            status = dt_text_append(&text, words, 1);
    }
    if (status)
        dt_text_free(&text);
    else
        *out = text.data;
    return status;
}

dt_status dt__option_expectation(const struct dt__option *option, char **out)
{
    switch (option->type) {
    case DT__INT:
        return dt_format(out, "an integer from %.0f to %.0f", option->min, option->max);
    case DT__REAL:
        return dt_format(out, "a number from %.10g to %.10g", option->min, option->max);
    case DT__BOOL:
        return dt_strdup("yes or no", out);
    case DT__TEXT:
        return dt_strdup("text", out);
    case DT__WORD:
        return expect_word(option->words, out);
    }
    return dt_fail(DT_EBUG, "%s: unknown type", option->name);
}
