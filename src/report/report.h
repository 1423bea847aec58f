#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "dtrain/report.h"

struct dt_report {
    char *path; /* of the records */
    int fd;
    struct dt_json record; /* being built */
    uint64_t total_steps;
    bool terminal;
    double shown_at; /* clock of the last progress shown; -1: none yet */
};

#endif
