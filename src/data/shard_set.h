/* Sets of shards: files that `dtrain shard` has written together. */
#ifndef DATA_SHARD_SET_H
#define DATA_SHARD_SET_H

#include "text/text.h"

#define DT__SHARD_PART ".part" /* after the name of a shard until all are complete */

/* Checks whether the files of data.train (lists[0]), or of data.eval (lists[1]), have all shards
 * of each set that `dtrain shard` has written, but for those of the other key; warns if not. A set
 * of both keys is data.train's. DT_EIO: some have no name yet: it was killed, or has not ended. */
dt_status dt__shards_check(const struct dt__names lists[2], bool eval);

#endif
