#include <ini.h>
#include <string.h>

#include "config/option.h"

/* Debian's inih takes these at run time, others at their build; then lines are bounded by it. */
extern bool ini_use_stack __attribute__((weak));
extern bool ini_allow_multiline __attribute__((weak));
extern bool ini_stop_on_first_error __attribute__((weak));
extern int ini_initial_alloc __attribute__((weak));

enum { MOST_BYTES = 1 << 20 };

struct ini {
    struct dt_config *config;
    const char *name;            /* of the file */
    const char *rest;            /* of the text */
    int line;                    /* number of the line read last */
    int given[DT__OPTION_COUNT]; /* line that gave an option, 0: none did */
    dt_status status;
};

static size_t line_size(const char *text)
{
    size_t size = strcspn(text, "\n");
    return size + (text[size] == '\n');
}

/* What fgets is to a file. Nothing more is read once the handler has failed. */
static char *read_line(char *buffer, int room, void *arg)
{
    struct ini *ini = arg;
    size_t size = line_size(ini->rest);
    if (ini->status || size == 0) return NULL;
    ini->line++;
    if (size >= (size_t)room) {
        ini->status = dt_fail(DT_EUSAGE, "the line is longer than %d bytes", room - 3);
        return NULL;
    }
    memcpy(buffer, ini->rest, size);
    buffer[size] = '\0';
    ini->rest += size;
    return buffer;
}

static dt_status set_once(struct ini *ini, const struct dt__option *option, const char *value)
{
    int *given = &ini->given[option - dt__options];
    if (*given)
        return dt_fail(DT_EUSAGE, "%s: given twice, first in line %d", option->name, *given);
    *given = ini->line;
    return dt__option_set(ini->config, option, value);
}

static dt_status set_unquoted(struct ini *ini, const struct dt__option *option, const char *value)
{
    char *plain;
    DT_TRY(dt_strdup(value, &plain));
    dt_status status;
    if (dt__value_unquote(plain))
        status = set_once(ini, option, plain);
    else
        status = dt_fail(DT_EUSAGE, "%s=%.200s: expected a closing quote at the end", option->name,
                         value);
    dt_free(plain);
    return status;
}

static int on_value(void *arg, const char *section, const char *key, const char *value)
{
    struct ini *ini = arg;
    if (ini->status) return 0;
    const struct dt__option *option;
    char *name = NULL;
    ini->status = dt_format(&name, "%s%s%s", section, *section ? "." : "", key);
    if (!ini->status) ini->status = dt__option_find(name, &option);
    if (!ini->status) ini->status = set_unquoted(ini, option, value);
    dt_free(name);
    return !ini->status;
}

/* One read a line, into a heap buffer that has room for the longest. */
static void prepare_inih(const char *text)
{
    int longest = 0;
    for (; *text; text += line_size(text)) {
        int size = (int)line_size(text);
        if (size > longest) longest = size;
    }
    if (&ini_allow_multiline) ini_allow_multiline = false;
    if (&ini_stop_on_first_error) ini_stop_on_first_error = true;
    if (&ini_use_stack) ini_use_stack = false;
    if (&ini_initial_alloc) ini_initial_alloc = longest + 3;
}

dt_status dt_config_read_text(struct dt_config *config, const char *name, const char *text)
{
    if (strlen(text) > MOST_BYTES)
        return dt_fail(DT_EUSAGE, "%s: larger than %d bytes", name, MOST_BYTES);
    struct ini ini = {.config = config, .name = name, .rest = text};
    prepare_inih(text);
    int wrong = ini_parse_stream(read_line, &ini, on_value, &ini);
    if (ini.status) return dt_fail_prefix(ini.status, "%s:%d: ", name, ini.line);
    if (wrong > 0)
        return dt_fail(DT_EUSAGE, "%s:%d: expected [section] or key = value", name, wrong);
    return wrong ? dt_fail(DT_EMEMORY, "%s: out of memory", name) : DT_OK;
}

dt_status dt_config_read_file(struct dt_config *config, const char *path)
{
    char *text;
    size_t length;
    if (dt_file_read(path, MOST_BYTES, &text, &length)) return DT_EUSAGE;
    dt_status status;
    if (strlen(text) == length)
        status = dt_config_read_text(config, path, text);
    else
        status = dt_fail(DT_EUSAGE, "%s: not a text file", path);
    dt_free(text);
    return status;
}
