#include "state/array.h"

#include <string.h>

#include "data/h5.h"

/* ---- writing -------------------------------------------------------------------------------- */

hid_t dt__stored_type(enum dt__type type)
{
    switch (type) {
    case DT__I32:
        return H5T_STD_I32LE;
    case DT__U32:
        return H5T_STD_U32LE;
    case DT__I64:
        return H5T_STD_I64LE;
    case DT__U64:
        return H5T_STD_U64LE;
    case DT__F32:
        return H5T_IEEE_F32LE;
    case DT__F64:
        return H5T_IEEE_F64LE;
    default:
        return H5T_STD_U8LE;
    }
}

/* All links in the group's own header, where our reader looks for them. */
dt_status dt__group_put(hid_t file, const char *path)
{
    hid_t group = -1, plist = H5Pcreate(H5P_GROUP_CREATE);
    if (plist >= 0 && H5Pset_obj_track_times(plist, false) >= 0 &&
        H5Pset_link_phase_change(plist, 1000, 0) >= 0)
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

dt_status dt__array_put(hid_t file, const char *path, struct dt__array array, const void *data)
{
    hsize_t dims[2] = {array.rows, array.columns};
    hid_t type = dt__stored_type(array.type);
    hid_t space = H5Screate_simple(array.columns ? 2 : 1, dims, NULL);
    hid_t dataset = space < 0 ? -1 : create_dataset(file, path, type, space);
    bool good = dataset >= 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    if (dataset >= 0 && H5Dclose(dataset) < 0) good = false;
    if (space >= 0) H5Sclose(space);
    return good ? DT_OK : dt__h5_fail(DT_EIO, "cannot write %s", path);
}

/* ---- reading -------------------------------------------------------------------------------- */

static dt_status find(const struct dt__tree *tree, const char *path, struct dt__array array,
                      struct dt__value *out)
{
    if (!dt__tree_dataset(tree, path, out))
        return dt_fail(DT_EFORMAT, "%s is missing, or not plain and whole in the file", path);
    if (out->type != array.type)
        return dt_fail(DT_EFORMAT, "%s has not the type that it should have", path);
    if (out->rank != (array.columns ? 2 : 1) || out->dims[0] != array.rows ||
        (array.columns && out->dims[1] != array.columns))
        return dt_fail(DT_EFORMAT, "%s has not the shape that it should have", path);
    return DT_OK;
}

dt_status dt__array_get(const struct dt__tree *tree, const char *path, struct dt__array array,
                        void *data)
{
    struct dt__value value;
    DT_TRY(find(tree, path, array, &value));
    memcpy(data, value.bytes.at, value.bytes.left);
    return DT_OK;
}

dt_status dt__array_load(const struct dt__tree *tree, const char *path, struct dt__array array,
                         void *out_data)
{
    void *data;
    struct dt__value value;
    DT_TRY(find(tree, path, array, &value));
    DT_TRY(dt_alloc(value.count, value.size, path, &data));
    memcpy(data, value.bytes.at, value.bytes.left);
    memcpy(out_data, &data, sizeof data);
    return DT_OK;
}

static dt_status cut_names(const struct dt__value *value, struct dt__names *list)
{
    for (uint64_t i = 0; i < value->count; i++) {
        const char *name = (const char *)value->bytes.at + i * value->size;
        DT_TRY(dt__names_add(list, name, strnlen(name, value->size)));
    }
    return DT_OK;
}

dt_status dt__names_load(const struct dt__tree *tree, const char *path, size_t count, char ***out)
{
    struct dt__value value;
    struct dt__names list = {0};
    DT_TRY(find(tree, path, (struct dt__array){DT__TEXT, count, 0}, &value));
    dt_status status = cut_names(&value, &list);
    if (status)
        dt__names_free(list.items, list.count);
    else
        *out = list.items;
    return status;
}
