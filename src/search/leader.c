/* The leader: assigns trials to teams, decides on them in their order, and writes the model.
 *
 * A stage is a list of trials that are all trained up to the same epoch. Teams take them in order;
 * a result waits until all earlier trials of the stage are decided. */
#include "search/leader.h"

#include <math.h>
#include <string.h>

#include "base/internal.h"
#include "state/directory.h"

/* ---- results -------------------------------------------------------------------------------- */

static int unit_number(const struct dt__leader *leader, int trial, int fold)
{
    return trial * leader->search->folds + fold;
}

/* Makes the search end with this status; units that run will be stopped. A failure replaces a stop;
 * else the first status stays. */
static void leader_fail(struct dt__leader *leader, dt_status status)
{
    if (leader->status && leader->status != DT_STOPPED) return;
    leader->status = status;
    (void)snprintf(leader->error, sizeof leader->error, "%s", dt_error_text());
}

/* Returns the journal's word for the end of a trial: "completed", or a failure that its settings
 * may have caused. NULL: the failure ends the search. */
static const char *verdict_word(dt_status status)
{
    static const struct {
        dt_status status;
        const char *word;
    } words[] = {{DT_OK, "completed"},
                 {DT_ENUMERIC, "diverged"},
                 {DT_EMEMORY, "memory"},
                 {DT_EUSAGE, "failed"},
                 {DT_EMISMATCH, "failed"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].status == status) return words[i].word;
    return NULL;
}

/* Returns true if the directory of a trial's run, or of the search, has a best model. */
static bool has_best(const char *dir)
{
    return dt__export_exists(dt__path("%s/export/best", dir).text);
}

/* Creates the scorer, if there is none yet, from the model of a unit. */
static dt_status scorer_need(struct dt__leader *leader, const struct dt__assignment *order)
{
    const struct dt__search *search = leader->search;
    const struct dt__path dir = dt__trial_dir(search, order->trial, order->fold);
    struct dt_checkpoint model;
    char *path;
    if (leader->scorer.model) return DT_OK;
    DT_TRY(dt__export_load(dir.text, true, &model, &path));
    const dt_status status = dt__scorer_make(search, &model, &leader->scorer);
    dt__checkpoint_free(&model);
    dt_free(path);
    return status;
}

/* Keeps the result of a unit, and saves its outputs to disk. */
static dt_status result_keep(struct dt__leader *leader, const struct dt__result *result,
                             const float *outputs)
{
    const struct dt__search *search = leader->search;
    const struct dt__assignment *order = &result->order;
    struct dt__unit *unit = &leader->unit[unit_number(leader, order->trial, order->fold)];
    const dt_status status = (dt_status)result->status;
    unit->state = status == DT_STOPPED ? DT__TODO : DT__DONE;
    unit->result = *result;
    if (status == DT_STOPPED) return dt_fail(status, "stopped on request");
    if (!verdict_word(status) || (status && status != DT_ENUMERIC && order->trial == 0))
        return dt_fail(status, "trial %d: %s", order->trial, result->error);
    if (status) return DT_OK;
    const struct dt__path path = dt__outputs_path(search, order->trial, order->fold);
    DT_TRY(
        dt__file_write(path.text, outputs, (size_t)result->floats * sizeof *outputs, NULL, NULL));
    return scorer_need(leader, order);
}

/* ---- teams ---------------------------------------------------------------------------------- */

static int team_first_rank(const struct dt__leader *leader, int team)
{
    return 1 + team * (int)leader->search->config->search.ranks;
}

static dt_status outputs_receive(struct dt_world *world, int rank, uint64_t floats, float **out)
{
    const double NAP_SECS = 0.0005;
    DT_TRY(dt__alloc((size_t)floats, sizeof **out, "outputs", out));
    for (uint64_t at = 0, count; at < floats; at += count) {
        count = floats - at < DT__OUTPUTS_AT_ONCE ? floats - at : DT__OUTPUTS_AT_ONCE;
        while (!dt__world_try_recv(world, rank, DT__TAG_OUTPUTS, *out + at,
                                   (size_t)count * sizeof **out)) {
            dt__world_idle(world, "a trial's outputs");
            dt__sleep_secs(NAP_SECS);
        }
    }
    return DT_OK;
}

/* Receives and keeps a team's result, if one has arrived. */
static dt_status team_collect(struct dt__leader *leader, int team)
{
    struct dt_world *world = leader->search->world;
    const int rank = team_first_rank(leader, team);
    struct dt__result result;
    float *outputs = NULL;
    if (!dt__world_try_recv(world, rank, DT__TAG_RESULT, &result, sizeof result)) return DT_OK;
    leader->team_unit[team] = -1;
    if (result.floats) DT_TRY(outputs_receive(world, rank, result.floats, &outputs));
    const dt_status status = result_keep(leader, &result, outputs);
    dt_free(outputs);
    return status;
}

/* Starts a unit: sends it to a team or, if there is only this process, trains it here to its
 * end. */
static dt_status unit_start(struct dt__leader *leader, int team, const struct dt__assignment *order)
{
    const int number = unit_number(leader, order->trial, order->fold);
    const struct dt__search *search = leader->search;
    leader->unit[number].state = DT__RUNS;
    if (!search->team) {
        leader->team_unit[team] = number;
        dt__world_send(search->world, team_first_rank(leader, team), DT__TAG_ORDER, order,
                       sizeof *order);
        return DT_OK;
    }
    struct dt__result result;
    float *outputs;
    dt__unit_run(search, order, &result, &outputs);
    const dt_status status = result_keep(leader, &result, outputs);
    dt_free(outputs);
    return status;
}

static bool leader_is_idle(const struct dt__leader *leader)
{
    for (int t = 0; t < leader->teams; t++)
        if (leader->team_unit[t] >= 0) return false;
    return true;
}

/* Asks the teams that still train to save and stop, if the search must end. */
static void leader_stop_teams(struct dt__leader *leader)
{
    const char message = 0;
    if (!leader->status && dt__stop_requested())
        leader_fail(leader, dt_fail(DT_STOPPED, "stopped on request"));
    if (!leader->status || leader->stops) return;
    leader->stops = true;
    for (int t = 0; t < leader->teams; t++)
        if (leader->team_unit[t] >= 0)
            dt__world_send(leader->search->world, team_first_rank(leader, t), DT__TAG_STOP,
                           &message, sizeof message);
}

/* ---- decisions ------------------------------------------------------------------------------ */

/* Computes the score of a trial from the outputs of all its folds. */
static dt_status trial_score(const struct dt__leader *leader, int trial, double *out)
{
    const struct dt__search *search = leader->search;
    float **outputs;
    DT_TRY(dt__alloc((size_t)search->folds, sizeof *outputs, "outputs", &outputs));
    dt_status status = DT_OK;
    for (int f = 0; f < search->folds && !status; f++)
        status = dt__outputs_read(search, &leader->scorer, trial, f, &outputs[f]);
    if (!status) status = dt__scorer_score(search, &leader->scorer, outputs, out);
    for (int f = 0; f < search->folds; f++)
        dt_free(outputs[f]);
    dt_free(outputs);
    return status;
}

static dt_status trial_record(struct dt__leader *leader, int trial, int epochs,
                              const struct dt__result *result, const struct dt__verdict *verdict,
                              const json_t *settings)
{
    struct dt_json line = {0};
    dt__json_start(&line);
    dt__json_text(&line, "kind", "trial");
    dt__json_int(&line, "trial", trial);
    if (epochs) dt__json_int(&line, "epochs", epochs);
    dt__json_text(&line, "status", verdict->status);
    if (isfinite(verdict->score)) {
        dt__json_real(&line, "score", verdict->score);
        dt__json_int(&line, "step", (int64_t)result->step);
    } else {
        dt__json_text(&line, "error", result->error);
    }
    dt_status status = dt__text_add(&line.text, ",\"settings\":");
    if (!status && !dt__json_add(&line.text, settings, JSON_COMPACT))
        status = dt_fail(DT_EMEMORY, "out of memory for a record");
    dt__json_real(&line, "secs", round(result->secs * 1000) / 1000);
    leader->journal.secs += result->secs;
    if (!status) status = dt__journal_add(&leader->journal, &line);
    dt__json_free(&line);
    return status;
}

/* Adds a trial's settings, " train.lr=0.1 model.hidden=64", or says why there are none. */
static dt_status settings_add(struct dt_text *text, int trial, json_t *settings)
{
    const char *key;
    json_t *value;
    dt_status status = DT_OK;
    if (!json_object_size(settings))
        status = dt__text_add(text, trial ? " the only values of search.space"
                                          : " the configuration as it is");
    json_object_foreach(settings, key, value)
    {
        status = dt__text_add(text, " %s=%s", key, json_string_value(value));
    }
    return status;
}

static dt_status trial_print(const struct dt__leader *leader, int trial, int epochs,
                             const struct dt__result *result, const struct dt__verdict *verdict,
                             json_t *settings)
{
    const int trials = (int)leader->search->config->search.trials;
    const char *score = leader->scorer.root ? "rmse" : "loss";
    const double each = (dt__clock_secs() - leader->start) / leader->decided;
    const double left = each * (leader->left - leader->decided);
    char rest[48] = "", stage[32] = "";
    struct dt_text text = {0};
    const dt_status status = settings_add(&text, trial, settings);
    if (epochs)
        (void)snprintf(stage, sizeof stage, " after %d epoch%s", epochs, epochs > 1 ? "s" : "");
    if (left >= 10) (void)snprintf(rest, sizeof rest, ", about %.0f s left", left);
    if (!status && isfinite(verdict->score))
        dt__info("trial %d of %d%s: %s %g%s, %.1f s%s:%s", trial, trials, stage, score,
                 verdict->score, leader->best == trial ? ", the best so far" : "", result->secs,
                 rest, text.data);
    else if (!status)
        dt__info("trial %d of %d%s: %s: %s:%s", trial, trials, stage, verdict->status,
                 result->error, text.data);
    dt__text_free(&text);
    return status;
}

/* Returns true if trial a ranks before trial b: by score, then by number. */
static bool ranks_before(const struct dt__verdict *all, int a, int b)
{
    return all[a].score < all[b].score || (a < b && all[a].score == all[b].score);
}

/* Makes the trial the best one if its score is lower than the best so far. */
static void best_update(struct dt__leader *leader, const struct dt__verdict *all, int trial)
{
    if (!all[trial].known || !isfinite(all[trial].score)) return;
    if (leader->best < 0 || all[trial].score < all[leader->best].score) leader->best = trial;
}

/* Decides on a trial whose folds are all done: scores, records and prints it. */
static dt_status trial_decide(struct dt__leader *leader, int trial, int epochs)
{
    const struct dt__unit *unit = &leader->unit[unit_number(leader, trial, 0)];
    struct dt__verdict *all = epochs ? leader->journal.first : leader->journal.whole;
    struct dt__verdict *verdict = &all[trial];
    const struct dt__result *result = &unit->result;
    leader->decided++;
    if (verdict->known)
        return DT_OK; /* decided earlier; its outputs were lost and have been
                                       * computed again */
    struct dt__verdict now = {.known = true, .score = INFINITY};
    struct dt__result shown = *result;
    for (int f = 1; f < leader->search->folds; f++) {
        shown.secs += unit[f].result.secs;
        if (!shown.status && unit[f].result.status) {
            shown.status = unit[f].result.status;
            memcpy(shown.error, unit[f].result.error, sizeof shown.error);
        }
    }
    if (!shown.status) DT_TRY(trial_score(leader, trial, &now.score));
    if (!shown.status && !isfinite(now.score)) {
        shown.status = DT_ENUMERIC;
        (void)snprintf(shown.error, sizeof shown.error, "its loss is not finite");
    }
    (void)snprintf(now.status, sizeof now.status, "%s", verdict_word((dt_status)shown.status));
    json_t *settings;
    DT_TRY(dt__trial_settings(leader->search, trial, &settings));
    const dt_status status = trial_record(leader, trial, epochs, &shown, &now, settings);
    if (!status) *verdict = now;
    if (!status) best_update(leader, all, trial);
    if (!status) (void)trial_print(leader, trial, epochs, &shown, &now, settings);
    json_decref(settings);
    return status;
}

/* Returns true if the trial is decided and, unless it failed, its outputs exist. */
static bool trial_is_done(const struct dt__leader *leader, int trial, int epochs)
{
    const struct dt__search *search = leader->search;
    const struct dt__verdict *verdict =
        &(epochs ? leader->journal.first : leader->journal.whole)[trial];
    if (!verdict->known || !isfinite(verdict->score)) return verdict->known;
    for (int f = 0; f < search->folds; f++)
        if (!dt__path_exists(dt__outputs_path(search, trial, f).text)) return false;
    return true;
}

/* ---- a stage -------------------------------------------------------------------------------- */

/* A stage: its trials, and its progress. */
struct stage {
    const int *trial;
    int trials, epochs;
    int next;    /* index of the next unit to start */
    int decided; /* number of trials decided so far */
};

static dt_status stage_start_units(struct dt__leader *leader, struct stage *stage)
{
    const int folds = leader->search->folds;
    for (int t = 0; t < leader->teams && !leader->status; t++) {
        struct dt__assignment order = {.epochs = stage->epochs};
        while (stage->next < stage->trials * folds) {
            order.trial = stage->trial[stage->next / folds];
            order.fold = stage->next % folds;
            if (leader->unit[unit_number(leader, order.trial, order.fold)].state == DT__TODO) break;
            stage->next++;
        }
        if (leader->team_unit[t] >= 0 || stage->next == stage->trials * folds) continue;
        stage->next++;
        DT_TRY(unit_start(leader, t, &order));
    }
    return DT_OK;
}

static dt_status stage_decide(struct dt__leader *leader, struct stage *stage)
{
    for (; stage->decided < stage->trials; stage->decided++) {
        const int trial = stage->trial[stage->decided];
        const struct dt__unit *unit = &leader->unit[unit_number(leader, trial, 0)];
        for (int f = 0; f < leader->search->folds; f++)
            if (unit[f].state != DT__DONE) return DT_OK;
        if (!trial_is_done(leader, trial, stage->epochs))
            DT_TRY(trial_decide(leader, trial, stage->epochs));
    }
    return DT_OK;
}

/* Goes over all teams once: receives results, decides on trials and starts units. */
static dt_status stage_step(struct dt__leader *leader, struct stage *stage)
{
    const double NAP_SECS = 0.002;
    for (int t = 0; t < leader->teams; t++) {
        const dt_status status = leader->team_unit[t] >= 0 ? team_collect(leader, t) : DT_OK;
        if (status) leader_fail(leader, status);
    }
    if (!leader->status) DT_TRY(stage_decide(leader, stage));
    if (!leader->status) DT_TRY(stage_start_units(leader, stage));
    leader_stop_teams(leader);
    if (leader->search->team) return DT_OK;
    dt__world_idle(leader->search->world, "teams");
    dt__sleep_secs(NAP_SECS);
    return DT_OK;
}

/* Runs a stage: trains the trials of a list up to an epoch (0: to their regular ends), and decides
 * on them. */
static dt_status stage_run(struct dt__leader *leader, const int *trial, int trials, int epochs)
{
    const int folds = leader->search->folds;
    struct stage stage = {.trial = trial, .trials = trials, .epochs = epochs};
    leader->start = dt__clock_secs();
    leader->left = leader->decided = 0;
    leader->best = -1;
    for (int i = 0; i < trials; i++) {
        const bool done = trial_is_done(leader, trial[i], epochs);
        leader->left += !done;
        best_update(leader, epochs ? leader->journal.first : leader->journal.whole, trial[i]);
        for (int f = 0; f < folds; f++)
            leader->unit[unit_number(leader, trial[i], f)].state = done ? DT__DONE : DT__TODO;
    }
    while (stage.decided < trials || !leader_is_idle(leader)) {
        const dt_status status = stage_step(leader, &stage);
        if (status) leader_fail(leader, status);
        if (leader->status && leader_is_idle(leader)) break;
    }
    return leader->status ? dt_fail(leader->status, "%s", leader->error) : DT_OK;
}

/* ---- the whole search ------------------------------------------------------------------------ */

/* Chooses the trials to train to the end: the best search.finish trials after their first epochs,
 * in the order of their numbers. */
static dt_status choose_finish(struct dt__leader *leader, int *trial, int *count)
{
    const struct dt__verdict *first = leader->journal.first;
    const int trials = *count, asked = (int)leader->search->config->search.finish;
    uint64_t *goes;
    struct dt_json line = {0};
    dt_status status = DT_OK;
    DT_TRY(dt__alloc((size_t)trials, sizeof *goes, "trials", &goes));
    *count = 0;
    for (int t = 0; t < trials; t++) {
        int before = 0;
        for (int o = 0; o < trials; o++)
            before += ranks_before(first, o, t);
        if (!isfinite(first[t].score) || (asked && before >= asked)) continue;
        goes[*count] = (uint64_t)t;
        trial[(*count)++] = t;
    }
    dt__json_start(&line);
    dt__json_text(&line, "kind", "finish");
    dt__json_counts(&line, "trials", goes, (size_t)*count);
    if (!leader->journal.finished) status = dt__journal_add(&leader->journal, &line);
    leader->journal.finished = true;
    dt__json_free(&line);
    dt_free(goes);
    return status;
}

static dt_status stages_run(struct dt__leader *leader, int *trial)
{
    int count = (int)leader->search->config->search.trials;
    const int epochs = (int)leader->search->config->search.first_epochs;
    for (int t = 0; t < count; t++)
        trial[t] = t;
    if (epochs) {
        DT_TRY(stage_run(leader, trial, count, epochs));
        DT_TRY(choose_finish(leader, trial, &count));
    }
    return stage_run(leader, trial, count, 0);
}

/* Trains members again if their weights were removed, for example by a search that had ended. */
static dt_status members_need(struct dt__leader *leader, const struct dt__members *members)
{
    const struct dt__search *search = leader->search;
    for (int m = 0; m < members->count; m++)
        for (int f = 0; f < search->folds; f++) {
            const struct dt__path dir = dt__trial_dir(search, members->trial[m], f);
            if (has_best(dir.text)) continue;
            dt__path_remove(dt__outputs_path(search, members->trial[m], f).text);
        }
    return stage_run(leader, members->trial, members->count, 0);
}

/* The final report. Each printed line gives the score of one model on held-out rows and, if there
 * are any, on test rows; the journal's last record has the same scores as fields. */
struct report {
    const struct dt__leader *leader;
    struct dt_source *test; /* test rows; NULL: there are none */
    struct dt_json line;
};

static dt_status report_add(struct report *report, const char *what, const char *key, double score,
                            const char *path)
{
    const struct dt__leader *leader = report->leader;
    const char *name = leader->scorer.root ? "rmse" : "loss";
    char field[32], test[64] = "";
    double value = NAN;
    if (report->test && path)
        DT_TRY(dt__model_score(leader->search, &leader->scorer, path, report->test, &value));
    if (!isnan(value)) (void)snprintf(test, sizeof test, ", test %s %g", name, value);
    dt__info("%s: held-out %s %g%s", what, name, score, test);
    dt__json_real(&report->line, key, score);
    (void)snprintf(field, sizeof field, "%s_test", key);
    if (!isnan(value)) dt__json_real(&report->line, field, value);
    return DT_OK;
}

/* Prints where the model is, and warns if it is not better than the baseline. */
static void model_print(const struct dt_config *config, double score, double baseline)
{
    const char *dir = config->run.dir;
    if (score >= baseline)
        dt__warn("the model is %s than the baseline, a constant: look at the data (dtrain "
                 "inspect), or try another search.space",
                 score > baseline ? "worse" : "not better");
    dt__info("the model is in %s/export/best; next: dtrain predict %s %s, or dtrain report %s "
             "PAGE.html",
             dir, dir, dt__data_trains_on_table(config) ? "< ROWS" : "data.eval=FILES", dir);
}

/* Prints and records the result of the search. The held-out rows have chosen the members, while the
 * test rows took no part in any choice. */
static dt_status members_report(struct dt__leader *leader, const struct dt__members *members)
{
    const struct dt__search *search = leader->search;
    const struct dt__verdict *all = leader->journal.whole;
    struct report report = {.leader = leader};
    struct dt_text text = {0};
    double baseline = NAN;
    json_t *settings;
    const bool linear =
        search->linear && search->config->search.trials > 1 && isfinite(all[1].score);
    const bool files = !search->config->search.folds; /* without folds each trial has one model,
                                                       * which can be scored */
    const struct dt__path best = dt__trial_dir(search, members->trial[0], 0),
                          second = dt__trial_dir(search, 1, 0);
    dt_status status;
    DT_GUARD(dt__source_side(search->fold[0].rows, DT__TEST, &report.test));
    DT_GUARD(dt__scorer_baseline(search, &leader->scorer, &baseline));
    dt__json_start(&report.line);
    dt__json_text(&report.line, "kind", "final");
    dt__text_add(&text, "the model, the mean of %d trial%s (", members->count,
                 members->count > 1 ? "s" : "");
    for (int m = 0; m < members->count; m++)
        dt__text_add(&text, "%s%d", m ? ", " : "", members->trial[m]);
    DT_GUARD(dt__text_add(&text, "), which these rows chose"));
    DT_GUARD(report_add(&report, text.data, "ensemble", members->score, search->config->run.dir));
    dt__text_clear(&text);
    dt__text_add(&text, "trial %d alone, which these rows chose:", members->trial[0]);
    DT_GUARD(dt__trial_settings(search, members->trial[0], &settings));
    status = settings_add(&text, members->trial[0], settings);
    json_decref(settings);
    if (status) goto done;
    DT_GUARD(report_add(&report, text.data, "single", all[members->trial[0]].score,
                        files ? best.text : NULL));
    if (linear)
        DT_GUARD(report_add(&report, "the linear model", "linear", all[1].score,
                            files && has_best(second.text) ? second.text : NULL));
    DT_GUARD(report_add(&report, "the baseline, always the same", "baseline", baseline, NULL));
    dt__info("training took %.1f s, all trials added up", leader->journal.secs);
    dt__json_real(&report.line, "secs", round(leader->journal.secs * 1000) / 1000);
    model_print(search->config, members->score, baseline);
    status = dt__journal_add(&leader->journal, &report.line);
done:
    dt__source_destroy(report.test);
    dt__json_free(&report.line);
    dt__text_free(&text);
    return status;
}

/* Writes, records and reports the model, unless the journal already ends with the same result. */
static dt_status members_record(struct dt__leader *leader, const struct dt__members *members)
{
    const struct dt__search *search = leader->search;
    struct dt_json line = {0};
    uint64_t *trial;
    DT_TRY(dt__alloc((size_t)members->count, sizeof *trial, "members", &trial));
    for (int m = 0; m < members->count; m++)
        trial[m] = (uint64_t)members->trial[m];
    dt__json_start(&line);
    dt__json_text(&line, "kind", "ensemble");
    dt__json_int(&line, "trials", search->config->search.trials);
    dt__json_counts(&line, "members", trial, (size_t)members->count);
    dt__json_real(&line, "score", members->score);
    const char *before = leader->journal.ensemble;
    const bool same = before && has_best(search->config->run.dir) &&
                      !strncmp(before, line.text.data, line.text.length) &&
                      strchr(",}", before[line.text.length]); /* the lines differ only in the
                                                               * time */
    const bool reported = same && leader->journal.reported;
    dt_status status = same ? DT_OK : members_need(leader, members);
    if (!status && !same) status = dt__members_export(search, &leader->scorer, members);
    if (!status && !same) status = dt__journal_add(&leader->journal, &line);
    if (!status && !reported) status = members_report(leader, members);
    if (reported) dt__info("%s: the search is complete", search->config->run.dir);
    dt__json_free(&line);
    dt_free(trial);
    return status;
}

/* Removes the weights of trials that are not members, except the best search.keep of these. Removes
 * the checkpoints of all trials. */
static void weights_clear(const struct dt__leader *leader, const struct dt__members *members)
{
    const struct dt__search *search = leader->search;
    const struct dt__verdict *all = leader->journal.whole;
    const int trials = (int)search->config->search.trials;
    for (int t = 0; t < trials; t++) {
        const bool member = dt__members_have(members, t);
        int64_t better = 0; /* number of better trials that are not members */
        for (int o = 0; o < trials && !member; o++)
            better += !dt__members_have(members, o) && ranks_before(all, o, t);
        for (int f = 0; f < search->folds; f++) {
            const struct dt__path dir = dt__trial_dir(search, t, f);
            dt__path_remove(dt__path("%s/ckpt", dir.text).text);
            if (!member && better >= search->config->search.keep)
                dt__path_remove(dt__path("%s/export", dir.text).text);
        }
    }
}

static dt_status leader_end(struct dt__leader *leader)
{
    struct dt__members members;
    if (!leader->scorer.model)
        return dt_fail(DT_ENUMERIC, "no trial has a model: trial 0: %s",
                       leader->unit[0].result.error);
    DT_TRY(dt__members_choose(leader->search, &leader->scorer, leader->journal.whole, &members));
    dt_status status = members.count ? DT_OK : dt_fail(DT_ENUMERIC, "no trial has a finite loss");
    if (!status) status = members_record(leader, &members);
    if (!status) weights_clear(leader, &members);
    dt_free(members.trial);
    return status;
}

static void stop_print(const struct dt__leader *leader)
{
    int decided = 0;
    for (int t = 0; t < leader->journal.trials; t++)
        decided += leader->journal.whole[t].known;
    dt__info("%s: stopped after %d of %d trials: the same command continues from there",
             leader->search->config->run.dir, decided, leader->journal.trials);
}

/* Sends the teams the message that there are no more orders. */
static void leader_dismiss(const struct dt__leader *leader)
{
    const struct dt__assignment end = {.trial = -1};
    for (int t = 0; t < leader->teams && !leader->search->team; t++)
        dt__world_send(leader->search->world, team_first_rank(leader, t), DT__TAG_ORDER, &end,
                       sizeof end);
}

/* Checks that the rows are those with which the journal's trials were trained. A new search records
 * its rows. */
static dt_status data_check(struct dt__leader *leader)
{
    const struct dt__search *search = leader->search;
    const char *before = leader->journal.data;
    struct dt_json line = {0};
    if (*before && strcmp(before, search->data))
        return dt_fail(DT_EMISMATCH,
                       "data.train=%s: the rows are not those with which the search in %s started; "
                       "another search needs another run.dir",
                       search->config->data.train, search->config->run.dir);
    if (*before) return DT_OK;
    dt__json_start(&line);
    dt__json_text(&line, "kind", "data");
    dt__json_text(&line, "sums", search->data);
    const dt_status status = dt__journal_add(&leader->journal, &line);
    dt__json_free(&line);
    return status;
}

/* Creates the scorer of a resumed search, if one of its trials has a model. */
static dt_status leader_resume(struct dt__leader *leader)
{
    const struct dt__search *search = leader->search;
    for (int t = 0; t < leader->journal.trials && !leader->scorer.model; t++) {
        const struct dt__assignment order = {.trial = t};
        const struct dt__path dir = dt__trial_dir(search, t, 0);
        if (has_best(dir.text)) DT_TRY(scorer_need(leader, &order));
    }
    return DT_OK;
}

dt_status dt__leader_run(const struct dt__search *search)
{
    const struct dt_config *config = search->config;
    const int trials = (int)config->search.trials, ranks = (int)config->search.ranks;
    struct dt__leader leader = {.search = search, .start = dt__clock_secs()};
    int *trial = NULL;
    dt_status status;
    leader.journal.fd = -1;
    leader.teams = search->team ? 1 : (search->world->size - 1) / ranks;
    DT_GUARD(dt__alloc((size_t)leader.teams, sizeof(int), "teams", &leader.team_unit));
    for (int t = 0; t < leader.teams; t++)
        leader.team_unit[t] = -1;
    DT_GUARD(
        dt__alloc((size_t)(trials * search->folds), sizeof *leader.unit, "trials", &leader.unit));
    DT_GUARD(dt__alloc((size_t)trials, sizeof *trial, "trials", &trial));
    DT_GUARD(dt__journal_open(config->run.dir, trials, &leader.journal));
    DT_GUARD(data_check(&leader));
    DT_GUARD(leader_resume(&leader));
    DT_GUARD(stages_run(&leader, trial));
    status = leader_end(&leader);
done:
    if (status == DT_STOPPED) stop_print(&leader);
    leader_dismiss(&leader);
    dt__scorer_free(&leader.scorer, search->folds);
    dt__journal_close(&leader.journal);
    dt_free(trial);
    dt_free(leader.unit);
    dt_free(leader.team_unit);
    return status;
}
