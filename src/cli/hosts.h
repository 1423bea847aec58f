/* The hosts of a job, from a host file or an allocation of Slurm, and which of them answer. */
#ifndef CLI_HOSTS_H
#define CLI_HOSTS_H

#include <sys/types.h>

#include "base/base.h"

enum { CLI_HOST_NAME = 256, CLI_LINE = 4096 };

struct cli_host {
    char name[CLI_HOST_NAME];
    char user[CLI_HOST_NAME]; /* user to log in as; "": the current one */
    char line[CLI_LINE];      /* line in the host file */
    int slots;                /* 0: not in the line */
    pid_t check;              /* process that checks the host; -1: has ended */
    bool answers;
};

struct cli_hosts {
    const char *file; /* the host file; NULL: none is given */
    bool hydra;       /* mpirun is Hydra: its host files have "NAME:N" for "NAME slots=N" */
    /* The command by which mpirun runs commands on other hosts, words, alternatives after a ':';
     * NULL: ssh, or Slurm's srun. */
    const char *agent;
    const char *agent_args; /* further words; NULL: none */
    /* the host file, or Slurm's name for its list; NULL: mpirun knows the hosts */
    const char *from;
    struct cli_host *host;
    int count, answering; /* answering: number of chosen hosts that answer */
    double asked_at;
    char chosen[512]; /* a file of the hosts that answer; "": none */
};

/* Reads the list again and checks its hosts, all at once, without waiting for them. DT_EIO: it
 * cannot be read. */
dt_status cli_hosts_ask(struct cli_hosts *hosts);
/* Returns true if each host has answered or timed out; *out_come is then how many more answer than
 * were chosen. */
bool cli_hosts_answered(struct cli_hosts *hosts, int *out_come);
/* Writes the hosts that answered, `come` more than were chosen, to a file for mpirun. *out_slots:
 * their number of ranks, 0: unknown. DT_EIO: no host answers. */
dt_status cli_hosts_choose(struct cli_hosts *hosts, int come, int *out_slots);
/* Ends all checks, and removes the file. */
void cli_hosts_free(struct cli_hosts *hosts);

/* Starts a program in a new process group with default signals. *out_end reads what it writes to
 * `fd`; NULL: `fd` is inherited. *out_pid: -1 after a failure. DT_EIO: there is no such program, or
 * it cannot be run. */
dt_status cli_start(char *const *command, int fd, int *out_end, pid_t *out_pid);

#endif
