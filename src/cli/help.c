/* Help: what the program and its commands do, as text for a terminal and as a manual page;
 * versions; and completions for shells. All of it from the tables of commands and options. */
#include <jansson.h>
#include <string.h>
#include <zlib.h>

#include "cli/cli.h"
#include "config/option.h"
#include "dtrain/dtrain.h"
#include "hdf5/write.h"

static const char WHAT[] = "dtrain trains neural networks and linear models on CPU clusters.";

/* ---- for a terminal ------------------------------------------------------------------------- */

void cli_print_help(FILE *out)
{
    fprintf(out,
            "%s\n\n"
            "  mpirun -np N dtrain CONFIG.ini [section.key=value ...]\n"
            "  dtrain COMMAND ARGUMENTS\n\nCommands:\n",
            WHAT);
    for (size_t i = 0; i < commands_count; i++)
        fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
    fprintf(
        out,
        "\nA first run, on a CSV file whose last column is to be predicted, and what came of it:\n"
        "  dtrain data.train=rows.csv data.eval_fraction=0.1 run.dir=runs/first\n"
        "  dtrain eval runs/first\n"
        "  dtrain predict runs/first < rows.csv\n"
        "With `mpirun -np 3` before it, two workers train.\n\n"
        "  dtrain help COMMAND            what it does, and its arguments\n"
        "  dtrain options [SECTION|KEY]   what a CONFIG.ini may hold\n"
        "  man dtrain, man dtrain-config  the same and more, at length\n"
        "  --log=LEVEL                    error, warn, info or debug; -q: error, -v: debug\n"
        "  dtrain --version               versions of the program and its libraries\n");
}

/* Details are paragraphs, which empty lines part, in lines of at most 80 characters. */
void cli_print_command_help(FILE *out, const struct command *command)
{
    fprintf(out, "dtrain %s %s\n\n%s.\n", command->name, command->usage, command->summary);
    if (!*command->details) return;
    fprintf(out, "\n");
    int column = 0;
    for (const char *text = command->details; *text;) {
        if (!strncmp(text, "\n\n", 2)) {
            fprintf(out, "\n\n");
            column = 0;
        }
        text += strspn(text, " \n");
        const int length = (int)strcspn(text, " \n");
        if (!length) break;
        if (column && column + 1 + length > 80) {
            fprintf(out, "\n");
            column = 0;
        }
        fprintf(out, "%s%.*s", column ? " " : "", length, text);
        column += (column > 0) + length;
        text += length;
    }
    fprintf(out, "\n");
}

void cli_print_version(FILE *out)
{
    char hdf5[16], onednn[DT_ONEDNN_VERSION];
    fprintf(out, "dtrain    %s\n", dt_version());
    fprintf(out, "MPI       %s\n", dt_world_mpi_version());
    fprintf(out, "OpenBLAS  %s\n", dt_blas_version());
    fprintf(out, "oneDNN    %s\n", dt_onednn_version(onednn));
    fprintf(out, "HDF5      %s\n", dt__h5_version(hdf5));
    fprintf(out, "jansson   %s\n", jansson_version_str());
    fprintf(out, "zlib      %s\n", zlibVersion());
}

/* ---- the manual page ------------------------------------------------------------------------ */

/* What a run writes. */
static const char *const FILES[][2] = {
    {"config.ini",
     "Every option as resolved; given to dtrain with another run.dir it repeats the run."},
    {"metrics.jsonl", "Records, one JSON object a line, appended; see below."},
    {"ckpt/step-N.h5",
     "Checkpoints, all that a resume needs; ckpt/latest.h5 is a link to the newest one."},
    {"export/latest/N/model.h5, export/best/N/model.h5",
     "Models for eval and predict, of step N: at each checkpoint, and the best by eval.metric. Of "
     "a tensor of "
     "sparse inputs whose rows are mostly 0 there are the others alone, as NAME_rows and "
     "NAME_values."},
    {"status.json", "What dtrain top shows, rewritten every few seconds."},
};

static const char *const RECORDS[][2] = {
    {"start", "How a start found things: step, mode, exchange, size (ranks), workers, replicas, "
              "hosts, params (trained numbers), batch, kernel, threads, config_crc32c, time_unix."},
    {"train",
     "Every run.log_steps and at the end: step (updates done), epoch (a fraction), samples and "
     "wall_secs (summed over resumes), loss (mean data loss since the record before, without "
     "penalties), lr, samples_per_sec. Async adds staleness_mean and staleness_max."},
    {"eval", "An evaluation: step, rows, loss and the metrics of the task; confusion has the "
             "true classes as rows; secs is what it took."},
    {"checkpoint", "A save: step, file, secs."},
    {"final", "The end: status (completed, stopped or early_stopped), step, epoch, samples, "
              "loss, samples_per_sec (training samples over training time, without start, "
              "evaluation and waiting for checkpoints), wall_secs, bank_cpu_secs, params_crc32c "
              "(CRC-32C of the weights: equal bits show at a glance). Where the mean worker's "
              "time went: compute_secs, data_secs, wait_secs, reduce_secs, update_secs, "
              "network_secs; worker_compute_secs and so on have each worker's. Async: "
              "gradients_sent, gradients_applied, clock_gap_max, staleness_histogram."},
};

static void print_items(FILE *out, const char *const (*items)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(out, ".TP\n.B ");
        dt__roff_text(out, items[i][0]);
        dt__roff_text(out, items[i][1]);
    }
}

static const char ROLES[] =
    "Rank 0 of a job is the parameter bank: it keeps the weights and the optimizer. Every other "
    "rank is a worker: it shuffles its own share of the data and computes gradients. One process "
    "alone is both.\n"
    ".PP\n"
    "A configuration is an INI file, see\n"
    ".BR dtrain\\-config (5);\n"
    "arguments of the form section.key=value win over it. The same command, run again, goes on "
    "from the newest checkpoint.\n";

static const char FLAGS[] = ".SH OPTIONS\n"
                            ".TP\n"
                            ".BR \\-\\-log= LEVEL\n"
                            "What goes to stderr:\n"
                            ".BR error ,\n"
                            ".BR warn ,\n"
                            ".B info\n"
                            "or\n"
                            ".BR debug .\n"
                            ".TP\n"
                            ".BR \\-q \", \" \\-v\n"
                            "The same as \\-\\-log=error and \\-\\-log=debug.\n"
                            ".TP\n"
                            ".BR \\-h \", \" \\-\\-help\n"
                            "What the program, or a command, does.\n"
                            ".TP\n"
                            ".BR \\-V \", \" \\-\\-version\n"
                            "Versions of the program and its libraries.\n";

static const char ENDS[] =
    ".SH EXIT STATUS\n"
    ".TP\n"
    ".B 0\n"
    "Completed, by an early stop too.\n"
    ".TP\n"
    ".B 2\n"
    "What configuration, arguments and number of ranks alone show to be wrong.\n"
    ".TP\n"
    ".B 75\n"
    "Stopped on request, with a checkpoint saved or nothing begun: run it again to go on.\n"
    ".TP\n"
    ".B 1\n"
    "Anything else. One line on stderr begins with \"dtrain: error:\" and says what and where.\n"
    ".SH SIGNALS\n"
    "USR1 to mpirun, or USR1, TERM or INT to a rank, asks for a stop: the step under way ends, a "
    "checkpoint is saved, the job ends with 75. A second one 5 s or more later ends it at once.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n"
    ".B OPENBLAS_CORETYPE\n"
    "OpenBLAS's kernel, with run.kernel=env.\n"
    ".TP\n"
    ".B OMPI_MCA_*\n"
    "Settings of Open MPI; one that is set wins over dtrain's own.\n"
    ".SH EXAMPLES\n"
    ".nf\n"
    "dtrain data.train=rows.csv data.eval_fraction=0.1 run.dir=runs/first\n"
    "mpirun \\-np 3 dtrain CONFIG.ini train.lr=0.01\n"
    "dtrain predict runs/first < rows.csv > predictions.jsonl\n"
    ".fi\n"
    ".SH SEE ALSO\n"
    ".BR dtrain\\-config (5),\n"
    ".BR mpirun (1)\n";

static void print_manual(FILE *out)
{
    fprintf(out, ".TH DTRAIN 1 \"\" \"dtrain %s\" \"User commands\"\n.SH NAME\n", dt_version());
    fprintf(out, "dtrain \\- trains neural networks and linear models on CPU clusters\n");
    fprintf(out, ".SH SYNOPSIS\n.B mpirun \\-np\n.I N\n.B dtrain\n");
    dt__roff_text(out, commands[0].usage);
    for (size_t i = 1; i < commands_count; i++) {
        fprintf(out, ".br\n.B dtrain %s\n", commands[i].name);
        dt__roff_text(out, commands[i].usage);
    }
    fprintf(out, ".SH DESCRIPTION\n%s\n%s.SH COMMANDS\n", WHAT, ROLES);
    for (size_t i = 0; i < commands_count; i++) {
        fprintf(out, ".TP\n.B %s\n", commands[i].name);
        dt__roff_text(out, commands[i].summary);
        if (*commands[i].details) fprintf(out, ".IP\n");
        dt__roff_text(out, commands[i].details);
    }
    fprintf(out, "%s.SH FILES\nIn the run directory:\n", FLAGS);
    print_items(out, FILES, sizeof FILES / sizeof *FILES);
    fprintf(out,
            ".SH RECORDS\nThe kinds of metrics.jsonl. After a resume records may repeat: the "
            "last of a kind and step counts.\n");
    print_items(out, RECORDS, sizeof RECORDS / sizeof *RECORDS);
    fprintf(out, "%s", ENDS);
}

/* ---- completions ---------------------------------------------------------------------------- */

/* The commands, and a line for each, "name: keys and flags", to look up in. */
static void print_tables(FILE *out)
{
    fprintf(out, "    local commands='");
    for (size_t i = 0; i < commands_count; i++)
        fprintf(out, "%s%s", i ? " " : "", commands[i].name);
    fprintf(out, "'\n    local table='");
    for (size_t i = 0; i < commands_count; i++) {
        fprintf(out, "%s:", commands[i].name);
        dt__option_words(out, commands[i].name);
        for (const char *flag = commands[i].usage; (flag = strstr(flag, "--")); flag++) {
            size_t length = 2 + strspn(flag + 2, "abcdefghijklmnopqrstuvwxyz-");
            fprintf(out, " %.*s", (int)length, flag);
            flag += length - 1;
        }
        fprintf(out, "\n");
    }
    fprintf(out, "'\n");
}

/* Of key=value readline replaces what stands behind the last '='. A word that is whole already is
 * no help: then file names are. */
static const char BASH[] =
    "    local line=${COMP_LINE:0:COMP_POINT} command=train item known word\n"
    "    word=${line##*[[:space:]]}\n"
    "    for item in ${line#* }; do\n"
    "        [[ \" $commands \" == *\" $item \"* ]] && command=$item && break\n"
    "    done\n"
    "    known=$(sed -n \"s/^$command://p\" <<<\"$table\")\n"
    "    [[ $COMP_CWORD -eq 1 || $command == help ]] && known+=\" $commands --help --version\"\n"
    "    [[ $command == options ]] && known+=\" $(grep -o '[a-z]*[.][a-z_0-9]*=' <<<\"$table\" | "
    "tr -d = | sort -u)\"\n"
    "    COMPREPLY=()\n"
    "    for item in $known --log=error --log=warn --log=info --log=debug; do\n"
    "        [[ $item == \"$word\"?* ]] || continue\n"
    "        [[ $word == *=* ]] && item=${item#*=}\n"
    "        COMPREPLY+=(\"$item\")\n"
    "    done\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -o default -o bashdefault -F _dtrain dtrain ./dtrain\n";

static void print_bash(FILE *out)
{
    fprintf(out, "# bash completion of dtrain\n_dtrain() {\n");
    print_tables(out);
    fprintf(out, "%s", BASH);
}

static const char ZSH[] =
    "    local command=train item\n"
    "    for item in ${words[2,CURRENT-1]}; do\n"
    "        [[ \" $commands \" == *\" $item \"* ]] && command=$item && break\n"
    "    done\n"
    "    local -a known\n"
    "    known=(${=${(M)${(f)table}:#$command:*}#*:} --log=error --log=warn --log=info "
    "--log=debug)\n"
    "    if [[ $PREFIX == *=* ]]; then\n"
    "        known=(${${(M)known:#${PREFIX%%=*}=?*}#*=})\n"
    "        compset -P '*='\n"
    "        (( $#known )) && compadd -a known || _files\n"
    "        return\n"
    "    fi\n"
    "    (( CURRENT == 2 )) || [[ $command == help ]] && compadd -- ${=commands} --help --version\n"
    "    [[ $command == options ]] && compadd -- ${(u)${(M)${=table}:#*.*=*}%%=*}\n"
    "    local -aU keys\n"
    "    keys=(${${(M)known:#*=*}%%=*})\n"
    "    compadd -S = -a keys\n"
    "    compadd -- ${known:#*=*}\n"
    "    _files\n"
    "}\n"
    "if [[ $funcstack[1] == _dtrain ]]; then _dtrain \"$@\"; else compdef _dtrain dtrain; fi\n";

static void print_zsh(FILE *out)
{
    fprintf(out, "#compdef dtrain\n# zsh completion of dtrain\n_dtrain() {\n");
    print_tables(out);
    fprintf(out, "%s", ZSH);
}

dt_status cmd_help(int argc, char **argv)
{
    static const struct {
        const char *flag;
        void (*print)(FILE *out);
    } forms[] = {{"--man", print_manual}, {"--bash", print_bash}, {"--zsh", print_zsh}};
    if (argc > 2) return dt_fail(DT_EUSAGE, "%s: expected one command or nothing", argv[2]);
    for (size_t i = 0; argc == 2 && i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(argv[1], forms[i].flag)) continue;
        forms[i].print(stdout);
        return DT_OK;
    }
    const struct command *command = argc == 2 ? command_find(argv[1]) : NULL;
    if (argc == 2 && !command)
        return dt_fail(DT_EUSAGE, "%s: no such command; see dtrain help", argv[1]);
    if (command)
        cli_print_command_help(stdout, command);
    else
        cli_print_help(stdout);
    return DT_OK;
}
