/* cli: the program. A command is a file cmd_NAME.c, a row of the table in commands.c and a section
 * of commands.txt, which says what it does; main.c finds it and makes an exit code of its status.
 * What commands share: arguments.c (what their arguments say), help.c (help, manual and completions
 * from the tables), hosts.c (of launch: the hosts of a job). */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/base.h"
#include "config/config.h"
#include "data/data.h"
#include "predict/predict.h"

/* argv[0] is the command's name, argv[1] to argv[argc - 1] are its arguments, argv[argc] is NULL.
 * main writes the error message of a status, and flushes stdout. */
typedef dt_status command_fn(int argc, char **argv);

struct command {
    const char *name;
    command_fn *run;
    bool collective;     /* of all ranks: writes its errors itself, once, and takes stops */
    const char *usage;   /* its arguments */
    const char *summary; /* one line */
};

extern const struct command commands[]; /* the first is what is run if none is named */
extern const size_t commands_count;
const struct command *command_find(const char *name); /* NULL: none */

command_fn cmd_train, cmd_eval, cmd_predict, cmd_shard, cmd_inspect, cmd_options, cmd_compare,
    cmd_top, cmd_report, cmd_export, cmd_serve, cmd_tune_lr, cmd_launch, cmd_help;

/* Starts MPI, has the bank read the configuration that the arguments are, does what is collective,
 * ends MPI; errors are printed once. The others' configuration stays at its defaults. */
struct dt_world;
typedef dt_status cli_world_fn(struct dt_world *world, struct dt_config *config);
dt_status cli_in_world(cli_world_fn *body, int argc, char **argv);

/* What `dtrain eval` and `dtrain predict` work with. */
struct cli_model {
    struct dt_predictor *predictor;
    struct dt_config config; /* as the model was made, and the arguments over it */
};
/* From argv[1], as dt__predictor_load has it, and options behind it. */
dt_status cli_model_open(struct cli_model *model, int argc, char **argv);
void cli_model_close(struct cli_model *model);
/* Its held-out rows, or data.eval's. DT_EUSAGE: it has none. */
dt_status cli_model_survey(const struct cli_model *model, enum dt_part part,
                           struct dt_source **out);
/* Sets options from arguments over what the config holds: INI files first, whatever their place,
 * then section.key=value in order, of the keys that the command takes. DT_EUSAGE. */
dt_status cli_configure(struct dt_config *config, const char *command, int count, char **arguments);
/* Takes -q, -v and --log=LEVEL out of the arguments, wherever they stand; a level that there is not
 * stays for the command to refuse. */
void cli_take_log_level(int *argc, char **argv);
/* Whether this process is to speak for the job, as far as the launcher says: before there is a
 * world, or without one. */
bool cli_is_first_task(void);

/* Adds a cell of CSV, quoted where it must be. DT_EMEMORY. */
dt_status cli_csv_add(struct dt_text *line, const char *cell, size_t length);

/* Prints a text of a file in `width` columns; 0: as wide as it is. Terminals obey control
 * characters: each becomes a '?'. NULL is empty. */
void cli_print_text(const char *text, int width);
/* The columns that it takes: its characters (UTF-8). */
int cli_text_width(const char *text);

void cli_print_help(FILE *out);
void cli_print_command_help(FILE *out, const struct command *command);
void cli_print_version(FILE *out);

#endif
