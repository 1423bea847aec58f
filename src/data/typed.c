/* Typed rows: the file, and the reader of formats that are text. */
#include "data/typed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/reader.h"
#include "data/text.h"

static const char NAME[] = "the temporary file of typed rows ($TMPDIR)";

/* ---- the file ------------------------------------------------------------------------------- */

static dt_status typed_create(struct dt__typed *typed)
{
    typed->bytes = 0;
    return dt_fd_temporary(dt_temporary_dir(), &typed->fd);
}

dt_status dt__typed_add(struct dt__typed *typed, const void *bytes, size_t length)
{
    if (!length) return DT_OK; /* a row of no entries */
    if (typed->fd < 0) {
        DT_TRY(typed_create(typed));
        if (getrandom(typed->id, sizeof typed->id, 0) != sizeof typed->id)
            return dt_fail(DT_EIO, "%s: no random bytes", NAME);
        DT_TRY(dt__typed_add(typed, typed->id, sizeof typed->id));
    }
    DT_TRY(dt_grow(&typed->waiting, &typed->room, typed->length + length, 1, "typed rows"));
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
    DT_TRY(dt_fd_write_at(typed->fd, NAME, typed->waiting, typed->length, typed->bytes));
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

struct dt_place dt_source_place(const struct dt_source *source)
{
    const struct dt__typed *typed = &source->typed;
    return (struct dt_place){getpid(), typed->fd, {typed->id[0], typed->id[1]}, typed->bytes};
}

bool dt_source_is_here(const struct dt_source *source)
{
    return source->typed.fd >= 0 || !source->typed.bytes;
}

bool dt_source_attach(struct dt_source *source, const struct dt_place *place)
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

dt_status dt_source_copy_out(const struct dt_source *source, uint64_t offset, void *bytes,
                             size_t length)
{
    return dt_fd_read(source->typed.fd, NAME, bytes, length, offset);
}

dt_status dt_source_copy_in(struct dt_source *source, const void *bytes, size_t length)
{
    struct dt__typed *typed = &source->typed;
    if (typed->fd < 0) {
        if (length < sizeof typed->id) return dt_fail(DT_EBUG, "%s: too short a copy", NAME);
        DT_TRY(typed_create(typed));
        memcpy(typed->id, bytes, sizeof typed->id);
    }
    DT_TRY(dt_fd_write_at(typed->fd, NAME, bytes, length, typed->bytes));
    typed->bytes += length;
    return DT_OK;
}

/* ---- reading rows --------------------------------------------------------------------------- */

/* The rows from one mark of a file to the next are read at once. */
struct typed_reader {
    const struct dt_source *source;
    const struct dt__file *file;
    size_t mark;          /* which rows are read */
    unsigned char *bytes; /* of them */
    size_t room, at;
    uint64_t next; /* the row at bytes + at; UINT64_MAX: none */
    struct dt__row row;
};

dt_status dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                void **out)
{
    struct typed_reader *reader;
    if (source->typed.fd < 0)
        return dt_fail(DT_EBUG, "%s: its rows are not on this host", file->path);
    DT_TRY(dt_alloc(1, sizeof *reader, "reader", &reader));
    *reader = (struct typed_reader){.source = source, .file = file, .next = UINT64_MAX};
    *out = reader;
    return DT_OK;
}

void dt__typed_reader_close(void *arg)
{
    struct typed_reader *reader = arg;
    dt_free(reader->bytes);
    dt__row_free(&reader->row);
    dt_free(reader);
}

static dt_status reader_enter(struct typed_reader *reader, size_t mark)
{
    const struct dt__mark *from = &reader->file->marks[mark];
    const size_t length = (size_t)(from[1].offset - from->offset);
    reader->next = UINT64_MAX; /* where a failure leaves it */
    DT_TRY(dt_grow(&reader->bytes, &reader->room, length, 1, "typed rows"));
    DT_TRY(dt_fd_read(reader->source->typed.fd, NAME, reader->bytes, length, from->offset));
    reader->mark = mark;
    reader->at = 0;
    reader->next = from->row;
    return DT_OK;
}

/* A row as the source has it: codes are classes and features from here on. */
static dt_status reader_row(struct typed_reader *reader, const struct dt__typed_row *typed,
                            const uint32_t *words)
{
    const struct dt_source *source = reader->source;
    struct dt__row *row = &reader->row;
    const int32_t code = typed->y.label;
    DT_TRY(dt__formats[reader->file->format]->grammar->row(&source->columns, words, typed->count,
                                                           row));
    row->weight = typed->weight;
    if (source->layout.targets)
        row->y.target = typed->y.target;
    else /* the labels -1 and 1 are classes 0 and 1 */
        row->y.label = code < 0 ? 0 : source->label_class ? source->label_class[code] : code;
    const size_t more = source->layout.targets > 1 ? (size_t)source->layout.targets - 1 : 0;
    row->more = more ? words + typed->count - more : NULL;
    return DT_OK;
}

dt_status dt__typed_reader_read(void *arg, uint64_t row, size_t count, struct dt__block *out)
{
    struct typed_reader *reader = arg;
    const struct dt__mark *marks = reader->file->marks;
    const size_t mark = dt__find_last(&marks->row, reader->file->nmarks, sizeof *marks, row);
    if (row < reader->next || mark != reader->mark) DT_TRY(reader_enter(reader, mark));
    for (size_t length; reader->next < row + count; reader->next++, reader->at += length) {
        struct dt__typed_row typed;
        if (reader->next == marks[reader->mark + 1].row)
            DT_TRY(reader_enter(reader, reader->mark + 1));
        const unsigned char *bytes = reader->bytes + reader->at;
        memcpy(&typed, bytes, sizeof typed);
        length = sizeof typed + typed.count * sizeof(uint32_t);
        if (reader->next < row) continue;
        DT_TRY(reader_row(reader, &typed, (const uint32_t *)(const void *)(bytes + sizeof typed)));
        DT_TRY(dt__block_add_row(&reader->source->layout, out, &reader->row));
    }
    return DT_OK;
}
