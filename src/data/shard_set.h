/* Shards: where their rows are, and sets of those that `dtrain shard` has written together. */
#ifndef DATA_SHARD_SET_H
#define DATA_SHARD_SET_H

#include "text/text.h"

#define DT__SHARD_PART ".part" /* after the name of a shard until all are complete */

/* Checks whether the files of data.train (lists[0]), or of data.eval (lists[1]), have all shards
 * of each set that `dtrain shard` has written, but for those of the other key; warns if not. A set
 * of both keys is data.train's. DT_EIO: some have no name yet: it was killed, or has not ended. */
dt_status dt__shards_check(const struct dt__names lists[2], bool eval);

/* A shard of a table keeps its columns in a group that is no name of the user's own data, and there
 * its rows: a word a column, where categories are codes of the dictionary in the shard. @bytes is 1
 * if all numbers are bytes. Weights are floats (rows), groups numbers and times doubles (rows). */
#define DT__SHARD_GROUP "/dtrain"
#define DT__SHARD_ROWS DT__SHARD_GROUP "/rows"
#define DT__SHARD_WEIGHT DT__SHARD_GROUP "/weight"
#define DT__SHARD_GROUPS DT__SHARD_GROUP "/groups"
#define DT__SHARD_TIMES DT__SHARD_GROUP "/times"
#define DT__SHARD_SMALL DT__SHARD_GROUP "@bytes"

#endif
