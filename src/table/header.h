/* The first row of a table: whether its cells name the columns, and which column is what. */
#ifndef TABLE_HEADER_H
#define TABLE_HEADER_H

#include "table/columns.h"
#include "text/text.h"

/* What a column of a file is: a column of struct dt__columns, counted from 0, or one of these.
 * After the first label others count down. TIME is wanted like a role, but the column keeps the
 * role that it has besides: header->time. */
enum {
    DT__ROLE_OPEN = -1,
    DT__ROLE_IGNORE = -2,
    DT__ROLE_TIME = -3,
    DT__ROLE_GROUP = -4,
    DT__ROLE_WEIGHT = -5,
    DT__ROLE_LABEL = -6
};

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
    char separator; /* of CSV; ' ': a run of blanks and tabs */
    struct dt__names cells;
    struct dt__dict index; /* of the cells; how often each text stands there */
    size_t *first;         /* (index.count) the first cell that has the text */
    bool names;            /* the cells name the columns */
    int32_t *roles;        /* (cells.count) */
    bool *marks;           /* (cells.count) a key lists it: data.categories, once it was marked */
    size_t features, labels;
    size_t time; /* 1 + the column that data.time names; 0: none */
    struct dt__want *wants;
    size_t nwants, wants_room;
    struct dt__names texts; /* of what was looked for */
};

struct dt__lines;

/* Indexes the cells once they are there. DT_EMEMORY. */
dt_status dt__header_index(struct dt__header *header);
void dt__header_free(struct dt__header *header);

/* Roles by the names of the data before (all columns have one) and by what is wanted; all else is
 * ignored. header->names false, with DT_OK: the cells name no columns, and nobody `told` that they
 * do. DT_EMISMATCH: they do, but not all, and the message lists what is missing of
 * `data`, as it calls the data before. */
dt_status dt__header_match(struct dt__header *header, const struct dt__columns *columns,
                           const char *data, bool told);
/* Gives roles by data.label, data.weight, data.group, data.time and data.ignore; all else is a
 * feature. DT_EMISMATCH: no such column, and without header->names no name is one. DT_EFORMAT: no
 * features. */
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

/* Looks for the columns that a key lists. `learned`, or NULL, is the name (`several`: are the
 * names) that the data before had where the key has numbers. */
dt_status dt__header_want(struct dt__header *header, const char *key, const char *text,
                          const char *learned, bool several, int32_t role);
/* Marks the columns that a key lists. `insist`: they must be there. */
dt_status dt__header_mark(struct dt__header *header, const char *key, const char *list,
                          bool insist);
/* DT_EFORMAT: two columns, not both of them ignored, have one name. */
dt_status dt__header_distinct(const struct dt__header *header);

/* No feature is a number, so that the cells may be names. */
bool dt__header_has_no_numbers(const struct dt__header *header);

#endif
