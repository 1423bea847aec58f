/* Memory and text on the heap. Sizes are checked for overflow before anything is allocated, and an
 * error names the object. All allocations of the library pass through the one call of aligned_alloc
 * here, where tests inject faults. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/arena.h"

/* Large blocks are put into huge pages: with them a random row of 700 MB takes 75 ns, not 95. */
enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21, LARGE = 4 * HUGE_PAGE };

dt_status dt__options_read(void *to, size_t known, const void *from, const char *name)
{
    enum { MOST = 4096 }; /* a larger size must be garbage */
    const unsigned char *bytes = from;
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > MOST)
        return dt_fail(DT_EUSAGE, "struct %s: its size is %zu: expected its _INIT macro", name,
                       size);
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return dt_fail(DT_EUSAGE, "struct %s: a member is set that dtrain %s does not know",
                           name, DT_VERSION);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    return DT_OK;
}

bool dt__size_mul(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

bool dt__size_add(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

dt_status dt__alloc(size_t count, size_t size, const char *what, void *out_pointer)
{
    size_t bytes, padded;
    void *pointer = NULL;
    bool sized = dt__size_mul(count, size, &bytes);
    size_t alignment = sized && bytes >= LARGE ? HUGE_PAGE : ALIGNMENT;
    if (sized && dt__size_add(bytes ? bytes : 1, alignment - 1, &padded)) {
        padded -= padded % alignment;
        pointer = aligned_alloc(alignment, padded);
    }
    memcpy(out_pointer, &pointer, sizeof pointer);
    if (!pointer)
        return dt_fail(DT_EMEMORY, "out of memory for %s: %zu items of %zu bytes", what, count,
                       size);
    if (alignment == HUGE_PAGE)
        madvise(pointer, padded, MADV_HUGEPAGE); /* only advice; errors do
                                                                          * not matter */
    memset(pointer, 0, padded);
    return DT_OK;
}

dt_status dt__grow(void *pointer, size_t *capacity, size_t need, size_t size, const char *what)
{
    if (need <= *capacity) return DT_OK;
    size_t wanted;
    if (!dt__size_mul(*capacity, 2, &wanted) || wanted < need) wanted = need;
    void *old, *grown;
    memcpy(&old, pointer, sizeof old);
    DT_TRY(dt__alloc(wanted, size, what, &grown));
    if (*capacity) memcpy(grown, old, *capacity * size);
    dt_free(old);
    memcpy(pointer, &grown, sizeof grown);
    *capacity = wanted;
    return DT_OK;
}

void dt_free(void *pointer)
{
    free(pointer);
}

struct dt__arena { /* in front of each block of memory */
    _Alignas(ALIGNMENT) struct dt__arena *next;
};

dt_status dt__arena_alloc(struct dt__arena **arena, size_t count, size_t size, const char *what,
                          void *out_pointer)
{
    struct dt__arena *block;
    size_t bytes;
    if (!dt__size_mul(count, size, &bytes) || !dt__size_add(bytes, sizeof *block, &bytes))
        bytes = SIZE_MAX;
    DT_TRY(dt__alloc(bytes, 1, what, &block));
    block->next = *arena;
    *arena = block++;
    memcpy(out_pointer, &block, sizeof block);
    return DT_OK;
}

dt_status dt__arena_tables(struct dt__arena **arena, const char *what,
                           const struct dt__table *table, size_t tables)
{
    for (size_t i = 0; i < tables; i++, table++)
        DT_TRY(dt__arena_alloc(arena, table->count, table->size, what, table->pointer));
    return DT_OK;
}

void dt__arena_free(struct dt__arena **arena)
{
    for (struct dt__arena *next; *arena; *arena = next) {
        next = (*arena)->next;
        dt_free(*arena);
    }
}

/* ---- more than memory ------------------------------------------------------------------------ */

/* The header in front of the memory that dt__alloc_backed returns. */
struct backing {
    _Alignas(ALIGNMENT) size_t bytes; /* length of the mapping; 0: the memory is from dt__alloc */
};

/* Maps an unnamed file near `near_path`; if there is no space for it, warns and returns NULL. */
static void *backing_map(const char *near_path, size_t bytes)
{
    void *memory = MAP_FAILED;
    char *path, *dir;
    int fd;
    if (dt__strdup(near_path, &path)) return NULL;
    dir = dirname(path);
    if (dt__fd_temporary(dir, &fd) == DT_OK) {
        errno = posix_fallocate(fd, 0, (off_t)bytes); /* allocate the disk space now, so that no
                                                       * access fails with SIGBUS */
        if (!errno) memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED) (void)dt__fail_errno(dir, "no room for a file");
        close(fd);
    }
    dt_free(path);
    if (memory != MAP_FAILED) return memory;
    dt__warn("%s; taking %.0f MB of memory", dt_error_text(), (double)bytes / 1e6);
    return NULL;
}

bool dt__is_backed(size_t bytes)
{
    enum { PART = 16 };
    return bytes >= LARGE && (double)bytes >= dt__memory_limit() / PART;
}

dt_status dt__alloc_backed(const char *near_path, size_t count, size_t size, const char *what,
                           void *out_pointer)
{
    struct backing *backing = NULL;
    size_t bytes;
    if (!dt__size_mul(count, size, &bytes) || !dt__size_add(bytes, sizeof *backing, &bytes))
        bytes = SIZE_MAX;
    if (near_path && bytes < SIZE_MAX / 2 && dt__is_backed(bytes))
        backing = backing_map(near_path, bytes);
    if (backing)
        backing->bytes = bytes;
    else
        DT_TRY(dt__alloc(bytes, 1, what, &backing));
    backing++;
    memcpy(out_pointer, &backing, sizeof backing);
    return DT_OK;
}

void dt__free_backed(void *pointer)
{
    if (!pointer) return;
    struct backing *backing = (struct backing *)pointer - 1;
    if (backing->bytes)
        munmap(backing, backing->bytes);
    else
        dt_free(backing);
}

/* Returns the lowest limit of the control group at `path` and the groups above it in its
 * hierarchy. */
static double group_limit(const char *root, const char *path, const char *file)
{
    double least = INFINITY, bytes;
    char name[4096];
    for (size_t length = strlen(path);; length--) {
        if (length == 0 || path[length] == '/' || path[length] == '\0') {
            (void)snprintf(name, sizeof name, "%s%.*s/%s", root, (int)length, path, file);
            FILE *limit = fopen(name, "re");
            if (limit && fscanf(limit, "%lf", &bytes) == 1 && bytes < least) least = bytes;
            if (limit) fclose(limit);
        }
        if (length == 0) return least;
    }
}

double dt__memory_limit(void)
{
    double least = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    struct rlimit space;
    char line[4096];
    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY)
        least = fmin(least, (double)space.rlim_cur);
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups && fgets(line, sizeof line, groups)) { /* such as "4:memory:/a/b" or "0::/a/b" */
        char *kinds = strchr(line, ':'), *path = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!path) continue;
        path += 1;
        path[strcspn(path, "\n")] = '\0';
        if (kinds + 2 == path)
            least = fmin(least, group_limit("/sys/fs/cgroup", path, "memory.max"));
        if (!strncmp(kinds, ":memory:", 8))
            least =
                fmin(least, group_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    }
    if (groups) fclose(groups);
    return least;
}

/* ---- text ------------------------------------------------------------------------------------ */

static dt_status text_reserve(struct dt_text *text, size_t more)
{
    size_t need;
    if (text->status) return text->status;
    if (!dt__size_add(text->length, more, &need) || !dt__size_add(need, 1, &need))
        text->status = dt_fail(DT_EMEMORY, "out of memory for text");
    else
        text->status = dt__grow(&text->data, &text->capacity, need, 1, "text");
    return text->status;
}

dt_status dt__text_append(struct dt_text *text, const void *bytes, size_t length)
{
    DT_TRY(text_reserve(text, length));
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
    return DT_OK;
}

static locale_t point_locale;

static void point_make(void)
{
    point_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t dt__point_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, point_make);
    return uselocale(point_locale);
}

void dt__point_end(locale_t before)
{
    uselocale(before);
}

static dt_status text_add_args(struct dt_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const locale_t before = dt__point_begin();
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0 && !text->status) text->status = dt_fail(DT_EBUG, "cannot format text");
    const dt_status status = text_reserve(text, (size_t)length);
    if (!status) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    dt__point_end(before);
    va_end(again);
    return status;
}

dt_status dt__text_add(struct dt_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dt_status status = text_add_args(text, format, args);
    va_end(args);
    return status;
}

void dt__text_clear(struct dt_text *text)
{
    text->length = 0;
    text->status = DT_OK;
}

dt_status dt__text_end(struct dt_text *text, char **out)
{
    const struct dt_text ended = *text;
    *text = (struct dt_text){0};
    if (ended.status)
        dt_free(ended.data);
    else
        *out = ended.data;
    return ended.status;
}

void dt__text_free(struct dt_text *text)
{
    dt_free(text->data);
    *text = (struct dt_text){0};
}

dt_status dt__strdup(const char *text, char **out)
{
    return dt__format(out, "%s", text);
}

dt_status dt__format(char **out, const char *format, ...)
{
    struct dt_text text = {0};
    va_list args;
    va_start(args, format);
    (void)text_add_args(&text, format, args);
    va_end(args);
    return dt__text_end(&text, out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

double dt__real_read(const char *text, char **end)
{
    const locale_t before = dt__point_begin();
    const double value = strtod(text, end);
    dt__point_end(before);
    return value;
}

/* 15 digits are enough for any number that has at most 15; 17 digits always read back. For a float
 * the limits are 6 and 9. */
static const char *real_text(double value, bool is_float, char buffer[DT_REAL_TEXT])
{
    const locale_t before = dt__point_begin();
    const int most = is_float ? 9 : 17;
    for (int digits = is_float ? 6 : 15; digits <= most; digits++) {
        if (snprintf(buffer, DT_REAL_TEXT, "%.*g", digits, value) >= DT_REAL_TEXT) continue;
        if (is_float ? strtof(buffer, NULL) == (float)value : strtod(buffer, NULL) == value) break;
    }
    dt__point_end(before);
    return buffer;
}

const char *dt__real_text(double value, char buffer[DT_REAL_TEXT])
{
    return real_text(value, false, buffer);
}

const char *dt__float_text(float value, char buffer[DT_REAL_TEXT])
{
    return real_text((double)value, true, buffer);
}
