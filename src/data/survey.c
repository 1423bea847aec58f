/* The survey: the bank counts the rows of all files, and checks them, once. Then statistics.c
 * learns from the values. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "data/formats.h"
#include "data/shard_set.h"
#include "data/statistics.h"

/* Rows are stored sparse beyond these limits. A gradient of sparse rows takes as long as one of
 * dense rows if 1/8 of the inputs are set, and half as long at 1/16 (measured: Zen 4, one core, 32
 * and 128 rows of 512 to 8192 inputs, first layers of 64 and 512; a linear model breaks even at
 * 1/12). With fewer inputs than MOST_DENSE both cost little (an estimate). */
enum { MOST_DENSE = 1024 /* features */, LEAST_SPARSE = 8 /* inputs for each one that is set */ };

/* The formats whose columns have names and kinds, one bit each. */
enum { TABLES = 1 << DT_FORMAT_CSV | 1 << DT_FORMAT_JSON };

/* ---- files ---------------------------------------------------------------------------------- */

static dt_status files_list(const struct dt_config *config, bool eval, struct dt_source *source)
{
    static const char *const keys[2] = {"data.train", "data.eval"};
    const char *const values[2] = {config->data.train, config->data.eval}, *key = keys[eval];
    struct dt__names lists[2] = {{0}, {0}}, *paths = &lists[eval], labels = {0};
    dt_status status;
    /* The files of the other key may be on another host, so errors are ignored. */
    (void)dt__paths_expand(keys[!eval], values[!eval], &lists[!eval]);
    DT_GUARD(dt__paths_expand(key, values[eval], paths));
    DT_GUARD(dt__paths_expand(eval ? "data.eval_labels" : "data.train_labels",
                              eval ? config->data.eval_labels : config->data.train_labels,
                              &labels));
    if (!paths->count) DT_GUARD(dt_fail(DT_EUSAGE, "%s: no files given", key));
    if (labels.count && labels.count != paths->count)
        DT_GUARD(dt_fail(DT_EMISMATCH, "%s: %zu files, but %zu label files", key, paths->count,
                         labels.count));
    DT_GUARD(dt__shards_check(lists, eval));
    DT_GUARD(dt__alloc(paths->count, sizeof *source->files, "files", &source->files));
    source->nfiles = paths->count;
    for (size_t i = 0; i < paths->count; i++) {
        source->files[i].path = paths->items[i];
        if (labels.count) source->files[i].labels = labels.items[i];
    }
    paths->count = labels.count = 0; /* the source owns the texts now */
done:
    for (int l = 0; l < 2; l++)
        dt__names_free(lists[l].items, lists[l].count);
    dt__names_free(labels.items, labels.count);
    return status;
}

bool dt__data_trains_on_table(const struct dt_config *config)
{
    struct dt__names paths = {0};
    int format = DT_FORMAT_AUTO;
    if (config->data.format) return TABLES >> config->data.format & 1;
    const bool none = dt__paths_expand("data.train", config->data.train, &paths) || !paths.count;
    const bool table = !none && !dt__format_detect(paths.items[0], &format) &&
                       (TABLES >> format & 1) && !*config->data.train_labels;
    dt__names_free(paths.items, paths.count);
    return table;
}

/* Measures the sizes of all files. Rejects a file that is listed twice, even under different names,
 * because its rows would count twice. */
static dt_status files_measure(struct dt__survey *survey, const char *key)
{
    struct dt_source *source = survey->source;
    struct dt__dict seen = {0};
    dt_status status = DT_OK;
    for (size_t i = 0; i < source->nfiles && !status; i++) {
        struct dt__file *file = &source->files[i];
        struct stat info = {0};
        uint32_t number;
        DT_GUARD(dt__file_measure(file, &file->bytes));
        survey->bytes += file->bytes;
        if (stat(file->path, &info))
            DT_GUARD(dt_fail(DT_EIO, "%s: %s", file->path, strerror(errno)));
        const uint64_t identity[2] = {(uint64_t)info.st_dev, (uint64_t)info.st_ino};
        DT_GUARD(dt__dict_add(&seen, (const char *)identity, sizeof identity, &number));
        if (number != i)
            status = dt_fail(DT_EMISMATCH, "%s: '%s' appears twice: it is the same file as '%s'",
                             key, file->path, source->files[number].path);
    }
done:
    dt__dict_free(&seen);
    return status;
}

/* Keys that influence training, but apply only to some formats. */
static const struct {
    const char *key;
    unsigned formats; /* one bit per format */
    const char *names;
    bool held_out; /* the key also applies to files of data.eval */
} KEYS[] = {{"data.header", 1u << DT_FORMAT_CSV, "CSV", true},
            {"data.label", TABLES, "CSV and JSON lines", true},
            {"data.ignore", TABLES, "CSV and JSON lines", true},
            {"data.weight", TABLES, "CSV and JSON lines", false},
            {"data.separator", 1u << DT_FORMAT_CSV, "CSV", true},
            {"data.unlabelled", TABLES, "CSV and JSON lines", true},
            {"data.decimal", 1u << DT_FORMAT_CSV, "CSV", true},
            {"data.missing", TABLES, "CSV and JSON lines", false},
            {"data.categories", TABLES, "CSV and JSON lines", false},
            {"data.dates", TABLES, "CSV and JSON lines", false},
            {"data.min_count", TABLES, "CSV and JSON lines", false},
            {"data.hash_bits", TABLES, "CSV and JSON lines", false},
            {"data.features", 1u << DT_FORMAT_LIBSVM, "LIBSVM", false},
            {"data.x", 1u << DT_FORMAT_HDF5, "HDF5", true},
            {"data.y", 1u << DT_FORMAT_HDF5, "HDF5", true}};

/* Returns the formats of the files of data.eval, one bit each. If they cannot be determined,
 * returns all bits. */
static unsigned formats_held_out(const struct dt_config *config)
{
    struct dt__names paths = {0};
    unsigned formats = 0;
    bool detected_all = !dt__paths_expand("data.eval", config->data.eval, &paths);
    for (size_t i = 0; detected_all && i < paths.count; i++) {
        int format = config->data.format;
        detected_all = format || !dt__format_detect(paths.items[i], &format);
        formats |= 1u << format;
    }
    dt__names_free(paths.items, paths.count);
    return detected_all ? formats : ~0u;
}

/* Checks, after the survey, that each key that is set applies to the data: a key without effect is
 * an error. Does not check rows in memory. */
static dt_status keys_check(const struct dt__survey *survey)
{
    const struct dt_source *source = survey->source;
    const unsigned held_out = formats_held_out(survey->config);
    unsigned trains = 0;
    if (source->files[0].format == DT__FORMAT_MEMORY) return DT_OK;
    for (size_t i = 0; i < source->nfiles; i++)
        trains |= 1u << source->files[i].format;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const unsigned taken = KEYS[i].held_out ? trains | held_out : trains;
        if (taken & KEYS[i].formats || !dt__config_is_changed(survey->config, KEYS[i].key))
            continue;
        return dt_fail(DT_EMISMATCH, "%s: applies only to %s, and the data is %s", KEYS[i].key,
                       KEYS[i].names, dt__formats[source->files[0].format]->name);
    }
    return DT_OK;
}

/* Adds the groups or, with `times`, the times of a data file's rows from a separate file. */
static dt_status keys_read_file(struct dt__survey *survey, size_t file, bool times)
{
    const struct dt_config *config = survey->config;
    const char *key = times ? "data.time" : "data.group";
    const size_t files = survey->source->nfiles;
    struct dt__names paths = {0};
    dt_status status =
        dt__paths_expand(key, times ? config->data.time : config->data.group, &paths);
    if (!status && paths.count != files)
        status = dt_fail(DT_EMISMATCH, "%s: %zu files for %zu data files", key, paths.count, files);
    if (!status)
        status = dt__row_keys_add_file(&survey->keys, times, paths.items[file],
                                       survey->source->files[file].rows);
    dt__names_free(paths.items, paths.count);
    return status;
}

static dt_status files_survey(struct dt__survey *survey)
{
    const struct dt_config *config = survey->config;
    struct dt_source *source = survey->source;
    for (size_t i = 0; i < source->nfiles; i++) {
        struct dt__file *file = &source->files[i];
        int detected;
        survey->labels.named_by_file = false;
        DT_TRY(dt__stop_check());
        if (config->test.slow_rank == 0) dt__sleep_secs(config->test.slow_secs);
        if (file->format != DT__FORMAT_MEMORY) {
            const bool pipe = dt__path_is_pipe(file->path);
            if (!file->bytes && !pipe)
                return dt_fail(DT_EFORMAT, "%s: the file is empty", file->path);
            DT_TRY(dt__format_detect(file->path, &detected));
            file->format = config->data.format ? config->data.format : detected;
            if (pipe && !dt__formats[file->format]->grammar)
                return dt_fail(DT_EIO,
                               "%s: a pipe: expected a file, or rows of CSV, JSON or LIBSVM",
                               file->path);
        }
        if (file->labels && !dt__formats[file->format]->labels_apart)
            return dt_fail(DT_EMISMATCH, "%s: %s data has no label files", file->path,
                           dt__formats[file->format]->name);
        const struct dt__format *const format = dt__formats[file->format];
        if (format->grammar) DT_TRY(dt__text_open(&survey->lines, file->path));
        const dt_status status = format->survey(survey, file);
        dt__lines_close(&survey->lines);
        DT_TRY(status);
        if (format->keys_apart && survey->keys.grouped) DT_TRY(keys_read_file(survey, i, false));
        if (format->keys_apart && survey->keys.timed) DT_TRY(keys_read_file(survey, i, true));
        dt__work_progress();
        file->raw = source->raw_rows;
        source->raw_rows += file->rows;
    }
    return dt__typed_flush(&source->typed);
}

/* ---- schema --------------------------------------------------------------------------------- */

/* Parses data.shape, which replaces the files' own shape. */
static dt_status shape_read(const char *text, int features, int shape[3])
{
    int read = -1, rest[3] = {0, 0, 1};
    if (!*text) return DT_OK;
    if (sscanf(text, "%9dx%9d%n", &rest[0], &rest[1], &read) == 2 && read > 0 && text[read])
        sscanf(text, "%*dx%*dx%9d%n", &rest[2], &read);
    bool good = read > 0 && !text[read] && rest[0] > 0 && rest[1] > 0 && rest[2] > 0 &&
                strspn(text, "x0123456789") == strlen(text);
    if (!good)
        return dt_fail(DT_EUSAGE, "data.shape=%s: expected HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS",
                       text);
    if ((int64_t)rest[0] * rest[1] > features || (int64_t)rest[0] * rest[1] * rest[2] != features)
        return dt_fail(DT_EMISMATCH, "data.shape=%s: a row has %d features", text, features);
    memcpy(shape, rest, sizeof rest);
    return DT_OK;
}

/* Returns true if the name of the label's column is also a class: the first row may then be data
 * that was taken for names. */
static bool label_is_a_class(const struct dt_schema *schema)
{
    for (int i = 0; schema->label_column && schema->label_names && i < schema->classes; i++)
        if (!strcmp(schema->label_column, schema->label_names[i])) return true;
    return false;
}

enum { SOME_ROWS = 20 };

static dt_status schema_learn(struct dt__survey *survey)
{
    struct dt_source *source = survey->source;
    struct dt_schema *schema = &source->schema;
    const bool table = source->columns.count; /* false: no columns, or those of shards */
    schema->task = survey->config->model.task;
    schema->scale = survey->config->data.scale;
    schema->clip = survey->config->data.clip;
    if (survey->config->data.normalize == DT_NORMALIZE_ROBUST && !(schema->clip > 0))
        schema->clip = DT__ROBUST_CLIP;
    schema->dense = source->entries ? 0 : schema->features;
    if (table && schema->columns)
        return dt_fail(DT_EMISMATCH,
                       "only other shards can be read together with shards of a table");
    /* a missing value is stored as NaN, even if it comes before the column's first number */
    for (size_t c = 0; c < source->columns.count; c++)
        survey->has_floats |= source->columns.items[c].kind != DT_COLUMN_CATEGORY &&
                              source->columns.items[c].missing > 0;
    if (table) DT_TRY(dt__columns_resolve(&source->columns, survey->config, schema));
    for (size_t i = 0; schema->columns && i < source->nfiles; i++) {
        const struct dt__format *format = dt__formats[source->files[i].format];
        if (table ? format->sparsity == DT__CATEGORIES : format->stores_columns) continue;
        return dt_fail(DT_EMISMATCH, "%s: only %s", source->files[i].path,
                       table ? "CSV or JSON lines can be read together with a table"
                             : "other shards can be read together with shards of a table");
    }
    DT_TRY(shape_read(survey->config->data.shape, schema->features, schema->shape));
    if (!survey->targets->classes && !schema->targets) schema->targets = 1;
    if (!survey->targets->classes) return DT_OK;
    DT_TRY(dt__labels_finish(&survey->labels, schema));
    if (schema->label_names && source->raw_rows > SOME_ROWS &&
        (uint64_t)schema->classes > source->raw_rows / 2)
        dt__warn("%d classes in %llu rows: nearly each row is a separate class; is this the "
                 "column to predict? (amounts are plain numbers, with model.task=regress)",
                 schema->classes, (unsigned long long)source->raw_rows);
    /* if any column has numbers or dates, texts above them must be names */
    if (survey->config->data.header == DT_HEADER_AUTO && table && !source->columns.numbers &&
        label_is_a_class(schema))
        dt__warn(
            "the label's column is named '%s', which is also a class: if the first row is data, "
            "set data.header=no",
            schema->label_column);
    return DT_OK;
}

/* Sets *odd to the first name that JSON cannot hold, unless *odd is already set. */
static void names_find_odd(char *const *names, int count, const char **odd)
{
    for (int i = 0; names && i < count && !*odd; i++) {
        json_t *text = names[i] ? json_string(names[i]) : NULL;
        if (names[i] && !text) *odd = names[i];
        json_decref(text);
    }
}

/* Warns about a name that JSON cannot hold, because predictions and requests are JSON. */
static void warn_of_encoding(const struct dt_schema *schema)
{
    const char *odd = NULL;
    names_find_odd(schema->label_names, schema->classes, &odd);
    if (!schema->columns) names_find_odd(schema->feature_names, schema->features, &odd);
    for (int c = 0; c < schema->ncolumns; c++) {
        names_find_odd(schema->columns[c].categories, schema->columns[c].ncategories, &odd);
        names_find_odd(&schema->columns[c].name, 1, &odd);
    }
    if (odd)
        dt__warn(
            "the text '%.40s' is not UTF-8: JSON, ONNX and pages write its bytes as \\xE9, and "
            "requests cannot name it; iconv -f LATIN1 -t UTF-8 converts a file",
            odd);
}

/* Assigns a class to each label code; codes are numbered in order of appearance. */
static dt_status label_classes(struct dt__survey *survey)
{
    struct dt_source *source = survey->source;
    const size_t codes = source->label_codes = dt__labels_codes(&survey->labels);
    if (!codes) return DT_OK;
    DT_TRY(dt__alloc(codes, sizeof *source->label_class, "labels", &source->label_class));
    for (size_t i = 0; i < codes; i++)
        DT_TRY(dt__labels_class(&survey->labels, &source->classes, i, &source->label_class[i]));
    return DT_OK;
}

/* Prepares reading shards of a table. Their rows are read like those of CSV, so the source needs
 * columns; a CSV file may have made them already. */
static dt_status shards_prepare(struct dt__survey *survey)
{
    struct dt_source *source = survey->source;
    bool any = false;
    for (size_t i = 0; i < source->nfiles; i++)
        any |= source->files[i].format == DT__FORMAT_SHARD;
    if (!any || source->columns.count) return DT_OK;
    return survey->known ? dt__columns_of_schema(&source->columns, &source->schema)
                         : dt__columns_of_shards(&source->columns, &source->schema);
}

static dt_status schema_make(struct dt__survey *survey)
{
    const struct dt_config *config = survey->config;
    struct dt_source *source = survey->source;
    struct dt_schema *schema = &source->schema;
    const bool normalize = config->data.normalize != DT_NORMALIZE_NONE;
    const char *whole = NULL; /* a file that cannot give sparse rows; NULL: none */
    if (!source->raw_rows) return dt_fail(DT_EFORMAT, "the files have no rows");
    for (size_t i = 0; i < source->nfiles; i++) {
        const enum dt__sparsity sparsity = dt__formats[source->files[i].format]->sparsity;
        bool fits = sparsity != DT__WHOLE;
        if (fits && survey->known && schema->dense < schema->features)
            fits = sparsity == (schema->columns ? DT__CATEGORIES : DT__SPARSE);
        if (!fits) whole = source->files[i].path;
    }
    if (survey->known)
        dt__columns_report_unknown(&source->columns,
                                   source->nfiles > 1 ? "evaluation data" : source->files->path,
                                   source->raw_rows);
    else
        DT_TRY(schema_learn(survey));
    DT_TRY(shards_prepare(survey));
    DT_TRY(dt__classes_init(&source->classes, schema, source->numbered));
    if (!survey->known) {
        warn_of_encoding(schema);
        DT_TRY(label_classes(survey));
        /* while columns were learned, categories did not count as entries */
        if (source->columns.count && schema->columns) {
            source->most_entries += (uint64_t)dt__schema_categories(schema);
            source->entries = source->most_entries * source->raw_rows;
        }
        /* Sparse rows pay off if rows have many features, few of which are set. */
        double set = (double)source->entries / (double)source->raw_rows;
        bool sparse = source->entries && schema->features > MOST_DENSE &&
                      (schema->dense + set) * LEAST_SPARSE < schema->features;
        if (config->model.embedding && schema->columns) sparse = source->entries > 0;
        /* pictures are never sparse */
        if (!sparse || whole || schema->shape[0]) schema->dense = schema->features;
    }
    if (whole && schema->dense < schema->features && schema->columns)
        return dt_fail(DT_EMISMATCH, "%s: the model takes the categories of a table: expected CSV",
                       whole);
    if (whole) schema->dense = schema->features;
    if (schema->dense > DT__MAX_FEATURES)
        return dt_fail(DT_EMISMATCH,
                       "data.features=%d: expected at most %d for rows that are not sparse",
                       schema->features, DT__MAX_FEATURES);
    source->layout = (struct dt__row_layout){.features = schema->features,
                                             .dense = schema->dense,
                                             .targets = schema->targets,
                                             .bytes = !survey->has_floats,
                                             .weights = survey->has_weights,
                                             .values = survey->has_values || normalize ||
                                                       schema->mean || schema->scale != 1};
    return DT_OK;
}

/* ---- the survey ----------------------------------------------------------------------------- */

/* Sets *out to the class of each row, if the split is stratified; else to NULL. */
static dt_status rows_classes(struct dt__survey *survey, uint32_t **out)
{
    const struct dt__labels *labels = &survey->labels;
    *out = NULL;
    if (!labels->keep_codes || survey->keys.grouped || survey->keys.timed) return DT_OK;
    DT_TRY(dt__alloc(labels->ncodes, sizeof **out, "classes of rows", out));
    for (size_t row = 0; row < labels->ncodes; row++) {
        const int32_t code = labels->codes[row], *class = survey->source->label_class;
        (*out)[row] = (uint32_t)(class ? class[code] : code);
    }
    return DT_OK;
}

/* Makes one split of the rows for each fold of a search. */
static dt_status folds_split(const struct dt_config *config, struct dt__split_rule rule,
                             const struct dt__split_keys *keys, struct dt_source *source)
{
    const size_t folds = (size_t)config->search.folds;
    rule.folds = folds;
    rule.key = "search.folds";
    DT_TRY(dt__alloc(folds, sizeof *source->fold, "folds", &source->fold));
    for (rule.fold = 0; rule.fold < folds; rule.fold++) {
        DT_TRY(dt__split_make(&rule, keys, &source->fold[rule.fold]));
        source->folds++;
    }
    return DT_OK;
}

/* Splits the rows, and counts those of the source's side. */
static dt_status rows_split(struct dt__survey *survey)
{
    const struct dt_config *config = survey->config;
    struct dt_source *source = survey->source;
    const struct dt__row_keys *by = &survey->keys;
    const int64_t seed = config->data.split_seed < 0 ? config->run.seed : config->data.split_seed;
    struct dt__split_rule rule = {.seed = (uint64_t)seed};
    uint32_t *classes;
    source->rows = source->raw_rows;
    DT_TRY(dt__row_keys_finish(&survey->keys));
    if (!survey->splits) return DT_OK;
    rule.test = config->data.test_fraction;
    rule.held_out = config->data.eval_fraction;
    rule.folds = (uint64_t)config->data.folds;
    rule.key = config->data.folds ? "data.folds" : "data.eval_fraction";
    rule.fold = (uint64_t)config->data.fold;
    (void)dt__config_gap(config, &rule.gap.size, &rule.gap.in_seconds);
    if (rule.gap.size > 0 && !by->timed)
        return dt_fail(DT_EUSAGE, "data.gap=%s: expected data.time as well", config->data.gap);
    DT_TRY(rows_classes(survey, &classes));
    const struct dt__split_keys keys = {.rows = source->raw_rows,
                                        .stratum = classes,
                                        .group = by->grouped ? by->group : NULL,
                                        .time = by->timed ? by->time : NULL};
    dt_status status = dt__split_make(&rule, &keys, &source->split);
    if (!status && config->search.folds) status = folds_split(config, rule, &keys, source);
    dt_free(classes);
    if (!status) source->rows = source->split.count[source->side];
    return status;
}

/* Surveys all files of the source, and learns from their rows. */
static dt_status survey_run(struct dt__survey *survey)
{
    DT_TRY(files_survey(survey));
    /* The keys of a resumed run were checked when the run started. */
    if (!survey->known) DT_TRY(keys_check(survey));
    DT_TRY(schema_make(survey));
    survey->source->takes_unknown = survey->labels.takes_unknown;
    survey->source->unknown = survey->labels.unknown;
    DT_TRY(rows_split(survey));
    return dt__statistics_learn(survey);
}

static dt_status survey_init(struct dt__survey *survey, const struct dt_config *config,
                             bool training, const struct dt_schema *known)
{
    *survey = (struct dt__survey){.config = config,
                                  .known = known,
                                  .training = training,
                                  .targets = dt__targets_of(config->model.task, config->train.loss),
                                  .weighs = training,
                                  .has_weights = *config->data.weight && training};
    if (known && known->task != config->model.task)
        return dt_fail(DT_EMISMATCH, "model.task differs from that of the model");
    DT_TRY(dt__alloc(1, sizeof *survey->source, "survey", &survey->source));
    survey->source->typed.fd = -1;
    survey->source->memory = (uint64_t)config->data.memory_mb << 20;
    survey->source->numbered = *config->data.class_names;
    if (known) DT_TRY(dt__schema_copy(known, &survey->source->schema));
    return dt__labels_init(&survey->labels, known ? &survey->source->schema : NULL, config);
}

/* Makes the survey collect groups and times of the rows of data.train, to split them. The source
 * gets the rows of `side` or, with `shards`, all rows with their groups and times. */
static void survey_split(struct dt__survey *survey, enum dt__side side, bool shards)
{
    const struct dt_config *config = survey->config;
    survey->source->side = side;
    survey->splits = !shards && (dt__config_holds_out(config) || config->data.test_fraction > 0 ||
                                 config->search.folds > 0);
    survey->keyed = survey->splits || shards;
    survey->keys.grouped = survey->keyed && *config->data.group;
    survey->keys.timed = survey->keyed && *config->data.time;
    survey->labels.keep_codes = survey->splits && config->data.stratify &&
                                survey->targets->classes && !survey->keys.grouped &&
                                !survey->keys.timed;
}

/* Frees the survey. If `status` is DT_OK, moves its source to *out; else frees the source, too. */
static dt_status survey_end(struct dt__survey *survey, dt_status status, struct dt_source **out)
{
    dt__labels_free(&survey->labels);
    dt__row_keys_free(&survey->keys);
    for (size_t i = 0; i < sizeof survey->key_columns / sizeof *survey->key_columns; i++)
        dt_free(survey->key_columns[i]);
    if (status)
        dt__source_destroy(survey->source);
    else
        *out = survey->source;
    return status;
}

dt_status dt__source_survey(const struct dt_config *config, enum dt_part part,
                            const struct dt_schema *known, struct dt_source **out)
{
    static const enum dt__side sides[] = {[DT_PART_EVAL] = DT__HELD_OUT,
                                          [DT_PART_PREDICT] = DT__HELD_OUT,
                                          [DT_PART_TEST] = DT__TEST,
                                          [DT_PART_TRAIN] = DT__TRAIN,
                                          [DT_PART_SHARDS] = DT__TRAIN};
    const bool shards = part == DT_PART_SHARDS, training = shards || part == DT_PART_TRAIN;
    const bool test = part == DT_PART_TEST;
    const bool files = !training && !test && *config->data.eval;
    struct dt__survey survey;
    *out = NULL;
    if (!training && !files &&
        !(test ? config->data.test_fraction > 0 : dt__config_holds_out(config)))
        return DT_OK;
    if (*config->data.eval && dt__config_holds_out(config))
        return dt_fail(DT_EUSAGE, "data.eval and data.eval_fraction: expected at most one of them");
    dt_status status = survey_init(&survey, config, training, known);
    survey.predicting = part == DT_PART_PREDICT;
    survey.labels.takes_unknown = part == DT_PART_ALSO;
    if ((part == DT_PART_EVAL || part == DT_PART_ALSO || test) && config->eval.weighted) {
        survey.weighs = true;
        survey.has_weights = *config->data.weight;
    }
    if (!status && !files) survey_split(&survey, sides[part], shards);
    if (!status) status = files_list(config, files, survey.source);
    if (!status) status = files_measure(&survey, files ? "data.eval" : "data.train");
    if (!status) status = survey_run(&survey);
    if (!status && shards) { /* the source keeps the keys for dt__shard_write */
        survey.source->keys = survey.keys;
        survey.keys = (struct dt__row_keys){0};
    }
    return survey_end(&survey, status, out);
}

dt_status dt__source_from_arrays(const struct dt_config *config, const struct dt_arrays *arrays,
                                 const struct dt_schema *known, struct dt_source **out)
{
    struct dt__survey survey;
    *out = NULL;
    if (!arrays->x || !arrays->rows || arrays->features < 1)
        return dt_fail(DT_EUSAGE, "rows in memory: no rows, or no features");
    dt_status status = survey_init(&survey, config, !known, known);
    struct dt_source *source = survey.source;
    if (!status) status = dt__alloc(1, sizeof *source->files, "files", &source->files);
    if (!status) {
        source->nfiles = 1;
        source->files[0].format = DT__FORMAT_MEMORY;
        source->files[0].arrays = *arrays;
        survey.has_weights = arrays->weight && (!known || config->eval.weighted);
        status = dt__strdup("rows in memory", &source->files[0].path);
    }
    if (!status && !known) survey_split(&survey, DT__TRAIN, false);
    if (!status) status = survey_run(&survey);
    return survey_end(&survey, status, out);
}
