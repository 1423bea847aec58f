/* The first rows of a CSV: its separator, and which column is what. */
#ifndef DATA_CSV_HEADER_H
#define DATA_CSV_HEADER_H

#include "table/header.h"

struct dt__lines;

/* Cuts the first record, which stays as it is, into cells, and tells `lines` the separator, which
 * data.separator=auto may find to be blanks if `blanks` is set. The header starts from zeros,
 * and is to be freed in any case. DT_EUSAGE: data.separator is none; DT_EFORMAT. */
dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length, bool blanks);
/* Returns the status of a record or of the first row; if it failed, and one of them begins as
 * comments do, the message says so. */
dt_status dt__header_comment(const struct dt__header *header, const char *record, dt_status status);

/* Reads the second row, which tells of names taken for values, and of values taken for names.
 * DT_EFORMAT. */
dt_status dt__header_check(const struct dt__header *first, struct dt__lines *lines);

#endif
