/* The table of formats, and the detection of a file's format. */
#include "data/formats.h"

#include <string.h>

#include "text/input.h"

const struct dt__format *const dt__formats[] = {
    [DT_FORMAT_IDX] = &dt__format_idx,       [DT_FORMAT_CSV] = &dt__format_csv,
    [DT_FORMAT_LIBSVM] = &dt__format_libsvm, [DT_FORMAT_JSON] = &dt__format_json,
    [DT_FORMAT_HDF5] = &dt__format_hdf5,     [DT__FORMAT_MEMORY] = &dt__format_memory,
    [DT__FORMAT_SHARD] = &dt__format_shard,
};

enum { HEAD_BYTES = 4096 };

/* A file that no format recognises counts as CSV. So does a pipe, because what is read to detect
 * its format could not be read again. */
dt_status dt__format_detect(const char *path, int *out)
{
    static const int order[] = {DT_FORMAT_HDF5, DT_FORMAT_IDX, DT_FORMAT_LIBSVM, DT_FORMAT_JSON};
    unsigned char head[HEAD_BYTES];
    size_t length;
    const char *suffix = strrchr(path, '.') ? strrchr(path, '.') : "";
    *out = DT_FORMAT_CSV;
    if (dt__path_is_pipe(path)) return DT_OK;
    DT_TRY(dt__packed_head(path, head, sizeof head, &length));
    if (!length) return dt_fail(DT_EFORMAT, "%s: the file is empty", path);
    for (size_t i = sizeof order / sizeof *order; i-- > 0;)
        if (dt__formats[order[i]]->is(suffix, head, length)) *out = order[i];
    return DT_OK;
}

dt_status dt__stream_refuse(const char *name, const unsigned char *head, size_t length)
{
    for (size_t i = 0; i < sizeof dt__formats / sizeof *dt__formats; i++) {
        const struct dt__format *format = dt__formats[i];
        if (format && format->is && !format->grammar && format->is("", head, length))
            return dt_fail(DT_EFORMAT,
                           "%s: this is %s, which can only be read from regular files (data.train, "
                           "data.eval)",
                           name, format->name);
    }
    return dt__packed_refuse(name, head, length);
}

dt_status dt__text_open(struct dt__lines *lines, const char *path)
{
    DT_TRY(dt__lines_open(lines, path));
    if (!dt__path_is_pipe(path)) return DT_OK;
    const dt_status status =
        dt__stream_refuse(path, (const unsigned char *)lines->data, lines->end);
    if (status) dt__lines_close(lines);
    return status;
}
