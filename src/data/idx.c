/* IDX files: a header with the dimensions, then the numbers, big-endian. The survey decompresses
 * packed files. Source: Y. LeCun, "The MNIST database", section "the IDX file format". */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/format.h"
#include "data/learned.h"
#include "text/input.h"

enum { U8 = 0x08, S8 = 0x09, S16 = 0x0B, S32 = 0x0C, F32 = 0x0D, F64 = 0x0E };
enum { MAX_DIMS = 8, HEAD_BYTES = 4 + 4 * MAX_DIMS };
_Static_assert(DT__IDX_BYTES % 8 == 0, "whole numbers of the widest type");

static const unsigned char ITEM_SIZE[] = {
    [U8] = 1, [S8] = 1, [S16] = 2, [S32] = 4, [F32] = 4, [F64] = 8};

/* Returns the size in bytes of an item of a type; 0: there is no such type. */
static size_t item_size(int type)
{
    return type >= 0 && (size_t)type < sizeof ITEM_SIZE ? ITEM_SIZE[type] : 0;
}

static bool idx_is(const char *suffix, const unsigned char *head, size_t length)
{
    (void)suffix;
    return length > 4 && !head[0] && !head[1] && item_size(head[2]) && head[3] &&
           head[3] <= MAX_DIMS;
}

/* The header of a file, and what follows from it. */
struct head {
    int type, ndims;
    uint64_t dims[MAX_DIMS];
    uint64_t rows, start, bytes; /* start: size of the header; bytes: size of the whole file */
    size_t items;                /* in a row */
};

/* The numbers of a file, open for reading. */
struct array {
    const char *path;
    struct dt__idx_array numbers;
    int fd; /* -1: not open */
};

/* ---- header --------------------------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static dt_status head_read(const char *path, struct head *out)
{
    unsigned char bytes[HEAD_BYTES] = {0};
    size_t length, row_bytes, total;
    bool fits = true;
    DT_TRY(dt__packed_head(path, bytes, sizeof bytes, &length));
    struct head head = {.type = bytes[2], .ndims = bytes[3], .items = 1};
    const size_t width = item_size(head.type);
    if (length >= 4 && (bytes[0] || bytes[1] || !width || !head.ndims || head.ndims > MAX_DIMS))
        return dt_fail(DT_EFORMAT, "%s: not an IDX file: the first bytes are %02x %02x %02x %02x",
                       path, bytes[0], bytes[1], bytes[2], bytes[3]);
    head.start = 4 + 4 * (uint64_t)head.ndims;
    if (length < 4 || length < head.start)
        return dt_fail(DT_EFORMAT, "%s: the file is truncated", path);
    for (int i = 0; i < head.ndims; i++) {
        head.dims[i] = big_endian(bytes + 4 + 4 * i);
        fits &= i == 0 || dt__size_mul(head.items, head.dims[i], &head.items);
    }
    head.rows = head.dims[0];
    fits = fits && dt__size_mul(head.items, width, &row_bytes) &&
           dt__size_mul(row_bytes, head.rows, &total);
    if (!fits) return dt_fail(DT_EFORMAT, "%s: the dimensions in the header are too large", path);
    if (!total)
        return dt_fail(DT_EFORMAT, "%s: according to its header, the file has no numbers", path);
    head.bytes = head.start + total;
    *out = head;
    return DT_OK;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Decompresses a packed file into the file of typed rows. Checks that it is as long as its header
 * says. */
static dt_status head_unpack(const struct head *head, const char *path, struct dt__packed *packed,
                             struct dt__typed *typed)
{
    unsigned char bytes[DT__UNPACK_BYTES];
    size_t got;
    for (uint64_t left = head->bytes; left; left -= got) {
        DT_TRY(dt__stop_check());
        DT_TRY(dt__packed_read(packed, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes,
                               &got));
        if (!got) return dt_fail(DT_EFORMAT, "%s: the file is truncated", path);
        DT_TRY(dt__typed_add(typed, bytes, got));
    }
    DT_TRY(dt__packed_read(packed, bytes, 1, &got));
    if (got) return dt_fail(DT_EFORMAT, "%s: the file has more data than its header says", path);
    return dt__typed_flush(typed);
}

/* Reads a file's header, and checks that the file is as long as the header says. Decompresses a
 * packed file. */
static dt_status numbers_survey(const char *path, struct dt_source *source, struct head *head,
                                struct dt__idx_array *out)
{
    struct dt__packed *packed;
    struct stat info;
    DT_TRY(head_read(path, head));
    DT_TRY(dt__packed_open(path, &packed));
    const bool unpacked = dt__packed_is(packed);
    *out = (struct dt__idx_array){unpacked, head->start, head->type, head->items};
    dt_status status = DT_OK;
    if (unpacked) {
        out->offset += dt__typed_end(&source->typed);
        status = head_unpack(head, path, packed, &source->typed);
    } else if (stat(path, &info)) {
        status = dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    } else if ((uint64_t)info.st_size != head->bytes) {
        status = dt_fail(DT_EFORMAT,
                         "%s: expected %" PRIu64 " bytes, by the header, but the file has %" PRIu64,
                         path, head->bytes, (uint64_t)info.st_size);
    }
    dt__packed_close(packed);
    return status;
}

static dt_status array_open(const struct dt_source *source, const char *path,
                            const struct dt__idx_array *numbers, struct array *out)
{
    uint64_t size;
    *out = (struct array){path, *numbers, numbers->unpacked ? source->typed.fd : -1};
    if (!numbers->unpacked) return dt__file_open(path, &out->fd, &size);
    return out->fd >= 0 ? DT_OK
                        : dt_fail(DT_EBUG, "%s: the decompressed file is not on this host", path);
}

static void array_close(struct array *array)
{
    if (array->fd >= 0 && !array->numbers.unpacked) close(array->fd);
    array->fd = -1;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static double item_value(int type, const unsigned char *bytes)
{
    uint32_t word = type == S16            ? (uint32_t)bytes[0] << 8 | bytes[1]
                    : item_size(type) >= 4 ? big_endian(bytes)
                                           : bytes[0];
    uint64_t wide = type == F64 ? (uint64_t)word << 32 | big_endian(bytes + 4) : 0;
    float single;
    double value;
    switch (type) {
    case U8:
        return word;
    case S8:
        return (int8_t)word;
    case S16:
        return (int16_t)word;
    case S32:
        return (int32_t)word;
    case F32:
        memcpy(&single, &word, sizeof single);
        return (double)single;
    default:
        memcpy(&value, &wide, sizeof value);
        return value;
    }
}

/* How items are converted: not at all, to float, or to int32_t. */
enum items { AS_THEY_ARE, AS_FLOATS, AS_LABELS };

/* Reads rows [row, row + count), and converts their items as `as` says. */
static dt_status array_read_rows(const struct array *array, uint64_t row, size_t count,
                                 enum items as, unsigned char *out)
{
    unsigned char scratch[DT__IDX_BYTES];
    const int type = array->numbers.type;
    const size_t width = item_size(type), row_bytes = array->numbers.items * width;
    const size_t bytes = count * row_bytes;
    const uint64_t at = array->numbers.offset + row * row_bytes;
    if (as == AS_THEY_ARE) return dt__fd_read(array->fd, array->path, out, bytes, at);
    for (size_t done = 0, length; done < bytes; done += length) {
        length = bytes - done < DT__IDX_BYTES ? bytes - done : DT__IDX_BYTES;
        DT_TRY(dt__fd_read(array->fd, array->path, scratch, length, at + done));
        for (size_t i = 0; i < length; i += width, out += 4) {
            const double value = item_value(type, scratch + i);
            const float real = (float)value;
            const int32_t label = as == AS_LABELS ? (int32_t)value : 0;
            memcpy(out, as == AS_LABELS ? (const void *)&label : (const void *)&real, 4);
        }
    }
    return DT_OK;
}

/* ---- survey --------------------------------------------------------------------------------- */

static dt_status labels_learn(struct dt__survey *survey, const struct array *array, uint64_t rows)
{
    const int type = array->numbers.type;
    int32_t labels[DT__IDX_LABELS];
    if (array->numbers.items != 1 || type == F32 || type == F64)
        return dt_fail(DT_EFORMAT, "%s: expected class labels: one whole number a row",
                       array->path);
    for (uint64_t row = 0, count; row < rows; row += count) {
        count = rows - row < DT__IDX_LABELS ? rows - row : DT__IDX_LABELS;
        DT_TRY(dt__stop_check());
        DT_TRY(array_read_rows(array, row, (size_t)count, AS_LABELS, (unsigned char *)labels));
        for (uint64_t i = 0; i < count; i++) {
            dt_status status = dt__labels_add_number(&survey->labels, labels[i]);
            if (status)
                return dt_fail_prefix(status, "%s: row %" PRIu64 ": ", array->path, row + i);
        }
        dt__work_progress();
    }
    return DT_OK;
}

static dt_status idx_survey(struct dt__survey *survey, struct dt__file *file)
{
    struct dt_source *source = survey->source;
    struct head x, y;
    struct array array;
    if (!file->labels && !survey->predicting)
        return dt_fail(DT_EMISMATCH,
                       "%s: IDX data has its labels in separate files: set data.%s_labels",
                       file->path, survey->training ? "train" : "eval");
    DT_TRY(numbers_survey(file->path, source, &x, &file->x));
    dt_status status = dt__survey_features(survey, x.items);
    if (!status) status = dt__survey_shape(survey, x.ndims, x.dims);
    if (status) return dt_fail_prefix(status, "%s: ", file->path);
    survey->has_floats |= x.type != U8;
    file->rows = x.rows;
    if (!file->labels) return DT_OK;
    dt__labels_enter(&survey->labels, file->labels);
    DT_TRY(numbers_survey(file->labels, source, &y, &file->y));
    if (y.rows != file->rows)
        return dt_fail(DT_EMISMATCH, "%s: %" PRIu64 " labels for %" PRIu64 " rows of data",
                       file->labels, y.rows, file->rows);
    if (!survey->targets->classes) {
        status = dt__survey_targets(survey, y.items);
        return status ? dt_fail_prefix(status, "%s: ", file->labels) : DT_OK;
    }
    DT_TRY(array_open(source, file->labels, &file->y, &array));
    status = labels_learn(survey, &array, y.rows);
    array_close(&array);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reader {
    const struct dt_source *source;
    struct array x, y;
};

static void idx_close(void *arg)
{
    struct reader *reader = arg;
    array_close(&reader->x);
    array_close(&reader->y);
    dt_free(reader);
}

static dt_status idx_open(const struct dt_source *source, const struct dt__file *file, void **out)
{
    struct reader *reader;
    dt_status status;
    DT_TRY(dt__alloc(1, sizeof *reader, "reader", &reader));
    *reader = (struct reader){.source = source, .x.fd = -1, .y.fd = -1};
    DT_GUARD(array_open(source, file->path, &file->x, &reader->x));
    if (file->labels) DT_GUARD(array_open(source, file->labels, &file->y, &reader->y));
    *out = reader;
done:
    if (status) idx_close(reader);
    return status;
}

static dt_status idx_read(void *arg, uint64_t row, size_t count, struct dt__block *out)
{
    struct reader *reader = arg;
    const struct dt__row_layout *layout = &reader->source->layout;
    unsigned char *x = dt__block_x(layout, out, out->rows);
    unsigned char *y = dt__block_y(layout, out, out->rows);
    DT_TRY(array_read_rows(&reader->x, row, count, layout->bytes ? AS_THEY_ARE : AS_FLOATS, x));
    if (reader->y.path)
        DT_TRY(array_read_rows(&reader->y, row, count, layout->targets ? AS_FLOATS : AS_LABELS, y));
    else
        memset(y, 0, count * dt__row_layout_y(layout));
    if (!layout->targets && reader->y.path)
        dt__classes_of_labels(&reader->source->classes, y, count);
    dt__block_add(layout, out, count);
    return DT_OK;
}

const struct dt__format dt__format_idx = {.name = "IDX",
                                          .labels_apart = true,
                                          .keys_apart = true,
                                          .is = idx_is,
                                          .survey = idx_survey,
                                          .open = idx_open,
                                          .read = idx_read,
                                          .close = idx_close};
