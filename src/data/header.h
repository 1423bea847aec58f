/* The first row of a CSV: its separator, whether its cells name the columns, and which column is
 * what. */
#ifndef DATA_HEADER_H
#define DATA_HEADER_H

#include "data/columns.h"
#include "data/text.h"

/* What a column of a file is: a column of struct dt__columns, counted from 0, or one of these.
 * Behind the first label others count down. */
enum { DT__ROLE_OPEN = -1, DT__ROLE_IGNORE = -2, DT__ROLE_WEIGHT = -3, DT__ROLE_LABEL = -4 };

/* A column that is looked for by its name or its number: from 0, or, negative, from the end. */
struct dt__want {
    const char *key;  /* of the configuration; NULL: a feature of the data before */
    const char *list; /* what the key has, or the data before in its stead; lent */
    const char *text; /* of it: the one column; lent */
    bool by_place;
    int32_t role;
    size_t column; /* where it was found */
};

struct dt__header {
    char separator; /* ' ': a run of blanks and tabs */
    struct dt__names cells;
    struct dt__dict index; /* of the cells; how often each text stands there */
    size_t *first;         /* (index.count) the first cell that has the text */
    bool names;            /* the cells name the columns */
    int32_t *roles;        /* (cells.count) */
    bool *marks;           /* (cells.count) a key lists it: data.categories, once it was marked */
    size_t features, labels;
    struct dt__want *wants;
    size_t nwants, wants_room;
    struct dt__names texts; /* of what was looked for */
};

struct dt__lines;
struct dt__survey;

/* Cuts the first record, which stays as it is, into cells, and tells `lines` the separator, which
 * data.separator=auto may find to be blanks if `blanks` is set. The header starts from zeros,
 * and is to be freed in any case. DT_EUSAGE: data.separator is none; DT_EFORMAT. */
dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length, bool blanks);
void dt__header_free(struct dt__header *header);
/* Returns the status of a record or of the first row; if it failed, and one of them begins as
 * comments do, the message says so. */
dt_status dt__header_comment(const struct dt__header *header, const char *record, dt_status status);

/* Roles by the names of the data before (all columns have one) and by what is wanted; all else is
 * ignored. header->names false, with DT_OK: the cells name no columns, and nobody `told` that they
 * do. DT_EMISMATCH: they do, but not all, and the message lists what is missing of
 * `data`, as it calls the data before. */
dt_status dt__header_match(struct dt__header *header, const struct dt__columns *columns,
                           const char *data, bool told);
/* Roles by data.label, data.weight and data.ignore; all else is a feature. DT_EMISMATCH: no such
 * column, and without header->names no name is one. DT_EFORMAT: no features. */
dt_status dt__header_roles(struct dt__header *header, const struct dt_config *config);
/* Decides whether the cells are names, by data.header, these keys and the cells; gives roles
 * likewise. `lines` stand behind the first row, and say in a warning where it is. */
dt_status dt__header_decide(struct dt__header *header, const struct dt_config *config,
                            const struct dt__lines *lines);

/* Marks the columns that data.categories lists; its words auto and none list no column. `insist`:
 * they must be there. DT_EMISMATCH. */
dt_status dt__header_mark_categories(struct dt__header *header, const struct dt_config *config,
                                     bool insist);
/* How many cells have a text, and the first of them. */
uint64_t dt__header_has(const struct dt__header *header, const char *text, size_t *first);
/* Gives roles in a file of a survey: by the names of the files before, or of the model, if this one
 * has them; else by the configuration. The first file of the training data makes the columns.
 * DT_EMISMATCH: unlike the files before. */
dt_status dt__header_survey(struct dt__header *header, struct dt__survey *survey,
                            const struct dt__lines *lines);
/* Reads the second row, which tells of names taken for values, and of values taken for names.
 * DT_EFORMAT. */
dt_status dt__header_check(const struct dt__header *first, struct dt__lines *lines);

/* No feature is a number, so that the cells may be names. */
bool dt__header_has_no_numbers(const struct dt__header *header);

#endif
