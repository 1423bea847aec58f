/* cli: the program. A command is a file cmd_NAME.c, a row of the table in commands.c, and a section
 * of commands.txt, its help; main.c finds the command and turns its status into an exit code.
 * Shared by commands: arguments.c (arguments, cells of tables), help.c (help, manual and
 * completions, made from the tables), hosts.c (the hosts of a job, for launch). */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <jansson.h>

#include "base/base.h"
#include "config/config.h"
#include "data/data.h"
#include "predict/predict.h"
#include "text/text.h"

/* Runs a command. argv[0] is its name, argv[1] to argv[argc - 1] are its arguments, and argv[argc]
 * is NULL. main prints the error message if the status is not DT_OK, and flushes stdout. */
typedef dt_status command_fn(int argc, char **argv);

struct command {
    const char *name;
    command_fn *run;
    bool collective;     /* all ranks run it; it prints its errors itself, once, and handles
                          * stops */
    const char *usage;   /* its arguments */
    const char *summary; /* one line */
};

extern const struct command commands[]; /* the first one runs if no command is named */
extern const size_t commands_count;
const struct command *command_find(const char *name); /* NULL: there is no such command */

command_fn cmd_train, cmd_eval, cmd_predict, cmd_shard, cmd_inspect, cmd_options, cmd_compare,
    cmd_top, cmd_report, cmd_export, cmd_serve, cmd_tune_lr, cmd_search, cmd_importance, cmd_launch,
    cmd_help;

/* Runs `body` in an MPI program: starts MPI, reads the configuration from the arguments (rank 0
 * only; other ranks have the defaults), calls `body`, which is collective, and ends MPI. Errors are
 * printed once. */
struct dt_world;
typedef dt_status cli_world_fn(struct dt_world *world, struct dt_config *config);
dt_status cli_in_world(cli_world_fn *body, int argc, char **argv);
/* The same for a command whose ranks all read the arguments themselves: `run` gets them, and
 * `body`. */
typedef dt_status cli_run_fn(struct dt_world *world, cli_world_fn *body, int argc, char **argv);
dt_status cli_run(cli_run_fn *run, cli_world_fn *body, int argc, char **argv);

/* The model and settings of `dtrain eval` and `dtrain predict`. */
struct cli_model {
    struct dt_predictor *predictor;
    struct dt_config config; /* the model's configuration, overridden by the arguments */
    double held_out, test;   /* fractions of data.train that the run held out, and kept for its
                              * test */
    int64_t folds;
};
/* Opens the model argv[1], like dt__predictor_load, and applies the options after it to its
 * configuration. DT_EUSAGE. */
dt_status cli_model_open(struct cli_model *model, int argc, char **argv);
void cli_model_close(struct cli_model *model);
/* Surveys the rows of data.eval if it is given, else the rows that the run held out. DT_EUSAGE:
 * there are none. */
dt_status cli_model_survey(const struct cli_model *model, enum dt_part part,
                           struct dt_source **out);
/* Sets options from the arguments: first all INI files, then all section.key=value, each in order.
 * DT_EUSAGE: also a key that the command does not take. */
dt_status cli_configure(struct dt_config *config, const char *command, int count, char **arguments);
/* Sets the log level by -q, -v or --log=LEVEL, and removes these from the arguments. An unknown
 * level stays, so that the command refuses it. */
void cli_take_log_level(int *argc, char **argv);
/* Returns true if this process may print for the whole job: the launcher gave it rank 0, or it was
 * started alone. Works without MPI. */
bool cli_is_first_task(void);

/* Returns true if the directory is that of a search. cli_search_show prints the search's decisions
 * and what its teams train. */
bool cli_is_search(const char *dir);
/* Adds the path of a run or, if the path is that of a search, the paths of its trials' runs.
 * DT_EIO: the search has none yet. */
dt_status cli_runs_of(const char *path, struct dt__names *out);
/* Adds a search to the searches of a page, and the paths of its runs, best first, to `out`; if
 * there are many, only the best ones. */
dt_status cli_search_page(const char *dir, json_t *searches, struct dt__names *out);
dt_status cli_search_show(const char *dir);

/* Adds a cell to a line of CSV, quoted if necessary. DT_EMEMORY. */
dt_status cli_csv_add(struct dt_text *line, const char *cell, size_t length);

/* Prints text from a file, padded or cut to `width` columns (0: as it is). Control characters,
 * which a terminal would obey, become '?'. NULL is printed as "". */
void cli_print_text(const char *text, int width);
/* Returns the number of columns of a text: its characters in UTF-8. */
int cli_text_width(const char *text);

void cli_print_help(FILE *out);
void cli_print_command_help(FILE *out, const struct command *command);
void cli_print_version(FILE *out);

#endif
