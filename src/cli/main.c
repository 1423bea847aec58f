#include <string.h>

#include "cli/cli.h"

static bool is_any(const char *argument, const char *one, const char *other)
{
    return !strcmp(argument, one) || !strcmp(argument, other);
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (is_any(argv[i], "--help", "-h")) return true;
    }
    return false;
}

/* A command's name may be left out: then it is the default's. */
static dt_status run_command(int argc, char **argv, const struct command **out_command)
{
    char **whole_argv = argv;
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    if (command) {
        argc--;
        argv++;
    } else {
        command = command_default();
    }
    *out_command = command;
    if (asks_for_help(argc, argv)) {
        cli_print_command_help(stdout, command);
        return DT_OK;
    }
    DT_TRY(cli_settle_blas(command, argc, argv, whole_argv));
    if (!command->run) return dt_fail(DT_EBUG, "%s: not in this build", command->name);
    return command->run(argc, argv);
}

static dt_status run(int argc, char **argv, const struct command **out_command)
{
    *out_command = NULL;
    if (argc > 1 && is_any(argv[1], "--help", "-h"))
        cli_print_help(stdout);
    else if (argc > 1 && is_any(argv[1], "--version", "-V"))
        cli_print_version(stdout);
    else
        return run_command(argc, argv, out_command);
    return DT_OK;
}

int main(int argc, char **argv)
{
    const struct command *command;
    dt_status status = run(argc, argv, &command);
    bool reported = command && command->reports;
    if (!status && (fflush(stdout) || ferror(stdout)))
        status = dt_fail(DT_EIO, "standard output: cannot write");
    if (status && status != DT_STOPPED && !reported) dt_error("%s", dt_error_text());
    return dt_status_exit_code(status);
}
