/* Rows of text: the pass over a file, which stores typed rows, and the reader of these rows. */
#include "data/text_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "data/learned.h"

/* ---- rows of a text file --------------------------------------------------------------------- */

enum { MAX_MARKS = 1 << 16 };

/* Adds what a parsed record has besides words (label, weight, group, time, number of entries) to
 * the survey, and sets the fixed part of its typed row. */
static dt_status row_learn(struct dt__survey *survey, const struct dt__parser *parser,
                           struct dt__typed_row *out)
{
    const struct dt__cell *label = &parser->label, *weight = &parser->weight;
    struct dt_source *source = survey->source;
    dt_status status = DT_OK;
    out->count = (uint32_t)parser->count;
    source->entries += parser->entries;
    if (parser->entries > source->most_entries) source->most_entries = parser->entries;
    if (weight->text) status = dt__number_read(weight->text, weight->length, &out->weight);
    if (!status && out->weight < 0)
        status = dt_fail(DT_EFORMAT, "a weight below 0: '%.*s'", (int)weight->length, weight->text);
    if (status) return dt_fail_prefix(status, "data.weight: ");
    struct dt__row_keys *const keys = &survey->keys;
    if (keys->grouped && parser->header)
        DT_TRY(dt__row_keys_add(keys, false, parser->group.text, parser->group.length));
    if (keys->timed && parser->header)
        DT_TRY(dt__row_keys_add(keys, true, parser->time.text, parser->time.length));
    if (survey->targets->classes)
        return dt__labels_add_text(&survey->labels, label->text, label->length, &out->y.label);
    return dt__target_read(survey->targets, label, &out->y.target);
}

/* Adds a mark for the next row, where readers can then start, unless the last mark is too near.
 * With `end`, always adds the mark: the end of the rows. */
static dt_status file_mark(struct dt__file *file, uint64_t offset, bool end)
{
    const uint64_t step = file->bytes / MAX_MARKS;
    if (!end && file->nmarks &&
        offset - file->marks[file->nmarks - 1].offset <
            (step > DT__MARK_BYTES ? step : DT__MARK_BYTES))
        return DT_OK;
    DT_TRY(dt__grow(&file->marks, &file->marks_capacity, file->nmarks + 1, sizeof *file->marks,
                    "marks in a text file"));
    file->marks[file->nmarks++] = (struct dt__row_mark){file->rows, offset};
    return DT_OK;
}

dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, struct dt__parser *parser)
{
    char *record;
    size_t length;
    struct dt__typed *typed = &survey->source->typed;
    dt__labels_enter(&survey->labels, file->path);
    if (!survey->targets->classes) {
        dt_status status = dt__survey_targets(survey, 1 + parser->further_targets);
        if (status) return dt_fail_prefix(status, "%s: ", file->path);
    }
    const bool skips =
        survey->config->data.unlabelled != DT_UNLABELLED_ERROR && grammar->lacks_label;
    uint64_t skipped = 0;
    lines->keeps = skips;
    while (true) {
        struct dt__typed_row row = {.weight = 1};
        bool unlabelled = false;
        DT_TRY(dt__stop_check());
        do
            DT_TRY(dt__lines_next(lines, grammar->quotes, &record, &length));
        while (record && (grammar->is_empty ? grammar->is_empty(record, length) : !length));
        if (!record) break;
        survey->labels.line = lines->line;
        uint32_t *const crc = &survey->source->text_crc;
        *crc = dt__crc32c(*crc, record, length); /* parsing will overwrite the record */
        dt_status status = DT_OK;
        if (skips) status = grammar->lacks_label(parser, lines->raw, length, &unlabelled);
        if (unlabelled && ++skipped) continue;
        if (!status) status = grammar->parse(parser, record, length);
        const bool parsed = !status;
        if (parsed) status = row_learn(survey, parser, &row);
        if (status && grammar->explain) status = grammar->explain(parser, record, status);
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
        dt__info("%s: %" PRIu64 " rows without a label are left out (data.unlabelled=skip)",
                 lines->name, skipped);
    survey->has_floats |= parser->has_floats;
    survey->has_values |= parser->has_values;
    return file_mark(file, dt__typed_end(typed), true);
}

/* ---- reading rows ---------------------------------------------------------------------------- */

/* A reader of typed rows. It holds the rows from one mark of a file to the next. */
struct typed_reader {
    const struct dt_source *source;
    const struct dt__file *file;
    const struct dt__grammar *grammar;
    size_t mark;          /* number of the mark at which the rows held start */
    unsigned char *bytes; /* (capacity) the rows held */
    size_t capacity, at;
    uint64_t next; /* number of the row at bytes + at; UINT64_MAX: no rows are held */
};

dt_status dt__typed_reader_open(const struct dt_source *source, const struct dt__file *file,
                                const struct dt__grammar *grammar, void **out)
{
    struct typed_reader *reader;
    if (source->typed.fd < 0)
        return dt_fail(DT_EBUG, "%s: the typed rows are not on this host", file->path);
    DT_TRY(dt__alloc(1, sizeof *reader, "reader", &reader));
    *reader = (struct typed_reader){
        .source = source, .file = file, .grammar = grammar, .next = UINT64_MAX};
    *out = reader;
    return DT_OK;
}

void dt__typed_reader_close(void *arg)
{
    struct typed_reader *reader = arg;
    dt_free(reader->bytes);
    dt_free(reader);
}

/* Reads the rows from a mark to the next one into the reader. */
static dt_status reader_enter(struct typed_reader *reader, size_t mark)
{
    const struct dt__row_mark *from = &reader->file->marks[mark];
    const size_t length = (size_t)(from[1].offset - from->offset);
    reader->next = UINT64_MAX; /* in case the read fails */
    DT_TRY(dt__grow(&reader->bytes, &reader->capacity, length, 1, "typed rows"));
    DT_TRY(dt__source_copy_out(reader->source, from->offset, reader->bytes, length));
    reader->mark = mark;
    reader->at = 0;
    reader->next = from->row;
    return DT_OK;
}

/* Converts codes of labels to classes, and codes of categories to features. */
dt_status dt__typed_reader_read(void *arg, uint64_t row, size_t count, struct dt__block *out)
{
    struct typed_reader *reader = arg;
    const struct dt_source *source = reader->source;
    const struct dt__row_mark *marks = reader->file->marks;
    const struct dt__grammar *grammar = reader->grammar;
    const size_t targets = (size_t)source->layout.targets, more = targets > 1 ? targets - 1 : 0;
    const size_t mark = dt__find_last(&marks->row, reader->file->nmarks, sizeof *marks, row);
    const struct dt__row_layout *layout = &source->layout;
    if (row < reader->next || mark != reader->mark) DT_TRY(reader_enter(reader, mark));
    for (size_t length; reader->next < row + count; reader->next++, reader->at += length) {
        struct dt__typed_row typed;
        if (reader->next == marks[reader->mark + 1].row)
            DT_TRY(reader_enter(reader, reader->mark + 1));
        const unsigned char *bytes = reader->bytes + reader->at;
        const uint32_t *words = (const uint32_t *)(const void *)(bytes + sizeof typed);
        memcpy(&typed, bytes, sizeof typed);
        length = sizeof typed + typed.count * sizeof *words;
        if (reader->next < row) continue;
        DT_TRY(grammar->row(&source->columns, words, typed.count, layout, out));
        const int32_t code = typed.y.label;
        if (!targets && source->label_class) typed.y.label = source->label_class[code];
        unsigned char *y = dt__block_y(layout, out, out->rows - 1);
        memcpy(y, &typed.y, sizeof typed.y);
        memcpy(y + sizeof typed.y, words + typed.count - more, more * sizeof *words);
        if (layout->weights) out->weight[out->rows - 1] = typed.weight;
    }
    return DT_OK;
}
