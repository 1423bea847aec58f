/* Text formats: records of a stream, and the one pass over a file of rows. */
#include "data/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/csv.h"
#include "data/header.h"
#include "data/number.h"
#include "data/packed.h"
#include "data/reader.h"

enum { LONGEST_RECORD = 1 << 26 };

/* ---- records -------------------------------------------------------------------------------- */

/* A pipe gives what it has, and is waited for; a stream in memory has no descriptor. */
static dt_status stream_read(const struct dt__lines *lines, char *to, size_t size, size_t *length)
{
    enum { WAIT_MS = 100 };
    const int fd = fileno(lines->in);
    struct pollfd input = {.fd = fd, .events = POLLIN};
    ssize_t got;
    for (int ready = 0; fd >= 0 && ready <= 0;) {
        ready = poll(&input, 1, WAIT_MS);
        if (ready < 0 && errno != EINTR) break; /* read says why */
        if (ready <= 0) DT_TRY(dt_stop_check());
    }
    do
        got = fd < 0 ? (ssize_t)fread(to, 1, size, lines->in) : read(fd, to, size);
    while (fd >= 0 && got < 0 && errno == EINTR);
    if (got < 0 || (fd < 0 && got == 0 && ferror(lines->in)))
        return dt_fail(DT_EIO, "%s: %s", lines->name, strerror(errno));
    *length = (size_t)got;
    dt_work_progress();
    return DT_OK;
}

/* Moves what is left to the front and reads more behind it. */
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
    DT_TRY(dt_grow(&lines->data, &lines->capacity, kept + DT__LINES_BYTES, 1, "lines of text"));
    char *to = lines->data + kept;
    DT_TRY(lines->file ? dt__packed_read(lines->file, to, lines->capacity - kept, &got)
                       : stream_read(lines, to, lines->capacity - kept, &got));
    lines->eof = got == 0;
    lines->end += got;
    return DT_OK;
}

/* Reads as much as tells what kind of file it is; a pipe's first line may be shorter, and the next
 * one be long in coming. */
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
    *lines = (struct dt__lines){.in = in, .lent = true, .name = name};
    return lines_begin(lines);
}

/* A FIFO that nobody writes to yet is waited for where it is read, and not here. */
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
    DT_TRY(lines_begin(lines));
    return dt__stream_refuse(path, (const unsigned char *)lines->data, lines->end);
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
    if (lines->in && !lines->lent) fclose(lines->in);
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

void dt__lines_decimal(struct dt__lines *lines, const struct dt_config *config)
{
    const char *separator = config->data.separator;
    lines->commas = config->data.decimal == DT_DECIMAL_COMMA;
    lines->separator = separator[0] && !separator[1] ? *separator : ';';
    if (!strcmp(separator, "space")) lines->separator = ' ';
}

/* Whether it is like 1.250, of which a file with decimal commas may mean 1250. */
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

/* Puts a point in place of the comma in cells that are a number but for that. Outside of quotes a
 * comma beside one separates cells; every one does where it is the separator. */
static void commas_replace(struct dt__lines *lines, char *text, size_t length)
{
    const bool separates = lines->separator == ',';
    const char borders[] = {separates ? ';' : lines->separator, '"', ';', '\t', '|', '\r', '\n'};
    char *const stop = text + length;
    bool inside = false; /* quotes */
    for (char *cell = text, *end; cell < stop; cell = end + 1) {
        for (end = cell; end < stop && !memchr(borders, *end, sizeof borders);)
            end++;
        char *comma = memchr(cell, ',', (size_t)(end - cell));
        double value;
        inside ^= cell > text && cell[-1] == '"';
        if (!comma && !lines->said_point && lines->line >= lines->rewound &&
            is_of_thousands(cell, (size_t)(end - cell))) {
            dt_warn("%s:%" PRIu64 ": '%.*s': with data.decimal=, points are decimal points, too; "
                    "if it stands between thousands, leave it out",
                    lines->name, lines->line, (int)(end - cell), cell);
            lines->said_point = true;
        }
        const bool behind = comma == cell && cell > text && cell[-1] == '"';
        const bool before = comma && comma + 1 == end && end < stop && *end == '"';
        if (!comma || (!inside && (separates || behind || before))) continue;
        *comma = '.';
        if (dt__number_parse(cell, (size_t)(end - cell), &value) == DT__NUMBER_BAD) *comma = ',';
    }
}

dt_status dt__lines_next(struct dt__lines *lines, bool quotes, char **out, size_t *out_length)
{
    size_t bytes = 0;    /* of the record, without its last line end */
    size_t newlines = 0; /* with that one */
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
    while (bytes && text[bytes - 1] == '\r') /* two, where CRLF was made of CRLF */
        bytes--;
    *out_length = bytes;
    if (lines->keeps) {
        DT_TRY(dt_grow(&lines->raw, &lines->raw_room, bytes + 1, 1, "a row"));
        memcpy(lines->raw, text, bytes);
    }
    if (lines->commas) commas_replace(lines, text, bytes);
    return DT_OK;
}

/* ---- the pass over a file ------------------------------------------------------------------- */

enum { MAX_MARKS = 1 << 16 };

dt_status dt__parser_add(struct dt__parser *parser, uint32_t word)
{
    DT_TRY(dt_grow(&parser->words, &parser->room, parser->count + 1, sizeof *parser->words, "row"));
    parser->words[parser->count++] = word;
    return DT_OK;
}

/* A weight is a number from 0 on. */
static dt_status cell_weigh(const struct dt__cell *cell, float *out)
{
    if (!cell->text) return DT_OK;
    dt_status status = dt__number_read(cell->text, cell->length, out);
    if (!status && *out < 0)
        status = dt_fail(DT_EFORMAT, "a weight below 0: '%.*s'", (int)cell->length, cell->text);
    return status ? dt_fail_prefix(status, "data.weight: ") : DT_OK;
}

dt_status dt__target_read(const struct dt_targets *of, const struct dt__cell *label, float *out)
{
    if (dt__text_is_missing(label->text, label->length))
        return dt_fail(DT_EFORMAT,
                       "label: '%.*s' is a missing value: data.unlabelled=skip leaves such "
                       "rows of CSV out",
                       (int)label->length, label->text);
    dt_status status = dt__number_read(label->text, label->length, out);
    if (!status) status = dt__target_check(of, (double)*out);
    return status ? dt_fail_prefix(status, "label: ") : DT_OK;
}

static dt_status row_learn(struct dt__survey *survey, const struct dt__parser *parser,
                           struct dt__typed_row *out)
{
    const struct dt__cell *label = &parser->label;
    out->count = (uint32_t)parser->count;
    survey->entries += parser->entries;
    if (parser->entries > survey->most_entries) survey->most_entries = parser->entries;
    DT_TRY(cell_weigh(&parser->weight, &out->weight));
    if (survey->of->classes)
        return dt__labels_add_text(&survey->labels, label->text, label->length, &out->y.label);
    return dt__target_read(survey->of, label, &out->y.target);
}

/* Marks the next row as a place to enter, if the last mark is far enough behind; or the end. */
static dt_status file_mark(struct dt__file *file, uint64_t offset, bool end)
{
    const uint64_t step = file->bytes / MAX_MARKS;
    if (!end && file->nmarks &&
        offset - file->marks[file->nmarks - 1].offset <
            (step > DT__MARK_BYTES ? step : DT__MARK_BYTES))
        return DT_OK;
    DT_TRY(dt_grow(&file->marks, &file->marks_capacity, file->nmarks + 1, sizeof *file->marks,
                   "marks in a text file"));
    file->marks[file->nmarks++] = (struct dt__mark){file->rows, offset};
    return DT_OK;
}

/* Whether a record, which stays as it is, lacks a label, by data.unlabelled=skip. */
static dt_status record_is_unlabelled(struct dt__survey *survey, const struct dt__parser *parser,
                                      const char *record, size_t length, bool *out)
{
    const struct dt__header *header = parser->header;
    *out = false;
    if (survey->config->data.unlabelled == DT_UNLABELLED_ERROR || !header) return DT_OK;
    DT_TRY(dt_grow(&survey->record, &survey->record_room, length + 1, 1, "row of text"));
    memcpy(survey->record, record, length);
    char *text = survey->record, *const end = text + length;
    for (size_t i = 0; text && i < header->cells.count; i++) {
        struct dt__cell cell;
        DT_TRY(dt__csv_cell(&text, end, header->separator, &cell));
        *out |= header->roles[i] <= DT__ROLE_LABEL && dt__text_is_missing(cell.text, cell.length);
    }
    return DT_OK;
}

dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser)
{
    char *record;
    size_t length;
    struct dt__typed *typed = &survey->source->typed;
    survey->labels.path = file->path;
    if (!survey->of->classes) {
        dt_status status = dt__survey_targets(survey, 1 + parser->more);
        if (status) return dt_fail_prefix(status, "%s: ", file->path);
    }
    uint64_t skipped = 0;
    while (true) {
        struct dt__typed_row row = {.weight = 1};
        bool unlabelled;
        DT_TRY(dt_stop_check());
        do
            DT_TRY(dt__lines_next(lines, grammar->quotes, &record, &length));
        while (record && grammar->is_empty(record, length));
        if (!record) break;
        survey->labels.line = lines->line;
        uint32_t *const crc = &survey->source->text_crc;
        *crc = dt_crc32c(*crc, record, length); /* before it is cut into cells */
        dt_status status = record_is_unlabelled(survey, parser, record, length, &unlabelled);
        if (unlabelled && ++skipped) continue;
        if (!status) status = grammar->parse(parser, record, length);
        const bool parsed = !status;
        if (parsed) status = row_learn(survey, parser, &row);
        if (status)
            return dt_fail_prefix(status, "%s:%" PRIu64 "%s: ", lines->name, lines->line,
                                  parsed && lines->commas ? " (a decimal comma is shown as a point)"
                                                          : "");
        DT_TRY(file_mark(file, dt__typed_end(typed), false));
        DT_TRY(dt__typed_add(typed, &row, sizeof row));
        DT_TRY(dt__typed_add(typed, parser->words, row.count * sizeof *parser->words));
        file->rows++;
    }
    if (skipped)
        dt_info("%s: %" PRIu64 " rows without a label are left out (data.unlabelled=skip)",
                lines->name, skipped);
    survey->floats |= parser->floats;
    survey->values |= parser->values;
    return file_mark(file, dt__typed_end(typed), true);
}
