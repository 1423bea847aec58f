/* Rows of LIBSVM: for files and for rows to predict. */
#ifndef DATA_LIBSVM_H
#define DATA_LIBSVM_H

#include "data/text_rows.h"

/* Parses "label index:value ..." into the entries of parser->row (from index 0) and parser->label,
 * which is empty if the row has none. DT_EFORMAT: a word that is not index:value, an index that
 * does not rise or is too large, a value that is not a finite number. */
extern const struct dt__grammar dt__libsvm_grammar;

#endif
