/* INI files: read through inih; a key that is unknown or given twice is refused with its line. Also
 * prints a whole configuration as text that can be read back. */
#include <ctype.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"
#include "config/option.h"

/* These are variables of Debian's inih. In other builds they are missing (NULL), since the values
 * are fixed when inih is built; that build then limits the length of a line. */
extern bool ini_use_stack __attribute__((weak));
extern bool ini_allow_multiline __attribute__((weak));
extern bool ini_stop_on_first_error __attribute__((weak));
extern int ini_initial_alloc __attribute__((weak));

/* ---- quotes ---------------------------------------------------------------------------------- */

/* Adds a value to an INI text. A value with a blank at either end, a leading '"', a ';' or a
 * control character is put in double quotes, and special characters become \xHH. */
static dt_status value_quote(struct dt_text *text, const char *value)
{
    const size_t length = strlen(value);
    bool plain = length == 0 || (!strchr(" \"", value[0]) && value[length - 1] != ' ');
    for (const char *at = value; plain && *at; at++)
        plain = *at != ';' && !dt__is_control(*at);
    if (plain) return dt__text_add(text, "%s", value);
    DT_TRY(dt__text_add(text, "\""));
    for (; *value; value++) {
        if (dt__is_control(*value) || strchr("\"\\;", *value))
            DT_TRY(dt__text_add(text, "\\x%02x", (unsigned)*value));
        else
            DT_TRY(dt__text_append(text, value, 1));
    }
    return dt__text_add(text, "\"");
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

/* ---- reading --------------------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 20 };

struct ini {
    struct dt_config *config;
    const char *rest;            /* text that is not read yet */
    int line;                    /* number of the last line read */
    int given[DT__OPTION_COUNT]; /* for each option, the line that set it; 0: none */
    dt_status status;
};

/* Returns the length of the first line of the text, including its continuations. A line continues
 * if it ends with a comma that is not in a comment, and the next line begins with a blank. A
 * comment begins with '#' as the first character of the line, or with ';' as the first one or after
 * a blank (as in inih). */
static size_t line_size(const char *text)
{
    bool comment = text[strspn(text, " \t")] == '#';
    for (size_t size = 0;;) {
        size_t end = size + strcspn(text + size, "\n"), last = end;
        if (!text[end]) return end;
        while (last > size && isspace((unsigned char)text[last - 1]))
            last--;
        bool comma = last > size && text[last - 1] == ',';
        if (comma && size == 0) { /* a value that is only a comma ends here */
            size_t before = last - 1;
            while (before > 0 && isblank((unsigned char)text[before - 1]))
                before--;
            comma = before == 0 || !strchr("=:", text[before - 1]);
        }
        for (size_t i = size; comma && i < end; i++)
            comment |= text[i] == ';' && (i == 0 || isspace((unsigned char)text[i - 1]));
        if (!comma || !isblank((unsigned char)text[end + 1]) || comment) return end + 1;
        size = end + 1;
    }
}

/* Reads the next line, as fgets would, from ini->rest. Returns NULL after the last line, and once
 * on_value has failed. */
static char *read_line(char *buffer, int capacity, void *arg)
{
    struct ini *ini = arg;
    size_t size = line_size(ini->rest);
    if (ini->status || size == 0) return NULL;
    ini->line++;
    if (size >= (size_t)capacity) {
        ini->status = dt_fail(DT_EUSAGE, "the line is longer than %d bytes", capacity - 3);
        return NULL;
    }
    memcpy(buffer, ini->rest, size);
    buffer[size] = '\0';
    for (char *end = buffer; (end = strchr(end, '\n')) && end[1]; ini->line++)
        *end = ' ';
    ini->rest += size;
    return buffer;
}

static int on_value(void *arg, const char *section, const char *key, const char *value)
{
    struct ini *ini = arg;
    const struct dt__option *option = NULL;
    char *name = NULL, *plain = NULL;
    dt_status status;
    if (ini->status) return 0;
    DT_GUARD(dt__format(&name, "%s%s%s", section, *section ? "." : "", key));
    DT_GUARD(dt__strdup(value, &plain));
    DT_GUARD(dt__option_find(name, &option));
    if (!dt__value_unquote(plain))
        DT_GUARD(dt_fail(DT_EUSAGE, "%s=%.200s: expected a closing quote at the end", name, value));
    int *given = &ini->given[option - dt__options];
    if (*given) DT_GUARD(dt_fail(DT_EUSAGE, "%s: given twice, first in line %d", name, *given));
    *given = ini->line;
    status = dt__option_set(ini->config, option, plain);
done:
    dt_free(plain);
    dt_free(name);
    ini->status = status;
    return !status;
}

dt_status dt_config_read_text(struct dt_config *config, const char *name, const char *text)
{
    if (strlen(text) > MOST_BYTES)
        return dt_fail(DT_EUSAGE, "%s: larger than %d bytes", name, MOST_BYTES);
    struct ini ini = {.config = config, .rest = text};
    size_t longest = 0; /* inih reads each line into one heap buffer, which must hold the longest */
    for (const char *line = text; *line; line += line_size(line))
        longest = line_size(line) > longest ? line_size(line) : longest;
    if (&ini_allow_multiline) ini_allow_multiline = false;
    if (&ini_stop_on_first_error) ini_stop_on_first_error = true;
    if (&ini_use_stack) ini_use_stack = false;
    if (&ini_initial_alloc) ini_initial_alloc = (int)longest + 3;
    int wrong = ini_parse_stream(read_line, &ini, on_value, &ini);
    if (ini.status) return dt_fail_prefix(ini.status, "%s:%d: ", name, ini.line);
    if (wrong > 0)
        return dt_fail(DT_EUSAGE, "%s:%d: expected [section] or key = value", name,
                       &ini_stop_on_first_error ? ini.line : wrong);
    return wrong ? dt_fail(DT_EMEMORY, "%s: out of memory", name) : DT_OK;
}

dt_status dt_config_read_file(struct dt_config *config, const char *path)
{
    char *text;
    size_t length;
    if (dt__file_read(path, MOST_BYTES, &text, &length)) return DT_EUSAGE;
    dt_status status;
    if (strlen(text) == length)
        status = dt_config_read_text(config, path, text);
    else
        status = dt_fail(DT_EUSAGE, "%s: not a text file", path);
    dt_free(text);
    return status;
}

/* ---- printing -------------------------------------------------------------------------------- */

enum print { PRINT_ALL, PRINT_BUT_PLACE, PRINT_GIVEN };

/* Prints the keys as text that can be read back. PRINT_GIVEN: only given keys. PRINT_BUT_PLACE:
 * without the keys that only say where the run is. Hidden options and those of other commands are
 * printed only if they differ from the default. The short forms of a network are left out if
 * model.layers is set. */
static dt_status print_options(const struct dt_config *config, enum print which,
                               struct dt_text *out)
{
    struct dt_text text = {0};
    const char *section = NULL;
    char buffer[DT_REAL_TEXT];
    dt_status status = DT_OK;
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        bool short_form = *config->model.layers && !strcmp(option->section, "model") &&
                          dt__config_choice_index("layers|task|split|output_bias", option->key) < 0;
        bool always = !dt__option_is_hidden(option) && dt__option_is_for(option, "train");
        bool place = !strcmp(option->name, "run.dir") || !strcmp(option->name, "run.resume");
        if (short_form || (place && which == PRINT_BUT_PLACE)) continue;
        if (which == PRINT_GIVEN && config->given[i] != DT_GIVEN) continue;
        const char *value = dt__option_text(config, option, buffer);
        if (!always && !strcmp(value, option->initial)) continue;
        if (section != option->section)
            DT_GUARD(dt__text_add(&text, "%s[%s]\n", text.length ? "\n" : "", option->section));
        section = option->section;
        DT_GUARD(dt__text_add(&text, "%s =%s", option->key, *value ? " " : ""));
        DT_GUARD(value_quote(&text, value));
        DT_GUARD(dt__text_add(&text, "\n"));
    }
    *out = text;
done:
    if (status) dt__text_free(&text);
    return status;
}

dt_status dt__config_print_given(const struct dt_config *config, const char *section,
                                 const char *but, FILE *out)
{
    struct dt_text text = {0};
    dt_status status = DT_OK;
    for (int i = 0; i < DT__OPTION_COUNT && !status; i++) {
        const struct dt__option *option = &dt__options[i];
        char value[DT_REAL_TEXT];
        if (config->given[i] != DT_GIVEN || strcmp(option->section, section) != 0 ||
            dt__config_choice_index(but, option->key) >= 0)
            continue;
        status = dt__text_add(&text, "%s = ", option->key);
        if (!status) status = value_quote(&text, dt__option_text(config, option, value));
        if (!status) status = dt__text_add(&text, "\n");
    }
    if (text.length) fprintf(out, "%s", text.data);
    dt__text_free(&text);
    return status;
}

dt_status dt_config_print(const struct dt_config *config, char **out_text)
{
    struct dt_text text;
    DT_TRY(print_options(config, PRINT_ALL, &text));
    *out_text = text.data;
    return DT_OK;
}

dt_status dt__config_given_text(const struct dt_config *config, char **out_text)
{
    struct dt_text text;
    DT_TRY(print_options(config, PRINT_GIVEN, &text));
    *out_text = text.data;
    return DT_OK;
}

dt_status dt__config_crc(const struct dt_config *config, uint32_t *out)
{
    struct dt_text text;
    DT_TRY(print_options(config, PRINT_BUT_PLACE, &text));
    *out = dt__crc32c(0, text.data, text.length);
    dt__text_free(&text);
    return DT_OK;
}
