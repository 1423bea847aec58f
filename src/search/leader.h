/* The leader's side of a search. */
#ifndef SEARCH_LEADER_H
#define SEARCH_LEADER_H

#include "search/search.h"

/* State of a trial's run in one fold, in the current stage. */
struct dt__unit {
    enum { DT__TODO, DT__RUNS, DT__DONE } state;
    struct dt__result result;
};

struct dt__leader {
    const struct dt__search *search;
    struct dt__journal journal;
    struct dt__scorer scorer;
    struct dt__unit *unit; /* (trials * folds) */
    int *team_unit;        /* (teams) the unit that each team trains; -1: none */
    int teams;
    bool stops;       /* no new unit starts, and the running ones were asked to stop */
    dt_status status; /* of the search: the status of the unit that failed it; or DT_STOPPED */
    char error[DT_ERROR_MAX];
    double start;      /* clock at the start of the stage */
    int left, decided; /* trials of the stage that were undecided at its start; those decided
                        * since */
    int best;          /* trial with the lowest score so far; -1: none */
};

/* Leads a search from the state in its journal to its end. Rank 0 only. */
dt_status dt__leader_run(const struct dt__search *search);

#endif
