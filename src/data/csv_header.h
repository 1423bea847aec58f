/* The first rows of a CSV: its separator, and which column is what. */
#ifndef DATA_CSV_HEADER_H
#define DATA_CSV_HEADER_H

#include "table/header.h"

struct dt__lines;

/* Cuts the first record, which is not changed, into cells, and gives `lines` the separator. With
 * data.separator=auto that may be blanks, if `blanks` is set. The header starts from zeros, and
 * must be freed in any case. DT_EUSAGE: data.separator is none; DT_EFORMAT. */
dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length, bool blanks);
/* Returns the status of a record or of the first row. If it failed, and one of them begins as
 * comments do, the message says so. */
dt_status dt__header_comment(const struct dt__header *header, const char *record, dt_status status);

/* Reads the second row and checks it against the first: it shows whether names were taken for
 * values, or values for names. DT_EFORMAT. */
dt_status dt__header_check(const struct dt__header *first, struct dt__lines *lines);

#endif
