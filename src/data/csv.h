/* The grammar of CSV (RFC 4180), for files and for rows to predict. */
#ifndef DATA_CSV_H
#define DATA_CSV_H

#include "data/text_rows.h"

/* Parses a record into the parser's words and cells; parser->header says which role each column
 * has. Columns in messages count from 0, as in data.label. DT_EFORMAT: too few or too many cells,
 * or a cell that is not a value of its column's kind. */
extern const struct dt__grammar dt__csv_grammar;

#endif
