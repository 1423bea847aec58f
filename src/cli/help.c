/* Help for the program and its commands, as text and as a manual page; the version; completions for
 * shells. All of it is made from the tables of commands and options. */
#include <jansson.h>
#include <string.h>
#include <zlib.h>

#include "base/embed.h"
#include "cli/cli.h"
#include "config/option.h"
#include "comm/comm.h"
#include "model/model.h"
#include "hdf5/write.h"

DT__EMBED(cli_help, "src/cli/help.txt");
DT__EMBED(cli_commands, "src/cli/commands.txt");
DT__EMBED(cli_manual, "src/cli/manual.roff");
DT__EMBED(cli_bash, "src/cli/completion.bash");
DT__EMBED(cli_zsh, "src/cli/completion.zsh");

/* ---- for a terminal ------------------------------------------------------------------------- */

static void print_summaries(FILE *out)
{
    for (size_t i = 0; i < commands_count; i++)
        fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
}

void cli_print_help(FILE *out)
{
    static const struct dt__mark marks[] = {{"@COMMANDS@", print_summaries}, {NULL, NULL}};
    dt__template_print(out, cli_help, marks);
}

/* Largest section of commands.txt: the paragraphs about one command. */
enum { DETAILS = 1 << 14 };
static const char *details_of(const struct command *command, char text[DETAILS])
{
    char mark[32];
    snprintf(mark, sizeof mark, "\n= %s\n", command->name);
    const char *begin = strstr(cli_commands, mark);
    begin = begin ? begin + strlen(mark) : "";
    const char *next = strstr(begin, "\n= ");
    snprintf(text, DETAILS, "%.*s", (int)(next ? (size_t)(next - begin) : strlen(begin)), begin);
    return text;
}

void cli_print_command_help(FILE *out, const struct command *command)
{
    char details[DETAILS];
    fprintf(out, "dtrain %s %s\n\n%s.\n", command->name, command->usage, command->summary);
    fprintf(out, "\n%s", details_of(command, details));
}

void cli_print_version(FILE *out)
{
    char hdf5[16], onednn[DT_ONEDNN_VERSION];
    fprintf(out, "dtrain    %s\n", dt_version());
    fprintf(out, "MPI       %s\n", dt__world_mpi_version());
    fprintf(out, "OpenBLAS  %s\n", dt__blas_version());
    fprintf(out, "oneDNN    %s, when this was built\n", dt__onednn_version(onednn));
    fprintf(out, "HDF5      %s, when this was built\n", dt__h5_version(hdf5));
    fprintf(out, "jansson   %s\n", jansson_version_str());
    fprintf(out, "zlib      %s\n", zlibVersion());
}

/* ---- the manual page ------------------------------------------------------------------------ */

static void print_usages(FILE *out)
{
    for (size_t i = 0; i < commands_count; i++) {
        if (i) fprintf(out, ".br\n.B dtrain %s\n", commands[i].name);
        dt__roff_text(out, commands[i].usage);
    }
}

static void print_commands(FILE *out)
{
    char details[DETAILS];
    for (size_t i = 0; i < commands_count; i++) {
        fprintf(out, ".TP\n.B %s\n", commands[i].name);
        dt__roff_text(out, commands[i].summary);
        fprintf(out, ".IP\n");
        dt__roff_text(out, details_of(&commands[i], details));
    }
}

static const struct dt__mark MANUAL[] = {{"@VERSION@", dt__version_print},
                                         {"@USAGES@", print_usages},
                                         {"@COMMANDS@", print_commands},
                                         {NULL, NULL}};

/* ---- completions ---------------------------------------------------------------------------- */

static void print_names(FILE *out)
{
    for (size_t i = 0; i < commands_count; i++)
        fprintf(out, "%s%s", i ? " " : "", commands[i].name);
}

/* Prints a line "name: keys and flags" for each command, for completions. A command that takes a
 * configuration takes the keys of the first command, `train`. */
static void print_table(FILE *out)
{
    for (size_t i = 0; i < commands_count; i++) {
        const bool trains = strstr(commands[i].usage, "CONFIG.ini") != NULL;
        fprintf(out, "%s:", commands[i].name);
        dt__option_completions(out, commands[trains ? 0 : i].name);
        for (const char *flag = commands[i].usage; (flag = strstr(flag, "--")); flag++) {
            size_t length = 2 + strspn(flag + 2, "abcdefghijklmnopqrstuvwxyz-");
            fprintf(out, " %.*s", (int)length, flag);
            flag += length - 1;
        }
        fprintf(out, "\n");
    }
}

static const struct dt__mark COMPLETION[] = {
    {"@COMMANDS@", print_names}, {"@TABLE@", print_table}, {NULL, NULL}};

dt_status cmd_help(int argc, char **argv)
{
    static const struct {
        const char *flag, *text;
        const struct dt__mark *marks;
    } forms[] = {{"--man", cli_manual, MANUAL},
                 {"--bash", cli_bash, COMPLETION},
                 {"--zsh", cli_zsh, COMPLETION}};
    if (argc > 2) return dt_fail(DT_EUSAGE, "%s: expected one command, section or key", argv[2]);
    for (size_t i = 0; argc == 2 && i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(argv[1], forms[i].flag)) continue;
        dt__template_print(stdout, forms[i].text, forms[i].marks);
        return DT_OK;
    }
    const struct command *command = argc == 2 ? command_find(argv[1]) : NULL;
    if (argc == 2 && !command) {
        const dt_status status = dt__config_describe(stdout, DT_DESCRIBE_TEXT, argv[1]);
        if (!status || strchr(argv[1], '.')) return status;
        return dt_fail(DT_EUSAGE, "%s: no such command or section; see dtrain help", argv[1]);
    }
    if (command)
        cli_print_command_help(stdout, command);
    else
        cli_print_help(stdout);
    return DT_OK;
}
