/* page: writes runs as one self-contained HTML page with curves (values under the pointer),
 * evaluations, confusion matrix, configuration, starts and ends; several runs appear side by side.
 * Not collective. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/history.h"

/* File in a run directory with the output of `dtrain importance`: a line that says what it was
 * measured on, then a line for each column. */
#define DT__IMPORTANCE_FILE "importance.jsonl"
/* Returns an array of the lines of this file; JSON null if there is no file. */
json_t *dt__page_importance(const char *dir);

struct dt_page_run {
    const struct dt_history *history;
    char *const *labels; /* (nlabels) names of the classes; NULL: classes are numbers */
    size_t nlabels;
};

/* Writes the page as a file that appears whole or not at all. searches: an array of {"dir", "runs":
 * number of runs, "records": lines of search.jsonl, "importance": result of dt__page_importance}.
 * DT_EIO: the file cannot be written. */
dt_status dt__page_write(const char *path, const struct dt_page_run *runs, size_t count,
                         json_t *searches);

#endif
