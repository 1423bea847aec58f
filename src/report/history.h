/* What the page, and who compares, see of a history beyond its public face: records, and
 * history->options. */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include <jansson.h>

#include "dtrain/history.h"

/* Record `index` of a kind, which stays the history's; NULL: none, or one of training. Confusion
 * matrices are kept for the last and the best evaluation only. */
json_t *dt__history_record(const struct dt_history *history, enum dt_record_kind kind,
                           size_t index);

#endif
