#include <string.h>

#include "config/option.h"

/* Bounds from 1e6 on only keep nonsense out: no reader needs them. */
static void range_of(const struct dt__option *option, char *buffer, size_t size)
{
    const char *type = option->type == DT__INT ? "integer" : "number";
    switch (option->type) {
    case DT__INT:
    case DT__REAL:
        if (option->min <= -1e6)
            snprintf(buffer, size, "%s", type);
        else if (option->max >= 1e6)
            snprintf(buffer, size, "%s >= %g", type, option->min);
        else
            snprintf(buffer, size, "%s %g to %.10g", type, option->min, option->max);
        return;
    case DT__BOOL:
        snprintf(buffer, size, "yes|no");
        return;
    case DT__TEXT:
        snprintf(buffer, size, "text");
        return;
    case DT__WORD:
        snprintf(buffer, size, "%s", option->words);
        return;
    }
}

static int width_of(int least, const char *text)
{
    int length = (int)strlen(text);
    return length > least ? length : least;
}

static void describe_plain(FILE *out)
{
    char range[128];
    int name = 0, initial = 0, type = 0;
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        range_of(option, range, sizeof range);
        name = width_of(name, option->name);
        initial = width_of(initial, option->initial);
        type = width_of(type, range);
    }
    fprintf(out, "%-*s   %-*s  %-*s  %s\n", name, "key", initial, "default", type, "type and range",
            "meaning");
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        if (dt__option_is_hidden(option)) continue;
        range_of(option, range, sizeof range);
        fprintf(out, "%-*s %c %-*s  %-*s  %s\n", name, option->name, option->fixed ? ' ' : '*',
                initial, option->initial, type, range, option->help);
    }
    fprintf(out, "\n* may change when a run is resumed\n");
}

/* A table cell; '|' would end it. */
static void put_cell(FILE *out, const char *text, bool code)
{
    const char *tick = code && *text ? "`" : "";
    fprintf(out, " %s", tick);
    for (; *text; text++)
        fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text);
    fprintf(out, "%s |", tick);
}

static void describe_markdown(FILE *out)
{
    char range[128];
    fprintf(out, "| key | default | type and range | on a resume | meaning |\n"
                 "| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        if (dt__option_is_hidden(option)) continue;
        range_of(option, range, sizeof range);
        fprintf(out, "|");
        put_cell(out, option->name, true);
        put_cell(out, option->initial, true);
        put_cell(out, range, false);
        put_cell(out, option->fixed ? "stays" : "may change", false);
        put_cell(out, option->help, false);
        fprintf(out, "\n");
    }
}

void dt_config_describe(FILE *out, bool markdown)
{
    if (markdown)
        describe_markdown(out);
    else
        describe_plain(out);
}
