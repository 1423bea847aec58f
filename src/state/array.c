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

static hid_t create_dataset(hid_t file, const char *path, hid_t type, hid_t space)
{
    hid_t plist = dt__h5_plain_plist();
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

static bool has_shape(const struct dt__h5_dataset *dataset, struct dt__array array)
{
    return dataset->rank == rank_of(array) && dataset->dims[0] == array.rows &&
           (dataset->rank < 2 || dataset->dims[1] == array.columns);
}

static dt_status check(const struct dt__h5_dataset *dataset, const char *path,
                       struct dt__array array)
{
    if (!has_shape(dataset, array))
        return dt_fail(DT_EFORMAT, "%s has not the shape that it should have", path);
    if (H5Tequal(dataset->type, stored_type(array.element)) <= 0)
        return dt_fail(DT_EFORMAT, "%s has not the type that it should have", path);
    if (!dataset->contiguous || !dt__h5_is_stored(dataset))
        return dt_fail(DT_EFORMAT, "%s is not all in the file", path);
    return DT_OK;
}

static dt_status open_array(hid_t file, const char *path, struct dt__array array,
                            struct dt__h5_dataset *out)
{
    DT_TRY(dt__h5_dataset_open(file, path, out));
    dt_status status = check(out, path, array);
    if (status) dt__h5_dataset_close(out);
    return status;
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
