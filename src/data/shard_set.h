/* Shards: where their rows are, and sets of shards that `dtrain shard` has written together. */
#ifndef DATA_SHARD_SET_H
#define DATA_SHARD_SET_H

#include "text/text.h"

#define DT__SHARD_PART ".part" /* ends the name of a shard until all are complete */

/* Checks that the files of data.train (lists[0]), or of data.eval (lists[1]), have all shards of
 * each set that `dtrain shard` has written, except those of the other key; warns if not. A set of
 * both keys is data.train's. DT_EIO: some shards have no final name yet: `dtrain shard` was killed,
 * or is still running. */
dt_status dt__shards_check(const struct dt__names lists[2], bool eval);

/* A shard of a table keeps its columns in a group whose name cannot be that of a user's data, and
 * its rows there too: one word per column, where categories are codes of the shard's dictionary.
 * @bytes is 1 if all numbers are bytes. Weights are floats (rows), groups numbers and times doubles
 * (rows). */
#define DT__SHARD_GROUP "/dtrain"
#define DT__SHARD_ROWS DT__SHARD_GROUP "/rows"
#define DT__SHARD_WEIGHT DT__SHARD_GROUP "/weight"
#define DT__SHARD_GROUPS DT__SHARD_GROUP "/groups"
#define DT__SHARD_TIMES DT__SHARD_GROUP "/times"
#define DT__SHARD_SMALL DT__SHARD_GROUP "@bytes"

#endif
