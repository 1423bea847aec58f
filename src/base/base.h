/* base: status and error text, log, memory, random numbers, clock, checksums and durable files.
 *
 * All functions may be called from any thread. None is collective. */
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
 * expected) and returns `status`, so that a function can end with `return dt_fail(DT_EIO, "%s:
 * ...", path)`. The message is cut after DT_ERROR_MAX - 1 bytes; control characters and newlines
 * become '?'. It is a macro so that compilers see that the status is not DT_OK. */
enum { DT_ERROR_MAX = 1024 };
#define dt_fail(status, ...) (dt__error_set(__VA_ARGS__), dt__status_of(status))

/* dt_fail_prefix(status, format, ...) puts a formatted prefix before the current message, such as
 * the file and line that only the caller knows, and returns `status`. */
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

/* Lines go to stderr as "dtrain: ...", each in one write(); errors, warnings and debug lines have
 * "error: ", "warning: " or "debug: " before the text. The log is one of the library's globals. The
 * default level is DT_LOG_INFO; errors are always shown, and only main and src/comm write them. */
enum dt_log_level dt__log_get_level(void);
/* dt_log_set_sink (dtrain/base.h) sends the lines to a function instead, one call per line, without
 * prefixes, from any thread; NULL restores stderr. With a sink there is no progress line. */
void dt__error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dt__warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dt__info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dt__debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns true if stderr leads to a terminal, directly or through mpirun. */
bool dt__log_is_terminal(void);
/* Shows a text of at most 200 bytes as the terminal's last line. The next call or log line replaces
 * it; NULL removes it. */
void dt__log_progress(const char *text);

/* Copies an options struct of the caller, which begins with its size, to `to`, which has `known`
 * bytes. The caller may have been compiled with an older header (members that are missing become 0)
 * or a newer one (members that this library does not know must be 0).
 *
 * DT_EUSAGE: the size is not plausible, or an unknown member is set. */
dt_status dt__options_read(void *to, size_t known, const void *from, const char *name);

/* ---- memory --------------------------------------------------------------------------------- */

/* Computes a * b and a + b; returns false on overflow and leaves *out unchanged. */
bool dt__size_mul(size_t a, size_t b, size_t *out);
bool dt__size_add(size_t a, size_t b, size_t *out);

/* Allocates zeroed memory for `count` items of `size` bytes, 64-byte aligned; dt_free frees it
 * (NULL is fine). `what` names the object in the error text. For a count of 0 the pointer is not
 * NULL and may be freed.
 *
 * DT_EMEMORY: no memory, or count * size overflows; the pointer is NULL. */
dt_status dt__alloc(size_t count, size_t size, const char *what, void *out_pointer);

/* Grows *pointer (from dt__alloc, or NULL) and *capacity to at least `need` items, at least
 * doubling the capacity; the new items are zeroed. On failure nothing changes. */
dt_status dt__grow(void *pointer, size_t *capacity, size_t need, size_t size, const char *what);

dt_status dt__strdup(const char *text, char **out);
/* Allocates a formatted string. */
dt_status dt__format(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns true if `bytes` is at least a sixteenth of the memory that this process may use: so large
 * an object is better kept in a file. */
bool dt__is_backed(size_t bytes);
/* Like dt__alloc, for objects that may exceed the host's memory. If dt__is_backed(bytes), the
 * memory is an unnamed file in the directory of the file `near_path`, to which the kernel writes
 * its pages when memory is short. If `near_path` is NULL, or the disk is full (with a warning), it
 * is plain memory. dt__free_backed frees it (NULL is fine). */
dt_status dt__alloc_backed(const char *near_path, size_t count, size_t size, const char *what,
                           void *out_pointer);
void dt__free_backed(void *pointer);
/* Returns the bytes of memory that this process may use: the lowest of the host's memory, the
 * limits of its control groups, and RLIMIT_AS. */
double dt__memory_limit(void);

/* Writes the shortest decimal number that reads back as `value`, in C and JSON syntax ("0.1",
 * "1e+06"); nan and inf are written as by printf. Returns buffer. */
enum { DT_REAL_TEXT = 32 };
const char *dt__real_text(double value, char buffer[DT_REAL_TEXT]);
/* Writes the shortest decimal number that reads back as the same float. */
const char *dt__float_text(float value, char buffer[DT_REAL_TEXT]);
/* Like strtod, with a decimal point whatever the program's locale. All numbers are read and written
 * by these functions. */
double dt__real_read(const char *text, char **end);

/* A growing text. Initialise it with zeros; dt__text_free frees it. Unless it is NULL, `data` ends
 * with a NUL. After the first failure nothing more is added, so a caller may check the status once,
 * at the end. */
struct dt_text {
    char *data;
    size_t length, capacity;
    dt_status status;
};
dt_status dt__text_add(struct dt_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
dt_status dt__text_append(struct dt_text *text, const void *bytes, size_t length);
/* Empties the text, clears its status and keeps its memory. */
void dt__text_clear(struct dt_text *text);
/* Passes the text to the caller, who frees it with dt_free (NULL if nothing was added), or returns
 * the text's failure. Afterwards `text` is empty. */
dt_status dt__text_end(struct dt_text *text, char **out);
void dt__text_free(struct dt_text *text);

/* ---- JSON ----------------------------------------------------------------------------------- */

/* One JSON object in one line, built field by field. Initialise with zeros. dt__json_end returns
 * the first failure. A number is written with the fewest digits that read back as the same value;
 * NaN and infinity become null. Strings are escaped; in a string that is not UTF-8, each byte above
 * 127 becomes a text such as \xE9. */
struct dt_json {
    struct dt_text text;
};
void dt__json_start(struct dt_json *json); /* starts an object, reusing the memory */
void dt__json_int(struct dt_json *json, const char *key, int64_t value);
void dt__json_real(struct dt_json *json, const char *key, double value);
void dt__json_float(struct dt_json *json, const char *key, float value); /* digits of a float */
void dt__json_text(struct dt_json *json, const char *key, const char *value);
void dt__json_counts(struct dt_json *json, const char *key, const uint64_t *values, size_t n);
void dt__json_floats(struct dt_json *json, const char *key, const float *values, size_t n);
void dt__json_reals(struct dt_json *json, const char *key, const double *values, size_t n);
void dt__json_texts(struct dt_json *json, const char *key, char *const *values, size_t n);
/* Opens an object as the value of a key: the next fields are in this object until
 * dt__json_close. */
void dt__json_open(struct dt_json *json, const char *key);
void dt__json_close(struct dt_json *json);
/* Adds the field "confusion", (classes, classes) counts as a list of rows. */
void dt__json_confusion(struct dt_json *json, const uint64_t *confusion, int classes);
/* Ends the object: the line is json->text.data, without newline. */
dt_status dt__json_end(struct dt_json *json);
void dt__json_free(struct dt_json *json);

/* Adds a value as JSON to any text. */
dt_status dt__json_add_string(struct dt_text *text, const char *value);
dt_status dt__json_add_float(struct dt_text *text, float value);
dt_status dt__json_add_floats(struct dt_text *text, const float *values, size_t n);

/* ---- counter-based random numbers ----------------------------------------------------------- */

/* Philox4x32-10. Every number is a pure function of key and counter, so there is no state that a
 * crash could lose or that threads could race for.
 *
 * Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
struct dt_rng {
    uint32_t key[2];
};

/* Purposes of derived keys. Never renumber them. */
enum dt_stream {
    DT_STREAM_INIT = 1,       /* initial weights: a = layer */
    DT_STREAM_SHUFFLE = 2,    /* order of the samples: a = replica, b = epoch */
    DT_STREAM_DROPOUT = 3,    /* dropout: a = replica, b = number of the replica's draw */
    DT_STREAM_FILES = 4,      /* assignment of files to replicas */
    DT_STREAM_HOLDOUT = 5,    /* held-out rows */
    DT_STREAM_SHARD = 6,      /* shuffle of `dtrain shard` */
    DT_STREAM_AUGMENT = 7,    /* augmentation of pictures: a = replica, b = epoch */
    DT_STREAM_ENCODE = 8,     /* frequencies that encode a number: a = feature */
    DT_STREAM_SAMPLE = 10,    /* rows of a set train:N */
    DT_STREAM_BOOTSTRAP = 11, /* bootstrap weights of rows: a = sample */
    DT_STREAM_SEARCH = 12, /* settings of a trial: a = trial, b = key; its seed: b = 2^32 + fold */
    DT_STREAM_IMPORTANCE = 13, /* permutation of rows: a = columns, b = repeat */
    DT_STREAM_TEST = 99
};

/* Derives a separate key for (seed, stream, a, b). */
struct dt_rng dt__rng_make(uint64_t seed, enum dt_stream stream, uint64_t a, uint64_t b);
/* Computes block `counter` of the key: four random words. */
void dt__rng_block(const struct dt_rng *rng, uint64_t counter, uint32_t out[4]);
/* Computes `count` blocks of four words, from block `counter` on, four times as fast as
 * dt__rng_block. */
void dt__rng_blocks(const struct dt_rng *rng, uint64_t counter, size_t count, uint32_t *out);
/* Returns number `index` of the key, 64 random bits; a block has two. */
uint64_t dt__rng_u64(const struct dt_rng *rng, uint64_t index);
/* Returns number `index` of the key, uniform in [0, 1), with 53 random bits. */
double dt__rng_uniform(const struct dt_rng *rng, uint64_t index);
/* Returns number `index` of the key, standard normal (Box-Muller on the uniform numbers 2*index and
 * 2*index + 1). */
double dt__rng_normal(const struct dt_rng *rng, uint64_t index);

/* A keyed permutation of 0..n-1 that is computed, not stored: any element takes O(1) expected time
 * and no memory (alternating Feistel network with cycle walking). 1 <= n <= 2^62.
 *
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
double dt__clock_cpu_secs(void); /* CPU seconds of the calling process, all threads */
int64_t dt__clock_unix(void);    /* wall clock, seconds since 1970 */
void dt__sleep_secs(double secs);

/* ---- checksums ------------------------------------------------------------------------------ */

/* Returns the CRC-32C (Castagnoli) of `bytes`, continuing from `crc`: pass 0 at the start, then
 * each result to the next call. Uses the CPU's instruction if it has one.
 *
 * Source: RFC 3720, appendix B.4. */
uint32_t dt__crc32c(uint32_t crc, const void *bytes, size_t length);

/* ---- files ---------------------------------------------------------------------------------- */

/* Makes a directory and its missing parents (mode 0777 less umask).
 *
 * DT_EIO: a component is not a directory, or cannot be made. */
dt_status dt__dir_make(const char *path);

/* Writes a file durably: writes a temporary file in the same directory (PATH.tmp-<16 hex digits>,
 * O_EXCL, mode 0600, then 0666 less umask), syncs it, calls `verify` (may be NULL) on its path,
 * renames it and syncs the directory. On failure the temporary file is removed and the old file is
 * unchanged; but if only the directory's sync failed, the new file is in place. A killed process
 * may leave a temporary file. */
typedef dt_status dt_file_verify_fn(const char *path, void *arg);
dt_status dt__file_write(const char *path, const void *bytes, size_t length,
                         dt_file_verify_fn *verify, void *arg);

/* Like dt__file_write; `fill` writes the contents to the new file, from its start. */
typedef dt_status dt_file_fill_fn(int fd, const char *path, void *arg);
dt_status dt__file_write_by(const char *path, dt_file_fill_fn *fill, void *fill_arg,
                            dt_file_verify_fn *verify, void *arg);
/* Writes all bytes at the current position of fd. `path` is only for the message. DT_EIO: for
 * example, the disk is full. */
dt_status dt__fd_write(int fd, const char *path, const void *bytes, size_t length);
/* Writes all bytes at `offset`. `what` is only for the message. DT_EIO. */
dt_status dt__fd_write_at(int fd, const char *what, const void *bytes, size_t length,
                          uint64_t offset);
/* Makes an unnamed file in the directory `dir`; it disappears when it is closed. DT_EIO. */
dt_status dt__fd_temporary(const char *dir, int *out_fd);
const char *dt__temporary_dir(void); /* $TMPDIR, else /tmp */

/* Makes `link` a symbolic link to `target`, replacing an existing link atomically, and syncs the
 * directory. */
dt_status dt__file_link(const char *target, const char *link);

/* Reads a whole file of at most `limit` bytes. A NUL follows the data; *out_length does not count
 * it. */
dt_status dt__file_read(const char *path, size_t limit, void *out_bytes, size_t *out_length);

/* Opens a plain file for reading. Pipes and devices, which could block, are refused. DT_EIO: the
 * file is missing. DT_EFORMAT: it is not a plain file. */
dt_status dt__file_open(const char *path, int *out_fd, uint64_t *out_size);
/* Reads exactly `length` bytes at `offset`. DT_EIO; DT_EFORMAT: the file ends earlier. */
dt_status dt__fd_read(int fd, const char *path, void *to, size_t length, uint64_t offset);

/* Syncs a file or directory. */
dt_status dt__path_sync(const char *path);

bool dt__path_exists(const char *path);
bool dt__path_is_dir(const char *path);

/* ---- threads, signals, the stop request ------------------------------------------------------ */

/* Starts a thread that blocks all signals except faults, has an alternate stack for the handlers of
 * faults, and flushes denormals. `name` (at most 12 bytes, not copied) is what debuggers show. The
 * caller joins the thread.
 *
 * DT_EMEMORY: the thread cannot be started. */
typedef void *dt_thread_fn(void *arg);
dt_status dt__thread_start(pthread_t *out, const char *name, dt_thread_fn *body, void *arg);

/* Flushes denormals to zero on the calling thread and on threads that it starts later. On some CPUs
 * an operation on a denormal costs about 150 cycles, and decaying optimizer state would stay in
 * that range. */
void dt__denormals_flush(void);

/* Blocks SIGUSR1, SIGTERM and SIGINT on the calling thread and on threads that it starts later; a
 * blocked signal stays pending. main calls this before any other thread exists. With `block` false
 * the signals are unblocked. */
void dt__stop_block(bool block);
/* Makes installed handlers, such as MPI's for faults, run on alternate stacks. */
void dt__signals_move_handlers(void);

/* Ends the process by SIGALRM, with the exit code of `status`, if it has not ended after `secs`
 * seconds (0: never; at most 1e9). Buffered output is then lost, and `line` (NULL: none; not
 * copied) is written to stderr. If `status` is an error, a crash before that also ends the process
 * with its exit code. */
void dt__exit_within(double secs, dt_status status, const char *line);

/* Returns true if a stop was requested. The request is the second of the library's globals; it is
 * read at step boundaries. */
bool dt__stop_requested(void);
/* Clears the request after it was obeyed; a training does so when it returns DT_STOPPED. Does
 * nothing after dt_stop_install: signals then ask the whole process to stop. */
void dt__stop_clear(void);
/* Returns DT_STOPPED if a stop was requested, so that long work at the start of a run can be
 * abandoned. */
dt_status dt__stop_check(void);

/* ---- long work ------------------------------------------------------------------------------ */

/* Surveys, loads and saves, which may take long, call dt__work_progress after each unit of work. It
 * calls the watcher `report`, if one is set, in the same thread. The watcher is the third of the
 * library's globals. */
typedef void dt_work_fn(void);
void dt__work_watch(dt_work_fn *report); /* NULL: no watcher */
void dt__work_progress(void);

#endif
