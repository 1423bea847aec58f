/* The columns of a file among those of the other files of a survey. */
#ifndef DATA_FILE_COLUMNS_H
#define DATA_FILE_COLUMNS_H

#include "table/header.h"

struct dt__lines;
struct dt__survey;

/* Gives roles in a file of a survey: by the names of the files before, or of the model, if this one
 * has them; else by the configuration. The first file of the training data makes the columns.
 * DT_EMISMATCH: unlike the files before. */
dt_status dt__header_survey(struct dt__header *header, struct dt__survey *survey,
                            const struct dt__lines *lines);

#endif
