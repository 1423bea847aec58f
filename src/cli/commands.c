/* The commands: one row each. */
#include <string.h>

#include "cli/cli.h"

const struct command commands[] = {
    {"train", cmd_train, true, "[CONFIG.ini] [section.key=value ...]",
     "trains a network, or continues a run",
     "The word train may be left out. With mpirun -np N in front there are N ranks. Rank 0 gathers "
     "and saves the weights and "
     "writes records; the others compute gradients and update slices of the weights. One process "
     "alone does both. A run directory that holds a checkpoint is continued.\n\n"
     "Exit codes: 0 completed, 2 wrong configuration, 75 stopped on request with a checkpoint "
     "saved (run it again to go on), 1 anything else, such as a resume that changes a value that "
     "must stay the same.\n\n"
     "USR1 to mpirun, or USR1, TERM or INT to a rank, asks for a stop: the step ends, and a "
     "checkpoint is saved. A second signal has no effect in the first 5 s; later it ends the run "
     "at once, without a checkpoint. Ctrl-C goes to mpirun, which kills the ranks one second later "
     "and returns 1. Ranks try to save within that second. Run the same command again: it "
     "continues from that checkpoint, or from the one before it if the save did not finish."},
    {"launch", cmd_launch, true,
     "[-np N] [--hostfile FILE] [--restarts K] [--grow SECS] [mpirun's options] [CONFIG.ini] "
     "[section.key=value ...]",
     "starts mpirun; after a failure, restarts it on the hosts that still answer",
     "After a failure that is not the user's (a rank killed, a host gone, a stall, an error of "
     "MPI) the job starts again from the newest checkpoint. Of the hosts in the file it uses those "
     "that answer, with no more ranks than their slots. It gives up after K restarts (3) without a "
     "new checkpoint between them. Without -np each slot gets a rank. The weights are the same bit "
     "for bit, even with fewer ranks (but not in async mode, nor with "
     "train.exchange=reduce).\n\nAn error of the configuration, of data or of memory, or a loss "
     "that is not finite, would happen again, so the job ends.\n\n^C, TERM or USR1 stop the job at "
     "a checkpoint (exit code 75). A second signal, also in the first 5 s, ends it at once, "
     "without a new checkpoint. Hosts that come back, or are added to the file, take part from "
     "the next start on. With --grow SECS, launch looks for such hosts every SECS seconds. If "
     "there are any, it stops the job at a checkpoint and starts it with them."},
    {"eval", cmd_eval, false, "MODEL [section.key=value ...]",
     "measures a model on held-out data; prints a table on a terminal, else one JSON line",
     "MODEL, here and in the other commands, is one of: a model file; a checkpoint; a run "
     "directory (its best model, or its newest checkpoint if nothing was evaluated); a directory "
     "of checkpoints (the newest); a directory of exported versions (the highest number). stderr "
     "says which file was taken. Two exceptions: inspect and run.init take the newest checkpoint "
     "of a run.\n\n"
     "The data is what the run was evaluated on, unless data.eval names other files. Relative "
     "paths of the run start at the current directory: call eval in the directory in which the run "
     "was started.\n\n"
     "With 2 to 64 numeric targets the table and the JSON line (target_rmse, target_r2) also have "
     "the scores of each target, in the order of data.label."},
    {"predict", cmd_predict, false, "MODEL [section.key=value ...] < ROWS > OUT",
     "predicts rows: JSON lines or CSV in, JSON lines or CSV out",
     "MODEL is any path that eval takes. A row is a JSON object with column names as keys, a JSON "
     "array, or a line of CSV or LIBSVM; {\"instances\": [...]} holds several. Columns of a CSV "
     "with a header are found by their names. It is an error if the header lacks a column that the "
     "model needs. With data.eval=FILES the rows come from files, in any training format, instead "
     "of stdin; IDX and HDF5 need no labels. predict.format=csv writes CSV.\n\nA row that cannot "
     "be read, or whose prediction is not a finite number, gives {\"line\": N, \"error\": ...}, "
     "where N counts all lines from 1; the other rows are predicted, and the exit code is 1. With "
     "data.eval, the key is \"row\", N counts from 0, and a row that cannot be read ends the "
     "command."},
    {"shard", cmd_shard, false, "OUT_DIR K [CONFIG.ini] [section.key=value ...]",
     "shuffles data.train once and writes K HDF5 shards",
     "The data may be larger than memory: data.memory_mb limits what is held at a time."},
    {"inspect", cmd_inspect, false, "FILE|RUN_DIR... [data.KEY=VALUE ...]",
     "shows what a checkpoint, model, shard or CSV table holds",
     "Of a CSV it shows the columns (type, missing values, range, first values), and proposes "
     "configuration lines. It tries these lines on the data, and says roughly what time and memory "
     "a run takes. For a run it shows the newest checkpoint; eval and predict take the best model "
     "instead."},
    {"compare", cmd_compare, false, "RUN_DIR... [--csv|--json]",
     "a table of runs: best metric, speed, time, status, and the keys in which they differ",
     "The best run comes first. If the runs use different metrics, the metric of the first RUN_DIR "
     "in the command decides. --csv and --json give all digits."},
    {"top", cmd_top, false, "RUN_DIR [--once]",
     "a live view of a run: progress, loss, best model, checkpoint, what each rank does",
     "It reads only the run directory, and so works on any host that sees this directory. The key "
     "q ends it. With --once, or if the output is not a terminal, the view is printed once."},
    {"serve", cmd_serve, false, "MODEL [section.key=value ...]",
     "predictions over HTTP; newer versions of the model are loaded as they appear",
     "TensorFlow Serving's REST: POST {\"instances\": [[...], ...]} to /v1/models/default:predict; "
     "the Open Inference Protocol v2: /v2/models/default/infer; counts for Prometheus: "
     "/metrics.\n\n"
     "Listens on 127.0.0.1, port 8501, unless serve.host and serve.port say otherwise. After TERM, "
     "INT or USR1 it answers the requests that it has, and exits 0."},
    {"export", cmd_export, false, "MODEL OUT.onnx",
     "writes a model with its normalisation as ONNX, for other programs",
     "Input \"input\" (rows, features): features as in data files, before normalisation. Outputs "
     "for classes: \"probabilities\" (rows, classes) and \"class\" (rows). If a row may have "
     "several labels: only \"probabilities\". For regression: \"values\" (rows, targets). Names "
     "are in the metadata."},
    {"report", cmd_report, false, "RUN_DIR... OUT.html",
     "one HTML page of a run, or of several beside each other",
     "Curves with values under the pointer, evaluation, confusion, where the time goes, "
     "configuration, starts and ends; the page needs no other file and no network."},
    {"tune-lr", cmd_tune_lr, true, "[CONFIG.ini] [section.key=value ...]",
     "finds a learning rate to start from, by trying some steps at a rising rate",
     "Trains 200 steps while the rate rises from 1e-7 to 10, and draws the loss as a curve. It "
     "looks for two rates: the one where the loss falls fastest, and a sixth of the one where the "
     "loss is least. It suggests a rate between these two. It runs as one process or under mpirun, "
     "with the "
     "configuration of a run, and leaves nothing behind."},
    {"options", cmd_options, false, "[SECTION|KEY] [--markdown|--man|--json-schema]",
     "lists the options: type, range, default, meaning",
     "All options, those of a section (train), or one option in detail (train.lr). --markdown "
     "gives a table, --man gives the page dtrain-config(5), --json-schema gives a JSON schema for "
     "a configuration written as an object of sections (values may be texts, numbers, true or "
     "false)."},
    {"help", cmd_help, false, "[COMMAND|SECTION|KEY] [--man|--bash|--zsh]",
     "says what a command does or an option means, or lists the commands",
     "Some words, such as train, name a command and also a section of options: `dtrain help train` "
     "explains the command, `dtrain options train` the section.\n\n"
     "--man gives the page dtrain(1); --bash and --zsh give completions, e.g. source <(dtrain help "
     "--bash)."},
};

const size_t commands_count = sizeof commands / sizeof *commands;

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < commands_count; i++) {
        if (!strcmp(commands[i].name, name)) return &commands[i];
    }
    return NULL;
}
