/* The leader of a search. */
#ifndef SEARCH_LEADER_H
#define SEARCH_LEADER_H

#include "search/search.h"

/* State, in the current stage, of a trial's run in one fold: a unit of work for a team. */
struct dt__unit {
    enum { DT__TODO, DT__RUNS, DT__DONE } state;
    struct dt__result result;
};

struct dt__leader {
    const struct dt__search *search;
    struct dt__journal journal;
    struct dt__scorer scorer;
    struct dt__unit *unit; /* (trials * folds) */
    int *team_unit;        /* (teams) number of the unit that each team trains; -1: none */
    int teams;
    bool stops;       /* the running units were asked to stop; no new ones start */
    dt_status status; /* status of the search: that of the unit that made it fail, or DT_STOPPED */
    char error[DT_ERROR_MAX];
    double start;      /* clock at the start of the stage */
    int left, decided; /* number of trials that were undecided when the stage began, and how many of
                        * these have been decided since */
    int best;          /* trial with the lowest score of the stage so far; -1: none */
};

/* Leads a search to its end, from the state that its journal records. Rank 0 only. */
dt_status dt__leader_run(const struct dt__search *search);

#endif
