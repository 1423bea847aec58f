/* cli: the program. A command is a file cmd_NAME.c and a row of the table in commands.c. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "dtrain/base.h"
#include "dtrain/config.h"
#include "dtrain/model.h"
#include "dtrain/state.h"

/* argv[0] is the command's name, argv[1] to argv[argc - 1] are its arguments, argv[argc] is NULL.
 * main writes the error message of a status, and flushes stdout. */
typedef dt_status command_fn(int argc, char **argv);

struct command {
    const char *name;
    command_fn *run;
    bool reports;        /* collective: writes its errors itself, once for all ranks */
    const char *usage;   /* its arguments */
    const char *summary; /* one line */
    const char *details; /* for `dtrain NAME --help` */
};

extern const struct command commands[];
extern const size_t commands_count;
/* The first command: what is run if none is named. */
const struct command *command_default(void);
const struct command *command_find(const char *name); /* NULL: none */

command_fn cmd_train, cmd_eval, cmd_predict, cmd_shard, cmd_inspect, cmd_options;

/* What `dtrain eval` and `dtrain predict` work with. */
struct cli_model {
    char *path;              /* of the file that the argument led to */
    struct dt_export file;   /* params, schema, step */
    struct dt_config config; /* as the model was made, and the arguments over it */
    struct dt_model *network;
};
/* From argv[1], a file or directory as dt_export_load has it, and options behind it. */
dt_status cli_model_open(struct cli_model *model, int argc, char **argv);
void cli_model_close(struct cli_model *model);
/* Whether an option is among the arguments behind argv[1]. */
bool cli_is_given(const char *key, int argc, char **argv);

/* Whether an argument is "section.key=value"; a path may hold '=' behind a '/'. */
bool cli_is_assignment(const char *argument);

/* Sets options from arguments over what the config holds: INI files first, whatever their place, then
 * section.key=value in order. DT_EUSAGE. */
dt_status cli_configure(struct dt_config *config, int count, char **arguments);
/* The same without files: DT_EUSAGE for an argument that is not section.key=value. */
dt_status cli_set_options(struct dt_config *config, int count, char **arguments);

/* Sees to the kernel of matrix products, to OPENBLAS_CORETYPE and OPENBLAS_NUM_THREADS, which OpenBLAS
 * reads as it loads: if one has to be set, the program executes itself again with whole_argv and this
 * does not return. */
dt_status cli_settle_blas(const struct command *command, int argc, char **argv, char **whole_argv);

/* Whether run.kernel was taken; OpenBLAS passes over names that it does not know. DT_EUSAGE. */
dt_status cli_check_kernel(const struct dt_config *config);

void cli_print_help(FILE *out);
void cli_print_command_help(FILE *out, const struct command *command);
void cli_print_version(FILE *out);

#endif
