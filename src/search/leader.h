/* The leader's side of a search. */
#ifndef SEARCH_LEADER_H
#define SEARCH_LEADER_H

#include "search/search.h"

/* What the leader knows of a trial's run in one fold, in the stage under way. */
struct dt__unit {
    enum { DT__TODO, DT__RUNS, DT__DONE } state;
    struct dt__result result;
};

struct dt__leader {
    const struct dt__search *search;
    struct dt__journal journal;
    struct dt__scorer scorer;
    struct dt__unit *unit; /* (trials * folds) */
    int *team_unit;        /* (teams) the unit that each one trains; -1: none */
    int teams;
    bool stops;       /* no new unit starts, and those that run have been told to stop */
    dt_status status; /* of the search: what a unit failed at; DT_STOPPED */
    char error[DT_ERROR_MAX];
    double start;      /* clock at the start of the stage */
    int left, decided; /* trials of the stage that were open then; of them, decided now */
    int best;          /* trial of the least score so far; -1: none */
};

/* Leads a search from where its journal is to its end. Rank 0. */
dt_status dt__leader_run(const struct dt__search *search);

#endif
