/* Matches the columns of a table's file with those of the other files of a survey. */
#ifndef DATA_FILE_COLUMNS_H
#define DATA_FILE_COLUMNS_H

#include "table/header.h"

struct dt__lines;
struct dt__survey;

/* Assigns roles to a file's columns. If the file has a header with the names of the earlier files
 * or of the model, columns are matched by name; otherwise the configuration decides. The first
 * training file defines the survey's columns. DT_EMISMATCH: the columns differ from those of the
 * earlier files. */
dt_status dt__header_survey(struct dt__header *header, struct dt__survey *survey,
                            const struct dt__lines *lines);

#endif
