/* Lines of LIBSVM: "label index:value ...". */
#ifndef TEXT_LIBSVM_RECORD_H
#define TEXT_LIBSVM_RECORD_H

#include "text/text.h"

/* Takes the next field of a line. Returns false at the line's end or before a comment. */
bool dt__libsvm_field(char **text, char *end, struct dt__cell *out);

/* Reads a field index:value. DT_EFORMAT: it has another form, the index is not above `last`, or the
 * value is not a finite number. */
dt_status dt__libsvm_pair(const struct dt__cell *field, uint64_t last, uint64_t *out_index,
                          float *out_value);

/* Kinds of lines. ROW and NONE are decisive: they show whether a text is LIBSVM. */
enum dt__libsvm_line {
    DT__LIBSVM_NOTHING, /* blank, or a comment */
    DT__LIBSVM_NUMBER,  /* a lone number: a row of LIBSVM without entries, or of a CSV with one
                         * column */
    DT__LIBSVM_ROW,     /* starts with "number index:" or "index:" */
    DT__LIBSVM_NONE     /* anything else */
};
enum dt__libsvm_line dt__libsvm_line(char *text, size_t length);
/* Returns true if the first decisive line of a text is a row. */
bool dt__libsvm_is(char *text, size_t length);

#endif
