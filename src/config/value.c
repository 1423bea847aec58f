/* Values: from text, to text, and quoted as an INI file needs it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/option.h"

/* ---- text to value -------------------------------------------------------------------------- */

/* A decimal number and nothing else: no hexadecimal, no nan, no space around it. Too great a one is
 * infinite, and so out of any range. */
static bool parse_number(const char *text, double *out)
{
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) return false;
    char *end;
    *out = strtod(text, &end);
    return !*end;
}

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

/* Fields are written only with a value that is right. Integers may be written 1e6 too; a double holds every
 * integer of the table's ranges exactly. */
static bool assign(const struct dt__option *option, void *field, const char *text)
{
    double number;
    int index;
    switch (option->type) {
    case DT__INT:
    case DT__REAL:
        if (!parse_number(text, &number) || number < option->min || number > option->max)
            return false;
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

static dt_status fail_expected(const struct dt__option *option, const char *value)
{
    char words[512] = "";
    switch (option->type) {
    case DT__INT:
        return dt_fail(DT_EUSAGE, "%s=%.200s: expected an integer from %.0f to %.0f", option->name,
                       value, option->min, option->max);
    case DT__REAL:
        return dt_fail(DT_EUSAGE, "%s=%.200s: expected a number from %.10g to %.10g", option->name,
                       value, option->min, option->max);
    case DT__WORD:
        for (const char *at = option->words; *at && strlen(words) + 3 < sizeof words; at++)
            snprintf(words + strlen(words), 3, *at == '|' ? ", " : "%c", *at);
        return dt_fail(DT_EUSAGE, "%s=%.200s: expected one of %s", option->name, value, words);
    case DT__BOOL:
    case DT__TEXT:
        break;
    }
    return dt_fail(DT_EUSAGE, "%s=%.200s: expected yes or no", option->name, value);
}

dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value)
{
    void *field = (char *)config + option->offset;
    if (option->type == DT__TEXT) {
        char *copy;
        DT_TRY(dt_strdup(value, &copy));
        dt_free(*(char **)field);
        *(char **)field = copy;
    } else if (!assign(option, field, value)) {
        return fail_expected(option, value);
    }
    config->given[option - dt__options] = true;
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

/* ---- quotes -------------------------------------------------------------------------------------- */

static bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

static bool needs_quotes(const char *value)
{
    size_t length = strlen(value);
    if (length == 0) return false;
    if (strchr(" \"", value[0]) || value[length - 1] == ' ' || strchr(value, ';')) return true;
    while (*value && !is_control(*value))
        value++;
    return *value;
}

dt_status dt__value_quote(struct dt_text *text, const char *value)
{
    if (!needs_quotes(value)) return dt_text_add(text, "%s", value);
    DT_TRY(dt_text_add(text, "\""));
    for (; *value; value++) {
        if (is_control(*value) || strchr("\"\\;", *value))
            DT_TRY(dt_text_add(text, "\\x%02x", (unsigned)*value));
        else
            DT_TRY(dt_text_append(text, value, 1));
    }
    return dt_text_add(text, "\"");
}

/* One character of a quoted value; *at moves behind it. -1: not well-formed. */
static int unescape(const char **at)
{
    const char *text = *at;
    *at += text[0] == '\\' ? 2 : 1;
    if (text[0] != '\\') return (unsigned char)text[0];
    if (text[1] == '"' || text[1] == '\\') return text[1];
    if (text[1] != 'x' || strspn(text + 2, "0123456789abcdef") < 2) return -1;
    *at += 2;
    const char hex[] = {text[2], text[3], '\0'};
    int value = (int)strtol(hex, NULL, 16);
    return value ? value : -1;
}

bool dt__value_unquote(char *value)
{
    if (value[0] != '"') return true;
    char *out = value;
    const char *at = value + 1;
    while (*at && *at != '"') {
        int c = unescape(&at);
        if (c < 0) return false;
        *out++ = (char)c;
    }
    if (at[0] != '"' || at[1]) return false;
    *out = '\0';
    return true;
}
