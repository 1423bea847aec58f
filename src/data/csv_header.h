/* The first rows of a CSV: find the separator, and check whether the first row has names or
 * values. */
#ifndef DATA_CSV_HEADER_H
#define DATA_CSV_HEADER_H

#include "table/header.h"

struct dt__lines;

/* Finds the separator of the first record, stores it in header and lines, and cuts the record into
 * header->cells without changing it. With data.separator=auto, runs of blanks may be the separator
 * if `blanks`. `config` may be NULL: all keys have their defaults. The caller zeroes the header
 * before the call, and frees it even after a failure. DT_EUSAGE: data.separator is not valid;
 * DT_EFORMAT: the record is not CSV. */
dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length, bool blanks);
/* Improves the message of a failure to read `record`: if the record or the first row looks like a
 * comment, the message says so. Returns `status`, the status of reading the record. */
dt_status dt__header_comment(const struct dt__header *header, const char *record, dt_status status);

/* Reads the second row from `lines` and compares it with the first. DT_EFORMAT: it seems that the
 * first row's names were taken for values, or its values for names. */
dt_status dt__header_check(const struct dt__header *first, struct dt__lines *lines);

#endif
