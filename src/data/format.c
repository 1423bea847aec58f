/* The table of formats. */
#include <errno.h>
#include <string.h>

#include "data/reader.h"

static const struct dt__format *const formats[DT_FORMAT_HDF5 + 1] = {
    [DT_FORMAT_IDX] = &dt__format_idx,
    [DT_FORMAT_CSV] = &dt__format_csv,
    [DT_FORMAT_LIBSVM] = &dt__format_libsvm,
    [DT_FORMAT_HDF5] = &dt__format_hdf5,
};

enum { HEAD = 4096 };
/* In this order: binary signatures, the telling line of LIBSVM, and CSV for all else. */
static const int order[] = {DT_FORMAT_HDF5, DT_FORMAT_IDX, DT_FORMAT_LIBSVM};

const struct dt__format *dt__format_of(int format)
{
    return formats[format];
}

dt_status dt__format_detect(const char *path, int *out)
{
    unsigned char head[HEAD];
    FILE *in = fopen(path, "re");
    if (!in) return dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    size_t length = fread(head, 1, sizeof head, in);
    bool failed = ferror(in);
    fclose(in);
    if (failed) return dt_fail(DT_EIO, "%s: cannot be read", path);
    if (!length) return dt_fail(DT_EFORMAT, "%s: the file is empty", path);
    *out = DT_FORMAT_CSV;
    for (size_t i = sizeof order / sizeof *order; i-- > 0;) {
        const struct dt__format *format = formats[order[i]];
        if (format->claims(path, head, length)) *out = order[i];
    }
    return DT_OK;
}
