/* dtrain launch: keeps a job alive. It starts mpirun, and again after a failure that is not the user's, from
 * the newest checkpoint, on the hosts that still answer: of a host file, or of an allocation of Slurm's.
 *
 * Which failure that is, the job's last error line says: a rank that is gone, a stall, an error of MPI, or
 * no line at all (a host is gone, mpirun was killed). All others would come again: they end it. A run's
 * bits do not depend on ranks and hosts, so the end is the same with fewer of them.
 *
 * Signals are passed on: the first as a request to stop at a checkpoint, a second one ends the job. mpirun
 * has a process group of its own, so that ^C reaches it through here alone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "dtrain/history.h"
#include "dtrain/state.h"

enum { HOST_NAME = 256, LINE = 4096 };
static const double ANSWER_SECS = 15; /* a host that takes longer does not answer */
static const double END_SECS = 20; /* that a job may take to end behind its error line: mpirun waits
                                          * for ever for a host whose link is cut */
static const double MOST_WAIT_SECS = 60; /* between two tries */

struct host {
    char name[HOST_NAME];
    char line[LINE]; /* of the host file */
    int slots;       /* 0: the line does not say */
    pid_t check;
    bool answers;
};

struct launch {
    char **option; /* mpirun's own */
    int options;
    char **argument; /* dtrain's */
    int arguments;
    char self[LINE]; /* this program, as it was called: it may be replaced while the job runs */
    const char *hostfile, *agent;
    const char
        *hosts_from; /* the host file, or what Slurm calls its list; NULL: mpirun knows the hosts */
    int np, restarts;
    double grow_secs;
    struct dt_config config;

    struct host *host;
    int hosts, answering;
    char chosen[64]; /* file of the hosts that answer; "": none was given */
    int signals;     /* signalfd */
    int asked;       /* signals that asked for a stop */
    bool growing;    /* the job was stopped to take hosts in */
    int count;       /* starts */
};

enum outcome { DONE, STOPPED, WRONG, FAILED, LOST };

/* ---- arguments ------------------------------------------------------------------------------ */

/* CONFIG.ini or section.key=value; values of mpirun's options have no dot before a '='. */
static bool begins_job(const char *argument)
{
    size_t length = strlen(argument), equals = strcspn(argument, "=");
    if (argument[0] == '-') return false;
    if (argument[equals] == '=') return memchr(argument, '.', equals) != NULL;
    return length > 4 && !strcmp(argument + length - 4, ".ini");
}

static bool is_one_of(const char *argument, const char *const *names)
{
    while (*names && strcmp(argument, *names))
        names++;
    return *names != NULL;
}

static dt_status take_number(const char *option, const char *text, double least, double *out)
{
    char *end = NULL;
    double number = text ? strtod(text, &end) : 0;
    if (!text || !*text || *end || !(number >= least))
        return dt_fail(DT_EUSAGE, "launch %s: '%s' is not a number of at least %g", option,
                       text ? text : "", least);
    *out = number;
    return DT_OK;
}

static dt_status parse(struct launch *launch, int argc, char **argv)
{
    static const char *const np[] = {"-np", "-n", "--np", "-c", NULL};
    static const char *const hostfile[] = {"-hostfile", "--hostfile", "-machinefile",
                                           "--machinefile", NULL};
    double number;
    int i = 1;
    DT_TRY(dt_alloc((size_t)argc + 1, sizeof *launch->option, "arguments", &launch->option));
    for (; i < argc && !begins_job(argv[i]); i++) {
        if (is_one_of(argv[i], np)) {
            DT_TRY(take_number(argv[i], argv[i + 1], 1, &number));
            launch->np = (int)number;
        } else if (!strcmp(argv[i], "--restarts")) {
            DT_TRY(take_number(argv[i], argv[i + 1], 0, &number));
            launch->restarts = (int)number;
        } else if (!strcmp(argv[i], "--grow")) {
            DT_TRY(take_number(argv[i], argv[i + 1], 1, &launch->grow_secs));
        } else if (is_one_of(argv[i], hostfile) && argv[i + 1]) {
            launch->hostfile = argv[i + 1];
        } else {
            if (!strcmp(argv[i], "plm_rsh_agent")) launch->agent = argv[i + 1];
            launch->option[launch->options++] = argv[i];
            continue;
        }
        i++;
    }
    if (i == argc)
        return dt_fail(DT_EUSAGE, "launch: expected a configuration file behind mpirun's options");
    launch->argument = argv + i;
    launch->arguments = argc - i;
    launch->hosts_from = launch->hostfile ? launch->hostfile
                         : getenv("SLURM_TASKS_PER_NODE") && getenv("SLURM_JOB_NODELIST")
                             ? "SLURM_JOB_NODELIST"
                             : NULL;
    ssize_t length = readlink("/proc/self/exe", launch->self, sizeof launch->self - 1);
    if (length < 0) return dt_fail(DT_EIO, "/proc/self/exe: %s", strerror(errno));
    DT_TRY(dt_config_init(&launch->config));
    return cli_configure(&launch->config, "train", launch->arguments, launch->argument);
}

/* ---- hosts ---------------------------------------------------------------------------------- */

/* The next host's tasks, of a list as Slurm has it: "8(x2),4"; *left: hosts that the number before is still for. */
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

/* Signals as a program expects them that knows nothing of ours. */
static void exec_child(char *const *command)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    execvp(command[0], command);
    _exit(127);
}

/* What a command prints. NULL: it cannot be started. */
static FILE *open_output(char *const *command, pid_t *out_pid)
{
    int ends[2];
    if (pipe(ends)) return NULL;
    *out_pid = fork();
    if (*out_pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        exec_child(command);
    }
    close(ends[1]);
    FILE *file = *out_pid < 0 ? NULL : fdopen(ends[0], "r");
    if (!file) close(ends[0]);
    return file;
}

/* Lines as a host file has them; of an allocation of Slurm's, one a node: scontrol knows its name alone. */
static dt_status read_hosts(struct launch *launch)
{
    char line[LINE];
    size_t capacity = 0;
    int left = 0;
    const char *tasks = launch->hostfile ? NULL : getenv("SLURM_TASKS_PER_NODE");
    char *const scontrol[] = {"scontrol", "show", "hostnames", NULL};
    pid_t pid = 0;
    FILE *file = launch->hostfile ? fopen(launch->hostfile, "r") : open_output(scontrol, &pid);
    if (!file) return dt_fail(DT_EIO, "%s: %s", launch->hosts_from, strerror(errno));
    dt_free(launch->host);
    launch->host = NULL;
    launch->hosts = 0;
    dt_status status = DT_OK;
    while (!status && fgets(line, sizeof line, file)) {
        struct host host = {0};
        if (sscanf(line, "%255s", host.name) != 1 || host.name[0] == '#') continue;
        const char *slots = strstr(line, "slots=");
        if (slots) host.slots = (int)strtol(slots + 6, NULL, 10);
        memcpy(host.line, line, sizeof line);
        if (tasks) {
            host.slots = slurm_tasks(&tasks, &left);
            snprintf(host.line, sizeof host.line, "%s slots=%d\n", host.name, host.slots);
        }
        status = dt_grow(&launch->host, &capacity, (size_t)launch->hosts + 1, sizeof host, "hosts");
        if (!status) launch->host[launch->hosts++] = host;
    }
    int exit_status = 0;
    bool failed = fclose(file) || (pid && (waitpid(pid, &exit_status, 0) < 0 || exit_status));
    if (!status && failed)
        status =
            dt_fail(DT_EIO, "%s: cannot be read: expected a list of hosts", launch->hosts_from);
    return status;
}

/* Whether a command can be run there, the way mpirun would do it. */
static pid_t start_check(const struct launch *launch, const char *host)
{
    char *const by_agent[] = {(char *)(uintptr_t)launch->agent, (char *)(uintptr_t)host, "true",
                              NULL};
    char *const by_slurm[] = {"srun", "--overlap", "-N1", "-n1", "-w", (char *)(uintptr_t)host,
                              "true", NULL};
    char *const by_ssh[] = {
        "ssh",  "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", (char *)(uintptr_t)host,
        "true", NULL};
    pid_t pid = fork();
    if (pid == 0)
        exec_child(launch->agent ? by_agent : getenv("SLURM_JOB_NODELIST") ? by_slurm : by_ssh);
    return pid;
}

static void check_hosts(struct launch *launch)
{
    char own[HOST_NAME] = "";
    gethostname(own, sizeof own - 1);
    for (int i = 0; i < launch->hosts; i++) {
        struct host *host = &launch->host[i];
        host->answers = !strcmp(host->name, own) || !strcmp(host->name, "localhost");
        host->check = host->answers ? 0 : start_check(launch, host->name);
    }
    double until = dt_clock_secs() + ANSWER_SECS;
    launch->answering = 0;
    for (int i = 0; i < launch->hosts; i++) {
        struct host *host = &launch->host[i];
        int code = 1;
        pid_t ended = 0;
        while (host->check > 0 && !(ended = waitpid(host->check, &code, WNOHANG)) &&
               dt_clock_secs() < until)
            dt_sleep_secs(0.02);
        if (host->check > 0 && !ended) {
            kill(-host->check, SIGKILL);
            kill(host->check, SIGKILL);
            waitpid(host->check, NULL, 0);
        }
        if (ended > 0) host->answers = code == 0;
        launch->answering += host->answers;
        if (!host->answers) dt_info("launch: %s does not answer", host->name);
    }
}

/* The file that mpirun gets; and how many ranks the hosts have room for, 0: not known. */
static dt_status choose_hosts(struct launch *launch, int *out_slots)
{
    *out_slots = 0;
    if (!launch->hosts_from) return DT_OK;
    DT_TRY(read_hosts(launch));
    check_hosts(launch);
    if (launch->answering == 0) return dt_fail(DT_EIO, "%s: no host answers", launch->hosts_from);
    if (!launch->chosen[0]) {
        snprintf(launch->chosen, sizeof launch->chosen, "/tmp/dtrain-hosts-XXXXXX");
        int fd = mkstemp(launch->chosen);
        if (fd < 0) return dt_fail(DT_EIO, "%s: %s", launch->chosen, strerror(errno));
        close(fd);
    }
    FILE *file = fopen(launch->chosen, "w");
    if (!file) return dt_fail(DT_EIO, "%s: %s", launch->chosen, strerror(errno));
    bool known = true;
    for (int i = 0; i < launch->hosts; i++) {
        if (!launch->host[i].answers) continue;
        fprintf(file, "%s", launch->host[i].line);
        known &= launch->host[i].slots > 0;
        *out_slots += launch->host[i].slots;
    }
    if (!known) *out_slots = 0;
    if (fclose(file)) return dt_fail(DT_EIO, "%s: %s", launch->chosen, strerror(errno));
    return DT_OK;
}

/* ---- a start -------------------------------------------------------------------------------- */

/* The job's last error line. */
struct tail {
    char line[LINE], error[LINE];
    size_t length;
    bool few_slots; /* mpirun has said so, at length */
};

static enum outcome outcome_of(const struct launch *launch, int code, const struct tail *tail)
{
    static const char *const signs[] = {" is gone: ", " no progress for ", "not heard from",
                                        ": MPI_"};
    int exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
    if (exit_code == 0) {
        /* mpirun may return 0 behind a job that Slurm took a node from: then the records do not end with a run
         * that has ended. Where they cannot be read, its word is taken. */
        struct dt_history *history;
        if (dt_history_read(launch->config.run.dir, &history)) return DONE;
        const bool ended = history->ended;
        dt_history_free(history);
        return ended ? DONE : LOST;
    }
    if (exit_code == 75 || (launch->asked && !tail->error[0])) return STOPPED;
    if (exit_code == 2) return WRONG;
    if (!tail->error[0]) return LOST;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(tail->error, signs[i])) return LOST;
    return FAILED;
}

/* The first asks for a stop, the next end the job. */
static void pass_signals(struct launch *launch, pid_t pid)
{
    struct signalfd_siginfo info;
    while (read(launch->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (pid > 0) kill(pid, launch->asked ? SIGTERM : SIGUSR1);
        launch->asked++;
    }
}

/* Hosts that have come back are taken in at a checkpoint. */
static void grow(struct launch *launch, pid_t pid, double *next)
{
    if (launch->grow_secs <= 0 || !launch->hosts_from || launch->growing || dt_clock_secs() < *next)
        return;
    int before = launch->answering;
    if (!read_hosts(launch)) check_hosts(launch);
    if (launch->answering > before) {
        dt_info("launch: %d of %d hosts answer: stopping at a checkpoint to take them in",
                launch->answering, launch->hosts);
        launch->growing = true;
        kill(pid, SIGUSR1);
    }
    launch->answering = before;
    *next = dt_clock_secs() + launch->grow_secs;
}

/* Some of the job's stderr, once there is some: how much; 0: it has ended. */
static size_t pass_on(int from, struct tail *tail)
{
    char bytes[LINE];
    ssize_t n;
    do
        n = read(from, bytes, sizeof bytes);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return 0;
    fwrite(bytes, 1, (size_t)n, stderr);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (tail->length < LINE - 1) tail->line[tail->length++] = bytes[i];
            continue;
        }
        tail->line[tail->length] = '\0';
        tail->length = 0;
        if (!strncmp(tail->line, "dtrain: error: ", 15))
            memcpy(tail->error, tail->line, sizeof tail->line);
        if (strstr(tail->line, "not enough slots available")) tail->few_slots = true;
    }
    return (size_t)n;
}

/* Passes the job's stderr on, and signals to it however much it says, until it ends. */
static int attend(struct launch *launch, pid_t pid, int from, struct tail *tail)
{
    int code = 0;
    double next_growth = dt_clock_secs() + launch->grow_secs, error_at = 0;
    for (bool open = true;;) {
        struct pollfd fds[2] = {{.fd = launch->signals, .events = POLLIN},
                                {.fd = open ? from : -1, .events = POLLIN}};
        poll(fds, 2, 200);
        if (fds[1].revents) open = pass_on(from, tail) > 0;
        if (tail->error[0] && error_at <= 0) error_at = dt_clock_secs();
        if (error_at > 0 && dt_clock_secs() > error_at + END_SECS) kill(-pid, SIGKILL);
        pass_signals(launch, pid);
        grow(launch, pid, &next_growth);
        if (waitpid(pid, &code, WNOHANG) != pid) continue;
        /* What is there behind a job that has ended. No more: what it left behind may write on. */
        int rest = 0;
        if (!open || ioctl(from, FIONREAD, &rest) || rest < 0) return code;
        for (size_t left = (size_t)rest, n; left > 0 && (n = pass_on(from, tail)) > 0;)
            left -= n < left ? n : left;
        return code;
    }
}

static dt_status start_job(struct launch *launch, int slots, enum outcome *out, char *reason)
{
    char ranks[16];
    int n = 0, np = launch->np, fds[2];
    char **command;
    size_t most = (size_t)launch->options + (size_t)launch->arguments + 8;
    DT_TRY(dt_alloc(most, sizeof *command, "command", &command));
    command[n++] = "mpirun";
    for (int i = 0; i < launch->options; i++)
        command[n++] = launch->option[i];
    if (slots && (!np || np > slots)) np = slots;
    snprintf(ranks, sizeof ranks, "%d", np);
    if (np) command[n++] = "-np", command[n++] = ranks;
    if (launch->chosen[0]) command[n++] = "--hostfile", command[n++] = launch->chosen;
    command[n++] = launch->self;
    command[n++] = "train";
    for (int i = 0; i < launch->arguments; i++)
        command[n++] = launch->argument[i];
    dt_status status = pipe(fds) ? dt_fail(DT_EIO, "pipe: %s", strerror(errno)) : DT_OK;
    pid_t pid = status ? -1 : fork();
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        exec_child(command);
    }
    if (!status && pid < 0) status = dt_fail(DT_EIO, "fork: %s", strerror(errno));
    dt_free(command);
    if (status) return status;
    close(fds[1]);
    struct tail tail = {.length = 0};
    launch->count++;
    int code = attend(launch, pid, fds[0], &tail);
    close(fds[0]);
    if (WIFEXITED(code) && WEXITSTATUS(code) == 127 && !tail.error[0])
        return dt_fail(DT_EIO, "launch: cannot run mpirun");
    if (tail.few_slots && launch->count == 1)
        return dt_fail(
            DT_EUSAGE,
            "launch: mpirun has fewer slots than ranks: --oversubscribe lets ranks share "
            "cores, a host file (--hostfile) says how many a host takes");
    *out = outcome_of(launch, code, &tail);
    snprintf(reason, LINE, "%.*s", LINE - 16,
             tail.error[0] ? tail.error + 15 : "the job ended without a word");
    return DT_OK;
}

/* ---- from start to start -------------------------------------------------------------------- */

/* Step of the newest checkpoint; -1: none. */
static long long saved_step(const struct launch *launch)
{
    char dir[4096], *path;
    uint64_t step;
    snprintf(dir, sizeof dir, "%s/ckpt", launch->config.run.dir);
    if (!dt_checkpoint_newest(dir, &step, &path)) return -1;
    dt_free(path);
    return (long long)step;
}

/* One line, and one record behind those of the run. */
static void tell(const struct launch *launch, const char *event, long long step, const char *reason)
{
    char path[4096], word[LINE];
    size_t n = 0;
    for (const char *c = reason; *c && n < sizeof word - 2; c++)
        if (*c >= ' ' && *c != '"' && *c != '\\') word[n++] = *c;
    word[n] = '\0';
    dt_info("launch: %s at step %lld: %s", event, step, word);
    snprintf(path, sizeof path, "%s/metrics.jsonl", launch->config.run.dir);
    FILE *file = fopen(path, "r+");
    if (!file) return;
    fseek(file, 0, SEEK_END);
    fprintf(file,
            "{\"kind\":\"launch\",\"event\":\"%s\",\"step\":%lld,\"start\":%d,\"hosts\":%d,"
            "\"reason\":\"%s\",\"time_unix\":%lld}\n",
            event, step, launch->count, launch->answering, word, (long long)time(NULL));
    fclose(file);
}

/* True if a signal came. */
static bool wait_secs(struct launch *launch, double secs)
{
    double until = dt_clock_secs() + secs;
    while (!launch->asked && dt_clock_secs() < until) {
        struct pollfd fd = {.fd = launch->signals, .events = POLLIN};
        poll(&fd, 1, 200);
        pass_signals(launch, 0);
    }
    return launch->asked > 0;
}

static dt_status report(dt_status status)
{
    dt_error("%s", dt_error_text());
    return status;
}

/* A job tells its own errors. */
static dt_status keep_alive(struct launch *launch)
{
    char reason[LINE];
    long long step = saved_step(launch);
    for (int failures = 0;;) {
        int slots;
        enum outcome outcome = LOST;
        pass_signals(launch, 0);
        if (launch->asked) return DT_STOPPED;
        dt_status hosts = choose_hosts(launch, &slots);
        if (hosts && !launch->count && !launch->hosts)
            return report(hosts); /* no list to begin with */
        dt_status status = hosts ? DT_OK : start_job(launch, slots, &outcome, reason);
        if (status) return report(status); /* there was no job that could tell */
        if (hosts) snprintf(reason, sizeof reason, "%s", dt_error_text());
        if (outcome == DONE) return DT_OK;
        if (outcome == STOPPED && launch->growing && !launch->asked) {
            launch->growing = false;
            tell(launch, "grow", saved_step(launch), "hosts have come");
            continue;
        }
        if (outcome == STOPPED) return DT_STOPPED;
        if (outcome != LOST) return outcome == WRONG ? DT_EUSAGE : DT_EIO;
        long long now = saved_step(launch);
        failures = now > step ? 1 : failures + 1;
        step = now;
        bool last = failures > launch->restarts;
        tell(launch, last ? "end" : "restart", now, reason);
        if (last && hosts) dt_error("%s", reason);
        if (last) return DT_EIO;
        double wait = failures > 6 ? MOST_WAIT_SECS : (double)(1 << (failures - 1));
        if (wait_secs(launch, wait)) return DT_STOPPED;
    }
}

dt_status cmd_launch(int argc, char **argv)
{
    struct launch launch = {.restarts = 3, .signals = -1};
    sigset_t set;
    dt_status status = parse(&launch, argc, argv);
    if (!status) {
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        launch.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        if (launch.signals < 0) status = dt_fail(DT_EIO, "signals: %s", strerror(errno));
    }
    status = status ? report(status) : keep_alive(&launch);
    if (launch.signals >= 0) close(launch.signals);
    if (launch.chosen[0]) unlink(launch.chosen);
    dt_config_free(&launch.config);
    dt_free(launch.host);
    dt_free(launch.option);
    return status;
}
