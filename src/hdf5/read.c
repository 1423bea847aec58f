/* The program's side of reading: the table that the child sends is checked entry by entry before it
 * is believed, for the child has read a stranger's file. */
#include "hdf5/read.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "hdf5/guard.h"

struct dt__h5_file {
    char *path;
    int fd, memory, socket;
    uint64_t size; /* of the file */
    unsigned char *table;
    struct dt__h5_item *items;
    size_t count, capacity;
};

static const unsigned char TYPE_SIZES[] = {
    [DT__H5_U8] = 1,  [DT__H5_I8] = 1,  [DT__H5_U16] = 2, [DT__H5_I16] = 2,
    [DT__H5_U32] = 4, [DT__H5_I32] = 4, [DT__H5_U64] = 8, [DT__H5_I64] = 8,
    [DT__H5_F16] = 2, [DT__H5_F32] = 4, [DT__H5_F64] = 8, [DT__H5_TEXT] = 1};

size_t dt__h5_type_size(enum dt__h5_type type)
{
    return (unsigned)type <= DT__H5_TEXT ? TYPE_SIZES[type] : 0;
}

static dt_status file_fail_dead(const struct dt__h5_file *file)
{
    return dt_fail(DT_EFORMAT, "%s: malformed: HDF5's library crashes on it, or runs out of memory",
                   file->path);
}

/* ---- the table ------------------------------------------------------------------------------ */

static bool texts_have_nuls(const char *texts, size_t length, uint64_t count)
{
    uint64_t found = 0;
    for (size_t i = 0; i < length; i++)
        found += texts[i] == '\0';
    return found == count && (length == 0 || texts[length - 1] == '\0');
}

/* Whether the record's data is what its kind says. */
static bool item_data_fits(const struct dt__h5_item *item)
{
    switch (item->kind) {
    case DT__H5_GROUP:
        return item->length == 0;
    case DT__H5_ATTRIBUTE:
        return item->rank == 0 &&
               (item->type == DT__H5_TEXT ? texts_have_nuls(item->data, item->length, 1)
                                          : item->length == dt__h5_type_size(item->type));
    case DT__H5_ARRAY:
        return item->rank >= 1 && item->count > 0 &&
               (item->type == DT__H5_TEXT ? texts_have_nuls(item->data, item->length, item->count)
                                          : item->length == 0);
    default:
        return texts_have_nuls(item->data, item->length, 1);
    }
}

/* The record at `at`; false if it is not one. */
static bool table_item(const struct dt__h5_file *file, const unsigned char *at, size_t left,
                       struct dt__h5_item *out, size_t *out_length)
{
    struct dt__h5_record record;
    size_t count = 1, bytes = 0;
    if (left < sizeof record) return false;
    memcpy(&record, at, sizeof record);
    size_t room = record.length;
    if (room > left || room % 8 || room < sizeof record || record.path == 0 ||
        record.path > room - sizeof record || record.data > room - sizeof record - record.path ||
        (uint32_t)record.kind > DT__H5_REFUSED || (uint32_t)record.type > DT__H5_TEXT ||
        record.rank < 0 || record.rank > DT__H5_MAX_RANK)
        return false;
    const size_t size = dt__h5_type_size((enum dt__h5_type)record.type);
    for (int i = 0; i < record.rank; i++)
        if (!dt_size_mul(count, record.dims[i], &count)) return false;
    if (record.kind == DT__H5_ARRAY &&
        (count != record.count || !dt_size_mul(count, size, &bytes) ||
         (record.offset != UINT64_MAX &&
          (record.offset > file->size || bytes > file->size - record.offset))))
        return false;
    const char *path = (const char *)at + sizeof record;
    if (memchr(path, '\0', record.path) != path + record.path - 1) return false;
    *out = (struct dt__h5_item){.kind = (enum dt__h5_kind)record.kind,
                                .type = (enum dt__h5_type)record.type,
                                .path = path,
                                .rank = record.rank,
                                .count = record.count,
                                .size = size,
                                .data = path + record.path,
                                .length = record.data,
                                .offset = record.offset};
    memcpy(out->dims, record.dims, sizeof out->dims);
    *out_length = room;
    return item_data_fits(out);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Asks the child, which is started if there is none; request NULL: for the table alone. Another one
 * takes the place of one that dies: killed, it says nothing of the file. The file is what two die
 * of. */
static dt_status file_ask(struct dt__h5_file *file, const struct dt__h5_request *request,
                          struct dt__h5_answer *answer)
{
    for (int deaths = 0; deaths < 2; deaths++) {
        bool lives = true;
        answer->status = DT_OK;
        if (file->socket < 0) {
            DT_TRY(dt__h5_guard_open(file->fd, file->memory, request != NULL, &file->socket));
            lives = dt__h5_guard_ask(file->socket, NULL, answer);
        }
        if (lives && request && !answer->status)
            lives = dt__h5_guard_ask(file->socket, request, answer);
        if (lives && answer->stays) return DT_OK;
        close(file->socket);
        file->socket = -1;
        if (lives) return DT_OK;
    }
    return file_fail_dead(file);
}

dt_status dt__h5_open_table(const char *path, const void *table, size_t length,
                            struct dt__h5_file **out)
{
    struct dt__h5_file *file;
    struct dt__h5_answer answer = {.length = length};
    dt_status status;
    DT_TRY(dt_alloc(1, sizeof *file, "an HDF5 file", &file));
    file->fd = file->memory = file->socket = -1;
    DT_GUARD(dt_strdup(path, &file->path));
    DT_GUARD(dt_file_open(path, &file->fd, &file->size));
    if ((file->memory = memfd_create("dtrain-hdf5", MFD_CLOEXEC)) < 0)
        DT_GUARD(
            dt_fail(DT_EMEMORY, "%s: no memory file to read it by: %s", path, strerror(errno)));
    if (!table) DT_GUARD(file_ask(file, NULL, &answer));
    if (answer.status)
        DT_GUARD(dt_fail((dt_status)answer.status, "%s: %s", path, answer.message));
    DT_GUARD(dt_alloc(answer.length, 1, "a table of contents", &file->table));
    if (table)
        memcpy(file->table, table, length);
    else
        DT_GUARD(dt_fd_read(file->memory, path, file->table, answer.length, 0));
    for (size_t at = 0, part; at < answer.length; at += part) {
        DT_GUARD(dt_grow(&file->items, &file->capacity, file->count + 1, sizeof *file->items,
                         "a table of contents"));
        if (!table_item(file, file->table + at, answer.length - at, &file->items[file->count],
                        &part))
            DT_GUARD(file_fail_dead(file));
        file->count++;
    }
    *out = file;
    return DT_OK;
done:
    dt__h5_close(file);
    return status;
}

dt_status dt__h5_open(const char *path, struct dt__h5_file **out)
{
    return dt__h5_open_table(path, NULL, 0, out);
}

void dt__h5_close(struct dt__h5_file *file)
{
    if (!file) return;
    const int fds[] = {file->socket, file->memory, file->fd};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0) close(fds[i]);
    dt_free(file->items);
    dt_free(file->table);
    dt_free(file->path);
    dt_free(file);
}

/* ---- finding -------------------------------------------------------------------------------- */

const struct dt__h5_item *dt__h5_item_at(const struct dt__h5_file *file, size_t index)
{
    return index < file->count ? &file->items[index] : NULL;
}

const struct dt__h5_item *dt__h5_find(const struct dt__h5_file *file, enum dt__h5_kind kind,
                                      const char *path)
{
    for (size_t i = 0; i < file->count; i++)
        if (file->items[i].kind == kind && !strcmp(file->items[i].path, path))
            return &file->items[i];
    return NULL;
}

dt_status dt__h5_array(const struct dt__h5_file *file, const char *path,
                       const struct dt__h5_item **out)
{
    const struct dt__h5_item *refused = dt__h5_find(file, DT__H5_REFUSED, path);
    *out = dt__h5_find(file, DT__H5_ARRAY, path);
    if (*out) return DT_OK;
    if (refused) return dt_fail(DT_EFORMAT, "%s %s", path, (const char *)refused->data);
    if (dt__h5_find(file, DT__H5_GROUP, path))
        return dt_fail(DT_EFORMAT, "%s is not a data set", path);
    return dt_fail(DT_EFORMAT, "%s is missing", path);
}

/* ---- reading -------------------------------------------------------------------------------- */

dt_status dt__h5_read(struct dt__h5_file *file, const struct dt__h5_item *array, uint64_t first,
                      uint64_t rows, enum dt__h5_type as, void *out)
{
    if (first > array->dims[0] || rows > array->dims[0] - first || array->type == DT__H5_TEXT ||
        as == DT__H5_TEXT || as == DT__H5_F16)
        return dt_fail(DT_EBUG, "%s: %s: rows that are not there", file->path, array->path);
    const size_t items = (size_t)(array->count / array->dims[0]),
                 row = items * dt__h5_type_size(as);
    if (array->type == as && array->offset != UINT64_MAX)
        return dt_fd_read(file->fd, file->path, out, (size_t)rows * row,
                          array->offset + first * row);
    /* By the child, in pieces that do not ask for much memory. */
    uint64_t most = row < DT__H5_READ_BYTES ? DT__H5_READ_BYTES / row : 1;
    struct dt__h5_answer answer;
    char *to = out;
    while (rows > 0) {
        struct dt__h5_request request = {.item = (uint64_t)(array - file->items),
                                         .first = first,
                                         .rows = rows < most ? rows : most,
                                         .type = (int)as};
        DT_TRY(file_ask(file, &request, &answer));
        if (answer.status)
            return dt_fail((dt_status)answer.status, "%s: %s: %s", file->path, array->path,
                           answer.message);
        if (answer.length != request.rows * row) return file_fail_dead(file);
        DT_TRY(dt_fd_read(file->memory, file->path, to, answer.length, 0));
        to += answer.length;
        first += request.rows;
        rows -= request.rows;
    }
    return DT_OK;
}

dt_status dt__h5_names(const struct dt__h5_file *file, const char *path, char ***out,
                       size_t *out_count)
{
    const struct dt__h5_item *array;
    char **names;
    size_t count = 0;
    DT_TRY(dt__h5_array(file, path, &array));
    if (array->type != DT__H5_TEXT) return dt_fail(DT_EFORMAT, "%s is not a list of names", path);
    DT_TRY(dt_alloc((size_t)array->count, sizeof *names, "names", &names));
    dt_status status = DT_OK;
    for (const char *at = array->data; count < array->count && !status; at += strlen(at) + 1)
        if ((status = dt_strdup(at, &names[count])) == DT_OK) count++;
    if (!status) {
        *out = names;
        *out_count = count;
        return DT_OK;
    }
    while (count > 0)
        dt_free(names[--count]);
    dt_free(names);
    return status;
}
