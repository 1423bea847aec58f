/* JSON, read from left to right as it stands in memory, without a tree.
 *
 * A reader goes forward over a text once and checks what it passes. It hands out a token at a time,
 * as its first character:
 *
 *     [ ] { }     a list or an object begins or ends
 *     :           the name of a member, whose value is next
 *     "           a text
 *     0           a number
 *     t f n       true, false, null
 *     NUL         the end of the whole; or what is there is no JSON: from then on there is nothing
 *                 else, so that a caller may ask for it when all is done
 *
 * A copy of a reader reads the same again. */
#ifndef TEXT_JSON_READER_H
#define TEXT_JSON_READER_H

#include "text/text.h"

enum { DT__JSON_DEEPEST = 1000 };

struct dt__json {
    const char *begin, *at, *end;
    const char *wrong;     /* what is, at `at`; NULL: nothing so far */
    struct dt__cell token; /* a text or a name, without quotes and escapes; else as it stands */
    double value;          /* a number's, if it was scanned: dt__number_scan takes most */
    bool scanned;
    enum {
        DT__JSON_VALUE,  /* a value comes */
        DT__JSON_FIRST,  /* a list or an object has begun */
        DT__JSON_BEHIND, /* a value has ended */
    } place;
    int depth;
    char close; /* of the list or object under way; NUL: there is none */
    unsigned char objects[DT__JSON_DEEPEST / 8]; /* bits: which of those around are objects */
    struct dt_text *scratch;                     /* lent: where the last text with escapes is */
};

/* text and scratch outlive the reader. */
void dt__json_begin(struct dt__json *json, const char *text, size_t length,
                    struct dt_text *scratch);
char dt__json_next(struct dt__json *json);
/* Passes the rest of the value over that has begun with `token`, and says how many stand in it and
 * in the lists in it. */
size_t dt__json_pass(struct dt__json *json, char token);
/* Passes all over. DT_EFORMAT: the text is not one value of JSON: "not JSON: line 1, column 7: ..."
 */
dt_status dt__json_finish(struct dt__json *json);
/* Passes the object that has begun with `token`, and finds the values of some names, each a reader
 * of it, or one with `at` NULL without it. DT_EFORMAT: no object ("expected a JSON object"), or it
 * has one of the names twice. */
dt_status dt__json_members(struct dt__json *json, char token, const char *const *names,
                           size_t count, struct dt__json *out);

#endif
