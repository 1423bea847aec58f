/* The hosts of a job, which a host file or a Slurm allocation lists, and which of them answer. */
#ifndef CLI_HOSTS_H
#define CLI_HOSTS_H

#include <sys/types.h>

#include "base/base.h"

enum { CLI_HOST_NAME = 256, CLI_LINE = 4096 };

struct cli_host {
    char name[CLI_HOST_NAME];
    char user[CLI_HOST_NAME]; /* user to log in as; "": the current one */
    char line[CLI_LINE];      /* the host's line for mpirun, as in the host file */
    int slots;                /* number of slots; 0: the line does not say */
    pid_t check;              /* process that checks whether the host answers; -1: it has ended */
    bool answers;
};

struct cli_hosts {
    const char *file; /* path of the host file; NULL: there is none */
    bool hydra;       /* mpirun is Hydra, whose host files have "NAME:N" in place of "NAME
                       * slots=N" */
    /* The command with which mpirun runs commands on other hosts: words, then alternatives after a
     * ':'. NULL: ssh, or srun in a Slurm allocation. */
    const char *agent;
    const char *agent_args; /* more words for it; NULL: none */
    /* where the list is from, for messages: the host file, or Slurm's variable; NULL: there is no
     * list, since mpirun knows the hosts */
    const char *from;
    struct cli_host *host;
    int count, answering; /* number of hosts in the list; number of hosts in the file `chosen` */
    double asked_at;
    char chosen[512]; /* path of a file for mpirun with the hosts that answer; "": none */
};

/* Reads the list again and starts a check of each host. Does not wait for the answers. DT_EIO: the
 * list cannot be read. */
dt_status cli_hosts_ask(struct cli_hosts *hosts);
/* Returns true if no host's answer is awaited any more, because all have answered or timed out.
 * *out_come: how many more hosts answer than are in the file `chosen`. */
bool cli_hosts_answered(struct cli_hosts *hosts, int *out_come);
/* Writes the hosts that answer to a new file for mpirun. come: as cli_hosts_answered has set it.
 * *out_slots: sum of their slots; 0: unknown. DT_EIO: no host answers. */
dt_status cli_hosts_choose(struct cli_hosts *hosts, int come, int *out_slots);
/* Ends all checks, removes the file `chosen`, and frees the list. */
void cli_hosts_free(struct cli_hosts *hosts);

/* Starts a program in a new process group, with no signals blocked. *out_end: reads what the
 * program writes to its descriptor `fd`; out_end NULL: the program inherits `fd`. *out_pid is -1
 * after a failure. DT_EIO: the program cannot be run. */
dt_status cli_start(char *const *command, int fd, int *out_end, pid_t *out_pid);

#endif
