/* `dtrain importance`: how much worse a model is if the rows of a column are permuted. The units of
 * work are (columns, repeat); rank r takes every size-th. A unit's order of rows is a function of
 * run.seed, columns and repeat, so any number of ranks gives the same digits.
 *
 * Columns that one text or date became are permuted together, and so are columns of numbers that
 * correlate: alone, each would seem useless where the other says the same.
 * Source: Breiman, "Random forests", Machine Learning 2001, section 10. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "comm/comm.h"
#include "model/certainty.h"
#include "report/report.h"
#include "table/schema.h"
#include "train/train.h"

enum { MOST_COLUMNS = 4096, MOST_REPEATS = 10000 };
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
    double *sums;
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
    const uint64_t most = dt__measure_chunks(&of->model->config, source) * DT_EVAL_CHUNK;
    const uint64_t all = dt__source_rows(source), rows = most < all ? most : all;
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

/* The metric of the rows, with those of a group of columns in the order of `perm`; NULL: as they
 * are. */
static dt_status score(struct importance *of, int group, const struct dt_perm *perm,
                       struct dt_metric_score *out)
{
    struct dt_predictor *p = of->model->predictor;
    const struct dt_batch *truth = &of->rows.truth;
    const size_t targets = p->model->classes ? 1 : p->targets;
    struct dt_metric_values values;
    dt__metrics_reset(of->metrics);
    for (size_t at = 0, rows = (size_t)truth->rows; at < rows; at += DT_EVAL_CHUNK) {
        struct dt_batch batch = *truth;
        batch.rows = rows - at < DT_EVAL_CHUNK ? (int)(rows - at) : DT_EVAL_CHUNK;
        batch.x = of->part;
        batch.ndense = (int)of->width;
        if (batch.label) batch.label += at;
        if (batch.target) batch.target += at * targets;
        if (batch.weight) batch.weight += at;
        memcpy(of->part, of->x + at * of->width,
               (size_t)batch.rows * of->width * sizeof *of->part);
        for (size_t r = 0; perm && r < (size_t)batch.rows; r++)
            group_move(of, group, (size_t)dt__perm_at(perm, at + r), of->part + r * of->width);
        DT_TRY(dt__predictor_logits(p, &batch, of->logits));
        dt__metrics_chunk(p->model, of->logits, &batch, of->sums, NULL);
        DT_TRY(dt__metrics_add(of->metrics, of->sums));
    }
    dt__metrics_values(of->metrics, &values);
    return dt__metric_pick(p->model, of->model->config.eval.metric, &values, out);
}

/* ---- output --------------------------------------------------------------------------------- */

struct line {
    int group;
    double mean, deviation;
};

static int by_falling_mean(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    if (left->mean != right->mean) return left->mean < right->mean ? 1 : -1;
    return left->group - right->group;
}

static dt_status line_print(const struct importance *of, const struct line *line)
{
    struct dt_json json = {0};
    const char **names;
    char (*numbers)[16];
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
    dt__json_real(&json, "importance", line->mean);
    dt__json_real(&json, "deviation", line->deviation);
    if (count > 1) dt__json_text(&json, "together", "they correlate");
    if (!status) status = dt__json_end(&json);
    if (!status) puts(json.text.data);
    dt__json_free(&json);
    dt_free(numbers);
    dt_free(names);
    return status;
}

/* all: (size, units) as ranks have measured them, each its own. */
static dt_status result_print(const struct importance *of, const double *all, int size,
                              const struct dt_metric_score *base)
{
    const int repeats = (int)of->model->config.importance.repeats;
    const size_t units = (size_t)of->columns * (size_t)repeats;
    struct line *line;
    int lines = 0;
    DT_TRY(dt__alloc((size_t)of->columns, sizeof *line, "columns", &line));
    for (int g = 0; g < of->columns; g++) {
        double sum = 0, squares = 0;
        if (of->column[g].group != g) continue;
        for (int r = 0; r < repeats; r++) {
            const size_t unit = (size_t)g * (size_t)repeats + (size_t)r;
            sum += all[unit % (size_t)size * units + unit];
        }
        const double mean = sum / repeats;
        for (int r = 0; r < repeats; r++) {
            const size_t unit = (size_t)g * (size_t)repeats + (size_t)r;
            const double off = all[unit % (size_t)size * units + unit] - mean;
            squares += off * off;
        }
        line[lines++] = (struct line){g, mean, sqrt(squares / repeats)};
    }
    qsort(line, (size_t)lines, sizeof *line, by_falling_mean);
    dt__info("importance: how much worse %s, %.6g, is on %d held-out rows without a column (mean and "
             "deviation of %d)",
             base->name, base->value, of->rows.truth.rows, repeats);
    dt_status status = DT_OK;
    for (int i = 0; i < lines && !status; i++)
        status = line_print(of, &line[i]);
    dt_free(line);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

static dt_status importance_open(struct importance *of, int argc, char **argv)
{
    struct dt_source *source = NULL;
    dt_status status;
    DT_TRY(cli_model_open(of->model, argc, argv));
    struct dt_config *config = &of->model->config;
    const struct dt_model *model = of->model->predictor->model;
    if (config->importance.metric != DT_METRIC_AUTO) config->eval.metric = config->importance.metric;
    DT_GUARD(dt__metric_pick(model, config->eval.metric, NULL, &(struct dt_metric_score){0}));
    DT_GUARD(columns_make(of, &of->model->predictor->file.schema));
    DT_GUARD(cli_model_survey(of->model, DT_PART_EVAL, &source));
    DT_GUARD(rows_read(of, source));
    DT_GUARD(dt__metrics_create(model, config, &of->metrics));
    DT_GUARD(dt__alloc(dt__metrics_sums(model), sizeof *of->sums, "sums", &of->sums));
    if (config->importance.group) columns_group(of);
done:
    dt__source_destroy(source);
    return status;
}

/* Measures this rank's units: how much worse each is than the rows as they are. */
static dt_status units_measure(struct importance *of, struct dt_world *world,
                               struct dt_metric_score *base, double *out)
{
    const struct dt_config *config = &of->model->config;
    const size_t repeats = (size_t)config->importance.repeats;
    const uint64_t seed = (uint64_t)config->run.seed;
    struct dt_metric_score now;
    DT_TRY(score(of, 0, NULL, base));
    for (size_t unit = 0; unit < (size_t)of->columns * repeats; unit++) {
        const int group = (int)(unit / repeats);
        struct dt_perm perm;
        if (unit % (size_t)world->size != (size_t)world->rank || of->column[group].group != group)
            continue;
        dt__world_heartbeat(world, "evaluation", unit);
        dt__perm_init(&perm, (uint64_t)of->rows.truth.rows,
                      dt__rng_make(seed, DT_STREAM_IMPORTANCE, (uint64_t)group, unit % repeats));
        DT_TRY(score(of, group, &perm, &now));
        out[unit] = base->more_is_better ? base->value - now.value : now.value - base->value;
        DT_TRY(dt__stop_check());
    }
    return DT_OK;
}

static dt_status importance_run(struct dt_world *world, cli_world_fn *body, int argc, char **argv)
{
    struct cli_model model = {0};
    struct importance of = {.model = &model};
    struct dt_metric_score base;
    double *mine = NULL, *all = NULL;
    (void)body;
    if (!world->is_bank) dt_log_set_level(DT_LOG_ERROR); /* rank 0 says it all */
    dt_status status = importance_open(&of, argc, argv);
    DT_GUARD(dt__ranks_agree(world->all, status));
    dt__world_watch(world, model.config.run.stall_secs);
    const size_t units = (size_t)of.columns * (size_t)model.config.importance.repeats;
    status = dt__alloc(units, sizeof *mine, "scores", &mine);
    if (!status && world->is_bank)
        status = dt__alloc((size_t)world->size, units * sizeof *all, "scores", &all);
    DT_GUARD(dt__ranks_agree(world->all, status));
    status = units_measure(&of, world, &base, mine);
    DT_GUARD(dt__ranks_agree(world->all, status));
    dt__ranks_gather(world->all, mine, units * sizeof *mine, all);
    if (world->is_bank) status = result_print(&of, all, world->size, &base);
    status = dt__ranks_agree(world->all, status);
done:
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
