/* Text formats. */
#include "data/text.h"

#include <inttypes.h>
#include <string.h>

#include "data/number.h"

static dt_status fail_at(dt_status status, const struct dt__lines *lines)
{
    return dt_fail_prefix(status, "%s:%" PRIu64 ": ", lines->name, lines->line);
}

/* The next record that is not blank; *offset is where it begins. */
static dt_status next_record(struct dt__lines *lines, bool quotes, char **out, size_t *length,
                             uint64_t *offset)
{
    do {
        *offset = dt__lines_offset(lines);
        DT_TRY(dt__lines_next(lines, quotes, out, length));
    } while (*out && !*length);
    return DT_OK;
}

/* ---- survey --------------------------------------------------------------------------------- */

static dt_status learn_row(struct dt__survey *survey, const struct dt__text_row *row)
{
    float target;
    if (!survey->floats) survey->floats = !dt__floats_are_bytes(row->x, row->capacity);
    if (survey->task == DT_REGRESS) {
        dt_status status = dt__number_read(row->label.text, row->label.length, &target);
        return status ? dt_fail_prefix(status, "label: ") : DT_OK;
    }
    return dt__labels_add_text(&survey->labels, row->label.text, row->label.length);
}

static dt_status survey_rows(struct dt__survey *survey, struct dt__file *file,
                             struct dt__lines *lines, const struct dt__grammar *grammar,
                             struct dt__text_row *row)
{
    char *record;
    size_t length;
    uint64_t offset;
    for (;; file->rows++) {
        DT_TRY(dt_stop_check());
        DT_TRY(next_record(lines, grammar->quotes, &record, &length, &offset));
        if (!record) break;
        DT_TRY(dt__survey_mark(file, file->rows, offset, lines->line));
        survey->labels.line = lines->line;
        dt_status status = grammar->parse(survey->source, record, length, row);
        if (!status) status = learn_row(survey, row);
        if (status) return fail_at(status, lines);
    }
    return file->rows ? DT_OK : dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path);
}

dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, size_t features, size_t *widest)
{
    struct dt__text_row row = {.capacity = features, .grow = !features};
    DT_TRY(dt_alloc(features, sizeof *row.x, "row of text", &row.x));
    survey->labels.path = file->path;
    dt_status status = survey_rows(survey, file, lines, grammar, &row);
    dt_free(row.x);
    *widest = row.widest;
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reader {
    const struct dt_source *source;
    const struct dt__file *file;
    const struct dt__grammar *grammar;
    struct dt__lines lines;
    struct dt__text_row row;
    uint64_t next; /* row at which `lines` stands */
};

dt_status dt__text_open(const struct dt_source *source, const struct dt__file *file,
                        const struct dt__grammar *grammar, void **out_reader)
{
    struct reader *reader;
    size_t features = (size_t)source->layout.features;
    DT_TRY(dt_alloc(1, sizeof *reader, "reader", &reader));
    *reader = (struct reader){.source = source,
                              .file = file,
                              .grammar = grammar,
                              .row.capacity = features,
                              .next = UINT64_MAX};
    dt_status status = dt__lines_open(&reader->lines, file->path);
    if (!status) status = dt_alloc(features, sizeof(float), "row of text", &reader->row.x);
    if (status)
        dt__text_close(reader);
    else
        *out_reader = reader;
    return status;
}

void dt__text_close(void *arg)
{
    struct reader *reader = arg;
    dt__lines_close(&reader->lines);
    dt_free(reader->row.x);
    dt_free(reader);
}

static const struct dt__mark *find_mark(const struct dt__file *file, uint64_t row)
{
    size_t low = 0, high = file->nmarks;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (file->marks[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    return &file->marks[low];
}

/* Stands the lines in front of `row`. */
static dt_status go_to(struct reader *reader, uint64_t row)
{
    const struct dt__mark *mark = find_mark(reader->file, row);
    char *record;
    size_t length;
    uint64_t offset;
    if (row < reader->next || mark->row > reader->next) {
        DT_TRY(dt__lines_seek(&reader->lines, mark->offset, mark->line));
        reader->next = mark->row;
    }
    for (; reader->next < row; reader->next++)
        DT_TRY(next_record(&reader->lines, reader->grammar->quotes, &record, &length, &offset));
    return DT_OK;
}

static dt_status put_y(const struct dt_source *source, const struct dt__cell *label,
                       unsigned char *out)
{
    float target;
    int32_t class;
    if (source->layout.targets) {
        DT_TRY(dt__number_read(label->text, label->length, &target));
        memcpy(out, &target, sizeof target);
    } else {
        DT_TRY(dt__label_of_text(&source->schema, label->text, label->length, &class));
        memcpy(out, &class, sizeof class);
    }
    return DT_OK;
}

/* Only a file that has changed can fail here: the survey parsed every row. */
static dt_status read_row(struct reader *reader, struct dt__block out)
{
    const struct dt_source *source = reader->source;
    struct dt__text_row *row = &reader->row;
    char *record;
    size_t length;
    uint64_t offset;
    DT_TRY(next_record(&reader->lines, reader->grammar->quotes, &record, &length, &offset));
    if (!record)
        return dt_fail(DT_EMISMATCH, "%s: fewer rows than the survey found", reader->file->path);
    dt_status status = reader->grammar->parse(source, record, length, row);
    if (!status) status = put_y(source, &row->label, out.y);
    if (!status && source->layout.bytes && !dt__floats_are_bytes(row->x, row->capacity))
        status = dt_fail(DT_EMISMATCH, "the row has changed since the survey");
    if (status) return fail_at(status, &reader->lines);
    dt__layout_put_x(&source->layout, row->x, out.x);
    return DT_OK;
}

dt_status dt__text_read(void *arg, uint64_t row, size_t count, struct dt__block out)
{
    struct reader *reader = arg;
    dt_status status = go_to(reader, row);
    for (size_t i = 0; i < count && !status; i++) {
        status = read_row(reader, dt__block_at(&reader->source->layout, out, i));
        reader->next++;
    }
    if (status) reader->next = UINT64_MAX;
    return status;
}
