/* Any bytes as rows to predict: each is finite numbers or a message, lines never fall, and the stream
 * ends. */
#include <stdlib.h>
#include <string.h>

#include "dtrain/data.h"

enum { FEATURES = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void insist(bool holds)
{
    if (!holds) abort();
}

static void read_all(struct dt_rows *rows, size_t most)
{
    uint64_t line = 0, last = 0;
    bool end = false;
    for (size_t i = 0; !end; i++) {
        float x[FEATURES] = {0};
        insist(i <= most + 2);
        if (dt_rows_next(rows, x, &line, &end)) insist(*dt_error_text());
        for (int f = 0; f < FEATURES; f++)
            insist(x[f] - x[f] == 0);
        insist(end || line >= last);
        last = line;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *names[FEATURES] = {"a", "b", "c"};
    struct dt_schema schema = {.features = FEATURES, .classes = 2, .scale = 1};
    struct dt_config config;
    struct dt_rows *rows;
    if (length < 2) return 0;
    uint8_t choice = *bytes++;
    length--;
    insist(!dt_config_init(&config));
    if (choice & 1) schema.feature_names = names;
    FILE *in = fmemopen((void *)(uintptr_t)bytes, length, "r");
    insist(in != NULL);
    if (!dt_rows_open(in, "fuzz", &schema, choice & 2 ? &config : NULL, &rows)) {
        read_all(rows, length);
        dt_rows_close(rows);
    }
    fclose(in);
    dt_config_free(&config);
    return 0;
}
