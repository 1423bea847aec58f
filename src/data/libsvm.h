/* Rows of LIBSVM: for files and for rows to predict. */
#ifndef DATA_LIBSVM_H
#define DATA_LIBSVM_H

#include "data/typed.h"

/* Parses "label index:value ..." into the entries of parser->row (from index 0) and parser->label,
 * which is empty if the row has none. DT_EFORMAT: a word that is not index:value, an index that
 * does not rise or is too large, a value that is not a finite number. */
extern const struct dt__grammar dt__libsvm_grammar;

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
