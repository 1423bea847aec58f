/* Rows of CSV (RFC 4180): of files, and to predict. Rows of JSON lines consist of the same
 * cells. */
#ifndef DATA_CSV_H
#define DATA_CSV_H

#include "data/text_rows.h"

/* Parses a record, by the roles in parser->header, into words, label and weight. Columns in
 * messages count from 0, as in data.label. DT_EFORMAT: too few or too many cells, or a wrong
 * cell. */
extern const struct dt__grammar dt__csv_grammar;

#endif
