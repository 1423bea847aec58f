/* The file of typed rows: writing it, and opening it in other processes. */
#include "data/typed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/source.h"

static const char NAME[] = "the temporary file of typed rows ($TMPDIR)";

/* ---- the file ------------------------------------------------------------------------------- */

static dt_status typed_create(struct dt__typed *typed)
{
    typed->bytes = 0;
    return dt__fd_temporary(dt__temporary_dir(), &typed->fd);
}

dt_status dt__typed_add(struct dt__typed *typed, const void *bytes, size_t length)
{
    if (!length) return DT_OK; /* a LIBSVM row without entries */
    if (typed->fd < 0) {
        DT_TRY(typed_create(typed));
        if (getrandom(typed->id, sizeof typed->id, 0) != sizeof typed->id)
            return dt_fail(DT_EIO, "%s: no random bytes", NAME);
        DT_TRY(dt__typed_add(typed, typed->id, sizeof typed->id));
    }
    DT_TRY(dt__grow(&typed->waiting, &typed->capacity, typed->length + length, 1, "typed rows"));
    memcpy(typed->waiting + typed->length, bytes, length);
    typed->length += length;
    return typed->length < DT__TYPED_BYTES ? DT_OK : dt__typed_flush(typed);
}

uint64_t dt__typed_end(const struct dt__typed *typed)
{
    return typed->fd < 0 ? sizeof typed->id : typed->bytes + typed->length;
}

dt_status dt__typed_flush(struct dt__typed *typed)
{
    if (!typed->length) return DT_OK;
    DT_TRY(dt__fd_write_at(typed->fd, NAME, typed->waiting, typed->length, typed->bytes));
    typed->bytes += typed->length;
    typed->length = 0;
    return DT_OK;
}

void dt__typed_close(struct dt__typed *typed)
{
    if (typed->fd >= 0) close(typed->fd);
    dt_free(typed->waiting);
    *typed = (struct dt__typed){.fd = -1};
}

/* ---- other processes ------------------------------------------------------------------------- */

struct dt_place dt__source_place(const struct dt_source *source)
{
    const struct dt__typed *typed = &source->typed;
    return (struct dt_place){getpid(), typed->fd, {typed->id[0], typed->id[1]}, typed->bytes};
}

bool dt__source_is_here(const struct dt_source *source)
{
    return source->typed.fd >= 0 || !source->typed.bytes;
}

bool dt__source_attach(struct dt_source *source, const struct dt_place *place)
{
    struct dt__typed typed = {.bytes = place->bytes};
    char path[64];
    if (place->pid == getpid()) {
        typed.fd = fcntl(place->fd, F_DUPFD_CLOEXEC, 0);
    } else {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", place->pid, place->fd);
        typed.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (typed.fd >= 0 && pread(typed.fd, typed.id, sizeof typed.id, 0) == sizeof typed.id &&
        !memcmp(typed.id, place->id, sizeof typed.id)) {
        dt__typed_close(&source->typed);
        source->typed = typed;
        return true;
    }
    if (typed.fd >= 0) close(typed.fd);
    return false;
}

dt_status dt__source_copy_out(const struct dt_source *source, uint64_t offset, void *bytes,
                              size_t length)
{
    return dt__fd_read(source->typed.fd, NAME, bytes, length, offset);
}

dt_status dt__source_copy_in(struct dt_source *source, const void *bytes, size_t length)
{
    struct dt__typed *typed = &source->typed;
    if (typed->fd < 0) {
        if (length < sizeof typed->id) return dt_fail(DT_EBUG, "%s: too short a copy", NAME);
        DT_TRY(typed_create(typed));
        memcpy(typed->id, bytes, sizeof typed->id);
    }
    DT_TRY(dt__fd_write_at(typed->fd, NAME, bytes, length, typed->bytes));
    typed->bytes += length;
    return DT_OK;
}
