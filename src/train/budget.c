/* Where the workers' time goes in sync training. */
#include "train/run.h"

static const char *const FIELDS[DT__BUDGET_PARTS] = {"compute_secs", "data_secs",   "wait_secs",
                                                     "reduce_secs",  "update_secs", "network_secs"};

void dt__budget_leg(struct dt__run *run, double secs)
{
    struct dt_exchange_times times;
    dt_exchange_take_times(run->exchange, &times);
    double *spent = run->budget;
    spent[DT__WAIT] += times.wait;
    spent[DT__REDUCE] += times.reduce;
    spent[DT__UPDATE] += times.update;
    spent[DT__NETWORK] += times.network;
    spent[DT__DATA] += run->data_secs;
    spent[DT__COMPUTE] +=
        secs - run->data_secs - times.wait - times.reduce - times.update - times.network;
    run->data_secs = 0;
}

dt_status dt__budget_share(struct dt__run *run)
{
    return dt_world_crew_sum(run->world, run->budget, DT__BUDGET_PARTS, run->keeper.budget);
}

void dt__budget_record(struct dt__run *run)
{
    double workers = dt_world_workers(run->world);
    for (int i = 0; i < DT__BUDGET_PARTS; i++)
        dt_record_real(run->keeper.report, FIELDS[i], run->keeper.budget[i] / workers);
}
