/* Text formats: one row a record, some places marked where a file can be entered. */
#ifndef DATA_TEXT_H
#define DATA_TEXT_H

#include "data/csv.h"
#include "data/lines.h"
#include "data/survey.h"

/* One row as it is parsed. */
struct dt__text_row {
    float *x;
    size_t capacity; /* floats in x */
    bool grow;       /* the features are being counted: x may grow (from dt_alloc) */
    size_t widest;   /* LIBSVM: greatest index of any row so far */
    struct dt__cell label;
};

/* A grammar: parses a record into row->x and row->label. Messages name the column alone. */
struct dt__grammar {
    bool quotes; /* records may hold line ends between quotes */
    dt_status (*parse)(const struct dt_source *source, char *record, size_t length,
                       struct dt__text_row *row);
};

/* Parses all records from where `lines` stands: rows, marks, labels, whether values are bytes.
 * features: 0 if they are to be counted; *widest: how many the widest row has. */
dt_status dt__text_survey(struct dt__survey *survey, struct dt__file *file, struct dt__lines *lines,
                          const struct dt__grammar *grammar, size_t features, size_t *widest);

/* The reader that struct dt__format asks for; its grammar is set at open. */
dt_status dt__text_open(const struct dt_source *source, const struct dt__file *file,
                        const struct dt__grammar *grammar, void **out_reader);
dt_status dt__text_read(void *reader, uint64_t row, size_t count, struct dt__block out);
void dt__text_close(void *reader);

#endif
