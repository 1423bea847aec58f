/* `dtrain shard`: reads the arguments, then shuffles data.train into shards. */
#include <stdlib.h>

#include "cli/cli.h"
#include "data/data.h"

enum { MOST_SHARDS = 99999 };

dt_status cmd_shard(int argc, char **argv)
{
    struct dt_config config;
    char *end;
    if (argc < 3)
        return dt_fail(DT_EUSAGE, "shard: expected OUT_DIR K [CONFIG.ini] [section.key=value ...]");
    const long shards = strtol(argv[2], &end, 10);
    if (end == argv[2] || *end || shards < 1 || shards > MOST_SHARDS)
        return dt_fail(DT_EUSAGE, "shard: '%s' is not a number of shards from 1 to %d", argv[2],
                       MOST_SHARDS);
    DT_TRY(dt__config_init(&config));
    dt_status status = cli_configure(&config, "shard", argc - 3, argv + 3);
    if (!status) status = dt__shard_write(&config, argv[1], (int)shards);
    if (!status)
        dt__info("%s: %ld shards; next: dtrain 'data.train=%s/*.h5'%s%s data.eval_fraction=0.2 "
                 "run.dir=runs/first",
                 argv[1], shards, argv[1],
                 dt__data_trains_on_table(&config) ? " run.preset=table" : "",
                 config.model.task == DT_TASK_REGRESS      ? " model.task=regress"
                 : config.model.task == DT_TASK_MULTILABEL ? " model.task=multilabel"
                                                           : "");
    dt__config_free(&config);
    return status;
}
