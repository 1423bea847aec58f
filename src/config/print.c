#include <string.h>

#include "config/option.h"

static bool names_the_run(const struct dt__option *option)
{
    return !strcmp(option->name, "run.dir") || !strcmp(option->name, "run.resume");
}

/* "key = value", below a heading if the section is another than before. */
static dt_status add_line(struct dt_text *text, const struct dt__option *option, const char *value,
                          const char **section)
{
    if (*section != option->section)
        DT_TRY(dt_text_add(text, "%s[%s]\n", text->length ? "\n" : "", option->section));
    *section = option->section;
    DT_TRY(dt_text_add(text, "%s =%s", option->key, *value ? " " : ""));
    DT_TRY(dt__value_quote(text, value));
    return dt_text_add(text, "\n");
}

static dt_status add_option(struct dt_text *text, const struct dt_config *config,
                            const struct dt__option *option, const char **section)
{
    char *value;
    DT_TRY(dt__option_text(config, option, &value));
    dt_status status = DT_OK;
    if (!dt__option_is_hidden(option) || strcmp(value, option->initial) != 0)
        status = add_line(text, option, value, section);
    dt_free(value);
    return status;
}

static dt_status print_options(const struct dt_config *config, bool whole, struct dt_text *out)
{
    struct dt_text text = {0};
    const char *section = NULL;
    dt_status status = DT_OK;
    for (int i = 0; i < DT__OPTION_COUNT && !status; i++) {
        if (whole || !names_the_run(&dt__options[i]))
            status = add_option(&text, config, &dt__options[i], &section);
    }
    if (status)
        dt_text_free(&text);
    else
        *out = text;
    return status;
}

dt_status dt_config_print(const struct dt_config *config, char **out_text)
{
    struct dt_text text;
    DT_TRY(print_options(config, true, &text));
    *out_text = text.data;
    return DT_OK;
}

dt_status dt_config_crc(const struct dt_config *config, uint32_t *out)
{
    struct dt_text text;
    DT_TRY(print_options(config, false, &text));
    *out = dt_crc32c(0, text.data, text.length);
    dt_text_free(&text);
    return DT_OK;
}
