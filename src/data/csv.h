/* Rows of CSV (RFC 4180), for files and for rows to predict. Rows of JSON are made of the same
 * cells. */
#ifndef DATA_CSV_H
#define DATA_CSV_H

#include "data/text_rows.h"

/* Parses one record by parser->header's roles into words, label and weight. Columns in messages
 * count from 0, as in data.label. DT_EFORMAT: too few or too many cells, or a cell is wrong. */
extern const struct dt__grammar dt__csv_grammar;

#endif
