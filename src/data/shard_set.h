/* The files of a set of shards, which one `dtrain shard` has written, and the names in them. */
#ifndef DATA_SHARD_SET_H
#define DATA_SHARD_SET_H

#include "text/text.h"

#define DT__SHARD_PART ".part" /* ends the names of all shards until the set is complete */

/* Checks that lists[0], the files of data.train, or with `eval` lists[1], those of data.eval,
 * contain all shards of each set, except those that the other list has; warns if not. A set in both
 * lists counts as data.train's. DT_EIO: some shards still have a partial name: `dtrain shard` was
 * killed, or is still running. */
dt_status dt__shards_check(const struct dt__names lists[2], bool eval);

/* The names in a shard of a table. The shard keeps its columns, and its rows, in a group whose name
 * a user's data cannot have. A row has one word per column; for a category it is a code of the
 * shard's dictionary. @bytes is 1 if all numbers are integers in 0..255. Each row also has a weight
 * (float), a group (number) and a time (double), if the data has them. */
#define DT__SHARD_GROUP "/dtrain"
#define DT__SHARD_ROWS DT__SHARD_GROUP "/rows"
#define DT__SHARD_WEIGHT DT__SHARD_GROUP "/weight"
#define DT__SHARD_GROUPS DT__SHARD_GROUP "/groups"
#define DT__SHARD_TIMES DT__SHARD_GROUP "/times"
#define DT__SHARD_SMALL DT__SHARD_GROUP "@bytes"

#endif
