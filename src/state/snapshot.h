/* snapshot: a copy of a checkpoint in memory that is used again for the next one. */
#ifndef DT_STATE_SNAPSHOT_H
#define DT_STATE_SNAPSHOT_H

#include "dtrain/state.h"

struct dt__snapshot {
    struct dt_checkpoint checkpoint;                                     /* all of it our own */
    size_t params_room, state_room[DT_MAX_STATE], draws_room, sums_room; /* items allocated */
};
/* Copies `from`; memory is allocated at the first copy, and when something has grown. */
dt_status dt__snapshot_take(struct dt__snapshot *snapshot, const struct dt_checkpoint *from);
void dt__snapshot_free(struct dt__snapshot *snapshot);

#endif
