/* IDX files, plain or gzip: a header of dimensions and then the numbers, big-endian.
 * Source: Y. LeCun, "The MNIST database", section "the IDX file format". */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/limits.h"
#include "data/packed.h"
#include "data/reader.h"

enum { U8 = 0x08, S8 = 0x09, S16 = 0x0B, S32 = 0x0C, F32 = 0x0D, F64 = 0x0E };
enum { BUFFER = 1 << 17, DEFLATE_BEST = 1100 };
_Static_assert(DT__IDX_BYTES % 8 == 0, "whole numbers of the widest type");

static const unsigned char ITEM_SIZE[] = {
    [U8] = 1, [S8] = 1, [S16] = 2, [S32] = 4, [F32] = 4, [F64] = 8};

size_t dt__idx_item_size(int type)
{
    return type >= 0 && (size_t)type < sizeof ITEM_SIZE ? ITEM_SIZE[type] : 0;
}

struct array {
    const char *path;
    gzFile file; /* zlib reads plain files as they are */
    int type, ndims;
    uint64_t dims[DT__IDX_MAX_DIMS];
    uint64_t rows, start; /* start: bytes of the header */
    size_t items, row_bytes;
    uint64_t at; /* row at which the file stands */
};

/* ---- bytes ---------------------------------------------------------------------------------- */

static dt_status array_read_bytes(struct array *array, void *out, size_t length)
{
    unsigned char *to = out;
    while (length) {
        int code, got = gzread(array->file, to, length < 1u << 30 ? (unsigned)length : 1u << 30);
        if (got > 0) {
            to += got;
            length -= (size_t)got;
            continue;
        }
        gzerror(array->file, &code);
        if (code == Z_ERRNO) return dt_fail(DT_EIO, "%s: %s", array->path, strerror(errno));
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return dt_fail(DT_EFORMAT, "%s: damaged gzip data", array->path);
        return dt_fail(DT_EFORMAT, "%s: the file is truncated", array->path);
    }
    return DT_OK;
}

/* Behind the last row: nothing more may come, and gzip's own checksum must fit. */
static dt_status array_check_end(struct array *array)
{
    unsigned char extra;
    int code, got = gzread(array->file, &extra, 1);
    if (got > 0)
        return dt_fail(DT_EFORMAT, "%s: there is more data than the header says", array->path);
    gzerror(array->file, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
        return dt_fail(DT_EFORMAT, "%s: damaged gzip data", array->path);
    return DT_OK;
}

/* ---- header --------------------------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void array_close(struct array *array)
{
    if (array->file) gzclose_r(array->file);
    array->file = NULL;
}

static dt_status array_open(const char *path, struct array *array)
{
    unsigned char head[4 + 4 * DT__IDX_MAX_DIMS];
    size_t total, width;
    bool fits = true;
    dt_status status;
    *array = (struct array){.path = path, .items = 1};
    errno = 0;
    array->file = gzopen(path, "rbe");
    if (!array->file) return dt_fail(DT_EIO, "%s: %s", path, strerror(errno ? errno : ENOMEM));
    gzbuffer(array->file, BUFFER);
    DT_GUARD(array_read_bytes(array, head, 4));
    array->type = head[2];
    array->ndims = head[3];
    width = dt__idx_item_size(array->type);
    if (head[0] || head[1] || !width || !array->ndims || array->ndims > DT__IDX_MAX_DIMS)
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: not an IDX file: it begins %02x %02x %02x %02x", path,
                         head[0], head[1], head[2], head[3]));
    DT_GUARD(array_read_bytes(array, head + 4, 4 * (size_t)array->ndims));
    array->start = 4 + 4 * (uint64_t)array->ndims;
    for (int i = 0; i < array->ndims; i++) {
        array->dims[i] = big_endian(head + 4 + 4 * i);
        fits &= i == 0 || dt_size_mul(array->items, array->dims[i], &array->items);
    }
    array->rows = array->dims[0];
    fits = fits && dt_size_mul(array->items, width, &array->row_bytes) &&
           dt_size_mul(array->row_bytes, array->rows, &total);
    if (!fits) DT_GUARD(dt_fail(DT_EFORMAT, "%s: its dimensions overflow", path));
    if (!total) DT_GUARD(dt_fail(DT_EFORMAT, "%s: its header says that it is empty", path));
done:
    if (status) array_close(array);
    return status;
}

/* ---- does the header tell the truth? -------------------------------------------------------- */

static dt_status array_check_size(struct array *array)
{
    unsigned char scratch[DT__IDX_BYTES];
    struct stat info;
    uint32_t length = 0;
    uint64_t promised = array->start + array->rows * array->row_bytes;
    if (stat(array->path, &info)) return dt_fail(DT_EIO, "%s: %s", array->path, strerror(errno));
    uint64_t size = (uint64_t)info.st_size;
    if (gzdirect(array->file)) {
        if (size != promised)
            return dt_fail(DT_EFORMAT,
                           "%s: its header promises %" PRIu64 " bytes, the file has %" PRIu64,
                           array->path, promised, size);
        return DT_OK;
    }
    if (promised / DEFLATE_BEST > size)
        return dt_fail(DT_EFORMAT,
                       "%s: its header promises %" PRIu64 " bytes, more than gzip can hold",
                       array->path, promised);
    /* The last four bytes of a gzip file: its length before packing, modulo 2^32. */
    unsigned char tail[4] = {0};
    FILE *in = fopen(array->path, "re");
    bool good = in && !fseeko(in, -4, SEEK_END) && fread(tail, 1, 4, in) == 4;
    if (in) fclose(in);
    if (!good) return dt_fail(DT_EIO, "%s: %s", array->path, strerror(errno));
    length = (uint32_t)tail[3] << 24 | (uint32_t)tail[2] << 16 | (uint32_t)tail[1] << 8 | tail[0];
    if (length == (uint32_t)promised) return DT_OK;
    /* Several gzip members in one file, or a file that is not whole: all of it is unpacked. */
    for (uint64_t left = promised - array->start, part; left; left -= part) {
        part = left < DT__IDX_BYTES ? left : DT__IDX_BYTES;
        DT_TRY(array_read_bytes(array, scratch, (size_t)part));
        dt_work_gets_on();
        DT_TRY(dt_stop_check());
    }
    return array_check_end(array);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static double item_value(int type, const unsigned char *bytes)
{
    uint32_t word = type == S16                    ? (uint32_t)bytes[0] << 8 | bytes[1]
                    : dt__idx_item_size(type) >= 4 ? big_endian(bytes)
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

/* What becomes of items: left as they are, or 4 bytes each. */
enum items { AS_THEY_ARE, AS_FLOATS, AS_LABELS };

/* Rows [row, row + count). */
static dt_status array_read_rows(struct array *array, uint64_t row, size_t count, enum items as,
                                 unsigned char *out)
{
    unsigned char scratch[DT__IDX_BYTES];
    size_t width = dt__idx_item_size(array->type), bytes = count * array->row_bytes;
    if (row != array->at &&
        gzseek(array->file, (z_off_t)(array->start + row * array->row_bytes), SEEK_SET) < 0)
        return dt_fail(DT_EIO, "%s: seek failed", array->path);
    array->at = UINT64_MAX;
    if (as == AS_THEY_ARE) DT_TRY(array_read_bytes(array, out, bytes));
    for (size_t done = 0, length; as != AS_THEY_ARE && done < bytes; done += length) {
        length = bytes - done < DT__IDX_BYTES ? bytes - done : DT__IDX_BYTES;
        DT_TRY(array_read_bytes(array, scratch, length));
        for (size_t i = 0; i < length; i += width, out += 4) {
            const double value = item_value(array->type, scratch + i);
            const float real = (float)value;
            const int32_t label = as == AS_LABELS ? (int32_t)value : 0;
            memcpy(out, as == AS_LABELS ? (const void *)&label : (const void *)&real, 4);
        }
    }
    array->at = row + count;
    return array->at == array->rows ? array_check_end(array) : DT_OK;
}

/* ---- survey --------------------------------------------------------------------------------- */

static dt_status idx_learn_y(struct dt__survey *survey, struct array *array, uint64_t rows)
{
    if (array->rows != rows)
        return dt_fail(DT_EMISMATCH, "%s: %" PRIu64 " labels for %" PRIu64 " rows of data",
                       array->path, array->rows, rows);
    if (survey->task == DT_TASK_REGRESS) {
        dt_status status = dt__survey_targets(survey, array->items);
        return status ? dt_fail_prefix(status, "%s: ", array->path) : DT_OK;
    }
    if (array->items != 1 || array->type == F32 || array->type == F64)
        return dt_fail(DT_EFORMAT, "%s: class labels are one whole number a row", array->path);
    int32_t labels[DT__IDX_LABELS];
    for (uint64_t row = 0, count; row < array->rows; row += count) {
        count = array->rows - row < DT__IDX_LABELS ? array->rows - row : DT__IDX_LABELS;
        DT_TRY(array_read_rows(array, row, (size_t)count, AS_LABELS, (unsigned char *)labels));
        for (uint64_t i = 0; i < count; i++) {
            dt_status status = dt__labels_add_number(&survey->labels, labels[i]);
            if (status)
                return dt_fail_prefix(status, "%s: row %" PRIu64 ": ", array->path, row + i);
        }
    }
    return DT_OK;
}

static dt_status idx_survey(struct dt__survey *survey, struct dt__file *file)
{
    struct array x, y;
    if (!file->labels)
        return dt_fail(DT_EMISMATCH,
                       "%s: IDX data has its labels apart: set data.train_labels"
                       " (data.eval_labels)",
                       file->path);
    DT_TRY(array_open(file->path, &x));
    dt_status status = array_check_size(&x);
    array_close(&x);
    DT_TRY(status);
    status = dt__survey_features(survey, x.items);
    if (!status) status = dt__survey_shape(survey, x.ndims, x.dims);
    if (status) return dt_fail_prefix(status, "%s: ", file->path);
    survey->floats |= x.type != U8;
    file->rows = x.rows;
    survey->labels.path = file->labels;
    survey->labels.line = 0;
    DT_TRY(array_open(file->labels, &y));
    status = array_check_size(&y);
    gzrewind(y.file);
    y.at = UINT64_MAX;
    if (!status) status = idx_learn_y(survey, &y, file->rows);
    array_close(&y);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reader {
    struct dt__layout layout;
    const struct dt_schema *schema;
    struct array x, y;
};

/* A gzip file cannot be entered in the middle: one that is read in jumps is unpacked first. Read in
 * order it needs no room on a disk. */
static dt_status array_unpack(struct array *array)
{
    FILE *unpacked;
    DT_TRY(dt__packed_open(array->path, &unpacked));
    int fd = dup(fileno(unpacked));
    fclose(unpacked);
    gzclose_r(array->file);
    array->file = fd < 0 ? NULL : gzdopen(fd, "rb");
    array->at = UINT64_MAX;
    if (array->file) return DT_OK;
    if (fd >= 0) close(fd);
    return dt_fail(DT_EIO, "%s: cannot be unpacked", array->path);
}

static void idx_close(void *arg)
{
    struct reader *reader = arg;
    array_close(&reader->x);
    array_close(&reader->y);
    dt_free(reader);
}

static dt_status idx_open(const struct dt_source *source, const struct dt__file *file, bool random,
                          void **out)
{
    struct reader *reader;
    dt_status status;
    DT_TRY(dt_alloc(1, sizeof *reader, "reader", &reader));
    reader->layout = source->layout;
    reader->schema = &source->schema;
    DT_GUARD(array_open(file->path, &reader->x));
    DT_GUARD(array_open(file->labels, &reader->y));
    if (random && !gzdirect(reader->x.file)) DT_GUARD(array_unpack(&reader->x));
    if (random && !gzdirect(reader->y.file)) DT_GUARD(array_unpack(&reader->y));
    if (reader->x.rows != file->rows || reader->y.rows != file->rows ||
        reader->x.items != (size_t)reader->layout.features)
        DT_GUARD(dt_fail(DT_EMISMATCH, "%s: the file has changed since the survey", file->path));
    *out = reader;
    return DT_OK;
done:
    idx_close(reader);
    return status;
}

static dt_status idx_read(void *arg, uint64_t row, size_t count, struct dt__block *out)
{
    struct reader *reader = arg;
    const struct dt__layout *layout = &reader->layout;
    unsigned char *x = dt__block_x(layout, out, out->rows);
    unsigned char *y = dt__block_y(layout, out, out->rows);
    DT_TRY(array_read_rows(&reader->x, row, count, layout->bytes ? AS_THEY_ARE : AS_FLOATS, x));
    DT_TRY(array_read_rows(&reader->y, row, count, layout->targets ? AS_FLOATS : AS_LABELS, y));
    dt__labels_to_classes(reader->schema, y, count);
    dt__block_add(layout, out, count);
    return DT_OK;
}

const struct dt__format dt__format_idx = {"IDX", NULL, idx_survey, idx_open, idx_read, idx_close};
