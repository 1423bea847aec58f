#include "data/h5.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dtrain/data.h"

/* ---- errors --------------------------------------------------------------------------------- */

void dt__h5_quiet(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
}

static herr_t keep_description(unsigned depth, const H5E_error2_t *error, void *arg)
{
    (void)depth;
    const char **innermost = arg;
    if (error->desc && *error->desc) *innermost = error->desc;
    return 0;
}

dt_status dt__h5_fail(dt_status status, const char *format, ...)
{
    char message[DT_ERROR_MAX];
    const char *innermost = NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_description, &innermost);
    if (innermost)
        dt_fail(status, "%s: HDF5: %s", message, innermost);
    else
        dt_fail(status, "%s", message);
    H5Eclear2(H5E_DEFAULT);
    return status;
}

/* ---- types ---------------------------------------------------------------------------------- */

hid_t dt__h5_text_type(size_t size)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0) return type;
    if (H5Tset_size(type, size) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0) return type;
    H5Tclose(type);
    return -1;
}

hid_t dt__h5_plain_plist(void)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    if (plist < 0) return plist;
    if (H5Pset_obj_track_times(plist, false) >= 0 &&
        H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0)
        return plist;
    H5Pclose(plist);
    return -1;
}

/* ---- links ---------------------------------------------------------------------------------- */

static bool is_hard_link(hid_t file, const char *path)
{
    H5L_info_t info;
    return H5Lexists(file, path, H5P_DEFAULT) > 0 &&
           H5Lget_info(file, path, &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
}

bool dt__h5_exists(hid_t file, const char *path)
{
    char prefix[256];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof prefix) return false;
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0') continue;
        memcpy(prefix, path, end);
        prefix[end] = '\0';
        if (!is_hard_link(file, prefix)) return false;
    }
    return true;
}

/* ---- data sets ------------------------------------------------------------------------------ */

static bool filters_are_known(hid_t plist)
{
    int count = H5Pget_nfilters(plist);
    for (int i = 0; i < count; i++) {
        unsigned flags, config;
        size_t values = 0;
        H5Z_filter_t filter =
            H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
            filter != H5Z_FILTER_FLETCHER32)
            return false;
    }
    return count >= 0;
}

static bool storage_is_safe(hid_t dataset, bool *out_contiguous)
{
    hid_t plist = H5Dget_create_plist(dataset);
    if (plist < 0) return false;
    H5D_layout_t layout = H5Pget_layout(plist);
    *out_contiguous = layout == H5D_CONTIGUOUS;
    bool safe = (layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) &&
                H5Pget_external_count(plist) == 0 && filters_are_known(plist);
    H5Pclose(plist);
    return safe;
}

static bool is_one_of(hid_t type, const hid_t *known, size_t count)
{
    size_t i = 0;
    while (i < count && H5Tequal(type, known[i]) <= 0)
        i++;
    return i < count;
}

/* Half precision, as h5py writes it: HDF5 has no name for it. */
static bool is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    return H5Tget_size(type) == 2 && H5Tget_precision(type) == 16 && H5Tget_offset(type) == 0 &&
           H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
           sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 &&
           mantissa_bits == 10;
}

/* The plain numbers alone: HDF5 1.10.8 crashes converting some that a file may make up. */
static bool type_is_safe(hid_t type)
{
    const hid_t integers[] = {H5T_STD_U8LE,  H5T_STD_U8BE,  H5T_STD_I8LE,  H5T_STD_I8BE,
                              H5T_STD_U16LE, H5T_STD_U16BE, H5T_STD_I16LE, H5T_STD_I16BE,
                              H5T_STD_U32LE, H5T_STD_U32BE, H5T_STD_I32LE, H5T_STD_I32BE,
                              H5T_STD_U64LE, H5T_STD_U64BE, H5T_STD_I64LE, H5T_STD_I64BE};
    const hid_t floats[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        return is_one_of(type, integers, sizeof integers / sizeof *integers);
    case H5T_FLOAT:
        return is_one_of(type, floats, sizeof floats / sizeof *floats) || is_half(type);
    case H5T_STRING:
        return H5Tis_variable_str(type) == 0;
    default:
        return false;
    }
}

/* Rank and dimensions; false unless the space is simple and its bytes can be counted. */
static bool measure(struct dt__h5_dataset *dataset)
{
    hid_t space = H5Dget_space(dataset->id);
    if (space < 0) return false;
    dataset->rank = H5Sget_simple_extent_ndims(space);
    bool good = H5Sget_simple_extent_type(space) == H5S_SIMPLE && dataset->rank >= 1 &&
                dataset->rank <= DT__H5_MAX_RANK &&
                H5Sget_simple_extent_dims(space, dataset->dims, NULL) == dataset->rank;
    H5Sclose(space);
    dataset->bytes = H5Tget_size(dataset->type);
    for (int i = 0; good && i < dataset->rank; i++)
        good = dt_size_mul(dataset->bytes, dataset->dims[i], &dataset->bytes);
    return good && H5Tget_size(dataset->type) > 0;
}

static dt_status inspect(struct dt__h5_dataset *dataset, const char *path)
{
    if (H5Iget_type(dataset->id) != H5I_DATASET)
        return dt_fail(DT_EFORMAT, "%s is not a data set", path);
    if (!storage_is_safe(dataset->id, &dataset->contiguous))
        return dt_fail(DT_EFORMAT, "%s is not stored plainly in the file itself", path);
    dataset->type = H5Dget_type(dataset->id);
    if (dataset->type < 0) return dt__h5_fail(DT_EFORMAT, "%s: its type cannot be read", path);
    if (!type_is_safe(dataset->type))
        return dt_fail(DT_EFORMAT, "%s holds neither plain numbers nor strings of fixed size",
                       path);
    if (!measure(dataset)) return dt_fail(DT_EFORMAT, "%s has no proper dimensions", path);
    return DT_OK;
}

dt_status dt__h5_dataset_open(hid_t file, const char *path, struct dt__h5_dataset *out)
{
    struct dt__h5_dataset dataset = {.id = -1, .type = -1};
    if (!dt__h5_exists(file, path)) return dt_fail(DT_EFORMAT, "%s is missing", path);
    dataset.id = H5Oopen(file, path, H5P_DEFAULT);
    if (dataset.id < 0) return dt__h5_fail(DT_EFORMAT, "%s cannot be opened", path);
    dt_status status = inspect(&dataset, path);
    if (status)
        dt__h5_dataset_close(&dataset);
    else
        *out = dataset;
    return status;
}

void dt__h5_dataset_close(struct dt__h5_dataset *dataset)
{
    if (dataset->type >= 0) H5Tclose(dataset->type);
    if (dataset->id >= 0) H5Oclose(dataset->id);
    dataset->id = dataset->type = -1;
}

/* ---- version -------------------------------------------------------------------------------- */

const char *dt_hdf5_version(char buffer[16])
{
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(buffer, 16, "%u.%u.%u", major, minor, release);
    return buffer;
}

/* ---- what is really there ------------------------------------------------------------------- */

enum { DEFLATE_BEST = 1100, MOST_CHUNK = 1 << 28 };

/* Bytes of one chunk when unpacked; 0 if they cannot be counted. */
static size_t chunk_bytes(const struct dt__h5_dataset *dataset)
{
    hsize_t dims[DT__H5_MAX_RANK];
    size_t bytes = H5Tget_size(dataset->type);
    hid_t plist = H5Dget_create_plist(dataset->id);
    if (plist < 0 || H5Pget_chunk(plist, DT__H5_MAX_RANK, dims) != dataset->rank) bytes = 0;
    for (int i = 0; bytes && i < dataset->rank; i++)
        if (!dt_size_mul(bytes, dims[i], &bytes)) bytes = 0;
    if (plist >= 0) H5Pclose(plist);
    return bytes;
}

bool dt__h5_is_stored(const struct dt__h5_dataset *dataset)
{
    hsize_t size = 0, stored = H5Dget_storage_size(dataset->id);
    hid_t file = H5Iget_file_id(dataset->id);
    bool good = file >= 0 && H5Fget_filesize(file, &size) >= 0;
    if (file >= 0) H5Fclose(file);
    if (dataset->contiguous) {
        /* Behind a user block HDF5 1.10 gives one that is nowhere an offset, but no storage. */
        haddr_t offset = H5Dget_offset(dataset->id);
        return good && stored == dataset->bytes && offset <= size && stored <= size - offset;
    }
    size_t chunk = chunk_bytes(dataset);
    return good && chunk && chunk <= MOST_CHUNK && stored <= size &&
           dataset->bytes / DEFLATE_BEST <= stored;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Room for a chunk or two of packed data sets, so that neighbouring reads unpack it once. */
enum { CHUNK_CACHE = 1 << 22, CACHE_SLOTS = 521 };

dt_status dt__h5_file_open(const char *path, hid_t *out)
{
    dt__h5_quiet();
    struct stat info; /* a pipe would hang us */
    if (access(path, R_OK) || stat(path, &info))
        return dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return dt_fail(DT_EFORMAT, "%s: not a file", path);
    hid_t plist = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (plist >= 0 && H5Pset_fclose_degree(plist, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_cache(plist, 0, CACHE_SLOTS, CHUNK_CACHE, 1.0) >= 0)
        file = H5Fopen(path, H5F_ACC_RDONLY, plist);
    if (plist >= 0) H5Pclose(plist);
    if (file < 0) return dt__h5_fail(DT_EFORMAT, "%s: cannot be opened as HDF5", path);
    *out = file;
    return DT_OK;
}
