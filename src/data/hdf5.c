/* HDF5 files: /x (S, ...) and /y (S) or (S, k). */
#include <hdf5.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "data/h5.h"
#include "data/reader.h"

enum { BLOCK = 1024 };

/* One of the two data sets. */
struct array {
    struct dt__h5_dataset set;
    hid_t space;
    uint64_t rows, items;
};

struct reader {
    const struct dt_source *source;
    const char *path;
    hid_t file;
    struct array x, y;
};

/* ---- arrays --------------------------------------------------------------------------------- */

static void close_array(struct array *array)
{
    if (array->space >= 0) H5Sclose(array->space);
    dt__h5_dataset_close(&array->set);
    array->space = -1;
}

static dt_status check_array(const struct array *array, const char *name)
{
    if (H5Tget_class(array->set.type) == H5T_STRING)
        return dt_fail(DT_EFORMAT, "%s holds texts, not numbers", name);
    if (!array->rows || !array->items) return dt_fail(DT_EFORMAT, "%s is empty", name);
    if (!dt__h5_is_stored(&array->set))
        return dt_fail(DT_EFORMAT, "%s is not all in the file", name);
    return DT_OK;
}

static dt_status open_array(hid_t file, const char *name, struct array *out)
{
    struct array array = {.space = -1};
    DT_TRY(dt__h5_dataset_open(file, name, &array.set));
    array.rows = array.set.dims[0];
    array.items = 1;
    for (int i = 1; i < array.set.rank; i++)
        array.items *= array.set.dims[i]; /* the data set's bytes have been counted */
    dt_status status = check_array(&array, name);
    if (!status) array.space = H5Dget_space(array.set.id);
    if (!status && array.space < 0) status = dt__h5_fail(DT_EFORMAT, "%s has no space", name);
    if (status)
        close_array(&array);
    else
        *out = array;
    return status;
}

/* Rows [row, row + count), converted to `type`. */
static dt_status read_array(struct array *array, uint64_t row, size_t count, hid_t type, void *out)
{
    hsize_t start[DT__H5_MAX_RANK] = {row}, extent[DT__H5_MAX_RANK];
    memcpy(extent, array->set.dims, sizeof extent);
    extent[0] = count;
    hid_t memory = H5Screate_simple(array->set.rank, extent, NULL);
    bool good = memory >= 0 &&
                H5Sselect_hyperslab(array->space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0 &&
                H5Dread(array->set.id, type, memory, array->space, H5P_DEFAULT, out) >= 0;
    if (memory >= 0) H5Sclose(memory);
    return good ? DT_OK : dt__h5_fail(DT_EIO, "rows from %" PRIu64 " cannot be read", row);
}

static bool is_integer(const struct array *array)
{
    return H5Tget_class(array->set.type) == H5T_INTEGER;
}

static bool is_byte(const struct array *array)
{
    return is_integer(array) && H5Tget_size(array->set.type) == 1 &&
           H5Tget_sign(array->set.type) == H5T_SGN_NONE;
}

/* ---- survey --------------------------------------------------------------------------------- */

static dt_status learn_names(struct dt__survey *survey, hid_t file)
{
    struct dt__names features = {0}, labels = {0};
    dt_status status = DT_OK;
    if (dt__h5_exists(file, "/feature_names")) {
        DT_GUARD(dt__h5_names_get(file, "/feature_names", &features));
        if (features.count != (size_t)survey->features)
            status = dt_fail(DT_EFORMAT, "/feature_names has %zu names for %d features",
                             features.count, survey->features);
        if (!status) status = dt__survey_names(survey, &features);
    }
    if (!status && survey->task == DT_CLASSIFY && dt__h5_exists(file, "/label_names")) {
        DT_GUARD(dt__h5_names_get(file, "/label_names", &labels));
        status = dt__labels_add_names(&survey->labels, labels.items, labels.count);
    }
done:
    dt__names_free(features.items, features.count);
    dt__names_free(labels.items, labels.count);
    return status;
}

static dt_status learn_labels(struct dt__survey *survey, struct array *y)
{
    int64_t labels[BLOCK];
    for (uint64_t row = 0, count; row < y->rows; row += count) {
        count = y->rows - row < BLOCK ? y->rows - row : BLOCK;
        DT_TRY(read_array(y, row, (size_t)count, H5T_NATIVE_INT64, labels));
        for (uint64_t i = 0; i < count; i++) {
            dt_status status = dt__labels_add_number(&survey->labels, labels[i]);
            if (status) return dt_fail_prefix(status, "/y: row %" PRIu64 ": ", row + i);
        }
    }
    return DT_OK;
}

static dt_status learn_y(struct dt__survey *survey, struct array *x, struct array *y)
{
    if (y->rows != x->rows)
        return dt_fail(DT_EMISMATCH, "/x has %" PRIu64 " rows, /y has %" PRIu64, x->rows, y->rows);
    if (survey->task == DT_REGRESS) return dt__survey_targets(survey, y->items);
    if (y->items != 1 || !is_integer(y))
        return dt_fail(DT_EFORMAT, "/y: class labels are one integer a row");
    return learn_labels(survey, y);
}

static dt_status learn_arrays(struct dt__survey *survey, hid_t file, struct dt__file *out)
{
    struct array x = {.space = -1}, y = {.space = -1};
    DT_TRY(open_array(file, "/x", &x));
    dt_status status = open_array(file, "/y", &y);
    if (!status) status = dt__survey_features(survey, x.items);
    if (status) goto done;
    survey->floats |= !is_byte(&x);
    out->rows = x.rows;
    DT_GUARD(learn_names(survey, file));
    DT_GUARD(learn_y(survey, &x, &y));
done:
    close_array(&x);
    if (y.space >= 0) close_array(&y);
    return status;
}

static dt_status survey_file(struct dt__survey *survey, struct dt__file *file)
{
    hid_t id;
    DT_TRY(dt__h5_file_open(file->path, &id));
    dt_status status = learn_arrays(survey, id, file);
    if (status) dt_fail_prefix(status, "%s: ", file->path);
    H5Fclose(id);
    return status;
}

static bool claims(const char *path, unsigned char *head, size_t length)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    const char *dot = strrchr(path, '.');
    for (size_t at = 0; at + 8 <= length; at = at ? at * 2 : 512)
        if (!memcmp(head + at, signature, 8)) return true;
    return dot && (!strcasecmp(dot, ".h5") || !strcasecmp(dot, ".hdf5"));
}

/* ---- reading -------------------------------------------------------------------------------- */

static void close_file(void *arg)
{
    struct reader *reader = arg;
    if (reader->x.space >= 0) close_array(&reader->x);
    if (reader->y.space >= 0) close_array(&reader->y);
    if (reader->file >= 0) H5Fclose(reader->file);
    dt_free(reader);
}

static dt_status open_arrays(struct reader *reader, const struct dt__file *file)
{
    const struct dt__layout *layout = &reader->source->layout;
    uint64_t items = (uint64_t)(layout->targets ? layout->targets : 1);
    DT_TRY(open_array(reader->file, "/x", &reader->x));
    DT_TRY(open_array(reader->file, "/y", &reader->y));
    if (reader->x.rows != file->rows || reader->x.items != (uint64_t)layout->features ||
        reader->y.rows != file->rows || reader->y.items != items)
        return dt_fail(DT_EMISMATCH, "the file has changed since the survey");
    return DT_OK;
}

static dt_status open_file(const struct dt_source *source, const struct dt__file *file, bool random,
                           void **out)
{
    (void)random;
    struct reader *reader;
    DT_TRY(dt_alloc(1, sizeof *reader, "reader", &reader));
    *reader = (struct reader){source, file->path, -1, {.space = -1}, {.space = -1}};
    dt_status status = dt__h5_file_open(file->path, &reader->file);
    if (!status && (status = open_arrays(reader, file)) != DT_OK)
        dt_fail_prefix(status, "%s: ", file->path);
    if (status)
        close_file(reader);
    else
        *out = reader;
    return status;
}

static dt_status read_file(void *arg, uint64_t row, size_t count, struct dt__block out)
{
    struct reader *reader = arg;
    const struct dt__layout *layout = &reader->source->layout;
    hid_t x_type = layout->bytes ? H5T_NATIVE_UINT8 : H5T_NATIVE_FLOAT;
    hid_t y_type = layout->targets ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT32;
    dt_status status = read_array(&reader->x, row, count, x_type, out.x);
    if (!status) status = read_array(&reader->y, row, count, y_type, out.y);
    return status ? dt_fail_prefix(status, "%s: ", reader->path) : DT_OK;
}

const struct dt__format dt__format_hdf5 = {"HDF5",    claims,    survey_file,
                                           open_file, read_file, close_file};
