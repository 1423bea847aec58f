/* Lists of names in HDF5: a data set of strings of one fixed size. */
#include <string.h>

#include "data/h5.h"

enum { LONGEST = 1 << 16, MOST_BYTES = 1 << 28 };

/* ---- writing -------------------------------------------------------------------------------- */

static size_t longest(char *const *names, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) > most) most = strlen(names[i]);
    return most + 1;
}

static dt_status put(hid_t file, const char *path, const char *table, size_t size, size_t count)
{
    hsize_t dims[1] = {count};
    hid_t type = dt__h5_text_type(size), space = H5Screate_simple(1, dims, NULL);
    hid_t plist = dt__h5_plain_plist(), set = -1;
    if (type >= 0 && space >= 0 && plist >= 0)
        set = H5Dcreate2(file, path, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    bool good = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, table) >= 0;
    if (set >= 0 && H5Dclose(set) < 0) good = false;
    if (plist >= 0) H5Pclose(plist);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return good ? DT_OK : dt__h5_fail(DT_EIO, "cannot write %s", path);
}

dt_status dt__h5_names_put(hid_t file, const char *path, char *const *names, size_t count)
{
    size_t size = longest(names, count), bytes;
    char *table;
    if (size > LONGEST || !dt_size_mul(count, size, &bytes) || bytes > MOST_BYTES)
        return dt_fail(DT_EFORMAT, "%s: %zu names of up to %zu bytes are too much", path, count,
                       size);
    DT_TRY(dt_alloc(count, size, "names", &table));
    for (size_t i = 0; i < count; i++)
        memcpy(table + i * size, names[i], strlen(names[i]));
    dt_status status = put(file, path, table, size, count);
    dt_free(table);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

static dt_status cut(const char *table, size_t size, size_t count, struct dt__names *out)
{
    for (size_t i = 0; i < count; i++)
        DT_TRY(dt__names_add(out, table + i * size, strnlen(table + i * size, size)));
    return DT_OK;
}

static dt_status get(const struct dt__h5_dataset *set, const char *path, struct dt__names *out)
{
    size_t size = H5Tget_size(set->type);
    char *table;
    if (H5Tget_class(set->type) != H5T_STRING || set->rank != 1 || size > LONGEST ||
        set->bytes > MOST_BYTES || !dt__h5_is_stored(set))
        return dt_fail(DT_EFORMAT, "%s is not a list of names", path);
    DT_TRY(dt_alloc(set->bytes, 1, "names", &table));
    dt_status status = DT_OK;
    if (H5Dread(set->id, set->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, table) < 0)
        status = dt__h5_fail(DT_EFORMAT, "%s cannot be read", path);
    else
        status = cut(table, size, (size_t)set->dims[0], out);
    dt_free(table);
    return status;
}

dt_status dt__h5_names_get(hid_t file, const char *path, struct dt__names *out)
{
    struct dt__h5_dataset set;
    DT_TRY(dt__h5_dataset_open(file, path, &set));
    dt_status status = get(&set, path, out);
    dt__h5_dataset_close(&set);
    return status;
}
