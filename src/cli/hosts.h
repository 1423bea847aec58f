/* The hosts that a job may run on: those of a host file, or of an allocation of Slurm's, and which
 * of them answer. */
#ifndef CLI_HOSTS_H
#define CLI_HOSTS_H

#include <sys/types.h>

#include "base/base.h"

enum { CLI_HOST_NAME = 256, CLI_LINE = 4096 };

struct cli_host {
    char name[CLI_HOST_NAME];
    char user[CLI_HOST_NAME]; /* who logs in there; "": who calls */
    char line[CLI_LINE];      /* of the host file */
    int slots;                /* 0: the line does not say */
    pid_t check;              /* asks it; -1: has ended */
    bool answers;
};

struct cli_hosts {
    const char *file; /* the host file; NULL: none is given */
    bool hydra;       /* mpirun is Hydra: its files have "NAME:N" for "NAME slots=N" */
    /* What mpirun runs commands on other hosts with, words, a choice behind a ':'; NULL: ssh, or
     * Slurm's srun. */
    const char *agent;
    const char *agent_args; /* words behind it; NULL: none */
    /* the host file, or what Slurm calls its list; NULL: mpirun knows the hosts */
    const char *from;
    struct cli_host *host;
    int count, answering; /* answering: of those that were chosen */
    double asked_at;
    char chosen[512]; /* a file of those that answer; "": there is none */
};

/* Reads the list anew and asks its hosts, all at once, without waiting for them. DT_EIO: it cannot
 * be read. */
dt_status cli_hosts_ask(struct cli_hosts *hosts);
/* Whether each has answered, or had its seconds; then *out_come is how many more do than were
 * chosen. */
bool cli_hosts_answered(struct cli_hosts *hosts, int *out_come);
/* Writes those that have answered, `come` more than were chosen, into a file for mpirun.
 * *out_slots: how many ranks they have room for, 0: that is not known. DT_EIO: no host answers. */
dt_status cli_hosts_choose(struct cli_hosts *hosts, int come, int *out_slots);
/* Asks no more, and removes the file. */
void cli_hosts_free(struct cli_hosts *hosts);

/* Starts a program, in a process group of its own and with signals as it expects them. What it
 * writes to `fd` is to be read from *out_end; NULL: it goes where ours goes. *out_pid: -1 behind a
 * failure. DT_EIO: there is no such program, or it cannot be run. */
dt_status cli_start(char *const *command, int fd, int *out_end, pid_t *out_pid);

#endif
