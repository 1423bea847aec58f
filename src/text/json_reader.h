/* JSON, read from left to right in memory, without a tree.
 *
 * A reader passes over a text once and checks it. It returns one token at a time, as its first
 * character:
 *
 *     [ ] { }     a list or an object begins or ends
 *     :           the name of a member; its value is next
 *     "           a text
 *     0           a number
 *     t f n       true, false, null
 *     NUL         the end, or an error: every later token is NUL; callers may check at the end
 *
 * A copy of a reader reads the same text again. */
#ifndef TEXT_JSON_READER_H
#define TEXT_JSON_READER_H

#include "text/text.h"

enum { DT__JSON_DEEPEST = 1000 };

struct dt__json {
    const char *begin, *at, *end;
    const char *wrong;     /* the error, which is at `at`; NULL: none */
    struct dt__cell token; /* a text or a name, without quotes and escapes; other tokens
                            * unchanged */
    double value;          /* of a number that was scanned: dt__number_scan reads most */
    bool scanned;
    enum {
        DT__JSON_VALUE,  /* a value is next */
        DT__JSON_FIRST,  /* a list or an object has begun */
        DT__JSON_BEHIND, /* a value has ended */
    } place;
    int depth;
    char close; /* of the current list or object; NUL: none */
    unsigned char objects[DT__JSON_DEEPEST / 8]; /* bits: which of the enclosing values are
                                                  * objects */
    struct dt_text *scratch;                     /* borrowed: holds the last text with escapes */
};

/* text and scratch must outlive the reader. */
void dt__json_begin(struct dt__json *json, const char *text, size_t length,
                    struct dt_text *scratch);
char dt__json_next(struct dt__json *json);
/* Skips the rest of the value that began with `token`; returns the number of values in it, at any
 * depth. */
size_t dt__json_pass(struct dt__json *json, char token);
/* Skips everything. DT_EFORMAT: the text is not one JSON value: "not JSON: line 1, column 7:
 * ..." */
dt_status dt__json_finish(struct dt__json *json);
/* Skips the object that began with `token`, and finds the values of some names: for each name a
 * reader at its value, or one with `at` NULL if the name is missing. DT_EFORMAT: not an object
 * ("expected a JSON object"), or it has a name twice. */
dt_status dt__json_members(struct dt__json *json, char token, const char *const *names,
                           size_t count, struct dt__json *out);

#endif
