#include "dtrain/config.h"

#include <string.h>

#include "config/option.h"

dt_status dt_config_init(struct dt_config *config)
{
    *config = (struct dt_config){0};
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        dt_status status = dt__option_set(config, &dt__options[i], dt__options[i].initial);
        if (status) {
            dt_config_free(config);
            return status;
        }
    }
    return DT_OK;
}

void dt_config_free(struct dt_config *config)
{
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        if (dt__options[i].type == DT__TEXT)
            dt_free(*(char **)((char *)config + dt__options[i].offset));
    }
    *config = (struct dt_config){0};
}

dt_status dt_config_set(struct dt_config *config, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return dt_fail(DT_EUSAGE, "%s: expected section.key=value", assignment);
    char *name;
    DT_TRY(dt_format(&name, "%.*s", (int)(equals - assignment), assignment));
    const struct dt__option *option;
    dt_status status = dt__option_find(name, &option);
    if (!status) status = dt__option_set(config, option, equals + 1);
    dt_free(name);
    return status;
}

static bool same_value(const struct dt__option *option, const char *before, const char *now)
{
    bool any = !strcmp(option->name, "run.replicas") && !strcmp(now, "0");
    return any || !strcmp(before, now);
}

static dt_status match_option(const struct dt__option *option, const struct dt_config *before,
                              const struct dt_config *now)
{
    char *was = NULL, *is = NULL;
    dt_status status = dt__option_text(before, option, &was);
    if (!status) status = dt__option_text(now, option, &is);
    if (!status && !same_value(option, was, is))
        status = dt_fail(DT_EMISMATCH, "%s=%.200s: the run to resume has %.200s, and must keep it",
                         option->name, is, was);
    dt_free(was);
    dt_free(is);
    return status;
}

dt_status dt_config_match(const struct dt_config *before, const struct dt_config *now)
{
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        if (dt__options[i].fixed) DT_TRY(match_option(&dt__options[i], before, now));
    }
    return DT_OK;
}
