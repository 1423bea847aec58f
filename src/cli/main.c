/* The program: finds the command, runs it, and returns the exit code.
 *
 *   dtrain [--log=LEVEL] [COMMAND] ARGUMENTS
 *
 * A command that all ranks run prints its errors itself, once; the errors of all other commands are
 * printed here. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "hdf5/guard.h"

static bool is_any(const char *argument, const char *one, const char *other)
{
    return !strcmp(argument, one) || !strcmp(argument, other);
}

/* Returns the rank that the launcher has put into the environment, which is known before MPI
 * starts. NULL: the program was started alone. */
static const char *launched_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return getenv(names[i]);
    return NULL;
}

bool cli_is_first_task(void)
{
    const char *rank = launched_rank();
    return !rank || !strcmp(rank, "0");
}

static dt_status program_run(int argc, char **argv, const struct command **out_command)
{
    cli_take_log_level(&argc, argv);
    if (argc < 2 && !launched_rank()) {
        cli_print_help(stdout);
        return dt_fail(DT_EUSAGE, "expected a configuration file or a command");
    }
    if (argc > 1 && is_any(argv[1], "--help", "-h")) return cmd_help(argc - 1, argv + 1);
    if (argc > 1 && is_any(argv[1], "--version", "-V")) {
        cli_print_version(stdout);
        return DT_OK;
    }
    /* The first command runs if no name is given. */
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    if (command)
        argc--, argv++;
    else
        command = &commands[0];
    *out_command = command;
    for (int i = 1; i < argc; i++) {
        if (!is_any(argv[i], "--help", "-h")) continue;
        cli_print_command_help(stdout, command);
        return DT_OK;
    }
    /* Start the process that reads HDF5 now, so that it inherits neither MPI nor threads. */
    if (command->collective)
        dt__h5_guard_start();
    else
        dt__stop_block(false);
    return command->run(argc, argv);
}

/* Opens standard streams that are closed, so that no other file gets their numbers. Reading from
 * them and writing to them fails, as before. */
static void streams_hold(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

int main(int argc, char **argv)
{
    const struct command *command = NULL;
    streams_hold();
    signal(SIGXFSZ, SIG_IGN); /* so that a write beyond the file size limit returns an error */
    signal(SIGCHLD, SIG_DFL); /* the caller may have it ignored; then it would be impossible to wait
                               * for children */
    dt__stop_block(true);     /* as long as there is no other thread */
    dt__denormals_flush();
    dt_status status = program_run(argc, argv, &command);
    bool reported = command && command->collective;
    if (!status && (fflush(stdout) || ferror(stdout))) {
        status = dt_fail(DT_EIO, "standard output: cannot write");
        reported = false;
    }
    if (status && status != DT_STOPPED && !reported) dt__error("%s", dt_error_text());
    dt__h5_guard_stop();
    return dt_status_exit_code(status);
}
