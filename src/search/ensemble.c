/* The ensemble: scores of outputs and their means, the choice of the members, and the model made of
 * them.
 *
 * The choice is greedy. It begins with the best trial, and then adds, as long as this lowers the
 * loss of the mean, the trial that lowers it most; a trial is added at most once. Scores are
 * compared at six digits; of equal ones the lower number wins. With folds, the members are the best
 * trials by their own scores, as long as these are within 10 % of the best, and all models of their
 * folds are used.
 * Source: Caruana et al., "Ensemble selection from libraries of models", ICML 2004. */
#include <math.h>
#include <string.h>

#include "model/mean.h"
#include "predict/predict.h"
#include "search/search.h"
#include "state/directory.h"
#include "train/certify.h"
#include "train/train.h"

/* ---- scores --------------------------------------------------------------------------------- */

static size_t fold_rows(const struct dt__search *search, int fold)
{
    return (size_t)dt__source_rows(search->fold[fold].held_out);
}

/* Copies the labels or targets of all rows that a fold holds out. */
static dt_status truth_read(const struct dt__search *search, int fold, struct dt_batch *out)
{
    const struct dt_source *source = search->fold[fold].held_out;
    const size_t rows = fold_rows(search, fold);
    const size_t targets = (size_t)dt__source_schema(source)->targets;
    struct dt_table *table;
    struct dt_batch batch;
    float *target = NULL;
    int32_t *label = NULL;
    DT_TRY(dt__table_create(search->config, source, 0, rows, &table));
    dt_status status = targets ? dt__alloc(rows, targets * sizeof *target, "targets", &target)
                               : dt__alloc(rows, sizeof *label, "labels", &label);
    for (size_t at = 0; at < rows && !status; at += DT_EVAL_CHUNK) {
        const size_t count = rows - at < DT_EVAL_CHUNK ? rows - at : DT_EVAL_CHUNK;
        status = dt__table_read(table, at, (int)count, &batch);
        if (!status && targets)
            memcpy(target + at * targets, batch.target, count * targets * sizeof *target);
        if (!status && label) memcpy(label + at, batch.label, count * sizeof *label);
    }
    dt__table_destroy(table);
    *out = (struct dt_batch){.rows = (int)rows, .target = target, .label = label};
    return status;
}

dt_status dt__scorer_make(const struct dt__search *search, const struct dt_checkpoint *like,
                          struct dt__scorer *out)
{
    const struct dt_schema *schema = &like->schema;
    DT_TRY(dt__model_create(&like->desc, &out->model));
    DT_TRY(dt__model_set_units(out->model, schema->target_mean, schema->target_std));
    DT_TRY(dt__model_set_range(out->model, schema->target_least, schema->target_greatest));
    out->root = like->desc.task == DT_TASK_REGRESS &&
                (like->desc.loss == DT_LOSS_AUTO || like->desc.loss == DT_LOSS_MSE);
    DT_TRY(dt__alloc((size_t)search->folds, sizeof *out->truth, "labels", &out->truth));
    for (int f = 0; f < search->folds; f++) {
        DT_TRY(truth_read(search, f, &out->truth[f]));
        out->rows += fold_rows(search, f);
    }
    return DT_OK;
}

void dt__scorer_free(struct dt__scorer *scorer, int folds)
{
    for (int f = 0; f < folds && scorer->truth; f++) {
        dt_free((void *)scorer->truth[f].label);
        dt_free((void *)scorer->truth[f].target);
    }
    dt_free(scorer->truth);
    dt__model_destroy(scorer->model);
    *scorer = (struct dt__scorer){0};
}

/* Returns the labels or targets of the chunk of a fold's held-out rows that begins at row `at`. */
static struct dt_batch truth_part(const struct dt__search *search, const struct dt__scorer *scorer,
                                  int fold, size_t at)
{
    const size_t targets = (size_t)dt__source_schema(search->fold[fold].held_out)->targets;
    const size_t left = fold_rows(search, fold) - at;
    struct dt_batch batch = scorer->truth[fold];
    batch.rows = left < DT_EVAL_CHUNK ? (int)left : DT_EVAL_CHUNK;
    if (batch.target) batch.target += at * targets;
    if (batch.label) batch.label += at;
    return batch;
}

dt_status dt__scorer_score(const struct dt__search *search, const struct dt__scorer *scorer,
                           float *const *mean, double *out)
{
    const struct dt_model *model = scorer->model;
    const size_t nout = (size_t)model->desc.nout;
    double sum = 0;
    float *logits;
    DT_TRY(dt__alloc(DT_EVAL_CHUNK, nout * sizeof *logits, "outputs", &logits));
    for (int f = 0; f < search->folds; f++) {
        for (size_t at = 0, rows = fold_rows(search, f); at < rows; at += DT_EVAL_CHUNK) {
            const struct dt_batch batch = truth_part(search, scorer, f, at);
            dt__model_from_mean(model, mean[f] + at * nout, batch.rows, logits);
            sum += dt__model_loss(model, &batch, logits);
        }
    }
    dt_free(logits);
    const double loss = sum / (double)scorer->rows;
    *out = dt__score_round(scorer->root ? sqrt(loss) : loss);
    return DT_OK;
}

dt_status dt__scorer_baseline(const struct dt__search *search, const struct dt__scorer *scorer,
                              double *out)
{
    const size_t nout = (size_t)scorer->model->desc.nout, folds = (size_t)search->folds;
    struct dt_batch targets = {0};
    float *constant = NULL, **mean = NULL;
    dt_status status;
    DT_GUARD(dt__alloc(nout, sizeof *constant, "baseline", &constant));
    DT_GUARD(dt__alloc(folds, sizeof *mean, "baseline", &mean));
    for (int f = 0; f < search->folds; f++) {
        const size_t rows = fold_rows(search, f);
        DT_GUARD(dt__source_targets(search->fold[f].rows, &targets));
        status = dt__model_constant(scorer->model, &targets, constant);
        dt__source_targets_free(&targets);
        if (status) goto done;
        dt__model_to_mean(scorer->model, constant, 1, constant);
        DT_GUARD(dt__alloc(rows, nout * sizeof **mean, "baseline", &mean[f]));
        for (size_t r = 0; r < rows; r++)
            memcpy(mean[f] + r * nout, constant, nout * sizeof *constant);
    }
    status = dt__scorer_score(search, scorer, mean, out);
done:
    for (size_t f = 0; mean && f < folds; f++)
        dt_free(mean[f]);
    dt_free(mean);
    dt_free(constant);
    return status;
}

/* Copies a source of rows, without the quantiles if a model with this schema encodes nothing. */
static dt_status rows_of_model(const struct dt_source *rows, const struct dt_schema *schema,
                               struct dt_source **out)
{
    DT_TRY(dt__source_copy(rows, out));
    if (!schema->encoded) dt__source_forget_quantiles(*out);
    return DT_OK;
}

dt_status dt__model_score(const struct dt__search *search, const struct dt__scorer *scorer,
                          const char *path, const struct dt_source *rows, double *out)
{
    const uint64_t count = dt__source_rows(rows);
    struct dt_predictor *predictor = NULL;
    struct dt_source *copy = NULL;
    struct dt_measure *measure = NULL;
    double sum = 0;
    dt_status status;
    DT_GUARD(dt__predictor_load(path, &predictor));
    DT_GUARD(rows_of_model(rows, &predictor->file.schema, &copy));
    const uint64_t chunks = (count + DT_EVAL_CHUNK - 1) / DT_EVAL_CHUNK;
    DT_GUARD(dt__measure_create(search->config, copy, predictor->model, 0, chunks, &measure));
    for (uint64_t c = 0; c < chunks; c++) {
        const float *logits;
        struct dt_batch batch;
        DT_GUARD(dt__measure_outputs(measure, predictor->file.params, c, &batch, &logits));
        batch.weight = NULL;
        sum += dt__model_loss(predictor->model, &batch, logits);
    }
    *out = dt__score_round(scorer->root ? sqrt(sum / (double)count) : sum / (double)count);
done:
    dt__measure_destroy(measure);
    dt__source_destroy(copy);
    dt_predictor_close(predictor);
    return status;
}

/* ---- stored outputs -------------------------------------------------------------------------- */

struct dt__path dt__outputs_path(const struct dt__search *search, int trial, int fold)
{
    return dt__path("%s/held-out.f32", dt__trial_dir(search, trial, fold).text);
}

dt_status dt__outputs_read(const struct dt__search *search, const struct dt__scorer *scorer,
                           int trial, int fold, float **out)
{
    const struct dt__path path = dt__outputs_path(search, trial, fold);
    const size_t bytes = fold_rows(search, fold) * (size_t)scorer->model->desc.nout * sizeof(float);
    float *outputs;
    size_t length;
    DT_TRY(dt__file_read(path.text, bytes, &outputs, &length));
    if (length == bytes) {
        *out = outputs;
        return DT_OK;
    }
    dt_free(outputs);
    return dt_fail(DT_EFORMAT,
                   "%s: %zu bytes, expected %zu; without this file the trial trains again",
                   path.text, length, bytes);
}

/* ---- the choice ----------------------------------------------------------------------------- */

/* Running mean of the members' outputs. `next` has space for the mean with one more trial. */
struct choice {
    const struct dt__search *search;
    const struct dt__scorer *scorer;
    float **mean, **next; /* (folds) */
    int members;
};

/* Writes the mean with one more trial to `to`, computed as in mean.c. */
static dt_status mean_with(const struct choice *choice, int trial, float **to)
{
    const float weight = 1.0f / (float)(choice->members + 1);
    for (int f = 0; f < choice->search->folds; f++) {
        const size_t count =
            fold_rows(choice->search, f) * (size_t)choice->scorer->model->desc.nout;
        float *outputs;
        DT_TRY(dt__outputs_read(choice->search, choice->scorer, trial, f, &outputs));
        for (size_t i = 0; i < count; i++) {
            const float before = choice->members ? choice->mean[f][i] : 0;
            to[f][i] = before + (outputs[i] - before) * weight;
        }
        dt_free(outputs);
    }
    return DT_OK;
}

bool dt__members_have(const struct dt__members *members, int trial)
{
    for (int i = 0; i < members->count; i++)
        if (members->trial[i] == trial) return true;
    return false;
}

/* Finds the trial to add: the one with which the mean's score is lowest; for the first member, and
 * with folds, the one that has the lowest score alone. *out_trial is -1 if there is none. */
static dt_status choose_next(const struct choice *choice, const struct dt__verdict *verdict,
                             const struct dt__members *members, int *out_trial, double *out_score)
{
    const int trials = (int)choice->search->config->search.trials;
    const bool joined = choice->members && !choice->search->config->search.folds;
    *out_trial = -1;
    *out_score = INFINITY;
    for (int t = 0; t < trials; t++) {
        double score = verdict[t].score;
        dt__work_progress();
        if (!verdict[t].known || !isfinite(score) || dt__members_have(members, t)) continue;
        if (joined) {
            DT_TRY(mean_with(choice, t, choice->next));
            DT_TRY(dt__scorer_score(choice->search, choice->scorer, choice->next, &score));
        }
        if (score >= *out_score) continue;
        *out_score = score;
        *out_trial = t;
    }
    return DT_OK;
}

static dt_status choice_alloc(struct choice *choice)
{
    const size_t folds = (size_t)choice->search->folds,
                 nout = (size_t)choice->scorer->model->desc.nout;
    DT_TRY(dt__alloc(folds, sizeof *choice->mean, "outputs", &choice->mean));
    DT_TRY(dt__alloc(folds, sizeof *choice->next, "outputs", &choice->next));
    for (int f = 0; f < choice->search->folds; f++) {
        const size_t rows = fold_rows(choice->search, f);
        DT_TRY(dt__alloc(rows, nout * sizeof(float), "outputs", &choice->mean[f]));
        DT_TRY(dt__alloc(rows, nout * sizeof(float), "outputs", &choice->next[f]));
    }
    return DT_OK;
}

static void choice_free(struct choice *choice)
{
    for (int f = 0; f < choice->search->folds; f++) {
        if (choice->mean) dt_free(choice->mean[f]);
        if (choice->next) dt_free(choice->next[f]);
    }
    dt_free(choice->mean);
    dt_free(choice->next);
}

dt_status dt__members_choose(const struct dt__search *search, const struct dt__scorer *scorer,
                             const struct dt__verdict *verdict, struct dt__members *out)
{
    const double NEAR = 0.1; /* with folds: largest distance from the best score, relative to it */
    const int most = (int)search->config->search.ensemble;
    struct choice choice = {.search = search, .scorer = scorer};
    double best = 0;
    dt_status status;
    *out = (struct dt__members){.score = INFINITY};
    DT_GUARD(dt__alloc((size_t)most, sizeof *out->trial, "members", &out->trial));
    DT_GUARD(choice_alloc(&choice));
    while (out->count < most) {
        double score;
        int trial;
        DT_GUARD(choose_next(&choice, verdict, out, &trial, &score));
        if (!choice.members) best = score;
        const bool better =
            search->config->search.folds ? score - best <= NEAR * fabs(best) : score < out->score;
        if (trial < 0 || (choice.members && !better)) break;
        out->trial[out->count++] = trial;
        DT_GUARD(mean_with(&choice, trial, choice.mean));
        choice.members++;
        DT_GUARD(dt__scorer_score(search, scorer, choice.mean, &out->score));
    }
done:
    choice_free(&choice);
    if (status) dt_free(out->trial);
    return status;
}

/* ---- the model ------------------------------------------------------------------------------ */

/* The models to join, as loaded from their files. */
struct join {
    struct dt_checkpoint *part;
    size_t count;
};

static dt_status join_load(const struct dt__search *search, const struct dt__members *members,
                           struct join *out)
{
    const size_t folds = (size_t)search->folds;
    DT_TRY(dt__alloc((size_t)members->count * folds, sizeof *out->part, "members", &out->part));
    for (int m = 0; m < members->count; m++)
        for (int f = 0; f < search->folds; f++) {
            const struct dt__path dir = dt__trial_dir(search, members->trial[m], f);
            char *path;
            DT_TRY(dt__export_load(dir.text, true, &out->part[out->count], &path));
            dt_free(path);
            out->count++;
        }
    return DT_OK;
}

/* Joins the members' layers (as text), tables of encodings and parameters, in their order. */
static dt_status join_desc(const struct join *join, struct dt_model_desc *out)
{
    struct dt_text text = {0};
    size_t at = 0;
    out->encode_count = 0;
    for (size_t i = 0; i < join->count; i++) {
        dt__mean_text(&join->part[i].desc, i == 0, &text);
        out->encode_count += join->part[i].desc.encode_count;
    }
    dt__text_add(&text, ")");
    DT_TRY(dt__text_end(&text, &out->layers));
    if (!out->encode_count) return DT_OK;
    DT_TRY(dt__alloc((size_t)out->encode_count, sizeof(float), "members", &out->encode_table));
    for (size_t i = 0; i < join->count; i++) {
        const struct dt_model_desc *part = &join->part[i].desc;
        const size_t count = (size_t)part->encode_count;
        if (count) memcpy(out->encode_table + at, part->encode_table, count * sizeof(float));
        at += count;
    }
    return DT_OK;
}

static dt_status join_params(const struct join *join, struct dt_checkpoint *out)
{
    uint64_t at = 0;
    out->params_count = 0;
    for (size_t i = 0; i < join->count; i++)
        out->params_count += join->part[i].params_count;
    DT_TRY(dt__alloc((size_t)out->params_count, sizeof(float), "members", &out->params));
    for (size_t i = 0; i < join->count; i++) {
        memcpy(out->params + at, join->part[i].params,
               (size_t)join->part[i].params_count * sizeof *out->params);
        at += join->part[i].params_count;
    }
    return DT_OK;
}

/* Joins several models into `out`, which still borrows what they share from the first one. The
 * schema is that of a member that encodes numbers, if there is one. */
static dt_status join_make(const struct join *join, struct dt_checkpoint *out)
{
    for (size_t i = 0; i < join->count && !out->schema.encoded; i++)
        out->schema = join->part[i].schema;
    struct dt_model_desc *desc = &out->desc;
    desc->encode = out->schema.encoded ? DT_ENCODE_NORMAL : DT_ENCODE_NONE;
    desc->encode_columns = out->schema.encoded;
    desc->encode_width = 0;
    desc->dense = desc->categories || desc->encode ? out->schema.dense : 0;
    DT_TRY(join_desc(join, desc));
    return join_params(join, out);
}

/* ---- calibration of the model ---------------------------------------------------------------- */

/* Computes the mean of the members' outputs for all held-out rows of all folds. */
static dt_status judged_make(const struct dt__search *search, const struct dt__scorer *scorer,
                             const struct dt__members *members, struct dt_judged *out)
{
    struct choice choice = {.search = search, .scorer = scorer};
    const size_t nout = (size_t)scorer->model->desc.nout;
    float *logits = NULL;
    size_t row = 0;
    dt_status status;
    DT_GUARD(dt__judged_alloc(scorer->model, (size_t)scorer->rows, false, out));
    DT_GUARD(dt__alloc(DT_EVAL_CHUNK, nout * sizeof *logits, "outputs", &logits));
    DT_GUARD(choice_alloc(&choice));
    for (; choice.members < members->count; choice.members++)
        DT_GUARD(mean_with(&choice, members->trial[choice.members], choice.mean));
    for (int f = 0; f < search->folds; f++)
        for (size_t at = 0, rows = fold_rows(search, f); at < rows; at += DT_EVAL_CHUNK) {
            const struct dt_batch batch = truth_part(search, scorer, f, at);
            dt__model_from_mean(scorer->model, choice.mean[f] + at * nout, batch.rows, logits);
            dt__judged_set(scorer->model, out, row, &batch, logits);
            row += (size_t)batch.rows;
        }
done:
    choice_free(&choice);
    dt_free(logits);
    return status;
}

/* Computes the joined model's outputs for the test rows. */
static dt_status judged_test(const struct dt__search *search, const struct dt_checkpoint *file,
                             const struct dt_source *rows, struct dt_judged *out)
{
    struct dt_model *model = NULL;
    struct dt_source *copy = NULL;
    dt_status status;
    DT_GUARD(dt__model_create(&file->desc, &model));
    DT_GUARD(rows_of_model(rows, &file->schema, &copy));
    status = dt__judged_read(search->config, search->world, copy, model, file->params, out);
done:
    dt__source_destroy(copy);
    dt__model_destroy(model);
    return status;
}

/* Fits temperature and threshold to the held-out rows of all folds. The residuals are those of the
 * test rows; if there are none, those of the held-out rows. */
static dt_status members_certify(const struct dt__search *search, const struct dt__scorer *scorer,
                                 const struct dt__members *members,
                                 const struct dt_checkpoint *file, struct dt_certainty *out)
{
    const struct dt_config *config = search->config;
    struct dt_source *test = NULL;
    struct dt_judged rows = {0}, fresh = {0};
    dt_status status;
    DT_GUARD(dt__certainty_begin(config, &file->schema, out));
    if (!out->known) goto done;
    DT_GUARD(judged_make(search, scorer, members, &rows));
    if (dt__config_fits(config)) {
        DT_GUARD(dt__certainty_fit(config, scorer->model, &rows, out));
        out->rows_crc = dt__source_crc(search->fold[0].held_out);
    }
    if (out->coverage > 0) DT_GUARD(dt__source_side(search->fold[0].rows, DT__TEST, &test));
    if (test) DT_GUARD(judged_test(search, file, test, &fresh));
    if (out->coverage > 0) DT_GUARD(dt__certainty_keep(scorer->model, test ? &fresh : &rows, out));
    dt__certainty_print(config, &file->schema, out,
                        test ? "residuals of the test rows, so that none are left for the score"
                             : "residuals of rows that folds held out");
done:
    dt__source_destroy(test);
    dt__judged_free(&fresh);
    dt__judged_free(&rows);
    return status;
}

/* Writes the model: the only member, or the mean of several. */
static dt_status join_write(const struct dt__search *search, const struct dt__scorer *scorer,
                            const struct dt__members *members, const struct join *join)
{
    const struct dt__path base = dt__path("%s/export/best", search->config->run.dir);
    const bool several = join->count > 1;
    struct dt_checkpoint model = join->part[0]; /* borrows its memory */
    char *config = NULL;
    dt_status status = dt_config_print(search->config, &config);
    model.config = config;
    model.step = (uint64_t)search->config->search.trials;
    model.best = (struct dt_best){
        .known = true, .value = members->score, .loss = members->score, .step = model.step};
    (void)snprintf(model.best.metric, sizeof model.best.metric, "%s",
                   scorer->root ? "rmse" : "loss");
    if (several) model.desc.layers = NULL, model.desc.encode_table = model.params = NULL;
    if (!status && several) status = join_make(join, &model);
    if (!status) status = members_certify(search, scorer, members, &model, &model.certainty);
    if (!status) status = dt__export_write(base.text, &model, 1);
    dt_free(model.certainty.residual);
    if (several) {
        dt_free(model.desc.layers);
        dt_free(model.desc.encode_table);
        dt_free(model.params);
    }
    dt_free(config);
    return status;
}

dt_status dt__members_export(const struct dt__search *search, const struct dt__scorer *scorer,
                             const struct dt__members *members)
{
    struct join join = {0};
    dt_status status = join_load(search, members, &join);
    if (!status) status = join_write(search, scorer, members, &join);
    for (size_t i = 0; i < join.count; i++)
        dt__checkpoint_free(&join.part[i]);
    dt_free(join.part);
    return status;
}
