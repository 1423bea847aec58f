/* The columns of a file among those of the other files of a survey. */
#ifndef DATA_FILE_COLUMNS_H
#define DATA_FILE_COLUMNS_H

#include "table/header.h"

struct dt__lines;
struct dt__survey;

/* Assigns roles in a file of a survey: by the names of the earlier files, or of the model, if this
 * file has those names; else by the configuration. The first file of the training data makes the
 * columns. DT_EMISMATCH: differs from the earlier files. */
dt_status dt__header_survey(struct dt__header *header, struct dt__survey *survey,
                            const struct dt__lines *lines);

#endif
