/* Packed files. gzip by zlib, which reads plain files as they are; zstd by its own library. */
#include "data/packed.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
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
    /* the byte behind the word too: a column of CSV may be named PAR1 */
    {"PAR1\x15", 5, NULL, "a Parquet file: write it as CSV, or with h5py as data sets x and y"},
    {"ARROW1\0", 7, NULL, "an Arrow file: write it as CSV, or with h5py as data sets x and y"},
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

bool dt__path_is_pipe(const char *path)
{
    struct stat info;
    return !stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* ---- unpacking ------------------------------------------------------------------------------ */

/* zlib reads what is not packed as it stands. */
struct dt__packed {
    const char *path; /* lent */
    gzFile gzip;      /* NULL: zstd */
    FILE *file;
    ZSTD_DStream *zstd;
    size_t state; /* of zstd: 0 behind a whole frame */
    ZSTD_inBuffer in;
    unsigned char bytes[DT__UNPACK_BYTES + DT__PACKED_HEAD]; /* of `in` */
};

/* By the first bytes. */
static bool head_is_gzip(const unsigned char *head, size_t length)
{
    return length > 2 && head[0] == 0x1f && head[1] == 0x8b;
}

static bool head_is_zstd(const unsigned char *head, size_t length)
{
    static const unsigned char zstd[] = {0x28, 0xB5, 0x2F, 0xFD};
    return length > 4 && !memcmp(head, zstd, sizeof zstd);
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
    const bool gzip = head_is_gzip(head, length);
    if (!gzip && !head_is_zstd(head, length)) return DT_OK;
    return dt_fail(DT_EFORMAT, "%s: this is packed by %s: unpack it first, with %s", path,
                   gzip ? "gzip" : "zstd", gzip ? "zcat" : "zstdcat");
}

dt_status dt__packed_open(const char *path, struct dt__packed **out)
{
    struct dt__packed *packed;
    uint64_t size;
    int fd;
    dt_status status = DT_OK;
    DT_TRY(dt_alloc(1, sizeof *packed, "a file", &packed));
    packed->path = path;
    packed->in.src = packed->bytes;
    DT_GUARD(dt_file_open(path, &fd, &size)); /* a pipe would be read twice */
    packed->file = fdopen(fd, "r");
    if (!packed->file) {
        status = dt_fail(DT_EMEMORY, "%s: %s", path, strerror(errno));
        close(fd);
        goto done;
    }
    packed->in.size = fread(packed->bytes, 1, DT__PACKED_HEAD, packed->file);
    if (ferror(packed->file)) DT_GUARD(dt_fail(DT_EIO, "%s: cannot be read", path));
    if (head_is_zstd(packed->bytes, packed->in.size)) {
        packed->zstd = ZSTD_createDStream();
        if (!packed->zstd) DT_GUARD(dt_fail(DT_EMEMORY, "out of memory for zstd"));
    } else {
        errno = 0;
        packed->gzip = gzopen(path, "rbe");
        if (!packed->gzip)
            DT_GUARD(dt_fail(DT_EIO, "%s: %s", path, strerror(errno ? errno : ENOMEM)));
    }
    *out = packed;
done:
    if (status) dt__packed_close(packed);
    return status;
}

void dt__packed_close(struct dt__packed *packed)
{
    if (!packed) return;
    if (packed->gzip) gzclose_r(packed->gzip);
    if (packed->file) fclose(packed->file);
    ZSTD_freeDStream(packed->zstd);
    dt_free(packed);
}

bool dt__packed_is(const struct dt__packed *packed)
{
    return packed->zstd || !gzdirect(packed->gzip);
}

static dt_status gzip_read(struct dt__packed *packed, void *to, size_t size, size_t *length)
{
    const int got = gzread(packed->gzip, to, size < 1u << 30 ? (unsigned)size : 1u << 30);
    int code = Z_OK;
    *length = got > 0 ? (size_t)got : 0;
    if (got > 0) return DT_OK;
    gzerror(packed->gzip, &code);
    if (code == Z_ERRNO) return dt_fail(DT_EIO, "%s: %s", packed->path, strerror(errno));
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
        return dt_fail(DT_EFORMAT, "%s: damaged or truncated gzip data", packed->path);
    return DT_OK;
}

static dt_status zstd_read(struct dt__packed *packed, void *to, size_t size, size_t *length)
{
    ZSTD_outBuffer out = {to, size, 0};
    for (bool ended = false; !out.pos && !ended;) {
        if (packed->in.pos == packed->in.size) {
            packed->in.pos = 0;
            packed->in.size = fread(packed->bytes, 1, DT__UNPACK_BYTES, packed->file);
        }
        if (ferror(packed->file)) return dt_fail(DT_EIO, "%s: cannot be read", packed->path);
        ended = !packed->in.size;
        if (ended && !packed->state) break;
        packed->state = ZSTD_decompressStream(packed->zstd, &out, &packed->in);
        if (ZSTD_isError(packed->state))
            return dt_fail(DT_EFORMAT, "%s: zstd: %s", packed->path,
                           ZSTD_getErrorName(packed->state));
    }
    *length = out.pos;
    if (out.pos || !packed->state) return DT_OK;
    return dt_fail(DT_EFORMAT, "%s: truncated zstd data", packed->path);
}

dt_status dt__packed_read(struct dt__packed *packed, void *to, size_t size, size_t *length)
{
    dt_work_progress();
    return packed->zstd ? zstd_read(packed, to, size, length) : gzip_read(packed, to, size, length);
}

dt_status dt__packed_head(const char *path, unsigned char *head, size_t size, size_t *length)
{
    struct dt__packed *packed;
    size_t got = 1;
    DT_TRY(dt__packed_open(path, &packed));
    dt_status status = DT_OK;
    for (*length = 0; !status && got && *length < size; *length += got)
        status = dt__packed_read(packed, head + *length, size - *length, &got);
    dt__packed_close(packed);
    return status ? status : dt__packed_refuse(path, head, *length);
}
