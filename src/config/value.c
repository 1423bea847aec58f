/* Values: from text, to text, and quoted as an INI file needs it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/internal.h"
#include "config/option.h"

/* ---- text to value -------------------------------------------------------------------------- */

/* The place of a word in "a|b|c"; -1: it is none of them. */
static int word_index(const char *words, const char *text,
                      int compare(const char *, const char *, size_t))
{
    size_t length = strlen(text);
    for (int index = 0; *words; index++) {
        size_t size = strcspn(words, "|");
        if (size == length && !compare(words, text, length)) return index;
        words += size + (words[size] == '|');
    }
    return -1;
}

int dt_config_word_index(const char *words, const char *word)
{
    return word_index(words, word, strncmp);
}

/* Fields are written only with a value that is right. A number is decimal and nothing else: no
 * hexadecimal, no nan, no space around it; too great a one is infinite, and so out of any range.
 * Integers may be written 1e6 too; a double holds every integer of the table's ranges exactly. */
static bool assign(const struct dt__option *option, void *field, const char *text)
{
    double number;
    char *end;
    int index;
    switch (option->type) {
    case DT__INT:
    case DT__REAL:
        if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) return false;
        number = dt_real_read(text, &end);
        if (*end || number < option->min || number > option->max) return false;
        if (option->type == DT__REAL)
            *(double *)field = number == 0 ? 0 : number; /* no negative zero */
        else if (number == floor(number))
            *(int64_t *)field = (int64_t)number;
        else
            return false;
        return true;
    case DT__BOOL:
        index = word_index("no|yes|false|true|off|on|0|1", text, strncasecmp);
        if (index >= 0) *(bool *)field = index % 2;
        return index >= 0;
    case DT__WORD:
        index = dt_config_word_index(option->words, text);
        if (index >= 0) *(int *)field = index;
        return index >= 0;
    case DT__TEXT:
        break;
    }
    return false;
}

dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value)
{
    void *field = (char *)config + option->offset;
    char expected[512] = "yes or no";
    if (option->type == DT__TEXT) {
        char *copy;
        DT_TRY(dt_strdup(value, &copy));
        dt_free(*(char **)field);
        *(char **)field = copy;
    } else if (!assign(option, field, value)) {
        if (option->type == DT__INT)
            snprintf(expected, sizeof expected, "an integer from %.0f to %.0f", option->min,
                     option->max);
        if (option->type == DT__REAL)
            snprintf(expected, sizeof expected, "a number from %.10g to %.10g", option->min,
                     option->max);
        if (option->type == DT__WORD) snprintf(expected, sizeof expected, "one of ");
        const char *at = option->type == DT__WORD ? option->words : "";
        for (; *at && strlen(expected) + 3 < sizeof expected; at++)
            snprintf(expected + strlen(expected), 3, *at == '|' ? ", " : "%c", *at);
        return dt_fail(DT_EUSAGE, "%s=%.200s: expected %s", option->name, value, expected);
    }
    config->given[option - dt__options] = DT_GIVEN;
    return DT_OK;
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

/* ---- quotes ---------------------------------------------------------------------------------- */

dt_status dt__value_quote(struct dt_text *text, const char *value)
{
    const size_t length = strlen(value);
    bool plain = length == 0 || (!strchr(" \"", value[0]) && value[length - 1] != ' ');
    for (const char *at = value; plain && *at; at++)
        plain = *at != ';' && !dt__is_control(*at);
    if (plain) return dt_text_add(text, "%s", value);
    DT_TRY(dt_text_add(text, "\""));
    for (; *value; value++) {
        if (dt__is_control(*value) || strchr("\"\\;", *value))
            DT_TRY(dt_text_add(text, "\\x%02x", (unsigned)*value));
        else
            DT_TRY(dt_text_append(text, value, 1));
    }
    return dt_text_add(text, "\"");
}

bool dt__value_unquote(char *value)
{
    if (value[0] != '"') return true;
    char *out = value;
    const char *at = value + 1;
    for (; *at && *at != '"'; at++) {
        char c = *at;
        if (c == '\\') {
            c = *++at;
            if (c == 'x' && strspn(at + 1, "0123456789abcdef") >= 2) {
                const char hex[] = {at[1], at[2], '\0'};
                c = (char)strtol(hex, NULL, 16);
                if (!c) return false;
                at += 2;
            } else if (c != '"' && c != '\\') {
                return false;
            }
        }
        *out++ = c;
    }
    if (at[0] != '"' || at[1]) return false;
    *out = '\0';
    return true;
}
