/* base: status and error text, log, memory, random numbers, clock, checksums and durable files.
 *
 * Everything here is usable from any thread and none of it is collective. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "dtrain/base.h"

/* ---- status and error text ------------------------------------------------------------------ */

/* dt_fail(status, format, ...) sets the calling thread's error message (what, where, what was
 * expected) and gives `status`, so that a function can end with `return dt_fail(DT_EIO, "%s: ...",
 * path)`. At most DT_ERROR_MAX - 1 bytes are kept; control characters, newlines too, become '?'. A
 * macro, so that compilers see that the status is not DT_OK. */
enum { DT_ERROR_MAX = 1024 };
#define dt_fail(status, ...) (dt__error_set(__VA_ARGS__), dt__status_of(status))

/* dt_fail_prefix(status, format, ...) puts a formatted prefix before the message that is set, e.g.
 * the file and line that only the caller knows, and gives `status`. */
#define dt_fail_prefix(status, ...) (dt__error_prefix(__VA_ARGS__), dt__status_of(status))

void dt__error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dt__error_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline dt_status dt__status_of(dt_status status)
{
    return status;
}

/* Returns from the enclosing function if CALL fails. */
#define DT_TRY(call)                                                                               \
    do {                                                                                           \
        dt_status dt_try_status = (call);                                                          \
        if (dt_try_status) return dt_try_status;                                                   \
    } while (0)

/* Sets `status` and jumps to the clean-up label `done` if CALL fails. */
#define DT_GUARD(call)                                                                             \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status) goto done;                                                                     \
    } while (0)

/* ---- log ------------------------------------------------------------------------------------ */

/* Lines go to stderr as "dtrain: ...", with "error: ", "warning: " or "debug: " before what is not
 * mere information, each in one write(). The log is one of the library's globals. The default
 * level is DT_LOG_INFO; errors are always shown, and only main and src/comm write them. */
enum dt_log_level dt__log_get_level(void);
/* Lines up to the level go to `sink` instead, without what stands before them and in one piece,
 * from whatever thread; NULL: to stderr again. There is no progress line then. */
void dt__error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dt__warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dt__info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dt__debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether stderr ends at a terminal, mpirun's own included. */
bool dt__log_is_terminal(void);
/* Shows a text (at most 200 bytes) on the terminal's last line, in place of the one before; the
 * next log line takes its place. NULL removes it. */
void dt__log_progress(const char *text);

/* Reads a struct that a program fills, which begins with its size: the program may have been
 * compiled with an older header (what it lacks is 0) or a newer one (what it has more must be 0).
 * to: `known` bytes. DT_EUSAGE: the size is none, or a member is set that this library does not
 * know. */
dt_status dt__options_read(void *to, size_t known, const void *from, const char *name);

/* ---- memory --------------------------------------------------------------------------------- */

/* a * b and a + b; false on overflow, *out untouched. */
bool dt__size_mul(size_t a, size_t b, size_t *out);
bool dt__size_add(size_t a, size_t b, size_t *out);

/* Zeroed memory for count items of `size` bytes, 64-byte aligned; dt_free frees it (NULL is fine).
 * `what` names the thing in the error. A count of 0 gives a pointer that may be freed.
 * DT_EMEMORY: no memory, or count * size overflows; the pointer is NULL then. */
dt_status dt__alloc(size_t count, size_t size, const char *what, void *out_pointer);

/* Grows *pointer (from dt__alloc or NULL) from *capacity to at least `need` items, at least
 * doubling; the new part is zeroed. On failure nothing changes. */
dt_status dt__grow(void *pointer, size_t *capacity, size_t need, size_t size, const char *what);

dt_status dt__strdup(const char *text, char **out);
/* A new formatted string. */
dt_status dt__format(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether so many bytes are better kept in a file: a sixteenth of the host's memory, or more. */
bool dt__is_backed(size_t bytes);
/* dt__alloc for what may be larger than the host's memory: where dt__is_backed says so it is a file
 * without a name in the directory of the file `beside`, and the kernel writes pages there when
 * memory is short. beside NULL, or no room there, of which it warns: plain memory. dt__free_backed
 * frees it (NULL is fine). */
dt_status dt__alloc_backed(const char *beside, size_t count, size_t size, const char *what,
                           void *out_pointer);
void dt__free_backed(void *pointer);
/* Bytes of memory that this host has for a process: all of it, or what its control groups and
 * RLIMIT_AS leave. */
double dt__memory_limit(void);

/* The shortest decimal number that reads back as `value`, in C and JSON syntax ("0.1", "1e+06");
 * nan and inf as printf has them. Into buffer, which is returned. */
enum { DT_REAL_TEXT = 32 };
const char *dt__real_text(double value, char buffer[DT_REAL_TEXT]);
/* The same of a float, which reads back as one. */
const char *dt__float_text(float value, char buffer[DT_REAL_TEXT]);
/* strtod, with a point whatever the program's locale has: so all numbers are read and written
 * here. */
double dt__real_read(const char *text, char **end);

/* Growing text; start from zeros, free with dt__text_free. `data` is NUL-terminated once non-NULL.
 * The first failure stays: nothing more is added, and who adds much may ask for it once. */
struct dt_text {
    char *data;
    size_t length, capacity;
    dt_status status;
};
dt_status dt__text_add(struct dt_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
dt_status dt__text_append(struct dt_text *text, const void *bytes, size_t length);
/* Empties it, without a failure, in the memory that it has. */
void dt__text_clear(struct dt_text *text);
/* The text itself, which the caller frees with dt_free, NULL if nothing was added; or its failure.
 * `text` is empty behind it. */
dt_status dt__text_end(struct dt_text *text, char **out);
void dt__text_free(struct dt_text *text);

/* ---- JSON ----------------------------------------------------------------------------------- */

/* One JSON object in one line, built field by field; start from zeros. The first failure is kept,
 * and is what dt__json_end returns. Numbers are the shortest that read back; NaN and infinity are
 * null. Strings are escaped; in one that is not UTF-8, each byte beyond ASCII becomes a text such
 * as \xE9. */
struct dt_json {
    struct dt_text text;
};
void dt__json_start(struct dt_json *json); /* a new object in the memory of the one before */
void dt__json_int(struct dt_json *json, const char *key, int64_t value);
void dt__json_real(struct dt_json *json, const char *key, double value);
void dt__json_float(struct dt_json *json, const char *key, float value); /* as dt__json_floats */
void dt__json_text(struct dt_json *json, const char *key, const char *value);
void dt__json_counts(struct dt_json *json, const char *key, const uint64_t *values, size_t n);
void dt__json_floats(struct dt_json *json, const char *key, const float *values, size_t n);
void dt__json_reals(struct dt_json *json, const char *key, const double *values, size_t n);
void dt__json_texts(struct dt_json *json, const char *key, char *const *values, size_t n);
/* (classes, classes) counts, row by row. */
void dt__json_confusion(struct dt_json *json, const uint64_t *confusion, int classes);
/* Ends the object: the line is json->text.data, without newline. */
dt_status dt__json_end(struct dt_json *json);
void dt__json_free(struct dt_json *json);

/* A value as JSON, added to any text. */
dt_status dt__json_add_string(struct dt_text *text, const char *value);
dt_status dt__json_add_float(struct dt_text *text, float value);
dt_status dt__json_add_floats(struct dt_text *text, const float *values, size_t n);

/* ---- counter-based random numbers ----------------------------------------------------------- */

/* Philox4x32-10: every number is a pure function of key and counter, so that no state exists that
 * a crash could lose or a thread could race for.
 * Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
struct dt_rng {
    uint32_t key[2];
};

/* What a derived key is for; never renumber. */
enum dt_stream {
    DT_STREAM_INIT = 1,    /* weights: a = layer */
    DT_STREAM_SHUFFLE = 2, /* order of samples: a = replica, b = epoch */
    DT_STREAM_DROPOUT = 3, /* a = replica, b = its draw number */
    DT_STREAM_FILES = 4,   /* dealing of files to replicas */
    DT_STREAM_HOLDOUT = 5, /* held-out rows */
    DT_STREAM_SHARD = 6,   /* the shard command's shuffle */
    DT_STREAM_AUGMENT = 7, /* of pictures: a = replica, b = epoch */
    DT_STREAM_TEST = 99
};

/* Key of its own for (seed, stream, a, b). */
struct dt_rng dt__rng_make(uint64_t seed, enum dt_stream stream, uint64_t a, uint64_t b);
/* Four random words: block `counter` of the key. */
void dt__rng_block(const struct dt_rng *rng, uint64_t counter, uint32_t out[4]);
/* `count` blocks from `counter` on, four words each: four times as fast. */
void dt__rng_blocks(const struct dt_rng *rng, uint64_t counter, size_t count, uint32_t *out);
/* 64 random bits, number `index` of the key (two a block). */
uint64_t dt__rng_u64(const struct dt_rng *rng, uint64_t index);
/* Uniform in [0, 1) with 53 bits, number `index`. */
double dt__rng_uniform(const struct dt_rng *rng, uint64_t index);
/* Standard normal, number `index` (Box-Muller on numbers 2*index and 2*index + 1). */
double dt__rng_normal(const struct dt_rng *rng, uint64_t index);

/* A keyed bijection of 0..n-1 that is computed, not stored: any element in O(1) expected time and
 * no memory (alternating Feistel network with cycle walking). 1 <= n <= 2^62.
 * Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002. */
enum { DT_PERM_ROUNDS = 8 };
struct dt_perm {
    uint64_t n;
    int low_bits, high_bits;
    uint64_t key[DT_PERM_ROUNDS];
};
void dt__perm_init(struct dt_perm *perm, uint64_t n, struct dt_rng rng);
uint64_t dt__perm_at(const struct dt_perm *perm, uint64_t index);

/* ---- clock ---------------------------------------------------------------------------------- */

double dt__clock_secs(void);     /* monotonic, seconds from an arbitrary start */
double dt__clock_cpu_secs(void); /* CPU time of the calling process, all threads */
int64_t dt__clock_unix(void);    /* wall clock, seconds since 1970 */
void dt__sleep_secs(double secs);

/* ---- checksums ------------------------------------------------------------------------------ */

/* CRC-32C (Castagnoli), hardware where present; start from crc = 0 and chain.
 * Source: RFC 3720, appendix B.4. */
uint32_t dt__crc32c(uint32_t crc, const void *bytes, size_t length);

/* ---- files ---------------------------------------------------------------------------------- */

/* Makes a directory and its missing parents (mode 0777 less umask).
 * DT_EIO: a component is not a directory, or may not be made. */
dt_status dt__dir_make(const char *path);

/* Writes a file durably: temporary file beside it (PATH.tmp-<16 hex digits>, O_EXCL, 0600 and then
 * 0666 less umask), whole write, fsync, `verify` (may be NULL) on the temporary path, rename, fsync
 * of the directory. On failure the temporary file is gone and the old one is untouched; if only the
 * directory's fsync failed, the new one is in its place. A process that is killed may leave a
 * temporary file. */
typedef dt_status dt_file_verify_fn(const char *path, void *arg);
dt_status dt__file_write(const char *path, const void *bytes, size_t length,
                         dt_file_verify_fn *verify, void *arg);

/* The same of what `fill` writes to the new file, from its begin. */
typedef dt_status dt_file_fill_fn(int fd, const char *path, void *arg);
dt_status dt__file_write_by(const char *path, dt_file_fill_fn *fill, void *fill_arg,
                            dt_file_verify_fn *verify, void *arg);
/* Writes all bytes where fd stands; `path` is for the message. DT_EIO: disk full and the like. */
dt_status dt__fd_write(int fd, const char *path, const void *bytes, size_t length);
/* The same at a place; `what` is for the message. DT_EIO. */
dt_status dt__fd_write_at(int fd, const char *what, const void *bytes, size_t length,
                          uint64_t offset);
/* A new file in `dir` without a name: it goes when it is closed. DT_EIO. */
dt_status dt__fd_temporary(const char *dir, int *out_fd);
const char *dt__temporary_dir(void); /* $TMPDIR, else /tmp */

/* Makes `link` a symbolic link to `target`, atomically replacing what was there; directory
 * synced. */
dt_status dt__file_link(const char *target, const char *link);

/* Reads a whole file of at most `limit` bytes; a NUL is put behind the data (not counted). */
dt_status dt__file_read(const char *path, size_t limit, void *out_bytes, size_t *out_length);

/* Opens a plain file for reading: a pipe or a device would hang us. DT_EIO: missing; DT_EFORMAT: no
 * file. */
dt_status dt__file_open(const char *path, int *out_fd, uint64_t *out_size);
/* Reads just so many bytes at a place. DT_EIO; DT_EFORMAT: the file ends before. */
dt_status dt__fd_read(int fd, const char *path, void *to, size_t length, uint64_t offset);

/* fsync of a file or directory. */
dt_status dt__path_sync(const char *path);

bool dt__path_exists(const char *path);
bool dt__path_is_dir(const char *path);

/* ---- threads, signals, the stop request ------------------------------------------------------ */

/* Starts a thread that takes no signals but its own faults, has an alternate stack for them, and
 * flushes denormals. `name` (at most 12 bytes) is what debuggers show, and must stay. The caller
 * joins it.
 * DT_EMEMORY: it cannot be started. */
typedef void *dt_thread_fn(void *arg);
dt_status dt__thread_start(pthread_t *out, const char *name, dt_thread_fn *body, void *arg);

/* Flushes denormals to zero on the calling thread, and on those that it starts: an operation on one
 * costs some 150 cycles on some CPUs, and optimizer state that decays would stay there. */
void dt__denormals_flush(void);

/* Blocks SIGUSR1, SIGTERM and SIGINT on the calling thread and those that it starts: one that comes
 * waits. main's first act, while no other thread is there. `block` false gives them their usual
 * effect back. */
void dt__stop_block(bool block);
/* Puts the handlers that exist, such as MPI's of faults, on alternate stacks. */
void dt__signals_move_handlers(void);

/* The process exits with the code of `status` if it has not ended by itself within so many seconds
 * (0: never; at most 1e9), by SIGALRM. What is still buffered is lost. `line` goes to standard
 * error then (NULL: none); it must stay. If `status` is an error, a crash until then also ends the
 * process with its code. */
void dt__exit_within(double secs, dt_status status, const char *line);

/* The other global: read at step boundaries. */
bool dt__stop_requested(void);
/* Takes the request back once it is obeyed, as trainings do by themselves when they return
 * DT_STOPPED. Behind dt_stop_install nothing: signals ask the whole process. */
void dt__stop_clear(void);
/* For long work at a start, which is given up: DT_STOPPED once a stop was requested. */
dt_status dt__stop_check(void);

/* ---- long work ------------------------------------------------------------------------------ */

/* The third global: who watches over the process. Surveys, loads and saves, which may take long,
 * call dt__work_progress after each piece that is done, which calls `report` in the same thread. */
typedef void dt_work_fn(void);
void dt__work_watch(dt_work_fn *report); /* NULL: nobody watches */
void dt__work_progress(void);

#endif
