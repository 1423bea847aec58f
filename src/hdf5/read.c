/* The program's side of reading. The table that a reader process sends is checked entry by entry
 * before it is used, because the process has read a file from outside. */
#include "hdf5/read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "hdf5/guard.h"

struct dt__h5_file {
    char *path;
    int fd;
    int socket;    /* socket to the reader process; -1: no process */
    uint64_t size; /* bytes of the file */
    unsigned char *table;
    size_t table_bytes;
    struct dt__h5_item *items; /* (count) in the order of the table */
    size_t count, capacity;
    const struct dt__h5_item **sorted; /* (count) the items, sorted by kind and path */
};

static const unsigned char TYPE_SIZES[] = {
    [DT__H5_U8] = 1,  [DT__H5_I8] = 1,  [DT__H5_U16] = 2, [DT__H5_I16] = 2,
    [DT__H5_U32] = 4, [DT__H5_I32] = 4, [DT__H5_U64] = 8, [DT__H5_I64] = 8,
    [DT__H5_F16] = 2, [DT__H5_F32] = 4, [DT__H5_F64] = 8, [DT__H5_TEXT] = 1};

size_t dt__h5_type_size(enum dt__h5_type type)
{
    return (unsigned)type <= DT__H5_TEXT ? TYPE_SIZES[type] : 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

static bool texts_have_nuls(const char *texts, size_t length, uint64_t count)
{
    uint64_t found = 0;
    for (size_t i = 0; i < length; i++)
        found += texts[i] == '\0';
    return found == count && (length == 0 || texts[length - 1] == '\0');
}

/* Returns true if the data of an item have the form of its kind: texts, a number, or nothing. */
static bool item_data_fits(const struct dt__h5_item *item)
{
    const bool array = item->kind == DT__H5_ARRAY, attribute = item->kind == DT__H5_ATTRIBUTE;
    if ((array && (item->rank < 1 || !item->count)) || (attribute && item->rank != 0)) return false;
    if (item->kind == DT__H5_REFUSED || (item->kind != DT__H5_GROUP && item->type == DT__H5_TEXT))
        return texts_have_nuls(item->data, item->length, array ? item->count : 1);
    return item->length == (attribute ? dt__h5_type_size(item->type) : 0);
}

/* Parses the table's item at `at`, with `left` bytes left; returns false if it is not valid. */
static bool table_item(const struct dt__h5_file *file, const unsigned char *at, size_t left,
                       struct dt__h5_item *out, size_t *out_length)
{
    struct dt__h5_item item;
    size_t count = 1, bytes = 0;
    if (left < sizeof item) return false;
    memcpy(&item, at, sizeof item);
    item.path = (const char *)at + sizeof item;
    const unsigned char *data = memchr(item.path, '\0', left - sizeof item);
    if (!data || item.length > left - (size_t)(++data - at) ||
        (unsigned)item.kind > DT__H5_REFUSED || (unsigned)item.type > DT__H5_TEXT ||
        item.rank < 0 || item.rank > DT__H5_MAX_RANK)
        return false;
    item.data = data;
    item.size = dt__h5_type_size(item.type);
    for (int i = 0; i < item.rank; i++)
        if (!dt__size_mul(count, item.dims[i], &count)) return false;
    if (item.kind == DT__H5_ARRAY &&
        (count != item.count || !dt__size_mul(count, item.size, &bytes) ||
         (item.offset != UINT64_MAX &&
          (item.offset > file->size || bytes > file->size - item.offset))))
        return false;
    *out = item;
    *out_length = (size_t)(data - at) + item.length;
    return item_data_fits(out);
}

/* Orders by kind and path, which identify an item. */
static int item_order(const void *a, const void *b)
{
    const struct dt__h5_item *x = *(const struct dt__h5_item *const *)a,
                             *y = *(const struct dt__h5_item *const *)b;
    if (x->kind != y->kind) return x->kind > y->kind ? 1 : -1;
    return strcmp(x->path, y->path);
}

/* Checks the whole table and converts it to items. */
static dt_status table_check(struct dt__h5_file *file)
{
    for (size_t at = 0, part; at < file->table_bytes; at += part) {
        DT_TRY(dt__grow(&file->items, &file->capacity, file->count + 1, sizeof *file->items,
                        "a table of contents"));
        if (!table_item(file, file->table + at, file->table_bytes - at, &file->items[file->count],
                        &part))
            return dt_fail(DT_EFORMAT, "%s: malformed: its contents cannot be listed", file->path);
        file->count++;
    }
    DT_TRY(dt__alloc(file->count, sizeof *file->sorted, "a table of contents", &file->sorted));
    for (size_t i = 0; i < file->count; i++)
        file->sorted[i] = &file->items[i];
    qsort(file->sorted, file->count, sizeof *file->sorted, item_order);
    return DT_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void reader_end(struct dt__h5_file *file)
{
    if (file->socket >= 0) close(file->socket);
    file->socket = -1;
}

/* Sends a request to the reader process and receives the answer's `length` bytes in `out`; if `out`
 * is NULL, requests the table. Starts a process if there is none, and replaces one that was
 * killed. */
static dt_status file_ask(struct dt__h5_file *file, struct dt__h5_request *request, void *out,
                          size_t length)
{
    struct dt__h5_answer answer;
    for (int deaths = 0; deaths < 2; deaths++) {
        if (file->socket < 0) DT_TRY(dt__h5_guard_open(file->fd, &file->socket));
        /* a reader that crashed takes no request, but may have sent its answer */
        if (!dt__h5_guard_pass(file->socket, request, sizeof *request, true))
            shutdown(file->socket, SHUT_WR);
        bool lives = dt__h5_guard_pass(file->socket, &answer, sizeof answer, false);
        if (lives && answer.status) {
            answer.message[DT_ERROR_MAX - 1] = '\0';
            dt_fail((dt_status)answer.status, "%s", answer.message);
            if (out)
                dt_fail_prefix((dt_status)answer.status, "%s: ", file->items[request->item].path);
            return dt_fail_prefix((dt_status)answer.status, "%s: ", file->path);
        }
        if (lives && !out) {
            dt_free(file->table);
            file->table = NULL;
            DT_TRY(dt__alloc(answer.length, 1, "a table of contents", &file->table));
            length = file->table_bytes = answer.length;
        }
        if (lives && answer.length == length &&
            dt__h5_guard_pass(file->socket, out ? out : file->table, length, false))
            return DT_OK;
        reader_end(file);
    }
    return dt_fail(DT_EIO,
                   "%s: the process that reads it was killed, twice: is there too little memory?",
                   file->path);
}

dt_status dt__h5_open(const char *path, struct dt__h5_file **out)
{
    struct dt__h5_file *file;
    struct dt__h5_request whole = {.item = DT__H5_TABLE};
    dt_status status;
    DT_TRY(dt__alloc(1, sizeof *file, "an HDF5 file", &file));
    file->fd = file->socket = -1;
    DT_GUARD(dt__strdup(path, &file->path));
    DT_GUARD(dt__file_open(path, &file->fd, &file->size));
    DT_GUARD(file_ask(file, &whole, NULL, 0));
    reader_end(file); /* most files need no reader after this */
    DT_GUARD(table_check(file));
    *out = file;
    return DT_OK;
done:
    dt__h5_close(file);
    return status;
}

void dt__h5_close(struct dt__h5_file *file)
{
    if (!file) return;
    reader_end(file);
    if (file->fd >= 0) close(file->fd);
    dt_free(file->sorted);
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
    const struct dt__h5_item wanted = {.kind = kind, .path = path}, *item = &wanted;
    const struct dt__h5_item **at =
        bsearch(&item, file->sorted, file->count, sizeof *file->sorted, item_order);
    return at ? *at : NULL;
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

bool dt__h5_has_array(const struct dt__h5_file *file, const char *path)
{
    return dt__h5_find(file, DT__H5_ARRAY, path) || dt__h5_find(file, DT__H5_REFUSED, path);
}

/* ---- reading -------------------------------------------------------------------------------- */

#define WIDEN(name, type)                                                                          \
    case name: {                                                                                   \
        type value;                                                                                \
        memcpy(&value, from + i * sizeof value, sizeof value);                                     \
        wide = (double)value;                                                                      \
    } break;

/* Converts numbers to doubles. `from` and `out` may be the same memory if both end at the same
 * byte. */
static void values_widen(enum dt__h5_type type, const char *from, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++) {
        double wide = 0;
        switch (type) {
            WIDEN(DT__H5_U8, uint8_t)
            WIDEN(DT__H5_I8, int8_t)
            WIDEN(DT__H5_U16, uint16_t)
            WIDEN(DT__H5_I16, int16_t)
            WIDEN(DT__H5_U32, uint32_t)
            WIDEN(DT__H5_I32, int32_t)
            WIDEN(DT__H5_U64, uint64_t)
            WIDEN(DT__H5_I64, int64_t)
            WIDEN(DT__H5_F32, float)
        default:
            break;
        }
        memcpy(&out[i], &wide, sizeof wide);
    }
}

dt_status dt__h5_read(struct dt__h5_file *file, const struct dt__h5_item *array, uint64_t first,
                      uint64_t rows, enum dt__h5_type as, void *out)
{
    if (first > array->dims[0] || rows > array->dims[0] - first || array->type == DT__H5_TEXT ||
        as == DT__H5_TEXT || as == DT__H5_F16)
        return dt_fail(DT_EBUG, "%s: %s: rows that are not there", file->path, array->path);
    const size_t items = (size_t)(array->count / array->dims[0]),
                 row = items * dt__h5_type_size(as);
    if (array->type == as && array->offset != UINT64_MAX)
        return dt__fd_read(file->fd, file->path, out, (size_t)rows * row,
                           array->offset + first * row);
    if (as == DT__H5_F64 && array->offset != UINT64_MAX) {
        const size_t before = (size_t)rows * items * (sizeof(double) - array->size);
        char *from = (char *)out + before; /* at the end of out: a double never overwrites a number
                                            * that is still to be converted */
        DT_TRY(dt__fd_read(file->fd, file->path, from, (size_t)rows * items * array->size,
                           array->offset + first * items * array->size));
        values_widen(array->type, from, (size_t)rows * items, out);
        return DT_OK;
    }
    /* A reader process reads the rows, in ranges that need little memory. */
    uint64_t most = row < DT__H5_READ_BYTES ? DT__H5_READ_BYTES / row : 1;
    char *to = out;
    while (rows > 0) {
        struct dt__h5_request request = {.item = array - file->items,
                                         .first = first,
                                         .rows = rows < most ? rows : most,
                                         .type = (int)as};
        const size_t length = (size_t)request.rows * row;
        DT_TRY(file_ask(file, &request, to, length));
        to += length;
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
    DT_TRY(dt__alloc((size_t)array->count, sizeof *names, "names", &names));
    dt_status status = DT_OK;
    for (const char *at = array->data; count < array->count && !status; at += strlen(at) + 1)
        if ((status = dt__strdup(at, &names[count])) == DT_OK) count++;
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

const char *dt__h5_numbered(char out[DT__H5_PATH], const char *path, int number)
{
    int length = snprintf(out, DT__H5_PATH, "%s", path);
    if (number > 0) snprintf(out + length, (size_t)(DT__H5_PATH - length), "_%d", number);
    return out;
}

dt_status dt__h5_text(const struct dt__h5_file *file, const char *path, char **out)
{
    char name[DT__H5_PATH];
    const struct dt__h5_item *item;
    struct dt_text text = {0};
    for (int number = 0;; number++) {
        item = dt__h5_find(file, DT__H5_ATTRIBUTE, dt__h5_numbered(name, path, number));
        if (!item || item->type != DT__H5_TEXT) return dt__text_end(&text, out);
        dt__text_append(&text, item->data, item->length - 1);
    }
}
