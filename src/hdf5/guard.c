/* The fork server and its reader processes.
 *
 *   program --- control: file, socket ---> fork server
 *      |                                        | forks for each file
 *      +------ socket: request, answer ---> reader process
 *
 * The program forks the server before it has threads, MPI and much memory. If the server is killed,
 * the program forks another one, since otherwise no file could be opened any more. The server does
 * not wait for the readers that it forks. A reader process opens its file and answers requests
 * until the program closes its end of the socket. If a reader dies, its end of the socket closes,
 * and the program sees that. The program passes descriptors, not paths, so the reader has exactly
 * the file that the program has open. When memory runs out, the kernel kills a reader rather than
 * the program. */
#include "hdf5/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hdf5/library.h"

enum { FDS = 2, FILE_FD = 0, SOCKET_FD = 1 };
enum { CONTROL = 3 }; /* the server's end of the control socket */

/* Limit for the CPU time of a request, more than any sound file needs. */
enum { READER_CPU_SECS = 300 };
static const uint64_t READER_MEMORY = (uint64_t)4 << 30;

/* ---- messages ------------------------------------------------------------------------------- */

/* Sends or receives descriptors, along with one byte; returns false if the other end is closed. */
static bool fds_pass(int socket, int fds[FDS], bool sends)
{
    union {
        char bytes[CMSG_SPACE(FDS * sizeof(int))];
        struct cmsghdr header;
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(FDS * sizeof(int))}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    ssize_t done;
    memcpy(CMSG_DATA(&control.header), fds, FDS * sizeof(int));
    do
        done = sends ? sendmsg(socket, &message, MSG_NOSIGNAL)
                     : recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (done < 0 && errno == EINTR);
    const struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (done != 1 || !rights || rights->cmsg_len != CMSG_LEN(FDS * sizeof(int))) return false;
    memcpy(fds, CMSG_DATA(rights), FDS * sizeof(int));
    return true;
}

bool dt__h5_guard_pass(int socket, void *bytes, size_t length, bool sends)
{
    for (char *at = bytes; length > 0;) {
        ssize_t done = sends ? send(socket, at, length, MSG_NOSIGNAL) : recv(socket, at, length, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        length -= (size_t)done;
    }
    return true;
}

static bool answer_send(int socket, dt_status status, const struct dt_text *bytes)
{
    struct dt__h5_answer answer = {.status = (int)status, .length = status ? 0 : bytes->length};
    if (status) snprintf(answer.message, sizeof answer.message, "%s", dt_error_text());
    return dt__h5_guard_pass(socket, &answer, sizeof answer, true) &&
           (status || dt__h5_guard_pass(socket, bytes->data, bytes->length, true));
}

/* ---- the reader process --------------------------------------------------------------------- */

/* Allows READER_CPU_SECS more of CPU time; called before each request. */
static void reader_limit_cpu(void)
{
    struct rlimit cpu;
    if (getrlimit(RLIMIT_CPU, &cpu)) return;
    rlim_t most = (rlim_t)dt__clock_cpu_secs() + READER_CPU_SECS;
    cpu.rlim_cur = most < cpu.rlim_max ? most : cpu.rlim_max;
    setrlimit(RLIMIT_CPU, &cpu);
}

/* A crash of the library is the file's fault, so the reader answers with DT_EFORMAT. If the reader
 * is killed, there is no answer, and nothing is said about the file. */
static volatile int crash_socket; /* -1: an answer is being sent */
static void reader_crash(int signal_number)
{
    struct dt__h5_answer answer = {
        .status = DT_EFORMAT,
        .message = "malformed: HDF5's library crashes on it, or runs out of memory"};
    (void)signal_number;
    dt__h5_guard_pass(crash_socket, &answer, sizeof answer, true);
    _exit(1);
}

static void reader_report_crashes(int socket)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU};
    const struct sigaction action = {.sa_handler = reader_crash};
    sigset_t set;
    crash_socket = socket;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        sigaction(crashes[i], &action, NULL);
        sigaddset(&set, crashes[i]);
    }
    dt__signals_move_handlers(); /* the library may have overflowed the normal stack */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Limits the reader's memory, and makes the kernel kill the reader rather than the program when
 * memory runs out. */
static void reader_limit(void)
{
    unsigned long pages = 0;
    struct rlimit none = {0, 0}, memory;
    FILE *score = fopen("/proc/self/oom_score_adj", "we");
    if (score) {
        fputs("1000", score);
        fclose(score); /* if this fails, the program's score stays */
    }
    setrlimit(RLIMIT_CORE, &none);
    FILE *status = fopen("/proc/self/statm", "re");
    if (!status) return;
    bool known = fscanf(status, "%lu", &pages) == 1;
    fclose(status);
    uint64_t most = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + READER_MEMORY;
    if (!known || getrlimit(RLIMIT_AS, &memory) || memory.rlim_cur <= most) return;
    memory.rlim_cur = most;
    setrlimit(RLIMIT_AS, &memory);
}

static void reader_run(int file, int socket)
{
    char path[64];
    struct dt_text table = {0}, rows = {0};
    struct dt__h5_inside *inside;
    struct dt__h5_request request;
    reader_report_crashes(socket);
    reader_limit();
    reader_limit_cpu();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const dt_status failed = dt__h5_inside_open(path, &table, &inside);
    while (dt__h5_guard_pass(socket, &request, sizeof request, false)) {
        const bool of_table = failed || request.item == DT__H5_TABLE;
        reader_limit_cpu();
        const dt_status status = of_table ? failed : dt__h5_inside_read(inside, &request, &rows);
        crash_socket = -1;
        if (!answer_send(socket, status, of_table ? &table : &rows)) return;
        crash_socket = socket;
    }
}

/* ---- the fork server ------------------------------------------------------------------------ */

/* Runs the server. It closes all descriptors of the program, and prints nothing: what the library
 * prints when it crashes is not a message of this program. */
static void server_run(int control)
{
    sigset_t all;
    int fds[FDS] = {-1, -1}, null = open("/dev/null", O_RDWR);
    prctl(PR_SET_NAME, "dtrain-hdf5");
    fesetenv(FE_DFL_ENV); /* denormals are not flushed, so that numbers are converted exactly */
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    signal(SIGCHLD, SIG_IGN); /* the server does not wait for readers */
    sigfillset(&all);
    sigdelset(&all, SIGXCPU);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int fd = 0; fd < CONTROL && null >= 0; fd++)
        dup2(null, fd);
    if (control != CONTROL) dup2(control, CONTROL);
    close_range(CONTROL + 1, ~0U, 0);
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1); /* files are only read, and some file systems have
                                                  * no locks */
    while (fds_pass(CONTROL, fds, false)) {
        dt__h5_prepare(); /* does something only once, for all readers */
        pid_t reader = fork();
        if (reader == 0) {
            close(CONTROL);
            reader_run(fds[FILE_FD], fds[SOCKET_FD]);
            _exit(0);
        }
        if (reader < 0) {
            dt_fail(DT_EMEMORY, "no process to read HDF5 with: %s", strerror(errno));
            answer_send(fds[SOCKET_FD], DT_EMEMORY, NULL);
        }
        for (int i = 0; i < FDS; i++)
            close(fds[i]);
    }
}

/* ---- the program ---------------------------------------------------------------------------- */

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static int guard_control = -1; /* the program's end of the control socket */
static pid_t guard_server;

static dt_status guard_ensure(void)
{
    int pair[2];
    if (guard_control >= 0) return DT_OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return dt_fail(DT_EIO, "no socket to read HDF5 by: %s", strerror(errno));
    pid_t server = fork();
    if (server == 0) {
        server_run(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    if (server < 0) {
        close(pair[0]);
        return dt_fail(DT_EMEMORY, "no process to read HDF5 with: %s", strerror(errno));
    }
    guard_control = pair[0];
    guard_server = server;
    return DT_OK;
}

/* Ends the server. It ends when its socket is shut down, even if another process still has a
 * copy. */
static void guard_end(void)
{
    if (guard_control < 0) return;
    shutdown(guard_control, SHUT_RDWR);
    close(guard_control);
    guard_control = -1;
    while (waitpid(guard_server, NULL, 0) < 0 && errno == EINTR) {
    }
}

void dt__h5_guard_start(void)
{
    pthread_mutex_lock(&guard_lock);
    dt_status status = guard_ensure();
    (void)status; /* tried again when a file is opened */
    pthread_mutex_unlock(&guard_lock);
}

void dt__h5_guard_stop(void)
{
    pthread_mutex_lock(&guard_lock);
    guard_end();
    pthread_mutex_unlock(&guard_lock);
}

dt_status dt__h5_guard_open(int fd, int *out_socket)
{
    int pair[2];
    bool sent = false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return dt_fail(DT_EIO, "no socket to read HDF5 by: %s", strerror(errno));
    int fds[FDS] = {fd, pair[1]};
    pthread_mutex_lock(&guard_lock);
    dt_status status = DT_OK;
    for (int tries = 0; !status && !sent && tries < 2; tries++) { /* a second time with a new server
                                                                   * if the old one has ended */
        status = guard_ensure();
        sent = !status && fds_pass(guard_control, fds, true);
        if (!status && !sent) guard_end();
    }
    pthread_mutex_unlock(&guard_lock);
    if (!status && !sent) status = dt_fail(DT_EIO, "the process that reads HDF5 is gone");
    close(pair[1]);
    if (status)
        close(pair[0]);
    else
        *out_socket = pair[0];
    return status;
}
