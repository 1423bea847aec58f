#include "state/array.h"

#include <string.h>

#include "data/h5.h"

static const size_t ELEMENT_SIZE[] = {sizeof(float), sizeof(double), sizeof(uint64_t)};

static hid_t stored_type(enum dt__element element)
{
    if (element == DT__F32) return H5T_IEEE_F32LE;
    return element == DT__F64 ? H5T_IEEE_F64LE : H5T_STD_U64LE;
}

static hid_t held_type(enum dt__element element)
{
    if (element == DT__F32) return H5T_NATIVE_FLOAT;
    return element == DT__F64 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_UINT64;
}

static int rank_of(struct dt__array array)
{
    return array.columns ? 2 : 1;
}

/* ---- writing -------------------------------------------------------------------------------- */

dt_status dt__group_put(hid_t file, const char *path)
{
    hid_t group = -1, plist = H5Pcreate(H5P_GROUP_CREATE);
    if (plist >= 0 && H5Pset_obj_track_times(plist, false) >= 0)
        group = H5Gcreate2(file, path, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (plist >= 0) H5Pclose(plist);
    if (group < 0 || H5Gclose(group) < 0) return dt__h5_fail(DT_EIO, "cannot make group %s", path);
    return DT_OK;
}

/* Contiguous, without times, and not filled before it is written. */
static hid_t plain_plist(void)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    if (plist < 0) return plist;
    if (H5Pset_obj_track_times(plist, false) >= 0 &&
        H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0)
        return plist;
    H5Pclose(plist);
    return -1;
}

static hid_t create_dataset(hid_t file, const char *path, hid_t type, hid_t space)
{
    hid_t plist = plain_plist();
    if (plist < 0) return plist;
    hid_t dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Pclose(plist);
    return dataset;
}

static dt_status put(hid_t file, const char *path, hid_t stored, hid_t held, int rank,
                     const hsize_t *dims, const void *data)
{
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t dataset = space < 0 ? -1 : create_dataset(file, path, stored, space);
    bool good =
        dataset >= 0 && H5Dwrite(dataset, held, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    if (dataset >= 0 && H5Dclose(dataset) < 0) good = false;
    if (space >= 0) H5Sclose(space);
    return good ? DT_OK : dt__h5_fail(DT_EIO, "cannot write %s", path);
}

dt_status dt__array_put(hid_t file, const char *path, struct dt__array array, const void *data)
{
    hsize_t dims[2] = {array.rows, array.columns};
    return put(file, path, stored_type(array.element), held_type(array.element), rank_of(array),
               dims, data);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Whether all of the data set lies in the file, so that its size is no lie. Behind a user block
 * HDF5 1.10 gives a data set that is nowhere an offset that looks good, but no storage. */
static bool is_stored(hid_t file, const struct dt__h5_dataset *dataset)
{
    hsize_t size;
    haddr_t offset = H5Dget_offset(dataset->id);
    return dataset->contiguous && H5Dget_storage_size(dataset->id) == dataset->bytes &&
           H5Fget_filesize(file, &size) >= 0 && offset <= size && dataset->bytes <= size - offset;
}

static bool has_shape(const struct dt__h5_dataset *dataset, struct dt__array array)
{
    return dataset->rank == rank_of(array) && dataset->dims[0] == array.rows &&
           (dataset->rank < 2 || dataset->dims[1] == array.columns);
}

static dt_status open_stored(hid_t file, const char *path, struct dt__array array,
                             struct dt__h5_dataset *out)
{
    DT_TRY(dt__h5_dataset_open(file, path, out));
    if (has_shape(out, array) && is_stored(file, out)) return DT_OK;
    dt__h5_dataset_close(out);
    return dt_fail(DT_EFORMAT, "%s has not the shape that it should have", path);
}

static dt_status open_array(hid_t file, const char *path, struct dt__array array,
                            struct dt__h5_dataset *out)
{
    DT_TRY(open_stored(file, path, array, out));
    if (H5Tequal(out->type, stored_type(array.element)) > 0) return DT_OK;
    dt__h5_dataset_close(out);
    return dt_fail(DT_EFORMAT, "%s has not the type that it should have", path);
}

static dt_status read_all(const struct dt__h5_dataset *dataset, const char *path, hid_t held,
                          void *data)
{
    if (H5Dread(dataset->id, held, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0) return DT_OK;
    return dt__h5_fail(DT_EFORMAT, "%s cannot be read", path);
}

dt_status dt__array_get(hid_t file, const char *path, struct dt__array array, void *data)
{
    struct dt__h5_dataset dataset;
    DT_TRY(open_array(file, path, array, &dataset));
    dt_status status = read_all(&dataset, path, held_type(array.element), data);
    dt__h5_dataset_close(&dataset);
    return status;
}

dt_status dt__array_load(hid_t file, const char *path, struct dt__array array, void *out_data)
{
    void *data = NULL;
    struct dt__h5_dataset dataset;
    DT_TRY(open_array(file, path, array, &dataset));
    dt_status status = dt_alloc(dataset.bytes / ELEMENT_SIZE[array.element],
                                ELEMENT_SIZE[array.element], path, &data);
    if (!status) status = read_all(&dataset, path, held_type(array.element), data);
    dt__h5_dataset_close(&dataset);
    if (status)
        dt_free(data);
    else
        memcpy(out_data, &data, sizeof data);
    return status;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* The names side by side in fields of `size` bytes, the longest with its NUL. */
static dt_status flatten(char *const *names, uint64_t count, char **out_text, size_t *out_size)
{
    size_t size = 1;
    for (uint64_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]) + 1;
        if (length > size) size = length;
    }
    DT_TRY(dt_alloc(count, size, "names", out_text));
    for (uint64_t i = 0; i < count; i++) memcpy(*out_text + i * size, names[i], strlen(names[i]));
    *out_size = size;
    return DT_OK;
}

dt_status dt__names_put(hid_t file, const char *path, char *const *names, uint64_t count)
{
    char *text;
    size_t size;
    hsize_t dims[1] = {count};
    DT_TRY(flatten(names, count, &text, &size));
    hid_t type = dt__h5_text_type(size);
    dt_status status = DT_OK;
    if (type < 0) status = dt__h5_fail(DT_EIO, "cannot write %s", path);
    if (!status) status = put(file, path, type, type, 1, dims, text);
    if (type >= 0) H5Tclose(type);
    dt_free(text);
    return status;
}

static void free_names(char **names, uint64_t count)
{
    for (uint64_t i = 0; names && i < count; i++) dt_free(names[i]);
    dt_free(names);
}

static dt_status unflatten(const char *path, const char *text, uint64_t count, size_t size,
                           char **names)
{
    for (uint64_t i = 0; i < count; i++) {
        const char *name = text + i * size;
        if (name[size - 1]) return dt_fail(DT_EFORMAT, "%s: a name is not terminated", path);
        DT_TRY(dt_strdup(name, &names[i]));
    }
    return DT_OK;
}

static dt_status read_names(const struct dt__h5_dataset *dataset, const char *path, char **names)
{
    char *text;
    DT_TRY(dt_alloc(dataset->bytes, 1, path, &text));
    dt_status status = read_all(dataset, path, dataset->type, text);
    if (!status)
        status = unflatten(path, text, dataset->dims[0], H5Tget_size(dataset->type), names);
    dt_free(text);
    return status;
}

static dt_status load_names(const struct dt__h5_dataset *dataset, const char *path, char ***out)
{
    char **names;
    uint64_t count = dataset->dims[0];
    if (H5Tget_class(dataset->type) != H5T_STRING)
        return dt_fail(DT_EFORMAT, "%s is not a list of names", path);
    DT_TRY(dt_alloc(count, sizeof *names, path, &names));
    dt_status status = read_names(dataset, path, names);
    if (status)
        free_names(names, count);
    else
        *out = names;
    return status;
}

dt_status dt__names_load(hid_t file, const char *path, uint64_t count, char ***out)
{
    struct dt__h5_dataset dataset;
    DT_TRY(open_stored(file, path, (struct dt__array){.rows = count}, &dataset));
    dt_status status = load_names(&dataset, path, out);
    dt__h5_dataset_close(&dataset);
    return status;
}
