/* dtrain launch: keeps a job alive. It starts mpirun. After a failure that may not recur, it starts
 * mpirun again from the newest checkpoint, on those hosts of a host file or a Slurm allocation that
 * still answer.
 *
 * The job's last error line says which failure it was. Failures that may not recur are a lost rank,
 * a stall, an MPI error, and no error line at all (a host is gone, or mpirun was killed); after a
 * successful start also a run directory that the previous job still holds, and too few ranks on the
 * remaining hosts. All other failures would recur, so they end the job. A run's bits do not depend
 * on ranks and hosts, so fewer of them give the same result.
 *
 * Signals are passed on: the first one asks the job to stop at a checkpoint, the second one ends
 * it. mpirun has a separate process group, so ^C reaches it only through this program. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "cli/hosts.h"
#include "comm/comm.h"
#include "text/input.h"
#include "report/history.h"
#include "report/report.h"
#include "state/state.h"

/* Time for mpirun to exit after an error line, or after the last rank of this host has ended.
 * mpirun waits forever for a host whose link is cut, and sometimes for one of its locks after a
 * rank was killed in MPI_Init (Open MPI 4.1.4 with PMIx 4.2.2: 1 kill of 20). As long as it has not
 * started any process, it gets three times as long. */
static const double END_SECS = 20;
static const double MOST_WAIT_SECS = 60; /* longest pause before a restart */
static const char ERROR[] = "dtrain: error: ";
static char SEARCH[] = "search", TRAIN[] = "train";

struct launch {
    char **option; /* mpirun's options */
    int options;
    char *command;   /* "train" or "search" */
    char **argument; /* dtrain's arguments */
    int arguments;
    char self[CLI_LINE]; /* path of this program when it was started, since the file may be replaced
                          * while the job runs */
    int np, restarts;
    double grow_secs;
    struct dt_config config;

    struct cli_hosts hosts;
    int few;        /* number of hosts when mpirun reported that they have fewer slots than np; 0:
                     * it has not */
    int signals;    /* signalfd of the signals that ask for a stop */
    int asked;      /* number of such signals so far */
    bool looking;   /* new hosts are being checked, and not all of them have answered */
    double look_at; /* clock of the next check for new hosts */
    bool growing;   /* the job is being stopped, in order to start it on more hosts */
    bool saved;     /* a job has saved a checkpoint: later starts resume from it, whatever
                     * run.resume says */
    int starts;
};

/* ---- arguments ------------------------------------------------------------------------------ */

/* Returns true if mpirun's options end here: at CONFIG.ini, another file that begins with a
 * section, section.key=value or "search". Values of mpirun's options have no dot before '=', and
 * its files have no sections. (A script may begin with a test: "[ -f ...".) */
static bool starts_job(const char *argument)
{
    size_t length = strlen(argument), equals = strcspn(argument, "=");
    char line[CLI_LINE] = "";
    int fd;
    uint64_t size;
    if (argument[0] == '-') return false;
    if (!strcmp(argument, SEARCH)) return true;
    if (!strncmp(argument, "/dev/fd/", 8)) return true; /* <(command), which is refused later */
    if (argument[equals] == '=') return memchr(argument, '.', equals) != NULL;
    if (length > 4 && !strcmp(argument + length - 4, ".ini")) return true;
    FILE *file = dt__file_open(argument, &fd, &size) ? NULL : fdopen(fd, "r");
    while (file && fgets(line, sizeof line, file) && strchr("#;\r\n", line[strspn(line, " \t")]))
        ;
    if (file) fclose(file);
    const char *begin = line + strspn(line, " \t");
    return begin[0] == '[' && begin[1] >= 'a' && begin[1] <= 'z';
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

static dt_status take_count(const char *option, const char *text, double least, int *out)
{
    double number;
    DT_TRY(take_number(option, text, least, &number));
    if (number != floor(number) || number > INT_MAX)
        return dt_fail(DT_EUSAGE, "launch %s: '%s' is not a whole number", option, text);
    *out = (int)number;
    return DT_OK;
}

static dt_status files_expect(const char *key, const char *path)
{
    if (!dt__path_is_pipe(path) && strcmp(path, "/dev/stdin")) return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "launch: %s%s: a pipe is gone once it is read, and a restart reads again: "
                   "expected files",
                   key, path);
}

/* Fails because all arguments are mpirun's options. The message depends on whether one of them is a
 * command of dtrain. */
static dt_status job_missing(const struct launch *launch)
{
    for (int i = 0; i < launch->options; i++)
        if (command_find(launch->option[i]))
            return dt_fail(DT_EUSAGE,
                           "launch %s: launch starts and restarts what trains: expected `mpirun "
                           "-np N dtrain %s`",
                           launch->option[i], launch->option[i]);
    return dt_fail(DT_EUSAGE,
                   "launch: expected CONFIG.ini or section.key=value after mpirun's options%s%s",
                   launch->options ? "; this is no such file: " : "",
                   launch->options ? launch->option[launch->options - 1] : "");
}

static dt_status parse(struct launch *launch, int argc, char **argv)
{
    static const char hostfile[] = "-hostfile|--hostfile|-machinefile|--machinefile|-f";
    static const char agent[] = "plm_rsh_agent|-launcher-exec|--launcher-exec";
    struct cli_hosts *hosts = &launch->hosts;
    int i = 1;
    hosts->hydra = !dt__world_is_open_mpi();
    hosts->agent = getenv(hosts->hydra ? "HYDRA_LAUNCHER_EXEC" : "OMPI_MCA_plm_rsh_agent");
    hosts->agent_args =
        getenv(hosts->hydra ? "HYDRA_LAUNCHER_EXTRA_ARGS" : "OMPI_MCA_plm_rsh_args");
    DT_TRY(dt__alloc((size_t)argc + 1, sizeof *launch->option, "arguments", &launch->option));
    for (; i < argc && !starts_job(argv[i]); i++) {
        if (dt__config_choice_index("-np|-n|--np|-c", argv[i]) >= 0) {
            DT_TRY(take_count(argv[i], argv[i + 1], 1, &launch->np));
        } else if (!strcmp(argv[i], "--restarts")) {
            DT_TRY(take_count(argv[i], argv[i + 1], 0, &launch->restarts));
        } else if (!strcmp(argv[i], "--grow")) {
            DT_TRY(take_number(argv[i], argv[i + 1], 1, &launch->grow_secs));
        } else if (dt__config_choice_index("-wdir|--wdir|-wd|--wd", argv[i]) >= 0) {
            return dt_fail(DT_EUSAGE,
                           "launch %s: expected `cd` before it: launch looks for the "
                           "run directory, too",
                           argv[i]);
        } else if (dt__config_choice_index(hostfile, argv[i]) >= 0 && argv[i + 1]) {
            hosts->file = argv[i + 1];
        } else {
            if (dt__config_choice_index(agent, argv[i]) >= 0) hosts->agent = argv[i + 1];
            if (!strcmp(argv[i], "plm_rsh_args")) hosts->agent_args = argv[i + 1];
            launch->option[launch->options++] = argv[i];
            continue;
        }
        i++;
    }
    if (i == argc) return job_missing(launch);
    const bool searches = !strcmp(argv[i], SEARCH);
    launch->command = searches ? SEARCH : TRAIN;
    i += searches;
    launch->argument = argv + i;
    launch->arguments = argc - i;
    const bool slurm = getenv("SLURM_TASKS_PER_NODE") && getenv("SLURM_JOB_NODELIST");
    hosts->from = hosts->file ? hosts->file : slurm ? "SLURM_JOB_NODELIST" : NULL;
    if (launch->grow_secs > 0 && !hosts->from)
        return dt_fail(DT_EUSAGE, "launch --grow: hosts to take in are those of a host file "
                                  "(--hostfile) or of an allocation of Slurm's: there is none");
    ssize_t length = readlink("/proc/self/exe", launch->self, sizeof launch->self - 1);
    if (length < 0) return dt_fail(DT_EIO, "/proc/self/exe: %s", strerror(errno));
    for (i = 0; i < launch->arguments; i++)
        DT_TRY(files_expect("", launch->argument[i]));
    DT_TRY(dt__config_init(&launch->config));
    DT_TRY(cli_configure(&launch->config, launch->command, launch->arguments, launch->argument));
    DT_TRY(files_expect("data.train=", launch->config.data.train));
    return files_expect("data.eval=", launch->config.data.eval);
}

/* ---- a start -------------------------------------------------------------------------------- */

/* The last lines that the job has printed. */
struct tail {
    char line[CLI_LINE], error[CLI_LINE]; /* the current line; the last error line without ERROR,
                                           * "": none */
    char lost[CLI_LINE]; /* mpirun's line about a rank or daemon that is gone; "": none */
    size_t length;
    bool ranks;     /* a rank has printed something */
    bool few_slots; /* mpirun has reported that there are too few slots */
    bool aborted;   /* mpirun has reported that it ended the job because a rank failed */
};

/* Returns the outcome of a job for which mpirun returned 0, according to the run's records. mpirun
 * may return 0 after the job has lost a Slurm node: then the records lack the end of the run. Hydra
 * may return 0 after a job on several hosts was stopped. If the records cannot be read, 0 means
 * success. */
static dt_status records_status(const char *run_dir)
{
    struct dt_history *history;
    if (dt_history_read(run_dir, &history)) return DT_OK;
    const dt_status status = !history->ended                      ? DT_ECOMM
                             : strcmp(history->status, "stopped") ? DT_OK
                                                                  : DT_STOPPED;
    dt_history_free(history);
    return status;
}

/* Returns the outcome of a job from mpirun's wait status, `code`, and its output: DT_OK,
 * DT_STOPPED, or a failure with its reason, which is DT_ECOMM if it may not recur, else DT_EUSAGE
 * or DT_EIO. */
static dt_status job_status(const struct launch *launch, int code, const struct tail *tail)
{
    const bool silent = !tail->error[0], again = launch->starts > 1;
    const enum dt__cause cause = dt__cause_read(tail->error);
    /* 'In use' and 'too few ranks' are transient only after a successful start: the earlier job's
     * bank may still hold the run, and the remaining hosts may have too few slots. */
    const int exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
    bool may_pass = exit_code == 2 ? again : silent && exit_code != ETIMEDOUT; /* mpirun
                                                                                * --timeout */
    may_pass |= cause == DT__CAUSE_IN_USE ? again : cause != DT__CAUSE_NONE;
    dt_status status = may_pass ? DT_ECOMM : exit_code == 2 ? DT_EUSAGE : DT_EIO;
    if (exit_code == 0) status = records_status(launch->config.run.dir);
    if (exit_code == 75 || (exit_code && launch->asked && silent)) status = DT_STOPPED;
    if (status == DT_OK || status == DT_STOPPED) return status;
    if (!silent) return dt_fail(status, "%s", tail->error);
    /* It was the only rank of its host, so mpirun ended the other ranks before one could report
     * it. */
    if (tail->lost[0]) return dt_fail(status, "%s", tail->lost);
    return dt_fail(status, "the job ended without an error line, and mpirun with %s %d",
                   WIFEXITED(code) ? "exit code" : "signal",
                   WIFEXITED(code) ? WEXITSTATUS(code) : WTERMSIG(code));
}

/* Passes on the signals that have arrived. The first one asks the job to stop, unless it is already
 * stopping; later ones end it. Before there are ranks, the first one also ends the job: mpirun
 * would not pass it to any rank, and nothing is lost. */
static void pass_signals(struct launch *launch, pid_t pid, bool has_ranks)
{
    struct signalfd_siginfo info;
    while (read(launch->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (pid > 0 && (launch->asked || !has_ranks))
            kill(pid, SIGTERM);
        else if (pid > 0 && !launch->growing)
            kill(pid, SIGUSR1);
        launch->asked++;
    }
}

/* Passes on what the job has written to stderr, at most a buffer of it, and notes its lines in
 * `tail`. Waits until there is something. Returns its length; 0: the end. */
static size_t pass_on(int from, struct tail *tail)
{
    char bytes[CLI_LINE];
    ssize_t n;
    do
        n = read(from, bytes, sizeof bytes);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return 0;
    fwrite(bytes, 1, (size_t)n, stderr);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (tail->length < CLI_LINE - 1) tail->line[tail->length++] = bytes[i];
            continue;
        }
        tail->line[tail->length] = '\0';
        tail->length = 0;
        tail->ranks |= strstr(tail->line, "dtrain: ") != NULL;
        const char *error = strstr(tail->line, ERROR); /* mpirun may put a tag before it */
        if (error) snprintf(tail->error, sizeof tail->error, "%s", error + strlen(ERROR));
        if (strstr(tail->line, "mpirun noticed that process rank") ||
            strstr(tail->line, "has lost communication with a remote daemon"))
            snprintf(tail->lost, sizeof tail->lost, "%s", tail->line);
        if (strstr(tail->line, "not enough slots available")) tail->few_slots = true;
        if (strstr(tail->line, "the job has been aborted")) tail->aborted = true;
    }
    return (size_t)n;
}

/* Processes that mpirun has started on this host: ranks, and connections to other hosts. */
struct children {
    char program[16]; /* name of the ranks' program, shortened as in /proc */
    bool seen, ranks; /* some process, or a rank, has been seen */
    bool living;      /* some rank has not ended; before any rank was seen, some process */
};

static void children_look(pid_t pid, struct children *children)
{
    char path[64], name[32], state;
    glob_t lists;
    children->living = false;
    snprintf(path, sizeof path, "/proc/%ld/task/*/children", (long)pid);
    if (glob(path, 0, NULL, &lists)) {
        children->living = true; /* unknown: the kernel has no such files */
        return;
    }
    for (size_t i = 0; i < lists.gl_pathc; i++) {
        FILE *list = fopen(lists.gl_pathv[i], "re"), *stat;
        for (int child; list && fscanf(list, "%d", &child) == 1; children->seen = true) {
            snprintf(path, sizeof path, "/proc/%d/stat", child);
            if (!(stat = fopen(path, "re"))) continue;
            if (fscanf(stat, "%*d (%31[^)]) %c", name, &state) == 2) {
                const bool rank = !strcmp(name, children->program), lives = state != 'Z';
                if (rank && !children->ranks) children->living = false;
                children->ranks |= rank;
                children->living |= lives && rank == children->ranks;
            }
            fclose(stat);
        }
        if (list) fclose(list);
    }
    globfree(&lists);
}

/* Returns true while mpirun has a reason to run. If it has started ranks here, the reason is a
 * living one: they end when all other ranks do, even if the link to a host is cut. Else it is
 * another living process that it has started here, or ranks on other hosts, which cannot be seen
 * from here. The daemons of Open MPI there may go on without a connection to this host
 * (plm_rsh_no_tree_spawn). */
static bool mpirun_waits(const struct launch *launch, pid_t pid, const struct tail *tail,
                         struct children *children)
{
    if (tail->error[0] || tail->aborted) return false;
    children_look(pid, children);
    return children->living || (!children->ranks && children->seen && !launch->hosts.hydra);
}

/* Checks every grow_secs whether more hosts answer, and if so stops the job at a checkpoint. */
static void hosts_look(struct launch *launch, pid_t pid)
{
    struct cli_hosts *hosts = &launch->hosts;
    int come;
    if (!launch->looking && dt__clock_secs() >= launch->look_at) {
        launch->looking = !cli_hosts_ask(hosts);
        launch->look_at = dt__clock_secs() + launch->grow_secs;
    }
    if (!launch->looking || !cli_hosts_answered(hosts, &come)) return;
    launch->looking = false;
    if (come <= 0 || launch->asked) return;
    dt__info("launch: %d of %d hosts answer: stopping at a checkpoint to take them in",
             hosts->answering + come, hosts->count);
    launch->growing = true;
    kill(pid, SIGUSR1);
}

/* Attends to a job until it ends: passes on its stderr, and signals to it. grows: a start with more
 * hosts would have more ranks. Returns mpirun's wait status. */
static int attend(struct launch *launch, pid_t pid, int from, bool grows, struct tail *tail)
{
    struct children children = {0};
    double waits_at = dt__clock_secs();
    int code = 0;
    snprintf(children.program, sizeof children.program, "%.15s", strrchr(launch->self, '/') + 1);
    launch->looking = launch->growing = false;
    launch->look_at = waits_at + launch->grow_secs;
    for (bool open = true;;) {
        struct pollfd fds[2] = {{.fd = launch->signals, .events = POLLIN},
                                {.fd = open ? from : -1, .events = POLLIN}};
        poll(fds, 2, 200);
        if (fds[1].revents) open = pass_on(from, tail) > 0;
        const double now = dt__clock_secs();
        if (mpirun_waits(launch, pid, tail, &children)) waits_at = now;
        if (now > waits_at + (children.seen ? END_SECS : 3 * END_SECS)) kill(-pid, SIGKILL);
        /* Ranks that are all on other hosts cannot be seen from here, and with -q they print
         * nothing. */
        const bool mute = dt__log_get_level() < DT_LOG_INFO;
        const bool has_ranks = children.ranks || tail->ranks || (children.seen && mute);
        pass_signals(launch, pid, has_ranks);
        if (grows && has_ranks && !launch->growing) hosts_look(launch, pid);
        if (waitpid(pid, &code, WNOHANG) != pid) continue;
        /* Read what the job has left, but no more: processes of it that remain may go on
         * writing. */
        int rest = 0;
        if (!open || ioctl(from, FIONREAD, &rest) || rest < 0) return code;
        for (size_t left = (size_t)rest, n; left > 0 && (n = pass_on(from, tail)) > 0;)
            left -= n < left ? n : left;
        return code;
    }
}

/* Runs mpirun until the job ends. slots: number of slots of its hosts; 0: unknown. *out_reported:
 * the job has printed an error line itself. Returns job_status. */
static dt_status run_job(struct launch *launch, int slots, bool *out_reported)
{
    char ranks[16];
    int n = 0, np = launch->np, from;
    pid_t pid;
    char **command;
    struct tail tail = {.length = 0};
    static char *const levels[] = {"--log=error", "--log=warn", "--log=info", "--log=debug"};
    size_t most = (size_t)launch->options + (size_t)launch->arguments + 10;
    DT_TRY(dt__alloc(most, sizeof *command, "command", &command));
    command[n++] = "mpirun";
    for (int i = 0; i < launch->options; i++)
        command[n++] = launch->option[i];
    if (slots && np > slots && !launch->starts)
        dt__warn("-np %d: the hosts that answer have %d slots: %d ranks start", np, slots, slots);
    if (slots && (!np || np > slots)) np = slots;
    if (launch->few && !slots && launch->hosts.answering <= launch->few)
        np = 0; /* mpirun starts one rank per slot */
    snprintf(ranks, sizeof ranks, "%d", np);
    if (np) command[n++] = "-np", command[n++] = ranks;
    if (launch->hosts.chosen[0]) command[n++] = "--hostfile", command[n++] = launch->hosts.chosen;
    command[n++] = launch->self;
    if (dt__log_get_level() != DT_LOG_INFO) command[n++] = levels[dt__log_get_level()];
    command[n++] = launch->command;
    for (int i = 0; i < launch->arguments; i++)
        command[n++] = launch->argument[i];
    if (launch->saved) command[n++] = "run.resume=auto";
    /* Open MPI notices a cut link only after 8 minutes by default, and ranks cannot report it
     * earlier. */
    setenv("OMPI_MCA_oob_tcp_keepalive_time", "20", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_intvl", "5", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_probes", "6", 0);
    dt_status status = cli_start(command, STDERR_FILENO, &from, &pid);
    dt_free(command);
    DT_TRY(status);
    launch->starts++;
    const bool grows = launch->grow_secs > 0 && (!launch->np || !slots || slots < launch->np);
    const int code = attend(launch, pid, from, grows, &tail);
    close(from);
    *out_reported = tail.error[0];
    if (tail.few_slots && launch->starts == 1 && launch->hosts.answering == launch->hosts.count)
        return dt_fail(
            DT_EUSAGE,
            "mpirun has fewer slots than ranks: --oversubscribe lets ranks share cores, a host "
            "file (--hostfile) says how many a host takes");
    if (tail.few_slots && !slots && launch->hosts.answering > launch->few) {
        launch->few = launch->hosts.answering;
        return run_job(launch, slots, out_reported);
    }
    return job_status(launch, code, &tail);
}

/* ---- from start to start -------------------------------------------------------------------- */

/* Returns the progress that is saved: the step of the newest checkpoint or, of a search, the size
 * of its journal in bytes, which grows with each decision; -1: none. */
static long long saved_step(const struct launch *launch)
{
    char dir[4096];
    uint64_t step;
    struct stat journal;
    snprintf(dir, sizeof dir, "%s/search.jsonl", launch->config.run.dir);
    if (!stat(dir, &journal)) return (long long)journal.st_size;
    snprintf(dir, sizeof dir, "%s/ckpt", launch->config.run.dir);
    return dt__checkpoint_newest(dir, &step) ? (long long)step : -1;
}

/* Reports an event: prints a line, and appends a record to those of the run. */
static void report(const struct launch *launch, const char *event, long long step,
                   const char *reason)
{
    char at[32] = "with nothing saved yet";
    struct dt_json json = {0};
    if (step >= 0) snprintf(at, sizeof at, "at step %lld", step);
    dt__info("launch: %s %s: %s", event, at, reason);
    dt__json_start(&json);
    dt__json_text(&json, "kind", "launch");
    dt__json_text(&json, "event", event);
    dt__json_int(&json, "step", step);
    dt__json_int(&json, "start", launch->starts);
    dt__json_int(&json, "hosts", launch->hosts.from ? launch->hosts.answering : 1);
    dt__json_text(&json, "reason", reason);
    dt__json_int(&json, "time_unix", dt__clock_unix());
    dt_status status = dt__json_end(&json);
    if (!status) status = dt__text_add(&json.text, "\n");
    if (!status) status = dt__report_append(launch->config.run.dir, json.text.data);
    if (status) dt__warn("launch: %s", dt_error_text());
    dt__json_free(&json);
}

/* Returns true if a signal has asked for a stop, or does within `milliseconds`. No job runs
 * meanwhile. */
static bool is_asked(struct launch *launch, int milliseconds)
{
    struct pollfd fd = {.fd = launch->signals, .events = POLLIN};
    if (!launch->asked) poll(&fd, 1, milliseconds);
    pass_signals(launch, 0, false);
    return launch->asked > 0;
}

/* Chooses the hosts, starts a job on them and waits for its end. Returns job_status. */
static dt_status start_job(struct launch *launch, bool *out_reported)
{
    struct cli_hosts *hosts = &launch->hosts;
    int slots = 0, come;
    dt_status status = hosts->from ? cli_hosts_ask(hosts) : DT_OK;
    while (!status && hosts->from && !cli_hosts_answered(hosts, &come))
        if (is_asked(launch, 20)) return DT_STOPPED;
    if (!status && hosts->from) status = cli_hosts_choose(hosts, come, &slots);
    if (!status) return run_job(launch, slots, out_reported);
    const bool listed = launch->starts || hosts->count; /* false: the list of hosts was never
                                                         * read */
    return listed && status != DT_EUSAGE ? DT_ECOMM : status;
}

/* Starts jobs until one succeeds, is stopped, or fails for good. If a failed job has not printed an
 * error line, this function prints it. */
static dt_status keep_alive(struct launch *launch)
{
    char reason[DT_ERROR_MAX];
    long long step = saved_step(launch);
    for (int failures = 0;;) {
        bool reported = false;
        if (is_asked(launch, 0)) return DT_STOPPED;
        const dt_status status = start_job(launch, &reported);
        snprintf(reason, sizeof reason, "%s", dt_error_text());
        const long long now = saved_step(launch);
        launch->saved |= now != step;
        if (status == DT_STOPPED && launch->growing && !launch->asked) {
            report(launch, "grow", now, "hosts have come");
            continue;
        }
        if (status == DT_OK || status == DT_STOPPED) return status;
        failures = now > step ? 1 : failures + 1;
        step = now;
        const bool gives_up = status != DT_ECOMM || failures > launch->restarts;
        if (status == DT_ECOMM)
            report(launch, gives_up || launch->asked ? "end" : "restart", now, reason);
        if (gives_up && !reported) dt__error("launch: %s", reason);
        if (gives_up) return status;
        const double wait = failures > 6 ? MOST_WAIT_SECS : (double)(1 << (failures - 1));
        for (double until = dt__clock_secs() + wait; dt__clock_secs() < until;)
            if (is_asked(launch, 200)) return DT_STOPPED;
    }
}

/* Creates a signalfd for the signals that ask for a stop. A closed terminal does so, too, unless
 * nohup disabled that. A closed reader of stderr does not. */
static dt_status signals_open(int *out)
{
    static const int asking[] = {SIGUSR1, SIGTERM, SIGINT}, leaving[] = {SIGHUP, SIGQUIT};
    struct sigaction before;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        sigaddset(&set, asking[i]);
    for (size_t i = 0; i < sizeof leaving / sizeof *leaving; i++)
        if (!sigaction(leaving[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaddset(&set, leaving[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    *out = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return *out < 0 ? dt_fail(DT_EIO, "signals: %s", strerror(errno)) : DT_OK;
}

dt_status cmd_launch(int argc, char **argv)
{
    struct launch launch = {.restarts = 3, .signals = -1};
    dt_status status = parse(&launch, argc, argv);
    if (!status) status = signals_open(&launch.signals);
    if (status)
        dt__error("%s", dt_error_text());
    else
        status = keep_alive(&launch);
    if (launch.signals >= 0) close(launch.signals);
    cli_hosts_free(&launch.hosts);
    dt__config_free(&launch.config);
    dt_free(launch.option);
    return status;
}
