/* Lines of a text file. */
#include "data/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 18, LONGEST_RECORD = 1 << 26 };

/* A pipe gives what it has; a stream in memory has no descriptor. */
static ssize_t read_some(FILE *in, void *bytes, size_t size)
{
    int fd = fileno(in);
    ssize_t got;
    if (fd < 0) {
        got = (ssize_t)fread(bytes, 1, size, in);
        return got == 0 && ferror(in) ? -1 : got;
    }
    do
        got = read(fd, bytes, size);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Moves what is left to the front and reads more behind it. */
static dt_status fill(struct dt__lines *lines)
{
    size_t left = lines->end - lines->begin;
    if (left >= LONGEST_RECORD)
        return dt_fail(DT_EFORMAT, "%s:%" PRIu64 ": a row of more than %d MiB, or an open quote",
                       lines->name, lines->next_line, LONGEST_RECORD >> 20);
    if (left) memmove(lines->data, lines->data + lines->begin, left);
    lines->base += lines->begin;
    lines->begin = 0;
    lines->end = left;
    DT_TRY(dt_grow(&lines->data, &lines->capacity, left + BLOCK, 1, "lines of text"));
    ssize_t got = read_some(lines->in, lines->data + left, lines->capacity - left);
    if (got < 0) return dt_fail(DT_EIO, "%s: %s", lines->name, strerror(errno));
    lines->eof = got == 0;
    lines->end += (size_t)got;
    dt_work_gets_on();
    return DT_OK;
}

static dt_status begin(struct dt__lines *lines)
{
    static const char mark[] = "\xEF\xBB\xBF";
    lines->next_line = 1;
    while (!lines->eof && lines->end < 3)
        DT_TRY(fill(lines));
    if (lines->end >= 3 && !memcmp(lines->data, mark, 3)) lines->begin = 3;
    return DT_OK;
}

dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name)
{
    *lines = (struct dt__lines){.in = in, .name = name};
    dt_status status = begin(lines);
    if (status) dt__lines_close(lines);
    return status;
}

dt_status dt__lines_open(struct dt__lines *lines, const char *path)
{
    FILE *in = fopen(path, "re");
    *lines = (struct dt__lines){0};
    if (!in) return dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    *lines = (struct dt__lines){.in = in, .name = path, .owned = true};
    dt_status status = begin(lines);
    if (status) dt__lines_close(lines);
    return status;
}

void dt__lines_close(struct dt__lines *lines)
{
    if (lines->owned) fclose(lines->in);
    dt_free(lines->data);
    *lines = (struct dt__lines){0};
}

dt_status dt__lines_seek(struct dt__lines *lines, uint64_t offset, uint64_t line)
{
    lines->next_line = line;
    if (offset >= lines->base && offset <= lines->base + lines->end) {
        lines->begin = (size_t)(offset - lines->base);
        return DT_OK;
    }
    if (lseek(fileno(lines->in), (off_t)offset, SEEK_SET) < 0)
        return dt_fail(DT_EIO, "%s: %s", lines->name, strerror(errno));
    lines->begin = lines->end = 0;
    lines->base = offset;
    lines->eof = false;
    return DT_OK;
}

uint64_t dt__lines_offset(const struct dt__lines *lines)
{
    return lines->base + lines->begin;
}

static size_t count_char(const char *text, size_t length, char wanted)
{
    size_t count = 0;
    const char *end = text + length;
    while ((text = memchr(text, wanted, (size_t)(end - text))))
        text++, count++;
    return count;
}

/* Finds the end of the record that begins at data[begin]: the offset of its line end from there, or
 * of the end of the file. *newlines: line ends within and behind it. */
static dt_status find_end(struct dt__lines *lines, bool quotes, size_t *out, size_t *newlines)
{
    size_t from = 0;
    bool open = false;
    *newlines = 0;
    for (;;) {
        const char *text = lines->data + lines->begin + from;
        size_t left = lines->end - lines->begin - from;
        const char *newline = left ? memchr(text, '\n', left) : NULL;
        size_t length = newline ? (size_t)(newline - text) : left;
        if (quotes) open ^= count_char(text, length, '"') & 1;
        from += length;
        *newlines += newline != NULL;
        if ((newline && !open) || (!newline && lines->eof)) break;
        if (newline)
            from++;
        else
            DT_TRY(fill(lines));
    }
    if (open)
        return dt_fail(DT_EFORMAT, "%s:%" PRIu64 ": a quote that does not close", lines->name,
                       lines->next_line);
    *out = from;
    return DT_OK;
}

bool dt__lines_ready(const struct dt__lines *lines)
{
    struct pollfd input = {.fd = fileno(lines->in), .events = POLLIN};
    size_t left = lines->end - lines->begin;
    if (lines->eof || (left && memchr(lines->data + lines->begin, '\n', left))) return true;
    return poll(&input, 1, 0) != 0;
}

dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *length)
{
    size_t bytes = 0, newlines = 0;
    *out = NULL;
    DT_TRY(find_end(lines, quotes, &bytes, &newlines));
    if (lines->eof && lines->begin == lines->end) return DT_OK;
    char *text = lines->data + lines->begin;
    bool ended = lines->begin + bytes < lines->end;
    lines->begin += bytes + ended;
    lines->line = lines->next_line;
    lines->next_line += newlines;
    *out = text;
    *length = bytes && text[bytes - 1] == '\r' ? bytes - 1 : bytes;
    return DT_OK;
}
