#include <jansson.h>
#include <zlib.h>

#include "cli/cli.h"
#include "dtrain/comm.h"
#include "dtrain/data.h"
#include "dtrain/model.h"

void cli_print_help(FILE *out)
{
    fprintf(out, "dtrain trains neural networks and linear models on CPU clusters.\n\n"
                 "  mpirun -np N dtrain CONFIG.ini [section.key=value ...]\n"
                 "  dtrain COMMAND ARGUMENTS\n\nCommands:\n");
    for (size_t i = 0; i < commands_count; i++)
        fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n  dtrain COMMAND --help   its arguments\n"
                 "  dtrain --version        versions of the program and its libraries\n\n"
                 "`dtrain options` lists what a CONFIG.ini may hold.\n");
}

void cli_print_command_help(FILE *out, const struct command *command)
{
    fprintf(out, "dtrain %s %s\n\n%s.\n", command->name, command->usage, command->summary);
    if (*command->details) fprintf(out, "\n%s", command->details);
}

void cli_print_version(FILE *out)
{
    char hdf5[16], onednn[DT_ONEDNN_VERSION];
    fprintf(out, "dtrain    %s\n", DT_VERSION);
    fprintf(out, "MPI       %s\n", dt_world_mpi_version());
    fprintf(out, "OpenBLAS  %s\n", dt_blas_version());
    fprintf(out, "oneDNN    %s\n", dt_onednn_version(onednn));
    fprintf(out, "HDF5      %s\n", dt_hdf5_version(hdf5));
    fprintf(out, "jansson   %s\n", jansson_version_str());
    fprintf(out, "zlib      %s\n", zlibVersion());
}
