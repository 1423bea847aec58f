/* A reader of JSON, which passes over a text once and checks it. Source: RFC 8259. */
#include "text/json_reader.h"

#include <jansson.h>
#include <string.h>

enum { LONGEST_TEXT = 1 << 20 };

static char json_fail(struct dt__json *json, const char *at, const char *wrong)
{
    json->at = at;
    json->wrong = wrong;
    return 0;
}

/* Skips blanks. Returns the next character; 0: the end. */
static char blanks_pass(struct dt__json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
    return json->at < json->end ? *json->at : 0;
}

/* Reads a text. Plain ASCII is taken unchanged; jansson checks texts that have escapes or other
 * bytes. */
static char text_pass(struct dt__json *json)
{
    const char *const from = json->at + 1, *p = from;
    bool escapes = false, ascii = true;
    for (; p < json->end && *p != '"'; p++) {
        ascii &= (unsigned char)*p < 0x80;
        if ((unsigned char)*p < ' ') return json_fail(json, from, "a control character in a text");
        if (*p != '\\' || p + 1 == json->end) continue;
        escapes = true;
        p++;
    }
    if (p == json->end) return json_fail(json, from, "a text that does not end");
    if (p - from > LONGEST_TEXT) return json_fail(json, from, "a text of more than 1 MiB");
    json->at = p + 1;
    json->token = (struct dt__cell){(char *)(uintptr_t)from, (size_t)(p - from)};
    if (ascii && !escapes) return '"';
    json_t *text = json_loadb(from - 1, (size_t)(p - from) + 2, JSON_DECODE_ANY, NULL);
    dt__text_clear(json->scratch);
    const bool good =
        text && !dt__text_append(json->scratch, json_string_value(text), json_string_length(text));
    json_decref(text);
    if (!good) return json_fail(json, from, "a text that is not UTF-8, or an invalid escape");
    json->token = (struct dt__cell){json->scratch->data, json->scratch->length};
    return '"';
}

static size_t digits_pass(struct dt__json *json)
{
    const char *from = json->at;
    while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
    return (size_t)(json->at - from);
}

/* Reads a number. The common short form is converted while it is checked; dt__number_scan also
 * accepts 01, .5 and 1., which JSON does not have. */
static char number_pass(struct dt__json *json)
{
    const char *const from = json->at, *const end = json->end, *p = from;
    json->at += from < end && *from == '-';
    const char *const first = json->at;
    const bool zero = first < end && *first == '0';
    json->scanned = dt__number_scan(&p, end, &json->value) && *first != '.' && p[-1] != '.' &&
                    (!zero || p == first + 1 || first[1] == '.') &&
                    (p == end || (*p != 'e' && *p != 'E'));
    if (json->scanned) {
        json->at = p;
    } else {
        const size_t digits = digits_pass(json);
        if (!digits || (zero && digits > 1)) return json_fail(json, json->at, "expected a value");
        if (json->at < end && *json->at == '.') {
            json->at++;
            if (!digits_pass(json)) return json_fail(json, json->at, "expected a digit");
        }
        if (json->at < end && (*json->at == 'e' || *json->at == 'E')) {
            json->at++;
            json->at += json->at < end && (*json->at == '+' || *json->at == '-');
            if (!digits_pass(json)) return json_fail(json, json->at, "expected a digit");
        }
    }
    json->token = (struct dt__cell){(char *)(uintptr_t)from, (size_t)(json->at - from)};
    return '0';
}

/* Reads a bracket, where a list or an object starts or ends. A bit records which of the two it
 * is. */
static char bracket_pass(struct dt__json *json, char c)
{
    const bool opens = c == '[' || c == '{';
    json->at++;
    if (opens && json->depth == DT__JSON_DEEPEST)
        return json_fail(json, json->at, "lists nested too deeply");
    json->depth += opens ? 1 : -1;
    const int bit = (json->depth - 1) & 7;
    unsigned char *const bits = &json->objects[json->depth ? (json->depth - 1) / 8 : 0];
    if (opens) *bits = (unsigned char)((*bits & ~(1 << bit)) | (c == '{') << bit);
    json->close = !json->depth ? 0 : *bits >> bit & 1 ? '}' : ']';
    json->place = opens ? DT__JSON_FIRST : DT__JSON_AFTER;
    return c;
}

char dt__json_next(struct dt__json *json)
{
    static const char *const words[] = {"true", "false", "null"};
    if (json->wrong) return 0;
    char c = blanks_pass(json);
    if (json->place == DT__JSON_AFTER && !json->depth)
        return json->at < json->end ? json_fail(json, json->at, "something after the value") : 0;
    if (json->place != DT__JSON_VALUE && c == json->close) return bracket_pass(json, c);
    if (json->place == DT__JSON_AFTER) {
        if (c != ',')
            return json_fail(json, json->at,
                             json->close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        json->at++;
        c = blanks_pass(json);
    }
    if (json->close == '}' && json->place != DT__JSON_VALUE) {
        if (c != '"') return json_fail(json, json->at, "expected a name");
        if (!text_pass(json)) return 0;
        if (blanks_pass(json) != ':') return json_fail(json, json->at, "expected ':'");
        json->at++;
        json->place = DT__JSON_VALUE;
        return ':';
    }
    if (c == '[' || c == '{') return bracket_pass(json, c);
    json->place = DT__JSON_AFTER;
    if (c == '"') return text_pass(json);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        if (c != *words[i] || (size_t)(json->end - json->at) < length ||
            memcmp(json->at, words[i], length) != 0)
            continue;
        json->token = (struct dt__cell){(char *)(uintptr_t)json->at, length};
        json->at += length;
        return c;
    }
    return number_pass(json);
}

void dt__json_begin(struct dt__json *json, const char *text, size_t length, struct dt_text *scratch)
{
    *json = (struct dt__json){.begin = text, .at = text, .end = text + length, .scratch = scratch};
}

size_t dt__json_pass(struct dt__json *json, char token)
{
    const int outer = json->depth - (token == '[' || token == '{');
    int object = 0; /* depth of the object being skipped; 0: none */
    size_t values = 0;
    for (; token; token = dt__json_next(json)) {
        values += !object && token != '[' && token != ']';
        if (!object && token == '{') object = json->depth;
        if (json->depth < object) object = 0;
        if (json->depth == outer) break;
    }
    return values;
}

dt_status dt__json_finish(struct dt__json *json)
{
    const char *begin = json->begin;
    int line = 1;
    while (dt__json_next(json))
        ;
    if (!json->wrong) return DT_OK;
    for (const char *p = begin; p < json->at; p++)
        if (*p == '\n') line++, begin = p + 1;
    return dt_fail(DT_EFORMAT, "not JSON: line %d, column %lld: %s", line,
                   (long long)(json->at - begin) + 1, json->wrong);
}

dt_status dt__json_members(struct dt__json *json, char token, const char *const *names,
                           size_t count, struct dt__json *out)
{
    memset(out, 0, count * sizeof *out);
    if (token != '{') return dt_fail(DT_EFORMAT, "expected a JSON object");
    while (dt__json_next(json) == ':') {
        size_t i = 0;
        while (i < count && !dt__cell_is(json->token, names[i]))
            i++;
        if (i < count && out[i].at)
            return dt_fail(DT_EFORMAT, "not JSON: '%s' appears twice", names[i]);
        if (i < count) out[i] = *json;
        dt__json_pass(json, dt__json_next(json));
    }
    return DT_OK;
}
