/* The first rows of a CSV: its separator, and whether the first row has names or values. */
#ifndef DATA_CSV_HEADER_H
#define DATA_CSV_HEADER_H

#include "table/header.h"

struct dt__lines;

/* Finds the separator of the first record, and cuts the record into header->cells; the record is
 * unchanged. Also gives `lines` the separator. With data.separator=auto and `blanks`, runs of
 * blanks may be the separator. The header must be zeroed before, and freed even after a failure.
 * DT_EUSAGE: data.separator is not valid; DT_EFORMAT. */
dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length, bool blanks);
/* Returns `status`, that of a record or of the first row. If it is a failure, and the record or the
 * first row looks like a comment, the message says so. */
dt_status dt__header_comment(const struct dt__header *header, const char *record, dt_status status);

/* Reads the second row and compares it with the first. DT_EFORMAT: names seem to have been taken
 * for values, or values for names. */
dt_status dt__header_check(const struct dt__header *first, struct dt__lines *lines);

#endif
