/* Text formats: lines of a stream, the survey of a file of rows, and reading rows anywhere in
 * it. */
#include "data/text.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/number.h"
#include "data/packed.h"
#include "data/reader.h"

enum { LONGEST_RECORD = 1 << 26 };

/* Moves what is left to the front and reads more behind it. */
static dt_status lines_fill(struct dt__lines *lines)
{
    const size_t left = lines->end - lines->begin;
    const int fd = fileno(lines->in);
    ssize_t got;
    if (left >= LONGEST_RECORD)
        return dt_fail(DT_EFORMAT, "%s:%" PRIu64 ": a row of more than %d MiB, or an open quote",
                       lines->name, lines->next_line, LONGEST_RECORD >> 20);
    if (left) memmove(lines->data, lines->data + lines->begin, left);
    lines->base += lines->begin;
    lines->begin = 0;
    lines->end = left;
    DT_TRY(dt_grow(&lines->data, &lines->capacity, left + DT__LINES_BYTES, 1, "lines of text"));
    do /* a pipe gives what it has; a stream in memory has no descriptor */
        got = fd < 0 ? (ssize_t)fread(lines->data + left, 1, lines->capacity - left, lines->in)
                     : read(fd, lines->data + left, lines->capacity - left);
    while (fd >= 0 && got < 0 && errno == EINTR);
    if (got < 0 || (fd < 0 && got == 0 && ferror(lines->in)))
        return dt_fail(DT_EIO, "%s: %s", lines->name, strerror(errno));
    lines->eof = got == 0;
    lines->end += (size_t)got;
    dt_work_gets_on();
    return DT_OK;
}

/* Reads as much as tells what kind of file it is; a pipe's first line may be shorter, and the next
 * one be long in coming. */
static dt_status lines_begin(struct dt__lines *lines)
{
    static const char mark[] = "\xEF\xBB\xBF";
    lines->next_line = 1;
    while (!lines->eof && lines->end < DT__PACKED_HEAD &&
           !(lines->end && memchr(lines->data, '\n', lines->end)))
        DT_TRY(lines_fill(lines));
    if (lines->end >= 3 && !memcmp(lines->data, mark, 3)) lines->begin = 3;
    return DT_OK;
}

dt_status dt__lines_attach(struct dt__lines *lines, FILE *in, const char *name)
{
    *lines = (struct dt__lines){.in = in, .name = name};
    dt_status status = lines_begin(lines);
    if (status) dt__lines_close(lines);
    return status;
}

dt_status dt__lines_open(struct dt__lines *lines, const char *path)
{
    FILE *in;
    *lines = (struct dt__lines){0};
    DT_TRY(dt__packed_open(path, &in));
    *lines = (struct dt__lines){.in = in, .name = path, .owned = true};
    dt_status status = lines_begin(lines);
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

bool dt__lines_ready(const struct dt__lines *lines)
{
    struct pollfd input = {.fd = fileno(lines->in), .events = POLLIN};
    size_t left = lines->end - lines->begin;
    if (lines->eof || (left && memchr(lines->data + lines->begin, '\n', left))) return true;
    return poll(&input, 1, 0) != 0;
}

dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length)
{
    size_t bytes = 0,
           newlines = 0; /* of the record: up to its line end; ends within and behind it */
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
    *out_length = bytes && text[bytes - 1] == '\r' ? bytes - 1 : bytes;
    return DT_OK;
}

/* The next record that is not blank; *offset is where it begins. */
static dt_status record_next(struct dt__lines *lines, bool quotes, char **out, size_t *length,
                             uint64_t *offset)
{
    do {
        *offset = dt__lines_offset(lines);
        DT_TRY(dt__lines_next(lines, quotes, out, length));
    } while (*out && !*length);
    return DT_OK;
}

/* ---- survey --------------------------------------------------------------------------------- */

/* A weight is a number from 0 on. */
static dt_status row_weigh(struct dt__parser *parser)
{
    const struct dt__cell *cell = &parser->weight;
    if (!cell->text) return DT_OK;
    dt_status status = dt__number_read(cell->text, cell->length, &parser->row.weight);
    if (!status && parser->row.weight < 0)
        status = dt_fail(DT_EFORMAT, "a weight below 0: '%.*s'", (int)cell->length, cell->text);
    return status ? dt_fail_prefix(status, "data.weight: ") : DT_OK;
}

static dt_status row_learn(struct dt__survey *survey, struct dt__parser *parser)
{
    const struct dt__row *row = &parser->row;
    const struct dt__cell *label = &parser->label;
    float target;
    if (!survey->floats) survey->floats = !dt__floats_are_bytes(row->x, row->capacity);
    if (!survey->floats) survey->floats = !dt__floats_are_bytes(row->value, row->entries);
    survey->entries += row->entries;
    if (row->entries > survey->most_entries) survey->most_entries = row->entries;
    for (size_t i = 0; i < row->entries && !survey->values; i++)
        survey->values = row->value[i] != 1;
    DT_TRY(row_weigh(parser));
    if (survey->task == DT_TASK_CLASSIFY)
        return dt__labels_add_text(&survey->labels, label->text, label->length);
    if (dt__text_is_missing(label->text, label->length))
        return dt_fail(DT_EFORMAT,
                       "label: '%.*s' is a missing value: rows without a target are to be "
                       "left out of the file",
                       (int)label->length, label->text);
    dt_status status = dt__number_read(label->text, label->length, &target);
    return status ? dt_fail_prefix(status, "label: ") : DT_OK;
}

dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser)
{
    char *record;
    size_t length;
    uint64_t offset;
    survey->labels.path = file->path;
    for (;; file->rows++) {
        DT_TRY(dt_stop_check());
        DT_TRY(record_next(lines, grammar->quotes, &record, &length, &offset));
        if (!record) return DT_OK;
        DT_TRY(dt__survey_mark(file, file->rows, offset, lines->line));
        survey->labels.line = lines->line;
        dt_status status = grammar->parse(parser, record, length);
        if (!status) status = row_learn(survey, parser);
        if (status) return dt_fail_prefix(status, "%s:%" PRIu64 ": ", lines->name, lines->line);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

struct text_reader {
    const struct dt_source *source;
    const struct dt__grammar *grammar;
    struct dt__lines lines;
    struct dt__parser parser;
    uint64_t next; /* row at which the lines stand; UINT64_MAX: nowhere */
};

dt_status dt__text_open(const struct dt_source *source, const struct dt__file *file, bool random,
                        void **out_reader)
{
    struct text_reader *reader;
    (void)random;
    DT_TRY(dt_alloc(1, sizeof *reader, "reader", &reader));
    *reader = (struct text_reader){
        .source = source, .grammar = dt__formats[file->format]->grammar, .next = UINT64_MAX};
    reader->parser = (struct dt__parser){.file = file,
                                         .columns = (struct dt__columns *)&source->columns,
                                         .features = (uint32_t)source->schema.features};
    dt_status status = dt__lines_open(&reader->lines, file->path);
    if (status)
        dt__text_close(reader);
    else
        *out_reader = reader;
    return status;
}

void dt__text_close(void *arg)
{
    struct text_reader *reader = arg;
    dt__lines_close(&reader->lines);
    dt__row_free(&reader->parser.row);
    dt_free(reader);
}

/* Only a file that has changed can fail here: the survey parsed every row. */
static dt_status row_read(struct text_reader *reader, struct dt__block *out)
{
    const struct dt_source *source = reader->source;
    struct dt__parser *parser = &reader->parser;
    struct dt__row *row = &parser->row;
    char *record;
    size_t length;
    uint64_t offset;
    DT_TRY(record_next(&reader->lines, reader->grammar->quotes, &record, &length, &offset));
    if (!record)
        return dt_fail(DT_EMISMATCH, "%s: fewer rows than the survey found", parser->file->path);
    dt_status status = reader->grammar->parse(parser, record, length);
    if (!status) status = row_weigh(parser);
    if (!status && source->layout.targets)
        status = dt__number_read(parser->label.text, parser->label.length, &row->y.target);
    else if (!status)
        status = dt__label_of_text(&source->schema, &source->label_names, parser->label.text,
                                   parser->label.length, &row->y.label);
    if (!status && source->layout.bytes &&
        !(dt__floats_are_bytes(row->x, row->capacity) &&
          dt__floats_are_bytes(row->value, row->entries)))
        status = dt_fail(DT_EMISMATCH, "the row has changed since the survey");
    if (status)
        return dt_fail_prefix(status, "%s:%" PRIu64 ": ", reader->lines.name, reader->lines.line);
    return dt__block_add_row(&source->layout, out, row);
}

dt_status dt__text_read(void *arg, uint64_t row, size_t count, struct dt__block *out)
{
    struct text_reader *reader = arg;
    const struct dt__file *file = reader->parser.file;
    const struct dt__mark *mark =
        file->marks + dt__find_last(&file->marks->row, file->nmarks, sizeof *file->marks, row);
    uint64_t next = reader->next, offset;
    char *record;
    size_t length;
    reader->next = UINT64_MAX; /* where a failure leaves the lines */
    if (row < next || mark->row > next) {
        DT_TRY(dt__lines_seek(&reader->lines, mark->offset, mark->line));
        next = mark->row;
    }
    for (; next < row; next++)
        DT_TRY(record_next(&reader->lines, reader->grammar->quotes, &record, &length, &offset));
    for (size_t i = 0; i < count; i++)
        DT_TRY(row_read(reader, out));
    reader->next = row + count;
    return DT_OK;
}
