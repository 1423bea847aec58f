/* base: status, error text, log, and requests to stop. Not collective.
 *
 * Every function that can fail returns a dt_status: DT_OK (0), or a failure that dt_error_text
 * describes. Results come through out parameters, which are set only on success. */
#ifndef DTRAIN_BASE_H
#define DTRAIN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of the library, such as "1.2.3". */
const char *dt_version(void);

/* X(name, exit code) */
#define DT_STATUS_LIST(X)                                                                          \
    X(DT_OK, 0)        /* success */                                                               \
    X(DT_EUSAGE, 2)    /* wrong configuration or arguments */                                      \
    X(DT_EIO, 1)       /* input or output failed */                                                \
    X(DT_EFORMAT, 1)   /* malformed file */                                                        \
    X(DT_EMISMATCH, 1) /* parts contradict each other, such as model and data */                   \
    X(DT_EMEMORY, 1)   /* out of memory */                                                         \
    X(DT_ENUMERIC, 1)  /* a number that is not finite */                                           \
    X(DT_ECOMM, 1)     /* communication failed */                                                  \
    X(DT_EBUG, 1)      /* internal error */                                                        \
    X(DT_STOPPED, 75)  /* stopped on request; a checkpoint is saved */

typedef enum dt_status {
#define DT_STATUS_ENUM(name, code) name,
    DT_STATUS_LIST(DT_STATUS_ENUM)
#undef DT_STATUS_ENUM
} dt_status;

/* Returns the exit code of a status; 1 for a value out of range. */
int dt_status_exit_code(dt_status status);

/* Returns the text of the calling thread's last failure, one line: what failed, where, and what was
 * expected; "" if nothing has failed. Valid until the thread's next failure. */
const char *dt_error_text(void);

/* Frees memory that the library allocated for the caller; NULL is fine. */
void dt_free(void *pointer);

enum dt_log_level { DT_LOG_ERROR, DT_LOG_WARN, DT_LOG_INFO, DT_LOG_DEBUG };

/* Sets the most verbose level that the process logs; default DT_LOG_INFO. Lines go to stderr as
 * "dtrain: warning: ...", each in one write(). */
void dt_log_set_level(enum dt_log_level level);

/* Receives a log line without prefix and newline. Any thread of the library may call it. */
typedef void dt_log_fn(void *arg, enum dt_log_level level, const char *line);
/* Sends log lines to `sink` instead of stderr, and turns the progress line off. NULL: restores
 * stderr. */
void dt_log_set_sink(dt_log_fn *sink, void *arg);

/* Makes SIGUSR1, SIGTERM and SIGINT stop the trainings of the process: the current one saves a
 * checkpoint and returns DT_STOPPED, and so does each later one. A second signal 5 s or more after
 * the first ends the process with exit code 75. A thread of the library takes all signals; the
 * calling thread and the threads that it starts later block all except those of their own faults,
 * such as SIGSEGV. SIGPIPE is ignored. Call it before MPI or any thread starts. DT_EMEMORY. */
dt_status dt_stop_install(void);

/* Stops the training in progress, on all its ranks: it saves a checkpoint and returns DT_STOPPED.
 * If none is in progress, the next one stops. Safe in signal handlers, for programs that do not use
 * dt_stop_install. Matrix kernels move the stack pointer: block the handled signals on threads that
 * compute, or run the handlers on alternate stacks (SA_ONSTACK). */
void dt_stop_request(void);

#ifdef __cplusplus
}
#endif

#endif
