/* The story of a run. */
#include "dtrain/train.h"

#include "train/run.h"

/* The bank says what the run is, and saves what its directory does not hold yet: step 0 of a new run, or
 * a checkpoint that was made elsewhere. */
static dt_status begin(struct dt__run *run)
{
    dt_status status = DT_OK;
    if (dt_world_is_bank(run->world)) {
        dt__print_start(run);
        status = dt__record_start(run);
        if (!status) status = dt__keeper_save(run, true);
    }
    return dt_world_agree(run->world, status);
}

/* Bank and workers train; the evaluator works beside them, and ends when they do. */
static dt_status take_part(struct dt__run *run)
{
    if (dt_world_role(run->world) == DT_EVALUATOR) return dt__evaluator_run(run);
    dt_status status = run->mode == DT_SYNC ? dt__sync_train(run) : dt__async_train(run);
    dt__desk_dismiss(run, status);
    return status;
}

dt_status dt_train(struct dt_world *world, struct dt_config *config)
{
    struct dt__run run;
    bool done;
    dt_status status = dt__run_open(&run, world, config, &done);
    if (status == DT_STOPPED && dt_world_is_bank(world))
        dt_info("stopped on request before the first step");
    if (!status && !done) {
        status = begin(&run);
        if (!status) status = take_part(&run);
    }
    dt__run_close(&run);
    return status;
}
