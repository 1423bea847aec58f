/* Any bytes as a configuration file: read or refused with a message, and what was read prints to a
 * text that reads back the same. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void insist(bool holds)
{
    if (!holds) abort();
}

static char *print(const struct dt_config *config)
{
    char *text;
    insist(!dt_config_print(config, &text));
    return text;
}

static void round_trip(const struct dt_config *config)
{
    struct dt_config back;
    char *text = print(config);
    insist(!dt__config_init(&back));
    insist(!dt_config_read_text(&back, "printed", text));
    char *again = print(&back);
    insist(!strcmp(text, again));
    insist(!dt__config_match(config, &back));
    dt_free(text);
    dt_free(again);
    dt__config_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct dt_config config;
    char *text = calloc(length + 1, 1);
    insist(text && !dt__config_init(&config));
    if (length > 0) memcpy(text, bytes, length);
    if (!dt_config_read_text(&config, "file", text))
        round_trip(&config);
    else
        insist(!strncmp(dt_error_text(), "file:", 5));
    dt__config_free(&config);
    free(text);
    return 0;
}
