/* `dtrain importance`: measures how much worse a model becomes if the rows of a column are
 * permuted. The ranks share the columns. A permutation is a function of run.seed, column and
 * repeat, so the digits do not depend on the number of ranks.
 *
 * Features made from the same text or date are permuted together, and so are columns of numbers
 * that correlate. Permuted alone, each of them would seem useless, because another one still has
 * the same information.
 *
 * The deviation is the standard error of the mean, by a jackknife over folds of the rows. It
 * includes the chance that lies in which rows are held out. A standard error over the repeats would
 * not include it, and would be too small even for a column without information: all repeats are
 * compared with the order of the rows in the file, which is then just one more random order.
 *
 * Sources: Breiman, "Random forests", Machine Learning 2001, section 10; Efron and Stein, "The
 * jackknife estimate of variance", Annals of Statistics 1981. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "comm/comm.h"
#include "model/certainty.h"
#include "report/page.h"
#include "report/report.h"
#include "state/directory.h"
#include "table/schema.h"
#include "train/train.h"

enum { MOST_COLUMNS = 4096, FOLDS = 64, MOST_SLICE = 32 };
static const double CORRELATES = 0.9;

struct column {
    const char *name; /* NULL: the column is printed as its number */
    int first, count; /* its features: first, first + 1, ... */
    int flag;         /* the feature that is 1 where its value is missing; 0: no such feature */
    int group;        /* number of its group: that of the group's first column */
};

/* The model, and the held-out rows in memory. A row is what the network reads: all features, then
 * the z of each encoded feature. */
struct importance {
    struct cli_model *model;
    struct dt_judged rows; /* `logits` is unused */
    float *x;              /* (rows, width) */
    size_t width;
    struct column *column; /* (columns) */
    int columns;
    struct dt_metrics *metrics;
    size_t slice;         /* rows per slice, a power of 2 */
    size_t slices;        /* number of slices; fold f has slices f, f + FOLDS, ... */
    double *sums;         /* (slices, dt__metrics_sums) written by rows_measure */
    float *part, *logits; /* (DT_EVAL_CHUNK, width), (DT_EVAL_CHUNK, nout) */
};

/* ---- columns -------------------------------------------------------------------------------- */

static dt_status columns_make(struct importance *job, const struct dt_schema *schema)
{
    const bool typed = schema->columns && schema->ncolumns;
    job->columns = typed ? schema->ncolumns : schema->features;
    if (schema->features > MOST_COLUMNS)
        return dt_fail(DT_EUSAGE, "importance: the model has %d features; expected at most %d",
                       schema->features, MOST_COLUMNS);
    DT_TRY(dt__alloc((size_t)job->columns, sizeof *job->column, "columns", &job->column));
    for (int c = 0; c < job->columns; c++) {
        struct column *column = &job->column[c];
        *column = (struct column){.first = c, .count = 1, .group = c};
        if (!typed) {
            column->name = schema->feature_names ? schema->feature_names[c] : NULL;
            continue;
        }
        const struct dt_column *from = &schema->columns[c];
        int end = schema->features; /* the feature after its last one */
        for (int o = 0; o < job->columns; o++) {
            if (schema->columns[o].first > from->first && schema->columns[o].first < end)
                end = schema->columns[o].first;
            if (schema->columns[o].flag > from->first && schema->columns[o].flag < end)
                end = schema->columns[o].flag;
        }
        column->name = from->name;
        column->first = from->first;
        column->count = from->kind == DT_COLUMN_NUMBER ? 1 : end - from->first;
        column->flag = from->flag;
    }
    return DT_OK;
}

static double correlation(const struct importance *job, int a, int b)
{
    double sums[5] = {0};
    const size_t n = (size_t)job->rows.truth.rows;
    const float first_a = job->x[a], first_b = job->x[b]; /* subtracted to keep the sums small */
    for (size_t r = 0; r < n; r++) {
        const double u = (double)job->x[r * job->width + (size_t)a] - (double)first_a;
        const double v = (double)job->x[r * job->width + (size_t)b] - (double)first_b;
        sums[0] += u, sums[1] += v, sums[2] += u * u, sums[3] += v * v, sums[4] += u * v;
    }
    const double rows = (double)n, spread = (sums[2] - sums[0] * sums[0] / rows) *
                                            (sums[3] - sums[1] * sums[1] / rows);
    return spread > 0 ? (sums[4] - sums[0] * sums[1] / rows) / sqrt(spread) : 0;
}

/* Puts columns of numbers that correlate, directly or through other columns, into one group. */
static void columns_group(struct importance *job)
{
    for (int a = 0; a < job->columns; a++)
        for (int b = a + 1; b < job->columns; b++) {
            const struct column *left = &job->column[a], *right = &job->column[b];
            const int to = left->group < right->group ? left->group : right->group;
            const int from = left->group + right->group - to;
            if (to == from || left->count > 1 || right->count > 1 ||
                fabs(correlation(job, left->first, right->first)) < CORRELATES)
                continue;
            for (int c = 0; c < job->columns; c++)
                if (job->column[c].group == from) job->column[c].group = to;
        }
}

/* ---- rows ----------------------------------------------------------------------------------- */

static dt_status rows_read(struct importance *job, const struct dt_source *source)
{
    const struct dt_predictor *p = job->model->predictor;
    const struct dt_schema *schema = &p->file.schema;
    const size_t dense = (size_t)schema->dense, features = (size_t)schema->features;
    const uint64_t rows = dt__measure_rows(&job->model->config, source);
    const size_t nout = (size_t)p->model->desc.nout;
    struct dt_table *table = NULL;
    struct dt_batch batch;
    dt_status status;
    job->width = features + (size_t)schema->encoded;
    DT_GUARD(dt__table_create(&job->model->config, source, 0, rows, &table));
    DT_GUARD(
        dt__judged_alloc(p->model, (size_t)rows, job->model->config.eval.weighted, &job->rows));
    DT_GUARD(dt__alloc((size_t)rows, job->width * sizeof(float), "rows", &job->x));
    DT_GUARD(dt__alloc(DT_EVAL_CHUNK, job->width * sizeof(float), "rows", &job->part));
    DT_GUARD(dt__alloc(DT_EVAL_CHUNK, nout * sizeof(float), "logits", &job->logits));
    for (uint64_t at = 0; at < rows; at += DT_EVAL_CHUNK) {
        const int count = rows - at < DT_EVAL_CHUNK ? (int)(rows - at) : DT_EVAL_CHUNK;
        DT_GUARD(dt__table_read(table, at, count, &batch));
        dt__judged_set(p->model, &job->rows, (size_t)at, &batch, job->logits);
        for (int r = 0; r < count; r++) {
            const float *from = batch.x + (size_t)r * (size_t)batch.ndense;
            float *to = job->x + ((size_t)at + (size_t)r) * job->width;
            memcpy(to, from, dense * sizeof *to);
            memcpy(to + features, from + dense, (size_t)schema->encoded * sizeof *to);
            for (uint64_t e = batch.offsets ? batch.offsets[r] : 0;
                 batch.offsets && e < batch.offsets[r + 1]; e++)
                to[batch.index[e]] = batch.value ? batch.value[e] : 1;
        }
    }
done:
    dt__table_destroy(table);
    return status;
}

/* ---- scores --------------------------------------------------------------------------------- */

static void feature_move(const struct importance *job, int feature, size_t from, float *to)
{
    const struct dt_schema *schema = &job->model->predictor->file.schema;
    to[feature] = job->x[from * job->width + (size_t)feature];
    for (int e = 0; e < schema->encoded; e++) {
        const size_t z = (size_t)schema->features + (size_t)e;
        if (schema->encoded_feature[e] == feature) to[z] = job->x[from * job->width + z];
    }
}

/* Overwrites a group's columns in the row `to` with their values in row `from`. */
static void group_move(const struct importance *job, int group, size_t from, float *to)
{
    for (int c = group; c < job->columns; c++) {
        const struct column *column = &job->column[c];
        if (column->group != group) continue;
        for (int f = column->first; f < column->first + column->count; f++)
            feature_move(job, f, from, to);
        if (column->flag) feature_move(job, column->flag, from, to);
    }
}

/* Returns `rows` labels, targets and weights, beginning at row `at`. */
static struct dt_batch truth_part(const struct importance *job, size_t at, size_t rows)
{
    const struct dt_predictor *p = job->model->predictor;
    struct dt_batch batch = job->rows.truth;
    batch.rows = (int)rows;
    if (batch.label) batch.label += at;
    if (batch.target) batch.target += at * p->targets;
    if (batch.weight) batch.weight += at;
    return batch;
}

/* Computes the sums of all slices. In row r the columns of a group have their values of row
 * perm(r); NULL: no column is permuted. */
static dt_status rows_measure(struct importance *job, int group, const struct dt_perm *perm)
{
    struct dt_predictor *p = job->model->predictor;
    const size_t all = (size_t)job->rows.truth.rows, nout = (size_t)p->model->desc.nout;
    double *sums = job->sums;
    for (size_t at = 0; at < all; at += DT_EVAL_CHUNK) {
        const size_t rows = all - at < DT_EVAL_CHUNK ? all - at : DT_EVAL_CHUNK;
        struct dt_batch batch = truth_part(job, at, rows);
        batch.x = job->part;
        batch.ndense = (int)job->width;
        memcpy(job->part, job->x + at * job->width, rows * job->width * sizeof *job->part);
        for (size_t r = 0; perm && r < rows; r++)
            group_move(job, group, (size_t)dt__perm_at(perm, at + r), job->part + r * job->width);
        DT_TRY(dt__predictor_logits(p, &batch, job->logits));
        for (size_t r = 0; r < rows; r += job->slice, sums += dt__metrics_sums(p->model)) {
            batch = truth_part(job, at + r, rows - r < job->slice ? rows - r : job->slice);
            dt__metrics_chunk(p->model, job->logits + r * nout, &batch, sums, NULL);
        }
    }
    return DT_OK;
}

static size_t folds_of(const struct importance *job)
{
    return job->slices < FOLDS ? job->slices : FOLDS;
}

/* Computes the metric without each fold, out[fold], and over all rows, out[FOLDS]. */
static dt_status folds_score(struct importance *job, double out[FOLDS + 1])
{
    const struct dt_model *model = job->model->predictor->model;
    struct dt_metric_values values;
    struct dt_metric_score score;
    for (size_t f = 0; f <= FOLDS; f = f + 1 == folds_of(job) ? FOLDS : f + 1) {
        dt__metrics_reset(job->metrics);
        for (size_t s = 0; s < job->slices; s++)
            if (s % FOLDS != f)
                DT_TRY(dt__metrics_add(job->metrics, job->sums + s * dt__metrics_sums(model)));
        dt__metrics_values(job->metrics, &values);
        DT_TRY(dt__metric_pick(model, job->model->config.eval.metric, &values, &score));
        out[f] = score.value;
    }
    return DT_OK;
}

/* Importance of a group of columns: the mean of the repeats, and its standard error. */
struct worth {
    double mean, deviation;
};

/* Computes the importance of a group. sums: by how much the metric changes when the group is
 * permuted, summed over the repeats; indexed as the output of folds_score. */
static struct worth worth_of(const struct importance *job, const double sums[FOLDS + 1])
{
    const double repeats = (double)job->model->config.importance.repeats;
    const double folds = (double)folds_of(job);
    double mean = 0, squares = 0;
    for (size_t f = 0; f < folds_of(job); f++)
        mean += sums[f] / folds;
    for (size_t f = 0; f < folds_of(job); f++)
        squares += (sums[f] - mean) * (sums[f] - mean);
    return (struct worth){sums[FOLDS] / repeats, sqrt(squares * (folds - 1) / folds) / repeats};
}

/* ---- output --------------------------------------------------------------------------------- */

struct line {
    int group;
    struct worth worth;
};

static int by_falling_mean(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    if (left->worth.mean != right->worth.mean) return left->worth.mean < right->worth.mean ? 1 : -1;
    return left->group - right->group;
}

static dt_status line_add(const struct importance *job, const struct line *line,
                          struct dt_text *text)
{
    struct dt_json json = {0};
    const char **names;
    char(*numbers)[16];
    size_t count = 0;
    DT_TRY(dt__alloc((size_t)job->columns, sizeof *names, "names", &names));
    dt_status status = dt__alloc((size_t)job->columns, sizeof *numbers, "names", &numbers);
    for (int c = line->group; c < job->columns && !status; c++) {
        if (job->column[c].group != line->group) continue;
        (void)snprintf(numbers[count], sizeof *numbers, "%d", c);
        names[count] = job->column[c].name ? job->column[c].name : numbers[count];
        count++;
    }
    dt__json_start(&json);
    if (!status) dt__json_texts(&json, "columns", (char *const *)(uintptr_t)names, count);
    dt__json_real(&json, "importance", line->worth.mean);
    dt__json_real(&json, "deviation", line->worth.deviation);
    if (count > 1) dt__json_text(&json, "together", "they correlate");
    if (!status) status = dt__json_end(&json);
    if (!status) status = dt__text_add(text, "%s\n", json.text.data);
    dt__json_free(&json);
    dt_free(numbers);
    dt_free(names);
    return status;
}

/* Writes a file for `dtrain report` to the directory of the run or search: a line that says what
 * was measured, then `lines`. Does nothing if dir is neither a run nor a search. */
static dt_status lines_keep(const struct importance *job, const char *dir, const char *lines,
                            const struct dt_metric_score *base)
{
    const struct dt__path run = dt__path("%s/metrics.jsonl", dir);
    const struct dt__path path = dt__path("%s/" DT__IMPORTANCE_FILE, dir);
    struct dt_json json = {0};
    if (!dt__path_exists(run.text) && !cli_is_search(dir)) return DT_OK;
    dt__json_start(&json);
    dt__json_text(&json, "metric", base->name);
    dt__json_real(&json, "value", base->value);
    dt__json_int(&json, "rows", job->rows.truth.rows);
    dt__json_int(&json, "repeats", job->model->config.importance.repeats);
    dt__json_int(&json, "step", (int64_t)job->model->predictor->file.step);
    dt_status status = dt__json_end(&json);
    if (!status) status = dt__text_add(&json.text, "\n%s", lines);
    if (!status) status = dt__file_write(path.text, json.text.data, json.text.length, NULL, NULL);
    dt__json_free(&json);
    if (status == DT_EIO)
        dt__warn("%s; dtrain report will not show these results", dt_error_text());
    return status == DT_EIO ? DT_OK : status;
}

/* Prints the results of all ranks. all: (size, columns); each rank has filled only the columns that
 * it measured. dir: the model's path. */
static dt_status result_print(const struct importance *job, const struct worth *all, size_t size,
                              const struct dt_metric_score *base, const char *dir)
{
    const size_t columns = (size_t)job->columns;
    struct dt_text text = {0};
    struct line *line;
    size_t lines = 0;
    DT_TRY(dt__alloc(columns, sizeof *line, "columns", &line));
    for (size_t c = 0; c < columns; c++)
        if (job->column[c].group == (int)c)
            line[lines++] = (struct line){(int)c, all[c % size * columns + c]};
    qsort(line, lines, sizeof *line, by_falling_mean);
    dt__info("importance: %s is %.6g on %d held-out rows; each line says how much worse it is if "
             "these columns are permuted (mean of importance.repeats=%d, and its standard error)",
             base->name, base->value, job->rows.truth.rows,
             (int)job->model->config.importance.repeats);
    dt_status status = DT_OK;
    for (size_t i = 0; i < lines && !status; i++)
        status = line_add(job, &line[i], &text);
    if (!status) fputs(text.data, stdout);
    if (!status) status = lines_keep(job, dir, text.data, base);
    dt__text_free(&text);
    dt_free(line);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Chooses the rows per slice: so few that all folds have about the same number of rows. */
static dt_status slices_make(struct importance *job)
{
    const size_t rows = (size_t)job->rows.truth.rows;
    if (rows < 2) return dt_fail(DT_EUSAGE, "importance: 1 held-out row; expected at least 2");
    const size_t sums = dt__metrics_sums(job->model->predictor->model);
    for (job->slice = 1; job->slice < MOST_SLICE && job->slice * 8 * FOLDS <= rows;)
        job->slice *= 2;
    job->slices = (rows + job->slice - 1) / job->slice;
    return dt__alloc(job->slices, sums * sizeof *job->sums, "sums", &job->sums);
}

static dt_status importance_open(struct importance *job, int argc, char **argv)
{
    struct dt_source *source = NULL;
    dt_status status;
    DT_TRY(cli_model_open(job->model, argc, argv));
    struct dt_config *config = &job->model->config;
    const struct dt_model *model = job->model->predictor->model;
    if (config->importance.metric != DT_METRIC_AUTO)
        config->eval.metric = config->importance.metric;
    DT_GUARD(dt__metric_pick(model, config->eval.metric, NULL, &(struct dt_metric_score){0}));
    DT_GUARD(columns_make(job, &job->model->predictor->file.schema));
    DT_GUARD(cli_model_survey(job->model, DT_PART_EVAL, &source));
    DT_GUARD(rows_read(job, source));
    DT_GUARD(dt__metrics_create(model, config, &job->metrics));
    dt__metrics_limit(job->metrics);
    DT_GUARD(slices_make(job));
    if (config->importance.group) columns_group(job);
done:
    dt__source_destroy(source);
    return status;
}

static dt_status group_measure(struct importance *job, struct dt_world *world, int group,
                               const double base[FOLDS + 1], double sums[FOLDS + 1])
{
    const struct dt_config *config = &job->model->config;
    const uint64_t seed = (uint64_t)config->run.seed;
    double now[FOLDS + 1];
    for (uint64_t r = 0; r < (uint64_t)config->importance.repeats; r++) {
        struct dt_perm perm;
        dt__world_heartbeat(world, "evaluation", r);
        dt__perm_init(&perm, (uint64_t)job->rows.truth.rows,
                      dt__rng_make(seed, DT_STREAM_IMPORTANCE, (uint64_t)group, r));
        DT_TRY(rows_measure(job, group, &perm));
        DT_TRY(folds_score(job, now));
        for (size_t f = 0; f <= FOLDS; f++)
            sums[f] += now[f] - base[f];
        DT_TRY(dt__stop_check());
    }
    return DT_OK;
}

/* Computes the importance of this rank's columns. */
static dt_status columns_measure(struct importance *job, struct dt_world *world,
                                 struct dt_metric_score *score, struct worth *out)
{
    double base[FOLDS + 1] = {0};
    DT_TRY(rows_measure(job, 0, NULL));
    DT_TRY(folds_score(job, base));
    DT_TRY(
        dt__metric_pick(job->model->predictor->model, job->model->config.eval.metric, NULL, score));
    score->value = base[FOLDS];
    if (isnan(score->value))
        return dt_fail(DT_EMISMATCH,
                       "importance: %s is not defined on these %d rows: expected other rows, or "
                       "another importance.metric",
                       score->name, job->rows.truth.rows);
    for (int c = world->rank; c < job->columns; c += world->size) {
        double sums[FOLDS + 1] = {0};
        if (job->column[c].group != c) continue;
        DT_TRY(group_measure(job, world, c, base, sums));
        out[c] = worth_of(job, sums);
        if (score->more_is_better)
            out[c].mean = 0 - out[c].mean; /* not -x: a 0 would be printed as -0 */
    }
    return DT_OK;
}

static dt_status importance_run(struct dt_world *world, cli_world_fn *body, int argc, char **argv)
{
    struct cli_model model = {0};
    struct importance job = {.model = &model};
    struct dt_metric_score base;
    struct worth *mine = NULL, *all = NULL;
    (void)body;
    if (!world->is_bank)
        dt_log_set_level(DT_LOG_ERROR); /* else every rank would print the same messages */
    dt_status status = importance_open(&job, argc, argv);
    DT_GUARD(dt__ranks_agree(world->all, status));
    dt__world_watch(world, model.config.run.stall_secs);
    const size_t columns = (size_t)job.columns, size = (size_t)world->size;
    status = dt__alloc(columns, sizeof *mine, "scores", &mine);
    if (!status && world->is_bank) status = dt__alloc(size, columns * sizeof *all, "scores", &all);
    DT_GUARD(dt__ranks_agree(world->all, status));
    status = columns_measure(&job, world, &base, mine);
    DT_GUARD(dt__ranks_agree(world->all, status));
    dt__ranks_gather(world->all, mine, columns * sizeof *mine, all);
    if (world->is_bank) status = result_print(&job, all, size, &base, argv[1]);
    status = dt__ranks_agree(world->all, status);
done:
    if (status == DT_STOPPED && world->is_bank)
        dt__info("importance: stopped on request, before all columns were measured");
    dt__metrics_destroy(job.metrics);
    dt__judged_free(&job.rows);
    dt_free(job.x);
    dt_free(job.part);
    dt_free(job.logits);
    dt_free(job.sums);
    dt_free(job.column);
    dt_free(mine);
    dt_free(all);
    if (model.predictor) cli_model_close(&model);
    return status;
}

dt_status cmd_importance(int argc, char **argv)
{
    return cli_run(importance_run, NULL, argc, argv);
}
