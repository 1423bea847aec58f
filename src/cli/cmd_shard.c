#include <stdlib.h>

#include "cli/cli.h"
#include "dtrain/data.h"

enum { MOST_SHARDS = 99999 };

static dt_status parse_count(const char *text, int *out)
{
    char *end;
    long count = strtol(text, &end, 10);
    if (end == text || *end || count < 1 || count > MOST_SHARDS)
        return dt_fail(DT_EUSAGE, "shard: '%s' is not a number of shards from 1 to %d", text,
                       MOST_SHARDS);
    *out = (int)count;
    return DT_OK;
}

dt_status cmd_shard(int argc, char **argv)
{
    struct dt_config config;
    int shards = 0;
    if (argc < 3) return dt_fail(DT_EUSAGE, "shard: expected OUT_DIR K [section.key=value ...]");
    DT_TRY(parse_count(argv[2], &shards));
    DT_TRY(dt_config_init(&config));
    dt_status status = cli_configure(&config, argc - 3, argv + 3);
    if (!status) status = dt_shard_write(&config, argv[1], shards);
    dt_config_free(&config);
    if (!status) dt_info("%s: %d shards", argv[1], shards);
    return status;
}
