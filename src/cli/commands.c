#include <string.h>

#include "cli/cli.h"

const struct command commands[] = {
    {"train", cmd_train, true, "CONFIG.ini [section.key=value ...]",
     "trains a network, or continues where a run stood",
     "Started by mpirun: mpirun -np N dtrain CONFIG.ini. Rank 0 keeps the weights, the others\n"
     "compute gradients. A run directory that holds a checkpoint is continued.\n"
     "Exit codes: 0 completed, 2 wrong configuration, 75 stopped on request with a checkpoint\n"
     "saved (run it again to go on), 1 anything else.\n"},
    {"eval", cmd_eval, false, "CHECKPOINT|MODEL|RUN_DIR [section.key=value ...]",
     "measures a model on held-out data, one JSON line",
     "Of a run directory the newest checkpoint, of a directory of exports the highest version.\n"
     "The data is what the run was evaluated on, unless data.eval names other files.\n"},
    {"predict", cmd_predict, false, "MODEL [section.key=value ...] < ROWS > OUT",
     "predicts rows: JSON lines or CSV in, JSON lines out",
     "MODEL is a model file, a version directory or the directory above it (highest version).\n"
     "A row is a JSON array, or a line of CSV or LIBSVM; {\"instances\": [[...], ...]} holds\n"
     "several. CSV columns go by the header's names if it has those of the model's features.\n"
     "data.eval=FILES predicts the rows of files in any training format instead.\n"
     "A bad row gives {\"line\": N, \"error\": ...}, and exit code 1 at the end.\n"},
    {"shard", cmd_shard, false, "OUT_DIR K [section.key=value ...]",
     "shuffles data.train once and writes K HDF5 shards",
     "Streams: data.memory_mb bounds the memory, whatever the size of the data.\n"},
    {"inspect", cmd_inspect, false, "FILE", "tells what a checkpoint, model or shard holds", ""},
    {"options", cmd_options, false, "[--markdown]",
     "lists every option: type, range, default, meaning", ""},
};

const size_t commands_count = sizeof commands / sizeof *commands;

const struct command *command_default(void)
{
    return &commands[0];
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < commands_count; i++) {
        if (!strcmp(commands[i].name, name)) return &commands[i];
    }
    return NULL;
}
