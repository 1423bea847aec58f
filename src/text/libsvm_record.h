/* Lines of LIBSVM: "label index:value ...". */
#ifndef TEXT_LIBSVM_RECORD_H
#define TEXT_LIBSVM_RECORD_H

#include "text/text.h"

/* The next word of a line; false at its end or before a comment. */
bool dt__libsvm_word(char **text, char *end, struct dt__cell *out);

/* Reads index:value. DT_EFORMAT: it is none, the index is not above `last`, the value is not a
 * finite number. */
dt_status dt__libsvm_pair(const struct dt__cell *word, uint64_t last, uint64_t *out_index,
                          float *out_value);

/* What a line may be of. */
enum dt__libsvm_line {
    DT__LIBSVM_NOTHING, /* it is blank, or a comment */
    DT__LIBSVM_NUMBER,  /* alone: a row of LIBSVM without entries, or of a CSV of one column */
    DT__LIBSVM_ROW,     /* it begins "number index:" or "index:" */
    DT__LIBSVM_NONE     /* of something else */
};
enum dt__libsvm_line dt__libsvm_line(char *text, size_t length);
/* Whether the first line of a text that tells is a row. */
bool dt__libsvm_is(char *text, size_t length);

#endif
