/* Input: bytes, unpacked by zlib or zstd, and records of text. */
#include "text/input.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/limits.h"
#include "text/text.h"

enum { GZIP_WINDOW = 15 + 16 }; /* of inflateInit2: the largest, gzip only */

/* ---- foreign formats ------------------------------------------------------------------------ */

#define PAGE                                                                                       \
    "an HTML page, not data: was it downloaded without a login, or from a page about the file?"
#define ARFF "Weka's ARFF: keep the rows after @data, which are CSV"
static const struct {
    const char *magic;
    size_t length;
    const char *suffix; /* the end that the name must have; NULL: any name */
    const char *advice;
} FOREIGN[] = {
    {"\x93NUMPY", 6, NULL, "a NumPy array: write it with h5py as data sets x and y, or as CSV"},
    {"PK\3\4", 4, ".npz", "NumPy arrays (.npz): write them with h5py as data sets x and y"},
    {"PK\3\4", 4, ".xlsx", "an Excel sheet: save it as CSV"},
    {"PK\3\4", 4, NULL, "a zip archive: unpack it first"},
    /* the fifth byte is needed, since a CSV column may be named PAR1 */
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
    {"version https://", 16, NULL,
     "a pointer of Git LFS, not the file itself: git lfs pull brings it"},
    {"<!DOCTYPE html", 14, NULL, PAGE},
    {"<!DOCTYPE HTML", 14, NULL, PAGE},
    {"<!doctype html", 14, NULL, PAGE},
    {"<html", 5, NULL, PAGE},
    {"<HTML", 5, NULL, PAGE},
    {"<?xml", 5, NULL, "XML: write it as CSV"},
    {"@relation", 9, NULL, ARFF},
    {"@RELATION", 9, NULL, ARFF},
};

bool dt__path_is_pipe(const char *path)
{
    struct stat info;
    return !stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* ---- unpacking ------------------------------------------------------------------------------ */

struct dt__packed {
    const char *path; /* borrowed */
    FILE *file;
    bool is_gzip;
    z_stream gzip;
    ZSTD_DStream *zstd; /* NULL: the file is gzip or plain */
    bool whole;         /* the bytes unpacked so far end with a complete gzip member or zstd
                         * frame */
    size_t at, length;  /* bytes[at..length) are still packed */
    unsigned char bytes[DT__UNPACK_BYTES + DT__PACKED_HEAD];
};

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
    size_t name = strlen(path), blanks = 0; /* blanks: bytes to skip, a byte order mark and the
                                             * blanks of an HTML page */
    if (length >= 3 && !memcmp(head, "\xEF\xBB\xBF", 3)) blanks = 3;
    while (blanks < length && isspace(head[blanks]))
        blanks++;
    for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
        const char *suffix = FOREIGN[i].suffix;
        size_t end = suffix ? strlen(suffix) : 0;
        if (length - blanks < FOREIGN[i].length ||
            memcmp(head + blanks, FOREIGN[i].magic, FOREIGN[i].length))
            continue;
        if (suffix && (name < end || strcasecmp(path + name - end, suffix))) continue;
        return dt_fail(DT_EFORMAT, "%s: this is %s", path, FOREIGN[i].advice);
    }
    for (size_t zero = 0; zero < 2 && length >= 4; zero++) /* UTF-16 without a byte order mark */
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
    DT_TRY(dt__alloc(1, sizeof *packed, "a file", &packed));
    packed->path = path;
    DT_GUARD(dt__file_open(path, &fd, &size)); /* refuses a pipe, which cannot be rewound */
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

/* Reads at most `size` bytes as they are in the file; *length is 0 at its end. */
static dt_status file_read(struct dt__packed *packed, void *to, size_t size, size_t *length)
{
    *length = fread(to, 1, size, packed->file);
    if (*length || !ferror(packed->file)) return DT_OK;
    return dt_fail(DT_EIO, "%s: %s", packed->path, strerror(errno));
}

/* Unpacks some bytes. A gzip member may be followed by another one, or by zeros that pad the
 * file. */
static dt_status gzip_unpack(struct dt__packed *packed, unsigned char *to, size_t size,
                             size_t *length)
{
    z_stream *gzip = &packed->gzip;
    while (packed->whole && packed->at < packed->length && !packed->bytes[packed->at])
        packed->at++;
    if (packed->whole && packed->at == packed->length) return DT_OK;
    const uInt capacity = size < 1u << 30 ? (uInt)size : 1u << 30;
    gzip->next_in = packed->bytes + packed->at;
    gzip->avail_in = (uInt)(packed->length - packed->at);
    gzip->next_out = to;
    gzip->avail_out = capacity;
    const int code = inflate(gzip, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return dt_fail(DT_EFORMAT, "%s: damaged gzip data%s", packed->path,
                       packed->whole ? ", or other data after it" : "");
    packed->at = packed->length - gzip->avail_in;
    packed->whole = code == Z_STREAM_END;
    if (packed->whole) inflateReset(gzip);
    *length = capacity - gzip->avail_out;
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
    dt__work_progress();
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

/* ---- records -------------------------------------------------------------------------------- */

enum { LONGEST_RECORD = 1 << 26 };

/* Reads the bytes that a pipe has, and waits until it has some. A stream in memory has no
 * descriptor, so it is read by fread. */
static dt_status stream_read(const struct dt__lines *lines, char *to, size_t size, size_t *length)
{
    enum { WAIT_MS = 100 };
    const int fd = fileno(lines->in);
    struct pollfd input = {.fd = fd, .events = POLLIN};
    ssize_t got;
    for (int ready = 0; fd >= 0 && ready <= 0;) {
        ready = poll(&input, 1, WAIT_MS);
        if (ready < 0 && errno != EINTR) break; /* read() reports the error */
        if (ready <= 0) DT_TRY(dt__stop_check());
    }
    do
        got = fd < 0 ? (ssize_t)fread(to, 1, size, lines->in) : read(fd, to, size);
    while (fd >= 0 && got < 0 && errno == EINTR);
    if (got < 0 || (fd < 0 && got == 0 && ferror(lines->in)))
        return dt_fail(DT_EIO, "%s: %s", lines->name, strerror(errno));
    *length = (size_t)got;
    dt__work_progress();
    return DT_OK;
}

/* Moves the bytes that are still needed to the front, and reads more bytes after them. */
static dt_status lines_fill(struct dt__lines *lines)
{
    const size_t from = lines->held ? lines->start : lines->begin, kept = lines->end - from;
    size_t got;
    if (kept >= LONGEST_RECORD)
        return dt_fail(DT_EFORMAT, "%s:%" PRIu64 ": a row of more than %d MiB, or an open quote",
                       lines->name, lines->next_line, LONGEST_RECORD >> 20);
    if (kept) memmove(lines->data, lines->data + from, kept);
    lines->begin -= from;
    lines->start = 0;
    lines->end = kept;
    DT_TRY(dt__grow(&lines->data, &lines->capacity, kept + DT__LINES_BYTES, 1, "lines of text"));
    char *to = lines->data + kept;
    DT_TRY(lines->file ? dt__packed_read(lines->file, to, lines->capacity - kept, &got)
                       : stream_read(lines, to, lines->capacity - kept, &got));
    lines->eof = got == 0;
    lines->end += got;
    return DT_OK;
}

/* Reads enough to decide what kind of file it is, or a first line: a pipe's first line may be
 * shorter, and its next line may come late. */
static dt_status lines_begin(struct dt__lines *lines)
{
    static const char mark[] = "\xEF\xBB\xBF";
    dt_status status = DT_OK;
    lines->next_line = 1;
    lines->held = true;
    while (!status && !lines->eof && lines->end < DT__PACKED_HEAD &&
           !(lines->end && memchr(lines->data, '\n', lines->end)))
        status = lines_fill(lines);
    if (!status && lines->end >= 3 && !memcmp(lines->data, mark, 3)) lines->start = 3;
    lines->begin = lines->start;
    if (status) dt__lines_close(lines);
    return status;
}

dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name)
{
    *lines = (struct dt__lines){.in = in, .borrowed = true, .name = name};
    return lines_begin(lines);
}

/* Opens a pipe. A FIFO may have no writer yet: then reading waits, not opening. */
static dt_status pipe_open(struct dt__lines *lines, const char *path)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) lines->in = fdopen(fd, "r");
    if (!lines->in) {
        const dt_status status = dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    if (isatty(fd)) return dt_fail(DT_EIO, "%s: a terminal: expected a file or a pipe", path);
    return lines_begin(lines);
}

dt_status dt__lines_open(struct dt__lines *lines, const char *path)
{
    *lines = (struct dt__lines){.name = path};
    dt_status status = DT_OK;
    if (dt__path_is_pipe(path))
        status = pipe_open(lines, path);
    else if (!(status = dt__packed_open(path, &lines->file)))
        status = lines_begin(lines);
    if (status) dt__lines_close(lines);
    return status;
}

void dt__lines_close(struct dt__lines *lines)
{
    dt__packed_close(lines->file);
    if (lines->in && !lines->borrowed) fclose(lines->in);
    dt_free(lines->data);
    dt_free(lines->raw);
    *lines = (struct dt__lines){0};
}

void dt__lines_release(struct dt__lines *lines, bool rewind)
{
    lines->held = false;
    if (!rewind) return;
    lines->rewound = lines->next_line;
    lines->begin = lines->start;
    lines->next_line = 1;
}

bool dt__lines_ready(const struct dt__lines *lines)
{
    struct pollfd input = {.fd = lines->in ? fileno(lines->in) : -1, .events = POLLIN};
    size_t left = lines->end - lines->begin;
    if (lines->eof || (left && memchr(lines->data + lines->begin, '\n', left))) return true;
    return poll(&input, 1, 0) != 0;
}

void dt__lines_decimal(struct dt__lines *lines, bool commas, const char *separator)
{
    lines->commas = commas;
    lines->separator = separator[0] && !separator[1] ? *separator : ';';
    if (!strcmp(separator, "space")) lines->separator = ' ';
}

/* Returns true for a text like 1.250, which may mean 1250 in a file with decimal commas. */
static bool is_of_thousands(const char *text, size_t length)
{
    static const char *const like[] = {"1.111", "11.111", "111.111"};
    dt__text_trim(&text, &length);
    if (length && *text == '-') text++, length--;
    if (length < 5 || length > 7 || *text == '0') return false;
    for (size_t i = 0; i < length; i++)
        if (like[length - 5][i] == '.' ? text[i] != '.' : text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

void dt__lines_commas(struct dt__lines *lines, char *text, size_t length)
{
    const bool separates = lines->separator == ',';
    const char borders[] = {separates ? ';' : lines->separator, '"', ';', '\t', '|', '\r', '\n'};
    char *const stop = text + length;
    bool inside = false; /* inside quotes */
    for (char *cell = text, *end; cell < stop; cell = end + 1) {
        for (end = cell; end < stop && !memchr(borders, *end, sizeof borders);)
            end++;
        char *comma = memchr(cell, ',', (size_t)(end - cell));
        double value;
        inside ^= cell > text && cell[-1] == '"';
        if (!comma && !lines->warned_point && lines->line >= lines->rewound &&
            is_of_thousands(cell, (size_t)(end - cell))) {
            dt__warn("%s:%" PRIu64 ": '%.*s': with data.decimal=, points are decimal points, too; "
                     "if it separates thousands, leave it out",
                     lines->name, lines->line, (int)(end - cell), cell);
            lines->warned_point = true;
        }
        const bool after_quote = comma == cell && cell > text && cell[-1] == '"';
        const bool before_quote = comma && comma + 1 == end && end < stop && *end == '"';
        if (!comma || (!inside && (separates || after_quote || before_quote))) continue;
        *comma = '.';
        if (dt__number_parse(cell, (size_t)(end - cell), &value) == DT__NUMBER_BAD) *comma = ',';
    }
}

dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length)
{
    size_t bytes = 0;    /* of the record, without its last line end */
    size_t newlines = 0; /* of the record, its last line end included */
    bool open = false, ended = false;
    *out = NULL;
    while (!ended) {
        const char *text = lines->data + lines->begin + bytes;
        size_t left = lines->end - lines->begin - bytes;
        const char *newline = left ? memchr(text, '\n', left) : NULL;
        size_t length = newline ? (size_t)(newline - text) : left;
        for (const char *p = text, *end = text + length;
             quotes && (p = memchr(p, '"', (size_t)(end - p))); p++)
            open = !open;
        bytes += length;
        newlines += newline != NULL;
        ended = newline ? !open : lines->eof;
        if (!ended && newline) bytes++;
        if (!ended && !newline) DT_TRY(lines_fill(lines));
    }
    if (open)
        return dt_fail(DT_EFORMAT, "%s:%" PRIu64 ": a quote that does not close", lines->name,
                       lines->next_line);
    if (lines->eof && lines->begin == lines->end) return DT_OK;
    char *text = lines->data + lines->begin;
    lines->begin += bytes + (lines->begin + bytes < lines->end);
    lines->line = lines->next_line;
    lines->next_line += newlines;
    *out = text;
    while (bytes && text[bytes - 1] == '\r') /* there are two if CRLF was converted to CRLF again */
        bytes--;
    while (bytes && lines->separator == ' ' && (text[bytes - 1] == ' ' || text[bytes - 1] == '\t'))
        bytes--; /* a line of blanks counts as empty */
    *out_length = bytes;
    if (lines->keeps) {
        DT_TRY(dt__grow(&lines->raw, &lines->raw_capacity, bytes + 1, 1, "a row"));
        memcpy(lines->raw, text, bytes);
    }
    if (lines->commas) dt__lines_commas(lines, text, bytes);
    return DT_OK;
}
