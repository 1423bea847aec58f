/* `dtrain predict`: writes one record, JSON or a line of CSV, for each row of standard input or of
 * files, in their order.
 *
 * Rows wait until a batch is full or input pauses, and are then predicted together. For a row that
 * cannot be read or predicted, the record has its line and the error; it follows those of the rows
 * before it, and the exit code is 1 at the end. */
#include <string.h>

#include "cli/cli.h"
#include "text/text.h"
#include "report/report.h"
#include "train/train.h"

enum { BATCH = DT_EVAL_CHUNK };

struct stream {
    struct dt_predictor *predictor;
    size_t nin, width;       /* numbers per row, and per answer */
    struct dt_inputs inputs; /* (count) rows that wait to be predicted */
    size_t count;
    uint64_t line[BATCH];      /* the line that each of them is in */
    size_t instance[BATCH];    /* number of the row in its line */
    char **passthrough[BATCH]; /* (keep.count) for each row, its values of predict.keep; NULL:
                                * none */
    struct dt__names keep;     /* names of the columns of predict.keep */
    struct dt__names names;    /* names of several targets, if the training data named them */
    float *answers;            /* (BATCH, width) */
    float *bound;              /* (targets) predict.interval: lower or upper ends of a row's
                                * intervals */
    float *spread;             /* (BATCH, width) predict.spread: standard deviation over the
                                * members; NULL: off */
    int32_t classes[BATCH];
    /* the text that a member gets: name and value in a JSON object; name or value in CSV */
    enum { OBJECT, NAMES, VALUES } form;
    struct dt_json json;
    struct dt_text csv;          /* a line of CSV with a comma before each cell; empty: the names
                                  * are not written yet */
    const struct dt_batch *rows; /* the rows that were predicted, if they come from files */
    bool target;                 /* predict.target: add the row's target to its record */
    float *features;             /* (nin) predict.features: a row's features, for its record; NULL:
                                  * off */
    uint64_t good, bad;          /* number of records written with an answer, and with an error */
};

/* ---- records -------------------------------------------------------------------------------- */

/* record_add describes a record once, member by member; stream->form decides how these functions
 * write a member. A value of NULL is missing: the object lacks the member, or the cell is empty. */

static dt_status cell_add(struct stream *stream, const char *name, const char *value)
{
    const char *text = stream->form == NAMES ? name : value ? value : "";
    DT_TRY(dt__text_append(&stream->csv, ",", 1));
    return cli_csv_add(&stream->csv, text, strlen(text));
}

static dt_status text_add(struct stream *stream, const char *name, const char *value)
{
    if (stream->form != OBJECT) return cell_add(stream, name, value);
    if (value) dt__json_text(&stream->json, name, value);
    return DT_OK;
}

static dt_status int_add(struct stream *stream, const char *name, const int32_t *value)
{
    char text[24] = "";
    if (value) snprintf(text, sizeof text, "%d", (int)*value);
    if (stream->form != OBJECT) return cell_add(stream, name, text);
    if (value) dt__json_int(&stream->json, name, *value);
    return DT_OK;
}

/* Adds a list of numbers, or just the number if there is one and no `name_of`. In CSV a list has
 * one column per number, named after the class or feature (name_of), the target, the quantile, or
 * the number's index. */
typedef const char *name_fn(const struct dt_predictor *predictor, int i);
static dt_status floats_add(struct stream *stream, const char *name, const float *values, size_t n,
                            name_fn *name_of)
{
    const bool list = n > 1 || name_of;
    const struct dt_checkpoint *file = &stream->predictor->file;
    const char *quantile = name_of || file->schema.targets > 1 ? NULL : file->desc.quantiles;
    for (size_t i = 0; stream->form != OBJECT && i < n; i++) {
        const char *target = stream->names.count == n ? stream->names.items[i] : NULL;
        const char *label = name_of ? name_of(stream->predictor, (int)i) : target;
        char title[DT_ERROR_MAX], value[DT_REAL_TEXT] = "";
        if (label)
            snprintf(title, sizeof title, "%s %s", name, label);
        else if (quantile)
            snprintf(title, sizeof title, "%s %.*s", name, (int)strcspn(quantile, ", "), quantile);
        else
            snprintf(title, sizeof title, "%s %zu", name, i);
        if (quantile) quantile += strcspn(quantile, ",");
        if (quantile) quantile += strspn(quantile, ", ");
        if (values) dt__float_text(values[i], value);
        DT_TRY(cell_add(stream, list ? title : name, value));
    }
    if (stream->form != OBJECT || !values) return DT_OK;
    if (list)
        dt__json_floats(&stream->json, name, values, n);
    else
        dt__json_float(&stream->json, name, *values);
    return DT_OK;
}

/* Returns the features of a row of files, as the network takes them; features that are missing in a
 * sparse row are 0. */
static const float *features_find(const struct stream *stream, size_t row)
{
    const struct dt_batch *rows = stream->rows;
    const size_t ndense = (size_t)rows->ndense;
    const size_t dense = ndense - (size_t)stream->predictor->file.schema.encoded;
    for (size_t i = 0; i < stream->nin; i++)
        stream->features[i] = i < dense ? rows->x[row * ndense + i] : 0;
    for (uint64_t e = rows->offsets ? rows->offsets[row] : 0;
         rows->offsets && e < rows->offsets[row + 1]; e++)
        stream->features[rows->index[e]] = rows->value ? rows->value[e] : 1;
    return stream->features;
}

/* An error in a row. `place` is "line" (of standard input) or "row" (of files), and `number` its
 * number. */
struct flaw {
    const char *place, *error;
    uint64_t number;
};

static dt_status record_add(struct stream *stream, size_t row, char **passthrough,
                            const struct flaw *flaw)
{
    const struct dt_predictor *p = stream->predictor;
    const struct dt_batch *rows = stream->rows;
    const size_t targets = (size_t)p->file.schema.targets;
    const char *label = p->classes ? dt_predictor_class_name(p, stream->classes[row]) : NULL;
    char error[DT_ERROR_MAX + 64] = "";
    for (size_t k = 0; k < stream->keep.count; k++)
        DT_TRY(text_add(stream, stream->keep.items[k], passthrough ? passthrough[k] : ""));
    if (p->classes) DT_TRY(int_add(stream, "class", flaw ? NULL : &stream->classes[row]));
    if (label) DT_TRY(text_add(stream, "label", flaw ? NULL : label));
    const float *spread = stream->spread && !flaw ? stream->spread + row * stream->width : NULL;
    DT_TRY(floats_add(stream, stream->width == 1 ? "value" : p->answer,
                      flaw ? NULL : stream->answers + row * stream->width, stream->width,
                      p->classes ? dt_predictor_class_name : NULL));
    for (int upper = 0; p->margin && upper < 2; upper++) {
        for (size_t t = 0; !flaw && t < p->targets; t++)
            stream->bound[t] =
                dt__predictor_bound(p, stream->answers + row * stream->width, t, upper);
        DT_TRY(floats_add(stream, upper ? "high" : "low", flaw ? NULL : stream->bound, p->targets,
                          NULL));
    }
    if (stream->spread)
        DT_TRY(floats_add(stream, "spread", spread, stream->width,
                          p->classes ? dt_predictor_class_name : NULL));
    if (stream->target && rows->label)
        DT_TRY(int_add(stream, "target", flaw ? NULL : &rows->label[row]));
    if (stream->target && rows->label && label)
        DT_TRY(text_add(stream, "target_label",
                        flaw ? NULL : dt_predictor_class_name(p, rows->label[row])));
    if (stream->target && !rows->label)
        DT_TRY(floats_add(stream, "target", flaw ? NULL : rows->target + row * targets, targets,
                          NULL));
    if (stream->features)
        DT_TRY(floats_add(stream, "features", flaw ? NULL : features_find(stream, row), stream->nin,
                          dt_predictor_feature_name));
    if (flaw && stream->form == OBJECT)
        dt__json_int(&stream->json, flaw->place, (int64_t)flaw->number);
    if (flaw)
        snprintf(error, sizeof error, "%s %llu: %s", flaw->place, (unsigned long long)flaw->number,
                 flaw->error);
    if (stream->form != OBJECT) return cell_add(stream, "error", error);
    return text_add(stream, "error", flaw ? flaw->error : NULL);
}

static dt_status line_write(struct stream *stream, size_t row, char **passthrough,
                            const struct flaw *flaw)
{
    const bool object = stream->form == OBJECT;
    if (object) dt__json_start(&stream->json);
    dt__text_clear(&stream->csv);
    DT_TRY(record_add(stream, row, passthrough, flaw));
    if (object) DT_TRY(dt__json_end(&stream->json));
    if (puts(object ? stream->json.text.data : stream->csv.data + 1) < 0)
        return dt_fail(DT_EIO, "standard output: cannot write");
    return DT_OK;
}

/* Writes the line of names with which CSV begins, unless it has been written. Any record has the
 * names, even one without an answer. */
static dt_status names_write(struct stream *stream)
{
    static const struct flaw no_answer = {"line", "", 0};
    if (stream->form == OBJECT || stream->csv.data) return DT_OK;
    stream->form = NAMES;
    DT_TRY(line_write(stream, 0, NULL, &no_answer));
    stream->form = VALUES;
    return DT_OK;
}

static dt_status record_write(struct stream *stream, size_t row, char **passthrough,
                              const struct flaw *flaw)
{
    DT_TRY(names_write(stream));
    DT_TRY(line_write(stream, row, passthrough, flaw));
    *(flaw ? &stream->bad : &stream->good) += 1;
    return DT_OK;
}

static dt_status stream_write_row(struct stream *stream, size_t row)
{
    const float *answer = stream->answers + row * stream->width;
    char error[DT_ERROR_MAX];
    struct flaw flaw = {"line", error, stream->line[row]};
    if (!dt__predictor_check(stream->predictor, answer))
        return record_write(stream, row, stream->passthrough[row], NULL);
    if (stream->rows)
        flaw.place = "row", flaw.number = stream->good + stream->bad;
    else if (stream->instance[row])
        dt_fail_prefix(DT_EFORMAT, "instance %zu: ", stream->instance[row]);
    snprintf(error, sizeof error, "%s", dt_error_text());
    return record_write(stream, row, stream->passthrough[row], &flaw);
}

/* Writes the records of the rows that were predicted together, at most BATCH. */
static dt_status stream_write_rows(struct stream *stream, size_t count)
{
    if (stream->spread && count)
        dt__network_spread(stream->predictor->network, (int)count, stream->spread);
    for (size_t i = 0; i < count; i++) {
        DT_TRY(stream_write_row(stream, i));
        dt__names_free(stream->passthrough[i], stream->keep.count);
        stream->passthrough[i] = NULL;
    }
    return DT_OK;
}

static dt_status stream_flush(struct stream *stream)
{
    const size_t count = stream->count;
    stream->count = 0;
    DT_TRY(dt__predictor_inputs(stream->predictor, &stream->inputs, count, stream->answers,
                                stream->classes));
    return stream_write_rows(stream, count);
}

/* ---- rows from standard input --------------------------------------------------------------- */

/* Predicts the rows of standard input. As soon as input pauses, the waiting rows are predicted, so
 * no answer waits for later rows. */
static dt_status stream_input(struct stream *stream, const struct cli_model *model)
{
    char error[DT_ERROR_MAX];
    struct dt_rows *rows;
    struct flaw flaw = {"line", error, 0};
    uint64_t line, before = 0;
    size_t instance = 0;
    dt_status status = DT_OK;
    const size_t capacity = stream->predictor->chunk;
    DT_TRY(dt__inputs_reserve(&stream->inputs, stream->predictor, capacity));
    DT_TRY(dt__rows_open(stdin, "standard input", &model->predictor->file.schema, &model->config,
                         &rows));
    DT_GUARD(dt__rows_keep(rows, model->config.predict.keep));
    for (bool end = false; !status && !end;) {
        const bool ready = dt__rows_ready(rows);
        if (!ready || stream->count == capacity) DT_GUARD(stream_flush(stream));
        if (!ready && fflush(stdout)) DT_GUARD(dt_fail(DT_EIO, "standard output: cannot write"));
        status =
            dt__inputs_read(&stream->inputs, stream->count, stream->predictor, rows, &line, &end);
        instance = line == before ? instance + 1 : 0;
        before = line;
        if (!status && !end) {
            stream->line[stream->count] = line;
            stream->passthrough[stream->count] = dt__rows_take_passthrough(rows);
            stream->instance[stream->count++] = instance;
        }
        if (status == DT_EMISMATCH)
            status = dt_fail_prefix(status, "standard input:%llu: ", (unsigned long long)line);
        if (status != DT_EFORMAT) continue;
        snprintf(error, sizeof error, "%s", dt_error_text());
        flaw.number = line;
        DT_GUARD(stream_flush(stream));
        stream->passthrough[0] = dt__rows_take_passthrough(rows);
        status = record_write(stream, 0, stream->passthrough[0], &flaw);
        dt__names_free(stream->passthrough[0], stream->keep.count);
        stream->passthrough[0] = NULL;
    }
    if (!status) status = stream_flush(stream);
    if (!status) status = names_write(stream); /* in case there were no rows */
done:
    dt__rows_close(rows);
    return status;
}

/* ---- rows from files ------------------------------------------------------------------------ */

static dt_status stream_files(struct stream *stream, const struct cli_model *model)
{
    struct dt_source *source = NULL;
    struct dt_table *table = NULL;
    struct dt_batch batch;
    dt_status status;
    DT_GUARD(cli_model_survey(model, stream->target ? DT_PART_EVAL : DT_PART_PREDICT, &source));
    const uint64_t rows = dt__measure_rows(&model->config, source);
    DT_GUARD(dt__table_create(&model->config, source, 0, rows, &table));
    for (uint64_t at = 0; at < rows; at += BATCH) {
        int count = rows - at < BATCH ? (int)(rows - at) : BATCH;
        DT_GUARD(dt__table_read(table, at, count, &batch));
        stream->rows = &batch; /* cppcheck-suppress autoVariables ; reset before this returns */
        DT_GUARD(dt__predictor_batch(stream->predictor, &batch, stream->answers, stream->classes));
        DT_GUARD(stream_write_rows(stream, (size_t)count));
    }
done:
    stream->rows = NULL;
    dt__table_destroy(table);
    dt__source_destroy(source);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Checks that no column of predict.keep appears twice or has the name of a part of the answer. */
static dt_status keep_check(const struct stream *stream)
{
    const bool classes = stream->predictor->classes != 0;
    const char *const taken[] = {classes ? "class" : "value",
                                 classes ? "label" : "value",
                                 stream->predictor->answer,
                                 "error",
                                 stream->predictor->margin ? "low" : "error",
                                 stream->predictor->margin ? "high" : "error",
                                 stream->form == OBJECT ? "line" : "error"};
    for (size_t k = 0; k < stream->keep.count; k++) {
        const char *name = stream->keep.items[k];
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
            if (!strcmp(name, taken[i]))
                return dt_fail(DT_EMISMATCH, "predict.keep=%s: the answer has that name", name);
        for (size_t i = 0; i < k; i++)
            if (!strcmp(name, stream->keep.items[i]))
                return dt_fail(DT_EMISMATCH, "predict.keep: '%s' appears twice", name);
    }
    return DT_OK;
}

dt_status cmd_predict(int argc, char **argv)
{
    struct cli_model model;
    struct stream stream = {0};
    DT_TRY(cli_model_open(&model, argc, argv));
    stream.predictor = model.predictor;
    stream.nin = model.predictor->features;
    stream.width = model.predictor->width;
    dt_status status = dt__alloc(stream.width, BATCH * sizeof(float), "answers", &stream.answers);
    if (!status && model.config.predict.spread)
        status = dt__alloc(stream.width, BATCH * sizeof(float), "deviations", &stream.spread);
    if (!status && dt__config_is_given(&model.config, "predict.interval"))
        status = dt__predictor_interval(stream.predictor, model.config.predict.interval);
    if (!status && stream.predictor->margin)
        status = dt__alloc(stream.predictor->targets, sizeof(float), "intervals", &stream.bound);
    const bool features = model.config.predict.features;
    if (!status && features) status = dt__alloc(stream.nin, sizeof(float), "row", &stream.features);
    bool files = dt__config_is_given(&model.config, "data.eval") || model.config.predict.held_out;
    stream.target = model.config.predict.target;
    if (!status && !files && (stream.target || features))
        status = dt_fail(DT_EUSAGE,
                         "predict.%s goes with rows of files: expected "
                         "data.eval=FILES or predict.held_out=yes",
                         stream.target ? "target" : "features");
    if (!status && files && *model.config.predict.keep)
        status =
            dt_fail(DT_EUSAGE, "predict.keep goes with rows of standard input: expected < FILE; "
                               "predict.keep can name the label's column, too");
    if (!status) status = dt__names_split(model.config.predict.keep, &stream.keep);
    const struct dt_schema *schema = &model.predictor->file.schema;
    if (!status && schema->targets > 1 && schema->label_column)
        status = dt__names_split(schema->label_column, &stream.names);
    if (model.config.predict.format == DT_PREDICT_CSV) stream.form = VALUES;
    if (!status) status = keep_check(&stream);
    if (!status) status = files ? stream_files(&stream, &model) : stream_input(&stream, &model);
    if (!status && stream.bad)
        status =
            dt_fail(DT_EFORMAT, "%llu of %llu rows could not be predicted",
                    (unsigned long long)stream.bad, (unsigned long long)(stream.bad + stream.good));
    dt__inputs_free(&stream.inputs);
    dt_free(stream.features);
    dt_free(stream.answers);
    dt_free(stream.spread);
    dt_free(stream.bound);
    for (size_t i = 0; i < BATCH; i++) /* rows that were not written because of a failure */
        dt__names_free(stream.passthrough[i], stream.keep.count);
    dt__names_free(stream.keep.items, stream.keep.count);
    dt__names_free(stream.names.items, stream.names.count);
    dt__json_free(&stream.json);
    dt__text_free(&stream.csv);
    cli_model_close(&model);
    return status;
}
