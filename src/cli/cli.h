/* cli: the program. A command is a file cmd_NAME.c, a row of the table in commands.c and a section
 * of commands.txt, its help; main.c finds it and converts its status to an exit code. Shared by
 * commands: arguments.c (parsing of arguments), help.c (help, manual and completions from the
 * tables), hosts.c (the hosts of a job, for launch). */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <jansson.h>

#include "base/base.h"
#include "config/config.h"
#include "data/data.h"
#include "predict/predict.h"
#include "text/text.h"

/* argv[0] is the command's name, argv[1] to argv[argc - 1] are its arguments, argv[argc] is NULL.
 * main prints the error message of a status, and flushes stdout. */
typedef dt_status command_fn(int argc, char **argv);

struct command {
    const char *name;
    command_fn *run;
    bool collective;     /* runs on all ranks: prints its errors itself, once, and handles stops */
    const char *usage;   /* its arguments */
    const char *summary; /* one line */
};

extern const struct command commands[]; /* the first runs if the user names none */
extern const size_t commands_count;
const struct command *command_find(const char *name); /* NULL: none */

command_fn cmd_train, cmd_eval, cmd_predict, cmd_shard, cmd_inspect, cmd_options, cmd_compare,
    cmd_top, cmd_report, cmd_export, cmd_serve, cmd_tune_lr, cmd_search, cmd_importance,
    cmd_launch, cmd_help;

/* Starts MPI, lets the bank read the configuration from the arguments, does the command's
 * collective work, ends MPI; prints errors once. The configuration of the other ranks stays at its
 * defaults. */
struct dt_world;
typedef dt_status cli_world_fn(struct dt_world *world, struct dt_config *config);
dt_status cli_in_world(cli_world_fn *body, int argc, char **argv);
/* The same for a command whose ranks all read their arguments themselves. */
typedef dt_status cli_run_fn(struct dt_world *world, cli_world_fn *body, int argc, char **argv);
dt_status cli_run(cli_run_fn *run, cli_world_fn *body, int argc, char **argv);

/* The model and settings of `dtrain eval` and `dtrain predict`. */
struct cli_model {
    struct dt_predictor *predictor;
    struct dt_config config; /* the model's configuration, overridden by the arguments */
    double held_out, test;   /* shares of data.train that the run itself kept from training */
    int64_t folds;
};
/* Opens the model argv[1], like dt__predictor_load, and applies the options after it. */
dt_status cli_model_open(struct cli_model *model, int argc, char **argv);
void cli_model_close(struct cli_model *model);
/* Surveys the model's held-out rows, or those of data.eval. DT_EUSAGE: it has none. */
dt_status cli_model_survey(const struct cli_model *model, enum dt_part part,
                           struct dt_source **out);
/* Sets options from arguments in a config: INI files first, wherever they are, then
 * section.key=value in order, for the keys that the command takes. DT_EUSAGE. */
dt_status cli_configure(struct dt_config *config, const char *command, int count, char **arguments);
/* Removes -q, -v and --log=LEVEL from the arguments, wherever they are; an unknown level stays, and
 * the command refuses it. */
void cli_take_log_level(int *argc, char **argv);
/* Returns true if this process may print for the job, according to the launcher: before a world
 * exists, or without one. */
bool cli_is_first_task(void);

/* Returns true if a directory is that of a search; cli_search_show prints its decisions and the
 * state of its teams. */
bool cli_is_search(const char *dir);
/* Adds the path of a run, or of a search those of its trials' runs. DT_EIO: there are none yet. */
dt_status cli_runs_of(const char *path, struct dt__names *out);
/* Adds a search to those of a page, and the paths of its runs, the best first; of many runs only
 * the best. */
dt_status cli_search_page(const char *dir, json_t *searches, struct dt__names *out);
dt_status cli_search_show(const char *dir);

/* Adds a cell of CSV, quoted if necessary. DT_EMEMORY. */
dt_status cli_csv_add(struct dt_text *line, const char *cell, size_t length);

/* Prints a text from a file in `width` columns; 0: in its own width. Terminals obey control
 * characters: each becomes '?'. NULL is empty. */
void cli_print_text(const char *text, int width);
/* Returns the columns that a text takes: its characters (UTF-8). */
int cli_text_width(const char *text);

void cli_print_help(FILE *out);
void cli_print_command_help(FILE *out, const struct command *command);
void cli_print_version(FILE *out);

#endif
