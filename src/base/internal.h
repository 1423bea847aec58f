/* What base does not show: seams for its own files and for tests. */
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

/* Text for a person's eyes: formats into buffer (size >= 1), cut at a whole UTF-8 character;
 * control characters, which could drive a terminal, become '?'. Returns the length. */
size_t dt__text_format(char *buffer, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Prints a line, or a part of one, likewise, but for a line's end that the format has as its last:
 * of texts from files, a terminal obeys nothing. */
void dt__text_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Letters to insert, delete or replace to get from one to the other (Levenshtein); of long texts
 * only the first bytes are looked at. */
size_t dt__edit_distance(const char *a, const char *b);

/* Until the end, what this thread prints and reads has a decimal point, whatever the program's
 * locale says. */
locale_t dt__point_begin(void);
void dt__point_end(locale_t before);

/* DT_EIO: what cannot be done with a path ("cannot open"), and the system's reason in errno. */
#define dt__fail_errno(path, what) dt_fail(DT_EIO, "%s: %s: %s", path, what, strerror(errno))

/* Puts "PATH: " before the message of a failure that does not begin with it yet; gives `status`. */
dt_status dt__fail_path(dt_status status, const char *path);

/* Causes of a failure that a job may not meet when it is started again: X(name, word). The error
 * line has the word before the message, and `dtrain launch` reads it. */
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
/* "stall: "; "" without a cause. */
const char *dt__cause_prefix(enum dt__cause cause, char buffer[16]);
/* The cause in the message of an error line: "[rank 3 on node7] stall: ...". */
enum dt__cause dt__cause_read(const char *message);

/* Until the end, this thread computes as threads of the library do: rounding to nearest, without
 * traps, denormals flushed; whatever the program has chosen, which it has again then. */
void dt__floats_begin(fenv_t *out_before);
void dt__floats_end(const fenv_t *before);

/* What a terminal would obey, not show. */
static inline bool dt__is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

/* Whether a terminal would obey the character that begins here, in UTF-8 also U+0080 to U+009F (as
 * xterm does: U+009B begins what ESC [ begins). */
static inline bool dt__is_obeyed(const char *at)
{
    return dt__is_control(at[0]) || (at[0] == '\xc2' && (at[1] & 0xe0) == 0x80);
}

/* Whether a byte of UTF-8 does not go on with the character before it. */
static inline bool dt__begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Adds the squares of n floats that stand at `at` of a vector to the lanes of their places there;
 * the sum of lanes. */
void dt__squares_add(double lane[8], const float *values, size_t at, size_t n);
double dt__lanes_sum(const double lane[8]);

/* When a process of this host began, in ticks since the system's start, and its state's letter: a
 * later process with its number has begun at another time. 0: the system does not say. */
uint64_t dt__process_start(long pid, char *out_state);

/* The portable way, beside the one that dt__crc32c takes. */
uint32_t dt__crc32c_portable(uint32_t crc, const void *bytes, size_t length);

/* Philox4x32-10 with the whole counter, as its published test vectors have it. */
void dt__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
