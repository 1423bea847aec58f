/* A team: ranks that train one trial after another, as the leader assigns them. */
#include <string.h>

#include "predict/predict.h"
#include "search/search.h"
#include "state/directory.h"
#include "train/train.h"

/* ---- outputs of the best model -------------------------------------------------------------- */

/* Computes the outputs for all rows, (rows, nout), in the space of dt__model_to_mean. */
static dt_status outputs_compute(const struct dt_config *config, const struct dt_source *source,
                                 const struct dt_predictor *predictor, float *outputs)
{
    const uint64_t chunks = (dt__source_rows(source) + DT_EVAL_CHUNK - 1) / DT_EVAL_CHUNK;
    const size_t nout = (size_t)predictor->file.desc.nout;
    const struct dt_model *model = predictor->model;
    struct dt_measure *measure;
    struct dt_batch batch;
    const float *logits;
    DT_TRY(dt__measure_create(config, source, model, 0, chunks, &measure));
    dt_status status = DT_OK;
    for (uint64_t c = 0; c < chunks && !status; c++, outputs += DT_EVAL_CHUNK * nout) {
        status = dt__measure_outputs(measure, predictor->file.params, c, &batch, &logits);
        if (!status) dt__model_to_mean(model, logits, batch.rows, outputs);
    }
    dt__measure_destroy(measure);
    return status;
}

static dt_status outputs_make(const struct dt_config *config, const struct dt_source *source,
                              struct dt__result *result, float **out)
{
    struct dt_predictor *predictor;
    float *outputs = NULL;
    DT_TRY(dt__predictor_load(config->run.dir, &predictor));
    const size_t nout = (size_t)predictor->file.desc.nout;
    const size_t rows = (size_t)dt__source_rows(source);
    dt_status status = dt__alloc(rows, nout * sizeof *outputs, "outputs", &outputs);
    if (!status) status = outputs_compute(config, source, predictor, outputs);
    result->step = predictor->file.step;
    result->floats = rows * nout;
    dt_predictor_close(predictor);
    if (status)
        dt_free(outputs);
    else
        *out = outputs;
    return status;
}

/* ---- a trial -------------------------------------------------------------------------------- */

/* State of stop_asked, which is called once per step. Most calls only read the clock, since
 * receiving costs more than a small step. */
struct stop {
    struct dt_world *world; /* world of the whole search; NULL: this process is alone */
    double next;
    bool asked;
};

static bool stop_asked(void *arg)
{
    const double PERIOD_SECS = 0.01;
    struct stop *stop = arg;
    char message;
    const double now = dt__clock_secs();
    if (!stop->world || stop->asked || now < stop->next) return stop->asked;
    stop->next = now + PERIOD_SECS;
    stop->asked = dt__world_try_recv(stop->world, 0, DT__TAG_STOP, &message, sizeof message);
    return stop->asked;
}

/* Copies the rows for one trial, without quantiles of numbers if the trial encodes nothing. (With
 * the preset, training decides data.encode=auto.) */
static dt_status rows_copy(const struct dt__fold *from, const struct dt_config *config,
                           struct dt__fold *out)
{
    const int encode = config->data.encode;
    DT_TRY(dt__source_copy(from->rows, &out->rows));
    DT_TRY(dt__source_copy(from->held_out, &out->held_out));
    if (encode == DT_ENCODE_NONE ||
        (encode == DT_ENCODE_AUTO && config->run.preset != DT_PRESET_TABLE)) {
        dt__source_forget_quantiles(out->rows);
        dt__source_forget_quantiles(out->held_out);
    }
    return DT_OK;
}

void dt__unit_run(const struct dt__search *search, const struct dt__assignment *order,
                  struct dt__result *result, float **out)
{
    struct dt__fold fold = {0};
    struct dt_world *team = search->team;
    struct stop stop = {.world = search->world->size > 1 ? search->world : NULL};
    struct dt__train_options options = {.no_first_save = true, .stop = stop_asked, .arg = &stop};
    const enum dt_log_level level = dt__log_get_level();
    const double start = dt__clock_secs();
    struct dt_config config = {0};
    *result = (struct dt__result){.order = *order};
    *out = NULL;
    /* every rank computes the same configuration */
    dt_status status = dt__trial_config(search, order->trial, order->fold, order->epochs, &config);
    if (!status) status = rows_copy(&search->fold[order->fold], &config, &fold);
    status = dt__ranks_agree(team->all, status);
    options.rows = fold.rows;
    options.held_out = fold.held_out;
    if (level == DT_LOG_INFO) dt_log_set_level(DT_LOG_ERROR);
    if (!status) status = dt__train(team, &config, &options);
    dt__world_rest(team, false);
    if (!status && team->rank == 0) status = outputs_make(&config, fold.held_out, result, out);
    dt_log_set_level(level);
    result->status = (int)dt__ranks_agree(team->all, status);
    result->secs = dt__clock_secs() - start;
    if (result->status) snprintf(result->error, sizeof result->error, "%s", dt_error_text());
    dt__source_destroy(fold.held_out);
    dt__source_destroy(fold.rows);
    dt__config_free(&config);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void order_await(const struct dt__search *search, struct dt__assignment *order)
{
    const double NAP_SECS = 0.001;
    struct dt_world *team = search->team;
    while (team->rank == 0 &&
           !dt__world_try_recv(search->world, 0, DT__TAG_ORDER, order, sizeof *order)) {
        dt__world_idle(search->world, "an order");
        dt__sleep_secs(NAP_SECS);
    }
    dt__ranks_bcast(team->all, order, sizeof *order, 0);
}

static void result_send(struct dt_world *world, const struct dt__result *result,
                        const float *outputs)
{
    dt__world_send(world, 0, DT__TAG_RESULT, result, sizeof *result);
    for (uint64_t at = 0, count; at < result->floats; at += count) {
        const uint64_t left = result->floats - at;
        count = left < DT__OUTPUTS_AT_ONCE ? left : DT__OUTPUTS_AT_ONCE;
        dt__world_send(world, 0, DT__TAG_OUTPUTS, outputs + at, (size_t)count * sizeof *outputs);
    }
}

void dt__team_serve(const struct dt__search *search)
{
    struct dt__assignment order;
    struct dt__result result;
    char stop;
    for (order_await(search, &order); order.trial >= 0; order_await(search, &order)) {
        float *outputs;
        dt__unit_run(search, &order, &result, &outputs);
        if (result.status) result.floats = 0;
        if (search->team->rank == 0) result_send(search->world, &result, outputs);
        dt_free(outputs);
    }
    /* a stop may have arrived as a trial ended: receive it */
    if (search->team->rank == 0)
        (void)dt__world_try_recv(search->world, 0, DT__TAG_STOP, &stop, sizeof stop);
}
