/* Packed files. gzip by zlib, which reads plain files as they are; zstd by its own library. */
#include "data/packed.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/limits.h"

/* ---- what is not read ----------------------------------------------------------------------- */

static const struct {
    const char *magic;
    size_t length;
    const char *suffix; /* of the name; NULL: any */
    const char *advice;
} FOREIGN[] = {
    {"\x93NUMPY", 6, NULL, "a NumPy array: write it with h5py as data sets x and y, or as CSV"},
    {"PK\3\4", 4, ".npz", "NumPy arrays (.npz): write them with h5py as data sets x and y"},
    {"PK\3\4", 4, ".xlsx", "an Excel sheet: save it as CSV"},
    {"PK\3\4", 4, NULL, "a zip archive: unpack it first"},
    {"PAR1", 4, NULL, "a Parquet file: write it as CSV, or with h5py as data sets x and y"},
    {"ARROW1", 6, NULL, "an Arrow file: write it as CSV, or with h5py as data sets x and y"},
    {"\xFF\xFE", 2, NULL, "UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"},
    {"\xFE\xFF", 2, NULL, "UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"},
    {"BZh", 3, NULL, "packed by bzip2: unpack it, or pack it with gzip or zstd"},
    {"\xFD"
     "7zXZ",
     5, NULL, "packed by xz: unpack it, or pack it with gzip or zstd"},
    {"7z\xBC\xAF", 4, NULL, "a 7z archive: unpack it first"},
    {"SQLite format 3", 15, NULL, "an SQLite database: export the table as CSV"},
    {"\x89PNG", 4, NULL, "a picture: put pictures into an HDF5 file as data sets x and y"},
    {"\xFF\xD8\xFF", 3, NULL, "a picture: put pictures into an HDF5 file as data sets x and y"},
    {"%PDF", 4, NULL, "a PDF"},
};

/* ---- unpacking ------------------------------------------------------------------------------ */

/* What is done with each piece of unpacked bytes; false: enough. */
typedef dt_status sink_fn(void *arg, const unsigned char *bytes, size_t length, bool *more);

static dt_status gzip_unpack(const char *path, sink_fn *sink, void *arg)
{
    unsigned char out[DT__UNPACK_BYTES];
    bool more = true;
    int got = 0;
    gzFile file = gzopen(path, "rbe");
    if (!file) return dt_fail(DT_EIO, "%s: %s", path, strerror(errno ? errno : ENOMEM));
    dt_status status = DT_OK;
    while (!status && more && (got = gzread(file, out, sizeof out)) > 0) {
        status = sink(arg, out, (size_t)got, &more);
        dt_work_gets_on();
    }
    int code = gzclose_r(file);
    if (!status && (got < 0 || (more && code != Z_OK)))
        status = dt_fail(DT_EFORMAT, "%s: damaged or truncated gzip data", path);
    return status;
}

static dt_status zstd_unpack(const char *path, sink_fn *sink, void *arg)
{
    unsigned char in[DT__UNPACK_BYTES], out[DT__UNPACK_BYTES];
    bool more = true;
    size_t state = 1, got;
    dt_status status = DT_OK;
    ZSTD_DStream *stream = NULL;
    FILE *file = fopen(path, "re");
    if (!file) return dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    stream = ZSTD_createDStream();
    if (!stream) DT_GUARD(dt_fail(DT_EMEMORY, "out of memory for zstd"));
    while (more && (got = fread(in, 1, sizeof in, file)) > 0) {
        ZSTD_inBuffer from = {in, got, 0};
        while (more && from.pos < from.size) {
            ZSTD_outBuffer to = {out, sizeof out, 0};
            state = ZSTD_decompressStream(stream, &to, &from);
            if (ZSTD_isError(state))
                DT_GUARD(dt_fail(DT_EFORMAT, "%s: zstd: %s", path, ZSTD_getErrorName(state)));
            if (to.pos) DT_GUARD(sink(arg, out, to.pos, &more));
        }
        dt_work_gets_on();
    }
    if (ferror(file))
        status = dt_fail(DT_EIO, "%s: cannot be read", path);
    else if (more && state)
        status = dt_fail(DT_EFORMAT, "%s: truncated zstd data", path);
done:
    ZSTD_freeDStream(stream);
    fclose(file);
    return status;
}

typedef dt_status unpack_fn(const char *path, sink_fn *sink, void *arg);

/* By the first bytes. NULL: not packed. */
static unpack_fn *unpack_of(const unsigned char *head, size_t length)
{
    static const unsigned char zstd[] = {0x28, 0xB5, 0x2F, 0xFD};
    if (length > 2 && head[0] == 0x1f && head[1] == 0x8b) return gzip_unpack;
    return length > 4 && !memcmp(head, zstd, sizeof zstd) ? zstd_unpack : NULL;
}

dt_status dt__packed_refuse(const char *path, const unsigned char *head, size_t length)
{
    size_t name = strlen(path);
    for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
        const char *suffix = FOREIGN[i].suffix;
        size_t end = suffix ? strlen(suffix) : 0;
        if (length < FOREIGN[i].length || memcmp(head, FOREIGN[i].magic, FOREIGN[i].length))
            continue;
        if (suffix && (name < end || strcasecmp(path + name - end, suffix))) continue;
        return dt_fail(DT_EFORMAT, "%s: this is %s", path, FOREIGN[i].advice);
    }
    for (size_t zero = 0; zero < 2 && length >= 4; zero++) /* without a byte order mark */
        if (!head[zero] && !head[zero + 2] && isprint(head[1 - zero]) && isprint(head[3 - zero]))
            return dt_fail(DT_EFORMAT,
                           "%s: this is UTF-16 text: convert it with iconv -f UTF-16%s -t UTF-8",
                           path, zero ? "LE" : "BE");
    unpack_fn *unpack = unpack_of(head, length);
    return unpack ? dt_fail(DT_EFORMAT, "%s: this is packed by %s: unpack it first, with %s", path,
                            unpack == gzip_unpack ? "gzip" : "zstd",
                            unpack == gzip_unpack ? "zcat" : "zstdcat")
                  : DT_OK;
}

static dt_status plain_head(const char *path, unsigned char *head, size_t size, size_t *length)
{
    FILE *in = fopen(path, "re");
    if (!in) return dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    *length = fread(head, 1, size, in);
    bool failed = ferror(in);
    fclose(in);
    return failed ? dt_fail(DT_EIO, "%s: cannot be read", path) : DT_OK;
}

struct head {
    unsigned char *bytes;
    size_t size, length;
};

static dt_status head_sink(void *arg, const unsigned char *bytes, size_t length, bool *more)
{
    struct head *head = arg;
    size_t take = length < head->size - head->length ? length : head->size - head->length;
    memcpy(head->bytes + head->length, bytes, take);
    head->length += take;
    *more = head->length < head->size;
    return DT_OK;
}

dt_status dt__packed_head(const char *path, unsigned char *head, size_t size, size_t *length)
{
    struct head unpacked = {head, size, 0};
    DT_TRY(plain_head(path, head, size, length));
    unpack_fn *unpack = unpack_of(head, *length);
    if (unpack) {
        DT_TRY(unpack(path, head_sink, &unpacked));
        *length = unpacked.length;
    }
    return dt__packed_refuse(path, head, *length);
}

/* ---- files ---------------------------------------------------------------------------------- */

struct copy {
    int fd;
    uint64_t offset;
};

static dt_status copy_sink(void *arg, const unsigned char *bytes, size_t length, bool *more)
{
    struct copy *copy = arg;
    (void)more;
    DT_TRY(dt_stop_check());
    DT_TRY(dt_fd_write_at(copy->fd, "a temporary file for unpacked data", bytes, length,
                          copy->offset));
    copy->offset += length;
    return DT_OK;
}

dt_status dt__packed_open(const char *path, FILE **out)
{
    unsigned char head[8];
    size_t length;
    struct copy copy = {-1, 0};
    const char *dir = getenv("TMPDIR");
    DT_TRY(plain_head(path, head, sizeof head, &length));
    unpack_fn *unpack = unpack_of(head, length);
    if (!unpack) {
        *out = fopen(path, "re");
        return *out ? DT_OK : dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    }
    DT_TRY(dt_fd_temporary(dir && *dir ? dir : "/tmp", &copy.fd));
    dt_status status = unpack(path, copy_sink, &copy);
    if (!status && lseek(copy.fd, 0, SEEK_SET) < 0) status = dt_fail(DT_EIO, "%s: seek", path);
    if (!status && !(*out = fdopen(copy.fd, "r"))) status = dt_fail(DT_EMEMORY, "%s: open", path);
    if (status) close(copy.fd);
    return status;
}
