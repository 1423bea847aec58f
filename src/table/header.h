/* The first row of a table: whether its cells name the columns, and the role of each column. */
#ifndef TABLE_HEADER_H
#define TABLE_HEADER_H

#include "table/columns.h"
#include "text/text.h"

/* The role of a column of a file: the index of its column in struct dt__columns, or one of these
 * constants. The labels are DT__ROLE_LABEL, DT__ROLE_LABEL - 1, and so on. A column of
 * DT__ROLE_TIME is recorded only in header->time; in `roles` it keeps its other role. */
enum {
    DT__ROLE_OPEN = -1,
    DT__ROLE_IGNORE = -2,
    DT__ROLE_TIME = -3,
    DT__ROLE_GROUP = -4,
    DT__ROLE_WEIGHT = -5,
    DT__ROLE_LABEL = -6
};

/* A column to find in the header: by its name, or by its number, counted from 0 or, if negative,
 * from the end. */
struct dt__want {
    const char *key;  /* configuration key that names the column; NULL: a feature of the earlier
                       * data */
    const char *list; /* the key's value, or the names that the earlier data has for it; borrowed */
    const char *text; /* the entry of `list` for this column; borrowed */
    bool by_place;
    int32_t role;
    size_t column; /* index of the column, once found */
};

struct dt__header {
    char separator; /* CSV separator; ' ': a run of blanks and tabs */
    struct dt__names cells;
    struct dt__dict index; /* texts of the cells, with the number of cells that have each */
    size_t *first;         /* (index.count) the first cell with each text */
    bool names;            /* the cells name the columns */
    int32_t *roles;        /* (cells.count) role of each column */
    bool *marks;           /* (cells.count) true where data.categories lists the column;
                            * dt__header_mark_categories sets it */
    size_t features, labels;
    size_t time; /* 1 + the index of the column that data.time names; 0: none */
    struct dt__want *wants;
    size_t nwants, wants_capacity;
    struct dt__names texts; /* owns the texts of `wants` */
};

struct dt__lines;

/* Builds the index of the cells and allocates roles and marks. The cells must be filled in.
 * DT_EMEMORY. */
dt_status dt__header_index(struct dt__header *header);
void dt__header_free(struct dt__header *header);

/* Assigns roles by the column names of the earlier data, in which every column has a name, and by
 * `wants`; all other columns are ignored. `named_by_key`: the configuration says that the cells are
 * names. Returns DT_OK with header->names false if the cells name no columns. DT_EMISMATCH: the
 * cells are names, but some columns are missing; the message lists these and calls the earlier data
 * `data`. */
dt_status dt__header_match(struct dt__header *header, const struct dt__columns *columns,
                           const char *data, bool named_by_key);
/* Assigns roles by data.label, data.weight, data.group, data.time and data.ignore; all other
 * columns are features. DT_EMISMATCH: a key names a column that does not exist, or any name while
 * header->names is false. DT_EFORMAT: no column is left for the features. */
dt_status dt__header_roles(struct dt__header *header, const struct dt_config *config);
/* Decides whether the cells are names, by data.header, by the keys that dt__header_roles uses and
 * by the cells; then assigns roles like dt__header_roles. `lines` must have just read the first
 * row: a warning gives its line number. */
dt_status dt__header_decide(struct dt__header *header, const struct dt_config *config,
                            const struct dt__lines *lines);

/* Marks the columns that data.categories lists; for `auto` and `none` it marks none. `insist`: a
 * listed column that does not exist is an error. DT_EMISMATCH. */
dt_status dt__header_mark_categories(struct dt__header *header, const struct dt_config *config,
                                     bool insist);
/* Returns how many cells have this text, and sets *first to the first of them if there is one. */
uint64_t dt__header_has(const struct dt__header *header, const char *text, size_t *first);

/* Adds the columns that `text`, the value of `key`, lists to `wants`. `learned` (NULL: unknown) is
 * the name that the earlier data had for the column, or with `several` the list of names; it
 * replaces `text` if that holds a number. */
dt_status dt__header_want(struct dt__header *header, const char *key, const char *text,
                          const char *learned, bool several, int32_t role);
/* Marks the columns that the value `list` of `key` lists. `insist`: a listed column that does not
 * exist is an error. DT_EMISMATCH. */
dt_status dt__header_mark(struct dt__header *header, const char *key, const char *list,
                          bool insist);
/* Fails with DT_EFORMAT if two columns have the same name, unless both are ignored. */
dt_status dt__header_distinct(const struct dt__header *header);

/* Returns true if no cell of a feature is a number, so that the cells may be names. */
bool dt__header_has_no_numbers(const struct dt__header *header);

#endif
