/* HDF5 files: the data sets x (rows, ...) and y, which data.x and data.y name, with numbers of any
 * type; also /feature_names and /label_names, if a file has them. Labels are whole numbers of any
 * type (also bool and float), texts, or one-hot rows. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/internal.h"
#include "base/limits.h"
#include "data/format.h"
#include "data/learned.h"
#include "data/shard_set.h"
#include "hdf5/read.h"
#include "table/columns_file.h"
#include "table/values.h"

#define LABEL DT__SHARD_GROUP "/label" /* only files of dtrain shard have it */
#define LABEL_NUMBERS DT__SHARD_GROUP "/label_numbers"
enum { MOST_ONE_HOT = 1 << 16 };

/* A data set: x or y. */
struct array {
    const struct dt__h5_item *item;
    uint64_t rows, items; /* items: values in a row */
};

struct reader {
    const struct dt_source *source;
    struct dt__h5_file *file;
    const char *path;
    struct array x, y;                /* y.item NULL: labels are not read */
    const struct dt__h5_item *weight; /* NULL: each is 1 */
    uint32_t *words;                  /* (DT__H5_LABELS, columns) a table's rows; else NULL */
    int32_t *classes;                 /* (rows) class of each row, if labels are texts; else NULL */
    double *labels;                   /* (DT__H5_LABELS, items) labels that are numbers; else
                                       * NULL */
    bool named;                       /* labels are positions in the file's list of classes */
    int32_t *shard_class;             /* (nshard_classes) class of each label of a shard; else
                                       * NULL */
    size_t nshard_classes;
};

/* ---- arrays --------------------------------------------------------------------------------- */

static dt_status array_find(const struct dt__h5_file *file, const char *key, const char *name,
                            struct array *out)
{
    char path[256], list[512] = "";
    size_t length = 0;
    const struct dt__h5_item *item;
    snprintf(path, sizeof path, "%s%s", *name == '/' ? "" : "/", name);
    if (dt__h5_has_array(file, path) || dt__h5_find(file, DT__H5_GROUP, path)) {
        DT_TRY(dt__h5_array(file, path, &item));
        *out = (struct array){item, item->dims[0], item->count / item->dims[0]};
        return DT_OK;
    }
    /* The message lists the data sets of the file, because data.x or data.y may be wrong. */
    for (size_t i = 0; (item = dt__h5_item_at(file, i)) && length + 64 < sizeof list; i++) {
        if (item->kind != DT__H5_ARRAY) continue;
        length += (size_t)snprintf(list + length, 48, "%s%.40s", length ? ", " : "", item->path);
        for (int d = 0; d < item->rank && length + 24 < sizeof list; d++)
            length +=
                (size_t)snprintf(list + length, 24, "%s%" PRIu64, d ? "x" : " ", item->dims[d]);
    }
    return dt_fail(DT_EFORMAT, "%s is missing; the file has %s (see %s)", path,
                   *list ? list : "no data sets", key);
}

/* Finds the data set x and, unless y_name is NULL, the data set y. */
static dt_status arrays_find(const struct dt__h5_file *file, const char *x_name, const char *y_name,
                             struct array *x, struct array *y)
{
    DT_TRY(array_find(file, "data.x", x_name, x));
    if (x->item->type == DT__H5_TEXT)
        return dt_fail(DT_EFORMAT, "%s holds texts, not numbers", x->item->path);
    return y_name ? array_find(file, "data.y", y_name, y) : DT_OK;
}

/* ---- labels --------------------------------------------------------------------------------- */

/* Returns the position of the only 1 in a row of zeros; -1: the row is not one-hot. */
static int32_t one_hot_class(const double *row, size_t n)
{
    int32_t class = -1;
    for (size_t i = 0; i < n; i++) {
        if (row[i] == 0) continue;
        if (row[i] != 1 || class >= 0) return -1;
        class = (int32_t)i;
    }
    return class;
}

/* Reads the list of a shard's classes, by their labels in the original data: numbers if the shard
 * stores these, else names. The labels in the shard are positions in this list. The list is empty
 * if the file is not a shard with classes. */
static dt_status shard_labels(struct dt__h5_file *file, struct dt__names *out)
{
    const struct dt__h5_item *array;
    char text[24];
    int64_t number;
    if (dt__h5_has_array(file, LABEL_NUMBERS)) {
        DT_TRY(dt__h5_array(file, LABEL_NUMBERS, &array));
        for (uint64_t i = 0; i < array->count; i++) {
            DT_TRY(dt__h5_read(file, array, i, 1, DT__H5_I64, &number));
            const int digits = snprintf(text, sizeof text, "%" PRId64, number);
            DT_TRY(dt__names_add(out, text, (size_t)digits));
        }
    } else if (dt__h5_has_array(file, LABEL) && dt__h5_has_array(file, "/label_names")) {
        DT_TRY(dt__h5_names(file, "/label_names", &out->items, &out->count));
    }
    return DT_OK;
}

/* Adds a label of a shard, which is a position in `names`, by its text in the original data. */
static dt_status shard_label_find(struct dt__labels *labels, const struct dt__names *names,
                                  int64_t label)
{
    int32_t class;
    DT_TRY(dt__class_check((int)names->count, label));
    const char *name = names->items[label];
    return dt__labels_add_text(labels, name, strlen(name), &class);
}

static dt_status labels_learn_texts(struct dt__survey *survey, struct dt__h5_file *file,
                                    const char *path)
{
    struct dt__names names = {0};
    DT_TRY(dt__h5_names(file, path, &names.items, &names.count));
    dt_status status = DT_OK;
    int32_t code;
    for (size_t i = 0; i < names.count && !status; i++) {
        status =
            dt__labels_add_text(&survey->labels, names.items[i], strlen(names.items[i]), &code);
        if (status) dt_fail_prefix(status, "%s: row %zu: ", path, i);
    }
    dt__names_free(names.items, names.count);
    return status;
}

static dt_status labels_learn(struct dt__survey *survey, struct dt__h5_file *file,
                              const struct array *x, const struct array *y)
{
    const bool texts = y->item->type == DT__H5_TEXT, one_hot = y->items > 1;
    const size_t items = (size_t)y->items;
    struct dt__names names = {0};
    double *rows;
    const bool transposed = x->items == y->rows || (x->items == y->items && y->rows == 1);
    if (y->rows != x->rows)
        return dt_fail(DT_EMISMATCH, "%s has %" PRIu64 " rows, %s has %" PRIu64 "%s", x->item->path,
                       x->rows, y->item->path, y->rows,
                       transposed
                           ? ": write both transposed, as MATLAB and R store dimensions in reverse"
                           : "");
    if (!survey->targets->classes && texts)
        return dt_fail(DT_EFORMAT, "%s holds texts, not numbers", y->item->path);
    if (!survey->targets->classes) return dt__survey_targets(survey, y->items);
    if (texts) return labels_learn_texts(survey, file, y->item->path);
    if (items > MOST_ONE_HOT)
        return dt_fail(DT_EFORMAT, "%s has %zu columns, too many classes", y->item->path, items);
    DT_TRY(dt__alloc(DT__H5_LABELS, items * sizeof *rows, "labels", &rows));
    dt_status status = one_hot ? dt__labels_add_width(&survey->labels, items) : DT_OK;
    if (!status && survey->known) status = shard_labels(file, &names);
    for (uint64_t row = 0, count; row < y->rows && !status; row += count) {
        count = y->rows - row < DT__H5_LABELS ? y->rows - row : DT__H5_LABELS;
        status = dt__stop_check();
        if (!status) status = dt__h5_read(file, y->item, row, count, DT__H5_F64, rows);
        for (uint64_t i = 0; i < count && !status; i++) {
            const double label = one_hot ? one_hot_class(rows + i * items, items) : rows[i];
            if (one_hot && label < 0)
                status = dt_fail(DT_EFORMAT, "expected class labels: one whole number a row, or "
                                             "a row with a single 1");
            else if (!isfinite(label)) /* not a target of model.task=regress either */
                status = dt_fail(DT_EFORMAT, "label %g is not a finite number", label);
            else if (label != rint(label) || fabs(label) > 1e15)
                status = dt_fail(DT_EFORMAT,
                                 "label %g is not a class number; model.task=regress "
                                 "learns such values",
                                 label);
            else
                status = names.count ? shard_label_find(&survey->labels, &names, (int64_t)label)
                                     : dt__labels_add_number(&survey->labels, (int64_t)label);
            if (status) dt_fail_prefix(status, "%s: row %" PRIu64 ": ", y->item->path, row + i);
        }
        dt__work_progress();
    }
    dt__names_free(names.items, names.count);
    dt_free(rows);
    return status;
}

/* ---- survey --------------------------------------------------------------------------------- */

/* Records the name of the label column that a shard stores. The schema gets the first file's name;
 * a later file must have the same name. Warns if evaluation data has another name than the
 * model. */
static dt_status label_learn(struct dt__survey *survey, const char *name)
{
    const char *before = survey->source->schema.label_column;
    if (!survey->known && !before) return dt__strdup(name, &survey->source->schema.label_column);
    if (!before || !strcmp(name, before)) return DT_OK;
    if (!survey->known)
        return dt_fail(DT_EMISMATCH, "the label is '%.60s', but in the earlier files '%.60s'", name,
                       before);
    dt__warn("the shards' label is '%.60s', but the model predicts '%.60s'", name, before);
    return DT_OK;
}

/* Stores in the schema the numbers that a shard has for its classes. The names of the classes must
 * have been added before. */
static dt_status label_numbers_learn(struct dt__survey *survey, struct dt__h5_file *file)
{
    static const char path[] = LABEL_NUMBERS;
    int64_t **numbers = &survey->source->schema.label_numbers;
    const struct dt__h5_item *array;
    const size_t count = survey->labels.texts.count;
    if (survey->known || *numbers || !dt__h5_has_array(file, path)) return DT_OK;
    DT_TRY(dt__h5_array(file, path, &array));
    if (array->rank != 1 || array->count != count || array->type != DT__H5_I64)
        return dt_fail(DT_EFORMAT, "%s: expected a number for each of %zu classes", path, count);
    DT_TRY(dt__alloc(count, sizeof **numbers, "labels", numbers));
    return dt__h5_read(file, array, 0, count, DT__H5_I64, *numbers);
}

/* Finds the weights of a shard's rows. */
static dt_status weights_find(const struct dt__h5_file *file, uint64_t rows,
                              const struct dt__h5_item **out)
{
    DT_TRY(dt__h5_array(file, DT__SHARD_WEIGHT, out));
    if ((*out)->type == DT__H5_F32 && (*out)->count == rows && (*out)->dims[0] == rows)
        return DT_OK;
    return dt_fail(DT_EFORMAT, "%s: expected the weights of %" PRIu64 " rows", (*out)->path, rows);
}

/* Checks that either all files have weights or none has any. */
static dt_status weights_learn(struct dt__survey *survey, const struct dt__h5_file *file,
                               const struct dt__file *entry)
{
    const struct dt__h5_item *weight;
    const bool has = dt__h5_has_array(file, DT__SHARD_WEIGHT);
    if (!survey->weighs) return DT_OK;
    if (has != survey->has_weights && entry != survey->source->files &&
        !*survey->config->data.weight)
        return dt_fail(DT_EMISMATCH, "has %s, unlike the earlier files",
                       has ? "weights" : "no weights");
    survey->has_weights |= has;
    return has ? weights_find(file, entry->rows, &weight) : DT_OK;
}

/* Adds the groups or, with `times`, the times of the file's rows, from the data set `name`. */
static dt_status keys_add(struct dt__survey *survey, struct dt__h5_file *file, bool times,
                          const char *name, uint64_t rows)
{
    struct dt__row_keys *keys = &survey->keys;
    struct dt__names texts = {0};
    struct array array;
    double values[256];
    const uint64_t most = sizeof values / sizeof *values;
    DT_TRY(array_find(file, times ? "data.time" : "data.group", name, &array));
    const bool text = array.item->type == DT__H5_TEXT;
    if (array.rows != rows || array.items != 1)
        return dt_fail(DT_EMISMATCH, "%s: expected one value for each of %" PRIu64 " rows",
                       array.item->path, rows);
    dt_status status = DT_OK;
    if (text) status = dt__h5_names(file, array.item->path, &texts.items, &texts.count);
    for (uint64_t row = 0; row < rows && !status; row++) {
        if (!text && row % most == 0)
            DT_TRY(dt__h5_read(file, array.item, row, rows - row < most ? rows - row : most,
                               DT__H5_F64, values));
        status = text ? dt__row_keys_add(keys, times, texts.items[row], strlen(texts.items[row]))
                      : dt__row_keys_add_number(keys, times, values[row % most]);
        if (status) dt_fail_prefix(status, "%s: row %" PRIu64 ": ", array.item->path, row);
    }
    dt__names_free(texts.items, texts.count);
    return status;
}

/* Adds the groups and times of the file's rows. They are in the shard, and need no configuration,
 * or in the data sets that data.group and data.time name. */
static dt_status keys_learn(struct dt__survey *survey, struct dt__h5_file *file,
                            const struct dt__file *entry)
{
    static const char *const stored[2] = {DT__SHARD_GROUPS, DT__SHARD_TIMES};
    const char *const named[2] = {survey->config->data.group, survey->config->data.time};
    static const char *const key[2] = {"data.group", "data.time"};
    struct dt__row_keys *keys = &survey->keys;
    bool *const collects[2] = {&keys->grouped, &keys->timed};
    for (int t = 0; t < 2; t++) {
        const bool has = dt__h5_has_array(file, stored[t]);
        if (has && survey->keyed && *named[t])
            return dt_fail(DT_EMISMATCH,
                           "%s: %s=%s: expected no value, because the shard has its own",
                           entry->path, key[t], named[t]);
        if (survey->keyed && entry == survey->source->files) *collects[t] |= has;
        if (*collects[t])
            DT_TRY(
                keys_add(survey, file, t, has || !*named[t] ? stored[t] : named[t], entry->rows));
    }
    return DT_OK;
}

/* Checks that the rows of a shard of a table fit its columns, and learns the kinds of their
 * values. */
static dt_status table_learn(struct dt__survey *survey, const struct dt__h5_file *file,
                             const struct array *x, const struct dt_schema *columns)
{
    struct dt_source *source = survey->source;
    const struct dt__h5_item *bytes = dt__h5_find(file, DT__H5_ATTRIBUTE, DT__SHARD_SMALL);
    int32_t are_bytes = 0;
    if (x->item->type != DT__H5_U32 || x->items != (uint64_t)columns->ncolumns)
        return dt_fail(DT_EFORMAT, "%s does not fit %s/columns", x->item->path, DT__SHARD_GROUP);
    if (survey->known && !source->schema.columns)
        return dt_fail(DT_EMISMATCH, "a shard of a table, but the model takes plain numbers");
    if (bytes && bytes->type == DT__H5_I32) memcpy(&are_bytes, bytes->data, sizeof are_bytes);
    survey->has_floats |= are_bytes != 1;
    for (int c = 0; c < columns->ncolumns; c++)
        survey->has_floats |= columns->columns[c].kind == DT_COLUMN_DATE;
    if (!survey->known) return DT_OK;
    source->most_entries = (uint64_t)dt__schema_categories(columns);
    source->entries += source->most_entries * x->rows;
    return DT_OK;
}

/* Adds to the survey the names of features, classes and label, and the columns, that a file
 * stores. */
static dt_status names_learn(struct dt__survey *survey, struct dt__h5_file *file,
                             const struct dt__file *entry, const struct array *x)
{
    const bool table = entry->format == DT__FORMAT_SHARD;
    struct dt__names features = {0}, labels = {0}, column = {0};
    struct dt_schema columns = {.features = table ? 0 : survey->source->schema.features};
    dt_status status;
    DT_GUARD(dt__columns_get(file, DT__SHARD_GROUP, &columns));
    if (table) DT_GUARD(table_learn(survey, file, x, &columns));
    if (columns.columns) DT_GUARD(dt__survey_columns(survey, &columns));
    if (table) DT_GUARD(dt__survey_features(survey, (uint64_t)columns.features));
    if (dt__h5_has_array(file, "/feature_names")) {
        DT_GUARD(dt__h5_names(file, "/feature_names", &features.items, &features.count));
        if (features.count != (size_t)columns.features)
            DT_GUARD(dt_fail(DT_EFORMAT, "/feature_names has %zu names for %d features",
                             features.count, columns.features));
        DT_GUARD(dt__survey_names(survey, &features));
    }
    if (dt__h5_has_array(file, LABEL)) {
        DT_GUARD(dt__h5_names(file, LABEL, &column.items, &column.count));
        DT_GUARD(label_learn(survey, column.count ? column.items[0] : ""));
    }
    const bool found =
        survey->known && (dt__h5_has_array(file, LABEL_NUMBERS) || dt__h5_has_array(file, LABEL));
    if (survey->targets->classes && !found && dt__h5_has_array(file, "/label_names")) {
        DT_GUARD(dt__h5_names(file, "/label_names", &labels.items, &labels.count));
        DT_GUARD(dt__labels_add_names(&survey->labels, labels.items, labels.count));
        status = label_numbers_learn(survey, file);
    }
done:
    columns.features = 0;
    dt__schema_free(&columns);
    dt__names_free(features.items, features.count);
    dt__names_free(labels.items, labels.count);
    dt__names_free(column.items, column.count);
    return status;
}

static dt_status hdf5_survey(struct dt__survey *survey, struct dt__file *out)
{
    const struct dt_config *config = survey->config;
    struct dt__h5_file *file;
    struct array x, y;
    dt_status status;
    DT_TRY(dt__h5_open(out->path, &file));
    const bool table = dt__h5_has_array(file, DT__SHARD_ROWS);
    const char *x_name = table ? DT__SHARD_ROWS : config->data.x;
    const char *y_name = survey->predicting ? NULL : table ? "/y" : config->data.y;
    if (table) out->format = DT__FORMAT_SHARD;
    DT_GUARD(arrays_find(file, x_name, y_name, &x, &y));
    if (!table) DT_GUARD(dt__survey_features(survey, x.items));
    survey->has_floats |= !table && x.item->type != DT__H5_U8;
    DT_GUARD(dt__survey_shape(survey, x.item->rank, x.item->dims));
    out->rows = x.rows;
    dt__labels_enter(&survey->labels, out->path);
    DT_GUARD(dt__strdup(x_name, &out->x_name));
    DT_GUARD(names_learn(survey, file, out, &x));
    DT_GUARD(weights_learn(survey, file, out));
    DT_GUARD(keys_learn(survey, file, out));
    if (!y_name) goto done;
    DT_GUARD(dt__strdup(y_name, &out->y_name));
    DT_GUARD(labels_learn(survey, file, &x, &y));
done:
    dt__h5_close(file);
    return dt__fail_path(status, out->path);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void hdf5_close(void *arg)
{
    struct reader *reader = arg;
    dt__h5_close(reader->file);
    dt_free(reader->words);
    dt_free(reader->classes);
    dt_free(reader->labels);
    dt_free(reader->shard_class);
    dt_free(reader);
}

/* Finds the model's class for each class of a shard; -1: the model has no such class. */
static dt_status shard_classes_find(struct reader *reader)
{
    const struct dt__classes *classes = &reader->source->classes;
    struct dt__names names = {0};
    dt_status status;
    DT_GUARD(shard_labels(reader->file, &names));
    if (!names.count) goto done;
    DT_GUARD(dt__alloc(names.count, sizeof *reader->shard_class, "labels", &reader->shard_class));
    reader->nshard_classes = names.count;
    for (size_t i = 0; i < names.count; i++)
        if (dt__class_of_text(classes, names.items[i], strlen(names.items[i]),
                              &reader->shard_class[i]))
            reader->shard_class[i] = -1;
done:
    dt__names_free(names.items, names.count);
    return status;
}

static dt_status hdf5_open(const struct dt_source *source, const struct dt__file *file, void **out)
{
    const struct dt__row_layout *layout = &source->layout;
    const bool table = file->format == DT__FORMAT_SHARD;
    const size_t items = table ? source->columns.count : (size_t)layout->features;
    struct dt__names texts = {0};
    struct reader *reader;
    struct array *x, *y;
    dt_status status;
    DT_TRY(dt__alloc(1, sizeof *reader, "reader", &reader));
    reader->source = source;
    reader->path = file->path;
    x = &reader->x, y = &reader->y;
    DT_GUARD(dt__h5_open(file->path, &reader->file));
    DT_GUARD(arrays_find(reader->file, file->x_name, file->y_name, x, y));
    if (x->rows != file->rows || x->items != items ||
        (y->item &&
         (y->rows != file->rows || (layout->targets && y->items != (uint64_t)layout->targets))))
        DT_GUARD(dt_fail(DT_EMISMATCH, "the file has changed since the survey"));
    if (table)
        DT_GUARD(dt__alloc(DT__H5_LABELS, items * sizeof *reader->words, "rows", &reader->words));
    if (layout->weights && dt__h5_has_array(reader->file, DT__SHARD_WEIGHT))
        DT_GUARD(weights_find(reader->file, file->rows, &reader->weight));
    reader->named = dt__h5_has_array(reader->file, "/label_names");
    const bool labels = y->item && !layout->targets;
    const bool text_labels = labels && y->item->type == DT__H5_TEXT;
    if (labels) DT_GUARD(shard_classes_find(reader));
    if (text_labels) { /* finds the class of every row now, not when rows are read */
        DT_GUARD(dt__h5_names(reader->file, y->item->path, &texts.items, &texts.count));
        DT_GUARD(dt__alloc(texts.count, sizeof *reader->classes, "labels", &reader->classes));
    }
    for (size_t i = 0; i < texts.count; i++)
        DT_GUARD(dt__class_of_text(&source->classes, texts.items[i], strlen(texts.items[i]),
                                   &reader->classes[i]));
    if (labels && !text_labels)
        DT_GUARD(dt__alloc(DT__H5_LABELS, (size_t)y->items * sizeof *reader->labels, "labels",
                           &reader->labels));
    *out = reader;
done:
    dt__names_free(texts.items, texts.count);
    if (status) hdf5_close(reader);
    return dt__fail_path(status, file->path);
}

/* Returns the class of a row whose label is numeric; -1: no class has this label. */
static int32_t row_class(const struct reader *reader, const double *row)
{
    const size_t items = (size_t)reader->y.items;
    const double label = items > 1 ? one_hot_class(row, items) : *row;
    int32_t class = -1;
    if (label != rint(label) || !(fabs(label) < 1e15)) return -1;
    if (reader->shard_class)
        return label >= 0 && label < (double)reader->nshard_classes
                   ? reader->shard_class[(size_t)label]
                   : -1;
    if (reader->named) return label >= 0 && label < INT32_MAX ? (int32_t)label : -1;
    (void)dt__class_of_number(&reader->source->classes, (int64_t)label, &class);
    return class;
}

/* Appends rows of words to a block, except their y and weight. Checks each word, because the file
 * may be damaged. */
static dt_status words_read(struct reader *reader, uint64_t row, size_t count,
                            struct dt__block *out)
{
    const struct dt_source *source = reader->source;
    const struct dt__columns *columns = &source->columns;
    const size_t n = columns->count;
    for (size_t done = 0, step; done < count; done += step) {
        step = count - done < DT__H5_LABELS ? count - done : DT__H5_LABELS;
        DT_TRY(
            dt__h5_read(reader->file, reader->x.item, row + done, step, DT__H5_U32, reader->words));
        for (size_t i = 0; i < step; i++) {
            dt_status status =
                dt__columns_check(columns, source->layout.bytes, reader->words + i * n);
            if (status)
                return dt_fail_prefix(status, "%s: row %" PRIu64 ": ", reader->path,
                                      row + done + i);
            DT_TRY(dt__table_row(columns, reader->words + i * n, n, &source->layout, out));
        }
    }
    return DT_OK;
}

static dt_status hdf5_read(void *arg, uint64_t row, size_t count, struct dt__block *out)
{
    struct reader *reader = arg;
    const struct dt__row_layout *layout = &reader->source->layout;
    const struct array *x = &reader->x, *y = &reader->y;
    const size_t first = out->rows;
    unsigned char *to = dt__block_y(layout, out, first);
    if (reader->words) {
        DT_TRY(words_read(reader, row, count, out));
    } else {
        DT_TRY(dt__h5_read(reader->file, x->item, row, count,
                           layout->bytes ? DT__H5_U8 : DT__H5_F32,
                           dt__block_x(layout, out, first)));
        dt__block_add(layout, out, count);
    }
    if (reader->weight)
        DT_TRY(
            dt__h5_read(reader->file, reader->weight, row, count, DT__H5_F32, out->weight + first));
    if (!y->item)
        memset(to, 0, count * dt__row_layout_y(layout));
    else if (reader->classes)
        memcpy(to, reader->classes + row, count * sizeof *reader->classes);
    else if (layout->targets)
        DT_TRY(dt__h5_read(reader->file, y->item, row, count, DT__H5_F32, to));
    for (size_t done = 0, step; reader->labels && done < count; done += step) {
        step = count - done < DT__H5_LABELS ? count - done : DT__H5_LABELS;
        DT_TRY(dt__h5_read(reader->file, y->item, row + done, step, DT__H5_F64, reader->labels));
        for (size_t i = 0; i < step; i++) {
            const int32_t class = row_class(reader, reader->labels + i * y->items);
            memcpy(to + (done + i) * sizeof class, &class, sizeof class);
        }
    }
    return DT_OK;
}

static uint64_t hdf5_held(const void *arg)
{
    const struct reader *reader = arg;
    return reader->x.item->cache + (reader->y.item ? reader->y.item->cache : 0);
}

/* Returns true if the file has a suffix of HDF5, or if `head` has the signature, at its start or
 * after a user block. */
static bool hdf5_is(const char *suffix, const unsigned char *head, size_t length)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    bool is = !strcasecmp(suffix, ".h5") || !strcasecmp(suffix, ".hdf5");
    for (size_t at = 0; at + 8 <= length; at = at ? at * 2 : 512)
        is |= !memcmp(head + at, signature, 8);
    return is;
}

const struct dt__format dt__format_hdf5 = {.name = "HDF5",
                                           .stores_columns = true,
                                           .is = hdf5_is,
                                           .survey = hdf5_survey,
                                           .open = hdf5_open,
                                           .read = hdf5_read,
                                           .close = hdf5_close,
                                           .held = hdf5_held};

/* Shards of tables: their rows are words. */
const struct dt__format dt__format_shard = {.name = "shards",
                                            .sparsity = DT__CATEGORIES,
                                            .stores_columns = true,
                                            .survey = hdf5_survey,
                                            .open = hdf5_open,
                                            .read = hdf5_read,
                                            .close = hdf5_close,
                                            .held = hdf5_held};
