/* page: runs as one HTML page that needs nothing else: curves with values under the pointer,
 * evaluation, confusion, configuration, starts and ends; several runs beside each other. Not
 * collective. */
#ifndef DTRAIN_PAGE_H
#define DTRAIN_PAGE_H

#include "dtrain/history.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_page_run {
    const struct dt_history *history;
    char *const *labels; /* (nlabels) names of the classes; NULL: they are numbers */
    size_t nlabels;
};

/* Writes PATH whole or not at all. DT_EIO: it cannot be written. */
dt_status dt_page_write(const char *path, const struct dt_page_run *runs, size_t count);

#ifdef __cplusplus
}
#endif

#endif
