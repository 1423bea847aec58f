/* LIBSVM files: "label index:value ...", indices from 1, rising; what is left out is 0.
 * Source: C.-C. Chang and C.-J. Lin, LIBSVM, README, "svm-train usage". */
#include "data/libsvm.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "data/input.h"
#include "data/survey.h"
#include "data/text.h"

/* Features that are believed of data of any size; bytes that a packed one may stand for. */
enum { PLAUSIBLE = 1 << 16, UNPACKED = 1000 };
/* Of an index, which may be a hash of 64 bits: what one more digit keeps in them. */
static const uint64_t GREATEST = UINT64_MAX / 10 * 10 - 1;

/* ---- rows ----------------------------------------------------------------------------------- */

/* The next word of a line; false at its end or before a comment. */
static bool word_next(char **text, char *end, struct dt__cell *out)
{
    char *p = *text;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p == end || *p == '#') return false;
    out->text = p;
    while (p < end && *p != ' ' && *p != '\t')
        p++;
    out->length = (size_t)(p - out->text);
    *text = p;
    return true;
}

/* Without data.features or a model a few bytes must not make a model of gigabytes. */
static dt_status index_check(const struct dt__parser *parser, uint64_t index)
{
    if (parser->features || index <= PLAUSIBLE) return DT_OK;
    const char *why = index > DT__MAX_FEATURES ? "more than 16777216 features"
                      : index <= parser->bytes ? NULL
                      : parser->bytes ? "data of so few bytes does not have so many features"
                                      : "rows of a pipe do not show whether there are so many "
                                        "features";
    if (!why) return DT_OK;
    return dt_fail(DT_EFORMAT,
                   "%s; data.features says how many are meant, and greater ones are "
                   "ignored",
                   why);
}

static dt_status pair_read(struct dt__parser *parser, const struct dt__cell *word, uint64_t *last)
{
    const char *colon = memchr(word->text, ':', word->length), *p = word->text;
    uint64_t index = 0;
    float value;
    for (; colon && p < colon && isdigit((unsigned char)*p) && index <= GREATEST / 10; p++)
        index = index * 10 + (uint64_t)(*p - '0');
    if (!colon || p < colon || !index)
        return dt_fail(DT_EFORMAT, "'%.*s' is not index:value with an index from 1 to %" PRIu64,
                       dt__shown(word->length), word->text, GREATEST);
    if (index <= *last) return dt_fail(DT_EFORMAT, "index %" PRIu64 " does not rise", index);
    *last = index;
    dt_status status =
        dt__number_read(colon + 1, word->length - (size_t)(colon + 1 - word->text), &value);
    if (!status) status = index_check(parser, index);
    if (status) return dt_fail_prefix(status, "index %" PRIu64 ": ", index);
    if (index > parser->widest) parser->widest = index;
    if (value == 0 || (parser->features && index > parser->features)) return DT_OK;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    DT_TRY(dt__parser_add(parser, (uint32_t)index - 1));
    DT_TRY(dt__parser_add(parser, bits));
    parser->entries++;
    parser->values |= value != 1;
    if (!parser->floats) parser->floats = !dt__floats_are_bytes(&value, 1);
    return DT_OK;
}

static dt_status libsvm_parse(struct dt__parser *parser, char *record, size_t length)
{
    char *text = record, *after = record, *end = record + length;
    struct dt__cell word;
    uint64_t last = 0;
    parser->label = (struct dt__cell){record, 0};
    parser->count = parser->entries = 0;
    if (word_next(&after, end, &word) && !memchr(word.text, ':', word.length)) {
        parser->label = word;
        text = after;
    }
    while (word_next(&text, end, &word))
        DT_TRY(pair_read(parser, &word, &last));
    return DT_OK;
}

static dt_status libsvm_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                            const struct dt__layout *layout, struct dt__block *out)
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

/* A line of blanks, or a comment alone. */
static bool libsvm_is_empty(char *record, size_t length)
{
    struct dt__cell word;
    return !word_next(&record, record + length, &word);
}

const struct dt__grammar dt__libsvm_grammar = {false, libsvm_is_empty, libsvm_parse, libsvm_row};

/* ---- files ---------------------------------------------------------------------------------- */

/* The widest row of all these files says how many features there are, unless the model,
 * data.features or a file of another format does. */
static dt_status libsvm_survey(struct dt__survey *survey, struct dt__file *file)
{
    struct dt__lines lines;
    int64_t features = survey->config->data.features;
    struct dt__parser parser = {.bytes = survey->bytes, .features = (uint32_t)features};
    int *const known = &survey->source->schema.features;
    if (survey->known) parser.features = (uint32_t)*known;
    DT_TRY(dt__lines_open(&lines, file->path));
    if (lines.file && dt__packed_is(lines.file)) parser.bytes *= UNPACKED;
    dt__lines_release(&lines, true);
    dt_status status = dt__text_survey(survey, file, &lines, &dt__libsvm_grammar, &parser);
    dt__lines_close(&lines);
    dt_free(parser.words);
    if (status) return status;
    if (!file->rows) return dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path);
    if (parser.features && parser.widest > parser.features && !survey->said_beyond) {
        dt__warn("%s: features beyond %u, up to %" PRIu64 ", are ignored", file->path,
                 parser.features, parser.widest);
        survey->said_beyond = true;
    }
    if (survey->known) return DT_OK;
    if (features) parser.widest = (uint64_t)features;
    if (!parser.widest) return dt_fail(DT_EFORMAT, "%s: no row has a feature", file->path);
    for (const struct dt__file *f = survey->source->files; f < file; f++)
        if (f->format != DT_FORMAT_LIBSVM && (int)parser.widest > *known)
            return dt_fail(DT_EMISMATCH, "%s: %" PRIu64 " features, the files before have %d",
                           file->path, parser.widest, *known);
    if ((int)parser.widest > *known) *known = (int)parser.widest;
    return DT_OK;
}

static bool word_is_pair(const struct dt__cell *word)
{
    size_t digits = 0;
    while (digits < word->length && isdigit((unsigned char)word->text[digits]))
        digits++;
    return digits && digits < word->length && word->text[digits] == ':';
}

enum dt__libsvm_line dt__libsvm_line(char *text, size_t length)
{
    char *const end = text + length;
    struct dt__cell word = {0};
    double value;
    if (!word_next(&text, end, &word)) return DT__LIBSVM_NOTHING;
    if (word_is_pair(&word)) return DT__LIBSVM_ROW;
    if (dt__number_parse(word.text, word.length, &value)) return DT__LIBSVM_NONE;
    if (!word_next(&text, end, &word)) return DT__LIBSVM_NUMBER;
    return word_is_pair(&word) ? DT__LIBSVM_ROW : DT__LIBSVM_NONE;
}

bool dt__libsvm_is(char *text, size_t length)
{
    char *const stop = text + length;
    enum dt__libsvm_line line = DT__LIBSVM_NOTHING;
    for (char *end; text < stop && line < DT__LIBSVM_ROW; text = end + 1) {
        char *newline = memchr(text, '\n', (size_t)(stop - text));
        end = newline ? newline : stop;
        line = dt__libsvm_line(text, (size_t)(end - text) - (end > text && end[-1] == '\r'));
    }
    return line == DT__LIBSVM_ROW;
}

/* By the name, or a line that is like no other. */
static bool libsvm_is(const char *suffix, const unsigned char *head, size_t length)
{
    const size_t mark = length >= 3 && !memcmp(head, "\xEF\xBB\xBF", 3) ? 3 : 0;
    return !strcasecmp(suffix, ".libsvm") || !strcasecmp(suffix, ".svm") ||
           !strcasecmp(suffix, ".svmlight") ||
           (strcasecmp(suffix, ".csv") != 0 &&
            dt__libsvm_is((char *)(uintptr_t)head + mark, length - mark));
}

const struct dt__format dt__format_libsvm = {.name = "LIBSVM",
                                             .sparsity = DT__SPARSE,
                                             .is = libsvm_is,
                                             .grammar = &dt__libsvm_grammar,
                                             .survey = libsvm_survey,
                                             .open = dt__typed_reader_open,
                                             .read = dt__typed_reader_read,
                                             .close = dt__typed_reader_close};
