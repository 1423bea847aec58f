/* page: runs as one self-contained HTML page: curves with values under the pointer, evaluation,
 * confusion, configuration, starts and ends; several runs side by side. Not collective. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/history.h"

/* In a run directory: the lines of `dtrain importance`, after one of what they were measured on. */
#define DT__IMPORTANCE_FILE "importance.jsonl"
/* Returns an array of these lines; null: there are none. */
json_t *dt__page_importance(const char *dir);

struct dt_page_run {
    const struct dt_history *history;
    char *const *labels; /* (nlabels) names of the classes; NULL: numbers */
    size_t nlabels;
};

/* Writes PATH whole or not at all. searches: an array of {"dir", "runs": how many there are,
 * "records": the lines of search.jsonl, "importance": dt__page_importance}. DT_EIO: it cannot be written. */
dt_status dt__page_write(const char *path, const struct dt_page_run *runs, size_t count,
                         json_t *searches);

#endif
