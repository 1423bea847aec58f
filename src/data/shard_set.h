/* Sets of shards: a set is the files that one run of `dtrain shard` has written. Checks that a set
 * is complete, and names the data sets in a shard. */
#ifndef DATA_SHARD_SET_H
#define DATA_SHARD_SET_H

#include "text/text.h"

#define DT__SHARD_PART ".part" /* suffix of every shard's name until the set is complete */

/* Warns about each set from which only some shards are listed. lists[0] has the files of
 * data.train, lists[1] those of data.eval; a shard may be in either. Checks the sets that have
 * files in data.train or, with `eval`, those that have files in data.eval only. DT_EIO: a shard of
 * an incomplete set has a partial name: `dtrain shard` was killed, or is still running. */
dt_status dt__shards_check(const struct dt__names lists[2], bool eval);

/* The names in a shard of a table. The shard keeps its columns and rows in an HDF5 group whose name
 * is reserved, so that no data of a user has it. A row has one word per column; the word of a
 * category is a code of the shard's dictionary. @bytes is 1 if all numbers are integers in 0..255.
 * If the data has weights, groups or times, each row also has its weight (float), the number of its
 * group, or its time (double). */
#define DT__SHARD_GROUP "/dtrain"
#define DT__SHARD_ROWS DT__SHARD_GROUP "/rows"
#define DT__SHARD_WEIGHT DT__SHARD_GROUP "/weight"
#define DT__SHARD_GROUPS DT__SHARD_GROUP "/groups"
#define DT__SHARD_TIMES DT__SHARD_GROUP "/times"
#define DT__SHARD_SMALL DT__SHARD_GROUP "@bytes"

#endif
