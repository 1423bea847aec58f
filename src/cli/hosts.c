/* The hosts of a job. The list is read again at each start, because hosts may come and go. Each
 * host is asked to run a command, in the same way in which mpirun would run one there. The hosts on
 * which this works are written to a file for mpirun. */
#include "cli/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const double ANSWER_SECS = 15; /* seconds that a host has to answer */

dt_status cli_start(char *const *command, int fd, int *out_end, pid_t *out_pid)
{
    int ends[2] = {-1, -1};
    posix_spawnattr_t how;
    posix_spawn_file_actions_t files;
    sigset_t none, broken_pipe;
    *out_pid = -1;
    if (out_end && pipe2(ends, O_CLOEXEC)) return dt_fail(DT_EIO, "pipe: %s", strerror(errno));
    sigemptyset(&none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                       POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &broken_pipe);
    posix_spawn_file_actions_init(&files);
    int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error && out_end) error = posix_spawn_file_actions_adddup2(&files, ends[1], fd);
    if (!error) error = posix_spawnp(out_pid, command[0], &files, &how, command, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    if (out_end) close(ends[1]);
    if (!error) {
        if (out_end) *out_end = ends[0];
        return DT_OK;
    }
    if (out_end) close(ends[0]);
    *out_pid = -1;
    return dt_fail(DT_EIO, "cannot run %s: %s", command[0], strerror(error));
}

/* Returns the number of tasks of the next host in a list like Slurm's "8(x2),4", and moves *list
 * on. *left: how many more hosts have this number. */
static int slurm_tasks(const char **list, int *left)
{
    char *end;
    const char *at = *list;
    int tasks = (int)strtol(at, &end, 10);
    if (*left == 0) *left = end[0] == '(' && end[1] == 'x' ? (int)strtol(end + 2, NULL, 10) : 1;
    if (--*left > 0) return tasks;
    at += strcspn(at, ",");
    *list = *at == ',' ? at + 1 : at;
    return tasks;
}

/* Adds the slots of a host to those of an earlier line with the same name (PBS repeats names); a
 * line without a number counts as one slot. Returns false if there is no such line. */
static bool host_is_known(struct cli_hosts *hosts, const struct cli_host *again)
{
    for (int i = 0; i < hosts->count; i++) {
        struct cli_host *host = &hosts->host[i];
        if (strcmp(host->name, again->name)) continue;
        host->slots = (host->slots ? host->slots : 1) + (again->slots ? again->slots : 1);
        snprintf(host->line, sizeof host->line, "%s slots=%d%s%s", host->name, host->slots,
                 *host->user ? " username=" : "", host->user);
        return true;
    }
    return false;
}

/* Refuses lines that mpirun would refuse at each start, with a message that names the file. Words
 * that are unknown here are left to mpirun. */
static dt_status host_check(const struct cli_hosts *hosts, int at, const struct cli_host *host)
{
    const char *colon = strchr(host->name, ':');
    /* with two colons it is an IPv6 address */
    const bool is_hydra_line = colon && !strchr(colon + 1, ':');
    const bool has_slots = strstr(host->line, " slot") || strstr(host->line, "\tslot");
    if (!is_hydra_line && (!has_slots || host->slots > 0)) return DT_OK;
    return dt_fail(DT_EUSAGE, "%s:%d: '%s': expected NAME slots=9", hosts->from, at, host->line);
}

/* Reads the lines of the host file or, in a Slurm allocation, the names that scontrol prints, one
 * per line; their slots are in SLURM_TASKS_PER_NODE. */
static dt_status hosts_read(struct cli_hosts *hosts)
{
    char *const scontrol[] = {"scontrol", "show", "hostnames", NULL};
    const char *tasks = hosts->file ? NULL : getenv("SLURM_TASKS_PER_NODE");
    char line[CLI_LINE];
    size_t capacity = 0;
    int left = 0, at = 0, end, code = 0;
    pid_t pid = 0;
    if (!hosts->file) DT_TRY(cli_start(scontrol, STDOUT_FILENO, &end, &pid));
    FILE *file = hosts->file ? fopen(hosts->file, "re") : fdopen(end, "r");
    if (!file) return dt_fail(DT_EIO, "%s: %s", hosts->from, strerror(errno));
    dt_status status = DT_OK;
    while (!status && fgets(line, sizeof line, file)) {
        struct cli_host host = {0};
        at++;
        line[strcspn(line, "#\n")] = '\0';
        if (sscanf(line, "%255s", host.name) != 1) continue;
        /* a word begins after a blank: max_slots is not slots */
        for (const char *word = line + 1; *word; word++) {
            if (!strchr(" \t", word[-1])) continue;
            sscanf(word, "slots = %9d", &host.slots);
            sscanf(word, "cpu = %9d", &host.slots);
            sscanf(word, "count = %9d", &host.slots);
            sscanf(word, "user%*[-_n]ame = %255s", host.user); /* username, user-name */
        }
        memcpy(host.line, line, sizeof line);
        char *colon = hosts->hydra ? strchr(host.name, ':') : NULL;
        if (colon) {
            host.slots = (int)strtol(colon + 1, NULL, 10);
            *colon = '\0';
        }
        if (hosts->file && (status = host_check(hosts, at, &host))) break;
        if (tasks) {
            host.slots = slurm_tasks(&tasks, &left);
            snprintf(host.line, sizeof host.line, "%s slots=%d", host.name, host.slots);
        }
        if (host_is_known(hosts, &host)) continue;
        status = dt__grow(&hosts->host, &capacity, (size_t)hosts->count + 1, sizeof host, "hosts");
        if (!status) hosts->host[hosts->count++] = host;
    }
    const bool failed = fclose(file) || (pid && (waitpid(pid, &code, 0) < 0 || code));
    if (!status && failed)
        return dt_fail(DT_EIO, "%s: cannot be read: expected a list of hosts", hosts->from);
    if (!status && !hosts->count && hosts->file)
        return dt_fail(DT_EUSAGE, "%s: there is no host in it: expected lines NAME slots=9",
                       hosts->from);
    return status;
}

/* Returns true if the name is that of this host ("node1" and "node1.cluster" are the same host) or
 * one of its addresses. Only its own addresses can be bound. mpirun needs no agent for these,
 * either. */
static bool is_this_host(const char *name)
{
    const struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *address;
    char host_name[CLI_HOST_NAME] = "";
    if (!getaddrinfo(name, NULL, &numeric, &address)) {
        const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool bound = fd >= 0 && !bind(fd, address->ai_addr, address->ai_addrlen);
        if (fd >= 0) close(fd);
        freeaddrinfo(address);
        return bound;
    }
    gethostname(host_name, sizeof host_name - 1);
    const size_t a = strcspn(name, "."), b = strcspn(host_name, ".");
    if (!strcmp(name, host_name) || !strcmp(name, "localhost")) return true;
    return a == b && !strncmp(name, host_name, a) && (!name[a] || !host_name[b]);
}

/* Frees the list. Hosts that have not answered are timed out first, which ends their checks. */
static void hosts_forget(struct cli_hosts *hosts)
{
    int come;
    hosts->asked_at = -HUGE_VAL;
    cli_hosts_answered(hosts, &come);
    dt_free(hosts->host);
    hosts->host = NULL;
    hosts->count = 0;
}

void cli_hosts_free(struct cli_hosts *hosts)
{
    hosts_forget(hosts);
    if (hosts->chosen[0]) unlink(hosts->chosen);
}

dt_status cli_hosts_ask(struct cli_hosts *hosts)
{
    char words[CLI_LINE], login[2 * CLI_HOST_NAME];
    const char *agent = hosts->agent ? hosts->agent : "ssh -o BatchMode=yes -o ConnectTimeout=10";
    const bool slurm = !hosts->agent && getenv("SLURM_JOB_NODELIST");
    hosts_forget(hosts);
    DT_TRY(hosts_read(hosts));
    snprintf(words, sizeof words, "exec %.*s %s \"$0\" true", (int)strcspn(agent, ":"), agent,
             hosts->agent_args ? hosts->agent_args : "");
    for (int i = 0; i < hosts->count; i++) {
        struct cli_host *host = &hosts->host[i];
        char *const by_agent[] = {"sh", "-c", words, login, NULL};
        char *const by_slurm[] = {"srun", "--overlap", "-N1",  "-n1",
                                  "-w",   host->name,  "true", NULL};
        snprintf(login, sizeof login, "%s%s%s", host->user, *host->user ? "@" : "", host->name);
        host->check = -1;
        host->answers = is_this_host(host->name);
        if (!host->answers) cli_start(slurm ? by_slurm : by_agent, 0, NULL, &host->check);
    }
    hosts->asked_at = dt__clock_secs();
    return DT_OK;
}

bool cli_hosts_answered(struct cli_hosts *hosts, int *out_come)
{
    const bool late = dt__clock_secs() > hosts->asked_at + ANSWER_SECS;
    int answering = 0, waiting = 0;
    for (int i = 0; i < hosts->count; i++) {
        struct cli_host *host = &hosts->host[i];
        int code = 1;
        if (host->check > 0 && late) kill(-host->check, SIGKILL);
        if (host->check > 0 && waitpid(host->check, &code, late ? 0 : WNOHANG) != 0) {
            host->answers = code == 0;
            host->check = -1;
        }
        answering += host->answers;
        waiting += host->check > 0;
    }
    *out_come = answering - hosts->answering;
    return !waiting;
}

dt_status cli_hosts_choose(struct cli_hosts *hosts, int come, int *out_slots)
{
    *out_slots = 0;
    hosts->answering += come;
    for (int i = 0; i < hosts->count; i++)
        if (!hosts->host[i].answers) dt__info("launch: %s does not answer", hosts->host[i].name);
    if (hosts->answering == 0)
        return dt_fail(DT_EIO, "%s: no host answers to `%s HOST true`", hosts->from,
                       hosts->agent ? hosts->agent : "ssh");
    if (hosts->chosen[0]) unlink(hosts->chosen);
    snprintf(hosts->chosen, sizeof hosts->chosen, "%s/dtrain-hosts-XXXXXX", dt__temporary_dir());
    int fd = mkstemp(hosts->chosen);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool known = true;
    for (int i = 0; file && i < hosts->count; i++) {
        const struct cli_host *host = &hosts->host[i];
        if (!host->answers) continue;
        if (hosts->hydra)
            fprintf(file, "%s:%d\n", host->name, host->slots > 0 ? host->slots : 1);
        else
            fprintf(file, "%s\n", host->line);
        known &= host->slots > 0;
        *out_slots += host->slots;
    }
    if (!known) *out_slots = 0;
    if (!file || fclose(file)) return dt_fail(DT_EIO, "%s: %s", hosts->chosen, strerror(errno));
    return DT_OK;
}
