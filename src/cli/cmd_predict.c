/* `dtrain predict`: a record for each row of standard input, or of files, in their order: JSON or
 * a line of CSV.
 *
 * Rows wait until a batch is full or input pauses; then they are predicted together. A row that
 * cannot be read or predicted gives a record of its line and error, behind the rows before it, and
 * the exit code at the end. */
#include <string.h>

#include "cli/cli.h"
#include "data/json_rows.h"
#include "dtrain/report.h"

enum { BATCH = DT_EVAL_CHUNK };

struct stream {
    struct dt_predictor *predictor;
    size_t nin, width;       /* numbers in a row and in its answer */
    struct dt_inputs inputs; /* rows that wait */
    size_t count;            /* of them */
    uint64_t line[BATCH];    /* of each, */
    size_t instance[BATCH];  /* its number among the rows of that line, */
    char **kept[BATCH];      /* and (keep) what stands in columns to keep; NULL: nothing */
    struct dt__names keep;   /* of predict.keep */
    float *answers;          /* (BATCH, width) */
    int32_t classes[BATCH];
    struct dt_json json;         /* the record under way */
    struct dt_text csv, scratch; /* the same as a line of CSV; empty: no header has been written */
    bool as_csv;
    const struct dt_batch *rows; /* the rows of the answers, if they come from files */
    bool target;                 /* records have that of the row as well, */
    float *features;             /* (nin) and these; NULL: not */
    uint64_t good, bad;
};

/* ---- records -------------------------------------------------------------------------------- */

static dt_status line_write(const char *text)
{
    return puts(text) < 0 ? dt_fail(DT_EIO, "standard output: cannot write") : DT_OK;
}

/* What number i of a list stands for; NULL: it has no name. */
static const char *element_name(const struct dt_predictor *predictor, const char *list,
                                size_t length, int i)
{
    if (!strncmp(list, "features", length)) return dt_predictor_feature_name(predictor, i);
    if (strncmp(list, predictor->answer, length) || i >= predictor->classes) return NULL;
    return dt_predictor_class_name(predictor, i);
}

/* Makes a line of the record: of its members' names, or of their values. A list has a column an
 * element, which is numbered, or named by its class or feature; an error has the last column. */
static dt_status csv_make(struct stream *stream, bool names, const char *error)
{
    struct dt__json json = {stream->json.text.data + 1, NULL};
    struct dt_text *line = &stream->csv;
    struct dt__cell name, value;
    json.end = json.at + stream->json.text.length - 1;
    line->length = 0;
    while (dt__json_peek(&json) != '}') {
        char title[DT_ERROR_MAX];
        DT_TRY(dt__json_text(&json, &stream->scratch, &name));
        snprintf(title, sizeof title, "%.*s", (int)name.length, name.text);
        const size_t length = strlen(title);
        const bool list = dt__json_peek(&json) == '[';
        json.at += list;
        for (int i = 0; i == 0 || (list && dt__json_peek(&json) != ']'); i++) {
            const char *of = list ? element_name(stream->predictor, title, length, i) : NULL;
            const bool text = dt__json_peek(&json) == '"';
            value.text = (char *)json.at;
            if (text) DT_TRY(dt__json_text(&json, &stream->scratch, &value));
            if (!text) dt__json_skip(&json);
            if (!text) value.length = (size_t)(json.at - value.text);
            if (of) snprintf(title + length, sizeof title - length, " %s", of);
            if (list && !of) snprintf(title + length, sizeof title - length, " %d", i);
            if (names) value = (struct dt__cell){title, strlen(title)};
            if (error) value.length = 0;
            DT_TRY(cli_csv_add(line, value.text, value.length));
            DT_TRY(dt_text_append(line, ",", 1));
        }
        json.at += list;
    }
    if (names) error = "error";
    return cli_csv_add(line, error ? error : "", error ? strlen(error) : 0);
}

/* What is said of a row. */
static dt_status record_make(struct stream *stream, size_t row)
{
    struct dt_json *json = &stream->json;
    const struct dt_batch *rows = stream->rows;
    const float *answer = stream->answers + row * stream->width;
    const size_t targets = (size_t)stream->predictor->file.schema.targets;
    dt_json_begin(json);
    for (size_t k = 0; k < stream->keep.count; k++)
        dt_json_text(json, stream->keep.items[k], stream->kept[row] ? stream->kept[row][k] : "");
    if (stream->predictor->classes) {
        int class_number = stream->classes[row];
        const char *name = dt_predictor_class_name(stream->predictor, class_number);
        dt_json_int(json, "class", class_number);
        if (name) dt_json_text(json, "label", name);
    }
    if (stream->width == 1)
        dt_json_float(json, "value", *answer);
    else
        dt_json_floats(json, stream->predictor->answer, answer, stream->width);
    if (stream->target && rows->label)
        dt_json_int(json, "target", rows->label[row]);
    else if (stream->target && targets == 1)
        dt_json_float(json, "target", rows->target[row]);
    else if (stream->target)
        dt_json_floats(json, "target", rows->target + row * targets, targets);
    if (stream->features) { /* all of them, those that are 0 in a sparse row too */
        const size_t ndense = (size_t)rows->ndense;
        for (size_t i = 0; i < stream->nin; i++)
            stream->features[i] = i < ndense ? rows->x[row * ndense + i] : 0;
        for (uint64_t e = rows->offsets ? rows->offsets[row] : 0;
             rows->offsets && e < rows->offsets[row + 1]; e++)
            stream->features[rows->index[e]] = rows->value ? rows->value[e] : 1;
        dt_json_floats(json, "features", stream->features, stream->nin);
    }
    return dt_json_end(json);
}

/* The header: any row's record has the names. */
static dt_status header_write(struct stream *stream)
{
    if (!stream->as_csv || stream->csv.length) return DT_OK;
    DT_TRY(record_make(stream, 0));
    DT_TRY(csv_make(stream, true, NULL));
    return line_write(stream->csv.data);
}

/* place: "line" of standard input, or "row" of files. */
static dt_status stream_write_error(struct stream *stream, const char *place, uint64_t number,
                                    const char *error)
{
    char text[DT_ERROR_MAX + 64];
    stream->bad++;
    if (stream->as_csv) {
        snprintf(text, sizeof text, "%s %llu: %s", place, (unsigned long long)number, error);
        DT_TRY(header_write(stream));
        DT_TRY(record_make(stream, 0));
        DT_TRY(csv_make(stream, false, text));
        return line_write(stream->csv.data);
    }
    dt_json_begin(&stream->json);
    dt_json_int(&stream->json, place, (int64_t)number);
    dt_json_text(&stream->json, "error", error);
    DT_TRY(dt_json_end(&stream->json));
    return line_write(stream->json.text.data);
}

static dt_status stream_write_row(struct stream *stream, size_t row)
{
    const float *answer = stream->answers + row * stream->width;
    if (dt_predictor_check(stream->predictor, answer)) {
        if (stream->rows)
            return stream_write_error(stream, "row", stream->good + stream->bad, dt_error_text());
        if (stream->instance[row])
            dt_fail_prefix(DT_EFORMAT, "instance %zu: ", stream->instance[row]);
        return stream_write_error(stream, "line", stream->line[row], dt_error_text());
    }
    stream->good++;
    DT_TRY(header_write(stream));
    DT_TRY(record_make(stream, row));
    if (stream->as_csv) DT_TRY(csv_make(stream, false, NULL));
    return line_write(stream->as_csv ? stream->csv.data : stream->json.text.data);
}

/* At most BATCH rows. */
static dt_status stream_write_rows(struct stream *stream, size_t count)
{
    dt_status status = DT_OK;
    for (size_t i = 0; i < count; i++) {
        if (!status) status = stream_write_row(stream, i);
        dt__names_free(stream->kept[i], stream->keep.count);
        stream->kept[i] = NULL;
    }
    return status;
}

static dt_status stream_flush(struct stream *stream)
{
    const size_t count = stream->count;
    stream->count = 0;
    DT_TRY(dt_predictor_inputs(stream->predictor, &stream->inputs, count, stream->answers,
                               stream->classes));
    return stream_write_rows(stream, count);
}

/* ---- rows from standard input --------------------------------------------------------------- */

/* Rows that wait are answered as soon as input pauses: no answer waits for rows that have not
 * come. */
static dt_status stream_input(struct stream *stream, const struct cli_model *model)
{
    char error[DT_ERROR_MAX];
    struct dt_rows *rows;
    uint64_t line, before = 0;
    size_t instance = 0;
    dt_status status = DT_OK;
    const size_t room = stream->predictor->chunk;
    DT_TRY(dt_inputs_reserve(&stream->inputs, stream->predictor, room));
    DT_TRY(dt_rows_open(stdin, "standard input", &model->predictor->file.schema, &model->config,
                        &rows));
    DT_GUARD(dt_rows_keep(rows, model->config.predict.keep));
    for (bool end = false; !status && !end;) {
        const bool ready = dt_rows_ready(rows);
        if (!ready || stream->count == room) DT_GUARD(stream_flush(stream));
        if (!ready && fflush(stdout)) DT_GUARD(dt_fail(DT_EIO, "standard output: cannot write"));
        status =
            dt_inputs_read(&stream->inputs, stream->count, stream->predictor, rows, &line, &end);
        instance = line == before ? instance + 1 : 0;
        before = line;
        if (!status && !end) {
            stream->line[stream->count] = line;
            stream->kept[stream->count] = dt_rows_take_kept(rows);
            stream->instance[stream->count++] = instance;
        }
        if (status == DT_EMISMATCH)
            status = dt_fail_prefix(status, "standard input:%llu: ", (unsigned long long)line);
        if (status != DT_EFORMAT) continue;
        snprintf(error, sizeof error, "%s", dt_error_text());
        DT_GUARD(stream_flush(stream));
        status = stream_write_error(stream, "line", line, error);
    }
    if (!status) status = stream_flush(stream);
done:
    dt_rows_close(rows);
    return status;
}

/* ---- rows from files ------------------------------------------------------------------------ */

static dt_status stream_files(struct stream *stream, const struct cli_model *model)
{
    struct dt_source *source = NULL;
    struct dt_table *table = NULL;
    struct dt_batch batch;
    dt_status status;
    DT_GUARD(cli_model_survey(model, &source));
    uint64_t rows = dt_source_rows(source);
    DT_GUARD(dt_table_create(&model->config, source, 0, rows, &table));
    for (uint64_t at = 0; at < rows; at += BATCH) {
        int count = rows - at < BATCH ? (int)(rows - at) : BATCH;
        DT_GUARD(dt_table_read(table, at, count, &batch));
        stream->rows = &batch; /* cppcheck-suppress autoVariables ; until this returns */
        DT_GUARD(dt_predictor_batch(stream->predictor, &batch, stream->answers, stream->classes));
        DT_GUARD(stream_write_rows(stream, (size_t)count));
    }
done:
    stream->rows = NULL;
    dt_table_destroy(table);
    dt_source_destroy(source);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

dt_status cmd_predict(int argc, char **argv)
{
    struct cli_model model;
    struct stream stream = {0};
    DT_TRY(cli_model_open(&model, argc, argv));
    stream.predictor = model.predictor;
    stream.nin = model.predictor->features;
    stream.width = model.predictor->width;
    dt_status status = dt_alloc(stream.width, BATCH * sizeof(float), "answers", &stream.answers);
    const bool features = model.config.predict.features;
    if (!status && features) status = dt_alloc(stream.nin, sizeof(float), "row", &stream.features);
    bool files = dt_config_is_given(&model.config, "data.eval") || model.config.predict.held_out;
    stream.target = model.config.predict.target;
    if (!status && !files && (stream.target || features))
        status = dt_fail(DT_EUSAGE,
                         "predict.%s goes with rows of files: expected "
                         "data.eval=FILES or predict.held_out=yes",
                         stream.target ? "target" : "features");
    if (!status && files && *model.config.predict.keep)
        status = dt_fail(DT_EUSAGE, "predict.keep goes with rows of standard input");
    if (!status) status = dt__names_split(model.config.predict.keep, &stream.keep);
    stream.as_csv = model.config.predict.format == DT_PREDICT_CSV;
    if (!status) status = files ? stream_files(&stream, &model) : stream_input(&stream, &model);
    if (!status && stream.bad)
        status =
            dt_fail(DT_EFORMAT, "%llu of %llu rows could not be predicted",
                    (unsigned long long)stream.bad, (unsigned long long)(stream.bad + stream.good));
    dt_inputs_free(&stream.inputs);
    dt_free(stream.features);
    dt_free(stream.answers);
    dt__names_free(stream.keep.items, stream.keep.count);
    dt_json_free(&stream.json);
    dt_text_free(&stream.csv);
    dt_text_free(&stream.scratch);
    cli_model_close(&model);
    return status;
}
