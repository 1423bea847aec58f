/* JSON, read from left to right in memory, without a tree.
 *
 * A reader passes over a text once and checks it. Each call returns the next token, as one
 * character:
 *
 *     [ ] { }     a list or an object starts or ends
 *     :           the name of a member; its value is next
 *     "           a text
 *     0           a number
 *     t f n       true, false, null
 *     NUL         the end, or an error
 *
 * After NUL all tokens are NUL, so callers may check for an error once, at the end. A copy of a
 * reader reads the rest of the text again. */
#ifndef TEXT_JSON_READER_H
#define TEXT_JSON_READER_H

#include "text/text.h"

enum { DT__JSON_DEEPEST = 1000 };

struct dt__json {
    const char *begin, *at, *end;
    const char *wrong;     /* the error, which is at `at`; NULL: none */
    struct dt__cell token; /* a text or a name, without quotes and escapes; any other token as
                            * written */
    double value;          /* the number's value, if dt__number_scan took it (`scanned`) */
    bool scanned;
    enum {
        DT__JSON_VALUE, /* a value is next */
        DT__JSON_FIRST, /* a list or an object has just started */
        DT__JSON_AFTER, /* a value has ended */
    } place;
    int depth;
    char close;                                  /* of the current list or object; NUL: none */
    unsigned char objects[DT__JSON_DEEPEST / 8]; /* bits: which enclosing values are objects,
                                                  * outermost first */
    struct dt_text *scratch;                     /* borrowed; holds the last text that had
                                                  * escapes */
};

/* Starts at the first token. text and scratch must outlive the reader. */
void dt__json_begin(struct dt__json *json, const char *text, size_t length,
                    struct dt_text *scratch);
/* Returns the next token. */
char dt__json_next(struct dt__json *json);
/* Skips the rest of the value that starts with `token`. Returns the number of values in it: those
 * of nested lists are counted one by one, an object as one. */
size_t dt__json_pass(struct dt__json *json, char token);
/* Skips the rest of the text. DT_EFORMAT: the text is not one JSON value: "not JSON: line 1, column
 * 7: ..." */
dt_status dt__json_finish(struct dt__json *json);
/* Skips the object that starts with `token`, and finds its members by `names` (count): out[i] is a
 * reader at the value of names[i], and its `at` is NULL if the member is missing. DT_EFORMAT: not
 * an object ("expected a JSON object"), or one of the names appears twice. */
dt_status dt__json_members(struct dt__json *json, char token, const char *const *names,
                           size_t count, struct dt__json *out);

#endif
