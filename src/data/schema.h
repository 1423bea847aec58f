/* The members of what is learned from the training data. */
#ifndef DATA_SCHEMA_H
#define DATA_SCHEMA_H

#include "data/data.h"

/* What a schema has in memory of its own, a pointer at `member`: floats or int64_t (count), a
 * text, a list of (count) texts, or (count) columns, whose members follow. */
enum dt__member {
    DT__MEMBER_FLOATS,
    DT__MEMBER_NUMBERS,
    DT__MEMBER_TEXT,
    DT__MEMBER_NAMES,
    DT__MEMBER_COLUMNS
};
typedef dt_status dt__member_fn(void *arg, enum dt__member kind, void *member, size_t count);
dt_status dt__schema_visit(struct dt_schema *schema, dt__member_fn *visit, void *arg);

#endif
