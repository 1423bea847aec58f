/* The first row of a table: whether its cells name the columns, and the role of each column. */
#ifndef TABLE_HEADER_H
#define TABLE_HEADER_H

#include "table/columns.h"
#include "text/text.h"

/* The role of a column of a file: a column of struct dt__columns, counted from 0, or one of these.
 * Further labels count down after the first. TIME is wanted like a role, but its column also keeps
 * its other role: header->time. */
enum {
    DT__ROLE_OPEN = -1,
    DT__ROLE_IGNORE = -2,
    DT__ROLE_TIME = -3,
    DT__ROLE_GROUP = -4,
    DT__ROLE_WEIGHT = -5,
    DT__ROLE_LABEL = -6
};

/* A column that is looked for by its name or its number: from 0, or, if negative, from the end. */
struct dt__want {
    const char *key;  /* key of the configuration; NULL: a feature of the earlier data */
    const char *list; /* the key's value, or the names that the earlier data has for it; borrowed */
    const char *text; /* part of list: this one column; borrowed */
    bool by_place;
    int32_t role;
    size_t column; /* where it was found */
};

struct dt__header {
    char separator; /* of CSV; ' ': a run of blanks and tabs */
    struct dt__names cells;
    struct dt__dict index; /* of the cells; and how often each text occurs */
    size_t *first;         /* (index.count) the first cell that has the text */
    bool names;            /* the cells name the columns */
    int32_t *roles;        /* (cells.count) */
    bool *marks;           /* (cells.count) listed in the key data.categories, after
                            * dt__header_mark_categories */
    size_t features, labels;
    size_t time; /* 1 + the column that data.time names; 0: none */
    struct dt__want *wants;
    size_t nwants, wants_capacity;
    struct dt__names texts; /* texts that were looked for */
};

struct dt__lines;

/* Indexes the cells. Called once the cells are filled in. DT_EMEMORY. */
dt_status dt__header_index(struct dt__header *header);
void dt__header_free(struct dt__header *header);

/* Assigns roles by the names of the earlier data (all its columns have one) and by the wanted
 * columns; all other columns are ignored. header->names is false, with DT_OK, if the cells name no
 * columns and `told` does not say that they do. DT_EMISMATCH: they are names, but some are missing;
 * the message lists those and calls the earlier data `data`. */
dt_status dt__header_match(struct dt__header *header, const struct dt__columns *columns,
                           const char *data, bool named_by_key);
/* Assigns roles by data.label, data.weight, data.group, data.time and data.ignore; all other
 * columns are features. DT_EMISMATCH: no such column; without header->names a key with a name
 * fails. DT_EFORMAT: no features. */
dt_status dt__header_roles(struct dt__header *header, const struct dt_config *config);
/* Decides whether the cells are names, by data.header, the keys of dt__header_roles and the cells;
 * then assigns roles as dt__header_roles does. `lines` have just read the first row; they give its
 * place in a warning. */
dt_status dt__header_decide(struct dt__header *header, const struct dt_config *config,
                            const struct dt__lines *lines);

/* Marks the columns that data.categories lists; its words auto and none list no column. `insist`:
 * they must be there. DT_EMISMATCH. */
dt_status dt__header_mark_categories(struct dt__header *header, const struct dt_config *config,
                                     bool insist);
/* Counts the cells that have a text, and finds the first of them. */
uint64_t dt__header_has(const struct dt__header *header, const char *text, size_t *first);

/* Adds the columns that a key lists to the wanted ones. `learned`, or NULL, is the name (`several`:
 * are the names) that the earlier data had where the key has numbers. */
dt_status dt__header_want(struct dt__header *header, const char *key, const char *text,
                          const char *learned, bool several, int32_t role);
/* Marks the columns that a key lists. `insist`: they must be there. DT_EMISMATCH. */
dt_status dt__header_mark(struct dt__header *header, const char *key, const char *list,
                          bool insist);
/* Fails with DT_EFORMAT if two columns, not both of them ignored, have the same name. */
dt_status dt__header_distinct(const struct dt__header *header);

/* Returns true if no feature's cell is a number, so that the cells may be names. */
bool dt__header_has_no_numbers(const struct dt__header *header);

#endif
