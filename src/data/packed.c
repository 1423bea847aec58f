/* Packed files: gzip by zlib, zstd by its own library. */
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

enum { GZIP_WINDOW = 15 + 16 }; /* zlib's: the widest, of gzip alone */

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

struct dt__packed {
    const char *path; /* lent */
    FILE *file;
    bool is_gzip;
    z_stream gzip;
    ZSTD_DStream *zstd; /* NULL: gzip, or not packed */
    bool whole;         /* what was unpacked ends with a whole member of gzip, frame of zstd */
    size_t at, length;  /* of `bytes`: what is still to be unpacked, and their end */
    unsigned char bytes[DT__UNPACK_BYTES + DT__PACKED_HEAD];
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
    DT_GUARD(dt_file_open(path, &fd, &size)); /* a pipe would be read twice */
    packed->file = fdopen(fd, "r");
    if (!packed->file) {
        status = dt_fail(DT_EMEMORY, "%s: %s", path, strerror(errno));
        close(fd);
        goto done;
    }
    packed->length = fread(packed->bytes, 1, DT__PACKED_HEAD, packed->file);
    if (ferror(packed->file)) DT_GUARD(dt_fail(DT_EIO, "%s: %s", path, strerror(errno)));
    if (head_is_zstd(packed->bytes, packed->length)) {
        packed->zstd = ZSTD_createDStream();
        if (!packed->zstd) DT_GUARD(dt_fail(DT_EMEMORY, "out of memory for zstd"));
    } else if (head_is_gzip(packed->bytes, packed->length)) {
        if (inflateInit2(&packed->gzip, GZIP_WINDOW))
            DT_GUARD(dt_fail(DT_EMEMORY, "out of memory for gzip"));
        packed->is_gzip = true;
    } else {
        rewind(packed->file);
    }
    *out = packed;
done:
    if (status) dt__packed_close(packed);
    return status;
}

void dt__packed_close(struct dt__packed *packed)
{
    if (!packed) return;
    if (packed->is_gzip) inflateEnd(&packed->gzip);
    if (packed->file) fclose(packed->file);
    ZSTD_freeDStream(packed->zstd);
    dt_free(packed);
}

bool dt__packed_is(const struct dt__packed *packed)
{
    return packed->zstd || packed->is_gzip;
}

/* At most so many bytes as the file has them; *length 0: its end. */
static dt_status file_read(struct dt__packed *packed, void *to, size_t size, size_t *length)
{
    *length = fread(to, 1, size, packed->file);
    if (*length || !ferror(packed->file)) return DT_OK;
    return dt_fail(DT_EIO, "%s: %s", packed->path, strerror(errno));
}

/* Unpacks some of `bytes`. Behind a member there is another one, or zeros that fill up the file. */
static dt_status gzip_unpack(struct dt__packed *packed, unsigned char *to, size_t size,
                             size_t *length)
{
    z_stream *gzip = &packed->gzip;
    while (packed->whole && packed->at < packed->length && !packed->bytes[packed->at])
        packed->at++;
    if (packed->whole && packed->at == packed->length) return DT_OK;
    const uInt room = size < 1u << 30 ? (uInt)size : 1u << 30;
    gzip->next_in = packed->bytes + packed->at;
    gzip->avail_in = (uInt)(packed->length - packed->at);
    gzip->next_out = to;
    gzip->avail_out = room;
    const int code = inflate(gzip, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return dt_fail(DT_EFORMAT, "%s: damaged gzip data%s", packed->path,
                       packed->whole ? ", or other data behind it" : "");
    packed->at = packed->length - gzip->avail_in;
    packed->whole = code == Z_STREAM_END;
    if (packed->whole) inflateReset(gzip);
    *length = room - gzip->avail_out;
    return DT_OK;
}

static dt_status zstd_unpack(struct dt__packed *packed, unsigned char *to, size_t size,
                             size_t *length)
{
    ZSTD_inBuffer in = {packed->bytes, packed->length, packed->at};
    ZSTD_outBuffer out = {to, size, 0};
    const size_t state = ZSTD_decompressStream(packed->zstd, &out, &in);
    if (ZSTD_isError(state))
        return dt_fail(DT_EFORMAT, "%s: zstd: %s", packed->path, ZSTD_getErrorName(state));
    packed->at = in.pos;
    packed->whole = state == 0;
    *length = out.pos;
    return DT_OK;
}

dt_status dt__packed_read(struct dt__packed *packed, void *to, size_t size, size_t *length)
{
    dt_work_progress();
    *length = 0;
    if (!dt__packed_is(packed)) return file_read(packed, to, size, length);
    for (bool ended = false; !*length && !ended;) {
        if (packed->at == packed->length) {
            packed->at = 0;
            DT_TRY(file_read(packed, packed->bytes, DT__UNPACK_BYTES, &packed->length));
            ended = !packed->length;
        }
        if (ended && packed->whole) return DT_OK;
        DT_TRY(packed->zstd ? zstd_unpack(packed, to, size, length)
                            : gzip_unpack(packed, to, size, length));
    }
    if (*length) return DT_OK;
    return dt_fail(DT_EFORMAT, "%s: truncated %s data", packed->path,
                   packed->zstd ? "zstd" : "gzip");
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
