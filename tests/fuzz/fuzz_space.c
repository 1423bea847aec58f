/* Any bytes as search.space: refused with a message, or a space whose draws the keys take. */
#include <stdlib.h>
#include <string.h>

#include "search/search.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void insist(bool holds)
{
    if (!holds) abort();
}

static void draw_all(const struct dt__space *space)
{
    struct dt_config config;
    insist(!dt__config_init(&config));
    for (int trial = 0; trial < 3; trial++)
        for (size_t a = 0; a < space->axes; a++) {
            char *value;
            insist(!dt__space_draw(space, 1, trial, a, &value));
            insist(!dt__option_set(&config, space->axis[a].option, value));
            dt_free(value);
        }
    dt__config_free(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct dt__space space;
    char *text = calloc(length + 1, 1);
    insist(text != NULL);
    if (length > 0) memcpy(text, bytes, length);
    if (!dt__space_parse(text, &space)) {
        draw_all(&space);
        dt__space_free(&space);
    } else {
        insist(!strncmp(dt_error_text(), "search.space: ", 14));
    }
    free(text);
    return 0;
}
