#include <string.h>

#include "cli/cli.h"
#include "dtrain/data.h"
#include "dtrain/report.h"

enum { BATCH = 256 };

struct predictor {
    const struct cli_model *model;
    struct dt_net *net;
    float *x;             /* (BATCH, nin) rows that wait for their prediction */
    int count;            /* how many */
    float *logits;        /* (BATCH, nout) or values */
    float *probabilities; /* (BATCH, classes), NULL for regression */
    struct dt_json json;  /* the record under way */
    uint64_t good, bad;
};

static size_t nin(const struct predictor *predictor)
{
    return (size_t)predictor->model->file.spec.nin;
}

static size_t nout(const struct predictor *predictor)
{
    return (size_t)predictor->model->file.spec.nout;
}

/* ---- records -------------------------------------------------------------------------------- */

/* The class as accuracy counts it: the first of the largest logits, or the sign of the only one. */
static size_t choose_class(const float *logits, size_t n)
{
    size_t best = 0;
    if (n == 1) return logits[0] > 0.0f;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void add_class(struct predictor *predictor, size_t row)
{
    size_t classes = (size_t)dt_metrics_classes(&predictor->model->file.spec);
    size_t class = choose_class(predictor->logits + row * nout(predictor), nout(predictor));
    char *const *names = predictor->model->file.schema.label_names;
    dt_json_int(&predictor->json, "class", (int64_t) class);
    if (names) dt_json_text(&predictor->json, "label", names[class]);
    dt_json_floats(&predictor->json, "probabilities", predictor->probabilities + row * classes,
                   classes);
}

static void add_values(struct predictor *predictor, size_t row)
{
    size_t n = nout(predictor);
    const float *values = predictor->logits + row * n;
    if (n == 1)
        dt_json_float(&predictor->json, "value", *values);
    else
        dt_json_floats(&predictor->json, "values", values, n);
}

static dt_status end_record(struct predictor *predictor)
{
    DT_TRY(dt_json_end(&predictor->json));
    if (puts(predictor->json.text.data) < 0)
        return dt_fail(DT_EIO, "standard output: cannot write");
    return DT_OK;
}

static dt_status write_prediction(struct predictor *predictor, size_t row)
{
    dt_json_begin(&predictor->json);
    if (predictor->probabilities)
        add_class(predictor, row);
    else
        add_values(predictor, row);
    predictor->good++;
    return end_record(predictor);
}

static dt_status write_error(struct predictor *predictor, uint64_t line)
{
    dt_json_begin(&predictor->json);
    dt_json_int(&predictor->json, "line", (int64_t)line);
    dt_json_text(&predictor->json, "error", dt_error_text());
    predictor->bad++;
    return end_record(predictor);
}

/* ---- batches -------------------------------------------------------------------------------- */

/* Predicts `count` rows x (count, nin). */
static dt_status predict(struct predictor *predictor, const float *x, int count)
{
    const struct dt_export *file = &predictor->model->file;
    dt_net_forward(predictor->net, file->params, x, count, predictor->logits);
    if (predictor->probabilities)
        dt_softmax(predictor->logits, count, file->spec.nout, predictor->probabilities);
    for (int i = 0; i < count; i++)
        DT_TRY(write_prediction(predictor, (size_t)i));
    return DT_OK;
}

static dt_status predict_waiting(struct predictor *predictor)
{
    int count = predictor->count;
    predictor->count = 0;
    return count ? predict(predictor, predictor->x, count) : DT_OK;
}

/* ---- rows from standard input --------------------------------------------------------------- */

/* An answer does not wait for rows that have not come yet. */
static dt_status pause_for_input(struct predictor *predictor, const struct dt_rows *rows)
{
    if (dt_rows_ready(rows)) return predictor->count < BATCH ? DT_OK : predict_waiting(predictor);
    DT_TRY(predict_waiting(predictor));
    return fflush(stdout) ? dt_fail(DT_EIO, "standard output: cannot write") : DT_OK;
}

static dt_status take_row(struct predictor *predictor, struct dt_rows *rows, bool *out_end)
{
    uint64_t line;
    DT_TRY(pause_for_input(predictor, rows));
    float *x = predictor->x + (size_t)predictor->count * nin(predictor);
    dt_status status = dt_rows_next(rows, x, &line, out_end);
    if (!status) predictor->count += !*out_end;
    if (status != DT_EFORMAT && status != DT_EMISMATCH) return status;
    char error[DT_ERROR_MAX];
    snprintf(error, sizeof error, "%s", dt_error_text());
    DT_TRY(predict_waiting(predictor));
    dt_fail(status, "%s", error);
    return write_error(predictor, line);
}

static dt_status predict_stream(struct predictor *predictor)
{
    struct dt_rows *rows;
    bool end = false;
    DT_TRY(dt_rows_open(stdin, "standard input", &predictor->model->file.schema,
                        &predictor->model->config, &rows));
    dt_status status = DT_OK;
    while (!status && !end)
        status = take_row(predictor, rows, &end);
    if (!status) status = predict_waiting(predictor);
    dt_rows_close(rows);
    return status;
}

/* ---- rows from files ------------------------------------------------------------------------ */

static dt_status predict_table(struct predictor *predictor, const struct dt_source *source)
{
    struct dt_table *table;
    struct dt_batch batch;
    uint64_t rows = dt_source_rows(source);
    DT_TRY(dt_table_create(&predictor->model->config, source, 0, rows, &table));
    dt_status status = DT_OK;
    for (uint64_t at = 0; at < rows && !status; at += (uint64_t)batch.rows) {
        status = dt_table_read(table, at, rows - at < BATCH ? (int)(rows - at) : BATCH, &batch);
        if (!status) status = predict(predictor, batch.x, batch.rows);
    }
    dt_table_destroy(table);
    return status;
}

static dt_status predict_files(struct predictor *predictor)
{
    struct dt_source *source;
    DT_TRY(dt_source_survey(&predictor->model->config, DT_PART_EVAL, &predictor->model->file.schema,
                            &source));
    dt_status status = predict_table(predictor, source);
    dt_source_destroy(source);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

static dt_status prepare(struct predictor *predictor, const struct cli_model *model)
{
    size_t classes = (size_t)dt_metrics_classes(&model->file.spec);
    *predictor = (struct predictor){.model = model};
    DT_TRY(dt_net_create(model->network, BATCH, &predictor->net));
    DT_TRY(dt_alloc(nin(predictor), BATCH * sizeof(float), "rows", &predictor->x));
    DT_TRY(dt_alloc(nout(predictor), BATCH * sizeof(float), "logits", &predictor->logits));
    if (!classes) return DT_OK;
    return dt_alloc(classes, BATCH * sizeof(float), "probabilities", &predictor->probabilities);
}

static void release(struct predictor *predictor)
{
    dt_net_destroy(predictor->net);
    dt_free(predictor->x);
    dt_free(predictor->logits);
    dt_free(predictor->probabilities);
    dt_json_free(&predictor->json);
}

dt_status cmd_predict(int argc, char **argv)
{
    struct cli_model model;
    struct predictor predictor;
    DT_TRY(cli_model_open(&model, argc, argv));
    bool files = cli_is_given("data.eval", argc, argv);
    dt_status status = prepare(&predictor, &model);
    if (!status) status = files ? predict_files(&predictor) : predict_stream(&predictor);
    if (!status && predictor.bad)
        status = dt_fail(DT_EFORMAT, "%llu of %llu rows could not be predicted",
                         (unsigned long long)predictor.bad,
                         (unsigned long long)(predictor.bad + predictor.good));
    release(&predictor);
    cli_model_close(&model);
    return status;
}
