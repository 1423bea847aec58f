/* The grammar of LIBSVM, for files and for rows to predict. */
#ifndef DATA_LIBSVM_H
#define DATA_LIBSVM_H

#include "data/text_rows.h"

/* Parses "label index:value ..." into parser->words, two per entry (index from 0, value), and into
 * parser->label, which is empty if the row has no label. DT_EFORMAT: a field is not index:value, an
 * index is not greater than the one before it or is too large, or a value is not a finite
 * number. */
extern const struct dt__grammar dt__libsvm_grammar;

#endif
