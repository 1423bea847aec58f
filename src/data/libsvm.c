/* LIBSVM files: "label index:value ...", indices from 1, rising; what is left out is 0.
 * Source: C.-C. Chang and C.-J. Lin, LIBSVM, README, "svm-train usage". */
#include "data/libsvm.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "data/number.h"
#include "data/reader.h"
#include "data/text.h"

/* ---- rows ----------------------------------------------------------------------------------- */

/* The next word of a line; false at its end or before a comment. */
static bool next_word(char **text, char *end, struct dt__cell *out)
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

static dt_status read_index(const struct dt__cell *word, const char *colon, size_t *out)
{
    size_t index = 0;
    for (const char *p = word->text; p < colon; p++) {
        if (!isdigit((unsigned char)*p) || index > DT__MAX_FEATURES) return DT_EFORMAT;
        index = index * 10 + (size_t)(*p - '0');
    }
    if (!index || index > DT__MAX_FEATURES) return DT_EFORMAT;
    *out = index;
    return DT_OK;
}

static dt_status put_value(struct dt__text_row *row, size_t index, float value)
{
    if (index > row->capacity && !row->grow)
        return dt_fail(DT_EFORMAT, "the data has %zu features", row->capacity);
    DT_TRY(dt_grow(&row->x, &row->capacity, index, sizeof *row->x, "row"));
    row->x[index - 1] = value;
    return DT_OK;
}

static dt_status read_pair(const struct dt__cell *word, struct dt__text_row *row, size_t *last)
{
    const char *colon = memchr(word->text, ':', word->length);
    int shown = word->length < 40 ? (int)word->length : 40;
    size_t index;
    float value;
    if (!colon || read_index(word, colon, &index))
        return dt_fail(DT_EFORMAT, "'%.*s' is not index:value with an index from 1", shown,
                       word->text);
    if (index <= *last) return dt_fail(DT_EFORMAT, "index %zu does not rise", index);
    *last = index;
    if (index > row->widest) row->widest = index;
    size_t length = word->length - (size_t)(colon + 1 - word->text);
    dt_status status = dt__number_read(colon + 1, length, &value);
    if (!status) status = put_value(row, index, value);
    return status ? dt_fail_prefix(status, "index %zu: ", index) : DT_OK;
}

static dt_status read_pairs(char **text, char *end, struct dt__text_row *row)
{
    struct dt__cell word;
    size_t last = 0;
    if (row->capacity) memset(row->x, 0, row->capacity * sizeof *row->x);
    while (next_word(text, end, &word))
        DT_TRY(read_pair(&word, row, &last));
    return DT_OK;
}

dt_status dt__libsvm_row(char *text, size_t length, struct dt__text_row *row)
{
    char *end = text + length, *after = text;
    struct dt__cell word;
    row->label = (struct dt__cell){text, 0};
    if (next_word(&after, end, &word) && !memchr(word.text, ':', word.length)) {
        row->label = word;
        text = after;
    }
    return read_pairs(&text, end, row);
}

static dt_status parse(const struct dt_source *source, char *record, size_t length,
                       struct dt__text_row *row)
{
    (void)source;
    return dt__libsvm_row(record, length, row);
}

static const struct dt__grammar grammar = {false, parse};

/* ---- files ---------------------------------------------------------------------------------- */

/* The widest row so far says how many features there are, unless the model knows. */
static dt_status survey_lines(struct dt__survey *survey, struct dt__file *file,
                              struct dt__lines *lines)
{
    size_t known = survey->known ? (size_t)survey->features : 0, widest = 0;
    DT_TRY(dt__text_survey(survey, file, lines, &grammar, known, &widest));
    if (known) return DT_OK;
    if (!widest) return dt_fail(DT_EFORMAT, "%s: no row has a feature", file->path);
    if ((int)widest > survey->features) survey->features = (int)widest;
    return DT_OK;
}

static dt_status survey_file(struct dt__survey *survey, struct dt__file *file)
{
    struct dt__lines lines;
    DT_TRY(dt__lines_open(&lines, file->path));
    dt_status status = survey_lines(survey, file, &lines);
    dt__lines_close(&lines);
    return status;
}

static bool is_pair(const struct dt__cell *word)
{
    size_t digits = 0;
    while (digits < word->length && isdigit((unsigned char)word->text[digits]))
        digits++;
    return digits && digits < word->length && word->text[digits] == ':';
}

bool dt__libsvm_is_row(char *text, size_t length)
{
    char *newline = memchr(text, '\n', length), *end = newline ? newline : text + length;
    struct dt__cell word;
    double value;
    if (!next_word(&text, end, &word)) return false;
    if (is_pair(&word)) return true;
    return !dt__number_parse(word.text, word.length, &value) && next_word(&text, end, &word) &&
           is_pair(&word);
}

static bool claims(const char *path, unsigned char *head, size_t length)
{
    const char *dot = strrchr(path, '.');
    bool named = dot && (!strcasecmp(dot, ".libsvm") || !strcasecmp(dot, ".svm") ||
                         !strcasecmp(dot, ".svmlight"));
    bool other = dot && !strcasecmp(dot, ".csv");
    return named || (!other && dt__libsvm_is_row((char *)head, length));
}

static dt_status open_file(const struct dt_source *source, const struct dt__file *file, bool random,
                           void **out)
{
    (void)random;
    return dt__text_open(source, file, &grammar, out);
}

const struct dt__format dt__format_libsvm = {"LIBSVM",  claims,        survey_file,
                                             open_file, dt__text_read, dt__text_close};
