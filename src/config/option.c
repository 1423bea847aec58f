#include "config/option.h"

#include <string.h>

#include "base/text.h"

enum { FREE = false, FIXED = true };

/* clang-format off */
#define OPTION(section, key, type, initial, min, max, words, resume, help)                         \
    {#section "." #key, #section, #key, DT__##type, resume, initial, min, max, words, help,        \
     offsetof(struct dt_config, section.key)},
/* clang-format on */
#define OPTIONS_OF_SECTION(section) DT_OPTIONS_##section(OPTION)

const struct dt__option dt__options[DT__OPTION_COUNT] = {DT_SECTIONS(OPTIONS_OF_SECTION)};

/* The option whose name looks most like `name`, which may lack the section. */
static const struct dt__option *nearest_option(const char *name)
{
    const struct dt__option *nearest = NULL;
    size_t least = SIZE_MAX;
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        size_t distance = dt__edit_distance(name, option->name);
        size_t without_section = dt__edit_distance(name, option->key) + 1;
        if (without_section < distance) distance = without_section;
        if (distance >= least || dt__option_is_hidden(option)) continue;
        least = distance;
        nearest = option;
    }
    return nearest;
}

dt_status dt__option_find(const char *name, const struct dt__option **out)
{
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        if (strcmp(dt__options[i].name, name) != 0) continue;
        *out = &dt__options[i];
        return DT_OK;
    }
    return dt_fail(DT_EUSAGE, "%.100s: unknown key; did you mean %s?", name,
                   nearest_option(name)->name);
}

bool dt__option_is_hidden(const struct dt__option *option)
{
    return !strcmp(option->section, "test");
}
