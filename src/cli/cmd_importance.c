/* `dtrain importance`: how much worse a model is if the rows of a column are permuted. The ranks
 * share the columns. An order of the rows is a function of run.seed, column and repeat, so any
 * number of ranks gives the same digits.
 *
 * Columns that one text or date became are permuted together, and so are columns of numbers that
 * correlate: alone, each would seem useless where the other says the same.
 *
 * The deviation is the standard error of the mean, by a jackknife over folds of the rows. It
 * contains the chance of the held-out rows. The deviation of the repeats does not, and is too small
 * even for a column that tells nothing: there the order in the file is one more random order, whose
 * chance all repeats share.
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
    const char *name; /* NULL: its number */
    int first, count; /* features */
    int flag;         /* another feature of it; 0: none */
    int group;        /* its first column's number */
};

/* Held-out rows in memory, as the network takes them: features, and z of encoded ones. */
struct importance {
    struct cli_model *model;
    struct dt_judged rows; /* logits are unused */
    float *x;              /* (rows, width) */
    size_t width;
    struct column *column; /* (columns) */
    int columns;
    struct dt_metrics *metrics;
    size_t slice;         /* rows of a slice of the rows, a power of 2 */
    size_t slices;        /* fold f has the slices f, f + FOLDS, ... */
    double *sums;         /* (slices, dt__metrics_sums) of the rows as they were last measured */
    float *part, *logits; /* (DT_EVAL_CHUNK, width), (DT_EVAL_CHUNK, nout) */
};

/* ---- columns -------------------------------------------------------------------------------- */

static dt_status columns_make(struct importance *of, const struct dt_schema *schema)
{
    const bool typed = schema->columns && schema->ncolumns;
    of->columns = typed ? schema->ncolumns : schema->features;
    if (schema->features > MOST_COLUMNS)
        return dt_fail(DT_EUSAGE, "importance: the model has %d features; expected at most %d",
                       schema->features, MOST_COLUMNS);
    DT_TRY(dt__alloc((size_t)of->columns, sizeof *of->column, "columns", &of->column));
    for (int c = 0; c < of->columns; c++) {
        struct column *column = &of->column[c];
        *column = (struct column){.first = c, .count = 1, .group = c};
        if (!typed) {
            column->name = schema->feature_names ? schema->feature_names[c] : NULL;
            continue;
        }
        const struct dt_column *from = &schema->columns[c];
        int end = schema->features; /* of its features: the next column's, or a flag */
        for (int o = 0; o < of->columns; o++) {
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

static double correlation(const struct importance *of, int a, int b)
{
    double sums[5] = {0};
    const size_t n = (size_t)of->rows.truth.rows;
    const float first_a = of->x[a], first_b = of->x[b]; /* keeps sums small */
    for (size_t r = 0; r < n; r++) {
        const double u = (double)of->x[r * of->width + (size_t)a] - (double)first_a;
        const double v = (double)of->x[r * of->width + (size_t)b] - (double)first_b;
        sums[0] += u, sums[1] += v, sums[2] += u * u, sums[3] += v * v, sums[4] += u * v;
    }
    const double rows = (double)n, spread = (sums[2] - sums[0] * sums[0] / rows) *
                                            (sums[3] - sums[1] * sums[1] / rows);
    return spread > 0 ? (sums[4] - sums[0] * sums[1] / rows) / sqrt(spread) : 0;
}

/* Gives columns of numbers that correlate, directly or by others, the group of the first. */
static void columns_group(struct importance *of)
{
    for (int a = 0; a < of->columns; a++)
        for (int b = a + 1; b < of->columns; b++) {
            const struct column *one = &of->column[a], *other = &of->column[b];
            const int to = one->group < other->group ? one->group : other->group;
            const int from = one->group + other->group - to;
            if (to == from || one->count > 1 || other->count > 1 ||
                fabs(correlation(of, one->first, other->first)) < CORRELATES)
                continue;
            for (int c = 0; c < of->columns; c++)
                if (of->column[c].group == from) of->column[c].group = to;
        }
}

/* ---- rows ----------------------------------------------------------------------------------- */

static dt_status rows_read(struct importance *of, const struct dt_source *source)
{
    const struct dt_predictor *p = of->model->predictor;
    const struct dt_schema *schema = &p->file.schema;
    const size_t dense = (size_t)schema->dense, features = (size_t)schema->features;
    const uint64_t rows = dt__measure_rows(&of->model->config, source);
    const size_t nout = (size_t)p->model->desc.nout;
    struct dt_table *table = NULL;
    struct dt_batch batch;
    dt_status status;
    of->width = features + (size_t)schema->encoded;
    DT_GUARD(dt__table_create(&of->model->config, source, 0, rows, &table));
    DT_GUARD(dt__judged_alloc(p->model, (size_t)rows, of->model->config.eval.weighted, &of->rows));
    DT_GUARD(dt__alloc((size_t)rows, of->width * sizeof(float), "rows", &of->x));
    DT_GUARD(dt__alloc(DT_EVAL_CHUNK, of->width * sizeof(float), "rows", &of->part));
    DT_GUARD(dt__alloc(DT_EVAL_CHUNK, nout * sizeof(float), "logits", &of->logits));
    for (uint64_t at = 0; at < rows; at += DT_EVAL_CHUNK) {
        const int count = rows - at < DT_EVAL_CHUNK ? (int)(rows - at) : DT_EVAL_CHUNK;
        DT_GUARD(dt__table_read(table, at, count, &batch));
        dt__judged_set(p->model, &of->rows, (size_t)at, &batch, of->logits);
        for (int r = 0; r < count; r++) {
            const float *from = batch.x + (size_t)r * (size_t)batch.ndense;
            float *to = of->x + ((size_t)at + (size_t)r) * of->width;
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

static void feature_move(const struct importance *of, int feature, size_t from, float *to)
{
    const struct dt_schema *schema = &of->model->predictor->file.schema;
    to[feature] = of->x[from * of->width + (size_t)feature];
    for (int e = 0; e < schema->encoded; e++) {
        const size_t z = (size_t)schema->features + (size_t)e;
        if (schema->encoded_feature[e] == feature) to[z] = of->x[from * of->width + z];
    }
}

/* Overwrites a row's values of a group's columns by those of another row. */
static void group_move(const struct importance *of, int group, size_t from, float *to)
{
    for (int c = group; c < of->columns; c++) {
        const struct column *column = &of->column[c];
        if (column->group != group) continue;
        for (int f = column->first; f < column->first + column->count; f++)
            feature_move(of, f, from, to);
        if (column->flag) feature_move(of, column->flag, from, to);
    }
}

/* Returns rows of the labels, targets and weights. */
static struct dt_batch truth_part(const struct importance *of, size_t at, size_t rows)
{
    const struct dt_predictor *p = of->model->predictor;
    struct dt_batch batch = of->rows.truth;
    batch.rows = (int)rows;
    if (batch.label) batch.label += at;
    if (batch.target) batch.target += at * p->targets;
    if (batch.weight) batch.weight += at;
    return batch;
}

/* Computes the sums of all slices, with a group of columns in the order of `perm`; NULL: as they
 * are. */
static dt_status rows_measure(struct importance *of, int group, const struct dt_perm *perm)
{
    struct dt_predictor *p = of->model->predictor;
    const size_t all = (size_t)of->rows.truth.rows, nout = (size_t)p->model->desc.nout;
    double *sums = of->sums;
    for (size_t at = 0; at < all; at += DT_EVAL_CHUNK) {
        const size_t rows = all - at < DT_EVAL_CHUNK ? all - at : DT_EVAL_CHUNK;
        struct dt_batch batch = truth_part(of, at, rows);
        batch.x = of->part;
        batch.ndense = (int)of->width;
        memcpy(of->part, of->x + at * of->width, rows * of->width * sizeof *of->part);
        for (size_t r = 0; perm && r < rows; r++)
            group_move(of, group, (size_t)dt__perm_at(perm, at + r), of->part + r * of->width);
        DT_TRY(dt__predictor_logits(p, &batch, of->logits));
        for (size_t r = 0; r < rows; r += of->slice, sums += dt__metrics_sums(p->model)) {
            batch = truth_part(of, at + r, rows - r < of->slice ? rows - r : of->slice);
            dt__metrics_chunk(p->model, of->logits + r * nout, &batch, sums, NULL);
        }
    }
    return DT_OK;
}

static size_t folds_of(const struct importance *of)
{
    return of->slices < FOLDS ? of->slices : FOLDS;
}

/* Computes the metric without each fold, and at FOLDS that of all rows. */
static dt_status folds_score(struct importance *of, double out[FOLDS + 1])
{
    const struct dt_model *model = of->model->predictor->model;
    struct dt_metric_values values;
    struct dt_metric_score score;
    for (size_t f = 0; f <= FOLDS; f = f + 1 == folds_of(of) ? FOLDS : f + 1) {
        dt__metrics_reset(of->metrics);
        for (size_t s = 0; s < of->slices; s++)
            if (s % FOLDS != f)
                DT_TRY(dt__metrics_add(of->metrics, of->sums + s * dt__metrics_sums(model)));
        dt__metrics_values(of->metrics, &values);
        DT_TRY(dt__metric_pick(model, of->model->config.eval.metric, &values, &score));
        out[f] = score.value;
    }
    return DT_OK;
}

/* The importance of a group of columns, and its standard error. */
struct worth {
    double mean, deviation;
};

/* sums: over the repeats, of how much worse the metric is. */
static struct worth worth_of(const struct importance *of, const double sums[FOLDS + 1])
{
    const double repeats = (double)of->model->config.importance.repeats;
    const double folds = (double)folds_of(of);
    double mean = 0, squares = 0;
    for (size_t f = 0; f < folds_of(of); f++)
        mean += sums[f] / folds;
    for (size_t f = 0; f < folds_of(of); f++)
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

static dt_status line_add(const struct importance *of, const struct line *line,
                          struct dt_text *text)
{
    struct dt_json json = {0};
    const char **names;
    char(*numbers)[16];
    size_t count = 0;
    DT_TRY(dt__alloc((size_t)of->columns, sizeof *names, "names", &names));
    dt_status status = dt__alloc((size_t)of->columns, sizeof *numbers, "names", &numbers);
    for (int c = line->group; c < of->columns && !status; c++) {
        if (of->column[c].group != line->group) continue;
        (void)snprintf(numbers[count], sizeof *numbers, "%d", c);
        names[count] = of->column[c].name ? of->column[c].name : numbers[count];
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

/* Keeps the lines, after one that says what they are of, in the directory of the run for `dtrain
 * report`. */
static dt_status lines_keep(const struct importance *of, const char *dir, const char *lines,
                            const struct dt_metric_score *base)
{
    const struct dt__path run = dt__path("%s/metrics.jsonl", dir);
    const struct dt__path path = dt__path("%s/" DT__IMPORTANCE_FILE, dir);
    struct dt_json json = {0};
    if (!dt__path_exists(run.text) && !cli_is_search(dir)) return DT_OK;
    dt__json_start(&json);
    dt__json_text(&json, "metric", base->name);
    dt__json_real(&json, "value", base->value);
    dt__json_int(&json, "rows", of->rows.truth.rows);
    dt__json_int(&json, "repeats", of->model->config.importance.repeats);
    dt__json_int(&json, "step", (int64_t)of->model->predictor->file.step);
    dt_status status = dt__json_end(&json);
    if (!status) status = dt__text_add(&json.text, "\n%s", lines);
    if (!status) status = dt__file_write(path.text, json.text.data, json.text.length, NULL, NULL);
    dt__json_free(&json);
    if (status == DT_EIO) dt__warn("%s; dtrain report has no picture of it", dt_error_text());
    return status == DT_EIO ? DT_OK : status;
}

/* all: (size, columns), as each rank has measured its own. dir: the model's path. */
static dt_status result_print(const struct importance *of, const struct worth *all, size_t size,
                              const struct dt_metric_score *base, const char *dir)
{
    const size_t columns = (size_t)of->columns;
    struct dt_text text = {0};
    struct line *line;
    size_t lines = 0;
    DT_TRY(dt__alloc(columns, sizeof *line, "columns", &line));
    for (size_t c = 0; c < columns; c++)
        if (of->column[c].group == (int)c)
            line[lines++] = (struct line){(int)c, all[c % size * columns + c]};
    qsort(line, lines, sizeof *line, by_falling_mean);
    dt__info("importance: how much worse %s, %.6g, is on %d held-out rows without a column "
             "(importance.repeats=%d: the mean, and its standard error)",
             base->name, base->value, of->rows.truth.rows,
             (int)of->model->config.importance.repeats);
    dt_status status = DT_OK;
    for (size_t i = 0; i < lines && !status; i++)
        status = line_add(of, &line[i], &text);
    if (!status) fputs(text.data, stdout);
    if (!status) status = lines_keep(of, dir, text.data, base);
    dt__text_free(&text);
    dt_free(line);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Slices are so small that folds are of about the same size. */
static dt_status slices_make(struct importance *of)
{
    const size_t rows = (size_t)of->rows.truth.rows;
    if (rows < 2) return dt_fail(DT_EUSAGE, "importance: 1 held-out row; expected at least 2");
    const size_t sums = dt__metrics_sums(of->model->predictor->model);
    for (of->slice = 1; of->slice < MOST_SLICE && of->slice * 8 * FOLDS <= rows;)
        of->slice *= 2;
    of->slices = (rows + of->slice - 1) / of->slice;
    return dt__alloc(of->slices, sums * sizeof *of->sums, "sums", &of->sums);
}

static dt_status importance_open(struct importance *of, int argc, char **argv)
{
    struct dt_source *source = NULL;
    dt_status status;
    DT_TRY(cli_model_open(of->model, argc, argv));
    struct dt_config *config = &of->model->config;
    const struct dt_model *model = of->model->predictor->model;
    if (config->importance.metric != DT_METRIC_AUTO)
        config->eval.metric = config->importance.metric;
    DT_GUARD(dt__metric_pick(model, config->eval.metric, NULL, &(struct dt_metric_score){0}));
    DT_GUARD(columns_make(of, &of->model->predictor->file.schema));
    DT_GUARD(cli_model_survey(of->model, DT_PART_EVAL, &source));
    DT_GUARD(rows_read(of, source));
    DT_GUARD(dt__metrics_create(model, config, &of->metrics));
    dt__metrics_limit(of->metrics);
    DT_GUARD(slices_make(of));
    if (config->importance.group) columns_group(of);
done:
    dt__source_destroy(source);
    return status;
}

static dt_status group_measure(struct importance *of, struct dt_world *world, int group,
                               const double base[FOLDS + 1], double sums[FOLDS + 1])
{
    const struct dt_config *config = &of->model->config;
    const uint64_t seed = (uint64_t)config->run.seed;
    double now[FOLDS + 1];
    for (uint64_t r = 0; r < (uint64_t)config->importance.repeats; r++) {
        struct dt_perm perm;
        dt__world_heartbeat(world, "evaluation", r);
        dt__perm_init(&perm, (uint64_t)of->rows.truth.rows,
                      dt__rng_make(seed, DT_STREAM_IMPORTANCE, (uint64_t)group, r));
        DT_TRY(rows_measure(of, group, &perm));
        DT_TRY(folds_score(of, now));
        for (size_t f = 0; f <= FOLDS; f++)
            sums[f] += now[f] - base[f];
        DT_TRY(dt__stop_check());
    }
    return DT_OK;
}

/* Measures this rank's columns. */
static dt_status columns_measure(struct importance *of, struct dt_world *world,
                                 struct dt_metric_score *score, struct worth *out)
{
    double base[FOLDS + 1] = {0};
    DT_TRY(rows_measure(of, 0, NULL));
    DT_TRY(folds_score(of, base));
    DT_TRY(
        dt__metric_pick(of->model->predictor->model, of->model->config.eval.metric, NULL, score));
    score->value = base[FOLDS];
    if (isnan(score->value))
        return dt_fail(DT_EMISMATCH,
                       "importance: %s is not defined on these %d rows: expected other rows, or "
                       "another importance.metric",
                       score->name, of->rows.truth.rows);
    for (int c = world->rank; c < of->columns; c += world->size) {
        double sums[FOLDS + 1] = {0};
        if (of->column[c].group != c) continue;
        DT_TRY(group_measure(of, world, c, base, sums));
        out[c] = worth_of(of, sums);
        if (score->more_is_better) out[c].mean = 0 - out[c].mean; /* not -0 */
    }
    return DT_OK;
}

static dt_status importance_run(struct dt_world *world, cli_world_fn *body, int argc, char **argv)
{
    struct cli_model model = {0};
    struct importance of = {.model = &model};
    struct dt_metric_score base;
    struct worth *mine = NULL, *all = NULL;
    (void)body;
    if (!world->is_bank) dt_log_set_level(DT_LOG_ERROR); /* rank 0 says it all */
    dt_status status = importance_open(&of, argc, argv);
    DT_GUARD(dt__ranks_agree(world->all, status));
    dt__world_watch(world, model.config.run.stall_secs);
    const size_t columns = (size_t)of.columns, size = (size_t)world->size;
    status = dt__alloc(columns, sizeof *mine, "scores", &mine);
    if (!status && world->is_bank) status = dt__alloc(size, columns * sizeof *all, "scores", &all);
    DT_GUARD(dt__ranks_agree(world->all, status));
    status = columns_measure(&of, world, &base, mine);
    DT_GUARD(dt__ranks_agree(world->all, status));
    dt__ranks_gather(world->all, mine, columns * sizeof *mine, all);
    if (world->is_bank) status = result_print(&of, all, size, &base, argv[1]);
    status = dt__ranks_agree(world->all, status);
done:
    if (status == DT_STOPPED && world->is_bank)
        dt__info("importance: stopped on request, before all columns were measured");
    dt__metrics_destroy(of.metrics);
    dt__judged_free(&of.rows);
    dt_free(of.x);
    dt_free(of.part);
    dt_free(of.logits);
    dt_free(of.sums);
    dt_free(of.column);
    dt_free(mine);
    dt_free(all);
    if (model.predictor) cli_model_close(&model);
    return status;
}

dt_status cmd_importance(int argc, char **argv)
{
    return cli_run(importance_run, NULL, argc, argv);
}
