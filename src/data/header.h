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
    char *text;       /* of it: the one column */
    bool by_place;
    int32_t role;
    size_t column; /* where it was found */
};

struct dt__header {
    char separator;
    struct dt__names cells;
    struct dt__dict index; /* of the cells; how often each text stands there */
    size_t *first;         /* (index.count) the first cell that has the text */
    bool names;            /* the cells name the columns */
    int32_t *roles;        /* (cells.count) */
    size_t features, labels;
    struct dt__want *wants;
    size_t nwants, wants_room;
};

struct dt__lines;

/* Adds the cells of a record, which stays as it is, without the blanks around them. */
dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out);

/* Cuts the first record, which stays as it is, into cells, and tells `lines` the separator. The
 * header starts from zeros, and is to be freed in any case. DT_EUSAGE: data.separator is none;
 * DT_EFORMAT. */
dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length);
void dt__header_free(struct dt__header *header);

/* Looks for the columns that a key lists. `learned`, or NULL, is the name (`several`: are the
 * names) that the data before had where the key has numbers. DT_EMISMATCH: two weights. */
dt_status dt__header_want(struct dt__header *header, const char *key, const char *text,
                          const char *learned, bool several, int32_t role);
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

/* The column that a key names, or numbers. DT_EMISMATCH. */
dt_status dt__header_find(const struct dt__header *header, const char *key, const char *text,
                          size_t *out);
/* Marks the columns that a key lists. `insist`: they must be there. DT_EMISMATCH. */
dt_status dt__header_mark(const struct dt__header *header, const char *key, const char *list,
                          bool insist, bool *marks);
/* The same for data.categories, whose words auto and none list no column. */
dt_status dt__header_mark_categories(const struct dt__header *header,
                                     const struct dt_config *config, bool insist, bool *marks);
/* The first cell with a text; *twice: it is not the only one. False: there is none. */
bool dt__header_has(const struct dt__header *header, const char *text, size_t *first, bool *twice);
/* Behind the roles. DT_EFORMAT: two columns, not both of them ignored, have one name. */
dt_status dt__header_distinct(const struct dt__header *header);
/* No feature is a number, so that the cells may be names. */
bool dt__header_has_no_numbers(const struct dt__header *header);

#endif
