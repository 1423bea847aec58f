/* The table of commands: one row each. Their help is in commands.txt. */
#include <string.h>

#include "cli/cli.h"

const struct command commands[] = {
    {"train", cmd_train, true, "[CONFIG.ini] [section.key=value ...]",
     "trains a network, or continues a run"},
    {"launch", cmd_launch, true,
     "[-np N] [--hostfile FILE] [--restarts K] [--grow SECS] [mpirun's options] [CONFIG.ini] "
     "[section.key=value ...]",
     "starts mpirun; after a failure, restarts it on the hosts that still answer"},
    {"eval", cmd_eval, false, "MODEL [section.key=value ...]",
     "measures a model on held-out data; prints a table on a terminal, else one JSON line"},
    {"predict", cmd_predict, false, "MODEL [section.key=value ...] < ROWS > OUT",
     "predicts rows: JSON lines or CSV in, JSON lines or CSV out"},
    {"shard", cmd_shard, false, "OUT_DIR K [CONFIG.ini] [section.key=value ...]",
     "shuffles data.train once and writes K HDF5 shards"},
    {"inspect", cmd_inspect, false, "FILE|RUN_DIR... [data.KEY=VALUE ...]",
     "shows what a checkpoint, model, shard or CSV table holds"},
    {"compare", cmd_compare, false, "RUN_DIR... [--csv|--json]",
     "a table of runs: best metric, speed, time, status, and the keys in which they differ"},
    {"top", cmd_top, false, "RUN_DIR [--once]",
     "a live view of a run: progress, loss, best model, checkpoint, what each rank does"},
    {"serve", cmd_serve, false, "MODEL [section.key=value ...]",
     "predictions over HTTP; newer versions of the model are loaded as they appear"},
    {"export", cmd_export, false, "MODEL OUT.onnx [predict.interval=0.9]",
     "writes a model with its normalisation as ONNX, for other programs"},
    {"report", cmd_report, false, "RUN_DIR... OUT.html",
     "one HTML page of a run, or of several side by side"},
    {"tune-lr", cmd_tune_lr, true, "[CONFIG.ini] [section.key=value ...]",
     "finds a learning rate to start from, by trying some steps at a rising rate"},
    {"search", cmd_search, true,
     "[CONFIG.ini] ['search.space=KEY=VALUES; ...'] [section.key=value ...]",
     "runs many trials in one job, and makes one model of the best ones"},
    {"importance", cmd_importance, true, "MODEL [data.eval=FILES] [importance.KEY=VALUE ...]",
     "says what each column is worth: how much worse the model is without it"},
    {"options", cmd_options, false, "[SECTION|KEY] [--markdown|--man|--json-schema]",
     "lists the options: type, range, default, meaning"},
    {"help", cmd_help, false, "[COMMAND|SECTION|KEY] [--man|--bash|--zsh]",
     "says what a command does or an option means, or lists the commands"},
};

const size_t commands_count = sizeof commands / sizeof *commands;

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < commands_count; i++) {
        if (!strcmp(commands[i].name, name)) return &commands[i];
    }
    return NULL;
}
