/* registers PID...: a line "TID NAME MXCSR BLOCKED" for each thread of these processes: the control and
 * status register of SSE and the mask of blocked signals (0: not), both in hexadecimal. x86-64. */
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static void line_of(const char *pid, const char *tid, const char *file, const char *key, char *out)
{
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/%s/task/%s/%s", pid, tid, file);
    FILE *in = fopen(path, "r");
    snprintf(out, 64, "?");
    while (in && fgets(line, sizeof line, in))
        if (!strncmp(line, key, strlen(key))) sscanf(line + strlen(key), "%63[^\n]", out);
    if (in) fclose(in);
}

static int show(const char *pid, const char *tid)
{
    struct user_fpregs_struct registers;
    char name[64], blocked[64];
    pid_t thread = (pid_t)strtol(tid, NULL, 10);
    int status;
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL)) {
        perror("registers: ptrace");
        return 1;
    }
    waitpid(thread, &status, __WALL);
    if (ptrace(PTRACE_GETFPREGS, thread, NULL, &registers)) perror("registers: PTRACE_GETFPREGS");
    ptrace(PTRACE_DETACH, thread, NULL, NULL);
    line_of(pid, tid, "comm", "", name);
    line_of(pid, tid, "status", "SigBlk:\t", blocked);
    for (char *space = name; (space = strchr(space, ' '));)
        *space = '_';
    printf("%s %s %x %s\n", tid, name, registers.mxcsr, blocked);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        char path[300];
        snprintf(path, sizeof path, "/proc/%s/task", argv[i]);
        DIR *tasks = opendir(path);
        for (struct dirent *task; tasks && (task = readdir(tasks));)
            if (task->d_name[0] != '.') failed |= show(argv[i], task->d_name);
        if (tasks) closedir(tasks);
    }
    return failed;
}
