/* The helper, its keeper and its children.
 *
 * The program forks a keeper, which forks the helper, and again when the helper was killed: the
 * program could do so only while MPI and other threads run. Both hold the end that requests come
 * to: none is lost between two helpers, and the helper goes on without its keeper. Only when both
 * are gone does the program fork again, for else no file could be opened any more. When memory runs
 * out it is a child that goes.
 *
 * A request to the helper is one message with three descriptors: the file, a memory file for the
 * answers, and the child's end of a socket pair. The helper forks and forgets; the child opens the
 * file, answers with the table of its contents, and serves reads until the other end closes. A
 * child that dies closes the socket, which is how its death is seen. Descriptors, not paths: the
 * child reads the very file that the program has open. */
#include "hdf5/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FDS = 3, FILE_FD = 0, MEMORY_FD = 1, SOCKET_FD = 2 };
enum { CONTROL = 3 }; /* the helper's end of what requests come by */

/* Beyond what any sound file needs: the child is ended there. */
enum { CHILD_CPU_SECS = 300 };
static const uint64_t CHILD_MEMORY = (uint64_t)4 << 30;

/* ---- messages ------------------------------------------------------------------------------- */

/* A byte with descriptors, as sendmsg and recvmsg want it. */
struct fds_message {
    struct msghdr header;
    struct iovec part;
    char byte;
    union {
        char bytes[CMSG_SPACE(FDS * sizeof(int))];
        struct cmsghdr header;
    } control;
};

static struct msghdr *fds_message_init(struct fds_message *message, char byte)
{
    *message = (struct fds_message){.byte = byte};
    message->part = (struct iovec){&message->byte, 1};
    message->header = (struct msghdr){.msg_iov = &message->part,
                                      .msg_iovlen = 1,
                                      .msg_control = &message->control,
                                      .msg_controllen = sizeof message->control.bytes};
    return &message->header;
}

static bool fds_send(int socket, const int fds[FDS], char byte)
{
    struct fds_message message;
    struct msghdr *header = fds_message_init(&message, byte);
    message.control.header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(FDS * sizeof(int))};
    memcpy(CMSG_DATA(&message.control.header), fds, FDS * sizeof(int));
    ssize_t sent;
    do
        sent = sendmsg(socket, header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == 1;
}

/* False: nobody is left to send. */
static bool fds_receive(int socket, int fds[FDS], char *byte)
{
    struct fds_message message;
    struct msghdr *header = fds_message_init(&message, 0);
    ssize_t got;
    do
        got = recvmsg(socket, header, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *rights = CMSG_FIRSTHDR(header);
    if (got != 1 || !rights || rights->cmsg_len != CMSG_LEN(FDS * sizeof(int))) return false;
    memcpy(fds, CMSG_DATA(rights), FDS * sizeof(int));
    *byte = message.byte;
    return true;
}

static bool socket_send(int socket, const void *bytes, size_t length)
{
    ssize_t sent;
    do
        sent = send(socket, bytes, length, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length;
}

static bool socket_receive(int socket, void *bytes, size_t length)
{
    ssize_t got;
    do
        got = recv(socket, bytes, length, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)length;
}

bool dt__h5_guard_ask(int socket, const struct dt__h5_request *request,
                      struct dt__h5_answer *answer)
{
    if (request && !socket_send(socket, request, sizeof *request)) return false;
    if (!socket_receive(socket, answer, sizeof *answer)) return false;
    answer->message[DT_ERROR_MAX - 1] = '\0';
    return true;
}

static bool answer_send(int socket, dt_status status, size_t length, bool stays)
{
    struct dt__h5_answer answer = {.status = (int)status, .length = length, .stays = stays};
    if (status) snprintf(answer.message, sizeof answer.message, "%s", dt_error_text());
    return socket_send(socket, &answer, sizeof answer);
}

/* ---- the child ------------------------------------------------------------------------------ */

/* So much for each request. */
static void child_limit_cpu(void)
{
    struct rlimit cpu;
    if (getrlimit(RLIMIT_CPU, &cpu)) return;
    rlim_t most = (rlim_t)dt_clock_cpu_secs() + CHILD_CPU_SECS;
    cpu.rlim_cur = most < cpu.rlim_max ? most : cpu.rlim_max;
    setrlimit(RLIMIT_CPU, &cpu);
}

/* When memory runs out, the child is what the kernel ends. */
static void child_limit(void)
{
    unsigned long pages = 0;
    struct rlimit none = {0, 0}, memory;
    FILE *score = fopen("/proc/self/oom_score_adj", "we");
    if (score) {
        fputs("1000", score);
        fclose(score); /* what fails leaves it the program's score */
    }
    child_limit_cpu();
    setrlimit(RLIMIT_CORE, &none);
    FILE *status = fopen("/proc/self/statm", "re");
    if (!status) return;
    bool known = fscanf(status, "%lu", &pages) == 1;
    fclose(status);
    uint64_t most = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + CHILD_MEMORY;
    if (!known || getrlimit(RLIMIT_AS, &memory) || memory.rlim_cur <= most) return;
    memory.rlim_cur = most;
    setrlimit(RLIMIT_AS, &memory);
}

/* The answer to a request, in the memory file. */
static dt_status child_send_rows(struct dt__h5_inside *inside, int memory,
                                 const struct dt__h5_request *request, size_t *out_length)
{
    size_t bytes = dt__h5_inside_bytes(inside, request);
    *out_length = bytes;
    if (!bytes) return dt_fail(DT_EBUG, "rows that are not there");
    if (ftruncate(memory, (off_t)bytes))
        return dt_fail(DT_EMEMORY, "no memory for %zu bytes of rows", bytes);
    void *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (out == MAP_FAILED) return dt_fail(DT_EMEMORY, "no memory for %zu bytes of rows", bytes);
    dt_status status = dt__h5_inside_read(inside, request, out);
    munmap(out, bytes);
    return status;
}

/* The table of contents, then rows as they are asked for. */
static void child_serve(const int fds[FDS], bool stay)
{
    const int memory = fds[MEMORY_FD], socket = fds[SOCKET_FD];
    char path[64];
    bool stays = false;
    size_t length = 0;
    struct dt_text table = {0};
    struct dt__h5_inside *inside;
    struct dt__h5_request request;
    child_limit();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fds[FILE_FD]);
    dt_status status = dt__h5_inside_open(path, &table, &inside, &stays);
    for (size_t at = 0; !status && at < table.length;) {
        ssize_t written = pwrite(memory, table.data + at, table.length - at, (off_t)at);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) status = dt_fail(DT_EMEMORY, "no memory for a table of contents");
        at += written > 0 ? (size_t)written : 0;
    }
    stays |= stay;
    if (!answer_send(socket, status, table.length, stays) || status || !stays) return;
    dt_text_free(&table);
    while (socket_receive(socket, &request, sizeof request)) {
        child_limit_cpu();
        status = child_send_rows(inside, memory, &request, &length);
        if (!answer_send(socket, status, length, true)) return;
    }
}

/* ---- the helper ----------------------------------------------------------------------------- */

static void helper_run(void)
{
    int fds[FDS];
    char stay;
    signal(SIGCHLD, SIG_IGN); /* children are not waited for */
    while (fds_receive(CONTROL, fds, &stay)) {
        pid_t child = fork();
        if (child == 0) {
            close(CONTROL);
            child_serve(fds, stay);
            _exit(0);
        }
        if (child < 0) {
            dt_fail(DT_EMEMORY, "no process to read HDF5 with: %s", strerror(errno));
            answer_send(fds[SOCKET_FD], DT_EMEMORY, 0, false);
        }
        for (int i = 0; i < FDS; i++)
            close(fds[i]);
    }
}

/* A helper until one ends by itself, which it does when nobody is left to ask. Nothing of the
 * program's is held open, and nothing is said: what the library prints as it dies is no message of
 * ours. */
static void keeper_run(int control)
{
    sigset_t all;
    int code, null = open("/dev/null", O_RDWR);
    prctl(PR_SET_NAME, "dtrain-hdf5");
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    sigfillset(&all);
    sigdelset(&all, SIGXCPU);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int fd = 0; fd < CONTROL && null >= 0; fd++)
        dup2(null, fd);
    if (control != CONTROL) dup2(control, CONTROL);
    close_range(CONTROL + 1, ~0U, 0);
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1); /* only read; some file systems know no locks */
    do {
        pid_t helper = fork();
        if (helper <= 0) { /* without another process the keeper is the helper */
            helper_run();
            return;
        }
        while (waitpid(helper, &code, 0) < 0 && errno == EINTR) {
        }
    } while (WIFSIGNALED(code));
}

/* ---- the program ---------------------------------------------------------------------------- */

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static int guard_control = -1; /* to the helper */
static pid_t guard_keeper;

static dt_status guard_ensure(void)
{
    int pair[2];
    if (guard_control >= 0) return DT_OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return dt_fail(DT_EIO, "no socket to read HDF5 by: %s", strerror(errno));
    pid_t keeper = fork();
    if (keeper == 0) {
        keeper_run(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    if (keeper < 0) {
        close(pair[0]);
        return dt_fail(DT_EMEMORY, "no process to read HDF5 with: %s", strerror(errno));
    }
    guard_control = pair[0];
    guard_keeper = keeper;
    return DT_OK;
}

/* Both end when nothing more can be asked, whoever else holds the socket. */
static void guard_end(void)
{
    if (guard_control < 0) return;
    shutdown(guard_control, SHUT_RDWR);
    close(guard_control);
    guard_control = -1;
    while (waitpid(guard_keeper, NULL, 0) < 0 && errno == EINTR) {
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

dt_status dt__h5_guard_open(int fd, int memory, bool stay, int *out_socket)
{
    int pair[2];
    bool sent = false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return dt_fail(DT_EIO, "no socket to read HDF5 by: %s", strerror(errno));
    const int fds[FDS] = {fd, memory, pair[1]};
    pthread_mutex_lock(&guard_lock);
    dt_status status = DT_OK;
    for (int tries = 0; !status && !sent && tries < 2; tries++) { /* to a new one if none is left */
        status = guard_ensure();
        sent = !status && fds_send(guard_control, fds, stay);
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
