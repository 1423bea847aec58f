/* Internal functions of base, for its own files and for tests. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H

#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* Formats text for people into buffer (size >= 1); a text that is too long is cut between two UTF-8
 * characters. Control characters, which could drive a terminal, become '?'. Returns the length. */
size_t dt__text_format(char *buffer, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Prints like dt__text_format, but keeps a newline at the end of the format. */
void dt__text_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the number of bytes to insert, delete or replace to turn one text into the other
 * (Levenshtein distance). Of a long text only the first 63 bytes count. */
size_t dt__edit_distance(const char *a, const char *b);

/* Between begin and end this thread reads and prints numbers with a decimal point, whatever the
 * program's locale. */
locale_t dt__point_begin(void);
void dt__point_end(locale_t before);

/* Fails with DT_EIO: the message is the path, what failed (such as "cannot open"), and the system's
 * reason from errno. */
#define dt__fail_errno(path, what) dt_fail(DT_EIO, "%s: %s: %s", path, what, strerror(errno))

/* Puts "PATH: " before the message of a failure unless it begins with that. Returns `status`. */
dt_status dt__fail_path(dt_status status, const char *path);

/* Causes of failures that may not recur when the job is started again: X(name, word). An error line
 * has the word before its message, and `dtrain launch` reads it. */
#define DT__CAUSES(X)                                                                              \
    X(DT__CAUSE_NONE, "")         /* any other failure */                                          \
    X(DT__CAUSE_LOST, "lost")     /* a rank is gone */                                             \
    X(DT__CAUSE_STALL, "stall")   /* ranks make no progress */                                     \
    X(DT__CAUSE_MPI, "mpi")       /* a call of MPI failed */                                       \
    X(DT__CAUSE_IN_USE, "in-use") /* another job holds the run directory */
enum dt__cause {
#define DT__CAUSE_NAME(name, word) name,
    DT__CAUSES(DT__CAUSE_NAME)
#undef DT__CAUSE_NAME
};
/* Writes the word of a cause and a colon ("stall: "), or "" for DT__CAUSE_NONE. Returns buffer. */
const char *dt__cause_prefix(enum dt__cause cause, char buffer[16]);
/* Returns the cause in the message of an error line, such as "[rank 3 on node7] stall: ...". */
enum dt__cause dt__cause_read(const char *message);

/* Between begin and end this thread uses the library's floating-point environment: rounding to
 * nearest, no traps, denormals flushed. dt__floats_end restores the caller's environment. */
void dt__floats_begin(fenv_t *out_before);
void dt__floats_end(const fenv_t *before);

/* Returns true for a character that a terminal obeys instead of showing. */
static inline bool dt__is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

/* Returns true if a terminal obeys the character at `at` instead of showing it. In UTF-8 these
 * include U+0080 to U+009F: for xterm U+009B means the same as ESC [. */
static inline bool dt__is_obeyed(const char *at)
{
    return dt__is_control(at[0]) || (at[0] == '\xc2' && (at[1] & 0xe0) == 0x80);
}

/* Returns true if a byte of UTF-8 begins a character. */
static inline bool dt__begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Adds the squares of n floats, at positions at..at + n - 1 of a vector, to 8 partial sums: the
 * float at position i goes to partial sum i mod 8. dt__partials_sum adds the partial sums. */
void dt__squares_add(double partial[8], const float *values, size_t at, size_t n);
double dt__partials_sum(const double partial[8]);

/* Returns the time at which a process of this host started, in clock ticks since the system's
 * start, and sets *out_state to its state's letter; 0 if the system does not say. Another process
 * that later gets the same pid has another start. */
uint64_t dt__process_start(long pid, char *out_state);

/* The portable implementation of dt__crc32c, for tests. */
uint32_t dt__crc32c_portable(uint32_t crc, const void *bytes, size_t length);

/* Philox4x32-10 with the whole counter, as in its published test vectors. */
void dt__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
