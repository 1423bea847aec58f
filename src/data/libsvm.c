/* LIBSVM files: "label index:value ...", with ascending indices from 1; features without an entry
 * are 0. Source: C.-C. Chang and C.-J. Lin, LIBSVM, README, "svm-train usage". */
#include "data/libsvm.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "data/format.h"
#include "data/learned.h"
#include "text/input.h"
#include "text/libsvm_record.h"

/* PLAUSIBLE: data of any size may have this many features. UNPACKED: a byte of a packed file gives
 * at most this many bytes. */
enum { PLAUSIBLE = 1 << 16, UNPACKED = 1000 };

/* ---- rows ----------------------------------------------------------------------------------- */

/* Rejects an index so great that a few bytes of data would make a model of gigabytes. Allows any
 * index if data.features or a model sets the number of features. */
static dt_status index_check(const struct dt__parser *parser, uint64_t index)
{
    if (parser->features || index <= PLAUSIBLE) return DT_OK;
    const char *why = index > DT__MAX_FEATURES ? "more than 16777216 features"
                      : index <= parser->bytes ? NULL
                      : parser->bytes          ? "data of this size cannot have that many features"
                                      : "from a pipe, the size of the data is not known, and this "
                                        "may be an error";
    if (!why) return DT_OK;
    return dt_fail(DT_EFORMAT,
                   "%s; data.features sets their number, and greater indices are ignored", why);
}

static dt_status pair_read(struct dt__parser *parser, const struct dt__cell *field, uint64_t *last)
{
    uint64_t index;
    float value;
    DT_TRY(dt__libsvm_pair(field, *last, &index, &value));
    *last = index;
    const dt_status status = index_check(parser, index);
    if (status) return dt_fail_prefix(status, "index %" PRIu64 ": ", index);
    if (index > parser->widest) parser->widest = index;
    if (value == 0 || (parser->features && index > parser->features)) return DT_OK;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    DT_TRY(dt__parser_add(parser, (uint32_t)index - 1));
    DT_TRY(dt__parser_add(parser, bits));
    parser->entries++;
    parser->has_values |= value != 1;
    if (!parser->has_floats) parser->has_floats = !dt__floats_are_bytes(&value, 1);
    return DT_OK;
}

static dt_status libsvm_parse(struct dt__parser *parser, char *record, size_t length)
{
    char *text = record, *after = record, *end = record + length;
    struct dt__cell field;
    uint64_t last = 0;
    parser->label = (struct dt__cell){record, 0};
    parser->count = parser->entries = 0;
    if (dt__libsvm_field(&after, end, &field) && !memchr(field.text, ':', field.length)) {
        parser->label = field;
        text = after;
    }
    while (dt__libsvm_field(&text, end, &field))
        DT_TRY(pair_read(parser, &field, &last));
    return DT_OK;
}

static dt_status libsvm_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                            const struct dt__row_layout *layout, struct dt__block *out)
{
    (void)columns;
    unsigned char *x = dt__block_add_zeros(layout, out);
    for (size_t i = 0; i < count; i += 2) {
        float value;
        memcpy(&value, &words[i + 1], sizeof value);
        DT_TRY(dt__block_put(layout, out, x, words[i], value));
    }
    return DT_OK;
}

/* Returns true for a line that has only blanks or a comment. */
static bool libsvm_is_empty(char *record, size_t length)
{
    struct dt__cell field;
    return !dt__libsvm_field(&record, record + length, &field);
}

const struct dt__grammar dt__libsvm_grammar = {
    .is_empty = libsvm_is_empty, .parse = libsvm_parse, .row = libsvm_row};

/* ---- files ---------------------------------------------------------------------------------- */

/* Surveys a file. The number of features is the model's or data.features; without these, it is the
 * greatest index in any LIBSVM file, which must not exceed the number of features of an earlier
 * file of another format. */
static dt_status libsvm_survey(struct dt__survey *survey, struct dt__file *file)
{
    struct dt__lines *const lines = &survey->lines;
    int64_t features = survey->config->data.features;
    struct dt__parser parser = {.bytes = survey->bytes, .features = (uint32_t)features};
    int *const known = &survey->source->schema.features;
    if (survey->known) parser.features = (uint32_t)*known;
    if (lines->file && dt__packed_is(lines->file)) parser.bytes *= UNPACKED;
    dt__lines_release(lines, true);
    const dt_status status = dt__text_survey(survey, file, lines, &dt__libsvm_grammar, &parser);
    dt_free(parser.words);
    if (status) return status;
    if (!file->rows) return dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path);
    if (parser.features && parser.widest > parser.features && !survey->warned_beyond) {
        dt__warn("%s: features beyond %u, up to %" PRIu64 ", are ignored", file->path,
                 parser.features, parser.widest);
        survey->warned_beyond = true;
    }
    if (survey->known) return DT_OK;
    if (features) parser.widest = (uint64_t)features;
    if (!parser.widest) return dt_fail(DT_EFORMAT, "%s: no row has a feature", file->path);
    for (const struct dt__file *f = survey->source->files; f < file; f++)
        if (f->format != DT_FORMAT_LIBSVM && (int)parser.widest > *known)
            return dt_fail(DT_EMISMATCH, "%s: %" PRIu64 " features, but the earlier files have %d",
                           file->path, parser.widest, *known);
    if ((int)parser.widest > *known) *known = (int)parser.widest;
    return DT_OK;
}

/* Returns true if the file has a suffix of LIBSVM, or if the first line that shows a format can
 * only be LIBSVM. */
static bool libsvm_is(const char *suffix, const unsigned char *head, size_t length)
{
    const size_t mark = length >= 3 && !memcmp(head, "\xEF\xBB\xBF", 3) ? 3 : 0;
    return !strcasecmp(suffix, ".libsvm") || !strcasecmp(suffix, ".svm") ||
           !strcasecmp(suffix, ".svmlight") ||
           (strcasecmp(suffix, ".csv") != 0 &&
            dt__libsvm_is((char *)(uintptr_t)head + mark, length - mark));
}

static dt_status libsvm_open(const struct dt_source *source, const struct dt__file *file,
                             void **out)
{
    return dt__typed_reader_open(source, file, &dt__libsvm_grammar, out);
}

const struct dt__format dt__format_libsvm = {.name = "LIBSVM",
                                             .sparsity = DT__SPARSE,
                                             .keys_apart = true,
                                             .is = libsvm_is,
                                             .grammar = &dt__libsvm_grammar,
                                             .survey = libsvm_survey,
                                             .open = libsvm_open,
                                             .read = dt__typed_reader_read,
                                             .close = dt__typed_reader_close};
